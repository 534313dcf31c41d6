//! Storms find what is planted: a page forgotten on no list, a copy skipped, a charge leaked; and
//! nothing else.

use crate::storm::Storm;
use pagetide_core::interface::planted::{Defect, PlantedDefect};
use std::panic::{catch_unwind, AssertUnwindSafe};

const NR_OPERATIONS: u32 = 3000;
const NR_SEEDS: u64 = 200;

/// The failure of a seed's storm, if any.
fn found(seed: u64, defect: Option<Defect>) -> Option<String> {
    let storm = || {
        let mut storm = Storm::new(seed);
        let planted = defect.map(|defect| PlantedDefect { defect, every: 100, nr: 0 });
        storm.world.machine.plant(planted);
        storm.rage(NR_OPERATIONS);
    };
    let panic = catch_unwind(AssertUnwindSafe(storm)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.unwrap_or_else(|| "a panic without a message".into()))
}

/// Number of seeds until a defect is found.
fn nr_seeds(defect: Defect) -> u64 {
    let first = (0..NR_SEEDS).find_map(|seed| found(seed, Some(defect)).map(|text| (seed, text)));
    let (seed, text) = first.unwrap_or_else(|| panic!("{defect:?} is not found"));
    println!("{defect:?}: seed {seed}: {text}");
    seed + 1
}

/// The same seeds without a defect find nothing, so the defect is what they find.
#[test]
fn storms_find_what_is_planted_and_nothing_else() {
    let defects = [Defect::ForgottenPage, Defect::SkippedCopy, Defect::LeakedCharge];
    let seeds = defects.map(nr_seeds).into_iter().max().unwrap();
    for seed in 0..seeds {
        assert_eq!(found(seed, None), None, "seed {seed}");
    }
}
