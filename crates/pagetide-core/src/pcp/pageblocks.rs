//! Single frames of open pageblocks, a bit for each: policy `per_cpu_lists = "pageblocks"`.
//!
//! Linux has no such thing; LLFree (USENIX ATC 2023) keeps a bit for each frame of a block. A pageblock that is free
//! as a whole is *opened*: it leaves the buddy lists, and each CPU takes up to 64 of its frames at a time, a *word*. A
//! frame that comes back sets its bit; no other frame is looked at. A block that is free again goes back to the buddy
//! lists as a whole. A request for more than one frame that finds nothing on a zone's lists *closes* the blocks of its
//! type, or all: what is free in them goes to the buddy lists, in the largest pieces. So does a compaction, which works
//! on those lists, and a kswapd that wants such blocks. Blocks and words with the lowest addresses come first, so that
//! what is in use stays together.
//!
//! What it costs is assumed: a word, a block that goes back and each piece of a closed one as one operation on the buddy
//! lists, a bit nothing.
//!
//! Invariant: a free frame of an open block is a bit of the block or of one CPU's word, and its descriptor is that of
//! a frame behind the head of a block. Bits of blocks are free pages of the zone; those of words, like the pages on
//! per-CPU lists, are not. A block is open only if it is the zone's as a whole.

use super::{Pcp, PcpRequest};
use crate::buddy::{clear_page, Placement};
use crate::digest::State;
use crate::fallback::{Fallen, Notes};
use crate::gfp::{AllocFlags, MigrateType};
use crate::page::Place;
use crate::page_array::PageArray;
use crate::units::{Cpu, Order, Pfn, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use crate::zone::Zone;
use alloc::vec;
use alloc::vec::Vec;

/// Words of a pageblock.
const WORDS: usize = PAGEBLOCK_NR_PAGES as usize / 64;
/// Types that blocks are opened for.
const TYPES: usize = MigrateType::PCP_COUNT;

/// Free frames that a CPU has taken out of an open block, by type of the request.
#[derive(Clone, Debug, State)]
pub(crate) struct Word {
    free: u64,
    /// First of the 64 frames.
    base: Pfn,
}

impl Word {
    /// No word: no frame is near its base.
    pub(super) const NONE: Word = Word { free: 0, base: Pfn(u32::MAX - 64) };

    /// The lowest frame, if there is one.
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

    /// Free frames.
    pub(super) const fn nr_free(&self) -> u32 {
        self.free.count_ones()
    }

    /// The free frames, lowest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Pfn> + '_ {
        (0..64).filter(|at| self.free >> at & 1 == 1).map(|at| Pfn(self.base.0 + at))
    }
}

/// The open pageblocks of a zone; all tables are empty under another policy.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct OpenBlocks {
    /// Type that each pageblock is open for, and one more; 0 if it is not open.
    #[state(sparse)]
    kinds: Vec<u8>,
    /// Bits of each.
    #[state(sparse)]
    nr_free: Vec<u16>,
    /// Free frames of each: its words.
    #[state(sparse)]
    free: Vec<u64>,
    /// Open blocks with bits, a bit for each block, by type.
    partial: [Vec<u64>; TYPES],
    /// No word of `partial` before this one has a bit.
    #[state(skip)] // where to look first
    lowest: [usize; TYPES],
    /// Pieces of closed blocks that went to the buddy lists, not yet told as work.
    #[state(skip)] // work
    merges: u32,
}

impl OpenBlocks {
    /// Whether the policy is in force.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Puts the policy in force for a zone of so many pageblocks.
    pub(super) fn turn_on(&mut self, nr_blocks: usize) {
        if !self.is_on() {
            self.kinds = vec![0; nr_blocks];
            self.nr_free = vec![0; nr_blocks];
            self.free = vec![0; nr_blocks * WORDS];
            self.partial = core::array::from_fn(|_| vec![0; nr_blocks.div_ceil(64)]);
        }
    }

    /// Operations on the buddy lists since this was last asked.
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

    /// The first block of a type that has a bit.
    fn first(&mut self, list: usize) -> Option<usize> {
        let words = &self.partial[list];
        let from = self.lowest[list];
        let found = words[from..].iter().position(|&word| word != 0);
        let at = found.map_or(words.len(), |at| from + at);
        self.lowest[list] = at;
        found.map(|_| at * 64 + words[at].trailing_zeros() as usize)
    }

    /// Takes bits out of the first word of a block that has one, at most so many: where the frames of that word begin
    /// in the block, and the bits.
    fn take_word(&mut self, block: usize, most: u32) -> (u32, u64) {
        let words = &mut self.free[block * WORDS..(block + 1) * WORDS];
        let at = words.iter().position(|&word| word != 0).expect("the block has a bit");
        let mut left = words[at];
        for _ in 0..most.min(left.count_ones()) {
            left &= left - 1;
        }
        let bits = core::mem::replace(&mut words[at], left) & !left;
        self.lose(block, bits.count_ones());
        (at as u32 * 64, bits)
    }

    /// A block has lost so many bits.
    fn lose(&mut self, block: usize, nr: u32) {
        self.nr_free[block] -= nr as u16;
        if self.nr_free[block] == 0 {
            let list = usize::from(self.kinds[block]) - 1;
            self.partial[list][block / 64] &= !(1 << (block % 64));
        }
    }

    /// Bits come to an open block. Says if all its frames are free.
    #[inline(always)]
    fn gain(&mut self, block: usize, word: usize, bits: u64) -> bool {
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

    /// A block is open no more. Gives its type and its words.
    fn close(&mut self, block: usize) -> (MigrateType, [u64; WORDS]) {
        let words = self.words(block).try_into().expect("they are as many");
        let nr = self.nr_free[block];
        if nr > 0 {
            self.lose(block, nr.into());
            self.free[block * WORDS..(block + 1) * WORDS].fill(0);
        }
        let kind = core::mem::take(&mut self.kinds[block]);
        (MigrateType::from_raw(u32::from(kind) - 1), words)
    }

    /// Open blocks with the free frames of each, and their sum as it is counted; for the audit.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &[u64], u16)> + '_ {
        let open = (0..self.kinds.len()).filter(|&block| self.is_open(block));
        open.map(|block| (block, self.words(block), self.nr_free[block]))
    }

    /// Blocks that are marked as having bits, of all types; for the audit.
    pub(crate) fn nr_partial(&self) -> usize {
        self.partial.iter().flatten().map(|word| word.count_ones() as usize).sum()
    }

    /// Bits in all words, those of closed blocks included; for the audit.
    pub(crate) fn nr_bits(&self) -> u64 {
        self.free.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether a block is one of those that have bits; for the audit.
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

    /// Takes a frame for a CPU: of its word, of its list, of another word of an open block, of a block to be opened,
    /// of other types. As [`Zone::pcp_take`], also gives the number of buddy operations; a word counts as one.
    pub(super) fn take_single(
        &mut self,
        pages: &mut PageArray,
        notes: &mut Notes<'_>,
        cpu: Cpu,
        request: PcpRequest,
    ) -> (Option<Pfn>, u32) {
        let PcpRequest { mt, flags, .. } = request;
        let list = Pcp::list_index(0, mt);
        let mut buddy_ops = 0;
        self.stat.this_cpu = cpu;
        loop {
            let pcp = &mut self.pcps[cpu.idx()];
            if let Some(pfn) = pcp.words[list].take() {
                return (Some(pfn), buddy_ops);
            }
            if let Some(pfn) = pcp.lists[list].pop() {
                pcp.count -= 1;
                return (Some(pfn), buddy_ops);
            }
            buddy_ops += 1;
            if let Some(block) = self.open.first(list) {
                // Of a small zone as little as its lists would hold: a batch is one less than a power of two.
                let batch = self.pcps[cpu.idx()].batch;
                let most = if batch > 1 { batch + 1 } else { 1 };
                let (first, free) = self.open.take_word(block, most);
                let base = Pfn(self.first_of_block(block).0 + first);
                self.pcps[cpu.idx()].words[list] = Word { free, base };
                self.remove_free(free.count_ones().into());
                continue;
            }
            // What is no whole block is used up before a block is opened.
            if self.smallest_block(0, mt).is_some_and(|order| order < PAGEBLOCK_ORDER) {
                let pcp = &mut self.pcps[cpu.idx()];
                let want = pcp.refill_blocks(0);
                let mut taken = core::mem::take(&mut pcp.lists[list]);
                let nr = self.take_run_to(pages, &mut taken, 0, mt, want);
                taken.reverse();
                self.stat.add(-i64::from(nr));
                let pcp = &mut self.pcps[cpu.idx()];
                pcp.lists[list] = taken;
                pcp.count += nr;
                continue;
            }
            if self.open_block(pages, mt) {
                continue;
            }
            match self.steal(pages, notes, 0, mt, flags) {
                Some(Fallen::OnLists) => {}
                Some(Fallen::Taken(pfn)) => {
                    self.stat.add(-1);
                    return (Some(pfn), buddy_ops);
                }
                None if flags.nofragment => return (None, buddy_ops),
                None => return (self.take_foreign(notes, mt, flags), buddy_ops),
            }
        }
    }

    /// Opens a pageblock of the lists of a type, if one is free as a whole.
    fn open_block(&mut self, pages: &mut PageArray, mt: MigrateType) -> bool {
        let Some(pfn) = self.take_smallest(pages, PAGEBLOCK_ORDER, mt) else { return false };
        let head = &mut pages[pfn.idx()];
        (head.place, head.private, head.index) = (Place::BuddyTail, 0, 0);
        let block = self.block_index(pfn);
        self.open.kinds[block] = mt as u8 + 1;
        for word in 0..WORDS {
            self.open.gain(block, word, u64::MAX);
        }
        self.add_free(PAGEBLOCK_NR_PAGES.into());
        true
    }

    /// A frame of an open block of another type, when there is nothing else.
    fn take_foreign(
        &mut self,
        notes: &mut Notes<'_>,
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

    /// Takes a frame that is being freed back into the CPU's word or its open block. False, and nothing done, if its
    /// block is not open. That it is in use is known by its bit: to read its
    /// descriptor, which is only written here, would be to wait for it. A frame in another CPU's word, or one that this
    /// CPU has in a word and another has put back into the block, is not told from one in use.
    #[inline(always)]
    pub(crate) fn give_single(&mut self, pages: &mut PageArray, cpu: Cpu, pfn: Pfn) -> bool {
        let block = self.block_index(pfn);
        let kind = self.open.kinds.get(block).map_or(0, |&kind| usize::from(kind));
        let Some(list) = kind.checked_sub(1) else { return false };
        debug_assert!(!pages[pfn.idx()].place.is_unused(), "{pfn:?} is freed but not in use");
        debug_assert!(pages[pfn.idx()].prev.is_none() && pages[pfn.idx()].next.is_none());
        debug_assert_eq!(pages[pfn.idx()].mapcount, 0, "{pfn:?} is still mapped");
        clear_page(&mut pages[pfn.idx()], Place::BuddyTail);
        if self.pcps[cpu.idx()].words[list].give(pfn) {
            return true;
        }
        self.stat.this_cpu = cpu;
        self.add_free(1);
        let at = pfn.0 % PAGEBLOCK_NR_PAGES;
        if self.open.gain(block, at as usize / 64, 1 << (at % 64)) {
            self.close_block(pages, block);
        }
        true
    }

    /// Puts what a CPU's words have back into their blocks, or on the buddy lists if a block has been closed. Says how
    /// many words that were.
    pub(super) fn return_words(&mut self, pages: &mut PageArray, cpu: Cpu) -> u32 {
        let mut nr = 0;
        self.stat.this_cpu = cpu;
        for list in 0..TYPES {
            let word = core::mem::replace(&mut self.pcps[cpu.idx()].words[list], Word::NONE);
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
            } else if self.open.gain(block, at as usize, word.free) {
                self.close_block(pages, block);
            }
        }
        nr
    }

    /// Closes all blocks of a type, or of all, that have a free frame. Says if there was one.
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

    /// Closes all blocks, also those without a free frame, for who works on the buddy lists.
    pub(crate) fn close_all_blocks(&mut self, pages: &mut PageArray) {
        for block in 0..self.open.kinds.len() {
            if self.open.is_open(block) {
                self.close_block(pages, block);
            }
        }
    }

    /// The free frames of a block, which are counted as free already, go to the buddy lists.
    #[cold]
    fn close_block(&mut self, pages: &mut PageArray, block: usize) {
        let (mt, words) = self.open.close(block);
        let first = self.first_of_block(block);
        let mt = self.pcp_return_type(mt, first);
        self.merge_frames(pages, first, &words, mt);
    }

    /// Puts frames on the buddy lists in the largest blocks that they form. They count as free already.
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

/// Whether all of `nr` bits from `at` on are set; `nr` is a power of two, and `at` a multiple of it.
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
