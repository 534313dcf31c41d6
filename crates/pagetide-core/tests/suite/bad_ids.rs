//! Every public function with unknown ids, ids of removed objects and arbitrary numbers: no
//! function panics, and the audit passes afterwards.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{Config, SlabAccounting, Thp};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::bad_id::BadId;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::{Effect, Effects, Io, Step};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::slab::cached::CachedKind;
use pagetide_core::slab::object::Object;
use pagetide_core::slab::CacheSpec;
use pagetide_core::stats::psi::TaskState;
use pagetide_core::stats::vmstat::NodeStat;
use pagetide_core::units::{CacheId, Cpu, FileId, MemcgId, NodeId, Pfn, SwapSlot, PAGE_SIZE};
use proptest::prelude::*;

const NODE: NodeId = NodeId(0);

fn small(config: Config) -> TestWorld {
    TestWorld::of(24, 2, config, 1 << 16).unaudited()
}

/// A number that may be an id: often small, sometimes none or very large.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..6u64,
        2 => 0..6000u64,
        1 => Just(u64::from(u8::MAX)),
        1 => Just(u64::from(u16::MAX)),
        1 => Just(u64::from(u32::MAX)),
        1 => Just(u64::MAX),
    ]
}

/// Number of public functions that take an id, a size or a number.
const NR_FUNCTIONS: u32 = 63;

/// A size for a table, small enough that creating it does not exhaust the test's memory.
fn modest(number: u64) -> u64 {
    if number > 1 << 33 {
        u64::MAX
    } else {
        number.min(1 << 20)
    }
}

fn ignore<T>(_: T) {}

fn drain<E>(result: Result<Effects<'_>, E>, effects: &mut Vec<Effect>) {
    if let Ok(more) = result {
        more.drain_into(effects);
    }
}

/// Objects of another machine, some from caches that this machine does not have.
fn foreign_objects() -> Vec<Object> {
    let mut world = small(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let more = (0..200u32).map(|at| CacheSpec {
        name: format!("more-{at}"),
        object_size: 64 + at,
        reclaimable: false,
        account: false,
    });
    let more: Vec<CacheId> = more.map(|spec| world.machine.create_cache(spec).unwrap()).collect();
    let own = (0..40).map(CacheId);
    let caches: Vec<CacheId> = own.chain([more[0], more[199]]).collect();
    let mut objects = vec![Object::NONE];
    for cache in caches {
        for _ in 0..100 {
            let mut call = ProcessCall::kmem_alloc(mm, NODE, cache, false, Gfp::KERNEL);
            if let Outcome::Object(object) = world.drive(&mut call) {
                objects.push(object);
            }
        }
    }
    objects
}

fn call_function(
    world: &mut TestWorld,
    which: u32,
    n: [u64; 4],
    objects: &mut Vec<Object>,
    foreign: &[Object],
) {
    let machine = &mut world.machine;
    let (mm, vma, file) = (MmId(n[0] as u32), VmaId(n[0] as u32), FileId(n[0] as u32));
    let (memcg, cache, pfn) = (MemcgId(n[0] as u16), CacheId(n[0] as u32), Pfn(n[1] as u32));
    let (node, cpu) = (NodeId(n[2] as u8), Cpu(n[3] as u16));
    let (slot, now) = (SwapSlot(n[2] as u32), world.now);
    let bogus = foreign[n[1] as usize % foreign.len()];
    let object = objects.get(n[1] as usize % objects.len().max(1)).copied().unwrap_or(bogus);
    let advice = [Advice::Normal, Advice::Random, Advice::Huge][n[3] as usize % 3];
    let ok = n[3].is_multiple_of(2);
    let mut effects: Vec<Effect> = Vec::new();
    let mut call = None;
    match which {
        0 => ignore(machine.create_mm(memcg)),
        1 => drain(machine.move_mm(mm, MemcgId(n[1] as u16)), &mut effects),
        2 => ignore(machine.is_exited(mm)),
        3 => ignore(machine.create_file(modest(n[0]), ok)),
        4 => ignore(machine.extend_file(file, modest(n[1]))),
        5 => ignore(machine.file(file).is_ok()),
        6 => drain(machine.remove_file(file, cpu), &mut effects),
        7 => ignore(machine.mmap(mm, Backing::Anon, modest(n[1]), advice, ok)),
        8 => {
            let backing = Backing::File(FileId(n[1] as u32));
            ignore(machine.mmap(mm, backing, modest(n[2]), advice, ok));
        }
        9 => ignore(machine.grow_on_touch(vma)),
        10 => ignore(machine.vma(vma).is_ok()),
        11 => ignore(machine.touch(vma, n[1], ok)),
        12 => ignore((machine.is_resident(vma, n[1]), machine.is_in_core(vma, n[1]))),
        13 => drain(machine.munmap(vma, cpu), &mut effects),
        14 if n[1] == 0 => drain(machine.exit_mm(mm, cpu), &mut effects),
        15 => machine.drop_pagecache(cpu).drain_into(&mut effects),
        16 => drain(machine.discard(vma, n[1], n[2], cpu), &mut effects),
        17 => ignore(machine.mlock(vma, n[1], n[2].min(64), cpu)),
        18 => ignore(machine.mlock(vma, n[1], n[2], Cpu(u16::MAX))),
        19 => ignore(machine.munlock(vma, n[1], n[2], cpu)),
        20 => ignore(machine.pin(vma, n[1], ok)),
        21 => ignore(machine.pin_frame(pfn)),
        22 => ignore(machine.unpin(pfn, cpu)),
        23 => ignore(machine.pin_count(pfn)),
        24 => ignore(machine.mm_memcg(mm)),
        25 => ignore((machine.free_kernel_block(mm, pfn, cpu), machine.kernel_blocks(mm).len())),
        26..=29 => {
            let state = |bits: u64| TaskState {
                stalled: bits & 1 > 0,
                running: bits & 2 > 0,
                on_cpu: bits & 4 > 0,
                io_wait: bits & 8 > 0,
            };
            let cpu = [cpu, Cpu(u16::MAX)][usize::from(ok)];
            machine.psi_task_change(memcg, cpu, [state(n[1]), state(n[2])], n[1]);
        }
        30 => ignore(machine.split_huge_page(pfn)),
        31 => ignore((machine.mem.node_stat(node, NodeStat::NrMapped), machine.memcg_usage(memcg))),
        32 => ignore((machine.kswapd_is_compacting(node), machine.kswapd_is_sleeping(node))),
        33 => ignore((machine.kcompactd_is_compacting(node), machine.kcompactd_is_sleeping(node))),
        34 => ignore(machine.nr_throttled(node, Throttle::Writeback)),
        35 => ignore(machine.nr_daemons_throttled(node, Throttle::Reserves)),
        36 => {
            let (_, all) = machine.step_daemon(Daemon::Kswapd(node), cpu, now);
            all.drain_into(&mut effects);
        }
        37 => {
            let (_, all) = machine.step_daemon(Daemon::Kcompactd(node), cpu, now);
            all.drain_into(&mut effects);
        }
        38 => {
            let (_, all) = machine.step_daemon(Daemon::Khugepaged, cpu, now);
            all.drain_into(&mut effects);
        }
        39 => {
            let (_, all) = machine.step_daemon(Daemon::Flusher, cpu, now);
            all.drain_into(&mut effects);
        }
        40 => {
            let (_, all) = machine.step_daemon(Daemon::Kworker, cpu, now);
            all.drain_into(&mut effects);
        }
        41 => machine.copy_done(pfn, ok, cpu).drain_into(&mut effects),
        42 => {
            let io = Io::ReadFile { file, index: n[1] as u32, nr: n[2] as u32 };
            machine.io_done(io, ok, cpu, now).drain_into(&mut effects);
        }
        43 => {
            let io = Io::WriteFile { file, index: n[1] as u32, nr: n[2] as u32 };
            machine.io_done(io, ok, cpu, now).drain_into(&mut effects);
        }
        44 => machine.io_done(Io::SwapIn { slot, pfn }, ok, cpu, now).drain_into(&mut effects),
        45 => machine
            .io_done(
                Io::SwapOut { slot, pfn, nr: [1, 2, 512, u32::MAX][cpu.idx() % 4] },
                ok,
                cpu,
                now,
            )
            .drain_into(&mut effects),
        46 => ignore(machine.create_memcg("group".into(), memcg)),
        47 => drain(machine.remove_memcg(memcg), &mut effects),
        48 => ignore((machine.groups.memcg_is_online(memcg), machine.memcg_events(memcg))),
        49 => {
            for name in ["memory.current", "memory.stat", "memory.max", "memory.pressure"] {
                ignore(machine.read_group_control(memcg, name, n[1]));
            }
            ignore((machine.memory_stat(memcg), machine.anon_thp(memcg)));
        }
        50 => {
            let names = ["memory.low", "memory.swap.max", "memory.max", "memory.high"];
            let text = (n[2] << 20).to_string();
            let write = machine.write_group_control(memcg, names[n[1] as usize % 4], &text);
            let write = write.map(|(write, more)| {
                more.drain_into(&mut effects);
                write
            });
            if let Ok(Some(write)) = write {
                call = Some(ProcessCall::group_write(MmId(n[2] as u32), node, write));
            }
        }
        51 => {
            let got = machine.kmem_cache_alloc(cache, MemcgId(n[1] as u16), ok, cpu);
            objects.extend(got);
        }
        52 if n[1] < 100 => {
            let freed = machine.kmem_cache_free(cache, bogus, Cpu(u16::MAX));
            assert!(freed.is_err());
        }
        // Skip objects that the machine itself uses: like any allocator, it would free them.
        53 if objects.contains(&object) || machine.address_of(object).is_err() => {
            let home = machine.cache_of_object(object);
            if machine.kmem_cache_free(home, object, cpu).is_ok() {
                objects.retain(|&other| other != object);
            }
        }
        54 => {
            ignore((machine.memcg_of_object(bogus), machine.cache_of_object(bogus)));
            ignore((machine.address_of(bogus), machine.slab_usage(cache)));
            ignore((machine.cached_kind(cache), machine.order_bounds(cache)));
            ignore(machine.nr_cached(memcg, CachedKind::Dentry));
        }
        55 => machine.shrink_cache(cache, cpu),
        56 => {
            let nr = n[2].min(40) as usize;
            let asker = MmId(n[1] as u32);
            let got = machine.kmem_cache_alloc_bulk(cache, asker, ok, cpu, nr, objects);
            if let Ok((_, more)) = got {
                more.drain_into(&mut effects);
            }
        }
        57 => ignore(machine.tune_cache(cache, Default::default())),
        58 => machine.drop_slab(cpu).drain_into(&mut effects),
        59 => call = Some(ProcessCall::fault(mm, node, VmaId(n[1] as u32), n[3], ok)),
        60 => {
            let of = FileId(n[1] as u32);
            call = Some(match ok {
                true => ProcessCall::read(mm, node, of, n[2], n[3], Default::default()),
                false => ProcessCall::write(mm, node, of, modest(n[2]), n[3].min(1 << 16)),
            });
        }
        61 => {
            call = Some(match n[3] % 3 {
                0 => ProcessCall::kmem_alloc(mm, node, CacheId(n[1] as u32), ok, Gfp::KERNEL),
                1 => ProcessCall::alloc_pages(mm, node, n[1] as u8, Gfp::KERNEL),
                _ => ProcessCall::compact_memory(mm, node),
            });
        }
        62 => {
            let mut call = ProcessCall::fault(mm, node, VmaId(n[1] as u32), n[3], ok);
            machine.step(&mut call, CPU, now).1.drain_into(&mut effects);
            machine.cancel(call, cpu).drain_into(&mut effects);
        }
        _ => {}
    }
    world.carry_out(effects);
    if let Some(mut call) = call {
        let mut effects = Vec::new();
        let (step, more) = world.machine.step(&mut call, Cpu(u16::MAX), now);
        more.drain_into(&mut effects);
        world.carry_out(effects);
        assert_eq!(step, Step::Done(Outcome::BadId(BadId::Cpu(Cpu(u16::MAX)))));
        if let Outcome::Object(object) = world.drive(&mut call) {
            objects.push(object);
        }
    }
}

fn any_accounting() -> impl Strategy<Value = SlabAccounting> {
    prop_oneof![
        Just(SlabAccounting::PerObject),
        Just(SlabAccounting::PerGroupCaches),
        Just(SlabAccounting::PerGroupCachesReparent),
        Just(SlabAccounting::Off),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_function_panics_for_an_id(
        calls in prop::collection::vec((0..NR_FUNCTIONS, [number(), number(), number(), number()]), 1..200),
        slab_accounting in any_accounting(), huge in any::<bool>()
    ) {
        let thp = if huge { Thp::Always } else { Thp::Never };
        let mut world = small(Config { slab_accounting, thp, ..Config::default() });
        world.contents.is_blind = true;
        // One object of each kind, so that small numbers are valid ids at first.
        let group = world.machine.create_memcg("g".into(), Machine::ROOT).unwrap();
        for memcg in [Machine::ROOT, group, group] {
            let mm = world.machine.create_mm(memcg).unwrap();
            let file = world.create_file(600 * PAGE_SIZE, false);
            for backing in [Backing::Anon, Backing::File(file)] {
                let vma = world.map(mm, backing, 600, Advice::Normal);
                world.fill((mm, vma), 0..600);
            }
        }
        let (mut objects, foreign) = (Vec::new(), foreign_objects());
        for (which, numbers) in calls {
            call_function(&mut world, which, numbers, &mut objects, &foreign);
            if let Err(violation) = world.machine.audit() {
                prop_assert!(false, "after function {which} of {numbers:?}: {violation}");
            }
        }
    }
}

/// A mapping may be longer than its file. Linux: `filemap_fault`, VM_FAULT_SIGBUS.
#[test]
fn a_page_beyond_the_end_of_its_file_is_sigbus() {
    let mut world = small(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    for pages in [0, 2] {
        let file = world.create_file(pages * PAGE_SIZE, false);
        assert_eq!(world.machine.nr_pages_of_file(file), Ok(pages));
        let backing = Backing::File(file);
        let vma = world.map(mm, backing, 10, Advice::Normal);
        for (page, write) in [(pages, false), (pages, true), (9, false)] {
            let outcome = world.drive(&mut ProcessCall::fault(mm, NODE, vma, page, write));
            assert_eq!(outcome, Outcome::IoError);
            world.machine.audit().unwrap();
        }
        if pages > 0 {
            let outcome = world.drive(&mut ProcessCall::fault(mm, NODE, vma, pages - 1, true));
            assert!(matches!(outcome, Outcome::Got(_)));
        }
    }
    world.machine.audit().unwrap();
}
