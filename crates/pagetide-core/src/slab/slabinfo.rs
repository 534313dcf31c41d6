//! /proc/slabinfo, and a group's part of it.
//!
//! Linux: `slab_show`, `get_slabinfo` (mm/slab_common.c, mm/slub.c, 6.1; version 2.1 of the
//! format). A group's memory.kmem.slabinfo has the rows of its clones, under the names of their
//! root caches. If the kernel has no clones (since 5.9), the file is empty.
//!
//! Difference from Linux: Linux counts every object of a CPU's slab as active, because it does not
//! track them. Here only the objects in use are counted. ([`SlabUsage::counted_active_objs`] is the
//! kernel's number, for comparison.)

use super::kmem_cache::SlabSeat;
use super::KmemCache;
use crate::interface::kernel::Kernel;
use crate::slab::Slabs;
use crate::units::{CacheId, IdVec, MemcgId};
use alloc::string::String;
use core::fmt::Write;

/// Usage of a cache and its clones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlabUsage {
    /// Objects in use.
    pub active_objs: u64,
    /// Objects in use as Linux counts them, which includes free objects of CPUs' slabs.
    pub counted_active_objs: u64,
    /// Objects that fit in the slabs.
    pub num_objs: u64,
    /// Slabs with objects in use.
    pub active_slabs: u64,
    /// Slabs.
    pub num_slabs: u64,
    /// Bytes of the objects in use.
    pub active_bytes: u64,
    /// Bytes of the slabs.
    pub bytes: u64,
}

impl SlabUsage {
    pub(super) fn of(cache: &KmemCache) -> SlabUsage {
        let empty = cache.nr_empty_slabs();
        let active_objs = cache.nr_in_use();
        SlabUsage {
            active_objs,
            counted_active_objs: cache.nr_counted_in_use(),
            num_objs: cache.nr_objects,
            active_slabs: u64::from(cache.nr_slabs) - empty,
            num_slabs: cache.nr_slabs.into(),
            active_bytes: active_objs * u64::from(cache.size),
            bytes: cache.bytes(),
        }
    }

    fn add(&mut self, other: SlabUsage) {
        self.active_objs += other.active_objs;
        self.counted_active_objs += other.counted_active_objs;
        self.num_objs += other.num_objs;
        self.active_slabs += other.active_slabs;
        self.num_slabs += other.num_slabs;
        self.active_bytes += other.active_bytes;
        self.bytes += other.bytes;
    }
}

const HEADER: &str = "slabinfo - version: 2.1\n\
    # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> \
    : tunables <limit> <batchcount> <sharedfactor> \
    : slabdata <active_slabs> <num_slabs> <sharedavail>\n";

/// Adds the row of a cache. The tunables belong to the SLAB allocator and are 0.
fn put_row(out: &mut String, name: &str, it: &KmemCache, usage: SlabUsage) {
    let SlabUsage { active_objs, num_objs, active_slabs, num_slabs, .. } = usage;
    let (size, per_slab, pages) = (it.size, it.objects_per_slab(), 1 << it.order);
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{name:<17} {active_objs:>6} {num_objs:>6} {size:>6} {per_slab:>4} {pages:>4} \
         : tunables {0:>4} {0:>4} {0:>4} : slabdata {active_slabs:>6} {num_slabs:>6} {0:>6}",
        0
    );
}

impl KmemCache {
    /// Number of allocated objects; free objects in CPUs' words are not included.
    pub fn nr_in_use(&self) -> u64 {
        let in_slabs: u64 = self.slabs.iter().map(|slab| u64::from(slab.free)).sum();
        let in_words: u64 = self.cpus.iter().map(|cpu| u64::from(cpu.word.count_ones())).sum();
        self.nr_objects - in_slabs - in_words
    }

    /// Number of objects that Linux's slabinfo calls active: all except free objects of slabs on
    /// the nodes' lists, because Linux does not look into CPUs' slabs.
    pub fn nr_counted_in_use(&self) -> u64 {
        let listed = self.slabs.iter().filter(|slab| slab.seat == SlabSeat::Partial);
        self.nr_objects - listed.map(|slab| u64::from(slab.free)).sum::<u64>()
    }

    /// Slabs without an object in use.
    pub fn nr_empty_slabs(&self) -> u64 {
        let held = |slot: usize| {
            let mine = self.cpus.iter().filter(move |cpu| cpu.slot as usize == slot);
            mine.map(|cpu| cpu.word.count_ones()).sum::<u32>()
        };
        let slabs = self.slabs.iter().enumerate();
        slabs
            .filter(|(slot, slab)| {
                let free = u32::from(slab.free);
                match slab.seat {
                    SlabSeat::Gone => false,
                    SlabSeat::Active(_) => free + held(*slot) == u32::from(slab.objects),
                    _ => free == u32::from(slab.objects),
                }
            })
            .count() as u64
    }
}

impl Slabs {
    pub(super) fn usages_by_root(&self) -> IdVec<CacheId, SlabUsage> {
        let mut usages: IdVec<CacheId, _> =
            alloc::vec![SlabUsage::default(); self.caches.len()].into();
        for (_, it) in self.kmem_caches() {
            usages[it.root].add(SlabUsage::of(it));
        }
        usages
    }
}

impl Kernel {
    /// Usage of a cache, clones included.
    pub fn slab_usage(&self, cache: CacheId) -> SlabUsage {
        let mut usage = SlabUsage::default();
        for (_, it) in self.slabs.kmem_caches().filter(|(_, it)| it.root == cache) {
            usage.add(SlabUsage::of(it));
        }
        usage
    }

    /// Usage of all caches.
    pub fn total_slab_usage(&self) -> SlabUsage {
        let mut usage = SlabUsage::default();
        for (_, it) in self.slabs.kmem_caches() {
            usage.add(SlabUsage::of(it));
        }
        usage
    }

    /// The text of /proc/slabinfo.
    pub fn slabinfo(&self) -> String {
        let mut out = String::from(HEADER);
        let usages = self.slabs.usages_by_root();
        for (id, it) in self.slabs.kmem_caches().filter(|(id, it)| it.root == *id) {
            put_row(&mut out, &it.name, it, usages[id]);
        }
        out
    }

    /// The text of a group's memory.kmem.slabinfo (version 1).
    pub(crate) fn slabinfo_of_group(&self, memcg: MemcgId) -> String {
        let mut out = String::new();
        for clone in &self.groups.memcgs[memcg].clones {
            let it = &self.slabs.caches[*clone];
            if out.is_empty() {
                out.push_str(HEADER);
            }
            put_row(&mut out, &self.slabs.caches[it.root].name, it, SlabUsage::of(it));
        }
        out
    }
}
