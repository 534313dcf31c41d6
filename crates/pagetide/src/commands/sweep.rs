//! `pagetide sweep`: runs a grid of knobs, times variants, times seeds.

use crate::cli::{OutputFormat, SweepArgs};
use crate::error::{CliError, ExitStatus};
use crate::output_file::OutputFile;
use crate::policy::Plugins;
use crate::printer::Printer;
use crate::progress::ProgressLine;
use crate::scenario_file::LoadedScenario;
use crate::{command_line, interrupt, names_of, scenario_file};
use pagetide_html::run::PageSource;
use pagetide_lab::execute::RunProgress;
use pagetide_lab::knob::Knob;
use pagetide_lab::select;
use pagetide_lab::sweep::grid::{digest, points};
use pagetide_lab::sweep::output;
use pagetide_lab::sweep::run::{jobs, run, SweepJob, SweepOutcome};
use pagetide_lab::sweep::store::{StoreOrigin, SweepRow, SweepStore, FILE};
use pagetide_lab::world::Simulator;
use pagetide_scenario::diagnostic::Style;
use pagetide_scenario::load::Overrides;
use pagetide_scenario::metric::criterion::{check_name, RunMetrics};
use pagetide_scenario::model::{Scenario, Setup};
use pagetide_scenario::names::near::matches;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Performs the missing runs and prints the rows.
pub fn sweep(
    args: SweepArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let inputs: Vec<&Path> = args.file.iter().map(PathBuf::as_path).collect();
    let page = args.html.as_deref().map(|file| OutputFile::page(file, &inputs)).transpose()?;
    if !args.merge.is_empty() {
        let mut store = SweepStore::merged(&args.merge, args.store.as_deref())?;
        if let Some(directory) = &args.store {
            store.save().map_err(|error| CliError::unwritable(directory, &error))?;
        }
        check_metrics(&args.metric, store.rows())?;
        print(&store, &args, None, &[], printer)?;
        write_page(page.as_ref(), &rows(&store, None), &args.metric, String::new(), printer)?;
        return Ok(ExitStatus::Success);
    }
    let file = args.file.clone().unwrap_or_default();
    let overrides = Overrides {
        sets: args.set.clone(),
        variants: args.variant.clone(),
        repeats: args.repeats,
        seed: args.seed,
        plugins: names_of(plugins),
        added: args.add_variant.clone(),
        ..Overrides::default()
    };
    let loaded = scenario_file::load(&file, &overrides)?;
    let plan = loaded.plan(overrides.sets.clone())?;
    let (mut scenario, all) = grid(&loaded, &overrides, &plan.scenario, &args.grid)?;
    select::check(&scenario, &args.metric, false)?;
    for variant in &mut scenario.variants {
        args.metric.iter().for_each(|metric| variant.setup.request_metric(metric));
    }
    let all: Vec<SweepJob> = {
        let has = |index: usize| args.shard.is_none_or(|shard| shard.has(index));
        let jobs = jobs(&all, &names(&plan.scenario), plan.seeds());
        jobs.into_iter().enumerate().filter(|(index, _)| has(*index)).map(|(_, job)| job).collect()
    };
    let origin = StoreOrigin {
        scenario: plan.scenario.name.clone(),
        digest: digest_of(&plan.scenario)?,
        version: pagetide_lab::VERSION.to_owned(),
    };
    let mut store = match &args.store {
        None => SweepStore::in_memory(origin),
        Some(directory) => {
            let file = match args.shard {
                None => FILE.to_owned(),
                Some(shard) => format!("shard-{}.jsonl", shard.to_string().replace('/', "-of-")),
            };
            SweepStore::open(directory, &file, origin)?
        }
    };
    let ended = perform(&scenario, &all, &mut store, &args, plugins);
    let is_whole = ended.cancelled == 0 && ended.failed.is_empty();
    if is_whole {
        let directory = args.store.as_deref().unwrap_or(Path::new("."));
        store.finish().map_err(|error| CliError::unwritable(directory, &error))?;
    }
    if is_whole && args.shard.is_none() {
        // Points may differ in their metrics, so check against all rows.
        check_metrics(&args.metric, store.rows())?;
    }
    print(&store, &args, Some(&all), &plan.scenario.rows, printer)?;
    let metrics = if args.metric.is_empty() { &plan.scenario.rows } else { &args.metric };
    write_page(page.as_ref(), &rows(&store, Some(&all)), metrics, loaded.text(), printer)?;
    conclude(&ended, &args, printer)
}

/// The scenario of all points, with one variant for each point and each variant of the file; and
/// the points.
type GridScenario = (Scenario, Vec<Vec<(String, String)>>);

fn grid(
    loaded: &LoadedScenario,
    overrides: &Overrides,
    scenario: &Scenario,
    wanted: &[String],
) -> Result<GridScenario, CliError> {
    let setup = &scenario.variants[0].setup;
    let values = |knob: Knob| (knob.path, knob.values.into_iter().map(|it| it.text).collect());
    let knobs = wanted.iter().map(|text| Knob::parse(text, setup, true).map(values));
    let points = points(&knobs.collect::<Result<Vec<_>, _>>()?)?;
    let mut variants = Vec::new();
    for point in &points {
        let mut overrides = overrides.clone();
        overrides.sets.extend_from_slice(point);
        let scenario = loaded
            .reload(&overrides)
            .map_err(|diagnostics| CliError::Scenario(diagnostics.render(Style::Coloured)))?;
        variants.extend(scenario.variants);
    }
    Ok((Scenario { variants, ..scenario.clone() }, points))
}

/// Checks that each wanted metric or pattern matches a metric of some row.
fn check_metrics<'a>(
    wanted: &[String],
    rows: impl Iterator<Item = &'a SweepRow>,
) -> Result<(), CliError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let all: RunMetrics = rows.flat_map(|row| row.record.metrics.clone()).collect();
    let is_there = |name: &str| name.contains('*') && all.keys().any(|key| matches(name, key));
    let mut missing = wanted.iter().filter(|name| !is_there(name));
    missing.try_for_each(|name| check_name(name, &all)).map_err(CliError::from)
}

fn names(scenario: &Scenario) -> Vec<String> {
    scenario.variants.iter().map(|variant| variant.name.clone()).collect()
}

/// The digest of the scenario without the grid.
pub(super) fn digest_of(scenario: &Scenario) -> Result<String, CliError> {
    let variants: Vec<(&str, &Setup)> =
        scenario.variants.iter().map(|variant| (variant.name.as_str(), &variant.setup)).collect();
    digest(&scenario.name, &variants)
        .map_err(|error| CliError::Failure(format!("cannot read a trace: {error}")))
}

fn perform(
    scenario: &Scenario,
    all: &[SweepJob],
    store: &mut SweepStore,
    args: &SweepArgs,
    plugins: &Plugins,
) -> SweepOutcome {
    let simulator = Simulator { plugins: plugins.clone(), ..Simulator::default() };
    let there = all.iter().filter(|job| store.has(&job.key)).count();
    let line = ProgressLine::of(all.len() as u64, there as u64);
    let on_progress = |progress: RunProgress<'_>| line.on_progress(&progress);
    run(scenario, all, store, &simulator, args.jobs, &interrupt::flag(), &on_progress)
}

/// The rows of this sweep, or all rows of a store.
fn rows<'a>(store: &'a SweepStore, only: Option<&[SweepJob]>) -> Vec<&'a SweepRow> {
    let keys: Option<BTreeSet<_>> = only.map(|jobs| jobs.iter().map(|job| &job.key).collect());
    let is_wanted = |row: &&SweepRow| keys.as_ref().is_none_or(|keys| keys.contains(&row.key()));
    store.rows().filter(is_wanted).collect()
}

/// Writes the HTML report, if it is wanted and there are rows.
fn write_page(
    file: Option<&OutputFile>,
    rows: &[&SweepRow],
    metrics: &[String],
    scenario: String,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let Some(file) = file.filter(|_| !rows.is_empty()) else { return Ok(()) };
    let source = PageSource { scenario, command: command_line() };
    file.write_page(&pagetide_html::sweep::page(rows, metrics, &source), printer)
}

/// Prints the rows of this sweep, or all rows of a store.
fn print(
    store: &SweepStore,
    args: &SweepArgs,
    only: Option<&[SweepJob]>,
    wanted: &[String],
    printer: &mut Printer,
) -> Result<(), CliError> {
    let rows = rows(store, only);
    if rows.is_empty() {
        return Ok(());
    }
    let metrics = if args.metric.is_empty() { wanted } else { &args.metric };
    let rows = rows.into_iter();
    printer.data(match args.format {
        OutputFormat::Table => output::table(rows, metrics),
        OutputFormat::Csv => output::csv(rows),
        OutputFormat::Json => output::json(rows),
    })
}

fn conclude(
    ended: &SweepOutcome,
    args: &SweepArgs,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    for same in ended.failed.chunk_by(|a, b| a.1 == b.1) {
        let (key, failure) = &same[0];
        let knobs: Vec<String> =
            key.knobs.iter().map(|(knob, value)| format!("{knob}={value}")).collect();
        let place = format!(
            "{} {}, seed {} ({} such runs): ",
            key.variant,
            knobs.join(" "),
            key.seed,
            same.len()
        );
        printer.error(&CliError::of_run(&place, failure));
    }
    if let Some(error) = &ended.unwritable {
        let directory = args.store.as_deref().unwrap_or(Path::new("."));
        return Err(CliError::unwritable(directory, error));
    }
    if ended.cancelled > 0 {
        let kept = match args.store {
            Some(_) => "finished runs are kept; the same command continues",
            None => "--store DIR would keep finished runs",
        };
        printer
            .warning(&format!("interrupted: {} runs are missing\nhint: {kept}", ended.cancelled));
        return Ok(ExitStatus::Interrupted);
    }
    Ok(if ended.failed.is_empty() { ExitStatus::Success } else { ExitStatus::Failure })
}
