//! `pagetide explain`: explains a metric, knob, scenario key, workload or Linux function.

use crate::cli::{ExplainArgs, TextFormat};
use crate::error::{CliError, ExitStatus};
use crate::names_of;
use crate::policy::Plugins;
use crate::printer::{self, Printer};
use pagetide_lab::explain;

pub fn explain(
    args: &ExplainArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let all = explain::all(&names_of(plugins));
    let found = explain::find(&all, &args.name);
    if found.is_empty() {
        let name = args.name.escape_debug();
        let message = format!("there is no metric, knob, key or workload `{name}`");
        return Err(CliError::bad_input(message, explain::unknown_name_hint(&all, &args.name)));
    }
    printer.data(match args.format {
        TextFormat::Text => explain::text(&found, &args.name, printer::table_width()),
        TextFormat::Json => explain::json(&found),
    })?;
    Ok(ExitStatus::Success)
}
