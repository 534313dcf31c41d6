//! The timeline of a run as OpenMetrics text, under the names of node_exporter and cAdvisor, so that dashboards that
//! draw a machine draw a simulated one (docs/openmetrics.md).
//!
//! Linux: what node_exporter reads of /proc/meminfo, /proc/vmstat, /proc/zoneinfo and /proc/pressure/memory, and
//! cAdvisor of the files of each group.
//!
//! Invariant: the samples of a family stand together, those of a series in rising time, no two of a series in the
//! same millisecond, which is all that Prometheus keeps of a time. So are the names and values those that the
//! exporters would give, where they have one.

mod families;
mod text;

use pagetide_core::config::Value;
use pagetide_core::control::GroupControl;
use pagetide_scenario::model::Setup;
use pagetide_scenario::timeline::{Sample, Timeline};

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The samples.
    pub timeline: &'a Timeline,
    /// What was run: the limits of groups, and the number of CPUs.
    pub setup: &'a Setup,
    /// Bytes in a page.
    pub page_size: u64,
    /// The label `instance` of all series.
    pub instance: &'a str,
    /// The time of the run's start, in seconds since 1970.
    pub start_s: u64,
}

/// The text, to its `# EOF`. Of a timeline without samples that is all.
pub fn render(source: &Source<'_>) -> String {
    let samples = thinned(&source.timeline.samples);
    let mut out = String::new();
    if !samples.is_empty() {
        families::node(source, &samples, &mut out);
        families::containers(source, &samples, &mut out);
    }
    out.push_str("# EOF\n");
    out
}

/// Milliseconds of virtual time.
fn milliseconds(sample: &Sample) -> u64 {
    sample.end_ns.div_ceil(1_000_000)
}

/// A sample, with the sums of what the others counted since the one before it.
#[derive(Clone, Debug)]
struct At<'a> {
    milliseconds: u64,
    last: &'a Sample,
    /// All samples that end in this millisecond.
    all: &'a [Sample],
}

/// The last sample of each millisecond.
fn thinned(samples: &[Sample]) -> Vec<At<'_>> {
    samples
        .chunk_by(|a, b| milliseconds(a) == milliseconds(b))
        .filter_map(|all| {
            let last = all.last()?;
            Some(At { milliseconds: milliseconds(last), last, all })
        })
        .collect()
}

/// The limit of each group when it is made, in bytes; 0: none, as cAdvisor has it.
fn limits(setup: &Setup) -> Vec<u64> {
    let limit = |group: &pagetide_scenario::model::Group| {
        let is_limit = |control| matches!(control, GroupControl::Max | GroupControl::LimitInBytes);
        let write = group.controls.iter().rev().find(|write| is_limit(write.control));
        match write.map(|write| write.value) {
            Some(Value::Size(bytes)) => bytes,
            _ => 0,
        }
    };
    setup.groups.iter().map(limit).collect()
}

#[cfg(test)]
mod tests;
