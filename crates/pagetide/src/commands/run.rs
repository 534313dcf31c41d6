//! `pagetide run`: runs variants x seeds and compares them.

use crate::cli::{RunArgs, RunFormat};
use crate::commands::run_several::run_several;
use crate::error::{CliError, ExitStatus};
use crate::output_file::{self, OutputFile};
use crate::policy::Plugins;
use crate::printer::{self, Printer};
use crate::progress::execute;
use crate::trace_files::TraceFiles;
use crate::{command_line, interrupt, names_of, scenario_file};
use pagetide_export::openmetrics;
use pagetide_html::run::PageSource;
use pagetide_lab::execute::JobOutcome;
use pagetide_lab::report::Report;
use pagetide_lab::world::Simulator;
use pagetide_lab::{across, expect, facts, rows, select, table};
use pagetide_scenario::load::Overrides;
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::timeline::Timeline;
use pagetide_scenario::record::RunRecord;
use std::borrow::Cow;

/// Maximum width of sentences.
const WHY_WIDTH: usize = 100;

/// Runs the scenario and prints a comparison of the finished runs.
pub fn run(
    args: RunArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    if !args.more.is_empty() {
        return run_several(&args, plugins, printer);
    }
    let overrides = overrides(&args, plugins);
    let loaded = scenario_file::load(&args.scenario.file, &overrides)?;
    output_file::distinct(&[
        ("--html", args.html.as_deref()),
        ("--openmetrics", args.openmetrics.as_deref()),
        ("--events", args.traces.events.as_deref()),
        ("--perfetto", args.traces.perfetto.as_deref()),
    ])?;
    let inputs = loaded.inputs(&args.scenario.file);
    let page = args.html.as_deref().map(|file| OutputFile::page(file, &inputs)).transpose()?;
    let metrics = args.openmetrics.as_deref();
    let metrics = metrics.map(|file| OutputFile::openmetrics(file, &inputs)).transpose()?;
    let mut plan = loaded.plan(overrides.sets)?;
    if let Some(variant) = &args.against {
        across::put_first(&mut plan.scenario, variant)?;
    }
    select::check(&plan.scenario, &args.metrics, true)?;
    for variant in &mut plan.scenario.variants {
        args.metrics.iter().for_each(|pattern| variant.setup.request_metric(pattern));
    }

    let traces = TraceFiles::create(&args.traces, &plan)?;
    let wants_timeline = page.is_some() || args.traces.perfetto.is_some() || metrics.is_some();
    let simulator = Simulator {
        observed: traces.observed(),
        timeline_seed: wants_timeline.then_some(plan.scenario.seed),
        want_latencies: page.is_some(),
        plugins: plugins.clone(),
        ..Simulator::default()
    };

    let cancel = interrupt::flag();
    let runs = execute(&plan, &simulator, args.jobs, &cancel);
    let mut report = Report::new(plan, &runs);

    // The runs may have taken hours. If stdout or one file fails, the other files are still
    // written.
    let mut wrong: Vec<CliError> = Vec::new();
    if report.has_data() {
        let (keys, missing) = select::keys(&report, &args.metrics);
        wrong.extend(missing.into_iter().map(CliError::from));
        let chosen: &[String] = if keys.is_empty() { &[] } else { &args.metrics };
        if !keys.is_empty() {
            report.plan.scenario.rows = keys.iter().map(|key| report.text(key)).collect();
        }
        let text = match args.format {
            RunFormat::Table => {
                let width = printer::table_width();
                let why = if args.no_why {
                    String::new()
                } else {
                    facts::render(&report, width.min(WHY_WIDTH))
                };
                let expected = expect::render(&expect::of_report(&report), width.min(WHY_WIDTH));
                table::render_within(&report, width) + &why + &expected
            }
            RunFormat::Data(format) => (format.render)(&wanted(&report, chosen), &report),
        };
        wrong.extend(printer.data(text).err());
        print_notes(&report, args.format, printer);
    }
    if let Some(file) = page.filter(|_| report.has_data()) {
        let source = PageSource { scenario: loaded.text(), command: command_line() };
        wrong.extend(file.write_page(&pagetide_html::run::page(&report, &source), printer).err());
    }
    let was_cut = runs.first().is_some_and(|run| matches!(run.outcome, JobOutcome::Cancelled));
    wrong.extend(traces.finish(was_cut, printer).err());
    if let Some(file) = metrics {
        let first = runs.first().map(|run| &run.outcome);
        if let (Some(JobOutcome::Finished(record)), Some(first)) =
            (first, report.plan.scenario.variants.first())
        {
            let start_s = args.openmetrics_start;
            wrong.extend(write_openmetrics(&file, record, &first.setup, start_s, printer).err());
        }
    }
    print_failures(&report, printer);
    // The last error ends the command.
    let last = wrong.pop();
    wrong.iter().for_each(|error| printer.error(error));
    if let Some(error) = last {
        return Err(error);
    }
    if report.cancelled > 0 {
        printer.warning(&format!(
            "interrupted: {} of {} runs are missing",
            report.cancelled,
            runs.len()
        ));
        return Ok(ExitStatus::Interrupted);
    }
    Ok(status(&report, &args, printer))
}

/// The changes that the arguments make to a scenario.
pub fn overrides(args: &RunArgs, plugins: &Plugins) -> Overrides {
    Overrides {
        sets: args.scenario.set.clone(),
        variants: args.variant.clone(),
        repeats: args.repeats,
        seed: args.seed,
        added: args.scenario.add_variant.clone(),
        plugins: names_of(plugins),
        ..Overrides::default()
    }
}

pub fn print_failures(report: &Report, printer: &mut Printer) {
    for same in report.failures.chunk_by(|a, b| a.variant == b.variant && a.failure == b.failure) {
        let run = &same[0];
        let seeds = match same.len() {
            1 => format!("seed {}", run.seed),
            nr_seeds => format!("{nr_seeds} seeds from {}", run.seed),
        };
        let place = format!("variant {}, {seeds}: ", run.variant);
        printer.error(&CliError::of_run(&place, &run.failure));
    }
}

/// How the command ends after these runs. Prints what is not as it should be.
pub fn status(report: &Report, args: &RunArgs, printer: &mut Printer) -> ExitStatus {
    let mut status = ExitStatus::Success;
    for judged in expect::of_report(report).iter().filter(|judged| !judged.holds()) {
        // The table of one scenario contains this sentence already.
        if !args.format.is_table() || !args.more.is_empty() {
            printer.error(&CliError::Failure(format!("not as expected: {}", judged.sentence())));
        }
        status = ExitStatus::Failure;
    }
    if report.are_all_killed() && report.plan.scenario.expectations.is_empty() {
        printer.error(&CliError::Failure(
            "the OOM killer killed every task in every run, so nothing was measured\n\
             hint: give the machine or the groups more memory, or an [[expect]] if this is wanted"
                .to_owned(),
        ));
        status = ExitStatus::Failure;
    }
    if args.strict {
        for it in report.ended_runs() {
            printer.error(&CliError::Failure(format!(
                "variant {}: {} of {} runs are incomplete: {}",
                it.variant,
                it.runs,
                it.finished,
                it.ended.word()
            )));
            status = ExitStatus::Failure;
        }
    }
    let statuses = report.failures.iter().map(|run| CliError::of_run("", &run.failure).status());
    statuses.fold(status, ExitStatus::max)
}

/// The report with the wanted metrics: the metrics of its rows if patterns chose the rows, else all.
fn wanted<'a>(report: &'a Report, patterns: &[String]) -> Cow<'a, Report> {
    match patterns {
        [] => Cow::Borrowed(report),
        _ => Cow::Owned(select::narrowed(report, &rows::rows(report))),
    }
}

fn write_openmetrics(
    file: &OutputFile,
    record: &RunRecord,
    setup: &Setup,
    start_s: u64,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let none = Timeline::default();
    let timeline = record.timeline.as_ref().unwrap_or(&none);
    let instance = format!("{}/{}", record.scenario, record.variant);
    let source = openmetrics::OpenMetricsSource {
        timeline,
        setup,
        page_size: record.page_size,
        instance: &instance,
        start_s,
    };
    file.write(openmetrics::render(&source))?;
    let (variant, seed, file) = (&record.variant, record.seed, file.path().display());
    printer.note(&format!("metrics of variant {variant}, seed {seed}, are in {file}"));
    if timeline.samples.is_empty() {
        printer.warning("the run was too short for a sample, so the file has no metrics");
    }
    Ok(())
}

/// Prints notes that are not part of the data.
fn print_notes(report: &Report, format: RunFormat, printer: &mut Printer) {
    if format.is_table() {
        for name in rows::unknown_rows(report) {
            printer.warning(&format!(
                "no run has the metric `{name}` of the scenario's report rows\n\
                 hint: `--format json` shows all metrics"
            ));
        }
    } else {
        report.notes.iter().for_each(|note| printer.note(note));
    }
}
