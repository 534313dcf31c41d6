//! The fast path of the page allocator: walks a zonelist to allocate; also frees pages.
//!
//! Linux: `get_page_from_freelist`, `rmqueue`, `free_unref_page`, `drain_all_pages`
//! (mm/page_alloc.c, 6.1). A request takes a block from the first zone that stays above its
//! watermark: orders 0 to 3 and huge pages from the CPU's own lists, other orders from the buddy
//! lists. If every zone would fall below its watermark, the slow path continues (`slowpath`).
//!
//! Invariant: the first frame of an allocated block is [`Place::Allocated`], on no list, and has an
//! empty descriptor (no owner, group, flag or mapping). A block is on no list when it is freed.
//! `pgalloc_*` and `pgfree` count pages when they leave or enter the allocator. Linux 6.1 counts
//! blocks on the per-CPU path, which makes no difference for order 0.

use crate::frames::boot::cpu_node;
use crate::frames::buddy::{clear_page, mark_allocated};
use crate::frames::fallback::{FallbackLog, HighAtomicRelease};
use crate::frames::gfp::{AllocFlags, Gfp, MigrateType, Watermark};
use crate::frames::node::{Node, ZoneRef, Zonelists};
use crate::frames::page::Place;
use crate::frames::page_array::PageArray;
use crate::frames::pcp::{Pcp, PcpPolicy, PcpRequest};
use crate::frames::pgdat::NodeState;
use crate::frames::pin_counts::Pins;
use crate::frames::watermark::{self, zone_watermark_fast, WatermarkInputs};
use crate::frames::zone::Zone;
use crate::frames::zone_type::{MAX_NR_ZONES, ZONE_NORMAL};
use crate::stats::event::EventLog;
use crate::stats::vmstat::{Event, Vmstat};
use crate::stats::work::Work;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{Cpu, IdVec, MemcgId, NodeId, Order, Pfn, MAX_PAGE_ORDER};
use alloc::vec::Vec;

/// Frames, zones and free lists of the whole machine.
#[derive(Clone, Debug, State)]
pub struct Memory {
    /// Size of a page. Never changes.
    #[state(skip)] // not state, like the number of pages
    pub page_size: PageSize,
    /// All frames.
    pub pages: PageArray,
    /// All nodes.
    pub nodes: IdVec<NodeId, Node>,
    /// State of reclaim and compaction, and counters, by node.
    pub pgdat: IdVec<NodeId, NodeState>,
    /// Pins of frames.
    pub(crate) pins: Pins,
    /// Events counted since boot.
    pub vmstat: Vmstat,
    #[state(skip)] // for observation only
    pub(crate) events: EventLog,
    /// Work since the world last read it.
    pub work: Work,
    /// Number of CPUs; every [`Cpu`] argument is below it.
    pub nr_cpus: u16,
    /// Zonelists, by node.
    #[state(skip)] // follow from the nodes
    pub zonelists: IdVec<NodeId, Zonelists>,
    /// kswapd wake-ups that the fast path has requested and that are still pending, in order,
    /// without repetitions.
    pub(crate) wakeups: Vec<Wakeup>,
    #[state(skip)] // for observation only
    pub(crate) last_oom: Option<OomRequest>,
    #[state(skip)] // a guess without effect
    pub(crate) last_freed: LastFreed,
    /// Requests are spread over the zones of a node in proportion to their watermarks (3.12 to 4.7),
    /// a copy of the era's field.
    pub(crate) spreads_over_zones: bool,
    /// `vm.defrag_mode`, a copy of [`crate::config::Config::defrag_mode`].
    pub(crate) defrag_mode: bool,
}

/// The request for which memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomRequest {
    /// log2 of its pages.
    pub order: Order,
    /// Its flags.
    pub gfp: Gfp,
    /// The group at its limit; the root: the machine.
    pub scope: MemcgId,
    /// There was memory to reclaim, but it is younger than `lru_gen.min_ttl_ms`.
    pub for_min_ttl: bool,
}

impl Memory {
    /// The last request for which memory ran out.
    pub fn last_oom(&self) -> Option<OomRequest> {
        self.last_oom
    }
}

/// List of the most recently freed single page: a guess for the next one, which affects only speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastFreed {
    at: ZoneRef,
    mt: MigrateType,
    list: u8,
}

impl LastFreed {
    /// A first guess, before any page is freed.
    pub(crate) const fn guess() -> LastFreed {
        let mt = MigrateType::Movable;
        let at = ZoneRef { node: NodeId(0), zone: ZONE_NORMAL as u8 };
        LastFreed { at, mt, list: Pcp::list_index(0, mt) as u8 }
    }
}

/// A request to wake a node's kswapd (Linux `wakeup_kswapd`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct Wakeup {
    /// The node.
    pub node: NodeId,
    /// Order to balance for.
    pub order: Order,
    /// Highest zone to balance. For a boosted zone this is the zone itself: kswapd skips higher
    /// zones (`pgskip_*`).
    pub highest_zoneidx: usize,
}

const PGALLOC: [Event; MAX_NR_ZONES] =
    [Event::PgallocDma, Event::PgallocDma32, Event::PgallocNormal, Event::PgallocMovable];

/// An allocation attempt with its precomputed parameters.
#[derive(Clone, Copy)]
struct Attempt {
    cpu: Cpu,
    order: Order,
    gfp: Gfp,
    highest_zoneidx: usize,
    mt: MigrateType,
    flags: AllocFlags,
}

impl Memory {
    /// First attempt of every allocation, at the low watermark (Linux `__alloc_pages` before its
    /// slow path). `None`: the slow path must continue.
    #[inline]
    pub fn alloc_fast(&mut self, cpu: Cpu, node: NodeId, order: Order, gfp: Gfp) -> Option<Pfn> {
        if order == 0 && !self.spreads_over_zones {
            let pfn = self.alloc_hot(cpu, node, gfp);
            if pfn.is_some() {
                return pfn;
            }
        }
        self.alloc_walk(cpu, node, order, gfp)
    }

    /// Shortcut of [`Memory::alloc_walk`] for a single page. It succeeds if the preferred zone is
    /// above its watermark, the CPU has a page and kswapd needs no wake-up. Otherwise it changes
    /// nothing.
    #[inline(always)]
    fn alloc_hot(&mut self, cpu: Cpu, node: NodeId, gfp: Gfp) -> Option<Pfn> {
        let highest_zoneidx = gfp.highest_zone();
        let at = self.zonelists[node][highest_zoneidx].preferred?;
        let zone = &mut self.nodes[at.node].zones[usize::from(at.zone)];
        // The walk counts the CMA pages that are free; it is enough here to assume that all are.
        let unusable = zone.nr_reserved_highatomic + zone.cma_pages;
        let usable = zone.free_pages_counted().saturating_sub(unusable);
        let mark = zone.watermark_low + zone.watermark_boost;
        if usable <= mark + zone.lowmem_reserve[highest_zoneidx] || zone.boosted {
            return None;
        }
        let pcp = &mut zone.pcps[cpu];
        let list = Pcp::list_index(0, gfp.migrate_type());
        let pfn = pcp.lists[list].pop()?;
        pcp.count -= 1;
        pcp.frees >>= 1;
        mark_allocated(&mut self.pages, pfn, 0);
        self.vmstat.count(PGALLOC[usize::from(at.zone)]);
        self.work.pages_allocated += 1;
        Some(pfn)
    }

    #[inline(never)]
    fn alloc_walk(&mut self, cpu: Cpu, node: NodeId, order: Order, gfp: Gfp) -> Option<Pfn> {
        let nofragment = self.defrag_mode || self.zonelists[node][gfp.highest_zone()].nofragment;
        let flags = AllocFlags { nofragment, ..AllocFlags::fast(gfp) };
        if self.spreads_over_zones && order <= MAX_PAGE_ORDER {
            let (highest_zoneidx, mt) = (gfp.highest_zone(), gfp.migrate_type());
            let attempt = Attempt { cpu, order, gfp, highest_zoneidx, mt, flags };
            if let Some(pfn) = self.walk_fairly(node, &attempt) {
                return Some(pfn);
            }
        }
        self.get_page_from_freelist(cpu, node, order, gfp, flags)
    }

    /// Takes a block from a zone of the node that has not used up its share of allocations yet. If
    /// there is none, all shares begin again (Linux `ALLOC_FAIR`, `reset_alloc_batches`, 4.5).
    fn walk_fairly(&mut self, node: NodeId, attempt: &Attempt) -> Option<Pfn> {
        let highest = attempt.highest_zoneidx;
        let mut has_skipped = false;
        let mut nr = 0;
        while let Some(&at) = self.zonelists[node][highest].zones.get(nr) {
            nr += 1;
            if at.node != node {
                break;
            }
            if self.nodes[node].zones[usize::from(at.zone)].alloc_batch <= 0 {
                has_skipped = true;
                continue;
            }
            let pfn = self.try_zone(at, attempt);
            if pfn.is_some() {
                let zone = &mut self.nodes[node].zones[usize::from(at.zone)];
                zone.alloc_batch -= 1 << attempt.order;
                return pfn;
            }
        }
        if has_skipped {
            self.nodes[node].zones[..=highest].iter_mut().for_each(Zone::reset_alloc_batch);
        }
        None
    }

    /// Takes a block from the first zone in `node`'s zonelist that stays above the watermark of
    /// `flags`. With `nofragment`, it retries without this flag before it gives up or tries another
    /// node: local memory is worth more than unmixed pageblocks.
    pub fn get_page_from_freelist(
        &mut self,
        cpu: Cpu,
        node: NodeId,
        order: Order,
        gfp: Gfp,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        if order > MAX_PAGE_ORDER {
            return None;
        }
        let highest_zoneidx = gfp.highest_zone();
        let mt = gfp.migrate_type();
        let attempt = Attempt { cpu, order, gfp, highest_zoneidx, mt, flags };
        self.walk_zonelist(node, &attempt).or_else(|| {
            let flags = AllocFlags { nofragment: false, ..flags };
            // In defrag mode only the slow path may mix types (Linux 6.15).
            let retry = attempt.flags.nofragment && !self.defrag_mode;
            retry.then(|| self.walk_zonelist(node, &Attempt { flags, ..attempt })).flatten()
        })
    }

    fn walk_zonelist(&mut self, node: NodeId, attempt: &Attempt) -> Option<Pfn> {
        let highest = attempt.highest_zoneidx;
        let first = self.zonelists[node][highest].preferred?;
        let mut nr = 0;
        while let Some(&at) = self.zonelists[node][highest].zones.get(nr) {
            if attempt.flags.nofragment && at.node != first.node && !self.defrag_mode {
                return None;
            }
            nr += 1;
            if at.node != node && attempt.gfp.has(Gfp::THISNODE) {
                continue;
            }
            let pfn = self.try_zone(at, attempt);
            if pfn.is_some() {
                return pfn;
            }
        }
        None
    }

    /// Checks the watermark of one zone and takes a block.
    fn try_zone(&mut self, at: ZoneRef, attempt: &Attempt) -> Option<Pfn> {
        let zone = &self.nodes[at.node].zones[usize::from(at.zone)];
        let Attempt { order, gfp, highest_zoneidx, flags, .. } = *attempt;
        let mark = zone.wmark(flags.watermark);
        let has_mark = flags.watermark == Watermark::None
            || zone_watermark_fast(zone, order, mark, highest_zoneidx, flags, gfp);
        has_mark.then(|| self.rmqueue(at, attempt)).flatten()
    }

    /// Takes a block from a zone that passed its watermark check (Linux `rmqueue`). If the zone is
    /// boosted, by this allocation or an earlier one, requests a wake-up of kswapd.
    fn rmqueue(&mut self, at: ZoneRef, attempt: &Attempt) -> Option<Pfn> {
        let order = attempt.order;
        let Memory { pages, nodes, vmstat, events, work, .. } = self;
        let zone = &mut nodes[at.node].zones[usize::from(at.zone)];
        let notes = &mut FallbackLog { vmstat, events };
        let mut taken = None;
        if zone.pcp_keeps(attempt.cpu, order) {
            zone.pcps[attempt.cpu].frees >>= 1;
            let request = PcpRequest { order, mt: attempt.mt, flags: attempt.flags };
            let (pfn, buddy_ops) = zone.pcp_take(pages, notes, attempt.cpu, request);
            work.buddy_ops += buddy_ops;
            taken = pfn;
        }
        if taken.is_some() {
            work.pages_allocated += 1 << order;
        } else {
            taken = rmqueue_buddy(zone, pages, notes, work, attempt);
        }
        let boosted = core::mem::take(&mut zone.boosted);
        if let Some(pfn) = taken {
            mark_allocated(pages, pfn, order);
            vmstat.add(PGALLOC[usize::from(at.zone)], 1 << order);
            if order > 0 && attempt.flags.harder {
                zone.reserve_highatomic(pages, pfn);
            }
        }
        if boosted {
            self.wake_boosted(at);
        }
        taken
    }

    #[cold]
    fn wake_boosted(&mut self, at: ZoneRef) {
        let wakeup = Wakeup { node: at.node, order: 0, highest_zoneidx: at.zone.into() };
        if !self.wakeups.contains(&wakeup) {
            self.wakeups.push(wakeup);
        }
    }

    /// Frees a block: orders 0 to 3 and huge pages to the CPU's list, others to the buddy lists
    /// (Linux `free_the_page`). `order` must be the order of the allocation.
    #[inline]
    pub fn free_page(&mut self, cpu: Cpu, pfn: Pfn, order: Order) {
        if order > 0 || !self.free_hot(cpu, pfn) {
            self.free_block(cpu, pfn, order);
        }
    }

    /// Shortcut of [`Memory::free_block`] for a single page of the same zone and type as the page
    /// freed before it, if the CPU's list has space. Otherwise changes nothing and returns false.
    /// The comparison with the previous page costs one test; computing the list costs a chain of
    /// loads.
    #[inline(always)]
    fn free_hot(&mut self, cpu: Cpu, pfn: Pfn) -> bool {
        let LastFreed { at, mt, list } = self.last_freed;
        let zone = &mut self.nodes[at.node].zones[usize::from(at.zone)];
        if !zone.spans(pfn.0) || zone.block_type(pfn) != mt {
            return false;
        }
        let page = &mut self.pages[pfn];
        let pcp = &mut zone.pcps[cpu];
        let count = pcp.count + 1;
        if page.place.is_unused() || count >= pcp.high_now(zone.reclaim_active, false) {
            return false;
        }
        pcp.count = count;
        pcp.lists[usize::from(list)].push(pfn);
        clear_page(page, Place::Pcp);
        page.private = mt as u32;
        self.vmstat.count(Event::Pgfree);
        self.work.pages_freed += 1;
        true
    }

    #[inline(never)]
    fn free_block(&mut self, cpu: Cpu, pfn: Pfn, order: Order) {
        assert!(order <= MAX_PAGE_ORDER && pfn.0 & ((1 << order) - 1) == 0);
        let Memory { pages, nodes, vmstat, work, .. } = self;
        let page = &pages[pfn];
        assert!(!page.place.is_unused(), "{pfn:?} is freed but not in use");
        debug_assert!(page.prev.is_none() && page.next.is_none(), "{pfn:?} is still on a list");
        debug_assert_eq!(page.mapcount, 0, "{pfn:?} is still mapped");
        let at = ZoneRef { node: page.node(), zone: page.zone() as u8 };
        let zone = &mut nodes[at.node].zones[page.zone()];
        let mt = zone.block_type(pfn);
        vmstat.add(Event::Pgfree, 1 << order);
        if zone.pcp_keeps(cpu, order) && mt != MigrateType::Isolate {
            work.pages_freed += 1 << order;
            work.buddy_ops += zone.pcp_give(pages, cpu, pfn, order, mt);
            self.last_freed = LastFreed { at, mt, list: Pcp::list_index(0, mt) as u8 };
        } else {
            work.buddy_ops += 1;
            clear_page(&mut pages[pfn], Place::Allocated);
            debug_assert!(order == 0 || pages[pfn.idx() + 1].place == Place::BuddyTail);
            zone.stat.this_cpu = cpu;
            zone.free_direct(pages, pfn, order);
        }
    }

    /// Frees single pages, in order (Linux `free_unref_page_list`).
    pub fn free_batch(&mut self, cpu: Cpu, pfns: &[Pfn]) {
        for &pfn in pfns {
            self.free_page(cpu, pfn, 0);
        }
    }

    /// Drains one CPU's lists (Linux `drain_local_pages`).
    pub fn drain_cpu(&mut self, cpu: Cpu) {
        let Memory { pages, nodes, work, .. } = self;
        for zone in nodes.iter_mut().flat_map(|node| &mut node.zones) {
            work.buddy_ops += zone.pcp_drain(pages, cpu);
        }
    }

    /// Adds the counts that `cpu` keeps for itself to the zones' counters. `decays`: since 6.7 its
    /// lists also shrink (Linux `refresh_cpu_vm_stats`).
    pub(crate) fn refresh_cpu_vm_stats(&mut self, cpu: Cpu, decays: bool) {
        let Memory { pages, nodes, work, .. } = self;
        for zone in nodes.iter_mut().flat_map(|node| &mut node.zones) {
            zone.stat.refresh(cpu);
            if decays && zone.pcps[cpu].policy == PcpPolicy::Linux612 {
                work.buddy_ops += zone.decay_pcp_high(pages, cpu);
            }
        }
    }

    /// Drains one CPU's lists of one zone.
    pub(crate) fn drain_cpu_zone(&mut self, cpu: Cpu, at: ZoneRef) {
        let Memory { pages, nodes, work, .. } = self;
        let zone = &mut nodes[at.node].zones[usize::from(at.zone)];
        work.buddy_ops += zone.pcp_drain(pages, cpu);
    }

    /// Allocates a block that compaction has captured for its task.
    pub(crate) fn alloc_captured(&mut self, pfn: Pfn, order: Order) {
        let zone = self.pages[pfn].zone();
        mark_allocated(&mut self.pages, pfn, order);
        self.vmstat.add(PGALLOC[zone], 1 << order);
        self.work.pages_allocated += 1 << order;
    }

    /// Drains the lists of all CPUs (Linux `drain_all_pages`).
    pub fn drain_all(&mut self) {
        for cpu in 0..self.nr_cpus {
            self.drain_cpu(Cpu(cpu));
        }
    }

    /// Converts one pageblock reserved for atomic requests to type `mt`. Takes it from the first
    /// zone that has one, among the zones up to `highest_zoneidx` in `node`'s zonelist. Returns
    /// whether pages became available.
    pub fn unreserve_highatomic(
        &mut self,
        node: NodeId,
        highest_zoneidx: usize,
        mt: MigrateType,
        force: HighAtomicRelease,
    ) -> bool {
        let Memory { pages, nodes, zonelists, .. } = self;
        zonelists[node][highest_zoneidx].zones.iter().any(|at| {
            let zone = &mut nodes[at.node].zones[usize::from(at.zone)];
            zone.unreserve_highatomic(pages, mt, force)
        })
    }

    /// Recomputes all watermarks, as a write to one of the sysctls does. Clears every boost.
    pub fn setup_watermarks(&mut self, inputs: &WatermarkInputs) {
        watermark::setup(&mut self.nodes, inputs, self.page_size);
    }

    /// The node of a CPU.
    pub fn cpu_node(&self, cpu: Cpu) -> NodeId {
        cpu_node(cpu.0, self.nodes.len(), self.nr_cpus)
    }

    /// Free pages of all nodes, without per-CPU lists (`nr_free_pages`, `MemFree`).
    pub fn free_pages(&self) -> u64 {
        self.nodes.iter().map(Node::free_pages).sum()
    }
}

/// Takes a block directly from the buddy lists (Linux `rmqueue_buddy`). Atomic requests of order >
/// 0 use their reserve first; atomic requests of order 0 and OOM victims use it last.
#[cold]
fn rmqueue_buddy(
    zone: &mut Zone,
    pages: &mut PageArray,
    notes: &mut FallbackLog<'_>,
    work: &mut Work,
    attempt: &Attempt,
) -> Option<Pfn> {
    let Attempt { order, mt, flags, .. } = *attempt;
    let highatomic = MigrateType::HighAtomic;
    let reserved_first = order > 0 && flags.harder;
    let mut taken = None;
    zone.stat.this_cpu = attempt.cpu;
    if reserved_first {
        taken = zone.take_smallest(pages, order, highatomic);
    }
    if taken.is_none() {
        taken = zone.take_block(pages, notes, order, mt, flags);
    }
    if taken.is_none() && flags.may_use_highatomic() && !reserved_first {
        taken = zone.take_smallest(pages, order, highatomic);
    }
    work.buddy_ops += u32::from(taken.is_some());
    taken
}

mod bulk;
#[cfg(test)]
pub(super) mod tests;
