//! Records: the result of a run, in the same form from every world.

pub mod timeline;

use crate::record::timeline::Timeline;
use pagetide_core::units::page_size::PageSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub value: f64,
    pub unit: Unit,
    /// Why the work is incomplete and the value is not a measurement. `None`: it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Incomplete>,
}

impl Metric {
    /// The value of completed work.
    pub fn new(value: f64, unit: Unit) -> Metric {
        Metric { value, unit, ended: None }
    }
}

/// Why work ended before it was done. If there are several reasons, the first in this order counts.
///
/// A background task that is stopped because the others have ended is complete, except for its
/// walltime.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Incomplete {
    /// The OOM killer killed the task, or one of the tasks that the value sums up.
    OomKilled,
    /// An allocation of the task failed, and the OOM killer had no task to kill.
    Refused,
    /// A watcher, such as earlyoom, killed the task, or one of the tasks that the value sums up.
    Signalled,
    /// A page that the task faulted on could not be read from its disk: SIGBUS.
    IoError,
    /// The run reached its time limit.
    Cut,
    /// The task still ran when the run ended, which does not wait for tasks in the background.
    Stopped,
    /// The work was done, but other work of the run was not, so the value is one of less load.
    /// Reports mark it; a record has no such mark.
    IncompleteRun,
}

impl Incomplete {
    pub const ALL: [Incomplete; 7] = [
        Incomplete::OomKilled,
        Incomplete::Refused,
        Incomplete::Signalled,
        Incomplete::IoError,
        Incomplete::Cut,
        Incomplete::Stopped,
        Incomplete::IncompleteRun,
    ];

    /// The word in records, JSON and CSV.
    pub const fn word(self) -> &'static str {
        match self {
            Incomplete::OomKilled => "oom-killed",
            Incomplete::Refused => "refused",
            Incomplete::Signalled => "signalled",
            Incomplete::IoError => "io-error",
            Incomplete::Cut => "cut",
            Incomplete::Stopped => "stopped",
            Incomplete::IncompleteRun => "incomplete-run",
        }
    }

    /// Whether this is why the run did less work than its scenario asks for, so that none of its
    /// values is compared.
    pub fn is_of_run(self) -> bool {
        !matches!(self, Incomplete::Stopped | Incomplete::IncompleteRun)
    }

    /// The reason why a value made of two values is incomplete, if it is.
    pub fn first_reason(one: Option<Incomplete>, other: Option<Incomplete>) -> Option<Incomplete> {
        one.into_iter().chain(other).min()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number of events.
    Count,
    /// Pages of the machine's page size.
    Pages,
    Bytes,
    /// Kilobytes, as the kernel prints them.
    Kilobytes,
    Seconds,
    BytesPerSecond,
    /// A number per second.
    PerSecond,
    Percent,
    Ratio,
}

fn default_page_size() -> u64 {
    PageSize::default().bytes()
}

fn is_default_page_size(bytes: &u64) -> bool {
    *bytes == default_page_size()
}

/// The result of one run of one variant with one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub scenario: String,
    pub variant: String,
    pub seed: u64,
    /// Version of Pagetide.
    pub version: String,
    /// Bytes in a page of the machine: the size of [`Unit::Pages`]. Records without this field are
    /// of machines with 4 KiB.
    #[serde(default = "default_page_size", skip_serializing_if = "is_default_page_size")]
    pub page_size: u64,
    /// Text of a metric's key ([`crate::metric::KeyNames`]) -> value.
    pub metrics: BTreeMap<String, Metric>,
    /// Digest of all state at the end: equal inputs give equal digests.
    pub digest: u64,
    /// Virtual time at the end, in nanoseconds.
    pub elapsed_ns: u64,
    /// Notes for the reader, for example that the time limit cut the run.
    pub notes: Vec<String>,
    /// Final /proc-like files, (name, text), in the kernel's format; empty unless requested.
    pub files: Vec<(String, String)>,
    /// The timeline, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Distributions of latencies, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<Latencies>,
}

impl RunRecord {
    /// A record without values, of a machine with pages of 4 KiB.
    pub fn new(scenario: &str, variant: &str, seed: u64) -> RunRecord {
        RunRecord {
            scenario: scenario.to_owned(),
            variant: variant.to_owned(),
            seed,
            version: String::new(),
            page_size: default_page_size(),
            metrics: BTreeMap::new(),
            digest: 0,
            elapsed_ns: 0,
            notes: Vec::new(),
            files: Vec::new(),
            timeline: None,
            latencies: Vec::new(),
        }
    }

    /// The mark of the values of complete work: some if other work of the run is incomplete.
    pub fn mark(&self) -> Option<Incomplete> {
        let mut ends = self.metrics.values().filter_map(|metric| metric.ended);
        ends.any(Incomplete::is_of_run).then_some(Incomplete::IncompleteRun)
    }
}

/// A distribution of latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Name of its metrics without the percentile: `TASK.alloc_latency`, `TASK.latency`.
    pub of: String,
    /// Upper limit of each bucket in nanoseconds, and the number of values in it, in rising order.
    /// A bucket is at most 1 % wide, and its limits are the same in every run.
    pub buckets: Vec<(u64, u64)>,
}

impl Latencies {
    /// Adds the same distribution of another run.
    pub fn add(&mut self, other: &Latencies) {
        let mut sums: BTreeMap<u64, u64> = self.buckets.iter().copied().collect();
        for &(bound, count) in &other.buckets {
            let sum = sums.entry(bound).or_default();
            *sum = sum.saturating_add(count);
        }
        self.buckets = sums.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_says_that_it_was_ended_and_older_ones_read() {
        for ended in Incomplete::ALL {
            let metric = Metric { ended: Some(ended), ..Metric::new(1.5, Unit::Seconds) };
            let text = serde_json::to_string(&metric).unwrap();
            let word = ended.word();
            assert_eq!(text, format!(r#"{{"value":1.5,"unit":"seconds","ended":"{word}"}}"#));
            assert_eq!(serde_json::from_str::<Metric>(&text).unwrap(), metric);
        }
        let old = r#"{"value":1.5,"unit":"seconds"}"#;
        let metric: Metric = serde_json::from_str(old).unwrap();
        assert_eq!(metric.ended, None);
        assert_eq!(serde_json::to_string(&metric).unwrap(), old);
        let both = Incomplete::first_reason(Some(Incomplete::Cut), Some(Incomplete::OomKilled));
        assert_eq!(both, Some(Incomplete::OomKilled));
        assert_eq!(Incomplete::first_reason(None, Some(Incomplete::Cut)), Some(Incomplete::Cut));
        assert_eq!(Incomplete::first_reason(None, None), None);
    }
}
