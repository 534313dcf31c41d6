//! `pagetide explain`: explains a metric, knob, scenario key, workload or Linux function.

use crate::cli::{ExplainArgs, TextFormat};
use crate::error::{CliError, ExitStatus};
use crate::names_of;
use crate::policy::Plugins;
use crate::printer::{self, Printer};
use pagetide_lab::{explain, json};

pub fn explain(
    args: &ExplainArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let Some(name) = &args.name else {
        let hint = "for example `pagetide explain vm.swappiness`; `pagetide explain '*'` lists all";
        return Err(CliError::bad_input("which name?", hint));
    };
    let all = explain::all(&names_of(plugins));
    let found = explain::find(&all, name);
    if found.is_empty() {
        let shown = name.escape_debug();
        let message = format!("there is no metric, knob, key or workload `{shown}`");
        return Err(CliError::bad_input(message, explain::unknown_name_hint(&all, name)));
    }
    printer.data(match args.format {
        TextFormat::Text => explain::text(&found, name, printer::table_width()),
        TextFormat::Json => json::pretty(&found),
    })?;
    Ok(ExitStatus::Success)
}
