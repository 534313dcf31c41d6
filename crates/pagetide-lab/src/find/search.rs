//! The search for a value: which runs are needed next, given the results so far.
//!
//! The search knows places of values (0, 1, 2 ...), seeds, and for each run whether the criterion
//! held. [`ValueSearch::next_step`] returns the runs that it needs; [`ValueSearch::add_result`]
//! takes their results, in any order. It runs nothing.
//!
//! 1. The unchanged scenario, and a coarse grid on the first of the shared seeds. The grid shows
//!    whether the criterion is monotone: along the knob the number of seeds in which it holds may
//!    rise or fall, but not both by two seeds or more.
//! 2. Bisection on all shared seeds, between the last value of the grid that fails and the first
//!    that meets the criterion. Every value is run with the same seeds.
//! 3. Confirmation on as many fresh seeds, because the shared ones chose the value. If a value
//!    fails there, the next one is tried with other fresh seeds, because the first ones chose it.
//!
//! Invariant: a value fails only by all its shared seeds, or by so many of them that the others
//! cannot change the result. The runs needed depend only on the results, not on their order. At
//! most [`PLACES_MAX`] values are tried, including the unchanged scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Most values of a search.
pub const PLACES_MAX: usize = 15;
/// Values of the coarse grid.
const GRID: usize = 7;
/// Seeds of the coarse grid.
const GRID_SEEDS: u32 = 6;
/// Most values that may fail on fresh seeds before the search gives up.
pub const MOVES: u32 = 3;

/// The settings of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchPlace {
    /// The unchanged scenario.
    Before,
    /// The value with this index.
    At(usize),
}

/// Which of the values that meet the criterion is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedEnd {
    Smallest,
    Largest,
}

/// Parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchTask {
    /// Number of values, in ascending order.
    pub values: usize,
    pub wanted: WantedEnd,
    /// Share of the seeds in which the criterion must hold.
    pub share: f64,
    /// First seed.
    pub seed: u64,
    /// Number of shared seeds, and of fresh seeds.
    pub seeds: u32,
    /// Whether a run is compared with the unchanged scenario with the same seed
    /// ([`ValueSearch::compare`]).
    pub is_relative: bool,
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchStep {
    /// These runs are needed.
    Run(Vec<(SearchPlace, u64)>),
    /// The search has ended.
    Done(SearchOutcome),
}

/// Number of runs in which the criterion held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SeedCount {
    /// Runs in which the criterion holds.
    pub held: u32,
    /// All runs.
    pub of: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SearchOutcome {
    Found(SearchResult),
    /// No value meets the criterion.
    Nothing {
        /// Place of the nearest value.
        best: usize,
    },
    /// Along the knob the criterion holds, fails and holds again.
    NotMonotone {
        /// The first value of the grid that meets the criterion, run on fresh seeds.
        found: Option<SearchResult>,
    },
}

/// A value that meets the criterion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchResult {
    pub place: usize,
    pub shared: SeedCount,
    pub fresh: SeedCount,
    /// Whether the criterion is met on the fresh seeds, too.
    pub is_confirmed: bool,
    /// The next place that fails; `None`: all up to the end of the range meet the criterion.
    pub failing: Option<usize>,
    /// Whether every value of the grid meets the criterion, and fresh seeds confirm the end.
    pub all: bool,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct ValueSearch {
    task: SearchTask,
    held: BTreeMap<(SearchPlace, u64), bool>,
}

/// Runs that are missing.
type Missing = Vec<(SearchPlace, u64)>;

impl ValueSearch {
    /// # Panics
    /// Without values or seeds.
    pub fn new(task: SearchTask) -> ValueSearch {
        assert!(task.values > 0 && task.seeds > 0, "nothing to search");
        ValueSearch { task, held: BTreeMap::new() }
    }

    pub fn task(&self) -> &SearchTask {
        &self.task
    }

    /// Takes the result of a run.
    pub fn add_result(&mut self, place: SearchPlace, seed: u64, held: bool) {
        self.held.insert((place, seed), held);
    }

    /// From now on, fresh seeds also need runs of the unchanged scenario.
    pub fn compare(&mut self) {
        self.task.is_relative = true;
    }

    /// The next step.
    pub fn next_step(&self) -> SearchStep {
        match self.walk() {
            Ok(outcome) => SearchStep::Done(outcome),
            Err(missing) => SearchStep::Run(missing),
        }
    }

    /// The seeds that all values share.
    pub fn shared(&self) -> RangeInclusive<u64> {
        self.task.seed..=self.task.seed + u64::from(self.task.seeds - 1)
    }

    /// The seeds that confirm the first chosen value.
    pub fn fresh(&self) -> RangeInclusive<u64> {
        self.fresh_after(0)
    }

    /// The seeds that confirm the value after `moves` failed confirmations.
    pub fn fresh_after(&self, moves: u32) -> RangeInclusive<u64> {
        let seeds = u64::from(self.task.seeds);
        let first = self.task.seed + seeds * u64::from(moves + 1);
        first..=first + seeds - 1
    }

    /// About how many runs the search takes: the unchanged scenario, the grid on its first seeds,
    /// its best value and the values of the bisection on all seeds, the confirmation.
    pub fn nr_runs_expected(&self) -> usize {
        let grid = self.grid();
        let gap = grid.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1);
        let halvings = gap.next_power_of_two().ilog2() as usize;
        let halvings = halvings.min(PLACES_MAX.saturating_sub(grid.len() + 1));
        let seeds = self.task.seeds as usize;
        let first = seeds.min(GRID_SEEDS as usize);
        seeds + grid.len() * first + (seeds - first) + (halvings + 1) * seeds
    }

    /// The last seed of all runs.
    pub fn last_seed(&self) -> u64 {
        self.held.keys().map(|(_, seed)| *seed).max().unwrap_or(self.task.seed)
    }

    /// The values of the coarse grid, ascending.
    pub fn grid(&self) -> Vec<usize> {
        crate::knob::spread(self.task.values - 1, GRID)
    }

    /// The values tried, ascending, with the counts of all their runs.
    pub fn tried(&self) -> Vec<(usize, SeedCount)> {
        let at = |(place, _): &(SearchPlace, u64)| match place {
            SearchPlace::At(at) => Some(*at),
            SearchPlace::Before => None,
        };
        let places: BTreeSet<usize> = self.held.keys().filter_map(at).collect();
        places.into_iter().map(|at| (at, self.count_all(SearchPlace::At(at)))).collect()
    }

    /// Counts of the runs of a place with these seeds.
    pub fn count(&self, place: SearchPlace, seeds: RangeInclusive<u64>) -> SeedCount {
        let runs = self.held.range((place, *seeds.start())..=(place, *seeds.end()));
        let (mut held, mut of) = (0, 0);
        for (_, is_held) in runs {
            held += u32::from(*is_held);
            of += 1;
        }
        SeedCount { held, of }
    }

    /// Counts of all runs of a place.
    pub fn count_all(&self, place: SearchPlace) -> SeedCount {
        self.count(place, self.task.seed..=u64::MAX)
    }

    /// Whether `count` reaches the wanted share.
    pub fn is_met(&self, count: SeedCount) -> bool {
        // 0.95 of 20 is 19, despite rounding.
        let needed = (self.task.share * f64::from(count.of) - 1e-9).ceil();
        count.of > 0 && f64::from(count.held) >= needed
    }

    /// Whether all shared seeds can still meet the criterion, given the first few.
    fn may_be_met(&self, few: SeedCount) -> bool {
        let failed = few.of - few.held;
        self.is_met(SeedCount { held: self.task.seeds - failed, of: self.task.seeds })
    }

    fn first_seeds(&self) -> RangeInclusive<u64> {
        self.task.seed..=self.task.seed + u64::from(self.task.seeds.min(GRID_SEEDS) - 1)
    }

    /// `Err`: the missing runs.
    fn need(&self, places: &[SearchPlace], seeds: RangeInclusive<u64>) -> Result<(), Missing> {
        let pairs = places.iter().flat_map(|place| seeds.clone().map(|seed| (*place, seed)));
        let missing: Missing = pairs.filter(|run| !self.held.contains_key(run)).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(missing)
        }
    }

    /// The place at this position from the wanted end.
    fn place(&self, position: usize) -> usize {
        match self.task.wanted {
            WantedEnd::Smallest => position,
            WantedEnd::Largest => self.task.values - 1 - position,
        }
    }

    fn all(&self, position: usize) -> Result<SeedCount, Missing> {
        let place = SearchPlace::At(self.place(position));
        self.need(&[place], self.shared())?;
        Ok(self.count(place, self.shared()))
    }

    /// Replays the search from its start, as far as results allow.
    fn walk(&self) -> Result<SearchOutcome, Missing> {
        self.need(&[SearchPlace::Before], self.shared())?;
        // Positions count from the wanted end, so that the first one that meets the criterion is
        // wanted.
        let mut grid: Vec<usize> = self.grid().into_iter().map(|at| self.place(at)).collect();
        grid.sort_unstable();
        let places: Vec<SearchPlace> =
            grid.iter().map(|&at| SearchPlace::At(self.place(at))).collect();
        self.need(&places, self.first_seeds())?;
        let counts: Vec<SeedCount> =
            places.iter().map(|&place| self.count(place, self.first_seeds())).collect();
        if !is_monotone(&counts) {
            return self.first_of_not_monotone(&grid, &counts);
        }
        let met: Vec<bool> = counts.iter().map(|&count| self.is_met(count)).collect();
        let best = (0..grid.len()).max_by_key(|&i| (counts[i].held, std::cmp::Reverse(i)));
        let best = best.unwrap_or(0);
        // One of the few seeds may fail although the share of all seeds is met: so the best value
        // and those that may be as good are run with all seeds.
        let is_near = |i: &usize| {
            let count = counts[*i];
            count.held > 0 && count.held + 1 >= counts[best].held && self.may_be_met(count)
        };
        let surely = (0..grid.len()).filter(|i| met[*i]);
        let maybe = (0..grid.len()).filter(|i| !met[*i] && *i != best).filter(is_near);
        for i in surely.chain([best]).chain(maybe) {
            if self.is_met(self.all(grid[i])?) {
                let first = self.step_back(&grid, &counts, i)?;
                let failing = first.checked_sub(1).map(|i| grid[i]);
                let found = self.bisect(failing, grid[first])?;
                let all = met.iter().all(|met| *met) && found.failing.is_none();
                return Ok(SearchOutcome::Found(SearchResult {
                    all: all && found.is_confirmed,
                    ..found
                }));
            }
        }
        Ok(SearchOutcome::Nothing { best: self.place(grid[best]) })
    }

    /// The first value of the grid from which on all values up to `i` meet the criterion, on all
    /// shared seeds.
    fn step_back(
        &self,
        grid: &[usize],
        counts: &[SeedCount],
        mut i: usize,
    ) -> Result<usize, Missing> {
        while i > 0 && self.may_be_met(counts[i - 1]) && self.is_met(self.all(grid[i - 1])?) {
            i -= 1;
        }
        Ok(i)
    }

    /// Bisects between a position that fails and one that meets the criterion.
    fn bisect(&self, mut failing: Option<usize>, mut met: usize) -> Result<SearchResult, Missing> {
        while let Some(low) = failing.filter(|low| met - low > 1) {
            let middle = low + (met - low) / 2;
            if !self.may_try(middle) {
                break;
            }
            if self.is_met(self.all(middle)?) {
                met = middle;
            } else {
                failing = Some(middle);
            }
        }
        self.confirm(failing, met)
    }

    /// Runs a position on fresh seeds, and the next positions if it fails there.
    fn confirm(&self, mut failing: Option<usize>, mut met: usize) -> Result<SearchResult, Missing> {
        for moves in 0.. {
            let place = SearchPlace::At(self.place(met));
            let seeds = self.fresh_after(moves);
            if self.task.is_relative {
                self.need(&[SearchPlace::Before, place], seeds.clone())?;
            } else {
                self.need(&[place], seeds.clone())?;
            }
            let (shared, fresh) = (self.all(met)?, self.count(place, seeds));
            let is_confirmed = self.is_met(fresh) && self.is_met(shared);
            let next = met + 1;
            let is_last = moves == MOVES || next == self.task.values || !self.may_try(next);
            if is_confirmed || is_last {
                return Ok(SearchResult {
                    place: self.place(met),
                    shared,
                    fresh,
                    is_confirmed,
                    failing: failing.map(|at| self.place(at)),
                    all: false,
                });
            }
            failing = Some(met);
            met = next;
        }
        unreachable!("the last move returns")
    }

    /// The first value of the grid that meets the criterion, although later ones do not.
    fn first_of_not_monotone(
        &self,
        grid: &[usize],
        counts: &[SeedCount],
    ) -> Result<SearchOutcome, Missing> {
        for (i, (&at, &count)) in grid.iter().zip(counts).enumerate() {
            if self.may_be_met(count) && self.is_met(self.all(at)?) {
                let place = SearchPlace::At(self.place(at));
                if self.task.is_relative {
                    self.need(&[SearchPlace::Before], self.fresh())?;
                }
                self.need(&[place], self.fresh())?;
                let fresh = self.count(place, self.fresh());
                let found = SearchResult {
                    place: self.place(at),
                    shared: self.count(place, self.shared()),
                    fresh,
                    is_confirmed: self.is_met(fresh),
                    failing: i.checked_sub(1).map(|i| self.place(grid[i])),
                    all: false,
                };
                return Ok(SearchOutcome::NotMonotone { found: Some(found) });
            }
        }
        Ok(SearchOutcome::NotMonotone { found: None })
    }

    /// Whether the position was tried, or one more value may be. [`SearchPlace::Before`] counts as
    /// one.
    fn may_try(&self, position: usize) -> bool {
        let place = self.place(position);
        let known = self.tried();
        known.iter().any(|(at, _)| *at == place) || known.len() + 1 < PLACES_MAX
    }
}

/// Whether the counts only rise or only fall along the knob; one seed may differ by chance.
fn is_monotone(counts: &[SeedCount]) -> bool {
    let slack = if counts.first().is_some_and(|count| count.of >= 3) { 2 } else { 1 };
    let (mut rises, mut falls) = (false, false);
    for (i, earlier) in counts.iter().enumerate() {
        for later in &counts[i + 1..] {
            rises |= later.held >= earlier.held + slack;
            falls |= earlier.held >= later.held + slack;
        }
    }
    !(rises && falls)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
