//! `pagetide check`: says what is wrong with scenario files, all of it at once.

use crate::cli::CheckArgs;
use crate::error::{CliError, ExitStatus};
use crate::policy::Plugins;
use crate::printer::Printer;
use crate::{names_of, scenario_file};
use pagetide_scenario::load::Overrides;

/// Checks every file, even after one was bad.
pub fn check(
    args: &CheckArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let overrides = Overrides { plugins: names_of(plugins), ..Overrides::default() };
    let mut status = ExitStatus::Success;
    for file in &args.files {
        match scenario_file::load(file, &overrides) {
            Ok(loaded) => {
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

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
