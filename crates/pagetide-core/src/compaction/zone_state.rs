//! What a zone remembers of compaction: where the scanners were, what to skip, how long to defer.
//!
//! Linux: the `compact_*` fields of `struct zone` and the pageblock bit `PB_migrate_skip` (6.1).
//!
//! Invariant: cached positions lie in the zone's span; `defer_shift` is at most
//! [`COMPACT_MAX_DEFER_SHIFT`](super::defer::COMPACT_MAX_DEFER_SHIFT).

use crate::digest::Digest;
use crate::units::{Order, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use crate::zone::Zone;
use alloc::vec;
use alloc::vec::Vec;

/// Compaction's memory of one zone.
#[derive(Clone, Debug)]
pub struct ZoneCompaction {
    /// Where the migrate scanner goes on: asynchronous runs, synchronous runs.
    pub(super) cached_migrate: [u32; 2],
    /// Where the free scanner goes on.
    pub(super) cached_free: u32,
    /// Requests of `order_failed` or more since the last failure.
    pub(super) considered: u32,
    /// log2 of the requests to let pass.
    pub(super) defer_shift: u32,
    /// Lowest order that has failed.
    pub(super) order_failed: Order,
    /// A direct run has finished: kswapd clears the skip bits before it sleeps.
    pub(crate) blockskip_flush: bool,
    first_block: u32,
    skip: Vec<u64>,
}

/// First frame of a pageblock.
pub(super) const fn pageblock_start(pfn: u32) -> u32 {
    pfn & !(PAGEBLOCK_NR_PAGES - 1)
}

/// First frame behind the pageblock of `pfn`, which is below 2^29.
pub(super) const fn pageblock_end(pfn: u32) -> u32 {
    pageblock_start(pfn) + PAGEBLOCK_NR_PAGES
}

impl ZoneCompaction {
    pub(crate) fn new(start: u32, spanned: u64, nr_blocks: usize) -> ZoneCompaction {
        let mut state = ZoneCompaction {
            cached_migrate: [start; 2],
            cached_free: start,
            considered: 0,
            defer_shift: 0,
            order_failed: 0,
            blockskip_flush: false,
            first_block: start >> PAGEBLOCK_ORDER,
            skip: vec![0; nr_blocks.div_ceil(64)],
        };
        state.reset_positions(start, u64::from(start) + spanned);
        state
    }

    /// Both scanners begin at the ends again (Linux `reset_cached_positions`).
    pub(super) fn reset_positions(&mut self, start: u32, end: u64) {
        self.cached_migrate = [start; 2];
        self.cached_free = pageblock_start((end.max(1) - 1) as u32).max(start);
    }

    fn bit(&self, pfn: u32) -> (usize, u64) {
        let block = (pfn >> PAGEBLOCK_ORDER).wrapping_sub(self.first_block) as usize;
        (block / 64, 1 << (block % 64))
    }

    pub(super) fn is_skipped(&self, pfn: u32) -> bool {
        let (word, bit) = self.bit(pfn);
        self.skip[word] & bit != 0
    }

    /// Marks the pageblock of `pfn` as not worth a look.
    pub(super) fn set_skip(&mut self, pfn: u32) {
        let (word, bit) = self.bit(pfn);
        self.skip[word] |= bit;
    }

    /// Pageblocks that are skipped.
    pub fn nr_skipped(&self) -> u32 {
        self.skip.iter().map(|word| word.count_ones()).sum()
    }

    /// Forgets every skip bit, and where the scanners were.
    fn forget(&mut self, start: u32, end: u64) {
        self.skip.fill(0);
        self.blockskip_flush = false;
        self.reset_positions(start, end);
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        let ZoneCompaction {
            cached_migrate,
            cached_free,
            considered,
            defer_shift,
            order_failed,
            blockskip_flush,
            first_block,
            skip,
        } = self;
        for value in [cached_migrate[0], cached_migrate[1], *cached_free, *considered, *defer_shift]
        {
            digest.write_u64(value.into());
        }
        digest.write_u64(u64::from(*order_failed) << 1 | u64::from(*blockskip_flush));
        digest.write_u64((*first_block).into());
        digest.write_all(skip);
    }
}

impl Zone {
    /// Forgets what compaction has found not worth a look (Linux `__reset_isolation_suitable`, which
    /// leaves the bit on blocks that hold nothing to move and nothing free).
    pub(crate) fn reset_isolation_suitable(&mut self) {
        let (start, end) = (self.start_pfn.0, self.end_pfn());
        self.compaction.forget(start, end);
    }
}
