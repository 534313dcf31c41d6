//! The memcg LRU: which group global reclaim takes from next.
//!
//! Linux: `struct lru_gen_memcg` (mmzone.h), `lru_gen_online_memcg`, `lru_gen_rotate_memcg`
//! (mm/vmscan.c, 6.12; since 6.3). Groups have generations, too: three on each node, in eight bins
//! each. A walk visits the groups of the oldest generation, from a random bin on
//! (`reclaim/shrink_node/shrink_many`). The result of a visit decides where the group goes
//! ([`Rotation`]). So concurrent reclaimers begin at different groups, and a walk need not visit
//! all of them to be fair.
//!
//! Invariant: each group that was not removed is in one bin of each node; its entry names the bin.

use crate::units::digest::State;
use crate::units::scramble::scramble;
use crate::units::{IdVec, MemcgId};
use alloc::collections::VecDeque;

/// Generations of groups (Linux `MEMCG_NR_GENS`).
const MEMCG_NR_GENS: usize = 3;

/// Bins of a generation (Linux `MEMCG_NR_BINS`).
const MEMCG_NR_BINS: u8 = 8;

/// Where a group goes on the list (Linux `MEMCG_LRU_HEAD` and its neighbours).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) enum Rotation {
    /// To the front of its generation: it is above its soft limit.
    Head,
    /// To the back of its generation: it gets one more chance.
    Tail,
    /// To the youngest generation.
    Young,
}

/// A group's place on the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub(crate) struct ListedGroup {
    pub generation: u8,
    pub bin: u8,
    /// The last rotation, if the group has stayed in its generation (Linux `lru_gen_folio.seg`).
    pub segment: Option<Rotation>,
}

/// The groups of a node by generation.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct MemcgLru {
    /// Number of the oldest generation.
    seq: u64,
    bins: [[VecDeque<MemcgId>; MEMCG_NR_BINS as usize]; MEMCG_NR_GENS],
    /// Place of each group, by id.
    entries: IdVec<MemcgId, Option<ListedGroup>>,
    /// State of the generator that draws bins.
    draws: u64,
}

/// Position of a walk over one generation of groups.
#[derive(Clone, Copy, Debug, State)]
pub(crate) struct MemcgLruWalk {
    generation: u8,
    first_bin: u8,
    bin: u8,
    pub verdict: Verdict,
}

/// Result of the visit of a group.
#[derive(Clone, Copy, Debug, State)]
pub(crate) enum Verdict {
    /// The plan leaves the group out.
    Skipped(Rotation),
    /// It was scanned, and has no old pages left.
    Aged,
    /// It was scanned.
    Scanned,
}

/// Generation of groups with a number (Linux `get_memcg_gen`).
const fn memcg_gen(seq: u64) -> u8 {
    (seq % MEMCG_NR_GENS as u64) as u8
}

impl MemcgLru {
    /// An empty list. `seed` decides which bins it draws.
    pub(crate) fn new(seed: u64) -> MemcgLru {
        MemcgLru { draws: scramble(seed), ..MemcgLru::default() }
    }

    /// The oldest generation.
    pub(crate) fn oldest(&self) -> u8 {
        memcg_gen(self.seq)
    }

    /// Begins a walk over the oldest generation. Returns its first group, too.
    pub(crate) fn begin_walk(&mut self) -> (MemcgLruWalk, Option<MemcgId>) {
        let (generation, bin) = (self.oldest(), self.draw_bin());
        let verdict = Verdict::Scanned;
        let mut walk = MemcgLruWalk { generation, first_bin: bin, bin, verdict };
        let first = self.first_of(generation, bin);
        let first = first.or_else(|| self.first_of_next_bins(&mut walk));
        (walk, first)
    }

    /// The first group of the walk's next bins; `None`: the walk has ended.
    pub(crate) fn first_of_next_bins(&self, walk: &mut MemcgLruWalk) -> Option<MemcgId> {
        loop {
            walk.bin = (walk.bin + 1) % MEMCG_NR_BINS;
            if walk.bin == walk.first_bin {
                return None;
            }
            if let Some(first) = self.first_of(walk.generation, walk.bin) {
                return Some(first);
            }
        }
    }

    /// Ends the visit of a group: rotates it, and returns the next one.
    pub(crate) fn end_visit(
        &mut self,
        walk: &mut MemcgLruWalk,
        id: MemcgId,
        rotation: Option<Rotation>,
    ) -> Option<MemcgId> {
        // Another reclaimer may have moved the group to another generation: the bin begins again.
        let is_here = self.entry(id).is_some_and(|at| at.generation == walk.generation);
        let next = if is_here { self.after(id) } else { None };
        if let Some(rotation) = rotation {
            self.rotate(id, rotation);
        }
        let again = || self.first_of(walk.generation, walk.bin).filter(|_| !is_here);
        next.or_else(again).or_else(|| self.first_of_next_bins(walk))
    }

    /// A random bin.
    fn draw_bin(&mut self) -> u8 {
        self.draws = self.draws.wrapping_add(1);
        (scramble(self.draws) % u64::from(MEMCG_NR_BINS)) as u8
    }

    /// A group's place; `None` if it was removed.
    pub(crate) fn entry(&self, id: MemcgId) -> Option<ListedGroup> {
        self.entries.get(id.idx()).copied().flatten()
    }

    /// The first group of a bin.
    pub(crate) fn first_of(&self, generation: u8, bin: u8) -> Option<MemcgId> {
        self.bins[usize::from(generation)][usize::from(bin)].front().copied()
    }

    /// The group after another one in its bin.
    pub(crate) fn after(&self, id: MemcgId) -> Option<MemcgId> {
        let at = self.entry(id)?;
        let bin = &self.bins[usize::from(at.generation)][usize::from(at.bin)];
        bin.iter().skip_while(|&&other| other != id).nth(1).copied()
    }

    /// Adds a group to the oldest generation.
    pub(crate) fn add(&mut self, id: MemcgId) {
        let (generation, bin) = (self.oldest(), self.draw_bin());
        self.insert(id, ListedGroup { generation, bin, segment: None });
    }

    fn insert(&mut self, id: MemcgId, at: ListedGroup) {
        if self.entries.len() <= id.idx() {
            self.entries.resize(id.idx() + 1, None);
        }
        self.entries[id] = Some(at);
        let bin = &mut self.bins[usize::from(at.generation)][usize::from(at.bin)];
        match at.segment {
            Some(Rotation::Head) => bin.push_front(id),
            Some(Rotation::Tail | Rotation::Young) | None => bin.push_back(id),
        }
    }

    /// Removes a group. The oldest generation ends with its last group.
    pub(crate) fn remove(&mut self, id: MemcgId) {
        self.take_out(id);
        self.end_empty_generation();
    }

    fn take_out(&mut self, id: MemcgId) -> Option<ListedGroup> {
        let at = self.entries.get_mut(id.idx())?.take()?;
        self.bins[usize::from(at.generation)][usize::from(at.bin)].retain(|&other| other != id);
        Some(at)
    }

    fn end_empty_generation(&mut self) {
        let oldest = usize::from(self.oldest());
        if self.bins[oldest].iter().all(VecDeque::is_empty) {
            self.seq += 1;
        }
    }

    /// Moves a group (Linux `lru_gen_rotate_memcg`).
    pub(crate) fn rotate(&mut self, id: MemcgId, rotation: Rotation) {
        let Some(at) = self.take_out(id) else { return };
        let (generation, segment) = match rotation {
            Rotation::Head | Rotation::Tail => (at.generation, Some(rotation)),
            Rotation::Young => (memcg_gen(self.seq + 1), None),
        };
        let bin = self.draw_bin();
        self.insert(id, ListedGroup { generation, bin, segment });
        self.end_empty_generation();
    }

    /// Whether the entries name the bins of exactly these groups.
    pub(crate) fn holds(&self, groups: impl Iterator<Item = MemcgId>) -> bool {
        let mut nr_groups = 0;
        let all_named = groups.inspect(|_| nr_groups += 1).all(|id| {
            self.entry(id).is_some_and(|at| {
                self.bins[usize::from(at.generation)][usize::from(at.bin)].contains(&id)
            })
        });
        all_named && nr_groups == self.bins.iter().flatten().map(VecDeque::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_keeps_its_place_until_it_is_rotated() {
        let mut list = MemcgLru::default();
        (0..40).for_each(|id| list.add(MemcgId(id)));
        let all = || (0..40).map(MemcgId);
        assert!(list.holds(all()));
        let oldest = list.oldest();
        // The oldest generation ends with its last group.
        for id in 0..39 {
            list.rotate(MemcgId(id), Rotation::Young);
            assert!(list.holds(all()) && list.oldest() == oldest);
        }
        list.rotate(MemcgId(39), Rotation::Tail);
        assert_eq!(list.entry(MemcgId(39)).unwrap().generation, oldest);
        list.remove(MemcgId(39));
        assert!(list.holds((0..39).map(MemcgId)) && list.oldest() != oldest);
        list.rotate(MemcgId(7), Rotation::Head);
        let at = list.entry(MemcgId(7)).unwrap();
        assert_eq!(list.first_of(at.generation, at.bin), Some(MemcgId(7)));
        assert_eq!(at.generation, list.oldest());
    }
}
