//! `pagetide schema`: the JSON Schema of scenario files, for editors.

use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use pagetide_scenario::schema;

/// Prints the schema.
pub fn schema(printer: &mut Printer) -> Result<ExitStatus, CliError> {
    printer.data(format!("{:#}\n", schema::schema()))?;
    Ok(ExitStatus::Success)
}
