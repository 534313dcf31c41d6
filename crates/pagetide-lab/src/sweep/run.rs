//! Makes the runs of a sweep that are not in its store.

use super::store::{SweepKey, SweepRow, SweepStore};
use crate::execute::{perform, JobOutcome, RunProgress};
use crate::plan;
use crate::world::{Failure, RunBackend};
use pagetide_scenario::model::Scenario;
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepJob {
    /// Index into the variants of the performed scenario: one per point and variant.
    pub setup: usize,
    /// Key of its row.
    pub key: SweepKey,
}

/// Result of making the missing runs.
#[derive(Debug, Default)]
pub struct SweepOutcome {
    /// Runs that got a row.
    pub done: usize,
    /// Failed runs; the next sweep tries them again.
    pub failed: Vec<(SweepKey, Failure)>,
    /// Runs that are missing because the user cancelled.
    pub cancelled: usize,
    /// The store could not be written, which stopped the sweep.
    pub unwritable: Option<io::Error>,
}

/// Runs the `jobs` that have no row in the store, and appends their rows as they end.
pub fn run(
    scenario: &Scenario,
    jobs: &[SweepJob],
    store: &mut SweepStore,
    world: &dyn RunBackend,
    threads: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
    on_progress: &(dyn Fn(RunProgress<'_>) + Sync),
) -> SweepOutcome {
    let digest = store.origin().map(|origin| origin.digest.clone()).unwrap_or_default();
    let missing: Vec<&SweepJob> = jobs.iter().filter(|job| !store.has(&job.key)).collect();
    let planned: Vec<plan::RunJob> =
        missing.iter().map(|job| plan::RunJob { variant: job.setup, seed: job.key.seed }).collect();
    let state = Mutex::new((store, SweepOutcome::default()));
    perform(scenario, &planned, world, threads, cancel, on_progress, &|index, outcome| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (store, ended) = &mut *state;
        let key = &missing[index].key;
        match outcome {
            JobOutcome::Finished(mut record) => {
                // The performed variant is also named after its point; the row has both separately.
                record.variant.clone_from(&key.variant);
                // JSON has no NaN or infinity.
                record.metrics.retain(|_, metric| metric.value.is_finite());
                let row = SweepRow {
                    scenario_digest: digest.clone(),
                    knobs: key.knobs.clone(),
                    record: *record,
                };
                match store.append(row) {
                    Ok(()) => ended.done += 1,
                    Err(error) => {
                        // Later writes fail because of the first error.
                        ended.unwritable.get_or_insert(error);
                        cancel.store(true, Ordering::Relaxed);
                    }
                }
            }
            JobOutcome::Failed(failure) => ended.failed.push((key.clone(), failure)),
            JobOutcome::Cancelled => {}
        }
    });
    let (_, mut ended) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.cancelled = missing.len() - ended.done - ended.failed.len();
    ended.failed.sort_by(|a, b| a.0.cmp(&b.0));
    ended
}

/// All runs of a sweep, point by point.
pub fn jobs(
    points: &[Vec<(String, String)>],
    variants: &[String],
    seeds: impl Iterator<Item = u64> + Clone,
) -> Vec<SweepJob> {
    let mut jobs = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let knobs: BTreeMap<String, String> = point.iter().cloned().collect();
        for (index, variant) in variants.iter().enumerate() {
            for seed in seeds.clone() {
                let key = SweepKey { variant: variant.clone(), knobs: knobs.clone(), seed };
                jobs.push(SweepJob { setup: at * variants.len() + index, key });
            }
        }
    }
    jobs
}
