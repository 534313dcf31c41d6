//! What a run leaves behind: one record, the same from every world.

use crate::timeline::Timeline;
use pagetide_core::page_size::PageSize;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number of events.
    Count,
    /// Pages of the machine's page size.
    Pages,
    /// Bytes.
    Bytes,
    /// Kilobytes, as the kernel prints them.
    Kilobytes,
    /// Seconds.
    Seconds,
    /// Bytes a second.
    BytesPerSecond,
    /// Per cent.
    Percent,
    /// A plain ratio.
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
    /// Scenario name.
    pub scenario: String,
    /// Variant name.
    pub variant: String,
    /// Seed of this run.
    pub seed: u64,
    /// Version of Pagetide.
    pub version: String,
    /// Bytes in a page of the machine: what [`Unit::Pages`] counts. Records that do not say are of
    /// machines with 4 KiB.
    #[serde(default = "default_page_size", skip_serializing_if = "is_default_page_size")]
    pub page_size: u64,
    /// Text of a metric's key ([`crate::metric::Names`]) -> value.
    pub metrics: BTreeMap<String, Metric>,
    /// Digest of all state at the end: equal inputs give equal digests.
    pub digest: u64,
    /// Virtual time at the end, nanoseconds.
    pub elapsed_ns: u64,
    /// Things the reader should know, for example that the time limit cut the run.
    pub notes: Vec<String>,
    /// Final /proc-like files, (name, text), in the kernel's layout; empty unless asked for.
    pub files: Vec<(String, String)>,
    /// Who had how much memory when, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
}
