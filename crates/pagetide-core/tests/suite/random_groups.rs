//! Random operations on a tree of memory groups under every policy, with the audit after each.
//! (groups.rs has scenarios.)

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{Config, Policy, PolicyChoice};
use pagetide_core::frames::page::{Page, PageFlags};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::Effects;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::reclaim::plugin::NamedPolicy;
use pagetide_core::units::{MemcgId, NodeId, PAGE_SIZE};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Create(u8),
    Remove(u8),
    Spawn(u8),
    Touch(u8, u16, bool),
    Read(u8, u16),
    Move(u8, u8),
    Exit(u8),
    Write(u8, u8, u8),
    Policy(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => any::<u8>().prop_map(Op::Create),
        2 => any::<u8>().prop_map(Op::Remove),
        2 => any::<u8>().prop_map(Op::Spawn),
        12 => (any::<u8>(), any::<u16>(), any::<bool>()).prop_map(|(t, p, w)| Op::Touch(t, p, w)),
        4 => (any::<u8>(), any::<u16>()).prop_map(|(t, p)| Op::Read(t, p)),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(t, g)| Op::Move(t, g)),
        1 => any::<u8>().prop_map(Op::Exit),
        3 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(g, c, v)| Op::Write(g, c, v)),
        1 => any::<u8>().prop_map(Op::Policy),
    ]
}

const CONTROLS: [&str; 10] = [
    "memory.max",
    "memory.high",
    "memory.low",
    "memory.min",
    "memory.swap.max",
    "memory.soft_limit_in_bytes",
    "memory.global_shrink_priority",
    "memory.swappiness",
    "memory.reclaim",
    "memory.limit_in_bytes",
];
const SIZES: [&str; 8] = ["0", "1", "64k", "512K", "1M", "2M", "4M", "12"];

/// Every variant that can be chosen while there are groups.
fn choices() -> impl Iterator<Item = PolicyChoice> {
    let at_any_time = |policy: &&Policy| !policy.is_chosen_at_boot();
    Policy::ALL.iter().filter(at_any_time).flat_map(|policy| policy.variants()).copied()
}

/// Compares memory.stat of each group with a scan of all frames.
fn sizes_are_those_of_the_pages(machine: &Machine) {
    let groups = (1..machine.memcgs().len()).map(|id| MemcgId(id as u16));
    for group in groups {
        let parent_of = |at: &MemcgId| machine.memcgs()[*at].parent;
        let above = |at| {
            let up = |at: &MemcgId| Some(parent_of(at)).filter(|parent| parent.is_some());
            std::iter::successors(Some(at), up)
        };
        let is_in = |page: &Page| page.memcg.is_some() && above(page.memcg).any(|at| at == group);
        let count = |is: &dyn Fn(&Page) -> bool| -> u64 {
            let pages = machine.mem.pages.opened().filter(|(_, page)| is_in(page) && is(page));
            pages.map(|(_, page)| page.nr_pages() * PAGE_SIZE).sum()
        };
        let file = |page: &Page| page.has(PageFlags::FILE);
        let naive = [
            ("anon", count(&|page| page.is_anon() && page.mapcount > 0)),
            ("file", count(&file)),
            ("file_mapped", count(&|page| file(page) && page.mapcount > 0)),
            ("file_dirty", count(&|page| file(page) && page.has(PageFlags::DIRTY))),
            ("swapcached", count(&|page| page.has(PageFlags::SWAPCACHE))),
        ];
        let sizes = machine.memory_stat_sizes(group);
        for (name, found) in naive {
            // A removed group has no row.
            if let Some((_, size)) = sizes.iter().find(|(row, _)| *row == name) {
                assert_eq!(*size, found, "{group:?} {name}");
            }
        }
    }
}

/// After any sequence of operations all counts add up, no removed group is charged, and every call
/// ends or can be abandoned.
/// Returns the number of calls that starved.
fn run_groups(ops: Vec<Op>, plugins: Option<NamedPolicy>, patience: u32) -> u32 {
    let mut world = TestWorld::of(8, 2, Config::default(), 1 << 16).unaudited().with_working_disk();
    world.machine.use_plugin(plugins);
    world.patience = patience;
    world.may_starve = true;
    let file = world.machine.create_file(600 * PAGE_SIZE, false).unwrap();
    let mut groups = vec![ROOT];
    let mut tasks: Vec<(MmId, VmaId, VmaId)> = Vec::new();
    for op in ops {
        let pick = |at: u8, groups: &[MemcgId]| groups[usize::from(at) % groups.len()];
        tasks.retain(|&(mm, ..)| !world.machine.is_exited(mm));
        match op {
            Op::Create(at) if groups.len() < 12 => {
                let parent = pick(at, &groups);
                let made = world.machine.create_memcg("g".into(), parent).unwrap();
                world.machine.charge_counters(made, CPU, 1);
                groups.push(made);
            }
            Op::Remove(at) => {
                let memcg = pick(at, &groups);
                if world.machine.remove_memcg(memcg).is_ok() {
                    groups.retain(|&other| other != memcg);
                }
            }
            Op::Spawn(at) if tasks.len() < 8 => {
                let mm = world.machine.create_mm(pick(at, &groups)).unwrap();
                let heap = world.map(mm, Backing::Anon, 1200, Advice::Normal);
                let map = Backing::File(file);
                let map = world.map(mm, map, 600, Advice::Normal);
                tasks.push((mm, heap, map));
            }
            Op::Touch(at, page, write) if !tasks.is_empty() => {
                let (mm, heap, map) = tasks[usize::from(at) % tasks.len()];
                // A range of pages, so that limits are met.
                for page in (u64::from(page)..).take(40) {
                    if world.machine.is_exited(mm) {
                        break;
                    }
                    if page % 5 == 0 {
                        world.access(mm, map, page % 600, write);
                    } else {
                        world.access(mm, heap, page % 1200, write);
                    }
                }
            }
            Op::Read(at, page) if !tasks.is_empty() => {
                let (mm, ..) = tasks[usize::from(at) % tasks.len()];
                if !world.machine.is_exited(mm) {
                    let offset = u64::from(page) % 500 * PAGE_SIZE;
                    let len = 64 * PAGE_SIZE;
                    let state = Default::default();
                    let mut read = ProcessCall::read(mm, NodeId(0), file, offset, len, state);
                    world.drive(&mut read);
                }
            }
            Op::Move(at, to) if !tasks.is_empty() => {
                let (mm, ..) = tasks[usize::from(at) % tasks.len()];
                world.machine.move_mm(mm, pick(to, &groups)).unwrap().discard();
            }
            Op::Exit(at) if !tasks.is_empty() => {
                let (mm, ..) = tasks.swap_remove(usize::from(at) % tasks.len());
                world.exit(mm);
            }
            Op::Write(at, control, size) if !tasks.is_empty() => {
                let memcg = pick(at, &groups);
                let name = CONTROLS[usize::from(control) % CONTROLS.len()];
                let text = SIZES[usize::from(size) % SIZES.len()];
                let (mm, ..) = tasks[0];
                let _ = world.try_write_group(mm, memcg, name, text);
            }
            Op::Policy(at) => {
                let choice = choices().nth(usize::from(at) % choices().count()).unwrap();
                world.machine.choose(choice).unwrap().discard();
            }
            _ => {}
        }
        tasks.retain(|&(mm, ..)| !world.machine.is_exited(mm));
        if let Err(violation) = world.machine.audit() {
            panic!("{violation}");
        }
        sizes_are_those_of_the_pages(&world.machine);
    }
    tasks.retain(|&(mm, ..)| !world.machine.is_exited(mm));
    for (mm, ..) in tasks {
        world.exit(mm);
    }
    world.settle();
    for &memcg in groups[1..].iter().rev() {
        let _ = world.machine.remove_memcg(memcg).map(Effects::discard);
    }
    while let Some(&memcg) =
        groups[1..].iter().find(|&&at| world.machine.groups.memcg_is_online(at))
    {
        // Children first, in any order of ids.
        let ids: Vec<MemcgId> = world.machine.memcg_ids().collect();
        let _ = memcg;
        for &memcg in ids[1..].iter().rev() {
            world.machine.remove_memcg(memcg).unwrap().discard();
        }
    }
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[ROOT].memory.usage, 0);
    world.nr_starved
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn groups_add_up(ops in prop::collection::vec(op(), 1..120)) {
        run_groups(ops, None, 20_000);
    }

    #[test]
    fn groups_add_up_under_strange_policies(
        ops in prop::collection::vec(op(), 1..120),
        kind in 0..crate::strange::KINDS,
        seed in any::<u64>(),
    ) {
        // Strange answers make a reclaim long: one page per descent, four walks per priority.
        run_groups(ops, crate::strange::chosen(kind, seed), 1_000_000);
    }
}

/// A fault on a page with a slot charged to a full group with no running task: no task can be
/// killed, and the fault retries for ever, as in Linux.
#[test]
fn a_full_group_whose_only_task_has_not_begun_starves_others() {
    use Op::{Create, Move, Spawn, Touch, Write};
    let ops = vec![
        Spawn(0),
        Create(0),
        Create(0),
        Move(0, 1),
        Touch(0, 6842, true),
        Create(0),
        Move(0, 2),
        Write(1, 0, 0),
        Spawn(0),
        Spawn(3),
        Spawn(1),
        Touch(0, 15281, false),
    ];
    assert_eq!(run_groups(ops, None, 20_000), 1);
}

/// A task in a group without room, under each policy: its read ends.
#[test]
fn a_read_without_room_ends_under_every_policy() {
    for at in 0..choices().count() as u8 {
        let before = [Op::Create(0), Op::Spawn(7), Op::Create(127), Op::Create(43)];
        let ops =
            before.into_iter().chain([Op::Policy(at), Op::Write(89, 69, 106), Op::Read(0, 439)]);
        run_groups(ops.collect(), None, 20_000);
    }
}
