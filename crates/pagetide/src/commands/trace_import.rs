//! `pagetide trace import`: recordings of programs and caches become page traces.

use crate::cli::ImportArgs;
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;

/// Imports the input; the output appears only when it is whole.
pub fn import(_args: ImportArgs, _printer: &mut Printer) -> Result<ExitStatus, CliError> {
    Err(CliError::Failure("not yet".to_owned()))
}
