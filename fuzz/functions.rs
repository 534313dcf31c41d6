//! Fuzz functions for scenarios and object mixes. The fuzz targets in fuzz_targets/ run them, and
//! so does the test crates/pagetide-scenario/tests/suite/corpus.rs over the stored corpus.
//!
//! No function may panic, and accepted input must be consistent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagetide_scenario::load::{self, load_str, Overrides};
use pagetide_scenario::model::{KernelObjects, Workload};
use pagetide_scenario::op::Op;
use pagetide_scenario::workload::Program;

/// A scenario file: mistakes can be displayed, and the programs of a valid scenario run.
pub fn scenario(bytes: &[u8]) {
    const VARIANTS: usize = 3;
    const TASKS: usize = 8;
    const OPS: usize = 200;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match load_str("fuzz.toml", text, Path::new("no-such-directory"), &Overrides::default()) {
        Ok(scenario) => {
            for variant in scenario.variants.iter().take(VARIANTS) {
                for task in 0..variant.setup.tasks.len().min(TASKS) {
                    let program = Program::new(&variant.setup, task, scenario.seed);
                    let mut program = program.expect("a valid scenario has programs");
                    for _ in 0..OPS {
                        let _ = program.next_op();
                    }
                }
            }
        }
        Err(mistakes) => {
            assert!(mistakes.count() > 0);
            assert!(!mistakes.to_string().is_empty());
        }
    }
}

/// An object mix: mistakes can be displayed, and a valid mix allocates each object in a free slot.
pub fn object_mix(bytes: &[u8]) {
    const OPS: usize = 2000;
    const TASK: &str = "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"t\"\n\
        workload = \"sleep\"\nduration = \"1s\"\n";
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mix = match load::object_mix("fuzz.toml", text) {
        Ok(mix) => mix,
        Err(mistakes) => {
            assert!(mistakes.count() > 0);
            assert!(!mistakes.to_string().is_empty());
            return;
        }
    };
    let scenario = load_str("task.toml", TASK, Path::new(""), &Overrides::default());
    let mut setup = scenario.expect("a sound scenario").variants.remove(0).setup;
    setup.caches = mix.caches();
    let start = !mix.start_rows.is_empty();
    let objects = KernelObjects {
        mix: Arc::new(mix),
        path: PathBuf::new(),
        units: 3,
        interval_ns: 1,
        compute_ns: 1000,
        start,
    };
    setup.tasks[0].phases[0].workload = Workload::KernelObjects(objects);
    let mut program = Program::new(&setup, 0, 1).expect("a mix with its caches");
    let mut held = BTreeSet::new();
    for _ in 0..OPS {
        match program.next_op().expect("nothing to read") {
            Some(Op::AllocObject { slot, cache, .. }) => {
                assert!(held.insert(slot) && (cache as usize) < setup.caches.len());
            }
            Some(Op::FreeObject { slot } | Op::CacheObject { slot }) => assert!(held.remove(&slot)),
            Some(_) => {}
            None => break,
        }
    }
}
