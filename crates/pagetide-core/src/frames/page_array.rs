//! The descriptors of all frames; frames that were never used take no memory of the host.
//!
//! Linux initialises `mem_map` in parallel and late (`deferred_init_memmap`) because it is large.
//! Here most blocks of the largest order stay as boot left them: such a block is *fresh*. A small
//! table with one entry per block holds the boot state, and the descriptors of a fresh block are
//! untouched zero pages. A block is *opened* (its descriptors are written) before any of them
//! changes, and never becomes fresh again.
//!
//! A fresh block that is free is on its free list, with its links in the table. List operations
//! follow the links of descriptors. So before a block is removed, or linked next to another one,
//! its neighbours on the list are opened.
//!
//! Invariant: no descriptor of a fresh block is read or written except through [`PageArray::peek`];
//! indexing asserts this in debug builds.

use crate::frames::page::{Page, Place};
use crate::units::digest::{Digest, State};
use crate::units::{NodeId, Pfn, MAX_PAGE_ORDER};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut, Range};
use zerocopy::FromZeros;

/// Frames in a block of the largest order.
const BLOCK: usize = 1 << MAX_PAGE_ORDER;

/// Boot state of all frames of a block, or [`BlockContent::Opened`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BlockContent {
    /// The descriptors are valid.
    Opened,
    /// Not managed.
    Reserved,
    /// The kernel holds every frame, as a block of order 0.
    Held,
    /// One free block on the list of this type (`MigrateType`), with these two neighbours.
    Free { mt: u8, prev: Pfn, next: Pfn },
}

/// State of a block outside its descriptors.
#[derive(Clone, Copy, Debug)]
struct FrameBlock {
    content: BlockContent,
    zone: u8,
    node: NodeId,
}

/// The descriptors of all frames, by [`Pfn`].
#[derive(Debug)]
pub struct PageArray {
    pages: Vec<Page>,
    blocks: Vec<FrameBlock>,
    /// Notes of a page policy, by frame; empty without one.
    notes: Vec<u32>,
}

impl PageArray {
    /// An array of `nr_pages` unmanaged frames. `None` if the host has no memory for it.
    pub(crate) fn new(nr_pages: u64) -> Option<PageArray> {
        let pages = Page::new_vec_zeroed(usize::try_from(nr_pages).ok()?).ok()?;
        let block = FrameBlock { content: BlockContent::Reserved, zone: 0, node: NodeId(0) };
        let mut blocks = Vec::new();
        let nr_blocks = pages.len().div_ceil(BLOCK);
        blocks.try_reserve_exact(nr_blocks).ok()?;
        blocks.resize(nr_blocks, block);
        Some(PageArray { pages, blocks, notes: Vec::new() })
    }

    /// The note of a page policy about a frame.
    pub(crate) fn note(&self, pfn: Pfn) -> u32 {
        self.notes.get(pfn.idx()).copied().unwrap_or(0)
    }

    /// Sets the note of a page policy about a frame.
    pub(crate) fn set_note(&mut self, pfn: Pfn, note: u32) {
        if self.notes.is_empty() && note != 0 {
            self.notes = vec![0; self.pages.len()];
        }
        if let Some(old) = self.notes.get_mut(pfn.idx()) {
            *old = note;
        }
    }

    /// Number of frames.
    #[inline]
    pub const fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether there is no frame.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The descriptor of a frame; `None` if the frame does not exist, or its block is fresh
    /// (unused).
    #[inline]
    pub fn get(&self, at: usize) -> Option<&Page> {
        if self.is_fresh(at) {
            return None;
        }
        self.pages.get(at)
    }

    /// Whether the block of the frame is as boot left it, with descriptors that were never written.
    #[inline]
    pub fn is_fresh(&self, at: usize) -> bool {
        self.blocks.get(at / BLOCK).is_some_and(|block| block.content != BlockContent::Opened)
    }

    /// The frames with written descriptors, each with its descriptor; lowest first.
    #[inline]
    pub fn opened(&self) -> OpenedFrames<'_> {
        OpenedFrames { array: self, block: 0, at: 0, rest: [].iter() }
    }

    /// First frames of the fresh free blocks; lowest first.
    pub(crate) fn fresh_free(&self) -> impl Iterator<Item = Pfn> + '_ {
        let blocks = self.blocks.iter().enumerate();
        let free = blocks.filter(|(_, block)| matches!(block.content, BlockContent::Free { .. }));
        free.map(|(at, _)| Pfn((at * BLOCK) as u32))
    }

    /// Frame ranges of the blocks in which the kernel may hold frames; lowest first.
    pub(crate) fn with_held(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let may_have = |content| matches!(content, BlockContent::Opened | BlockContent::Held);
        let blocks = self.blocks.iter().enumerate();
        let blocks = blocks.filter(move |(_, block)| may_have(block.content));
        blocks.map(|(at, _)| at * BLOCK..((at + 1) * BLOCK).min(self.len()))
    }

    /// The descriptor of a frame, or the one it would have if its block were opened.
    #[inline]
    pub fn peek(&self, at: usize) -> Page {
        let block = &self.blocks[at / BLOCK];
        if block.content == BlockContent::Opened {
            self.pages[at].clone()
        } else {
            block.page(at % BLOCK)
        }
    }

    /// Writes the descriptors of the frame's block, unless the block is already open. Ignores
    /// unknown frames.
    #[inline]
    pub(crate) fn open(&mut self, pfn: Pfn) {
        if self.is_fresh(pfn.idx()) {
            self.open_block(pfn.idx() / BLOCK);
        }
    }

    /// Opens a block of the largest order and its neighbours on the list, before the block is
    /// unlinked.
    pub(crate) fn open_between(&mut self, pfn: Pfn) {
        self.open(pfn);
        let page = &self[pfn];
        let (prev, next) = (page.prev, page.next);
        self.open(prev);
        self.open(next);
    }

    #[cold]
    #[inline(never)]
    fn open_block(&mut self, at: usize) {
        let block = self.blocks[at];
        self.blocks[at].content = BlockContent::Opened;
        let first = at * BLOCK;
        let end = (first + BLOCK).min(self.pages.len());
        for (i, page) in self.pages[first..end].iter_mut().enumerate() {
            *page = block.page(i);
        }
    }

    /// Assigns the frames of a range to a zone. They must follow all frames assigned before.
    pub(crate) fn assign(&mut self, frames: Range<u64>, zone: u8, node: NodeId) {
        let (from, to) = (frames.start as usize, frames.end as usize);
        let first_whole = from.next_multiple_of(BLOCK).min(to);
        if from < first_whole {
            // The block is shared with the previous zone.
            self.open(Pfn(from as u32));
            self.pages[from..first_whole].fill(Page::reserved(zone, node));
        }
        for block in &mut self.blocks[first_whole / BLOCK..to.div_ceil(BLOCK)] {
            block.zone = zone;
            block.node = node;
        }
    }

    /// Allocates unmanaged frames for the kernel, each as a block of order 0. `mark` writes the
    /// descriptors of frames in opened blocks.
    pub(crate) fn hold(&mut self, frames: Range<u32>, mark: impl Fn(&mut PageArray, Pfn)) {
        let (mut at, end) = (frames.start as usize, frames.end as usize);
        while at < end {
            let is_whole = at.is_multiple_of(BLOCK) && end - at >= BLOCK;
            let block = &mut self.blocks[at / BLOCK];
            if is_whole && block.content == BlockContent::Reserved {
                block.content = BlockContent::Held;
                at += BLOCK;
            } else {
                self.open(Pfn(at as u32));
                mark(self, Pfn(at as u32));
                at += 1;
            }
        }
    }

    /// Links a fresh block of the largest order after the last block of a free list, without
    /// opening it. Returns false and changes nothing if the block is not fresh or not complete.
    pub(crate) fn link_fresh(&mut self, pfn: Pfn, mt: u8, last: Pfn) -> bool {
        let first = pfn.idx();
        if !self.is_fresh(first) || first + BLOCK > self.len() {
            return false;
        }
        self.blocks[first / BLOCK].content = BlockContent::Free { mt, prev: last, next: Pfn::NONE };
        if last.is_some() {
            match &mut self.blocks[last.idx() / BLOCK].content {
                BlockContent::Free { next, .. } => *next = pfn,
                _ => self.pages[last.0 as usize].next = pfn,
            }
        }
        true
    }
}

/// Iterator over the frames with written descriptors ([`PageArray::opened`]).
#[derive(Clone, Debug)]
pub struct OpenedFrames<'a> {
    array: &'a PageArray,
    /// The next block.
    block: usize,
    at: u32,
    rest: core::slice::Iter<'a, Page>,
}

impl<'a> Iterator for OpenedFrames<'a> {
    type Item = (Pfn, &'a Page);

    #[inline]
    fn next(&mut self) -> Option<(Pfn, &'a Page)> {
        loop {
            if let Some(page) = self.rest.next() {
                self.at += 1;
                return Some((Pfn(self.at - 1), page));
            }
            let is_opened = self.array.blocks.get(self.block)?.content == BlockContent::Opened;
            let first = self.block * BLOCK;
            self.block += 1;
            if is_opened {
                let end = (first + BLOCK).min(self.array.len());
                self.at = first as u32;
                self.rest = self.array.pages[first..end].iter();
            }
        }
    }
}

impl FrameBlock {
    fn page(&self, at: usize) -> Page {
        let mut page = Page::reserved(self.zone, self.node);
        match self.content {
            BlockContent::Opened | BlockContent::Reserved => {}
            BlockContent::Held => page.place = Place::Allocated,
            BlockContent::Free { mt, prev, next } if at == 0 => {
                page.place = Place::Buddy;
                page.prev = prev;
                page.next = next;
                page.private = MAX_PAGE_ORDER.into();
                page.index = mt.into();
            }
            BlockContent::Free { .. } => page.place = Place::BuddyTail,
        }
        page
    }
}

/// Copies opened blocks; fresh blocks stay fresh in the copy.
impl Clone for PageArray {
    fn clone(&self) -> PageArray {
        let Ok(mut pages) = Page::new_vec_zeroed(self.len()) else {
            // If the host has no memory, the clone fails like the clone of any other table.
            return PageArray {
                pages: self.pages.clone(),
                blocks: self.blocks.clone(),
                notes: self.notes.clone(),
            };
        };
        let blocks = self.blocks.iter().zip(pages.chunks_mut(BLOCK).zip(self.pages.chunks(BLOCK)));
        for (_, (to, from)) in blocks.filter(|(block, _)| block.content == BlockContent::Opened) {
            to.clone_from_slice(from);
        }
        PageArray { pages, blocks: self.blocks.clone(), notes: self.notes.clone() }
    }
}

impl Index<Pfn> for PageArray {
    type Output = Page;

    #[inline]
    fn index(&self, pfn: Pfn) -> &Page {
        &self[pfn.idx()]
    }
}

impl IndexMut<Pfn> for PageArray {
    #[inline]
    fn index_mut(&mut self, pfn: Pfn) -> &mut Page {
        &mut self[pfn.idx()]
    }
}

impl Index<usize> for PageArray {
    type Output = Page;

    #[inline]
    fn index(&self, at: usize) -> &Page {
        debug_assert!(!self.is_fresh(at), "pfn{at} is read but its block was never opened");
        &self.pages[at]
    }
}

impl IndexMut<usize> for PageArray {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut Page {
        debug_assert!(!self.is_fresh(at), "pfn{at} is written but its block was never opened");
        &mut self.pages[at]
    }
}

impl Index<Range<usize>> for PageArray {
    type Output = [Page];

    #[inline]
    fn index(&self, frames: Range<usize>) -> &[Page] {
        debug_assert!(frames.is_empty() || !self.is_fresh(frames.start));
        &self.pages[frames]
    }
}

impl IndexMut<Range<usize>> for PageArray {
    #[inline]
    fn index_mut(&mut self, frames: Range<usize>) -> &mut [Page] {
        debug_assert!(frames.is_empty() || !self.is_fresh(frames.start));
        &mut self.pages[frames]
    }
}

/// Hashes the boot state of fresh blocks. O(frames of opened blocks + blocks).
impl State for PageArray {
    fn digest(&self, digest: &mut Digest) {
        digest.write_u64(self.len() as u64);
        if !self.notes.is_empty() {
            self.notes.digest(digest);
        }
        for (block, pages) in self.blocks.iter().zip(self.pages.chunks(BLOCK)) {
            let FrameBlock { content, zone, node } = *block;
            digest.write_all(&match content {
                BlockContent::Opened => [0; 4],
                BlockContent::Reserved => [1, 0, 0, 0],
                BlockContent::Held => [2, 0, 0, 0],
                BlockContent::Free { mt, prev, next } => {
                    [3, mt.into(), u64::from(prev.0), u64::from(next.0)]
                }
            });
            if content == BlockContent::Opened {
                pages.iter().for_each(|page| page.digest(digest));
            } else {
                digest.write_all(&[u64::from(zone), u64::from(node.0)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::gfp::Gfp;
    use crate::frames::node::{NodeSpec, ZoneSpec};
    use crate::frames::page_alloc::Memory;
    use crate::units::{Cpu, Order};
    use proptest::prelude::*;
    use std::vec;

    const CPU: Cpu = Cpu(0);

    /// Two nodes; the kernel holds more than a block of the first zone; no zone ends at a block's
    /// end.
    fn specs() -> [NodeSpec; 2] {
        let mut specs = [NodeSpec::x86_64(48 << 20, 0, 9 << 20), NodeSpec::remote(30 << 20, 0, 0)];
        let dma: &mut ZoneSpec = &mut specs[0].zones[0];
        dma.free = dma.managed - 1500;
        specs
    }

    /// A machine, and the same machine with all blocks opened at the start.
    fn twins() -> [Memory; 2] {
        let lazy = Memory::new(&specs(), 1).unwrap();
        let mut eager = lazy.clone();
        (0..eager.pages.len()).for_each(|at| eager.pages.open(Pfn(at as u32)));
        [lazy, eager]
    }

    /// Hash of all visible frames, lists and counts of a machine.
    fn seen(memory: &Memory) -> u64 {
        memory.audit().unwrap();
        let mut digest = Digest::new();
        memory.nodes.iter().for_each(|node| node.digest(&mut digest));
        memory.vmstat.digest(&mut digest);
        (0..memory.pages.len()).for_each(|at| memory.pages.peek(at).digest(&mut digest));
        digest.finish()
    }

    #[derive(Clone, Debug)]
    enum Op {
        /// Order, whether for a program, node.
        Take(Order, bool, u8),
        /// Frees one of the allocated blocks.
        Give(usize),
        /// Isolates the free block at this fraction of the frames, for compaction.
        Isolate(u16),
        /// Captures a block of this order at this fraction of the frames.
        Capture(u16, Order),
        Drain,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (0..=MAX_PAGE_ORDER, any::<bool>(), 0..2u8)
                .prop_map(|(order, user, node)| Op::Take(order, user, node)),
            4 => any::<usize>().prop_map(Op::Give),
            1 => any::<u16>().prop_map(Op::Isolate),
            1 => (any::<u16>(), 0..=MAX_PAGE_ORDER).prop_map(|(at, order)| Op::Capture(at, order)),
            1 => Just(Op::Drain),
        ]
    }

    fn perform(memory: &mut Memory, op: &Op, taken: &mut Vec<(Pfn, Order)>) -> Option<Pfn> {
        let share = |at: u16, order: Order, len: usize| {
            Pfn((usize::from(at) * len / 65_536) as u32 & !((1 << order) - 1))
        };
        let len = memory.pages.len();
        let zone_at = |memory: &Memory, pfn: Pfn| {
            let zones = memory.nodes.iter().enumerate();
            let mut all = zones.flat_map(|(n, node)| (0..node.zones.len()).map(move |z| (n, z)));
            all.find(|&(n, z)| memory.nodes[n].zones[z].spans(pfn.0))
        };
        match *op {
            Op::Take(order, user, node) => {
                let gfp = if user { Gfp::HIGHUSER_MOVABLE } else { Gfp::KERNEL };
                let pfn = memory.alloc_fast(CPU, NodeId(node), order, gfp)?;
                taken.push((pfn, order));
                Some(pfn)
            }
            Op::Give(at) if !taken.is_empty() => {
                let (pfn, order) = taken.swap_remove(at % taken.len());
                memory.free_page(CPU, pfn, order);
                Some(pfn)
            }
            Op::Give(_) => None,
            Op::Isolate(at) => {
                let pfn = share(at, MAX_PAGE_ORDER, len);
                let (n, z) = zone_at(memory, pfn)?;
                let zone = &mut memory.nodes[n].zones[z];
                let order = zone.isolate_free_block(&mut memory.pages, pfn)?;
                for frame in pfn.0..pfn.0 + (1 << order) {
                    memory.pages[frame as usize].place = Place::Allocated;
                    taken.push((Pfn(frame), 0));
                }
                Some(pfn)
            }
            Op::Capture(at, order) => {
                let pfn = share(at, order, len);
                let (n, z) = zone_at(memory, pfn)?;
                let zone = &mut memory.nodes[n].zones[z];
                if !zone.capture_block(&mut memory.pages, pfn, order) {
                    return None;
                }
                memory.alloc_captured(pfn, order);
                taken.push((pfn, order));
                Some(pfn)
            }
            Op::Drain => {
                memory.drain_all();
                None
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Opening a block early or late changes nothing visible.
        #[test]
        fn fresh_blocks_are_as_if_opened(ops in prop::collection::vec(op(), 1..200)) {
            let mut machines = twins();
            prop_assert_eq!(seen(&machines[0]), seen(&machines[1]));
            let mut taken = [vec![], vec![]];
            for (nth, op) in ops.iter().enumerate() {
                let [lazy, eager] = &mut machines;
                let got = perform(lazy, op, &mut taken[0]);
                prop_assert_eq!(got, perform(eager, op, &mut taken[1]), "{:?}", op);
                if nth % 64 == 63 {
                    prop_assert_eq!(seen(lazy), seen(eager));
                }
            }
            prop_assert_eq!(seen(&machines[0]), seen(&machines[1]));
        }
    }

    #[test]
    fn unused_frames_stay_fresh() {
        let spec = NodeSpec::x86_64(64 << 30, 0, 0);
        let mut memory = Memory::new(&[spec], 1).unwrap();
        let opened = |memory: &Memory| memory.pages.opened().count();
        assert!(opened(&memory) <= 2 * BLOCK, "boot opens blocks that are shared or not whole");
        for _ in 0..10 * BLOCK {
            memory.alloc_fast(CPU, NodeId(0), 0, Gfp::HIGHUSER_MOVABLE).unwrap();
        }
        assert!(opened(&memory) <= 14 * BLOCK, "{}", opened(&memory));
        assert_eq!(opened(&memory), opened(&memory.clone()));
    }
}
