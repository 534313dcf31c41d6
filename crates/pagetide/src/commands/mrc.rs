//! `pagetide mrc`: the miss ratio of a page trace for each size of the page cache.

use crate::cli::{MrcArgs, OutputFormat};
use crate::error::{CliError, ExitStatus};
use crate::output_file::OutputFile;
use crate::policy::Plugins;
use crate::printer::{self, Printer};
use crate::progress::execute;
use crate::{command_line, interrupt, names_of, scenario_file};
use pagetide_html::run::PageSource;
use pagetide_lab::mrc::{self, MissRatioCurve, MrcError};
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::Overrides;
use std::sync::atomic::Ordering;

/// Replays the trace at each size and prints the curve.
pub fn mrc(
    args: MrcArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let page =
        args.html.as_deref().map(|file| OutputFile::page(file, &[&args.trace])).transpose()?;
    let sizes = mrc::sizes(&args.sizes).map_err(refused)?;
    let in_file = |error| match error {
        MrcError::Trace(error) => MrcError::Trace(error.in_file(&args.trace)),
        other => other,
    };
    let overrides = Overrides {
        sets: args.set,
        added: args.add_variant,
        seed: Some(args.seed),
        plugins: names_of(plugins),
        ..Overrides::default()
    };
    let curve =
        MissRatioCurve::new(&args.trace, &sizes, overrides).map_err(|it| refused(in_file(it)))?;
    let cancel = interrupt::flag();
    let simulator = Simulator { plugins: plugins.clone(), ..Simulator::default() };
    let runs = execute(&curve.plan, &simulator, args.jobs, &cancel);
    if cancel.load(Ordering::Relaxed) {
        return Err(CliError::Interrupted);
    }
    let points = curve.points(&runs).map_err(refused)?;
    printer.data(match args.format {
        OutputFormat::Table => curve.table(&points, printer::table_width()),
        OutputFormat::Json => curve.json(&points),
        OutputFormat::Csv => curve.csv(&points),
    })?;
    if let Some(file) = page {
        let source = PageSource { scenario: String::new(), command: command_line() };
        file.write_page(&pagetide_html::mrc::page(&curve, &points, &source), printer)?;
    }
    Ok(ExitStatus::Success)
}

fn refused(error: MrcError) -> CliError {
    match &error {
        MrcError::Sizes { hint, .. } => CliError::bad_input(error.to_string(), hint),
        MrcError::Changes(mistakes) => scenario_file::refused(mistakes.clone()),
        MrcError::Trace(_) | MrcError::Scenario(_) => CliError::BadInput(error.to_string()),
        MrcError::Run { .. } => CliError::Failure(error.to_string()),
    }
}
