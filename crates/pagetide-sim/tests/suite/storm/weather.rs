//! Fuzz configuration: generates a random setup from a seed, with a small machine, controls,
//! policies, files, and programs.

use super::more;
use pagetide_core::config::{KswapdPolicy, PolicySet};
use pagetide_core::control::ControlWrite;
use pagetide_scenario::build::Builder;
use pagetide_scenario::draws::prng::SplitMix64;
use pagetide_scenario::model::policies::PolicyChoices;
use pagetide_scenario::model::{
    Advice, Compute, DiskFaults, DiskSetup, File, FileReadWorkload, FileWriteWorkload,
    MachineSetup, MappedRead, NodeSetup, PageOrder, PageSize, Phase, Setup, SleepWorkload, Swap,
    Task, TaskSettings, TaskStart, TouchWorkload, WorkingSet, Workload,
};
use pagetide_scenario::names::{DiskModel, NameSet};

pub const MIB: u64 = 1 << 20;
pub const PAGE: u64 = 4096;

/// A random generator.
pub struct RandomDraw(pub SplitMix64);

impl RandomDraw {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }
}

fn disk(draw: &mut RandomDraw, name: &str) -> DiskSetup {
    let faulty = draw.one_in(3);
    let ppm =
        |draw: &mut RandomDraw| if faulty { draw.of(&[0, 1000, 100_000, 1_000_000]) } else { 0 };
    DiskSetup {
        name: name.into(),
        model: draw.of(DiskModel::ALL),
        read_latency_ns: None,
        write_latency_ns: None,
        read_shape: None,
        write_shape: None,
        read_bandwidth: None,
        write_bandwidth: draw.of(&[None, None, Some(1 << 20)]),
        queue_depth: draw.of(&[None, None, Some(1)]),
        rotational: false,
        faults: DiskFaults {
            read_error_ppm: ppm(draw),
            write_error_ppm: ppm(draw),
            slow_ppm: ppm(draw),
            slow_factor: 10,
        },
    }
}

fn machine(draw: &mut RandomDraw) -> MachineSetup {
    let nr_nodes = if draw.one_in(3) { 2 } else { 1 };
    let nodes = (0..nr_nodes)
        .map(|_| {
            let memory = draw.of(&[2, 3, 4, 6, 8, 12, 17, 24, 32, 64]) * MIB / nr_nodes;
            let movable = if draw.one_in(5) { memory / 2 / PAGE * PAGE } else { 0 };
            NodeSetup { memory, reserved: 0, movable, zones: Vec::new() }
        })
        .collect();
    let disks = vec![disk(draw, "a"), disk(draw, "b")];
    let nr_areas = draw.of(&[0, 0, 1, 1, 1, 3]);
    let swap = (0..nr_areas)
        .map(|_| Swap {
            disk: draw.below(2) as usize,
            size: draw.of(&[PAGE, 100 * PAGE, 256 * PAGE, MIB, 16 * MIB, 256 * MIB]),
            full_after_pages: draw.of(&[None, None, Some(0), Some(1), Some(300)]),
            priority: draw.of(&[None, Some(-3), Some(5), Some(5)]),
            zram: None,
        })
        .collect();
    MachineSetup {
        cpus: 1 + draw.below(4) as u16,
        page_size: PageSize::Kib4,
        nodes,
        disks,
        swap,
        ..MachineSetup::default()
    }
}

fn sysctls(draw: &mut RandomDraw) -> Vec<ControlWrite> {
    let values: [(&str, &[&str]); 16] = [
        ("vm.swappiness", &["0", "1", "100", "200"]),
        ("vm.page-cluster", &["0", "1", "5", "31"]),
        ("vm.fault_around_bytes", &["4096", "16384", "2097152"]),
        ("block.read_ahead_kb", &["0", "4", "1024"]),
        ("vm.dirty_bytes", &["8192", "1048576"]),
        ("vm.dirty_background_bytes", &["4096", "65536"]),
        ("vm.dirty_ratio", &["0", "100"]),
        ("vm.dirty_background_ratio", &["0", "100"]),
        ("vm.dirty_writeback_centisecs", &["0", "1"]),
        ("vm.dirty_expire_centisecs", &["0", "1"]),
        ("vm.laptop_mode", &["1"]),
        ("vm.watermark_scale_factor", &["1", "3000"]),
        ("vm.watermark_boost_factor", &["0", "100000"]),
        ("vm.min_free_kbytes", &["0", "64", "2000"]),
        ("vm.lowmem_reserve_ratio", &["1 1 1 1", "0 0 0 0"]),
        ("vm.extra_free_kbytes", &["0", "500"]),
    ];
    let mut chosen = Vec::new();
    for (name, texts) in values {
        // Two mutually exclusive controls in one file are an error of the loader, so avoid them.
        if draw.one_in(5) {
            chosen.push(more::sysctl(name, draw.of(texts)));
        }
    }
    chosen
}

fn policies(draw: &mut RandomDraw) -> PolicyChoices {
    let mut policies = PolicyChoices::default();
    let mut set = |name: &str, value: &str| policies.choose(more::choice(name, value));
    if draw.one_in(3) {
        set("kswapd", "linux-2.6.37");
    }
    let direct = draw.of(&["", "", "linux-2.6.37", "linux-2.6.35"]);
    if !direct.is_empty() {
        set("direct_reclaim", direct);
    }
    if draw.one_in(3) {
        set("per_cpu_lists", "linux-2.6.37");
    }
    if draw.one_in(3) {
        set("watermarks", "derived");
    }
    policies
}

fn order(draw: &mut RandomDraw) -> PageOrder {
    draw.of(&[
        PageOrder::Sequential,
        PageOrder::Scattered,
        PageOrder::Random,
        PageOrder::Zipf { exponent_hundredths: 100 },
    ])
}

fn workload(draw: &mut RandomDraw, files: &[File], memory: u64, number: usize) -> Workload {
    let file = draw.below(files.len() as u64) as usize;
    let file_pages = files[file].size / PAGE;
    let pages = 1 + draw.below(memory / PAGE);
    let mapped = 1 + draw.below(file_pages);
    let advice = draw.of(&[Advice::Normal, Advice::Random, Advice::Sequential]);
    let block = draw.of(&[100, 512, 4096, 65536, 300_000]);
    match draw.below(9) {
        0 => Workload::FileWrite(FileWriteWorkload {
            file,
            bytes: Some(draw.below(block * 100)),
            block,
            order: None,
        }),
        1 => Workload::FileRead(FileReadWorkload {
            file,
            bytes: draw.below(block * 100),
            block,
            order: PageOrder::Sequential,
            write_percent: 0,
            log: None,
        }),
        2 => Workload::MappedRead(MappedRead {
            file,
            pages: mapped,
            stride: draw.of(&[1, 1, 1, 3, 512]),
            order: order(draw),
            advice,
            passes: 1 + draw.below(2) as u32,
            compute_ns: 0,
            region: format!("map{number}"),
        }),
        3..=5 => Workload::Touch(TouchWorkload {
            region: format!("heap{number}"),
            pages,
            stride: draw.of(&[1, 1, 1, 3, 512]),
            passes: 1 + draw.below(2) as u32,
            write: !draw.one_in(4),
            order: order(draw),
            advice: Advice::Normal,
            compute_ns: 0,
            pace: None,
        }),
        6 => Workload::WorkingSet(WorkingSet {
            anon: Some((format!("set{number}"), pages)),
            file: draw.one_in(2).then(|| (file, format!("setmap{number}"), mapped, advice)),
            populate: draw.one_in(2),
            accesses: draw.below(20_000),
            anon_percent: 50,
            hot_access_percent: 80,
            hot_page_percent: 20,
            write_percent: draw.of(&[0, 50, 100]),
            generator_seed: None,
            compute_ns: 0,
            pace: None,
        }),
        7 => Workload::Compute(Compute { ns: draw.below(50_000_000) }),
        _ => Workload::Sleep(SleepWorkload { ns: draw.below(300_000_000) }),
    }
}

/// The setup of a seed.
pub fn setup(seed: u64) -> Setup {
    let mut setup = setup_without_groups(seed);
    more::add_groups(&mut setup, seed);
    more::add_blocks(&mut setup, seed);
    more::add_objects(&mut setup, seed);
    more::add_services(&mut setup, seed);
    more::compress_swap(&mut setup, seed);
    more::enable_zswap(&mut setup, seed);
    more::enlarge_pages(&mut setup, seed);
    more::compact(&mut setup, seed);
    more::advise_and_lock(&mut setup, seed);
    more::use_generations(&mut setup, seed);
    more::write_to_groups(&mut setup, seed);
    follow_a_kernel(&mut setup, seed);
    cut_short(&mut setup);
    setup
}

/// A third of the storms run on the policies of a kernel, where nothing else has been chosen.
fn follow_a_kernel(setup: &mut Setup, seed: u64) {
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x6b65_726e_656c_2121));
    if draw.one_in(3) {
        setup.policies.follow(draw.of(PolicySet::ALL));
    }
}

/// Shortens storms with a kswapd that may spin. Up to 4.11 kswapd never gives up.
/// While a zone has pages that count as reclaimable but are not scanned (lists of one page, groups
/// without swap), it goes through all priorities again and again, which is also slow to simulate. A
/// service gives it time to spin, because its threads wait for requests.
fn cut_short(setup: &mut Setup) {
    if setup.policies.of().unwrap_or(KswapdPolicy::Linux61) != KswapdPolicy::Linux61 {
        let phases = setup.tasks.iter().flat_map(|task| &task.phases);
        let mut services = phases.filter(|phase| matches!(phase.workload, Workload::Service(_)));
        let most = if services.next().is_some() { 100_000_000 } else { 1_000_000_000 };
        setup.time_limit_ns = setup.time_limit_ns.min(most);
    }
}

fn setup_without_groups(seed: u64) -> Setup {
    let mut draw = RandomDraw(SplitMix64::new(seed));
    let machine = machine(&mut draw);
    let memory: u64 = machine.nodes.iter().map(|node| node.memory).sum();
    let files: Vec<File> = (0..3)
        .map(|i| File {
            name: format!("file{i}"),
            size: draw.of(&[PAGE, 100 * PAGE, MIB + 1, memory / 2, memory * 2]),
            sparse: draw.one_in(3),
            metadata: false,
            disk: draw.below(2) as usize,
        })
        .collect();
    let nr_tasks = 1 + draw.below(5) as usize;
    let tasks = (0..nr_tasks)
        .map(|id| Task {
            name: format!("task{id}"),
            group: None,
            start: TaskStart {
                delay_ns: draw.below(20_000_000),
                after: (id > 0 && draw.one_in(4)).then(|| draw.below(id as u64) as usize),
            },
            background: id > 0 && draw.one_in(5),
            until: None,
            settings: TaskSettings {
                nice: draw.below(40) as i8 - 20,
                loops: 1 + draw.below(2) as u32,
                ..TaskSettings::default()
            },
            content: None,
            resident: Vec::new(),
            resident_file: None,
            restart_ns: None,
            phases: (0..1 + draw.below(3) as usize)
                .map(|number| Phase {
                    name: format!("phase{number}"),
                    workload: workload(&mut draw, &files, memory, number),
                })
                .collect(),
        })
        .collect();
    let mut setup = calm();
    setup.machine = machine;
    setup.sysctls = sysctls(&mut draw);
    setup.policies = policies(&mut draw);
    setup.files = files;
    setup.tasks = tasks;
    setup.time_limit_ns = draw.of(&[2_000_000_000, 20_000_000_000, 200_000_000_000]);
    setup
}

/// A machine with plenty of memory and a task that touches one megabyte: no reclaim.
pub fn calm() -> Setup {
    let touch = Builder::new().set("name", "touch").set("workload", "touch").set("region", "heap");
    let task = Builder::new().set("name", "task").push("phase", touch.set("size", "1MiB"));
    let machine = Builder::new().set("machine.memory", "64MiB").set("time_limit", "2s");
    let mut setup =
        machine.push("task", task).setup().unwrap_or_else(|mistakes| panic!("{mistakes}"));
    setup.machine.disks.clear();
    setup
}
