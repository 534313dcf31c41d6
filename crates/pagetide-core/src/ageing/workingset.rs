//! Refault distance: decides whether a page that comes back was evicted too early.
//!
//! Linux: mm/workingset.c. A lruvec has a clock that counts evictions and activations. An evicted
//! page leaves a shadow with the time of this clock. When the page comes back, the clock has
//! advanced by the refault distance. If that many pages would have fitted into memory next to the
//! active pages, the page is activated at once.
//!
//! Difference from Linux: the clock has 39 bits.

use crate::ageing::shadow::{Shadow, AGE_MASK};
use crate::frames::page::PageFlags;
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::stats::vmstat::Event;
use crate::units::{MemcgId, NodeId, Pfn};

impl Groups {
    /// Advances the clock of a lruvec and of its ancestors (Linux `workingset_age_nonresident`).
    pub(crate) fn workingset_age_nonresident(&mut self, memcg: MemcgId, node: NodeId, nr: u64) {
        let mut at = memcg;
        while at.is_some() {
            self.memcgs[at].lruvecs[node].nonresident_age += nr;
            at = self.parents[at];
        }
    }
}

impl Kernel {
    /// The shadow of a page that is being evicted. It uses the clock of the group that is short of
    /// memory, or of the root if the machine is (Linux `workingset_eviction`).
    pub(crate) fn workingset_eviction(&mut self, pfn: Pfn, target: Option<MemcgId>) -> Shadow {
        if self.leaves_two_lists {
            if self.era.generations {
                return self.lru_gen_eviction(pfn);
            }
            self.note_eviction_by_policy(pfn);
        }
        let page = &self.mem.pages[pfn];
        let forgets =
            if page.is_file_lru() { self.era.forgets_files } else { self.era.forgets_anon };
        if forgets {
            return Shadow::NONE;
        }
        let node = page.node();
        let (workingset, nr) = (page.has(PageFlags::WORKINGSET), page.nr_pages());
        let target = target.unwrap_or(ROOT);
        let age = self.groups.lruvec(target, node).nonresident_age;
        self.groups.workingset_age_nonresident(target, node, nr);
        Shadow::pack(target, node, age, workingset)
    }

    /// Decides whether to activate a page that comes back (Linux `workingset_refault`, 6.1).
    pub(crate) fn workingset_refault(&mut self, pfn: Pfn, shadow: Shadow) {
        if self.era.generations {
            return self.lru_gen_refault(pfn, shadow);
        }
        let Some((evicted_memcg, node, evicted_age, workingset)) = shadow.unpack() else {
            return;
        };
        let file = self.mem.pages[pfn].is_file_lru();
        let kind = usize::from(file);
        let memcg = self.mem.pages[pfn].memcg;
        let page_node = self.mem.pages[pfn].node();
        // The evicted page's group is gone, so the distance is unknown and the page does not count
        // as a refault. As in Linux, the id may belong to a newer group; then the distance is
        // meaningless.
        if !self.groups.memcg_is_online(evicted_memcg) {
            return;
        }
        let event = pick(file, Event::WorkingsetRefaultAnon, Event::WorkingsetRefaultFile);
        self.mem.work.refaults += 1;
        self.mem.vmstat.count(event);
        self.groups.memcgs[memcg].events.count(event);
        let age = self.groups.memcgs[evicted_memcg].lruvecs[node].nonresident_age;
        let distance = age.wrapping_sub(evicted_age) & AGE_MASK;
        // The memory that the page competes for: all lists except the inactive list of the page's
        // own kind. Anonymous memory counts only if the page's group can swap.
        let sizes = self.lru_sizes_below(evicted_memcg, node);
        let can_swap = self.memcg_swap_left(memcg) > 0;
        let anon = if can_swap { sizes.anon() } else { 0 };
        let workingset_size = match file {
            true => sizes.file() - sizes.cold_file() + anon,
            false if can_swap => sizes.file() + anon - sizes.cold_anon(),
            false => sizes.file(),
        };
        if distance > workingset_size {
            return;
        }
        self.mem.pages[pfn].set(PageFlags::ACTIVE);
        self.groups.workingset_age_nonresident(memcg, node, 1);
        let event = pick(file, Event::WorkingsetActivateAnon, Event::WorkingsetActivateFile);
        self.mem.vmstat.count(event);
        self.groups.memcgs[memcg].events.count(event);
        let mut at = memcg;
        while at.is_some() {
            self.groups.memcgs[at].lruvecs[node].workingset_activate[kind] += 1;
            at = self.groups.parents[at];
        }
        if workingset {
            self.mem.pages[pfn].set(PageFlags::WORKINGSET);
            self.lru_note_cost(memcg, page_node, file, 1);
            let event = pick(file, Event::WorkingsetRestoreAnon, Event::WorkingsetRestoreFile);
            self.mem.vmstat.count(event);
            self.groups.memcgs[memcg].events.count(event);
        }
    }
}

const fn pick(file: bool, anon_event: Event, file_event: Event) -> Event {
    if file {
        file_event
    } else {
        anon_event
    }
}
