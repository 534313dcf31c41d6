//! The kernel: everything of a machine's memory manager below the owners of its frames.
//!
//! Linux keeps these tables in global variables. A method of [`Kernel`] never asks who uses a frame:
//! it cannot unmap, judge references, or write a page of a file. Methods that do are those of
//! [`Manager`](crate::interface::manager::Manager). A method that needs one part of the kernel is a
//! method of that part.
//!
//! Invariant: see [`crate::audit`].

use crate::ageing::lruvec::LruSizes;
use crate::ageing::pagevec::LruBatches;
use crate::ageing::Ageing;
use crate::compaction::Compactions;
use crate::config::era::Era;
use crate::config::Config;
use crate::frames::boot::SetupError;
use crate::frames::gfp::Watermark;
use crate::frames::node::NodeSpec;
use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::frames::zone::Zone;
use crate::groups::memcg::Memcg;
use crate::groups::Groups;
use crate::interface::effect::{Effect, Effects, Token};
use crate::interface::step_state::StepState;
use crate::interface::throttle::Throttle;
use crate::reclaim::plugin::{ActivePlugin, NamedPolicy, PolicyFault};
use crate::slab::Slabs;
use crate::stats::event::{EventLog, TraceEvent};
use crate::stats::vmstat::NodeStat;
use crate::stats::work::Work;
use crate::swap::content::{ContentMix, ContentMixId};
use crate::swap::{SwapAreas, SwapOptions};
use crate::units::page_size::PageSize;
use crate::units::{Cpu, IdVec, MemcgId, NodeId, Pfn, MAX_PAGES};
use alloc::vec::Vec;

/// Frames, groups, slabs, swap, and the state of reclaim and compaction of one machine.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Frames, zones, counters.
    pub mem: Memory,
    /// Tunables and policies.
    pub config: Config,
    /// Differences of the configured kernel from Linux 6.1; follows from `config`.
    pub(crate) era: Era,
    /// Generations or a page policy order pages.
    pub(crate) leaves_two_lists: bool,
    /// The groups, their charges and stocks.
    pub groups: Groups,
    /// Slab caches.
    pub slabs: Slabs,
    pub(crate) swap: SwapAreas,
    pub(crate) lru_batches: IdVec<Cpu, LruBatches>,
    pub(crate) compactions: Compactions,
    /// Policies registered from outside the core.
    pub(crate) plugin: ActivePlugin,
    pub(crate) step: StepState,
}

impl Memory {
    /// Calls [`Self::refresh_cpu_vm_stats`] for all CPUs (`vm.stat_refresh`).
    pub(crate) fn refresh_vm_stats(&mut self) {
        (0..self.nr_cpus).for_each(|cpu| self.refresh_cpu_vm_stats(Cpu(cpu), true));
    }

    #[inline]
    pub(crate) fn stat_inc(&mut self, pfn: Pfn, stat: NodeStat) {
        let node = self.pages[pfn].node();
        self.pgdat[node].stats[stat as usize] += 1;
    }

    #[inline]
    pub(crate) fn stat_dec(&mut self, pfn: Pfn, stat: NodeStat) {
        let node = self.pages[pfn].node();
        self.pgdat[node].stats[stat as usize] -= 1;
    }

    /// Adds all frames of a page to a statistic of its node, or removes them.
    #[inline]
    pub(crate) fn stat_pages(&mut self, pfn: Pfn, stat: NodeStat, is_added: bool) {
        let page = &self.pages[pfn];
        let (node, nr) = (page.node(), page.nr_pages());
        let count = &mut self.pgdat[node].stats[stat as usize];
        *count = if is_added { *count + nr } else { *count - nr };
    }

    /// Statistic of a node, in pages; 0 for an unknown node.
    pub fn node_stat(&self, node: NodeId, stat: NodeStat) -> u64 {
        self.pgdat.get(node.idx()).map_or(0, |node| node.stats[stat as usize])
    }

    /// Statistic summed over nodes, in pages.
    pub fn global_node_stat(&self, stat: NodeStat) -> u64 {
        self.pgdat.iter().map(|node| node.stats[stat as usize]).sum()
    }

    fn zones(&self) -> impl Iterator<Item = &Zone> {
        self.nodes.iter().flat_map(|node| node.zones.iter())
    }

    /// Free pages of the machine.
    pub fn nr_free_pages(&self) -> u64 {
        self.zones().map(Zone::free_pages).sum()
    }

    /// Zones HighMem with memory.
    pub(crate) fn highmem_zones(&self) -> impl Iterator<Item = &Zone> {
        self.zones().filter(|zone| zone.is_highmem && zone.is_populated())
    }

    /// Pages of zones HighMem that could become dirty page cache. They do not count for the dirty
    /// limits, because the kernel needs other memory to write them (Linux
    /// `highmem_dirtyable_memory`; `vm.highmem_is_dirtyable` is 0).
    pub(crate) fn highmem_dirtyable_pages(&self) -> u64 {
        let of = |zone: &Zone| {
            let free = zone.free_pages().saturating_sub(zone.wmark(Watermark::High));
            free + LruSizes(self.pgdat[zone.node].zone_lru[zone.index]).file()
        };
        self.highmem_zones().map(of).sum()
    }

    /// Pages of the machine's CMA areas.
    pub fn cma_pages(&self) -> u64 {
        self.zones().map(|zone| zone.cma_pages).sum()
    }

    /// Free pages of the machine's CMA areas.
    pub fn free_cma_pages(&self) -> u64 {
        self.zones().map(Zone::free_cma_pages).sum()
    }
}

impl Kernel {
    /// A machine with the given nodes and CPUs, without groups, swap and kernel objects.
    ///
    /// # Errors
    /// The sizes are impossible: no memory, or too many nodes, pages or CPUs.
    pub(crate) fn new(
        nodes: &[NodeSpec],
        nr_cpus: u16,
        mut config: Config,
    ) -> Result<Kernel, SetupError> {
        let mut mem = Memory::of_pages(nodes, nr_cpus, config.page_size)?;
        let page_size = mem.page_size;
        crate::frames::watermark::boot(&mut mem.nodes, &mut config.watermarks, page_size);
        mem.defrag_mode = config.defrag_mode;
        mem.spreads_over_zones = Era::of(&config).spreads_over_zones;
        let has_thp = config.thp.is_on();
        let inputs = &mut config.watermarks;
        crate::frames::watermark::switch_thp(&mut mem.nodes, inputs, false, has_thp, page_size);
        debug_assert!(mem.pages.len() as u64 <= MAX_PAGES);
        let nr_nodes = nodes.len();
        let slabs = Slabs::new(&config, nr_cpus, nr_nodes);
        let era = Era::of(&config);
        let mut kernel = Kernel {
            era,
            mem,
            config,
            leaves_two_lists: era.generations,
            groups: Groups::new(nr_nodes, nr_cpus, Ageing::built_in(&era)),
            slabs,
            swap: SwapAreas::default(),
            lru_batches: (0..nr_cpus).map(|_| LruBatches::new()).collect(),
            compactions: Compactions::default(),
            plugin: ActivePlugin::default(),
            step: StepState::new(nr_nodes),
        };
        kernel.set_memcg_lru();
        Ok(kernel)
    }

    /// Replaces the policies from outside the core. Existing pages keep their marks.
    pub fn use_plugin(&mut self, chosen: Option<NamedPolicy>) {
        self.plugin.policy = chosen;
    }

    /// Invalid answers of policies from outside the core, each with its count.
    pub fn plugin_errors(&self) -> Vec<(PolicyFault, u64)> {
        self.plugin.wrong()
    }

    pub(crate) fn set_defrag_mode(&mut self, on: bool) {
        self.config.defrag_mode = on;
        self.mem.defrag_mode = on;
    }

    /// Size of a page.
    #[inline]
    pub fn page_size(&self) -> PageSize {
        self.mem.page_size
    }

    /// The groups, by id; removed groups are not `online`.
    pub fn memcgs(&self) -> &IdVec<MemcgId, Memcg> {
        &self.groups.memcgs
    }

    /// Adds a swap area (Linux `swapon`). Returns false if the areas have too many slots.
    pub fn swapon(&mut self, area: SwapOptions) -> bool {
        self.groups.idle_groups.forget();
        let is_added = self.swap.swapon(area, self.mem.page_size, self.config.zsmalloc);
        if is_added && self.era.swap_takes_memory {
            self.swap.keep_nodes();
        }
        self.add_swap_caches();
        is_added
    }

    /// Sets the seed of the bins that the memcg LRU draws (Linux `get_random_u32_below`); every group
    /// draws again.
    pub fn set_memcg_lru_seed(&mut self, seed: u64) {
        self.groups.memcg_lru_seed = seed;
        self.set_memcg_lru();
    }

    /// Sets the seed of what pages contain, and the mix of owners without one of their own.
    pub fn set_default_content(&mut self, seed: u64, mix: ContentMix) {
        self.swap.contents.set_default(seed, mix);
    }

    /// The id of a mix of contents, for owners.
    pub fn content_mix_id(&mut self, mix: ContentMix) -> ContentMixId {
        self.swap.contents.intern(mix)
    }

    /// The swap areas.
    pub fn swap(&self) -> &SwapAreas {
        &self.swap
    }

    /// Number of nodes.
    pub fn nr_nodes(&self) -> usize {
        self.mem.pgdat.len()
    }

    /// Adds the counts that `cpu` still keeps for itself to the zones' counters, which watermark
    /// checks read. A world calls this when the CPU goes idle (Linux `quiet_vmstat`), and once a
    /// second with `decays` (`vmstat_update`): then the CPU's lists shrink too, where they adapt.
    /// Does nothing for an unknown CPU.
    pub fn refresh_cpu_vm_stats(&mut self, cpu: Cpu, decays: bool) {
        if self.groups.has_cpu(cpu) {
            self.mem.refresh_cpu_vm_stats(cpu, decays);
        }
    }

    /// Reports whether another task wants the CPU. Only asynchronous compaction reacts: it gives
    /// up.
    pub fn set_need_resched(&mut self, wanted: bool) {
        self.step.need_resched = wanted;
    }

    /// Whether the last step of a call or daemon ended inside a plug: its requests for I/O should
    /// wait for more until a step ends outside, or the thread sleeps (Linux `blk_start_plug`, in
    /// `shrink_lruvec`, and in swap read-ahead of several pages).
    pub fn is_plugged(&self) -> bool {
        self.step.plugged
    }

    /// Called at the end of every function that may have effects: returns the effects to the world.
    #[inline]
    pub(crate) fn take_effects(&mut self) -> Effects<'_> {
        self.finish_wakeups();
        self.step.effects.take_effects()
    }

    /// Turns the allocator's pending kswapd requests into wake-ups.
    #[inline]
    fn finish_wakeups(&mut self) {
        while !self.mem.wakeups.is_empty() {
            let wakeup = self.mem.wakeups.remove(0);
            self.wakeup_kswapd(wakeup.node, wakeup.order, wakeup.highest_zoneidx, true);
        }
    }

    /// Returns the work counted since the previous call of this function.
    #[inline]
    pub fn take_work(&mut self) -> Work {
        self.mem.work.take()
    }

    /// Adds a page to a statistic of writeback: of its node, its group and the group's ancestors.
    pub(crate) fn writeback_stat_inc(&mut self, pfn: Pfn, stat: NodeStat) {
        self.mem.stat_pages(pfn, stat, true);
        self.mod_group_writeback_stat(pfn, stat, 1);
    }

    pub(crate) fn writeback_stat_dec(&mut self, pfn: Pfn, stat: NodeStat) {
        self.mem.stat_pages(pfn, stat, false);
        self.mod_group_writeback_stat(pfn, stat, -1);
    }

    fn mod_group_writeback_stat(&mut self, pfn: Pfn, stat: NodeStat, change: i64) {
        let change = change * self.mem.pages[pfn].nr_pages() as i64;
        let mut at = self.mem.pages[pfn].memcg;
        while at.is_some() {
            let group = &mut self.groups.memcgs[at];
            let count = match stat {
                NodeStat::NrDirty => &mut group.file_dirty,
                _ => &mut group.writeback,
            };
            *count = count.wrapping_add_signed(change);
            at = group.parent;
        }
    }

    /// Wakes all tasks that wait for the page.
    pub(crate) fn wake_page(&mut self, pfn: Pfn) {
        if self.mem.pages[pfn].test_clear(PageFlags::WAITERS) {
            self.step.effects.push(Effect::Wake(Token::Page(pfn)));
        }
    }

    pub(crate) fn wake_throttled(&mut self, node: NodeId, reason: Throttle) {
        self.step.effects.push(Effect::Wake(Token::Throttled(node, reason)));
    }

    /// Declares that the world has no bytes. From now on the manager requests no effects that only
    /// concern contents ([`Effect::is_contents_only`]). [`Effect::CopyPage`] remains, because the
    /// page cannot be mapped until the copy is done. No decision changes.
    pub fn without_bytes(&mut self) {
        self.step.effects.drop_contents();
    }

    /// Turns the event log on, or turns it off and empties it.
    pub fn record_events(&mut self, enabled: bool) {
        self.mem.events = EventLog::new(enabled);
    }

    /// Moves the events recorded since the previous call to the end of `events`.
    #[inline]
    pub fn take_events(&mut self, events: &mut Vec<TraceEvent>) {
        self.mem.events.take(events);
    }
}
