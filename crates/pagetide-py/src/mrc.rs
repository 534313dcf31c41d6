//! `pagetide.mrc`: the miss ratio of a page trace for each size of the page cache.

use crate::errors;
use crate::run::{self, RunArguments};
use crate::table::Table;
use crate::values;
use arrow_array::{ArrayRef, Float64Array, UInt64Array};
use pagetide_lab::mrc::{self as lab, CurvePoint, MissRatioCurve, MrcError};
use pagetide_lab::world::Simulator;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::path::PathBuf;
use std::sync::Arc;

/// Miss ratios of a page trace (`.ptt`) for each size of the page cache, next to those of exact LRU
/// lists.
///
/// Columns: size (bytes), pages, requests, misses, miss_ratio, lru_misses, lru_miss_ratio.
///
/// `sizes`: `"64MiB..4GiB/8"`, or a list of sizes (bytes, or text). Raises `InputError` for invalid
/// sizes and for an unreadable trace, `Interrupted` on ^C.
#[pyfunction]
#[pyo3(signature = (trace, sizes, *, seed = 1, jobs = None, progress = None))]
pub fn mrc<'py>(
    py: Python<'py>,
    trace: PathBuf,
    sizes: &Bound<'py, PyAny>,
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
        MrcError::Scenario(_) | MrcError::Run { .. } => errors::external(py, error.to_string()),
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
    let curve = py.detach(|| MissRatioCurve::new(&trace, &sizes, seed)).map_err(refused)?;
    let mut jobs = curve.plan.jobs();
    jobs.sort();
    let asked = RunArguments {
        seeds: Vec::new(),
        threads,
        progress,
        latencies: false,
        cancel: Arc::default(),
    };
    let simulator = Simulator::default();
    let performed = run::perform(py, &curve.plan.scenario, &jobs, &simulator, &asked);
    if let Some(stopped) = performed.stopped {
        return Err(errors::stopped(py, stopped, jobs.len(), None));
    }
    let points = curve.points(&performed.runs).map_err(refused)?;
    let whole = |of: &dyn Fn(&CurvePoint) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from(points.iter().map(of).collect::<Vec<u64>>()))
    };
    let ratio = |of: &dyn Fn(&CurvePoint) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from(points.iter().map(of).collect::<Vec<f64>>()))
    };
    Table::new(vec![
        ("size", whole(&|point| point.size)),
        ("pages", whole(&|point| point.pages)),
        ("requests", whole(&|point| point.requests)),
        ("misses", whole(&|point| point.misses)),
        ("miss_ratio", ratio(&|point| point.miss_ratio)),
        ("lru_misses", whole(&|point| point.lru_misses)),
        ("lru_miss_ratio", ratio(&|point| point.lru_miss_ratio)),
    ])
}
