//! `pagetide find`: finds the value of a knob at which a criterion holds.

use crate::cli::FindArgs;
use crate::commands::sweep::digest_of;
use crate::error::{CliError, ExitStatus};
use crate::output_file::{self, OutputFile};
use crate::policy::Plugins;
use crate::printer::Printer;
use crate::progress::{lasting, ProgressLine};
use crate::{command_line, interrupt, names_of, scenario_file};
use pagetide_html::run::PageSource;
use pagetide_lab::execute::RunProgress;
use pagetide_lab::find::answer::{AnswerKind, FindAnswer};
use pagetide_lab::find::emit::{self, DeployFormat};
use pagetide_lab::find::question::{Find, Question};
use pagetide_lab::find::run::{run, FindError, LoadVariant};
use pagetide_lab::find::search::WantedEnd;
use pagetide_lab::find::{json, text};
use pagetide_lab::knob::Knob;
use pagetide_lab::sweep::store::{StoreOrigin, SweepStore, FILE};
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::{self, Overrides};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::model::{Scenario, Variant};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

/// A search that takes at least so many seconds gets an estimate.
const LONG: f64 = 30.0;

/// Searches, and prints the answer or the file to deploy.
pub fn find(
    args: FindArgs,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<ExitStatus, CliError> {
    let mut overrides = Overrides {
        sets: args.scenario.set.clone(),
        variants: args.variant.clone().into_iter().collect(),
        repeats: Some(args.seeds),
        seed: args.seed,
        plugins: names_of(plugins),
        added: args.scenario.add_variant.clone(),
        ..Overrides::default()
    };
    let loaded = scenario_file::load(&args.scenario.file, &overrides)?;
    let mut scenario = loaded.scenario.clone();
    if scenario.variants.len() > 1 {
        let name = &scenario.variants[0].name;
        printer.note(&format!("searching in variant `{name}`; --variant NAME chooses another"));
    }
    scenario.variants.truncate(1);
    overrides.variants = vec![scenario.variants[0].name.clone()];
    output_file::distinct(&[
        ("--output", args.output.as_deref()),
        ("--html", args.html.as_deref()),
    ])?;
    let kind = match args.emit {
        Some(DeployFormat::Json) => OutputFile::json,
        _ => OutputFile::settings,
    };
    let inputs = loaded.inputs(&args.scenario.file);
    let output = args.output.as_deref().map(|file| kind(file, &inputs)).transpose()?;
    let page = args.html.as_deref().map(|file| OutputFile::page(file, &inputs)).transpose()?;
    let find = ask(&args, &scenario)?;
    for warning in find.question().criterion.warnings() {
        printer.warning(&warning);
    }

    let load = |sets: &[(String, String)]| -> Result<Variant, String> {
        let mut overrides = overrides.clone();
        overrides.sets.extend_from_slice(sets);
        let scenario = loaded.reload(&overrides).map_err(|all| all.to_string())?;
        scenario.variants.into_iter().next().ok_or_else(|| "there is no variant".to_owned())
    };
    check_values(&find, &load)?;
    let find = search(find, &args, &load, plugins, printer)?;
    let Some(answer) = FindAnswer::of(&find) else { return Err(CliError::Interrupted) };
    print(&find, &answer, args.emit, output.as_ref(), printer)?;
    if let Some(file) = page {
        let source = PageSource { scenario: loaded.text(), command: command_line() };
        let provenance = text::provenance(&find, &answer, Some(command_line()));
        let page = pagetide_html::find::page(&find, &answer, &provenance, &source);
        file.write_page(&page, printer)?;
    }
    Ok(if answer.is_answer() { ExitStatus::Success } else { ExitStatus::Failure })
}

/// Builds the search from the arguments.
fn ask(args: &FindArgs, scenario: &Scenario) -> Result<Find, CliError> {
    let setup = &scenario.variants[0].setup;
    let [knob] = args.knob.as_slice() else {
        return Err(CliError::bad_input(
            format!("a search has one knob, not {}", args.knob.len()),
            "`pagetide sweep` runs a grid: one --grid KEY=VALUES for each knob",
        ));
    };
    let knob = Knob::parse(knob, setup, false)?;
    if let Some(form) = args.emit {
        emit::check(form, &knob, setup)?;
    }
    let criterion = load::criterion(&args.want, setup)?;
    let prices = args.price.iter().map(|price| load::metric_key(price, setup));
    let question = Question {
        scenario: scenario.clone(),
        knob,
        criterion,
        wanted: if args.largest { WantedEnd::Largest } else { WantedEnd::Smallest },
        share: args.share,
        prices: prices.collect::<Result<Vec<String>, Mistake>>()?,
    };
    Find::new(question).map_err(CliError::from)
}

/// Checks that the scenario accepts the ends of a range and all values of a list.
fn check_values(find: &Find, load: LoadVariant<'_>) -> Result<(), CliError> {
    let mut checked = find.question().knob.checked();
    checked.try_for_each(|setting| load(&[setting]).map(drop)).map_err(CliError::Scenario)
}

fn search(
    mut find: Find,
    args: &FindArgs,
    load: LoadVariant<'_>,
    plugins: &Plugins,
    printer: &mut Printer,
) -> Result<Find, CliError> {
    let scenario = &find.question().scenario;
    let origin = StoreOrigin {
        scenario: scenario.name.clone(),
        digest: digest_of(scenario)?,
        version: pagetide_lab::VERSION.to_owned(),
    };
    let mut store = match &args.store {
        None => SweepStore::in_memory(origin),
        Some(directory) => SweepStore::open(directory, FILE, origin)?,
    };
    let cancel = interrupt::flag();
    let simulator = Simulator { plugins: plugins.clone(), ..Simulator::default() };
    let line = ProgressLine::growing();
    let first: Cell<Option<(Instant, usize)>> = Cell::new(None);
    let on_batch = |find: &Find, runs: usize| {
        line.grow(runs);
        match first.get() {
            None => first.set(Some((Instant::now(), runs))),
            Some((began, of)) if of > 0 => {
                if let Some(words) = expected(find, began.elapsed(), of, args.jobs) {
                    line.print(&words);
                }
                first.set(Some((began, 0)));
            }
            Some(_) => {}
        }
    };
    let on_progress = |progress: RunProgress<'_>| line.on_progress(&progress);
    let result =
        run(&mut find, load, &simulator, &mut store, args.jobs, &cancel, &on_batch, &on_progress);
    drop(line);
    let directory = args.store.as_deref().unwrap_or(Path::new("."));
    match result {
        Ok(()) => {
            store.finish().map_err(|error| CliError::unwritable(directory, &error))?;
            Ok(find)
        }
        Err(FindError::Cancelled) => {
            printer.data(text::tried(&find))?;
            let files: Vec<&str> = [("-o", &args.output), ("--html", &args.html)]
                .into_iter()
                .filter_map(|(option, file)| file.as_ref().map(|_| option))
                .collect();
            let kept = match args.store {
                Some(_) => "the store has the finished runs; the same command continues",
                None => "--store DIR would keep finished runs",
            };
            let unwritten = match files.is_empty() {
                true => String::new(),
                false => format!("; without an answer nothing is written ({})", files.join(", ")),
            };
            let runs = find.nr_runs();
            printer.warning(&format!(
                "the search has no answer after {runs} runs{unwritten}\nhint: {kept}"
            ));
            Err(CliError::Interrupted)
        }
        Err(FindError::Mistake(mistake)) => Err(mistake.into()),
        Err(FindError::Failed(failure)) => {
            Err(CliError::of_run("the scenario without changes: ", &failure))
        }
        Err(FindError::Unwritable(error)) => Err(CliError::unwritable(directory, &error)),
    }
}

/// How long the search will take, by the time that its first runs took; `None`: not long.
fn expected(find: &Find, took: Duration, runs: usize, threads: NonZeroUsize) -> Option<String> {
    let at_once = threads.get();
    let each = took.as_secs_f64() * runs.min(at_once) as f64 / runs as f64;
    let all = find.search().nr_runs_expected();
    let left = all.saturating_sub(find.nr_runs()) as f64 * each / at_once as f64;
    let words =
        || format!("a search takes about {all} runs of {}: {} more", lasting(each), lasting(left));
    (left >= LONG).then(words)
}

fn print(
    find: &Find,
    answer: &FindAnswer,
    form: Option<DeployFormat>,
    output: Option<&OutputFile>,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let Some(form) = form else {
        return printer.data(text::render(find, answer));
    };
    let file = match (form, answer.to_deploy()) {
        (DeployFormat::Json, _) => json::render(find, answer, &command_line()),
        (_, None) => {
            let why = match answer.kind {
                AnswerKind::NotMonotone => {
                    "the criterion does not change monotonically with the knob"
                }
                AnswerKind::Nothing => "no value meets the criterion",
                _ => "fresh seeds do not confirm the value",
            };
            printer.warning(&format!(
                "no file was written, because there is nothing to deploy: {why}"
            ));
            return printer.data(text::render(find, answer));
        }
        (form, Some(point)) => {
            let setup = &find.question().scenario.variants[0].setup;
            let (path, value) = (&find.question().knob.path, find.value(point.place));
            let comments = text::provenance(find, answer, Some(command_line()));
            emit::render(form, path, value, setup, &comments)?
        }
    };
    match output {
        Some(output) => {
            printer.data(text::render(find, answer))?;
            output.write(&file)
        }
        None => {
            printer.data(file)?;
            printer.note(&text::result(find, answer));
            Ok(())
        }
    }
}
