//! Runs a plan on several threads.
//!
//! Threads take the next job from a counter. Every job has its own slot, so the order of results
//! does not depend on which run finishes first. A run that fails or panics does not affect others.
//! A run waits until this computer has the memory for it.

pub mod room;

use crate::plan::{RunJob, RunPlan};
use crate::world::{Failure, FailureCause, RunBackend, RunControl};
use pagetide_scenario::model::{Scenario, Variant};
use pagetide_scenario::record::RunRecord;
use room::MemoryBudget;
use std::any::Any;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

/// A job and its outcome.
#[derive(Clone, Debug)]
pub struct RunResult {
    pub job: RunJob,
    pub outcome: JobOutcome,
}

#[derive(Clone, Debug)]
pub enum JobOutcome {
    Finished(Box<RunRecord>),
    /// An error or a panic.
    Failed(Failure),
    /// Not started, or stopped, because the user cancelled.
    Cancelled,
}

/// Progress of an execution, reported from any thread.
#[derive(Debug)]
pub enum RunProgress<'a> {
    /// A run starts.
    Started {
        job: RunJob,
        /// Virtual nanoseconds done so far.
        clock: &'a Arc<AtomicU64>,
    },
    /// A run ended.
    Ended { job: RunJob, outcome: &'a JobOutcome },
}

/// Runs all jobs of `plan` on `threads` threads and returns them ordered by (variant, seed).
///
/// When `cancel` becomes true, no new run starts and active runs are asked to stop. Finished runs
/// are kept.
pub fn execute(
    plan: &RunPlan,
    world: &dyn RunBackend,
    threads: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
    on_progress: &(dyn Fn(RunProgress<'_>) + Sync),
) -> Vec<RunResult> {
    let jobs = plan.jobs();
    let slots: Vec<Mutex<JobOutcome>> =
        jobs.iter().map(|_| Mutex::new(JobOutcome::Cancelled)).collect();
    perform(&plan.scenario, &jobs, world, threads, cancel, on_progress, &|index, outcome| {
        *slots[index].lock().unwrap_or_else(PoisonError::into_inner) = outcome;
    });
    let outcomes =
        slots.into_iter().map(|s| s.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut runs: Vec<RunResult> =
        jobs.into_iter().zip(outcomes).map(|(job, outcome)| RunResult { job, outcome }).collect();
    runs.sort_by_key(|run| run.job);
    runs
}

/// Runs `jobs` of a scenario on `threads` threads. `keep` gets each outcome with the job's index,
/// from any thread; a job that was not started has no outcome. `cancel` is as in [`execute`].
pub fn perform(
    scenario: &Scenario,
    jobs: &[RunJob],
    world: &dyn RunBackend,
    threads: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
    on_progress: &(dyn Fn(RunProgress<'_>) + Sync),
    keep: &(dyn Fn(usize, JobOutcome) + Sync),
) {
    let next = AtomicUsize::new(0);
    let memory = MemoryBudget::new(room::available());
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(&job) = jobs.get(index) else { break };
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let watch = RunControl { cancel: Arc::clone(cancel), clock: Arc::default() };
        let variant = &scenario.variants[job.variant];
        let name = &scenario.name;
        let outcome = perform_one(name, variant, job, world, &memory, &watch, on_progress);
        keep(index, outcome);
    };

    thread::scope(|scope| {
        for _ in 1..threads.get().min(jobs.len()) {
            let spawned = thread::Builder::new().name("run".to_owned()).spawn_scoped(scope, work);
            if spawned.is_err() {
                break; // no more threads: the existing ones do the work
            }
        }
        work();
    });
}

/// Performs a run when this computer has the memory for it.
pub(crate) fn perform_one(
    scenario: &str,
    variant: &Variant,
    job: RunJob,
    world: &dyn RunBackend,
    memory: &MemoryBudget,
    watch: &RunControl,
    on_progress: &(dyn Fn(RunProgress<'_>) + Sync),
) -> JobOutcome {
    let place = memory.take(world.room(variant));
    on_progress(RunProgress::Started { job, clock: &watch.clock });
    let outcome = match place {
        Ok(_) => run_one(scenario, variant, world, job, watch),
        Err(failure) => JobOutcome::Failed(failure),
    };
    on_progress(RunProgress::Ended { job, outcome: &outcome });
    outcome
}

thread_local! {
    /// Where the run on this thread panicked; `None`: no run is active on it.
    static PANICKED_AT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records the places of panics of runs for the report, instead of printing them. Other panics are
/// printed as before.
fn note_places_of_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_of_run = PANICKED_AT.with_borrow_mut(|place| match place {
                Some(place) => {
                    *place = panic.location().map(ToString::to_string).unwrap_or_default();
                    true
                }
                None => false,
            });
            if !is_of_run {
                before(panic);
            }
        }));
    });
}

fn run_one(
    scenario: &str,
    variant: &Variant,
    world: &dyn RunBackend,
    job: RunJob,
    watch: &RunControl,
) -> JobOutcome {
    note_places_of_panics();
    PANICKED_AT.set(Some(String::new()));
    // Unwind safety: the run is dropped after a panic, and no state is kept between runs.
    let result = catch_unwind(AssertUnwindSafe(|| world.run(scenario, variant, job.seed, watch)));
    let place = PANICKED_AT.take().filter(|place| !place.is_empty());
    match result {
        Ok(Ok(record)) => JobOutcome::Finished(Box::new(record)),
        Ok(Err(_)) if watch.cancel.load(Ordering::Relaxed) => JobOutcome::Cancelled,
        Ok(Err(failure)) => JobOutcome::Failed(failure),
        Err(panic) => JobOutcome::Failed(Failure {
            message: format!(
                "internal error: {}{}",
                panic_message(panic.as_ref()),
                place.map_or_else(String::new, |place| format!(" ({place})"))
            ),
            hint: Some(format!(
                "this is a bug in {}; it repeats with `--variant {} --seed {} --repeats 1`",
                match variant.setup.plugins.iter().next() {
                    None => "Pagetide".to_owned(),
                    Some((_, name)) => format!("the policy {name}, or in Pagetide"),
                },
                variant.name,
                job.seed
            )),
            cause: FailureCause::Run,
        }),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a run panicked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{failure, record, scenario};
    use std::time::Duration;

    fn plan(repeats: u32) -> RunPlan {
        let mut scenario = scenario(&["a", "b", "c"]);
        scenario.repeats = repeats;
        RunPlan::new(scenario).unwrap()
    }

    fn threads(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    fn finished(runs: &[RunResult]) -> Vec<(usize, u64, String)> {
        runs.iter()
            .filter_map(|run| match &run.outcome {
                JobOutcome::Finished(record) => {
                    Some((run.job.variant, run.job.seed, format!("{record:?}")))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn order_does_not_depend_on_the_number_of_threads() {
        let world = |_: &str, v: &Variant, seed: u64, _: &RunControl| {
            thread::sleep(Duration::from_millis(7 - seed % 7)); // later seeds finish earlier
            Ok(record(&v.name, seed, &[("pgscan_kswapd", seed as f64)]))
        };
        let plan = plan(4);
        let cancel = Arc::default();
        let one = execute(&plan, &world, threads(1), &cancel, &|_| {});
        let four = execute(&plan, &world, threads(4), &cancel, &|_| {});
        assert_eq!(finished(&one).len(), 12);
        assert_eq!(finished(&one), finished(&four));
        let mut sorted: Vec<RunJob> = one.iter().map(|run| run.job).collect();
        sorted.sort();
        assert_eq!(sorted, one.iter().map(|run| run.job).collect::<Vec<_>>());
    }

    #[test]
    fn failures_and_panics_cost_only_themselves() {
        let world = |_: &str, v: &Variant, seed: u64, _: &RunControl| match (v.name.as_str(), seed)
        {
            ("a", 2) => Err(failure("disk on fire")),
            ("b", 1) => panic!("list is broken at {seed}"),
            _ => Ok(record(&v.name, seed, &[])),
        };
        let runs = execute(&plan(2), &world, threads(3), &Arc::default(), &|_| {});
        assert_eq!(finished(&runs).len(), 4);
        let failures: Vec<String> = runs
            .iter()
            .filter_map(|run| match &run.outcome {
                JobOutcome::Failed(failure) => Some(failure.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(failures[0], "disk on fire");
        let place = concat!("internal error: list is broken at 1 (", file!(), ":");
        assert!(failures[1].starts_with(place), "{failures:?}");
    }

    #[test]
    fn cancelling_keeps_what_finished() {
        let cancel: Arc<AtomicBool> = Arc::default();
        let world = |_: &str, v: &Variant, seed: u64, watch: &RunControl| {
            if seed == 2 {
                watch.cancel.store(true, Ordering::Relaxed);
                return Err(failure("cancelled"));
            }
            Ok(record(&v.name, seed, &[]))
        };
        let runs = execute(&plan(5), &world, threads(1), &cancel, &|_| {});
        assert_eq!(finished(&runs).len(), 3); // seed 1 of all three variants
        let cancelled = runs.iter().filter(|run| matches!(run.outcome, JobOutcome::Cancelled));
        assert_eq!(cancelled.count(), 12);
    }

    #[test]
    fn progress_is_reported_for_every_run() {
        let (started, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let world =
            |_: &str, v: &Variant, seed: u64, _: &RunControl| Ok(record(&v.name, seed, &[]));
        execute(&plan(2), &world, threads(2), &Arc::default(), &|progress| {
            match progress {
                RunProgress::Started { .. } => &started,
                RunProgress::Ended { .. } => &ended,
            }
            .fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!((started.into_inner(), ended.into_inner()), (6, 6));
    }
}
