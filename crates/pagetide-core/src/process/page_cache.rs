//! The page cache: cached pages of files, and shadows of evicted ones.
//!
//! Linux: `struct address_space` and mm/filemap.c. Each file page has an 8-byte slot: a frame, the
//! shadow of an evicted page, or nothing. Slots are a flat, lazily allocated array: a look-up is
//! one load.
//!
//! Invariant: slot `i` of file `f` holds frame `p` exactly if `pages[p]` has
//! [`PageFlags::FILE`](crate::frames::page::PageFlags::FILE), `mapping` f and `index` i. `nr_pages` and
//! `nr_dirty` count such pages.

use crate::ageing::shadow::Shadow;
use crate::process::object::{MemoryObject, ObjectSlot};
use crate::process::page_table::VmaId;
use crate::process::writeback::work::ForeignHistory;
use crate::slab::object::Object;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{BdiId, FileId, IdVec, Pfn};
use alloc::vec;
use alloc::vec::Vec;

const PRESENT: u64 = 1 << 63;

/// The page cache of a file.
#[derive(Clone, Debug, State)]
pub struct FileCache {
    #[state(skip)] // the same for all files
    page_size: PageSize,
    #[state(sparse)]
    slots: Vec<u64>,
    /// One bit per page: whether it is dirty (Linux `PAGECACHE_TAG_DIRTY`).
    #[state(sparse)]
    dirty: Vec<u64>,
    /// One word per lowest tree node, with a bit for each slot in use.
    #[state(skip)] // derived from `slots`
    leaves: Vec<u64>,
    /// Like `leaves`, but with bits only for slots that hold a page.
    #[state(skip)] // likewise
    present: Vec<u64>,
    /// Number of `leaves` in use below each node of the second level.
    branches: Vec<u8>,
    /// Slab objects of the nodes, by level.
    nodes: [Vec<Object>; 2],
    /// Number of tree nodes in use.
    pub nr_nodes: u64,
    /// Size in bytes.
    pub size: u64,
    /// The file begins as one hole: reading a page that was never written needs no I/O.
    pub sparse: bool,
    /// The file holds the file system's own blocks. The journal keeps them in place while they are
    /// dirty (Linux: pages of the block device, `b_count` of their buffers).
    #[state(skip)] // its effect is in the flags of the pages
    pub metadata: bool,
    /// One bit per page of a sparse file: whether the page was written to disk. The array ends with
    /// the word of the last page that was written.
    written: Vec<u64>,
    /// The device that the file is on.
    pub(crate) bdi: BdiId,
    /// The writeback that the file belongs to since it was dirtied first (Linux `i_wb`).
    pub(crate) wb: Option<u32>,
    /// Which groups have written it.
    pub(crate) foreign: ForeignHistory,
    /// Queued in its writeback, or being written.
    pub(crate) queued: bool,
    /// Pages in memory.
    pub nr_pages: u64,
    /// Dirty pages not under writeback.
    pub nr_dirty: u64,
    /// Pages under writeback.
    pub(crate) nr_writeback: u64,
    /// Shadow entries.
    pub nr_shadows: u64,
    /// Where the next writeback of this file starts.
    pub writeback_index: u32,
    /// When the file became dirty (Linux `dirtied_when`).
    pub dirtied_when: u64,
    /// Mappings of the file, in order of creation (Linux `i_mmap`).
    pub mappings: Vec<VmaId>,
    /// Removed: no new request may use the file.
    pub removed: bool,
    /// All pages have left memory, and the id is free.
    pub(crate) gone: bool,
    /// Generation: the number of files created before.
    pub(crate) generation: u64,
}

impl MemoryObject {
    /// Mappings that may have an entry for a page, in order of creation.
    #[inline]
    pub fn mappings<'a>(&'a self, files: &'a IdVec<FileId, FileCache>) -> &'a [VmaId] {
        match self {
            MemoryObject::Anon(vma) => core::slice::from_ref(vma),
            MemoryObject::File(file) => &files[*file].mappings,
        }
    }
}

impl FileCache {
    /// A file of `size` bytes with nothing cached.
    pub fn new(size: u64, sparse: bool, page_size: PageSize) -> FileCache {
        let pages = page_size.pages_for(size) as usize;
        FileCache {
            page_size,
            slots: vec![0; pages],
            dirty: vec![0; pages.div_ceil(64)],
            leaves: vec![0; pages.div_ceil(64)],
            present: vec![0; pages.div_ceil(64)],
            branches: vec![0; pages.div_ceil(64 * 64)],
            nodes: [Vec::new(), Vec::new()],
            nr_nodes: 0,
            size,
            sparse,
            metadata: false,
            written: Vec::new(),
            bdi: BdiId(0),
            wb: None,
            foreign: ForeignHistory::default(),
            queued: false,
            nr_pages: 0,
            nr_dirty: 0,
            nr_writeback: 0,
            nr_shadows: 0,
            writeback_index: 0,
            dirtied_when: 0,
            mappings: Vec::new(),
            removed: false,
            gone: false,
            generation: 0,
        }
    }

    /// Pages of the file, including a partial last page.
    #[inline]
    pub fn nr_file_pages(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Extends the file to `size` bytes; never shrinks it.
    pub fn extend(&mut self, size: u64) {
        if size > self.size {
            self.size = size;
            let pages = self.page_size.pages_for(size) as usize;
            if pages > self.slots.len() {
                self.slots.resize(pages, 0);
                self.dirty.resize(pages.div_ceil(64), 0);
                self.leaves.resize(pages.div_ceil(64), 0);
                self.present.resize(pages.div_ceil(64), 0);
                self.branches.resize(pages.div_ceil(64 * 64), 0);
            }
        }
    }

    #[inline]
    pub(crate) fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// The cached frame of a page.
    #[inline]
    pub fn get(&self, index: u32) -> Option<Pfn> {
        match self.slots.get(index as usize) {
            Some(&slot) if slot & PRESENT != 0 => Some(Pfn(slot as u32)),
            _ => None,
        }
    }

    /// Contents of a page's slot.
    pub(crate) fn slot(&self, index: u32) -> ObjectSlot {
        match self.slots.get(index as usize).copied().unwrap_or(0) {
            0 => ObjectSlot::Empty,
            slot if slot & PRESENT != 0 => ObjectSlot::Frame(Pfn(slot as u32)),
            slot => ObjectSlot::Shadow(Shadow::from_bits(slot)),
        }
    }

    /// Puts a frame in an empty slot. Returns the shadow that was there.
    pub fn insert(&mut self, index: u32, pfn: Pfn) -> Shadow {
        let slot = &mut self.slots[index as usize];
        debug_assert!(*slot & PRESENT == 0, "page {index} is cached already");
        let shadow = Shadow::from_bits(*slot);
        *slot = PRESENT | u64::from(pfn.0);
        self.present[node_at(0, index)] |= bit_of(index);
        self.nr_pages += 1;
        if shadow.is_some() {
            self.nr_shadows -= 1;
        } else {
            self.use_slot(index);
        }
        shadow
    }

    /// Removes a frame and stores `shadow` in its slot.
    pub fn remove(&mut self, index: u32, shadow: Shadow) {
        let slot = &mut self.slots[index as usize];
        debug_assert!(*slot & PRESENT != 0, "page {index} is not cached");
        *slot = shadow.bits();
        self.present[node_at(0, index)] &= !bit_of(index);
        self.nr_pages -= 1;
        if shadow.is_some() {
            self.nr_shadows += 1;
        } else {
            self.leave_slot(index);
        }
    }

    /// Notes that an empty slot comes into use, and counts new nodes. Files of up to 64 pages have
    /// one node; levels above the second have too few nodes to matter.
    fn use_slot(&mut self, index: u32) {
        let leaf = node_at(0, index);
        let was_empty = self.leaves[leaf] == 0;
        self.leaves[leaf] |= bit_of(index);
        if was_empty {
            self.nr_nodes += 1;
            if self.leaves.len() > 1 {
                self.branches[leaf / 64] += 1;
                self.nr_nodes += u64::from(self.branches[leaf / 64] == 1);
            }
        }
    }
    fn leave_slot(&mut self, index: u32) {
        self.leave_slots(node_at(0, index), bit_of(index));
    }

    /// Notes that `slots` of a lowest node (at least one) become empty.
    fn leave_slots(&mut self, leaf: usize, slots: u64) {
        self.leaves[leaf] &= !slots;
        if self.leaves[leaf] == 0 {
            self.nr_nodes -= 1;
            // `use_slot` does not count the only leaf of a file in `branches`. If the file grows
            // later, that leaf is still not counted.
            if self.branches[leaf / 64] > 0 {
                self.branches[leaf / 64] -= 1;
                self.nr_nodes -= u64::from(self.branches[leaf / 64] == 0);
            }
        }
    }

    /// Whether the node above a page is in use and has no slab object. Level 0 nodes hold 64 pages.
    pub(crate) fn lacks_node(&self, level: usize, index: u32) -> bool {
        let at = node_at(level, index);
        let has = self.nodes[level].get(at).is_some_and(|node| node.is_some());
        self.is_in_use(level, at) && !has
    }

    /// Whether a node of a level has anything below it.
    fn is_in_use(&self, level: usize, at: usize) -> bool {
        match level {
            0 => self.leaves.get(at).is_some_and(|&slots| slots != 0),
            _ => self.branches.get(at).is_some_and(|&nodes| nodes > 0),
        }
    }
    pub(crate) fn set_node(&mut self, level: usize, index: u32, node: Object) {
        let at = node_at(level, index);
        if self.nodes[level].len() <= at {
            self.nodes[level].resize(at + 1, Object::NONE);
        }
        self.nodes[level][at] = node;
    }

    /// Takes the slab object of a node that is not in use.
    pub(crate) fn take_empty_node(&mut self, level: usize, index: u32) -> Object {
        let at = node_at(level, index);
        if self.is_in_use(level, at) {
            return Object::NONE;
        }
        let node = self.nodes[level].get_mut(at);
        node.map_or(Object::NONE, |node| core::mem::replace(node, Object::NONE))
    }

    /// Whether the lowest node above a page has slots in use, but no page.
    #[inline]
    pub(crate) fn has_only_shadows(&self, index: u32) -> bool {
        let leaf = node_at(0, index);
        self.leaves[leaf] != 0 && self.present[leaf] == 0
    }

    /// Whether the lowest node above a page has exactly one page.
    #[inline]
    pub(crate) fn has_one_page(&self, index: u32) -> bool {
        self.present[node_at(0, index)].is_power_of_two()
    }

    /// Slab object of the lowest node above a page, if any.
    #[inline]
    pub(crate) fn leaf_node(&self, index: u32) -> Option<Object> {
        self.nodes[0].get(node_at(0, index)).copied().filter(|node| node.is_some())
    }

    /// Slab objects of the lowest nodes, each with its first page.
    pub(crate) fn leaf_nodes(&self) -> impl Iterator<Item = (u32, Object)> + '_ {
        let nodes = self.nodes[0].iter().enumerate();
        nodes.filter(|(_, node)| node.is_some()).map(|(leaf, &node)| (leaf as u32 * 64, node))
    }

    /// Clears the shadows (at least one) of the lowest node above a page.
    pub(crate) fn forget_shadows_of_leaf(&mut self, index: u32) {
        let leaf = node_at(0, index);
        let shadows = self.leaves[leaf] & !self.present[leaf];
        for bit in bits(shadows) {
            self.slots[leaf * 64 + bit] = 0;
        }
        self.nr_shadows -= u64::from(shadows.count_ones());
        self.leave_slots(leaf, shadows);
    }

    /// Cached pages of a range below one lowest node: bit `i` is page `start + i`.
    #[inline]
    pub(crate) fn cached_bits_of_leaf(&self, range: core::ops::Range<u32>) -> u64 {
        debug_assert!(
            range.start < range.end && node_at(0, range.start) == node_at(0, range.end - 1)
        );
        let nr = range.end - range.start;
        let node = self.present.get(node_at(0, range.start)).copied().unwrap_or(0);
        node >> (range.start % 64) & u64::MAX >> (64 - nr)
    }
    pub(crate) fn node_objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.nodes.iter().flatten().copied().filter(|node| node.is_some())
    }

    /// Notes that pages go to disk: these pages of a sparse file are not holes afterwards.
    pub(crate) fn note_written(&mut self, start: u32, end: u32) {
        if self.sparse {
            let words = (end as usize).div_ceil(64);
            if self.written.len() < words {
                self.written.resize(words, 0);
            }
            for index in start..end {
                self.written[index as usize / 64] |= 1 << (index % 64);
            }
        }
    }
    pub(crate) fn is_written(&self, index: u32) -> bool {
        self.written.get(index as usize / 64).is_some_and(|word| word & 1 << (index % 64) != 0)
    }

    /// Whether a page is a hole, and the end of the run of pages of the same kind.
    pub(crate) fn run_of_holes(&self, index: u32, end: u32) -> (bool, u32) {
        if !self.sparse || self.written.is_empty() {
            return (self.sparse, end);
        }
        let hole = !self.is_written(index);
        let next = (index..end).find(|&at| self.is_written(at) == hole);
        (hole, next.unwrap_or(end))
    }

    /// Replaces the frame of a cached page (migration).
    pub fn replace(&mut self, index: u32, pfn: Pfn) {
        debug_assert!(self.slots[index as usize] & PRESENT != 0);
        self.slots[index as usize] = PRESENT | u64::from(pfn.0);
    }

    /// First page at or after `index` that is not cached, within `max` pages.
    pub fn next_miss(&self, index: u32, max: u32) -> u32 {
        (index..index.saturating_add(max))
            .find(|&i| self.get(i).is_none())
            .unwrap_or(index.saturating_add(max))
    }

    /// Length of the run of cached pages that ends just before `index`, at most `max`.
    pub fn run_before(&self, index: u32, max: u32) -> u32 {
        (0..max.min(index)).find(|&i| self.get(index - 1 - i).is_none()).unwrap_or(max.min(index))
    }

    /// Tags a page dirty. Returns whether it was clean.
    pub fn set_dirty(&mut self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1u64 << (index % 64));
        let was_clean = self.dirty[word] & bit == 0;
        self.dirty[word] |= bit;
        self.nr_dirty += u64::from(was_clean);
        was_clean
    }

    /// Removes the dirty tag. Returns whether the page was tagged.
    pub fn clear_dirty(&mut self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1u64 << (index % 64));
        let was_dirty = self.dirty[word] & bit != 0;
        self.dirty[word] &= !bit;
        self.nr_dirty -= u64::from(was_dirty);
        was_dirty
    }

    /// First dirty page at or after `from`.
    pub fn next_dirty(&self, from: u32) -> Option<u32> {
        if self.nr_dirty == 0 {
            return None;
        }
        let mut word = from as usize / 64;
        let mut bits = self.dirty.get(word)? & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                return Some((word * 64) as u32 + bits.trailing_zeros());
            }
            word += 1;
            bits = *self.dirty.get(word)?;
        }
    }
    pub(crate) fn shadows(&self) -> Vec<u32> {
        let leaves = self.leaves.iter().zip(&self.present).enumerate();
        let of_leaf = |(leaf, (used, present)): (usize, (&u64, &u64))| {
            bits(used & !present).map(move |bit| (leaf * 64 + bit) as u32)
        };
        leaves.flat_map(of_leaf).collect()
    }

    pub(crate) fn forget_shadow(&mut self, index: u32) {
        self.slots[index as usize] = 0;
        self.nr_shadows -= 1;
        self.leave_slot(index);
    }

    /// Empties a removed file; only its entry stays until the id is reused.
    pub(crate) fn mark_gone(&mut self) {
        let born = self.generation;
        *self = FileCache::new(0, self.sparse, self.page_size);
        (self.removed, self.gone, self.generation) = (true, true, born);
    }

    /// Calls `f` for every cached page, for the audit and for truncation.
    pub fn for_each_cached(&self, mut f: impl FnMut(u32, Pfn)) {
        for (leaf, &present) in self.present.iter().enumerate() {
            for index in bits(present).map(|bit| leaf * 64 + bit) {
                f(index as u32, Pfn(self.slots[index] as u32));
            }
        }
    }

    /// Whether the bits of the lowest nodes agree with the slots, for the audit.
    pub(crate) fn tree_bits_agree(&self) -> bool {
        let bits_of = |slots: &[u64]| {
            slots.iter().enumerate().fold((0, 0), |(used, present), (at, &slot)| {
                (used | u64::from(slot != 0) << at, present | (slot >> 63) << at)
            })
        };
        let found = self.slots.chunks(64).map(bits_of);
        found.eq(self.leaves.iter().copied().zip(self.present.iter().copied()))
    }
}

const fn node_at(level: usize, index: u32) -> usize {
    match level {
        0 => index as usize / 64,
        _ => index as usize / (64 * 64),
    }
}

const fn bit_of(index: u32) -> u64 {
    1 << (index % 64)
}

/// Positions of the set bits, lowest first.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit as usize)
    })
}
