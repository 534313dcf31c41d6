//! What `--help` of each subcommand says at its end: examples, and what exit codes mean.
//!
//! Invariant: every subcommand has examples, and each is a command line that is understood (the tests below).

/// At the end of help in general.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a run failed, 2 bad input, 130 interrupted.
Data goes to stdout, everything else to stderr.";

/// Examples of each subcommand, a line each, with what they do.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "run",
        &[
            ("pagetide run tunable-watermarks", "a shipped experiment"),
            ("pagetide run mine.toml --set sysctl.vm.swappiness=10", "a change, in all variants"),
            ("pagetide run mine.toml --metrics 'web.*' --metrics psi", "these metrics alone"),
            ("pagetide run mine.toml --html mine.html", "a page to mail"),
            ("pagetide run mine.toml --openmetrics mine.txt", "for Prometheus and Grafana"),
            ("pagetide run mine.toml --format json >mine.json", "all metrics of all runs"),
        ],
    ),
    (
        "verify",
        &[
            ("pagetide verify mine.toml", "the scenario on a real kernel, and simulated"),
            ("pagetide verify mine.toml --repeats 5 --record runs", "keep the kernel's counters"),
            ("pagetide verify mine.toml --reference runs", "compare with them, without QEMU"),
        ],
    ),
    (
        "find",
        &[
            (
                "pagetide find mine.toml --knob vm.min_free_kbytes --want 'allocstall == 0'",
                "the least reserve without direct reclaim",
            ),
            (
                "pagetide find mine.toml --knob group.web.memory.low=0..2G --want 'web.latency_p99 <= 10ms' --emit systemd",
                "as a drop-in of a unit",
            ),
        ],
    ),
    (
        "sweep",
        &[
            (
                "pagetide sweep mine.toml --grid vm.swappiness=0,60,200 --grid machine.memory=1G..4G/4",
                "12 points",
            ),
            (
                "pagetide sweep mine.toml --grid vm.swappiness=0..200/11 --store kept",
                "goes on where it was stopped",
            ),
        ],
    ),
    ("compare", &[("pagetide compare before.json after.json", "two results of run or sweep")]),
    (
        "check",
        &[
            ("pagetide check mine.toml other.toml", "all mistakes of both"),
            ("pagetide import host | pagetide check -", "of what comes on stdin"),
        ],
    ),
    ("list", &[("pagetide list", "the names that `run` takes")]),
    (
        "new",
        &[
            ("pagetide new", "asks, and prints a scenario"),
            ("pagetide new --from database --memory 64GiB -o db.toml", "no questions"),
        ],
    ),
    (
        "schema",
        &[
            ("pagetide schema >pagetide.json", "for an editor that completes TOML"),
            ("pagetide schema --of run", "what `run --format json` prints"),
        ],
    ),
    (
        "metrics",
        &[
            ("pagetide metrics", "all of them"),
            ("pagetide metrics 'workingset_*' --format csv", "some, for a spreadsheet"),
        ],
    ),
    (
        "explain",
        &[
            ("pagetide explain vm.swappiness", "a sysctl"),
            ("pagetide explain web.latency_p99", "a metric, as a table has it"),
            ("pagetide explain working-set", "a workload and its keys"),
            ("pagetide explain balance_pgdat", "where a function of Linux is here"),
            ("pagetide explain 'memory.*'", "a list"),
        ],
    ),
    (
        "mrc",
        &[(
            "pagetide mrc program.ptt --sizes 64MiB..4GiB/8",
            "miss ratios at 8 sizes of the page cache",
        )],
    ),
    (
        "import",
        &[(
            "pagetide trace import lackey program.log -o program.ptt",
            "what Valgrind recorded of a program",
        )],
    ),
    ("info", &[("pagetide trace info program.ptt", "what is in it")]),
    (
        "host",
        &[
            ("pagetide import host -o here.toml", "this machine"),
            ("pagetide import host --measure -o here.toml", "and what operations cost on it"),
            ("pagetide import host --root saved -o there.toml", "another one, by its files"),
        ],
    ),
    (
        "inspect",
        &[
            ("pagetide inspect mine.toml zoneinfo buddyinfo", "two files, at the end of the run"),
            ("pagetide inspect mine.toml --at 1.5s --only meminfo", "one, 1.5 s after its start"),
            ("pagetide inspect mine.toml --timeline", "who had how much memory when"),
        ],
    ),
    (
        "completions",
        &[(
            "pagetide completions bash >~/.local/share/bash-completion/completions/pagetide",
            "for bash",
        )],
    ),
    (
        "man",
        &[
            ("pagetide man | man -l -", "read it"),
            ("pagetide man --output ~/.local/share/man/man1", "install the pages of all subcommands"),
        ],
    ),
];

/// The end of the help of a subcommand: its examples, and exit codes.
pub fn after_help(subcommand: &str) -> String {
    after_help_with(subcommand, EXIT_CODES)
}

/// The same with an end of its own.
pub fn after_help_with(subcommand: &str, end: &str) -> String {
    let examples = EXAMPLES.iter().find(|(name, _)| *name == subcommand);
    let mut text = "Examples:\n".to_owned();
    for (line, what) in examples.into_iter().flat_map(|(_, examples)| *examples) {
        text += &format!("  {line}\n      {what}\n");
    }
    text + "\n" + end
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;
    use clap::{Command, CommandFactory, Parser};

    /// The words of a line, as a shell would take it: up to a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                '|' | '>' if !is_quoted => break,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn check(command: &Command, nr_lines: &mut usize) {
        for sub in command.get_subcommands() {
            if sub.has_subcommands() {
                check(sub, nr_lines);
                continue;
            }
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> =
                help.lines().filter_map(|line| line.strip_prefix("  pagetide ")).collect();
            assert!(!lines.is_empty(), "{} has no examples", sub.get_name());
            for line in lines {
                let line = format!("pagetide {line}");
                assert!(line.contains(sub.get_name()), "{line}");
                if let Err(error) = Cli::try_parse_from(words(&line)) {
                    panic!("{line}: {error}");
                }
                *nr_lines += 1;
            }
            assert!(help.contains("Exit codes"), "{}", sub.get_name());
        }
    }

    #[test]
    fn every_subcommand_has_examples_that_are_understood() {
        let mut nr_lines = 0;
        check(&Cli::command(), &mut nr_lines);
        let all: usize = super::EXAMPLES.iter().map(|(_, lines)| lines.len()).sum();
        assert_eq!(nr_lines, all, "an example is of no subcommand");
    }
}
