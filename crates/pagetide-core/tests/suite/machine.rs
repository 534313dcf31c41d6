//! Scenarios and random operations on a whole machine, with the audit after every step.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{
    BackgroundCompaction, CompactionCapture, CompactionPolicy, Config, DirectReclaimPolicy,
    KswapdPolicy, LruPolicy, PcpPolicy, PolicySet, Thp, ThpDefrag,
};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::frames::watermark::WatermarkInputs;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::reclaim::plugin::NamedPolicy;
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{NodeId, PAGE_SIZE};
use proptest::prelude::*;

fn small(config: Config) -> TestWorld {
    TestWorld::of(24, 2, config, 1 << 16)
}

#[test]
fn anonymous_memory_beyond_ram_goes_to_swap_and_comes_back() {
    let mut world = small(Config::default());
    world.audit = false;
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let pages = 8000;
    let heap = world.map(mm, Backing::Anon, pages, Advice::Normal);
    for page in 0..pages {
        world.access(mm, heap, page, true);
        if page % 500 == 0 {
            world.machine.audit().unwrap();
        }
    }
    assert!(world.count(Event::Pswpout) > 1000);
    let mut majors = 0;
    for page in 0..pages {
        majors += u64::from(world.access(mm, heap, page, false) == Some(Outcome::Major));
    }
    world.settle_and_audit();
    assert!(majors > 100, "{majors} major faults");
    assert_eq!(world.count(Event::Pgmajfault), majors);
    assert!(world.count(Event::Pswpin) >= majors);

    world.exit(mm);
    world.machine.audit().unwrap();
    assert_eq!(world.stat(NodeStat::NrAnonPages), 0);
    assert_eq!(world.machine.memcgs()[0].charged, u64::from(world.machine.swap().used()));
}

#[test]
fn a_sequential_mapped_read_faults_as_linux_counts() {
    // Read-ahead of 32 pages: one fault per page plus one retried fault per window.
    let config = Config { fault_around_pages: 1, ..Config::default() };
    let mut world = small(config);
    world.audit = false;
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let file = world.machine.create_file(2048 * PAGE_SIZE, true).unwrap();
    let map = world.map(mm, Backing::File(file), 2048, Advice::Normal);
    world.access_all((mm, map), 0..2048, false);
    world.machine.audit().unwrap();
    // The first window is read around the fault, with its mark at 24; the others start at theirs.
    assert_eq!(world.count(Event::Pgfault), 2048 + 1 + 2048 / 32);
    assert_eq!(world.count(Event::Pgmajfault), 1);
}

#[test]
fn random_advice_faults_twice_a_page() {
    let mut world = small(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let file = world.machine.create_file(64 * PAGE_SIZE, true).unwrap();
    let map = world.map(mm, Backing::File(file), 64, Advice::Random);
    for page in 0..64 {
        assert_eq!(world.access(mm, map, page, false), Some(Outcome::Major));
    }
    assert_eq!(world.count(Event::Pgfault), 128);
    assert_eq!(world.count(Event::Pgmajfault), 64);
}

#[test]
fn a_failed_swap_read_is_an_error_and_the_page_can_be_tried_again() {
    let mut world = small(Config { page_cluster: 0, ..Config::default() });
    world.audit = false;
    let (mm, heap) = world.heap(8000, Advice::Normal);
    world.fill((mm, heap), 0..8000);
    world.settle();
    let swapped = (0..8000).find(|&page| !world.machine.is_in_core(heap, page)).unwrap();
    world.fail_every = 1;
    assert_eq!(world.access(mm, heap, swapped, true), Some(Outcome::IoError));
    world.machine.audit().unwrap();
}

/// A world in which the second disk request fails and the first has completed.
fn second_request_fails() -> (TestWorld, MmId, pagetide_core::units::FileId) {
    let mut world = small(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let file = world.machine.create_file(64 * PAGE_SIZE, false).unwrap();
    world.drive(&mut ProcessCall::read(mm, NodeId(0), file, 0, 1, Default::default()));
    world.settle();
    world.machine.drop_pagecache(CPU).discard();
    world.fail_every = 2;
    (world, mm, file)
}

#[test]
fn a_page_of_a_failed_read_ahead_is_read_again_alone() {
    let (mut world, mm, file) = second_request_fails();
    let readahead = Default::default();
    let mut call = ProcessCall::read(mm, NodeId(0), file, 0, PAGE_SIZE, readahead);
    assert_eq!(world.drive(&mut call), Outcome::Major);
    world.machine.audit().unwrap();
    world.fail_every = 1;
    let mut call = ProcessCall::read(mm, NodeId(0), file, PAGE_SIZE, PAGE_SIZE, readahead);
    assert_eq!(world.drive(&mut call), Outcome::IoError);
}

#[test]
fn a_mapped_page_of_a_failed_read_ahead_is_read_again_alone() {
    let (mut world, mm, file) = second_request_fails();
    let map = world.map(mm, Backing::File(file), 64, Advice::Normal);
    assert_eq!(world.access(mm, map, 30, false), Some(Outcome::Major));
    world.fail_every = 1;
    assert_eq!(world.access(mm, map, 32, false), Some(Outcome::IoError));
    world.fail_every = 0;
    assert_ne!(world.access(mm, map, 32, false), Some(Outcome::IoError));
    world.machine.audit().unwrap();
}

#[test]
fn without_swap_the_largest_task_is_killed_and_the_rest_goes_on() {
    let mut world = TestWorld::of(24, 1, Config::default(), 0).unaudited();
    let big = world.machine.create_mm(Machine::ROOT).unwrap();
    let small = world.machine.create_mm(Machine::ROOT).unwrap();
    let heap = world.map(big, Backing::Anon, 8000, Advice::Normal);
    let other = world.map(small, Backing::Anon, 4000, Advice::Normal);
    world.fill((big, heap), 0..4000);
    for page in 0..4000 {
        let outcome = world.access(small, other, page, true);
        assert_ne!(outcome, Some(Outcome::NoMemory), "page {page}");
    }
    assert_eq!(world.count(Event::OomKill), 1);
    world.machine.audit().unwrap();
}

#[derive(Clone, Debug)]
enum Operation {
    Access { vma: usize, page: u64, write: bool },
    Read { file: usize, page: u64, pages: u64 },
    Write { file: usize, page: u64, bytes: u64 },
    Complete,
    Kswapd,
    Flusher,
    Unmap { vma: usize },
    Map { vma: usize },
    DropCaches,
    AllocBlock { order: u8, request: usize },
    FreeBlock { at: usize },
    CompactMemory,
    Kcompactd,
    Copies { held: bool },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => (0..4usize, 0..3000u64, any::<bool>())
            .prop_map(|(vma, page, write)| Operation::Access { vma, page, write }),
        3 => (0..2usize, 0..2500u64, 1..80u64)
            .prop_map(|(file, page, pages)| Operation::Read { file, page, pages }),
        3 => (0..2usize, 0..2500u64, 1..100_000u64)
            .prop_map(|(file, page, bytes)| Operation::Write { file, page, bytes }),
        4 => Just(Operation::Complete),
        3 => Just(Operation::Kswapd),
        2 => Just(Operation::Flusher),
        1 => (0..4usize).prop_map(|vma| Operation::Unmap { vma }),
        1 => (0..4usize).prop_map(|vma| Operation::Map { vma }),
        1 => Just(Operation::DropCaches),
        5 => (0..11u8, 0..4usize)
            .prop_map(|(order, request)| Operation::AllocBlock { order, request }),
        3 => (0..64usize).prop_map(|at| Operation::FreeBlock { at }),
        1 => Just(Operation::CompactMemory),
        2 => Just(Operation::Kcompactd),
        1 => any::<bool>().prop_map(|held| Operation::Copies { held }),
    ]
}

fn run_operations(
    operations: &[Operation],
    config: Config,
    fail_every: u64,
    plugins: Option<NamedPolicy>,
) {
    // Tiny, so that everything is under pressure all the time.
    let mut machine = Machine::new(&[NodeSpec::x86_64(6 << 20, 0, 0)], 4, config).unwrap();
    machine.swapon(SwapOptions::new(4096).rotational(true));
    machine.use_plugin(plugins);
    let mut world = TestWorld::new(machine);
    world.nr_cpus = 4;
    world.fail_every = fail_every;
    world.fail_copies = fail_every;
    let mm: Vec<MmId> = (0..2).map(|_| world.machine.create_mm(Machine::ROOT).unwrap()).collect();
    let files = [
        world.machine.create_file(3000 * PAGE_SIZE, false).unwrap(),
        world.machine.create_file(3000 * PAGE_SIZE, true).unwrap(),
    ];
    let map = |machine: &mut Machine, vma: usize| -> VmaId {
        let backing = match vma {
            0 | 1 => Backing::Anon,
            2 => Backing::File(files[0]),
            _ => Backing::File(files[1]),
        };
        machine.mmap(mm[vma % 2], backing, 3000, Advice::Normal, vma == 3).unwrap()
    };
    let mut vmas: Vec<Option<VmaId>> =
        (0..4).map(|vma| Some(map(&mut world.machine, vma))).collect();
    for operation in operations {
        match *operation {
            Operation::Access { vma, page, write } => {
                // A range of pages, so that a few operations fill the machine.
                for page in (page..3000).take(60) {
                    if let Some(id) = vmas[vma].filter(|_| !world.machine.is_exited(mm[vma % 2])) {
                        world.access(mm[vma % 2], id, page, write);
                    }
                }
            }
            Operation::Read { file, page, pages } => {
                let len = pages * PAGE_SIZE;
                let readahead = Default::default();
                let offset = page * PAGE_SIZE;
                let mut call =
                    ProcessCall::read(mm[0], NodeId(0), files[file], offset, len, readahead);
                world.drive(&mut call);
            }
            Operation::Write { file, page, bytes } => {
                let offset = page * PAGE_SIZE + bytes % 100;
                world.drive(&mut ProcessCall::write(mm[0], NodeId(0), files[file], offset, bytes));
            }
            Operation::Complete => world.complete_one(),
            Operation::Kswapd => world.kswapd(),
            Operation::Flusher => world.flusher(),
            Operation::Unmap { vma } => {
                let id = vmas[vma].take();
                if let Some(id) = id.filter(|_| !world.machine.is_exited(mm[vma % 2])) {
                    world.munmap(id);
                    world.machine.audit().unwrap();
                }
            }
            Operation::Map { vma } => {
                if vmas[vma].is_none() && !world.machine.is_exited(mm[vma % 2]) {
                    vmas[vma] = Some(map(&mut world.machine, vma));
                }
            }
            Operation::DropCaches => {
                world.machine.drop_pagecache(CPU).discard();
                world.machine.audit().unwrap();
            }
            Operation::AllocBlock { order, request } => {
                let gfp = [Gfp::KERNEL, Gfp::ATOMIC, Gfp::KERNEL.with(Gfp::HIGH), Gfp::TRANSHUGE];
                if !world.machine.is_exited(mm[0]) {
                    world.drive(&mut ProcessCall::alloc_pages(
                        mm[0],
                        NodeId(0),
                        order,
                        gfp[request],
                    ));
                }
            }
            Operation::FreeBlock { at } => {
                let blocks = world.machine.kernel_blocks(mm[0]);
                if let Some(&pfn) = blocks.get(at.min(blocks.len().saturating_sub(1))) {
                    assert!(world.machine.free_kernel_block(mm[0], pfn, CPU));
                    world.machine.audit().unwrap();
                }
            }
            Operation::CompactMemory => {
                world.drive(&mut ProcessCall::compact_memory(mm[1], NodeId(0)));
            }
            Operation::Kcompactd => {
                world.now += 600_000_000;
                world.kcompactd();
            }
            Operation::Copies { held } => {
                world.holds_copies = held;
                world.finish_copies();
            }
        }
    }
    world.finish_copies();
    world.settle_and_audit();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_keep_every_invariant(
        operations in proptest::collection::vec(operation(), 1..300),
        old in any::<bool>(),
        kernel in proptest::sample::select(PolicySet::ALL),
        huge in any::<bool>(),
        page_cluster in 0..4u32,
        fail_every in prop_oneof![Just(0u64), 2..20u64],
        compaction in 0..6usize,
        pcp in proptest::sample::select(PcpPolicy::ALL),
    ) {
        let (background, compaction, capture) = [
            (BackgroundCompaction::KcompactdEarly, CompactionPolicy::Linux61, CompactionCapture::On),
            (BackgroundCompaction::KcompactdEarly, CompactionPolicy::Linux61, CompactionCapture::Off),
            (BackgroundCompaction::Kcompactd, CompactionPolicy::Linux61, CompactionCapture::On),
            (BackgroundCompaction::Off, CompactionPolicy::Linux45, CompactionCapture::Off),
            (BackgroundCompaction::Kcompactd, CompactionPolicy::Linux45, CompactionCapture::Off),
            (BackgroundCompaction::Kswapd, CompactionPolicy::Linux45, CompactionCapture::Off),
        ][compaction];
        let of_2016 = compaction == CompactionPolicy::Linux45 && !old;
        let mut config = Config {
            page_cluster,
            watermarks: WatermarkInputs { pcp, ..WatermarkInputs::default() },
            background_compaction: background,
            compaction,
            compaction_capture: capture,
            compaction_proactiveness: if fail_every == 3 { 100 } else { 20 },
            defrag_mode: fail_every % 4 == 2,
            kswapd: match (old, of_2016) {
                (true, _) => KswapdPolicy::Linux2637,
                (false, true) => KswapdPolicy::Linux45,
                (false, false) => KswapdPolicy::Linux61,
            },
            direct_reclaim:
                if old { DirectReclaimPolicy::Linux2637 } else { DirectReclaimPolicy::Linux61 },
            thp: if huge { Thp::Always } else { Thp::Never },
            thp_defrag: if huge { ThpDefrag::Always } else { ThpDefrag::default() },
            ..Config::default()
        };
        if fail_every % 3 == 1 {
            kernel.choices().iter().for_each(|&choice| config.choose(choice));
        }
        run_operations(&operations, config, fail_every, None);
    }

    /// The same with plug-ins that give strange answers.
    #[test]
    fn strange_policies_keep_every_invariant(
        operations in proptest::collection::vec(operation(), 1..200),
        huge in any::<bool>(),
        lru in proptest::sample::select(LruPolicy::ALL),
        fail_every in prop_oneof![Just(0u64), 2..20u64],
        kind in 0..crate::strange::KINDS,
        seed in any::<u64>(),
    ) {
        let config = Config {
            lru,
            thp: if huge { Thp::Always } else { Thp::Never },
            thp_defrag: if huge { ThpDefrag::Always } else { ThpDefrag::default() },
            ..Config::default()
        };
        run_operations(&operations, config, fail_every, crate::strange::chosen(kind, seed));
    }
}
