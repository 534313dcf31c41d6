use super::*;
use crate::model::*;
use crate::op::{Op, RegionBacking};
use pagetide_testing::directory::TestDir;
use pagetide_testing::root;
use std::path::PathBuf;

mod blocks;
mod names_and_pipes;
mod objects;
mod service;

fn setup(files: Vec<File>, tasks: Vec<Task>) -> Setup {
    let node = NodeSetup { memory: 1 << 30, reserved: 0, movable: 0, zones: Vec::new() };
    let machine = MachineSetup { cpus: 1, nodes: vec![node], ..MachineSetup::default() };
    Setup {
        machine,
        sysctls: Vec::new(),
        policies: Default::default(),
        plugins: Default::default(),
        groups: Vec::new(),
        files,
        caches: Vec::new(),
        tasks,
        measure: None,
        requested_group_metrics: Vec::new(),
        measures_pathologies: false,
        time_limit_ns: 1,
    }
}

fn file(name: &str, size: u64) -> File {
    File { name: name.into(), size, sparse: true, metadata: false, disk: 0 }
}

fn task(phases: Vec<Workload>) -> Task {
    let phase = |(i, workload)| Phase { name: format!("p{i}"), workload };
    Task::new("t", phases.into_iter().enumerate().map(phase).collect())
}

fn ops_of(setup: &Setup, limit: usize) -> Vec<Op> {
    let mut program = Program::new(setup, 0, 1).unwrap();
    let mut ops = Vec::new();
    while let Some(op) = program.next_op().unwrap() {
        ops.push(op);
        assert!(ops.len() <= limit, "more than {limit} operations");
    }
    assert_eq!(program.next_op().unwrap(), None);
    ops
}

fn run(files: Vec<File>, phases: Vec<Workload>) -> Vec<Op> {
    ops_of(&setup(files, vec![task(phases)]), 1_000_000)
}

fn touched(region: &str, pages: u64, order: PageOrder) -> TouchWorkload {
    TouchWorkload {
        region: region.into(),
        pages,
        stride: 1,
        passes: 1,
        write: true,
        order,
        advice: Advice::Normal,
        compute_ns: 0,
        pace: None,
    }
}

fn touch(region: &str, pages: u64, order: PageOrder) -> Workload {
    Workload::Touch(touched(region, pages, order))
}

fn map(region: u32, backing: RegionBacking, pages: u64, executable: bool) -> Op {
    Op::Map { region, backing, pages, advice: Advice::Normal, executable }
}

fn pages_of(ops: &[Op]) -> Vec<u64> {
    let page = |op: &Op| match op {
        Op::Access { page, .. } => Some(*page),
        _ => None,
    };
    ops.iter().filter_map(page).collect()
}

fn working_set(anon: u64, file: u64, accesses: u64) -> WorkingSet {
    WorkingSet {
        anon: (anon > 0).then(|| ("anon".into(), anon)),
        file: (file > 0).then(|| (0, "data".into(), file, Advice::Random)),
        populate: false,
        accesses,
        anon_percent: 50,
        hot_access_percent: 80,
        hot_page_percent: 20,
        write_percent: 100,
        generator_seed: Some(1),
        compute_ns: 0,
        pace: None,
    }
}

#[test]
fn a_touch_is_framed_by_its_phase_and_maps_once() {
    let phases = vec![touch("a", 2, PageOrder::Sequential), touch("a", 3, PageOrder::Sequential)];
    let access = |page| Op::Access { region: 0, page, write: true };
    let expected = vec![
        Op::PhaseBegin { phase: 0 },
        map(0, RegionBacking::Anon, 3, false),
        access(0),
        access(1),
        Op::PhaseEnd { phase: 0 },
        Op::PhaseBegin { phase: 1 },
        access(0),
        access(1),
        access(2),
        Op::PhaseEnd { phase: 1 },
    ];
    assert_eq!(run(Vec::new(), phases), expected);
}

#[test]
fn loops_repeat_the_phases_on_the_same_regions() {
    let mut looped =
        task(vec![touch("a", 2, PageOrder::Sequential), Workload::Sleep(SleepWorkload { ns: 7 })]);
    looped.settings.loops = 3;
    let ops = ops_of(&setup(Vec::new(), vec![looped]), 100);
    assert_eq!(pages_of(&ops), [0, 1, 0, 1, 0, 1]);
    let count = |wanted: Op| ops.iter().filter(|op| **op == wanted).count();
    assert_eq!(count(Op::Sleep { ns: 7 }), 3);
    assert_eq!(count(Op::PhaseBegin { phase: 1 }), 3);
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Map { .. })).count(), 1);
}

#[test]
fn a_task_without_phases_or_loops_ends_at_once() {
    assert_eq!(run(Vec::new(), Vec::new()), []);
    let mut none = task(vec![Workload::Compute(Compute { ns: 1 })]);
    none.settings.loops = 0;
    assert_eq!(ops_of(&setup(Vec::new(), vec![none]), 1), []);
}

#[test]
fn scattered_pages_follow_the_prime() {
    let ops = run(Vec::new(), vec![touch("a", 1000, PageOrder::Scattered)]);
    let pages = pages_of(&ops);
    assert_eq!(pages[..4], [0, 787, 574, 361]);
    let mut sorted = pages;
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..1000));
}

#[test]
fn a_stride_leaves_pages_out() {
    let of = |pages, stride, order, passes| {
        let touch = TouchWorkload { stride, passes, ..touched("a", pages, order) };
        let ops = run(Vec::new(), vec![Workload::Touch(touch)]);
        let mapped = ops.iter().find_map(|op| match op {
            Op::Map { pages, .. } => Some(*pages),
            _ => None,
        });
        assert_eq!(mapped, Some(pages), "the region is as large");
        pages_of(&ops)
    };
    assert_eq!(of(1536, 512, PageOrder::Sequential, 2), [0, 512, 1024, 0, 512, 1024]);
    assert_eq!(
        of(1537, 512, PageOrder::Sequential, 1),
        [0, 512, 1024, 1536],
        "as far as it reaches"
    );
    assert_eq!(of(3, 512, PageOrder::Sequential, 1), [0]);
    // The order of 1000 pages, without a stride and with one.
    for order in
        [PageOrder::Scattered, PageOrder::Random, PageOrder::Zipf { exponent_hundredths: 100 }]
    {
        let dense: Vec<u64> = of(1000, 1, order, 1).iter().map(|page| page * 8).collect();
        assert_eq!(of(8000, 8, order, 1), dense, "{order:?}");
    }
}

#[test]
fn random_draws_continue_over_phases_and_passes() {
    let draws = |passes, phases| {
        let random = touched("a", 100, PageOrder::Random);
        let phase = Workload::Touch(TouchWorkload { passes, write: false, ..random });
        pages_of(&run(Vec::new(), vec![phase; phases]))
    };
    assert_eq!(draws(4, 1), draws(2, 2));
    assert_eq!(draws(4, 1)[..6], RANDOM_PINNED);
    assert!(draws(1, 1).iter().all(|page| *page < 100));
}

const RANDOM_PINNED: [u64; 6] = [79, 35, 83, 12, 9, 0];

#[test]
fn zipf_draws_are_scattered_ranks() {
    let order = PageOrder::Zipf { exponent_hundredths: 100 };
    let pages = pages_of(&run(Vec::new(), vec![touch("a", 1000, order)]));
    assert_eq!(pages.len(), 1000);
    let rank = |rank: u64| pages.iter().filter(|page| **page == rank * SCATTER % 1000).count();
    // 1000 / H(1000) = 133 draws of the first rank, 67 of the second.
    assert!((100..170).contains(&rank(0)), "{}", rank(0));
    assert!((40..95).contains(&rank(1)), "{}", rank(1));
    assert_eq!(pages[..6], ZIPF_PINNED);
}

const ZIPF_PINNED: [u64; 6] = [779, 313, 0, 509, 18, 133];

#[test]
fn writers_append_where_they_stopped() {
    let write = |bytes| {
        Workload::FileWrite(FileWriteWorkload {
            file: 0,
            bytes: Some(bytes),
            block: 4096,
            order: None,
        })
    };
    let ops = run(vec![file("f", 100)], vec![write(5000), write(1)]);
    let writes: Vec<Op> = ops.into_iter().filter(|op| matches!(op, Op::Write { .. })).collect();
    let expected = [(100, 4096), (4196, 904), (5100, 1)];
    let expected = expected.map(|(offset, len)| Op::Write { file: 0, offset, len });
    assert_eq!(writes, expected);
}

#[test]
fn an_endless_writer_stops_at_the_largest_file() {
    let size = FILE_SIZE_MAX - 8192;
    let write =
        Workload::FileWrite(FileWriteWorkload { file: 0, bytes: None, block: 4096, order: None });
    let ops = run(vec![file("f", size)], vec![write]);
    assert_eq!(ops.len(), 2 + 2);
}

#[test]
fn readers_wrap_round_the_end() {
    let read = block_reads(250, 64, PageOrder::Sequential);
    let reads = calls(100, vec![read]);
    assert_eq!(reads, [(0, 64), (64, 36), (0, 64), (64, 36), (0, 50)]);
}

fn block_reads(bytes: u64, block: u64, order: PageOrder) -> Workload {
    let (write_percent, log) = (0, None);
    Workload::FileRead(FileReadWorkload { file: 0, bytes, block, order, write_percent, log })
}

/// Offsets and lengths of the calls on a file of `size` bytes.
fn calls(size: u64, workloads: Vec<Workload>) -> Vec<(u64, u64)> {
    let call = |op: Op| match op {
        Op::Read { offset, len, .. } | Op::Write { offset, len, .. } => Some((offset, len)),
        _ => None,
    };
    run(vec![file("f", size)], workloads).into_iter().filter_map(call).collect()
}

#[test]
fn calls_follow_the_orders_of_pages() {
    let zipf = PageOrder::Zipf { exponent_hundredths: 100 };
    // 1000 blocks, the last of 10 bytes.
    let size = 999 * 64 + 10;
    let overwrite = |bytes, order| {
        let order = Some(order);
        Workload::FileWrite(FileWriteWorkload { file: 0, bytes: Some(bytes), block: 64, order })
    };
    let blocks = |workloads: Vec<Workload>| -> Vec<u64> {
        calls(size, workloads).iter().map(|(offset, _)| offset / 64).collect()
    };
    // Each block once, and then from the first again.
    let scattered = blocks(vec![block_reads(size + 64, 64, PageOrder::Scattered)]);
    assert_eq!(
        scattered,
        pages_of(&run(Vec::new(), vec![touch("a", 1000, PageOrder::Scattered)]))
            .into_iter()
            .chain([0])
            .collect::<Vec<_>>()
    );
    assert_eq!(
        calls(size, vec![overwrite(size + 1, PageOrder::Sequential)])[999..],
        [(63936, 10), (0, 1)]
    );
    for order in [PageOrder::Random, zipf] {
        let all = calls(size, vec![block_reads(1000 * 64, 64, order)]);
        assert_eq!(all.iter().map(|(_, len)| len).sum::<u64>(), 1000 * 64);
        assert!(all.iter().all(|(offset, len)| offset + len <= size && offset % 64 == 0));
        // Draws continue over phases; writes have draws of their own.
        let draws: Vec<u64> = all[..20].iter().map(|(offset, _)| offset / 64).collect();
        assert_eq!(blocks(vec![block_reads(5 * 64, 64, order); 4]), draws);
        let writes = blocks(vec![overwrite(20 * 64, order)]);
        assert_ne!(writes, draws);
        assert_eq!(blocks(vec![overwrite(10 * 64, order), overwrite(10 * 64, order)]), writes);
    }
    // The first ranks are the most popular blocks.
    let drawn = blocks(vec![block_reads(1000 * 64, 64, zipf)]);
    let rank = |rank: u64| drawn.iter().filter(|block| **block == rank * SCATTER % 1000).count();
    assert!((100..170).contains(&rank(0)) && (40..95).contains(&rank(1)));
    assert_eq!(drawn[..6], CALLS_PINNED);
}

const CALLS_PINNED: [u64; 6] = [509, 418, 534, 570, 209, 339];

#[test]
fn a_share_of_the_calls_writes() {
    let mixed = |log| {
        let (order, write_percent) = (PageOrder::Random, 25);
        let read =
            FileReadWorkload { file: 0, bytes: 64_000, block: 64, order, write_percent, log };
        let mut ops = run(vec![file("f", 6400), file("log", 10)], vec![Workload::FileRead(read)]);
        ops.retain(|op| matches!(op, Op::Read { .. } | Op::Write { .. }));
        ops
    };
    let writes = |ops: &[Op]| -> Vec<(usize, u64, u64)> {
        let write = |op: &Op| match *op {
            Op::Write { file, offset, len } => Some((file, offset, len)),
            _ => None,
        };
        ops.iter().filter_map(write).collect()
    };
    let in_place = mixed(None);
    assert_eq!(in_place.len(), 1000);
    let written = writes(&in_place);
    assert!((200..300).contains(&written.len()), "{}", written.len());
    assert!(written.iter().all(|(file, ..)| *file == 0));
    // The same calls write, one after the other, to the end of the log.
    let logged = mixed(Some(1));
    let appended: Vec<_> = (0..written.len() as u64).map(|at| (1, 10 + 64 * at, 64)).collect();
    assert_eq!(writes(&logged), appended);
    let reads = |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Read { .. })).count();
    assert_eq!(reads(&logged), reads(&in_place));
}

/// The generator of the reference data, in the slow and obvious way.
fn reference_accesses(
    anon: u64,
    file: u64,
    count: u64,
    write_percent: u64,
) -> Vec<(bool, u64, bool)> {
    let mut x: u128 = 1;
    let mut draw = || {
        x = (x * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % (1 << 64);
        (x >> 33) as u64
    };
    let mut accesses = Vec::new();
    for _ in 0..count {
        let is_anon = if anon > 0 && file > 0 { draw() % 100 < 50 } else { anon > 0 };
        let w = if is_anon { anon } else { file };
        let h = w * 20 / 100;
        let index = if draw() % 100 < 80 { draw() % h } else { h + draw() % (w - h) };
        let write = match write_percent {
            _ if !is_anon => false,
            0 => false,
            100 => true,
            percent => draw() % 100 < percent,
        };
        accesses.push((is_anon, index * 7_368_787 % w, write));
    }
    accesses
}

fn accesses_of(ops: &[Op], anon_region: Option<u32>) -> Vec<(bool, u64, bool)> {
    let access = |op: &Op| match *op {
        Op::Access { region, page, write } => Some((Some(region) == anon_region, page, write)),
        _ => None,
    };
    ops.iter().filter_map(access).collect()
}

#[test]
fn working_sets_match_the_definition() {
    for (anon, pages, write_percent) in
        [(73_728, 0, 100), (0, 98_304, 100), (36_864, 36_864, 100), (500, 700, 30), (500, 0, 0)]
    {
        let mut set = working_set(anon, pages, 10_000);
        set.write_percent = write_percent;
        let ops = run(vec![file("f", 98_304 * 4096)], vec![Workload::WorkingSet(set)]);
        let ours = accesses_of(&ops, (anon > 0).then_some(0));
        assert_eq!(ours, reference_accesses(anon, pages, 10_000, u64::from(write_percent)));
    }
}

#[test]
fn working_set_first_accesses_are_pinned() {
    let set = working_set(36_864, 36_864, 4);
    let ops = run(vec![file("f", 98_304 * 4096)], vec![Workload::WorkingSet(set)]);
    assert_eq!(accesses_of(&ops, Some(0)), WORKING_SET_PINNED);
}

const WORKING_SET_PINNED: [(bool, u64, bool); 4] =
    [(false, 6804, false), (false, 1961, false), (true, 10_611, true), (true, 36_234, true)];

#[test]
fn working_set_phases_continue_one_generator() {
    let phases = |count: usize, accesses| {
        let set = Workload::WorkingSet(working_set(1000, 2000, accesses));
        let ops = run(vec![file("f", 98_304 * 4096)], vec![set; count]);
        accesses_of(&ops, Some(0))
    };
    assert_eq!(phases(1, 4000), phases(4, 1000));
}

#[test]
fn populate_touches_anonymous_pages_before_file_pages() {
    let mut set = working_set(2, 3, 0);
    set.populate = true;
    let ops = run(vec![file("f", 3 * 4096)], vec![Workload::WorkingSet(set)]);
    let access = |region, page, write| Op::Access { region, page, write };
    assert!(matches!(ops[1], Op::Map { region: 0, backing: RegionBacking::Anon, pages: 2, .. }));
    let advice = Advice::Random;
    let backing = RegionBacking::File(0);
    assert_eq!(ops[2], Op::Map { region: 1, backing, pages: 3, advice, executable: false });
    let expected = [
        access(0, 0, true),
        access(0, 1, true),
        access(1, 0, false),
        access(1, 1, false),
        access(1, 2, false),
        Op::PhaseEnd { phase: 0 },
    ];
    assert_eq!(ops[3..], expected);
}

#[test]
fn degenerate_working_sets_stay_inside_the_region() {
    for (pages, hot_page_percent, hot_access_percent) in
        [(1, 20, 80), (3, 0, 100), (3, 100, 0), (5, 100, 50), (4, 20, 80), (1, 100, 100)]
    {
        let mut set = working_set(pages, 0, 1000);
        set.hot_page_percent = hot_page_percent;
        set.hot_access_percent = hot_access_percent;
        let ops = run(Vec::new(), vec![Workload::WorkingSet(set)]);
        let touched = pages_of(&ops);
        assert_eq!(touched.len(), 1000);
        assert!(touched.iter().all(|page| *page < pages));
    }
}

#[test]
fn a_task_that_is_not_there() {
    let none = Program::new(&setup(Vec::new(), Vec::new()), 3, 1);
    assert!(matches!(none, Err(ProgramError::NoSuchTask(3))));
}

/// A trace file in the directory of a test.
struct TraceFile(TestDir);

impl TraceFile {
    fn new(damage: impl Fn(&mut Vec<u8>)) -> Self {
        use pagetide_trace::{
            AccessKinds, Clock, FoldWindow, Header, Record, RegionKind, TraceRegion, TraceWriter,
        };
        let region = |kind, pages| TraceRegion { name: "r".into(), kind, pages, start: 0 };
        let code = RegionKind::File { key: 9, executable: true };
        let regions = vec![region(RegionKind::Anon, 5), region(code, 7)];
        let window = FoldWindow { pages: 1, time: 1 };
        let header = Header::new(Clock::Instructions, window, "test".into(), regions);
        let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
        for (region, page, kinds) in [(0, 4, AccessKinds::WRITE), (1, 6, AccessKinds::EXECUTE)] {
            writer
                .push(&Record { region, page, kinds, references: 1, time: 4000, bytes: 0 })
                .unwrap();
        }
        let (mut bytes, _) = writer.finish(0).unwrap();
        damage(&mut bytes);
        Self(TestDir::with("t.ptt", bytes))
    }

    fn path(&self) -> PathBuf {
        self.0.path("t.ptt")
    }

    fn workload(&self) -> Workload {
        Workload::Trace(TraceWorkload { path: self.path(), passes: 1, advice: None })
    }
}

#[test]
fn a_trace_is_replayed_and_its_regions_go() {
    let trace = TraceFile::new(|_| ());
    let mut looped = task(vec![touch("a", 1, PageOrder::Sequential), trace.workload()]);
    looped.settings.loops = 2;
    let ops = ops_of(&setup(Vec::new(), vec![looped]), 100);
    let pass = |first| {
        let (begin, end) = (Op::PhaseBegin { phase: 1 }, Op::PhaseEnd { phase: 1 });
        [vec![begin], compile(first), vec![end]].concat()
    };
    assert_eq!(ops[4..14], pass(1));
    assert_eq!(ops[17..], pass(3));
}

#[test]
fn a_damaged_trace_ends_the_program_with_an_error() {
    let trace = TraceFile::new(|bytes| bytes.truncate(bytes.len() / 2));
    let setup = setup(Vec::new(), vec![task(vec![trace.workload()])]);
    let mut program = Program::new(&setup, 0, 1).unwrap();
    let error = loop {
        match program.next_op() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the trace seems whole"),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().starts_with("task `t`: "), "{error}");
    assert!(program.next_op().unwrap().is_none());
}

#[test]
fn group_operations_name_their_phase() {
    let phases = vec![
        Workload::CreateGroup(CreateGroup { group: 0 }),
        Workload::JoinGroup(JoinGroup { group: Some(0) }),
        Workload::WriteControl(WriteControl {
            write: TargetWrite::read(None, "vm.drop_caches", "1", PageSize::Kib4).unwrap(),
        }),
        Workload::RemoveGroup(RemoveGroup { group: 0 }),
    ];
    let mut looped = task(phases);
    looped.settings.loops = 2;
    let ops = ops_of(&setup(Vec::new(), vec![looped]), 100);
    let phase =
        |phase| [Op::PhaseBegin { phase }, Op::Group { phase }, Op::PhaseEnd { phase }].into_iter();
    assert!(ops.into_iter().eq((0..2).flat_map(|_| (0..4).flat_map(phase))));
}

fn build(trace: PathBuf, units: u32) -> Build {
    Build {
        trace,
        units,
        sources: None,
        headers: None,
        objects: None,
        stack_order: 0,
        kernel_pages: 0,
        link: None,
        metadata: None,
        mix: None,
    }
}

/// The operations of the compiler of [`TraceFile`]; `first` is its first region.
fn compile(first: u32) -> Vec<Op> {
    vec![
        map(first, RegionBacking::Heap, 5, false),
        map(first + 1, RegionBacking::TraceFile { key: 9 }, 7, true),
        Op::Compute { ns: 2000 },
        Op::Access { region: first, page: 4, write: true },
        Op::Compute { ns: 2000 },
        Op::Access { region: first + 1, page: 6, write: false },
        Op::Unmap { region: first },
        Op::Unmap { region: first + 1 },
    ]
}

#[test]
fn a_unit_has_its_kernel_memory_for_its_life() {
    let trace = TraceFile::new(|_| ());
    let of = |stack_order, kernel_pages| {
        let build = Build { stack_order, kernel_pages, ..build(trace.path(), 2) };
        run(Vec::new(), vec![Workload::Build(build)])
    };
    let take = |slot, order| Op::AllocBlock { slot, order, request: BlockRequest::Kernel };
    let free = |slot| Op::FreeBlock { slot };
    let unit = |first, before: &[Op], after: &[Op]| [before, &compile(first), after].concat();
    let whole = |before: &[Op], after: &[Op]| {
        let units = [unit(0, before, after), unit(2, before, after)].concat();
        [vec![Op::PhaseBegin { phase: 0 }], units, vec![Op::PhaseEnd { phase: 0 }]].concat()
    };
    assert_eq!(of(0, 0), whole(&[], &[]));
    assert_eq!(of(2, 0), whole(&[take(0, 2)], &[free(0)]));
    assert_eq!(of(0, 2), whole(&[take(0, 0), take(1, 0)], &[free(0), free(1)]));
    assert_eq!(
        of(2, 2),
        whole(&[take(0, 2), take(1, 0), take(2, 0)], &[free(0), free(1), free(2)])
    );
}

#[test]
fn a_build_is_its_units_one_after_another() {
    let trace = TraceFile::new(|_| ());
    let whole =
        Build { sources: Some((0, 70_000)), objects: Some((1, 70_000)), ..build(trace.path(), 2) };
    let mut looped = task(vec![touch("a", 1, PageOrder::Sequential), Workload::Build(whole)]);
    looped.settings.loops = 2;
    let ops = ops_of(&setup(vec![file("src", 100_000), file("obj", 10)], vec![looped]), 100);
    let read = |offset, len| Op::Read { file: 0, offset, len };
    let write = |offset, len| Op::Write { file: 1, offset, len };
    let pass = |region: u32, offset: u64| {
        let mut ops = vec![Op::PhaseBegin { phase: 1 }, read(0, 65_536), read(65_536, 4464)];
        ops.extend(compile(region));
        ops.extend([write(offset, 65_536), write(offset + 65_536, 4464)]);
        // The second unit reads the next part of the sources, and wraps around at the end.
        ops.extend([read(70_000, 30_000), read(0, 40_000)]);
        ops.extend(compile(region + 2));
        ops.extend([write(offset + 70_000, 65_536), write(offset + 135_536, 4464)]);
        ops.push(Op::PhaseEnd { phase: 1 });
        ops
    };
    // The first phase begins, maps, accesses and ends; in the second loop it does not map.
    let first = pass(1, 10);
    assert_eq!(ops[4..4 + first.len()], first);
    // Every phase reads its sources from the front; objects are appended.
    assert_eq!(ops[4 + first.len() + 3..], pass(5, 140_010));
}

#[test]
fn headers_of_a_build_are_pinned() {
    let trace = TraceFile::new(|_| ());
    let headers = |units: u32, phases: usize| -> Vec<(u64, u64)> {
        let build = Build { headers: Some((0, 40_000)), ..build(trace.path(), units) };
        let ops = run(vec![file("h", 2 * 16_384 + 100)], vec![Workload::Build(build); phases]);
        let read = |op: &Op| match op {
            Op::Read { file: 0, offset, len } => Some((*offset, *len)),
            _ => None,
        };
        ops.iter().filter_map(read).collect()
    };
    let reads = headers(4, 1);
    assert_eq!(reads, HEADERS_PINNED);
    assert_eq!(reads.iter().map(|(_, len)| len).sum::<u64>(), 4 * 40_000);
    // One generator for all units and phases of the task.
    assert_eq!(headers(2, 2), reads);
    assert_eq!(headers(1, 4), reads);
}

/// Headers in three pieces, the last of 100 bytes. From a separate program.
const HEADERS_PINNED: [(u64, u64); 17] = [
    (0, 16384),
    (32768, 100),
    (32768, 100),
    (0, 16384),
    (16384, 7032),
    (16384, 16384),
    (16384, 16384),
    (0, 7232),
    (0, 16384),
    (32768, 100),
    (0, 16384),
    (0, 7132),
    (32768, 100),
    (0, 16384),
    (16384, 16384),
    (32768, 100),
    (0, 7032),
];

#[test]
fn a_build_whose_trace_is_gone_ends_with_an_error() {
    let trace = TraceFile::new(|_| ());
    let build = Build { objects: Some((0, 1)), ..build(trace.path(), 3) };
    let setup = setup(vec![file("o", 0)], vec![task(vec![Workload::Build(build)])]);
    drop(trace);
    let mut program = Program::new(&setup, 0, 1).unwrap();
    assert_eq!(program.next_op().unwrap(), Some(Op::PhaseBegin { phase: 0 }));
    assert!(program.next_op().unwrap_err().to_string().starts_with("task `t`: "));
    assert!(program.next_op().unwrap().is_none());
}

#[test]
fn the_program_computes_after_each_access_and_only_then() {
    let compute = |workload| {
        let ops = run(vec![file("data", 1 << 20)], vec![workload]);
        let is_access = |op: &Op| matches!(op, Op::Access { .. });
        for pair in ops.windows(2) {
            let computes = pair[1] == Op::Compute { ns: 70 };
            assert_eq!(computes, is_access(&pair[0]), "{pair:?}");
        }
        ops.iter().filter(|op| is_access(op)).count()
    };
    for order in [PageOrder::Sequential, PageOrder::Scattered, PageOrder::Random] {
        let plain = touched("a", 6, order);
        assert_eq!(compute(Workload::Touch(TouchWorkload { compute_ns: 70, ..plain.clone() })), 6);
        let pace = Some(Pace { bytes: 3000 * 4096, load: LoadCurve::default() });
        assert_eq!(compute(Workload::Touch(TouchWorkload { compute_ns: 70, pace, ..plain })), 6);
        let (region, advice) = ("map".into(), Advice::Normal);
        assert_eq!(
            compute(Workload::MappedRead(MappedRead {
                file: 0,
                pages: 9,
                stride: 2,
                order,
                advice,
                passes: 3,
                compute_ns: 70,
                region,
            })),
            15
        );
    }
    let set = WorkingSet { compute_ns: 70, ..working_set(3, 4, 50) };
    assert_eq!(compute(Workload::WorkingSet(set)), 50);
    // Draws continue as without it, over phases and passes.
    let draws = |compute_ns| {
        let plain = touched("a", 100, PageOrder::Random);
        let phase = Workload::Touch(TouchWorkload { compute_ns, passes: 2, ..plain });
        pages_of(&run(Vec::new(), vec![phase.clone(), phase]))
    };
    assert_eq!(draws(70), draws(0));
}

#[test]
fn links_read_what_units_wrote_and_append() {
    let trace = root().join("experiments/traces/cc1-zpipe.ptt");
    let mut files = vec![file("out", 100), file("inodes", 40_000)];
    files[1].metadata = true;
    let linked = |link| {
        Workload::Build(Build {
            objects: Some((0, 50_000)),
            metadata: Some((1, 10_000)),
            link,
            ..build(trace.clone(), 5)
        })
    };
    let of = |link| -> Vec<Op> {
        let mut ops = ops_of(&setup(files.clone(), vec![task(vec![linked(link)])]), 10_000_000);
        ops.retain(|op| matches!(op, Op::Read { .. } | Op::Write { .. }));
        ops
    };
    let on = |ops: &[Op], wanted: usize| -> Vec<Op> {
        let is = |op: &&Op| matches!(op, Op::Read { file, .. } | Op::Write { file, .. } if *file == wanted);
        ops.iter().filter(is).copied().collect()
    };
    let (read, write) = (
        |offset, len| Op::Read { file: 0, offset, len },
        |offset, len| Op::Write { file: 0, offset, len },
    );
    let ops = of(Some(Link { bytes: 70_000, units: 2 }));
    let first = [
        write(100, 50_000),
        write(50_100, 50_000),
        read(100, 65_536),
        read(65_636, 34_464),
        write(100_100, 65_536),
        write(165_636, 4464),
        write(170_100, 50_000),
    ];
    let found = on(&ops, 0);
    assert_eq!(found[..7], first);
    // The last unit is linked alone.
    let last = [write(340_100, 50_000), read(340_100, 50_000), write(390_100, 65_536)];
    assert_eq!(found[found.len() - 4..][..3], last);
    // Blocks of 4 KiB, the last of the file short: 10,000 bytes per unit, with or without links.
    let blocks = on(&ops, 1);
    assert_eq!(blocks, on(&of(None), 1));
    let mut sum = 0;
    for op in blocks {
        let Op::Write { offset, len, .. } = op else { panic!("{op:?}") };
        assert!(offset % 4096 == 0 && len <= 4096 && offset + len <= 40_000, "{op:?}");
        sum += len;
    }
    assert_eq!(sum, 50_000);
    // One link takes all objects.
    let reads = on(&of(Some(Link { bytes: 1, units: 1000 })), 0);
    let reads: Vec<&Op> = reads.iter().filter(|op| matches!(op, Op::Read { .. })).collect();
    assert_eq!(reads.first(), Some(&&read(100, 65_536)));
    assert_eq!(reads.len(), 4);
}
