//! The runs of a scenario: its variants times its seeds.

use pagetide_scenario::load::AddedVariant;
use pagetide_scenario::model::Scenario;
use std::ops::RangeInclusive;

/// Most repeats of one variant: more do not change the mean, and their records fill memory.
pub const MAX_REPEATS: u32 = 10_000;

/// A scenario with checked numbers of runs.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Its variants, first seed and repeats are those that will run.
    pub scenario: Scenario,
    /// `--set` changes to the file, for the report: (`machine.cpus`, `4`).
    pub overrides: Vec<(String, String)>,
    /// Variants that are not in the file. Another process that reads the file needs them.
    pub added: Vec<AddedVariant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunJob {
    /// Index into the scenario's variants.
    pub variant: usize,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("cannot repeat {0} times")]
    Repeats(u32),
    /// The last seed does not fit 64 bits.
    #[error("seeds from {seed} end beyond 2^64 - 1 after {repeats} repeats")]
    Seeds {
        /// First seed.
        seed: u64,
        /// Number of seeds.
        repeats: u32,
    },
}

impl PlanError {
    pub fn hint(&self) -> String {
        match self {
            PlanError::Repeats(_) => format!("give a number from 1 to {MAX_REPEATS}"),
            PlanError::Seeds { .. } => "choose a smaller first seed".to_owned(),
        }
    }
}

impl RunPlan {
    /// Plans all variants of `scenario`, each with `repeats` seeds from the first on.
    pub fn new(scenario: Scenario) -> Result<RunPlan, PlanError> {
        let (seed, repeats) = (scenario.seed, scenario.repeats);
        if !(1..=MAX_REPEATS).contains(&repeats) {
            return Err(PlanError::Repeats(repeats));
        }
        if seed.checked_add(u64::from(repeats) - 1).is_none() {
            return Err(PlanError::Seeds { seed, repeats });
        }
        Ok(RunPlan { scenario, overrides: Vec::new(), added: Vec::new() })
    }

    /// All runs, seed by seed, so that after an early stop all variants have about the same number
    /// of runs.
    pub fn jobs(&self) -> Vec<RunJob> {
        let mut jobs = Vec::new();
        for seed in self.seeds() {
            for variant in 0..self.scenario.variants.len() {
                jobs.push(RunJob { variant, seed });
            }
        }
        jobs
    }

    /// The seeds of each variant, ascending.
    pub fn seeds(&self) -> RangeInclusive<u64> {
        let first = self.scenario.seed;
        first..=first + (u64::from(self.scenario.repeats) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scenario;

    #[test]
    fn seeds_and_repeats_are_bounded() {
        let with = |seed, repeats| {
            let mut scenario = scenario(&["a"]);
            (scenario.seed, scenario.repeats) = (seed, repeats);
            RunPlan::new(scenario)
        };
        assert_eq!(with(1, 0).unwrap_err(), PlanError::Repeats(0));
        assert!(with(1, MAX_REPEATS + 1).is_err());
        assert_eq!(with(u64::MAX, 2).unwrap_err(), PlanError::Seeds { seed: u64::MAX, repeats: 2 });
        assert_eq!(with(u64::MAX - 1, 2).unwrap().seeds().count(), 2);
    }

    #[test]
    fn jobs_go_seed_by_seed() {
        let mut base = scenario(&["a", "b"]);
        base.repeats = 2;
        let jobs = RunPlan::new(base).unwrap().jobs();
        let pairs: Vec<(usize, u64)> = jobs.iter().map(|j| (j.variant, j.seed)).collect();
        assert_eq!(pairs, [(0, 1), (1, 1), (0, 2), (1, 2)]);
    }
}
