//! Which reclaim counts as pressure: for PSI and for listeners of `vmpressure`.

use crate::world::TestWorld;
use pagetide_core::config::Config;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::Step;
use pagetide_core::process::page_table::VmaId;
use pagetide_core::process::{MmId, ProcessCall};
use pagetide_core::units::{MemcgId, NodeId, PAGE_SIZE};

const MIB: u64 = (1 << 20) / PAGE_SIZE;

fn world() -> TestWorld {
    TestWorld::of(64, 1, Config::default(), 1 << 16).unaudited().with_working_disk()
}

/// A task of a group with a heap of `pages` pages, of which `touched` are touched.
fn task(world: &mut TestWorld, memcg: MemcgId, pages: u64, touched: u64) -> (MmId, VmaId) {
    let (mm, heap) = world.task(memcg, pages);
    world.fill((mm, heap), 0..touched);
    (mm, heap)
}

/// A write to a control file of a group that has to reclaim, by a task of the root.
fn write(world: &mut TestWorld, memcg: MemcgId, file: &str, text: &str) -> ProcessCall {
    let admin = world.machine.create_mm(ROOT).unwrap();
    let (write, effects) = world.machine.write_group_control(memcg, file, text).unwrap();
    effects.discard();
    ProcessCall::group_write(admin, NodeId(0), write.unwrap())
}

/// Steps a call to its end. Returns whether it was ever stalled, and ever reclaiming.
fn drive_and_watch(world: &mut TestWorld, call: &mut ProcessCall) -> (bool, bool) {
    let (mut was_stalled, mut was_reclaiming) = (false, false);
    loop {
        let waiting = match world.step(call) {
            Step::Done(_) => return (was_stalled, was_reclaiming),
            Step::Continue => None,
            Step::Wait(sleep) => Some(sleep),
        };
        was_stalled |= call.is_stalled(&world.machine, waiting);
        was_reclaiming |= call.is_reclaiming();
        world.complete_one();
        if let Some(sleep) = waiting {
            world.sleep(sleep);
        }
    }
}

/// Reclaim for a write to a control file is the task's work; reclaim at a limit is a stall.
#[test]
fn reclaim_at_a_limit_is_a_stall_and_reclaim_by_a_write_is_not() {
    for (file, text) in [
        ("memory.reclaim", "4M"),
        ("memory.high", "8M"),
        ("memory.max", "8M"),
        ("memory.limit_in_bytes", "8M"),
        ("memory.force_empty", "0"),
    ] {
        let mut world = world();
        let memcg = world.group(ROOT, &[]);
        task(&mut world, memcg, 16 * MIB, 16 * MIB);
        let mut call = write(&mut world, memcg, file, text);
        assert_eq!(drive_and_watch(&mut world, &mut call), (false, true), "{file}");
    }
    let mut world = world();
    let memcg = world.group(ROOT, &[("memory.max", "4M")]);
    let (mm, heap) = task(&mut world, memcg, 8 * MIB, 4 * MIB);
    let calls = (4 * MIB..5 * MIB).map(|page| ProcessCall::fault(mm, NodeId(0), heap, page, true));
    let seen: Vec<_> = calls.map(|mut call| drive_and_watch(&mut world, &mut call)).collect();
    assert!(seen.contains(&(true, true)), "{seen:?}");
}

/// vmpressure counts pages scanned for tasks that lack memory, not proactive reclaim.
#[test]
fn proactive_reclaim_is_no_pressure() {
    let works = |file: &str, text: &str| {
        let mut world = world();
        let memcg = world.group(ROOT, &[]);
        task(&mut world, memcg, 16 * MIB, 16 * MIB);
        let (works, usage) = (world.nr_works, world.machine.memcg_usage(memcg));
        let mut call = write(&mut world, memcg, file, text);
        drive_and_watch(&mut world, &mut call);
        assert!(usage - world.machine.memcg_usage(memcg) >= 4 * MIB, "{file}");
        world.nr_works - works
    };
    assert!(works("memory.high", "12M") >= 2, "1024 pages are two windows");
    assert_eq!(works("memory.reclaim", "4M"), 0);
}
