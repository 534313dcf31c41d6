//! Errors of the loader: scenarios with mistakes in `tests/diagnostics`, and the errors beside the
//! mistakes.
//!
//! ```toml
//! #==== A group
//!   [[group]]
//!   name = "g"
//! #---- an unknown key
//!   at_strat = false
//! # ^^^^^^^^ unknown key `at_strat`
//! # hint: did you mean `at_start`?
//! ```
//!
//! * `#----` starts a case and names it. Each case is a scenario of its own. It begins with the
//!   common lines: those between the last `#====` and the first case after it.
//! * Lines of a scenario are indented by two columns, so that marks can stand under the first one.
//! * Lines that begin with `# ` are the errors of the line above. `^` marks the offending text, and
//!   `|` a place without text. `-` marks a second place that the error names, or names its line if
//!   it is a common one.
//! * Errors in a base, one of `tests/diagnostics/bases`, are after the last line of the case.
//!
//! All errors of a case must be as written, in the same order. A case without errors must load.
//! `object-mix.toml` has object mixes instead of scenarios.
//!
//! To add a case, write the scenario and run the test with `PAGETIDE_ACCEPT=1`, which writes the
//! errors into the files.

use pagetide_scenario::diagnostic::Diagnostic;
use pagetide_scenario::load::{load_str, object_mix, Overrides};
use pagetide_testing::accepts;
use std::path::Path;

/// Relative to the crate, because some errors contain it.
const DIR: &str = "tests/diagnostics";
const WIDTH: usize = 100;

#[test]
fn errors_are_those_of_the_files() {
    let mut wrong = String::new();
    let mut files = 0;
    for entry in std::fs::read_dir(DIR).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        files += 1;
        let load = if path.ends_with("object-mix.toml") { errors_of_mix } else { errors };
        let written = std::fs::read_to_string(&path).unwrap();
        let mut found = String::new();
        let mut common = String::new();
        for block in blocks(&written) {
            let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with("# ")).collect();
            let annotated = match lines[0].starts_with("#----") {
                true => annotate(&common, &lines, load),
                false => {
                    common = scenario(&lines);
                    lines.join("\n") + "\n"
                }
            };
            if annotated != block && !accepts() {
                let path = path.display();
                wrong += &format!("{path} has\n{block}but the errors are\n{annotated}\n");
            }
            found += &annotated;
        }
        if accepts() && found != written {
            std::fs::write(&path, found).unwrap();
        }
    }
    assert!(files > 1, "{DIR} has {files} files");
    assert!(wrong.is_empty(), "\n{wrong}PAGETIDE_ACCEPT=1 writes the errors into the files");
}

fn errors(text: &str) -> Vec<Diagnostic> {
    let loaded = load_str("case.toml", text, Path::new(DIR), &Overrides::default());
    loaded.map_or_else(|errors| errors.iter().cloned().collect(), |_| Vec::new())
}

fn errors_of_mix(text: &str) -> Vec<Diagnostic> {
    let loaded = object_mix("mix.toml", text);
    loaded.map_or_else(|errors| errors.iter().cloned().collect(), |_| Vec::new())
}

/// Splits before each line that starts a case or common lines.
fn blocks(text: &str) -> Vec<&str> {
    let starts = text.match_indices('\n').map(|(at, _)| at + 1);
    let is_start = |at: &usize| ["#====", "#----"].iter().any(|it| text[*at..].starts_with(it));
    let mut bounds: Vec<usize> = starts.filter(is_start).collect();
    bounds.push(text.len());
    let mut from = 0;
    bounds.into_iter().map(|to| &text[std::mem::replace(&mut from, to)..to]).collect()
}

/// The scenario in the lines after the first.
fn scenario(lines: &[&str]) -> String {
    lines[1..].iter().map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line))).collect()
}

/// The lines of a case with its errors.
fn annotate(common: &str, lines: &[&str], load: fn(&str) -> Vec<Diagnostic>) -> String {
    let errors = load(&format!("{common}{}", scenario(lines)));
    let is_own = |error: &&Diagnostic| !error.path.starts_with("bases/");
    let (own, of_bases): (Vec<_>, Vec<_>) = errors.iter().partition(is_own);
    let places: Vec<(usize, usize)> = own.iter().map(|it| (it.line, it.column)).collect();
    assert!(places.is_sorted(), "errors are in the order of the text: {errors:#?}");
    let mut annotated: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let above = common.lines().count();
    for error in own {
        let marks = match error.text.chars().count() {
            0 => "|".to_owned(),
            width => "^".repeat(width),
        };
        assert!(error.line > above, "{}: an error in common lines: {error:#?}", lines[0]);
        // An empty case has only its first line.
        let note = &mut annotated[(error.line - above).min(lines.len() - 1)];
        *note += &wrap(format!("# {:1$}{marks}", "", error.column - 1), &error.message);
        if let Some(hint) = &error.hint {
            *note += &wrap("# hint:".to_owned(), hint);
        }
        if let Some(also) = &error.also {
            match common.lines().nth(also.line - 1) {
                Some(line) => *note += &wrap(format!("# - {line}:"), &also.label),
                None => {
                    let mark = format!("# {:1$}-", "", also.column - 1);
                    annotated[also.line - above] += &wrap(mark, &also.label);
                }
            }
        }
    }
    for Diagnostic { path, line, text, message, hint, .. } in of_bases {
        let of_base = annotated.last_mut().expect("a case has a first line");
        *of_base += &wrap(format!("# {path}, line {line}, `{text}`:"), message);
        if let Some(hint) = hint {
            *of_base += &wrap("# hint:".to_owned(), hint);
        }
    }
    annotated.concat()
}

/// Continues `line` with `text`, over several lines if it is long.
fn wrap(mut line: String, text: &str) -> String {
    let mut wrapped = String::new();
    for word in text.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            wrapped += &format!("{line}\n");
            line = "#  ".to_owned();
        }
        line += &format!(" {word}");
    }
    format!("{wrapped}{line}\n")
}
