//! `pagetide fuzz`: draws scenarios from ranges until one shows a pathology, and shrinks that one.

use crate::cli::{FuzzArgs, TextFormat};
use crate::error::{CliError, ExitStatus};
use crate::output_file::OutputFile;
use crate::policy::Plugins;
use crate::printer::Printer;
use crate::progress::ProgressLine;
use crate::scenario_file::LoadedScenario;
use crate::{command_line, interrupt, names_of, quoted, scenario_file};
use pagetide_lab::execute::RunProgress;
use pagetide_lab::knob::Knob;
use pagetide_lab::pathology::hunt::{Hunt, HuntBackend};
use pagetide_lab::pathology::objective::Objective;
use pagetide_lab::pathology::output::{drawn, json, result, smallest, HuntTexts};
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::Overrides;
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::model::Scenario;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// All state is audited after so many events, and at the end of each run.
const AUDIT_EVERY: u64 = 200_000;
/// How long a hunt without `--for` and `--draws` goes on.
const DEFAULT_NS: u64 = 600_000_000_000;

/// Searches, and prints the find.
pub fn fuzz(
    args: &FuzzArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let objective = Objective::parse(&args.objective)?;
    let mut overrides = Overrides {
        sets: args.set.clone(),
        variants: args.variant.iter().cloned().collect(),
        plugins: names_of(plugins),
        ..Overrides::default()
    };
    let loaded = scenario_file::load(&args.file, &overrides)?;
    let mut scenario = loaded.scenario.clone();
    scenario.variants.truncate(1);
    overrides.variants = vec![scenario.variants[0].name.clone()];
    let inputs = loaded.inputs(&args.file);
    let out = args.out.as_deref().map(|file| OutputFile::settings(file, &inputs)).transpose()?;
    let knobs = knobs(args, &loaded, &scenario)?;
    let hunt = Hunt {
        knobs,
        objective,
        against: args.against.clone(),
        seed: args.seed,
        text: loaded.resolve(&overrides)?,
        directory: loaded.directory().to_owned(),
        plugins: names_of(plugins),
        scenario,
    };
    hunt.check().map_err(CliError::Scenario)?;
    let cancel = interrupt::flag();
    let limit = args.limit.or_else(|| args.draws.is_none().then_some(DEFAULT_NS));
    let began = Instant::now();
    let is_late = || limit.is_some_and(|ns| began.elapsed() >= Duration::from_nanos(ns));
    let is_cancelled = || cancel.load(Ordering::Relaxed);
    let world =
        Simulator { plugins: plugins.clone(), audit_every: AUDIT_EVERY, ..Simulator::default() };
    let line = ProgressLine::growing();
    let on_progress = |progress: RunProgress<'_>| {
        if matches!(progress, RunProgress::Started { .. }) {
            line.grow(1);
        }
        line.on_progress(&progress);
    };
    let stop = || is_cancelled() || is_late();
    let backend =
        HuntBackend { world: &world, threads: args.jobs, stop: &stop, on_progress: &on_progress };
    let draws = args.draws.map_or(usize::MAX, |draws| draws as usize);
    let report = hunt.search(args.first, draws, &backend)?;
    if report.found.is_none() && is_cancelled() {
        printer.warning(&format!(
            "interrupted; {}\nhint: --first {} goes on there",
            result(&hunt, &report, None).trim_start_matches("Result: "),
            args.first + report.tried as u64
        ));
        return Err(CliError::Interrupted);
    }
    let number = report.found.as_ref().map(|(draw, _)| draw.number);
    let repeat = number.map_or_else(String::new, |number| repeating(args, number));
    // Shrinking takes time, and may be interrupted.
    match (args.format, number) {
        (TextFormat::Text, _) => printer.data(drawn(&hunt, &report, &repeat))?,
        (TextFormat::Json, Some(_)) => {
            let found = result(&hunt, &report, None);
            printer.note(&format!("{}: {repeat}", found.trim_start_matches("Result: ")));
        }
        (TextFormat::Json, None) => {}
    }
    let shrunk = report.found.as_ref().map(|(draw, found)| hunt.shrink(draw, found, &backend));
    drop(line);
    let text = shrunk.as_ref().map(|shrunk| hunt.file_of(&shrunk.draw)).transpose();
    let file = text.map_err(CliError::Failure)?.map(|text| {
        format!("# found by pagetide fuzz; this repeats the search for it:\n# {repeat}\n{text}")
    });
    let smallest_file = file.as_deref().unwrap_or_default();
    let texts = HuntTexts { command: &command_line(), repeat: &repeat, smallest: smallest_file };
    printer.data(match args.format {
        TextFormat::Text => smallest(&hunt, &report, shrunk.as_ref()),
        TextFormat::Json => json(&hunt, &report, shrunk.as_ref(), texts),
    })?;
    if let (Some(out), Some(text)) = (out, file) {
        out.write(text)?;
        let shown = out.path().display();
        printer.note(&format!("the smallest scenario is in {shown}: pagetide run {shown}"));
    }
    Ok(match number {
        _ if is_cancelled() => ExitStatus::Interrupted,
        Some(_) => ExitStatus::Success,
        None => ExitStatus::Failure,
    })
}

/// The knobs of the scenario, then those of the command line; of one path the last counts.
fn knobs(
    args: &FuzzArgs,
    loaded: &LoadedScenario,
    scenario: &Scenario,
) -> Result<Vec<Knob>, CliError> {
    let setup = &scenario.variants[0].setup;
    let in_file = |text: &String, mistake: Mistake| {
        let line = loaded.text().lines().position(|line| line.contains(text.as_str()));
        let line = line.map_or_else(String::new, |line| format!(":{}", line + 1));
        let place = format!("{}{line}: fuzz.knobs: `{text}`", args.file.display());
        CliError::bad_input(format!("{place}: {}", mistake.message), mistake.hint)
    };
    let mut knobs: Vec<Knob> = Vec::new();
    let of_file = scenario
        .fuzz_knobs
        .iter()
        .map(|text| Knob::parse(text, setup, false).map_err(|mistake| in_file(text, mistake)));
    let of_line = args.knob.iter().map(|text| Ok(Knob::parse(text, setup, false)?));
    for knob in of_file.chain(of_line) {
        let knob = knob?;
        knobs.retain(|known| known.path != knob.path);
        knobs.push(knob);
    }
    match knobs.is_empty() {
        false => Ok(knobs),
        true => Err(CliError::bad_input(
            "there is nothing to draw: the scenario has no [fuzz] with knobs",
            "add fuzz.knobs = [\"machine.cpus=1..8\"] to it, or give --knob KEY=RANGE",
        )),
    }
}

/// The command that repeats a draw and its shrinking.
fn repeating(args: &FuzzArgs, draw: u64) -> String {
    let mut words = vec!["pagetide".to_owned(), "fuzz".to_owned(), args.file.display().to_string()];
    let mut add = |option: &str, value: String| words.extend([format!("--{option}"), value]);
    args.set.iter().for_each(|(key, value)| add("set", format!("{key}={value}")));
    args.variant.iter().for_each(|name| add("variant", name.clone()));
    args.knob.iter().for_each(|knob| add("knob", knob.clone()));
    add("objective", args.objective.clone());
    args.against.iter().for_each(|(key, value)| add("against", format!("{key}={value}")));
    add("seed", args.seed.to_string());
    add("first", draw.to_string());
    add("draws", "1".to_owned());
    words.into_iter().map(quoted).collect::<Vec<String>>().join(" ")
}
