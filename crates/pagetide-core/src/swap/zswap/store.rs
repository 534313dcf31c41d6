//! Storing a page in zswap, loading it, and forgetting it.
//!
//! Linux: `zswap_frontswap_store`, `zswap_frontswap_load`, `zswap_frontswap_invalidate_page`,
//! `zswap_is_full`, `zswap_can_accept` (mm/zswap.c, 6.1), `__frontswap_store` (mm/frontswap.c);
//! `zswap_store`, `zswap_check_limits`, `zswap_load` (6.12).
//!
//! Invariant: a store that fails leaves no entry for its slot, because an older one would be stale.

use super::{Zswap, ZswapContent, ZswapEntry, ZswapEntryId};
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::slab::objcg::NO_OWNER;
use crate::stats::vmstat::Event;
use crate::swap::compressor::Compressor;
use crate::swap::content::PageContent;
use crate::swap::pool_pages::ZsPoolId;
use crate::swap::slot_tree::SlotTreeKind;
use crate::units::{Cpu, MemcgId, Pfn, SwapSlot};

/// Rights of the pool's pages.
const STORE_GFP: Gfp =
    Gfp::NORETRY.with(Gfp::NOWARN).with(Gfp::KSWAPD_RECLAIM).with(Gfp::HIGHMEM).with(Gfp::MOVABLE);

impl Zswap {
    /// Most pages of the pool.
    fn max_pages(&self, total: u64) -> u64 {
        total * u64::from(self.options.max_pool_percent) / 100
    }

    /// Pages below which a full pool takes pages again, and down to which the worker of 6.12 shrinks
    /// it.
    pub(super) fn accept_threshold_pages(&self, total: u64) -> u64 {
        self.max_pages(total) * u64::from(self.options.accept_threshold_percent) / 100
    }

    /// Whether the pool takes a page (Linux 6.1 `zswap_is_full` and `zswap_can_accept`; 6.12
    /// `zswap_check_limits`). `Err`: no; and whether the worker must run.
    fn accepts(&mut self, total: u64, by_group: bool) -> Result<(), bool> {
        let (used, max) = (self.pool.nr_pages(), self.max_pages(total));
        let threshold = self.accept_threshold_pages(total);
        // 6.12 counts a pool of exactly its limit as full, and one of exactly the threshold not.
        let is_full = if by_group { used >= max } else { used > max };
        let may_again = if by_group { used <= threshold } else { used < threshold };
        if is_full {
            self.stats.pool_limit_hit += 1;
            self.reached_full = true;
            return Err(true);
        }
        if self.reached_full {
            if !may_again {
                return Err(by_group);
            }
            self.reached_full = false;
        }
        Ok(())
    }
}

impl Kernel {
    /// Stores the page of a slot. Returns false if it must go to its disk.
    pub(in crate::swap) fn zswap_store(
        &mut self,
        pfn: Pfn,
        slot: SwapSlot,
        content: PageContent,
        ctx: &Ctx,
    ) -> bool {
        self.zswap_invalidate(slot, ctx.cpu);
        let objcg = self.zswap_owner(self.mem.pages[pfn].memcg);
        let memcg = self.zswap_group(objcg);
        let page_bytes = self.mem.page_size.bytes();
        // 6.1 refuses; 6.12 makes room for one page, and then stores.
        let may_store = self.groups.may_zswap(memcg, page_bytes)
            || self.era.zswap_by_group && self.zswap_shrink_group(memcg, ctx);
        if !may_store {
            return false;
        }
        let total = self.mem.total_ram_pages();
        let by_group = self.era.zswap_by_group;
        let Some(zswap) = self.swap.zswap.as_mut() else { return false };
        if let Err(must_shrink) = zswap.accepts(total, by_group) {
            if must_shrink {
                self.wake_zswap_worker();
            }
            return false;
        }
        let compressor = zswap.options.compressor;
        // 6.12 allocates the entry on the page's node, whose list it goes to.
        let node = if by_group { self.mem.pages[pfn].node() } else { ctx.node };
        let entry_cache = self.swap.caches.entry;
        let entry_ctx = Ctx { node, ..*ctx };
        let object = self.alloc_object_in_reclaim(entry_cache, Gfp::KERNEL, &entry_ctx);
        let Some(object) = object else { return false };
        let Some(content) = self.zswap_compress(compressor, content, ctx) else {
            self.free_known(object, ctx.cpu);
            return false;
        };
        let page = &self.mem.pages[pfn];
        let entry = ZswapEntry {
            object,
            slot,
            content,
            mapping: page.mapping,
            index: page.index,
            objcg,
            memcg,
            node: page.node(),
            referenced: by_group,
            in_tree: by_group,
            turn: 0,
            older: ZswapEntryId::NONE,
            newer: ZswapEntryId::NONE,
        };
        if by_group {
            self.add_slot_entry(SlotTreeKind::Zswap, slot, ctx);
        }
        self.charge_zswap(&entry, ctx.cpu);
        self.zswap_event(&entry, Event::Zswpout);
        if let Some(zswap) = &mut self.swap.zswap {
            zswap.insert(entry);
            if zswap.options.shrinker {
                self.groups.idle_groups.must_visit(memcg, entry.node);
            }
        }
        true
    }

    /// Compresses a page into the pool. `None`: it does not become smaller, or there is no memory.
    fn zswap_compress(
        &mut self,
        compressor: Compressor,
        content: PageContent,
        ctx: &Ctx,
    ) -> Option<ZswapContent> {
        let page_bytes = self.mem.page_size.bytes();
        self.mem.work.cache_ops += 1;
        Some(match content {
            PageContent::Zeroes | PageContent::SameFilled if !self.era.records_zero_pages => {
                // The whole page is compared, which takes as long as clearing it.
                self.mem.work.pages_zeroed += 1;
                ZswapContent::Same
            }
            PageContent::Zeroes
            | PageContent::SameFilled
            | PageContent::Compressible { .. }
            | PageContent::Incompressible => {
                compressor.count_compressed(&mut self.mem.work);
                let size = compressor.compressed_size(content, page_bytes);
                if u64::from(size) >= page_bytes {
                    self.zswap_stat(|stats| stats.reject_compress_poor += 1);
                    return None;
                }
                let Some(handle) = self.zs_malloc(ZsPoolId::ZSWAP, size, STORE_GFP, ctx) else {
                    self.zswap_stat(|stats| stats.reject_alloc_fail += 1);
                    return None;
                };
                self.mem.work.bytes_copied += size;
                ZswapContent::Object { handle, size }
            }
        })
    }

    /// The group of an owner's entries.
    pub(super) fn zswap_group(&self, objcg: u16) -> MemcgId {
        match objcg {
            NO_OWNER => ROOT,
            objcg => self.slabs.objcgs.memcg_of(objcg),
        }
    }

    /// Counts an event of an entry, for the machine and for its group.
    pub(super) fn zswap_event(&mut self, entry: &ZswapEntry, event: Event) {
        self.mem.vmstat.count(event);
        if entry.objcg != NO_OWNER {
            self.groups.memcgs[entry.memcg].events.count(event);
        }
    }

    /// The owner of the page of an entry, and the index there.
    pub(in crate::swap) fn zswap_owner_slot(&self, slot: SwapSlot) -> Option<(u32, u32)> {
        let zswap = self.swap.zswap.as_ref()?;
        let entry = zswap.at(zswap.entry_of(slot)?);
        Some((entry.mapping, entry.index))
    }

    /// Counts the work of reading an entry.
    pub(super) fn zswap_decompress(&mut self, slot: SwapSlot) -> Option<ZswapEntry> {
        let zswap = self.swap.zswap.as_ref()?;
        let entry = *zswap.at(zswap.entry_of(slot)?);
        let work = &mut self.mem.work;
        work.cache_ops += 1;
        match entry.content {
            ZswapContent::Same => work.pages_zeroed += 1,
            ZswapContent::Object { .. } => zswap.options.compressor.count_decompressed(work),
        }
        Some(entry)
    }

    /// Loads the page of a slot into its page in the swap cache. Returns false if zswap does not have
    /// it; the page is then read from its disk.
    pub(in crate::swap) fn zswap_load(&mut self, slot: SwapSlot, pfn: Pfn, cpu: Cpu) -> bool {
        let Some(entry) = self.zswap_decompress(slot) else {
            let page = &self.mem.pages[pfn];
            let (memcg, node) = (page.memcg, page.node());
            if let Some(zswap) = &mut self.swap.zswap {
                let memcg = if memcg.is_some() { memcg } else { ROOT };
                zswap.list_mut(memcg, node).nr_disk_swapins += 1;
            }
            return false;
        };
        self.zswap_event(&entry, Event::Zswpin);
        if self.era.zswap_by_group {
            // The page is now the only copy (since 6.5, always since 6.9).
            self.zswap_invalidate(slot, cpu);
            self.mem.pages[pfn].set(PageFlags::DIRTY);
        }
        true
    }

    /// Forgets the entry of a slot, if it has one.
    pub(crate) fn zswap_invalidate(&mut self, slot: SwapSlot, cpu: Cpu) {
        let Some(entry) = self.swap.zswap.as_mut().and_then(|zswap| zswap.take(slot)) else {
            return;
        };
        self.mem.work.cache_ops += 1;
        if let ZswapContent::Object { handle, .. } = entry.content {
            self.zs_free(ZsPoolId::ZSWAP, handle, cpu);
        }
        if entry.in_tree {
            self.remove_slot_entry(SlotTreeKind::Zswap, slot, cpu);
        }
        self.uncharge_zswap(&entry, cpu);
        self.free_known(entry.object, cpu);
    }
}
