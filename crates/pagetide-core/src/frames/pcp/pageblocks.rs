//! Single frames from open pageblocks, one bit each: policy `per_cpu_lists = "pageblocks"`.
//!
//! Linux has no such mechanism; LLFree (USENIX ATC 2023) keeps a bit for each frame of a block. A
//! pageblock with all frames free is *opened*: it leaves the buddy lists, and each CPU takes up to
//! 64 of its frames at a time, a *word*. When a frame is freed, its bit is set, and no other frame
//! is read. A block with all frames free again returns to the buddy lists. If a request for more
//! than one frame finds nothing on a zone's lists, it *closes* the open blocks of its type, or of
//! all types: their free frames go to the buddy lists, in blocks as large as possible. Compaction,
//! which works on the buddy lists, and kswapd, when it needs large blocks, also close blocks.
//! Blocks and words with the lowest addresses are used first, so that frames in use stay together.
//!
//! The cost is an assumption: one operation on the buddy lists for each word taken, each block
//! returned, and each part of a closed block; none for a single bit taken or freed.
//!
//! Invariant: a free frame of an open block is a set bit, either of the block or of one CPU's word,
//! and its place is [`Place::BuddyTail`]. Set bits of blocks count as free pages of the zone. Set
//! bits of words do not, like pages on per-CPU lists. A block is open only if all of it is in the
//! zone.

use super::{Pcp, PcpRequest};
use crate::frames::buddy::{clear_page, Placement};
use crate::frames::fallback::{FallbackLog, FallbackResult};
use crate::frames::gfp::{AllocFlags, MigrateType};
use crate::frames::page::Place;
use crate::frames::page_array::PageArray;
use crate::frames::zone::Zone;
use crate::units::digest::State;
use crate::units::{Cpu, Order, Pfn, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use alloc::vec;
use alloc::vec::Vec;

const WORDS: usize = PAGEBLOCK_NR_PAGES as usize / 64;
/// Migrate types for which blocks are opened.
const TYPES: usize = MigrateType::PCP_COUNT;

/// Free frames that a CPU has taken from an open block; one such word for each migrate type of
/// requests.
#[derive(Clone, Debug, State)]
pub(crate) struct FrameWord {
    free: u64,
    /// First of the 64 frames.
    base: Pfn,
}

impl FrameWord {
    /// No word: no frame is within 64 frames of this base.
    pub(super) const NONE: FrameWord = FrameWord { free: 0, base: Pfn(u32::MAX - 64) };

    /// Takes the lowest frame, if any.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<Pfn> {
        if self.free == 0 {
            return None;
        }
        let pfn = Pfn(self.base.0 + self.free.trailing_zeros());
        self.free &= self.free - 1;
        Some(pfn)
    }

    /// Takes a frame back if it is one of the 64.
    #[inline(always)]
    fn give(&mut self, pfn: Pfn) -> bool {
        let at = pfn.0.wrapping_sub(self.base.0);
        if at < 64 {
            assert!(self.free >> at & 1 == 0, "{pfn:?} is freed but not in use");
            self.free |= 1 << at;
        }
        at < 64
    }

    pub(super) const fn nr_free(&self) -> u32 {
        self.free.count_ones()
    }

    /// The free frames, lowest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Pfn> + '_ {
        (0..64).filter(|at| self.free >> at & 1 == 1).map(|at| Pfn(self.base.0 + at))
    }
}

/// The open pageblocks of a zone; all tables are empty under other policies.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct OpenBlocks {
    /// Type for which each pageblock is open, plus 1; 0 means not open.
    #[state(sparse)]
    kinds: Vec<u8>,
    /// Free frames of each block.
    #[state(sparse)]
    nr_free: Vec<u16>,
    /// Bits of the free frames of each block, in words of 64.
    #[state(sparse)]
    free: Vec<u64>,
    /// Open blocks with free frames, one bit per block, by type.
    partial: [Vec<u64>; TYPES],
    /// All words of `partial` before this one are 0.
    #[state(skip)] // where to look first
    lowest: [usize; TYPES],
    /// Number of parts of closed blocks that went to the buddy lists and are not counted as work
    /// yet.
    #[state(skip)] // work
    merges: u32,
}

impl OpenBlocks {
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Puts the policy in force for a zone of this many pageblocks.
    pub(super) fn turn_on(&mut self, nr_blocks: usize) {
        if !self.is_on() {
            self.kinds = vec![0; nr_blocks];
            self.nr_free = vec![0; nr_blocks];
            self.free = vec![0; nr_blocks * WORDS];
            self.partial = core::array::from_fn(|_| vec![0; nr_blocks.div_ceil(64)]);
        }
    }

    /// Returns and clears the number of operations on the buddy lists.
    #[inline(always)]
    pub(crate) fn take_merges(&mut self) -> u32 {
        core::mem::take(&mut self.merges)
    }

    fn is_open(&self, block: usize) -> bool {
        self.kinds.get(block).is_some_and(|&kind| kind != 0)
    }

    fn words(&self, block: usize) -> &[u64] {
        &self.free[block * WORDS..(block + 1) * WORDS]
    }

    /// The first block of a type with a free frame.
    fn first(&mut self, list: usize) -> Option<usize> {
        let words = &self.partial[list];
        let from = self.lowest[list];
        let found = words[from..].iter().position(|&word| word != 0);
        let at = found.map_or(words.len(), |at| from + at);
        self.lowest[list] = at;
        found.map(|_| at * 64 + words[at].trailing_zeros() as usize)
    }

    /// Takes at most `most` bits from the first word of a block that is not 0. Returns the offset
    /// of the word's first frame in the block, and the bits.
    fn take_word(&mut self, block: usize, most: u32) -> (u32, u64) {
        let words = &mut self.free[block * WORDS..(block + 1) * WORDS];
        let at = words.iter().position(|&word| word != 0).expect("the block has a bit");
        let mut left = words[at];
        for _ in 0..most.min(left.count_ones()) {
            left &= left - 1;
        }
        let bits = core::mem::replace(&mut words[at], left) & !left;
        self.subtract_bits(block, bits.count_ones());
        (at as u32 * 64, bits)
    }

    /// Subtracts the taken bits from a block's count.
    fn subtract_bits(&mut self, block: usize, nr: u32) {
        self.nr_free[block] -= nr as u16;
        if self.nr_free[block] == 0 {
            let list = usize::from(self.kinds[block]) - 1;
            self.partial[list][block / 64] &= !(1 << (block % 64));
        }
    }

    /// Adds the bits of freed frames to an open block. Returns whether all frames of the block are
    /// free.
    #[inline(always)]
    fn add_bits(&mut self, block: usize, word: usize, bits: u64) -> bool {
        let place = &mut self.free[block * WORDS + word];
        assert!(*place & bits == 0, "a frame is freed but not in use");
        *place |= bits;
        let nr = bits.count_ones();
        let nr_free = &mut self.nr_free[block];
        let was_full = *nr_free == 0;
        *nr_free += nr as u16;
        let is_free = u32::from(*nr_free) == PAGEBLOCK_NR_PAGES;
        if was_full {
            let list = usize::from(self.kinds[block]) - 1;
            self.partial[list][block / 64] |= 1 << (block % 64);
            self.lowest[list] = self.lowest[list].min(block / 64);
        }
        is_free
    }

    /// Removes a block from the open blocks. Returns its type and its words.
    fn close(&mut self, block: usize) -> (MigrateType, [u64; WORDS]) {
        let words = self.words(block).try_into().expect("they are as many");
        let nr = self.nr_free[block];
        if nr > 0 {
            self.subtract_bits(block, nr.into());
            self.free[block * WORDS..(block + 1) * WORDS].fill(0);
        }
        let kind = core::mem::take(&mut self.kinds[block]);
        (MigrateType::from_raw(u32::from(kind) - 1), words)
    }

    /// Open blocks, each with its words and its count of set bits; for the audit.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &[u64], u16)> + '_ {
        let open = (0..self.kinds.len()).filter(|&block| self.is_open(block));
        open.map(|block| (block, self.words(block), self.nr_free[block]))
    }

    /// Number of blocks marked as having free frames, over all types; for the audit.
    pub(crate) fn nr_partial(&self) -> usize {
        self.partial.iter().flatten().map(|word| word.count_ones() as usize).sum()
    }

    /// Number of set bits in all words, including those of closed blocks; for the audit.
    pub(crate) fn nr_bits(&self) -> u64 {
        self.free.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether a block is marked as having free frames; for the audit.
    pub(crate) fn is_partial(&self, block: usize) -> bool {
        let word = |list: usize| self.partial[list][block / 64] >> (block % 64) & 1 == 1;
        (0..TYPES).any(|list| usize::from(self.kinds[block]) == list + 1 && word(list))
    }
}

impl Zone {
    /// First frame of a pageblock, by its number in the zone.
    pub(crate) fn first_of_block(&self, block: usize) -> Pfn {
        Pfn(((self.start_pfn.0 >> PAGEBLOCK_ORDER) + block as u32) << PAGEBLOCK_ORDER)
    }

    /// Takes a frame for a CPU: from its word, its list, another word of an open block, a newly
    /// opened block, or other types. Returns the frame and the number of buddy operations; taking a
    /// word counts as one.
    pub(super) fn take_single(
        &mut self,
        pages: &mut PageArray,
        notes: &mut FallbackLog<'_>,
        cpu: Cpu,
        request: PcpRequest,
    ) -> (Option<Pfn>, u32) {
        let PcpRequest { mt, flags, .. } = request;
        let list = Pcp::list_index(0, mt);
        let mut buddy_ops = 0;
        self.stat.this_cpu = cpu;
        loop {
            let pcp = &mut self.pcps[cpu];
            if let Some(pfn) = pcp.words[list].take() {
                return (Some(pfn), buddy_ops);
            }
            if let Some(pfn) = pcp.lists[list].pop() {
                pcp.count -= 1;
                return (Some(pfn), buddy_ops);
            }
            buddy_ops += 1;
            if let Some(block) = self.open.first(list) {
                // In a small zone, take no more frames than the lists would hold: a batch is 2^n -
                // 1.
                let batch = self.pcps[cpu].batch;
                let most = if batch > 1 { batch + 1 } else { 1 };
                let (first, free) = self.open.take_word(block, most);
                let base = Pfn(self.first_of_block(block).0 + first);
                self.pcps[cpu].words[list] = FrameWord { free, base };
                self.remove_free(free.count_ones().into());
                continue;
            }
            // Use up blocks smaller than a pageblock before opening a block.
            if self.smallest_block(0, mt).is_some_and(|order| order < PAGEBLOCK_ORDER) {
                let pcp = &mut self.pcps[cpu];
                let want = pcp.refill_blocks(0);
                let mut taken = core::mem::take(&mut pcp.lists[list]);
                let nr = self.take_run_to(pages, &mut taken, 0, mt, want);
                taken.reverse();
                self.stat.add(-i64::from(nr));
                let pcp = &mut self.pcps[cpu];
                pcp.lists[list] = taken;
                pcp.count += nr;
                continue;
            }
            if self.open_block(pages, mt) {
                continue;
            }
            match self.steal(pages, notes, 0, mt, flags) {
                Some(FallbackResult::OnLists) => {}
                Some(FallbackResult::Taken(pfn)) => {
                    self.stat.add(-1);
                    return (Some(pfn), buddy_ops);
                }
                None if flags.nofragment => return (None, buddy_ops),
                None => return (self.take_foreign(notes, mt, flags), buddy_ops),
            }
        }
    }

    /// Opens a pageblock from the lists of a type, if one has all frames free.
    fn open_block(&mut self, pages: &mut PageArray, mt: MigrateType) -> bool {
        let Some(pfn) = self.take_smallest(pages, PAGEBLOCK_ORDER, mt) else { return false };
        let head = &mut pages[pfn];
        (head.place, head.private, head.index) = (Place::BuddyTail, 0, 0);
        let block = self.block_index(pfn);
        self.open.kinds[block] = mt as u8 + 1;
        for word in 0..WORDS {
            self.open.add_bits(block, word, u64::MAX);
        }
        self.add_free(PAGEBLOCK_NR_PAGES.into());
        true
    }

    /// Takes a frame from an open block of another type, as a last resort.
    fn take_foreign(
        &mut self,
        notes: &mut FallbackLog<'_>,
        mt: MigrateType,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        let mut kinds = mt.fallbacks().iter();
        let (from, block) = kinds.find_map(|&from| {
            let block = self.open.first(Pcp::list_index(0, from))?;
            Some((from, block))
        })?;
        let (first, bit) = self.open.take_word(block, 1);
        let pfn = Pfn(self.first_of_block(block).0 + first + bit.trailing_zeros());
        self.remove_free(1);
        if self.boost_watermark() && flags.kswapd {
            self.boosted = true;
        }
        self.note_fallback(notes, pfn, (0, mt), (0, from));
        Some(pfn)
    }

    /// Returns a freed frame to the CPU's word or to its open block. Returns false and changes
    /// nothing if its block is not open. Only the bit tells whether the frame is in use, because
    /// reading the descriptor, which is only written here, would wait for memory. So two kinds of
    /// free frames look like frames in use: a frame in another CPU's word, and a frame that this
    /// CPU has in its word although another CPU has returned it to the block.
    #[inline(always)]
    pub(crate) fn give_single(&mut self, pages: &mut PageArray, cpu: Cpu, pfn: Pfn) -> bool {
        let block = self.block_index(pfn);
        let kind = self.open.kinds.get(block).map_or(0, |&kind| usize::from(kind));
        let Some(list) = kind.checked_sub(1) else { return false };
        debug_assert!(!pages[pfn].place.is_unused(), "{pfn:?} is freed but not in use");
        debug_assert!(pages[pfn].prev.is_none() && pages[pfn].next.is_none());
        debug_assert_eq!(pages[pfn].mapcount, 0, "{pfn:?} is still mapped");
        clear_page(&mut pages[pfn], Place::BuddyTail);
        if self.pcps[cpu].words[list].give(pfn) {
            return true;
        }
        self.stat.this_cpu = cpu;
        self.add_free(1);
        let at = pfn.0 % PAGEBLOCK_NR_PAGES;
        if self.open.add_bits(block, at as usize / 64, 1 << (at % 64)) {
            self.close_block(pages, block);
        }
        true
    }

    /// Returns the frames of a CPU's words to their blocks or, if a block is closed, to the buddy
    /// lists. Returns the number of words.
    pub(super) fn return_words(&mut self, pages: &mut PageArray, cpu: Cpu) -> u32 {
        let mut nr = 0;
        self.stat.this_cpu = cpu;
        for list in 0..TYPES {
            let word = core::mem::replace(&mut self.pcps[cpu].words[list], FrameWord::NONE);
            if word.free == 0 {
                continue;
            }
            nr += 1;
            let block = self.block_index(word.base);
            let at = word.base.0 % PAGEBLOCK_NR_PAGES / 64;
            self.add_free(word.nr_free().into());
            if !self.open.is_open(block) {
                let mt = self.pcp_return_type(self.block_type(word.base), word.base);
                self.merge_frames(pages, word.base, &[word.free], mt);
            } else if self.open.add_bits(block, at as usize, word.free) {
                self.close_block(pages, block);
            }
        }
        nr
    }

    /// Closes all blocks that have a free frame, of one type or of all types. Returns whether there
    /// was one.
    #[cold]
    pub(crate) fn close_blocks(&mut self, pages: &mut PageArray, mt: Option<MigrateType>) -> bool {
        let all = 0..TYPES;
        let lists = all.filter(|&list| mt.is_none_or(|mt| Pcp::list_index(0, mt) == list));
        let mut any = false;
        for list in lists {
            while let Some(block) = self.open.first(list) {
                self.close_block(pages, block);
                any = true;
            }
        }
        any
    }

    /// Closes all blocks, including those without a free frame, for functions that need the buddy
    /// lists.
    pub(crate) fn close_all_blocks(&mut self, pages: &mut PageArray) {
        for block in 0..self.open.kinds.len() {
            if self.open.is_open(block) {
                self.close_block(pages, block);
            }
        }
    }

    /// Moves the free frames of a block to the buddy lists. They are already counted as free.
    #[cold]
    fn close_block(&mut self, pages: &mut PageArray, block: usize) {
        let (mt, words) = self.open.close(block);
        let first = self.first_of_block(block);
        let mt = self.pcp_return_type(mt, first);
        self.merge_frames(pages, first, &words, mt);
    }

    /// Adds frames to the buddy lists in blocks as large as possible. They are already counted as
    /// free.
    fn merge_frames(&mut self, pages: &mut PageArray, first: Pfn, words: &[u64], mt: MigrateType) {
        let nr = words.len() as u32 * 64;
        let mut at = 0;
        while at < nr {
            let aligned = (at | nr).trailing_zeros();
            let order = (0..=aligned).rev().find(|&order| has_all(words, at, 1 << order));
            if let Some(order) = order {
                let pfn = Pfn(first.0 + at);
                self.merge_block(pages, pfn, order as Order, mt, Placement::Likely);
                self.open.merges += 1;
            }
            at += 1 << order.unwrap_or(0);
        }
    }
}

/// Whether all `nr` bits from `at` are set; `nr` is a power of two, and `at` a multiple of it.
fn has_all(words: &[u64], at: u32, nr: u32) -> bool {
    let word = at as usize / 64;
    match nr {
        64.. => words[word..word + nr as usize / 64].iter().all(|&word| word == u64::MAX),
        _ => {
            let mask = ((1 << nr) - 1) << (at % 64);
            words[word] & mask == mask
        }
    }
}
