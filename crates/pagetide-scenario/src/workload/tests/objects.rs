//! Kernel objects of a mix: their number, their lifetimes, and dense slots.

use super::*;
use crate::draws::prng::{sub_seed, SplitMix64};
use crate::model::object_mix::ObjectMix;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

fn mix(text: &str) -> Arc<ObjectMix> {
    let text = format!("recorded = \"by hand\"\nunit = \"a unit\"\n{text}");
    Arc::new(crate::load::object_mix("mix.toml", &text).unwrap_or_else(|errors| panic!("{errors}")))
}

fn row(table: &str, name: &str, reclaimable: bool, allocs: &str, lifetimes: &str) -> String {
    format!(
        "[[{table}]]\nname = \"{name}\"\nobject_size = 64\naccount = true\n\
        reclaimable = {reclaimable}\nallocs = {allocs}\nlifetimes = {{ {lifetimes} }}\n"
    )
}

/// The operations of units of `mix`, by phase.
fn phases(mix: &Arc<ObjectMix>, of: &[(u32, bool)], interval_ns: u64) -> Vec<Op> {
    let objects = |&(units, start)| {
        Workload::KernelObjects(KernelObjects {
            mix: Arc::clone(mix),
            path: PathBuf::new(),
            units,
            interval_ns,
            compute_ns: 0,
            start,
        })
    };
    let mut setup = setup(Vec::new(), vec![task(of.iter().map(objects).collect())]);
    setup.caches = mix.caches();
    let is_inner = |op: &Op| !matches!(op, Op::PhaseBegin { .. } | Op::PhaseEnd { .. });
    ops_of(&setup, 10_000_000).into_iter().filter(is_inner).collect()
}

fn cache_of(op: &Op) -> Option<u32> {
    match op {
        Op::AllocObject { cache, .. } => Some(*cache),
        _ => None,
    }
}

#[test]
fn the_first_operations_are_the_documented_ones() {
    let rows = [
        row("cache", "filp", false, "2", "\"16\" = 1"),
        row("cache", "dentry", true, "1.5", "cached = 1"),
        row("cache", "pid", false, "1", "kept = 1"),
        row("cache", "cred_jar", false, "1", "unit = 1"),
    ];
    let mix = mix(&rows.concat());
    let mut prng = SplitMix64::new(sub_seed(1, "t#objects"));
    let carry: Vec<u64> = (0..4).map(|_| prng.below(1000)).collect();
    let mut left = [2, (carry[1] + 1500) / 1000, 1, 1];
    let mut expected = vec![Op::Pace { ns: 5 }];
    let (mut free, mut next, mut count) = (Vec::new(), 0, 0);
    let mut due: Vec<(u64, u32)> = Vec::new();
    let mut at_end = Vec::new();
    while left.iter().sum::<u64>() > 0 {
        let mut drawn = prng.below(left.iter().sum());
        let cache = left.iter().position(|left| match drawn < *left {
            true => true,
            false => {
                drawn -= left;
                false
            }
        });
        let cache = cache.unwrap();
        left[cache] -= 1;
        count += 1;
        let slot = free.pop().unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        expected.push(Op::AllocObject { slot, cache: cache as u32, account: true });
        prng.below(10_000);
        match cache {
            0 => due.push((count + prng.below(17), slot)),
            1 => at_end.push(Op::CacheObject { slot }),
            3 => at_end.push(Op::FreeObject { slot }),
            _ => {}
        }
        due.sort_unstable();
        while due.first().is_some_and(|first| first.0 <= count) {
            let slot = due.remove(0).1;
            free.push(slot);
            expected.push(Op::FreeObject { slot });
        }
    }
    expected.extend(due.into_iter().map(|(_, slot)| Op::FreeObject { slot }));
    expected.extend(at_end);
    assert_eq!(phases(&mix, &[(1, false)], 5), expected);
}

#[test]
fn the_mean_is_met_exactly_and_caches_are_mixed() {
    let rows = [
        row("cache", "a", false, "40.125", "\"16\" = 1"),
        row("cache", "b", false, "0.01", "unit = 1"),
        row("cache", "c", false, "40", "\"256\" = 1"),
    ];
    let ops = phases(&mix(&rows.concat()), &[(1000, false)], 0);
    let mut counts = BTreeMap::new();
    let caches: Vec<u32> = ops.iter().filter_map(cache_of).collect();
    caches.iter().for_each(|cache| *counts.entry(*cache).or_insert(0) += 1);
    assert_eq!(counts, BTreeMap::from([(0, 40_125), (1, 10), (2, 40_000)]));
    let changes = caches.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((35_000..45_000).contains(&changes), "{changes}: not shuffled");
}

#[test]
fn ages_are_those_of_the_classes() {
    for (class, ages) in [("16", 0..=16), ("256", 17..=256), ("4096", 257..=4096)] {
        let row = row("cache", "a", false, "20000", &format!("\"{class}\" = 1"));
        let (mut count, mut sum) = (0_u64, 0);
        let (mut births, mut seen) = (BTreeMap::new(), Vec::new());
        for op in phases(&mix(&row), &[(1, false)], 0) {
            match op {
                Op::AllocObject { slot, .. } => {
                    count += 1;
                    assert_eq!(births.insert(slot, count), None, "a slot is used twice");
                }
                Op::FreeObject { slot } => {
                    let age = count - births.remove(&slot).expect("it was allocated");
                    // The end of the unit frees some of them earlier.
                    if count < 20_000 {
                        seen.push(age);
                        sum += age;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(births.is_empty(), "objects with an age are freed with the unit");
        let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
        assert_eq!((least, most), (ages.start(), ages.end()), "{class}");
        let (mean, middle) = (sum / seen.len() as u64, (ages.start() + ages.end()) / 2);
        assert!(mean.abs_diff(middle) <= middle / 20, "{class}: {mean}");
    }
}

#[test]
fn slots_stay_dense_and_what_is_kept_stays() {
    let rows = [
        row("cache", "filp", false, "100", "\"16\" = 0.9, unit = 0.1"),
        row("cache", "pid", false, "2", "kept = 1"),
        row("cache", "ext4_inode_cache", true, "3", "cached = 1"),
        // No shrinker scans this cache, so the object stays.
        row("cache", "jbd2_inode", false, "1", "cached = 1"),
        row("start_cache", "TCP", false, "5", "kept = 1"),
    ];
    let mix = mix(&rows.concat());
    let ops = phases(&mix, &[(10, true), (10, false)], 0);
    let mut held = BTreeMap::new();
    let (mut highest, mut cached) = (0, 0);
    for op in &ops {
        match *op {
            Op::AllocObject { slot, cache, .. } => {
                assert_eq!(held.insert(slot, cache), None, "a slot is used twice");
                highest = highest.max(slot);
            }
            Op::FreeObject { slot } => assert!(held.remove(&slot).is_some()),
            Op::CacheObject { slot } => {
                assert_eq!(held.remove(&slot), Some(2));
                cached += 1;
            }
            _ => panic!("{op:?}"),
        }
    }
    assert_eq!(cached, 20 * 3);
    let mut kept = [0; 5];
    held.values().for_each(|cache| kept[*cache as usize] += 1);
    assert_eq!(kept, [0, 40, 0, 20, 5]);
    assert!(highest < 65 + 60, "slots are used again: {highest}");
}
