//! Runs as bytes, for distribution over processes: [`perform`] makes them anywhere, and
//! `Result.from_rows` combines them.
//!
//! Invariant: the bytes of a run do not depend on the process that made it. They are a row of a
//! sweep's store.

use crate::errors;
use crate::knobs::KnobSettings;
use crate::run::{self, Cancel, RunArguments};
use crate::scenario::Scenario;
use pagetide_lab::plan::RunJob;
use pagetide_lab::sweep::store::SweepRow;
use pagetide_lab::world::Simulator;
use pagetide_scenario::names::near::nearest;
use pagetide_scenario::record::RunRecord;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// A finished run as bytes.
pub fn to_bytes(digest: &str, knobs: &KnobSettings, record: RunRecord) -> PyResult<Vec<u8>> {
    let row = SweepRow { scenario_digest: digest.to_owned(), knobs: knobs.clone(), record };
    serde_json::to_vec(&row).map_err(errors::bug)
}

/// Parses a run, which must belong to the scenario with this digest.
pub fn of_bytes(py: Python<'_>, bytes: &[u8], digest: &str) -> PyResult<SweepRow> {
    let row: SweepRow = serde_json::from_slice(bytes).map_err(|error| {
        let hint = "rows come from Result.rows and from workers";
        errors::input(py, format!("these bytes are not a run: {error}"), hint)
    })?;
    let (theirs, ours) = (&row.record.version, pagetide_lab::VERSION);
    if theirs != ours {
        let message = format!("the run is of pagetide {theirs}, this is {ours}");
        let hint = "install the same version everywhere: results of two versions may differ";
        return Err(errors::version(py, message, hint));
    }
    if row.scenario_digest != digest {
        let message =
            format!("the run is of the scenario {}, this is {digest}", row.scenario_digest);
        let hint = "all runs of a result must be of one scenario, with the same changes";
        return Err(errors::version(py, message, hint));
    }
    Ok(row)
}

/// Performs runs, given as (variant, seed) pairs, in this process, and returns each as bytes, in
/// the order of `runs`.
///
/// Uses `jobs` threads, without the interpreter's lock. With `latencies`, runs include the
/// distributions of latencies. Another thread can end the runs by `cancel`. `swept`: for runs of a
/// sweep, the digest of its scenario and the settings of the point.
///
/// Raises `InputError` for an unknown variant, `RunError` if runs failed, `Interrupted` on ^C or
/// `cancel`.
#[pyfunction]
#[pyo3(signature = (
    scenario, runs, *, jobs = None, latencies = false, cancel = None, swept = None
))]
pub fn perform<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    runs: Vec<(String, u64)>,
    jobs: Option<&Bound<'py, PyAny>>,
    latencies: bool,
    cancel: Option<&Bound<'py, Cancel>>,
    swept: Option<(String, KnobSettings)>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let model = scenario.0.model(py)?;
    let (digest, knobs) = match swept {
        Some(swept) => swept,
        None => (scenario.0.digest(py)?.to_owned(), KnobSettings::new()),
    };
    let mut planned = Vec::with_capacity(runs.len());
    for (name, seed) in &runs {
        planned.push(RunJob { variant: variant_index(py, scenario, name)?, seed: *seed });
    }
    let threads = match jobs {
        Some(_) => run::threads(jobs)?,
        None => std::num::NonZeroUsize::MIN,
    };
    let cancel = cancel.map_or_else(Arc::default, |cancel| Arc::clone(&cancel.get().0));
    let asked = RunArguments { cancel, ..RunArguments::on(threads) };
    let simulator = Simulator { want_latencies: latencies, ..Simulator::default() };
    let records = run::records(py, model, &planned, &simulator, &asked)?;
    let row = |record| Ok(PyBytes::new(py, &to_bytes(&digest, &knobs, record)?));
    records.into_iter().map(row).collect()
}

/// The index of the variant `name`.
pub fn variant_index(py: Python<'_>, scenario: &Scenario, name: &str) -> PyResult<usize> {
    let variants = &scenario.0.model(py)?.variants;
    variants.iter().position(|it| it.name == name).ok_or_else(|| {
        let names = || variants.iter().map(|it| it.name.as_str());
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("choose from {}", names().collect::<Vec<_>>().join(", ")),
        };
        errors::input(py, format!("there is no variant `{name}`"), hint)
    })
}
