//! The swap areas: which area the next page goes to.
//!
//! Linux: `get_swap_pages`, `swapon`, `vm_swap_full` (mm/swapfile.c, mm/swap_slots.c, 6.1). The area
//! of the highest priority is used until it is full; areas of equal priority take turns. A turn is
//! 64 slots long, because each CPU takes that many in advance. Areas without a priority
//! get -2, -3, and so on.
//!
//! The rest of the core uses four operations on a slot: a page is stored (`swap_store`), loaded
//! (`swap_load`), and the slot is freed when neither an entry nor the swap cache uses it
//! ([`SwapArea::unmap`], [`SwapArea::remove_from_cache`]); [`SwapArea::replace_cached`] changes the
//! frame of the swap cache.
//!
//! Differences from Linux: the machine has one turn, not one for each CPU. When few slots are
//! free (128 for each CPU), Linux takes single slots, so that areas take shorter turns.
//!
//! Invariant: the slots of the areas are disjoint ranges, in the order of the areas; `order` has
//! each area once, by falling priority.

mod area;
pub mod compressor;
pub mod content;
pub(crate) mod page_io;
pub(crate) mod pool_pages;
mod requests;
mod shadow_nodes;
mod slot_nodes;
pub(crate) mod slot_tree;
mod store;
pub(crate) mod swap_caches;
pub(crate) mod swap_in;
#[cfg(test)]
mod tests;
pub mod zram;
pub(crate) mod zsmalloc;
pub mod zswap;

pub use area::{SwapArea, SwapOptions, SWAPFILE_CLUSTER};
pub(crate) use store::SwapStore;

use crate::config::ZsmallocPolicy;
use crate::slab::object::Object;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{MemcgId, Pfn, SwapSlot};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use content::ContentMixes;
use core::ops::{Index, IndexMut, Range};
use pool_pages::ZsPoolId;
use slot_tree::{SlotTree, SlotTreeKind};
use swap_caches::SwapCaches;
use zram::Zram;
use zsmalloc::ZsPool;
use zswap::Zswap;

/// Slots of a turn (Linux `SWAP_SLOTS_CACHE_SIZE`).
const SLOTS_A_TURN: u32 = 64;

/// Priority of the first area without one.
const FIRST_DEFAULT_PRIORITY: i16 = -2;

/// Number of slots, over all areas, that entries can name.
const MAX_SLOTS: u32 = u32::MAX >> 2;

/// All swap areas.
#[derive(Clone, Debug, Default, State)]
pub struct SwapAreas {
    areas: Vec<SwapArea>,
    /// Areas by priority; the one that was used last is behind its equals.
    order: Vec<u32>,
    /// Slots that are left of the turn of the area `turn_of`.
    turn_left: u32,
    turn_of: u32,
    /// Number of areas without a priority.
    nr_defaults: i16,
    /// How well pages compress.
    pub(crate) contents: ContentMixes,
    /// Compressed memory in front of the areas on disks.
    pub(crate) zswap: Option<Box<Zswap>>,
    /// Caches of the pools' kernel objects.
    pub(crate) caches: SwapCaches,
    /// Bios of the requests under way, in the order of their submission.
    pub(crate) bios: VecDeque<Object>,
    /// Swap takes memory itself: for compressed pages, nodes of trees or requests.
    pub(crate) takes_memory: bool,
}

impl SwapAreas {
    /// Nodes of the swap cache's trees that have only shadows.
    pub(crate) fn nr_shadow_nodes(&self) -> u64 {
        self.areas.iter().map(SwapArea::nr_shadow_nodes).sum()
    }

    /// Forgets the shadows of such a node. Returns their slots; `None`: there is no such node.
    fn forget_shadow_node(&mut self) -> Option<Vec<SwapSlot>> {
        self.areas.iter_mut().find_map(SwapArea::forget_shadow_node)
    }

    /// Adds an area. Returns false if entries cannot name so many slots.
    pub(crate) fn swapon(
        &mut self,
        options: SwapOptions,
        page_size: PageSize,
        zsmalloc: ZsmallocPolicy,
    ) -> bool {
        let end = self.areas.last().map_or(0, |area| area.slots().end);
        let first = end.next_multiple_of(SWAPFILE_CLUSTER.into());
        if first + u64::from(options.pages) > MAX_SLOTS.into() {
            return false;
        }
        let default = FIRST_DEFAULT_PRIORITY.saturating_sub(self.nr_defaults);
        self.nr_defaults = self.nr_defaults.saturating_add(options.priority.is_none().into());
        self.areas.push(SwapArea::new(first as u32, options, default, page_size, zsmalloc));
        self.order.push(self.areas.len() as u32 - 1);
        let areas = &self.areas;
        self.order.sort_by_key(|&at| core::cmp::Reverse(areas[at as usize].priority));
        true
    }

    /// The areas, in the order in which they were added.
    pub fn areas(&self) -> &[SwapArea] {
        &self.areas
    }

    /// Number of slots that may be used.
    pub fn usable(&self) -> u32 {
        self.areas.iter().map(SwapArea::usable).sum()
    }

    /// Number of slots in use.
    pub fn used(&self) -> u32 {
        self.areas.iter().map(SwapArea::used).sum()
    }

    /// Number of free slots (Linux `nr_swap_pages`).
    #[inline]
    pub fn free(&self) -> u32 {
        self.areas.iter().map(SwapArea::free).sum()
    }

    /// Whether any slot is usable.
    #[inline]
    pub fn exists(&self) -> bool {
        self.areas.iter().any(|area| area.usable() > 0)
    }

    /// Whether an area is on a disk that rotates: read-ahead then goes by slots (Linux
    /// `swap_use_vma_readahead`).
    #[inline]
    pub(crate) fn is_rotational(&self) -> bool {
        self.areas.iter().any(|area| area.rotational)
    }

    /// Whether less than half of the slots are free. In this case a slot is freed as soon as its
    /// page is in memory.
    #[inline]
    pub fn is_half_full(&self) -> bool {
        u64::from(self.free()) * 2 < u64::from(self.usable())
    }

    /// Position of the area of a slot, in the order in which the areas were added.
    #[inline]
    pub fn area_of(&self, slot: SwapSlot) -> usize {
        match self.areas.len() {
            1 => 0,
            _ => self.areas.partition_point(|area| area.first <= slot.0) - 1,
        }
    }

    /// The pool of a slot's area, and the slot's number in its area.
    pub(crate) fn place_of(&self, slot: SwapSlot) -> (ZsPoolId, u32) {
        let at = self.area_of(slot);
        (ZsPoolId(at as u32), slot.0 - self.areas[at].first)
    }

    /// The tree of the swap cache of the area added last takes memory.
    pub(crate) fn keep_nodes(&mut self) {
        if let Some(area) = self.areas.last_mut() {
            area.keep_nodes();
        }
    }

    /// Whether the trees of an area take memory.
    pub(crate) const fn has_nodes(&self, area: &SwapArea) -> bool {
        self.zswap.is_some() || area.has_nodes
    }

    /// A tree of the slot's area, and the slot's number in it. `None`: the area has no nodes.
    fn tree_of(&mut self, kind: SlotTreeKind, slot: SwapSlot) -> Option<(&mut SlotTree, u32)> {
        if !self.has_nodes(&self[slot]) {
            return None;
        }
        let area = &mut self[slot];
        Some((&mut area.trees[kind as usize], slot.0 - area.first))
    }

    /// The zram device of an area, if the area is one.
    pub(crate) fn zram_mut(&mut self, area: usize) -> Option<&mut Zram> {
        self.areas.get_mut(area)?.zram.as_deref_mut()
    }

    /// Whether there is a pool of compressed pages: zswap, or an area that is a zram device.
    pub fn has_pools(&self) -> bool {
        self.zswap.is_some() || self.zrams().next().is_some()
    }

    /// Whether the page of a slot is in zswap.
    pub fn is_in_zswap(&self, slot: SwapSlot) -> bool {
        self.zswap.as_ref().is_some_and(|zswap| zswap.entry_of(slot).is_some())
    }

    /// Whether the page of a slot is on the disk behind its zram device.
    pub fn is_written_back(&self, slot: SwapSlot) -> bool {
        let area = &self[slot];
        area.zram().is_some_and(|zram| zram.is_on_disk(slot.0 - area.first))
    }

    /// Whether the page of a slot is only recorded as all zeroes.
    pub fn is_zero_page(&self, slot: SwapSlot) -> bool {
        self[slot].is_zero(slot)
    }

    /// The pools of compressed pages, each with its name.
    pub(crate) fn pools(&self) -> impl Iterator<Item = (ZsPoolId, &ZsPool)> {
        let of_zrams = (0..)
            .zip(&self.areas)
            .filter_map(|(at, area)| Some((ZsPoolId(at), area.zram()?.pool())));
        of_zrams.chain(self.zswap.iter().map(|zswap| (ZsPoolId::ZSWAP, &zswap.pool)))
    }

    /// Pages that the compaction of all pools could free.
    pub(crate) fn freeable_pool_pages(&self) -> u64 {
        self.pools().map(|(_, pool)| pool.freeable()).sum()
    }

    /// The zram devices, in the order in which they were added.
    pub fn zrams(&self) -> impl Iterator<Item = &Zram> {
        self.areas.iter().filter_map(SwapArea::zram)
    }

    /// Numbers of the slots of the area of a slot.
    pub(crate) fn neighbours(&self, slot: SwapSlot) -> Range<u64> {
        self[slot].slots()
    }

    /// Allocates a slot for `memcg` and puts `pfn` in its swap cache. `None`: swap is full.
    pub fn alloc(&mut self, pfn: Pfn, memcg: MemcgId) -> Option<SwapSlot> {
        if self.turn_left > 0 {
            self.turn_left -= 1;
            let slot = self.areas[self.turn_of as usize].alloc(pfn, memcg);
            if slot.is_some() {
                return slot;
            }
        }
        self.turn_left = 0;
        for _ in 0..self.order.len() {
            let at = self.next_area()?;
            if let Some(slot) = self.areas[at].alloc(pfn, memcg) {
                (self.turn_of, self.turn_left) = (at as u32, SLOTS_A_TURN - 1);
                return Some(slot);
            }
        }
        None
    }

    /// Allocates a run of free slots for `memcg` and puts the frames of a huge page in their swap
    /// cache. Only the next area is asked, and Linux keeps no free runs for a rotating disk. Returns
    /// the first slot; `None`: no run is free.
    pub(crate) fn alloc_cluster(&mut self, head: Pfn, memcg: MemcgId) -> Option<SwapSlot> {
        let at = self.next_area()?;
        let area = &mut self.areas[at];
        if area.rotational {
            return None;
        }
        area.alloc_cluster(head, memcg)
    }

    /// The first area with free slots, which goes behind its equals (Linux `plist_requeue`).
    fn next_area(&mut self) -> Option<usize> {
        let has_free = |at: &u32| self.areas[*at as usize].free() > 0;
        let position = self.order.iter().position(has_free)?;
        let at = self.order.remove(position);
        let priority = self.areas[at as usize].priority;
        let equals = self.order[position..]
            .iter()
            .take_while(|&&other| self.areas[other as usize].priority == priority);
        let behind = position + equals.count();
        self.order.insert(behind, at);
        Some(at as usize)
    }

    /// Moves the slots of a group that is removed to its parent.
    pub(crate) fn reparent(&mut self, from: MemcgId, to: MemcgId) {
        self.areas.iter_mut().for_each(|area| area.reparent(from, to));
    }

    /// Calls `f` for every slot in use, with its group and whether its page is in the swap cache.
    pub(crate) fn for_each_owner(&self, mut f: impl FnMut(MemcgId, bool)) {
        self.areas.iter().for_each(|area| area.for_each_owner(&mut f));
    }

    /// Calls `f` for every cached slot, for the audit.
    pub(crate) fn for_each_cached(&self, mut f: impl FnMut(SwapSlot, Pfn)) {
        self.areas.iter().for_each(|area| area.for_each_cached(&mut f));
    }
}

/// The area of a slot. Slots come from [`SwapAreas::alloc`], so one has the slot.
impl Index<SwapSlot> for SwapAreas {
    type Output = SwapArea;

    #[inline]
    fn index(&self, slot: SwapSlot) -> &SwapArea {
        &self.areas[self.area_of(slot)]
    }
}

impl IndexMut<SwapSlot> for SwapAreas {
    #[inline]
    fn index_mut(&mut self, slot: SwapSlot) -> &mut SwapArea {
        let at = self.area_of(slot);
        &mut self.areas[at]
    }
}
