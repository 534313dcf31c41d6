//! The audit of compressed pages: the entries of zram devices and zswap, their pools, and the pools'
//! frames.
//!
//! Linux: no such check; `zram_meta_free` and `zs_destroy_pool` warn about what is left at the end.

use super::{check, Violation};
use crate::frames::page::{PageFlags, Place};
use crate::interface::kernel::Kernel;
use crate::slab::object::Object;
use crate::swap::swap_caches::SwapCaches;
use crate::units::SwapSlot;
use alloc::format;
use alloc::vec::Vec;

impl Kernel {
    pub(super) fn audit_compressed(&self) -> Result<(), Violation> {
        let mut nr_pages = 0;
        for (at, area) in self.swap.areas().iter().enumerate() {
            let Some(zram) = area.zram() else { continue };
            for slot in area.slots() {
                let in_area = (slot - u64::from(area.first)) as u32;
                let slot = SwapSlot(slot as u32);
                let is_stored = zram.is_stored(in_area);
                let (is_used, is_cached) = area.use_of(slot);
                check!(!is_stored || is_used, "{slot:?} is free, but zram{at} stores it");
                let has_page = is_stored || is_cached || area.is_zero(slot);
                check!(has_page || !is_used, "{slot:?}: nothing is stored");
            }
            let (counted, nr_objects) = zram.count();
            check!(counted == zram.stats(), "zram{at}: {:?}, {counted:?} found", zram.stats());
            let (marked, writes, fits) = zram.count_writeback();
            check!(marked == writes, "zram{at}: {marked} pages under writeback, {writes} writes");
            check!(fits, "zram{at}: more pages on the disk than it has blocks");
            let pool = zram.pool();
            check!(pool.nr_objects() == nr_objects, "zram{at}: an object without a slot");
        }
        self.audit_zswap().map_err(Violation)?;
        self.audit_pool_objects()?;
        for (id, pool) in self.swap.pools() {
            pool.audit().map_err(Violation)?;
            nr_pages += pool.nr_pages();
            let mut wrong = None;
            pool.for_each_page(|zspage, pfn| {
                let page = &self.mem.pages[pfn];
                let is_marked = page.has(PageFlags::ZSPAGE) && page.place == Place::Allocated;
                if !is_marked || page.mapping != id.0 || page.index != zspage {
                    wrong = Some(format!("{pfn:?} of zspage {zspage} of {id:?}: {page:?}"));
                }
            });
            check!(wrong.is_none(), "{}", wrong.unwrap_or_default());
        }
        let marked = self.mem.pages.opened().filter(|(_, page)| page.has(PageFlags::ZSPAGE));
        let nr_marked = marked.count() as u64;
        let counted = self.mem.nr_zspages();
        check!(
            nr_marked == nr_pages && counted == nr_pages,
            "{nr_pages} pages of pools, {nr_marked} marked, {counted} counted"
        );
        for zone in self.mem.nodes.iter().flat_map(|node| &node.zones) {
            let of_zone = |page: &&crate::frames::page::Page| {
                page.has(PageFlags::ZSPAGE) && (page.node(), page.zone()) == (zone.node, zone.index)
            };
            let found = self.mem.pages.opened().map(|(_, page)| page).filter(of_zone).count();
            check!(found as u64 == zone.nr_zspages, "{:?} {}: zspages", zone.node, zone.index);
        }
        Ok(())
    }

    /// Checks the kernel objects of pools, zswap and requests against their caches.
    fn audit_pool_objects(&self) -> Result<(), Violation> {
        let mut found: [Vec<Object>; 4] = Default::default();
        for (_, pool) in self.swap.pools() {
            let (words, descriptors) = pool.kernel_objects();
            let (nr_words, nr_objects) = (words.len() as u64, pool.nr_objects());
            check!(nr_words == nr_objects, "{nr_objects} objects of a pool, {nr_words} words");
            found[0].extend(words);
            found[1].extend(descriptors);
        }
        found[2].extend(self.swap.zswap.iter().flat_map(|zswap| zswap.kernel_objects()));
        found[3].extend(self.swap.bios.iter().filter(|bio| bio.is_some()));
        let SwapCaches { handle, descriptor, entry, bio } = self.swap.caches;
        for (cache, mut objects) in [handle, descriptor, entry, bio].into_iter().zip(found) {
            objects.sort_by_key(|object| object.number);
            let nr = objects.len() as u64;
            for &object in &objects {
                check!(object.cache == cache, "{object:?} is not of {cache:?}");
                self.slabs.audit_in_use(object, "an object of swap")?;
            }
            objects.dedup();
            let nr_in_use = self.slabs.kmem_cache(cache).map_or(0, |cache| cache.nr_in_use());
            let nr_distinct = objects.len() as u64;
            check!(
                nr_distinct == nr && nr_in_use == nr,
                "{cache:?}: {nr} objects of swap, {nr_distinct} distinct, {nr_in_use} in use"
            );
        }
        Ok(())
    }
}
