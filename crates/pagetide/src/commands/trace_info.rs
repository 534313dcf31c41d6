//! `pagetide trace info`: what is in a page trace.

use crate::cli::InfoArgs;
use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;

/// Prints it.
pub fn info(_args: &InfoArgs, _printer: &mut Printer) -> Result<ExitStatus, CliError> {
    Err(CliError::Failure("not yet".to_owned()))
}
