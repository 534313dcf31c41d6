//! Timelines: samples of one run with the memory of each group, the work of reclaim on it, and the
//! fragmentation of free memory.
//!
//! Linux: a loop that prints memory.current, memory.stat and memory.pressure of every group would
//! show this, together with /proc/meminfo, /proc/vmstat, /proc/zoneinfo and unusable_index.
//!
//! Invariant: the counts of a sample are those since the previous sample, so their sum is the count
//! of the run. Its levels and its rows of /proc are those at its end; a minimum and a maximum cover
//! the time since the previous sample. Merging two neighbours loses no extreme and no count.

mod counts;

pub use counts::{CompactionCounts, GroupEvents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Owners of the rows: the machine (an empty name), then every group by path (`/parent/child`).
    pub groups: Vec<String>,
    /// Memory of the machine, in pages.
    pub machine_pages: u64,
    /// Sum of the high watermarks of all zones at the end, in pages.
    pub high_watermarks_pages: u64,
    /// Number of nodes.
    pub nr_nodes: usize,
    /// Names of the tasks with services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// Zones with memory, in the order of /proc/zoneinfo.
    #[serde(default)]
    pub zones: Vec<ZoneName>,
    /// Names of the tasks that are programs; threads belong to their program.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// Names of the rows of /proc/vmstat.
    #[serde(default)]
    pub vmstat: Vec<String>,
    /// Names of the rows of /proc/meminfo.
    #[serde(default)]
    pub meminfo: Vec<String>,
    /// Oldest first, at equal intervals except for the last.
    pub samples: Vec<TimelineSample>,
    /// Signals and writes of watchers, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deeds: Vec<TimelineDeed>,
}

/// A signal that a watcher sent, or a control file that it wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineDeed {
    /// Virtual time in nanoseconds.
    pub ns: u64,
    /// Name of the watcher.
    pub watcher: String,
    /// The signal, or the file and its new value: `SIGTERM`, `memory.high 33554432`.
    pub act: String,
    /// The task or the group.
    pub target: String,
}

impl TimelineDeed {
    /// The signal or the file.
    pub fn kind(&self) -> &str {
        self.act.split(' ').next().unwrap_or("")
    }

    pub fn is_signal(&self) -> bool {
        self.act.starts_with("SIG")
    }
}

/// The state at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineSample {
    /// Virtual time at its end, in nanoseconds.
    pub end_ns: u64,
    /// By [`Timeline::groups`]; `None`: the group did not exist.
    pub rows: Vec<Option<GroupRow>>,
    /// By number of the node.
    pub nodes: Vec<NodeRow>,
    /// Work of compaction since the previous sample.
    pub compaction: CompactionCounts,
    /// By [`Timeline::services`]: requests since the previous sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceRow>,
    /// By [`Timeline::zones`].
    #[serde(default)]
    pub zones: Vec<ZoneRow>,
    /// By [`Timeline::tasks`].
    #[serde(default)]
    pub tasks: Vec<TaskRow>,
    /// By [`Timeline::vmstat`], as the file shows them at the end: levels, and counts since boot.
    #[serde(default)]
    pub vmstat: Vec<u64>,
    /// By [`Timeline::meminfo`], at the end, in kB.
    #[serde(default)]
    pub meminfo: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneName {
    /// Number of the node.
    pub node: u32,
    /// Linux's name: `DMA`, `DMA32`, `Normal`, `Movable`.
    pub zone: String,
}

/// Free memory and watermarks of a zone at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneRow {
    /// Free pages at the end.
    pub free_pages: u64,
    /// Minimum since the previous sample.
    pub free_min_pages: u64,
    /// Maximum since the previous sample.
    pub free_max_pages: u64,
    /// The min watermark at the end, in pages, with the current boost; so are the next two.
    pub min_pages: u64,
    /// kswapd is woken below it.
    pub low_pages: u64,
    /// kswapd sleeps above it.
    pub high_pages: u64,
}

impl ZoneRow {
    /// Merges this row with the row of the next sample.
    pub fn merged(&self, later: &ZoneRow) -> ZoneRow {
        ZoneRow {
            free_min_pages: self.free_min_pages.min(later.free_min_pages),
            free_max_pages: self.free_max_pages.max(later.free_max_pages),
            ..*later
        }
    }
}

/// Cost of memory shortage for a program since the previous sample. A wait counts when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRow {
    /// Nanoseconds that its threads waited, summed, by [`TaskRow::STALLS`].
    pub stalled_ns: [u64; TaskRow::STALLS.len()],
    /// Faults that had to read.
    pub pgmajfault: u64,
    /// Pages allocated by the program and by the kernel on its behalf.
    pub allocated_pages: u64,
}

impl TaskRow {
    /// The metrics of the waits, in the order of [`TaskRow::stalled_ns`].
    pub const STALLS: [&'static str; 7] = [
        "stall_refault",
        "stall_reread",
        "stall_reclaim",
        "stall_throttled",
        "stall_high",
        "stall_dirty",
        "stall_dirty_group",
    ];

    /// All waits for memory. A writer that is throttled for dirty pages waits for a disk.
    pub fn waited_ns(&self) -> u64 {
        let waits = Self::STALLS.iter().zip(self.stalled_ns);
        waits.filter(|(name, _)| !name.starts_with("stall_dirty")).map(|(_, ns)| ns).sum()
    }

    /// The increase since `earlier`.
    pub fn since(&self, earlier: &TaskRow) -> TaskRow {
        let of = |at: usize| self.stalled_ns[at].saturating_sub(earlier.stalled_ns[at]);
        TaskRow {
            stalled_ns: std::array::from_fn(of),
            pgmajfault: self.pgmajfault.saturating_sub(earlier.pgmajfault),
            allocated_pages: self.allocated_pages.saturating_sub(earlier.allocated_pages),
        }
    }

    pub fn plus(&self, other: &TaskRow) -> TaskRow {
        let of = |at: usize| self.stalled_ns[at].saturating_add(other.stalled_ns[at]);
        TaskRow {
            stalled_ns: std::array::from_fn(of),
            pgmajfault: self.pgmajfault.saturating_add(other.pgmajfault),
            allocated_pages: self.allocated_pages.saturating_add(other.allocated_pages),
        }
    }
}

/// Requests of a service in an interval, by the time of their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceRow {
    /// Completed requests.
    pub requests: u64,
    /// Completed requests that were late.
    pub late: u64,
    /// Requests that found the queue full.
    pub dropped: u64,
    /// Sum of all latencies, in nanoseconds.
    pub latency_sum_ns: u64,
    /// Largest latency, in nanoseconds.
    pub latency_max_ns: u64,
}

impl ServiceRow {
    /// A single completed request.
    pub fn served(latency_ns: u64, is_late: bool) -> ServiceRow {
        ServiceRow {
            requests: 1,
            late: u64::from(is_late),
            dropped: 0,
            latency_sum_ns: latency_ns,
            latency_max_ns: latency_ns,
        }
    }

    pub fn merged(&self, other: &ServiceRow) -> ServiceRow {
        ServiceRow {
            requests: self.requests + other.requests,
            late: self.late + other.late,
            dropped: self.dropped + other.dropped,
            latency_sum_ns: self.latency_sum_ns.saturating_add(other.latency_sum_ns),
            latency_max_ns: self.latency_max_ns.max(other.latency_max_ns),
        }
    }

    /// The mean latency; 0 without requests.
    pub fn latency_mean_ns(&self) -> u64 {
        self.latency_sum_ns.checked_div(self.requests).unwrap_or(0)
    }
}

/// Free memory of one node at one time, all zones together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRow {
    /// Free pages at the end.
    pub free_pages: u64,
    /// Free blocks of order 9 and above at the end.
    pub large_blocks: u64,
    /// Free pages in blocks of order 8 and below at the end, per 1000 free pages.
    pub unusable_index: u32,
    /// Minimum since the previous sample.
    pub unusable_index_min: u32,
    /// Maximum since the previous sample.
    pub unusable_index_max: u32,
}

impl NodeRow {
    /// Merges this row with the row of the next sample.
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

/// A group with its descendants at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupRow {
    /// Pages in use at the end. For the machine: all pages that are not free.
    pub usage_pages: u64,
    /// Minimum since the previous sample.
    pub usage_min_pages: u64,
    /// Maximum since the previous sample.
    pub usage_max_pages: u64,
    /// Events since the previous sample.
    pub counts: GroupEvents,
    /// Pages on the anonymous lists at the end.
    #[serde(default)]
    pub anon_pages: u64,
    /// Pages on the page cache lists at the end.
    #[serde(default)]
    pub file_pages: u64,
    /// Pages on the inactive page cache list at the end.
    #[serde(default)]
    pub inactive_file_pages: u64,
    /// Pages in swap at the end.
    #[serde(default)]
    pub swap_pages: u64,
    /// Time since the previous sample in which some task of it waited for memory (PSI, some).
    #[serde(default)]
    pub some_ns: u64,
    /// ... and no other task ran (PSI, full).
    #[serde(default)]
    pub full_ns: u64,
}

impl GroupRow {
    /// Merges this row with the row of the next sample.
    pub fn merged(&self, later: &GroupRow) -> GroupRow {
        GroupRow {
            usage_min_pages: self.usage_min_pages.min(later.usage_min_pages),
            usage_max_pages: self.usage_max_pages.max(later.usage_max_pages),
            counts: self.counts.plus(&later.counts),
            some_ns: self.some_ns.saturating_add(later.some_ns),
            full_ns: self.full_ns.saturating_add(later.full_ns),
            ..*later
        }
    }

    /// [`GroupRow::merged`] of two rows; if one is missing, the other.
    pub fn merged_option(earlier: Option<GroupRow>, later: Option<GroupRow>) -> Option<GroupRow> {
        match (earlier, later) {
            (Some(earlier), Some(later)) => Some(earlier.merged(&later)),
            (one, other) => one.or(other),
        }
    }
}

impl TimelineSample {
    /// Merges the next sample into this one.
    pub fn merge(&mut self, later: TimelineSample) {
        self.end_ns = later.end_ns;
        for (row, later) in self.rows.iter_mut().zip(later.rows) {
            *row = GroupRow::merged_option(*row, later);
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

    fn row(usage: u64, min: u64, max: u64, pgscan_kswapd: u64) -> GroupRow {
        GroupRow {
            usage_pages: usage,
            usage_min_pages: min,
            usage_max_pages: max,
            counts: GroupEvents { pgscan_kswapd, ..GroupEvents::default() },
            anon_pages: usage,
            some_ns: 5,
            ..GroupRow::default()
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
        let task = |ns| TaskRow {
            stalled_ns: [ns, 0, ns, 0, 0, 0, 0],
            pgmajfault: ns,
            allocated_pages: 0,
        };
        let mut sample = TimelineSample {
            end_ns: 1,
            rows: vec![Some(row(5, 1, 9, 10)), None, None],
            nodes: vec![node([600, 1], [100, 20, 300])],
            compaction: CompactionCounts::of_values([5, 6, 7]),
            services: vec![ServiceRow::served(30, true)],
            zones: vec![zone(7, 5, 9)],
            tasks: vec![task(4)],
            vmstat: vec![1, 2],
            meminfo: vec![3],
        };
        sample.merge(TimelineSample {
            end_ns: 2,
            rows: vec![Some(row(6, 2, 12, 7)), Some(row(3, 3, 3, 1)), None],
            nodes: vec![node([9, 0], [1000, 90, 1000])],
            compaction: CompactionCounts::of_values([1, 0, 2]),
            services: vec![ServiceRow::served(10, false)],
            zones: vec![zone(8, 6, 12)],
            tasks: vec![task(6)],
            vmstat: vec![2, 9],
            meminfo: vec![1],
        });
        let services = sample.services[0];
        assert_eq!((services.requests, services.late, services.latency_max_ns), (2, 1, 30));
        assert_eq!(services.latency_mean_ns(), 20);
        let merged = TimelineSample {
            end_ns: 2,
            rows: vec![
                Some(GroupRow { some_ns: 10, ..row(6, 1, 12, 17) }),
                Some(row(3, 3, 3, 1)),
                None,
            ],
            nodes: vec![node([9, 0], [1000, 20, 1000])],
            compaction: CompactionCounts::of_values([6, 6, 9]),
            services: vec![services],
            zones: vec![zone(8, 5, 12)],
            tasks: vec![task(10)],
            vmstat: vec![2, 9],
            meminfo: vec![1],
        };
        assert_eq!(sample, merged);
    }
}
