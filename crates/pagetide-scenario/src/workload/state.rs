//! The state of a task that outlives a stage: its regions, draws, positions, slots of objects.

use crate::draws::prng::{sub_seed, Lcg, SplitMix64};
use crate::op::{Advice, RegionBacking};
use std::collections::BTreeMap;

/// State of a task that outlives a stage.
#[derive(Debug)]
pub(crate) struct ProgramState {
    pub(super) task: String,
    pub(super) seed: u64,
    pub(super) regions: Vec<TaskRegion>,
    /// One generator for each pair of regions that a working-set phase names.
    pub(super) generators: Vec<Accesses>,
    /// Position of the task's next write, by file.
    pub(super) positions: BTreeMap<usize, u64>,
    /// Draws of the task that belong to no region, by purpose.
    draws: BTreeMap<&'static str, SplitMix64>,
    /// Number of files or pipes made so far, by kind.
    pub(super) counts: BTreeMap<&'static str, u32>,
    /// Number of the first file or pipe that a phase made, by phase.
    pub(super) firsts: BTreeMap<u32, u32>,
    /// Slots and draws of kernel objects; the cursor owns them while it runs.
    pub(super) objects: Option<UnitsState>,
}

impl ProgramState {
    pub(super) fn new(task: &str, seed: u64) -> ProgramState {
        let mut state = ProgramState {
            task: task.to_owned(),
            seed,
            regions: Vec::new(),
            generators: Vec::new(),
            positions: BTreeMap::new(),
            draws: BTreeMap::new(),
            counts: BTreeMap::new(),
            firsts: BTreeMap::new(),
            objects: None,
        };
        state.objects = Some(UnitsState::new(state.draws("objects")));
        state
    }

    /// Number of a mapped region.
    pub(super) fn number(&self, region: usize) -> u32 {
        self.regions[region].number.unwrap_or_default()
    }

    /// Draws for `what`, continued over all phases of the task.
    pub(super) fn draws(&mut self, what: &'static str) -> SplitMix64 {
        let new = self.fresh(what);
        *self.draws.entry(what).or_insert(new)
    }

    /// Draws for `what`, from the start.
    pub(super) fn fresh(&self, what: &str) -> SplitMix64 {
        // No region has this name: names in scenarios contain no `#`.
        SplitMix64::new(sub_seed(self.seed, &format!("{}#{what}", self.task)))
    }

    pub(super) fn keep_draws(&mut self, what: &'static str, prng: SplitMix64) {
        self.draws.insert(what, prng);
    }
}

/// A named mapping of the task.
#[derive(Debug)]
pub(super) struct TaskRegion {
    pub(super) name: String,
    pub(super) backing: RegionBacking,
    pub(super) pages: u64,
    pub(super) advice: Advice,
    /// Its number, once mapped.
    pub(super) number: Option<u32>,
    /// Random and Zipf draws over this region.
    pub(super) prng: SplitMix64,
}

/// A working-set generator.
#[derive(Debug)]
pub(super) struct Accesses {
    /// The anonymous region and the file region.
    pub(super) regions: (Option<usize>, Option<usize>),
    pub(super) lcg: Lcg,
}

/// Slots of kernel objects, and the draws for them.
#[derive(Debug)]
pub(super) struct UnitsState {
    pub(super) prng: SplitMix64,
    pub(super) free: Vec<u32>,
    /// Number of slots ever used.
    nr_slots: u32,
    pub(super) nr_kept: u32,
}

impl UnitsState {
    pub(super) fn new(prng: SplitMix64) -> Self {
        Self { prng, free: Vec::new(), nr_slots: 0, nr_kept: 0 }
    }

    pub(super) fn take_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.nr_slots;
            self.nr_slots += 1;
            slot
        })
    }
}
