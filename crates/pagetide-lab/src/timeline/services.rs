//! Charts of services: latency of requests, and late and dropped requests.

use super::{axis, bars, column_of, row_of, shade, time};
use pagetide_scenario::record::timeline::{ServiceRow, Timeline};
use std::fmt::Write;

/// Part of the legend.
pub(super) const LEGEND: &str =
    "Service: latency of requests by end time, `#` mean, `:` longest; number \
    of requests, late and dropped ones, each with its own scale to `@`; totals on the right.";

/// Lines of a chart.
const HEIGHT: u64 = 6;

/// One chart per service.
pub(super) fn draw(timeline: &Timeline, nr_columns: usize, out: &mut String) {
    for (service, name) in timeline.services.iter().enumerate() {
        let column = |at| {
            let samples = column_of(timeline, nr_columns, at).iter();
            let rows = samples.filter_map(|sample| sample.services.get(service));
            rows.fold(ServiceRow::default(), |sum, row| sum.merged(row))
        };
        let columns: Vec<ServiceRow> = (0..nr_columns).map(column).collect();
        let level = |row: &ServiceRow| (row.latency_mean_ns(), row.latency_max_ns);
        let levels: Vec<Option<(u64, u64)>> =
            columns.iter().map(|row| (row.requests > 0).then(|| level(row))).collect();
        let top = levels.iter().flatten().map(|level| level.1).max().unwrap_or(0);
        let _ = writeln!(out, "service {name}, latency (0 to {})", time(top));
        bars(&levels, HEIGHT, top, time, out);
        let shaded = |label: &str, of: fn(&ServiceRow) -> u64, out: &mut String| {
            let total: u64 = columns.iter().map(of).sum();
            let most = columns.iter().map(of).max().unwrap_or(0);
            row_of(label, columns.iter().map(|row| shade(of(row), most)), &total.to_string(), out);
        };
        shaded("requests", |row| row.requests, out);
        shaded("late", |row| row.late, out);
        shaded("dropped", |row| row.dropped, out);
        axis(timeline, nr_columns, out);
        out.push('\n');
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::render;
    use super::*;
    use pagetide_scenario::record::timeline::TimelineSample;

    pub(in super::super) fn served() -> Timeline {
        let sample = |at: u64| TimelineSample {
            end_ns: (at + 1) * 1_000_000,
            rows: vec![None],
            services: vec![match at {
                5 => ServiceRow { dropped: 7, ..ServiceRow::default() },
                6 => ServiceRow::served(9_000_000, true),
                _ => ServiceRow::served(1_000_000, false)
                    .merged(&ServiceRow::served(2_000_000, false)),
            }],
            ..TimelineSample::default()
        };
        Timeline {
            groups: vec![String::new()],
            machine_pages: 2000,
            high_watermarks_pages: 100,
            services: vec!["web".to_owned()],
            samples: (0..10).map(sample).collect(),
            ..Timeline::default()
        }
    }

    #[test]
    fn a_service_has_a_chart_and_lines() {
        let text = render(&served(), 4096, 100);
        let chart: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("service web")).collect();
        assert_eq!(chart[0], "service web, latency (0 to 9.000 ms)");
        assert_eq!(chart[1], "      9.000 ms |      #   |", "{text}");
        assert_eq!(chart[6], "             0 |##### ####|", "{text}");
        assert_eq!(chart[7], "      requests |@@@@@ +@@@| 17", "{text}");
        assert_eq!(chart[8], "          late |      @   | 1", "{text}");
        assert_eq!(chart[9], "       dropped |     @    | 7", "{text}");
        assert!(text.contains("Service: latency"), "{text}");
    }
}
