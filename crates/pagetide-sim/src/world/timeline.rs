//! Samples of who has how much memory and of how fragmented the rest is, at even distances of virtual
//! time.
//!
//! Linux: a loop around memory.current, memory.stat and unusable_index, but one that costs the machine
//! nothing. The
//! distance doubles whenever there are [`MOST_SAMPLES`], so that a run of any length keeps between half
//! and all of that many. Within a sample levels are looked at [`TICKS`] times, so that a group that is
//! cut down and grows again between two samples still shows how low it was.
//!
//! Invariant: sampling only reads the machine and puts nothing in the queue: a run with it and a run
//! without it are the same run.

use super::World;
use pagetide_core::compaction::fragmentation::FreeBlocks;
use pagetide_core::memcg::ROOT;
use pagetide_core::node::Node;
use pagetide_core::process::Machine;
use pagetide_core::units::{MemcgId, Nanos, PAGEBLOCK_ORDER};
use pagetide_core::vmstat::Event;
use pagetide_scenario::model::{Phase, Setup, Workload};
use pagetide_scenario::timeline::{Compaction, Counts, NodeRow, Row, Sample, ServiceRow, Timeline};

/// Samples that are kept at most.
const MOST_SAMPLES: usize = 512;
/// Looks at the levels in a sample.
const TICKS: u32 = 16;
/// Time between two looks at first.
const FIRST_TICK: Nanos = 1_000;

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
    /// Counts when the last sample ended, by row.
    before: Vec<Counts>,
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
            before: vec![Counts::default(); nr_rows],
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

    /// Looks at the machine as often as is due until `at`, of which nothing has happened yet.
    #[inline]
    pub(super) fn sample_until(&mut self, at: Nanos) {
        if let Some(sampler) = &mut self.sampler {
            while sampler.next_tick <= at && sampler.next_tick < Nanos::MAX {
                sampler.look(&self.machine, &self.groups);
            }
        }
    }

    /// The samples up to now, if any were asked for. No more are taken.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.sample_until(self.now);
        let mut sampler = self.sampler.take()?;
        sampler.note_levels(&self.machine, &self.groups);
        sampler.end_sample(self.now, &self.machine, &self.groups);
        let mut groups = vec![String::new()];
        groups.extend((0..self.setup.groups.len()).map(|group| path_of(&self.setup, group)));
        let zones = self.machine.mem.nodes.iter().flat_map(|node| node.populated_zones());
        Some(Timeline {
            groups,
            machine_pages: machine_pages(&self.machine),
            high_marks_pages: zones.map(|zone| zone.watermark_high).sum(),
            nr_nodes: self.machine.nr_nodes(),
            services: self
                .tasks_with_services()
                .map(|task| self.tasks[task].name.clone())
                .collect(),
            samples: sampler.samples,
        })
    }
}

impl Sampler {
    /// One look; the last of a sample ends it.
    fn look(&mut self, machine: &Machine, groups: &[Option<MemcgId>]) {
        let at = self.next_tick;
        self.note_levels(machine, groups);
        self.nr_ticks += 1;
        if self.nr_ticks == TICKS {
            self.end_sample(at, machine, groups);
            if self.samples.len() >= MOST_SAMPLES {
                self.halve();
            }
        }
        self.next_tick = at.saturating_add(self.tick);
    }

    fn note_levels(&mut self, machine: &Machine, groups: &[Option<MemcgId>]) {
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
                counts: Counts::default(),
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
    }

    fn end_sample(&mut self, end_ns: Nanos, machine: &Machine, groups: &[Option<MemcgId>]) {
        self.nr_ticks = 0;
        let nr_rows = self.levels.len();
        let mut rows_now = std::mem::replace(&mut self.levels, vec![None; nr_rows]);
        for ((row, before), group) in rows_now.iter_mut().zip(&mut self.before).zip(rows(groups)) {
            // A group that is gone has given its counts to its parent.
            let now = group.map_or_else(Counts::default, |memcg| counts_of(machine, memcg));
            let earlier = std::mem::replace(before, now);
            if let (Some(row), Some(_)) = (row, group) {
                row.counts = now.since(&earlier);
            }
        }
        let compaction = compaction_of(machine);
        let sample = Sample {
            end_ns,
            rows: rows_now,
            nodes: std::mem::take(&mut self.nodes),
            compaction: compaction.since(&self.compaction_before),
            services: self.services.iter_mut().map(|(_, row)| std::mem::take(row)).collect(),
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

fn counts_of(machine: &Machine, memcg: MemcgId) -> Counts {
    let events = machine.memcg_events(memcg);
    Counts {
        pgscan_kswapd: events.get(Event::PgscanKswapd),
        pgscan_direct: events.get(Event::PgscanDirect),
        pgsteal_kswapd: events.get(Event::PgstealKswapd),
        pgsteal_direct: events.get(Event::PgstealDirect),
        pgmajfault: events.get(Event::Pgmajfault),
    }
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

fn path_of(setup: &Setup, group: usize) -> String {
    let model = &setup.groups[group];
    let parent = model.parent.map_or_else(String::new, |parent| path_of(setup, parent));
    format!("{parent}/{}", model.name)
}
