//! The audit of the page allocator: walks all its state and checks its sums.
//!
//! Linux: the `VM_BUG_ON` checks and `check_pages`; the audit checks all memory at once. It takes
//! time in proportion to the number of frames; tests call it after every step.
//!
//! Checked invariant: every free frame is on exactly one list, or in exactly one block on a list,
//! and its place says so. Lists are linked both ways and have the stored length. Blocks are aligned
//! and merged. The counts of zones and per-CPU sets are the sums of their lists.

use crate::frames::gfp::MigrateType;
use crate::frames::list::List;
use crate::frames::page::Place;
use crate::frames::page_alloc::Memory;
use crate::frames::pcp::Pcp;
use crate::frames::zone::Zone;
use crate::units::{IdVec, Order, Pfn, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use alloc::vec;
use core::fmt;

/// The first error that [`Memory::audit`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuditError {
    /// A list's links do not lead from head to tail in `len` steps. The frame is where this was
    /// found.
    BrokenList(Pfn),
    /// A block on a list is outside the zone of the list, or not aligned to its order.
    Misplaced(Pfn, Order),
    /// A frame is part of two free blocks.
    TwoPlaces(Pfn),
    /// A frame on a free list, or in a free block, has a different place.
    WrongPlace(Pfn, Place),
    /// A frame's place is free, but no list contains it.
    Lost(Pfn, Place),
    /// The head of a block has a different order or migrate type than its list, or its pageblock
    /// has a type that does not belong on the list.
    WrongLabel(Pfn),
    /// A block and its buddy are both free and should have merged.
    Unmerged(Pfn, Order),
    /// A free area's `nr_free` is not the sum of its lists; the frame is the zone's first.
    AreaCount(Pfn, Order),
    /// A zone's count of free pages is not the sum of its lists: (first frame, counted, found).
    FreeCount(Pfn, u64, u64),
    /// A per-CPU set's count is not the sum of its lists: (zone's first frame, counted, found).
    PcpCount(Pfn, u64, u64),
    /// The count of high-atomic pages does not match the zone's pageblocks: (first frame, counted,
    /// found).
    HighAtomicCount(Pfn, u64, u64),
    /// The count of CMA pages does not match the zone's pageblocks: (first frame, counted, found).
    CmaCount(Pfn, u64, u64),
    /// The watermarks of the zone with this first frame are out of order.
    Watermarks(Pfn),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use AuditError as E;
        match self {
            E::BrokenList(pfn) => write!(f, "{pfn:?}: broken links of its free list"),
            E::Misplaced(pfn, order) => {
                write!(f, "{pfn:?}: a free block of order {order} cannot be here")
            }
            E::TwoPlaces(pfn) => write!(f, "{pfn:?}: in two free blocks"),
            E::WrongPlace(pfn, place) => write!(f, "{pfn:?}: free, but its place is {place:?}"),
            E::Lost(pfn, place) => write!(f, "{pfn:?}: place {place:?}, but on no free list"),
            E::WrongLabel(pfn) => write!(f, "{pfn:?}: on a list of another order or type"),
            E::Unmerged(pfn, order) => {
                write!(f, "{pfn:?}: not merged with its free buddy of order {order}")
            }
            E::AreaCount(zone, order) => {
                write!(f, "zone at {zone:?}: nr_free of order {order} is not the sum of its lists")
            }
            E::FreeCount(zone, counted, found) => {
                write!(f, "zone at {zone:?}: counts {counted} free pages, has {found}")
            }
            E::PcpCount(zone, counted, found) => {
                write!(f, "zone at {zone:?}: a per-CPU set counts {counted} pages, has {found}")
            }
            E::HighAtomicCount(zone, counted, found) => {
                write!(f, "zone at {zone:?}: counts {counted} pages reserved, has {found}")
            }
            E::CmaCount(zone, counted, found) => {
                write!(f, "zone at {zone:?}: counts {counted} CMA pages, has {found}")
            }
            E::Watermarks(zone) => write!(f, "zone at {zone:?}: min <= low <= high does not hold"),
        }
    }
}

impl core::error::Error for AuditError {}

/// State of the walk: which frames were already seen in a free block.
struct FreeListWalk<'m> {
    memory: &'m Memory,
    seen: IdVec<Pfn, bool>,
}

impl Memory {
    /// Checks every frame, list and count of the allocator.
    pub fn audit(&self) -> Result<(), AuditError> {
        let mut walk = FreeListWalk { memory: self, seen: vec![false; self.pages.len()].into() };
        for zone in self.nodes.iter().flat_map(|node| &node.zones) {
            walk.buddy_lists(zone)?;
            for pcp in &zone.pcps {
                walk.pcp_lists(zone, pcp)?;
            }
            check_zone(zone)?;
        }
        walk.no_frame_lost()
    }
}

impl FreeListWalk<'_> {
    fn buddy_lists(&mut self, zone: &Zone) -> Result<(), AuditError> {
        let mut free = 0;
        for (order, area) in zone.free_area.iter().enumerate() {
            let order = order as Order;
            for (list, mt) in area.lists.iter().zip(MigrateType::ALL) {
                self.buddy_list(zone, list, order, mt)?;
                if mt != MigrateType::Isolate {
                    free += list.len << order;
                }
            }
            if area.nr_free != area.lists.iter().map(|list| list.len).sum::<u64>() {
                return Err(AuditError::AreaCount(zone.start_pfn, order));
            }
        }
        if free != zone.free_pages() {
            return Err(AuditError::FreeCount(zone.start_pfn, zone.free_pages(), free));
        }
        if zone.stat.sum() != free as i64 {
            return Err(AuditError::FreeCount(
                zone.start_pfn,
                zone.stat.sum().unsigned_abs(),
                free,
            ));
        }
        Ok(())
    }

    fn pcp_lists(&mut self, zone: &Zone, pcp: &Pcp) -> Result<(), AuditError> {
        let mut found = 0;
        for (index, list) in pcp.lists.iter().enumerate() {
            let order = Pcp::list_order(index);
            for &pfn in list {
                self.check_span(zone, pfn, order)?;
                let page = &self.memory.pages[pfn];
                if page.place != Place::Pcp || page.prev.is_some() || page.next.is_some() {
                    return Err(AuditError::WrongPlace(pfn, page.place));
                }
                let is_cma = zone.block_type(pfn) == MigrateType::Cma;
                let mt =
                    if is_cma { MigrateType::Cma } else { MigrateType::from_raw(page.private) };
                if Pcp::list_index(order, mt) != index || is_cma && order == PAGEBLOCK_ORDER {
                    return Err(AuditError::WrongLabel(pfn));
                }
                self.cover(pfn, order)?;
            }
            found += (list.len() as u64) << order;
        }
        if found != u64::from(pcp.count) {
            return Err(AuditError::PcpCount(zone.start_pfn, pcp.count.into(), found));
        }
        Ok(())
    }

    /// Follows a list of free blocks of `order` and type `mt`.
    fn buddy_list(
        &mut self,
        zone: &Zone,
        list: &List,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), AuditError> {
        let (mut at, mut prev, mut len) = (list.head, Pfn::NONE, 0);
        while at.is_some() {
            self.check_span(zone, at, order)?;
            let page = self.memory.pages.peek(at.idx());
            if page.prev != prev || len == list.len {
                return Err(AuditError::BrokenList(at));
            }
            self.buddy_head(zone, at, order, mt)?;
            self.cover(at, order)?;
            (prev, at, len) = (at, page.next, len + 1);
        }
        if prev != list.tail || len != list.len {
            return Err(AuditError::BrokenList(list.tail));
        }
        Ok(())
    }

    fn check_span(&self, zone: &Zone, pfn: Pfn, order: Order) -> Result<(), AuditError> {
        let end = u64::from(pfn.0) + (1 << order);
        if !zone.spans(pfn.0) || end > zone.end_pfn() || pfn.0 & ((1 << order) - 1) != 0 {
            return Err(AuditError::Misplaced(pfn, order));
        }
        Ok(())
    }

    /// Marks the frames of a free block and checks those behind its head.
    fn cover(&mut self, pfn: Pfn, order: Order) -> Result<(), AuditError> {
        for at in pfn.0..pfn.0 + (1 << order) {
            if core::mem::replace(&mut self.seen[at as usize], true) {
                return Err(AuditError::TwoPlaces(Pfn(at)));
            }
            let place = self.memory.pages.peek(at as usize).place;
            if at != pfn.0 && place != Place::BuddyTail {
                return Err(AuditError::WrongPlace(Pfn(at), place));
            }
        }
        Ok(())
    }

    fn buddy_head(
        &self,
        zone: &Zone,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), AuditError> {
        let page = self.memory.pages.peek(pfn.idx());
        if page.place != Place::Buddy {
            return Err(AuditError::WrongPlace(pfn, page.place));
        }
        if page.private != u32::from(order) || page.index != mt as u32 {
            return Err(AuditError::WrongLabel(pfn));
        }
        // Types that do not mix are on their own lists only.
        let last = Pfn(pfn.0 + (1 << order) - 1);
        let block_types = [zone.block_type(pfn), zone.block_type(last)];
        if block_types
            .iter()
            .any(|block| *block != mt && !(block.is_mergeable() && mt.is_mergeable()))
        {
            return Err(AuditError::WrongLabel(pfn));
        }
        let buddy = Pfn(pfn.0 ^ 1 << order);
        if order == MAX_PAGE_ORDER || !zone.spans(buddy.0) {
            return Ok(());
        }
        let other = self.memory.pages.peek(buddy.idx());
        let both_free = other.place == Place::Buddy && other.private == u32::from(order);
        let apart = order >= PAGEBLOCK_ORDER && {
            let (a, b) = (zone.block_type(pfn), zone.block_type(buddy));
            !a.is_mergeable() || !b.is_mergeable()
        };
        if both_free && !apart {
            return Err(AuditError::Unmerged(pfn, order));
        }
        Ok(())
    }

    fn no_frame_lost(&mut self) -> Result<(), AuditError> {
        // The head of an allocated block stands for the frames behind it.
        for (Pfn(at), page) in self.memory.pages.opened() {
            let is_free = matches!(page.place, Place::Buddy | Place::BuddyTail | Place::Pcp);
            for tail in at + 1..at + (1 << page.order) {
                if !is_free && core::mem::replace(&mut self.seen[tail as usize], true) {
                    return Err(AuditError::TwoPlaces(Pfn(tail)));
                }
            }
        }
        for (pfn, page) in self.memory.pages.opened() {
            let says_free = matches!(page.place, Place::Buddy | Place::BuddyTail | Place::Pcp);
            if says_free && !self.seen[pfn] {
                return Err(AuditError::Lost(pfn, page.place));
            }
        }
        // A fresh block is completely free or unmanaged: its head stands for all its frames.
        if let Some(pfn) = self.memory.pages.fresh_free().find(|pfn| !self.seen[*pfn]) {
            return Err(AuditError::Lost(pfn, Place::Buddy));
        }
        Ok(())
    }
}

fn check_zone(zone: &Zone) -> Result<(), AuditError> {
    let blocks = zone.block_counts()[MigrateType::HighAtomic as usize];
    let reserved = blocks * u64::from(PAGEBLOCK_NR_PAGES);
    if reserved != zone.nr_reserved_highatomic {
        let counted = zone.nr_reserved_highatomic;
        return Err(AuditError::HighAtomicCount(zone.start_pfn, counted, reserved));
    }
    let cma = zone.block_counts()[MigrateType::Cma as usize] * u64::from(PAGEBLOCK_NR_PAGES);
    if cma != zone.cma_pages {
        return Err(AuditError::CmaCount(zone.start_pfn, zone.cma_pages, cma));
    }
    if zone.watermark_min > zone.watermark_low || zone.watermark_low > zone.watermark_high {
        return Err(AuditError::Watermarks(zone.start_pfn));
    }
    Ok(())
}
