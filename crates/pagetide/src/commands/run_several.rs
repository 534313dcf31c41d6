//! `pagetide run A B C`: runs several scenarios and compares their variants in one table.

use crate::cli::{RunArgs, RunFormat};
use crate::commands::run::{overrides, print_failures, status};
use crate::error::{CliError, ExitStatus};
use crate::policy::Plugins;
use crate::printer::{self, Printer};
use crate::progress::execute;
use crate::{interrupt, scenario_file};
use pagetide_lab::report::Report;
use pagetide_lab::world::Simulator;
use pagetide_lab::{across, select};
use pagetide_scenario::metric::MetricKey;
use std::borrow::Cow;
use std::slice;
use std::sync::atomic::Ordering;

/// Runs the scenarios one after the other. All are loaded and checked before the first run.
pub fn run_several(
    args: &RunArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let overrides = overrides(args, plugins);
    let mut loaded = Vec::new();
    let mut base = args.against.clone();
    for file in [&args.scenario.file].into_iter().chain(&args.more) {
        let scenario = scenario_file::load(file, &overrides)?;
        let mut plan = scenario.plan(overrides.sets.clone())?;
        let first = plan.scenario.variants.first().map(|variant| variant.name.clone());
        let base = base.get_or_insert(first.unwrap_or_default());
        across::put_first(&mut plan.scenario, base)?;
        for variant in &mut plan.scenario.variants {
            args.metrics.iter().for_each(|pattern| variant.setup.request_metric(pattern));
        }
        loaded.push((scenario, plan));
    }
    for pattern in &args.metrics {
        let pattern = slice::from_ref(pattern);
        let mut checks =
            loaded.iter().map(|(_, plan)| select::check(&plan.scenario, pattern, true));
        // A pattern may be for one of the scenarios only.
        if let Some(Err(mistake)) = checks.next().filter(|_| checks.all(|it| it.is_err())) {
            return Err(mistake.into());
        }
    }

    let simulator = Simulator { plugins: plugins.clone(), ..Simulator::default() };
    let cancel = interrupt::flag();
    let mut reports = Vec::new();
    // The scenarios' files must be there until the last run.
    let mut files = Vec::new();
    for (scenario, plan) in loaded {
        let runs = execute(&plan, &simulator, args.jobs, &cancel);
        reports.push(Report::new(plan, &runs));
        files.push(scenario);
        if cancel.load(Ordering::Relaxed) {
            break;
        }
    }

    printer.data(match args.format {
        RunFormat::Table => across::render(&reports, &args.metrics, printer::table_width())?,
        RunFormat::Data(format) => {
            let one = |report: &Report| (format.render)(&chosen(report, &args.metrics), report);
            (format.join)(reports.iter().map(one).collect())
        }
    })?;
    let mut worst = ExitStatus::Success;
    for report in &reports {
        report.notes.iter().for_each(|note| printer.note(note));
        print_failures(report, printer);
        worst = worst.max(status(report, args, printer));
    }
    if cancel.load(Ordering::Relaxed) {
        printer.warning("interrupted: the table has the finished runs");
        return Ok(ExitStatus::Interrupted);
    }
    Ok(worst)
}

/// The report with the metrics that match the patterns; with all metrics without patterns.
fn chosen<'a>(report: &'a Report, patterns: &[String]) -> Cow<'a, Report> {
    if patterns.is_empty() {
        return Cow::Borrowed(report);
    }
    // A pattern may match metrics of another scenario only.
    let of = |pattern| select::keys(report, slice::from_ref(pattern)).0;
    let keys: Vec<MetricKey> = patterns.iter().flat_map(of).collect();
    Cow::Owned(select::narrowed(report, &keys))
}
