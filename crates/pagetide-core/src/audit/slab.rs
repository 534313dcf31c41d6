//! The audit of slabs: every object has one state, and every byte is charged to one owner.
//!
//! Linux: the checks of `slub_debug=FZPU` and `kmem_cache_sanity_check`; the others are ours.

use super::{check, Violation};
use crate::config::SlabAccounting;
use crate::frames::page::{PageFlags, Place};
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::slab::cpu_slab::{kept_bits, low_bits};
use crate::slab::kmem_cache::{KmemCache, SlabSeat, NO_SLAB};
use crate::slab::objcg::NO_OWNER;
use crate::slab::object::Object;
use crate::slab::partial::chain;
use crate::slab::Slabs;
use crate::stats::vmstat::NodeStat;
use crate::units::{CacheId, IdVec, MemcgId, NodeId};
use alloc::vec;
use alloc::vec::Vec;

impl Groups {
    /// Checks the kernel memory of each group, descendants included.
    pub(super) fn audit_kmem(
        &self,
        ids: &[MemcgId],
        tables: &IdVec<MemcgId, u64>,
    ) -> Result<(), Violation> {
        let mut kmem: IdVec<MemcgId, u64> = vec![0; self.memcgs.len()].into();
        for &id in ids.iter().rev() {
            let group = &self.memcgs[id];
            if id != ROOT {
                kmem[id] += group.kernel_pages + tables[id];
            }
            let (usage, found) = (group.kmem.usage, kmem[id]);
            check!(usage == found, "{id:?}: {usage} pages of kernel memory, {found} found");
            if group.parent.is_some() {
                kmem[group.parent] += found;
            }
        }
        Ok(())
    }
}

impl Slabs {
    pub(crate) fn audit_in_use(&self, object: Object, what: &str) -> Result<(), Violation> {
        let cache = self.kmem_cache(object.cache);
        let state = cache.map(|cache| cache.check_in_use(object.number));
        check!(state == Some(Ok(())), "{what}, {object:?}, is not in use: {state:?}");
        Ok(())
    }

    pub(super) fn count_slab_pages(&self, stats: &mut IdVec<NodeId, [u64; NodeStat::COUNT]>) {
        for (_, cache) in self.kmem_caches() {
            let stat = crate::slab::allocate::slab_stat(cache.reclaimable) as usize;
            let slabs: Vec<_> =
                cache.slabs.iter().filter(|slab| slab.seat != SlabSeat::Gone).collect();
            for slab in slabs {
                stats[slab.node][stat] += 1 << slab.order;
            }
        }
    }
}

impl Kernel {
    /// Checks caches, owners, cached objects and clones. O(objects).
    pub(super) fn audit_slabs(&self) -> Result<(), Violation> {
        check!(self.slabs.discarded.is_empty(), "discarded slabs were not freed");
        let mut nr_slab_frames = 0;
        for (id, cache) in self.slabs.kmem_caches() {
            self.audit_cache(id, cache)?;
            nr_slab_frames += u64::from(cache.nr_slabs);
            let root = &self.slabs.caches[cache.root];
            check!(root.root == cache.root, "{id:?} is the clone of a clone");
            check!(root.size == cache.size, "{id:?} has objects of another size than its root");
        }
        let slabs = self.mem.pages.opened().filter(|(_, page)| page.has(PageFlags::SLAB));
        let frames = slabs.count() as u64;
        check!(frames == nr_slab_frames, "{frames} slab frames, {nr_slab_frames} slabs");
        self.audit_owners()?;
        self.audit_cached()?;
        self.audit_clones()?;
        Ok(())
    }

    fn audit_cache(&self, id: CacheId, cache: &KmemCache) -> Result<(), Violation> {
        let (mut slabs, mut pages, mut objects) = (0u32, 0u64, 0u64);
        let mut listed = vec![0u32; cache.slabs.len()];
        for node in &cache.nodes {
            let slots = node.slots(&cache.slabs);
            check!(slots.len() == node.len() as usize, "{id:?}: a list of partial slabs is wrong");
            for slot in slots {
                listed[slot as usize] += 1;
                let seat = cache.slabs[slot as usize].seat;
                check!(
                    seat == SlabSeat::Partial,
                    "{id:?} slab {slot} is on a node's list and {seat:?}"
                );
            }
        }
        for (cpu, mine) in cache.cpus.iter().enumerate() {
            let slots = chain(mine.partial, &cache.slabs);
            check!(slots.len() == mine.nr_partial as usize, "{id:?}: CPU {cpu}'s chain is wrong");
            for slot in slots {
                listed[slot as usize] += 1;
                let seat = cache.slabs[slot as usize].seat;
                check!(
                    seat == SlabSeat::CpuPartial,
                    "{id:?} slab {slot} is on a chain and {seat:?}"
                );
            }
            if mine.slot == NO_SLAB {
                let empty = mine.word == 0 && mine.returnable == 0;
                check!(empty, "{id:?} CPU {cpu} has objects without a slab");
                continue;
            }
            listed[mine.slot as usize] += 1;
            let slab = &cache.slabs[mine.slot as usize];
            let seat = slab.seat;
            let expected = SlabSeat::Active(crate::units::Cpu(cpu as u16));
            check!(seat == expected, "{id:?} CPU {cpu} allocates from a slab that is {seat:?}");
            check!(
                mine.has_owners == slab.owner_vector.is_some(),
                "{id:?} CPU {cpu} and its slab differ about owners"
            );
            if mine.base != u32::MAX {
                check!(cache.place_of(mine.base).0 == mine.slot as usize, "{id:?}: foreign word");
                let bits = cache.free_bits[(mine.base >> cache.word_shift) as usize];
                check!(bits & mine.word == 0, "{id:?} CPU {cpu}: an object is free twice");
                let first = cache.place_of(mine.base).1;
                let exist = low_bits(u32::from(slab.objects).saturating_sub(first));
                check!(
                    mine.word & !exist == 0,
                    "{id:?} CPU {cpu}: an object beyond the end of the slab"
                );
                let kept = kept_bits(&cache.entries, mine.base, cache.word_shift);
                let expected = exist & !kept & !bits;
                let found = mine.returnable;
                check!(found == expected, "{id:?} CPU {cpu} may take back {found:b}, {expected:b}");
            } else {
                let empty = mine.word == 0 && mine.returnable == 0;
                check!(empty, "{id:?} CPU {cpu} has objects without a word");
            }
        }
        let words = 1usize << (cache.shift - cache.word_shift);
        for (slot, slab) in cache.slabs.iter().enumerate() {
            let bits = &cache.free_bits[slot * words..(slot + 1) * words];
            let free: u32 = bits.iter().map(|word| word.count_ones()).sum();
            check!(free == u32::from(slab.free), "{id:?} slab {slot}: {} free", slab.free);
            for (at, &word) in bits.iter().enumerate() {
                let first = (at as u32) << cache.word_shift;
                let exists = u32::from(slab.objects).saturating_sub(first).min(64);
                let beyond = exists < 64 && word >> exists != 0;
                check!(!beyond, "{id:?} slab {slot}: a free object beyond the end");
            }
            let places = listed[slot];
            match slab.seat {
                SlabSeat::Gone => {
                    check!(
                        places == 0 && free == 0,
                        "{id:?} slab {slot} was freed but is on a list"
                    );
                    continue;
                }
                SlabSeat::Full => check!(
                    places == 0 && free == 0,
                    "{id:?} slab {slot} is full: {free} free, {places} lists"
                ),
                SlabSeat::Active(_) => {
                    check!(places == 1, "{id:?} slab {slot}: {places} CPUs have it")
                }
                SlabSeat::Partial | SlabSeat::CpuPartial => check!(
                    places == 1 && free > 0,
                    "{id:?} slab {slot} is partial: {free} free, {places} lists"
                ),
            }
            slabs += 1;
            pages += 1 << slab.order;
            objects += u64::from(slab.objects);
            let fits = u64::from(slab.objects) * u64::from(cache.size);
            check!(fits <= cache.page_size() << slab.order, "{id:?} slab {slot}: objects overlap");
            let page = &self.mem.pages[slab.pfn];
            let is_ours = page.has(PageFlags::SLAB)
                && page.mapping == id.0
                && page.index as usize == slot
                && page.order == slab.order
                && page.node() == slab.node
                && page.place == Place::Allocated;
            check!(is_ours, "{id:?} slab {slot}: {:?} is {page:?}", slab.pfn);
            if slab.owner_vector.is_some() {
                self.slabs.audit_in_use(slab.owner_vector, "an owner vector")?;
            }
        }
        let found = (slabs, pages, objects);
        let known = (cache.nr_slabs, cache.nr_pages, cache.nr_objects);
        check!(found == known, "{id:?}: {known:?} slabs, pages and objects, {found:?} found");
        Ok(())
    }

    /// Checks that bytes of objects, stocks and remainders add up to the charged pages.
    fn audit_owners(&self) -> Result<(), Violation> {
        let page_size = self.slabs.page_size;
        let slabs = &self.slabs;
        let nr_ids = slabs.objcgs.nr_ids();
        let mut bytes = vec![0i64; nr_ids];
        for (id, cache) in slabs.iter() {
            for (number, &owner) in cache.owners.iter().enumerate() {
                if owner == NO_OWNER {
                    continue;
                }
                let state = cache.check_in_use(number as u32);
                check!(state.is_ok(), "{id:?} object {number} is owned and not in use: {state:?}");
                let (slot, _) = cache.place_of(number as u32);
                let vector = cache.slabs[slot].owner_vector;
                check!(vector.is_some(), "{id:?} slab {slot} has no vector of owners");
                check!(usize::from(owner) < nr_ids, "{id:?} object {number}: no owner {owner}");
                bytes[usize::from(owner)] += i64::from(cache.charge_size);
            }
        }
        for group in self.groups.memcgs.iter().filter(|group| group.counters_owner != NO_OWNER) {
            bytes[usize::from(group.counters_owner)] += i64::from(group.counters_bytes);
        }
        self.add_zswap_bytes(&mut bytes);
        let mut pages: IdVec<MemcgId, u64> = vec![0; self.groups.memcgs.len()].into();
        let mut total: IdVec<MemcgId, u64> = vec![0; self.groups.memcgs.len()].into();
        let mut unwritten = vec![0i64; nr_ids];
        // A remainder too small for the next object stays in the stock; later charges add to it.
        let sizes = self.slabs.kmem_caches().map(|(_, cache)| u64::from(cache.charge_size));
        let most = sizes.max().unwrap_or(0).max(page_size) + page_size;
        for (cpu, stock) in slabs.objcgs.stocks() {
            let memcg = self.slabs.objcgs.memcg_of(stock.objcg);
            total[memcg] += u64::from(stock.nr_bytes);
            unwritten[usize::from(stock.objcg)] += stock.slab_bytes.iter().sum::<i64>();
            check!(
                u64::from(stock.nr_bytes) <= most,
                "{cpu:?} has {} bytes in advance",
                stock.nr_bytes
            );
        }
        for (id, owner) in slabs.objcgs.iter() {
            let at = usize::from(id);
            check!(
                owner.bytes + unwritten[at] == bytes[at],
                "owner {id}: {} bytes and {} not written down, {} found",
                owner.bytes,
                unwritten[at],
                bytes[at]
            );
            let group = self.groups.memcgs.get(owner.memcg.idx());
            let is_listed =
                group.is_some_and(|group| group.objcgs.get(owner.at as usize) == Some(&id));
            check!(is_listed, "owner {id} is not one of {:?}", owner.memcg);
            total[owner.memcg] += bytes[at] as u64 + u64::from(owner.nr_charged_bytes);
            bytes[at] = 0;
        }
        check!(bytes.iter().all(|&bytes| bytes == 0), "objects have an owner that was removed");
        for (_, cache) in self.slabs.kmem_caches().filter(|(_, cache)| cache.memcg.is_some()) {
            pages[cache.memcg] += cache.nr_pages;
        }
        for (at, group) in self.groups.memcgs.iter().enumerate() {
            check!(
                group.kernel_pages * page_size == pages[at] * page_size + total[at],
                "memcg{at}: {} pages charged for slabs; {} of its caches, {} bytes of objects",
                group.kernel_pages,
                pages[at],
                total[at]
            );
        }
        Ok(())
    }

    /// Checks cached objects against the lists of their groups and nodes.
    fn audit_cached(&self) -> Result<(), Violation> {
        let mut kept = 0usize;
        for (at, group) in self.groups.memcgs.iter().enumerate() {
            for (node, lists) in group.cached.iter().enumerate() {
                for list in &lists.lists {
                    let mut found = 0;
                    for (object, holds) in self.slabs.cached.objects(list) {
                        found += 1;
                        self.slabs.audit_in_use(object, "a kept object")?;
                        let place = self.list_of(object);
                        let here = (MemcgId(at as u16), NodeId(node as u8));
                        check!(place == here, "{object:?} is cached on {here:?}, not on {place:?}");
                        for object in [object, holds].into_iter().filter(|it| it.is_some()) {
                            let cache = &self.slabs.caches[object.cache];
                            check!(
                                cache.is_cached(object.number),
                                "{object:?} is cached but not marked"
                            );
                            kept += 1;
                        }
                    }
                    check!(found == list.len, "memcg{at}: {} kept, {found} found", list.len);
                }
            }
        }
        let marked: usize = self
            .slabs
            .kmem_caches()
            .map(|(_, cache)| cache.entries.iter().filter(|&&entry| entry != u32::MAX).count())
            .sum();
        check!(marked == kept, "{marked} objects are marked as cached, {kept} are");
        Ok(())
    }

    fn audit_clones(&self) -> Result<(), Violation> {
        for (at, group) in self.groups.memcgs.iter().enumerate() {
            for clone in &group.clones {
                let cache = self.slabs.kmem_cache(*clone);
                let owner = cache.map(|cache| cache.memcg);
                check!(owner == Some(MemcgId(at as u16)), "memcg{at} has {clone:?} of {owner:?}");
            }
        }
        for (id, cache) in self.slabs.kmem_caches() {
            for part in &cache.self_objects {
                self.slabs.audit_in_use(*part, "a part of a clone")?;
            }
            if cache.memcg.is_some() {
                let clones = &self.groups.memcgs[cache.memcg].clones;
                let has = clones.get(cache.memcg_at as usize) == Some(&id);
                check!(has, "{id:?} is not one of {:?}'s caches", cache.memcg);
                let kind = self.slabs.accounting;
                let may = matches!(
                    kind,
                    SlabAccounting::PerGroupCaches | SlabAccounting::PerGroupCachesReparent
                );
                check!(may, "{id:?} is a group's clone, and accounting is {kind:?}");
            }
        }
        Ok(())
    }
}
