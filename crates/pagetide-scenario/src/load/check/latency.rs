//! Checks the latency of a disk: a time, percentiles, or a recorded histogram.
//!
//! Invariant: the mean of the shape is the latency of the disk, so nothing is scaled unless the
//! scenario gives a mean.

use super::latency_file;
use crate::load::decode::Time;
use crate::load::raw::{LatencyTable, RawLatency};
use crate::load::span::{clip, ProblemSink, Spanned, SpannedProblem};
use crate::model::latency_shape::{LatencyPiece, LatencyShape, LATENCY_NS_MAX};
use std::path::PathBuf;
use std::sync::Arc;

/// All requests, in ten-thousandths.
const ALL: u64 = 10_000;
const EXAMPLE: &str = "{ p50 = \"90us\", p99 = \"800us\", p999 = \"4ms\" }, for example";

/// The mean, and the distribution if there is one. `jobs`: the requests of this direction in fio's
/// output. `files`: the histograms that are read.
pub(super) fn check(
    latency: &RawLatency,
    jobs: &str,
    files: &mut Vec<PathBuf>,
    sink: &mut ProblemSink,
) -> Option<(u64, Option<Arc<LatencyShape>>)> {
    let table = match latency {
        RawLatency::Fixed(time) => return Some((time.0, None)),
        RawLatency::Spread(table) => table,
    };
    let marks = marks(table);
    let shape = match (&table.file, marks.is_empty()) {
        (Some(file), true) => recorded(file, jobs, files, sink)?,
        (Some(file), false) => {
            let message = "a latency has a file or percentiles";
            sink.hinted(file.span, message, "leave out the file, or all percentiles");
            return None;
        }
        (None, _) => fitted(table, &marks, sink)?,
    };
    let Some(mean) = &table.mean else {
        return Some((shape.mean_ns(), Some(Arc::new(shape))));
    };
    if mean.value.0 == 0 {
        sink.hinted(mean.span, "the mean latency is 0", "leave it out, or write more than 0");
        return None;
    }
    Some((mean.value.0.min(LATENCY_NS_MAX), Some(Arc::new(shape))))
}

/// The percentiles of a table: its name, the share of the requests, and the time.
type Mark<'a> = (&'static str, u64, &'a Spanned<Time>);

fn marks(table: &LatencyTable) -> Vec<Mark<'_>> {
    let all = [
        ("min", 0, &table.min),
        ("p1", 100, &table.p1),
        ("p10", 1000, &table.p10),
        ("p25", 2500, &table.p25),
        ("p50", 5000, &table.p50),
        ("p75", 7500, &table.p75),
        ("p90", 9000, &table.p90),
        ("p95", 9500, &table.p95),
        ("p99", 9900, &table.p99),
        ("p999", 9990, &table.p999),
        ("p9999", 9999, &table.p9999),
        ("max", ALL, &table.max),
    ];
    all.into_iter().filter_map(|(name, share, time)| Some((name, share, time.as_ref()?))).collect()
}

/// The distribution through the percentiles. It is flat below the lowest and above the highest.
fn fitted(
    table: &LatencyTable,
    marks: &[Mark<'_>],
    sink: &mut ProblemSink,
) -> Option<LatencyShape> {
    if marks.len() < 2 {
        if table.bad.is_empty() {
            let message = "the latency has fewer than two percentiles, and no file";
            sink.hinted(table.at, message, format!("write {EXAMPLE}"));
        }
        return None;
    }
    for pair in marks.windows(2) {
        let [(lower, _, low), (higher, _, high)] = pair else { continue };
        if low.value.0 > high.value.0 {
            sink.push(SpannedProblem {
                span: high.span,
                message: format!("`{higher}` is shorter than `{lower}`"),
                hint: Some("times grow with the percentile".into()),
                also: Some((low.span, format!("`{lower}` here"))),
            });
            return None;
        }
    }
    let (&(_, first, lowest), &(_, last, highest)) = (marks.first()?, marks.last()?);
    let flat = |count, time: &Spanned<Time>| {
        let ns = time.value.0;
        LatencyPiece { count, low_ns: ns, high_ns: ns }
    };
    let mut pieces = vec![flat(first, lowest), flat(ALL - last, highest)];
    pieces.extend(marks.windows(2).map(|pair| LatencyPiece {
        count: pair[1].1 - pair[0].1,
        low_ns: pair[0].2.value.0,
        high_ns: pair[1].2.value.0,
    }));
    LatencyShape::new(pieces)
}

fn recorded(
    file: &Spanned<String>,
    jobs: &str,
    files: &mut Vec<PathBuf>,
    sink: &mut ProblemSink,
) -> Option<LatencyShape> {
    let full = sink.path(file);
    let read = latency_file::read(&full, jobs).and_then(|pieces| {
        let none = || ("it has no requests".to_owned(), Some(latency_file::FORMS.to_owned()));
        LatencyShape::new(pieces).ok_or_else(none)
    });
    if !files.contains(&full) {
        files.push(full);
    }
    read.map_err(|(message, hint)| {
        let message = format!("latencies `{}`: {message}", clip(&file.value));
        sink.push(SpannedProblem { span: file.span, message, hint, also: None });
    })
    .ok()
}
