//! Random allocations and frees against a model that knows only the user of each frame.

use pagetide_core::config::PcpPolicy;
use pagetide_core::frames::fallback::HighAtomicRelease;
use pagetide_core::frames::gfp::{AllocFlags, Gfp, MigrateType, Watermark};
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::frames::page::{PageFlags, Place};
use pagetide_core::frames::page_alloc::Memory;
use pagetide_core::frames::watermark::{zone_watermark_ok, WatermarkInputs};
use pagetide_core::frames::zone::Zone;
use pagetide_core::frames::zone_type::{ZONE_DMA, ZONE_MOVABLE, ZONE_NORMAL};
use pagetide_core::units::digest::{Digest, State};
use pagetide_core::units::{Cpu, MemcgId, NodeId, Order, Pfn, MAX_PAGE_ORDER};
use proptest::prelude::*;

const NR_CPUS: u16 = 2;

#[derive(Clone, Debug)]
enum Op {
    Alloc { cpu: u16, node: u8, order: Order, gfp: Gfp },
    AllocAt { cpu: u16, order: Order, gfp: Gfp, watermark: Watermark },
    Bulk { cpu: u16, gfp: Gfp, nr: usize },
    Free { cpu: u16, nth: usize },
    FreeMany { cpu: u16, nth: usize, step: usize, nr: usize },
    Drain { cpu: u16 },
    DrainAll,
    Unreserve { mt: MigrateType, force: bool },
    ReclaimActive(bool),
    Watermarks,
}

fn gfps() -> impl Strategy<Value = Gfp> {
    prop_oneof![
        4 => Just(Gfp::HIGHUSER_MOVABLE),
        2 => Just(Gfp::KERNEL),
        1 => Just(Gfp::NOFS.with(Gfp::RECLAIMABLE)),
        1 => Just(Gfp::ATOMIC),
        1 => Just(Gfp::KERNEL.with(Gfp::DMA)),
        1 => Just(Gfp::KERNEL.with(Gfp::MEMALLOC)),
    ]
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![6 => Just(0), 3 => 1..=3u8, 2 => 4..=9u8, 1 => Just(MAX_PAGE_ORDER)]
}

fn ops() -> impl Strategy<Value = Op> {
    let cpu = 0..NR_CPUS;
    let marks = prop_oneof![Just(Watermark::Min), Just(Watermark::High), Just(Watermark::None)];
    let kinds = prop_oneof![
        Just(MigrateType::Movable),
        Just(MigrateType::Unmovable),
        Just(MigrateType::Reclaimable)
    ];
    prop_oneof![
        10 => (cpu.clone(), 0..2u8, orders(), gfps())
            .prop_map(|(cpu, node, order, gfp)| Op::Alloc { cpu, node, order, gfp }),
        6 => (cpu.clone(), orders(), gfps(), marks)
            .prop_map(|(cpu, order, gfp, watermark)| Op::AllocAt { cpu, order, gfp, watermark }),
        4 => (cpu.clone(), gfps(), 1..900usize).prop_map(|(cpu, gfp, nr)| Op::Bulk { cpu, gfp, nr }),
        6 => (cpu.clone(), any::<usize>()).prop_map(|(cpu, nth)| Op::Free { cpu, nth }),
        6 => (cpu.clone(), any::<usize>(), 1..7usize, 1..600usize)
            .prop_map(|(cpu, nth, step, nr)| Op::FreeMany { cpu, nth, step, nr }),
        1 => cpu.prop_map(|cpu| Op::Drain { cpu }),
        1 => Just(Op::DrainAll),
        1 => (kinds, any::<bool>()).prop_map(|(mt, force)| Op::Unreserve { mt, force }),
        1 => any::<bool>().prop_map(Op::ReclaimActive),
        1 => Just(Op::Watermarks),
    ]
}

/// One node with a DMA zone and an odd end, or two nodes, one of which may have CMA.
fn machines() -> impl Strategy<Value = Vec<NodeSpec>> {
    let mut small = NodeSpec::default();
    small.zones[ZONE_DMA] = ZoneSpec { free: 3800, ..ZoneSpec::with_reserved(3998, 158) };
    small.zones[ZONE_NORMAL] =
        ZoneSpec { free: 6100, late: 100, ..ZoneSpec::with_reserved(7777, 777) };
    let mut near = NodeSpec::default();
    near.zones[ZONE_NORMAL] = ZoneSpec::all_free(5120);
    near.zones[ZONE_MOVABLE] = ZoneSpec::with_reserved(2048, 3);
    let mut far = NodeSpec::default();
    far.zones[ZONE_NORMAL] = ZoneSpec::with_reserved(4096, 700);
    let mut cma = NodeSpec::default();
    cma.zones[ZONE_NORMAL] = ZoneSpec { cma: 5 * 512, ..ZoneSpec::with_reserved(7777, 777) };
    prop_oneof![Just(vec![small]), Just(vec![near, far]), Just(vec![cma, near])]
}

fn policies() -> impl Strategy<Value = PcpPolicy> {
    prop::sample::select(PcpPolicy::ALL.to_vec())
}

/// The allocator and the blocks in use.
struct World {
    memory: Memory,
    inputs: WatermarkInputs,
    in_use: Vec<bool>,
    live: Vec<(Pfn, Order)>,
    free_at_start: u64,
}

impl World {
    fn new(specs: &[NodeSpec], pcp: PcpPolicy) -> World {
        let mut memory = Memory::new(specs, NR_CPUS).expect("the machine is valid");
        let inputs = WatermarkInputs { pcp, ..WatermarkInputs::default() };
        memory.setup_watermarks(&inputs);
        memory.audit().expect("a new machine is sound");
        let pages = || (0..memory.pages.len()).map(|at| memory.pages.peek(at));
        let mut in_use: Vec<bool> =
            pages().map(|page| !matches!(page.place, Place::Buddy | Place::BuddyTail)).collect();
        // Frames that boot keeps for good.
        for (at, page) in pages().enumerate() {
            if page.place == Place::Allocated {
                in_use[at..at + (1 << page.order)].fill(true);
            }
        }
        let free_at_start = memory.free_pages();
        let specified: u64 = specs.iter().flat_map(|s| &s.zones).map(|zone| zone.free).sum();
        assert_eq!(free_at_start, specified);
        World { memory, inputs, in_use, live: Vec::new(), free_at_start }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Alloc { cpu, node, order, gfp } => {
                let node = NodeId(node % self.memory.nodes.len() as u8);
                let got = self.memory.alloc_fast(Cpu(cpu), node, order, gfp);
                match got {
                    Some(pfn) => self.hand_out(pfn, order, gfp),
                    None => self.check_refusal(node, order, gfp),
                }
            }
            Op::AllocAt { cpu, order, gfp, watermark } => {
                let flags = AllocFlags { watermark, ..AllocFlags::slow(gfp) };
                let memory = &mut self.memory;
                let got = memory.get_page_from_freelist(Cpu(cpu), NodeId(0), order, gfp, flags);
                if let Some(pfn) = got {
                    self.hand_out(pfn, order, gfp);
                }
            }
            Op::Bulk { cpu, gfp, nr } => {
                let mut out = Vec::new();
                let taken = self.memory.alloc_bulk(Cpu(cpu), NodeId(0), gfp, &mut out, nr);
                assert_eq!(taken, out.len());
                assert!(taken <= nr);
                out.into_iter().for_each(|pfn| self.hand_out(pfn, 0, gfp));
            }
            Op::Free { cpu, nth } => self.free(Cpu(cpu), nth),
            Op::FreeMany { cpu, nth, step, nr } => {
                (0..nr).for_each(|i| self.free(Cpu(cpu), nth.wrapping_add(i * step)));
            }
            Op::Drain { cpu } => {
                self.memory.drain_cpu(Cpu(cpu));
                let zones = self.zones();
                assert!(zones.iter().all(|zone| zone.pcps[usize::from(cpu)].count == 0));
            }
            Op::DrainAll => self.memory.drain_all(),
            Op::Unreserve { mt, force } => {
                let force = if force { HighAtomicRelease::Yes } else { HighAtomicRelease::No };
                self.memory.unreserve_highatomic(NodeId(0), ZONE_MOVABLE, mt, force);
            }
            Op::ReclaimActive(active) => {
                self.memory.nodes[0].zones[ZONE_NORMAL].reclaim_active = active;
            }
            Op::Watermarks => self.memory.setup_watermarks(&self.inputs),
        }
        self.check();
    }

    fn zones(&self) -> Vec<&Zone> {
        self.memory.nodes.iter().flat_map(|node| &node.zones).collect()
    }

    fn hand_out(&mut self, pfn: Pfn, order: Order, gfp: Gfp) {
        assert_eq!(pfn.0 & ((1 << order) - 1), 0, "{pfn:?} is not aligned to order {order}");
        for at in pfn.0..pfn.0 + (1 << order) {
            let used = std::mem::replace(&mut self.in_use[at as usize], true);
            assert!(!used, "frame {at} was allocated twice");
            let page = &self.memory.pages[at as usize];
            let first = at == pfn.0;
            assert_eq!(page.place, if first { Place::Allocated } else { Place::BuddyTail });
            assert_eq!(page.order, if first { order } else { 0 });
            assert_eq!((page.private, page.index, page.mapcount), (0, 0, 0));
            assert_eq!((page.mapping, page.memcg), (u32::MAX, MemcgId::NONE));
            assert_eq!(page.flags, PageFlags::EMPTY);
            assert!(page.prev.is_none() && page.next.is_none());
            assert!(page.zone() <= gfp.highest_zone());
            let zone = &self.memory.nodes[page.node()].zones[page.zone()];
            let is_cma = zone.block_type(Pfn(at)) == MigrateType::Cma;
            assert!(!is_cma || gfp.has(Gfp::MOVABLE), "CMA for {gfp:?}");
        }
        // Leftovers of users in a descriptor must not appear in the next allocation.
        let page = &mut self.memory.pages[pfn];
        (page.private, page.mapping, page.index, page.memcg) = (77, 78, 79, MemcgId(80));
        page.set(PageFlags::DIRTY.with(PageFlags::SWAPBACKED));
        self.live.push((pfn, order));
    }

    /// The fast path fails only if no zone passes its check at the low watermark.
    fn check_refusal(&self, node: NodeId, order: Order, gfp: Gfp) {
        let flags = AllocFlags::fast(gfp);
        let highest = gfp.highest_zone();
        for at in &self.memory.zonelists[node][highest].zones {
            let zone = &self.memory.nodes[at.node].zones[usize::from(at.zone)];
            let mark = zone.wmark(Watermark::Low);
            assert!(!zone_watermark_ok(zone, order, mark, highest, flags), "{order} {gfp:?}");
        }
    }

    fn free(&mut self, cpu: Cpu, nth: usize) {
        if self.live.is_empty() {
            return;
        }
        let (pfn, order) = self.live.swap_remove(nth % self.live.len());
        (pfn.0..pfn.0 + (1 << order)).for_each(|at| self.in_use[at as usize] = false);
        self.memory.free_page(cpu, pfn, order);
    }

    fn check(&self) {
        if let Err(error) = self.memory.audit() {
            panic!("{error}");
        }
        let kept: u64 = self.zones().iter().map(|zone| zone.free_pages() + zone.pcp_pages()).sum();
        let out: u64 = self.live.iter().map(|(_, order)| 1 << order).sum();
        assert_eq!(kept + out, self.free_at_start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Blocks never overlap, are aligned and clean; no page is lost; failures are justified.
    #[test]
    fn any_sequence_is_sound(
        specs in machines(),
        pcp in policies(),
        ops in prop::collection::vec(ops(), 1..80),
    ) {
        let mut world = World::new(&specs, pcp);
        ops.iter().for_each(|op| world.step(op));
    }

    #[test]
    fn freeing_everything_restores_the_largest_blocks(
        specs in machines(),
        pcp in policies(),
        ops in prop::collection::vec(ops(), 1..80),
    ) {
        let mut world = World::new(&specs, pcp);
        let before: Vec<_> = world.zones().iter().map(|zone| zone.buddyinfo()).collect();
        ops.iter().for_each(|op| world.step(op));
        // Reserved pageblocks do not merge; they are released while pages around them are in use.
        for node in 0..specs.len() as u8 {
            let mt = MigrateType::Movable;
            let memory = &mut world.memory;
            memory.drain_all();
            while memory.unreserve_highatomic(NodeId(node), ZONE_MOVABLE, mt, HighAtomicRelease::Yes) {}
        }
        let stuck = world.zones().iter().any(|zone| zone.nr_reserved_highatomic > 0);
        while !world.live.is_empty() {
            world.free(Cpu(0), 0);
        }
        world.memory.drain_all();
        world.check();
        let after: Vec<_> = world.zones().iter().map(|zone| zone.buddyinfo()).collect();
        // A reserved pageblock without a free page cannot be found and stays reserved.
        prop_assert!(stuck || before == after, "{before:?} {after:?}");
    }

    #[test]
    fn runs_are_deterministic(
        specs in machines(),
        pcp in policies(),
        ops in prop::collection::vec(ops(), 1..40),
    ) {
        let digest = || {
            let mut world = World::new(&specs, pcp);
            ops.iter().for_each(|op| world.step(op));
            let mut digest = Digest::new();
            world.memory.digest(&mut digest);
            digest.finish()
        };
        prop_assert_eq!(digest(), digest());
    }
}
