//! The end of `--help` of each subcommand: examples and exit codes.
//!
//! Invariant: every subcommand has examples, and each example parses (see the tests below).

/// The end of the general help.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 a run failed, 2 bad input, 130 interrupted.
Data goes to stdout, everything else to stderr.";

/// Examples of each subcommand: a command line and its purpose.
const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "run",
        &[
            ("pagetide run tunable-watermarks", "a shipped experiment"),
            ("pagetide run mine.toml --set sysctl.vm.swappiness=10", "a changed knob, in all variants"),
            ("pagetide run mine.toml --metrics 'web.*' --metrics psi", "only these metrics"),
            ("pagetide run mine.toml --html mine.html", "an HTML report"),
            ("pagetide run mine.toml --openmetrics mine.txt", "for Prometheus and Grafana"),
            ("pagetide run mine.toml --format json >mine.json", "all metrics of all runs"),
        ],
    ),
    (
        "verify",
        &[
            ("pagetide verify mine.toml", "run it on a real kernel and in the simulator"),
            ("pagetide verify mine.toml --repeats 5 --record runs", "keep the kernel's counters"),
            ("pagetide verify mine.toml --reference runs", "compare with them, without QEMU"),
        ],
    ),
    (
        "find",
        &[
            (
                "pagetide find mine.toml --knob vm.min_free_kbytes --want 'allocstall == 0'",
                "the smallest reserve without direct reclaim",
            ),
            (
                "pagetide find mine.toml --knob group.web.memory.low=0..2G \
                 --want 'web.latency_p99 <= 10ms' --emit systemd",
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
                "continues where it stopped",
            ),
        ],
    ),
    (
        "fuzz",
        &[
            (
                "pagetide fuzz fuzz/mapped-reader --objective oom-with-evictable-pages \
                 --against policy.lru=linux-6.1",
                "a kill with the multi-generational LRU that the two lists avoid",
            ),
            (
                "pagetide fuzz mine.toml --knob vm.swappiness=0..200 --knob machine.cpus=1..8 \
                 --objective refault-storm --draws 200 --out small.toml",
                "the first 200 draws on any machine",
            ),
        ],
    ),
    ("compare", &[("pagetide compare before.json after.json", "two results of run or sweep")]),
    (
        "check",
        &[
            ("pagetide check mine.toml other.toml", "all mistakes of both files"),
            ("pagetide import host | pagetide check -", "a scenario on stdin"),
        ],
    ),
    ("list", &[("pagetide list", "the names that `run` accepts")]),
    (
        "new",
        &[
            ("pagetide new", "asks questions, then prints a scenario"),
            ("pagetide new --from database --memory 64GiB -o db.toml", "no questions"),
        ],
    ),
    (
        "schema",
        &[
            ("pagetide schema >pagetide.json", "for an editor that completes TOML"),
            ("pagetide schema --of run", "the output of `run --format json`"),
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
            ("pagetide explain web.latency_p99", "a metric, as named in a table"),
            ("pagetide explain working-set", "a workload and its keys"),
            ("pagetide explain balance_pgdat", "where the simulator implements a Linux function"),
            ("pagetide explain 'memory.*'", "all names with this prefix"),
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
            "a Valgrind recording of a program",
        )],
    ),
    ("info", &[("pagetide trace info program.ptt", "its contents")]),
    (
        "host",
        &[
            ("pagetide import host -o here.toml", "this machine"),
            ("pagetide import host --measure -o here.toml", "with measured operation costs"),
            ("pagetide import host --root saved -o there.toml", "another machine, from its saved files"),
        ],
    ),
    (
        "report",
        &[
            ("pagetide import report dmesg.txt -o oom.toml", "the first report of a log"),
            ("pagetide import report dmesg.txt --report 2", "the second, on stdout"),
        ],
    ),
    (
        "inspect",
        &[
            ("pagetide inspect mine.toml zoneinfo buddyinfo", "two files, at the end of the run"),
            ("pagetide inspect mine.toml --at 1.5s --only meminfo", "one file, 1.5 s after the start"),
            ("pagetide inspect mine.toml --timeline", "memory of each group over time"),
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

/// The end of the help of a subcommand: examples and the general exit codes.
pub fn after_help(subcommand: &str) -> String {
    after_help_with(subcommand, EXIT_CODES)
}

/// The same with another text after the examples.
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

    /// The words of a line as a shell parses it, up to a pipe or a redirection.
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
        assert_eq!(nr_lines, all, "an example belongs to no subcommand");
    }
}
