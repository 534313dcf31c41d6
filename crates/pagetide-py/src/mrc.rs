//! `pagetide.mrc`: the miss ratio of a page trace for each size of the page cache.

use crate::errors;
use crate::run::{self, RunArguments};
use crate::table::Table;
use crate::values;
use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use pagetide_lab::mrc::{self as lab, CurvePoint, MissRatioCurve, MrcError};
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::{AddedVariant, Overrides};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Miss ratios of a page trace (`.ptt`) for each size of the page cache, next to those of caches by
/// reference algorithms.
///
/// Columns: variant, size (bytes), pages, requests, references (to pages), misses, miss_ratio; and for
/// each algorithm (lru, arc, s3fifo, belady) `lru_miss_ratio` (pages), `lru_object_miss_ratio` and
/// `lru_byte_miss_ratio` (null for a trace without objects).
///
/// `sizes`: `"64MiB..4GiB/8"`, or a list of sizes (bytes, or text). `set`: keys to set for all runs.
/// `variants`: name -> keys to set, page caches to compare. Raises `InputError` for invalid sizes,
/// keys and values, and for an unreadable trace, `Interrupted` on ^C.
#[pyfunction]
#[pyo3(signature = (trace, sizes, *, set = None, variants = None, seed = 1, jobs = None, progress = None))]
#[allow(clippy::too_many_arguments)] // keyword arguments in Python
pub fn mrc<'py>(
    py: Python<'py>,
    trace: PathBuf,
    sizes: &Bound<'py, PyAny>,
    set: Option<&Bound<'py, PyDict>>,
    variants: Option<BTreeMap<String, Bound<'py, PyDict>>>,
    seed: u64,
    jobs: Option<&Bound<'py, PyAny>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Table> {
    let refused = |error: MrcError| match error {
        MrcError::Sizes { message, hint } => errors::input(py, message, hint),
        MrcError::Trace(error) => {
            let hint = "`pagetide trace import` creates traces";
            errors::input(py, error.in_file(&trace).to_string(), hint)
        }
        MrcError::Changes(mistakes) => errors::scenario(py, &mistakes),
        MrcError::Scenario(message) => errors::external(py, message),
        MrcError::Run { .. } => errors::external(py, error.to_string()),
    };
    let text = if sizes.is_instance_of::<PyString>() {
        sizes.extract::<String>()?
    } else {
        let mut all = Vec::new();
        for size in sizes.try_iter()? {
            all.push(values::to_text(&size?, "sizes")?);
        }
        all.join(",")
    };
    let (threads, progress) = (run::threads(jobs)?, run::progress_callback(progress)?);
    let sizes = lab::sizes(&text).map_err(refused)?;
    let mut overrides = Overrides { seed: Some(seed), ..Overrides::default() };
    overrides.sets = set.map(values::sets).transpose()?.unwrap_or_default();
    for (name, changes) in variants.unwrap_or_default() {
        overrides.added.push(AddedVariant { name, sets: values::sets(&changes)? });
    }
    let curve = py.detach(|| MissRatioCurve::new(&trace, &sizes, overrides)).map_err(refused)?;
    let mut jobs = curve.plan.jobs();
    jobs.sort();
    let asked = RunArguments { progress, ..RunArguments::on(threads) };
    let simulator = Simulator::default();
    let performed = run::perform(py, &curve.plan.scenario, &jobs, &simulator, &asked);
    if let Some(stopped) = performed.stopped {
        return Err(errors::stopped(py, stopped, jobs.len(), None));
    }
    let points = curve.points(&performed.runs).map_err(refused)?;
    let whole = |of: &dyn Fn(&CurvePoint) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from(points.iter().map(of).collect::<Vec<u64>>()))
    };
    let ratio = |of: &dyn Fn(&CurvePoint) -> Option<f64>| -> ArrayRef {
        Arc::new(Float64Array::from(points.iter().map(of).collect::<Vec<Option<f64>>>()))
    };
    let variants = points.iter().map(|point| point.variant.as_str()).collect::<Vec<&str>>();
    let mut columns = vec![
        ("variant".to_owned(), Arc::new(StringArray::from(variants)) as ArrayRef),
        ("size".to_owned(), whole(&|point| point.size)),
        ("pages".to_owned(), whole(&|point| point.pages)),
        ("requests".to_owned(), whole(&|point| point.requests)),
        ("references".to_owned(), whole(&|point| point.references)),
        ("misses".to_owned(), whole(&|point| point.misses)),
        ("miss_ratio".to_owned(), ratio(&|point| Some(point.miss_ratio))),
    ];
    let names = points.first().map(CurvePoint::ratio_columns).unwrap_or_default();
    for (at, (name, _)) in names.into_iter().enumerate() {
        columns.push((name, ratio(&|point| point.ratio_columns()[at].1)));
    }
    Table::new(columns)
}
