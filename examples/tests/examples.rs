//! Tests of the policy: its scenario loads, it has an effect, the audit passes after every thousand
//! events, and equal runs are equal.

use pagetide_examples::plugins;
use pagetide_scenario::load::{load, AddedVariant, Overrides, PluginNames};
use pagetide_scenario::model::Scenario;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::command::{words, CommandOutput};
use std::path::Path;
use std::process::Command;

/// The scenario with a smaller load, and more variants.
fn shortened(name: &str, sets: &[(&str, &str)], added: Vec<AddedVariant>) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let plugins = PluginNames { any: true, ..PluginNames::default() };
    let sets = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let overrides = Overrides { sets, added, plugins, ..Overrides::default() };
    load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run_audited(scenario: &Scenario, variant: &str) -> RunRecord {
    run_seed(scenario, variant, 1)
}

fn run_seed(scenario: &Scenario, variant: &str, seed: u64) -> RunRecord {
    let variant = scenario.variants.iter().find(|it| it.name == variant).unwrap();
    let options = RunOptions { plugins: plugins(), audit_every: 1000, ..RunOptions::default() };
    run(&scenario.name, variant, seed, &options).unwrap()
}

#[test]
fn refaults_last_holds() {
    let sets = [
        ("machine.memory", "32MiB"),
        ("file.data.size", "20MiB"),
        ("task.serve.phase.serve.accesses", "20000"),
    ];
    let scenario = shortened("refaults-last.toml", &sets, Vec::new());
    let first = run_audited(&scenario, "refaults-last");
    assert_eq!(first.digest, run_audited(&scenario, "refaults-last").digest);
    assert_eq!(first.notes, Vec::<String>::new());
    let refaults = |record: &RunRecord| record.metrics["workingset_refault_file"].value;
    let linux = run_audited(&scenario, "linux");
    assert!(refaults(&first) < refaults(&linux));
}

#[test]
fn page_policies_hold() {
    let sets = [
        ("machine.memory", "64MiB"),
        ("file.tree.size", "12MiB"),
        ("file.store.size", "64MiB"),
        ("group.search.memory.max", "8MiB"),
        ("group.store.memory.max", "6MiB"),
        ("task.search.total", "60MiB"),
        ("task.store.phase.uniform.total", "8MiB"),
        ("task.store.phase.zipf.total", "32MiB"),
    ];
    let scenario = shortened("page-policies.toml", &sets, Vec::new());
    let refaults = |variant: &str| {
        let record = run_audited(&scenario, variant);
        assert_eq!(record.digest, run_audited(&scenario, variant).digest, "{variant}");
        assert_eq!(record.notes, Vec::<String>::new(), "{variant}");
        let of = |metric: &str| record.metrics[metric].value;
        [of("search.workingset_refault_file"), of("store.zipf.workingset_refault_file")]
    };
    let [two_lists, mglru, generations, fifo, s3_fifo, lhd, lfu, mru] =
        ["two-lists", "mglru", "generations", "fifo", "s3-fifo", "lhd", "lfu", "mru"].map(refaults);
    let [search, store] = two_lists;
    assert!(mru[0] < 0.8 * search, "{mru:?} refaults, {two_lists:?} with two lists");
    assert!(s3_fifo[0] <= search && lfu[0] <= 1.1 * search, "{s3_fifo:?}, {lfu:?}, {two_lists:?}");
    // A popular record is read often, which FIFO does not see.
    assert!(lhd[1] < 0.95 * fifo[1] && lhd[0] < 0.8 * search, "{lhd:?}, {fifo:?}, {two_lists:?}");
    for (built_in, plug_in) in mglru.into_iter().zip(generations) {
        assert!((plug_in / built_in - 1.0).abs() < 0.02, "{mglru:?}, {generations:?}");
    }
    for policy in [s3_fifo, lfu] {
        assert!(policy[1] < store && policy[1] < fifo[1], "{policy:?}, {fifo:?}, {two_lists:?}");
    }
}

#[test]
fn generations_find_pages_in_use_like_those_of_the_kernel() {
    let sets = [
        ("machine.memory", "64MiB"),
        ("machine.swap.size", "256MiB"),
        ("file.program.size", "44MiB"),
        ("file.archive.size", "128MiB"),
        ("file.data.size", "50MiB"),
        ("task.heap.phase.fill.size", "80MiB"),
        ("task.heap.phase.use.size", "80MiB"),
        ("task.both.phase.use.anon", "37MiB"),
        ("task.both.phase.use.accesses", "40000"),
    ];
    let plug_in = AddedVariant {
        name: "plug-in".into(),
        sets: vec![("policy.pages".into(), "generations".into())],
    };
    let scenario = shortened("../experiments/mglru-or-classic.toml", &sets, vec![plug_in]);
    let faults = |variant: &str| {
        // Of a machine this small, seeds differ by 7 %.
        let mut sums = [0.0; 3];
        for seed in 1..=4 {
            let record = run_seed(&scenario, variant, seed);
            assert_eq!(record.notes, Vec::<String>::new(), "{variant}");
            let metrics = ["scan.pgmajfault", "heap.use.pswpin", "both.pgmajfault"];
            for (sum, metric) in sums.iter_mut().zip(metrics) {
                *sum += record.metrics[metric].value;
            }
        }
        sums
    };
    let [classic, mglru, plug_in] = ["classic", "mglru", "plug-in"].map(faults);
    assert!(plug_in[0] < 0.8 * classic[0], "{plug_in:?}, {classic:?} with two lists");
    for (plug_in, mglru) in plug_in.into_iter().zip(mglru) {
        assert!((plug_in / mglru - 1.0).abs() < 0.1, "{plug_in} faults, {mglru} in the core");
    }
}

#[test]
fn the_command_knows_the_policy() {
    let command = |line: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagetide-examples"));
        program.args(words(line)).current_dir(env!("CARGO_MANIFEST_DIR"));
        CommandOutput::from(program.output().unwrap())
    };
    command("list").succeeds().says(&[
        "policy.groups may be linux, refaults-last",
        "policy.pages may be linux, fifo, generations, lfu, lhd, mru, s3-fifo",
    ]);
    command("schema").succeeds().prints(&["\"refaults-last\""]);
    let checked = command("check refaults-last.toml").succeeds().stdout;
    assert_eq!(checked.lines().count(), 1, "{checked}");
    let unknown = "there is no policy of groups called `refaults-first`";
    let set = command("run refaults-last.toml --set policy.groups=refaults-first");
    set.fails(2, &[unknown, "there are `linux` and `refaults-last`"]);
}
