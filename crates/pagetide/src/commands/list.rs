//! `pagetide list`: prints the shipped experiments, one on each line.

use crate::error::{CliError, ExitStatus};
use crate::printer::Printer;
use crate::{scenario_file, shipped};
use pagetide_scenario::load::Overrides;
use std::fmt::Write;

/// Prints name and title of every shipped experiment.
pub fn list(printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let width = shipped::names().map(str::len).max().unwrap_or(0);
    let mut out = String::new();
    for name in shipped::names() {
        let scenario = scenario_file::load_shipped(name, &Overrides::default())?.scenario;
        writeln!(out, "{name:<width$}  {}", scenario.title).expect("writing to a string");
    }
    printer.data(out)?;
    Ok(ExitStatus::Success)
}
