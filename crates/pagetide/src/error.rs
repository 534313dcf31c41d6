//! How a command ends.

use pagetide_lab::world::{Cause, Failure};
use pagetide_linux::error::LinuxError;
use std::io;
use std::process::ExitCode;

/// The meaning of the exit code. Of several, the later variant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    /// All done.
    Success,
    /// A run failed, or output could not be written.
    Failure,
    /// The user's input is wrong.
    BadInput,
    /// The user interrupted.
    Interrupted,
}

impl ExitStatus {
    /// The exit code.
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
    /// The user's input is wrong. The text may have several lines, hints among them.
    #[error("{0}")]
    BadInput(String),
    /// A scenario file has mistakes: rendered diagnostics, with the colours of a terminal.
    #[error("{0}")]
    Scenario(String),
    /// Something could not be done. As above.
    #[error("{0}")]
    Failure(String),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The reader of our output closed it: nothing is wrong.
    #[error("output closed")]
    Closed,
}

impl CliError {
    /// Bad input with advice.
    pub fn bad_input(message: impl AsRef<str>, hint: impl AsRef<str>) -> CliError {
        CliError::BadInput(format!("{}\nhint: {}", message.as_ref(), hint.as_ref()))
    }

    /// A run's failure; `place` says which run.
    pub fn of_run(place: &str, failure: &Failure) -> CliError {
        let mut text = format!("{place}{failure}");
        if let Some(hint) = &failure.hint {
            text += &format!("\nhint: {hint}");
        }
        match failure.cause {
            Cause::Scenario => CliError::BadInput(text),
            Cause::Run => CliError::Failure(text),
        }
    }

    /// What a real kernel could not be asked, said as `text`.
    pub fn of_linux(mut text: String, error: &LinuxError) -> CliError {
        if let Some(hint) = error.hint() {
            text += &format!("\nhint: {hint}");
        }
        match error {
            LinuxError::Cancelled => CliError::Interrupted,
            error if error.is_bad_input() => CliError::BadInput(text),
            _ => CliError::Failure(text),
        }
    }

    /// A failure to write our output.
    pub fn output(error: &io::Error) -> CliError {
        if error.kind() == io::ErrorKind::BrokenPipe {
            CliError::Closed
        } else {
            CliError::Failure(format!("cannot write the output: {error}"))
        }
    }

    /// The exit code it leads to.
    pub fn status(&self) -> ExitStatus {
        match self {
            CliError::BadInput(_) | CliError::Scenario(_) => ExitStatus::BadInput,
            CliError::Failure(_) => ExitStatus::Failure,
            CliError::Interrupted => ExitStatus::Interrupted,
            CliError::Closed => ExitStatus::Success,
        }
    }
}
