//! Scenarios that extend those in `tests/diagnostics/bases`.

use super::variants::with_sets;
use super::*;
use crate::model::Variant;
use std::path::PathBuf;

const BASES: &str = "tests/diagnostics/bases";

fn extend_with(text: &str, overrides: &Overrides) -> Scenario {
    let loaded = load_str("own/case.toml", text, Path::new(BASES), overrides);
    loaded.unwrap_or_else(|errors| panic!("{errors}"))
}

fn extend(text: &str) -> Scenario {
    extend_with(text, &Overrides::default())
}

fn small() -> Scenario {
    load(&Path::new(BASES).join("small.toml"), &Overrides::default()).unwrap()
}

fn writes(variant: &Variant) -> Vec<String> {
    variant.setup.sysctls.iter().map(|write| format!("{}={write}", write.name())).collect()
}

#[test]
fn a_scenario_has_everything_of_its_base_but_the_name() {
    let scenario = extend("base = \"small.toml\"\n");
    let bases = vec![Path::new(BASES).join("small.toml")];
    assert_eq!(scenario, Scenario { name: "case".into(), bases, ..small() });
}

#[test]
fn tables_are_merged_by_key_and_named_ones_by_name() {
    let text = "\
base = \"small.toml\"
name = \"other\"
machine.memory = \"2GiB\"
[sysctl]
\"vm.swappiness\" = 20
[[machine.disk]]
name = \"slow\"
queue_depth = 3
[[task]]
name = \"writer\"
nice = 5
[[task.phase]]
name = \"fill\"
size = \"8MiB\"
[[task]]
name = \"late\"
workload = \"sleep\"
duration = \"1s\"
[[variant]]
name = \"calm\"
set.machine.cpus = 1
[[variant]]
name = \"new\"
[report]
rows = [\"pgfault\"]
";
    let scenario = extend(text);
    assert_eq!((scenario.name.as_str(), scenario.title.as_str()), ("other", "A base"));
    assert_eq!(scenario.rows, ["pgfault"]);
    let [default, calm, new] = scenario.variants.as_slice() else { panic!("three variants") };
    assert_eq!([&default.name, &calm.name, &new.name], ["default", "calm", "new"]);
    assert_eq!(writes(default), ["vm.swappiness=20", "vm.dirty_ratio=30"]);
    assert_eq!(writes(calm), ["vm.swappiness=1", "vm.dirty_ratio=30"]);
    assert_eq!(calm.sets, [("machine.cpus".to_owned(), "1".to_owned())]);
    let machine = &calm.setup.machine;
    assert_eq!((machine.cpus, machine.nodes[0].memory), (1, 2 << 30));
    let disks: Vec<_> = machine.disks.iter().map(|it| (it.name.as_str(), it.queue_depth)).collect();
    assert_eq!(disks, [("fast", None), ("slow", Some(3))]);
    assert!(machine.disks[1].read_shape.is_some());
    let tasks: Vec<&str> = default.setup.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(tasks, ["reader", "writer", "late"]);
    let writer = &default.setup.tasks[1];
    assert_eq!(writer.settings.nice, 5);
    let phases: Vec<&str> = writer.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["fill", "rest"]);
    let fill = &writer.phases[0].workload;
    let plain = &small().variants[0].setup.tasks[1].phases[0].workload;
    assert_ne!(fill, plain);
}

#[test]
fn parts_of_a_base_are_left_out() {
    let text = "\
base = \"small.toml\"
without = [
    \"variant\", \"expect\", \"task.writer\", \"sysctl.vm.dirty_ratio\", \"machine.disk.slow\",
    \"machine.cpus\", \"report.rows\",
]
[[variant]]
name = \"only\"
";
    let scenario = extend(text);
    assert!(scenario.expectations.is_empty() && scenario.rows.is_empty());
    let [only] = scenario.variants.as_slice() else { panic!("one variant") };
    assert_eq!(only.name, "only");
    assert_eq!(writes(only), ["vm.swappiness=10"]);
    let machine = &only.setup.machine;
    assert_eq!((machine.cpus, machine.disks.len(), only.setup.tasks.len()), (1, 1, 1));
}

#[test]
fn a_base_extends_another_and_paths_start_at_the_file_that_has_them() {
    let text = "base = \"below/middle.toml\"\nmachine.memory = \"3GiB\"\n";
    let overrides = Overrides::default();
    let scenario = extend_with(text, &overrides);
    let machine = &scenario.variants[0].setup.machine;
    assert_eq!((machine.cpus, machine.nodes[0].memory), (4, 3 << 30));
    assert!(scenario.expectations.is_empty());
    let path = |of: &str| Path::new(BASES).join(of);
    let bases = [path("below/middle.toml"), path("below/../small.toml")];
    assert_eq!(scenario.bases, bases);
    let latencies = path("below/../../latencies/reads.csv");
    assert_eq!(machine.latency_files.as_slice(), std::slice::from_ref(&latencies));
    let named: Vec<PathBuf> = overrides.files.named().into_iter().collect();
    assert_eq!(named.len(), 3);
    assert!(bases.iter().chain([&latencies]).all(|of| named.contains(of)), "{named:?}");
}

#[test]
fn the_command_line_changes_what_came_from_a_base() {
    let text = "base = \"small.toml\"\n";
    let mut overrides =
        with_sets(&[("task.writer.phase.fill.size", "1MiB"), ("machine.cpus", "3")]);
    overrides.added.push("more:vm.swappiness=7".parse().unwrap());
    let scenario = extend_with(text, &overrides);
    let more = &scenario.variants[2];
    assert_eq!((more.name.as_str(), more.setup.machine.cpus), ("more", 3));
    assert_eq!(writes(more), ["vm.swappiness=7", "vm.dirty_ratio=30"]);

    let set = with_sets(&[("base", "small.toml")]);
    let errors = load_str("case.toml", SOUND, Path::new(BASES), &set).unwrap_err();
    let [error] = errors.iter().collect::<Vec<_>>()[..] else { panic!("{errors}") };
    assert_eq!(error.message, "`base` cannot be set here");
}

#[test]
fn a_mistake_is_reported_in_the_file_that_has_it() {
    let text = "base = \"wrong.toml\"\nmachine.cpus = 0\n";
    let errors = load_str("own/case.toml", text, Path::new(BASES), &Overrides::default());
    let errors = errors.unwrap_err();
    let places: Vec<_> = errors
        .iter()
        .map(|it| (it.path.as_str(), it.line, it.text.as_str(), it.key.as_deref().unwrap()))
        .collect();
    let base = "own/wrong.toml";
    let expected = [
        ("own/case.toml", 2, "0", "machine.cpus"),
        (base, 7, "\"16 MB\"", "task.reader.size"),
        (base, 8, "sise", "task.reader.sise"),
    ];
    assert_eq!(places, expected, "{errors}");
    assert!(errors.to_string().contains("--> own/wrong.toml:7:8"), "{errors}");
}

#[test]
fn a_second_place_is_in_its_own_file() {
    let text = "base = \"small.toml\"\n[[machine.disk]]\nname = \"slow\"\n\
        read_latency = { p50 = \"3ms\", p99 = \"1ms\" }\n\
        [[variant]]\nname = \"calm\"\n[[variant]]\nname = \"calm\"\n";
    let errors = load_str("own/case.toml", text, Path::new(BASES), &Overrides::default());
    let errors = errors.unwrap_err();
    let twice = errors.iter().find(|it| it.message.contains("defined twice")).unwrap();
    assert_eq!((twice.line, twice.also.as_ref().unwrap().line), (8, 6));
    assert_eq!(twice.also.as_ref().unwrap().path, "own/case.toml");
    let both = errors.iter().find(|it| it.message.contains("a file or percentiles")).unwrap();
    assert_eq!((both.path.as_str(), both.line), ("own/small.toml", 15));
}

#[test]
fn a_knob_of_a_variant_wins_over_a_set_of_its_base() {
    let swappiness = |own: &str| {
        let text = format!("base = \"set.toml\"\n[[variant]]\nname = \"calm\"\n{own}");
        let scenario = extend(&text);
        let calm = scenario.variants.into_iter().find(|variant| variant.name == "calm").unwrap();
        writes(&calm).into_iter().find(|write| write.starts_with("vm.swappiness")).unwrap()
    };
    assert_eq!(swappiness(""), "vm.swappiness=10");
    let set = "set = { \"vm.swappiness\" = 33 }\n";
    let sysctl = "sysctl.vm.swappiness = 44\n";
    assert_eq!(swappiness(set), "vm.swappiness=33");
    assert_eq!(swappiness(sysctl), "vm.swappiness=44");
    assert_eq!(swappiness(&format!("{sysctl}{set}")), "vm.swappiness=33");
}
