//! The runs of a sweep: every point of a grid, with every variant and every seed, and their rows in
//! the store of `pagetide sweep`.
//!
//! Invariant: rows are in the order of their keys, whatever performed the runs.

use crate::errors;
use crate::knobs::{self, KnobPoint, KnobSettings};
use crate::result::{metrics_with, Result as PointResult, SummaryRows};
use crate::rows;
use crate::run::{self, RunArguments};
use crate::scenario::{refused_by, Scenario, ScenarioInner};
use crate::source::SourceError;
use crate::table::{preformatted, Table};
use pagetide_lab::execute::{JobOutcome, RunProgress, RunResult};
use pagetide_lab::plan::RunJob;
use pagetide_lab::sweep::output;
use pagetide_lab::sweep::run::{jobs, run as run_missing, SweepJob, SweepOutcome};
use pagetide_lab::sweep::store::{StoreOrigin, SweepKey, SweepRow, SweepStore, FILE};
use pagetide_lab::world::Simulator;
use pagetide_scenario::diagnostic::Diagnostics;
use pagetide_scenario::metric::criterion::{check_name, Mistake, RunMetrics};
use pagetide_scenario::model;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The points that follow so many mistakes are not checked.
const MISTAKES_MAX: usize = 100;

/// The runs of a sweep, with a store in memory or in a directory. The base class of
/// `pagetide.Sweep`.
#[pyclass(frozen, subclass, module = "pagetide._pagetide")]
pub struct SweepRuns {
    /// The scenario without the grid.
    #[pyo3(get)]
    scenario: Scenario,
    points: Vec<KnobPoint>,
    /// Names of the knobs.
    #[pyo3(get)]
    knobs: Vec<String>,
    /// Names of the variants.
    #[pyo3(get)]
    variants: Vec<String>,
    /// The seeds of each point and variant.
    #[pyo3(get)]
    seeds: Vec<u64>,
    /// A variant for each point and variant.
    setups: model::Scenario,
    jobs: Vec<SweepJob>,
    directory: PathBuf,
    store: Mutex<SweepStore>,
}

/// A point and its runs: variants and seeds.
type PointRuns = (usize, Vec<(String, u64)>);
/// A failed run: variant, settings, seed, reason.
type FailedRun = (String, KnobSettings, u64, String);

#[pymethods]
impl SweepRuns {
    #[new]
    #[pyo3(signature = (scenario, grid, *, seeds = None, variants = None, store = None))]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        grid: &Bound<'_, PyAny>,
        seeds: Option<&Bound<'_, PyAny>>,
        variants: Option<Vec<String>>,
        store: Option<PathBuf>,
    ) -> PyResult<SweepRuns> {
        let model = scenario.0.model(py)?;
        let points = knobs::points(grid, &model.variants[0].setup)?;
        let seeds = run::seeds(py, scenario, seeds)?;
        let all = || model.variants.iter().map(|it| it.name.clone()).collect();
        let variants = unique(variants.unwrap_or_else(all).iter());
        variants.iter().try_for_each(|it| rows::variant_index(py, scenario, it).map(|_| ()))?;
        let setups = py.detach(|| setups(&scenario.0, &points, &variants));
        let setups = setups.map_err(|refused| refused_by(py, &refused))?;
        let origin = StoreOrigin {
            scenario: model.name.clone(),
            digest: scenario.0.digest(py)?.to_owned(),
            version: pagetide_lab::VERSION.to_owned(),
        };
        let opened = match &store {
            None => Ok(SweepStore::in_memory(origin)),
            Some(directory) => py.detach(|| SweepStore::open(directory, FILE, origin)),
        };
        Ok(SweepRuns {
            scenario: scenario.clone(),
            jobs: jobs(&points, &variants, seeds.iter().copied()),
            knobs: unique(points.iter().flatten().map(|(knob, _)| knob)),
            points,
            variants,
            seeds,
            setups: model::Scenario { variants: setups, ..model.clone() },
            directory: store.unwrap_or_default(),
            store: Mutex::new(opened.map_err(|mistake| errors::store(py, mistake))?),
        })
    }

    /// The values set at each point, as text, in the order of the grid.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.points.iter().map(|point| point.clone().into_py_dict(py)).collect()
    }

    /// Number of runs with a row.
    fn __len__(&self, py: Python<'_>) -> usize {
        self.with_rows(py, |rows| rows.len())
    }

    /// The runs without a row: the number of each point, with variants and seeds.
    fn missing(&self, py: Python<'_>) -> Vec<PointRuns> {
        let mut missing: BTreeMap<usize, Vec<(String, u64)>> = BTreeMap::new();
        py.detach(|| {
            let store = self.store();
            for SweepJob { setup, key } in self.jobs.iter().filter(|job| !store.has(&job.key)) {
                let runs = missing.entry(setup / self.variants.len()).or_default();
                runs.push((key.variant.clone(), key.seed));
            }
        });
        missing.into_iter().collect()
    }

    /// Performs the runs without a row on all CPUs, and returns those that failed. `progress` is
    /// called with the number of finished runs and of all these runs.
    fn perform(&self, py: Python<'_>, progress: Py<PyAny>) -> PyResult<Vec<FailedRun>> {
        let missing = self.jobs.len() - self.__len__(py);
        let on_cpus = RunArguments::on(run::threads(None)?);
        let asked = RunArguments { progress: Some(progress), ..on_cpus };
        let mut ended = SweepOutcome::default();
        let stopped = run::run_interruptibly(py, missing, &asked, |cancel, done| {
            let on_progress = |progress: RunProgress<'_>| match progress {
                RunProgress::Started { .. }
                | RunProgress::Ended { outcome: JobOutcome::Cancelled, .. } => {}
                // The receiver may have stopped listening.
                RunProgress::Ended { .. } => drop(done.send(())),
            };
            let (jobs, world, threads) = (&self.jobs, Simulator::default(), asked.threads);
            let store = &mut self.store();
            ended = run_missing(&self.setups, jobs, store, &world, threads, cancel, &on_progress);
        });
        match (ended.unwritable, stopped) {
            (Some(error), _) => Err(self.unwritable(py, &error)),
            (None, Some(stopped)) => Err(stopped),
            (None, None) => {
                let failed = ended.failed.into_iter();
                Ok(failed.map(|(it, why)| (it.variant, it.knobs, it.seed, why.message)).collect())
            }
        }
    }

    /// Adds the row of a run that was performed elsewhere.
    fn append(&self, py: Python<'_>, row: &[u8]) -> PyResult<()> {
        let row = rows::of_bytes(py, row, self.scenario.0.digest(py)?)?;
        py.detach(|| self.store().append(row)).map_err(|error| self.unwritable(py, &error))
    }

    /// Sorts the file of the store if the sweep is complete, and unlocks it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let is_complete = self.__len__(py) == self.jobs.len();
        let closed = py.detach(|| {
            let mut store = self.store();
            if is_complete {
                return store.finish();
            }
            store.close();
            Ok(())
        });
        closed.map_err(|error| self.unwritable(py, &error))
    }

    /// In a forked child: closes the file of the store, so that the child does not keep the lock.
    fn _leave(&self) {
        // A thread that does not exist in the child may have the mutex.
        if let Ok(mut store) = self.store.try_lock() {
            store.close();
        }
    }

    /// The row of each run as JSON, as in the store, in order.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let rows = self.with_rows(py, |rows| rows.iter().map(serde_json::to_vec).collect());
        let rows: Vec<serde_json::Result<Vec<u8>>> = rows;
        rows.into_iter().map(|row| Ok(PyBytes::new(py, &row.map_err(errors::bug)?))).collect()
    }

    /// A row for each metric of each run: variant, a column for each knob, seed, metric, unit,
    /// value, ended (why the run is incomplete, else null).
    ///
    /// Columns of knobs are numeric if all values are plain numbers, else text. A knob of sizes has
    /// a second column, KNOB.bytes, with numbers; null for a word such as `max`.
    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<Table> {
        self.select(py, Vec::new())
    }

    /// `metrics` restricted to these metrics; all metrics if no name is given.
    ///
    /// Raises `InputError` if no run has a metric of this name.
    #[pyo3(signature = (*names))]
    fn select(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Table> {
        self.check(py, &names)?;
        self.with_rows(py, |rows| {
            let records = rows.iter().map(|row| (&row.record, &row.knobs));
            metrics_with(records, &self.knobs, &names)
        })
    }

    /// A row for each metric at each point: variant, a column for each knob, metric, unit, mean,
    /// deviation (of the sample), runs, ended (number of runs without a measurement).
    #[pyo3(signature = (*names))]
    fn summary(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Table> {
        self.check(py, &names)?;
        self.with_rows(py, |rows| {
            let mut summary = SummaryRows::default();
            for rows in rows.chunk_by(|a, b| place(a) == place(b)) {
                let mut samples: BTreeMap<&str, Vec<_>> = BTreeMap::new();
                for row in rows {
                    let mark = row.record.mark();
                    for (name, metric) in &row.record.metrics {
                        if names.is_empty() || names.contains(name) {
                            let is_complete = metric.ended.or(mark).is_none();
                            samples.entry(name).or_default().push((metric, is_complete));
                        }
                    }
                }
                for (name, metrics) in samples {
                    let values = metrics.iter().map(|(it, is_complete)| (it.value, *is_complete));
                    summary.add(place(rows[0]), name.to_owned(), metrics[0].0.unit, values);
                }
            }
            summary.table(&self.knobs)
        })
    }

    /// The runs of a point as a result of `Scenario.run`, with statistics, table and HTML.
    #[pyo3(signature = (point = None))]
    fn result(&self, py: Python<'_>, point: Option<&Bound<'_, PyAny>>) -> PyResult<PointResult> {
        let point = point.map_or(Ok(KnobPoint::new()), knobs::point)?;
        let knobs: KnobSettings = point.iter().cloned().collect();
        if self.jobs.iter().all(|job| job.key.knobs != knobs) {
            let message = format!("no point has {knobs:?}");
            return Err(errors::input(py, message, "`points` lists all points"));
        }
        let records = self.with_rows(py, |rows| {
            let of_point = rows.iter().filter(|row| row.knobs == knobs);
            of_point.map(|row| row.record.clone()).collect::<Vec<_>>()
        });
        let mut runs = Vec::new();
        for record in records {
            let variant = rows::variant_index(py, &self.scenario, &record.variant)?;
            let job = RunJob { variant, seed: record.seed };
            runs.push(RunResult { job, outcome: JobOutcome::Finished(record.into()) });
        }
        Ok(PointResult::new(self.scenario.with_sets(py, point)?, runs))
    }

    /// A line for each point and variant: mean ± sample standard deviation of these metrics, as
    /// `pagetide sweep` prints it. Default metrics are those of the scenario's table.
    #[pyo3(signature = (*names))]
    fn table(&self, py: Python<'_>, names: Vec<String>) -> PyResult<String> {
        self.check(py, &names)?;
        let names = if names.is_empty() { &self.setups.rows } else { &names };
        Ok(self.with_rows(py, |rows| output::table(rows.iter().copied(), names)))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.table(py, Vec::new())
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(preformatted(&self.table(py, Vec::new())?))
    }
}

impl SweepRuns {
    /// Call only without the interpreter's lock. A thread that waits here with that lock held would
    /// deadlock with the owner of this one.
    fn store(&self) -> MutexGuard<'_, SweepStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `of` with the rows of this sweep, in order, without the interpreter's lock.
    fn with_rows<T: Send>(&self, py: Python<'_>, of: impl FnOnce(&[&SweepRow]) -> T + Send) -> T {
        py.detach(|| {
            let keys: BTreeSet<&SweepKey> = self.jobs.iter().map(|job| &job.key).collect();
            let store = self.store();
            of(&keys.into_iter().filter_map(|key| store.row(key)).collect::<Vec<_>>())
        })
    }

    /// Checks that some run has each of these metrics.
    fn check(&self, py: Python<'_>, names: &[String]) -> PyResult<()> {
        let checked = self.with_rows(py, |rows| {
            let lacks =
                |name: &&String| !rows.iter().any(|it| it.record.metrics.contains_key(*name));
            let Some(unknown) = names.iter().find(lacks) else { return Ok(()) };
            let all: RunMetrics = rows.iter().flat_map(|row| row.record.metrics.clone()).collect();
            check_name(unknown, &all)
        });
        checked.map_err(|mistake| errors::mistake(py, mistake))
    }

    fn unwritable(&self, py: Python<'_>, error: &io::Error) -> PyErr {
        let message = format!("cannot write rows to {}: {error}", self.directory.display());
        errors::store(py, Mistake::new(message, "the same call continues where this one stopped"))
    }
}

fn place(row: &SweepRow) -> (&str, &KnobSettings) {
    (&row.record.variant, &row.knobs)
}

/// The names in the order of their first appearance.
fn unique<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

/// The chosen variants of each point. Fails with the mistakes of all points.
fn setups(
    scenario: &ScenarioInner,
    points: &[KnobPoint],
    chosen: &[String],
) -> Result<Vec<model::Variant>, SourceError> {
    let mut setups = Vec::new();
    let mut mistakes: Option<Diagnostics> = None;
    for point in points {
        match scenario.reload(point) {
            Ok(loaded) => {
                let all = &loaded.variants;
                let of = |name: &String| all.iter().find(|it| it.name == *name).cloned();
                setups.extend(chosen.iter().filter_map(of));
            }
            Err(SourceError::Mistakes(others)) => match &mut mistakes {
                None => mistakes = Some(others),
                Some(mistakes) if mistakes.count() > MISTAKES_MAX => break,
                Some(mistakes) => mistakes.join(others),
            },
            Err(outside) => return Err(outside),
        }
    }
    mistakes.map_or(Ok(setups), |mistakes| Err(SourceError::Mistakes(mistakes)))
}

/// The metrics of stores of `pagetide sweep`, like `Sweep.metrics`.
///
/// Raises `InputError` if there are no rows, a line is invalid, or rows are of different scenarios
/// or versions.
#[pyfunction]
pub fn read_rows(py: Python<'_>, directory: PathBuf) -> PyResult<Table> {
    let store = py.detach(|| SweepStore::merged(&[directory], None));
    let store = store.map_err(|mistake| errors::mistake(py, mistake))?;
    let knobs = unique(store.rows().flat_map(|row| row.knobs.keys()));
    py.detach(|| metrics_with(store.rows().map(|row| (&row.record, &row.knobs)), &knobs, &[]))
}
