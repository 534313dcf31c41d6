//! `pagetide metrics`: the meaning, unit, owner and Linux source of each metric.

use crate::cli::{MetricsArgs, OutputFormat};
use crate::error::{CliError, ExitStatus};
use crate::printer::{self, Printer};
use pagetide_lab::{json, metrics};
use pagetide_scenario::metric::catalogue;
use pagetide_scenario::names::near::nearest;

pub fn metrics(args: &MetricsArgs, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let all = catalogue::all();
    let found = metrics::find(&all, args.pattern.as_deref());
    if let (true, Some(pattern)) = (found.is_empty(), &args.pattern) {
        let hint = match nearest(pattern, all.iter().map(|entry| &*entry.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`pagetide metrics` lists all metrics; `*` matches any characters".to_owned(),
        };
        return Err(CliError::bad_input(format!("there is no metric `{pattern}`"), hint));
    }
    printer.data(match args.format {
        OutputFormat::Table => metrics::text(&found, printer::table_width()),
        OutputFormat::Json => json::pretty(&found),
        OutputFormat::Csv => metrics::csv(&found),
    })?;
    Ok(ExitStatus::Success)
}
