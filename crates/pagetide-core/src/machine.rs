//! The machine: owner of all tables, and the doors through which a world drives it.
//!
//! A world calls [`Machine::touch`] for every access; if that says "fault" it makes a [`Call`] and
//! steps it until done. Daemons (kswapd, the writeback thread) are stepped the same way. Every
//! step returns its result together with [`Effects`], which must be drained first.
//!
//! Invariant: see [`crate::audit`].

use crate::boot::SetupError;
use crate::call::{Call, Outcome};
use crate::charge::Stock;
use crate::compaction::kcompactd::Kcompactd;
use crate::compaction::Compactions;
use crate::config::Config;
use crate::effect::{Effect, Effects, Step, Throttle};
use crate::era::Era;
use crate::event::EventLog;
use crate::khugepaged::KhugepagedScan;
use crate::lru::LruBatches;
use crate::lruvec::NR_LRU_LISTS;
use crate::memcg::{Memcg, ROOT};
use crate::node::NodeSpec;
use crate::page::{Page, PageFlags, Place};
use crate::page_alloc::Memory;
use crate::page_cache::FileCache;
use crate::page_size::PageSize;
use crate::page_table::{Backing, Pte, Vma, VmaId};
use crate::reclaim::kswapd::Kswapd;
use crate::reclaim::soft_limit_tree::SoftLimitTrees;
use crate::slab::Slabs;
use crate::swap::SwapArea;
use crate::units::{Cpu, FileId, MemcgId, MmId, Nanos, NodeId, Pfn, MAX_PAGES};
use crate::vmstat::NodeStat;
use crate::work::Work;
use crate::writeback::Writeback;
use crate::zone::MAX_NR_ZONES;
use alloc::vec::Vec;

/// What reclaim and writeback know of a node.
#[derive(Clone, Debug)]
pub struct NodeState {
    /// Counters, indexed by [`NodeStat`].
    pub stats: [u64; NodeStat::COUNT],
    /// Pages of each LRU list by zone, all groups together.
    pub zone_lru: [[u64; NR_LRU_LISTS]; MAX_NR_ZONES],
    /// kswapd's state.
    pub kswapd: Kswapd,
    /// kcompactd's state.
    pub kcompactd: Kcompactd,
    /// The tail of the lists is all dirty: kswapd may write (Linux `PGDAT_DIRTY`).
    pub dirty: bool,
    /// The tail is all under writeback: kswapd should wait (Linux `PGDAT_WRITEBACK`).
    pub writeback: bool,
    /// Direct reclaimers should wait (Linux `LRUVEC_CONGESTED` of the root).
    pub congested: bool,
    /// Tasks sleeping for writeback, and pages written since the first of them fell asleep.
    pub nr_writeback_throttled: u32,
    /// See above.
    pub nr_written_while_throttled: u64,
    /// Tasks sleeping until reserves recover.
    pub nr_reserve_throttled: u32,
}

/// An address space.
#[derive(Clone, Debug)]
pub struct Mm {
    /// Group that pays for its pages.
    pub memcg: MemcgId,
    /// Its mappings.
    pub vmas: Vec<VmaId>,
    /// Blocks of kernel memory that it holds, first frames.
    pub kernel_blocks: Vec<Pfn>,
    /// Pages charged while a group on its path was above `memory.high`, not paid for yet.
    pub nr_over_high: u64,
    /// Its task has asked for something.
    pub(crate) begun: bool,
    /// Chosen by the OOM killer: may use reserves, and is not chosen again.
    pub oom_victim: bool,
    /// Gone.
    pub exited: bool,
}

/// Whether an access needs the fault handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Done: the page is there.
    Hit,
    /// Not there, or not writable: make a [`Call::fault`].
    Fault,
}

/// The memory manager.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Frames, zones, counters.
    pub mem: Memory,
    /// Tunables and policies.
    pub config: Config,
    /// What the policies stand for.
    pub(crate) era: Era,
    pub(crate) nodes: Vec<NodeState>,
    pub(crate) memcgs: Vec<Memcg>,
    /// Ids of removed groups, to be used again.
    pub(crate) free_memcgs: Vec<MemcgId>,
    /// Charges in advance, by CPU.
    pub(crate) stocks: Vec<Stock>,
    pub(crate) soft_limit_trees: SoftLimitTrees,
    /// A page whose write reclaim for a group of version 1 must await.
    pub(crate) legacy_wait: Option<Pfn>,
    pub(crate) mms: Vec<Mm>,
    pub(crate) vmas: Vec<Vma>,
    pub(crate) files: Vec<FileCache>,
    pub(crate) slabs: Slabs,
    pub(crate) swap: SwapArea,
    pub(crate) writeback: Writeback,
    pub(crate) lru_batches: Vec<LruBatches>,
    pub(crate) compactions: Compactions,
    /// Somebody else wants the CPU that steps next: asynchronous compaction gives up. The world's to
    /// set; nothing else heeds it.
    pub need_resched: bool,
    pub(crate) effects: Vec<Effect>,
    pub(crate) events: EventLog,
    pub(crate) swapin: crate::fault::SwapinHistory,
    pub(crate) khugepaged: KhugepagedScan,
    /// Buffers reused between steps, so that none allocates.
    pub(crate) scratch: Vec<Pfn>,
    pub(crate) scratch_free: Vec<Pfn>,
}

impl Machine {
    /// A machine with the given nodes and CPUs, nothing mapped, nothing cached. The nodes are counted in
    /// pages of [`Config::page_size`].
    ///
    /// # Errors
    /// When the geometry is impossible: no memory, too many nodes, pages or CPUs.
    pub fn new(
        nodes: &[NodeSpec],
        nr_cpus: u16,
        mut config: Config,
    ) -> Result<Machine, SetupError> {
        let mut mem = Memory::of_pages(nodes, nr_cpus, config.page_size)?;
        let page_size = mem.page_size;
        crate::watermark::boot(&mut mem.nodes, &mut config.watermarks, page_size);
        mem.defrag_mode = config.defrag_mode;
        let has_thp = config.thp.is_on();
        let inputs = &mut config.watermarks;
        crate::watermark::switch_thp(&mut mem.nodes, inputs, false, has_thp, page_size);
        debug_assert!(mem.pages.len() as u64 <= MAX_PAGES);
        let nr_nodes = nodes.len();
        let slabs = Slabs::new(&config, nr_cpus, nr_nodes);
        let era = Era::of(&config);
        Ok(Machine {
            mem,
            config,
            era,
            nodes: (0..nr_nodes).map(|_| NodeState::new()).collect(),
            memcgs: alloc::vec![Memcg::new("root".into(), MemcgId::NONE, nr_nodes)],
            free_memcgs: Vec::new(),
            stocks: (0..nr_cpus).map(|_| Stock::EMPTY).collect(),
            soft_limit_trees: SoftLimitTrees::new(nr_nodes),
            legacy_wait: None,
            mms: Vec::new(),
            vmas: Vec::new(),
            files: Vec::new(),
            slabs,
            swap: SwapArea::default(),
            writeback: Writeback::new(page_size),
            lru_batches: (0..nr_cpus).map(|_| LruBatches::new()).collect(),
            compactions: Compactions::default(),
            need_resched: false,
            effects: Vec::with_capacity(64),
            events: EventLog::default(),
            swapin: Default::default(),
            khugepaged: KhugepagedScan::default(),
            scratch: Vec::with_capacity(64),
            scratch_free: Vec::with_capacity(64),
        })
    }

    /// Writes `vm.defrag_mode`.
    pub(crate) fn set_defrag_mode(&mut self, on: bool) {
        self.config.defrag_mode = on;
        self.mem.defrag_mode = on;
    }

    /// How large its pages are.
    #[inline]
    pub fn page_size(&self) -> PageSize {
        self.mem.page_size
    }

    /// The groups, by id; those that were removed are not `online`.
    pub fn memcgs(&self) -> &[Memcg] {
        &self.memcgs
    }

    /// Adds an address space whose pages `memcg` pays for.
    pub fn create_mm(&mut self, memcg: MemcgId) -> MmId {
        let id = MmId(self.mms.len() as u32);
        self.memcgs[memcg.idx()].nr_tasks += 1;
        self.mms.push(Mm {
            memcg,
            vmas: Vec::new(),
            kernel_blocks: Vec::new(),
            nr_over_high: 0,
            begun: false,
            oom_victim: false,
            exited: false,
        });
        id
    }

    /// Whether an address space was given up.
    pub fn is_exited(&self, mm: MmId) -> bool {
        self.mms[mm.idx()].exited
    }

    /// Adds a file. Files are never removed; a file's pages are.
    pub fn create_file(&mut self, size: u64, sparse: bool) -> FileId {
        let id = FileId(self.files.len() as u32);
        self.files.push(FileCache::new(size, sparse, self.mem.page_size));
        id
    }

    /// Lengthens a file to `size` bytes, if it is shorter (Linux: `truncate` to more).
    pub fn extend_file(&mut self, file: FileId, size: u64) {
        self.files[file.idx()].extend(size);
    }

    /// A file as the page cache sees it.
    pub fn file(&self, file: FileId) -> &FileCache {
        &self.files[file.idx()]
    }

    /// Sets up swap of `pages` slots that pretends to be full at `limit`.
    pub fn swapon(&mut self, pages: u32, limit: u32, rotational: bool) {
        assert!(self.swap.used() == 0, "swap is in use");
        self.swap = SwapArea::new(pages, limit);
        self.config.swap_rotational = rotational;
    }

    /// The swap area.
    pub fn swap(&self) -> &SwapArea {
        &self.swap
    }

    /// Statistic of a node, in pages.
    pub fn node_stat(&self, node: NodeId, stat: NodeStat) -> u64 {
        self.nodes[node.idx()].stats[stat as usize]
    }

    /// Statistic summed over nodes, in pages.
    pub fn global_node_stat(&self, stat: NodeStat) -> u64 {
        self.nodes.iter().map(|node| node.stats[stat as usize]).sum()
    }

    /// Number of nodes.
    pub fn nr_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Free pages of the machine.
    pub fn nr_free_pages(&self) -> u64 {
        self.mem.nodes.iter().flat_map(|node| node.zones.iter()).map(|zone| zone.free_pages()).sum()
    }

    /// Maps something into an address space; nothing is populated.
    pub fn mmap(
        &mut self,
        mm: MmId,
        backing: Backing,
        pages: u64,
        advice: crate::page_table::Advice,
        executable: bool,
    ) -> VmaId {
        let id = VmaId(self.vmas.len() as u32);
        let page_size = self.mem.page_size;
        self.vmas.push(Vma::new(mm, backing, pages, advice, executable, page_size));
        self.mms[mm.idx()].vmas.push(id);
        if let Backing::File(file) = backing {
            self.files[file.idx()].mappings.push(id);
        }
        id
    }

    /// Makes an anonymous mapping one that grows as it is touched, as a heap does: a part that is not
    /// there yet keeps the pages before it from being huge at their first touch.
    pub fn begin_to_grow(&mut self, vma: VmaId) {
        self.vmas[vma.idx()].grown = 0;
    }

    /// A mapping.
    pub fn vma(&self, vma: VmaId) -> &Vma {
        &self.vmas[vma.idx()]
    }

    /// One access. The hot path: one load, one store, no effects.
    #[inline]
    pub fn touch(&mut self, vma: VmaId, page: u64, write: bool) -> Touch {
        let pte = &mut self.vmas[vma.idx()].ptes[page as usize];
        match pte.touched(write) {
            Some(touched) => {
                *pte = touched;
                Touch::Hit
            }
            None => Touch::Fault,
        }
    }

    /// Whether a page of a mapping is in memory.
    pub fn is_resident(&self, vma: VmaId, page: u64) -> bool {
        self.vmas[vma.idx()].ptes[page as usize].is_present()
    }

    /// Whether a page of a mapping is in memory, mapped or only cached (mincore).
    pub fn is_in_core(&self, vma: VmaId, page: u64) -> bool {
        let vma = &self.vmas[vma.idx()];
        let pte = vma.ptes[page as usize];
        pte.is_present()
            || match vma.backing {
                Backing::Anon => {
                    pte.swap_slot().is_some_and(|slot| self.swap.cached(slot).is_some())
                }
                Backing::File(file) => self.files[file.idx()].get(page as u32).is_some(),
            }
    }

    /// Runs one bounded step of a task's call.
    pub fn step(&mut self, call: &mut Call, cpu: Cpu, now: Nanos) -> (Step<Outcome>, Effects<'_>) {
        let step = self.call_step(call, cpu, now);
        self.finish_wakeups();
        (step, Effects::new(&mut self.effects))
    }

    /// Turns the allocator's pending kswapd requests into wake-ups.
    pub(crate) fn finish_wakeups(&mut self) {
        while !self.mem.wakeups.is_empty() {
            let wakeup = self.mem.wakeups.remove(0);
            self.wakeup_kswapd(wakeup.node, wakeup.order, wakeup.highest_zoneidx, true);
        }
    }

    /// Counts of the work done since the last call of this function.
    pub fn take_work(&mut self) -> Work {
        self.mem.work.take()
    }

    /// Removes one mapping: its pages are unmapped, anonymous ones freed.
    pub fn munmap(&mut self, vma: VmaId, cpu: Cpu) -> Effects<'_> {
        self.unmap_vma(vma, cpu);
        Effects::new(&mut self.effects)
    }

    /// Ends an address space and frees what only it used.
    pub fn exit_mm(&mut self, mm: MmId, cpu: Cpu) -> Effects<'_> {
        let vmas = core::mem::take(&mut self.mms[mm.idx()].vmas);
        for &vma in &vmas {
            self.unmap_vma(vma, cpu);
        }
        self.free_all_kernel_blocks(mm, cpu);
        self.abandon_compactions(mm, cpu);
        if !core::mem::replace(&mut self.mms[mm.idx()].exited, true) {
            let memcg = self.mms[mm.idx()].memcg;
            self.memcgs[memcg.idx()].nr_tasks -= 1;
            if self.mms[mm.idx()].oom_victim {
                self.restore_soft_limits();
            }
        }
        Effects::new(&mut self.effects)
    }

    /// Adds to a node statistic of the page's node.
    #[inline]
    pub(crate) fn stat_inc(&mut self, pfn: Pfn, stat: NodeStat) {
        let node = self.mem.pages[pfn.idx()].node();
        self.nodes[node.idx()].stats[stat as usize] += 1;
    }

    /// Takes from a node statistic of the page's node.
    #[inline]
    pub(crate) fn stat_dec(&mut self, pfn: Pfn, stat: NodeStat) {
        let node = self.mem.pages[pfn.idx()].node();
        self.nodes[node.idx()].stats[stat as usize] -= 1;
    }

    /// One more entry maps the page, small or huge.
    pub(crate) fn page_add_rmap(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        page.mapcount += 1;
        if page.mapcount == 1 {
            let (node, stat, nr, huge) = mapped_as(page);
            let stats = &mut self.nodes[node.idx()].stats;
            stats[stat as usize] += nr;
            stats[NodeStat::NrAnonTransparentHugepages as usize] += u64::from(huge);
        }
    }

    /// One entry less maps the page, small or huge.
    pub(crate) fn page_remove_rmap(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        page.mapcount -= 1;
        if page.mapcount == 0 {
            let (node, stat, nr, huge) = mapped_as(page);
            let stats = &mut self.nodes[node.idx()].stats;
            stats[stat as usize] -= nr;
            stats[NodeStat::NrAnonTransparentHugepages as usize] -= u64::from(huge);
        }
    }

    /// Removes a page from the swap cache, leaving `shadow` in its slot.
    pub(crate) fn delete_from_swap_cache(&mut self, pfn: Pfn, shadow: crate::workingset::Shadow) {
        let page = &mut self.mem.pages[pfn.idx()];
        debug_assert!(page.has(PageFlags::SWAPCACHE));
        page.clear(PageFlags::SWAPCACHE);
        let slot = crate::units::SwapSlot(page.private);
        page.private = 0;
        if let Some(memcg) = self.swap.remove_from_cache(slot, shadow) {
            self.uncharge_swap(memcg);
        }
        self.stat_dec(pfn, NodeStat::NrFilePages);
        self.stat_dec(pfn, NodeStat::NrSwapcached);
    }

    /// Puts a page in the swap cache of `slot`, which already points at it.
    pub(crate) fn mark_swap_cached(&mut self, pfn: Pfn, slot: crate::units::SwapSlot) {
        let page = &mut self.mem.pages[pfn.idx()];
        page.set(PageFlags::SWAPCACHE);
        page.private = slot.0;
        self.stat_inc(pfn, NodeStat::NrFilePages);
        self.stat_inc(pfn, NodeStat::NrSwapcached);
    }

    /// Wakes whoever waits for the page.
    pub(crate) fn wake_page(&mut self, pfn: Pfn) {
        if self.mem.pages[pfn.idx()].test_clear(PageFlags::WAITERS) {
            self.effects.push(Effect::WakePage(pfn));
        }
    }

    /// Wakes the tasks that sleep on a node for a reason.
    pub(crate) fn wake_throttled(&mut self, node: NodeId, reason: Throttle) {
        self.effects.push(Effect::WakeThrottled(node, reason));
    }

    /// Page-table entry of an anonymous page, if it is mapped.
    #[inline]
    pub(crate) fn anon_pte(&mut self, pfn: Pfn) -> &mut Pte {
        let page = &self.mem.pages[pfn.idx()];
        debug_assert!(page.has(PageFlags::ANON) && page.mapcount > 0);
        &mut self.vmas[page.mapping as usize].ptes[page.index as usize]
    }

    /// Drops clean, unmapped page-cache pages of every file (`echo 1 > drop_caches`).
    pub fn drop_pagecache(&mut self, cpu: Cpu) -> Effects<'_> {
        self.lru_add_drain_all();
        for file in 0..self.files.len() {
            let mut victims = Vec::new();
            self.files[file].for_each_cached(|index, pfn| victims.push((index, pfn)));
            for (index, pfn) in victims {
                let page = &self.mem.pages[pfn.idx()];
                let busy = PageFlags::DIRTY.with(PageFlags::WRITEBACK).with(PageFlags::LOCKED);
                if page.mapcount == 0 && !page.flags.any(busy) {
                    let nodes = self.files[file].nr_nodes;
                    self.files[file].remove(index, Default::default());
                    self.tree_shrank(FileId(file as u32), index, nodes, cpu);
                    self.mem.pages[pfn.idx()].clear(PageFlags::FILE);
                    self.stat_dec(pfn, NodeStat::NrFilePages);
                    self.free_user_page(pfn, cpu);
                }
            }
        }
        Effects::new(&mut self.effects)
    }

    /// Marks a freshly allocated page as user memory of its kind.
    pub(crate) fn init_user_page(&mut self, pfn: Pfn, mapping: u32, index: u32, flags: PageFlags) {
        let page = &mut self.mem.pages[pfn.idx()];
        debug_assert_eq!(page.place, Place::Allocated);
        page.mapping = mapping;
        page.index = index;
        page.flags = flags;
    }

    /// The root group.
    pub const ROOT: MemcgId = ROOT;
}

/// How a page counts while it is mapped: where, as what, so many pages, and as a huge page.
#[inline]
fn mapped_as(page: &Page) -> (NodeId, NodeStat, u64, bool) {
    let stat = if page.has(PageFlags::ANON) { NodeStat::NrAnonPages } else { NodeStat::NrMapped };
    (page.node(), stat, page.nr_pages(), page.has(PageFlags::HEAD))
}

impl NodeState {
    fn new() -> NodeState {
        NodeState {
            stats: [0; NodeStat::COUNT],
            zone_lru: [[0; NR_LRU_LISTS]; MAX_NR_ZONES],
            kswapd: Kswapd::new(),
            kcompactd: Kcompactd::new(),
            dirty: false,
            writeback: false,
            congested: false,
            nr_writeback_throttled: 0,
            nr_written_while_throttled: 0,
            nr_reserve_throttled: 0,
        }
    }
}
