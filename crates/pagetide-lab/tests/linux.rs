//! Held against Linux: every shipped case with what a real kernel counted on it
//! (experiments/verify, recorded in experiments/verify/linux-6.1), without QEMU.
//!
//! The bounds are those that the project sets itself: of counters that the kernel repeats to 1 %,
//! the median is off by at most 5 %, of the others by at most 15 %, and none by more than half but
//! those that docs/fidelity.md names. `cargo test -p pagetide-lab --test linux -- --nocapture`
//! prints a line a case.

use pagetide_lab::plan::Plan;
use pagetide_lab::verify::ask::{verify, KernelSide};
use pagetide_lab::verify::{summarise, Comparison};
use pagetide_scenario::load::{load, Overrides};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Counters that may be off by more than half, as (case, variant, the end of the key), each with its
/// reason in docs/fidelity.md, "What is off".
const NAMED: [(&str, &str, &str); 0] = [];

fn experiments() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments/verify")
}

/// Both sides of a case, all its variants.
fn compare(case: &str) -> Comparison {
    let file = experiments().join(format!("{case}.toml"));
    let overrides = Overrides { repeats: Some(3), ..Overrides::default() };
    let scenario = load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let variants = scenario.variants.len();
    let plan = Plan::new(scenario).unwrap();
    let references = experiments().join("linux-6.1");
    let cancel = Arc::new(AtomicBool::new(false));
    let jobs = NonZeroUsize::new(2).unwrap();
    let verified = verify(
        &plan,
        &KernelSide::Recorded { dir: &references, file: &file },
        jobs,
        &cancel,
        &|_| {},
    );
    assert!(verified.errors.is_empty(), "{case}: {:?}", verified.errors);
    let stale = verified.sides.notes.iter().any(|note| note.contains("another text"));
    assert!(!stale, "{case}: the scenario has changed since its references were recorded");
    let comparison = verified.comparison.unwrap();
    assert_eq!(comparison.variants.len(), variants, "{case}: a variant is missing");
    println!("{case}: {}", comparison.summary());
    comparison
}

#[test]
fn every_case_is_close_to_the_kernel() {
    let mut cases: Vec<String> = std::fs::read_dir(experiments())
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    cases.sort();
    assert!(cases.len() >= 6, "{cases:?}");
    let comparisons: Vec<Comparison> = cases.iter().map(|case| compare(case)).collect();
    let summary = summarise(&comparisons);
    println!("all: {summary}");
    assert!(summary.repeats.counters > 100 && summary.varies.counters > 100, "{summary}");
    assert!(summary.repeats.median_error.unwrap() <= 0.05, "{summary}");
    assert!(summary.varies.median_error.unwrap() <= 0.15, "{summary}");
    let beyond = summary.repeats.beyond.iter().chain(&summary.varies.beyond);
    let unnamed: Vec<_> = beyond
        .filter(|(key, _)| {
            !NAMED.iter().any(|(case, variant, counter)| {
                key.starts_with(&format!("{case} {variant} ")) && key.ends_with(counter)
            })
        })
        .collect();
    assert!(unnamed.is_empty(), "off by more than half and not named: {unnamed:#?}");
}
