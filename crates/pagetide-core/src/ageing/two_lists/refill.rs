//! Refilling the inactive lists: moves pages from an active list to its inactive list.
//!
//! Linux: `shrink_active_list`, `kswapd_age_node`, `folio_referenced` (6.1).
//!
//! Invariant: a batch is atomic, as in reclaim.

use super::isolate::IsolatedBatch;
use crate::ageing::lruvec::Lru;
use crate::frames::page::PageFlags;
use crate::groups::memcg::{ReclaimScope, ROOT};
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::{OwnerSlot, Owners, PageReferences};
use crate::reclaim::ScanControl;
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::Event;
use crate::units::{MemcgId, NodeId, Pfn, SWAP_CLUSTER_MAX};

impl Kernel {
    /// Whether anonymous memory can be aged: there is swap.
    pub(crate) fn can_age_anon_pages(&self) -> bool {
        self.swap.exists()
    }

    /// Whether a walk has to age a group's anonymous memory even if it takes no page: its active
    /// list has outgrown its inactive one.
    pub(crate) fn must_age_anon(&self, memcg: MemcgId, node: NodeId, zone: Option<usize>) -> bool {
        self.can_age_anon_pages()
            && !self.leaves_two_lists
            && self.inactive_is_low(memcg, node, zone, false)
    }
}

impl<O: Owners> Manager<O> {
    /// Ages a node in the background of kswapd, also while only page cache is taken.
    pub(crate) fn kswapd_age_node(&mut self, sc: &mut ScanControl, ctx: &Ctx) {
        if self.era.generations {
            return self.lru_gen_age_node(sc, ctx);
        }
        if self.has_page_policy() {
            return self.age_by_policy(ctx);
        }
        let node = ctx.node;
        let each = self.era.ages_by_own_lists;
        if !self.can_age_anon_pages() || (!each && !self.inactive_is_low(ROOT, node, None, false)) {
            return;
        }
        self.mem.events.priority = sc.goal.priority;
        let mut next = Some(ROOT);
        while let Some(memcg) = next {
            next = self.groups.next_memcg(ROOT, memcg);
            // The patch of 2019 limits ageing in the same way as reclaim.
            if !sc.rules.ignore_shrink_priority && self.shrink_priority(memcg) < sc.goal.priority {
                continue;
            }
            if each && !self.inactive_is_low(memcg, node, sc.rules.only_zone, false) {
                continue;
            }
            self.shrink_active_list(Lru::ActiveAnon, SWAP_CLUSTER_MAX, memcg, node, sc, ctx);
        }
    }

    /// Counts and clears the references of a page's entries. Returns how many entries were
    /// referenced, and whether one of them is executable (Linux `folio_referenced`). Reclaim for a
    /// group counts only references from within it.
    pub(crate) fn page_referenced(
        &mut self,
        pfn: Pfn,
        target: Option<MemcgId>,
        ctx: &Ctx,
    ) -> (u32, bool) {
        let page = &self.mem.pages[pfn];
        if page.mapcount == 0 {
            return (0, false);
        }
        if self.era.looks_around {
            let PageReferences { nr, executable, nr_entries_read } =
                self.references_around(pfn, target, ctx);
            self.mem.work.rmap_walks += nr_entries_read;
            return (nr, executable);
        }
        let mut within = ReclaimScope::new(&self.kernel.groups.memcgs, target);
        if self.era.forgets_random {
            within = within.without_random();
        }
        let (at, huge) = (OwnerSlot::of(page), page.has(PageFlags::HEAD));
        let PageReferences { nr, executable, nr_entries_read: nr_looked_at } =
            self.owners.referenced(at, page.mapcount, huge, within);
        self.mem.work.rmap_walks += nr_looked_at;
        (nr, executable)
    }

    /// Moves pages from an active list to its inactive one; only referenced executable file pages
    /// stay (Linux `shrink_active_list`).
    pub(in crate::ageing::two_lists) fn shrink_active_list(
        &mut self,
        lru: Lru,
        nr: u64,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        ctx: &Ctx,
    ) {
        self.lru_add_drain(ctx.cpu);
        let mut taken = core::mem::take(&mut self.step.scratch);
        let IsolatedBatch { nr_scanned, nr_taken } =
            self.isolate_lru_pages(lru, nr, memcg, node, sc, &mut taken);
        if !sc.goal.is_for_group() {
            self.mem.vmstat.add(Event::Pgrefill, nr_scanned);
        }
        let mut nr_deactivate = 0;
        let mut nr_referenced = 0;
        for &pfn in &taken {
            let page = &self.mem.pages[pfn];
            if page.has(PageFlags::MLOCKED) {
                self.putback_page(pfn);
                continue;
            }
            let (referenced, executable) = self.page_referenced(pfn, sc.goal.target, ctx);
            let page = &self.mem.pages[pfn];
            let nr_pages = page.nr_pages();
            nr_referenced += if referenced > 0 { nr_pages } else { 0 };
            let stays = referenced > 0 && executable && page.is_file_lru();
            let page = &mut self.mem.pages[pfn];
            if !stays {
                page.clear(PageFlags::ACTIVE);
                page.set(PageFlags::WORKINGSET);
                nr_deactivate += nr_pages;
            }
            self.putback_page(pfn);
        }
        taken.clear();
        self.step.scratch = taken;
        let zone = sc.rules.only_zone.unwrap_or(0);
        self.note_recent(memcg, (node, zone), lru.is_file(), nr_taken, nr_referenced);
        self.mem.vmstat.add(Event::Pgdeactivate, nr_deactivate);
        let events = &mut self.groups.memcgs[memcg].events;
        events.add(Event::Pgrefill, nr_scanned);
        events.add(Event::Pgdeactivate, nr_deactivate);
        self.kernel.mem.events.record(TraceEvent::MmVmscanLruShrinkActive {
            nid: node,
            memcg,
            nr_taken: nr_taken as u32,
            nr_active: (nr_taken - nr_deactivate) as u32,
            nr_deactivated: nr_deactivate as u32,
            nr_referenced: nr_referenced as u32,
            priority: self.kernel.mem.events.priority,
            file: lru.is_file(),
        });
    }
}
