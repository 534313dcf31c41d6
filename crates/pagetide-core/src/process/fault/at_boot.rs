//! User memory that exists before the first task runs: page cache and anonymous memory of a machine
//! that has been in use.
//!
//! Linux: nothing; a run that begins with a running system's memory needs the pages on its LRU
//! lists. They use frames that the machine's description reserves for the kernel
//! ([`free_lists`](crate::frames::boot::free_lists)), so the free lists do not change.
//!
//! Frames in movable pageblocks come first, then those of CMA, which no page table gets while the
//! zone has others. Pages of all four lists are scattered over the frames of a zone, as after long
//! use, so that reclaim of one list does not free whole blocks. A pageblock that has only user pages
//! becomes movable, unless it is CMA. No page has been referenced. The page cache's tree nodes have
//! no objects: their memory remains with the kernel.
//!
//! Invariant: free pages are unchanged; every page is on the list that was asked for.

use crate::frames::gfp::MigrateType;
use crate::frames::page::{PageFlags, Place};
use crate::groups::memcg::ROOT;
use crate::process::object::MemoryObject;
use crate::process::page_table::VmaId;
use crate::process::Machine;
use crate::stats::vmstat::NodeStat;
use crate::units::{Cpu, FileId, MemcgId, NodeId, Pfn, PAGEBLOCK_NR_PAGES};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

/// Pages of one kind: in use, and not in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedPages {
    /// On the active list.
    pub active: u64,
    /// On the inactive list.
    pub inactive: u64,
}

impl UsedPages {
    fn all(self) -> u64 {
        self.active.saturating_add(self.inactive)
    }
}

/// Pages by LRU list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListedPages {
    /// Anonymous.
    pub anon: UsedPages,
    /// Page cache.
    pub file: UsedPages,
}

/// The memory of a task: a mapping and a file, each with the number of pages that are in use.
#[derive(Debug)]
pub struct BootMemory {
    vma: VmaId,
    file: FileId,
    memcg: MemcgId,
    anon: u64,
    cached: u64,
}

impl BootMemory {
    /// An anonymous mapping and a file that have no pages yet.
    pub fn new(vma: VmaId, file: FileId, memcg: MemcgId) -> BootMemory {
        BootMemory { vma, file, memcg, anon: 0, cached: 0 }
    }
}

/// The frames that are reserved for the kernel, by node and zone.
#[derive(Debug)]
pub struct BootFrames {
    /// The next frame to take for a user's page is the last.
    zones: BTreeMap<(NodeId, usize), VecDeque<Pfn>>,
    /// Pageblocks of CMA, by their first frame.
    cma: BTreeSet<u32>,
    /// Pageblocks of frames that were taken, by their first frame.
    touched: BTreeSet<u32>,
}

impl BootFrames {
    /// Takes a frame of one zone, or of the highest zone that has one.
    fn take(&mut self, at: (NodeId, Option<usize>), is_table: bool) -> Option<Pfn> {
        let zones = 0..=at.1.unwrap_or(usize::MAX);
        let from = (at.0, at.1.unwrap_or(*zones.start()));
        let mut of_node = self.zones.range_mut(from..=(at.0, *zones.end())).rev();
        let (_, frames) = of_node.find(|(_, frames)| !frames.is_empty())?;
        let is_cma = |pfn: &Pfn| self.cma.contains(&pageblock(*pfn));
        let pfn = match is_table && frames.back().is_some_and(is_cma) {
            true => frames.pop_front()?,
            false => frames.pop_back()?,
        };
        self.touched.insert(pageblock(pfn));
        Some(pfn)
    }
}

/// The first frame of the frame's pageblock.
fn pageblock(pfn: Pfn) -> u32 {
    pfn.0 / PAGEBLOCK_NR_PAGES * PAGEBLOCK_NR_PAGES
}

/// The place in `0..n` of page `i` in a scattered order.
fn scattered(i: u64, n: u64) -> u64 {
    const STRIDES: [u64; 2] = [7_368_787, 15_485_863];
    let stride = if n.is_multiple_of(STRIDES[0]) { STRIDES[1] } else { STRIDES[0] };
    (u128::from(i) * u128::from(stride) % u128::from(n.max(1))) as u64
}

impl Machine {
    /// All frames that are reserved for the kernel. Call it before any allocation.
    pub fn boot_frames(&self) -> BootFrames {
        let mut zones: BTreeMap<(NodeId, usize), VecDeque<Pfn>> = BTreeMap::new();
        let mut cma = BTreeSet::new();
        for pfn in self.mem.frames_held_by_kernel(0, u64::MAX) {
            let page = self.mem.pages.peek(pfn.idx());
            zones.entry((page.node(), page.zone())).or_default().push_back(pfn);
        }
        for ((node, zone), frames) in &mut zones {
            let zone = &self.mem.nodes[*node].zones[*zone];
            let types = [MigrateType::Cma, MigrateType::Movable];
            frames.make_contiguous().sort_by_key(|&pfn| {
                let of_block = zone.block_type(pfn);
                (types.iter().position(|mt| *mt == of_block), -i64::from(pfn.0))
            });
            let of_cma = |pfn: &&Pfn| zone.block_type(**pfn) == MigrateType::Cma;
            cma.extend(frames.iter().filter(of_cma).map(|pfn| pageblock(*pfn)));
        }
        BootFrames { zones, cma, touched: BTreeSet::new() }
    }

    /// Puts pages of a task on the lists, in frames of a zone of the node, or of its highest zones.
    /// Returns the number of pages for which there was no frame.
    pub fn populate_at_boot(
        &mut self,
        frames: &mut BootFrames,
        at: (NodeId, Option<usize>),
        memory: &mut BootMemory,
        pages: ListedPages,
    ) -> u64 {
        let all = pages.anon.all().saturating_add(pages.file.all());
        for i in 0..all {
            let place = scattered(i, all);
            let is_anon = place < pages.anon.all();
            let is_active = match is_anon {
                true => place < pages.anon.active,
                false => place - pages.anon.all() < pages.file.active,
            };
            let done = match is_anon {
                true => self.anon_at_boot(frames, at, memory),
                false => self.cached_at_boot(frames, at, memory),
            };
            let Some(pfn) = done else { return all - i };
            let page = &mut self.mem.pages[pfn];
            match is_active {
                true => page.set(PageFlags::ACTIVE),
                false => page.clear(PageFlags::ACTIVE),
            }
            self.folio_add_lru(Cpu(0), pfn);
        }
        0
    }

    /// Ends the population of memory: nothing of it counts as work of the run.
    pub fn end_boot(&mut self, frames: BootFrames) {
        self.lru_add_drain_all();
        for first in frames.touched {
            let mut block = first as usize..(first + PAGEBLOCK_NR_PAGES) as usize;
            let pages = &self.mem.pages;
            if block.end <= pages.len() && block.all(|pfn| pages.peek(pfn).place == Place::Lru) {
                let page = pages.peek(first as usize);
                let zone = &mut self.mem.nodes[page.node()].zones[page.zone()];
                if zone.block_type(Pfn(first)) != MigrateType::Cma {
                    zone.set_block_type(Pfn(first), MigrateType::Movable);
                }
            }
        }
        self.take_work();
    }

    fn frame_at_boot(
        &mut self,
        frames: &mut BootFrames,
        at: (NodeId, Option<usize>),
        memcg: MemcgId,
        is_table: bool,
    ) -> Option<Pfn> {
        let pfn = frames.take(at, is_table)?;
        self.mem.pages.open(pfn);
        if memcg != ROOT {
            self.groups.charge_over_limits(memcg, 1);
        }
        Some(pfn)
    }

    fn anon_at_boot(
        &mut self,
        frames: &mut BootFrames,
        at: (NodeId, Option<usize>),
        memory: &mut BootMemory,
    ) -> Option<Pfn> {
        let (vma, index, memcg) = (memory.vma, memory.anon, memory.memcg);
        let table = self.mem.page_size.table_of(index);
        if !self.owners.vmas[vma].tables[table].is_some() {
            let pfn = self.frame_at_boot(frames, at, memcg, true)?;
            let mapping = &mut self.owners.vmas[vma];
            mapping.tables[table] = pfn;
            mapping.nr_tables += 1;
            self.charge(Cpu(0), pfn, memcg);
            self.groups.change_kmem(memcg, 1);
            self.mem.stat_inc(pfn, NodeStat::NrPageTablePages);
        }
        let pfn = self.frame_at_boot(frames, at, memcg, false)?;
        let place = MemoryObject::Anon(vma).at(index);
        self.begin_anon_page(pfn, place, PageFlags::EMPTY, memcg, Cpu(0));
        self.map_page(vma, index, pfn, true);
        self.owners.vmas[vma].ptes[index as usize].test_clear_young();
        memory.anon += 1;
        Some(pfn)
    }

    fn cached_at_boot(
        &mut self,
        frames: &mut BootFrames,
        at: (NodeId, Option<usize>),
        memory: &mut BootMemory,
    ) -> Option<Pfn> {
        let (file, index) = (memory.file, memory.cached as u32);
        let pfn = self.frame_at_boot(frames, at, memory.memcg, false)?;
        let flags = PageFlags::FILE.with(PageFlags::UPTODATE);
        self.mem.init_user_page(pfn, file.0, index, flags);
        self.charge(Cpu(0), pfn, memory.memcg);
        self.owners.files[file].insert(index, pfn);
        self.mem.stat_inc(pfn, NodeStat::NrFilePages);
        memory.cached += 1;
        Some(pfn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::frames::boot::free_lists::FreeLists;
    use crate::frames::node::{NodeSpec, ZoneSpec};
    use crate::frames::zone_type::{ZONE_DMA32, ZONE_NORMAL};
    use crate::process::page_table::{Advice, Backing};
    use alloc::vec::Vec;

    #[test]
    fn pages_are_on_the_lists_and_free_memory_is_unchanged() {
        let mut spec = NodeSpec::default();
        let zone = |free| ZoneSpec { free, ..ZoneSpec::all_free(4096) };
        spec.zones[ZONE_DMA32] = zone(3000);
        spec.zones[ZONE_NORMAL] = zone(1000);
        let mut machine = Machine::new(&[spec], 2, Config::default()).unwrap();
        let free = machine.mem.nodes[0].zones.iter().map(|zone| zone.free_pages()).sum::<u64>();
        let memcg = machine.create_memcg("g".into(), ROOT).unwrap();
        let mm = machine.create_mm(memcg).unwrap();
        let vma = machine.mmap(mm, Backing::Anon, 2000, Advice::Normal, false).unwrap();
        let cached = machine.create_file(4096 << 12, false).unwrap();
        let mut memory = BootMemory::new(vma, cached, memcg);
        let mut frames = machine.boot_frames();
        let pages = ListedPages {
            anon: UsedPages { active: 300, inactive: 200 },
            file: UsedPages { active: 700, inactive: 100 },
        };
        let low = (NodeId(0), Some(ZONE_DMA32));
        let file = |active, inactive| ListedPages {
            file: UsedPages { active, inactive },
            ..ListedPages::default()
        };
        let small = file(9, 0);
        assert_eq!(machine.populate_at_boot(&mut frames, low, &mut memory, small), 0);
        let any = (NodeId(0), None);
        assert_eq!(machine.populate_at_boot(&mut frames, any, &mut memory, pages), 0);
        machine.end_boot(frames);
        machine.audit().unwrap();
        let lists = |zone: usize| &machine.mem.pgdat[NodeId(0)].zone_lru[zone][..4];
        assert_eq!(lists(ZONE_NORMAL), [200, 300, 100, 700]);
        assert_eq!(lists(ZONE_DMA32), [0, 0, 0, 9]);
        let after = machine.mem.nodes[0].zones.iter().map(|zone| zone.free_pages()).sum::<u64>();
        assert_eq!(after, free);
        // One page table for 500 pages.
        assert_eq!(machine.groups.memcgs[memcg].memory.usage, 1310);
        // More than the kernel holds: 1096 in zone DMA32, of which 9 are in use.
        let mut frames = machine.boot_frames();
        let much = file(0, 2000);
        let missing = machine.populate_at_boot(&mut frames, low, &mut memory, much);
        machine.end_boot(frames);
        assert_eq!(missing, 2000 - (1096 - 9));
        machine.audit().unwrap();
        let effects = machine.exit_mm(mm, Cpu(0)).unwrap();
        drop(effects);
        machine.audit().unwrap();
    }

    #[test]
    fn lent_cma_has_user_pages_only_and_stays_cma() {
        // One movable pageblock and two of CMA, of which one page is free, and five others.
        let lists = FreeLists {
            blocks: core::array::from_fn(|of| core::array::from_fn(|n| (of == 3 && n == 0).into())),
            pageblocks: [5, 1, 0, 2],
        };
        let zone = ZoneSpec { free: 1, free_lists: Some(lists), ..ZoneSpec::all_free(4096) };
        let mut spec = NodeSpec::default();
        spec.zones[ZONE_DMA32] = zone;
        let mut machine = Machine::new(&[spec], 1, Config::default()).unwrap();
        let mm = machine.create_mm(ROOT).unwrap();
        let vma = machine.mmap(mm, Backing::Anon, 4096, Advice::Normal, false).unwrap();
        let file = machine.create_file(4096, false).unwrap();
        let mut memory = BootMemory::new(vma, file, ROOT);
        let mut frames = machine.boot_frames();
        let anon = UsedPages { active: 512 + 1000, inactive: 0 };
        let pages = ListedPages { anon, ..ListedPages::default() };
        machine.populate_at_boot(&mut frames, (NodeId(0), None), &mut memory, pages);
        machine.end_boot(frames);
        machine.audit().unwrap();
        let zone = &machine.mem.nodes[0].zones[ZONE_DMA32];
        let of = |pfn: Pfn| (zone.block_type(pfn), machine.mem.pages.peek(pfn.idx()).place);
        let nr = |wanted| {
            (0..machine.mem.pages.len() as u32).filter(|pfn| of(Pfn(*pfn)) == wanted).count()
        };
        assert_eq!(nr((MigrateType::Cma, Place::Lru)), 1001);
        assert_eq!((zone.cma_pages, zone.free_cma_pages()), (1024, 1));
        let tables = &machine.owners.vmas[vma].tables;
        let tables: Vec<_> =
            tables.iter().filter(|pfn| pfn.is_some()).map(|pfn| of(*pfn)).collect();
        assert_eq!(tables.len(), 3);
        assert!(tables[1..].iter().all(|(mt, _)| *mt == MigrateType::Unmovable), "{tables:?}");
    }
}
