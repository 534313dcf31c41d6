use super::hunt::{Hunt, HuntBackend, HuntError, HuntReport};
use super::objective::Objective;
use super::output::table;
use crate::knob::Knob;
use crate::testing::{failure, record};
use crate::world::{Failure, RunBackend, RunControl};
use pagetide_scenario::load::{load_str, Overrides, PluginNames};
use pagetide_scenario::model::{Setup, Variant};
use pagetide_scenario::record::{Incomplete, RunRecord};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TEXT: &str = r#"
name = "planted"
machine = { memory = "64MiB" }
task = [
    { name = "a", workload = "touch", size = "1MiB" },
    { name = "b", copies = 2, workload = "touch", size = "1MiB" },
]
"#;

fn hunt(knobs: &[&str]) -> Hunt {
    let scenario = load_str("planted", TEXT, Path::new("."), &Overrides::default()).unwrap();
    let setup = &scenario.variants[0].setup;
    Hunt {
        knobs: knobs.iter().map(|text| Knob::parse(text, setup, false).unwrap()).collect(),
        objective: Objective::parse("oom-with-evictable-pages=10%").unwrap(),
        against: Vec::new(),
        seed: 7,
        text: TEXT.to_owned(),
        directory: PathBuf::from("."),
        plugins: PluginNames::default(),
        scenario,
    }
}

const KNOBS: [&str; 4] =
    ["machine.cpus=1..8", "task.b.copies=1..6", "machine.memory=64M..256M", "task.a.size=1M..8M"];

/// Hunts in a world that is a function of the setup.
fn run(
    hunt: &Hunt,
    (threads, draws): (usize, u64),
    world: impl Fn(&Setup) -> Result<f64, Failure> + Sync,
) -> Result<HuntReport, HuntError> {
    let world = |_: &str, variant: &Variant, seed: u64, _: &RunControl| -> Result<RunRecord, _> {
        assert!(variant.setup.measures_pathologies);
        Ok(record(&variant.name, seed, &[("node.oom_evictable", world(&variant.setup)?)]))
    };
    run_in(hunt, (threads, draws), &world)
}

fn run_in(
    hunt: &Hunt,
    (threads, draws): (usize, u64),
    world: &dyn RunBackend,
) -> Result<HuntReport, HuntError> {
    let backend = HuntBackend {
        world,
        threads: NonZeroUsize::new(threads).unwrap(),
        cancel: &Arc::default(),
        on_batch: &|_| {},
        on_progress: &|_| {},
    };
    hunt.run(0, &|nr| nr < draws, &backend)
}

fn nr_copies(setup: &Setup) -> usize {
    setup.tasks.iter().filter(|task| task.name.starts_with('b')).count()
}

/// Shows with three CPUs and four copies of `b`, whatever the rest is.
fn planted(setup: &Setup) -> Result<f64, Failure> {
    let shows = setup.machine.cpus >= 3 && nr_copies(setup) >= 4;
    Ok(if shows { 12.5 } else { 9.9 })
}

#[test]
fn a_planted_pathology_is_found_and_shrunk_to_the_smallest() {
    let hunt = hunt(&KNOBS);
    hunt.check().unwrap();
    let report = run(&hunt, (2, 100), planted).unwrap();
    let found = report.found.as_ref().unwrap();
    assert_eq!(report.tried, found.drawn.0.number + 1);
    let smallest = &found.smallest.0;
    let values: Vec<_> = (0..KNOBS.len()).map(|knob| hunt.value(smallest, knob)).collect();
    assert_eq!(values, [Some("3"), Some("4"), None, None]);
    assert_eq!(smallest.without, ["a"]);
    let shown = table(&hunt, &report, "pagetide fuzz ...");
    assert!(shown.contains("smallest   12.50 %\n") && shown.contains("without the tasks a\n"));
    // The file is the scenario that was run.
    let file = hunt.file_of(smallest).unwrap();
    let loaded = load_str("x", &file, Path::new("."), &Overrides::default()).unwrap();
    let setup = &loaded.variants[0].setup;
    assert_eq!((loaded.repeats, loaded.seed), (1, smallest.seed));
    assert_eq!((setup.machine.cpus, nr_copies(setup), setup.tasks.len()), (3, 4, 4));
    assert!(setup.measures_pathologies);
}

#[test]
fn a_find_depends_on_seed_and_number_only() {
    let mut hunt = hunt(&KNOBS);
    let one = run(&hunt, (1, 100), planted).unwrap().found.unwrap();
    let four = run(&hunt, (4, 100), planted).unwrap().found.unwrap();
    assert_eq!(one.drawn, four.drawn);
    assert_eq!(one.smallest, four.smallest);
    assert_eq!(hunt.draw(one.drawn.0.number), one.drawn.0);
    hunt.seed = 8;
    assert_ne!(hunt.draw(one.drawn.0.number), one.drawn.0);
}

#[test]
fn the_other_side_must_not_show_it() {
    let mut hunt = hunt(&KNOBS);
    hunt.against = vec![("vm.swappiness".to_owned(), "7".to_owned())];
    let is_other = |setup: &Setup| !setup.sysctls.is_empty();
    let only_one = |setup: &Setup| if is_other(setup) { Ok(1.0) } else { planted(setup) };
    let found = run(&hunt, (2, 100), only_one).unwrap().found.unwrap();
    assert_eq!(found.smallest.1.against, Some(1.0));
    let file = hunt.file_of(&found.smallest.0).unwrap();
    let loaded = load_str("x", &file, Path::new("."), &Overrides::default()).unwrap();
    let sides: Vec<bool> = loaded.variants.iter().map(|it| is_other(&it.setup)).collect();
    assert_eq!(sides, [false, true]);
    let report = run(&hunt, (2, 30), planted).unwrap();
    assert!(report.found.is_none() && report.tried == 30);
    // A run that its time limit cut is no better.
    let cut = |_: &str, variant: &Variant, seed: u64, _: &RunControl| {
        let other = is_other(&variant.setup);
        let value = if other { 1.0 } else { planted(&variant.setup)? };
        let mut record = record("", seed, &[("node.oom_evictable", value), ("elapsed", 1.0)]);
        let ended = other.then_some(Incomplete::Cut);
        record.metrics.get_mut("elapsed").unwrap().ended = ended;
        Ok(record)
    };
    assert!(run_in(&hunt, (2, 30), &cut).unwrap().found.is_none());
}

#[test]
fn panics_and_failed_runs_are_finds() {
    let hunt = hunt(&KNOBS);
    let panics = |setup: &Setup| {
        assert!(setup.machine.cpus < 6, "a list is broken");
        Ok(0.0)
    };
    let found = run(&hunt, (2, 100), panics).unwrap().found.unwrap();
    let why = found.smallest.1.failure.clone().unwrap().message;
    assert!(why.starts_with("internal error: a list is broken"), "{why}");
    assert_eq!(hunt.value(&found.smallest.0, 0), Some("6"));
    let fails = |setup: &Setup| match nr_copies(setup) {
        5.. => Err(failure("the audit failed")),
        _ => Ok(0.0),
    };
    let report = run(&hunt, (2, 100), fails).unwrap();
    let shown = table(&hunt, &report, "");
    assert!(shown.contains("Result: a failed run in draw "), "{shown}");
    assert!(shown.contains("the run fails: the audit failed"), "{shown}");
}

#[test]
fn draws_that_the_scenario_refuses_are_counted() {
    // Two of the five values of the second knob are more than the machine has.
    let mut hunt = hunt(&["machine.cpus=1..8"]);
    hunt.text += "group = [{ name = 'g' }]\n";
    let setup = load_str("x", &hunt.text, Path::new("."), &Overrides::default()).unwrap();
    let setup = &setup.variants[0].setup;
    let knob = |text: &str| Knob::parse(text, setup, false).unwrap();
    hunt.knobs.push(knob("group.g.memory.min=1M,2M,4M,80M,90M"));
    assert!(hunt.check().unwrap_err().contains("memory.min"));
    let report = run(&hunt, (2, 40), |_| Ok(0.0)).unwrap();
    assert!(report.tried == 40 && (5..30).contains(&report.refused), "{report:?}");
    hunt.knobs[1] = knob("group.g.memory.min=80M,90M");
    let looks = Cell::new(0);
    let error = run(&hunt, (2, 500), |_| Ok(0.0)).map(|_| looks.set(1)).unwrap_err();
    let HuntError::Mistake(mistake) = error else { panic!("{error:?}") };
    assert!(mistake.message.starts_with("the first 50 draws are refused: "), "{mistake}");
}
