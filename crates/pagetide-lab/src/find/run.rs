//! Runs what a search asks for, until it asks for nothing more.

use super::criterion::Mistake;
use super::question::{Find, Job, Told};
use super::search::Place;
use crate::execute::{perform, Outcome, Progress};
use crate::plan;
use crate::world::{Failure, World};
use pagetide_scenario::model::{Scenario, Variant};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a search has no verdict.
#[derive(Debug)]
pub enum Stopped {
    /// The user cancelled.
    Cancelled,
    /// The question is wrong.
    Mistake(Mistake),
    /// The scenario as it stands cannot be run.
    Failed(Failure),
}

/// Gives the setup of the scenario with these changes, or why there is none.
pub type Load<'a> = &'a dyn Fn(&[(String, String)]) -> Result<Variant, String>;

/// Asks, runs and tells until the verdict is there. `on_batch` gets the jobs before they run.
///
/// # Errors
/// The search was stopped.
pub fn run(
    find: &mut Find,
    load: Load<'_>,
    world: &dyn World,
    threads: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
    on_batch: &dyn Fn(&[Job]),
    on_progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(), Stopped> {
    loop {
        let jobs = find.ask();
        if jobs.is_empty() {
            return Ok(());
        }
        on_batch(&jobs);
        let is_first = find.nr_runs() == 0;
        let mut setups: Vec<Variant> = Vec::new();
        let mut index_of: BTreeMap<Place, Result<usize, String>> = BTreeMap::new();
        let mut planned: Vec<(plan::Job, Place)> = Vec::new();
        for job in jobs {
            let index = index_of.entry(job.place).or_insert_with(|| {
                let variant = load(&job.sets)?;
                setups.push(variant);
                Ok(setups.len() - 1)
            });
            match index {
                Ok(variant) => {
                    planned.push((plan::Job { variant: *variant, seed: job.seed }, job.place));
                }
                Err(refused) => find.tell(job.place, job.seed, Told::Failed(refused.clone())),
            }
        }
        let scenario = Scenario { variants: setups, ..find.question().scenario.clone() };
        let jobs: Vec<plan::Job> = planned.iter().map(|(job, _)| *job).collect();
        let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());
        perform(&scenario, &jobs, world, threads, cancel, on_progress, &|index, outcome| {
            let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes.push((index, outcome));
        });
        let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let nr_done = outcomes.len();
        for (index, outcome) in outcomes {
            let (job, place) = planned[index];
            let told = match outcome {
                Outcome::Finished(record) => Told::Record(record),
                Outcome::Cancelled => return Err(Stopped::Cancelled),
                Outcome::Failed(failure) if is_first => return Err(Stopped::Failed(failure)),
                Outcome::Failed(failure) => Told::Failed(failure.message),
            };
            find.tell(place, job.seed, told);
        }
        if nr_done < jobs.len() {
            return Err(Stopped::Cancelled);
        }
        if is_first {
            find.check().map_err(Stopped::Mistake)?;
        }
    }
}
