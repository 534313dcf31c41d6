//! Samples of who has how much memory and of how fragmented the rest is, at even distances of virtual
//! time.
//!
//! Linux: a loop around memory.current, memory.stat, memory.pressure and the files of /proc, but one that
//! costs the machine nothing. The distance doubles whenever there are [`MOST_SAMPLES`], so that a run of any length keeps between half
//! and all of that many. Within a sample levels are looked at [`TICKS`] times, so that a group that is
//! cut down and grows again between two samples still shows how low it was.
//!
//! Invariant: sampling only reads the machine and puts nothing in the queue: a run with it and a run
//! without it are the same run.

use super::World;
use crate::task::Task;
use pagetide_core::compaction::fragmentation::FreeBlocks;
use pagetide_core::gfp::Watermark;
use pagetide_core::lruvec::Lru;
use pagetide_core::memcg::{MemoryEvent, ROOT};
use pagetide_core::node::Node;
use pagetide_core::process::Machine;
use pagetide_core::units::{MemcgId, Nanos, PAGEBLOCK_ORDER};
use pagetide_core::vmstat::Event;
use pagetide_core::zone::Zone;
use pagetide_scenario::model::{Phase, Setup, Workload};
use pagetide_scenario::timeline::{
    Compaction, Counts, NodeRow, Row, Sample, ServiceRow, TaskRow, Timeline, ZoneName, ZoneRow,
};
use std::ops::Range;

/// Samples that are kept at most.
const MOST_SAMPLES: usize = 512;
/// Looks at the levels in a sample.
const TICKS: u32 = 16;
/// Time between two looks at first.
const FIRST_TICK: Nanos = 1_000;

/// What has happened to a group so far.
#[derive(Clone, Copy, Debug, Default)]
struct Happened {
    counts: Counts,
    some_ns: u64,
    full_ns: u64,
}

/// What is looked at.
struct Watched<'a> {
    machine: &'a Machine,
    groups: &'a [Option<MemcgId>],
    /// Programs come first, then their threads.
    tasks: &'a [Task],
    programs: Range<usize>,
}

/// The samples so far.
#[derive(Debug)]
pub(super) struct Sampler {
    /// When levels are looked at next.
    next_tick: Nanos,
    tick: Nanos,
    nr_ticks: u32,
    samples: Vec<Sample>,
    /// Levels of the sample under way, by row; its counts come when it ends.
    levels: Vec<Option<Row>>,
    /// The same of the nodes; empty before its first look.
    nodes: Vec<NodeRow>,
    /// The same of the zones.
    zones: Vec<ZoneRow>,
    /// What had happened to each row when the last sample ended.
    before: Vec<Happened>,
    tasks_before: Vec<TaskRow>,
    compaction_before: Compaction,
    /// Tasks with services, and what became of their requests in the sample under way.
    services: Vec<(usize, ServiceRow)>,
}

impl World {
    /// Takes samples from now on.
    pub fn sample(&mut self) {
        let nr_rows = self.groups.len() + 1;
        self.sampler = Some(Sampler {
            next_tick: self.now + FIRST_TICK,
            tick: FIRST_TICK,
            nr_ticks: 0,
            samples: Vec::new(),
            levels: vec![None; nr_rows],
            nodes: Vec::new(),
            zones: Vec::new(),
            before: vec![Happened::default(); nr_rows],
            tasks_before: vec![TaskRow::default(); self.setup.tasks.len()],
            compaction_before: Compaction::default(),
            services: self
                .tasks_with_services()
                .map(|task| (task, ServiceRow::default()))
                .collect(),
        });
    }

    fn tasks_with_services(&self) -> impl Iterator<Item = usize> + '_ {
        let tasks = self.setup.tasks.iter().enumerate();
        let is_service = |phase: &Phase| matches!(phase.workload, Workload::Service(_));
        tasks.filter(move |(_, task)| task.phases.iter().any(is_service)).map(|(id, _)| id)
    }

    /// What has become of requests of a task's service.
    pub(super) fn note_requests(&mut self, task: usize, requests: ServiceRow) {
        let services = self.sampler.iter_mut().flat_map(|sampler| &mut sampler.services);
        for (_, row) in services.filter(|(of, _)| *of == task) {
            *row = row.merged(&requests);
        }
    }

    /// A group of the setup was removed: one that is made in its place counts from 0.
    pub(super) fn note_removed(&mut self, group: usize) {
        if let Some(sampler) = &mut self.sampler {
            sampler.before[group + 1] = Happened::default();
        }
    }

    /// Looks at the machine as often as is due until `at`, of which nothing has happened yet.
    #[inline]
    pub(super) fn sample_until(&mut self, at: Nanos) {
        if let Some(sampler) = &mut self.sampler {
            if sampler.next_tick <= at {
                let watched = Watched {
                    machine: &self.machine,
                    groups: &self.groups,
                    tasks: &self.tasks,
                    programs: 0..self.setup.tasks.len(),
                };
                while sampler.next_tick <= at && sampler.next_tick < Nanos::MAX {
                    sampler.look(&watched);
                }
            }
        }
    }

    /// The samples up to now, if any were asked for. No more are taken.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.sample_until(self.now);
        let mut sampler = self.sampler.take()?;
        let watched = Watched {
            machine: &self.machine,
            groups: &self.groups,
            tasks: &self.tasks,
            programs: 0..self.setup.tasks.len(),
        };
        sampler.note_levels(&watched);
        sampler.end_sample(self.now, &watched);
        let mut groups = vec![String::new()];
        groups.extend((0..self.setup.groups.len()).map(|group| path_of(&self.setup, group)));
        let zones = || zones(&self.machine);
        Some(Timeline {
            groups,
            machine_pages: machine_pages(&self.machine),
            high_marks_pages: zones().map(|(_, zone)| zone.watermark_high).sum(),
            nr_nodes: self.machine.nr_nodes(),
            services: self
                .tasks_with_services()
                .map(|task| self.tasks[task].name.clone())
                .collect(),
            zones: zones()
                .map(|(node, zone)| ZoneName { node, zone: zone.name().to_owned() })
                .collect(),
            tasks: self.setup.tasks.iter().map(|task| task.name.clone()).collect(),
            vmstat: self.machine.metrics().map(|(name, _)| name.to_owned()).collect(),
            meminfo: meminfo(&self.machine).map(|(name, _)| name).collect(),
            samples: sampler.samples,
        })
    }
}

impl Sampler {
    /// One look; the last of a sample ends it.
    fn look(&mut self, watched: &Watched<'_>) {
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

    fn note_levels(&mut self, watched: &Watched<'_>) {
        let Watched { machine, groups, .. } = watched;
        for (levels, group) in self.levels.iter_mut().zip(rows(groups)) {
            let Some(memcg) = group else { continue };
            let usage = match memcg {
                ROOT => machine_pages(machine).saturating_sub(machine.nr_free_pages()),
                memcg => machine.memcg_usage(memcg),
            };
            let now = Row {
                usage_pages: usage,
                usage_min_pages: usage,
                usage_max_pages: usage,
                ..Row::default()
            };
            *levels = Row::merged_if_there(*levels, Some(now));
        }
        let nodes = machine.mem.nodes.iter().map(node_row);
        if self.nodes.is_empty() {
            self.nodes.extend(nodes);
        } else {
            for (earlier, now) in self.nodes.iter_mut().zip(nodes) {
                *earlier = earlier.merged(&now);
            }
        }
        let zones = zones(machine).map(|(_, zone)| zone_row(zone));
        if self.zones.is_empty() {
            self.zones.extend(zones);
        } else {
            for (earlier, now) in self.zones.iter_mut().zip(zones) {
                *earlier = earlier.merged(&now);
            }
        }
    }

    fn end_sample(&mut self, end_ns: Nanos, watched: &Watched<'_>) {
        let Watched { machine, groups, .. } = watched;
        self.nr_ticks = 0;
        let nr_rows = self.levels.len();
        let mut rows_now = std::mem::replace(&mut self.levels, vec![None; nr_rows]);
        for ((row, before), group) in rows_now.iter_mut().zip(&mut self.before).zip(rows(groups)) {
            // A group that is gone has given its counts to its parent.
            let now =
                group.map_or_else(Happened::default, |memcg| happened(machine, memcg, end_ns));
            let earlier = std::mem::replace(before, now);
            if let (Some(row), Some(memcg)) = (row, group) {
                note_end(row, machine, memcg, &now, &earlier);
            }
        }
        let mut tasks = Vec::with_capacity(self.tasks_before.len());
        for (id, before) in watched.programs.clone().zip(&mut self.tasks_before) {
            let now = task_row(watched.tasks, id);
            tasks.push(now.since(before));
            *before = now;
        }
        let compaction = compaction_of(machine);
        let sample = Sample {
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

    /// Merges neighbours, and looks half as often from now on.
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

/// Whose the rows are: the machine's, then those of the setup's groups.
fn rows(groups: &[Option<MemcgId>]) -> impl Iterator<Item = Option<MemcgId>> + '_ {
    std::iter::once(Some(ROOT)).chain(groups.iter().copied())
}

/// The levels of a row at its end, and what has happened since the sample before.
fn note_end(row: &mut Row, machine: &Machine, memcg: MemcgId, now: &Happened, earlier: &Happened) {
    let lists = machine.memcg_lru_pages(memcg);
    let pages = |lru: Lru| lists[lru as usize];
    row.anon_pages = pages(Lru::InactiveAnon) + pages(Lru::ActiveAnon);
    row.inactive_file_pages = pages(Lru::InactiveFile);
    row.file_pages = pages(Lru::InactiveFile) + pages(Lru::ActiveFile);
    row.swap_pages = match memcg {
        ROOT => machine.swap().used().into(),
        memcg => machine.memcgs()[memcg.idx()].swap.usage,
    };
    row.counts = now.counts.since(&earlier.counts);
    row.some_ns = now.some_ns.saturating_sub(earlier.some_ns);
    row.full_ns = now.full_ns.saturating_sub(earlier.full_ns);
}

fn happened(machine: &Machine, memcg: MemcgId, at: Nanos) -> Happened {
    let events = machine.memcg_events(memcg);
    let group = &machine.memcgs()[memcg.idx()];
    let mut psi = group.psi.clone();
    psi.flush(at);
    let oom_kill = match memcg {
        ROOT => machine.mem.vmstat.get(Event::OomKill),
        _ => group.memory_events[MemoryEvent::OomKill as usize],
    };
    let counts = Counts {
        pgscan_kswapd: events.get(Event::PgscanKswapd),
        pgscan_direct: events.get(Event::PgscanDirect),
        pgsteal_kswapd: events.get(Event::PgstealKswapd),
        pgsteal_direct: events.get(Event::PgstealDirect),
        pgmajfault: events.get(Event::Pgmajfault),
        pgfault: events.get(Event::Pgfault),
        oom_kill,
    };
    Happened { counts, some_ns: psi.some_ns, full_ns: psi.full_ns }
}

/// What want of memory has cost a program so far, its threads together.
fn task_row(tasks: &[Task], program: usize) -> TaskRow {
    let threads = std::iter::once(program).chain(tasks[program].helpers.clone());
    threads.map(|id| &tasks[id]).fold(TaskRow::default(), |sum, task| {
        sum.plus(&TaskRow {
            stalled_ns: task.lost.waited,
            pgmajfault: task.usage.pgmajfault,
            allocated_pages: task.lost.allocated,
        })
    })
}

/// Zones that have memory, with their nodes.
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

/// The rows of /proc/meminfo: names, and kB or, where the file has no unit, numbers.
fn meminfo(machine: &Machine) -> impl Iterator<Item = (String, u64)> {
    let text = machine.proc_meminfo();
    let rows = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let number = value.split_whitespace().next()?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    rows.collect::<Vec<_>>().into_iter()
}

fn compaction_of(machine: &Machine) -> Compaction {
    let events = [Event::CompactMigrateScanned, Event::CompactFreeScanned, Event::PgmigrateSuccess];
    Compaction::of_values(events.map(|event| machine.mem.vmstat.get(event)))
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

/// Pages that the allocator has, free or not.
fn machine_pages(machine: &Machine) -> u64 {
    machine.mem.nodes.iter().flat_map(|node| node.zones.iter()).map(|zone| zone.managed).sum()
}

pub(super) fn path_of(setup: &Setup, group: usize) -> String {
    let model = &setup.groups[group];
    let parent = model.parent.map_or_else(String::new, |parent| path_of(setup, parent));
    format!("{parent}/{}", model.name)
}
