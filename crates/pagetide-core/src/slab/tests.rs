//! Caches, owners, clones and cached objects on a small machine, with the audit after every step.

mod held;
mod kept;
mod spoilt;

use super::cached::CachedKind;
use super::objcg::NO_OWNER;
use super::slabinfo::SlabUsage;
use super::*;
use crate::config::{Config, KmemAccounting};
use crate::frames::gfp::Gfp;
use crate::frames::node::NodeSpec;
use crate::groups::memcg::ROOT;
use crate::interface::daemon::Daemon;
use crate::interface::effect::Step;
use crate::interface::outcome::Outcome;
use crate::process::Machine;
use crate::process::MmId;
use crate::process::ProcessCall;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::errno::Errno;
use crate::units::Cpu;
use crate::units::PAGE_SIZE;
use crate::units::{MemcgId, NodeId};
use std::vec::Vec;

const CPU: Cpu = Cpu(0);
const OTHER: Cpu = Cpu(1);

fn machine(config: Config) -> Machine {
    Machine::new(&[NodeSpec::x86_64(64 << 20, 0, 0)], 2, config).unwrap()
}

fn with(accounting: SlabAccounting) -> Config {
    Config { slab_accounting: accounting, ..Config::default() }
}

fn spec(name: &str, object_size: u32) -> CacheSpec {
    CacheSpec { name: name.into(), object_size, reclaimable: false, account: true }
}

/// A machine with a cache of objects of `size` bytes, and a task of the root.
fn with_cache(config: Config, size: u32) -> (Machine, CacheId, MmId) {
    let mut machine = machine(config);
    let cache = machine.create_cache(spec("thing", size)).unwrap();
    let mm = machine.create_mm(ROOT).unwrap();
    (machine, cache, mm)
}

/// The same, with the task in a group.
fn with_group(config: Config, size: u32) -> (Machine, CacheId, MemcgId, MmId) {
    let mut machine = machine(config);
    let cache = machine.create_cache(spec("thing", size)).unwrap();
    let (memcg, mm) = group(&mut machine, "g");
    (machine, cache, memcg, mm)
}

/// Allocates an object for a task, with all steps that this takes.
fn alloc_on(machine: &mut Machine, mm: MmId, cache: CacheId, cpu: Cpu) -> Option<Object> {
    let memcg = machine.owners.mms[mm].memcg;
    if let Some(object) = machine.kmem_cache_alloc(cache, memcg, false, cpu) {
        return Some(object);
    }
    let mut call = ProcessCall::kmem_alloc(mm, NodeId(0), cache, false, Gfp::KERNEL);
    for now in 0..100_000 {
        let (step, effects) = machine.step(&mut call, cpu, now);
        effects.discard();
        match step {
            Step::Done(Outcome::Object(object)) => return Some(object),
            Step::Done(_) => return None,
            Step::Continue | Step::Wait(_) => {}
        }
    }
    panic!("the allocation never ends");
}

fn alloc(machine: &mut Machine, mm: MmId, cache: CacheId) -> Object {
    alloc_on(machine, mm, cache, CPU).expect("there is memory")
}

fn free(machine: &mut Machine, cache: CacheId, object: Object) {
    machine.kmem_cache_free(cache, object, CPU).unwrap();
}

fn group(machine: &mut Machine, name: &str) -> (MemcgId, MmId) {
    let memcg = machine.create_memcg(name.into(), ROOT).unwrap();
    (memcg, machine.create_mm(memcg).unwrap())
}

fn leave(machine: &mut Machine, memcg: MemcgId, mm: MmId) {
    machine.exit_mm(mm, CPU).unwrap().discard();
    machine.remove_memcg(memcg).unwrap().discard();
}

fn work_off(machine: &mut Machine) {
    while !machine.slabs.deferred.is_empty() {
        machine.step_daemon(Daemon::Kworker, CPU, 0).1.discard();
        machine.audit().unwrap();
    }
}

fn slab_pages(machine: &Machine) -> u64 {
    machine.mem.global_node_stat(NodeStat::NrSlabReclaimable)
        + machine.mem.global_node_stat(NodeStat::NrSlabUnreclaimable)
}

#[test]
fn an_object_is_handed_out_once_and_taken_back_once() {
    let mut machine = machine(Config::default());
    let cache = machine.create_cache(spec("thing", 100)).unwrap();
    let other = machine.create_cache(spec("other", 100)).unwrap();
    let mm = machine.create_mm(ROOT).unwrap();
    let objects: Vec<Object> = (0..500).map(|_| alloc(&mut machine, mm, cache)).collect();
    let mut numbers: Vec<u32> = objects.iter().map(|object| object.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 500, "no two are the same");
    assert_eq!(machine.slabs.kmem_cache(cache).unwrap().size, 104, "a multiple of 8");
    machine.audit().unwrap();
    let before = machine.digest();
    let wrong = [
        (other, objects[0], SlabError::WrongCache),
        (CacheId(9999), objects[0], SlabError::UnknownCache),
        (cache, Object { cache: CacheId(9999), number: 0 }, SlabError::UnknownCache),
        (cache, Object { cache, number: 1 << 30 }, SlabError::NotAnObject),
        // 39 objects per slab: number 39 is too high.
        (cache, Object { cache, number: 39 }, SlabError::NotAnObject),
        (cache, Object::NONE, SlabError::UnknownCache),
    ];
    for (cache, object, error) in wrong {
        assert_eq!(machine.kmem_cache_free(cache, object, CPU), Err(error), "{object:?}");
    }
    assert_eq!(machine.digest(), before, "nothing has changed");
    for &object in &objects {
        free(&mut machine, cache, object);
        for cpu in [CPU, OTHER] {
            let again = machine.kmem_cache_free(cache, object, cpu);
            assert_eq!(again, Err(SlabError::DoubleFree), "{object:?}");
        }
        machine.audit().unwrap();
    }
}

#[test]
fn an_object_freed_by_another_cpu_cannot_be_freed_again_by_the_first() {
    let (mut machine, cache, mm) = with_cache(Config::default(), 64);
    let object = alloc(&mut machine, mm, cache);
    machine.kmem_cache_free(cache, object, OTHER).unwrap();
    machine.audit().unwrap();
    for cpu in [CPU, OTHER] {
        assert_eq!(machine.kmem_cache_free(cache, object, cpu), Err(SlabError::DoubleFree));
    }
    // It returns once the first CPU has used up its word.
    let next: Vec<Object> = (0..64).map(|_| alloc(&mut machine, mm, cache)).collect();
    assert_eq!(next.iter().filter(|&&it| it == object).count(), 1);
    machine.audit().unwrap();
}

#[test]
fn impossible_caches_are_refused() {
    let mut machine = machine(Config::default());
    let refused = [
        (spec("none", 0), SlabError::NoSize),
        (spec("huge", (4 << 20) + 1), SlabError::TooLarge),
        (spec("huge", u32::MAX), SlabError::TooLarge),
        (spec("kmalloc-64", 64), SlabError::DuplicateName),
    ];
    for (spec, error) in refused {
        assert_eq!(machine.create_cache(spec), Err(error));
    }
    assert!(machine.create_cache(spec("large", 4 << 20)).is_ok());
    machine.audit().unwrap();
}

#[test]
fn empty_slabs_return_their_pages() {
    for &policy in SlubPolicy::ALL {
        let (mut machine, cache, mm) =
            with_cache(Config { slub: policy, ..Config::default() }, 256);
        let objects: Vec<Object> =
            (0..2000).map(|at| alloc_on(&mut machine, mm, cache, Cpu(at % 2)).unwrap()).collect();
        machine.audit().unwrap();
        assert_eq!(machine.slab_usage(cache).active_objs, 2000);
        for (at, &object) in objects.iter().enumerate() {
            machine.kmem_cache_free(cache, object, Cpu((at / 7 % 2) as u16)).unwrap();
        }
        machine.audit().unwrap();
        let kept = machine.slab_usage(cache);
        assert_eq!(kept.active_objs, 0);
        assert!(kept.num_slabs < 125, "{policy:?}: most are gone, {kept:?}");
        machine.shrink_cache(cache, CPU);
        machine.audit().unwrap();
        assert_eq!(machine.slab_usage(cache), SlabUsage::default());
        assert_eq!(slab_pages(&machine), 0, "{policy:?}");
    }
}

#[test]
fn a_node_keeps_min_partial_empty_slabs() {
    let mut machine = machine(Config::default());
    let cache = machine.create_cache(spec("thing", 512)).unwrap();
    machine.tune_cache(cache, CacheTuning { cpu_partial: Some(0), ..Default::default() }).unwrap();
    let mm = machine.create_mm(ROOT).unwrap();
    let objects: Vec<Object> = (0..800).map(|_| alloc(&mut machine, mm, cache)).collect();
    for object in objects {
        free(&mut machine, cache, object);
    }
    // ilog2(512) / 2 = 4 is raised to 5. The fifth is discarded when it becomes empty; one is the
    // CPU's.
    assert_eq!(machine.slab_usage(cache).num_slabs, 4 + 1);
    machine.audit().unwrap();
}

#[test]
fn a_cpu_keeps_a_chain_of_partial_slabs() {
    let chain = |policy| {
        let (mut machine, cache, mm) =
            with_cache(Config { slub: policy, ..Config::default() }, 256);
        let objects: Vec<Object> = (0..16 * 64).map(|_| alloc(&mut machine, mm, cache)).collect();
        let mut longest = 0;
        // Free one object of each slab.
        for object in objects.into_iter().step_by(16) {
            free(&mut machine, cache, object);
            longest = longest.max(machine.slabs.caches[cache].cpus[0].nr_partial);
            machine.audit().unwrap();
        }
        longest
    };
    // 52 objects are 2 x 52 / 16 = 7 slabs since 5.16; before, 13 free objects, one per slab.
    assert_eq!(chain(SlubPolicy::Linux61), 7);
    assert_eq!(chain(SlubPolicy::Linux55), 14);
}

#[test]
fn tuning_takes_what_linux_takes() {
    let mut machine = machine(Config::default());
    let cache = machine.create_cache(spec("thing", 5000)).unwrap();
    let order = |order| CacheTuning { order: Some(order), ..Default::default() };
    assert_eq!(machine.tune_cache(cache, order(0)), Err(Errno::Einval), "one does not fit");
    assert_eq!(machine.tune_cache(cache, order(11)), Err(Errno::Einval));
    assert_eq!(machine.tune_cache(CacheId(9999), order(1)), Err(Errno::Enoent));
    assert_eq!(machine.tune_cache(cache, order(1)), Ok(()));
    assert_eq!(machine.slabs.kmem_cache(cache).unwrap().objects_per_slab(), 1);
    let mm = machine.create_mm(ROOT).unwrap();
    alloc(&mut machine, mm, cache);
    assert_eq!(machine.tune_cache(cache, order(2)), Err(Errno::Ebusy));
    machine.audit().unwrap();
}

#[test]
fn bytes_of_objects_and_stocks_are_the_pages_charged() {
    let (mut machine, cache, memcg, mm) = with_group(Config::default(), 96);
    let objects: Vec<Object> = (0..100).map(|_| alloc(&mut machine, mm, cache)).collect();
    machine.audit().unwrap();
    // 100 x (96 + 8) bytes are 2.5 pages; the rest of the third page is in the stock.
    assert_eq!(machine.groups.memcgs[memcg].kernel_pages, 3);
    assert_eq!(machine.groups.memcgs[memcg].kmem.usage, 3);
    let stat = |machine: &Machine, name| {
        let sizes = machine.memory_stat_sizes(memcg);
        sizes.into_iter().find(|(row, _)| *row == name).unwrap().1
    };
    assert_eq!(stat(&machine, "slab"), 10_400);
    assert_eq!(stat(&machine, "slab_unreclaimable"), 10_400);
    assert_eq!(stat(&machine, "kernel"), 3 * PAGE_SIZE);
    for object in objects {
        free(&mut machine, cache, object);
        machine.audit().unwrap();
    }
    assert_eq!(stat(&machine, "slab"), 0);
    assert!(machine.groups.memcgs[memcg].kernel_pages <= 1, "a page in advance at most");
}

#[test]
fn a_stock_adopts_what_its_owner_left_and_gives_back_whole_pages() {
    let (mut machine, cache, _, first) = with_group(Config::default(), 1024);
    let (_, second) = group(&mut machine, "second");
    let a = alloc(&mut machine, first, cache);
    let left = |machine: &Machine| {
        machine.slabs.objcgs.iter().map(|(_, owner)| owner.nr_charged_bytes).collect::<Vec<_>>()
    };
    assert_eq!(left(&machine), [0, 0]);
    // The second owner drains the first one's 4096 - 1032 bytes.
    let b = alloc(&mut machine, second, cache);
    assert_eq!(left(&machine), [3064, 0]);
    // And back: they are used before another page is charged.
    let c = alloc(&mut machine, first, cache);
    assert_eq!(left(&machine), [0, 3064]);
    assert_eq!(machine.groups.memcgs[1].kernel_pages, 1);
    for object in [a, b, c] {
        free(&mut machine, cache, object);
        machine.audit().unwrap();
    }
}

#[test]
fn round_robin_over_owners_drains_the_stock() {
    let mut machine = machine(Config::default());
    let cache = machine.create_cache(spec("thing", 64)).unwrap();
    let groups: Vec<MmId> =
        (0..8).map(|at| group(&mut machine, &std::format!("g{at}")).1).collect();
    for _ in 0..20 {
        for &mm in &groups {
            alloc(&mut machine, mm, cache);
        }
        machine.audit().unwrap();
    }
    let drains = machine.take_work().objcg_drains;
    assert_eq!(drains, 159, "every allocation except the first finds another owner's bytes");
}

#[test]
fn a_charge_over_the_limit_fails_and_charges_nothing() {
    for accounting in [SlabAccounting::PerObject, SlabAccounting::PerGroupCachesReparent] {
        let (mut machine, cache, memcg, mm) = with_group(with(accounting), 2048);
        machine.write_group_control(memcg, "memory.max", "32K").unwrap().1.discard();
        alloc(&mut machine, mm, cache);
        work_off(&mut machine);
        let mut got = 0;
        while let Some(_object) = alloc_on(&mut machine, mm, cache, CPU) {
            got += 1;
            machine.audit().unwrap();
            assert!(got <= 16, "{accounting:?}: 8 pages hold no more");
        }
        assert!(got >= 7, "{accounting:?}: {got}");
        machine.audit().unwrap();
        assert!(machine.groups.memcgs[memcg].memory.usage <= 8);
        assert!(machine.groups.memcgs[memcg].memory.failcnt > 0);
    }
}

#[test]
fn the_limit_of_kernel_memory_denies_without_reclaim() {
    let (mut machine, cache, memcg, mm) = with_group(Config::default(), 2048);
    machine.write_group_control(memcg, "memory.kmem.limit_in_bytes", "8K").unwrap().1.discard();
    let got = (0..10).filter(|_| alloc_on(&mut machine, mm, cache, CPU).is_some()).count();
    assert_eq!(got, 3, "2056 bytes each in two pages");
    assert_eq!(machine.groups.memcgs[memcg].kmem.failcnt, 7);
    assert_eq!(machine.groups.memcgs[memcg].memory.failcnt, 0);
    let busy = machine.write_group_control(memcg, "memory.kmem.limit_in_bytes", "4K");
    assert_eq!(busy.unwrap_err().errno, Errno::Ebusy);
    machine.audit().unwrap();
}

#[test]
fn the_root_owns_all_survivors() {
    let mut machine = machine(Config::default());
    let cache = machine.create_cache(spec("thing", 200)).unwrap();
    let outer = machine.create_memcg("outer".into(), ROOT).unwrap();
    let inner = machine.create_memcg("inner".into(), outer).unwrap();
    let mm = machine.create_mm(inner).unwrap();
    let objects: Vec<Object> = (0..100).map(|_| alloc(&mut machine, mm, cache)).collect();
    machine.exit_mm(mm, CPU).unwrap().discard();
    machine.remove_memcg(inner).unwrap().discard();
    machine.audit().unwrap();
    assert_eq!(machine.memcg_of_object(objects[0]), outer);
    assert!(machine.groups.memcgs[outer].kmem.usage > 0);
    machine.remove_memcg(outer).unwrap().discard();
    machine.audit().unwrap();
    assert_eq!(machine.memcg_of_object(objects[99]), ROOT);
    assert_eq!(machine.memcg_ids().count(), 1);
    assert_eq!(machine.groups.memcgs[ROOT].kernel_pages, 100 * 208 / PAGE_SIZE + 1);
    for object in objects {
        free(&mut machine, cache, object);
        machine.audit().unwrap();
    }
    // A CPU's stock refers to the last owner until it is drained.
    machine.drain_obj_stocks(ROOT);
    machine.audit().unwrap();
    assert_eq!(machine.slabs.objcgs.iter().count(), 0);
    assert_eq!(machine.groups.memcgs[ROOT].kernel_pages, 0);
}

#[test]
fn remainders_of_two_cpus_that_make_a_page_go_with_their_group() {
    let mut machine = machine(Config::default());
    let cache = machine.create_cache(spec("thing", 32)).unwrap();
    for parent in [ROOT, machine.create_memcg("outer".into(), ROOT).unwrap()] {
        let memcg = machine.create_memcg("inner".into(), parent).unwrap();
        let mm = machine.create_mm(memcg).unwrap();
        // One CPU has the rest of the page in stock, the other the object's bytes.
        let object = alloc(&mut machine, mm, cache);
        machine.kmem_cache_free(cache, object, OTHER).unwrap();
        leave(&mut machine, memcg, mm);
        machine.audit().unwrap();
        assert_eq!(machine.groups.memcgs[parent].kernel_pages, 0);
    }
}

#[test]
fn a_second_free_is_seen_when_the_slab_is_gone() {
    let (mut machine, cache, mm) = with_cache(Config::default(), 4096);
    let object = alloc(&mut machine, mm, cache);
    free(&mut machine, cache, object);
    machine.shrink_cache(cache, CPU);
    assert_eq!(machine.slab_usage(cache).num_slabs, 0);
    assert_eq!(machine.kmem_cache_free(cache, object, CPU), Err(SlabError::DoubleFree));
}

#[test]
fn a_group_pays_for_its_clone_only_once_that_is_made() {
    let (mut machine, cache, memcg, mm) = with_group(with(SlabAccounting::PerGroupCaches), 128);
    let early = alloc(&mut machine, mm, cache);
    assert_eq!(machine.memcg_of_object(early), ROOT);
    assert_eq!(machine.groups.memcgs[memcg].kmem.usage, 0);
    work_off(&mut machine);
    let late = alloc(&mut machine, mm, cache);
    assert_eq!(machine.memcg_of_object(late), memcg);
    assert_eq!(machine.groups.memcgs[memcg].kmem.usage, 1, "a whole page for one object");
    let clone = machine.slabs.kmem_cache(late.cache).unwrap();
    assert_eq!(clone.name, "thing(1:g)");
    machine.audit().unwrap();
    for object in [early, late] {
        free(&mut machine, cache, object);
        machine.audit().unwrap();
    }
}

#[test]
fn a_clone_outlives_its_group_and_holds_it_or_not() {
    for (accounting, holds) in
        [(SlabAccounting::PerGroupCaches, true), (SlabAccounting::PerGroupCachesReparent, false)]
    {
        let (mut machine, cache, memcg, mm) = with_group(with(accounting), 128);
        alloc(&mut machine, mm, cache);
        work_off(&mut machine);
        let objects: Vec<Object> = (0..40).map(|_| alloc(&mut machine, mm, cache)).collect();
        let caches = machine.slabs.kmem_caches().count();
        leave(&mut machine, memcg, mm);
        machine.audit().unwrap();
        work_off(&mut machine);
        assert_eq!(machine.groups.memcgs[memcg].dying, holds, "{accounting:?}");
        assert_eq!(machine.memcg_ids().count(), 1 + usize::from(holds));
        assert!(!machine.groups.memcg_is_online(memcg));
        let owner = if holds { memcg } else { ROOT };
        assert_eq!(machine.memcg_of_object(objects[0]), owner);
        for object in objects {
            free(&mut machine, cache, object);
            machine.audit().unwrap();
        }
        assert_eq!(machine.slabs.kmem_caches().count(), caches - 1, "the clone was removed");
        assert_eq!(machine.memcg_ids().count(), 1);
        let again = machine.create_memcg("again".into(), ROOT).unwrap();
        assert_eq!(again, memcg, "its id is reused");
        machine.audit().unwrap();
    }
}

#[test]
fn a_parent_with_dying_children_dies_after_them() {
    let mut machine = machine(with(SlabAccounting::PerGroupCaches));
    let cache = machine.create_cache(spec("thing", 128)).unwrap();
    let outer = machine.create_memcg("outer".into(), ROOT).unwrap();
    let inner = machine.create_memcg("inner".into(), outer).unwrap();
    let mm = machine.create_mm(inner).unwrap();
    let early = alloc(&mut machine, mm, cache);
    work_off(&mut machine);
    let late = alloc(&mut machine, mm, cache);
    machine.exit_mm(mm, CPU).unwrap().discard();
    assert_eq!(machine.remove_memcg(outer).err(), Some(Errno::Ebusy));
    machine.remove_memcg(inner).unwrap().discard();
    machine.audit().unwrap();
    machine.remove_memcg(outer).unwrap().discard();
    machine.audit().unwrap();
    work_off(&mut machine);
    assert_eq!(machine.memcg_ids().count(), 3, "both exist, without a name");
    assert_eq!(machine.remove_memcg(outer).err(), Some(Errno::Enoent));
    free(&mut machine, cache, early);
    free(&mut machine, cache, late);
    machine.audit().unwrap();
    assert_eq!(machine.memcg_ids().count(), 1);
}

#[test]
fn without_accounting_no_group_is_charged() {
    for config in [
        with(SlabAccounting::Off),
        Config { kmem_accounting: KmemAccounting::Off, ..with(SlabAccounting::PerObject) },
        Config { kmem_accounting: KmemAccounting::Off, ..with(SlabAccounting::PerGroupCaches) },
    ] {
        let (mut machine, cache, memcg, mm) = with_group(config, 128);
        for _ in 0..1000 {
            alloc(&mut machine, mm, cache);
        }
        assert!(machine.slabs.deferred.is_empty());
        assert_eq!(machine.groups.memcgs[memcg].memory.usage, 0);
        machine.audit().unwrap();
    }
}

#[test]
fn owners_take_memory_of_their_own() {
    let (mut machine, cache, _, mm) = with_group(Config::default(), 32);
    for _ in 0..128 * 16 {
        alloc(&mut machine, mm, cache);
    }
    machine.audit().unwrap();
    assert_eq!(machine.slab_usage(cache).num_slabs, 16);
    // 128 objects of 32 bytes fill a page, and their pointers take 1 KiB.
    assert_eq!(slab_pages(&machine), 16 + 4);
}

#[test]
fn slabinfo_reads_as_the_kernels() {
    let (mut machine, cache, mm) = with_cache(Config::default(), 192);
    for _ in 0..30 {
        alloc(&mut machine, mm, cache);
    }
    let text = machine.slabinfo();
    let real = include_str!("../../../pagetide-linux/tests/data/linux-6.1/proc/slabinfo");
    let head = |text: &'static str| text.lines().take(2).collect::<Vec<_>>();
    assert_eq!(text.lines().take(2).collect::<Vec<_>>(), head(real));
    let row = text.lines().find(|line| line.starts_with("thing ")).unwrap();
    assert_eq!(
        row,
        "thing                 30     42    192   21    1 : tunables    0    0    0 \
         : slabdata      2      2      0"
    );
}

#[test]
fn every_object_is_in_one_row() {
    for accounting in [
        SlabAccounting::Off,
        SlabAccounting::PerObject,
        SlabAccounting::PerGroupCaches,
        SlabAccounting::PerGroupCachesReparent,
    ] {
        let mut machine = machine(with(accounting));
        let dentry =
            machine.create_cache(CacheSpec { reclaimable: true, ..spec("dentry", 192) }).unwrap();
        let (stays, mm) = group(&mut machine, "stays");
        let (goes, going) = group(&mut machine, "goes");
        for at in 0..60 {
            alloc(&mut machine, mm, dentry);
            let object = alloc(&mut machine, going, dentry);
            work_off(&mut machine);
            if at % 2 == 0 {
                machine.cache_object(object, None, CachedKind::Dentry).unwrap();
            }
        }
        let total = machine.total_slab_usage();
        let sum =
            |machine: &Machine| machine.slabs_by_group().iter().map(|row| row.objects).sum::<u64>();
        assert_eq!(sum(&machine), total.active_objs, "{accounting:?}");
        let caches = machine.slabs_by_cache();
        assert_eq!(caches.iter().map(|(_, usage)| usage.bytes).sum::<u64>(), total.bytes);
        assert!(caches.is_sorted_by(|a, b| a.1.bytes >= b.1.bytes));
        let of = |machine: &Machine, memcg, removed| {
            let rows = machine.slabs_by_group();
            rows.into_iter().find(|row| (row.memcg, row.removed) == (memcg, removed))
        };
        let row = of(&machine, goes, false).unwrap();
        let has_clones = !matches!(accounting, SlabAccounting::Off | SlabAccounting::PerObject);
        assert_eq!(row.clones, u64::from(has_clones));
        // The first object came from the cache itself, before there was a clone, and is not
        // charged.
        let kept = if accounting == SlabAccounting::Off { 0 } else { 30 - u64::from(has_clones) };
        assert_eq!(row.dentries, kept, "{accounting:?}");
        let (objects, kmem) = (row.objects, row.kmem);
        assert_eq!(kmem > 0, accounting != SlabAccounting::Off);
        assert_eq!(of(&machine, ROOT, true), None, "no group was removed");
        leave(&mut machine, goes, going);
        work_off(&mut machine);
        machine.audit().unwrap();
        assert_eq!(sum(&machine), machine.total_slab_usage().active_objs, "{accounting:?}");
        assert_eq!(of(&machine, goes, false), None);
        let left = of(&machine, ROOT, true);
        if accounting == SlabAccounting::Off {
            assert_eq!(left, None);
            continue;
        }
        // They are the root's now, in a row of their own.
        let left = left.unwrap();
        assert_eq!((left.objects, left.clones), (objects, u64::from(has_clones)));
        let holds = accounting == SlabAccounting::PerGroupCaches;
        assert_eq!(left.dying_groups, u64::from(holds));
        assert_eq!(left.kmem > 0, holds);
        let kept = of(&machine, ROOT, false).unwrap().dentries;
        assert_eq!(kept, 30, "{accounting:?}");
        assert!(of(&machine, stays, true).is_none());
    }
}

fn alloc_bulk(
    machine: &mut Machine,
    cache: CacheId,
    mm: MmId,
    nr: usize,
    objects: &mut Vec<Object>,
) -> Result<usize, SlabError> {
    let (got, effects) = machine.kmem_cache_alloc_bulk(cache, mm, true, CPU, nr, objects)?;
    effects.discard();
    Ok(got)
}

#[test]
fn many_at_once_are_charged_in_one_go() {
    let (mut machine, cache, memcg, mm) = with_group(Config::default(), 96);
    let (_, other) = group(&mut machine, "h");
    let mut objects = Vec::new();
    assert_eq!(alloc_bulk(&mut machine, cache, mm, 100, &mut objects), Ok(100));
    machine.audit().unwrap();
    assert_eq!(machine.groups.memcgs[memcg].kernel_pages, 3, "10 400 bytes");
    assert_eq!(alloc_bulk(&mut machine, cache, other, 50, &mut objects), Ok(50));
    machine.audit().unwrap();
    let before = machine.digest();
    let none = alloc_bulk(&mut machine, CacheId(9999), mm, 9, &mut objects);
    assert_eq!((none, objects.len()), (Err(SlabError::UnknownCache), 150));
    assert_eq!(machine.digest(), before);
    // An object occurs twice: the first ten objects are freed, the others are unchanged.
    let mut twice = objects[..10].to_vec();
    twice.extend([objects[3], objects[20]]);
    let refused = machine.kmem_cache_free_bulk(cache, &twice, CPU);
    assert_eq!(refused, Err((10, SlabError::DoubleFree)));
    machine.audit().unwrap();
    assert_eq!(machine.memcg_of_object(objects[20]), memcg);
    machine.kmem_cache_free_bulk(cache, &objects[10..], OTHER).unwrap();
    machine.audit().unwrap();
    assert_eq!(machine.slab_usage(cache).active_objs, 0);
}

#[test]
fn many_at_once_stop_at_a_limit_and_leave_no_charge() {
    let (mut machine, cache, memcg, mm) = with_group(Config::default(), 1024);
    machine.write_group_control(memcg, "memory.max", "16K").unwrap().1.discard();
    let mut objects = Vec::new();
    assert_eq!(alloc_bulk(&mut machine, cache, mm, 100, &mut objects), Ok(0));
    machine.audit().unwrap();
    assert_eq!(machine.groups.memcgs[memcg].kernel_pages, 0);
    assert_eq!(alloc_bulk(&mut machine, cache, mm, 10, &mut objects), Ok(10));
    machine.audit().unwrap();
}

#[test]
fn a_clone_is_no_cache_to_ask_for() {
    let (mut machine, cache, _, mm) = with_group(with(SlabAccounting::PerGroupCaches), 128);
    alloc(&mut machine, mm, cache);
    work_off(&mut machine);
    let clone = alloc(&mut machine, mm, cache).cache;
    assert_ne!(clone, cache);
    for wrong in [clone, CacheId(9999)] {
        let mut call = ProcessCall::kmem_alloc(mm, NodeId(0), wrong, false, Gfp::KERNEL);
        let (step, effects) = machine.step(&mut call, CPU, 0);
        effects.discard();
        assert_eq!(step, Step::Done(Outcome::NoCache));
        let bulk = alloc_bulk(&mut machine, wrong, mm, 3, &mut Vec::new());
        assert_eq!(bulk, Err(SlabError::UnknownCache));
    }
    machine.audit().unwrap();
}
