//! Tests of the policy: its scenario loads, it has an effect, the audit passes after every thousand
//! events, and equal runs are equal.

use pagetide_examples::plugins;
use pagetide_scenario::load::{load, Overrides, PluginNames};
use pagetide_scenario::model::Scenario;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::command::{words, CommandOutput};
use std::path::Path;
use std::process::Command;

/// The scenario with a smaller load.
fn shortened(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let plugins = PluginNames { groups: vec!["refaults-last".into()], any: false };
    let sets = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let overrides = Overrides { sets, plugins, ..Overrides::default() };
    load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run_audited(scenario: &Scenario, variant: &str) -> RunRecord {
    let variant = scenario.variants.iter().find(|it| it.name == variant).unwrap();
    let options = RunOptions { plugins: plugins(), audit_every: 1000, ..RunOptions::default() };
    run(&scenario.name, variant, 1, &options).unwrap()
}

#[test]
fn refaults_last_holds() {
    let sets = [
        ("machine.memory", "32MiB"),
        ("file.data.size", "20MiB"),
        ("task.serve.phase.serve.accesses", "20000"),
    ];
    let scenario = shortened("refaults-last.toml", &sets);
    let first = run_audited(&scenario, "refaults-last");
    assert_eq!(first.digest, run_audited(&scenario, "refaults-last").digest);
    assert_eq!(first.notes, Vec::<String>::new());
    let refaults = |record: &RunRecord| record.metrics["workingset_refault_file"].value;
    let linux = run_audited(&scenario, "linux");
    assert!(refaults(&linux) > 0.0 && refaults(&first) != refaults(&linux));
}

#[test]
fn the_command_knows_the_policy() {
    let command = |line: &str| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_pagetide-examples"));
        program.args(words(line)).current_dir(env!("CARGO_MANIFEST_DIR"));
        CommandOutput::from(program.output().unwrap())
    };
    command("list").succeeds().says(&["policy.groups may be linux, refaults-last"]);
    command("schema").succeeds().prints(&["\"refaults-last\""]);
    let checked = command("check refaults-last.toml").succeeds().stdout;
    assert_eq!(checked.lines().count(), 1, "{checked}");
    let unknown = "there is no policy of groups called `refaults-first`";
    let set = command("run refaults-last.toml --set policy.groups=refaults-first");
    set.fails(2, &[unknown, "there are `linux` and `refaults-last`"]);
}
