//! Performs runs on threads without the interpreter's lock, while the calling thread handles
//! signals and progress.
//!
//! Invariant: when [`perform`] returns, none of its threads is left, whether the runs ended, ^C was
//! pressed or a callback raised an exception.

use crate::errors;
use crate::scenario::Scenario;
use pagetide_lab::execute::{self, JobOutcome, RunResult};
use pagetide_lab::plan::{RunJob, MAX_REPEATS};
use pagetide_lab::world::RunBackend;
use pagetide_scenario::model;
use pagetide_scenario::record::RunRecord;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of signal checks and progress reports.
const EVERY: Duration = Duration::from_millis(50);

/// How to perform runs.
pub struct RunArguments {
    pub threads: NonZeroUsize,
    /// Called with (done, total) periodically.
    pub progress: Option<Py<PyAny>>,
    /// Set by another thread to end the runs.
    pub cancel: Arc<AtomicBool>,
}

impl RunArguments {
    /// On so many threads, without progress.
    pub fn on(threads: NonZeroUsize) -> RunArguments {
        RunArguments { threads, progress: None, cancel: Arc::default() }
    }
}

/// Ends runs from another thread; an argument of `perform(cancel=)`.
#[pyclass(frozen, module = "pagetide._pagetide")]
#[derive(Default)]
pub struct Cancel(pub Arc<AtomicBool>);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Cancel {
        Cancel::default()
    }

    /// Ends the runs soon. Later runs with this object end at once.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The runs, and what stopped them.
pub struct RunOutcome {
    /// In the order of the jobs.
    pub runs: Vec<RunResult>,
    /// Why the runs stopped early: ^C, or an exception of the callback.
    pub stopped: Option<PyErr>,
}

/// The number of threads; default is the number of CPUs.
pub fn threads(jobs: Option<&Bound<'_, PyAny>>) -> PyResult<NonZeroUsize> {
    let Some(jobs) = jobs else {
        return Ok(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));
    };
    let number: i64 = jobs.extract()?;
    usize::try_from(number).ok().and_then(NonZeroUsize::new).ok_or_else(|| {
        let message = format!("cannot run on {number} threads");
        errors::input(jobs.py(), message, "jobs must be at least 1")
    })
}

/// The callback for progress.
pub fn progress_callback(progress: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    let Some(progress) = progress else { return Ok(None) };
    if progress.is_instance_of::<PyBool>() {
        if !progress.extract::<bool>()? {
            return Ok(None);
        }
        let bar = progress.py().import("pagetide.progress")?.call_method0("told")?;
        return Ok(Some(bar.unbind()));
    }
    if !progress.is_callable() {
        return Err(PyTypeError::new_err(
            "progress must be True, or a function that is called with (done, total)",
        ));
    }
    Ok(Some(progress.clone().unbind()))
}

/// The seeds that `seeds=` selects: a number counted from the scenario's first seed, or a list.
///
/// Raises `InputError` if the list is empty or too long, or a seed is invalid or duplicate.
#[pyfunction]
#[pyo3(name = "seeds_of")]
pub fn seeds(
    py: Python<'_>,
    scenario: &Scenario,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<u64>> {
    let scenario = scenario.0.model(py)?;
    let wrong = |message: String, hint: &str| Err(errors::input(py, message, hint));
    let count = match given {
        None => u64::from(scenario.repeats),
        Some(given) if given.is_instance_of::<PyBool>() => {
            return Err(PyTypeError::new_err("seeds must be a number or a list of numbers"));
        }
        Some(given) => match given.extract::<i64>() {
            Ok(count) if (1..=i64::from(MAX_REPEATS)).contains(&count) => count as u64,
            Err(_) if !given.is_instance_of::<PyInt>() => return seeds_of(given, py),
            _ => {
                let hint = format!("give a number from 1 to {MAX_REPEATS}, or a list of seeds");
                return wrong(format!("cannot run with {given} seeds"), &hint);
            }
        },
    };
    match scenario.seed.checked_add(count - 1) {
        Some(last) => Ok((scenario.seed..=last).collect()),
        None => {
            wrong("the last seed would exceed 2^64 - 1".to_owned(), "choose a smaller first seed")
        }
    }
}

/// The seeds of a list.
fn seeds_of(given: &Bound<'_, PyAny>, py: Python<'_>) -> PyResult<Vec<u64>> {
    let mut seeds: Vec<u64> = Vec::new();
    let items = given.try_iter().map_err(|_| {
        PyTypeError::new_err("seeds must be a number, or a list or range of numbers")
    })?;
    for item in items {
        let item = item?;
        let seed = if item.is_instance_of::<PyBool>() { None } else { item.extract().ok() };
        let seed: u64 = seed.ok_or_else(|| {
            errors::input(
                py,
                format!("{} is not a seed", shown(&item)),
                "a seed is an integer from 0 to 2^64 - 1",
            )
        })?;
        seeds.push(seed);
        if seeds.len() > MAX_REPEATS as usize {
            let message = format!("more than {MAX_REPEATS} seeds");
            return Err(errors::input(py, message, "split them over several calls"));
        }
    }
    if seeds.is_empty() {
        return Err(errors::input(py, "the list of seeds is empty", "give one or more"));
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("the seed {} is given twice", twice[0]);
        return Err(errors::input(py, message, "two runs with the same seed are identical"));
    }
    Ok(seeds)
}

fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string())
}

/// Performs jobs of a scenario. Keeps only finite values, like a store.
pub fn perform(
    py: Python<'_>,
    scenario: &model::Scenario,
    jobs: &[RunJob],
    world: &dyn RunBackend,
    asked: &RunArguments,
) -> RunOutcome {
    let slots: Vec<Mutex<JobOutcome>> =
        jobs.iter().map(|_| Mutex::new(JobOutcome::Cancelled)).collect();
    let stopped = run_interruptibly(py, jobs.len(), asked, |cancel, done| {
        let keep = |index: usize, mut outcome: JobOutcome| {
            if let JobOutcome::Finished(record) = &mut outcome {
                record.metrics.retain(|_, metric| metric.value.is_finite());
            }
            *slots[index].lock().unwrap_or_else(PoisonError::into_inner) = outcome;
            // The receiver may have stopped listening.
            let _ = done.send(());
        };
        execute::perform(scenario, jobs, world, asked.threads, cancel, &|_| {}, &keep);
    });
    let outcomes =
        slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    let runs =
        jobs.iter().zip(outcomes).map(|(job, outcome)| RunResult { job: *job, outcome }).collect();
    RunOutcome { runs, stopped }
}

/// The records of jobs, in their order. Fails if a run failed or the runs were stopped.
pub fn records(
    py: Python<'_>,
    scenario: &model::Scenario,
    jobs: &[RunJob],
    world: &dyn RunBackend,
    asked: &RunArguments,
) -> PyResult<Vec<RunRecord>> {
    let performed = perform(py, scenario, jobs, world, asked);
    if let Some(stopped) = performed.stopped {
        return Err(errors::stopped(py, stopped, jobs.len(), None));
    }
    let (mut records, mut failures) = (Vec::new(), Vec::new());
    for RunResult { job, outcome } in performed.runs {
        match outcome {
            JobOutcome::Finished(record) => records.push(*record),
            JobOutcome::Failed(failure) => {
                let variant = &scenario.variants[job.variant].name;
                failures.push(errors::failure(py, variant, job.seed, &failure)?);
            }
            JobOutcome::Cancelled => return Err(errors::interrupted(py, jobs.len(), None)),
        }
    }
    match failures.is_empty() {
        true => Ok(records),
        false => Err(errors::run(py, failures, None)),
    }
}

/// Runs `work` on another thread without the interpreter's lock, while this thread checks signals
/// and calls the callback. `cancel` becomes true to end the work.
pub fn run_interruptibly(
    py: Python<'_>,
    total: usize,
    asked: &RunArguments,
    work: impl FnOnce(&Arc<AtomicBool>, &Sender<()>) + Send,
) -> Option<PyErr> {
    let (cancel, progress) = (&asked.cancel, asked.progress.as_ref());
    py.detach(|| {
        thread::scope(|scope| {
            let (done, ended) = channel();
            let work = move || work(cancel, &done);
            let worker = thread::Builder::new().name("runs".to_owned()).spawn_scoped(scope, work);
            match worker {
                Ok(worker) => {
                    let stopped = wait(total, progress, &ended, cancel);
                    match worker.join() {
                        Ok(()) => stopped,
                        // PyO3 converts the panic to an exception.
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
                Err(error) => {
                    Some(PyRuntimeError::new_err(format!("cannot start a thread: {error}")))
                }
            }
        })
    })
}

/// Waits until the worker drops its end of the channel. Returns the reason to stop, if there was
/// one.
fn wait(
    total: usize,
    progress: Option<&Py<PyAny>>,
    ended: &Receiver<()>,
    cancel: &AtomicBool,
) -> Option<PyErr> {
    let mut stopped = None;
    let (mut done, mut told) = (0, None);
    let mut last = Instant::now();
    loop {
        let is_over = match ended.recv_timeout(EVERY) {
            Ok(()) => {
                done += 1 + ended.try_iter().count();
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if stopped.is_none() && (is_over || last.elapsed() >= EVERY) {
            last = Instant::now();
            let looked = Python::attach(|py| {
                py.check_signals()?;
                match progress {
                    Some(progress) if told != Some(done) => {
                        told = Some(done);
                        progress.call1(py, (done, total)).map(|_| ())
                    }
                    _ => Ok(()),
                }
            });
            if let Err(error) = looked {
                cancel.store(true, Ordering::Relaxed);
                stopped = Some(error);
            }
        }
        if is_over {
            return stopped;
        }
    }
}
