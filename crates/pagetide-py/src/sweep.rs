//! `pagetide.sweep` in this process: a grid of knobs, times variants, times seeds (docs/sweep.md).

use crate::errors;
use crate::result::unit_word;
use crate::run::{self, Told};
use crate::scenario::Scenario;
use crate::table::{escaped, Table};
use crate::values;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use pagetide_lab::execute::Progress;
use pagetide_lab::knob::Knob;
use pagetide_lab::sweep::grid::points;
use pagetide_lab::sweep::output;
use pagetide_lab::sweep::run::{jobs, run as run_missing, Job};
use pagetide_lab::sweep::store::{Origin, Row, Store, FILE};
use pagetide_lab::world::Simulator;
use pagetide_scenario::model;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::path::PathBuf;
use std::sync::Arc;

/// What came out of a sweep. `metrics` has a column for each knob; `table()`, `csv()` and `json()` are as the command
/// prints them. `len(t)` is the number of runs.
#[pyclass(frozen, module = "pagetide")]
pub struct SweepResult {
    knobs: Vec<String>,
    rows: Vec<Row>,
    /// Rows of the scenario's report.
    wanted: Vec<String>,
}

#[pymethods]
impl SweepResult {
    /// The knobs, in their order.
    #[getter]
    fn knobs(&self) -> Vec<String> {
        self.knobs.clone()
    }

    /// Every metric of every run: a column for each knob (text), then variant, seed, metric, unit, value, ended, as
    /// `Result.metrics` has them.
    #[getter]
    fn metrics(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let each = || {
                self.rows.iter().flat_map(|row| row.record.metrics.iter().map(move |it| (row, it)))
            };
            let text = |of: &dyn Fn(&Row) -> &str| -> ArrayRef {
                Arc::new(each().map(|(row, _)| Some(of(row))).collect::<StringArray>())
            };
            let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
            for knob in &self.knobs {
                let values = each().map(|(row, _)| row.knobs.get(knob).map(String::as_str));
                columns.push((knob, Arc::new(values.collect::<StringArray>())));
            }
            columns.push(("variant", text(&|row| &row.record.variant)));
            let seeds = each().map(|(row, _)| Some(row.record.seed));
            columns.push(("seed", Arc::new(seeds.collect::<UInt64Array>())));
            let names = each().map(|(_, (name, _))| Some(name.as_str()));
            columns.push(("metric", Arc::new(names.collect::<StringArray>())));
            let units = each().map(|(_, (_, metric))| Some(unit_word(metric.unit)));
            columns.push(("unit", Arc::new(units.collect::<StringArray>())));
            let values = each().map(|(_, (_, metric))| Some(metric.value));
            columns.push(("value", Arc::new(values.collect::<Float64Array>())));
            let ended = each().map(|(_, (_, metric))| metric.ended.map(|ended| ended.word()));
            columns.push(("ended", Arc::new(ended.collect::<StringArray>())));
            Table::new(columns)
        })
    }

    /// A line for each point, as `pagetide sweep` prints it. `metrics`: names or patterns, else the scenario's rows.
    #[pyo3(signature = (metrics = None))]
    fn table(&self, py: Python<'_>, metrics: Option<Vec<String>>) -> String {
        let wanted = metrics.unwrap_or_else(|| self.wanted.clone());
        py.detach(|| output::table(self.rows.iter(), &wanted))
    }

    /// As `pagetide sweep --format csv` prints it.
    fn csv(&self, py: Python<'_>) -> String {
        py.detach(|| output::csv(self.rows.iter()))
    }

    /// As `pagetide sweep --format json` prints it.
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| output::json(self.rows.iter()))
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __repr__(&self) -> String {
        format!("<pagetide.SweepResult {}: {} runs>", self.knobs.join(", "), self.rows.len())
    }

    fn __str__(&self, py: Python<'_>) -> String {
        self.table(py, None)
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        format!("<pre>{}</pre>", escaped(&self.table(py, None)))
    }
}

/// Knobs of a mapping: the path, and values (a list), a range as text (`"10..3000/7"`), or both ends and how many
/// (`(10, 3000, 7)`).
pub fn knobs(
    py: Python<'_>,
    grid: &Bound<'_, PyDict>,
    setup: &model::Setup,
    coarse: bool,
) -> PyResult<Vec<Knob>> {
    let mut knobs = Vec::new();
    for (path, range) in grid.iter() {
        let path: String = path.extract()?;
        let text = match range_text(&range, &path)? {
            Some(range) => format!("{path}={range}"),
            None => path,
        };
        knobs.push(Knob::parse(&text, setup, coarse).map_err(|it| errors::mistake(py, it))?);
    }
    Ok(knobs)
}

/// A range as the command has it.
pub fn range_text(range: &Bound<'_, PyAny>, path: &str) -> PyResult<Option<String>> {
    if range.is_none() {
        return Ok(None);
    }
    if range.is_instance_of::<PyString>() {
        return range.extract().map(Some);
    }
    if let Ok(ends) = range.cast::<pyo3::types::PyTuple>() {
        let texts: PyResult<Vec<String>> =
            ends.iter().map(|end| values::to_text(&end, path)).collect();
        return match texts?.as_slice() {
            [low, high] => Ok(Some(format!("{low}..{high}"))),
            [low, high, count] => Ok(Some(format!("{low}..{high}/{count}"))),
            _ => Err(errors::input(
                range.py(),
                format!("{path}: a range has two ends"),
                "give (LOW, HIGH), (LOW, HIGH, HOW MANY), or a list of values",
            )),
        };
    }
    let mut list = Vec::new();
    for value in range.try_iter()? {
        list.push(values::to_text(&value?, path)?);
    }
    if list.is_empty() {
        return Err(errors::input(range.py(), format!("{path} has no values"), "give one or more"));
    }
    Ok(Some(list.join(",")))
}

/// Runs all combinations of the values of some knobs, times variants, times seeds, in this process.
///
/// `grid`: knob -> values, `"LOW..HIGH/N"`, or `(LOW, HIGH, N)`. `store`: a directory that keeps every run; what has a
/// row is not run again. Other arguments are those of `Scenario.run`.
///
/// Raises `InputError` for knobs and values that there are not, `ScenarioError` for values that the scenario does not
/// take, `RunError` if runs failed, `Interrupted` upon ^C.
#[pyfunction]
#[pyo3(signature = (scenario, grid, *, seeds = None, variants = None, jobs = None, progress = None, store = None))]
#[allow(clippy::too_many_arguments)] // they are arguments of Python, by name
pub fn sweep<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    grid: &Bound<'py, PyDict>,
    seeds: Option<&Bound<'py, PyAny>>,
    variants: Option<Vec<String>>,
    jobs: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
    store: Option<PathBuf>,
) -> PyResult<SweepResult> {
    let scenario = match variants {
        Some(names) => scenario.with_variants(py, names)?,
        None => scenario.clone(),
    };
    let model = scenario.0.model(py)?;
    let (threads, progress) = (run::threads(jobs)?, run::watcher(progress)?);
    let seeds = run::seeds(model, seeds, py)?;
    let knobs = knobs(py, grid, &model.variants[0].setup, true)?;
    let points = points(&knobs).map_err(|mistake| errors::mistake(py, mistake))?;
    let mut setups = Vec::new();
    for point in &points {
        setups.extend(scenario.with_sets(py, point.clone())?.0.model(py)?.variants.iter().cloned());
        py.check_signals()?;
    }
    let names: Vec<String> = model.variants.iter().map(|it| it.name.clone()).collect();
    let all: Vec<Job> = self::jobs(&points, &names, seeds.iter().copied());
    let origin = Origin {
        scenario: model.name.clone(),
        digest: scenario.0.digest(py)?.to_owned(),
        version: pagetide_lab::VERSION.to_owned(),
    };
    let mut store = match &store {
        None => Store::in_memory(origin),
        Some(directory) => {
            Store::open(directory, FILE, origin).map_err(|it| errors::mistake(py, it))?
        }
    };
    let missing = all.iter().filter(|job| !store.has(&job.key)).count();
    let all_points = model::Scenario { variants: setups, ..model.clone() };
    let simulator = Simulator::default();
    let (ended, stopped) = run::watched(py, missing, progress.as_ref(), |cancel, done| {
        let tell = |progress: Progress<'_>| {
            if let Progress::Ended { .. } = progress {
                let _ = done.send(Told::Done);
            }
        };
        run_missing(&all_points, &all, &mut store, &simulator, threads, cancel, &tell)
    });
    let ended = ended.unwrap_or_default();
    if let Some(error) = ended.unwritable {
        let message = format!("the store cannot be written: {error}; what was run before is kept");
        return Err(errors::outside(py, message));
    }
    if let Some(stopped) = stopped {
        return Err(errors::stopped(py, stopped, ended.cancelled, None));
    }
    if !ended.failed.is_empty() {
        let failures = ended.failed.iter().map(|(key, failure)| {
            let knobs = key.knobs.iter().map(|(knob, value)| format!("{knob}={value}"));
            let of = format!("{} {}", key.variant, knobs.collect::<Vec<_>>().join(" "));
            errors::failure(py, of.trim_end(), key.seed, failure)
        });
        return Err(errors::run(py, failures.collect::<PyResult<_>>()?, None));
    }
    store.finish().map_err(|error| errors::outside(py, format!("the store: {error}")))?;
    let keys: std::collections::BTreeSet<_> = all.iter().map(|job| &job.key).collect();
    let rows = store.rows().filter(|row| keys.contains(&row.key())).cloned().collect();
    let knobs = knobs.into_iter().map(|knob| knob.path).collect();
    Ok(SweepResult { knobs, rows, wanted: model.rows.clone() })
}
