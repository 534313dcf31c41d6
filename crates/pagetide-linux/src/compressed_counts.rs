//! The counters of compressed swap in a guest's report, under the metric keys of the simulator.
//!
//! Linux: `mm_stat_show`, `io_stat_show` (drivers/block/zram/zram_drv.c), `zswap_debugfs_init`
//! (mm/zswap.c). Sizes are those at the end of a phase; other counts are differences.
//! A value that the kernel does not report is absent: 6.12 does not count same-filled pages of zswap.
//! Before 6.12 /proc/vmstat has no `zswpwb`; the same count is in debugfs.
//!
//! Invariant: the values of several zram devices are added.

use pagetide_core::stats::vmstat::Event;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::{MetricWriter, ScopeKind};
use pagetide_scenario::record::Unit;

/// Columns of mm_stat and io_stat that have a metric.
const ZRAM: [(&str, usize, &MetricDecl); 8] = [
    ("mm_stat", 0, declared::ZRAM_ORIG),
    ("mm_stat", 1, declared::ZRAM_COMPR),
    ("mm_stat", 2, declared::ZRAM_USED),
    ("mm_stat", 4, declared::ZRAM_USED_MAX),
    ("mm_stat", 5, declared::ZRAM_SAME),
    ("mm_stat", 6, declared::ZRAM_COMPACTED),
    ("mm_stat", 7, declared::ZRAM_HUGE),
    ("io_stat", 1, declared::ZRAM_FAILED),
];

/// Files of zswap that have a metric.
const ZSWAP: [(&str, &MetricDecl); 9] = [
    ("pool_total_size", declared::ZSWAP_POOL),
    ("stored_pages", declared::ZSWAP_STORED),
    ("same_filled_pages", declared::ZSWAP_SAME),
    ("written_back_pages", declared::ZSWAP_WRITTEN),
    ("pool_limit_hit", declared::ZSWAP_LIMIT),
    ("reject_compress_poor", declared::ZSWAP_POOR),
    // An algorithm may fail if a page does not become smaller (6.12).
    ("reject_compress_fail", declared::ZSWAP_POOR),
    ("reject_alloc_fail", declared::ZSWAP_NO_MEMORY),
    ("reject_reclaim_fail", declared::ZSWAP_UNRECLAIMED),
];

/// The counters of compressed swap at a moment, by their metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompressedCounts(Vec<(&'static MetricDecl, u64)>);

impl CompressedCounts {
    fn get(&self, metric: &MetricDecl) -> Option<u64> {
        self.0.iter().find(|(known, _)| *known == metric).map(|(_, value)| *value)
    }

    fn add(&mut self, metric: &'static MetricDecl, value: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == metric) {
            Some((_, sum)) => *sum = sum.saturating_add(value),
            None => self.0.push((metric, value)),
        }
    }

    /// Adds the text named `zram NUMBER FILE` or `zswap FILE`.
    pub fn read(&mut self, name: &str, text: &str) {
        let words: Vec<&str> = name.split(' ').collect();
        match words.as_slice() {
            ["zram", _, file] => {
                for (_, column, metric) in ZRAM.iter().filter(|(of, ..)| of == file) {
                    let value = text.split_ascii_whitespace().nth(*column);
                    if let Some(value) = value.and_then(|value| value.parse().ok()) {
                        self.add(metric, value);
                    }
                }
            }
            ["zswap", file] => {
                for (_, metric) in ZSWAP.iter().filter(|(of, _)| of == file) {
                    if let Ok(value) = text.trim().parse() {
                        self.add(metric, value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Adds the metrics that a scope of this kind has. `counted`: the counters of /proc/vmstat.
pub fn put_compressed(
    put: &mut MetricWriter<'_>,
    kind: ScopeKind,
    [begin, end]: [&CompressedCounts; 2],
    counted: &[(String, u64)],
) {
    let since = |metric: &MetricDecl, value: u64| {
        value.saturating_sub(begin.get(metric).unwrap_or(0)) as f64
    };
    for &(metric, value) in &end.0 {
        if metric.scopes.contains(&kind) {
            put.put(
                metric,
                if metric.unit == Unit::Count { since(metric, value) } else { value as f64 },
            );
        }
    }
    let zswpwb = Event::Zswpwb.name();
    if let Some(written) = end.get(declared::ZSWAP_WRITTEN) {
        if counted.iter().all(|(name, _)| name != zswpwb) {
            put.put_named(zswpwb, since(declared::ZSWAP_WRITTEN, written), Unit::Count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::metric::{KeyNames, Owner, RunMetricSet, Scope};
    use pagetide_testing::setup;

    fn snapshot(texts: &[(&str, &str)]) -> CompressedCounts {
        let mut snapshot = CompressedCounts::default();
        for (name, text) in texts {
            snapshot.read(name, text);
        }
        snapshot
    }

    #[test]
    fn devices_are_added_and_counts_are_differences() {
        let mm_stat =
            "  8192     900    12288        0    16384        3        5        1        2\n";
        let end = snapshot(&[
            ("zram 0 mm_stat", mm_stat),
            ("zram 1 mm_stat", mm_stat),
            ("zram 0 io_stat", "       0        4        0        0\n"),
            ("zswap stored_pages", "77\n"),
            ("zswap written_back_pages", "50\n"),
            ("zswap duplicate_entry", "9\n"),
        ]);
        let begin = snapshot(&[("zswap written_back_pages", "20\n"), ("zswap stored_pages", "7")]);
        let mut metrics = RunMetricSet::new();
        let phase = Scope::Phase { task: Owner::new("t"), phase: "p".to_owned() };
        put_compressed(&mut metrics.of(phase), ScopeKind::Phase, [&begin, &end], &[]);
        put_compressed(&mut metrics.of(Scope::Machine), ScopeKind::Machine, [&begin, &end], &[]);
        let setup = setup(
            "machine.memory = '1GiB'\n[[task]]\nname = 't'\n[[task.phase]]\nname = 'p'\n\
             workload = 'touch'\nsize = '1MiB'\n",
        );
        let texts = metrics.into_texts(&KeyNames::of(&setup));
        let value = |key: &str| texts.get(key).map(|metric| metric.value);
        assert_eq!(value("t.p.zram.orig_data_size"), Some(16384.0));
        assert_eq!(value("t.p.zram.mem_used_max"), None, "of the whole run only");
        assert_eq!(value("zram.mem_used_max"), Some(32768.0));
        assert_eq!(value("zram.failed_writes"), Some(4.0));
        assert_eq!(value("t.p.zswap.stored_pages"), Some(77.0));
        assert_eq!(value("zswap.written_back_pages"), Some(30.0));
        assert_eq!(value("t.p.zswpwb"), Some(30.0), "not in this /proc/vmstat");
        assert_eq!(value("zswap.same_filled_pages"), None);
    }
}
