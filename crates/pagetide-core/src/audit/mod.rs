//! The audit: checks every invariant between structures in one walk over all state.
//!
//! Linux: `VM_BUG_ON`, page_owner, and checks that `CONFIG_DEBUG_VM` does not have. For tests only:
//! the audit allocates, and takes time in proportion to the machine.

pub mod state_digest;

mod compressed;
mod generations;
mod groups;
mod held;
mod huge;
mod slab;
pub(crate) mod violation;

pub use violation::Violation;

pub(crate) use violation::check;

use crate::ageing::lruvec::{Lru, NR_LRU_LISTS};
use crate::config::era::Era;
use crate::frames::page::{PageFlags, Place};
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::stats::vmstat::NodeStat;
use crate::units::{IdVec, MemcgId, NodeId, Pfn};
use alloc::format;
use alloc::vec;

impl Kernel {
    /// Between two calls no effect is waiting, and the count of a throttle queue is at least the
    /// number of daemons that sleep in it. (Only the world knows the number of sleeping calls.)
    fn audit_effects(&self) -> Result<(), Violation> {
        check!(
            self.step.effects.nr_undelivered() == 0,
            "{:?} not delivered to the world",
            self.step.effects
        );
        check!(self.mem.wakeups.is_empty(), "{:?} not passed on", self.mem.wakeups);
        for node in (0..self.nr_nodes()).map(|node| NodeId(node as u8)) {
            for reason in [Throttle::Writeback, Throttle::Reserves] {
                let counted = self.nr_throttled(node, reason);
                let daemons = self.nr_daemons_throttled(node, reason);
                check!(
                    counted >= daemons,
                    "{node:?} {reason:?}: {counted} asleep, {daemons} daemons"
                );
            }
        }
        Ok(())
    }

    /// Checks LRU lists and batches: links, lengths, and the place and owner of each page.
    fn audit_lists(&self) -> Result<(), Violation> {
        let pages = &self.mem.pages;
        let mut seen: IdVec<Pfn, bool> = vec![false; pages.len()].into();
        for (id, memcg) in self.groups.memcgs.iter().enumerate() {
            for (node, lruvec) in memcg.lruvecs.iter().enumerate() {
                let mut sizes = [[0u64; NR_LRU_LISTS]; MAX_NR_ZONES];
                for list in lruvec.lists() {
                    let mut previous = Pfn::NONE;
                    let mut entries = 0;
                    for pfn in list.iter(pages) {
                        let page = &pages[pfn];
                        check!(!seen[pfn], "{pfn:?} is on two lists");
                        seen[pfn] = true;
                        check!(page.prev == previous, "{pfn:?}: broken back link");
                        check!(
                            page.memcg == MemcgId(id as u16) && page.node() == NodeId(node as u8),
                            "{pfn:?} is on the lruvec of another group or node"
                        );
                        let Some(lru) = lruvec.lru_on(page) else {
                            return Err(Violation(format!("{pfn:?} is on a list, but {page:?}")));
                        };
                        let is_locked = page.has(PageFlags::MLOCKED);
                        check!(
                            is_locked == (lru == Lru::Unevictable),
                            "{pfn:?} on {lru:?}: {page:?}"
                        );
                        let its = lruvec.list_of(page);
                        check!(core::ptr::eq(its, list), "{pfn:?} is on another list: {page:?}");
                        sizes[page.zone()][lru as usize] += page.nr_pages();
                        entries += 1;
                        previous = pfn;
                    }
                    check!(list.tail == previous, "{list:?}: tail is not the last page");
                    check!(list.len == entries, "{list:?}: wrong length");
                }
                check!(
                    lruvec.zone_sizes == sizes,
                    "sizes {:?}, but the lists have {sizes:?} pages",
                    lruvec.zone_sizes
                );
                self.audit_generations(lruvec)?;
                check!(
                    lruvec.has_zone_lists() == self.era.lists_by_zone,
                    "the lists of zones do not follow the era"
                );
            }
        }
        for (cpu, batches) in self.lru_batches.iter().enumerate() {
            for &pfn in &batches.add {
                let place = pages[pfn].place;
                check!(place == Place::LruBatch, "{pfn:?} in CPU {cpu}'s batch but {place:?}");
                check!(!seen[pfn], "{pfn:?} is in two batches");
                seen[pfn] = true;
            }
            for &pfn in batches.activate.iter().chain(&batches.rotate) {
                let batched = pages[pfn].has(PageFlags::BATCHED);
                check!(batched, "{pfn:?} in a batch of CPU {cpu} but not marked");
            }
        }
        let isolated = self.audit_compaction()?;
        for (Pfn(at), page) in pages.opened() {
            let listed = page.place.is_lru() || page.place == Place::LruBatch;
            check!(listed == seen[at as usize], "pfn{at} is {:?} but on no such list", page.place);
            check!(
                (page.place == Place::Isolated) == isolated[at as usize],
                "pfn{at} is {:?}, which does not match the lists of compaction",
                page.place
            );
            let user = page.is_user();
            check!(
                !user || listed || page.has(PageFlags::MIGRATING),
                "pfn{at} is user memory but on no list: {page:?}"
            );
        }
        Ok(())
    }

    /// Checks the frames in use by compaction: isolated free frames, and pages being moved.
    fn audit_compaction(&self) -> Result<IdVec<Pfn, bool>, Violation> {
        let pages = &self.mem.pages;
        let mut isolated: IdVec<Pfn, bool> = vec![false; pages.len()].into();
        let mut take = |pfn: Pfn| core::mem::replace(&mut isolated[pfn], true);
        for pfn in self.compactions.idle_frames() {
            check!(!take(pfn), "{pfn:?} is on two runs' lists");
            let page = &pages[pfn];
            check!(page.flags == PageFlags::EMPTY, "{pfn:?} is a migration target and is {page:?}");
        }
        for (from, to) in self.compactions.in_flight() {
            check!(!take(from) && !take(to), "{from:?} or {to:?} is being moved twice");
            let (page, frame) = (&pages[from], &pages[to]);
            let moving = PageFlags::MIGRATING.with(PageFlags::LOCKED);
            check!(page.has(moving) && page.next == to, "{from:?} is being moved and is {page:?}");
            check!(page.mapcount == 0, "{from:?} is being moved and is mapped");
            check!(
                frame.flags == PageFlags::EMPTY,
                "{to:?} is a migration target and is {frame:?}"
            );
            check!(page.zone() == frame.zone(), "{from:?} is being moved to another zone: {to:?}");
        }
        let moving = pages.opened().filter(|(_, page)| page.has(PageFlags::MIGRATING)).count();
        let known = self.compactions.in_flight().count();
        check!(moving == known, "{moving} pages are marked as being moved, {known} are");
        Ok(isolated)
    }

    /// Compares swap slots with the swap cache.
    fn audit_swap(&self) -> Result<(), Violation> {
        let mut cached = 0;
        for area in self.swap.areas() {
            let (used, in_cache) = area.count();
            check!(used == area.used(), "{} slots used, {used} found", area.used());
            check!(area.counts_shadows(), "wrong counts of pages and shadows in a tree");
            cached += in_cache;
            let [tree, of_zswap] = &area.trees;
            let has_nodes = self.swap.has_nodes(area);
            let is_right = tree.has_exactly(area.cache_entries().filter(|_| has_nodes));
            check!(is_right, "the tree of the swap cache has other entries than the slots");
            for node in tree.objects().chain(of_zswap.objects()) {
                self.slabs.audit_in_use(node, "a node of a tree over slots")?;
            }
        }
        let mut wrong = None;
        self.swap.for_each_cached(|slot, pfn| {
            let head = self.swap_cache_head(slot).unwrap_or(pfn);
            let page = &self.mem.pages[head];
            if !page.has(PageFlags::SWAPCACHE) || page.private + (pfn.0 - head.0) != slot.0 {
                wrong = Some((slot, pfn));
            }
        });
        if let Some((slot, pfn)) = wrong {
            return Err(Violation(format!("{slot:?}: {pfn:?} does not name this slot")));
        }
        let cache = self.mem.pages.opened().filter(|(_, page)| page.has(PageFlags::SWAPCACHE));
        let by_page: u32 = cache.map(|(_, page)| page.nr_pages() as u32).sum();
        check!(by_page == cached, "{by_page} swap-cache pages, {cached} cached slots");
        Ok(())
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn do_audit(&self) -> Result<(), Violation> {
        self.mem.audit().map_err(|error| Violation(format!("{error}")))?;
        check!(self.era == Era::of(&self.config), "the era does not follow from the configuration");
        self.audit_effects()?;
        self.audit_lists()?;
        O::audit(self)?;
        self.mem.audit_huge_pages()?;
        self.audit_held_pages()?;
        self.audit_swap()?;
        self.audit_compressed()?;
        self.audit_counts()?;
        self.audit_slabs()?;
        self.audit_groups()?;
        self.audit_idle_groups().map_err(Violation)
    }

    /// Compares the counters of nodes and groups with the pages.
    fn audit_counts(&self) -> Result<(), Violation> {
        let mut charged: IdVec<MemcgId, u64> = vec![0; self.groups.memcgs.len()].into();
        let mut stats: IdVec<NodeId, _> =
            vec![[0u64; NodeStat::COUNT]; self.mem.pgdat.len()].into();
        for (_, page) in self.mem.pages.opened() {
            if page.memcg.is_some() {
                charged[page.memcg] += page.nr_pages();
            }
            let stat = &mut stats[page.node()];
            let nr = page.nr_pages();
            let mut count = |which: NodeStat, is: bool| stat[which as usize] += u64::from(is) * nr;
            let lruvec = self.groups.memcgs.get(page.memcg.idx());
            let lruvec = lruvec.and_then(|group| group.lruvecs.get(page.node().idx()));
            if let Some(lru) = lruvec.and_then(|lruvec| lruvec.lru_on(page)) {
                count(lru.stat(), true);
            }
            let (anon, file) = (page.is_anon(), page.has(PageFlags::FILE));
            let moving = page.has(PageFlags::MIGRATING);
            count(NodeStat::NrIsolatedAnon, moving && !page.is_file_lru());
            count(NodeStat::NrIsolatedFile, moving && page.is_file_lru());
            count(NodeStat::NrAnonPages, anon && page.mapcount > 0);
            count(NodeStat::NrMapped, file && page.mapcount > 0);
            count(NodeStat::NrFilePages, file || page.has(PageFlags::SWAPCACHE));
            count(NodeStat::NrSwapcached, page.has(PageFlags::SWAPCACHE));
            count(NodeStat::NrDirty, file && page.has(PageFlags::DIRTY));
            count(NodeStat::NrWriteback, page.has(PageFlags::WRITEBACK));
            let huge = page.has(PageFlags::HEAD) && page.mapcount > 0;
            stat[NodeStat::NrAnonTransparentHugepages as usize] += u64::from(huge);
        }
        let mut unpaid = None;
        self.owners.for_each_table_frame(&mut |table| {
            let page = &self.mem.pages[table];
            stats[page.node()][NodeStat::NrPageTablePages as usize] += 1;
            unpaid = unpaid.or(page.memcg.is_none().then_some(table));
        });
        check!(unpaid.is_none(), "{unpaid:?}: a page table charged to no group");
        self.slabs.count_slab_pages(&mut stats);
        for (id, memcg) in self.groups.memcgs.iter().enumerate() {
            check!(
                memcg.charged == charged[id],
                "memcg{id}: charged {}, {} found",
                memcg.charged,
                charged[id]
            );
        }
        for (node, (state, found)) in self.mem.pgdat.iter().zip(&stats).enumerate() {
            for stat in NodeStat::ALL {
                let (is, found) = (state.stats[stat as usize], found[stat as usize]);
                check!(is == found, "node{node} {}: {is}, {found} found", stat.name());
            }
            for lru in 0..NR_LRU_LISTS {
                let zones: u64 = state.zone_lru.iter().map(|zone| zone[lru]).sum();
                check!(zones == state.stats[lru], "node{node} list {lru}: zones do not add up");
            }
        }
        Ok(())
    }
}
