//! One run: simulates a setup with a seed and returns a record.
//!
//! The seed determines disk latencies, the random numbers of generators without their own seed, and
//! the start delay of each task (at most a timer tick), and nothing else.

use crate::boot_objects;
use crate::disk::{Disk, DiskWaits};
use crate::foresight;
use crate::meter::operations;
use crate::metrics::{latencies, metrics};
use crate::observe::{ObserverError, ObserverHandle};
use crate::slab_tables;
use crate::task::SimTask;
use crate::world::disks::{SimDisks, FILE_GAP};
use crate::world::groups::{make_group, GroupError, SimGroups};
use crate::world::objects::files::FileCaches;
use crate::world::objects::SimObjects;
use crate::world::observing::decisions::DecisionHashes;
use crate::world::{Decisions, SimWorld, WorldError};
use pagetide_core::config::{
    CgroupVersion, Config, KmemAccounting, KswapdPolicy, LruPolicy, MemoryProtection,
};
use pagetide_core::control::ControlError;
use pagetide_core::frames::boot::SetupError;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::Effect;
use pagetide_core::process::fault::at_boot::{BootMemory, ListedPages, UsedPages};
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::{Machine, MmId};
use pagetide_core::reclaim::plugin::{Plugins, RegistrationError, UnknownPolicy};
use pagetide_core::slab::{CacheSpec, CacheTuning, SlabError};
use pagetide_core::swap::zram::ZramOptions;
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{BdiId, CacheId, FileId, MemcgId, Nanos, NodeId};
use pagetide_scenario::draws::prng::{sub_seed, SplitMix64};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::model::{self, Resident, Setup, Variant};
use pagetide_scenario::names::ZoneName;
use pagetide_scenario::record::RunRecord;
use pagetide_scenario::workload::{Program, ProgramError, Workload};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Longest random start delay of a task, because real programs do not start on a timer tick.
const START_JITTER_NS: u64 = 4_000_000;

/// Control files of every group in a record with files.
const GROUP_FILES: [&str; 4] =
    ["memory.current", "memory.stat", "memory.events", "memory.pressure"];
const SWAP_GROUP_FILES: [&str; 2] = ["memory.swap.current", "memory.swap.events"];
const LEGACY_GROUP_FILES: [&str; 5] = [
    "memory.kmem.limit_in_bytes",
    "memory.kmem.usage_in_bytes",
    "memory.kmem.max_usage_in_bytes",
    "memory.kmem.failcnt",
    "memory.kmem.slabinfo",
];

/// Control files of the setup's groups in a record with files.
pub(crate) fn files_of_groups(setup: &Setup) -> impl Iterator<Item = &'static str> {
    let others = match setup.cgroup_version() {
        CgroupVersion::V1 => &LEGACY_GROUP_FILES[..],
        CgroupVersion::V2 => &SWAP_GROUP_FILES[..],
    };
    GROUP_FILES.iter().chain(others).copied()
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Put the final /proc-like files into the record.
    pub want_files: bool,
    /// Set by the caller to end the run early.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Virtual time so far, in nanoseconds, stored from time to time.
    pub progress: Option<Arc<AtomicU64>>,
    /// Audit the whole machine after every n-th event and at the end; 0: never.
    pub audit_every: u64,
    /// Every n-th copy of a frame fails (tests); 0: none.
    pub fail_copies: u64,
    /// Observers of the run. For one run only.
    pub observers: Vec<ObserverHandle>,
    /// Hash the core's decisions, and store the hashes here at the end (tests). For one run only.
    pub decisions: Option<Arc<OnceLock<Decisions>>>,
    /// Registered policies, in addition to the built-in ones.
    pub plugins: Plugins,
    /// Put samples of memory usage over time into the record.
    pub want_timeline: bool,
    /// Put the distributions of latencies into the record.
    pub want_latencies: bool,
}

/// Error of a run that has no record.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("the machine cannot be built: {0}")]
    Setup(#[from] SetupError),
    /// This computer has too little memory for the simulation.
    #[error("the run needs {} MiB for its tables; this computer cannot allocate that", bytes >> 20)]
    Room { bytes: u64 },
    #[error("{0}")]
    Control(ControlError),
    #[error("group `{name}` cannot be created: {error}")]
    Group { name: String, error: GroupError },
    #[error("cache `{name}` cannot be created: {error}")]
    Cache { name: String, error: SlabError },
    #[error("cache `{name}` cannot be tuned: {what}")]
    Tuning {
        name: String,
        /// The rejected setting, with the errno.
        what: String,
        hint: String,
    },
    #[error("{0}")]
    Plugin(UnknownPolicy),
    /// The program registers two policies of one name, or one with the name of a built-in policy.
    #[error("{0}")]
    Plugins(RegistrationError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    World(#[from] WorldError),
    /// An observer cannot write its buffered output at the end of the run.
    #[error(transparent)]
    Unwritten(ObserverError),
    #[error("cancelled")]
    Cancelled,
}

impl SimError {
    /// How the user can solve the problem.
    pub fn hint(&self) -> Option<String> {
        match self {
            SimError::Room { .. } => Some(
                "give the machine less memory, swap or files, or the tasks fewer pages or copies"
                    .into(),
            ),
            SimError::Setup(_) => Some("check the [machine] section".into()),
            SimError::Control(_) => {
                Some("the run did not start; docs/scenario.md has the valid values".into())
            }
            SimError::World(
                WorldError::Stuck { .. } | WorldError::Audit { .. } | WorldError::Endless { .. },
            ) => Some("this is a bug in the simulator: please report the scenario".into()),
            SimError::World(WorldError::Unwritten(_)) | SimError::Unwritten(_) => {
                Some("the run stopped: the disk may be full, or the reader of a pipe closed".into())
            }
            SimError::Tuning { hint, .. } => Some(hint.clone()),
            SimError::Plugin(_) => {
                Some("this program registers no policy of this name; check the spelling".into())
            }
            SimError::Plugins(_) => {
                Some("give each policy a unique name where the program registers it".into())
            }
            SimError::Group { .. }
            | SimError::Cache { .. }
            | SimError::Program(_)
            | SimError::World(_)
            | SimError::Cancelled => None,
        }
    }
}

/// Start of the note in the record of a run that reached its time limit.
pub const CUT: &str = "cut by the time limit";

/// Runs `variant` with `seed`.
///
/// Reaching the time limit is not an error; the record has a note about it.
pub fn run(
    scenario: &str,
    variant: &Variant,
    seed: u64,
    options: &RunOptions,
) -> Result<RunRecord, SimError> {
    let ran = run_observed(scenario, variant, seed, options);
    let is_torn = matches!(ran, Err(SimError::World(WorldError::Unwritten(_))));
    let mut closed = options.observers.iter().map(|sink| sink.close(ran.as_ref().ok(), is_torn));
    // The error of the run itself is more useful than the observer's error that follows from it.
    match closed.try_for_each(|closed| closed) {
        Err(unwritten) if ran.is_ok() => Err(SimError::Unwritten(unwritten)),
        Ok(()) | Err(_) => ran,
    }
}

/// Finds a run in which events follow each other without end, and time stands still.
#[derive(Debug, Default)]
struct RunPace {
    /// The run has looked so often since it was at this time; it looks every 1024 events.
    since: Nanos,
    looks: u32,
}

impl RunPace {
    /// So many looks must advance the time by [`RunPace::STEP`]: ten million events in a
    /// millisecond are more than any number of CPUs can cause.
    const LOOKS_MAX: u32 = 10_000;
    const STEP: Nanos = 1_000_000;

    fn look(&mut self, now: Nanos) {
        if now >= self.since + RunPace::STEP {
            (self.since, self.looks) = (now, 0);
        }
        self.looks += 1;
    }

    fn is_endless(&self) -> bool {
        self.looks > RunPace::LOOKS_MAX
    }
}

fn run_observed(
    scenario: &str,
    variant: &Variant,
    seed: u64,
    options: &RunOptions,
) -> Result<RunRecord, SimError> {
    let setup = &variant.setup;
    // A library that calls this may not have checked them.
    options.plugins.check().map_err(SimError::Plugins)?;
    let mut world = build(setup, seed)?;
    let chosen = options.plugins.choose(setup.plugins.groups.as_deref());
    world.machine.use_plugin(chosen.map_err(SimError::Plugin)?);
    let pages = options.plugins.choose_pages(setup.plugins.pages.as_deref());
    let pages = pages.map_err(SimError::Plugin)?;
    // The loader has refused what the core refuses.
    world.machine.use_page_policy(pages).map_err(SimError::Control)?;
    world.copies.every = options.fail_copies;
    world.observe(options.observers.clone())?;
    if options.decisions.is_some() {
        world.hash_decisions();
    }
    if options.want_timeline {
        world.sample();
    }
    let cancel = options.cancel.clone();
    let progress = options.progress.clone();
    let mut pace = RunPace::default();
    let cancelled = |now: Nanos| {
        if let Some(progress) = &progress {
            progress.store(now, Ordering::Relaxed);
        }
        pace.look(now);
        if pace.is_endless() {
            return true;
        }
        cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    };
    let ran = world.run(setup.time_limit_ns, options.audit_every, cancelled);
    // Also after an error: the last events may explain it.
    let told = world.end_observing(!matches!(ran, Ok(true)));
    let finished = ran?;
    told?;
    if pace.is_endless() {
        return Err(WorldError::Endless { since_ns: pace.since, at_ns: world.now }.into());
    }
    if cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
        return Err(SimError::Cancelled);
    }
    if let (Some(decisions), Some(decided)) =
        (&options.decisions, world.observing.decisions.as_ref().map(DecisionHashes::finish))
    {
        decisions.set(decided).expect("a run has decisions of its own");
    }
    let of = RunIdentity { scenario, variant, seed };
    Ok(record(&mut world, of, finished, options))
}

/// Operations performed in a phase, by [`Price`]; [`Price::PageCopy`] counts units of 4 KiB.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseWork {
    pub task: String,
    pub phase: String,
    pub uses_files_or_pipes: bool,
    pub own: [f64; Price::COUNT],
    /// Operations of all kswapds during the phase.
    pub kswapd: [f64; Price::COUNT],
    /// Operations of the writeback thread during the phase.
    pub flusher: [f64; Price::COUNT],
}

/// Runs `setup` with `seed` and counts the operations of each phase that ended. They are the
/// coefficients of the equations that have the costs as unknowns.
pub fn count_work(
    setup: &Setup,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<Vec<PhaseWork>, SimError> {
    let mut world = build(setup, seed)?;
    world.cpus.count_work();
    world.run(setup.time_limit_ns, 0, |_| cancel.load(Ordering::Relaxed))?;
    if cancel.load(Ordering::Relaxed) {
        return Err(SimError::Cancelled);
    }
    let mut found = Vec::new();
    for (task, model) in world.tasks.iter().zip(&setup.tasks) {
        for run in task.phases.iter().filter(|run| run.ended.is_some()) {
            let (Some([own, kswapd, flusher]), phase) =
                (&run.work, &model.phases[run.phase as usize])
            else {
                continue;
            };
            found.push(PhaseWork {
                task: model.name.clone(),
                phase: phase.name.clone(),
                uses_files_or_pipes: matches!(
                    phase.workload,
                    Workload::Names(_) | Workload::Pipes(_)
                ),
                own: operations(own),
                kswapd: operations(kswapd),
                flusher: operations(flusher),
            });
        }
    }
    Ok(found)
}

/// Runs `setup` with `seed`, and returns the mean time of each disk's reads and writes in plugs and
/// in the queue.
pub fn mean_waits(
    setup: &Setup,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<Vec<[Nanos; 2]>, SimError> {
    let mut world = build(setup, seed)?;
    world.run(setup.time_limit_ns, 0, |_| cancel.load(Ordering::Relaxed))?;
    if cancel.load(Ordering::Relaxed) {
        return Err(SimError::Cancelled);
    }
    let mean = |waits: DiskWaits| waits.ns.checked_div(waits.requests).unwrap_or(0);
    Ok(world.disks.of.iter().map(Disk::stats).map(|stats| stats.waits.map(mean)).collect())
}

#[derive(Clone, Copy, Debug)]
pub struct RunIdentity<'a> {
    pub scenario: &'a str,
    pub variant: &'a Variant,
    pub seed: u64,
}

/// Creates the record of a world; the world must not run afterwards. `finished`: it did not reach
/// its time limit.
pub fn record(
    world: &mut SimWorld,
    of: RunIdentity<'_>,
    finished: bool,
    options: &RunOptions,
) -> RunRecord {
    let RunIdentity { scenario, variant, seed } = of;
    let setup = &variant.setup;
    world.machine.psi_flush(world.now);
    world.results.slab_samples.end(&world.machine, &world.groups.memcgs);
    world.note_shrunk_slabs();
    for task in 0..setup.tasks.len() {
        world.count_unfinished(task);
        world.gather_threads(task);
    }
    let mut notes = Vec::new();
    if !finished {
        notes.push(format!("{CUT} at {} s", world.now as f64 / 1e9));
    }
    for (note, times) in &world.results.notes {
        let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        notes.push(format!("{note}{times}"));
    }
    for (wrong, _) in world.machine.plugin_errors() {
        let names = setup.plugins.iter().map(|(kind, name)| format!("policy.{kind}={name}"));
        let names = names.collect::<Vec<_>>().join(", ");
        notes.push(format!("{names}: {} ({} says how often)", wrong.text(), wrong.name()));
    }
    for task in &world.tasks[..setup.tasks.len()] {
        if task.killed {
            let memcg = world.machine.mm_memcg(task.mm).expect("every task has one");
            let at = world.groups.iter().find(|&(_, id)| id == memcg);
            let of = at.map(|(group, _)| format!(" of group `{}`", setup.groups[group].name));
            let of = of.unwrap_or_default();
            let request = task.killed_for.as_ref();
            let request = request.map_or(String::new(), |request| format!(" ({request})"));
            let ended = match task.refused {
                false if task.signalled => "was killed by a watcher",
                false => "was killed: out of memory",
                true => "ended: out of memory, and no task to kill",
            };
            notes.push(format!("task `{}`{of} {ended}{request}", task.name));
        }
        let refused = task.usage.objects_asked - task.usage.objects_got;
        if refused > 0 {
            notes.push(format!(
                "task `{}`: {refused} allocations of kernel objects failed",
                task.name
            ));
        }
        if task.io_errors > 0 {
            notes.push(format!("task `{}`: {} calls failed with EIO", task.name, task.io_errors));
        }
    }
    RunRecord {
        scenario: scenario.into(),
        variant: variant.name.clone(),
        seed,
        version: env!("CARGO_PKG_VERSION").into(),
        page_size: setup.machine.page_size.bytes(),
        metrics: metrics(world, setup, !finished),
        digest: world.watchers.digest(world.machine.digest()),
        elapsed_ns: world.now,
        notes,
        files: if options.want_files { files(world, setup) } else { Vec::new() },
        timeline: world.take_timeline(),
        latencies: if options.want_latencies { latencies(world, setup) } else { Vec::new() },
    }
}

/// Builds the world of a setup, ready to run. The caller then adds policies that are not built in.
/// Fails if the machine is invalid, a control file rejects a value, or a workload cannot start.
pub fn build(setup: &Setup, seed: u64) -> Result<SimWorld, SimError> {
    foresight::check_memory(setup)?;
    let page_size = setup.machine.page_size;
    let nodes = setup.machine.nodes.iter().enumerate();
    let specs: Vec<NodeSpec> = nodes.map(|node| node_spec(node, page_size)).collect();
    let mut machine = Machine::new(&specs, setup.machine.cpus, Config::of_pages(page_size))?;
    let mut boot_effects = Vec::new();
    choose_policies(&mut machine, setup, &mut boot_effects)?;
    let caches = caches_of(&mut machine, setup)?;
    let file_caches = file_caches_of(&mut machine, setup)?;
    for tuning in &setup.machine.caches {
        tune_cache(&mut machine, tuning)?;
    }
    machine.free_late();
    machine.without_bytes();
    boot_objects::populate(&mut machine, &setup.machine.boot_objects)
        .map_err(|(name, error)| SimError::Cache { name, error })?;
    let effects = machine.apply_writes(&setup.sysctls).map_err(SimError::Control)?;
    effects.drain_into(&mut boot_effects);
    // The other kswapd variants are of kernels without writeback throttling in the block layer.
    let kswapd: KswapdPolicy = setup.policies.of().unwrap_or_default();
    let before_4_10 = kswapd != KswapdPolicy::Linux61;
    let disks: Vec<Disk> = setup
        .machine
        .disks
        .iter()
        .map(|disk| Disk::new(disk, sub_seed(seed, &format!("disk {}", disk.name))))
        .map(|disk| disk.with_page_size(page_size))
        .map(|disk| if before_4_10 { disk.without_writeback_throttling() } else { disk })
        .collect();
    if let Some(zswap) = setup.machine.zswap {
        machine.enable_zswap(zswap);
    }
    machine.set_memcg_lru_seed(sub_seed(seed, "memcg_lru"));
    machine.set_default_content(sub_seed(seed, "content"), setup.machine.content);
    let mut next_base = vec![0u64; disks.len().max(1)];
    let mut swap_base = Vec::new();
    for (area, priority) in setup.machine.swap.iter().zip(setup.machine.swap_priorities()) {
        let pages = page_size.pages_in(area.size) as u32;
        let added = machine.swapon(SwapOptions {
            pages,
            limit: area.full_after_pages.map_or(pages, |limit| limit.min(pages.into()) as u32),
            rotational: setup.machine.disks[area.disk].rotational,
            priority: Some(priority),
            zram: area.zram.as_ref().map(|zram| ZramOptions {
                compressor: zram.algorithm,
                // 0 is no limit (`mem_limit_store`).
                mem_limit: zram
                    .mem_limit
                    .filter(|limit| *limit > 0)
                    .map(|limit| limit.div_ceil(page_size.bytes())),
                backing_pages: zram.backing.map(|size| size / page_size.bytes()),
            }),
        });
        assert!(added, "the loader limits swap");
        let base = &mut next_base[area.disk];
        swap_base.push((area.disk, *base));
        if area.zram.as_ref().is_none_or(|zram| zram.backing.is_some()) {
            *base += u64::from(pages);
        }
    }
    // Areas of one disk lie side by side, like partitions; files begin behind a gap.
    for base in next_base.iter_mut().filter(|base| **base > 0) {
        *base += page_size.pages_in(FILE_GAP);
    }
    let effects = machine.choose(setup.cgroup_version()).map_err(SimError::Control)?;
    effects.drain_into(&mut boot_effects);
    let mut groups: Vec<Option<MemcgId>> = Vec::new();
    let payer = |groups: &[Option<MemcgId>], group| match setup.charged_group(group) {
        Some(payer) => groups[payer],
        None => Some(ROOT),
    };
    for group in &setup.groups {
        let parent = payer(&groups, group.parent);
        groups.push(match parent.filter(|_| group.at_start && group.has_memory) {
            Some(parent) => {
                let failed = |error| SimError::Group { name: group.name.clone(), error };
                Some(make_group(&mut machine, group, parent, 0).map_err(failed)?)
            }
            None => None,
        });
    }
    let mut file_base = Vec::new();
    for file in &setup.files {
        let id = machine.create_file(file.size, file.sparse).expect("the loader limits files");
        machine.set_bdi(id, BdiId(file.disk as u16)).expect("the file was just created");
        if file.metadata {
            machine.set_metadata(id).expect("it was just made");
        }
        file_base.push((file.disk, next_base[file.disk]));
        next_base[file.disk] += page_size.pages_for(file.size) + page_size.pages_in(FILE_GAP);
    }
    let mut tasks = Vec::new();
    for (id, task) in setup.tasks.iter().enumerate() {
        let task_seed = sub_seed(seed, &format!("task {}", task.name));
        let group = payer(&groups, task.group);
        let mm = machine.create_mm(group.unwrap_or(ROOT)).expect("the group was just made");
        machine.set_oom_score_adj(mm, task.settings.oom_score_adj).expect("it was just made");
        if let Some(mix) = task.content {
            machine.set_content(mm, mix).expect("it was just made");
        }
        let program = Program::new(setup, id, seed)?;
        let files = setup.files.len();
        let mut made = SimTask::new(task.name.clone(), program, mm, files, task.background);
        made.leader = id;
        made.group = task.group;
        let start_seed = match setup.machine.starts_at_once {
            true => sub_seed(seed, "start"),
            false => sub_seed(task_seed, "start"),
        };
        made.start_jitter = SplitMix64::new(start_seed).below(START_JITTER_NS);
        tasks.push(made);
    }
    let mms: Vec<_> = tasks.iter().map(|task| task.mm).collect();
    machine.note_locked_elsewhere(setup.machine.program_locked);
    if setup.machine.program_frames > 0 {
        machine.give_boot_frames(&mms, setup.machine.program_frames);
    }
    populate(&mut machine, setup, &mms);
    for (id, task) in setup.tasks.iter().enumerate() {
        let threads = task.phases.iter().map(|phase| phase.workload.threads()).max().unwrap_or(1);
        let first = tasks.len();
        for _ in 1..threads {
            tasks.push(tasks[id].new_thread(setup.files.len()));
        }
        tasks[id].helpers = first..tasks.len();
    }
    let disks = SimDisks::new(disks, file_base, swap_base);
    let groups = SimGroups::new(setup, groups);
    let objects = SimObjects::new(&machine, caches, file_caches);
    Ok(SimWorld::new(machine, setup, tasks, disks, groups, objects, (boot_effects, seed)))
}

/// Puts the memory that tasks have at the start on the lists: first that of a given zone.
fn populate(machine: &mut Machine, setup: &Setup, mms: &[MmId]) {
    if setup.tasks.iter().all(|task| task.resident.is_empty()) {
        return;
    }
    let mut frames = machine.boot_frames();
    let mut memories: Vec<Option<BootMemory>> = Vec::new();
    for (task, &mm) in setup.tasks.iter().zip(mms) {
        let anon = task.resident.iter().map(Resident::anon).sum::<u64>();
        let advice = Advice::Normal;
        memories.push((!task.resident.is_empty()).then(|| {
            let vma = machine.mmap(mm, Backing::Anon, anon, advice, false);
            let vma = vma.expect("the loader limits memory");
            let memcg = machine.mm_memcg(mm).expect("it was just made");
            BootMemory::new(vma, FileId(task.resident_file.unwrap_or(0) as u32), memcg)
        }));
    }
    for is_placed in [true, false] {
        for (task, memory) in setup.tasks.iter().zip(&mut memories) {
            let Some(memory) = memory else { continue };
            for part in task.resident.iter().filter(|part| part.zone.is_some() == is_placed) {
                let at = (NodeId(part.node as u8), part.zone.map(ZoneName::index));
                let pages = ListedPages {
                    anon: UsedPages { active: part.active_anon, inactive: part.inactive_anon },
                    file: UsedPages { active: part.active_file, inactive: part.inactive_file },
                };
                machine.populate_at_boot(&mut frames, at, memory, pages);
            }
        }
    }
    machine.end_boot(frames);
}

/// Chooses the policies of the setup. Adds the effects.
pub(crate) fn choose_policies(
    machine: &mut Machine,
    setup: &Setup,
    effects: &mut Vec<Effect>,
) -> Result<(), SimError> {
    for choice in setup.policies.iter() {
        machine.choose(choice).map_err(SimError::Control)?.drain_into(effects);
    }
    if !setup.machine.kmem_accounting {
        machine.choose(KmemAccounting::Off).map_err(SimError::Control)?.drain_into(effects);
    }
    if setup.machine.memory_recursiveprot {
        let recursive = machine.choose(MemoryProtection::Recursive);
        recursive.map_err(SimError::Control)?.drain_into(effects);
    }
    Ok(())
}

/// Finds or creates the machine's slab caches for those of the setup.
pub(crate) fn caches_of(machine: &mut Machine, setup: &Setup) -> Result<Vec<CacheId>, SimError> {
    let mut caches = Vec::new();
    for cache in &setup.caches {
        let found = machine.slabs.find_cache(&cache.name);
        let same = found.filter(|&id| {
            machine.slabs.kmem_cache(id).is_some_and(|it| it.size == cache.object_size)
        });
        caches.push(match same {
            Some(id) => id,
            None => {
                let spec = CacheSpec {
                    // The kernel has a cache of this name with another object size.
                    name: match found {
                        Some(_) => format!("{}:{}", cache.name, cache.object_size),
                        None => cache.name.clone(),
                    },
                    object_size: cache.object_size,
                    reclaimable: cache.reclaimable,
                    account: false,
                };
                let failed = |error| SimError::Cache { name: cache.name.clone(), error };
                machine.create_cache(spec).map_err(failed)?
            }
        });
    }
    Ok(caches)
}

/// Finds or creates the slab caches for files, dentries and pipes, if tasks use any.
pub(crate) fn file_caches_of(
    machine: &mut Machine,
    setup: &Setup,
) -> Result<Option<FileCaches>, SimError> {
    let failed = |error| SimError::Cache { name: "for files and pipes".into(), error };
    setup.has_objects().then(|| FileCaches::new(machine).map_err(failed)).transpose()
}

/// Tunes a cache key by key, so that an error names the key.
pub(crate) fn tune_cache(machine: &mut Machine, model: &model::CacheSetup) -> Result<(), SimError> {
    let refused =
        |what: String, hint: String| Err(SimError::Tuning { name: model.name.clone(), what, hint });
    let Some(cache) = machine.slabs.find_cache(&model.name) else {
        let hint = match machine.slabs.similar_cache(&model.name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`pagetide inspect FILE slab-caches` lists them".into(),
        };
        return refused("there is no such cache (ENOENT)".into(), hint);
    };
    let model::CacheSetup { name: _, order, min_partial, cpu_partial } = *model;
    // Only an order can be refused.
    if let Err(errno) = machine.tune_cache(cache, CacheTuning { order, min_partial, cpu_partial }) {
        let (least, most) = machine.order_bounds(cache).unwrap_or_default();
        let hint =
            format!("in [[machine.cache]], `order` must be from {least} to {most} for this cache");
        return refused(format!("order = {} ({errno})", order.unwrap_or_default()), hint);
    }
    Ok(())
}

/// Min, low and high watermark of every populated zone at the start of the run, in pages, by node
/// and then from the lowest zone.
pub fn watermarks(setup: &Setup) -> Result<Vec<[u64; 3]>, SimError> {
    let world = build(setup, 1)?;
    let zones = world.machine.mem.nodes.iter().flat_map(|node| node.populated_zones());
    Ok(zones.map(|zone| [zone.watermark_min, zone.watermark_low, zone.watermark_high]).collect())
}

fn node_spec((index, node): (usize, &model::NodeSetup), page_size: PageSize) -> NodeSpec {
    if node.zones.is_empty() {
        return if index == 0 {
            NodeSpec::x86_64_of_pages(node.memory, node.reserved, node.movable, page_size)
        } else {
            NodeSpec::remote_of_pages(node.memory, node.reserved, node.movable, page_size)
        };
    }
    let mut spec = NodeSpec::default();
    for zone in &node.zones {
        spec.zones[zone.name.index()] = zone.spec();
    }
    spec
}

/// The file with the generations of each group.
pub const LRU_GEN: &str = "/sys/kernel/debug/lru_gen";

/// Whether a setup may order pages by generation.
pub(crate) fn has_generations(setup: &Setup) -> bool {
    setup.policies.of() == Some(LruPolicy::Mglru)
}

/// The file with the statistics of a zram device.
pub(crate) fn mm_stat_file(nr: usize) -> String {
    format!("/sys/block/zram{nr}/mm_stat")
}

/// The file with the statistics of the disk behind a zram device.
pub(crate) fn bd_stat_file(nr: usize) -> String {
    format!("/sys/block/zram{nr}/bd_stat")
}

fn files(world: &SimWorld, setup: &Setup) -> Vec<(String, String)> {
    let machine = &world.machine;
    let mut files = vec![
        ("/proc/zoneinfo".to_owned(), machine.proc_zoneinfo()),
        ("/proc/buddyinfo".to_owned(), machine.proc_buddyinfo()),
        ("/proc/pagetypeinfo".to_owned(), machine.proc_pagetypeinfo()),
        ("/sys/kernel/debug/extfrag/extfrag_index".to_owned(), machine.debugfs_extfrag_index()),
        ("/sys/kernel/debug/extfrag/unusable_index".to_owned(), machine.debugfs_unusable_index()),
        ("/proc/vmstat".to_owned(), machine.proc_vmstat()),
        ("/proc/meminfo".to_owned(), machine.proc_meminfo()),
        ("/proc/slabinfo".to_owned(), machine.slabinfo()),
        ("/proc/swaps".to_owned(), machine.proc_swaps()),
        ("/proc/pressure/memory".to_owned(), machine.proc_pressure_memory(world.now)),
    ];
    if has_generations(setup) {
        files.push((LRU_GEN.to_owned(), machine.lru_gen(world.now)));
    }
    let zrams = || (0..).zip(machine.swap().zrams());
    files.extend(zrams().filter_map(|(nr, zram)| Some((bd_stat_file(nr), zram.bd_stat()?))));
    files.extend(zrams().map(|(nr, zram)| (mm_stat_file(nr), zram.mm_stat())));
    let mut paths = BTreeMap::from([(ROOT, "/sys/fs/cgroup".to_owned())]);
    for memcg in machine.memcg_ids() {
        let group = &machine.memcgs()[memcg];
        if let Some(parent) = paths.get(&group.parent) {
            let path = format!("{parent}/{}", group.name);
            paths.insert(memcg, path);
        }
        for name in files_of_groups(setup) {
            if let Ok(text) = machine.read_group_control(memcg, name, world.now) {
                files.push((format!("{}/{name}", paths[&memcg]), text));
            }
        }
    }
    files.extend(slab_tables::files(machine, &paths));
    files
}

#[cfg(test)]
mod tests {
    use super::RunPace;

    #[test]
    fn a_run_is_endless_if_its_time_stands_still() {
        let mut pace = RunPace::default();
        // It advances by a step in nearly the most looks, then by less in as many.
        for look in 0..u64::from(5 * RunPace::LOOKS_MAX) {
            pace.look(look * RunPace::STEP / u64::from(RunPace::LOOKS_MAX - 1));
            assert!(!pace.is_endless());
        }
        let now = pace.since + RunPace::STEP - 1;
        let looks = (0..RunPace::LOOKS_MAX).filter(|_| {
            pace.look(now);
            pace.is_endless()
        });
        assert!(looks.count() > 0);
    }
}
