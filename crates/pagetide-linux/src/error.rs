//! Errors of the kernel's side of a comparison.

use pagetide_core::config::PolicyChoice;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum number of console lines in a message.
const CONSOLE_LINES: usize = 12;
/// Prefix of the line in which the kernel reports a panic.
pub(crate) const PANIC: &str = "Kernel panic";

#[derive(Debug, Error)]
pub enum LinuxError {
    /// No kernel was named, and none was found.
    #[error("no Linux kernel found; looked for {looked_for}")]
    NoKernel { looked_for: String },
    /// The name of a kernel is unknown.
    #[error("there is no kernel `{name}`")]
    NoSuchKernel { name: String },
    /// No kernel with the proposals was found.
    #[error("no kernel with the proposals found; looked for {looked_for}")]
    NoProposals { looked_for: String },
    /// The kernel with the proposals lacks a patch that the scenario needs.
    #[error(
        "{kernel} has no {file}, which policy {} = {choice} needs", choice.policy().name()
    )]
    NoSwitch {
        kernel: String,
        /// The variant to compare.
        choice: PolicyChoice,
        /// The control file that selects it.
        file: &'static str,
    },
    /// The kernel's modules are missing.
    #[error("no module `{module}` for {}: looked below {}", kernel.display(), below.display())]
    NoModule {
        kernel: PathBuf,
        /// The directory of its modules.
        below: PathBuf,
        module: String,
    },
    /// A program is not installed.
    #[error("`{program}` cannot be started: {error}")]
    NoProgram {
        program: String,
        /// Error of the system.
        error: io::Error,
    },
    /// A helper program failed.
    #[error("`{program}` failed: {message}")]
    Program {
        program: String,
        /// Its output.
        message: String,
    },
    /// The guest program is missing or unusable.
    #[error("the guest program {} {problem}", path.display())]
    Guest {
        /// Its expected path.
        path: PathBuf,
        problem: String,
    },
    /// QEMU cannot run the scenario.
    #[error("this scenario cannot be run on a real kernel here: {0}")]
    Scenario(String),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// QEMU ended, or rejected a command.
    #[error("QEMU: {0}")]
    Qemu(String),
    /// The guest gave up.
    #[error("the guest gave up while {doing}: {problem}")]
    GaveUp {
        /// Its last step.
        doing: String,
        /// Its own message.
        problem: String,
        /// The end of the kernel's console.
        console: Vec<String>,
    },
    /// The guest ended or stopped responding.
    #[error("the guest {how} while {doing}{}", tail(console))]
    Died {
        /// `panicked`, `ended`, `said nothing for 60 s` ...
        how: String,
        /// Its last step.
        doing: String,
        /// The end of the kernel's console.
        console: Vec<String>,
    },
    /// The guest's report is malformed.
    #[error("the guest's report cannot be read at byte {at}: {problem}{}", tail(console))]
    Report {
        /// Offset in the report.
        at: usize,
        problem: String,
        /// The end of the kernel's console.
        console: Vec<String>,
    },
    /// A recorded reference is unusable.
    #[error("{}: {problem}", path.display())]
    Reference { path: PathBuf, problem: String },
    /// Operation costs of this computer cannot or should not be measured.
    #[error("operation costs cannot be measured here: {0}")]
    NotHere(String),
    /// The user interrupted.
    #[error("interrupted")]
    Cancelled,
}

fn tail(console: &[String]) -> String {
    if console.is_empty() {
        return "; its console is empty".to_owned();
    }
    let (before, shown) = console.split_at(console.len().saturating_sub(CONSOLE_LINES));
    let mut text = String::from("; the end of its console:");
    // The reason of a panic is above a long trace.
    let reason = before.iter().rfind(|line| line.contains(PANIC));
    let dots = reason.map(|_| "...");
    let lines = reason.into_iter().map(String::as_str).chain(dots);
    for line in lines.chain(shown.iter().map(String::as_str)) {
        text.push_str("\n  | ");
        text.push_str(line);
    }
    text
}

impl LinuxError {
    pub fn file(path: &Path, error: io::Error) -> LinuxError {
        LinuxError::File { path: path.to_owned(), error }
    }

    /// Advice for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            LinuxError::NoKernel { .. } => {
                "`make kernel` fetches Debian's, or name one with --kernel /boot/vmlinuz-VERSION"
            }
            LinuxError::NoSuchKernel { .. } => {
                "give `proposals` for the kernel of `make proposals`, or an image, /boot/vmlinuz-VERSION"
            }
            LinuxError::NoProposals { .. } => {
                "`make proposals` builds it; without --kernel, an ordinary kernel is compared"
            }
            LinuxError::NoSwitch { .. } => {
                "it was built without that patch: `make proposals` rebuilds the kernel if kernels/linux-6.1 \
                 has changed"
            }
            LinuxError::NoModule { .. } => {
                "for a kernel X/boot/vmlinuz-VERSION, put its modules into X/lib/modules/VERSION"
            }
            LinuxError::NoProgram { program, .. } if program.starts_with("qemu") => {
                "install QEMU (Debian: qemu-system-x86), `make kernel` does so"
            }
            LinuxError::NoProgram { program, .. } if program.starts_with("mkfs") => {
                "install it (Debian: e2fsprogs)"
            }
            LinuxError::NoProgram { program, .. } => {
                return Some(format!("install {program}: it unpacks this kernel's modules"));
            }
            LinuxError::Guest { .. } => {
                "`make guest` builds it next to the command; --guest names another"
            }
            LinuxError::Died { .. } => "--keep DIR keeps the console and the report in DIR",
            LinuxError::NotHere(_) => {
                "leave out --measure: the scenario then has the sourced costs (docs/tutorials/import-a-machine.md)"
            }
            LinuxError::Reference { .. } => {
                "`pagetide verify SCENARIO --record DIR` records references"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// Whether the cause is wrong input.
    pub fn is_bad_input(&self) -> bool {
        !matches!(
            self,
            LinuxError::Qemu(_)
                | LinuxError::GaveUp { .. }
                | LinuxError::Died { .. }
                | LinuxError::Report { .. }
                | LinuxError::Program { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_panic_is_shown_above_the_end() {
        let console = |reason: usize| -> Vec<String> {
            let line = |n| format!("{}{n}", if n == reason { "Kernel panic: " } else { "line " });
            (0..40).map(line).collect()
        };
        let lines = |reason| tail(&console(reason)).lines().count();
        assert_eq!(lines(99), 1 + CONSOLE_LINES);
        assert_eq!(lines(39), 1 + CONSOLE_LINES);
        let text = tail(&console(3));
        assert!(text.contains("console:\n  | Kernel panic: 3\n  | ...\n  | line 28\n"), "{text}");
        assert!(text.ends_with("  | line 39"), "{text}");
        assert!(tail(&[]).contains("empty"));
    }
}
