//! Moving pages to, between and off the LRU lists, in per-CPU batches.
//!
//! Linux: mm/swap.c. Additions, activations and rotations gather in batches of 15 pages per CPU
//! (`PAGEVEC_SIZE`; 31 since 6.9). They reach the lists when a batch is full or reclaim drains it. A page in an
//! activate or rotate batch has [`PageFlags::BATCHED`]. Like Linux's extra reference, this flag
//! keeps the page from being freed until the drain.
//!
//! Invariant: a page waiting to be added has [`Place::LruBatch`] and is in exactly one batch; a
//! BATCHED page is in exactly one activate or rotate batch.

use crate::ageing::lruvec::Lru;
use crate::ageing::pagevec::{PAGEVEC_SIZE, PAGEVEC_SIZE_6_9};
use crate::frames::page::{PageFlags, Place};
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::interface::planted::Defect;
use crate::stats::vmstat::Event;
use crate::units::{Cpu, MemcgId, NodeId, Pfn};
use alloc::vec::Vec;

impl Kernel {
    /// Whether a batch of so many pages goes to the lists.
    #[inline]
    const fn is_full(&self, batch: usize) -> bool {
        batch >= PAGEVEC_SIZE && (!self.era.gathers_31_pages || batch >= PAGEVEC_SIZE_6_9)
    }

    /// Adds a new page to the LRU, through the CPU's batch.
    pub(crate) fn folio_add_lru(&mut self, cpu: Cpu, pfn: Pfn) {
        debug_assert_eq!(self.mem.pages[pfn].place, Place::Allocated);
        let page = &mut self.mem.pages[pfn];
        page.place = Place::LruBatch;
        // None under the two lists: the page has just been used through a page table.
        page.set(self.step.fault_mark);
        // A huge page does not wait: a batch of huge pages would hide too much memory from reclaim.
        let huge = page.has(PageFlags::HEAD);
        let batch = &mut self.lru_batches[cpu].add;
        batch.push(pfn);
        let nr = batch.len();
        if huge || self.is_full(nr) {
            self.drain_add(cpu);
        }
    }

    /// Moves all pages of a CPU's batches to the lists (Linux `lru_add_drain_cpu`).
    pub(crate) fn lru_add_drain(&mut self, cpu: Cpu) {
        self.drain_add(cpu);
        self.drain_rotate(cpu);
        self.drain_activate(cpu);
    }

    pub(crate) fn lru_add_drain_all(&mut self) {
        for cpu in 0..self.lru_batches.len() {
            self.lru_add_drain(Cpu(cpu as u16));
        }
    }

    fn drain_add(&mut self, cpu: Cpu) {
        if self.lru_batches[cpu].add.is_empty() {
            return;
        }
        let mut batch = core::mem::take(&mut self.lru_batches[cpu].add);
        for pfn in batch.drain(..) {
            self.lruvec_add(pfn);
            if self.mem.pages[pfn].has(PageFlags::MLOCKED) {
                self.mem.note_culled(pfn);
            } else {
                self.note_added(pfn);
            }
        }
        self.lru_batches[cpu].add = batch;
    }

    fn drain_rotate(&mut self, cpu: Cpu) {
        if self.lru_batches[cpu].rotate.is_empty() {
            return;
        }
        let mut batch = core::mem::take(&mut self.lru_batches[cpu].rotate);
        for pfn in batch.drain(..) {
            self.mem.pages[pfn].clear(PageFlags::BATCHED);
            let page = &self.mem.pages[pfn];
            if page.place == Place::Lru {
                self.lruvec_remove(pfn);
                self.mem.pages[pfn].clear(PageFlags::ACTIVE);
                self.lruvec_add_tail(pfn);
                let nr = self.mem.pages[pfn].nr_pages();
                self.mem.vmstat.add(Event::Pgrotated, nr);
            }
        }
        self.lru_batches[cpu].rotate = batch;
    }

    fn drain_activate(&mut self, cpu: Cpu) {
        if self.lru_batches[cpu].activate.is_empty() {
            return;
        }
        let mut batch = core::mem::take(&mut self.lru_batches[cpu].activate);
        for pfn in batch.drain(..) {
            self.mem.pages[pfn].clear(PageFlags::BATCHED);
            let page = &self.mem.pages[pfn];
            if page.place == Place::Lru && !page.has(PageFlags::ACTIVE) {
                let (memcg, nr) = (page.memcg, page.nr_pages());
                self.lruvec_remove(pfn);
                self.mem.pages[pfn].set(PageFlags::ACTIVE);
                self.lruvec_add(pfn);
                self.note_added(pfn);
                self.mem.vmstat.add(Event::Pgactivate, nr);
                self.groups.memcgs[memcg].events.add(Event::Pgactivate, nr);
            }
        }
        self.lru_batches[cpu].activate = batch;
    }

    /// Before 5.8 a page that enters a list counts as scanned, and as rotated if the list is active
    /// (Linux `update_page_reclaim_stat`).
    fn note_added(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        let (memcg, at, file) = (page.memcg, (page.node(), page.zone()), page.is_file_lru());
        let rotated = u64::from(page.has(PageFlags::ACTIVE));
        self.note_recent(memcg, at, file, 1, rotated);
    }

    /// Called when a page was used by read(), or through a mapping that is being removed (Linux
    /// `folio_mark_accessed`). The first use marks the page, the second activates it. A page on the
    /// unevictable list stays where it is, because the order of that list does not matter.
    pub(crate) fn mark_page_accessed(&mut self, cpu: Cpu, pfn: Pfn) {
        if self.leaves_two_lists {
            return self.note_use_elsewhere(cpu, pfn);
        }
        let page = &mut self.mem.pages[pfn];
        if !page.has(PageFlags::REFERENCED) {
            page.set(PageFlags::REFERENCED);
        } else if !page.has(PageFlags::ACTIVE) && page.place != Place::Unevictable {
            page.clear(PageFlags::REFERENCED);
            let (memcg, node) = (page.memcg, page.node());
            self.activate_page(cpu, pfn);
            self.groups.workingset_age_nonresident(memcg, node, 1);
        }
    }

    #[cold]
    fn note_use_elsewhere(&mut self, cpu: Cpu, pfn: Pfn) {
        match self.era.generations {
            true => self.count_use(pfn),
            false => self.note_use_by_policy(cpu, pfn),
        }
    }

    /// Moves a page to its active list, through the CPU's batch (Linux `folio_activate`).
    pub(crate) fn activate_page(&mut self, cpu: Cpu, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        match page.place {
            // Not on a list yet: it will be added to the list that its flags name.
            Place::LruBatch => page.set(PageFlags::ACTIVE),
            Place::Lru if !page.has(PageFlags::BATCHED) => {
                page.set(PageFlags::BATCHED);
                let huge = page.has(PageFlags::HEAD);
                self.lru_batches[cpu].activate.push(pfn);
                if huge || self.is_full(self.lru_batches[cpu].activate.len()) {
                    self.drain_activate(cpu);
                }
            }
            _ => {}
        }
    }

    /// Called when a page marked for reclaim has been written: makes it the next page to be freed
    /// (Linux `folio_rotate_reclaimable`).
    pub(crate) fn rotate_reclaimable(&mut self, cpu: Cpu, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        let eligible = !page.flags.any(
            PageFlags::LOCKED
                .with(PageFlags::DIRTY)
                .with(PageFlags::MLOCKED)
                .with(PageFlags::BATCHED),
        );
        if eligible && page.place.is_lru() {
            page.set(PageFlags::BATCHED);
            // A huge page does not wait in a batch.
            let huge = page.has(PageFlags::HEAD);
            self.lru_batches[cpu].rotate.push(pfn);
            if huge || self.is_full(self.lru_batches[cpu].rotate.len()) {
                self.drain_rotate(cpu);
            }
        }
    }

    /// Puts a page at the head of its list and counts it.
    pub(crate) fn lruvec_add(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        let (memcg, node, zone, nr) = (page.memcg, page.node(), page.zone(), page.nr_pages());
        let lru = self.groups.memcgs[memcg].lruvecs[node].add(&mut self.mem.pages, pfn);
        self.count_lru(memcg, (node, zone), lru, nr as i64);
        self.mem.work.lru_moves += 1;
    }

    /// Puts a page at the tail of its list and counts it.
    pub(crate) fn lruvec_add_tail(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        let (memcg, node, zone, nr) = (page.memcg, page.node(), page.zone(), page.nr_pages());
        let lru = self.groups.memcgs[memcg].lruvecs[node].add_tail(&mut self.mem.pages, pfn);
        self.count_lru(memcg, (node, zone), lru, nr as i64);
        self.mem.work.lru_moves += 1;
    }

    /// Takes a page off its list; its place becomes [`Place::Allocated`].
    pub(crate) fn lruvec_remove(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        let (memcg, node, zone, nr) = (page.memcg, page.node(), page.zone(), page.nr_pages());
        let lruvec = &mut self.groups.memcgs[memcg].lruvecs[node];
        let Some(lru) = lruvec.take(&mut self.mem.pages, pfn) else {
            unreachable!("{pfn:?} is not on an LRU list");
        };
        self.mem.pages[pfn].place = Place::Allocated;
        self.count_lru(memcg, (node, zone), lru, -(nr as i64));
    }

    /// Updates the sizes after pages of a zone were added to a list or removed from it.
    #[inline]
    fn count_lru(&mut self, memcg: MemcgId, (node, zone): (NodeId, usize), lru: Lru, change: i64) {
        let state = &mut self.mem.pgdat[node];
        let stat = &mut state.stats[lru as usize];
        *stat = stat.wrapping_add_signed(change);
        let in_zone = &mut state.zone_lru[zone][lru as usize];
        *in_zone = in_zone.wrapping_add_signed(change);
        self.subtree_sizes_changed(memcg, node, lru, change);
    }

    /// Counts pages that were added to a list or removed from it.
    pub(in crate::ageing) fn count_pages(
        &mut self,
        memcg: MemcgId,
        (node, zone): (NodeId, usize),
        lru: Lru,
        change: i64,
    ) {
        let size = &mut self.groups.memcgs[memcg].lruvecs[node].zone_sizes[zone][lru as usize];
        *size = size.wrapping_add_signed(change);
        self.count_lru(memcg, (node, zone), lru, change);
    }

    /// Updates the subtree sums of a group and its ancestors below the root.
    #[inline]
    pub(crate) fn subtree_sizes_changed(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        lru: Lru,
        change: i64,
    ) {
        if change > 0 {
            self.groups.idle_groups.pages_added(memcg, node, change.unsigned_abs());
        } else {
            self.groups.idle_groups.pages_removed(memcg, node, change.unsigned_abs());
        }
        if memcg != ROOT {
            self.subtree_sums_changed(memcg, node, lru, change);
        }
    }

    fn subtree_sums_changed(&mut self, memcg: MemcgId, node: NodeId, lru: Lru, change: i64) {
        // Walks age unbalanced anonymous lists at any priority, so a group with such lists is not
        // idle. A page that leaves the active list can also unbalance them: the wanted ratio falls
        // where both lists together shrink below a whole number of GiB.
        let may_unbalance = match lru {
            Lru::InactiveAnon => change < 0,
            Lru::ActiveAnon => true,
            Lru::InactiveFile | Lru::ActiveFile | Lru::Unevictable => false,
        };
        let may_unbalance = may_unbalance && self.can_age_anon_pages();
        if may_unbalance
            && self.era.ages_by_own_lists
            && self.inactive_is_low(memcg, node, None, false)
        {
            self.groups.idle_groups.must_visit(memcg, node);
        }
        let mut at = memcg;
        while at != ROOT {
            let sizes = &mut self.groups.memcgs[at].lruvecs[node].subtree;
            let size = &mut sizes[lru as usize];
            *size = size.wrapping_add_signed(change);
            let [inactive, active, ..] = *sizes;
            if may_unbalance && self.mem.inactive_is_short(inactive, active) {
                self.groups.idle_groups.must_visit(at, node);
            }
            at = self.groups.parents[at];
        }
    }

    /// Removes a page that is being freed from its LRU list or batch.
    pub(crate) fn lru_forget(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        let mut is_listed = page.place.is_lru();
        if page.has(PageFlags::BATCHED) || page.place == Place::LruBatch {
            self.lru_add_drain_all();
            is_listed = self.mem.pages[pfn].place.is_lru();
        }
        if is_listed {
            self.lruvec_remove(pfn);
        }
    }

    /// Adds `nr` pages to the reclaim cost of one kind of page, anonymous or file (Linux
    /// `lru_note_cost`, 6.1). The kind that costs more is scanned less. Both costs are halved when
    /// they exceed a quarter of the lists.
    pub(crate) fn lru_note_cost(&mut self, memcg: MemcgId, node: NodeId, file: bool, nr: u64) {
        let mut at = memcg;
        while at.is_some() {
            let Some(two) = self.groups.memcgs[at].lruvecs[node].ageing.two_lists() else {
                return;
            };
            if nr + two.costs[0] + two.costs[1] == 0 {
                // Most batches cost nothing, and adding 0 cannot exceed the limit.
                at = self.groups.parents[at];
                continue;
            }
            let sizes = self.lru_sizes_below(at, node);
            let ageing = &mut self.groups.memcgs[at].lruvecs[node].ageing;
            let Some(two) = ageing.two_lists_mut() else { return };
            two.costs[usize::from(file)] += nr;
            if two.costs[0] + two.costs[1] > (sizes.anon() + sizes.file()) / 4 {
                two.costs = two.costs.map(|cost| cost / 2);
            }
            at = self.groups.parents[at];
        }
    }

    /// A new anonymous page is about to be added: some eras begin with it as an active page.
    pub(crate) fn activate_new_anon(&mut self, pfn: Pfn) {
        if self.era.activates_new_anon && !self.has_page_policy() {
            self.mem.pages[pfn].set(PageFlags::ACTIVE);
        }
    }

    /// A page from swap was mapped again: some eras activate it, as a new one.
    pub(crate) fn activate_swapped_in(&mut self, cpu: Cpu, pfn: Pfn) {
        if self.era.activates_swapped_in
            && !self.has_page_policy()
            && !self.mem.pages[pfn].has(PageFlags::ACTIVE)
        {
            self.activate_page(cpu, pfn);
        }
    }

    /// Moves a page in use to the head of the list of pages that are not (Linux
    /// `lru_deactivate_fn`).
    pub(crate) fn deactivate_page(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        if !page.has(PageFlags::ACTIVE) && !self.leaves_two_lists {
            return;
        }
        let (nr, memcg) = (page.nr_pages(), page.memcg);
        self.lruvec_remove(pfn);
        let page = &mut self.mem.pages[pfn];
        page.clear(PageFlags::ACTIVE);
        page.clear(PageFlags::REFERENCED);
        self.lruvec_add(pfn);
        self.mem.vmstat.add(Event::Pgdeactivate, nr);
        self.groups.memcgs[memcg].events.add(Event::Pgdeactivate, nr);
    }

    /// Puts an isolated page back on the list that its flags name (Linux `move_folios_to_lru`).
    pub(crate) fn putback_page(&mut self, pfn: Pfn) {
        if self.is_planted(Defect::ForgottenPage) {
            return;
        }
        let page = &mut self.mem.pages[pfn];
        page.place = Place::Allocated;
        let (active, memcg, node) = (page.has(PageFlags::ACTIVE), page.memcg, page.node());
        let (nr, locked) = (page.nr_pages(), page.has(PageFlags::MLOCKED));
        self.lruvec_add(pfn);
        if locked {
            self.mem.note_culled(pfn);
        } else if active && !self.era.generations {
            self.groups.workingset_age_nonresident(memcg, node, nr);
        }
    }

    /// Puts an isolated page back as a page in use. Returns the number of pages that count as
    /// activated: none of a locked page.
    pub(crate) fn putback_active(&mut self, pfn: Pfn) -> u64 {
        let page = &mut self.mem.pages[pfn];
        let is_locked = page.has(PageFlags::MLOCKED);
        if !is_locked {
            page.set(PageFlags::ACTIVE);
        }
        let nr = page.nr_pages();
        self.putback_page(pfn);
        if is_locked {
            0
        } else {
            nr
        }
    }

    /// Moves the pages of a group on one node to the tails of its parent's lists. Returns their
    /// number.
    pub(crate) fn reparent_lruvec(&mut self, id: MemcgId, parent: MemcgId, node: NodeId) -> u64 {
        let lruvec = &self.groups.memcgs[id].lruvecs[node];
        let lists = lruvec.ageing.lists().chain([&lruvec.unevictable]);
        let moving: Vec<Pfn> = lists.flat_map(|list| list.iter(&self.mem.pages)).collect();
        let mut moved = 0;
        for pfn in moving {
            let page = &self.mem.pages[pfn];
            let (nr, zone) = (page.nr_pages(), page.zone());
            let lruvec = &mut self.groups.memcgs[id].lruvecs[node];
            let age = lruvec.age_of(page);
            let Some(lru) = lruvec.take(&mut self.mem.pages, pfn) else { continue };
            // The parent's subtree sum already includes these pages. A dying group is still
            // visited by walks and must not count them.
            lruvec.subtree[lru as usize] -= nr;
            let page = &mut self.mem.pages[pfn];
            page.memcg = parent;
            let lruvec = &mut self.groups.memcgs[parent].lruvecs[node];
            let new = match age {
                None => lruvec.add_tail(&mut self.mem.pages, pfn),
                Some(age) => lruvec.add_aged(&mut self.mem.pages, pfn, age),
            };
            // A page that is too old for the generations of the parent becomes younger.
            if new != lru {
                self.count_lru(parent, (node, zone), lru, -(nr as i64));
                self.count_lru(parent, (node, zone), new, nr as i64);
            }
            moved += nr;
        }
        moved
    }
}
