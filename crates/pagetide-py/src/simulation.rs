//! `pagetide.core.Simulation`: one run of a scenario, stepped from Python.
//!
//! Invariant: if the caller only steps and reads, the run is the one of `Scenario.run`, whatever
//! the steps.

use crate::errors;
use crate::machine::{proc_file, vmstat};
use crate::rows;
use crate::scenario::Scenario;
use crate::table::Table;
use crate::{result, values};
use pagetide_core::units::Nanos;
use pagetide_scenario::model::Variant;
use pagetide_sim::outside::WriteError;
use pagetide_sim::run::{build, record};
use pagetide_sim::world::SimWorld;
use pagetide_sim::{RunIdentity, RunOptions};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Real time between two checks for signals.
const EVERY: Duration = Duration::from_millis(100);

/// One run of a scenario, stepped from Python: `run_until(t)`, read counters, write a control file,
/// continue.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Simulation {
    scenario: String,
    variant: Variant,
    seed: u64,
    /// `None` after `metrics()` ended the run and took its record.
    world: Mutex<Option<SimWorld>>,
}

impl Simulation {
    fn with<T>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut SimWorld) -> PyResult<T> + Send,
    ) -> PyResult<T>
    where
        T: Send,
    {
        py.detach(|| {
            let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
            match world.as_mut() {
                Some(world) => ask(world),
                None => Err(PyValueError::new_err("metrics() has ended this simulation")),
            }
        })
    }

    fn failed(error: WriteError) -> PyErr {
        match error {
            WriteError::Group(_) => {
                Python::attach(|py| errors::input(py, error.to_string(), "see Scenario.groups"))
            }
            WriteError::Control(error) => {
                PyOSError::new_err((error.errno.code(), error.to_string()))
            }
            WriteError::Refused { errno, .. } => {
                PyOSError::new_err((errno.code(), error.to_string()))
            }
            WriteError::World(error) => errors::bug(error),
        }
    }
}

/// Checks for signals periodically.
struct SignalCheck {
    last: Instant,
    stopped: Option<PyErr>,
}

impl SignalCheck {
    fn new() -> SignalCheck {
        SignalCheck { last: Instant::now(), stopped: None }
    }

    /// Returns whether to stop.
    fn should_stop(&mut self) -> bool {
        if self.stopped.is_none() && self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            self.stopped = Python::attach(|py| py.check_signals()).err();
        }
        self.stopped.is_some()
    }
}

#[pymethods]
impl Simulation {
    /// `variant`: default is the first. `seed`: default is the scenario's first.
    #[new]
    #[pyo3(signature = (scenario, variant = None, *, seed = None))]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        variant: Option<&str>,
        seed: Option<u64>,
    ) -> PyResult<Simulation> {
        let model = scenario.0.model(py)?;
        let place = variant.map_or(Ok(0), |name| rows::variant_index(py, scenario, name))?;
        let (variant, seed) = (model.variants[place].clone(), seed.unwrap_or(model.seed));
        let world = py.detach(|| build(&variant.setup, seed));
        let world = world.map_err(|error| {
            errors::input(py, error.to_string(), error.hint().unwrap_or_default())
        })?;
        let world = Mutex::new(Some(world));
        Ok(Simulation { scenario: model.name.clone(), variant, seed, world })
    }

    /// Virtual time, in seconds.
    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |world| Ok(world.now as f64 / 1e9))
    }

    /// Whether all foreground tasks have ended.
    #[getter]
    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |world| Ok(world.is_complete()))
    }

    /// The rows of /proc/vmstat by name, and counts of events that Linux has only as tracepoints.
    ///
    /// Counts are since boot, levels are in pages.
    #[getter]
    fn vmstat(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, u64>> {
        self.with(py, |world| Ok(vmstat(&world.machine)))
    }

    /// Runs until virtual time `seconds`, or until the run is over. Returns whether it is over.
    ///
    /// Does nothing for a time in the past. The scenario's time limit applies.
    fn run_until(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let until = seconds * 1e9;
        if until.is_nan() {
            return Err(PyValueError::new_err("the time is not a number"));
        }
        let until = (until.round() as Nanos).min(self.variant.setup.time_limit_ns);
        self.with(py, |world| {
            if until <= world.now {
                return Ok(world.is_complete());
            }
            let mut looker = SignalCheck::new();
            let ran = world.run(until, 0, |_| looker.should_stop());
            match looker.stopped {
                Some(stopped) => Err(stopped),
                None => ran.map_err(errors::bug),
            }
        })
    }

    /// Writes a control file of the machine (`"vm.swappiness"`) or of a group (`"memory.high"`,
    /// `group="web"`).
    ///
    /// If the kernel reclaims before such a write returns, virtual time passes.
    ///
    /// Raises `OSError` with the kernel's errno if the kernel rejects the text.
    #[pyo3(signature = (file, value, *, group = None))]
    fn write(
        &self,
        py: Python<'_>,
        file: &str,
        value: &Bound<'_, PyAny>,
        group: Option<&str>,
    ) -> PyResult<()> {
        let text = values::to_text(value, file)?;
        self.with(py, |world| {
            let mut looker = SignalCheck::new();
            let written = match group.filter(|group| !group.is_empty()) {
                None => world.write_file(file, &text),
                Some(group) => world.write_group_file(group, file, &text, |_| looker.should_stop()),
            };
            match looker.stopped {
                Some(stopped) => Err(stopped),
                None => written.map_err(Simulation::failed),
            }
        })
    }

    /// Reads a file of the machine (`"vm.swappiness"`, `"/proc/vmstat"`) or of a group
    /// (`"memory.stat"`), as read(2) would. Read-only files are included.
    #[pyo3(signature = (file, *, group = None))]
    fn read(&self, py: Python<'_>, file: &str, group: Option<&str>) -> PyResult<String> {
        self.with(py, |world| match group {
            Some(group) => world.read_group_file(group, file).map_err(Simulation::failed),
            None => match proc_file(&world.machine, file, world.now) {
                Some(text) => Ok(text),
                None => world
                    .machine
                    .read_control(file)
                    .map_err(|error| Simulation::failed(WriteError::Control(error))),
            },
        })
    }

    /// Ends the simulation and returns its metrics, as `Result.metrics` has them.
    ///
    /// The column `ended` marks values of unfinished work.
    fn metrics(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let world = self.world.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(mut world) = world else {
                return Err(PyValueError::new_err("metrics() has ended this simulation"));
            };
            let of =
                RunIdentity { scenario: &self.scenario, variant: &self.variant, seed: self.seed };
            let is_over = world.is_complete();
            let mut record = record(&mut world, of, is_over, &RunOptions::default());
            record.metrics.retain(|_, metric| metric.value.is_finite());
            result::metrics_of(std::iter::once(&record))
        })
    }
}
