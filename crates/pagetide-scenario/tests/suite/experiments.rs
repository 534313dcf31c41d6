//! The shipped experiments load, their tasks have programs, and the documentation has every key.

use pagetide_scenario::load::PluginNames;
use pagetide_scenario::load::{self, load, load_str, Overrides};
use pagetide_scenario::model::Setup;
use pagetide_scenario::op::{Op, RegionBacking};
use pagetide_scenario::schema::schema;
use pagetide_scenario::workload::Program;
use pagetide_testing::{experiment, root, setup};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn experiments() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in ["experiments", "experiments/truth", "experiments/published"] {
        for entry in std::fs::read_dir(root().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() >= 7, "{found:?}");
    found
}

fn task_of(setup: &Setup, name: &str) -> usize {
    setup.tasks.iter().position(|task| task.name == name).unwrap()
}

#[test]
fn every_experiment_loads_and_has_programs() {
    const OPS: usize = 1_000;
    for path in experiments() {
        let loaded = load(&path, &Overrides::default());
        let scenario = loaded.unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(Some(scenario.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert!(!scenario.title.is_empty());
        for variant in &scenario.variants {
            for task in 0..variant.setup.tasks.len() {
                let mut program = Program::new(&variant.setup, task, scenario.seed).unwrap();
                let first = program.next_op().unwrap();
                assert_eq!(first, Some(Op::PhaseBegin { phase: 0 }));
                for _ in 0..OPS {
                    program.next_op().unwrap();
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_program() {
    let scenario = experiment("truth/mix_sw60", &[]);
    let ops = |seed| {
        let mut program = Program::new(&scenario.variants[0].setup, 0, seed).unwrap();
        let mut ops = Vec::new();
        while let Some(op) = program.next_op().unwrap() {
            ops.push(op);
        }
        ops
    };
    let first = ops(1);
    assert_eq!(first, ops(1));
    // The file sets the generator's start value, so the run's seed changes nothing.
    assert_eq!(first, ops(2));
    let accesses = first.iter().filter(|op| matches!(op, Op::Access { .. })).count();
    assert_eq!(accesses, 2 * 36_864 + 240_000);
}

#[test]
fn truth_cases_have_the_phases_of_the_data() {
    for name in ["anon1.5", "file2.0", "mix_sw60"] {
        let setup = &experiment(&format!("truth/{name}"), &[]).variants[0].setup;
        let task = &setup.tasks[task_of(setup, "wset")];
        let phases: Vec<&str> = task.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(phases, ["populate", "acc0", "acc1", "acc2", "acc3"]);
        let zones = &setup.machine.nodes[0].zones;
        let managed: Vec<u64> = zones.iter().map(|zone| zone.managed).collect();
        assert_eq!(managed, [3840, 51_806]);
        assert_eq!(setup.machine.swap[0].size, 4 << 30);
    }
    let setup = &experiment("truth/seq2x", &[]).variants[0].setup;
    let phases: Vec<&str> = setup.tasks[0].phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(phases, ["pass0", "pass1"]);
    let watermarks = experiment("truth/watermarks", &[]);
    let names: Vec<&str> = watermarks.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["default", "wsf200"]);
    for name in ["fill", "writer", "seed", "big"] {
        task_of(&watermarks.variants[0].setup, name);
    }
}

#[test]
fn builds_of_several_tasks_share_the_compiler() {
    let text = "[machine]\nmemory = \"1GiB\"\n[[file]]\nname = \"include\"\nsize = \"5MiB\"\n\
        [[task]]\nname = \"make\"\ncopies = 2\nworkload = \"build\"\nunits = 2\n\
        path = \"../../experiments/traces/cc1-zpipe.ptt\"\nheaders = \"include\"\n";
    let setup = setup(text);
    let ops = |task| {
        let mut program = Program::new(&setup, task, 1).unwrap();
        let mut ops = Vec::new();
        while let Some(op) = program.next_op().unwrap() {
            ops.push(op);
        }
        ops
    };
    let (first, second) = (ops(0), ops(1));
    let keys = |ops: &[Op]| -> Vec<u64> {
        let key = |op: &Op| match op {
            Op::Map { backing: RegionBacking::TraceFile { key }, .. } => Some(*key),
            _ => None,
        };
        ops.iter().filter_map(key).collect()
    };
    assert_eq!(keys(&first), keys(&second));
    let accesses = |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Access { .. })).count();
    assert_eq!(accesses(&first), 2 * 126_131);
    let maps = |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Map { .. })).count();
    let unmaps = |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Unmap { .. })).count();
    assert_eq!((maps(&first), unmaps(&first)), (2 * 42, 2 * 42));
    // The draws differ between copies.
    let reads = |ops: &[Op]| -> Vec<Op> {
        ops.iter().copied().filter(|op| matches!(op, Op::Read { .. })).collect()
    };
    assert_ne!(reads(&first), reads(&second));
}

#[test]
fn the_seed_experiment_has_the_seed_figures() {
    let scenario = experiment("tunable-watermarks", &[]);
    assert!(scenario.repeats >= 5);
    let names: Vec<&str> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["default", "case1", "case2"]);
    let reference = scenario.reference.as_ref().unwrap();
    let walltime = |variant: &str| reference.values[variant]["stream.walltime"];
    assert_eq!([walltime("default"), walltime("case1"), walltime("case2")], [0.503, 0.364, 0.337]);
    for variant in &scenario.variants {
        let node = &variant.setup.machine.nodes[0];
        assert_eq!((node.memory - node.reserved) / 1024, 2_067_844);
        let reserve =
            variant.setup.sysctls.iter().find(|write| write.name() == "vm.min_free_kbytes");
        assert_eq!(reserve.unwrap().to_string(), "5752");
    }
}

/// The shipped object mixes, and whether they have a start-up part.
const MIXES: [(&str, bool); 4] =
    [("compile", false), ("database", true), ("database-server", false), ("service", false)];

/// A setup with a task for each shipped object mix.
fn objects() -> Setup {
    let mut text = String::from("name = \"objects\"\n[machine]\nmemory = \"1GiB\"\n");
    for (name, start) in MIXES {
        text += &format!(
            "[[task]]\nname = \"{name}\"\nworkload = \"kernel-objects\"\nunits = 20\n\
            mix = \"../../experiments/objects/{name}.toml\"\nstart_unit = {start}\n"
        );
    }
    setup(&text)
}

#[test]
fn shipped_object_mixes_are_of_one_kernel_and_make_what_they_say() {
    let setup = objects();
    for (task, (name, has_start)) in MIXES.into_iter().enumerate() {
        let path = root().join(format!("experiments/objects/{name}.toml"));
        let text = std::fs::read_to_string(path).unwrap();
        let mix = load::object_mix(name, &text).unwrap_or_else(|errors| panic!("{errors}"));
        let sum = |rows: &[pagetide_scenario::model::object_mix::ObjectRow]| -> u64 {
            rows.iter().map(|row| row.allocs_thousandths).sum()
        };
        let mut expected = 20 * sum(&mix.rows) / 1000;
        assert_eq!(!mix.start_rows.is_empty(), has_start, "{name}");
        if has_start {
            expected += sum(&mix.start_rows) / 1000;
        }
        let mut program = Program::new(&setup, task, 7).unwrap();
        let (mut allocs, mut held, mut highest) = (0_u64, BTreeSet::new(), 0);
        while let Some(op) = program.next_op().unwrap() {
            match op {
                Op::AllocObject { slot, .. } => {
                    assert!(held.insert(slot), "{name}: a slot is used twice");
                    (allocs, highest) = (allocs + 1, highest.max(slot));
                }
                Op::FreeObject { slot } | Op::CacheObject { slot } => assert!(held.remove(&slot)),
                _ => {}
            }
        }
        // Each row is off by less than one allocation.
        let rows = (mix.rows.len() + mix.start_rows.len()) as u64;
        assert!(allocs.abs_diff(expected) <= rows, "{name}: {allocs}, not {expected}");
        assert!(u64::from(highest) < allocs / 2, "{name}: slots up to {highest}");
    }
}

#[test]
fn the_documentation_has_every_key() {
    let text = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let words: BTreeSet<&str> = text
        .split(|c| !is_word(c))
        .flat_map(|word| [word].into_iter().chain(word.split('.')))
        .collect();
    let mut missing = Vec::new();
    collect_keys(&schema(&PluginNames::default()), &mut missing);
    missing.retain(|key| !words.contains(key.as_str()));
    assert!(missing.is_empty(), "not in docs/scenario.md: {missing:?}");
}

#[test]
fn the_examples_of_the_documentation_load() {
    let text = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let loaded = load_str("example.toml", example, &root(), &Overrides::default());
        loaded.unwrap_or_else(|errors| panic!("{errors}"));
    }
}

/// All property names of a schema.
fn collect_keys(schema: &serde_json::Value, keys: &mut Vec<String>) {
    if let Some(properties) = schema.get("properties").and_then(serde_json::Value::as_object) {
        keys.extend(properties.keys().cloned());
    }
    match schema {
        serde_json::Value::Object(object) => object.values().for_each(|v| collect_keys(v, keys)),
        serde_json::Value::Array(array) => array.iter().for_each(|v| collect_keys(v, keys)),
        _ => {}
    }
}
