//! Why the kernel's side of a comparison could not be had.

use pagetide_core::config::PolicyChoice;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Lines of the guest's console that a message shows.
const CONSOLE_LINES: usize = 12;
/// How the kernel begins the line that says why it gives up.
pub(crate) const PANIC: &str = "Kernel panic";

/// What went wrong, with what there is to say about it.
#[derive(Debug, Error)]
pub enum LinuxError {
    /// No kernel was named, and none found.
    #[error("no Linux kernel found; looked for {looked_for}")]
    NoKernel {
        /// Where.
        looked_for: String,
    },
    /// A word names no kernel.
    #[error("there is no kernel `{name}`")]
    NoSuchKernel {
        /// The word.
        name: String,
    },
    /// There is no kernel with the proposals.
    #[error("no kernel with the proposals found; looked for {looked_for}")]
    NoProposals {
        /// Where.
        looked_for: String,
    },
    /// The kernel with the proposals lacks one that the scenario needs.
    #[error(
        "{kernel} has no {file}, which policy {} = {choice} needs", choice.policy().name()
    )]
    NoSwitch {
        kernel: String,
        /// The variant that is to be compared.
        choice: PolicyChoice,
        /// The control file that chooses it.
        file: &'static str,
    },
    /// The kernel's modules are not where they belong.
    #[error("no module `{module}` for {}: looked below {}", kernel.display(), below.display())]
    NoModule {
        kernel: PathBuf,
        /// Where its modules should be.
        below: PathBuf,
        /// The missing one.
        module: String,
    },
    /// A program is not installed.
    #[error("`{program}` cannot be started: {error}")]
    NoProgram {
        /// Its name.
        program: String,
        /// What the system says.
        error: io::Error,
    },
    /// A program that prepares something failed.
    #[error("`{program}` failed: {message}")]
    Program {
        /// Its name.
        program: String,
        /// What it printed.
        message: String,
    },
    /// The guest program was not built, or not so that it can run there.
    #[error("the guest program {} {problem}", path.display())]
    Guest {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The scenario is not one for QEMU.
    #[error("this scenario cannot be run on a real kernel here: {0}")]
    Scenario(String),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// QEMU ended, or would not do what it was told.
    #[error("QEMU: {0}")]
    Qemu(String),
    /// The guest gave up.
    #[error("the guest gave up while {doing}: {problem}")]
    GaveUp {
        /// Its last step.
        doing: String,
        /// Its own words.
        problem: String,
        /// The end of the kernel's console.
        console: Vec<String>,
    },
    /// The guest ended or fell silent.
    #[error("the guest {how} while {doing}{}", tail(console))]
    Died {
        /// `panicked`, `ended`, `said nothing for 60 s` ...
        how: String,
        /// Its last step.
        doing: String,
        /// The end of the kernel's console.
        console: Vec<String>,
    },
    /// What the guest sent cannot be read.
    #[error("the guest's report cannot be read at byte {at}: {problem}{}", tail(console))]
    Report {
        /// Offset in the report.
        at: usize,
        /// What is wrong.
        problem: String,
        /// The end of the kernel's console.
        console: Vec<String>,
    },
    /// A recorded reference cannot be used.
    #[error("{}: {problem}", path.display())]
    Reference {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// This computer cannot be measured, or should not be.
    #[error("what operations cost cannot be measured here: {0}")]
    NotHere(String),
    /// The user has had enough.
    #[error("interrupted")]
    Cancelled,
}

fn tail(console: &[String]) -> String {
    if console.is_empty() {
        return "; its console is empty".to_owned();
    }
    let (before, shown) = console.split_at(console.len().saturating_sub(CONSOLE_LINES));
    let mut text = String::from("; the end of its console:");
    // The reason of a panic stands above a long trace.
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

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            LinuxError::NoKernel { .. } => {
                "`make kernel` fetches Debian's, or name one with --kernel /boot/vmlinuz-VERSION"
            }
            LinuxError::NoSuchKernel { .. } => {
                "`proposals` is the one of `make proposals`; others by their image, /boot/vmlinuz-VERSION"
            }
            LinuxError::NoProposals { .. } => {
                "`make proposals` builds it; without --kernel, an ordinary kernel is compared"
            }
            LinuxError::NoSwitch { .. } => {
                "it was built without that patch: `make proposals` builds the kernel anew if kernels/linux-6.1 \
                 has changed"
            }
            LinuxError::NoModule { .. } => {
                "for a kernel X/boot/vmlinuz-VERSION, modules belong into X/lib/modules/VERSION"
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
                "`make guest` builds it beside the command; --guest names another"
            }
            LinuxError::Died { .. } => "--keep DIR leaves the console and the report in DIR",
            LinuxError::NotHere(_) => {
                "leave out --measure: the scenario then has the sourced prices (docs/import-host.md)"
            }
            LinuxError::Reference { .. } => {
                "`pagetide verify SCENARIO --record DIR` makes references"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// Whether the mistake is in what the user gave, not in what happened.
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
