//! Who had how much memory when, what reclaim did to them, and how fragmented the rest was: samples of
//! one run.
//!
//! Linux: what a loop that prints memory.current, memory.stat and memory.pressure of every group now and
//! then would show, and /proc/meminfo, /proc/vmstat, /proc/zoneinfo and unusable_index beside it.
//!
//! Invariant: a sample's counts are those since the sample before, so that they sum up to the run's;
//! its levels, and the rows of /proc, are those at its end, the least and the most that were seen since the
//! one before. Two neighbours merge into one without losing an extreme or a count.

mod counts;

pub use counts::{Compaction, Counts};
use serde::{Deserialize, Serialize};

/// The samples of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Whose the rows are: the machine's, by the empty name, then every group's, by its path
    /// (`/parent/child`).
    pub groups: Vec<String>,
    /// Memory of the machine, in pages.
    pub machine_pages: u64,
    /// High watermarks of all zones at the end, in pages.
    pub high_marks_pages: u64,
    /// How many nodes there are.
    pub nr_nodes: usize,
    /// Tasks with services, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// Zones that have memory, as /proc/zoneinfo orders them.
    #[serde(default)]
    pub zones: Vec<ZoneName>,
    /// Programs, by the names of their tasks; threads belong to their program.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// Names of the rows of /proc/vmstat.
    #[serde(default)]
    pub vmstat: Vec<String>,
    /// Names of the rows of /proc/meminfo.
    #[serde(default)]
    pub meminfo: Vec<String>,
    /// Oldest first, at equal distances but for the last.
    pub samples: Vec<Sample>,
}

/// All there was at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Virtual time at its end, in nanoseconds.
    pub end_ns: u64,
    /// By [`Timeline::groups`]; `None`: the group was not there.
    pub rows: Vec<Option<Row>>,
    /// By number of the node.
    pub nodes: Vec<NodeRow>,
    /// What compaction did since the sample before.
    pub compaction: Compaction,
    /// By [`Timeline::services`]: what became of requests since the sample before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRow>,
    /// By [`Timeline::zones`].
    #[serde(default)]
    pub zones: Vec<ZoneRow>,
    /// By [`Timeline::tasks`].
    #[serde(default)]
    pub tasks: Vec<TaskRow>,
    /// By [`Timeline::vmstat`], as the file has them at the end: levels, and counts since boot.
    #[serde(default)]
    pub vmstat: Vec<u64>,
    /// By [`Timeline::meminfo`], at the end, in kB.
    #[serde(default)]
    pub meminfo: Vec<u64>,
}

/// A zone of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneName {
    /// Number of the node.
    pub node: u32,
    /// Linux's name: `DMA`, `DMA32`, `Normal`, `Movable`.
    pub zone: String,
}

/// The free memory of a zone at one time, and the marks it is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneRow {
    /// Free pages at the end.
    pub free_pages: u64,
    /// The least seen since the sample before.
    pub free_min_pages: u64,
    /// The most seen since the sample before.
    pub free_max_pages: u64,
    /// The marks at the end, in pages, with the boost that is in force.
    pub min_pages: u64,
    /// kswapd is woken below it.
    pub low_pages: u64,
    /// kswapd goes to sleep above it.
    pub high_pages: u64,
}

impl ZoneRow {
    /// This row and the one that follows it, as one.
    pub fn merged(&self, later: &ZoneRow) -> ZoneRow {
        ZoneRow {
            free_min_pages: self.free_min_pages.min(later.free_min_pages),
            free_max_pages: self.free_max_pages.max(later.free_max_pages),
            ..*later
        }
    }
}

/// What want of memory has cost a program since the sample before. A wait counts where it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    /// Nanoseconds that its threads waited together, by [`TaskRow::STALLS`].
    pub stalled_ns: [u64; 4],
    /// Faults that had to read.
    pub pgmajfault: u64,
    /// Pages given to it, and to the kernel on its behalf.
    pub allocated_pages: u64,
}

impl TaskRow {
    /// The metrics of the waits, in the order of [`TaskRow::stalled_ns`].
    pub const STALLS: [&'static str; 4] =
        ["stall_refault", "stall_reclaim", "stall_throttled", "stall_dirty"];

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &TaskRow) -> TaskRow {
        let of = |at: usize| self.stalled_ns[at].saturating_sub(earlier.stalled_ns[at]);
        TaskRow {
            stalled_ns: std::array::from_fn(of),
            pgmajfault: self.pgmajfault.saturating_sub(earlier.pgmajfault),
            allocated_pages: self.allocated_pages.saturating_sub(earlier.allocated_pages),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &TaskRow) -> TaskRow {
        let of = |at: usize| self.stalled_ns[at].saturating_add(other.stalled_ns[at]);
        TaskRow {
            stalled_ns: std::array::from_fn(of),
            pgmajfault: self.pgmajfault.saturating_add(other.pgmajfault),
            allocated_pages: self.allocated_pages.saturating_add(other.allocated_pages),
        }
    }
}

/// Requests of a service in a stretch of time, by the time of their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow {
    /// Requests that were served.
    pub requests: u64,
    /// Those of them that were late.
    pub late: u64,
    /// Requests that found the queue full.
    pub dropped: u64,
    /// All latencies together, in nanoseconds.
    pub latency_sum_ns: u64,
    /// The longest of them.
    pub latency_max_ns: u64,
}

impl ServiceRow {
    /// One request.
    pub fn served(latency_ns: u64, is_late: bool) -> ServiceRow {
        ServiceRow {
            requests: 1,
            late: u64::from(is_late),
            dropped: 0,
            latency_sum_ns: latency_ns,
            latency_max_ns: latency_ns,
        }
    }

    /// Both together.
    pub fn merged(&self, other: &ServiceRow) -> ServiceRow {
        ServiceRow {
            requests: self.requests + other.requests,
            late: self.late + other.late,
            dropped: self.dropped + other.dropped,
            latency_sum_ns: self.latency_sum_ns.saturating_add(other.latency_sum_ns),
            latency_max_ns: self.latency_max_ns.max(other.latency_max_ns),
        }
    }

    /// The mean latency; 0 of no requests.
    pub fn latency_mean_ns(&self) -> u64 {
        self.latency_sum_ns.checked_div(self.requests).unwrap_or(0)
    }
}

/// The free memory of one node at one time, all zones together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Free pages at the end.
    pub free_pages: u64,
    /// Free blocks of order 9 and more at the end.
    pub large_blocks: u64,
    /// Of 1000 free pages, those in blocks of order 8 and less at the end.
    pub unusable_index: u32,
    /// The least seen since the sample before.
    pub unusable_index_min: u32,
    /// The most seen since the sample before.
    pub unusable_index_max: u32,
}

impl NodeRow {
    /// This row and the one that follows it, as one.
    pub fn merged(&self, later: &NodeRow) -> NodeRow {
        NodeRow {
            free_pages: later.free_pages,
            large_blocks: later.large_blocks,
            unusable_index: later.unusable_index,
            unusable_index_min: self.unusable_index_min.min(later.unusable_index_min),
            unusable_index_max: self.unusable_index_max.max(later.unusable_index_max),
        }
    }
}

/// One group at one time, with those below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Pages in use at the end. The machine's: all that are not free.
    pub usage_pages: u64,
    /// The least seen since the sample before.
    pub usage_min_pages: u64,
    /// The most seen since the sample before.
    pub usage_max_pages: u64,
    /// What happened since the sample before.
    pub counts: Counts,
    /// Pages on the lists of anonymous memory at the end.
    #[serde(default)]
    pub anon_pages: u64,
    /// Pages on the lists of page cache at the end.
    #[serde(default)]
    pub file_pages: u64,
    /// Those of them that are on inactive lists.
    #[serde(default)]
    pub inactive_file_pages: u64,
    /// Pages in swap at the end.
    #[serde(default)]
    pub swap_pages: u64,
    /// Time in which a task of it waited for memory, since the sample before (PSI, some).
    #[serde(default)]
    pub some_ns: u64,
    /// ... and no other ran (PSI, full).
    #[serde(default)]
    pub full_ns: u64,
}

impl Row {
    /// This row and the one that follows it, as one.
    pub fn merged(&self, later: &Row) -> Row {
        Row {
            usage_min_pages: self.usage_min_pages.min(later.usage_min_pages),
            usage_max_pages: self.usage_max_pages.max(later.usage_max_pages),
            counts: self.counts.plus(&later.counts),
            some_ns: self.some_ns.saturating_add(later.some_ns),
            full_ns: self.full_ns.saturating_add(later.full_ns),
            ..*later
        }
    }

    /// Of two rows, either of which may be missing: [`Row::merged`], or the one there is.
    pub fn merged_if_there(earlier: Option<Row>, later: Option<Row>) -> Option<Row> {
        match (earlier, later) {
            (Some(earlier), Some(later)) => Some(earlier.merged(&later)),
            (one, other) => one.or(other),
        }
    }
}

impl Sample {
    /// Takes the sample that follows this one into it.
    pub fn merge(&mut self, later: Sample) {
        self.end_ns = later.end_ns;
        for (row, later) in self.rows.iter_mut().zip(later.rows) {
            *row = Row::merged_if_there(*row, later);
        }
        for (node, later) in self.nodes.iter_mut().zip(&later.nodes) {
            *node = node.merged(later);
        }
        self.compaction = self.compaction.plus(&later.compaction);
        for (service, later) in self.services.iter_mut().zip(&later.services) {
            *service = service.merged(later);
        }
        for (zone, later) in self.zones.iter_mut().zip(&later.zones) {
            *zone = zone.merged(later);
        }
        for (task, later) in self.tasks.iter_mut().zip(&later.tasks) {
            *task = task.plus(later);
        }
        self.vmstat = later.vmstat;
        self.meminfo = later.meminfo;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(usage: u64, min: u64, max: u64, pgscan_kswapd: u64) -> Row {
        Row {
            usage_pages: usage,
            usage_min_pages: min,
            usage_max_pages: max,
            counts: Counts { pgscan_kswapd, ..Counts::default() },
            anon_pages: usage,
            some_ns: 5,
            ..Row::default()
        }
    }

    #[test]
    fn merging_keeps_extremes_and_counts() {
        let node = |[free_pages, large_blocks]: [u64; 2], [now, min, max]: [u32; 3]| NodeRow {
            free_pages,
            large_blocks,
            unusable_index: now,
            unusable_index_min: min,
            unusable_index_max: max,
        };
        let zone = |free_pages, free_min_pages, free_max_pages| ZoneRow {
            free_pages,
            free_min_pages,
            free_max_pages,
            min_pages: 1,
            low_pages: 2,
            high_pages: free_pages,
        };
        let task = |ns| TaskRow { stalled_ns: [ns, 0, ns, 0], pgmajfault: ns, allocated_pages: 0 };
        let mut sample = Sample {
            end_ns: 1,
            rows: vec![Some(row(5, 1, 9, 10)), None, None],
            nodes: vec![node([600, 1], [100, 20, 300])],
            compaction: Compaction::of_values([5, 6, 7]),
            services: vec![ServiceRow::served(30, true)],
            zones: vec![zone(7, 5, 9)],
            tasks: vec![task(4)],
            vmstat: vec![1, 2],
            meminfo: vec![3],
        };
        sample.merge(Sample {
            end_ns: 2,
            rows: vec![Some(row(6, 2, 12, 7)), Some(row(3, 3, 3, 1)), None],
            nodes: vec![node([9, 0], [1000, 90, 1000])],
            compaction: Compaction::of_values([1, 0, 2]),
            services: vec![ServiceRow::served(10, false)],
            zones: vec![zone(8, 6, 12)],
            tasks: vec![task(6)],
            vmstat: vec![2, 9],
            meminfo: vec![1],
        });
        let services = sample.services[0];
        assert_eq!((services.requests, services.late, services.latency_max_ns), (2, 1, 30));
        assert_eq!(services.latency_mean_ns(), 20);
        let merged = Sample {
            end_ns: 2,
            rows: vec![Some(Row { some_ns: 10, ..row(6, 1, 12, 17) }), Some(row(3, 3, 3, 1)), None],
            nodes: vec![node([9, 0], [1000, 20, 1000])],
            compaction: Compaction::of_values([6, 6, 9]),
            services: vec![services],
            zones: vec![zone(8, 5, 12)],
            tasks: vec![task(10)],
            vmstat: vec![2, 9],
            meminfo: vec![1],
        };
        assert_eq!(sample, merged);
    }
}
