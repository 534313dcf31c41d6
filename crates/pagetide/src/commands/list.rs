//! `pagetide list`: prints the shipped experiments, one on each line, and the registered policies.

use crate::error::{CliError, ExitStatus};
use crate::policy::Plugins;
use crate::printer::Printer;
use crate::{names_of, scenario_file, shipped};
use pagetide_scenario::load::Overrides;
use std::fmt::Write;

/// Prints name and title of every shipped experiment to stdout. Names of policies go to stderr,
/// because they are not data.
pub fn list(plugins: &Plugins, printer: &mut Printer) -> Result<ExitStatus, CliError> {
    let width = shipped::names().map(str::len).max().unwrap_or(0);
    let mut out = String::new();
    let files = scenario_file::unpacked()?;
    for name in shipped::names() {
        let scenario = scenario_file::load_unpacked(&files, name, &Overrides::default())?;
        writeln!(out, "{name:<width$}  {}", scenario.title).expect("writing to a string");
    }
    printer.data(out)?;
    let known = names_of(plugins);
    for (kind, names) in [("groups", known.groups), ("pages", known.pages)] {
        if !names.is_empty() {
            printer.note(&format!("policy.{kind} may be linux, {}", names.join(", ")));
        }
    }
    Ok(ExitStatus::Success)
}
