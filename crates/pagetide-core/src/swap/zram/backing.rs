//! The disk behind a zram device: its blocks, the marks of idle pages, and the limit of writes.
//!
//! Linux: `zram->bitmap`, `idle_store`, `writeback_limit_store`, `bd_stat_show`
//! (drivers/block/zram/zram_drv.c, 6.1).
//!
//! Invariant: a slot is under writeback if and only if a block is being written for it.

use super::{Zram, ZramEntry};
use crate::units::digest::State;
use crate::units::errno::Errno;
use crate::units::{Pfn, SwapSlot};
use alloc::string::String;
use alloc::vec::Vec;

/// Entries of the table that a step looks at.
const ENTRIES_A_STEP: u32 = 256;
/// `writeback_limit` and `bd_stat` count in units of 4 KiB.
pub(super) const UNIT_SHIFT: u32 = 12;

/// The pages that are written to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZramWritebackMode {
    /// Pages that were not used since they were marked.
    Idle,
    /// Pages that are not compressed.
    Huge,
    /// Pages that are both.
    HugeIdle,
}

/// A write to a file of all zram devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZramWrite {
    /// `all` to `idle`: marks the stored pages as idle.
    Idle,
    /// A mode to `writeback`: writes such pages to the disk.
    Writeback(ZramWritebackMode),
    /// The amount that may still be written, in units of 4 KiB, to `writeback_limit`.
    Limit(u64),
    /// 0 or 1 to `writeback_limit_enable`.
    LimitEnable(bool),
}

/// The disk behind a device (`backing_dev`).
#[derive(Clone, Debug, State)]
pub(crate) struct ZramBacking {
    /// Blocks that pages can have: one less than the disk has pages.
    nr_blocks: u64,
    pub(super) writes: Vec<BlockWrite>,
    /// Number of the next write.
    pub(super) next_write: u64,
    pub(super) limit_enabled: bool,
    /// The amount that may still be written, in units of 4 KiB, if the limit is enabled.
    pub(super) limit: u64,
    /// Pages read from the disk.
    pub(super) bd_reads: u64,
    /// Pages written to the disk.
    pub(super) bd_writes: u64,
    /// Writes that the disk has refused.
    pub(super) nr_failed: u64,
}

/// A block that is being written.
#[derive(Clone, Copy, Debug, State)]
pub(super) struct BlockWrite {
    pub slot: SwapSlot,
    pub at: u32,
    pub buffer: Pfn,
    pub number: u64,
}

/// The result of a look at a part of the table.
pub(super) enum NextBlock {
    /// An entry to write.
    Entry,
    /// None among those of this step.
    Later,
    EndOfTable,
    Refused(Errno),
}

impl ZramBacking {
    pub(super) fn new(nr_pages: u64) -> ZramBacking {
        ZramBacking {
            nr_blocks: nr_pages.saturating_sub(1),
            writes: Vec::new(),
            next_write: 0,
            limit_enabled: false,
            limit: 0,
            bd_reads: 0,
            bd_writes: 0,
            nr_failed: 0,
        }
    }
}

impl Zram {
    /// Pages read from the disk behind it and written to it, so far; `None`: there is none.
    pub fn backing_counts(&self) -> Option<(u64, u64)> {
        self.backing.as_ref().map(|backing| (backing.bd_reads, backing.bd_writes))
    }

    /// Whether the page of this slot of the device is on the disk behind it.
    pub(in crate::swap) fn is_on_disk(&self, at: u32) -> bool {
        self.entry(at) == ZramEntry::OnDisk
    }

    /// Blocks of the disk behind it in use (`bd_count`).
    pub fn nr_blocks_used(&self) -> u64 {
        let writes = self.backing.as_ref().map_or(0, |backing| backing.writes.len());
        self.stats.bd_pages + writes as u64
    }

    /// The text of /sys/block/zram*/bd_stat; `None`: there is no disk behind it.
    pub fn bd_stat(&self) -> Option<String> {
        let (reads, writes) = self.backing_counts()?;
        let units = |pages: u64| pages.saturating_mul(self.page_bytes >> UNIT_SHIFT);
        let used = units(self.nr_blocks_used());
        Some(alloc::format!("{used:>8} {:>8} {:>8}\n", units(reads), units(writes)))
    }

    /// Marks all stored pages as idle.
    pub(super) fn mark_idle(&mut self) {
        for slot in &mut self.table {
            if slot.entry != ZramEntry::Nothing && !slot.under_writeback {
                slot.idle = true;
            }
        }
    }

    pub(super) fn set_writeback_limit(&mut self, limit: Option<u64>, enabled: Option<bool>) {
        if let Some(backing) = &mut self.backing {
            backing.limit = limit.unwrap_or(backing.limit);
            backing.limit_enabled = enabled.unwrap_or(backing.limit_enabled);
        }
    }

    /// Whether the page of an entry is written in this mode.
    pub(super) fn is_wanted(&self, at: u32, mode: ZramWritebackMode) -> bool {
        let Some(slot) = self.table.get(at as usize) else { return false };
        let ZramEntry::Object { size, .. } = slot.entry else { return false };
        let is_huge = u64::from(size) == self.page_bytes;
        !slot.under_writeback
            && match mode {
                ZramWritebackMode::Idle => slot.idle,
                ZramWritebackMode::Huge => is_huge,
                ZramWritebackMode::HugeIdle => slot.idle && is_huge,
            }
    }

    /// The next entry to write, from `at` on.
    pub(super) fn next_block(&self, at: &mut u32, mode: ZramWritebackMode) -> NextBlock {
        let Some(backing) = &self.backing else { return NextBlock::EndOfTable };
        let end = (*at + ENTRIES_A_STEP).min(self.table.len() as u32);
        let found = (*at..end).find(|&at| self.is_wanted(at, mode));
        *at = found.unwrap_or(end);
        match found {
            Some(_) if backing.limit_enabled && backing.limit == 0 => {
                NextBlock::Refused(Errno::Eio)
            }
            Some(_) if self.nr_blocks_used() >= backing.nr_blocks => {
                NextBlock::Refused(Errno::Enospc)
            }
            Some(_) => NextBlock::Entry,
            None if (end as usize) < self.table.len() => NextBlock::Later,
            None => NextBlock::EndOfTable,
        }
    }

    /// The number of entries under writeback and of blocks being written, for the audit; and
    /// whether the pages on the disk have room there.
    pub(crate) fn count_writeback(&self) -> (u64, u64, bool) {
        let marked = self.table.iter().filter(|slot| slot.under_writeback).count() as u64;
        let (writes, blocks) = match &self.backing {
            Some(backing) => (backing.writes.len() as u64, backing.nr_blocks),
            None => (0, 0),
        };
        (marked, writes, self.nr_blocks_used() <= blocks)
    }
}
