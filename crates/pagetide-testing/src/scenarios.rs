//! Scenarios from text.

use crate::directory::TestDir;
use pagetide_scenario::load::{load, load_str, Overrides};
use pagetide_scenario::model::{Scenario, Setup};
use std::path::Path;

/// Keys and values that replace those of a scenario.
pub type Sets<'a> = &'a [(&'a str, &'a str)];

fn overrides(sets: Sets<'_>) -> Overrides {
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Overrides { sets, ..Overrides::default() }
}

/// A scenario whose paths start in a folder of `crates`.
#[track_caller]
pub fn scenario(text: &str) -> Scenario {
    scenario_with(text, &[])
}

#[track_caller]
pub fn scenario_with(text: &str, sets: Sets<'_>) -> Scenario {
    load_at(Path::new(env!("CARGO_MANIFEST_DIR")), text, sets)
}

/// A scenario whose paths start in the directory of a test.
#[track_caller]
pub fn scenario_in(place: &TestDir, text: &str) -> Scenario {
    load_at(&place.directory, text, &[])
}

#[track_caller]
fn load_at(base: &Path, text: &str, sets: Sets<'_>) -> Scenario {
    let loaded = load_str("test.toml", text, base, &overrides(sets));
    loaded.unwrap_or_else(|errors| panic!("{errors}"))
}

/// The setup of its first variant.
#[track_caller]
pub fn setup(text: &str) -> Setup {
    scenario(text).variants.remove(0).setup
}

/// A scenario of `experiments`, without `.toml`, with changed keys.
#[track_caller]
pub fn experiment(name: &str, changed: Sets<'_>) -> Scenario {
    let file = crate::root().join(format!("experiments/{name}.toml"));
    load(&file, &overrides(changed)).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Two variants that finish in milliseconds: a reader of a file of 1.5 times the memory.
pub const SMALL: &str = r#"
name = "small"
title = "A reader on a small machine"
repeats = 3
seed = 7

[machine]
cpus = 1
memory = "64MiB"

[[machine.disk]]
name = "sda"
model = "ssd"

[[file]]
name = "data"
size = "96MiB"
sparse = true

[[task]]
name = "reader"
workload = "mapped-read"
file = "data"

[[variant]]
name = "default"

[[variant]]
name = "early"
[variant.sysctl]
"vm.watermark_scale_factor" = 200
"#;

/// Two groups with soft limits that need more memory than the machine has.
pub const GROUPS: &str = r#"
name = "groups"
repeats = 2
seed = 5
machine = { cpus = 2, memory = "64MiB", swap = "256MiB", disk = [{ name = "sda", model = "ssd" }] }
group = [
  { name = "master", memory.soft_limit_in_bytes = "40M" },
  { name = "slave", memory.soft_limit_in_bytes = "16M" },
]
task = [
  { name = "master", group = "master", workload = "touch", size = "30MiB", passes = 20 },
  { name = "slave", group = "slave", workload = "touch", size = "50MiB", passes = 4 },
]
variant = [
  { name = "tree" },
  { name = "hierarchical", policy.soft_limit = "hierarchical" },
]
"#;
