//! Calls of every kind, cancelled at every step: everything that they hold is released.
//!
//! At each step the test copies the world and cancels the copy's call, while the original
//! continues. The audit then accounts for every frame, charge and slot; the test itself checks
//! compaction runs, counted sleepers, objects and blocks.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{CgroupVersion, Config, Thp};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::effect::Step;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::slab::CacheSpec;
use pagetide_core::units::{CacheId, NodeId, PAGE_SIZE};

const NODE: NodeId = NodeId(0);
const MIB: u64 = (1 << 20) / PAGE_SIZE;

/// Numbers of calls, by their activity when they were cancelled.
#[derive(Debug, Default)]
struct Tally {
    all: u32,
    reclaiming: u32,
    compacting: u32,
    /// During copies.
    copying: u32,
    /// Asleep for writeback, and until the reserves recover.
    counted: [u32; 2],
}

fn machine(mib: u64, config: Config) -> TestWorld {
    TestWorld::of(mib, 1, config, 1 << 16).unaudited()
}

/// Cancels a copy of the call in a copy of the world.
fn give_up(
    world: &TestWorld,
    call: &ProcessCall,
    mm: MmId,
    cache: Option<CacheId>,
    tally: &mut Tally,
) {
    let mut world = world.clone();
    tally.all += 1;
    tally.reclaiming += u32::from(call.is_reclaiming());
    tally.compacting += u32::from(call.is_compacting());
    tally.copying += u32::from(!world.copies.is_empty());
    for (nr, reason) in tally.counted.iter_mut().zip([Throttle::Writeback, Throttle::Reserves]) {
        *nr += u32::from(call.is_counted_in(NODE, reason));
    }
    let objects = |world: &TestWorld| cache.map(|at| world.machine.slab_usage(at).active_objs);
    let had = objects(&world);
    let blocks = world.machine.kernel_blocks(mm).len();
    let effects = world.machine.cancel(call.clone(), CPU).collect();
    world.carry_out(effects);
    world.machine.audit().unwrap();
    for reason in [Throttle::Writeback, Throttle::Reserves] {
        let daemons = world.machine.nr_daemons_throttled(NODE, reason);
        assert_eq!(world.machine.nr_throttled(NODE, reason), daemons, "{reason:?}");
    }
    world.finish_copies();
    world.settle_and_audit();
    assert_eq!(world.machine.nr_compactions(), 0, "{call:?}");
    // Results that the call has not reported yet must be freed.
    assert!(objects(&world) <= had, "an object is lost");
    assert!(world.machine.kernel_blocks(mm).len() <= blocks, "a block is lost");
    // The task can still make calls.
    assert!(!world.machine.is_exited(mm));
    let heap = world.map(mm, Backing::Anon, 1, Advice::Normal);
    world.access(mm, heap, 0, true);
    world.machine.exit_mm(mm, CPU).unwrap().discard();
    world.machine.audit().unwrap();
}

/// Steps a call to its end, and cancels a copy before the first step and after each but the last.
fn at_every_step(
    world: &mut TestWorld,
    call: &mut ProcessCall,
    mm: MmId,
    cache: Option<CacheId>,
    tally: &mut Tally,
) -> Outcome {
    loop {
        give_up(world, call, mm, cache, tally);
        if let Some(outcome) = world.drive_once(call) {
            return outcome;
        }
    }
}

/// Faults on the pages of a heap in order until enough calls were cancelled.
fn faults(world: &mut TestWorld, (mm, heap): (MmId, VmaId), first: u64, enough: u32) -> Tally {
    let mut tally = Tally::default();
    let mut page = first;
    while tally.all < enough {
        let mut call = ProcessCall::fault(mm, NODE, heap, page, true);
        at_every_step(world, &mut call, mm, None, &mut tally);
        page += 1;
    }
    tally
}

#[test]
fn a_fault_that_reclaims_for_itself() {
    let mut world = machine(16, Config::default());
    let (mm, heap) = world.task(Machine::ROOT, 64 * MIB);
    let free = world.machine.mem.nr_free_pages();
    world.fill((mm, heap), 0..free - 200);
    let tally = faults(&mut world, (mm, heap), free - 200, 300);
    assert!(tally.reclaiming > 50, "{tally:?}");
}

#[test]
fn a_fault_that_waits_for_the_reserves() {
    let mut world = machine(16, Config::default());
    let (mm, heap) = world.task(Machine::ROOT, 64 * MIB);
    let free = world.machine.mem.nr_free_pages();
    world.fill((mm, heap), 0..free - 200);
    // Allocations that may use the reserves have emptied them.
    loop {
        let mut call = ProcessCall::alloc_pages(mm, NODE, 0, Gfp::ATOMIC);
        let mut effects = Vec::new();
        let (step, more) = world.machine.step(&mut call, CPU, 0);
        more.drain_into(&mut effects);
        world.carry_out(effects);
        if step == Step::Done(Outcome::NoBlock) {
            break;
        }
    }
    let tally = faults(&mut world, (mm, heap), free - 200, 120);
    assert!(tally.counted[1] > 0, "{tally:?}");
}

#[test]
fn a_fault_on_what_is_in_swap() {
    let mut world = machine(16, Config::default());
    world.disk_works = true;
    let (mm, heap) = world.task(Machine::ROOT, 64 * MIB);
    world.fill((mm, heap), 0..20 * MIB);
    world.settle();
    let tally = faults(&mut world, (mm, heap), 0, 150);
    assert!(tally.all >= 150);
}

#[test]
fn a_fault_for_a_huge_page_that_compacts() {
    let config = Config { thp: Thp::Always, ..Config::default() };
    let mut world = fragmented(32, config);
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let advice = Advice::Huge;
    let heap = world.map(mm, Backing::Anon, 8 * 512, advice);
    let other = world.machine.create_mm(Machine::ROOT).unwrap();
    while world.drive(&mut ProcessCall::alloc_pages(other, NODE, 9, Gfp::ATOMIC))
        != Outcome::NoBlock
    {}
    world.holds_copies = true;
    let mut tally = Tally::default();
    for region in 0..8 {
        let mut call = ProcessCall::fault(mm, NODE, heap, region * 512, true);
        at_every_step(&mut world, &mut call, mm, None, &mut tally);
    }
    assert!(tally.compacting > 20 && tally.copying > 5, "{tally:?}");
}

/// A machine with every second frame free.
fn fragmented(mib: u64, config: Config) -> TestWorld {
    let mut world = machine(mib, config);
    let (mm, heap) = world.task(Machine::ROOT, mib * MIB);
    let pages = (world.machine.mem.nr_free_pages() - 1300) & !1;
    world.fill((mm, heap), 0..pages);
    for page in (0..pages).step_by(2) {
        world.machine.discard(heap, page, 1, CPU).unwrap().discard();
    }
    world.machine.mem.drain_all();
    world
}

#[test]
fn a_block_of_kernel_memory_that_compacts() {
    let config = Config { thp: Thp::Never, ..Config::default() };
    let mut world = fragmented(32, config);
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    while world.drive(&mut ProcessCall::alloc_pages(mm, NODE, 9, Gfp::ATOMIC)) != Outcome::NoBlock {
    }
    world.holds_copies = true;
    let mut tally = Tally::default();
    for _ in 0..8 {
        let mut call = ProcessCall::alloc_pages(mm, NODE, 9, Gfp::KERNEL);
        at_every_step(&mut world, &mut call, mm, None, &mut tally);
    }
    assert!(tally.compacting > 20 && tally.copying > 5, "{tally:?}");
}

#[test]
fn a_write_to_compact_memory() {
    let config = Config { thp: Thp::Never, ..Config::default() };
    let mut world = fragmented(32, config);
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    world.holds_copies = true;
    let mut tally = Tally::default();
    at_every_step(&mut world, &mut ProcessCall::compact_memory(mm, NODE), mm, None, &mut tally);
    assert!(tally.compacting > 20 && tally.copying > 10, "{tally:?}");
}

#[test]
fn reads_and_writes_of_files() {
    let mut world = machine(16, Config { dirty_ratio: 5, ..Config::default() });
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let size = 32 << 20;
    let (old, new) = (
        world.machine.create_file(size, false).unwrap(),
        world.machine.create_file(0, false).unwrap(),
    );
    let mut tally = Tally::default();
    for at in (0..size).step_by(1 << 20) {
        let mut read = ProcessCall::read(mm, NODE, old, at, 1 << 20, Default::default());
        assert_ne!(at_every_step(&mut world, &mut read, mm, None, &mut tally), Outcome::NoMemory);
        let mut write = ProcessCall::write(mm, NODE, new, at, 1 << 20);
        assert_ne!(at_every_step(&mut world, &mut write, mm, None, &mut tally), Outcome::NoMemory);
    }
    assert!(tally.all > 500, "{tally:?}");
}

#[test]
fn a_fault_at_the_limit_of_a_group() {
    let mut world = machine(32, Config::default());
    world.disk_works = true;
    let memcg = world.group(Machine::ROOT, &[("memory.max", "2M")]);
    let (mm, heap) = world.task(memcg, 8 * MIB);
    world.fill((mm, heap), 0..2 * MIB);
    let tally = faults(&mut world, (mm, heap), 2 * MIB, 300);
    assert!(tally.reclaiming > 100, "{tally:?}");
}

#[test]
fn writes_to_the_files_of_a_group() {
    let mut world = machine(32, Config::default());
    world.disk_works = true;
    let memcg = world.group(Machine::ROOT, &[]);
    let (mm, heap) = world.task(memcg, 8 * MIB);
    world.fill((mm, heap), 0..4 * MIB);
    let mut tally = Tally::default();
    for (name, text) in [("memory.reclaim", "1M"), ("memory.high", "2M"), ("memory.max", "1500K")] {
        let (write, effects) = world.machine.write_group_control(memcg, name, text).unwrap();
        effects.discard();
        let mut call =
            ProcessCall::group_write(mm, NODE, write.expect("there is something to reclaim"));
        at_every_step(&mut world, &mut call, mm, None, &mut tally);
    }
    assert!(tally.reclaiming > 30, "{tally:?}");
}

/// The task has its object or block before it has paid for being above `memory.high`.
#[test]
fn what_a_task_has_that_must_pay_first() {
    let mut world = machine(32, Config::default());
    let memcg = world.group(Machine::ROOT, &[("memory.high", "1M")]);
    let (mm, heap) = world.task(memcg, 8 * MIB);
    world.fill((mm, heap), 0..MIB);
    let spec =
        CacheSpec { name: "large".into(), object_size: 4096, reclaimable: false, account: true };
    let cache = world.machine.create_cache(spec).unwrap();
    let (mut tally, mut paying) = (Tally::default(), 0);
    for _ in 0..200 {
        let mut call = ProcessCall::kmem_alloc(mm, NODE, cache, true, Gfp::KERNEL);
        at_every_step(&mut world, &mut call, mm, Some(cache), &mut tally);
        // The debt of objects allocated without a call is paid by the next call.
        let mut objects = Vec::new();
        let got = world.machine.kmem_cache_alloc_bulk(cache, mm, true, CPU, 8, &mut objects);
        let (_, effects) = got.unwrap();
        effects.discard();
        let before = tally.reclaiming;
        let mut call = ProcessCall::alloc_pages(mm, NODE, 0, Gfp::KERNEL);
        at_every_step(&mut world, &mut call, mm, Some(cache), &mut tally);
        paying += tally.reclaiming - before;
        for object in objects {
            world.machine.kmem_cache_free(cache, object, CPU).unwrap();
        }
        if tally.reclaiming > 200 && paying > 50 {
            return;
        }
    }
    panic!("{tally:?}, {paying} while paying for objects of other tasks");
}

#[test]
fn a_fault_in_the_stage_of_soft_limits() {
    let mut world = machine(16, Config { cgroup: CgroupVersion::V1, ..Config::default() });
    let memcg = world.group(Machine::ROOT, &[("memory.soft_limit_in_bytes", "1M")]);
    let (mm, heap) = world.task(memcg, 64 * MIB);
    let free = world.machine.mem.nr_free_pages();
    world.fill((mm, heap), 0..free - 100);
    let tally = faults(&mut world, (mm, heap), free - 100, 400);
    assert!(tally.reclaiming > 50, "{tally:?}");
}
