//! The timeline of a run as OpenMetrics text with the names of node_exporter and cAdvisor, so that
//! existing dashboards show a simulated machine (docs/outputs.md).
//!
//! Linux: node_exporter reads /proc/meminfo, /proc/vmstat, /proc/zoneinfo and
//! /proc/pressure/memory; cAdvisor reads the files of each group.
//!
//! Invariant: the samples of a family are together; those of a series ascend in time, at most one
//! per millisecond, which is the resolution of Prometheus. Names and values are those of the
//! exporters, where these have one.

mod families;
mod text;

use pagetide_core::config::ControlValue;
use pagetide_core::control::GroupControl;
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::timeline::{Timeline, TimelineSample};

/// Input of [`render`].
#[derive(Clone, Copy, Debug)]
pub struct OpenMetricsSource<'a> {
    pub timeline: &'a Timeline,
    /// For the limits of groups.
    pub setup: &'a Setup,
    /// Bytes per page.
    pub page_size: u64,
    /// The label `instance` of all series.
    pub instance: &'a str,
    /// The time of the run's start, in seconds since 1970.
    pub start_s: u64,
}

/// The text with its `# EOF`. A timeline without samples gives only that line.
pub fn render(source: &OpenMetricsSource<'_>) -> String {
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
fn milliseconds(sample: &TimelineSample) -> u64 {
    sample.end_ns.div_ceil(1_000_000)
}

/// The last sample of a millisecond, with all samples of it.
#[derive(Clone, Debug)]
struct LastSample<'a> {
    milliseconds: u64,
    last: &'a TimelineSample,
    /// All samples that end in the millisecond.
    all: &'a [TimelineSample],
}

/// The last sample of each millisecond.
fn thinned(samples: &[TimelineSample]) -> Vec<LastSample<'_>> {
    samples
        .chunk_by(|a, b| milliseconds(a) == milliseconds(b))
        .filter_map(|all| {
            let last = all.last()?;
            Some(LastSample { milliseconds: milliseconds(last), last, all })
        })
        .collect()
}

/// The limit of each group when it is created, in bytes; 0: no limit, as in cAdvisor.
fn limits(setup: &Setup) -> Vec<u64> {
    let limit = |group: &pagetide_scenario::model::Group| {
        let is_limit = |control| matches!(control, GroupControl::Max | GroupControl::LimitInBytes);
        let write = group.controls.iter().rev().find(|write| is_limit(write.control));
        match write.map(|write| write.value) {
            Some(ControlValue::Size(bytes)) => bytes,
            _ => 0,
        }
    };
    setup.groups.iter().map(limit).collect()
}

#[cfg(test)]
mod tests;
