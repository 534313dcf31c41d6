//! Kernel objects: the units of an object mix, one after another.
//!
//! Objects are stored in slots of the task; a freed slot is reused before a new one, so that the
//! slots stay dense. The lifetime of an object is drawn when the object is allocated
//! (docs/scenario.md, "kernel-objects").
//!
//! Invariant: a slot is either free, waiting for its age, waiting for the end of the unit, or kept.

use super::cursor::{Cursor, Generator};
use super::plan::{PhaseStage, Planner};
use super::state::{ProgramState, UnitsState};
use crate::draws::prng::SplitMix64;
use crate::model::object_mix::{KernelCache, Lifetimes, ObjectRow, SHARES, WITHIN};
#[cfg(doc)]
use crate::model::Setup;
use crate::op::Op;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Allocations between two uses of the CPU.
const ALLOCS_A_COMPUTE: u64 = 8;
/// Largest number of kept objects of a task; further ones are freed at the end of the unit.
const KEPT_MAX: u32 = 1 << 24;

/// The rows that units consist of.
#[derive(Debug)]
pub(crate) struct Units {
    rows: Arc<[UnitRow]>,
    units: u32,
    interval_ns: u64,
    compute_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct UnitRow {
    /// Index into [`Setup::caches`].
    cache: u32,
    account: bool,
    allocs_thousandths: u64,
    lifetimes: Lifetimes,
    /// A shrinker can free objects left behind by the unit.
    is_shrinkable: bool,
}

impl Units {
    /// Units of these rows. The setup must contain all caches of the rows.
    pub(super) fn new(
        planner: &Planner<'_>,
        rows: &[ObjectRow],
        units: u32,
        interval_ns: u64,
        compute_ns: u64,
    ) -> Units {
        let row = |row: &ObjectRow| {
            let cache = planner.caches.iter().position(|cache| *cache == row.cache);
            UnitRow {
                cache: cache.expect("a mix has its caches in the setup") as u32,
                account: row.account,
                allocs_thousandths: row.allocs_thousandths,
                lifetimes: row.lifetimes,
                is_shrinkable: is_shrinkable(&row.cache),
            }
        };
        Units { rows: rows.iter().map(row).collect(), units, interval_ns, compute_ns }
    }
}

pub(super) fn stage(units: Units) -> PhaseStage {
    PhaseStage::run(move |state, _| match state.objects.take() {
        Some(objects) => Box::new(UnitObjects::new(&units, objects)).into(),
        None => Cursor::Idle,
    })
}

/// Dentries and inodes, with lists and shrinkers of their own; dependent objects go with them.
fn is_shrinkable(cache: &KernelCache) -> bool {
    cache.reclaimable && (cache.name == "dentry" || cache.name.ends_with("_inode_cache"))
}

#[derive(Clone, Copy, Debug)]
enum UnitStep {
    Between,
    Within,
    Ending,
}

/// Lifetime of an object.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Freed after this many further allocations.
    Age(u64),
    Unit,
    Cached,
    Kept,
}

/// Progress of a row.
#[derive(Debug)]
struct RowProgress {
    row: UnitRow,
    /// Thousandths of an allocation that earlier units left over.
    carry: u64,
    /// Allocations that this unit still makes.
    left: u64,
}

/// Generates the units of one mix.
#[derive(Debug)]
pub(super) struct UnitObjects {
    state: UnitsState,
    rows: Vec<RowProgress>,
    units_left: u32,
    interval_ns: u64,
    compute_ns: u64,
    /// CPU time still due in this unit.
    compute_left: u64,
    step: UnitStep,
    /// Sum of the rows' `left`.
    left: u64,
    /// Allocations of this unit so far.
    count: u64,
    /// (count at which to free, slot).
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// (slot, left to the kernel), in the order of allocation.
    at_end: Vec<(u32, bool)>,
    /// Number of entries of `at_end` already handled.
    ended: usize,
}

impl UnitObjects {
    pub(super) fn new(units: &Units, mut state: UnitsState) -> Self {
        // Rows with less than one allocation per unit start at different points.
        let progress =
            |row: &UnitRow| RowProgress { row: *row, carry: state.prng.below(1000), left: 0 };
        let rows = units.rows.iter().map(progress).collect();
        Self {
            state,
            rows,
            units_left: units.units,
            interval_ns: units.interval_ns,
            compute_ns: units.compute_ns,
            compute_left: 0,
            step: UnitStep::Between,
            left: 0,
            count: 0,
            due: BinaryHeap::new(),
            at_end: Vec::new(),
            ended: 0,
        }
    }

    /// The next operation, except those that end a unit.
    pub(super) fn next_op_within(&mut self) -> Option<Op> {
        match self.step {
            UnitStep::Within if self.left == 0 => None,
            UnitStep::Ending => None,
            UnitStep::Between | UnitStep::Within => self.next_op(),
        }
    }

    /// CPU time due before the next allocation, in proportion to the allocations done.
    fn compute(&mut self) -> Option<u64> {
        if self.compute_left == 0 || !self.count.is_multiple_of(ALLOCS_A_COMPUTE) && self.left > 0 {
            return None;
        }
        let total = self.count + self.left;
        let after = u128::from(self.compute_ns) * u128::from(self.left) / u128::from(total.max(1));
        let ns = self.compute_left.saturating_sub(after as u64);
        self.compute_left -= ns;
        (ns > 0).then_some(ns)
    }

    fn begin(&mut self) {
        self.compute_left = self.compute_ns;
        (self.step, self.left, self.count, self.ended) = (UnitStep::Within, 0, 0, 0);
        self.at_end.clear();
        for progress in &mut self.rows {
            let thousandths = progress.carry + progress.row.allocs_thousandths;
            (progress.left, progress.carry) = (thousandths / 1000, thousandths % 1000);
            self.left += progress.left;
        }
    }

    fn free(&mut self, slot: u32) -> Op {
        self.state.free.push(slot);
        Op::FreeObject { slot }
    }

    /// Allocates an object of a row drawn with the probability of its remaining allocations.
    fn alloc(&mut self) -> Op {
        let mut drawn = self.state.prng.below(self.left);
        let mut chosen = 0;
        while drawn >= self.rows[chosen].left {
            drawn -= self.rows[chosen].left;
            chosen += 1;
        }
        let progress = &mut self.rows[chosen];
        progress.left -= 1;
        let row = progress.row;
        self.left -= 1;
        self.count += 1;
        let slot = self.state.take_slot();
        match draw_fate(&row, &mut self.state.prng) {
            Fate::Age(age) => self.due.push(Reverse((self.count + age, slot))),
            Fate::Cached if row.is_shrinkable => self.at_end.push((slot, true)),
            Fate::Cached | Fate::Kept if self.state.nr_kept < KEPT_MAX => self.state.nr_kept += 1,
            Fate::Unit | Fate::Cached | Fate::Kept => self.at_end.push((slot, false)),
        }
        Op::AllocObject { slot, cache: row.cache, account: row.account }
    }
}

impl Generator for UnitObjects {
    fn next_op(&mut self) -> Option<Op> {
        loop {
            match self.step {
                UnitStep::Between => {
                    self.units_left = self.units_left.checked_sub(1)?;
                    self.begin();
                    if self.interval_ns > 0 {
                        return Some(Op::Pace { ns: self.interval_ns });
                    }
                }
                UnitStep::Within => {
                    if let Some(&Reverse((due, slot))) = self.due.peek() {
                        if due <= self.count {
                            self.due.pop();
                            return Some(self.free(slot));
                        }
                    }
                    if let Some(ns) = self.compute() {
                        return Some(Op::Compute { ns });
                    }
                    if self.left > 0 {
                        return Some(self.alloc());
                    }
                    self.step = UnitStep::Ending;
                }
                UnitStep::Ending => {
                    if let Some(Reverse((_, slot))) = self.due.pop() {
                        return Some(self.free(slot));
                    }
                    if let Some(&(slot, is_cached)) = self.at_end.get(self.ended) {
                        self.ended += 1;
                        let free = self.free(slot);
                        return Some(if is_cached { Op::CacheObject { slot } } else { free });
                    }
                    self.step = UnitStep::Between;
                }
            }
        }
    }

    fn end(self: Box<Self>, state: &mut ProgramState) {
        state.objects = Some(self.state);
    }
}

fn draw_fate(row: &UnitRow, prng: &mut SplitMix64) -> Fate {
    let Lifetimes { within, unit, cached, .. } = row.lifetimes;
    let mut drawn = prng.below(u64::from(SHARES)) as u16;
    let mut first = 0;
    for (share, last) in within.into_iter().zip(WITHIN.map(u64::from)) {
        if drawn < share {
            return Fate::Age(first + prng.below(last - first + 1));
        }
        drawn -= share;
        first = last + 1;
    }
    if drawn < unit {
        Fate::Unit
    } else if drawn - unit < cached {
        Fate::Cached
    } else {
        Fate::Kept
    }
}
