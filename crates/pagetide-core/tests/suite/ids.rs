//! Reuse of ids, errors for bad ids, and the owner's policies for failures of memory or a disk.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{Config, Thp};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::bad_id::BadId;
use pagetide_core::interface::daemon::{Daemon, DaemonRest};
use pagetide_core::interface::effect::{Step, Token};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::policy::{FailedWritePolicy, OomPolicy};
use pagetide_core::process::{Machine, MapError, MmId, ProcessCall};
use pagetide_core::slab::object::Object;
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::units::{Cpu, FileId, NodeId, Pfn, PAGE_SIZE};

const NODE: NodeId = NodeId(0);

fn small(config: Config) -> TestWorld {
    TestWorld::of(24, 2, config, 1 << 16).unaudited()
}

#[test]
fn the_lowest_free_id_is_given_next() {
    let mut world = small(Config::default());
    let machine = &mut world.machine;
    let mms: Vec<MmId> = (0..4).map(|_| machine.create_mm(Machine::ROOT).unwrap()).collect();
    let heap = |machine: &mut Machine, mm| {
        machine.mmap(mm, Backing::Anon, 8, Advice::Normal, false).unwrap()
    };
    let vmas: Vec<VmaId> = mms.iter().map(|&mm| heap(machine, mm)).collect();
    machine.exit_mm(mms[2], CPU).unwrap().discard();
    machine.exit_mm(mms[1], CPU).unwrap().discard();
    machine.audit().unwrap();
    assert_eq!(machine.exit_mm(mms[1], CPU).err(), Some(BadId::Mm(mms[1])));
    assert_eq!(machine.munmap(vmas[1], CPU).err(), Some(BadId::Vma(vmas[1])));
    assert_eq!(machine.create_mm(Machine::ROOT), Ok(mms[1]));
    assert_eq!(heap(machine, mms[1]), vmas[1]);
    assert_eq!(heap(machine, mms[1]), vmas[2]);
    assert_eq!(heap(machine, mms[1]), VmaId(4));
    assert_eq!(machine.create_mm(Machine::ROOT), Ok(mms[2]));
    machine.audit().unwrap();
}

#[test]
fn tables_do_not_grow_with_what_has_been() {
    let mut world = small(Config::default());
    for round in 0..200 {
        let (mm, heap) = world.heap(16, Advice::Normal);
        let file = world.create_file(16 * PAGE_SIZE, true);
        let shared = world.map(mm, Backing::File(file), 16, Advice::Normal);
        assert_eq!((mm, heap, file, shared), (MmId(0), VmaId(0), FileId(0), VmaId(1)), "{round}");
        for page in 0..16 {
            world.access(mm, heap, page, true);
            world.access(mm, shared, page, page % 2 == 0);
        }
        world.exit(mm);
        world.machine.remove_file(file, CPU).unwrap().discard();
        world.machine.audit().unwrap();
        assert_eq!(world.stat(NodeStat::NrFilePages), 0);
        assert_eq!(world.stat(NodeStat::NrDirty), 0);
    }
}

/// A fault that waits for the read of its page.
fn waiting_fault(world: &mut TestWorld, mm: MmId, vma: VmaId) -> ProcessCall {
    let mut call = ProcessCall::fault(mm, NODE, vma, 3, false);
    loop {
        let mut effects = Vec::new();
        let (step, more) = world.machine.step(&mut call, CPU, world.now);
        more.drain_into(&mut effects);
        world.carry_out(effects);
        match step {
            Step::Continue => {}
            Step::Wait(sleep) if matches!(sleep.token, Token::Page(_)) => return call,
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn a_stale_call_does_not_reach_the_new_owner_of_its_ids() {
    for exits in [false, true] {
        let mut world = small(Config::default());
        let file = world.create_file(64 * PAGE_SIZE, false);
        let backing = Backing::File(file);
        let mm = world.machine.create_mm(Machine::ROOT).unwrap();
        let vma = world.map(mm, backing, 64, Advice::Random);
        let mut call = waiting_fault(&mut world, mm, vma);
        if exits {
            world.exit(mm);
            assert_eq!(world.machine.create_mm(Machine::ROOT), Ok(mm));
        } else {
            world.munmap(vma);
        }
        assert_eq!(world.machine.mmap(mm, Backing::Anon, 64, Advice::Normal, false), Ok(vma));
        world.settle();
        assert_eq!(world.drive(&mut call), Outcome::NoMemory);
        assert!(!world.machine.is_resident(vma, 3), "the new mapping was faulted on");
        world.machine.audit().unwrap();
    }
}

#[test]
fn a_file_is_gone_when_its_io_its_pins_and_its_mappings_are() {
    let mut world = small(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let file = world.create_file(8 * PAGE_SIZE, false);
    let map = world.map(mm, Backing::File(file), 8, Advice::Random);
    world.access(mm, map, 0, true);
    world.access(mm, map, 1, false);
    let pinned = world.machine.pin(map, 1, false).unwrap();
    let mut reader = waiting_fault(&mut world, mm, map);
    let mut other = ProcessCall::read(mm, NODE, file, 5 * PAGE_SIZE, 100, Default::default());
    let effects = world.machine.step(&mut other, CPU, 0).1.collect();
    world.carry_out(effects);

    world.machine.remove_file(file, CPU).unwrap().discard();
    world.machine.audit().unwrap();
    let again = world.machine.remove_file(file, CPU).map(|effects| effects.discard());
    assert_eq!(again, Err(BadId::File(file)));
    assert_eq!(world.machine.file(file).err(), Some(BadId::File(file)));
    let again = world.machine.mmap(mm, Backing::File(file), 8, Advice::Normal, false);
    assert_eq!(again, Err(MapError::BadId(BadId::File(file))));
    // Mappings keep working, as in Linux.
    assert!(world.machine.is_resident(map, 0));
    let next = |world: &mut TestWorld| {
        let id = world.create_file(PAGE_SIZE, true);
        world.machine.audit().unwrap();
        id
    };
    assert_eq!(next(&mut world), FileId(1));
    world.munmap(map);
    world.machine.audit().unwrap();
    assert!(!world.inflight.is_empty());
    assert_eq!(next(&mut world), FileId(2), "pages are being read");
    world.settle();
    assert_eq!(world.drive(&mut other), Outcome::IoError);
    assert_eq!(world.drive(&mut reader), Outcome::NoMemory);
    assert_eq!(next(&mut world), FileId(3), "a page is pinned");
    world.machine.unpin(pinned, CPU).unwrap();
    assert_eq!(next(&mut world), file);
    assert_eq!(world.stat(NodeStat::NrFilePages), 0);
}

#[test]
fn a_removed_file_leaves_no_shadow_and_no_node_of_its_tree() {
    let mut world = small(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let pages = 3 * (24 << 20) / PAGE_SIZE;
    let file = world.create_file(pages * PAGE_SIZE, true);
    let mut read = ProcessCall::read(mm, NODE, file, 0, pages * PAGE_SIZE, Default::default());
    world.drive(&mut read);
    assert!(world.machine.file(file).unwrap().nr_shadows > 0);
    world.machine.remove_file(file, CPU).unwrap().discard();
    world.machine.audit().unwrap();
    let metrics: Vec<_> = world.machine.metrics().collect();
    assert!(metrics.contains(&("workingset_nodes", 0)), "shadows are left");
    let nodes = world.machine.slabs.find_cache("radix_tree_node").unwrap();
    assert_eq!(world.machine.slab_usage(nodes).active_objs, 0);
}

/// Allocates more than all memory, without swap. Returns the outcome of the last request.
fn out_of_memory(policy: OomPolicy, limited: bool) -> (TestWorld, Outcome, Option<Pfn>) {
    let mut world = TestWorld::of(24, 1, Config::default(), 0).unaudited();
    world.machine.owners.set_oom_policy(policy);
    let group = world.machine.create_memcg("g".into(), Machine::ROOT).unwrap();
    if limited {
        world.machine.write_group_control(group, "memory.max", "4M").unwrap().1.discard();
    }
    let (bystander, big) = world.task(group, 600);
    world.fill((bystander, big), 0..600);
    let (mm, heap) = world.task(group, 8000);
    let mut last = Outcome::Minor;
    for page in 0..8000 {
        last = world.access(mm, heap, page, true).unwrap();
        if last == Outcome::NoMemory || world.machine.is_exited(bystander) {
            break;
        }
    }
    let block = match world.drive(&mut ProcessCall::alloc_pages(bystander, NODE, 0, Gfp::KERNEL)) {
        Outcome::Block(pfn) => Some(pfn),
        _ => None,
    };
    (world, last, block)
}

#[test]
fn oom_policy_fail_kills_no_task() {
    for limited in [false, true] {
        let (world, outcome, block) = out_of_memory(OomPolicy::Fail, limited);
        assert_eq!(outcome, Outcome::NoMemory);
        assert_eq!(world.count(Event::OomKill), 0);
        assert!(!world.machine.is_exited(MmId(0)) && !world.machine.is_exited(MmId(1)));
        // Only the group is full; kernel blocks are not charged to it.
        assert_eq!(block.is_some(), limited);
        world.machine.audit().unwrap();
        let (world, ..) = out_of_memory(OomPolicy::Kill, limited);
        assert!(world.count(Event::OomKill) > 0);
        world.machine.audit().unwrap();
    }
}

#[test]
fn what_a_failed_write_had_is_kept_if_the_owner_says_so() {
    for policy in [FailedWritePolicy::Drop, FailedWritePolicy::KeepDirty] {
        let mut world = small(Config::default());
        world.machine.owners.set_failed_write(policy);
        let mm = world.machine.create_mm(Machine::ROOT).unwrap();
        let file = world.create_file(4 * PAGE_SIZE, false);
        world.drive(&mut ProcessCall::write(mm, NODE, file, 0, 4 * PAGE_SIZE));
        let sync = |world: &mut TestWorld| {
            world.now += 60_000_000_000;
            for _ in 0..8 {
                world.flusher_awake = true;
                world.flusher();
            }
        };
        sync(&mut world);
        assert_eq!(world.machine.file(file).unwrap().nr_dirty, 0);
        world.fail_every = 1;
        world.settle_and_audit();
        let kept = if policy == FailedWritePolicy::KeepDirty { 4 } else { 0 };
        assert_eq!(world.machine.file(file).unwrap().nr_dirty, kept);
        world.fail_every = 0;
        sync(&mut world);
        world.settle_and_audit();
        assert_eq!(world.machine.file(file).unwrap().nr_dirty, 0);
        let written = world.count(Event::NrWritten);
        assert_eq!(written, 4 + kept, "pages kept dirty are written again");
    }
}

#[test]
fn objects_of_a_slab_do_not_overlap() {
    let mut world = small(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let cache = world.machine.slabs.find_cache("kmalloc-192").unwrap();
    let mut objects: Vec<(u64, Object)> = Vec::new();
    for _ in 0..300 {
        let mut call = ProcessCall::kmem_alloc(mm, NODE, cache, false, Gfp::KERNEL);
        let Outcome::Object(object) = world.drive(&mut call) else { panic!("no object") };
        let (pfn, offset) = world.machine.address_of(object).unwrap();
        assert!(u64::from(offset) < PAGE_SIZE);
        objects.push((u64::from(pfn.0) * PAGE_SIZE + u64::from(offset), object));
    }
    objects.sort_by_key(|&(address, _)| address);
    assert!(objects.windows(2).all(|pair| pair[0].0 + 192 <= pair[1].0));
    let (_, last) = objects.pop().unwrap();
    world.machine.kmem_cache_free(cache, last, CPU).unwrap();
    assert_eq!(world.machine.address_of(last), Err(BadId::Object(last)));
}

#[test]
fn a_mapping_that_begins_to_grow_late_has_what_is_in_use() {
    let mut world = small(Config { thp: Thp::Always, ..Config::default() });
    let (mm, heap) = world.heap(1536, Advice::Normal);
    world.access(mm, heap, 600, true);
    world.machine.grow_on_touch(heap).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.vma(heap).unwrap().grown, 1024);
}

/// A call for a kernel block that has its block and pays for its group being above `memory.high`.
fn paying_for_a_block(world: &mut TestWorld, mm: MmId) -> Option<ProcessCall> {
    let mut call = ProcessCall::alloc_pages(mm, NODE, 0, Gfp::KERNEL);
    while world.machine.kernel_blocks(mm).is_empty() {
        assert!(!matches!(world.step(&mut call), Step::Done(_)), "the call ends without paying");
    }
    call.is_reclaiming().then_some(call)
}

#[test]
fn a_cancelled_stale_call_frees_nothing_of_the_new_owner_of_its_id() {
    let mut world = small(Config::default());
    let group = world.machine.create_memcg("g".into(), Machine::ROOT).unwrap();
    world.machine.write_group_control(group, "memory.high", "1M").unwrap().1.discard();
    let (mm, heap) = world.task(group, 2000);
    // A fault cancelled while it pays leaves the debt to the next call.
    for page in 0.. {
        let mut call = ProcessCall::fault(mm, NODE, heap, page, true);
        while !world.machine.is_resident(heap, page) {
            world.step(&mut call);
        }
        if call.is_reclaiming() {
            world.machine.cancel(call, CPU).discard();
            break;
        }
    }
    let call = paying_for_a_block(&mut world, mm).expect("the group is above its limit");
    let block = world.machine.kernel_blocks(mm)[0];
    world.exit(mm);
    assert_eq!(world.machine.create_mm(Machine::ROOT), Ok(mm));
    let got = world.drive(&mut ProcessCall::alloc_pages(mm, NODE, 0, Gfp::KERNEL));
    assert_eq!(got, Outcome::Block(block), "the frame freed last");
    world.machine.cancel(call, CPU).discard();
    assert_eq!(world.machine.kernel_blocks(mm), [block]);
    world.machine.audit().unwrap();
}

#[test]
fn a_daemon_of_no_node_or_on_no_cpu_rests_until_it_is_woken() {
    let mut world = small(Config::default());
    let nowhere = NodeId(7);
    for (daemon, cpu) in [
        (Daemon::Kswapd(nowhere), CPU),
        (Daemon::Kcompactd(nowhere), CPU),
        (Daemon::Kswapd(NODE), Cpu(9)),
        (Daemon::Flusher, Cpu(9)),
        (Daemon::Khugepaged, Cpu(9)),
        (Daemon::Kworker, Cpu(9)),
    ] {
        let (step, effects) = world.machine.step_daemon(daemon, cpu, 0);
        assert!(effects.is_empty(), "{daemon:?}");
        assert_eq!(step, Step::Done(DaemonRest::UNTIL_WOKEN), "{daemon:?}");
    }
    world.machine.audit().unwrap();
}
