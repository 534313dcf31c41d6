//! `pagetide inspect`: prints the state of a machine after a run as the kernel would print it, or
//! the memory of its groups and nodes over time.

use crate::cli::{InspectArgs, InspectFormat};
use crate::error::{CliError, ExitStatus};
use crate::policy::Plugins;
use crate::printer::{self, Printer};
use crate::progress::execute;
use crate::{interrupt, names_of, scenario_file};
use pagetide_lab::execute::JobOutcome;
use pagetide_lab::json::{self, InspectOutput};
use pagetide_lab::timeline;
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::Overrides;
use pagetide_scenario::model::Setup;
use pagetide_scenario::names::near::nearest;
use pagetide_scenario::names::{cache_and_file, CacheControl};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::foresight;
use std::num::NonZeroUsize;

/// Directory of the files of caches.
const CACHES: &str = "/sys/kernel/slab/";

pub fn inspect(
    args: InspectArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let overrides = Overrides {
        sets: args.scenario.set,
        variants: args.variant.into_iter().collect(),
        repeats: Some(1),
        seed: args.seed,
        added: args.scenario.add_variant,
        plugins: names_of(plugins),
        ..Overrides::default()
    };
    let mut loaded = scenario_file::load(&args.scenario.file, &overrides)?;
    loaded.scenario.variants.truncate(1);
    let names = args.names.iter().chain(&args.only);
    for name in names.filter(|_| !args.timeline) {
        check_name(name, &loaded.scenario.variants[0].setup)?;
    }
    if let Some(at) = args.at {
        let limit = &mut loaded.scenario.variants[0].setup.time_limit_ns;
        *limit = at.min(*limit);
    }
    let plan = loaded.plan(overrides.sets)?;

    let world = Simulator {
        want_files: !args.timeline,
        timeline_seed: args.timeline.then_some(plan.scenario.seed),
        plugins: plugins.clone(),
        ..Simulator::default()
    };
    let cancel = interrupt::flag();
    let runs = execute(&plan, &world, NonZeroUsize::MIN, &cancel);
    let record = match runs.into_iter().next().map(|run| run.outcome) {
        Some(JobOutcome::Finished(record)) => at_time(record, args.at)?,
        Some(JobOutcome::Failed(failure)) => return Err(CliError::of_run("", &failure)),
        Some(JobOutcome::Cancelled) | None => return Err(CliError::Interrupted),
    };
    printer.note(&format!(
        "{}, variant {}, seed {}, pagetide {}, after {:.3} s",
        record.scenario,
        record.variant,
        record.seed,
        record.version,
        record.elapsed_ns as f64 / 1e9
    ));
    record.notes.iter().for_each(|note| printer.note(note));
    let files = chosen(&record, args.only.as_deref(), &args.names)?;
    printer.data(match (args.format, &record.timeline) {
        (InspectFormat::Json, _) => {
            let files = files.iter().map(|(name, text)| (path_of(name), text.as_str()));
            json::pretty(&InspectOutput::new(&record, files.collect()))
        }
        (InspectFormat::Csv, Some(timeline)) => timeline::render_csv(timeline),
        (InspectFormat::Text, Some(timeline)) => {
            timeline::render(timeline, record.page_size, printer::width())
        }
        (_, None) if args.only.is_some() => files[0].1.clone(),
        (_, None) => with_headings(&files),
    })?;
    Ok(ExitStatus::Success)
}

/// The record of a run that stopped at time `at`. Fails if the run ended before.
fn at_time(mut record: Box<RunRecord>, at: Option<u64>) -> Result<Box<RunRecord>, CliError> {
    let Some(at) = at else { return Ok(record) };
    if record.elapsed_ns < at {
        return Err(CliError::bad_input(
            format!(
                "the run ends at {1} s, before {0} s",
                at as f64 / 1e9,
                record.elapsed_ns as f64 / 1e9
            ),
            "give `--at` an earlier time; without `--at`, files show the end of the run",
        ));
    }
    // The user asked for this cut.
    record.notes.retain(|note| !note.starts_with(pagetide_sim::CUT));
    Ok(record)
}

/// Rejects, before the run, a name that no file of the run will have.
fn check_name(name: &str, setup: &Setup) -> Result<(), CliError> {
    let of_groups = foresight::files_of_setup(setup);
    let of_machine = foresight::files_of_machine(setup);
    let known = || of_groups.iter().map(String::as_str).chain(of_machine.iter().copied());
    let ending = format!("/{name}");
    let is_of_cache = cache_and_file(name).is_some()
        || name.rsplit_once('/').is_some_and(|(_, file)| is_cache_file(file));
    if is_of_cache || known().any(|file| file == name || file.ends_with(&ending)) {
        return Ok(());
    }
    let ends = known().filter_map(|file| file.rsplit_once('/')).map(|(_, end)| end);
    let hint = match nearest(name, known()).or_else(|| nearest(name, ends)) {
        _ if name.ends_with("lru_gen") => {
            "the two lists have no generations: add `--set policy.lru=mglru`".to_owned()
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let files = of_machine.join(", ");
            format!("choose from {files}, and the files of groups and of {CACHES}")
        }
    };
    Err(CliError::bad_input(format!("there is no file `{name}` to print"), hint))
}

fn is_cache_file(file: &str) -> bool {
    CacheControl::ALL.iter().any(|control| control.file().name == file)
}

/// The files to print: the only one, those with these names, or all.
fn chosen<'a>(
    record: &'a RunRecord,
    only: Option<&str>,
    names: &[String],
) -> Result<Vec<&'a (String, String)>, CliError> {
    let Some(only) = only else {
        let all = record.files.iter().filter(|(name, _)| !is_one_of_many(name));
        let mut files: Vec<_> = all.filter(|_| names.is_empty()).collect();
        for name in names {
            files.extend(pick(record, name)?);
        }
        return Ok(files);
    };
    let files = pick(record, only)?;
    if files.len() > 1 {
        let names: Vec<&str> = files.iter().map(|(file, _)| file.as_str()).collect();
        return Err(CliError::bad_input(
            format!("`{only}` matches several files"),
            format!("choose one of {}", names.join(", ")),
        ));
    }
    Ok(files)
}

/// The files in sequence, each under `==> NAME <==`, as head(1) prints several files.
fn with_headings(files: &[&(String, String)]) -> String {
    let texts: Vec<String> = files
        .iter()
        .map(|(name, text)| {
            format!(
                "==> {} <==
{text}",
                path_of(name)
            )
        })
        .collect();
    texts.join(
        "
",
    )
}

/// The files that match `name`: a full path or the end of one.
fn pick<'a>(record: &'a RunRecord, name: &str) -> Result<Vec<&'a (String, String)>, CliError> {
    let of_cache = cache_and_file(name).map(|(cache, file)| format!("{CACHES}{cache}/{file}"));
    let name = of_cache.as_deref().unwrap_or(name);
    let exact = record.files.iter().filter(|(file, _)| file == name || path_of(file) == name);
    let exact: Vec<_> = exact.collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let ending = format!("/{name}");
    let loose: Vec<_> =
        record.files.iter().filter(|(file, _)| path_of(file).ends_with(&ending)).collect();
    if !loose.is_empty() {
        return Ok(loose);
    }
    let known = record.files.iter().map(|(file, _)| file.as_str());
    let known: Vec<&str> = known.filter(|file| !is_one_of_many(file)).collect();
    Err(CliError::bad_input(
        format!("there is no file `{name}` to print"),
        format!("choose from {}, and the files of {CACHES}", known.join(", ")),
    ))
}

/// Whether a file is printed only if it is named: every cache has a few such files.
fn is_one_of_many(name: &str) -> bool {
    name.starts_with(CACHES)
}

/// The path of a file in Linux: bare names are in /proc.
fn path_of(name: &str) -> String {
    if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/proc/{name}")
    }
}
