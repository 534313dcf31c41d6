//! Results of a run beside the machine's counters: notes, samples, slab levels.
//!
//! Invariant: nothing here changes the run, except that it ends once `nr_unfinished` is 0.

pub(crate) mod pathologies;
pub(crate) mod slabs;
pub(crate) mod timeline;

use crate::task::MachineCounts;
use pagetide_core::units::Nanos;
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::timeline::{ServiceRow, TimelineDeed};
use pathologies::PathologyMeter;
use slabs::{SlabLevels, SlabSamples};
use std::collections::BTreeMap;
use timeline::{SampledWorld, TimelineSampler};

#[derive(Debug, Default)]
pub(crate) struct RunResults {
    /// Notes for the record, and how often each occurred.
    pub notes: BTreeMap<String, u64>,
    /// Number of foreground tasks that have not ended.
    pub nr_unfinished: usize,
    /// Counts at the end of the last foreground task that completed its work.
    pub done: Option<MachineCounts>,
    pub slab_samples: SlabSamples,
    /// Slab levels before the first task starts.
    pub idle_slabs: SlabLevels,
    /// Slab levels after the run, all grace periods and a shrink of all caches.
    pub shrunk_slabs: SlabLevels,
    /// `None` unless a timeline was requested.
    pub timeline: Option<TimelineSampler>,
    /// `None` unless its metrics were requested.
    pub pathologies: Option<PathologyMeter>,
}

impl RunResults {
    pub fn new(nr_foreground: usize, setup: &Setup) -> RunResults {
        RunResults {
            nr_unfinished: nr_foreground,
            slab_samples: SlabSamples::new(setup.groups.len()),
            pathologies: setup.measures_pathologies.then(PathologyMeter::new),
            ..RunResults::default()
        }
    }

    pub fn note(&mut self, note: String) {
        *self.notes.entry(note).or_default() += 1;
    }

    /// Adds finished or dropped requests of a task's service to the current sample.
    pub fn note_requests(&mut self, task: usize, requests: ServiceRow) {
        if let Some(timeline) = &mut self.timeline {
            timeline.note_requests(task, &requests);
        }
    }

    /// Notes what a watcher did.
    pub fn note_deed(&mut self, deed: impl FnOnce() -> TimelineDeed) {
        if let Some(timeline) = &mut self.timeline {
            timeline.note_deed(deed());
        }
    }

    pub fn note_removed(&mut self, group: usize) {
        if let Some(timeline) = &mut self.timeline {
            timeline.note_removed(group);
        }
    }

    /// Takes all samples due until `at`. No event at `at` has run yet.
    #[inline]
    pub fn sample_until(&mut self, at: Nanos, watched: &SampledWorld<'_>) {
        if let Some(timeline) = &mut self.timeline {
            timeline.until(at, watched);
        }
        if let Some(pathologies) = &mut self.pathologies {
            pathologies.until(at, watched.machine);
        }
        self.slab_samples.until(at, watched.machine, watched.groups);
    }
}
