//! How the latencies of the guest's disks are spread.
//!
//! After each run the guest measures single requests, one at a time. Their distribution, scaled to
//! the mean of the case's own requests ([`crate::disk_times`]), is that of the simulator's disks.
//!
//! Invariant: only the shape is used. The mean stays that of /proc/diskstats.

use pagetide_scenario::model::latency_shape::{LatencyPiece, LatencyShape};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Beginning of the names of the guest's texts: `latencies SERIAL read`, or `write`.
const TEXT: &str = "latencies ";

/// Binary digits that a latency keeps: within 3 % of the measured one, and few rows in a recording.
const DIGITS: u32 = 5;

/// `SERIAL read` or `SERIAL write` -> latencies in nanoseconds, and their counts.
pub type DiskLatencies = BTreeMap<String, BTreeMap<u64, u64>>;

/// The latencies in the texts of the guest (name and text), of all runs together. Ignores rows in
/// another format.
pub fn of_texts<'a>(texts: impl Iterator<Item = &'a (String, String)>) -> DiskLatencies {
    let mut all = DiskLatencies::new();
    for (name, text) in texts {
        let Some(of) = name.strip_prefix(TEXT) else { continue };
        let rows = all.entry(of.to_owned()).or_default();
        for line in text.lines() {
            let row = line.split_once(' ').and_then(|(ns, count)| {
                Some((ns.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
            });
            if let Some((ns, count)) = row {
                *rows.entry(rounded(ns)).or_default() += count;
            }
        }
    }
    all
}

fn rounded(ns: u64) -> u64 {
    let step = 1u64 << (u64::BITS - ns.leading_zeros()).saturating_sub(DIGITS);
    ns.saturating_add(step / 2) / step * step
}

/// The shape of the latencies of a disk, if they were measured. `what`: `read` or `write`.
pub fn shape(latencies: &DiskLatencies, serial: &str, what: &str) -> Option<Arc<LatencyShape>> {
    let rows = latencies.get(&format!("{serial} {what}"))?;
    let pieces = rows.iter().map(|(&ns, &count)| LatencyPiece { count, low_ns: ns, high_ns: ns });
    LatencyShape::new(pieces.collect()).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_all_runs_are_added() {
        let texts = [
            ("/proc/version", "1 2"),
            ("latencies swap read", "100000 9\n900000 1\n"),
            ("latencies swap read", "100000 9\nodd\n900000 1\n18446744073709551615 0\n"),
        ];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let all = of_texts(texts.iter());
        let rows = &all["swap read"];
        assert_eq!(rows.values().sum::<u64>(), 20);
        let near = |ns: u64| rows.keys().any(|row| row.abs_diff(ns) * 100 <= ns * 3);
        assert!(near(100_000) && near(900_000), "{rows:?}");
        assert_eq!(all.len(), 1);
        let found = shape(&all, "swap", "read").unwrap();
        assert!(found.mean_ns().abs_diff(180_000) < 5_400, "{}", found.mean_ns());
        assert_eq!(shape(&all, "swap", "write"), None);
        assert_eq!(shape(&all, "disk0", "read"), None);
    }
}
