//! How a command ends.

use pagetide_lab::world::{Failure, FailureCause};
use pagetide_linux::error::LinuxError;
use pagetide_scenario::metric::criterion::Mistake;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Exit codes, by increasing severity: the highest one of several is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    Success,
    /// A run failed, or output could not be written.
    Failure,
    /// The user's input is wrong.
    BadInput,
    Interrupted,
}

impl ExitStatus {
    pub fn code(self) -> u8 {
        match self {
            ExitStatus::Success => 0,
            ExitStatus::Failure => 1,
            ExitStatus::BadInput => 2,
            ExitStatus::Interrupted => 130,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status.code())
    }
}

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Wrong input from the user. The text may have several lines, including hints.
    #[error("{0}")]
    BadInput(String),
    /// Mistakes in a scenario file: rendered diagnostics, with terminal colours.
    #[error("{0}")]
    Scenario(String),
    /// An operation failed. The text may have several lines, including hints.
    #[error("{0}")]
    Failure(String),
    #[error("interrupted")]
    Interrupted,
    /// The reader closed our stdout. Not an error.
    #[error("output closed")]
    Closed,
}

impl CliError {
    /// Wrong input, with a hint.
    pub fn bad_input(message: impl AsRef<str>, hint: impl AsRef<str>) -> CliError {
        CliError::BadInput(format!("{}\nhint: {}", message.as_ref(), hint.as_ref()))
    }

    /// A failed run; `place` names the run.
    pub fn of_run(place: &str, failure: &Failure) -> CliError {
        let mut text = format!("{place}{failure}");
        if let Some(hint) = &failure.hint {
            text += &format!("\nhint: {hint}");
        }
        match failure.cause {
            FailureCause::Scenario => CliError::BadInput(text),
            FailureCause::Run => CliError::Failure(text),
        }
    }

    /// A failure of the real kernel's side, with `text` as the message.
    pub fn of_linux(mut text: String, error: &LinuxError) -> CliError {
        if let Some(hint) = error.hint() {
            text += &format!("\nhint: {hint}");
        }
        match error {
            LinuxError::File { path, error } if is_full(error) => CliError::unwritable(path, error),
            LinuxError::Cancelled => CliError::Interrupted,
            error if error.is_bad_input() => CliError::BadInput(text),
            _ => CliError::Failure(text),
        }
    }

    /// `path` cannot be written: its name is wrong, or the system has no room for it.
    pub fn unwritable(path: &Path, error: &io::Error) -> CliError {
        let message = format!("cannot write {}: {error}", path.display());
        if is_full(error) {
            let hint = "free some space there, or name a file on another disk";
            return CliError::Failure(format!("{message}\nhint: {hint}"));
        }
        CliError::bad_input(message, "name a file in a directory that exists and is writable")
    }

    pub fn output(error: &io::Error) -> CliError {
        if error.kind() == io::ErrorKind::BrokenPipe {
            CliError::Closed
        } else {
            CliError::Failure(format!("cannot write the output: {error}"))
        }
    }

    pub fn status(&self) -> ExitStatus {
        match self {
            CliError::BadInput(_) | CliError::Scenario(_) => ExitStatus::BadInput,
            CliError::Failure(_) => ExitStatus::Failure,
            CliError::Interrupted => ExitStatus::Interrupted,
            CliError::Closed => ExitStatus::Success,
        }
    }
}

impl From<Mistake> for CliError {
    fn from(Mistake { message, hint }: Mistake) -> CliError {
        CliError::bad_input(message, hint)
    }
}

/// Whether the place of a file has no room for it.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
