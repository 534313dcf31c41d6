//! Checks of a setup before its run: the memory that the simulation needs, the tuning of slab
//! caches, and the names of the output files.
//!
//! Invariant: a setup is rejected if and only if its run, or the whole process, would fail.

pub use crate::run::LRU_GEN;
use crate::run::{
    bd_stat_file, caches_of, choose_policies, file_caches_of, files_of_groups, has_generations,
    mm_stat_file, tune_cache, SimError,
};
use pagetide_core::config::Config;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::frames::page::Page;
use pagetide_core::process::Machine;
use pagetide_scenario::model::{Resident, Setup, Workload};
use pagetide_scenario::workload::Program;

/// Memory of the small machine on which cache tuning is tested.
const SMALL: u64 = 64 << 20;
/// Bytes of a page-table entry, of a slot of a file, of a slot of swap.
const ENTRY: u64 = 4;
const FILE_SLOT: u64 = 8;
const SWAP_SLOT: u64 = 8;

/// Rejects a setup that cannot run: too large for this computer ([`SimError::Room`]), or with
/// invalid tuning of a cache.
pub fn check(setup: &Setup) -> Result<(), SimError> {
    check_memory(setup)?;
    let page_size = setup.machine.page_size;
    let small = NodeSpec::x86_64_of_pages(SMALL, 0, 0, page_size);
    let mut machine = Machine::new(&[small], 1, Config::of_pages(page_size))?;
    choose_policies(&mut machine, setup, &mut Vec::new())?;
    caches_of(&mut machine, setup)?;
    file_caches_of(&mut machine, setup)?;
    setup.machine.caches.iter().try_for_each(|tuning| tune_cache(&mut machine, tuning))
}

/// Allocates as much memory as the tables of the machine need, and frees it again. If that fails,
/// the run would also fail to allocate it, which would abort the process.
pub(crate) fn check_memory(setup: &Setup) -> Result<(), SimError> {
    let bytes = tables(setup);
    let mut probe: Vec<u8> = Vec::new();
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    probe.try_reserve_exact(wanted).map_err(|_| SimError::Room { bytes })
}

/// Bytes of the tables of a run that grow with the machine, its files and the mappings of its
/// tasks.
pub fn tables(setup: &Setup) -> u64 {
    let page_size = setup.machine.page_size;
    let of_zones = |node: &pagetide_scenario::model::NodeSetup| match node.zones.as_slice() {
        [] => page_size.pages_in(node.memory),
        zones => zones.iter().fold(0u64, |sum, zone| sum.saturating_add(zone.present)),
    };
    let frames = setup.machine.nodes.iter().map(of_zones).fold(0, u64::saturating_add);
    let swap = setup.machine.swap.iter().map(|area| page_size.pages_in(area.size)).sum();
    let files = setup.files.iter().map(|file| page_size.pages_for(file.size));
    let files = files.fold(0, u64::saturating_add);
    let is_plain = |task: usize| {
        let phases = &setup.tasks[task].phases;
        !phases
            .iter()
            .any(|phase| matches!(phase.workload, Workload::Trace(_) | Workload::Build(_)))
    };
    let mut mapped = 0u64;
    let mut last = None;
    for task in 0..setup.tasks.len() {
        // Copies of a task map the same number of pages.
        let same = task > 0 && setup.tasks[task].phases == setup.tasks[task - 1].phases;
        let pages = match last.filter(|_| same) {
            Some(pages) => pages,
            None if is_plain(task) => {
                Program::new(setup, task, 0).map_or(0, |it| it.region_pages())
            }
            None => 0,
        };
        last = Some(pages);
        let resident = setup.tasks[task].resident.iter().map(Resident::anon);
        mapped = resident.fold(mapped.saturating_add(pages), u64::saturating_add);
    }
    let parts = [
        (frames, size_of::<Page>() as u64),
        (swap, SWAP_SLOT),
        (files, FILE_SLOT),
        (mapped, ENTRY),
    ];
    parts.iter().fold(0, |sum: u64, (count, size)| sum.saturating_add(count.saturating_mul(*size)))
}

/// Names of the files of all groups and zram devices in a record with files, including groups
/// created during the run.
pub fn files_of_setup(setup: &Setup) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for group in &setup.groups {
        let above = group.parent.map_or("/sys/fs/cgroup", |parent| paths[parent].as_str());
        paths.push(format!("{above}/{}", group.name));
    }
    paths.push("/sys/fs/cgroup".to_owned());
    let zrams = setup.machine.swap.iter().filter_map(|area| area.zram.as_ref());
    let of_zrams = zrams.enumerate().flat_map(|(nr, zram)| {
        [Some(mm_stat_file(nr)), zram.backing.map(|_| bd_stat_file(nr))].into_iter().flatten()
    });
    let names = || files_of_groups(setup);
    let of_groups = paths.iter().flat_map(|path| names().map(move |name| format!("{path}/{name}")));
    of_groups.chain(of_zrams).collect()
}

/// Names of the files of the machine in a record of a setup.
pub fn files_of_machine(setup: &Setup) -> Vec<&'static str> {
    let of_generations = has_generations(setup).then_some(LRU_GEN);
    MACHINE_FILES.into_iter().chain(of_generations).collect()
}

const MACHINE_FILES: [&str; 12] = [
    "/proc/zoneinfo",
    "/proc/buddyinfo",
    "/proc/pagetypeinfo",
    "/sys/kernel/debug/extfrag/extfrag_index",
    "/sys/kernel/debug/extfrag/unusable_index",
    "/proc/vmstat",
    "/proc/meminfo",
    "/proc/slabinfo",
    "/proc/swaps",
    "/proc/pressure/memory",
    "/pagetide/slab-groups",
    "/pagetide/slab-caches",
];
