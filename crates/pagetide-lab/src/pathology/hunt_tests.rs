use super::hunt::{Finding, Hunt, HuntBackend, HuntReport, ScenarioDraw, ShrunkFind};
use super::objective::Objective;
use super::output::{drawn, smallest};
use crate::knob::Knob;
use crate::testing::{failure, record};
use crate::world::{Failure, RunBackend, RunControl};
use pagetide_scenario::load::{load_str, Overrides, PluginNames};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::model::{Setup, Variant};
use pagetide_scenario::record::{Incomplete, RunRecord};
use pagetide_sim::world::WorldError;
use pagetide_sim::SimError;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// A find, drawn and shrunk.
type Found = ((ScenarioDraw, Finding), ShrunkFind);

/// A world that is a function of the setup.
fn of_setup(
    world: impl Fn(&Setup) -> Result<f64, Failure> + Sync,
) -> impl Fn(&str, &Variant, u64, &RunControl) -> Result<RunRecord, Failure> + Sync {
    move |_, variant, seed, _| {
        assert!(variant.setup.measures_pathologies);
        Ok(record(&variant.name, seed, &[("node.oom_evictable", world(&variant.setup)?)]))
    }
}

fn with_backend<T>(
    threads: usize,
    world: &dyn RunBackend,
    work: impl FnOnce(&HuntBackend<'_>) -> T,
) -> T {
    let threads = NonZeroUsize::new(threads).unwrap();
    work(&HuntBackend { world, threads, stop: &|| false, on_progress: &|_| {} })
}

fn search(hunt: &Hunt, draws: usize, world: &dyn RunBackend) -> Result<HuntReport, Mistake> {
    with_backend(2, world, |backend| hunt.search(0, draws, backend))
}

fn find(hunt: &Hunt, threads: usize, world: &dyn RunBackend) -> Found {
    with_backend(threads, world, |backend| {
        let (draw, finding) = hunt.search(0, 100, backend).unwrap().found.unwrap();
        let shrunk = hunt.shrink(&draw, &finding, backend);
        ((draw, finding), shrunk)
    })
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
    let (found, shrunk) = find(&hunt, 2, &of_setup(planted));
    let report = search(&hunt, 100, &of_setup(planted)).unwrap();
    assert_eq!(report.found.as_ref(), Some(&found));
    assert_eq!(report.tried as u64, found.0.number + 1);
    let turned: Vec<_> = hunt.turned(&shrunk.draw).collect();
    assert_eq!(turned, [("machine.cpus", "3"), ("task.b.copies", "4")]);
    assert!(shrunk.is_smallest && shrunk.draw.without == ["a"]);
    let shown = drawn(&hunt, &report, "pagetide fuzz ...");
    assert!(shown.contains("12.50 %, in 3 of 3 seeds\n"), "{shown}");
    let shown = smallest(&hunt, &report, Some(&shrunk));
    assert!(shown.contains("task.b.copies = 4\n           without the tasks a\n"), "{shown}");
    assert!(shown.contains("scenarios tried, no smaller one shows it\n"), "{shown}");
    // The file is the scenario that was run.
    let file = hunt.file_of(&shrunk.draw).unwrap();
    let loaded = load_str("x", &file, Path::new("."), &Overrides::default()).unwrap();
    let setup = &loaded.variants[0].setup;
    assert_eq!((loaded.repeats, loaded.seed), (3, shrunk.draw.seed));
    assert_eq!((setup.machine.cpus, nr_copies(setup), setup.tasks.len()), (3, 4, 4));
    assert!(setup.measures_pathologies);
}

#[test]
fn a_find_depends_on_seed_and_number_only() {
    let mut hunt = hunt(&KNOBS);
    let (one, four) = (find(&hunt, 1, &of_setup(planted)), find(&hunt, 4, &of_setup(planted)));
    assert_eq!(one.0, four.0);
    assert_eq!((&one.1.draw, one.1.tried), (&four.1.draw, four.1.tried));
    let draw = one.0 .0;
    assert_eq!(hunt.draw(draw.number), draw);
    hunt.seed = 8;
    assert_ne!(hunt.draw(draw.number), draw);
}

#[test]
fn a_find_shows_with_two_of_three_seeds() {
    let hunt = hunt(&KNOBS);
    let first = hunt.draw(0).seed;
    let with = |shows: [bool; 3]| {
        let world = |_: &str, variant: &Variant, seed: u64, _: &RunControl| {
            let shown = seed.checked_sub(first).is_some_and(|nr| nr < 3 && shows[nr as usize]);
            let value = if shown { 50.0 } else { 0.0 };
            Ok(record(&variant.name, seed, &[("node.oom_evictable", value)]))
        };
        search(&hunt, 1, &world).unwrap().found.map(|(_, finding)| finding.seeds)
    };
    assert_eq!(with([true, false, true]), Some(2));
    assert_eq!(with([true, true, true]), Some(3));
    assert_eq!(with([true, false, false]), None);
    assert_eq!(with([false, true, true]), None);
}

#[test]
fn shrinking_is_bounded() {
    let hunt = hunt(&["machine.cpus=1..8", "vm.swappiness=0..200", "vm.dirty_ratio=1..100"]);
    let runs = AtomicUsize::new(0);
    // Only the draw itself shows it; it ends after 5 ms.
    let drawn = hunt.draw(0);
    let shown = hunt.turned(&drawn).map(|(_, value)| value.to_owned()).collect::<Vec<_>>();
    let is_drawn = |setup: &Setup| setup.machine.cpus.to_string() == shown[0];
    let world = |_: &str, variant: &Variant, seed: u64, _: &RunControl| {
        let after = runs.fetch_add(1, Ordering::Relaxed) >= 3;
        let limit = variant.setup.time_limit_ns;
        assert!(!after || limit == 20_000_000, "{limit}");
        let value = if is_drawn(&variant.setup) { 50.0 } else { 0.0 };
        let record = record(&variant.name, seed, &[("node.oom_evictable", value)]);
        Ok(RunRecord { elapsed_ns: 5_000_000, ..record })
    };
    let (_, shrunk) = find(&hunt, 1, &world);
    assert!(shrunk.is_smallest && shrunk.tried > 3);
    // A stop ends it, with the find.
    let find = search(&hunt, 1, &of_setup(|_| Ok(50.0))).unwrap().found.unwrap();
    let stopped = HuntBackend {
        world: &of_setup(|_| Ok(50.0)),
        threads: NonZeroUsize::MIN,
        stop: &|| true,
        on_progress: &|_| {},
    };
    let shrunk = hunt.shrink(&find.0, &find.1, &stopped);
    assert!(!shrunk.is_smallest);
}

#[test]
fn the_other_side_must_not_show_it() {
    let mut hunt = hunt(&KNOBS);
    hunt.against = vec![("vm.swappiness".to_owned(), "7".to_owned())];
    let is_other = |setup: &Setup| !setup.sysctls.is_empty();
    let only_one = |setup: &Setup| if is_other(setup) { Ok(1.0) } else { planted(setup) };
    let (_, shrunk) = find(&hunt, 2, &of_setup(only_one));
    assert_eq!(shrunk.finding.against, Some(1.0));
    let file = hunt.file_of(&shrunk.draw).unwrap();
    let loaded = load_str("x", &file, Path::new("."), &Overrides::default()).unwrap();
    let sides: Vec<bool> = loaded.variants.iter().map(|it| is_other(&it.setup)).collect();
    assert_eq!(sides, [false, true]);
    let report = search(&hunt, 30, &of_setup(planted)).unwrap();
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
    assert!(search(&hunt, 30, &cut).unwrap().found.is_none());
}

#[test]
fn panics_and_failed_runs_are_finds() {
    let hunt = hunt(&KNOBS);
    let panics = |setup: &Setup| {
        assert!(setup.machine.cpus < 6, "a list is broken");
        Ok(0.0)
    };
    let (_, shrunk) = find(&hunt, 2, &of_setup(panics));
    let why = shrunk.finding.failure.unwrap().message;
    assert!(why.starts_with("internal error: a list is broken"), "{why}");
    assert_eq!(hunt.turned(&shrunk.draw).next(), Some(("machine.cpus", "6")));
    let endless = || SimError::World(WorldError::Endless { since_ns: 7, at_ns: 9 });
    for (failure, why) in [
        (failure("the audit failed"), "the audit failed"),
        (Failure::from(endless()), "the run does not end: ten million events"),
    ] {
        let fails = |setup: &Setup| match nr_copies(setup) {
            5.. => Err(failure.clone()),
            _ => Ok(0.0),
        };
        let report = search(&hunt, 100, &of_setup(fails)).unwrap();
        let shown = smallest(&hunt, &report, None);
        assert!(shown.starts_with("Result: a failed run in draw "), "{shown}");
        assert!(shown.contains(&format!("a run fails: {why}")), "{shown}");
    }
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
    let report = search(&hunt, 40, &of_setup(|_| Ok(0.0))).unwrap();
    assert!(report.tried == 40 && (5..30).contains(&report.refused), "{report:?}");
    hunt.knobs[1] = knob("group.g.memory.min=80M,90M");
    let mistake = search(&hunt, 500, &of_setup(|_| Ok(0.0))).unwrap_err();
    assert!(mistake.message.starts_with("the first 50 draws are refused: "), "{mistake}");
}
