//! One swap area: how each slot is used, and the swap cache.
//!
//! Linux: `struct swap_info_struct`, mm/swapfile.c, mm/swap_state.c. A slot is free, or used by a
//! page-table entry, by the swap cache, or by both. Slots are allocated from runs of 512, so pages
//! that are swapped out together get adjacent slots, which makes swap read-ahead useful. A huge page
//! gets a whole run.
//!
//! Invariant: `nr_used` is the number of slots in use. If a slot has a cached frame, that frame has
//! the slot in `private` and [`PageFlags::SWAPCACHE`](crate::frames::page::PageFlags::SWAPCACHE) set, or
//! belongs to a huge page whose first frame has both for the first slot of its run.

use super::shadow_nodes::{SwapShadowNodes, TreeSlot, NODE_SHIFT};
use super::slot_tree::SlotTree;
#[cfg(doc)]
use super::slot_tree::SlotTreeKind;
use super::zram::{Zram, ZramOptions};
use crate::ageing::shadow::Shadow;
use crate::config::ZsmallocPolicy;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{IdVec, MemcgId, Pfn, SwapSlot, HPAGE_PMD_NR};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

/// Number of slots in a run; allocation fills a run before it uses another (Linux
/// `SWAPFILE_CLUSTER` with `CONFIG_THP_SWAP`).
pub const SWAPFILE_CLUSTER: u32 = HPAGE_PMD_NR as u32;

#[derive(Clone, Copy, Debug, PartialEq, State)]
struct SwapSlotState {
    /// Frame in the swap cache plus 1; 0 if none.
    cached: u32,
    mapped: bool,
    /// Its page is all zeroes, and nothing else is stored (Linux `zeromap`, 6.12).
    is_zero: bool,
    /// Group of the slot, which pays for the page when it is swapped in. Whether it also pays for
    /// the slot is recorded in the group's counter.
    memcg: MemcgId,
    shadow: Shadow,
}

impl Default for SwapSlotState {
    fn default() -> Self {
        SwapSlotState {
            cached: 0,
            mapped: false,
            is_zero: false,
            memcg: MemcgId::NONE,
            shadow: Shadow::NONE,
        }
    }
}

impl SwapSlotState {
    const fn is_free(&self) -> bool {
        self.cached == 0 && !self.mapped
    }

    fn content(&self) -> TreeSlot {
        TreeSlot::of(self.cached != 0, self.shadow)
    }
}

/// Description of a swap area, for `swapon`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub struct SwapOptions {
    /// Number of slots.
    pub pages: u32,
    /// The area is full when this many slots are in use (fault injection: "swap full").
    pub limit: u32,
    /// The area is on a disk that rotates.
    pub rotational: bool,
    /// Areas of a higher priority are used first; `None`: -2 for the first such
    /// area, -3 for the next, and so on.
    pub priority: Option<i16>,
    /// The area is a zram device: compressed memory instead of a disk.
    pub zram: Option<ZramOptions>,
}

impl SwapOptions {
    /// An area of `pages` slots on a disk that does not rotate, with the priority that Linux gives.
    pub const fn new(pages: u32) -> SwapOptions {
        SwapOptions { pages, limit: pages, rotational: false, priority: None, zram: None }
    }

    /// The same area on a disk that rotates or does not.
    pub const fn rotational(self, rotational: bool) -> SwapOptions {
        SwapOptions { rotational, ..self }
    }

    /// The same area as a zram device.
    pub const fn zram(self, zram: ZramOptions) -> SwapOptions {
        SwapOptions { zram: Some(zram), rotational: false, ..self }
    }
}

/// A swap area. Its slots have the numbers from `first` on.
#[derive(Clone, Debug, State)]
pub struct SwapArea {
    /// Its first slot.
    pub first: u32,
    /// Areas of a higher priority are used first.
    pub priority: i16,
    /// The area is on a disk that rotates.
    pub rotational: bool,
    /// State of slots; the table grows when slots are used for the first time, up to `capacity`.
    #[state(sparse)]
    slots: IdVec<SwapSlot, SwapSlotState>,
    capacity: u32,
    /// Artificial limit on used slots (fault injection: "swap full").
    limit: u32,
    nr_used: u32,
    /// Where the search for the next run starts.
    cluster_next: u32,
    cluster_left: u32,
    /// Number of used slots in each run of [`SWAPFILE_CLUSTER`] slots.
    cluster_used: Vec<u16>,
    /// The nodes of the swap cache's tree that may hold only shadows; `None`: shadows are kept.
    shadow_nodes: Option<Box<SwapShadowNodes>>,
    /// The zram device that the area is on.
    pub(super) zram: Option<Box<Zram>>,
    /// The tree of the swap cache takes memory, without zswap, too.
    pub(super) has_nodes: bool,
    /// Kernel memory of the swap cache and of zswap, by [`SlotTreeKind`].
    pub(crate) trees: [SlotTree; 2],
}

impl SwapArea {
    /// An empty area. `priority` is for options without one.
    pub(super) fn new(
        first: u32,
        options: SwapOptions,
        priority: i16,
        page_size: PageSize,
        zsmalloc: ZsmallocPolicy,
    ) -> SwapArea {
        SwapArea {
            first,
            priority: options.priority.unwrap_or(priority),
            rotational: options.rotational && options.zram.is_none(),
            zram: options.zram.map(|zram| Box::new(Zram::new(zram, page_size, zsmalloc))),
            slots: IdVec::default(),
            capacity: options.pages,
            limit: options.limit.min(options.pages),
            nr_used: 0,
            cluster_next: 0,
            cluster_left: 0,
            cluster_used: Vec::new(),
            shadow_nodes: None,
            has_nodes: options.zram.is_some(),
            trees: Default::default(),
        }
    }

    /// The slots in use around `slot`, without a gap, in its aligned cluster of 2^`page_cluster`
    /// (Linux `valid_swaphandles`, up to 3.4). `None`: only that slot is read.
    pub(crate) fn cluster_in_use(&self, slot: SwapSlot, page_cluster: u32) -> Option<Range<u64>> {
        if page_cluster == 0 {
            return None;
        }
        let size = 1 << page_cluster.min(30);
        let at = u64::from(slot.0);
        let first = at - (at - u64::from(self.first)) % size;
        let state = |slot: u64| self.slots.get((slot - u64::from(self.first)) as usize);
        let is_used = |slot: &u64| state(*slot).is_some_and(|slot| !slot.is_free());
        let start = (first..at).rev().take_while(is_used).last().unwrap_or(at);
        let end = (first + size).min(self.slots().end);
        Some(start..(at + 1..end).take_while(is_used).last().unwrap_or(at) + 1)
    }

    /// The numbers of its slots.
    pub fn slots(&self) -> Range<u64> {
        u64::from(self.first)..u64::from(self.first) + u64::from(self.capacity)
    }

    /// The zram device that the area is on, if it is on one.
    pub fn zram(&self) -> Option<&Zram> {
        self.zram.as_deref()
    }

    /// Whether pages are stored and loaded at once (Linux `SWP_SYNCHRONOUS_IO`).
    #[inline]
    pub(crate) fn is_synchronous(&self) -> bool {
        self.zram.is_some()
    }

    #[inline]
    fn at(&self, slot: SwapSlot) -> &SwapSlotState {
        &self.slots[(slot.0 - self.first) as usize]
    }

    #[inline]
    fn at_mut(&mut self, slot: SwapSlot) -> &mut SwapSlotState {
        &mut self.slots[(slot.0 - self.first) as usize]
    }

    /// Whether the slot's page is known to be all zeroes.
    #[inline]
    pub(crate) fn is_zero(&self, slot: SwapSlot) -> bool {
        self.slots.get((slot.0 - self.first) as usize).is_some_and(|slot| slot.is_zero)
    }

    /// Records whether the slot's page is all zeroes.
    pub(super) fn set_zero(&mut self, slot: SwapSlot, is_zero: bool) {
        self.at_mut(slot).is_zero = is_zero;
    }

    /// Number of slots that may be used.
    #[inline]
    pub fn usable(&self) -> u32 {
        self.limit
    }

    /// Number of slots in use.
    #[inline]
    pub fn used(&self) -> u32 {
        self.nr_used
    }

    /// Number of free slots (Linux `nr_swap_pages`).
    #[inline]
    pub fn free(&self) -> u32 {
        self.limit - self.nr_used.min(self.limit)
    }

    /// Allocates a slot for `memcg` and puts `pfn` in its swap cache. `None`: swap is full.
    pub(crate) fn alloc(&mut self, pfn: Pfn, memcg: MemcgId) -> Option<SwapSlot> {
        if self.free() == 0 {
            return None;
        }
        let at = self.find_free()?;
        if let Some(nodes) = &mut self.shadow_nodes {
            nodes.changed(at, TreeSlot::Empty, TreeSlot::Page);
        }
        let slot = &mut self.slots[at as usize];
        slot.cached = pfn.0 + 1;
        slot.mapped = false;
        slot.is_zero = false;
        slot.memcg = memcg;
        slot.shadow = Shadow::NONE;
        self.nr_used += 1;
        self.cluster_used[(at / SWAPFILE_CLUSTER) as usize] += 1;
        self.cluster_next = at + 1;
        self.cluster_left = self.cluster_left.saturating_sub(1);
        Some(SwapSlot(self.first + at))
    }

    /// Allocates a run of free slots for `memcg` and puts the frames of a huge page in their swap
    /// cache. Returns the first slot; `None`: no run is free (Linux `swap_alloc_cluster`).
    pub(crate) fn alloc_cluster(&mut self, head: Pfn, memcg: MemcgId) -> Option<SwapSlot> {
        if self.free() < SWAPFILE_CLUSTER {
            return None;
        }
        let cluster = self.find_free_cluster()?;
        let first = cluster * SWAPFILE_CLUSTER;
        self.grow_to(first + SWAPFILE_CLUSTER);
        let slots =
            &mut self.slots.as_mut_slice()[first as usize..(first + SWAPFILE_CLUSTER) as usize];
        for (slot, pfn) in slots.iter_mut().zip(head.0..) {
            *slot = SwapSlotState { cached: pfn + 1, memcg, ..SwapSlotState::default() };
        }
        if let Some(nodes) = &mut self.shadow_nodes {
            for at in first..first + SWAPFILE_CLUSTER {
                nodes.changed(at, TreeSlot::Empty, TreeSlot::Page);
            }
        }
        self.nr_used += SWAPFILE_CLUSTER;
        self.cluster_used[cluster as usize] = SWAPFILE_CLUSTER as u16;
        Some(SwapSlot(self.first + first))
    }

    /// The next run with all slots free, except the run from which single slots are taken.
    fn find_free_cluster(&self) -> Option<u32> {
        let nr_clusters = self.capacity / SWAPFILE_CLUSTER;
        let first = self.cluster_next / SWAPFILE_CLUSTER;
        let is_current = |cluster: u32| self.cluster_left > 0 && cluster == first;
        let is_free = |cluster: &u32| {
            let used = self.cluster_used.get(*cluster as usize);
            !is_current(*cluster) && used.is_none_or(|&used| used == 0)
        };
        (0..nr_clusters).map(|i| (first + i) % nr_clusters).find(is_free)
    }

    fn grow_to(&mut self, len: u32) {
        if self.slots.len() < len as usize {
            let len = len.next_multiple_of(SWAPFILE_CLUSTER).min(self.capacity);
            self.slots.resize(len as usize, SwapSlotState::default());
            self.cluster_used.resize(len.div_ceil(SWAPFILE_CLUSTER) as usize, 0);
        }
    }

    fn is_free_at(&self, at: u32) -> bool {
        self.slots.get(at as usize).is_none_or(SwapSlotState::is_free)
    }

    /// The next free slot of the current run; else the next run with all slots free; else the next
    /// free slot.
    fn find_free(&mut self) -> Option<u32> {
        if self.cluster_left > 0 {
            let end = self.cluster_next.saturating_add(self.cluster_left).min(self.capacity);
            if let Some(at) = (self.cluster_next..end).find(|&at| self.is_free_at(at)) {
                self.cluster_left = end - at;
                self.grow_to(at + 1);
                return Some(at);
            }
        }
        self.cluster_left = 0;
        if let Some(cluster) = self.find_free_cluster() {
            let at = cluster * SWAPFILE_CLUSTER;
            self.cluster_left = SWAPFILE_CLUSTER;
            self.grow_to(at + 1);
            return Some(at);
        }
        let start = if self.cluster_next >= self.capacity { 0 } else { self.cluster_next };
        let at = (start..self.capacity).chain(0..start).find(|&at| self.is_free_at(at))?;
        self.grow_to(at + 1);
        Some(at)
    }

    /// Frees a slot if it is no longer in use. Returns its group if it was freed.
    fn release_if_free(&mut self, slot: SwapSlot) -> Option<MemcgId> {
        let at = slot.0 - self.first;
        let state = &mut self.slots[at as usize];
        if !state.is_free() {
            return None;
        }
        if let Some(nodes) = &mut self.shadow_nodes {
            nodes.changed(at, state.content(), TreeSlot::Empty);
        }
        state.shadow = Shadow::NONE;
        let memcg = core::mem::replace(&mut state.memcg, MemcgId::NONE);
        self.nr_used -= 1;
        self.cluster_used[(at / SWAPFILE_CLUSTER) as usize] -= 1;
        Some(memcg)
    }

    /// Group of a slot in use.
    #[inline]
    pub(crate) fn memcg(&self, slot: SwapSlot) -> MemcgId {
        self.at(slot).memcg
    }

    /// Moves the slots of a group that is removed to its parent.
    pub(crate) fn reparent(&mut self, from: MemcgId, to: MemcgId) {
        for slot in self.slots.iter_mut().filter(|slot| slot.memcg == from) {
            slot.memcg = to;
        }
    }

    /// Calls `f` for every slot in use, with its group and whether its page is in the swap cache.
    pub(crate) fn for_each_owner(&self, mut f: impl FnMut(MemcgId, bool)) {
        let used = self.slots.iter().filter(|slot| !slot.is_free());
        used.for_each(|slot| f(slot.memcg, slot.cached != 0));
    }

    /// Notes that a page-table entry refers to the slot.
    #[inline]
    pub(crate) fn map(&mut self, slot: SwapSlot) {
        debug_assert!(!self.at(slot).mapped, "{slot:?} has one owner");
        self.at_mut(slot).mapped = true;
    }

    /// Notes that no page-table entry refers to the slot; frees the slot unless it is cached.
    /// Returns its group if it was freed.
    #[must_use = "the slot's charge has to go"]
    pub(crate) fn unmap(&mut self, slot: SwapSlot) -> Option<MemcgId> {
        debug_assert!(self.at(slot).mapped, "{slot:?} is not mapped");
        self.at_mut(slot).mapped = false;
        self.release_if_free(slot)
    }

    /// Puts a frame in the swap cache of a slot in use (swap-in). Returns the shadow.
    pub(crate) fn add_to_cache(&mut self, slot: SwapSlot, pfn: Pfn) -> Shadow {
        debug_assert!(self.at(slot).cached == 0, "slot is cached already");
        self.set_content(slot, pfn.0 + 1, Shadow::NONE)
    }

    /// Changes the slot of the tree. Returns its shadow.
    #[inline]
    fn set_content(&mut self, slot: SwapSlot, cached: u32, shadow: Shadow) -> Shadow {
        let at = slot.0 - self.first;
        let state = &mut self.slots[at as usize];
        if let Some(nodes) = &mut self.shadow_nodes {
            nodes.changed(at, state.content(), TreeSlot::of(cached != 0, shadow));
        }
        state.cached = cached;
        core::mem::replace(&mut state.shadow, shadow)
    }

    /// The area's shadows are freed like those of files, and its tree takes memory.
    pub(super) fn keep_nodes(&mut self) {
        self.has_nodes = true;
        self.shadow_nodes = Some(Box::default());
    }

    /// Nodes of the tree that have only shadows.
    pub(crate) fn nr_shadow_nodes(&self) -> u64 {
        self.shadow_nodes.as_ref().map_or(0, |nodes| nodes.len())
    }

    /// Forgets the shadows of the node that has had only shadows for longest. Returns their slots;
    /// `None`: there is no such node.
    pub(crate) fn forget_shadow_node(&mut self) -> Option<Vec<SwapSlot>> {
        let nodes = self.shadow_nodes.as_mut()?;
        let node = nodes.oldest()?;
        let mut forgotten = Vec::new();
        for at in node << NODE_SHIFT..(node + 1) << NODE_SHIFT {
            if let Some(state) = self.slots.get_mut(at as usize) {
                let before = state.content();
                state.shadow = Shadow::NONE;
                let after = state.content();
                nodes.changed(at, before, after);
                if before != after {
                    forgotten.push(SwapSlot(self.first + at));
                }
            }
        }
        Some(forgotten)
    }

    /// Whether the counts of pages and shadows are right, for the audit.
    pub(crate) fn counts_shadows(&self) -> bool {
        let contents = self.slots.iter().map(SwapSlotState::content);
        self.shadow_nodes.as_ref().is_none_or(|nodes| nodes.agrees(contents))
    }

    /// Removes the frame from the swap cache and stores `shadow`; frees the slot unless it is
    /// mapped. Returns its group if it was freed.
    #[must_use = "the slot's charge has to go"]
    pub(crate) fn remove_from_cache(&mut self, slot: SwapSlot, shadow: Shadow) -> Option<MemcgId> {
        debug_assert!(self.at(slot).cached != 0, "{slot:?} is not cached");
        self.set_content(slot, 0, shadow);
        self.release_if_free(slot)
    }

    /// Replaces the frame in the swap cache of a slot (migration).
    pub(crate) fn replace_cached(&mut self, slot: SwapSlot, pfn: Pfn) {
        debug_assert!(self.at(slot).cached != 0, "{slot:?} is not cached");
        self.at_mut(slot).cached = pfn.0 + 1;
    }

    /// The frame in the swap cache of a slot.
    #[inline]
    pub fn cached(&self, slot: SwapSlot) -> Option<Pfn> {
        match self.at(slot).cached {
            0 => None,
            pfn => Some(Pfn(pfn - 1)),
        }
    }

    /// Whether the swap cache has an entry for the slot: a frame or a shadow.
    pub(crate) fn has_cache_entry(&self, slot: SwapSlot) -> bool {
        let state = self.at(slot);
        state.cached != 0 || state.shadow.is_some()
    }

    /// Whether a page-table entry refers to the slot.
    #[inline]
    pub(crate) fn is_mapped(&self, slot: SwapSlot) -> bool {
        self.slots.get((slot.0 - self.first) as usize).is_some_and(|slot| slot.mapped)
    }

    /// Whether a slot is in use, and whether its page is in the swap cache, for the audit.
    pub(crate) fn use_of(&self, slot: SwapSlot) -> (bool, bool) {
        let state = self.slots.get((slot.0 - self.first) as usize);
        state.map_or((false, false), |slot| (!slot.is_free(), slot.cached != 0))
    }

    /// Counts used slots without the stored counters, for the audit: (used, cached).
    pub(crate) fn count(&self) -> (u32, u32) {
        let used = self.slots.iter().filter(|slot| !slot.is_free()).count() as u32;
        let cached = self.slots.iter().filter(|slot| slot.cached != 0).count() as u32;
        (used, cached)
    }

    /// Slots with an entry in the swap cache, from the start of the area, for the audit.
    pub(crate) fn cache_entries(&self) -> impl Iterator<Item = u32> + '_ {
        let has_entry = |slot: &SwapSlotState| slot.cached != 0 || slot.shadow.is_some();
        (0..).zip(self.slots.iter()).filter(move |(_, slot)| has_entry(slot)).map(|(at, _)| at)
    }

    /// Calls `f` for every cached slot, for the audit.
    pub(crate) fn for_each_cached(&self, mut f: impl FnMut(SwapSlot, Pfn)) {
        for (at, slot) in self.slots.iter().enumerate() {
            if slot.cached != 0 {
                f(SwapSlot(self.first + at as u32), Pfn(slot.cached - 1));
            }
        }
    }
}
