//! Runs the built command in a temporary directory.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The words of a command line; `'` holds words together.
pub fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect::<Vec<_>>().concat()
}

/// A directory for one test; removed if the test passes.
pub struct TestDir {
    pub directory: PathBuf,
}

/// Exit code and output of the command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestDir {
    pub fn new() -> TestDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&directory).unwrap();
        TestDir { directory }
    }

    /// A place with a scenario file.
    pub fn with(name: &str, text: &str) -> TestDir {
        let place = TestDir::new();
        place.write(name, text);
        place
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.directory.join(name), content).unwrap();
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagetide"));
        command.current_dir(&self.directory).env_remove("CLICOLOR_FORCE").stdin(Stdio::null());
        command.env_remove("COLUMNS");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> CommandOutput {
        self.run_with_input(args, b"")
    }

    pub fn run_with_input<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> CommandOutput {
        let mut child = self.command().args(args).stdin(Stdio::piped()).spawn().unwrap();
        // The command may exit without reading stdin.
        let _ = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        CommandOutput {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

impl CommandOutput {
    /// Exit code 0 and nothing on stderr except progress: a line every ten seconds that ends with
    /// the number of runs.
    #[track_caller]
    pub fn quietly(self) -> CommandOutput {
        assert_eq!(self.code, Some(0), "{self:?}");
        let is_progress = |line: &&str| {
            let seconds = line.strip_suffix(" s").and_then(|rest| rest.rsplit_once(", "));
            seconds.is_some_and(|(_, seconds)| seconds.parse::<u64>().is_ok_and(|it| it >= 10))
        };
        let said: Vec<&str> = self.stderr.lines().filter(|line| !is_progress(line)).collect();
        assert_eq!(said, Vec::<&str>::new());
        self
    }

    /// Exit code `code`, nothing on stdout, and these texts on stderr.
    #[track_caller]
    pub fn fails(self, code: i32, texts: &[&str]) -> CommandOutput {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "");
        self.says(texts)
    }

    /// These texts on stderr, without escape sequences, because it is not a terminal.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> CommandOutput {
        for text in texts {
            assert!(self.stderr.contains(text), "{text:?} is not in:\n{}", self.stderr);
        }
        assert!(!self.stderr.contains('\u{1b}'), "{}", self.stderr);
        self
    }
}

/// Two variants that finish in milliseconds: a reader of a file of 1.5 times the memory.
pub const SMALL: &str = r#"
name = "small"
title = "A reader on a small machine"
repeats = 3
seed = 7

[machine]
cpus = 1
memory = "64MiB"

[[machine.disk]]
name = "sda"
model = "ssd"

[[file]]
name = "data"
size = "96MiB"
sparse = true

[[task]]
name = "reader"
workload = "mapped-read"
file = "data"

[[variant]]
name = "default"

[[variant]]
name = "early"
[variant.sysctl]
"vm.watermark_scale_factor" = 200
"#;

/// Two groups with soft limits that need more memory than the machine has.
pub const GROUPS: &str = r#"
name = "groups"
repeats = 2
seed = 5
machine = { cpus = 2, memory = "64MiB", swap = "256MiB", disk = [{ name = "sda", model = "ssd" }] }
group = [
  { name = "master", memory.soft_limit_in_bytes = "40M" },
  { name = "slave", memory.soft_limit_in_bytes = "16M" },
]
task = [
  { name = "master", group = "master", workload = "touch", size = "30MiB", passes = 20 },
  { name = "slave", group = "slave", workload = "touch", size = "50MiB", passes = 4 },
]
variant = [
  { name = "tree" },
  { name = "hierarchical", policy.soft_limit = "hierarchical" },
]
"#;
