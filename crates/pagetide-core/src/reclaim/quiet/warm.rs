//! Prefetch for the next groups of a walk.
//!
//! Linux: nothing; `prefetchw_prev_lru_folio` (mm/vmscan.c, 6.1) does this within one list. With
//! many groups a walk takes a page or two of each list, so nearly every load waits for memory: of
//! the oldest page, of the page before it, of the entry that maps it. The loads for one page depend
//! on each other; those for different groups do not. So the data of several groups is loaded in
//! parallel, before the first of these groups is shrunk.
//!
//! Invariant: changes no state.

use crate::lruvec::Lru;
use crate::manager::Manager;
use crate::owners::{OwnerSlot, Owners};
use crate::reclaim::ScanControl;
use crate::units::{MemcgId, NodeId, Pfn};

/// Number of groups prefetched together. Their loads are more than a processor can have in flight,
/// but few enough that the data is still in its cache when the groups are shrunk.
const AT_ONCE: usize = 8;
/// Number of places after a group that are searched for groups to visit.
const FAR: usize = 128;
const LISTS: usize = Lru::EVICTABLE.len();

impl<O: Owners> Manager<O> {
    /// A walk over `root` visits `memcg`: prefetches the data of this group and of the next ones,
    /// unless an earlier call has done so.
    #[inline]
    pub(in crate::reclaim) fn prefetch_groups(
        &mut self,
        root: MemcgId,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) {
        if self.idle_groups.rules.is_some()
            && self.idle_groups.places[memcg.idx()] >= self.idle_groups.prefetched
        {
            self.prefetch_next_groups(root, memcg, node, sc);
        }
    }

    fn prefetch_next_groups(
        &mut self,
        root: MemcgId,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) {
        let quiet = &mut self.idle_groups;
        let place = quiet.places[memcg.idx()] as usize;
        let end = quiet.ends[quiet.places[root.idx()] as usize] as usize;
        let end = end.min(place + FAR);
        let from = &quiet.nodes[node.idx()].from;
        let mut groups = [memcg; AT_ONCE];
        let (mut nr, mut at) = (0, place);
        while at < end && nr < AT_ONCE {
            if i64::from(from[at]) > i64::from(sc.priority) {
                groups[nr] = quiet.order[at];
                nr += 1;
            }
            at += 1;
        }
        quiet.prefetched = at as u32;
        if nr < 2 {
            return;
        }
        let mut loaded = 0;
        // `tails`: pages to be taken off lists. `heads`: neighbours of deactivated pages on the
        // inactive lists.
        let mut tails = [Pfn::NONE; AT_ONCE * LISTS];
        let mut heads = [Pfn::NONE; AT_ONCE * LISTS];
        let ends = tails.chunks_mut(LISTS).zip(heads.chunks_mut(LISTS));
        for ((tails, heads), memcg) in ends.zip(&groups[..nr]) {
            let group = &self.memcgs[memcg.idx()];
            let lists = &group.lruvecs[node.idx()].lists;
            for lru in Lru::EVICTABLE {
                let at = lru as usize;
                if lists[at].len >> sc.priority.max(0) > 0 {
                    tails[at] = lists[at].tail;
                    heads[at] = if lru.is_active() { lists[at - 1].head } else { Pfn::NONE };
                }
            }
            loaded ^= group.prefetch_lruvec(node);
        }
        for tail in tails.into_iter().filter(|tail| tail.is_some()) {
            loaded ^= u64::from(self.mem.pages[tail.idx()].mapcount);
        }
        for head in heads.into_iter().filter(|head| head.is_some()) {
            loaded ^= u64::from(self.mem.pages[head.idx()].mapcount);
        }
        core::hint::black_box(loaded);
        for tail in tails.into_iter().filter(|tail| tail.is_some()) {
            let page = &self.mem.pages[tail.idx()];
            if page.prev.is_some() {
                loaded ^= u64::from(self.mem.pages[page.prev.idx()].mapcount);
            }
            if page.mapcount > 0 {
                loaded ^= u64::from(self.owners.prefetch(OwnerSlot::of(page)));
            }
        }
        core::hint::black_box(loaded);
        for tail in tails.into_iter().filter(|tail| tail.is_some()) {
            let page = &self.mem.pages[tail.idx()];
            let slot = OwnerSlot::of(page);
            loaded ^= u64::from(self.owners.prefetch_eviction(slot, page.mapcount > 0));
        }
        core::hint::black_box(loaded);
    }
}
