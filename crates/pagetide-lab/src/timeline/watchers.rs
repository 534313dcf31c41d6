//! Rows of watchers: the signals that each sent, and the control files that it wrote.

use super::{axis, column_of, row_of, shade};
use pagetide_scenario::record::timeline::{Timeline, TimelineDeed};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Part of the legend.
pub(super) const LEGEND: &str =
    "Watcher: signals sent and control files written, each with its own scale to `@`; totals on \
    the right.";

/// One block per watcher that did something.
pub(super) fn draw(timeline: &Timeline, nr_columns: usize, out: &mut String) {
    let watchers: BTreeSet<&str> =
        timeline.deeds.iter().map(|deed| deed.watcher.as_str()).collect();
    // The first column begins at the start of the run, the last has its end.
    let end_of = |at| column_of(timeline, nr_columns, at).last().map_or(0, |sample| sample.end_ns);
    let ends: Vec<u64> = (0..nr_columns).map(end_of).collect();
    let column = |deed: &TimelineDeed| {
        ends.partition_point(|&end| end < deed.ns).min(nr_columns.saturating_sub(1))
    };
    for watcher in watchers {
        let _ = writeln!(out, "watcher {watcher}");
        let of_it = || timeline.deeds.iter().filter(|deed| deed.watcher == watcher);
        let kinds: BTreeSet<&str> = of_it().map(TimelineDeed::kind).collect();
        for kind in kinds {
            let mut counts = vec![0u64; nr_columns];
            for deed in of_it().filter(|deed| deed.kind() == kind) {
                counts[column(deed)] += 1;
            }
            let most = counts.iter().copied().max().unwrap_or(0);
            let total: u64 = counts.iter().sum();
            let shades = counts.iter().map(|&count| shade(count, most));
            row_of(kind, shades, &total.to_string(), out);
        }
        axis(timeline, nr_columns, out);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::render;
    use super::super::services::tests::served;
    use super::*;

    #[test]
    fn a_watcher_has_rows_at_the_times_of_its_deeds() {
        let deed = |ms: u64, watcher: &str, act: &str| TimelineDeed {
            ns: ms * 1_000_000,
            watcher: watcher.to_owned(),
            act: act.to_owned(),
            target: "build".to_owned(),
        };
        // Ten samples of 1 ms.
        let deeds = vec![
            deed(0, "loop", "memory.reclaim 4096"),
            deed(1, "loop", "memory.reclaim 8192"),
            deed(2, "earlyoom", "SIGTERM"),
            deed(4, "loop", "memory.reclaim 4096"),
            deed(7, "earlyoom", "SIGKILL"),
            deed(10, "earlyoom", "SIGTERM"),
        ];
        let text = render(&Timeline { deeds, ..served() }, 4096, 100);
        let rows: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("watcher earlyoom")).collect();
        assert_eq!(rows[1], "       SIGKILL |      @   | 1", "{text}");
        assert_eq!(rows[2], "       SIGTERM | @       @| 2", "{text}");
        assert_eq!((rows[4], rows[5]), ("", "watcher loop"), "{text}");
        assert_eq!(rows[6], "memory.reclaim |@  +      | 3", "{text}");
        assert!(text.contains(" Watcher:"), "{text}");
        assert!(!render(&served(), 4096, 100).contains("atcher"), "no watcher did anything");
    }
}
