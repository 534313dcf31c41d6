//! `pagetide check`: prints all mistakes of scenario files.

use crate::cli::CheckArgs;
use crate::error::{CliError, ExitStatus};
use crate::policy::Plugins;
use crate::printer::Printer;
use crate::{names_of, scenario_file};
use pagetide_lab::execute::room;
use pagetide_scenario::load::Overrides;
use pagetide_scenario::model::Scenario;
use pagetide_sim::foresight;
use pagetide_trace::TraceInfo;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Checks every file, even after a bad one.
pub fn check(
    args: &CheckArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let overrides = Overrides { plugins: names_of(plugins), ..Overrides::default() };
    let mut status = ExitStatus::Success;
    let mut traces = BTreeSet::new();
    for file in &args.files {
        match scenario_file::load(file, &overrides) {
            Ok(loaded) => {
                if let Err(error) = check_runs(&loaded.scenario, &mut traces) {
                    printer.error(&error);
                    status = status.max(error.status());
                    continue;
                }
                let scenario = &loaded.scenario;
                printer.data(format!(
                    "{}: ok, {} of {}\n",
                    file.display(),
                    count(scenario.variants.len(), "variant"),
                    count(scenario.repeats as usize, "repeat"),
                ))?;
            }
            Err(error) => {
                printer.error(&error);
                status = error.status();
            }
        }
    }
    Ok(status)
}

/// Finds errors that a run would hit later: incomplete traces, caches that reject their tunings,
/// machines that are too large for this computer. `checked`: traces that were read already.
fn check_runs(scenario: &Scenario, checked: &mut BTreeSet<PathBuf>) -> Result<(), CliError> {
    for variant in &scenario.variants {
        let of_variant = || match scenario.variants.len() {
            1 => String::new(),
            _ => format!("variant {}: ", variant.name),
        };
        let tasks = &variant.setup.tasks;
        for phase in tasks.iter().flat_map(|task| &task.phases) {
            let Some(path) = phase.workload.trace() else { continue };
            if checked.insert(path.clone()) {
                TraceInfo::scan(path).map_err(|error| CliError::BadInput(error.to_string()))?;
            }
        }
        let refused = |message: String, hint: Option<String>| {
            let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
            CliError::BadInput(format!("{}: {}{message}{hint}", scenario.name, of_variant()))
        };
        room::check(variant).map_err(|failure| refused(failure.message, failure.hint))?;
        foresight::check(&variant.setup)
            .map_err(|error| refused(error.to_string(), error.hint()))?;
    }
    Ok(())
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
