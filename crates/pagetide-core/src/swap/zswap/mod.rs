//! zswap: compressed memory in front of the swap areas on disks.
//!
//! Linux: mm/zswap.c (6.1; 6.12 where the era says so). A page that reclaim swaps out is compressed
//! into a pool instead of being written. If the pool is at its limit, the page goes to its disk, and
//! a worker writes old pages of the pool to theirs ([`writeback`]). The shrinker ([`shrinker`], since
//! 6.8) does this earlier, when memory is short. A page has its slot on the disk from the start.
//!
//! The pool is zsmalloc, whose pages come from the machine's memory. Differences from Linux: the
//! default pool of 6.1 is zbud, which stores at most two pages in one; zsmalloc of 6.1 cannot write
//! back, so its worker and the order of entries are those of later kernels, with the pace of 6.1.
//! zswap is not in front of zram areas. With cgroup version 1 no group is charged, as in Linux, and
//! all entries are on the root's lists.
//!
//! Invariant: a slot with an entry is in use and on a disk; its disk may have older contents. Each
//! object of the pool has one entry, and an entry with an object is on the list of its group and node.

pub(super) mod audit;
mod charge;
mod lru;
mod shrinker;
mod store;
mod writeback;

pub(crate) use writeback::ZswapWorker;

use super::compressor::Compressor;
use super::zsmalloc::{ZsHandle, ZsPool};
use crate::frames::page_alloc::Memory;
use crate::interface::kernel::Kernel;
use crate::slab::object::Object;
use crate::units::digest::State;
use crate::units::{MemcgId, NodeId, SwapSlot};
use alloc::boxed::Box;
use alloc::vec::Vec;
use lru::ZswapList;

/// Settings of zswap (Linux: /sys/module/zswap/parameters).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub struct ZswapOptions {
    /// The algorithm.
    pub compressor: Compressor,
    /// Most memory that the pool takes, in percent of the machine's.
    pub max_pool_percent: u8,
    /// A full pool takes pages again below this part of its limit, in percent.
    pub accept_threshold_percent: u8,
    /// Whether reclaim shrinks the pool (`shrinker_enabled`, since 6.8).
    pub shrinker: bool,
}

impl Default for ZswapOptions {
    /// The kernel's own settings, if zswap is enabled.
    fn default() -> ZswapOptions {
        ZswapOptions {
            compressor: Compressor::Lzo,
            max_pool_percent: 20,
            accept_threshold_percent: 90,
            shrinker: false,
        }
    }
}

/// Levels and counts of zswap (Linux: /sys/kernel/debug/zswap).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub struct ZswapStats {
    /// Pages stored now.
    pub stored_pages: u64,
    /// Of these, pages filled with one word, which take no memory.
    pub same_filled_pages: u64,
    /// Bytes of the compressed pages.
    pub compressed_bytes: u64,
    /// Pages written to their disks.
    pub written_back_pages: u64,
    /// Stores that found the pool at its limit.
    pub pool_limit_hit: u64,
    /// Attempts to write a page of the pool to its disk that failed.
    pub reject_reclaim_fail: u64,
    /// Stores rejected because the page does not become smaller.
    pub reject_compress_poor: u64,
    /// Stores rejected because the pool got no memory.
    pub reject_alloc_fail: u64,
}

/// Names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct ZswapEntryId(u32);

impl ZswapEntryId {
    const NONE: ZswapEntryId = ZswapEntryId(u32::MAX);

    fn real(self) -> Option<ZswapEntryId> {
        (self != ZswapEntryId::NONE).then_some(self)
    }

    fn idx(self) -> usize {
        self.0 as usize
    }
}

/// Contents of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
enum ZswapContent {
    /// One word, repeated.
    Same,
    /// An object of the pool.
    Object { handle: ZsHandle, size: u32 },
}

/// A stored page (Linux `struct zswap_entry`).
#[derive(Clone, Copy, Debug, State)]
struct ZswapEntry {
    /// Its memory.
    object: Object,
    slot: SwapSlot,
    content: ZswapContent,
    /// The page's owner and its index there, which the page gets back when it is loaded.
    mapping: u32,
    index: u32,
    /// Owner of the charge.
    objcg: u16,
    /// The group and node of its list.
    memcg: MemcgId,
    node: NodeId,
    /// It is passed over once before it is written back (6.12).
    referenced: bool,
    /// The area's tree has it (6.12; 6.1 has no nodes beside the entries).
    in_tree: bool,
    /// Later entries of a list have larger numbers.
    turn: u64,
    older: ZswapEntryId,
    newer: ZswapEntryId,
}

/// State of zswap.
#[derive(Clone, Debug, State)]
pub(crate) struct Zswap {
    options: ZswapOptions,
    pub(super) pool: ZsPool,
    stats: ZswapStats,
    /// The pool was at its limit, and has not been below the threshold since.
    reached_full: bool,
    /// The entry of each slot.
    by_slot: Vec<ZswapEntryId>,
    entries: Vec<Option<ZswapEntry>>,
    unused: Vec<ZswapEntryId>,
    /// Lists of entries with objects, by group and node.
    lists: Vec<ZswapList>,
    #[state(skip)] // fixed
    nr_nodes: usize,
    next_turn: u64,
    worker: ZswapWorker,
}

impl Zswap {
    fn new(options: ZswapOptions, pool: ZsPool, nr_nodes: usize) -> Zswap {
        Zswap {
            options,
            pool,
            stats: ZswapStats::default(),
            reached_full: false,
            by_slot: Vec::new(),
            entries: Vec::new(),
            unused: Vec::new(),
            lists: Vec::new(),
            nr_nodes,
            next_turn: 0,
            worker: ZswapWorker::default(),
        }
    }

    pub(super) fn entry_of(&self, slot: SwapSlot) -> Option<ZswapEntryId> {
        self.by_slot.get(slot.0 as usize).and_then(|id| id.real())
    }

    /// An entry in use.
    fn at(&self, id: ZswapEntryId) -> &ZswapEntry {
        self.entries[id.idx()].as_ref().expect("the entry is in use")
    }

    fn at_mut(&mut self, id: ZswapEntryId) -> &mut ZswapEntry {
        self.entries[id.idx()].as_mut().expect("the entry is in use")
    }

    /// Adds an entry for a slot without one.
    fn insert(&mut self, entry: ZswapEntry) {
        let slot = entry.slot.0 as usize;
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, ZswapEntryId::NONE);
        }
        let id = self.unused.pop().unwrap_or_else(|| {
            self.entries.push(None);
            ZswapEntryId(self.entries.len() as u32 - 1)
        });
        debug_assert!(self.by_slot[slot] == ZswapEntryId::NONE, "{:?} has an entry", entry.slot);
        self.by_slot[slot] = id;
        self.entries[id.idx()] = Some(entry);
        self.stats.count(entry.content, true);
        if entry.content != ZswapContent::Same {
            self.list_add(id);
        }
    }

    /// Removes the entry of a slot.
    fn take(&mut self, slot: SwapSlot) -> Option<ZswapEntry> {
        let id = self.entry_of(slot)?;
        if self.at(id).content != ZswapContent::Same {
            self.list_remove(id);
        }
        self.by_slot[slot.0 as usize] = ZswapEntryId::NONE;
        self.unused.push(id);
        let entry = self.entries[id.idx()].take()?;
        self.stats.count(entry.content, false);
        Some(entry)
    }
}

impl ZswapStats {
    /// Counts a stored page, or no longer.
    fn count(&mut self, content: ZswapContent, is_added: bool) {
        let change = |count: &mut u64, by: u64| match is_added {
            true => *count += by,
            false => *count -= by,
        };
        change(&mut self.stored_pages, 1);
        match content {
            ZswapContent::Same => change(&mut self.same_filled_pages, 1),
            ZswapContent::Object { size, .. } => change(&mut self.compressed_bytes, size.into()),
        }
    }
}

impl Memory {
    /// Pages that the allocator manages (Linux `totalram_pages`).
    fn total_ram_pages(&self) -> u64 {
        self.nodes.iter().map(|node| node.managed_pages()).sum()
    }
}

impl Kernel {
    /// Puts zswap in front of all swap areas on disks. Must be called before a page is swapped out.
    pub fn enable_zswap(&mut self, options: ZswapOptions) {
        let pool = ZsPool::new(self.mem.page_size, self.config.zsmalloc);
        let zswap = Zswap::new(options, pool, self.mem.pgdat.len());
        self.swap.zswap = Some(Box::new(zswap));
        self.add_swap_caches();
        self.groups.idle_groups.forget();
    }

    /// Levels and counts of zswap; `None`: it is not enabled.
    pub fn zswap_stats(&self) -> Option<ZswapStats> {
        self.swap.zswap.as_ref().map(|zswap| zswap.stats)
    }

    /// Pages of memory that the pool of zswap takes.
    pub fn zswap_pool_pages(&self) -> u64 {
        self.swap.zswap.as_ref().map_or(0, |zswap| zswap.pool.nr_pages())
    }

    fn zswap_stat(&mut self, change: impl FnOnce(&mut ZswapStats)) {
        if let Some(zswap) = &mut self.swap.zswap {
            change(&mut zswap.stats);
        }
    }
}
