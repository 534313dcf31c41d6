//! Walks that skip idle groups, against walks that visit each group.
//!
//! A machine with a group policy must ask it about each group, so it skips none, even if the policy
//! changes nothing. After every operation both machines must agree in everything else: the digest,
//! the counts of work, the events, the number of steps.
//!
//! Invariant: the audit compares the idle state with the groups.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::Config;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::Effects;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{MmId, ProcessCall};
use pagetide_core::reclaim::plugin::{GroupPlan, GroupPolicy, GroupVisit, NamedPolicy, Plugins};
use pagetide_core::slab::cached::{CachedId, CachedKind};
use pagetide_core::slab::CacheSpec;
use pagetide_core::stats::event::TraceEvent;
use pagetide_core::stats::work::Work;
use pagetide_core::units::digest::Digest;
use pagetide_core::units::{CacheId, MemcgId, NodeId, PAGE_SIZE};
use proptest::prelude::*;

/// A policy that changes nothing.
#[derive(Clone, Debug)]
struct NoopPolicy;

impl GroupPolicy for NoopPolicy {
    fn plan(&mut self, _: &GroupVisit<'_>, _: &mut GroupPlan) {}

    fn digest(&self, _: &mut Digest) {}
}

const PAGES: u64 = 2000;
const FILE_PAGES: u64 = 1500;

#[derive(Clone, Debug)]
enum Op {
    Create(u8),
    Remove(u8),
    Spawn(u8),
    Touch(u8, u16, u8),
    Read(u8, u16),
    Exit(u8),
    Write(u8, u8, u8),
    Policy(u8),
    Keep(u8, u8),
    Use(u8),
    TakeBack(u8),
    Drop,
    Plugin(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => any::<u8>().prop_map(Op::Create),
        2 => any::<u8>().prop_map(Op::Remove),
        3 => any::<u8>().prop_map(Op::Spawn),
        16 => (any::<u8>(), any::<u16>(), any::<u8>()).prop_map(|(t, p, w)| Op::Touch(t, p, w)),
        4 => (any::<u8>(), any::<u16>()).prop_map(|(t, p)| Op::Read(t, p)),
        1 => any::<u8>().prop_map(Op::Exit),
        3 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(g, c, v)| Op::Write(g, c, v)),
        1 => any::<u8>().prop_map(Op::Policy),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(t, n)| Op::Keep(t, n)),
        1 => any::<u8>().prop_map(Op::Use),
        1 => any::<u8>().prop_map(Op::TakeBack),
        1 => Just(Op::Drop),
        1 => any::<u8>().prop_map(Op::Plugin),
    ]
}

const CONTROLS: [&str; 9] = [
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.min",
    "memory.low",
    "memory.soft_limit_in_bytes",
    "memory.global_shrink_priority",
    "memory.swappiness",
    "memory.reclaim",
];
const SIZES: [&str; 7] = ["0", "11", "64k", "512K", "1M", "4M", "max"];
const POLICIES: [(&str, &str); 20] = [
    ("soft_limit", "tree"),
    ("soft_limit", "hierarchical"),
    ("soft_limit", "two-pass"),
    ("soft_limit", "off"),
    ("soft_limit_node", "local"),
    ("shrink_priority", "guarded"),
    ("shrink_priority", "hierarchical"),
    ("shrink_priority", "posted"),
    ("group_walk", "shared"),
    ("group_walk", "whole"),
    ("kswapd", "linux-2.6.37"),
    ("kswapd", "linux-6.1"),
    ("cgroup", "v1"),
    ("lru", "linux-5.4"),
    ("lru", "linux-6.1"),
    ("lru", "mglru"),
    ("mglru_look_around", "off"),
    ("mglru_tiers", "off"),
    ("mglru", "linux-6.12"),
    ("mglru_memcg_lru", "off"),
];

struct Side {
    world: TestWorld,
    groups: Vec<MemcgId>,
    tasks: Vec<(MmId, VmaId, VmaId)>,
    kept: Vec<CachedId>,
    dentry: CacheId,
    work: Work,
    events: Vec<TraceEvent>,
    /// The plug-ins while no other is set.
    plugins: Option<NamedPolicy>,
}

impl Side {
    fn new(accounting: &str, has_swap: bool, looks: bool) -> Side {
        let slots = if has_swap { 1 << 16 } else { 0 };
        let mut world =
            TestWorld::of(8, 2, Config::default(), slots).unaudited().with_working_disk();
        let machine = &mut world.machine;
        machine.set_policy("slab_accounting", accounting).unwrap().discard();
        let known = Plugins::new().groups("looks", NoopPolicy);
        let plugins = known.choose(looks.then_some("looks")).unwrap();
        machine.use_plugin(plugins.clone());
        machine.record_events(true);
        let name = "dentry".into();
        let dentry = CacheSpec { name, object_size: 192, reclaimable: true, account: true };
        let dentry = machine.create_cache(dentry).unwrap();
        world.may_starve = true;
        world.patience = 100_000;
        let (groups, tasks, kept) = (vec![ROOT], Vec::new(), Vec::new());
        let (work, events) = (Work::default(), Vec::new());
        Side { world, groups, tasks, kept, dentry, work, events, plugins }
    }

    fn perform(&mut self, op: &Op) {
        let Side { world, groups, tasks, kept, dentry, .. } = self;
        tasks.retain(|&(mm, ..)| !world.machine.is_exited(mm));
        let pick = |at: u8, groups: &[MemcgId]| groups[usize::from(at) % groups.len()];
        let task = |at: u8, tasks: &[(MmId, VmaId, VmaId)]| tasks[usize::from(at) % tasks.len()];
        match *op {
            Op::Create(at) if groups.len() < 60 => {
                let parent = pick(at, groups);
                groups.push(world.machine.create_memcg("g".into(), parent).unwrap());
            }
            Op::Remove(at) => {
                let memcg = pick(at, groups);
                let removed = world.machine.remove_memcg(memcg).map(Effects::collect);
                if let Ok(effects) = removed {
                    world.carry_out(effects);
                    groups.retain(|&other| other != memcg);
                }
            }
            Op::Spawn(at) if tasks.len() < 24 => {
                let mm = world.machine.create_mm(pick(at, groups)).unwrap();
                let file = world.machine.create_file(FILE_PAGES * PAGE_SIZE, true).unwrap();
                let mut map = |backing, pages| world.map(mm, backing, pages, Advice::Random);
                let heap = map(Backing::Anon, PAGES);
                tasks.push((mm, heap, map(Backing::File(file), FILE_PAGES)));
            }
            Op::Touch(at, page, how) if !tasks.is_empty() => {
                let (mm, heap, map) = task(at, tasks);
                for page in (u64::from(page)..).take(150) {
                    if world.machine.is_exited(mm) {
                        break;
                    }
                    if how < 160 {
                        world.access(mm, map, page % FILE_PAGES, how % 8 == 0);
                    } else {
                        world.access(mm, heap, page % PAGES, true);
                    }
                }
            }
            Op::Read(at, page) if !tasks.is_empty() => {
                let (mm, _, map) = task(at, tasks);
                for page in (u64::from(page)..).step_by(64).take(20) {
                    if !world.machine.is_exited(mm) {
                        world.access(mm, map, page % FILE_PAGES, false);
                    }
                }
            }
            Op::Exit(at) if !tasks.is_empty() => {
                let (mm, ..) = tasks.swap_remove(usize::from(at) % tasks.len());
                world.exit(mm);
            }
            Op::Write(at, control, size) if !tasks.is_empty() => {
                let memcg = pick(at, groups);
                let name = CONTROLS[usize::from(control) % CONTROLS.len()];
                let text = SIZES[usize::from(size) % SIZES.len()];
                let (mm, ..) = tasks[0];
                let _ = world.try_write_group(mm, memcg, name, text);
            }
            Op::Policy(at) => {
                let (name, value) = POLICIES[usize::from(at) % POLICIES.len()];
                world.machine.set_policy(name, value).unwrap().discard();
            }
            Op::Keep(at, nr) if !tasks.is_empty() => {
                let (mm, ..) = task(at, tasks);
                for _ in 0..nr {
                    if world.machine.is_exited(mm) {
                        break;
                    }
                    let gfp = pagetide_core::frames::gfp::Gfp::KERNEL;
                    let mut call = ProcessCall::kmem_alloc(mm, NodeId(0), *dentry, true, gfp);
                    if let Outcome::Object(object) = world.drive(&mut call) {
                        let kind = CachedKind::Dentry;
                        kept.push(world.machine.cache_object(object, None, kind).unwrap());
                    }
                }
            }
            Op::Use(at) => {
                for &kept in kept.iter().skip(usize::from(at)).take(20) {
                    world.machine.use_cached(kept);
                }
            }
            Op::TakeBack(at) if !kept.is_empty() => {
                let id = kept.swap_remove(usize::from(at) % kept.len());
                if let Some((object, _)) = world.machine.uncache(id) {
                    let cache = world.machine.cache_of_object(object);
                    world.machine.kmem_cache_free(cache, object, CPU).unwrap();
                }
            }
            Op::Drop => world.machine.drop_slab(CPU).discard(),
            Op::Plugin(kind) => {
                let odd = kind % 4 == 0;
                let chosen = match odd {
                    true => crate::strange::chosen(
                        usize::from(kind) % crate::strange::KINDS,
                        u64::from(kind),
                    ),
                    false => self.plugins.clone(),
                };
                world.machine.use_plugin(chosen);
            }
            _ => {}
        }
        world.kswapd();
        self.work.add(&self.world.machine.take_work());
        self.world.machine.take_events(&mut self.events);
    }

    /// Everything that must be equal on both machines.
    fn state(&mut self) -> (u64, u64, Work, Vec<TraceEvent>) {
        let mut machine = self.world.machine.clone();
        machine.use_plugin(None);
        let events = std::mem::take(&mut self.events);
        (machine.digest(), self.world.now, std::mem::take(&mut self.work), events)
    }
}

fn compare(ops: &[Op], accounting: &str, has_swap: bool) {
    let mut sides = [false, true].map(|looks| Side::new(accounting, has_swap, looks));
    for (at, op) in ops.iter().enumerate() {
        let [quick, plain] = sides.each_mut().map(|side| {
            side.perform(op);
            side.state()
        });
        assert_eq!(quick, plain, "{at}: {op:?}");
        if let Err(violation) = sides[0].world.machine.audit() {
            panic!("{at}: {op:?}: {violation}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn skipped_groups_have_nothing_to_reclaim(
        ops in prop::collection::vec(op(), 40..160),
        has_swap in any::<bool>(),
        accounting in prop::sample::select(vec!["per-object", "per-group-caches"]),
    ) {
        compare(&ops, accounting, has_swap);
    }
}

/// Many small groups, as in the bench: most visits are skipped, without any effect on the result.
#[test]
fn many_small_groups_are_as_if_each_were_looked_at() {
    for has_swap in [false, true] {
        let mut ops: Vec<Op> = (0..50).map(|at| Op::Create(at / 10 * 10)).collect();
        ops.extend((0..24).map(|at| Op::Spawn(at * 2 + 1)));
        for from in (0..FILE_PAGES as u16).step_by(150) {
            ops.extend((0..24).map(|task| Op::Touch(task, from, task * 10)));
        }
        compare(&ops, "per-object", has_swap);
    }
}
