//! Scenarios from text, and values of their records.

use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::model::Scenario;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use std::path::Path;

/// A scenario whose paths start at this crate.
pub fn scenario(text: &str) -> Scenario {
    let base = Path::new(env!("CARGO_MANIFEST_DIR"));
    let loaded = load_str("test.toml", text, base, &Overrides::default());
    loaded.unwrap_or_else(|errors| panic!("{errors}"))
}

/// Runs the first variant with seed 1, and audits now and then.
pub fn run_text(text: &str, audit_every: u64) -> RunRecord {
    let options = RunOptions { audit_every, ..RunOptions::default() };
    run("test", &scenario(text).variants[0], 1, &options).unwrap_or_else(|error| panic!("{error}"))
}

pub fn value(record: &RunRecord, key: &str) -> f64 {
    record.metrics.get(key).unwrap_or_else(|| panic!("no metric {key}")).value
}
