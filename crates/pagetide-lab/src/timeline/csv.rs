//! A timeline as CSV: one line per sample of the machine, a group, node, zone, service or task.
//!
//! Invariant: each line has all columns; those that do not apply are empty.

use super::nodes;
use crate::csv::quoted;
use pagetide_scenario::record::timeline::{
    CompactionCounts, GroupEvents, GroupRow, NodeRow, ServiceRow, TaskRow, Timeline, ZoneRow,
};

/// The columns.
pub const HEADER: [&str; 41] = [
    "ns",
    "group",
    "usage_pages",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgmajfault",
    "usage_min_pages",
    "usage_max_pages",
    "free_pages",
    "free_blocks_order9",
    "unusable_index",
    "unusable_index_min",
    "unusable_index_max",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "pgmigrate_success",
    "requests",
    "late",
    "dropped",
    "latency_mean_ns",
    "latency_max_ns",
    "pgfault",
    "oom_kill",
    "anon_pages",
    "file_pages",
    "inactive_file_pages",
    "swap_pages",
    "psi_some_ns",
    "psi_full_ns",
    "min_pages",
    "low_pages",
    "high_pages",
    "stall_refault_ns",
    "stall_reread_ns",
    "stall_reclaim_ns",
    "stall_throttled_ns",
    "stall_high_ns",
    "stall_dirty_ns",
    "stall_dirty_group_ns",
];

/// All samples. Column `group` is empty for the machine, else a group, `node0`,
/// `zone node0 Normal`, `service TASK` or `task TASK`. Counts are since the previous line of the same subject.
pub fn render_csv(timeline: &Timeline) -> String {
    let mut out = format!("{}\n", HEADER.join(","));
    for sample in &timeline.samples {
        let ns = sample.end_ns;
        for (name, row) in timeline.groups.iter().zip(&sample.rows) {
            let Some(row) = row else { continue };
            let mut line = CsvLine::new(ns, name);
            line.group(row);
            if name.is_empty() {
                line.compaction(&sample.compaction);
            }
            line.end(&mut out);
        }
        for (node, row) in sample.nodes.iter().enumerate() {
            let mut line = CsvLine::new(ns, &format!("node{node}"));
            line.node(row);
            line.end(&mut out);
        }
        for (zone, row) in timeline.zones.iter().zip(&sample.zones) {
            let mut line = CsvLine::new(ns, &format!("zone node{} {}", zone.node, zone.zone));
            line.zone(row);
            line.end(&mut out);
        }
        for (name, row) in timeline.services.iter().zip(&sample.services) {
            let mut line = CsvLine::new(ns, &format!("service {name}"));
            line.service(row);
            line.end(&mut out);
        }
        for (name, row) in timeline.tasks.iter().zip(&sample.tasks) {
            let mut line = CsvLine::new(ns, &format!("task {name}"));
            line.task(row);
            line.end(&mut out);
        }
    }
    out
}

/// A line: the text of each column.
struct CsvLine {
    cells: [String; HEADER.len()],
}

impl CsvLine {
    fn new(ns: u64, subject: &str) -> CsvLine {
        let mut line = CsvLine { cells: std::array::from_fn(|_| String::new()) };
        line.put("ns", ns);
        line.put("group", quoted(subject));
        line
    }

    fn put(&mut self, column: &str, value: impl ToString) {
        let place = HEADER.iter().position(|it| *it == column);
        self.cells[place.expect("all columns are in the header")] = value.to_string();
    }

    fn group(&mut self, row: &GroupRow) {
        self.put("usage_pages", row.usage_pages);
        self.put("usage_min_pages", row.usage_min_pages);
        self.put("usage_max_pages", row.usage_max_pages);
        for (name, count) in GroupEvents::NAMES.iter().zip(row.counts.values()) {
            self.put(name, count);
        }
        self.put("anon_pages", row.anon_pages);
        self.put("file_pages", row.file_pages);
        self.put("inactive_file_pages", row.inactive_file_pages);
        self.put("swap_pages", row.swap_pages);
        self.put("psi_some_ns", row.some_ns);
        self.put("psi_full_ns", row.full_ns);
    }

    fn compaction(&mut self, compaction: &CompactionCounts) {
        for (name, count) in CompactionCounts::NAMES.iter().zip(compaction.values()) {
            self.put(name, count);
        }
    }

    fn node(&mut self, row: &NodeRow) {
        self.put("free_pages", row.free_pages);
        self.put("free_blocks_order9", row.large_blocks);
        self.put("unusable_index", nodes::index(row.unusable_index));
        self.put("unusable_index_min", nodes::index(row.unusable_index_min));
        self.put("unusable_index_max", nodes::index(row.unusable_index_max));
    }

    fn zone(&mut self, row: &ZoneRow) {
        self.put("free_pages", row.free_pages);
        self.put("min_pages", row.min_pages);
        self.put("low_pages", row.low_pages);
        self.put("high_pages", row.high_pages);
    }

    fn service(&mut self, row: &ServiceRow) {
        self.put("requests", row.requests);
        self.put("late", row.late);
        self.put("dropped", row.dropped);
        if row.requests > 0 {
            self.put("latency_mean_ns", row.latency_mean_ns());
            self.put("latency_max_ns", row.latency_max_ns);
        }
    }

    fn task(&mut self, row: &TaskRow) {
        self.put("pgmajfault", row.pgmajfault);
        for (name, ns) in TaskRow::STALLS.iter().zip(row.stalled_ns) {
            self.put(&format!("{name}_ns"), ns);
        }
    }

    fn end(self, out: &mut String) {
        *out += &self.cells.join(",");
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::services::tests::served;
    use super::super::tests::with_a_cut;
    use super::*;
    use pagetide_scenario::record::timeline::ZoneName;

    /// The columns of a line that are not empty.
    fn cells(line: &str) -> String {
        let said = HEADER.iter().zip(line.split(',')).filter(|(_, cell)| !cell.is_empty());
        said.map(|(name, cell)| format!("{name}={cell}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn there_is_a_line_per_sample_and_subject() {
        let mut timeline = with_a_cut(3, 2);
        timeline.zones = vec![ZoneName { node: 0, zone: "DMA32".to_owned() }];
        timeline.tasks = vec!["batch".to_owned()];
        let last = timeline.samples.last_mut().unwrap();
        last.zones = vec![ZoneRow {
            free_pages: 9,
            free_min_pages: 3,
            free_max_pages: 11,
            min_pages: 1,
            low_pages: 2,
            high_pages: 4,
        }];
        last.tasks =
            vec![TaskRow { stalled_ns: [1, 2, 3, 4, 5, 6, 7], pgmajfault: 5, allocated_pages: 6 }];
        let csv = render_csv(&timeline);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 3 + 1 + 3 + 2);
        assert_eq!(lines[0], HEADER.join(","));
        let machine = "ns=1000000 usage_pages=1000 pgscan_kswapd=1 pgscan_direct=0 pgsteal_kswapd=0 \
                       pgsteal_direct=0 pgmajfault=0 usage_min_pages=1000 usage_max_pages=1000 \
                       compact_migrate_scanned=0 compact_free_scanned=0 pgmigrate_success=0 pgfault=0 \
                       oom_kill=0 anon_pages=0 file_pages=0 inactive_file_pages=0 swap_pages=0 \
                       psi_some_ns=0 psi_full_ns=0";
        assert_eq!(cells(lines[1]), machine);
        let node =
            "ns=1000000 group=node0 free_pages=1000 free_blocks_order9=1 unusable_index=0.488 \
                    unusable_index_min=0.488 unusable_index_max=0.488";
        assert_eq!(cells(lines[2]), node);
        assert!(lines[6].starts_with("3000000,\"/a, b\",1000,900,0,0,0,0,100,1000,,"), "{csv}");
        let zone =
            "ns=3000000 group=zone node0 DMA32 free_pages=9 min_pages=1 low_pages=2 high_pages=4";
        assert_eq!(cells(lines[8]), zone);
        let task = "ns=3000000 group=task batch pgmajfault=5 stall_refault_ns=1 stall_reread_ns=2 \
                    stall_reclaim_ns=3 stall_throttled_ns=4 stall_high_ns=5 stall_dirty_ns=6 \
                    stall_dirty_group_ns=7";
        assert_eq!(cells(lines[9]), task);
        let whole = lines.iter().filter(|line| !line.contains('"'));
        assert!(whole.into_iter().all(|line| line.split(',').count() == HEADER.len()));
    }

    #[test]
    fn a_service_without_requests_has_no_latency() {
        let csv = render_csv(&served());
        let line = |at: usize| cells(csv.lines().nth(at).unwrap());
        let latency = "latency_mean_ns=1500000 latency_max_ns=2000000";
        let front = "ns=1000000 group=service web requests=2 late=0 dropped=0";
        assert_eq!(line(1), format!("{front} {latency}"));
        assert_eq!(line(6), "ns=6000000 group=service web requests=0 late=0 dropped=7");
    }
}
