//! Memory groups: scenarios with limits, protection, soft limits and shrink priority.
//! (random_groups.rs has random operations.)

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{CgroupVersion, Config, KswapdPolicy};
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::groups::memcg::{MemoryEvent, ROOT};
use pagetide_core::interface::effect::{Effect, Step};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{MemcgId, NodeId, PAGE_SIZE};

const MIB: u64 = (1 << 20) / PAGE_SIZE;

fn world(mebibytes: u64) -> TestWorld {
    world_of(mebibytes, 2)
}

fn world_of(mebibytes: u64, nr_cpus: u16) -> TestWorld {
    world_with(mebibytes, nr_cpus, Config::default())
}

fn world_with(mebibytes: u64, nr_cpus: u16, config: Config) -> TestWorld {
    world_with_swap(mebibytes, nr_cpus, config, 256 * MIB)
}

fn world_with_swap(mebibytes: u64, nr_cpus: u16, config: Config, swap: u64) -> TestWorld {
    TestWorld::of(mebibytes, nr_cpus, config, swap as u32).unaudited().with_working_disk()
}

fn event(world: &TestWorld, memcg: MemcgId, event: MemoryEvent) -> u64 {
    world.machine.memcgs()[memcg].memory_events[event as usize]
}

/// With two CPUs and one node: 219 words on each CPU, and 8 bytes for each 4 of one CPU.
#[test]
fn a_group_pays_for_the_counters_of_the_groups_in_it() {
    const EACH: u64 = 219 * 8 * 2 + 219 * 8 * 2;
    let percpu = |world: &TestWorld, memcg| {
        let sizes = world.machine.memory_stat_sizes(memcg);
        sizes.into_iter().find(|(name, _)| *name == "percpu").map_or(0, |(_, bytes)| bytes)
    };
    let make = |world: &mut TestWorld, parent| {
        let memcg = world.group(parent, &[]);
        world.machine.charge_counters(memcg, CPU, 1);
        world.machine.audit().unwrap();
        memcg
    };
    let mut world = world(16);
    let outer = make(&mut world, ROOT);
    assert_eq!((world.machine.memcgs()[outer].memory.usage, percpu(&world, ROOT)), (0, 0));
    let middle = make(&mut world, outer);
    let inner: Vec<MemcgId> = (0..100).map(|_| make(&mut world, middle)).collect();
    assert_eq!((percpu(&world, middle), percpu(&world, outer)), (100 * EACH, 101 * EACH));
    let kernel = |world: &TestWorld| world.machine.memcgs()[middle].kmem.usage * PAGE_SIZE;
    assert!((100 * EACH..100 * EACH + 2 * PAGE_SIZE).contains(&kernel(&world)));
    // A limit does not prevent the creation of groups.
    let mm = world.machine.create_mm(ROOT).unwrap();
    world.write_group(mm, outer, "memory.max", "100K");
    let last = make(&mut world, middle);
    assert_eq!(percpu(&world, middle), 101 * EACH);
    for memcg in inner.into_iter().chain([last]) {
        world.machine.remove_memcg(memcg).unwrap().discard();
        world.machine.audit().unwrap();
    }
    assert_eq!(percpu(&world, middle), 0);
    assert!(kernel(&world) <= 2 * PAGE_SIZE, "at most a CPU's stock");
    // The counters are uncharged from the parent together with the group.
    world.machine.remove_memcg(middle).unwrap().discard();
    world.machine.audit().unwrap();
    assert_eq!(percpu(&world, ROOT), 0);
}

/// The counters of this many CPUs are more pages than a stock holds.
#[test]
fn a_full_group_pays_for_the_counters_of_many_cpus() {
    const EACH: u64 = 219 * 8 * 200 + 219 * 8 * 2;
    let mut world = world_of(64, 200);
    let outer = world.group(ROOT, &[("memory.max", "64K")]);
    let inner = world.group(outer, &[]);
    world.machine.charge_counters(inner, CPU, 1);
    world.machine.audit().unwrap();
    let percpu = |world: &TestWorld| {
        let sizes = world.machine.memory_stat_sizes(outer);
        sizes.into_iter().find(|(name, _)| *name == "percpu").map_or(0, |(_, bytes)| bytes)
    };
    assert_eq!(percpu(&world), EACH);
    let usage = world.machine.memcgs()[outer].memory.usage;
    assert_eq!(usage, EACH.div_ceil(PAGE_SIZE), "beyond the limit");
    world.machine.remove_memcg(inner).unwrap().discard();
    world.machine.audit().unwrap();
    assert_eq!(percpu(&world), 0);
    assert!(world.machine.memcgs()[outer].memory.usage <= 65, "at most a CPU's stock");
}

#[test]
fn a_group_stays_below_its_limit_and_the_machine_has_no_part_in_it() {
    let mut world = world(64);
    let memcg = world.group(ROOT, &[("memory.max", "8M")]);
    let heap = world.task(memcg, 16 * MIB);
    world.fill(heap, 0..16 * MIB);
    world.settle_and_audit();
    let it = &world.machine.memcgs()[memcg];
    assert!(it.memory.usage <= 8 * MIB && it.memory.usage > 7 * MIB, "{}", it.memory.usage);
    assert!(it.memory.peak <= 8 * MIB);
    assert!(it.events.get(Event::PgstealDirect) >= 8 * MIB);
    assert!(event(&world, memcg, MemoryEvent::Max) > 0);
    // Reclaim for a limit is not counted as the machine's, and kswapd was never needed.
    assert_eq!(world.count(Event::PgscanDirect), 0);
    assert_eq!(world.count(Event::PgscanKswapd), 0);
    assert!(world.count(Event::Pswpout) >= 8 * MIB);
    // The slots are the group's, too.
    assert!(it.swap.usage >= 8 * MIB);
}

/// A machine with groups of one version, and with `swap` slots.
fn world_of_version(cgroup: CgroupVersion, swap: u64) -> TestWorld {
    world_with_swap(64, 2, Config { cgroup, page_cluster: 0, ..Config::default() }, swap)
}

fn read_all(world: &mut TestWorld, heap: (MmId, VmaId), pages: u64) {
    world.access_all(heap, 0..pages, false);
    world.settle_and_audit();
}

/// A group of 8 MiB within another group writes 16 MiB and reads them once. Returns the slots
/// charged to the group then, and its pages that are not in memory.
fn slots_after_reading(
    cgroup: CgroupVersion,
    above: &[(&str, &str)],
    own: &[(&str, &str)],
) -> (u64, u64) {
    let mut world = world_of_version(cgroup, 256 * MIB);
    let parent = world.group(ROOT, above);
    let memcg = world.group(parent, &[("memory.max", "8M")]);
    for (name, text) in own {
        assert!(world.machine.write_group_control(memcg, name, text).unwrap().0.is_none());
    }
    let heap = world.task(memcg, 16 * MIB);
    world.fill(heap, 0..16 * MIB);
    read_all(&mut world, heap, 16 * MIB);
    let out = 16 * MIB - world.resident(heap, 16 * MIB);
    let slots = world.machine.memcgs()[memcg].swap.usage;
    assert!(out > 7 * MIB);
    // A change of the version recounts the slots in use.
    let name = if cgroup == CgroupVersion::V1 { "v1" } else { "v2" };
    for version in ["v1", "v2", name] {
        world.machine.set_policy("cgroup", version).unwrap().discard();
        world.machine.audit().unwrap();
    }
    world.exit(heap.0);
    world.settle_and_audit();
    assert_eq!(world.machine.memcgs()[memcg].swap.usage, 0);
    (slots, out)
}

#[test]
fn a_page_that_is_only_read_keeps_its_slot_which_version_1_does_not_count() {
    let (slots, _) = slots_after_reading(CgroupVersion::V2, &[], &[]);
    assert_eq!(slots, 16 * MIB);
    // Each page once, either in memory or in swap.
    let (slots, out) = slots_after_reading(CgroupVersion::V1, &[], &[]);
    assert!(slots <= out && out - slots < 64, "{slots} slots of {out} pages");
}

#[test]
fn a_group_with_half_of_its_swap_in_use_gives_slots_up() {
    let limit: &[_] = &[("memory.swap.max", "16M")];
    for (above, own) in [(limit, &[][..]), (&[], limit)] {
        let (slots, out) = slots_after_reading(CgroupVersion::V2, above, own);
        assert!(slots >= out && slots - out < 64, "{slots} slots of {out} pages");
    }
}

/// Linux does not check it there.
#[test]
fn in_version_1_the_limit_of_swap_limits_nothing() {
    let (slots, _) = slots_after_reading(CgroupVersion::V1, &[], &[("memory.swap.max", "1M")]);
    assert!(slots > 7 * MIB, "{slots} slots");
}

#[test]
fn a_machine_with_half_of_its_swap_in_use_gives_slots_up_of_pages_in_a_batch_too() {
    for (swap, gives_up) in [(20 * MIB, true), (64 * MIB, false)] {
        let mut world = world_of_version(CgroupVersion::V2, swap);
        let memcg = world.group(ROOT, &[("memory.max", "8M")]);
        let heap = world.task(memcg, 20 * MIB);
        world.fill(heap, 0..20 * MIB);
        read_all(&mut world, heap, 20 * MIB);
        let out = 20 * MIB - world.resident(heap, 20 * MIB);
        let slots = world.machine.memcgs()[memcg].swap.usage;
        let expected = if gives_up { out..out + 64 } else { 20 * MIB..20 * MIB + 1 };
        assert!(expected.contains(&slots), "{slots} slots of {out} pages");
    }
}

#[test]
fn a_locked_page_gives_its_slot_up() {
    let mut world = world_of_version(CgroupVersion::V2, 256 * MIB);
    let memcg = world.group(ROOT, &[("memory.max", "8M")]);
    let heap = world.task(memcg, 16 * MIB);
    world.fill(heap, 0..16 * MIB);
    world.write_group(heap.0, memcg, "memory.max", "max");
    world.settle();
    let out = |world: &TestWorld| 16 * MIB - world.resident(heap, 16 * MIB);
    let slots = |world: &TestWorld| world.machine.memcgs()[memcg].swap.usage;
    let before = (slots(&world), out(&world));
    assert!(before.1 > 7 * MIB);
    // The first half is swapped out: half of that is locked before it is read back.
    let locked = before.1 / 2;
    assert_eq!(world.resident(heap, locked), 0);
    world.machine.mlock(heap.1, 0, locked, CPU).unwrap();
    read_all(&mut world, heap, 16 * MIB);
    assert_eq!((slots(&world), out(&world)), (before.0 - locked, 0));
}

/// A task writes 16 MiB in a group of 8 MiB, reads them after the limit is lifted, and moves out of
/// the group.
#[test]
fn slots_of_pages_in_memory_outlive_their_group() {
    for cgroup in [CgroupVersion::V1, CgroupVersion::V2] {
        let mut world = world_of_version(cgroup, 256 * MIB);
        let parent = world.group(ROOT, &[]);
        let memcg = world.group(parent, &[("memory.max", "8M")]);
        let heap = world.task(memcg, 16 * MIB);
        world.fill(heap, 0..16 * MIB);
        world.write_group(heap.0, memcg, "memory.max", "max");
        read_all(&mut world, heap, 16 * MIB);
        let slots = |world: &TestWorld, memcg: MemcgId| world.machine.memcgs()[memcg].swap.usage;
        let counted = slots(&world, memcg);
        assert_eq!(counted > 0, cgroup == CgroupVersion::V2);
        assert!(world.machine.swap().used() > 7 * MIB as u32);
        world.machine.move_mm(heap.0, ROOT).unwrap().discard();
        world.machine.remove_memcg(memcg).unwrap().discard();
        world.machine.audit().unwrap();
        assert_eq!(slots(&world, parent), counted);
        // The slots are freed with their pages and uncharged from the parent.
        world.exit(heap.0);
        world.settle_and_audit();
        assert_eq!((slots(&world, parent), world.machine.swap().used()), (0, 0));
    }
}

/// Linux: `__mem_cgroup_try_charge_swap`.
#[test]
fn a_page_without_a_slot_is_an_event_of_its_group_in_version_2() {
    let events = |cgroup, swap, controls: &[(&str, &str)]| {
        let mut world = world_of_version(cgroup, swap);
        let memcg = world.group(ROOT, controls);
        let heap = world.task(memcg, 16 * MIB);
        world.fill(heap, 0..16 * MIB);
        world.settle_and_audit();
        let [max, fail] = [MemoryEvent::SwapMax, MemoryEvent::SwapFail];
        assert!(world.count(Event::Pswpout) >= MIB, "all of the swap was used");
        let peak = world.machine.memcgs()[memcg].swap.peak;
        (event(&world, memcg, max), event(&world, memcg, fail), peak)
    };
    let limit = ("memory.max", "8M");
    let (max, fail, peak) = events(CgroupVersion::V2, MIB, &[limit]);
    assert!(max == 0 && fail > 0 && peak == MIB, "{max} {fail} {peak}");
    let (max, fail, peak) =
        events(CgroupVersion::V2, 256 * MIB, &[limit, ("memory.swap.max", "1M")]);
    assert!(max == fail && fail > 0 && peak == MIB, "{max} {fail} {peak}");
    let (max, fail, _) = events(CgroupVersion::V1, MIB, &[limit]);
    assert_eq!((max, fail), (0, 0));
}

#[test]
fn a_group_that_cannot_be_reclaimed_loses_a_task_of_its_own() {
    let mut world = world(64);
    let limited = world.group(ROOT, &[("memory.max", "8M"), ("memory.swap.max", "1M")]);
    let other = world.group(ROOT, &[]);
    let bystander = world.task(other, 20 * MIB);
    world.fill(bystander, 0..20 * MIB);
    let (mm, heap) = world.task(limited, 16 * MIB);
    let mut last = None;
    for page in 0..16 * MIB {
        last = world.access(mm, heap, page, true);
        if last == Some(Outcome::NoMemory) {
            break;
        }
    }
    assert_eq!(last, Some(Outcome::NoMemory));
    assert!(world.machine.is_exited(mm) && !world.machine.is_exited(bystander.0));
    assert!(event(&world, limited, MemoryEvent::Oom) > 0);
    assert_eq!(event(&world, limited, MemoryEvent::OomKill), 1);
    assert_eq!(event(&world, other, MemoryEvent::OomKill), 0);
    assert!(event(&world, limited, MemoryEvent::SwapMax) > 0);
    world.settle_and_audit();
}

#[test]
fn above_memory_high_tasks_reclaim_and_then_sleep() {
    let mut world = world(64);
    let memcg = world.group(ROOT, &[("memory.high", "8M"), ("memory.swap.max", "0")]);
    let heap = world.task(memcg, 16 * MIB);
    let start = world.now;
    world.fill(heap, 0..10 * MIB);
    // Nothing can be reclaimed, so the task was throttled; it was not killed.
    assert!(world.now - start > 500_000_000, "{} ns", world.now - start);
    assert!(event(&world, memcg, MemoryEvent::High) > 0);
    assert_eq!(event(&world, memcg, MemoryEvent::OomKill), 0);
    world.machine.audit().unwrap();
}

#[test]
fn memory_high_is_enforced_inside_a_long_call() {
    let mut world = world(128);
    let memcg = world.group(ROOT, &[("memory.high", "4M"), ("memory.max", "24M")]);
    let mm = world.machine.create_mm(memcg).unwrap();
    let size = 32 * MIB * PAGE_SIZE;
    let file = world.create_file(size, false);
    let mut read = ProcessCall::read(mm, NodeId(0), file, 0, size, Default::default());
    let mut most = 0;
    loop {
        let outcome = world.drive_once(&mut read);
        most = most.max(world.machine.memcgs()[memcg].memory.usage);
        if outcome.is_some() {
            break;
        }
    }
    assert_eq!(event(&world, memcg, MemoryEvent::Max), 0);
    // It pays once it owes two batches of 64 pages.
    let high = event(&world, memcg, MemoryEvent::High);
    assert!((28 * MIB / 512..28 * MIB / 64).contains(&high), "{high} times");
    assert!(most < 6 * MIB, "{most} pages");
    let usage = world.machine.memcgs()[memcg].memory.usage;
    assert!(usage > 3 * MIB, "the group keeps its allowance: {usage} pages");
    world.machine.audit().unwrap();
}

#[test]
fn an_oom_group_dies_together_except_exempt_tasks() {
    let mut world = world(64);
    let parent = world.group(ROOT, &[("memory.max", "8M"), ("memory.swap.max", "0")]);
    let pod = world.group(parent, &[("memory.oom.group", "1")]);
    let beside = world.group(parent, &[]);
    let tasks: Vec<_> = [pod, pod, pod, beside, beside]
        .into_iter()
        .map(|memcg| {
            let task = world.task(memcg, 16 * MIB);
            world.fill(task, 0..MIB / 2);
            task
        })
        .collect();
    world.machine.set_oom_score_adj(tasks[2].0, -1000).unwrap();
    world.machine.set_oom_score_adj(tasks[3].0, -1000).unwrap();
    // The largest task is exempt; so the largest of the pod is killed, and the rest of the pod with
    // it.
    world.fill(tasks[3], 0..3 * MIB);
    world.fill(tasks[1], 0..MIB);
    let mut page = 0;
    while !world.machine.is_exited(tasks[0].0) {
        world.access(tasks[0].0, tasks[0].1, page, true);
        page += 1;
        assert!(page < 16 * MIB, "no task was killed");
    }
    world.settle();
    let exited: Vec<bool> = tasks.iter().map(|task| world.machine.is_exited(task.0)).collect();
    assert_eq!(exited, [true, true, false, false, false]);
    assert_eq!(event(&world, pod, MemoryEvent::OomGroupKill), 1);
    // Two tasks, and the first of them once more: Linux counts it again with the others of its
    // group.
    assert_eq!(event(&world, pod, MemoryEvent::OomKill), 3);
    assert_eq!(event(&world, beside, MemoryEvent::OomKill), 0);
    // The limit was the parent's, and so is the event; the kills were in the pod.
    let text = |memcg, name| world.machine.read_group_control(memcg, name, 0).unwrap();
    assert!(text(parent, "memory.events").ends_with("oom_kill 3\noom_group_kill 1\n"));
    assert!(text(parent, "memory.events.local").ends_with("oom_kill 0\noom_group_kill 0\n"));
    assert!(!text(parent, "memory.events.local").contains("oom 0\n"));
    assert!(text(pod, "memory.events.local").contains("oom 0\n"));
    assert!(text(pod, "memory.events.local").ends_with("oom_kill 3\noom_group_kill 1\n"));
    assert_eq!(text(ROOT, "cgroup.stat"), "nr_descendants 3\nnr_dying_descendants 0\n");
    assert_eq!(text(pod, "cgroup.stat"), "nr_descendants 0\nnr_dying_descendants 0\n");
}

#[test]
fn a_badness_can_be_added_to() {
    let mut world = world(64);
    let memcg = world.group(ROOT, &[("memory.max", "8M"), ("memory.swap.max", "0")]);
    let (large, small) = (world.task(memcg, 16 * MIB), world.task(memcg, 16 * MIB));
    world.fill(large, 0..4 * MIB);
    // Nine tenths of the limit: more than the difference in size.
    world.machine.set_oom_score_adj(small.0, 900).unwrap();
    world.fill(small, 0..MIB);
    let mut page = 0;
    while !world.machine.is_exited(small.0) {
        assert_ne!(world.access(large.0, large.1, page, true), Some(Outcome::NoMemory));
        page += 1;
        assert!(page < 16 * MIB, "no task was killed");
    }
    assert!(!world.machine.is_exited(large.0));
}

#[test]
fn lowering_a_limit_reclaims_or_fails_and_leaves_the_old_value() {
    let mut world = world(64);
    world.machine.set_policy("cgroup", "v1").unwrap().discard();
    let memcg = world.group(ROOT, &[]);
    let heap = world.task(memcg, 16 * MIB);
    world.fill(heap, 0..16 * MIB);
    // One descent may find only pages under writeback; a second write succeeds.
    let lower = |world: &mut TestWorld| {
        let outcome = world.write_group(heap.0, memcg, "memory.limit_in_bytes", "8M");
        world.settle();
        outcome
    };
    assert!((0..10).any(|_| lower(&mut world) == Outcome::Minor));
    assert!(world.machine.memcg_usage(memcg) <= 8 * MIB);
    assert_eq!(world.machine.memcgs()[memcg].memory.max, 8 * MIB);
    // Swapping is off, so no anonymous page can be freed, and version 1 reports it.
    world.write_group(heap.0, memcg, "memory.swappiness", "0");
    let outcome = world.write_group(heap.0, memcg, "memory.limit_in_bytes", "1M");
    assert_eq!(outcome, Outcome::Refused(Errno::Ebusy));
    assert_eq!(world.machine.memcgs()[memcg].memory.max, 8 * MIB);
    // Version 2 sets the limit at once, and kills for it.
    world.write_group(heap.0, memcg, "memory.max", "1M");
    assert!(world.machine.is_exited(heap.0));
    world.settle_and_audit();
}

#[test]
fn memory_reclaim_frees_the_requested_amount_or_all_it_can() {
    let mut world = world(64);
    let memcg = world.group(ROOT, &[]);
    let heap = world.task(memcg, 16 * MIB);
    world.fill(heap, 0..16 * MIB);
    let before = world.machine.memcg_usage(memcg);
    assert_eq!(world.write_group(heap.0, memcg, "memory.reclaim", "4M"), Outcome::Minor);
    let after = world.machine.memcg_usage(memcg);
    assert!(before - after >= 4 * MIB && before - after < 6 * MIB, "{before} {after}");
    let outcome = world.write_group(heap.0, memcg, "memory.reclaim", "1G");
    assert_eq!(outcome, Outcome::Refused(Errno::Eagain));
    world.settle_and_audit();
}

/// Two tasks that together need one and a half times the machine's memory.
fn two_rivals(controls: [&[(&str, &str)]; 2], policies: &[(&str, &str)]) -> (TestWorld, [u64; 2]) {
    let mut world = world(64);
    for (name, value) in policies {
        world.machine.set_policy(name, value).unwrap().discard();
    }
    let groups = controls.map(|controls| world.group(ROOT, controls));
    let pages = 45 * MIB;
    let tasks = groups.map(|memcg| world.task(memcg, pages));
    for pass in 0..3 {
        for page in 0..pages {
            for (mm, heap) in tasks {
                world.access(mm, heap, page, pass == 0);
            }
        }
    }
    world.settle_and_audit();
    let residents = tasks.map(|task| world.resident(task, pages));
    (world, residents)
}

#[test]
fn equal_groups_share_equally() {
    let (_, [a, b]) = two_rivals([&[], &[]], &[]);
    assert!(a.abs_diff(b) * 20 < a, "{a} and {b} pages");
}

#[test]
fn low_protects_and_gives_way_only_when_nothing_else_is_left() {
    let (_, [a, b]) = two_rivals([&[("memory.low", "40M")], &[]], &[]);
    assert!(a >= 39 * MIB, "{a} pages of 40 MiB protected, {b} of the other");
    // Everything protected: low is best effort.
    let low: &[(&str, &str)] = &[("memory.low", "60M")];
    let (world, [a, b]) = two_rivals([low, low], &[]);
    assert!(a > 15 * MIB && b > 15 * MIB);
    assert!(world.machine.memcgs()[0].memory_events[MemoryEvent::Low as usize] > 0);
    assert_eq!(world.count(Event::OomKill), 0);
}

#[test]
fn min_is_never_broken() {
    let mut world = world(64);
    let safe = world.group(ROOT, &[("memory.min", "24M")]);
    let other = world.group(ROOT, &[]);
    let kept = world.task(safe, 20 * MIB);
    world.fill(kept, 0..20 * MIB);
    let hungry = world.task(other, 80 * MIB);
    world.fill(hungry, 0..80 * MIB);
    assert_eq!(world.resident(kept, 20 * MIB), 20 * MIB);
    assert_eq!(world.machine.memcgs()[safe].events.get(Event::PgscanKswapd), 0);
    assert_eq!(world.machine.memcgs()[safe].events.get(Event::PgscanDirect), 0);
}

#[test]
fn a_lower_shrink_priority_keeps_more() {
    let name = "memory.global_shrink_priority";
    let kept = |value| {
        let (_, [_, b]) = two_rivals([&[], &[(name, value)]], &[("shrink_priority", "posted")]);
        b
    };
    let (equal, gentle, gentler) = (kept("12"), kept("8"), kept("6"));
    assert!(gentle > equal + 8 * MIB && gentler >= gentle, "{equal}, {gentle}, {gentler} pages");
    // It is smaller than the machine: everything fits.
    assert!(gentler > 43 * MIB, "{gentler} pages");
}

#[test]
fn guarded_shrink_priorities_end_before_memory_does() {
    for (policy, survives) in [("posted", false), ("guarded", true), ("hierarchical", true)] {
        let mut world = world(32);
        world.machine.set_policy("shrink_priority", "posted").unwrap().discard();
        let memcg = world.group(ROOT, &[("memory.global_shrink_priority", "-1")]);
        world.machine.set_policy("shrink_priority", policy).unwrap().discard();
        let heap = world.task(memcg, 60 * MIB);
        for page in 0..60 * MIB {
            world.access(heap.0, heap.1, page, true);
            if world.machine.is_exited(heap.0) {
                break;
            }
        }
        assert_eq!(!world.machine.is_exited(heap.0), survives, "{policy}");
        world.settle_and_audit();
    }
}

/// Every kswapd gives up sparing by itself.
#[test]
fn every_kswapd_ends_what_a_policy_spares() {
    for kswapd in KswapdPolicy::ALL.iter().map(|kswapd| kswapd.name()) {
        let mut world = world(32);
        world.machine.set_policy("kswapd", kswapd).unwrap().discard();
        world.machine.set_policy("shrink_priority", "guarded").unwrap().discard();
        let memcg = world.group(ROOT, &[("memory.global_shrink_priority", "0")]);
        let heap = world.task(memcg, 60 * MIB);
        world.fill(heap, 0..60 * MIB);
        let stolen = world.machine.memcgs()[memcg].events.get(Event::PgstealKswapd);
        assert!(stolen > 5 * MIB, "{kswapd}: {stolen} pages");
    }
}

/// A group spared for its shrink priority has no protection: it is reclaimed before `memory.low` is
/// broken.
#[test]
fn guarded_shrink_priorities_end_before_memory_low_does() {
    let mut world = TestWorld::of(64, 2, Config::default(), 0).unaudited().with_working_disk();
    world.machine.set_policy("shrink_priority", "guarded").unwrap().discard();
    let protected = world.group(ROOT, &[("memory.low", "20M")]);
    let spared = world.group(ROOT, &[("memory.global_shrink_priority", "0")]);
    let files = [protected, spared].map(|memcg| {
        let file = world.create_file(16 * MIB * PAGE_SIZE, false);
        let mm = world.machine.create_mm(memcg).unwrap();
        let map = world.machine.mmap(mm, Backing::File(file), 16 * MIB, Advice::Random, false);
        let task = (mm, map.unwrap());
        world.access_all(task, 0..16 * MIB, false);
        task
    });
    // Only these file pages can be reclaimed: there is no swap.
    let heap = world.task(ROOT, 34 * MIB);
    world.fill(heap, 0..34 * MIB);
    assert!(world.resident(files[1], 16 * MIB) < 12 * MIB);
    assert_eq!(world.resident(files[0], 16 * MIB), 16 * MIB);
    assert_eq!(event(&world, protected, MemoryEvent::Low), 0);
}

#[test]
fn a_hierarchical_shrink_priority_covers_the_groups_below() {
    let kept = |policy: &str| {
        let mut world = world(64);
        world.machine.set_policy("shrink_priority", policy).unwrap().discard();
        let parent = world.group(ROOT, &[("memory.global_shrink_priority", "5")]);
        let groups = [world.group(ROOT, &[]), world.group(parent, &[])];
        let tasks = groups.map(|memcg| world.task(memcg, 45 * MIB));
        for page in (0..2 * 45 * MIB).map(|at| at % (45 * MIB)) {
            for (mm, heap) in tasks {
                world.access(mm, heap, page, true);
            }
        }
        world.resident(tasks[1], 45 * MIB)
    };
    assert!(kept("hierarchical") > kept("guarded") + 8 * MIB);
}

#[test]
fn every_soft_limit_policy_reclaims_from_groups_over_the_limit() {
    for policy in ["tree", "hierarchical", "two-pass"] {
        let soft: [&[(&str, &str)]; 2] =
            [&[("memory.soft_limit_in_bytes", "50M")], &[("memory.soft_limit_in_bytes", "4M")]];
        let (_, [a, b]) = two_rivals(soft, &[("soft_limit", policy)]);
        assert!(a > b + 8 * MIB, "{policy}: {a} below its limit, {b} above");
    }
    let soft: &[(&str, &str)] = &[("memory.soft_limit_in_bytes", "4M")];
    let (_, [a, b]) = two_rivals([&[], soft], &[("soft_limit", "off")]);
    assert!(a.abs_diff(b) * 20 < a, "off: {a} and {b} pages");
}

#[test]
fn the_group_whose_limit_raised_the_pressure_counts_only_as_posted() {
    // A is over its soft limit and meets its hard limit; its child B is below its own soft limit, C
    // above.
    let difference = |root: &str| {
        let mut world = world(64);
        world.machine.set_policy("soft_limit", "hierarchical").unwrap().discard();
        world.machine.set_policy("soft_limit_root", root).unwrap().discard();
        let a = world.group(ROOT, &[("memory.max", "24M"), ("memory.soft_limit_in_bytes", "8M")]);
        let soft =
            |world: &mut TestWorld, text| world.group(a, &[("memory.soft_limit_in_bytes", text)]);
        let groups = [soft(&mut world, "20M"), soft(&mut world, "2M")];
        let tasks = groups.map(|memcg| world.task(memcg, 16 * MIB));
        for page in (0..2 * 16 * MIB).map(|at| at % (16 * MIB)) {
            for (mm, heap) in tasks {
                world.access(mm, heap, page, true);
            }
        }
        let [b, c] = tasks.map(|task| world.resident(task, 16 * MIB));
        b.saturating_sub(c)
    };
    let (agreed, posted) = (difference("excluded"), difference("included"));
    assert!(agreed > 2 * MIB + posted, "{agreed} pages apart as agreed, {posted} as posted");
}

#[test]
fn a_soft_limit_can_be_that_of_a_node() {
    // The author's examples: a soft limit of 4 GiB and a node of 2 GiB, here in MiB.
    let nodes = [NodeSpec::x86_64(64 << 20, 0, 0), NodeSpec::remote(64 << 20, 0, 0)];
    let mut machine = Machine::new(&nodes, 2, Config::default()).unwrap();
    machine.swapon(SwapOptions::new(1 << 16));
    machine.set_policy("soft_limit", "hierarchical").unwrap().discard();
    let mut world = TestWorld::new(machine);
    world.audit = false;
    let wide = world.group(ROOT, &[("memory.soft_limit_in_bytes", "40M")]);
    let (mm, heap) = world.task(wide, 48 * MIB);
    world.fill((mm, heap), 0..48 * MIB);
    let other = world.group(ROOT, &[]);
    let hungry = world.task(other, 100 * MIB);
    let mut stolen = |policy: &str| {
        world.machine.set_policy("soft_limit_node", policy).unwrap().discard();
        let steals = |world: &TestWorld| {
            let events = world.machine.memcgs()[wide].events;
            events.get(Event::PgstealKswapd) + events.get(Event::PgstealDirect)
        };
        let before = steals(&world);
        for page in 0..100 * MIB {
            world.access(hungry.0, hungry.1, page, true);
            // The wide group uses its memory.
            world.access(mm, heap, page % (48 * MIB), false);
        }
        world.settle_and_audit();
        steals(&world) - before
    };
    // 48 MiB are 8 too many, but no node has more than 40 x 64 / 48.
    let (local, global) = (stolen("local"), stolen("global"));
    assert!(global > 2 * local && global > MIB, "{global} pages by usage, {local} by node");
}

#[test]
fn a_skipped_parent_still_grants_its_protection() {
    for policy in ["off", "two-pass"] {
        let mut world = world(64);
        world.machine.set_policy("soft_limit", policy).unwrap().discard();
        let parent = world.group(ROOT, &[("memory.min", "24M")]);
        let controls = [("memory.min", "24M"), ("memory.soft_limit_in_bytes", "1M")];
        let child = world.group(parent, &controls);
        let kept = world.task(child, 20 * MIB);
        world.fill(kept, 0..20 * MIB);
        let hungry = world.group(ROOT, &[]);
        let hungry = world.task(hungry, 80 * MIB);
        world.fill(hungry, 0..80 * MIB);
        assert_eq!(world.resident(kept, 20 * MIB), 20 * MIB, "{policy}");
    }
}

#[test]
fn the_root_has_a_shrink_priority_and_no_soft_limit() {
    let swapped = |controls: &[(&str, &str)], with_child: bool| {
        let mut world = world(32);
        world.machine.set_policy("shrink_priority", "posted").unwrap().discard();
        for (name, text) in controls {
            world.machine.write_group_control(ROOT, name, text).unwrap().1.discard();
        }
        let memcg = if with_child { world.group(ROOT, &[]) } else { ROOT };
        let heap = world.task(memcg, 40 * MIB);
        for page in 0..40 * MIB {
            world.access(heap.0, heap.1, page, true);
            if world.machine.is_exited(heap.0) {
                break;
            }
        }
        world.settle();
        (world.count(Event::Pswpout), world.machine.is_exited(heap.0))
    };
    let spared = swapped(&[("memory.global_shrink_priority", "-1")], false);
    assert_eq!(spared, (0, true), "the root is spared although no other group exists");
    let plain = swapped(&[], true);
    assert_eq!(swapped(&[("memory.soft_limit_in_bytes", "0")], true), plain);
}

#[test]
fn a_page_of_a_full_group_without_tasks_kills_no_task() {
    let mut world = world(64);
    let full = world.group(ROOT, &[]);
    let other = world.group(ROOT, &[]);
    let (mm, heap) = world.task(full, 4 * MIB);
    world.fill((mm, heap), 0..4 * MIB);
    world.write_group(mm, full, "memory.reclaim", "2M");
    world.settle();
    world.machine.move_mm(mm, other).unwrap().discard();
    world.write_group(mm, full, "memory.max", "0");
    let page = (0..4 * MIB).find(|&page| !world.machine.is_resident(heap, page)).unwrap();
    let mut fault = ProcessCall::fault(mm, NodeId(0), heap, page, true);
    for _ in 0..10_000 {
        let (step, effects) = world.machine.step(&mut fault, CPU, world.now);
        assert!(effects
            .collect::<Vec<_>>()
            .iter()
            .all(|effect| !matches!(effect, Effect::OomKill(_))));
        assert!(!matches!(step, Step::Done(_)), "{step:?}");
        world.now += 4_000_000;
    }
    // Once there is room again the fault completes.
    world.write_group(mm, full, "memory.max", "max");
    let outcome = world.drive(&mut fault);
    assert!(matches!(outcome, Outcome::Got(got) if got.major), "{outcome:?}");
}

#[test]
fn a_task_that_moves_to_the_root_during_reclaim_is_charged_to_no_group() {
    let mut world = world(64);
    let memcg = world.group(ROOT, &[("memory.max", "4M")]);
    let (mm, heap) = world.task(memcg, 8 * MIB);
    world.fill((mm, heap), 0..4 * MIB);
    let mut page = 4 * MIB;
    let mut call = loop {
        let mut call = ProcessCall::fault(mm, NodeId(0), heap, page, true);
        let (step, effects) = world.machine.step(&mut call, CPU, 0);
        let buffer = effects.collect();
        world.carry_out(buffer);
        if step == Step::Continue && call.is_reclaiming() {
            break call;
        }
        page += 1;
    };
    world.machine.move_mm(mm, ROOT).unwrap().discard();
    world.drive(&mut call);
    world.settle_and_audit();
}

#[test]
fn groups_come_and_go_and_leave_nothing() {
    let mut world = world(64);
    let keeper = world.group(ROOT, &[]);
    let free = world.machine.mem.nr_free_pages();
    for round in 0..10_000 {
        let parent = if round % 2 == 0 { keeper } else { ROOT };
        let memcg = world.group(parent, &[("memory.max", "4M"), ("memory.low", "1M")]);
        if round % 100 == 0 {
            let heap = world.task(memcg, 8);
            world.fill(heap, 0..8);
            assert_eq!(world.machine.remove_memcg(memcg).err(), Some(Errno::Ebusy));
            world.exit(heap.0);
        }
        world.machine.remove_memcg(memcg).unwrap().discard();
        if round % 1000 == 0 {
            world.machine.audit().unwrap();
        }
    }
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs().len(), 3, "ids are used again");
    assert_eq!(world.machine.memcg_usage(keeper), 0);
    // The rest is in per-CPU lists.
    assert!(free - world.machine.mem.nr_free_pages() < 512);
}

#[test]
fn a_removed_group_leaves_its_pages_to_its_parent() {
    let mut world = world(64);
    let parent = world.group(ROOT, &[]);
    let child = world.group(parent, &[("memory.max", "4M")]);
    let file = world.machine.create_file(16 * MIB * PAGE_SIZE, true).unwrap();
    let mm = world.machine.create_mm(child).unwrap();
    let map = world.map(mm, Backing::File(file), 2 * MIB, Advice::Normal);
    world.access_all((mm, map), 0..2 * MIB, false);
    let heap = world.map(mm, Backing::Anon, 4 * MIB, Advice::Normal);
    world.fill((mm, heap), 0..4 * MIB);
    // The task moves away: pages, page tables and slots stay where they were charged.
    world.machine.move_mm(mm, parent).unwrap().discard();
    world.settle();
    let usage = world.machine.memcg_usage(parent);
    let slots = world.machine.memcgs()[parent].swap.usage;
    assert!(slots > 0);
    world.machine.remove_memcg(child).unwrap().discard();
    world.machine.audit().unwrap();
    // Stocks are drained; nothing else changes for the parent.
    assert!(usage - world.machine.memcg_usage(parent) <= 128);
    assert_eq!(world.machine.memcgs()[parent].swap.usage, slots);
    assert!(
        world.machine.memcg_events(parent).get(Event::Pgfault) > 0,
        "counts are the parent's now"
    );
    world.exit(mm);
    world.settle();
    world.machine.remove_memcg(parent).unwrap().discard();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[ROOT].memory.usage, 0);
}
