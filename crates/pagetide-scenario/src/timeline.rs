//! Who had how much memory when, what reclaim did to them, and how fragmented the rest was: samples of
//! one run.
//!
//! Linux: what a loop that prints memory.current and memory.stat of every group now and then would
//! show, and free pages, buddyinfo, unusable_index and vmstat beside it.
//!
//! Invariant: a sample's counts are those since the sample before, so that they sum up to the run's;
//! its levels are those at its end, the least and the most that were seen since the one before. Two
//! neighbours merge into one without losing an extreme or a count.

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
    /// Oldest first, at equal distances but for the last.
    pub samples: Vec<Sample>,
}

/// All there was at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Counters of /proc/vmstat, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Looked at for something to move.
    pub compact_migrate_scanned: u64,
    /// Looked at for a place to move it to.
    pub compact_free_scanned: u64,
    /// Moved.
    pub pgmigrate_success: u64,
}

impl Compaction {
    /// Name of each.
    pub const NAMES: [&'static str; 3] =
        ["compact_migrate_scanned", "compact_free_scanned", "pgmigrate_success"];

    /// Value of each, in the order of [`Compaction::NAMES`].
    pub const fn values(&self) -> [u64; 3] {
        [self.compact_migrate_scanned, self.compact_free_scanned, self.pgmigrate_success]
    }

    /// As [`Compaction::values`] gives them.
    pub const fn of_values(values: [u64; 3]) -> Compaction {
        let [compact_migrate_scanned, compact_free_scanned, pgmigrate_success] = values;
        Compaction { compact_migrate_scanned, compact_free_scanned, pgmigrate_success }
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &Compaction) -> Compaction {
        let (now, then) = (self.values(), earlier.values());
        Compaction::of_values(std::array::from_fn(|at| now[at].saturating_sub(then[at])))
    }

    /// Both together.
    pub fn plus(&self, other: &Compaction) -> Compaction {
        let (a, b) = (self.values(), other.values());
        Compaction::of_values(std::array::from_fn(|at| a[at].saturating_add(b[at])))
    }
}

/// One group at one time, with those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Pages in use at the end. The machine's: all that are not free.
    pub usage_pages: u64,
    /// The least seen since the sample before.
    pub usage_min_pages: u64,
    /// The most seen since the sample before.
    pub usage_max_pages: u64,
    /// What happened since the sample before.
    pub counts: Counts,
}

/// Counters, by their names in memory.stat, all in pages but faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Inactive pages that kswapd looked at.
    pub pgscan_kswapd: u64,
    /// ... that tasks looked at.
    pub pgscan_direct: u64,
    /// Pages that kswapd freed.
    pub pgsteal_kswapd: u64,
    /// ... that tasks freed.
    pub pgsteal_direct: u64,
    /// Faults that had to read.
    pub pgmajfault: u64,
}

impl Counts {
    /// Name of each.
    pub const NAMES: [&'static str; 5] =
        ["pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct", "pgmajfault"];

    /// Value of each, in the order of [`Counts::NAMES`].
    pub const fn values(&self) -> [u64; 5] {
        let Counts { pgscan_kswapd, pgscan_direct, pgsteal_kswapd, pgsteal_direct, pgmajfault } =
            *self;
        [pgscan_kswapd, pgscan_direct, pgsteal_kswapd, pgsteal_direct, pgmajfault]
    }

    /// As [`Counts::values`] gives them.
    pub const fn of_values(values: [u64; 5]) -> Counts {
        let [pgscan_kswapd, pgscan_direct, pgsteal_kswapd, pgsteal_direct, pgmajfault] = values;
        Counts { pgscan_kswapd, pgscan_direct, pgsteal_kswapd, pgsteal_direct, pgmajfault }
    }

    /// What was added since `earlier`. A group that was removed and made again counts from 0.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let (now, then) = (self.values(), earlier.values());
        let began_anew = now.iter().zip(&then).any(|(now, then)| now < then);
        let difference = |at: usize| if began_anew { now[at] } else { now[at] - then[at] };
        Counts::of_values(std::array::from_fn(difference))
    }

    /// Both together.
    pub fn plus(&self, other: &Counts) -> Counts {
        let (a, b) = (self.values(), other.values());
        Counts::of_values(std::array::from_fn(|at| a[at].saturating_add(b[at])))
    }
}

impl Row {
    /// This row and the one that follows it, as one.
    pub fn merged(&self, later: &Row) -> Row {
        Row {
            usage_pages: later.usage_pages,
            usage_min_pages: self.usage_min_pages.min(later.usage_min_pages),
            usage_max_pages: self.usage_max_pages.max(later.usage_max_pages),
            counts: self.counts.plus(&later.counts),
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(usage: u64, min: u64, max: u64, pgscan_kswapd: u64) -> Row {
        let counts = Counts { pgscan_kswapd, ..Counts::default() };
        Row { usage_pages: usage, usage_min_pages: min, usage_max_pages: max, counts }
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
        let mut sample = Sample {
            end_ns: 1,
            rows: vec![Some(row(5, 1, 9, 10)), None, None],
            nodes: vec![node([600, 1], [100, 20, 300])],
            compaction: Compaction::of_values([5, 6, 7]),
            services: vec![ServiceRow::served(30, true)],
        };
        sample.merge(Sample {
            end_ns: 2,
            rows: vec![Some(row(6, 2, 12, 7)), Some(row(3, 3, 3, 1)), None],
            nodes: vec![node([9, 0], [1000, 90, 1000])],
            compaction: Compaction::of_values([1, 0, 2]),
            services: vec![ServiceRow::served(10, false)],
        });
        let services = sample.services[0];
        assert_eq!((services.requests, services.late, services.latency_max_ns), (2, 1, 30));
        assert_eq!(services.latency_mean_ns(), 20);
        let merged = Sample {
            end_ns: 2,
            rows: vec![Some(row(6, 1, 12, 17)), Some(row(3, 3, 3, 1)), None],
            nodes: vec![node([9, 0], [1000, 20, 1000])],
            compaction: Compaction::of_values([6, 6, 9]),
            services: vec![services],
        };
        assert_eq!(sample, merged);
    }

    #[test]
    fn a_group_made_anew_counts_from_zero() {
        let counts = Counts::of_values([5, 6, 7, 8, 9]);
        assert_eq!(counts.since(&Counts::of_values([5, 4, 3, 2, 1])).values(), [0, 2, 4, 6, 8]);
        assert_eq!(counts.since(&Counts::of_values([9, 4, 3, 2, 1])).values(), [5, 6, 7, 8, 9]);
    }
}
