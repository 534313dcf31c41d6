//! What to run: a scenario's variants times its seeds.

use pagetide_scenario::model::Scenario;

/// Most repeats of one variant: beyond this the mean does not move and the records fill memory.
pub const MAX_REPEATS: u32 = 10_000;

/// A scenario with the variants, seeds and repeats that were asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario; `variants`, `seed` and `repeats` are those that will run.
    pub scenario: Scenario,
    /// Overrides that made this scenario out of the file, for the report: (`vm.swappiness`, `10`).
    pub overrides: Vec<(String, String)>,
}

/// What the user may choose besides the file.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Variants by name, in the order of the columns; empty means all.
    pub variants: Vec<String>,
    /// First seed.
    pub seed: Option<u64>,
    /// Number of seeds.
    pub repeats: Option<u32>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Index into the plan's variants.
    pub variant: usize,
    /// Its seed.
    pub seed: u64,
}

/// A choice that the scenario cannot meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No variant has that name.
    #[error("scenario `{scenario}` has no variant `{name}`")]
    UnknownVariant {
        /// The scenario.
        scenario: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Zero or too many repeats.
    #[error("cannot repeat {0} times")]
    Repeats(u32),
    /// The last seed does not fit 64 bits.
    #[error("seeds starting at {seed} end beyond 2^64 - 1 after {repeats} repeats")]
    SeedRange {
        /// First seed.
        seed: u64,
        /// Number of seeds.
        repeats: u32,
    },
}

impl PlanError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            PlanError::UnknownVariant { known, .. } => {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                format!("its variants are {}", known.join(", "))
            }
            PlanError::Repeats(_) => format!("give a number from 1 to {MAX_REPEATS}"),
            PlanError::SeedRange { .. } => "choose a smaller first seed".to_owned(),
        }
    }
}

impl Plan {
    /// Applies `choice` to `scenario`.
    pub fn new(mut scenario: Scenario, choice: &Choice) -> Result<Plan, PlanError> {
        let repeats = choice.repeats.unwrap_or(scenario.repeats);
        if !(1..=MAX_REPEATS).contains(&repeats) {
            return Err(PlanError::Repeats(repeats));
        }
        let seed = choice.seed.unwrap_or(scenario.seed);
        if seed.checked_add(u64::from(repeats) - 1).is_none() {
            return Err(PlanError::SeedRange { seed, repeats });
        }
        if !choice.variants.is_empty() {
            let mut chosen = Vec::new();
            for (i, name) in choice.variants.iter().enumerate() {
                if choice.variants[..i].contains(name) {
                    continue; // asked for twice: one column
                }
                let Some(variant) = scenario.variants.iter().find(|v| v.name == *name) else {
                    return Err(PlanError::UnknownVariant {
                        scenario: scenario.name,
                        name: name.clone(),
                        known: scenario.variants.into_iter().map(|v| v.name).collect(),
                    });
                };
                chosen.push(variant.clone());
            }
            scenario.variants = chosen;
        }
        scenario.repeats = repeats;
        scenario.seed = seed;
        Ok(Plan { scenario, overrides: Vec::new() })
    }

    /// All runs, seed by seed: whoever stops early has every variant about equally often.
    pub fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for seed in self.seeds() {
            for variant in 0..self.scenario.variants.len() {
                jobs.push(Job { variant, seed });
            }
        }
        jobs
    }

    /// The seeds of each variant, ascending.
    pub fn seeds(&self) -> std::ops::RangeInclusive<u64> {
        let first = self.scenario.seed;
        first..=first + (u64::from(self.scenario.repeats) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scenario;

    fn choice(variants: &[&str]) -> Choice {
        Choice { variants: variants.iter().map(|&v| v.to_owned()).collect(), ..Choice::default() }
    }

    #[test]
    fn the_users_order_is_the_order_of_columns() {
        let plan = Plan::new(scenario(&["a", "b", "c"]), &choice(&["c", "a", "c"])).unwrap();
        let names: Vec<&str> = plan.scenario.variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["c", "a"]);
    }

    #[test]
    fn an_unknown_variant_lists_the_known() {
        let error = Plan::new(scenario(&["a", "b"]), &choice(&["d"])).unwrap_err();
        assert_eq!(error.to_string(), "scenario `fake` has no variant `d`");
        assert_eq!(error.hint(), "its variants are `a`, `b`");
    }

    #[test]
    fn seeds_and_repeats_are_bounded() {
        let with = |seed, repeats| {
            let choice = Choice { seed: Some(seed), repeats: Some(repeats), ..Choice::default() };
            Plan::new(scenario(&["a"]), &choice)
        };
        assert!(with(1, 0).is_err());
        assert!(with(1, MAX_REPEATS + 1).is_err());
        assert!(with(u64::MAX, 2).is_err());
        assert_eq!(with(u64::MAX - 1, 2).unwrap().seeds().count(), 2);
    }

    #[test]
    fn jobs_go_seed_by_seed() {
        let mut base = scenario(&["a", "b"]);
        base.repeats = 2;
        let jobs = Plan::new(base, &Choice::default()).unwrap().jobs();
        let pairs: Vec<(usize, u64)> = jobs.iter().map(|j| (j.variant, j.seed)).collect();
        assert_eq!(pairs, [(0, 1), (1, 1), (0, 2), (1, 2)]);
    }
}
