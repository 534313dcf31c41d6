//! The timeline: samples of memory usage and fragmentation at regular intervals of virtual time.
//!
//! Linux: a loop that reads memory.current, memory.stat, memory.pressure and files of /proc, but
//! without cost for the machine. The interval doubles whenever there are [`MOST_SAMPLES`], so a
//! long run keeps between half and all of that number. Each sample reads the levels [`TICKS`] times
//! and keeps minimum and maximum, so it shows a group that shrinks and grows again between two
//! samples.
//!
//! Invariant: sampling only reads the machine and schedules no event, so it does not change a run.

use crate::task::SimTask;
use pagetide_core::compaction::fragmentation::FreeBlocks;
use pagetide_core::frames::gfp::Watermark;
use pagetide_core::frames::node::Node;
use pagetide_core::frames::zone::Zone;
use pagetide_core::groups::memcg::{MemoryEvent, ROOT};
use pagetide_core::process::Machine;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::{MemcgId, Nanos, PAGEBLOCK_ORDER};
use pagetide_scenario::model::{Phase, Setup, Workload};
use pagetide_scenario::record::timeline::{
    CompactionCounts, GroupEvents, GroupRow, NodeRow, ServiceRow, TaskRow, Timeline, TimelineDeed,
    TimelineSample, ZoneName, ZoneRow,
};

const MOST_SAMPLES: usize = 512;
/// Readings of the levels per sample.
const TICKS: u32 = 16;
/// Initial time between two readings.
const FIRST_TICK: Nanos = 1_000;

#[derive(Clone, Copy, Debug, Default)]
struct GroupCounters {
    counts: GroupEvents,
    some_ns: u64,
    full_ns: u64,
}

impl GroupCounters {
    /// A mean over CPUs that is taken before it is due may be above a later one. The times that
    /// samples show must not fall, and their sum must not be above the largest of these means.
    fn not_below(mut self, earlier: &GroupCounters) -> GroupCounters {
        self.some_ns = self.some_ns.max(earlier.some_ns);
        self.full_ns = self.full_ns.max(earlier.full_ns);
        self
    }
}

pub(crate) struct SampledWorld<'a> {
    pub machine: &'a Machine,
    pub groups: &'a [Option<MemcgId>],
    /// Programs come first, then their additional threads.
    pub tasks: &'a [SimTask],
    pub setup: &'a Setup,
}

#[derive(Debug, Default)]
pub(crate) struct TimelineSampler {
    next_tick: Nanos,
    tick: Nanos,
    nr_ticks: u32,
    samples: Vec<TimelineSample>,
    /// Levels of the current sample, by row. Counters are added at its end.
    levels: Vec<Option<GroupRow>>,
    /// Nodes in the current sample; empty before its first reading.
    nodes: Vec<NodeRow>,
    /// Zones in the current sample; empty before its first reading.
    zones: Vec<ZoneRow>,
    /// Counters of each row at the end of the last sample.
    before: Vec<GroupCounters>,
    tasks_before: Vec<TaskRow>,
    compaction_before: CompactionCounts,
    /// Tasks with services, and their requests in the current sample.
    services: Vec<(usize, ServiceRow)>,
    deeds: Vec<TimelineDeed>,
}

impl TimelineSampler {
    pub fn new(setup: &Setup, now: Nanos) -> TimelineSampler {
        let nr_rows = setup.groups.len() + 1;
        let services = tasks_with_services(setup).map(|task| (task, ServiceRow::default()));
        TimelineSampler {
            next_tick: now + FIRST_TICK,
            tick: FIRST_TICK,
            levels: vec![None; nr_rows],
            before: vec![GroupCounters::default(); nr_rows],
            tasks_before: vec![TaskRow::default(); setup.tasks.len()],
            services: services.collect(),
            ..TimelineSampler::default()
        }
    }

    /// Adds finished or dropped requests of a task's service to the current sample.
    pub fn note_requests(&mut self, task: usize, requests: &ServiceRow) {
        for (_, row) in self.services.iter_mut().filter(|(of, _)| *of == task) {
            *row = row.merged(requests);
        }
    }

    pub fn note_deed(&mut self, deed: TimelineDeed) {
        self.deeds.push(deed);
    }

    /// A group of the setup was removed. If it is created again, its counters start at 0.
    pub fn note_removed(&mut self, group: usize) {
        self.before[group + 1] = GroupCounters::default();
    }

    /// Takes all readings due until `at`. No event at `at` has run yet.
    #[inline]
    pub fn until(&mut self, at: Nanos, watched: &SampledWorld<'_>) {
        while self.next_tick <= at && self.next_tick < Nanos::MAX {
            self.look(watched);
        }
    }

    /// Takes the last sample, and returns all.
    pub fn end(mut self, now: Nanos, watched: &SampledWorld<'_>) -> Timeline {
        self.until(now, watched);
        self.note_levels(watched);
        self.end_sample(now, watched);
        let SampledWorld { machine, tasks, setup, .. } = *watched;
        let mut groups = vec![String::new()];
        groups.extend((0..setup.groups.len()).map(|group| path_of(setup, group)));
        let zones = || zones(machine);
        Timeline {
            groups,
            machine_pages: machine_pages(machine),
            high_watermarks_pages: zones().map(|(_, zone)| zone.watermark_high).sum(),
            nr_nodes: machine.nr_nodes(),
            services: tasks_with_services(setup).map(|task| tasks[task].name.clone()).collect(),
            zones: zones()
                .map(|(node, zone)| ZoneName { node, zone: zone.name().to_owned() })
                .collect(),
            tasks: setup.tasks.iter().map(|task| task.name.clone()).collect(),
            vmstat: machine.metrics().map(|(name, _)| name.to_owned()).collect(),
            meminfo: meminfo(machine).map(|(name, _)| name).collect(),
            samples: self.samples,
            deeds: self.deeds,
        }
    }

    /// Takes one reading; the last one of a sample ends the sample.
    fn look(&mut self, watched: &SampledWorld<'_>) {
        let at = self.next_tick;
        self.note_levels(watched);
        self.nr_ticks += 1;
        if self.nr_ticks == TICKS {
            self.end_sample(at, watched);
            if self.samples.len() >= MOST_SAMPLES {
                self.halve();
            }
        }
        self.next_tick = at.saturating_add(self.tick);
    }

    fn note_levels(&mut self, watched: &SampledWorld<'_>) {
        let SampledWorld { machine, groups, .. } = watched;
        for (levels, group) in self.levels.iter_mut().zip(rows(groups)) {
            let Some(memcg) = group else { continue };
            let usage = match memcg {
                ROOT => machine_pages(machine).saturating_sub(machine.mem.nr_free_pages()),
                memcg => machine.memcg_usage(memcg),
            };
            let now = GroupRow {
                usage_pages: usage,
                usage_min_pages: usage,
                usage_max_pages: usage,
                ..GroupRow::default()
            };
            *levels = GroupRow::merged_option(*levels, Some(now));
        }
        merge_rows(&mut self.nodes, machine.mem.nodes.iter().map(node_row), NodeRow::merged);
        let zones = zones(machine).map(|(_, zone)| zone_row(zone));
        merge_rows(&mut self.zones, zones, ZoneRow::merged);
    }

    fn end_sample(&mut self, end_ns: Nanos, watched: &SampledWorld<'_>) {
        let SampledWorld { machine, groups, .. } = watched;
        self.nr_ticks = 0;
        let nr_rows = self.levels.len();
        let mut rows_now = std::mem::replace(&mut self.levels, vec![None; nr_rows]);
        for ((row, before), group) in rows_now.iter_mut().zip(&mut self.before).zip(rows(groups)) {
            // The counters of a removed group were added to its parent.
            let now = group.map_or_else(GroupCounters::default, |memcg| {
                happened(machine, memcg, end_ns).not_below(before)
            });
            let earlier = std::mem::replace(before, now);
            if let (Some(row), Some(memcg)) = (row, group) {
                note_end(row, machine, memcg, &now, &earlier);
            }
        }
        let mut tasks = Vec::with_capacity(self.tasks_before.len());
        for (id, before) in self.tasks_before.iter_mut().enumerate() {
            let now = task_row(watched.tasks, id);
            tasks.push(now.since(before));
            *before = now;
        }
        let compaction = compaction_of(machine);
        let sample = TimelineSample {
            end_ns,
            rows: rows_now,
            nodes: std::mem::take(&mut self.nodes),
            compaction: compaction.since(&self.compaction_before),
            services: self.services.iter_mut().map(|(_, row)| std::mem::take(row)).collect(),
            zones: std::mem::take(&mut self.zones),
            tasks,
            vmstat: machine.metrics().map(|(_, value)| value).collect(),
            meminfo: meminfo(machine).map(|(_, kb)| kb).collect(),
        };
        self.compaction_before = compaction;
        match self.samples.last_mut() {
            Some(last) if last.end_ns == end_ns => last.merge(sample),
            _ => self.samples.push(sample),
        }
    }

    /// Merges pairs of samples and doubles the interval.
    fn halve(&mut self) {
        let mut samples = std::mem::take(&mut self.samples).into_iter();
        while let Some(mut sample) = samples.next() {
            if let Some(later) = samples.next() {
                sample.merge(later);
            }
            self.samples.push(sample);
        }
        self.tick = self.tick.saturating_mul(2);
    }
}

fn merge_rows<T>(rows: &mut Vec<T>, now: impl Iterator<Item = T>, merged: fn(&T, &T) -> T) {
    if rows.is_empty() {
        rows.extend(now);
        return;
    }
    rows.iter_mut().zip(now).for_each(|(row, now)| *row = merged(row, &now));
}

fn tasks_with_services(setup: &Setup) -> impl Iterator<Item = usize> + '_ {
    let is_service = |phase: &Phase| matches!(phase.workload, Workload::Service(_));
    let tasks = setup.tasks.iter().enumerate();
    tasks.filter(move |(_, task)| task.phases.iter().any(is_service)).map(|(id, _)| id)
}

/// The memcgs of the rows: the machine (root), then the groups of the setup.
fn rows(groups: &[Option<MemcgId>]) -> impl Iterator<Item = Option<MemcgId>> + '_ {
    std::iter::once(Some(ROOT)).chain(groups.iter().copied())
}

/// Sets the final levels of a row, and its counters since the last sample.
fn note_end(
    row: &mut GroupRow,
    machine: &Machine,
    memcg: MemcgId,
    now: &GroupCounters,
    earlier: &GroupCounters,
) {
    let sizes = machine.memcg_lru_sizes(memcg);
    row.anon_pages = sizes.anon();
    row.inactive_file_pages = sizes.cold_file();
    row.file_pages = sizes.file();
    row.swap_pages = match memcg {
        ROOT => machine.swap().used().into(),
        memcg => machine.memcgs()[memcg].swap.usage,
    };
    row.counts = now.counts.since(&earlier.counts);
    row.some_ns = now.some_ns - earlier.some_ns;
    row.full_ns = now.full_ns - earlier.full_ns;
}

fn happened(machine: &Machine, memcg: MemcgId, at: Nanos) -> GroupCounters {
    let events = machine.memcg_events(memcg);
    let group = &machine.memcgs()[memcg];
    let mut psi = group.psi.clone();
    psi.flush(at);
    let oom_kill = match memcg {
        ROOT => machine.mem.vmstat.get(Event::OomKill),
        _ => group.memory_events[MemoryEvent::OomKill as usize],
    };
    let counts = GroupEvents {
        pgscan_kswapd: events.get(Event::PgscanKswapd),
        pgscan_direct: events.get(Event::PgscanDirect),
        pgsteal_kswapd: events.get(Event::PgstealKswapd),
        pgsteal_direct: events.get(Event::PgstealDirect),
        pgmajfault: events.get(Event::Pgmajfault),
        pgfault: events.get(Event::Pgfault),
        oom_kill,
    };
    GroupCounters { counts, some_ns: psi.some_ns, full_ns: psi.full_ns }
}

/// Memory stalls and allocations of a program so far, summed over its threads.
fn task_row(tasks: &[SimTask], program: usize) -> TaskRow {
    let threads = std::iter::once(program).chain(tasks[program].helpers.clone());
    threads.map(|id| &tasks[id]).fold(TaskRow::default(), |sum, task| {
        sum.plus(&TaskRow {
            stalled_ns: task.lost.waited,
            pgmajfault: task.usage.pgmajfault,
            allocated_pages: task.lost.allocated,
        })
    })
}

fn zones(machine: &Machine) -> impl Iterator<Item = (u32, &Zone)> {
    let nodes = machine.mem.nodes.iter().zip(0..);
    nodes.flat_map(|(node, number)| node.populated_zones().map(move |zone| (number, zone)))
}

fn zone_row(zone: &Zone) -> ZoneRow {
    let free = zone.free_pages();
    ZoneRow {
        free_pages: free,
        free_min_pages: free,
        free_max_pages: free,
        min_pages: zone.wmark(Watermark::Min),
        low_pages: zone.wmark(Watermark::Low),
        high_pages: zone.wmark(Watermark::High),
    }
}

/// The rows of /proc/meminfo: names and values, in kB if the file has this unit.
fn meminfo(machine: &Machine) -> impl Iterator<Item = (String, u64)> {
    let text = machine.proc_meminfo();
    let rows = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let number = value.split_whitespace().next()?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    rows.collect::<Vec<_>>().into_iter()
}

fn compaction_of(machine: &Machine) -> CompactionCounts {
    let events = [Event::CompactMigrateScanned, Event::CompactFreeScanned, Event::PgmigrateSuccess];
    CompactionCounts::of_values(events.map(|event| machine.mem.vmstat.get(event)))
}

fn node_row(node: &Node) -> NodeRow {
    let zones = node.zones.iter().map(|zone| FreeBlocks::of(zone, PAGEBLOCK_ORDER));
    let free = zones.fold(FreeBlocks::default(), FreeBlocks::plus);
    let unusable = u32::try_from(free.unusable_index()).unwrap_or(0);
    NodeRow {
        free_pages: free.pages,
        large_blocks: free.suitable_blocks,
        unusable_index: unusable,
        unusable_index_min: unusable,
        unusable_index_max: unusable,
    }
}

/// Pages managed by the allocator.
fn machine_pages(machine: &Machine) -> u64 {
    machine.mem.nodes.iter().flat_map(|node| node.zones.iter()).map(|zone| zone.managed).sum()
}

pub(crate) fn path_of(setup: &Setup, group: usize) -> String {
    let model = &setup.groups[group];
    let parent = model.parent.map_or_else(String::new, |parent| path_of(setup, parent));
    format!("{parent}/{}", model.name)
}
