//! `pagetide schema`: the JSON Schema of scenario files, for editors.

use crate::error::{CliError, ExitStatus};
use crate::names_of;
use crate::policy::Plugins;
use crate::printer::Printer;
use pagetide_scenario::schema;

/// Prints the schema.
pub fn schema(plugins: &Plugins, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    printer.data(format!("{:#}\n", schema::schema(&names_of(plugins))))?;
    Ok(ExitStatus::Success)
}
