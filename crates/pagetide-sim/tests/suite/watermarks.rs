//! Effect of the 2011 patch that sets the watermarks apart, on a stream longer than memory: some
//! seeds of experiments/tunable-watermarks-long. A 6.1 kernel with the same patch, in emulation
//! with `erms` and with read-ahead, had 239, 57 and 13 direct reclaims with 2 CPUs, and 8, 0 and 0
//! with one.

use pagetide_scenario::model::Scenario;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::experiment;
use std::ops::RangeInclusive;

/// Direct reclaims of each seed, sorted.
fn direct_reclaims(scenario: &Scenario, variant: &str, seeds: RangeInclusive<u64>) -> Vec<u64> {
    let variant = scenario.variants.iter().find(|found| found.name == variant).unwrap();
    let of_seed = |seed| {
        let record = run(&scenario.name, variant, seed, &RunOptions::default()).unwrap();
        record.metrics["mm_vmscan_direct_reclaim_begin"].value as u64
    };
    let mut counts: Vec<u64> = seeds.map(of_seed).collect();
    counts.sort_unstable();
    counts
}

/// Two CPUs with a stream, a writer and kswapd: the wider the gap between min and low, the fewer
/// direct reclaims.
#[test]
fn a_wider_gap_means_fewer_direct_reclaims() {
    let scenario = experiment("tunable-watermarks-long", &[]);
    let counts = ["default", "case1", "case2"].map(|name| direct_reclaims(&scenario, name, 1..=3));
    let sum = |at: usize| counts[at].iter().sum::<u64>();
    assert!(counts[0][0] >= 50, "{counts:?}");
    assert!(sum(1) * 3 <= sum(0), "{counts:?}");
    assert!(sum(2) * 10 <= sum(0) && sum(2) <= sum(1), "{counts:?}");
}

/// One CPU, where the waker of kswapd yields the CPU to it: hardly any direct reclaims, whatever
/// the gap. In two seeds of five, a pageblock of zone DMA changes its type; kswapd, awake for that
/// zone, then waits for the CPU (66 and 232).
#[test]
fn on_one_cpu_kswapd_is_in_time() {
    let scenario = experiment("tunable-watermarks-long", &[]);
    for name in ["default-1cpu", "case1-1cpu", "case2-1cpu"] {
        let counts = direct_reclaims(&scenario, name, 1..=5);
        assert!(counts[2] <= 20, "{name}: median of {counts:?}");
    }
}
