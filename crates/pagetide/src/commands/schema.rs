//! `pagetide schema`: the JSON Schema of scenario files (for editors) and of outputs (for
//! programs).

use crate::cli::{SchemaArgs, SchemaOf};
use crate::error::{CliError, ExitStatus};
use crate::names_of;
use crate::policy::Plugins;
use crate::printer::Printer;
use pagetide_lab::output_schema::{self, OutputKind};
use pagetide_scenario::schema;

pub fn schema(
    args: &SchemaArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let output = args.of.map(|of| match of {
        SchemaOf::Run => OutputKind::Run,
        SchemaOf::Mrc => OutputKind::Mrc,
        SchemaOf::Metrics => OutputKind::Metrics,
        SchemaOf::Explain => OutputKind::Explain,
    });
    printer.data(match output {
        Some(output) => format!("{:#}\n", output_schema::schema(output)),
        None => format!("{:#}\n", schema::schema(&names_of(plugins))),
    })?;
    Ok(ExitStatus::Success)
}
