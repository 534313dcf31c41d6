//! The initial memory of a real kernel, so that the simulator can start with the same.
//!
//! The slabs of the page cache's own objects have free places at that time. They decide when the
//! first new slab needs pages of a migrate type that user pages do not have, and so in which zone a
//! fallback boosts the watermarks.
//!
//! A scenario says how much memory a machine has. How much of it a kernel manages, and how much is
//! free when the first task starts, is known only after boot. The simulator's side of a comparison
//! therefore uses zones, free pages and watermarks of the guest.

use crate::host::pagetypeinfo::{self, MOVABLE};
use crate::host::slabinfo::{self, SlabCache};
use crate::host::zoneinfo;
use pagetide_core::config::{ControlValue, Sysctl};
use pagetide_core::control::ControlWrite;
use pagetide_scenario::model::kernel_objects::{BootCache, PAGE_CACHE};
use pagetide_scenario::model::{DiskSetup, FreeLists, NodeSetup, Setup, ZoneSetup};
use pagetide_scenario::names::{DiskModel, NameSet, ZoneName};
use serde::{Deserialize, Serialize};

/// Above the maximum number of nodes of a scenario.
const NODES_MAX: u32 = 64;

/// The state of memory when the tasks start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StartMemory {
    /// Populated zones, by node, lowest first.
    pub zones: Vec<StartZone>,
    /// vm.min_free_kbytes.
    pub min_free_kbytes: u64,
    /// Whether every page is cleared on allocation, according to the kernel's boot message; `None`
    /// without that message.
    #[serde(default)]
    pub init_on_alloc: Option<bool>,
    /// Caches of the page cache's objects; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<StartCache>,
}

/// A cache of kernel objects, after all empty slabs were freed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StartCache {
    /// As in /proc/slabinfo.
    pub name: String,
    /// Objects in use.
    pub active: u64,
    pub slabs: u64,
}

/// A zone; all values in pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StartZone {
    pub node: u32,
    /// `DMA32` and so on.
    pub name: String,
    /// Pages that exist.
    pub present: u64,
    /// Pages that the allocator manages.
    pub managed: u64,
    /// Free pages, including per-CPU lists.
    pub free: u64,
    /// Free blocks by order, for each of the types Unmovable, Movable, Reclaimable and CMA (not
    /// in older recordings); empty if unknown.
    #[serde(default)]
    pub free_blocks: Vec<[u32; 11]>,
    /// Number of pageblocks of each of these types.
    #[serde(default)]
    pub pageblocks: Vec<u32>,
    /// The watermarks.
    pub min: u64,
    pub low: u64,
    pub high: u64,
}

impl StartZone {
    /// The free lists, with the pages of per-CPU lists as movable blocks. `None` if they are
    /// unknown, or inconsistent with the number of free pages.
    fn free_lists(&self) -> Option<FreeLists> {
        let lists = pagetypeinfo::free_lists(&self.free_blocks, &self.pageblocks)?;
        // The files were read in sequence, so a few pages may have moved in between.
        let rest = self.free.checked_sub(lists.pages()).filter(|rest| *rest <= self.managed / 8)?;
        Some(pagetypeinfo::with_pages(lists, MOVABLE, rest))
    }
}

impl StartMemory {
    /// Parses /proc/zoneinfo, /proc/pagetypeinfo, /proc/slabinfo and /proc/sys/vm/min_free_kbytes.
    /// The second and the third may be empty, because some kernels restrict them. The last argument
    /// is the line of the kernel log about clearing (`mem auto-init: stack:off, heap alloc:on, heap
    /// free:off`, since 5.3).
    pub fn parse(
        zoneinfo: &str,
        pagetypeinfo: &str,
        slabinfo: &str,
        min_free_kbytes: &str,
        auto_init: &str,
    ) -> Result<StartMemory, String> {
        let types = pagetypeinfo::parse(pagetypeinfo);
        let min_free_kbytes = min_free_kbytes
            .trim()
            .parse()
            .map_err(|_| format!("vm.min_free_kbytes is `{}`", min_free_kbytes.trim()))?;
        let (info, _) = zoneinfo::parse(zoneinfo);
        let mut zones = Vec::new();
        for zone in &info.zones {
            let (Some(present), Some(managed)) = (zone.present, zone.managed) else { continue };
            if managed == 0 || zone.node >= NODES_MAX || ZoneName::from_name(&zone.name).is_none() {
                continue;
            }
            let on_lists =
                zone.pagesets.iter().fold(0u64, |sum, set| sum.saturating_add(set.count));
            let mark =
                |mark: Option<u64>| mark.unwrap_or(0).saturating_sub(zone.boost.unwrap_or(0));
            zones.push(StartZone {
                node: zone.node,
                name: zone.name.clone(),
                present,
                managed,
                free: zone.free.unwrap_or(0).saturating_add(on_lists).min(managed),
                free_blocks: types.free_blocks(zone.node, &zone.name),
                pageblocks: types.pageblocks(zone.node, &zone.name),
                min: mark(zone.min),
                low: mark(zone.low),
                high: mark(zone.high),
            });
        }
        if zones.is_empty() {
            return Err("/proc/zoneinfo names no zone with memory".to_owned());
        }
        let says = |what: &str| auto_init.contains(what);
        let init_on_alloc =
            (says("heap alloc:on") || says("heap alloc:off")).then(|| says("heap alloc:on"));
        let caches = slabinfo::parse(slabinfo).0.into_iter();
        let caches = caches.filter(|cache| PAGE_CACHE.contains(&cache.name.as_str()));
        let caches = caches.map(|SlabCache { name, active_objects: active, slabs, .. }| {
            StartCache { name, active, slabs }
        });
        Ok(StartMemory { zones, min_free_kbytes, init_on_alloc, caches: caches.collect() })
    }

    /// Sets the memory of `setup`, and disks that answer at once: QEMU's disks are files of the
    /// host. Their times are known after the runs ([`crate::disk_times`]).
    pub fn apply(&self, setup: &mut Setup) {
        setup.machine.init_on_alloc = self.init_on_alloc.or(setup.machine.init_on_alloc);
        let caches = self.caches.iter().cloned();
        let caches =
            caches.map(|StartCache { name, active, slabs }| BootCache { name, active, slabs });
        setup.machine.boot_objects.caches.extend(caches);
        let nodes = self.zones.iter().map(|zone| zone.node + 1).max().unwrap_or(1);
        let scale = setup.sysctls.iter().rev().find_map(|write| match write {
            ControlWrite::Sysctl(Sysctl::WatermarkScaleFactor, ControlValue::Number(scale)) => {
                u64::try_from(*scale).ok()
            }
            _ => None,
        });
        let scale = scale.unwrap_or(10);
        let late = self.late_pages(scale);
        let last = self.zones.len() - 1;
        setup.machine.nodes = (0..nodes)
            .map(|node| {
                let of_node = |(index, zone): (usize, &StartZone)| {
                    let name = ZoneName::from_name(&zone.name).filter(|_| zone.node == node)?;
                    Some(ZoneSetup {
                        name,
                        present: zone.present,
                        managed: zone.managed,
                        free: zone.free,
                        late: if index == last { late } else { 0 },
                        cma: 0,
                        free_lists: zone.free_lists(),
                    })
                };
                let zones: Vec<ZoneSetup> =
                    self.zones.iter().enumerate().filter_map(of_node).collect();
                let memory = zones.iter().map(|zone| zone.present * 4096).sum();
                NodeSetup { memory, reserved: 0, movable: 0, zones }
            })
            .collect();
        for disk in &mut setup.machine.disks {
            let instant = DiskSetup::new(std::mem::take(&mut disk.name), DiskModel::Instant);
            *disk = DiskSetup { rotational: disk.rotational, ..instant };
        }
    }

    /// Pages of the last zone that boot freed after it computed the watermarks (the initramfs, init
    /// code). With this value, min_free_kbytes (the square root of 16 times the memory in kB) and
    /// the watermarks have the observed values. A later write to a knob recomputes the watermarks;
    /// then only min_free_kbytes can be used.
    fn late_pages(&self, watermark_scale_factor: u64) -> u64 {
        let last = self.zones.len() - 1;
        let all: u64 = self.zones.iter().map(|zone| zone.managed).sum();
        let marks_match = |late: u64| {
            self.zones.iter().enumerate().all(|(index, zone)| {
                let managed = zone.managed - if index == last { late } else { 0 };
                let min = self.min_free_kbytes / 4 * managed / (all - late).max(1);
                let step = (min / 4).max(managed * watermark_scale_factor / 10_000);
                // Zone Movable gets a small share and gives no information here.
                zone.name == "Movable"
                    || (zone.min, zone.low, zone.high) == (min, min + step, min + 2 * step)
            })
        };
        let reserve_matches = |late: u64| ((all - late) * 4 * 16).isqrt() == self.min_free_kbytes;
        let middle = |matches: &dyn Fn(u64) -> bool| {
            let limit = self.zones[last].managed / 4;
            let first = (0..limit).find(|&late| matches(late))?;
            let end = (first..limit).find(|&late| !matches(late)).unwrap_or(limit);
            // All values of the range are consistent; use its middle.
            Some(if first == 0 { 0 } else { first + (end - 1 - first) / 2 })
        };
        middle(&|late| reserve_matches(late) && marks_match(late))
            .or_else(|| middle(&reserve_matches))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::setup;

    fn zone(name: &str, managed: u64, marks: [u64; 3]) -> StartZone {
        StartZone {
            node: 0,
            name: name.into(),
            present: managed + 100,
            managed,
            free: managed - 10,
            free_blocks: Vec::new(),
            pageblocks: Vec::new(),
            min: marks[0],
            low: marks[1],
            high: marks[2],
        }
    }

    #[test]
    fn the_page_caches_slabs_begin_with_their_free_places() {
        let zoneinfo =
            "Node 0, zone Normal\n  pages free 900\n        min 8\n        low 10\n        \
                        high 12\n        present 1100\n        managed 1000\n";
        let slabinfo = "slabinfo - version: 2.1\n\
            dentry 40 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n\
            radix_tree_node 255 266 584 14 2 : tunables 0 0 0 : slabdata 19 19 0\n";
        let start = StartMemory::parse(zoneinfo, "", slabinfo, "1842\n", "").unwrap();
        let nodes = BootCache { name: "radix_tree_node".into(), active: 255, slabs: 19 };
        let text = "[machine]\nmemory = \"64MiB\"\n[[task]]\nname = \"t\"\n\
            phase = [{ name = \"wait\", workload = \"sleep\", duration = \"1s\" }]\n";
        let mut setup = setup(text);
        start.apply(&mut setup);
        assert_eq!(setup.machine.boot_objects.caches, [nodes]);
        let unknown = StartMemory::parse(zoneinfo, "", "", "1842\n", "").unwrap();
        assert_eq!(unknown.caches, []);
    }

    #[test]
    fn late_pages_explain_the_marks() {
        // Debian's 6.1 with 256 MiB: watermarks from experiments/truth.
        let start = StartMemory {
            zones: vec![zone("DMA", 3840, [33, 41, 49]), zone("DMA32", 51806, [426, 532, 638])],
            min_free_kbytes: 1842,
            ..StartMemory::default()
        };
        let late = start.late_pages(10);
        assert!((2559..=2654).contains(&late), "{late}");
        // The same with a smaller initramfs: the watermarks alone would be consistent with no late
        // pages.
        let start = StartMemory {
            zones: vec![zone("DMA", 3840, [32, 40, 48]), zone("DMA32", 52062, [436, 545, 654])],
            min_free_kbytes: 1879,
            ..StartMemory::default()
        };
        let late = start.late_pages(10);
        assert_eq!(((55902 - late) * 64).isqrt(), 1879);
        // A later write, computed with all pages.
        let written = StartMemory {
            zones: vec![zone("DMA", 3840, [31, 38, 45]), zone("DMA32", 51806, [428, 535, 642])],
            min_free_kbytes: 1842,
            ..StartMemory::default()
        };
        let late = written.late_pages(10);
        assert_eq!(((55646 - late) * 64).isqrt(), 1842);
    }
}
