//! Executes the commands of a document and compares their output with the document.
//!
//! A line `<!-- file: NAME -->` before a fenced block: the reader saves the block as NAME. `<!--
//! copy: PATH -->`: the reader copies that file of the repository. A ` ```console ` block has lines
//! `$ COMMAND` (a `\` at the end continues it), each followed by its output. A line `[...]` stands
//! for any omitted lines. A line `<!-- console: slow -->` before a block restricts it to the
//! release build; `<!-- console: exits 1 -->` gives the exit code of its commands. Their stderr is
//! shown if stdout is empty. Other blocks are neither saved nor run. All steps of a document run in
//! one directory, which is empty at first.

use pagetide_testing::directory::TestDir;
use pagetide_testing::{accepts, root};
use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Marks omitted lines.
const LEFT_OUT: &str = "[...]";

/// A step of a document.
#[derive(Debug, PartialEq)]
enum DocumentStep<'a> {
    Save { name: &'a str, content: &'a str },
    Copy { path: &'a str },
    Run(DocumentCommand<'a>),
}

/// A command, and the position of its output in the document.
#[derive(Debug, PartialEq)]
struct DocumentCommand<'a> {
    command: String,
    shown: &'a str,
    place: Range<usize>,
    exits: i32,
    is_slow: bool,
}

/// Executes the steps of a document and fails with the differences between shown and actual output.
/// With `PAGETIDE_ACCEPT` the actual output is written into the document instead.
/// `PAGETIDE_ONLY=WORD` skips commands without that word.
#[track_caller]
pub fn follow(path: &str) {
    let only = std::env::var("PAGETIDE_ONLY").ok();
    let path = root().join(path);
    let text = fs::read_to_string(&path).unwrap();
    let place = TestDir::new();
    let (mut wrong, mut new) = (String::new(), String::new());
    let mut copied = 0;
    for step in steps(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display())) {
        let run = match step {
            DocumentStep::Save { name, content } => {
                place.write(name, content);
                continue;
            }
            DocumentStep::Copy { path } => {
                let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap();
                place.write(name, fs::read(root().join(path)).unwrap());
                continue;
            }
            DocumentStep::Run(run) => run,
        };
        let is_wanted =
            only.as_ref().is_none_or(|word| run.command.split(' ').any(|part| part == word));
        if !is_wanted || run.is_slow && cfg!(debug_assertions) {
            continue;
        }
        let (code, printed) = printed(&place, &run);
        assert_eq!(
            code,
            Some(run.exits),
            "{}: `{}` printed\n{printed}",
            path.display(),
            run.command
        );
        if align(run.shown, &printed, |shown, line| shown == line).is_some() {
            continue;
        }
        if !accepts() {
            write!(wrong, "\n`{}` prints\n\n{}", run.command, difference(run.shown, &printed))
                .unwrap();
            continue;
        }
        let Some(accepted) = accepted(run.shown, &printed) else {
            panic!(
                "{}: `{}`: place its `{LEFT_OUT}` again in\n{printed}",
                path.display(),
                run.command
            );
        };
        new.push_str(&text[copied..run.place.start]);
        new.push_str(&accepted);
        copied = run.place.end;
    }
    new.push_str(&text[copied..]);
    if new != text {
        fs::write(&path, new).unwrap();
    }
    assert!(wrong.is_empty(), "{} (PAGETIDE_ACCEPT=1 writes this):\n{wrong}", path.display());
}

/// Exit code and visible output of a command. Progress on stderr is not shown, errors are.
fn printed(place: &TestDir, run: &DocumentCommand) -> (Option<i32>, String) {
    let programs = Path::new(env!("CARGO_BIN_EXE_pagetide")).parent().unwrap();
    let paths = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let paths = std::iter::once(programs.to_owned()).chain(paths);
    let output = Command::new("sh")
        .args(["-c", &run.command])
        .current_dir(&place.directory)
        .env("PATH", std::env::join_paths(paths).unwrap())
        .env("PAGETIDE", root())
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("documents"))
        .env("LC_ALL", "C")
        .env_remove("COLUMNS")
        .env_remove("PAGETIDE_ACCEPT")
        .output()
        .unwrap();
    let mut printed = String::from_utf8(output.stdout).unwrap();
    if printed.is_empty() && output.status.code() != Some(0) {
        printed.push_str(&String::from_utf8(output.stderr).unwrap());
    }
    (output.status.code(), printed)
}

/// The steps of a document.
fn steps(text: &str) -> Result<Vec<DocumentStep<'_>>, String> {
    let mut steps = Vec::new();
    let mut comment = "";
    let mut lines = lines(text);
    while let Some((_, line)) = lines.next() {
        let Some(kind) = line.trim_end().strip_prefix("```") else {
            steps.extend(remark(line, "copy").map(|path| DocumentStep::Copy { path }));
            comment = line;
            continue;
        };
        let mut block = Vec::new();
        loop {
            let Some((place, line)) = lines.next() else {
                return Err("a block without an end".into());
            };
            if line.trim_end() == "```" {
                break;
            }
            block.push((place, line));
        }
        let remark = |name| remark(comment, name);
        if let Some(name) = remark("file") {
            let content = match (block.first(), block.last()) {
                (Some((first, _)), Some((last, _))) => &text[first.start..last.end],
                _ => "",
            };
            steps.push(DocumentStep::Save { name, content });
        } else if kind == "console" {
            steps.extend(runs(text, &block, remark("console"))?.into_iter().map(DocumentStep::Run));
        } else if remark("console").is_some() {
            return Err(format!("`{}` is before a block of `{kind}`", comment.trim()));
        }
        comment = "";
    }
    Ok(steps)
}

/// The commands of a block.
fn runs<'a>(
    text: &'a str,
    block: &[(Range<usize>, &'a str)],
    remark: Option<&str>,
) -> Result<Vec<DocumentCommand<'a>>, String> {
    let (mut exits, mut is_slow) = (0, false);
    for word in remark.iter().flat_map(|remark| remark.split(", ")) {
        match word.strip_prefix("exits ").map(str::parse) {
            Some(Ok(code)) => exits = code,
            None if word == "slow" => is_slow = true,
            _ => return Err(format!("`{word}` is neither `slow` nor `exits CODE`")),
        }
    }
    let mut runs: Vec<DocumentCommand> = Vec::new();
    let mut continues = false;
    for (place, line) in block {
        let typed = line.trim_end();
        match (typed.strip_prefix("$ "), runs.last_mut()) {
            (_, Some(run)) if continues => {
                run.command.push_str(typed.trim_start());
                run.place = place.end..place.end;
            }
            (Some(command), _) => runs.push(DocumentCommand {
                command: command.into(),
                shown: "",
                place: place.end..place.end,
                exits,
                is_slow,
            }),
            (None, Some(run)) => run.place.end = place.end,
            (None, None) => return Err(format!("`{typed}` is printed by no command")),
        }
        let run = runs.last_mut().expect("the line above made one");
        continues = run.place.is_empty() && run.command.ends_with('\\');
        if continues {
            run.command.pop();
        }
    }
    for run in &mut runs {
        run.shown = &text[run.place.clone()];
    }
    Ok(runs)
}

/// The text of a comment `<!-- NAME: ... -->`.
fn remark<'a>(comment: &'a str, name: &str) -> Option<&'a str> {
    let inner = comment.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    inner.strip_prefix(name)?.strip_prefix(": ")
}

/// The lines of a text, with their ends, and their positions.
fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let place = start..start + line.len();
        start = place.end;
        (place, line)
    })
}

/// The text to show for `printed`: all of it, or the lines that correspond to those shown now.
fn accepted(shown: &str, printed: &str) -> Option<String> {
    let leaves_out = shown.lines().any(|line| line == LEFT_OUT);
    if !leaves_out {
        return Some(printed.into());
    }
    align(shown, printed, |shown, line| skeleton(shown) == skeleton(line))
}

/// The letters of a line's first word, which are the same when figures change.
fn skeleton(line: &str) -> String {
    let first = line.split_whitespace().next().unwrap_or_default();
    first.chars().filter(|letter| letter.is_alphabetic()).collect()
}

/// `shown`, with its lines replaced by the matching lines of `printed`. All lines must match,
/// except omitted ones.
fn align(shown: &str, printed: &str, is_same: impl Fn(&str, &str) -> bool) -> Option<String> {
    let shown: Vec<&str> = shown.split_inclusive('\n').collect();
    let printed: Vec<&str> = printed.split_inclusive('\n').collect();
    let parts: Vec<&[&str]> = shown.split(|line| line.trim_end() == LEFT_OUT).collect();
    let (mut aligned, mut next) = (String::new(), 0);
    for (number, part) in parts.iter().enumerate() {
        let is_here = |start: &usize| {
            let lines = &printed[*start..*start + part.len()];
            part.iter().zip(lines).all(|(shown, line)| is_same(shown, line))
        };
        let (is_first, is_last) = (number == 0, number + 1 == parts.len());
        let latest = printed.len().checked_sub(part.len()).filter(|latest| *latest >= next)?;
        let earliest = if is_last { latest } else { next };
        let latest = if is_first { 0 } else { latest };
        let start = (earliest..=latest).find(is_here)?;
        if !is_first {
            aligned.push_str(&format!("{LEFT_OUT}\n"));
        }
        next = start + part.len();
        aligned.extend(printed[start..next].iter().copied());
    }
    Some(aligned)
}

/// The lines that differ, of the shown and of the printed text.
fn difference(shown: &str, printed: &str) -> String {
    let without = |text: &str, other: &str, mark: char| -> String {
        let lines =
            text.lines().filter(|line| *line != LEFT_OUT && !other.lines().any(|o| o == *line));
        lines.map(|line| format!("{mark} {line}\n")).collect()
    };
    let lines = without(shown, printed, '-') + &without(printed, shown, '+');
    if lines.is_empty() {
        format!("other lines:\n{printed}")
    } else {
        lines
    }
}

#[test]
fn a_document_is_files_and_commands() {
    let text = "\
Save:
<!-- file: a.toml -->
```toml
x = 1
```
```console
$ one \\
    --two
out
$ three
```
```
$ not run
```
<!-- copy: b/c.toml -->
<!-- console: slow, exits 1 -->
```console
$ four
```
";
    let steps = steps(text).unwrap();
    assert_eq!(steps[0], DocumentStep::Save { name: "a.toml", content: "x = 1\n" });
    assert_eq!(steps[3], DocumentStep::Copy { path: "b/c.toml" });
    let runs: Vec<_> = steps[1..3]
        .iter()
        .chain(&steps[4..])
        .map(|step| match step {
            DocumentStep::Run(run) => (run.command.as_str(), run.shown, run.exits, run.is_slow),
            DocumentStep::Save { .. } | DocumentStep::Copy { .. } => panic!("{step:?}"),
        })
        .collect();
    assert_eq!(
        runs,
        [("one --two", "out\n", 0, false), ("three", "", 0, false), ("four", "", 1, true)]
    );
}

#[test]
fn a_document_that_cannot_be_followed_is_refused() {
    for text in [
        "```console\nout\n```\n",
        "```console\n$ a\n",
        "<!-- console: fast -->\n```console\n$ a\n```\n",
        "<!-- console: slow -->\n```toml\n```\n",
    ] {
        assert!(steps(text).is_err(), "{text}");
    }
}

#[test]
fn omitted_lines_may_be_anything_and_the_others_must_match() {
    let exactly = |shown, printed| align(shown, printed, |a, b| a == b).is_some();
    assert!(exactly("a\nb\n", "a\nb\n"));
    assert!(!exactly("a\n", "a\nb\n"));
    assert!(!exactly("", "a\n"));
    assert!(exactly("a\n[...]\nd\n", "a\nb\nc\nd\n"));
    assert!(!exactly("a\n[...]\nd\n", "a\nb\nc\nd\ne\n"));
    assert!(exactly("[...]\nb\n[...]\n", "a\nb\nc\n"));
    assert!(!exactly("[...]\nb\n[...]\na\n[...]\n", "a\nb\nc\n"));
    assert_eq!(accepted("x 1\n", "y 2\nz 3\n").unwrap(), "y 2\nz 3\n");
    assert_eq!(
        accepted("a 1\n[...]\nc 3 ms\n", "a 2\nb 9\nc 4 us\n").unwrap(),
        "a 2\n[...]\nc 4 us\n"
    );
    assert_eq!(accepted("a 1\n[...]\nd\n", "a 2\nb 9\n"), None);
}
