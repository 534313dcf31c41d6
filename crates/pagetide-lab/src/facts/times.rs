//! For what tasks waited (memory, disks, too many dirty pages), and what kswapd did.
//!
//! Invariant: a wait is a mean over the threads of a task, as its walltime is.

use super::{largest, FactFinder, RunFact, LITTLE, WORTH_NAMING};
use crate::report::Report;
use crate::rows;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::{MetricKey, Owner, Scope};
use std::collections::BTreeSet;

/// A task is slowed down if its rate differs by this factor.
const SLOWED: f64 = 2.0;

/// Waits for memory. A writer that is throttled because too many pages are dirty waits for a disk.
pub(super) const MEMORY: [&MetricDecl; 5] = [
    declared::STALL_REFAULT,
    declared::STALL_REREAD,
    declared::STALL_RECLAIM,
    declared::STALL_THROTTLED,
    declared::STALL_HIGH,
];

/// The time of kswapd, as sums over the nodes.
pub(super) struct KswapdTime {
    /// Share of the run in which it was awake: the mean over the nodes.
    pub(super) busy: f64,
    /// Seconds in which it was awake.
    pub(super) awake: f64,
    /// Seconds of these: working, waiting for the disk, waiting for writeback.
    pub(super) parts: [f64; 3],
}

/// The waits of a task, or of all its copies.
pub(super) struct TaskWaits {
    pub(super) task: Owner,
    pub(super) has_copies: bool,
    /// Its numbers of threads in all variants.
    pub(super) threads: BTreeSet<u32>,
    pub(super) by_column: Vec<(usize, WaitTimes)>,
}

/// Times in seconds: means over threads and copies.
#[derive(Clone)]
pub(super) struct WaitTimes {
    pub(super) walltime: f64,
    /// Bytes per second.
    pub(super) throughput: f64,
    /// By [`MEMORY`].
    pub(super) memory: [f64; MEMORY.len()],
    /// Because of the machine's limits on dirty pages, and of a group's.
    pub(super) dirty: [f64; 2],
    /// Waits for disks that are not due to a lack of memory.
    disks: f64,
}

impl WaitTimes {
    pub(super) fn for_memory(&self) -> f64 {
        self.memory.iter().sum()
    }

    /// If they are worth naming.
    pub(super) fn for_disks(&self) -> Option<f64> {
        self.worth_naming(self.disks)
    }

    /// Pauses because too many pages were dirty, if they are worth naming.
    pub(super) fn throttled(&self) -> Option<f64> {
        self.worth_naming(self.dirty.iter().sum())
    }

    fn worth_naming(&self, seconds: f64) -> Option<f64> {
        Some(seconds).filter(|it| *it > 0.0 && *it >= WORTH_NAMING * self.walltime)
    }
}

impl TaskWaits {
    fn most(&self, value: impl Fn(&WaitTimes) -> f64) -> f64 {
        self.by_column.iter().map(|(_, times)| value(times)).fold(0.0, f64::max)
    }

    /// By how much its rate differs most between the first variant and another, if it waits for
    /// disks in the slower one.
    fn slowed(&self) -> f64 {
        let first = &self.by_column[0].1;
        let factor = |other: &WaitTimes| {
            let is_faster = first.throughput < other.throughput;
            let (slow, fast) = if is_faster { (first, other) } else { (other, first) };
            let waits = slow.for_disks().filter(|_| slow.throughput > 0.0);
            waits.map_or(0.0, |_| fast.throughput / slow.throughput)
        };
        self.most(factor)
    }
}

/// The task of a wait that is a sum over several threads, and not the mean that the sentences have.
pub fn summed_over_threads(report: &Report, key: &MetricKey) -> Option<String> {
    let Scope::Task(task) = &key.scope else { return None };
    let is_wait = key.name.starts_with("stall_") || key.name == declared::DISK_WAIT.name;
    let finder = FactFinder { report };
    let threads = |column| finder.threads(column, &task.family());
    let is_sum = is_wait && (0..report.columns.len()).any(|column| threads(column) > 1);
    is_sum.then(|| task.to_string())
}

impl FactFinder<'_> {
    /// Waits of the task that the table is about, of the one that waited longest for memory, of the
    /// one that was throttled longest for dirty pages, and of the one that disks slowed down most.
    pub(super) fn waits(&self) -> Vec<RunFact> {
        let owners = self.owners(true);
        let tasks: Vec<TaskWaits> = owners.iter().map(|task| self.waits_of(task)).collect();
        let memory = |task: &TaskWaits| task.most(WaitTimes::for_memory);
        let throttled = |task: &TaskWaits| task.most(|it| it.throttled().unwrap_or(0.0));
        let disks = |task: &TaskWaits| task.most(|it| it.for_disks().unwrap_or(0.0));
        let Some(longest) = largest(&tasks, memory) else { return Vec::new() };
        let elapsed = self.most(|column| self.of_machine(column, declared::ELAPSED));
        let is_short = memory(longest) > LITTLE * elapsed;
        let is_told = |task: &&TaskWaits| is_short || throttled(task) + disks(task) > 0.0;
        let told = [
            self.subject(&owners).map(|at| &tasks[at]).filter(is_told),
            Some(longest).filter(|_| is_short),
            largest(&tasks, throttled).filter(|task| throttled(task) > 0.0),
            largest(&tasks, TaskWaits::slowed).filter(|task| task.slowed() >= SLOWED),
        ];
        let mut facts = Vec::from_iter((!is_short).then_some(RunFact::NoWaits));
        let mut seen = BTreeSet::new();
        for task in told.into_iter().flatten().filter(|task| seen.insert(&task.task)) {
            let times = |column: usize| &task.by_column[column].1;
            let all = |it: &WaitTimes| it.for_memory() + it.dirty.iter().sum::<f64>() + it.disks;
            let by_column = self.compared(|it| all(times(it)), |it| times(it).clone());
            let threads = task.threads.clone();
            facts.push(RunFact::Waits(TaskWaits {
                task: task.task.clone(),
                threads,
                by_column,
                ..*task
            }));
        }
        facts
    }

    /// The waits in all variants.
    fn waits_of(&self, task: &Owner) -> TaskWaits {
        let columns = || 0..self.report.columns.len();
        let all = self.report.plan.scenario.variants.iter().flat_map(|it| &it.setup.tasks);
        let mut copies = all.map(|task| Owner::new(&task.name)).filter(|it| it.copy.is_some());
        let times = |column| {
            let of = |metric| self.of_task(column, task, metric);
            let wait = |metric| of(metric) / f64::from(self.threads(column, task));
            let times = WaitTimes {
                walltime: of(declared::WALLTIME),
                throughput: of(declared::THROUGHPUT),
                memory: MEMORY.map(wait),
                dirty: [declared::STALL_DIRTY, declared::STALL_DIRTY_GROUP].map(wait),
                disks: wait(declared::DISK_WAIT),
            };
            (column, times)
        };
        TaskWaits {
            task: task.clone(),
            has_copies: copies.any(|it| it.family() == *task),
            threads: columns().map(|column| self.threads(column, task)).collect(),
            by_column: columns().map(times).collect(),
        }
    }

    /// Threads of the task, or of each copy, in a variant.
    fn threads(&self, column: usize, task: &Owner) -> u32 {
        let tasks = self.report.plan.scenario.variants[column].setup.tasks.iter();
        let of_family = tasks.filter(|it| Owner::new(&it.name).family() == *task);
        let phases = of_family.flat_map(|task| &task.phases);
        phases.map(|phase| phase.workload.threads()).max().unwrap_or(1)
    }

    /// The task that the table is about: the measured one, that of the first row of a task, or the
    /// first service.
    fn subject(&self, tasks: &[Owner]) -> Option<usize> {
        let place = |family: Owner| tasks.iter().position(|task| *task == family);
        let scenario = &self.report.plan.scenario;
        let measured = scenario.variants.iter().find_map(|variant| {
            place(Owner::new(&variant.setup.tasks[variant.setup.measure?].name).family())
        });
        let row = |row: &MetricKey| place(row.scope.owner()?.family());
        let rows = rows::rows(self.report);
        let named = rows.iter().filter(|_| !scenario.rows.is_empty()).find_map(row);
        let serves =
            |task: &Owner| self.most(|it| self.of_task(it, task, declared::REQUESTS)) > 0.0;
        measured.or(named).or_else(|| tasks.iter().position(serves))
    }

    pub(super) fn kswapd(&self) -> Option<RunFact> {
        let time = |column: usize| {
            let of = |metric| self.of_machine(column, metric);
            let nodes = self.report.plan.scenario.variants[column].setup.machine.nodes.len();
            let (awake, elapsed) = (of(declared::TIME_KSWAPD), of(declared::ELAPSED));
            let busy = if elapsed > 0.0 { awake / elapsed / nodes.max(1) as f64 } else { 0.0 };
            let parts =
                [declared::CPU_KSWAPD, declared::TIME_KSWAPD_DISK, declared::TIME_KSWAPD_THROTTLED];
            KswapdTime { busy, awake, parts: parts.map(of) }
        };
        let busy = |column| time(column).busy;
        (self.most(busy) >= LITTLE).then(|| RunFact::Kswapd(self.compared(busy, time)))
    }
}
