//! The buddy lists of a zone: splits blocks and merges them again.
//!
//! Linux: `struct free_area`, `__free_one_page`, `__rmqueue_smallest`, `expand`,
//! `move_freepages_block`, `__isolate_free_page` (mm/page_alloc.c, 6.1). A free block of order n is
//! 2^n frames aligned to 2^n; the number of its buddy differs in bit n.
//!
//! Invariant: the head of a free block has [`Place::Buddy`], its order in `private` and the migrate
//! type of its list in `index`. Every other frame of the block has [`Place::BuddyTail`], and keeps
//! it when the block is allocated. A merge turns one head into a tail and a split turns one tail
//! into a head, so each costs one store and no descriptor is ever stale. Linux does not record the
//! type of a block's list (to remove a block from a list it needs no list head) and leaves tails
//! unmarked. Two free buddies of one order do not coexist, with one exception: at pageblock order
//! and above, if the two pageblocks have different types and one of them is HighAtomic, CMA or Isolate.

use crate::frames::gfp::{AllocFlags, MigrateType, Watermark};
use crate::frames::list::List;
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_array::PageArray;
use crate::frames::watermark::zone_watermark_ok;
use crate::frames::zone::Zone;
use crate::units::{MemcgId, Order, Pfn, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};

const _: () = assert!(MAX_PAGE_ORDER == PAGEBLOCK_ORDER + 1, "a block has at most two pageblocks");

/// Which end of its list a freed block goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// The tail if the block will probably merge soon, so that it is not allocated before;
    /// otherwise the head.
    Likely,
    /// The tail, for memory freed first at boot (Linux `FPI_TO_TAIL`).
    Tail,
}

#[inline]
pub(crate) fn clear_page(page: &mut Page, place: Place) {
    page.prev = Pfn::NONE;
    page.next = Pfn::NONE;
    page.mapping = u32::MAX;
    page.index = 0;
    page.private = 0;
    page.mapcount = 0;
    page.memcg = MemcgId::NONE;
    page.flags = PageFlags::EMPTY;
    page.place = place;
    page.order = 0;
}

/// Clears the descriptors of a block that is being freed, except that of its first frame.
#[inline]
pub(crate) fn clear_tails(pages: &mut PageArray, pfn: Pfn, order: Order) {
    if order > 0 {
        let first = pfn.idx();
        for page in &mut pages[first + 1..first + (1 << order)] {
            clear_page(page, Place::BuddyTail);
        }
    }
}

/// Marks a block that has just left a free list as allocated. Only the descriptor of the first
/// frame changes, so the cost does not depend on the order.
#[inline]
pub(crate) fn mark_allocated(pages: &mut PageArray, pfn: Pfn, order: Order) {
    let page = &mut pages[pfn];
    page.place = Place::Allocated;
    page.order = order;
    page.private = 0;
    page.index = 0;
}

impl Zone {
    fn add_block(&mut self, pages: &mut PageArray, pfn: Pfn, order: Order, mt: MigrateType) {
        let area = &mut self.free_area[usize::from(order)];
        if order == MAX_PAGE_ORDER {
            pages.open(area.lists[mt].head);
        }
        area.lists[mt].push_head(pages, pfn, Place::Buddy);
        area.nr_free += 1;
        let page = &mut pages[pfn];
        page.private = order.into();
        page.index = mt as u32;
    }

    fn add_block_tail(&mut self, pages: &mut PageArray, pfn: Pfn, order: Order, mt: MigrateType) {
        let area = &mut self.free_area[usize::from(order)];
        if order == MAX_PAGE_ORDER {
            pages.open(area.lists[mt].tail);
        }
        area.lists[mt].push_tail(pages, pfn, Place::Buddy);
        area.nr_free += 1;
        let page = &mut pages[pfn];
        page.private = order.into();
        page.index = mt as u32;
    }

    /// Adds a fresh (never used) block of the largest order at the tail of a list, without reading
    /// its descriptors. Returns false and changes nothing if the block is not fresh.
    pub(crate) fn free_fresh(&mut self, pages: &mut PageArray, pfn: Pfn, mt: MigrateType) -> bool {
        let area = &mut self.free_area[usize::from(MAX_PAGE_ORDER)];
        let is_fresh = area.lists[mt].push_tail_fresh(pages, pfn, mt as u8);
        if is_fresh {
            area.nr_free += 1;
            self.add_free(1 << MAX_PAGE_ORDER);
        }
        is_fresh
    }

    /// Takes the free block with head `pfn` off its list; the head keeps [`Place::Buddy`].
    fn del_block(&mut self, pages: &mut PageArray, pfn: Pfn, order: Order) -> MigrateType {
        if order == MAX_PAGE_ORDER {
            pages.open_between(pfn);
        }
        let mt = MigrateType::from_raw(pages[pfn].index);
        let area = &mut self.free_area[usize::from(order)];
        area.lists[mt].remove(pages, pfn);
        area.nr_free -= 1;
        mt
    }

    /// Whether `pfn` is the head of a free block of exactly this order in this zone.
    #[inline]
    fn is_free_block(&self, pages: &PageArray, pfn: u32, order: Order) -> bool {
        self.spans(pfn) && {
            let page = &pages[pfn as usize];
            page.place == Place::Buddy && page.private == u32::from(order)
        }
    }

    /// Frees a block into the lists of type `mt` and merges it with its buddies as often as
    /// possible (Linux `__free_one_page`). The tails of the block must already be marked as tails.
    pub(crate) fn free_block(
        &mut self,
        pages: &mut PageArray,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
        placement: Placement,
    ) {
        debug_assert!(pfn.0 & ((1 << order) - 1) == 0, "{pfn:?} is not aligned to order {order}");
        debug_assert!(self.spans(pfn.0));
        if mt != MigrateType::Isolate {
            self.add_free(1 << order);
        }
        self.merge_block(pages, pfn, order, mt, placement);
    }

    /// Like [`Self::free_block`], as if the `parts` equal parts of the block were freed one by one.
    pub(crate) fn free_parts(
        &mut self,
        pages: &mut PageArray,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
        parts: u32,
    ) {
        if mt != MigrateType::Isolate {
            let nr = 1 << order;
            self.nr_free_pages += nr;
            self.stat.add_each((nr / u64::from(parts)) as i64, parts);
        }
        self.merge_block(pages, pfn, order, mt, Placement::Likely);
    }

    /// Adds a block that is already counted as free to the lists of type `mt`. Merges it as often
    /// as possible.
    fn merge_block(
        &mut self,
        pages: &mut PageArray,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
        placement: Placement,
    ) {
        let (mut pfn, mut order) = (pfn.0, order);
        while order < MAX_PAGE_ORDER {
            let buddy = pfn ^ (1 << order);
            if !self.is_free_block(pages, buddy, order) {
                break;
            }
            if order >= PAGEBLOCK_ORDER && !self.blocks_may_merge(mt, Pfn(buddy)) {
                break;
            }
            self.del_block(pages, Pfn(buddy), order);
            let tail = &mut pages[(pfn | 1 << order) as usize];
            tail.place = Place::BuddyTail;
            tail.private = 0;
            tail.index = 0;
            pfn &= !(1 << order);
            order += 1;
        }
        let to_tail = match placement {
            Placement::Tail => true,
            Placement::Likely => self.merge_is_likely(pages, pfn, order),
        };
        if to_tail {
            self.add_block_tail(pages, Pfn(pfn), order, mt);
        } else {
            self.add_block(pages, Pfn(pfn), order, mt);
        }
    }

    /// Frees a block with cleared descriptors into the lists of its pageblock's type. If the block
    /// consists of two pageblocks of types that must not mix, each pageblock is freed separately,
    /// as in Linux since 6.10. Linux 6.1 put both on the list of the first one's type.
    pub(crate) fn free_direct(&mut self, pages: &mut PageArray, pfn: Pfn, order: Order) {
        let mt = self.block_type(pfn);
        let second = Pfn(pfn.0 + PAGEBLOCK_NR_PAGES);
        if order > PAGEBLOCK_ORDER && !self.blocks_may_merge(mt, second) {
            let second_mt = self.block_type(second);
            self.free_block(pages, pfn, PAGEBLOCK_ORDER, mt, Placement::Likely);
            self.free_block(pages, second, PAGEBLOCK_ORDER, second_mt, Placement::Likely);
        } else {
            self.free_block(pages, pfn, order, mt, Placement::Likely);
        }
    }

    /// Whether a block of type `mt` may merge with `buddy`. Types that never mix (reserved,
    /// isolated) do not merge across pageblocks.
    fn blocks_may_merge(&self, mt: MigrateType, buddy: Pfn) -> bool {
        let buddy_mt = self.block_type(buddy);
        mt == buddy_mt || mt.is_mergeable() && buddy_mt.is_mergeable()
    }

    /// Whether the buddy of the next larger block is free. In this case this block's buddy may be
    /// freed soon, and all of them merge into an even larger block (Linux `buddy_merge_likely`).
    #[inline]
    fn merge_is_likely(&self, pages: &PageArray, pfn: u32, order: Order) -> bool {
        if order >= MAX_PAGE_ORDER - 1 {
            return false;
        }
        let larger = pfn & !(1 << order);
        self.is_free_block(pages, larger ^ (1 << (order + 1)), order + 1)
    }

    /// Smallest order >= `order` with a free block on the lists of `mt`.
    #[inline]
    fn smallest_block(&self, order: Order, mt: MigrateType) -> Option<Order> {
        (order..=MAX_PAGE_ORDER).find(|&o| !self.free_area[usize::from(o)].lists[mt].is_empty())
    }

    /// Takes the first block of exactly `order` and type `mt` off its list.
    fn pop_block(&mut self, pages: &mut PageArray, order: Order, mt: MigrateType) -> Option<Pfn> {
        let area = &mut self.free_area[usize::from(order)];
        let list = &mut area.lists[mt];
        if order == MAX_PAGE_ORDER && list.head.is_some() {
            pages.open_between(list.head);
        }
        let pfn = list.pop_head(pages)?;
        area.nr_free -= 1;
        Some(pfn)
    }

    /// Puts block `first` (of order `from`) back on the lists, except its lowest `taken` frames, in
    /// blocks as large as possible.
    fn put_back(
        &mut self,
        pages: &mut PageArray,
        first: Pfn,
        taken: u32,
        from: Order,
        mt: MigrateType,
    ) {
        let mut at = taken;
        while at < 1 << from {
            let order = at.trailing_zeros();
            self.add_block(pages, Pfn(first.0 + at), order as Order, mt);
            at += 1 << order;
        }
    }

    /// Takes a block of `order` from the lists of type `mt`. Splits the smallest block that is
    /// large enough (Linux `__rmqueue_smallest`). The head keeps [`Place::Buddy`]; the caller
    /// changes it.
    pub(crate) fn take_smallest(
        &mut self,
        pages: &mut PageArray,
        order: Order,
        mt: MigrateType,
    ) -> Option<Pfn> {
        let from = self.smallest_block(order, mt)?;
        let pfn = self.pop_block(pages, from, mt)?;
        self.put_back(pages, pfn, 1 << order, from, mt);
        self.remove_free(1 << order);
        Some(pfn)
    }

    /// Takes a block of `order` from the first free block of order `from`; the rest of that block
    /// stays on the lists of its type (Linux `del_page_from_free_list`, `expand`).
    pub(crate) fn take_of_block(
        &mut self,
        pages: &mut PageArray,
        from: Order,
        mt: MigrateType,
        order: Order,
    ) -> Option<Pfn> {
        let pfn = self.pop_block(pages, from, mt)?;
        self.put_back(pages, pfn, 1 << order, from, mt);
        self.nr_free_pages -= 1 << order;
        Some(pfn)
    }

    /// Takes up to `count` contiguous blocks of `order`, all from the smallest free block that is
    /// large enough. Returns the first frame and the number of blocks.
    ///
    /// The result is the same as after repeated calls of [`Zone::take_smallest`]: when such a call
    /// splits a block, the lists of smaller orders are empty, so the next calls take the parts of
    /// that block in address order.
    #[inline(always)] // into the loop of a refill
    pub(crate) fn take_run(
        &mut self,
        pages: &mut PageArray,
        order: Order,
        mt: MigrateType,
        count: u32,
    ) -> Option<(Pfn, u32)> {
        let from = self.smallest_block(order, mt)?;
        let pfn = self.pop_block(pages, from, mt)?;
        let nr = count.min(1 << (from - order));
        self.put_back(pages, pfn, nr << order, from, mt);
        // The caller counts the whole batch at once.
        self.nr_free_pages -= u64::from(nr) << order;
        Some((pfn, nr))
    }

    /// Head of the list of `order` and `mt`.
    pub(crate) fn first_block(&self, order: Order, mt: MigrateType) -> Option<Pfn> {
        let list: &List = &self.free_area[usize::from(order)].lists[mt];
        list.head.is_some().then_some(list.head)
    }

    /// Moves a free block to the tail of the list of another type.
    pub(crate) fn move_block(&mut self, pages: &mut PageArray, pfn: Pfn, mt: MigrateType) {
        pages.open(pfn);
        let order = pages[pfn].private as Order;
        let old = self.del_block(pages, pfn, order);
        self.add_block_tail(pages, pfn, order, mt);
        if old == MigrateType::Isolate && mt != MigrateType::Isolate {
            self.add_free(1 << order);
        } else if old != MigrateType::Isolate && mt == MigrateType::Isolate {
            self.remove_free(1 << order);
        }
    }

    /// Splits the free block with head `pfn` in two if it is larger than a pageblock.
    pub(crate) fn split_to_pageblock(&mut self, pages: &mut PageArray, pfn: Pfn) {
        pages.open(pfn);
        let order = pages[pfn].private as Order;
        if order > PAGEBLOCK_ORDER {
            let mt = self.del_block(pages, pfn, order);
            self.add_block(pages, Pfn(pfn.0 + PAGEBLOCK_NR_PAGES), PAGEBLOCK_ORDER, mt);
            self.add_block(pages, pfn, PAGEBLOCK_ORDER, mt);
        }
    }

    /// Frees a free block again, to merge it with blocks that could not merge before.
    pub(crate) fn merge_again(&mut self, pages: &mut PageArray, pfn: Pfn) {
        pages.open(pfn);
        let order = pages[pfn].private as Order;
        let mt = self.del_block(pages, pfn, order);
        self.remove_free(1 << order);
        self.free_block(pages, pfn, order, mt, Placement::Likely);
    }

    /// Moves all free blocks in the pageblock of `pfn` to the lists of `mt`. Returns how many pages
    /// moved and how many pages of the pageblock look movable (Linux `move_freepages_block`, 6.1).
    /// If the zone begins within the pageblock, as zone DMA does, only the frames from `pfn` on are
    /// moved and counted. Moves nothing if the zone ends within the pageblock.
    pub(crate) fn move_pageblock(
        &mut self,
        pages: &mut PageArray,
        pfn: Pfn,
        mt: MigrateType,
    ) -> MovedBlock {
        let mut moved = MovedBlock::default();
        let first = pfn.0 & !(PAGEBLOCK_NR_PAGES - 1);
        let last = first | (PAGEBLOCK_NR_PAGES - 1);
        if !self.spans(last) {
            return moved;
        }
        let mut at = if self.spans(first) { first } else { pfn.0 };
        while at <= last {
            let page = &pages[at as usize];
            if page.place == Place::Buddy {
                let nr = 1 << page.private;
                self.move_block(pages, Pfn(at), mt);
                moved.free += nr;
                at += nr;
            } else {
                // Pages on an LRU list can be migrated away.
                moved.movable += u32::from(page.place.is_lru());
                at += 1;
            }
        }
        moved
    }

    /// The result that [`Self::move_pageblock`] would return, if the zone has the whole pageblock;
    /// otherwise nothing (Linux 6.10 `prep_move_freepages_block`).
    pub(crate) fn count_pageblock(&self, pages: &PageArray, pfn: Pfn) -> MovedBlock {
        let mut found = MovedBlock::default();
        let Some(first) = self.whole_block(pfn) else {
            return found;
        };
        let mut at = first.0;
        while at < first.0 + PAGEBLOCK_NR_PAGES {
            let page = &pages[at as usize];
            let nr = if page.place == Place::Buddy { 1 << page.private } else { 1 };
            match page.place {
                Place::Buddy => found.free += nr,
                place => found.movable += u32::from(place.is_lru()),
            }
            at += nr;
        }
        found
    }

    /// Whether a request of type `mt` could use a free block of exactly `order`. It may have to
    /// claim the block from another type.
    pub(crate) fn block_suits(&self, order: Order, mt: MigrateType) -> bool {
        let lists = &self.free_area[usize::from(order)].lists;
        !lists[mt].is_empty()
            || mt == MigrateType::Movable && !lists[MigrateType::Cma].is_empty()
            || mt.fallbacks().iter().any(|&from| !lists[from].is_empty())
                && crate::frames::fallback::may_steal(order, mt)
    }

    /// Free pages in blocks of at least a pageblock (Linux 6.15 `NR_FREE_PAGES_BLOCKS`).
    pub(crate) fn free_pages_in_blocks(&self) -> u64 {
        (PAGEBLOCK_ORDER..=MAX_PAGE_ORDER)
            .map(|order| self.free_area[usize::from(order)].nr_free << order)
            .sum()
    }

    /// Moves the first part of a list, up to and including `last`, to its tail (Linux
    /// `move_freelist_tail`). The order is below the largest, because compaction searches no list
    /// of the largest order.
    pub(crate) fn rotate_free_list(
        &mut self,
        pages: &mut PageArray,
        order: Order,
        mt: MigrateType,
        last: Pfn,
    ) {
        debug_assert!(order < MAX_PAGE_ORDER);
        let list = &mut self.free_area[usize::from(order)].lists[mt];
        while let Some(pfn) = list.pop_head(pages) {
            list.push_tail(pages, pfn, Place::Buddy);
            if pfn == last {
                return;
            }
        }
    }

    /// Moves the second part of a list, from `last` on, to its head (Linux `move_freelist_head`).
    /// The order is below the largest.
    pub(crate) fn rotate_free_list_back(
        &mut self,
        pages: &mut PageArray,
        order: Order,
        mt: MigrateType,
        last: Pfn,
    ) {
        debug_assert!(order < MAX_PAGE_ORDER);
        let list = &mut self.free_area[usize::from(order)].lists[mt];
        while let Some(pfn) = list.pop_tail(pages) {
            list.push_head(pages, pfn, Place::Buddy);
            if pfn == last {
                return;
            }
        }
    }

    /// Takes the block of 2^`order` frames at `pfn`, if all of it is free, for the compaction run
    /// that has just emptied it. Its first frame becomes [`Place::Isolated`].
    pub(crate) fn capture_block(&mut self, pages: &mut PageArray, pfn: Pfn, order: Order) -> bool {
        pages.open(pfn);
        // The head of the free block that starts at `pfn` or contains it.
        let head = (order..=MAX_PAGE_ORDER).find_map(|from| {
            let head = pfn.0 & !((1 << from) - 1);
            (self.spans(head) && self.is_free_block(pages, head, from)).then_some((head, from))
        });
        let Some((head, from)) = head else { return false };
        let mt = self.del_block(pages, Pfn(head), from);
        if matches!(mt, MigrateType::Isolate | MigrateType::Cma) {
            self.add_block(pages, Pfn(head), from, mt);
            return false;
        }
        // The parts around the block go back to the lists, in halves.
        let mut at = head;
        for half in (order..from).rev() {
            let upper = at + (1 << half);
            if pfn.0 >= upper {
                self.add_block(pages, Pfn(at), half, mt);
                at = upper;
            } else {
                self.add_block(pages, Pfn(upper), half, mt);
            }
        }
        self.remove_free(1 << order);
        let page = &mut pages[pfn];
        clear_page(page, Place::Isolated);
        page.order = order;
        true
    }

    /// Takes the free block with head `pfn` out of the allocator, as a target of compaction (Linux
    /// `__isolate_free_page`). Returns its order; the frames become [`Place::Isolated`].
    ///
    /// `None` if `pfn` heads no free block, or if the zone would fall to its min watermark.
    pub fn isolate_free_block(&mut self, pages: &mut PageArray, pfn: Pfn) -> Option<Order> {
        pages.open(pfn);
        let page = pages.get(pfn.idx())?;
        if page.place != Place::Buddy || !self.spans(pfn.0) {
            return None;
        }
        let order = page.private as Order;
        if self.block_type(pfn) != MigrateType::Isolate {
            let mark = self.watermark_min + (1 << order);
            if !zone_watermark_ok(self, 0, mark, 0, AllocFlags::movable_at(Watermark::Min)) {
                return None;
            }
        }
        if self.del_block(pages, pfn, order) != MigrateType::Isolate {
            self.remove_free(1 << order);
        }
        for page in &mut pages[pfn.idx()..pfn.idx() + (1 << order)] {
            clear_page(page, Place::Isolated);
        }
        if order >= PAGEBLOCK_ORDER - 1 {
            // At least half of the pageblock will hold movable pages.
            let mut at = pfn.0;
            while at < pfn.0 + (1 << order) {
                if self.block_type(Pfn(at)).is_mergeable() {
                    self.set_block_type(Pfn(at), MigrateType::Movable);
                }
                at += PAGEBLOCK_NR_PAGES;
            }
        }
        Some(order)
    }
}

/// Result of [`Zone::move_pageblock`].
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct MovedBlock {
    /// Free pages that were moved.
    pub free: u32,
    /// Pages in use that can be migrated.
    pub movable: u32,
}
