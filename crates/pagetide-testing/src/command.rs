//! Runs the built command in the directory of a test.

use crate::directory::{built_programs, TestDir};
use serde_json::Value;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

/// The words of a command line; `'` holds words together.
pub fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    words.collect::<Vec<_>>().concat()
}

/// Exit code and output of the command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestDir {
    /// `pagetide` with the words of this line.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(built_programs().join("pagetide"));
        command.args(words(line)).current_dir(&self.directory);
        command.env_remove("CLICOLOR_FORCE").env_remove("COLUMNS");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, line: impl AsRef<str>) -> CommandOutput {
        self.command(line.as_ref()).output().unwrap().into()
    }

    /// Runs the command with these words and more.
    pub fn starting<'a>(&'a self, start: &'a str) -> impl Fn(&str) -> CommandOutput + 'a {
        move |more| self.run(format!("{start} {more}"))
    }

    pub fn run_with_input(&self, line: &str, input: impl AsRef<[u8]>) -> CommandOutput {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        // The command may exit without reading stdin.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        child.wait_with_output().unwrap().into()
    }

    /// Output of a script of the shell, in which `$PAGETIDE` is the command.
    pub fn shell(&self, script: &str) -> CommandOutput {
        let mut shell = Command::new("sh");
        shell.env("PAGETIDE", built_programs().join("pagetide")).current_dir(&self.directory);
        shell.args(["-c", script]).stdin(Stdio::null()).output().unwrap().into()
    }
}

/// Sends a signal to the command and waits for its end.
pub fn end(child: Child, signal: &str) -> CommandOutput {
    // Use the shell's builtin: a program `kill` is not installed everywhere.
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    child.wait_with_output().unwrap().into()
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> CommandOutput {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        CommandOutput { code: output.status.code(), stdout, stderr }
    }
}

impl CommandOutput {
    /// Exit code 0, whatever is on stderr.
    #[track_caller]
    pub fn succeeds(self) -> CommandOutput {
        self.exits(0)
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> CommandOutput {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

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

    /// These texts on stdout.
    #[track_caller]
    pub fn prints(self, texts: &[&str]) -> CommandOutput {
        for text in texts {
            assert!(self.stdout.contains(text), "{text:?} is not in:\n{}", self.stdout);
        }
        self
    }

    /// The JSON on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
