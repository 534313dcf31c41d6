//! Additional features of some storms, each with its own random generator: compaction, groups,
//! kernel memory, zram and zswap, larger pages, objects.

use super::weather::{RandomDraw, PAGE};
use pagetide_core::config::{
    CgroupVersion, ControlValue, Policy, PolicyChoice, Sysctl, ZeroPagesPolicy, ZsmallocPolicy,
    ZswapPolicy,
};
use pagetide_core::control::{ControlWrite, GroupControlWrite};
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zswap::ZswapOptions;
use pagetide_scenario::draws::prng::SplitMix64;
use pagetide_scenario::model::object_mix::{Lifetimes, ObjectMix, ObjectRow};
use pagetide_scenario::model::{
    Advice, AdviseWorkload, BlockRequest, CacheSetup, CreateGroup, DiscardWorkload, Group,
    HighOrder, Interleave, JoinGroup, KernelCache, KernelMemoryWorkload, KernelObjects, LoadCurve,
    Lock, Pace, PageOrder, PageSize, Phase, RegionPart, RemoveGroup, ServiceWorkload, Setup,
    TargetWrite, Task, TaskSettings, TaskStart, TouchWorkload, Workload, WriteControl, ZramSetup,
};
use pagetide_scenario::names::{Compressor, LockKind, MadviseKind, NameSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The policy variant with these names.
pub fn choice(policy: &str, variant: &str) -> PolicyChoice {
    Policy::find(policy).unwrap().choice(variant).unwrap()
}

/// A write to a control file of a machine; its pages may be enlarged later.
pub fn sysctl(name: &str, text: &str) -> ControlWrite {
    ControlWrite::read(name, text, PageSize::Kib4).unwrap()
}

/// A workload that writes a control file of a group or the machine.
pub fn write_control(group: Option<usize>, name: &str, text: &str) -> Workload {
    let write = TargetWrite::read(group, name, text, PageSize::Kib4).unwrap();
    Workload::WriteControl(WriteControl { write })
}

/// Half of the storms use compaction and huge pages, with random policies.
pub fn compact(setup: &mut Setup, seed: u64) {
    if seed % 4 < 2 {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x636f_6d70_6163_7421));
    let mut set = |name: &str, value: &str| {
        setup.policies.choose(choice(name, value));
    };
    let of_2016 = draw.one_in(2);
    if of_2016 {
        set("kswapd", "linux-4.5");
        set("compaction", "linux-4.5");
        set("background_compaction", draw.of(&["kswapd", "kcompactd", "kcompactd-early", "off"]));
    } else {
        set("compaction", draw.of(&["linux-6.1", "linux-6.1", "linux-4.5"]));
        set("background_compaction", draw.of(&["kcompactd-early", "kcompactd", "off"]));
        set("compaction_capture", draw.of(&["on", "off"]));
    }
    set("thp", draw.of(&["always", "always", "madvise", "never"]));
    set(
        "slab_accounting",
        draw.of(&["per-object", "per-group-caches", "per-group-caches-reparent", "off"]),
    );
    set("slub", draw.of(&["linux-6.1", "linux-5.5"]));
    set("thp_defrag", draw.of(&["always", "defer", "defer+madvise", "madvise", "never"]));
    let mut write = |name: &str, text: &str| setup.sysctls.push(sysctl(name, text));
    write("vm.compaction_proactiveness", draw.of(&["0", "20", "100"]));
    write("vm.defrag_mode", draw.of(&["0", "0", "1"]));
    write("vm.extfrag_threshold", draw.of(&["500", "0", "1000"]));
    write("transparent_hugepage.khugepaged.scan_sleep_millisecs", draw.of(&["10000", "10", "0"]));
    let task = draw.below(setup.tasks.len() as u64) as usize;
    setup.tasks[task].phases.push(Phase {
        name: "compact".into(),
        workload: write_control(None, "vm.compact_memory", "1"),
    });
}

/// Every third storm: phases that call mlock() or madvise() for a region of an earlier phase, tasks
/// with an oom_score_adj, groups with memory.oom.group, and groups with CPU controls.
pub fn advise_and_lock(setup: &mut Setup, seed: u64) {
    if !seed.is_multiple_of(3) {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x6d61_6476));
    setup.machine.memory_recursiveprot = draw.one_in(2);
    for task in &mut setup.tasks {
        task.settings.oom_score_adj = draw.of(&[0, 0, -1000, 500]);
        for at in (1..=task.phases.len()).rev() {
            let Workload::Touch(TouchWorkload { region, pages, .. }) =
                &task.phases[at - 1].workload
            else {
                continue;
            };
            let first = draw.below(*pages);
            let part = RegionPart {
                region: region.clone(),
                file: None,
                maps: None,
                advice: Advice::Normal,
                first,
                pages: draw.one_in(2).then(|| 1 + draw.below(pages - first)),
            };
            let workload = if draw.one_in(3) {
                Workload::Lock(Lock { how: draw.of(LockKind::ALL), part })
            } else {
                let advice = draw.of(MadviseKind::ALL);
                let whole = RegionPart { first: 0, pages: None, ..part.clone() };
                let part = if advice.needs_whole_region() { whole } else { part };
                // MADV_WILLNEED does not apply to anonymous memory.
                let advice =
                    if advice == MadviseKind::WillNeed { MadviseKind::Cold } else { advice };
                Workload::Advise(AdviseWorkload { advice, part })
            };
            task.phases.insert(at, Phase { name: format!("advise{at}"), workload });
        }
    }
    for group in &mut setup.groups {
        for (name, texts) in [
            ("memory.oom.group", ["0", "1"]),
            ("cpu.weight", ["1", "10000"]),
            ("cpu.max", ["2000 10000", "max"]),
        ] {
            if draw.one_in(3) {
                group.controls.push(GroupControlWrite::read(name, draw.of(&texts)).unwrap());
            }
        }
    }
}

/// Every second storm orders pages by generation, with some mechanisms off, and tasks that turn
/// generations off and on. Uses a separate generator.
pub fn use_generations(setup: &mut Setup, seed: u64) {
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x006d_676c_7275));
    if draw.one_in(2) {
        return;
    }
    setup.policies.choose(choice("lru", "mglru"));
    setup.policies.choose(choice("mglru", draw.of(&["linux-6.1", "linux-6.12"])));
    for name in ["look_around", "page_table_walks", "bloom_filter", "tiers", "memcg_lru"] {
        setup.policies.choose(choice(&format!("mglru_{name}"), draw.of(&["on", "on", "off"])));
    }
    let enabled = ["7", "7", "7", "3", "1", "0"];
    setup.sysctls.push(sysctl("lru_gen.enabled", draw.of(&enabled)));
    setup.sysctls.push(sysctl("lru_gen.min_ttl_ms", draw.of(&["0", "0", "0", "1", "100"])));
    for task in &mut setup.tasks {
        if draw.one_in(4) {
            let write = write_control(None, "lru_gen.enabled", draw.of(&enabled));
            let at = draw.below(task.phases.len() as u64 + 1) as usize;
            task.phases.insert(at, Phase { name: "switch".into(), workload: write });
        }
    }
}

/// Group controls and values to write.
const GROUP_WRITES: [(&str, &[&str]); 9] = [
    ("memory.max", &["0", "1M", "3M", "8M", "max"]),
    ("memory.high", &["0", "512K", "2M", "6M"]),
    ("memory.low", &["1M", "4M", "max"]),
    ("memory.min", &["256K", "1M"]),
    ("memory.swap.max", &["0", "1M"]),
    ("memory.soft_limit_in_bytes", &["0", "1M", "4M"]),
    ("memory.limit_in_bytes", &["1M", "4M"]),
    ("memory.swappiness", &["0", "10", "200"]),
    ("memory.global_shrink_priority", &["0", "3", "8", "11"]),
];

/// Adds groups to every second setup, with a separate generator so that everything else in the
/// setups is unchanged.
pub fn add_groups(setup: &mut Setup, seed: u64) {
    if seed.is_multiple_of(2) {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x6772_6f75_7073));
    let nr = 1 + draw.below(5) as usize;
    let write = |draw: &mut RandomDraw| {
        let (name, texts) = draw.of(&GROUP_WRITES);
        GroupControlWrite::read(name, draw.of(texts)).unwrap()
    };
    for id in 0..nr {
        let parent = (id > 0 && draw.one_in(2)).then(|| draw.below(id as u64) as usize);
        let absent = parent.is_some_and(|parent| !setup.groups[parent].at_start);
        let is_bare =
            parent.is_some_and(|at| !setup.groups[at].has_memory || seed.is_multiple_of(3));
        let mut controls: Vec<_> = (0..draw.below(4)).map(|_| write(&mut draw)).collect();
        if is_bare {
            controls.clear();
        }
        setup.groups.push(Group {
            name: format!("group{id}"),
            parent,
            controls,
            at_start: !absent && !draw.one_in(4),
            has_memory: !is_bare,
        });
    }
    for (name, values) in [
        ("lru", ["linux-5.4", "linux-3.3", "linux-6.1", "linux-6.1", "linux-6.1"]),
        ("soft_limit", ["tree", "hierarchical", "two-pass", "two-pass", "off"]),
        ("soft_limit_direct", ["full", "full", "bounded", "ignored", "full"]),
        ("soft_limit_node", ["global", "local", "global", "global", "local"]),
        ("shrink_priority", ["guarded", "posted", "hierarchical", "off", "guarded"]),
        ("group_walk", ["whole", "shared", "whole", "shared", "whole"]),
    ] {
        setup.policies.choose(choice(name, draw.of(&values)));
    }
    let groups = setup.groups.clone();
    for task in &mut setup.tasks {
        let group = draw.below(nr as u64) as usize;
        task.group = groups[group].at_start.then_some(group);
        for number in 0..draw.below(4) {
            let group = draw.below(nr as u64) as usize;
            let workload = match draw.below(6) {
                0 => Workload::CreateGroup(CreateGroup { group }),
                1 => Workload::RemoveGroup(RemoveGroup { group }),
                2 => Workload::JoinGroup(JoinGroup { group: (!draw.one_in(3)).then_some(group) }),
                3 => {
                    let text = draw.of(&["64K", "1M", "2M swappiness=0", "1G"]);
                    write_control(Some(group), "memory.reclaim", text)
                }
                _ => {
                    let write = TargetWrite::Group(group, write(&mut draw));
                    Workload::WriteControl(WriteControl { write })
                }
            };
            let at = draw.below(task.phases.len() as u64 + 1) as usize;
            task.phases.insert(at, Phase { name: format!("groups{number}"), workload });
        }
    }
}

/// Every fifth storm with groups: tasks write control files of groups with and without a memory
/// controller (the latter have files of the CPU controller only). Uses a separate generator.
pub fn write_to_groups(setup: &mut Setup, seed: u64) {
    if !matches!(seed % 10, 3 | 7) {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x6770_7563_7075));
    let files = [
        ("cpu.weight", ["1", "100", "10000"]),
        ("cpu.max", ["1000 10000", "3000 100000", "max"]),
        ("memory.oom.group", ["0", "1", "1"]),
    ];
    for task in &mut setup.tasks {
        for number in 0..1 + draw.below(4) {
            let group = draw.below(setup.groups.len() as u64) as usize;
            let (name, texts) = draw.of(&files);
            let workload = write_control(Some(group), name, draw.of(&texts));
            let at = draw.below(task.phases.len() as u64 + 1) as usize;
            task.phases.insert(at, Phase { name: format!("file{number}"), workload });
        }
    }
}

/// Adds kernel memory, holes and tasks with `until` to every third setup, with a separate
/// generator.
pub fn add_blocks(setup: &mut Setup, seed: u64) {
    if !seed.is_multiple_of(3) {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x626c_6f63_6b73));
    let request = |draw: &mut RandomDraw| {
        draw.of(&[
            BlockRequest::Kernel,
            BlockRequest::KernelHigh,
            BlockRequest::Reclaimable,
            BlockRequest::Nowait,
            BlockRequest::Atomic,
        ])
    };
    let pages = setup.files.iter().map(|file| file.size.div_ceil(PAGE)).collect::<Vec<u64>>();
    for (id, task) in setup.tasks.iter_mut().enumerate() {
        for number in 0..draw.below(4) {
            let file = draw.below(3) as usize;
            let region = format!("holes{number}");
            let workloads = match draw.below(3) {
                0 => vec![Workload::HighOrder(HighOrder {
                    order: draw.below(11) as u8,
                    attempts: 1 + draw.below(50) as u32,
                    interval_ns: draw.of(&[0, 1000, 1_000_000]),
                    request: request(&mut draw),
                    hold: draw.one_in(2),
                })],
                1 => vec![Workload::KernelMemory(KernelMemoryWorkload {
                    order: draw.of(&[0, 0, 1, 2, 3, 5]),
                    blocks: 1 + draw.below(100) as u32,
                    count: Some(draw.below(500)),
                    interval_ns: draw.of(&[0, 1000, 100_000]),
                    request: request(&mut draw),
                })],
                _ => vec![
                    Workload::Interleave(Interleave {
                        keep_mapped: false,
                        region: region.clone(),
                        pages: 1 + draw.below(pages[file].min(1000)),
                        file,
                    }),
                    Workload::Discard(DiscardWorkload {
                        region,
                        first: draw.below(3),
                        every: 1 + draw.below(3),
                    }),
                ],
            };
            let at = draw.below(task.phases.len() as u64 + 1) as usize;
            let named = workloads
                .into_iter()
                .enumerate()
                .map(|(part, workload)| Phase { name: format!("blocks{number}{part}"), workload });
            task.phases.splice(at..at, named);
        }
        if id > 0 && draw.one_in(4) {
            task.until = Some(draw.below(id as u64) as usize);
            task.background = true;
        }
    }
}

/// Every third storm has a service with one or more threads, and touches memory at a rate.
pub fn add_services(setup: &mut Setup, seed: u64) {
    if !seed.is_multiple_of(3) {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x7365_7276_6963_6573));
    let memory: u64 = setup.machine.nodes.iter().map(|node| node.memory / PAGE).sum();
    let load = |draw: &mut RandomDraw| {
        let half = 1 + draw.below(200_000_000);
        let percent = draw.of(&[0, 20, 100]);
        draw.of(&[LoadCurve::default(), LoadCurve::new(&[(0, percent), (half, 100), (half, 50)])])
    };
    for number in 0..1 + draw.below(2) {
        let file = draw.one_in(2).then(|| draw.below(setup.files.len() as u64) as usize);
        let size = file.map_or(0, |file| setup.files[file].size);
        let part = |draw: &mut RandomDraw| draw.of(&[0, 100, 4096, 30_000]).min(size);
        let heap = draw.one_in(2).then(|| (format!("served{number}"), 1 + draw.below(memory)));
        let duration = draw.one_in(2).then(|| 1 + draw.below(400_000_000));
        let service = ServiceWorkload {
            poisson: draw.one_in(2),
            rate: draw.of(&[200_000, 2_000_000, 20_000_000]),
            load: load(&mut draw),
            duration_ns: duration,
            requests: (duration.is_none() || draw.one_in(2)).then(|| 1 + draw.below(200)),
            threads: draw.of(&[1, 1, 2, 3, 8]),
            queue: draw.of(&[0, 1, 10, 1 << 20]),
            deadline_ns: draw.one_in(2).then_some(1_000_000),
            cpu_ns: draw.of(&[0, 1000, 100_000, 1_000_000]),
            cpu_exponential: draw.one_in(2),
            touches: if heap.is_some() { 1 + draw.below(50) as u32 } else { 0 },
            heap,
            populate: draw.one_in(2),
            order: draw.of(&[PageOrder::Random, PageOrder::Zipf { exponent_hundredths: 99 }]),
            write_percent: draw.of(&[0, 30, 100]),
            file,
            read: part(&mut draw),
            write: part(&mut draw),
            allocate: draw.of(&[0, 0, 1, 17, 600]),
            grow: if duration.is_some() { draw.of(&[0, 1 << 20, 64 << 20]) } else { 0 },
        };
        let task = draw.below(setup.tasks.len() as u64) as usize;
        let phases = &mut setup.tasks[task].phases;
        let at = draw.below(phases.len() as u64 + 1) as usize;
        let workload = Workload::Service(service);
        phases.insert(at, Phase { name: format!("service{number}"), workload });
    }
    for phase in setup.tasks.iter_mut().flat_map(|task| &mut task.phases) {
        if let Workload::Touch(touch) = &mut phase.workload {
            // At most half a second, except with a load curve.
            let bytes = touch.pages * u64::from(touch.passes) * PAGE * (2 + draw.below(8));
            touch.pace = draw.one_in(4).then(|| Pace { bytes, load: load(&mut draw) });
        }
    }
}

/// In two fifths of the storms zswap is in front of the areas on disks.
pub fn enable_zswap(setup: &mut Setup, seed: u64) {
    if seed % 5 < 3 {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x7a73_7761_7070_7a73));
    let zswap = draw.of(&[ZswapPolicy::Linux61, ZswapPolicy::Linux612]);
    setup.policies.choose(zswap);
    if zswap == ZswapPolicy::Linux612 {
        setup.policies.choose(ZeroPagesPolicy::Linux612);
        setup.policies.choose(ZsmallocPolicy::Linux612);
    }
    setup.machine.zswap = Some(ZswapOptions {
        compressor: draw.of(&Compressor::ALL),
        max_pool_percent: draw.of(&[0, 1, 5, 50]),
        accept_threshold_percent: draw.of(&[0, 90, 100]),
        shrinker: draw.one_in(2),
    });
    for group in &mut setup.groups {
        if draw.one_in(3) && setup.policies.of() != Some(CgroupVersion::V1) {
            let text = draw.of(&["0", "64K", "1M"]);
            group.controls.push(GroupControlWrite::read("memory.zswap.max", text).unwrap());
        }
    }
}

/// In a third of the storms the swap areas are zram devices, all or one, and pages are of any kind.
pub fn compress_swap(setup: &mut Setup, seed: u64) {
    if seed % 3 != 1 {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x7a72_616d_7a72_616d));
    let nr = draw.of(&[1, 3]);
    for area in setup.machine.swap.iter_mut().take(nr) {
        area.zram = Some(ZramSetup {
            algorithm: draw.of(&Compressor::ALL),
            mem_limit: draw.of(&[None, None, Some(0), Some(40 * PAGE)]),
            backing: None,
        });
    }
    let mix = |draw: &mut RandomDraw| ContentMix {
        zero: draw.of(&[0, 140, 500]),
        same: draw.of(&[0, 30]),
        incompressible: draw.of(&[0, 60, 400]),
        mean_size: draw.of(&[82, 1517, 4096]),
    };
    setup.machine.content = mix(&mut draw);
    for task in &mut setup.tasks {
        task.content = draw.one_in(2).then(|| mix(&mut draw));
    }
}

/// Enlarges the pages of two setups in five, with a separate generator. Sizes drawn in pages stay
/// in pages; groups and calls keep their bytes, which may then be fractions of pages.
pub fn enlarge_pages(setup: &mut Setup, seed: u64) {
    if seed % 5 < 3 {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x7061_6765_7369_7a65));
    let page_size = draw.of(&[PageSize::Kib16, PageSize::Kib64]);
    let factor = page_size.bytes() / PAGE;
    setup.machine.page_size = page_size;
    for node in &mut setup.machine.nodes {
        node.memory *= factor;
        node.movable *= factor;
    }
    for swap in &mut setup.machine.swap {
        swap.size *= factor;
    }
    for file in &mut setup.files {
        file.size *= factor;
    }
    for write in &mut setup.sysctls {
        if let ControlWrite::Sysctl(Sysctl::DirtyBytes, ControlValue::Number(bytes)) = write {
            *bytes *= i128::from(factor);
        }
    }
}

/// Objects of four caches: dentries and inodes that are left to the kernel, short-lived buffers,
/// and large objects.
fn small_mix() -> ObjectMix {
    let row = |name: &str, object_size, reclaimable, account, allocs, lifetimes| ObjectRow {
        cache: KernelCache { name: name.into(), object_size, reclaimable },
        account,
        allocs_thousandths: allocs,
        lifetimes,
    };
    let left = Lifetimes { unit: 2000, cached: 7000, kept: 1000, ..Lifetimes::default() };
    let short = Lifetimes { within: [5000, 3000, 1000], unit: 1000, ..Lifetimes::default() };
    ObjectMix {
        recorded: "drawn".into(),
        unit: "a gust".into(),
        start: None,
        rows: vec![
            row("dentry", 192, true, true, 20_500, left),
            row("ext4_inode_cache", 1176, true, true, 9_250, left),
            row("kmalloc-cg-512", 512, false, true, 30_000, short),
            row("kmalloc-64", 64, false, false, 12_000, short),
            row("task_struct", 9792, false, true, 2_000, short),
        ],
        start_rows: Vec::new(),
    }
}

/// Adds a task that allocates kernel objects to half of the setups, in some group, and writes that
/// drop them, with a separate generator.
pub fn add_objects(setup: &mut Setup, seed: u64) {
    if matches!(seed % 4, 0 | 3) {
        return;
    }
    let mut draw = RandomDraw(SplitMix64::new(seed ^ 0x6f62_6a65_6374_7321));
    let mix = Arc::new(small_mix());
    setup.caches = mix.caches();
    for (policy, values) in [
        ("slab_accounting", ["per-object", "per-group-caches", "per-group-caches-reparent", "off"]),
        ("slub", ["linux-6.1", "linux-5.5", "linux-6.1", "linux-5.5"]),
    ] {
        if setup.policies.get(Policy::find(policy).unwrap()).is_none() {
            setup.policies.choose(choice(policy, draw.of(&values)));
        }
    }
    if draw.one_in(2) {
        // The owner vector of a slab must fit in the largest kmalloc object.
        let (name, largest) = draw.of(&[("dentry", 5), ("kmalloc-64", 3), ("task_struct", 5)]);
        setup.machine.caches.push(CacheSetup {
            name: name.into(),
            order: Some(draw.of(&[2, 3, largest])),
            min_partial: draw.of(&[None, Some(0), Some(100)]),
            cpu_partial: draw.of(&[None, Some(0)]),
        });
    }
    if draw.one_in(2) {
        let pressure = draw.of(&["0", "10", "1000", "100000"]);
        setup.sysctls.push(sysctl("vm.vfs_cache_pressure", pressure));
    }
    let there = (0..setup.groups.len()).filter(|&group| setup.groups[group].at_start);
    let there: Vec<usize> = there.collect();
    let group = (!there.is_empty()).then(|| there[draw.below(there.len() as u64) as usize]);
    let mut phases = Vec::new();
    for number in 0..1 + draw.below(3) {
        let workload = Workload::KernelObjects(KernelObjects {
            mix: Arc::clone(&mix),
            path: PathBuf::new(),
            units: 1 + draw.below(60) as u32,
            interval_ns: draw.of(&[0, 0, 1_000_000]),
            compute_ns: draw.of(&[0, 100_000]),
            start: false,
        });
        phases.push(Phase { name: format!("objects{number}"), workload });
        let (control, text) = draw.of(&[
            ("vm.drop_caches", "2"),
            ("vm.drop_caches", "3"),
            ("slab.dentry.shrink", "1"),
            ("slab.dentry.min_partial", "0"),
            ("slab.kmalloc-64.cpu_partial", "0"),
        ]);
        let workload = write_control(None, control, text);
        phases.push(Phase { name: format!("write{number}"), workload });
    }
    if let (Some(group), true) = (group, draw.one_in(3)) {
        let text = draw.of(&["0", "200K", "1M", "-1"]);
        let workload = write_control(Some(group), "memory.kmem.limit_in_bytes", text);
        let at = draw.below(phases.len() as u64 + 1) as usize;
        phases.insert(at, Phase { name: "limit".into(), workload });
    }
    setup.tasks.push(Task {
        group,
        start: TaskStart { delay_ns: draw.below(20_000_000), after: None },
        settings: TaskSettings { loops: 1 + draw.below(3) as u32, ..TaskSettings::default() },
        ..Task::new("objects", phases)
    });
}
