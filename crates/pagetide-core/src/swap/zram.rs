//! zram: a swap area in compressed memory.
//!
//! Linux: `__zram_bvec_write`, `zram_free_page`, `zram_slot_free_notify`, `mm_stat_show`
//! (drivers/block/zram/zram_drv.c, 6.1). A page filled with one word needs no memory. Another page
//! is compressed and stored in the device's pool; one that hardly becomes smaller takes a page. The
//! pool's pages come from the machine's memory while it is reclaimed, so a store can fail.
//!
//! Differences from Linux: the table of the device (16 bytes a slot) takes no memory of the machine;
//! that is 0.4 % of the device's size. A slot's object is freed with the slot; Linux frees up to 64
//! slots of a CPU together, later. [`writeback`] has what concerns a disk behind the device.
//!
//! Invariant: a slot has an object or a block only while the slot is in use, and has one if its page
//! is not in the swap cache. The statistics are sums over the slots.

mod backing;
pub(crate) mod writeback;

pub use backing::{ZramWrite, ZramWritebackMode};

use super::compressor::Compressor;
use super::content::PageContent;
use super::pool_pages::ZsPoolId;
use super::zsmalloc::{ZsHandle, ZsPool, ZspageMemory};
use crate::config::ZsmallocPolicy;
use crate::frames::gfp::Gfp;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{Cpu, SwapSlot};
use alloc::string::String;
use alloc::vec::Vec;
use backing::ZramBacking;

/// Description of a zram device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub struct ZramOptions {
    /// The algorithm (`comp_algorithm`).
    pub compressor: Compressor,
    /// Most pages of the pool (`mem_limit`); `None`: no limit.
    pub mem_limit: Option<u64>,
    /// Pages of the disk behind it (`backing_dev`); `None`: there is none.
    pub backing_pages: Option<u64>,
}

/// The entry of a slot in the device's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
enum ZramEntry {
    #[default]
    Nothing,
    /// One word, repeated (`ZRAM_SAME`).
    Same,
    /// An object of the pool; of the size of a page: not compressed (`ZRAM_HUGE`).
    Object { handle: ZsHandle, size: u32 },
    /// A block of the disk behind the device (`ZRAM_WB`).
    OnDisk,
}

/// A slot of the table: its entry, and the flags of its page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
struct ZramSlot {
    entry: ZramEntry,
    /// Not used since it was marked (`ZRAM_IDLE`).
    idle: bool,
    /// It is being written to the disk (`ZRAM_UNDER_WB`).
    under_writeback: bool,
}

/// Statistics of a device (Linux `struct zram_stats`; `mm_stat`, `io_stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub struct ZramStats {
    /// Pages stored.
    pub pages_stored: u64,
    /// Bytes of the compressed pages.
    pub compr_data_size: u64,
    /// Pages filled with one word.
    pub same_pages: u64,
    /// Pages that were not compressed.
    pub huge_pages: u64,
    /// Pages on the disk behind the device.
    pub bd_pages: u64,
    /// Pages that were not compressed, since the start.
    pub huge_pages_since: u64,
    /// Most pages of the pool so far.
    pub max_used_pages: u64,
    /// Pages of the pool that its compaction has freed.
    pub pages_compacted: u64,
    /// Writes that failed: no page, or the limit.
    pub failed_writes: u64,
    /// Writes that had to allocate again, with more rights (`writestall`).
    pub writestall: u64,
    /// Entries freed with their slots.
    pub notify_free: u64,
}

/// A device.
#[derive(Clone, Debug, State)]
pub struct Zram {
    options: ZramOptions,
    #[state(skip)] // fixed
    page_bytes: u64,
    table: Vec<ZramSlot>,
    pub(super) pool: ZsPool,
    stats: ZramStats,
    backing: Option<ZramBacking>,
}

impl ZramStats {
    /// Counts an entry of the table, or no longer.
    fn count(&mut self, entry: ZramEntry, page_bytes: u64, is_added: bool) {
        let count = |count: &mut u64, by: u64| match is_added {
            true => *count += by,
            false => *count -= by,
        };
        match entry {
            ZramEntry::Nothing => return,
            ZramEntry::Same => count(&mut self.same_pages, 1),
            ZramEntry::OnDisk => count(&mut self.bd_pages, 1),
            ZramEntry::Object { size, .. } => {
                count(&mut self.compr_data_size, size.into());
                count(&mut self.huge_pages, u64::from(u64::from(size) == page_bytes));
            }
        }
        count(&mut self.pages_stored, 1);
    }
}

/// Levels of all devices of a machine together, in bytes and pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZramLevels {
    /// Bytes of the pages stored, before compression (`orig_data_size`).
    pub orig_bytes: u64,
    /// Bytes of the compressed pages (`compr_data_size`).
    pub compr_bytes: u64,
    /// Bytes of the pools (`mem_used_total`).
    pub used_bytes: u64,
    /// Sum of the largest sizes of the pools so far (`mem_used_max`).
    pub max_used_bytes: u64,
    /// Pages filled with one word.
    pub same_pages: u64,
    /// Pages that were not compressed.
    pub huge_pages: u64,
    /// Pages that compaction of the pools has freed so far.
    pub pages_compacted: u64,
    /// Writes that have failed so far.
    pub failed_writes: u64,
    /// Pages on the disks behind the devices, and reads and writes of them so far (`bd_stat`).
    pub backing: Option<BackingLevels>,
}

/// Levels of the disks behind all devices, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackingLevels {
    /// Blocks in use (`bd_count`).
    pub nr_blocks: u64,
    /// Pages read so far (`bd_reads`).
    pub reads: u64,
    /// Pages written so far (`bd_writes`).
    pub writes: u64,
}

impl Zram {
    pub(super) fn new(options: ZramOptions, page_size: PageSize, zsmalloc: ZsmallocPolicy) -> Zram {
        Zram {
            options,
            page_bytes: page_size.bytes(),
            table: Vec::new(),
            pool: ZsPool::new(page_size, zsmalloc),
            stats: ZramStats::default(),
            backing: options.backing_pages.map(ZramBacking::new),
        }
    }

    /// The description that it was made with.
    pub fn options(&self) -> ZramOptions {
        self.options
    }

    /// Statistics so far.
    pub fn stats(&self) -> ZramStats {
        self.stats
    }

    /// Pages of memory that it uses now.
    pub fn used_pages(&self) -> u64 {
        self.pool.nr_pages()
    }

    /// The text of /sys/block/zram*/mm_stat.
    pub fn mm_stat(&self) -> String {
        let ZramStats { pages_stored, compr_data_size, same_pages, .. } = self.stats;
        let bytes = |pages: u64| pages.saturating_mul(self.page_bytes);
        alloc::format!(
            "{:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
            bytes(pages_stored),
            compr_data_size,
            bytes(self.used_pages()),
            bytes(self.options.mem_limit.unwrap_or(0)),
            bytes(self.stats.max_used_pages),
            same_pages,
            self.stats.pages_compacted,
            self.stats.huge_pages,
            self.stats.huge_pages_since,
        )
    }

    fn add_levels(&self, levels: &mut ZramLevels) {
        let ZramStats { pages_stored, compr_data_size, max_used_pages, .. } = self.stats;
        levels.orig_bytes += pages_stored * self.page_bytes;
        levels.compr_bytes += compr_data_size;
        levels.used_bytes += self.used_pages() * self.page_bytes;
        levels.max_used_bytes += max_used_pages * self.page_bytes;
        levels.same_pages += self.stats.same_pages;
        levels.huge_pages += self.stats.huge_pages;
        levels.pages_compacted += self.stats.pages_compacted;
        levels.failed_writes += self.stats.failed_writes;
        if let Some((reads, writes)) = self.backing_counts() {
            let backing = levels.backing.get_or_insert_default();
            backing.nr_blocks += self.nr_blocks_used();
            backing.reads += reads;
            backing.writes += writes;
        }
    }

    /// Compacts the pool. Appends the memory that is free; returns the bytes moved.
    pub(super) fn compact(&mut self, freed: &mut Vec<ZspageMemory>) -> u64 {
        let before = self.pool.nr_pages();
        let moved = self.pool.compact(freed);
        self.stats.pages_compacted += before - self.pool.nr_pages();
        moved
    }

    fn entry(&self, at: u32) -> ZramEntry {
        self.table.get(at as usize).map_or(ZramEntry::Nothing, |slot| slot.entry)
    }

    /// Notes a use of a page (Linux `zram_accessed`).
    fn accessed(&mut self, at: u32) {
        if let Some(slot) = self.table.get_mut(at as usize) {
            slot.idle = false;
        }
    }

    /// Whether something is stored at this slot of the device.
    pub(crate) fn is_stored(&self, at: u32) -> bool {
        self.entry(at) != ZramEntry::Nothing
    }

    /// Puts an entry in the table. Returns the old one.
    fn replace_entry(&mut self, at: u32, entry: ZramEntry) -> ZramEntry {
        let old = self.entry(at);
        self.stats.count(old, self.page_bytes, false);
        self.stats.count(entry, self.page_bytes, true);
        if self.table.len() <= at as usize {
            self.table.resize(at as usize + 1, ZramSlot::default());
        }
        let slot = &mut self.table[at as usize];
        (slot.entry, slot.idle) = (entry, false);
        old
    }

    /// Statistics computed from the table, and the number of objects, for the audit.
    pub(crate) fn count(&self) -> (ZramStats, u64) {
        let mut stats = ZramStats {
            pages_stored: 0,
            compr_data_size: 0,
            same_pages: 0,
            huge_pages: 0,
            bd_pages: 0,
            ..self.stats
        };
        self.table.iter().for_each(|slot| stats.count(slot.entry, self.page_bytes, true));
        let is_object = |slot: &&ZramSlot| matches!(slot.entry, ZramEntry::Object { .. });
        let nr_objects = self.table.iter().filter(is_object).count() as u64;
        (stats, nr_objects)
    }

    pub(crate) fn pool(&self) -> &ZsPool {
        &self.pool
    }
}

/// The first attempt to get pages for a store: it may wake kswapd.
const STORE_GFP: Gfp = Gfp::KSWAPD_RECLAIM.with(Gfp::NOWARN).with(Gfp::HIGHMEM).with(Gfp::MOVABLE);
/// The second attempt.
const STORE_AGAIN_GFP: Gfp = Gfp::NOIO.with(Gfp::HIGHMEM).with(Gfp::MOVABLE);

impl Kernel {
    /// Stores a page at a slot of a device. Returns false if there is no memory for it.
    pub(super) fn zram_write(&mut self, slot: SwapSlot, content: PageContent, ctx: &Ctx) -> bool {
        let (id, at) = self.swap.place_of(slot);
        let Some(zram) = self.swap.zram_mut(id.0 as usize) else { return false };
        self.mem.work.cache_ops += 1;
        let page = zram.page_bytes as u32;
        if matches!(content, PageContent::Zeroes | PageContent::SameFilled) {
            // The whole page is compared, which takes as long as clearing it.
            self.mem.work.pages_zeroed += 1;
            self.zram_set(id, at, ZramEntry::Same, ctx.cpu);
            return true;
        }
        let compressor = zram.options.compressor;
        let limit = zram.options.mem_limit;
        let mut size = compressor.compressed_size(content, zram.page_bytes);
        if size >= zram.pool.sizes().huge_class_size() {
            size = page;
        }
        compressor.count_compressed(&mut self.mem.work);
        let mut handle = self.zs_malloc(id, size, STORE_GFP, ctx);
        if handle.is_none() {
            self.zram_stats(id, |stats| stats.writestall += 1);
            handle = self.zs_malloc(id, size, STORE_AGAIN_GFP, ctx);
            if handle.is_some() && size < page {
                // The buffer of the CPU was given up in between.
                compressor.count_compressed(&mut self.mem.work);
            }
        }
        let used = self.swap.zram_mut(id.0 as usize).map_or(0, |zram| zram.used_pages());
        self.zram_stats(id, |stats| stats.max_used_pages = stats.max_used_pages.max(used));
        match handle {
            Some(handle) if limit.is_none_or(|limit| used <= limit) => {
                self.mem.work.bytes_copied += size;
                self.zram_set(id, at, ZramEntry::Object { handle, size }, ctx.cpu);
                self.zram_stats(id, |stats| stats.huge_pages_since += u64::from(size == page));
                true
            }
            above_limit => {
                if let Some(handle) = above_limit {
                    self.zs_free(id, handle, ctx.cpu);
                }
                self.zram_stats(id, |stats| stats.failed_writes += 1);
                false
            }
        }
    }

    /// Reads the page of a slot: counts the work of it. Returns false if the page is on the disk
    /// behind the device.
    pub(super) fn zram_read(&mut self, slot: SwapSlot) -> bool {
        let (id, at) = self.swap.place_of(slot);
        let Some(zram) = self.swap.zram_mut(id.0 as usize) else { return true };
        zram.accessed(at);
        let work = &mut self.mem.work;
        work.cache_ops += 1;
        match zram.entry(at) {
            ZramEntry::Nothing | ZramEntry::Same => work.pages_zeroed += 1,
            ZramEntry::Object { size, .. } if u64::from(size) == zram.page_bytes => {
                work.bytes_copied += size;
            }
            ZramEntry::Object { .. } => zram.options.compressor.count_decompressed(work),
            ZramEntry::OnDisk => {
                self.count_block_read(id);
                return false;
            }
        }
        true
    }

    /// A write to a file of all devices that acts at once. Writeback is a call
    /// ([`Call::zram_writeback`](crate::interface::call::Call::zram_writeback)).
    pub fn write_zram(&mut self, write: ZramWrite) {
        for area in 0..self.swap.areas().len() {
            let Some(zram) = self.swap.zram_mut(area) else { continue };
            match write {
                ZramWrite::Idle => zram.mark_idle(),
                ZramWrite::Limit(units) => zram.set_writeback_limit(Some(units), None),
                ZramWrite::LimitEnable(is_on) => zram.set_writeback_limit(None, Some(is_on)),
                ZramWrite::Writeback(_) => {}
            }
        }
    }

    /// Called when a slot was freed: frees what is stored for it in memory (Linux
    /// `zram_slot_free_notify`, `frontswap_invalidate_page`).
    pub(crate) fn swap_slot_free_notify(&mut self, slot: SwapSlot, cpu: Cpu) {
        if !self.swap[slot].is_synchronous() {
            return self.zswap_invalidate(slot, cpu);
        }
        let (id, at) = self.swap.place_of(slot);
        self.zram_stats(id, |stats| stats.notify_free += 1);
        self.zram_set(id, at, ZramEntry::Nothing, cpu);
    }

    /// Levels of the zram devices; `None`: the machine has none.
    pub fn zram_levels(&self) -> Option<ZramLevels> {
        let mut levels = None;
        for zram in self.swap.zrams() {
            zram.add_levels(levels.get_or_insert_default());
        }
        levels
    }

    fn zram_set(&mut self, id: ZsPoolId, at: u32, entry: ZramEntry, cpu: Cpu) {
        let Some(zram) = self.swap.zram_mut(id.0 as usize) else { return };
        if let ZramEntry::Object { handle, .. } = zram.replace_entry(at, entry) {
            self.mem.work.cache_ops += 1;
            self.zs_free(id, handle, cpu);
        }
    }

    fn zram_stats(&mut self, id: ZsPoolId, change: impl FnOnce(&mut ZramStats)) {
        if let Some(zram) = self.swap.zram_mut(id.0 as usize) {
            change(&mut zram.stats);
        }
    }
}
