//! `pagetide.core.Machine`: the memory manager itself, without a simulated world around it.
//!
//! The core's own executor runs calls to their end. There are no disks and no costs: I/O ends at once, and time passes
//! only where somebody sleeps, or by `step`.
//!
//! Invariant: between two methods no call is under way and no effect is waiting.

mod state;
mod task;

pub use task::{Mapping, Task};

use crate::errors;
use crate::values;
use pagetide_core::config::Config;
use pagetide_core::control::{ControlError, Errno};
use pagetide_core::executor::Executor;
use pagetide_core::memcg::ROOT;
use pagetide_core::node::NodeSpec;
use pagetide_core::outcome::Outcome;
use pagetide_core::page_size::PageSize;
use pagetide_core::process::Call;
use pagetide_core::units::{Cpu, Nanos, NodeId};
use pagetide_lab::execute::room::available;
use pagetide_scenario::load;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use state::{Shared, State, Still, Wrong};
use std::collections::BTreeMap;

/// Bytes of this computer for a page of a machine's memory, about; for one of a mapping, a file or swap.
const FRAME: u64 = 64;
const ENTRY: u64 = 16;
/// Virtual time between two looks at daemons, and how many there are between two at signals.
const STEP: Nanos = 10_000_000;
const STEPS: usize = 1000;
/// Where the calls run, and where daemons do.
const CPU: Cpu = Cpu(0);

/// The memory manager itself: groups, address spaces, touches, control files, counters. There are no disks, so I/O
/// takes no time; a scenario's machine with disks, CPUs and tasks is `pagetide.core.Simulation`.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Machine {
    state: Shared,
}

/// Bytes of a size: a number, or a text like `"64MiB"`.
fn bytes(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    if value.is_instance_of::<PyInt>() {
        return value.extract();
    }
    let text: String = value.extract()?;
    load::size(&text)
        .map_err(|(message, hint)| errors::input(value.py(), format!("{what}: {message}"), hint))
}

/// Refuses what this computer has not the memory for: the process would end.
fn room(py: Python<'_>, needed: u64) -> PyResult<()> {
    let there = available();
    if needed <= there {
        return Ok(());
    }
    let message = format!(
        "its tables need {} MiB, and this computer has {} MiB free",
        needed >> 20,
        there >> 20
    );
    Err(errors::input(py, message, "give less"))
}

/// A refusal of the kernel, as Python has them: `OSError` with the number.
fn refused(error: &ControlError) -> PyErr {
    PyOSError::new_err((error.errno.code(), error.to_string()))
}

#[pymethods]
impl Machine {
    /// A machine with one node: `memory` and `swap` in bytes or as text (`"1GiB"`), `cpus`, and control files to
    /// write before anything runs (`sysctl={"vm.swappiness": 10}`).
    ///
    /// Raises `InputError` for an impossible machine, `OSError` for a control file that refuses its text.
    #[staticmethod]
    #[pyo3(signature = (memory, *, cpus = 1, swap = None, sysctl = None))]
    fn boot(
        py: Python<'_>,
        memory: &Bound<'_, PyAny>,
        cpus: u16,
        swap: Option<&Bound<'_, PyAny>>,
        sysctl: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Machine> {
        const MOST: u64 = 1 << 40;
        let wrong = |message: String| errors::input(py, message, "memory is 4MiB to 1TiB");
        let memory = bytes(memory, "memory")?;
        let swap = swap.map_or(Ok(0), |swap| bytes(swap, "swap"))?;
        if !(4 << 20..=MOST).contains(&memory) || swap > MOST {
            return Err(wrong(format!("no machine has {memory} bytes, and {swap} of swap")));
        }
        room(py, memory / 4096 * FRAME + swap / 4096 * ENTRY)?;
        let writes = sysctl.map_or(Ok(Vec::new()), values::sets)?;
        let page_size = PageSize::default();
        let node = NodeSpec::x86_64(memory, 0, 0);
        let machine = py.detach(|| {
            pagetide_core::process::Machine::new(&[node], cpus, Config::of_pages(page_size))
        });
        let mut machine = machine.map_err(|error| wrong(error.to_string()))?;
        let pages = page_size.pages_in(swap).min(u64::from(u32::MAX >> 2)) as u32;
        if pages > 0 {
            machine.swapon(pages, pages, false);
        }
        let mut executor = Executor::new(machine, Still::default(), CPU);
        executor
            .ask(|manager, todo| {
                manager.write_controls(&writes).map(|effects| effects.drain_into(todo))
            })
            .map_err(|error| refused(&error))?;
        Ok(Machine { state: Shared::new(State::new(executor)) })
    }

    /// Makes a group, below the root or below another, and writes its control files
    /// (`controls={"memory.max": "64M"}`). Groups are named; names are unique.
    #[pyo3(signature = (name, *, parent = None, controls = None))]
    fn create_group(
        &self,
        py: Python<'_>,
        name: String,
        parent: Option<&str>,
        controls: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let writes = controls.map_or(Ok(Vec::new()), values::sets)?;
        self.state.ask(py, |state| {
            let parent = state.group(parent)?;
            if name.is_empty() || state.groups.contains_key(&name) {
                let message = format!("a group cannot be called `{name}`");
                return Err(Wrong::Input(message, "names are unique, and not empty".into()));
            }
            let made = state.executor.ask(|manager, _| manager.create_memcg(name.clone(), parent));
            let refused = |errno: Errno| PyOSError::new_err((errno.code(), errno.name()));
            let id = made.map_err(|errno| Wrong::Raised(refused(errno)))?;
            state.groups.insert(name.clone(), id);
            Ok(())
        })?;
        let written =
            writes.iter().try_for_each(|(file, text)| self.write_text(py, file, text, Some(&name)));
        if written.is_err() {
            self.state.with(py, |state| state.remove_group(&name));
        }
        written
    }

    /// An address space, in a group or in the root.
    #[pyo3(signature = (group = None))]
    fn create_task(&self, py: Python<'_>, group: Option<&str>) -> PyResult<Task> {
        let task = self.state.ask(py, |state| {
            let group = state.group(group)?;
            state.begin(group)
        })?;
        Ok(Task::new(self.state.clone(), task))
    }

    /// A file of so many bytes (or `"1GiB"`), to be mapped. Returns its number.
    fn create_file(&self, py: Python<'_>, size: &Bound<'_, PyAny>) -> PyResult<u32> {
        let size = bytes(size, "size")?;
        room(py, (size / 4096).saturating_mul(ENTRY))?;
        let made = self
            .state
            .with(py, |state| state.executor.ask(|manager, _| manager.create_file(size, false)));
        let too_large = |_| errors::input(py, format!("no file has {size} bytes"), "give less");
        made.map(|file| file.0).map_err(too_large)
    }

    /// Writes a control file of the machine (`"vm.swappiness"`), or of a group (`"memory.high"`, `group="web"`).
    ///
    /// Raises `OSError` with the kernel's errno if it refuses the text.
    #[pyo3(signature = (file, value, *, group = None))]
    fn write(
        &self,
        py: Python<'_>,
        file: &str,
        value: &Bound<'_, PyAny>,
        group: Option<&str>,
    ) -> PyResult<()> {
        self.write_text(py, file, &values::to_text(value, file)?, group)
    }

    /// Reads a control file, or one that can only be read (`"memory.stat"` of a group; `/proc/vmstat`,
    /// `/proc/meminfo`, `/proc/zoneinfo`, `/proc/buddyinfo`, `/proc/pressure/memory`), as read(2) would.
    #[pyo3(signature = (file, *, group = None))]
    fn read(&self, py: Python<'_>, file: &str, group: Option<&str>) -> PyResult<String> {
        self.state.ask(py, |state| {
            let (manager, now) = (&state.executor.manager, state.executor.world.now);
            let text = if group.is_some() {
                manager.read_group_control(state.group(group)?, file, now)
            } else {
                proc_file(manager, file, now).map_or_else(|| manager.read_control(file), Ok)
            };
            text.map_err(|error| Wrong::Raised(refused(&error)))
        })
    }

    /// The rows of /proc/vmstat, and the events that Linux has as tracepoints, by their names: counts since boot and
    /// levels in pages.
    #[getter]
    fn vmstat(&self, py: Python<'_>) -> BTreeMap<&'static str, u64> {
        self.state.with(py, |state| vmstat(&state.executor.manager))
    }

    /// Virtual time, in nanoseconds.
    #[getter]
    fn now(&self, py: Python<'_>) -> u64 {
        self.state.with(py, |state| state.executor.world.now)
    }

    /// Pages that were moved so far: read and written from and to files, read and written from and to swap.
    #[getter]
    fn moved(&self, py: Python<'_>) -> BTreeMap<&'static str, u64> {
        let names = ["file_reads", "file_writes", "swap_ins", "swap_outs"];
        names.into_iter().zip(self.state.with(py, |state| state.executor.world.moved)).collect()
    }

    /// Bytes in a page.
    #[getter]
    fn page_size(&self) -> u64 {
        PageSize::default().bytes()
    }

    /// Lets `ns` nanoseconds pass: kswapd, the flushers and the other daemons do what is due.
    fn step(&self, py: Python<'_>, ns: u64) -> PyResult<()> {
        let until = self.now(py).saturating_add(ns);
        loop {
            let is_there = self.state.with(py, |state| {
                for _ in 0..STEPS {
                    state.executor.run_daemons();
                    state.reap();
                    let left = until.saturating_sub(state.executor.world.now);
                    if left == 0 {
                        return true;
                    }
                    state.executor.world.now += left.min(STEP);
                }
                false
            });
            if is_there {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    /// Checks every invariant of the manager. Raises `RuntimeError` if one is violated, which is a bug.
    fn audit(&self, py: Python<'_>) -> PyResult<()> {
        self.state.with(py, |state| state.executor.manager.audit()).map_err(errors::bug)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (free, groups) = self
            .state
            .with(py, |state| (state.executor.manager.nr_free_pages(), state.groups.len()));
        let free = (free * PageSize::default().bytes()) >> 20;
        format!("<pagetide.core.Machine: {free} MiB free, {groups} groups>")
    }
}

impl Machine {
    fn write_text(
        &self,
        py: Python<'_>,
        file: &str,
        text: &str,
        group: Option<&str>,
    ) -> PyResult<()> {
        self.state.ask(py, |state| {
            let raised = |error: ControlError| Wrong::Raised(refused(&error));
            if group.is_none_or(str::is_empty) {
                let written = state.executor.ask(|manager, todo| {
                    manager.write_control(file, text).map(|effects| effects.drain_into(todo))
                });
                return written.map_err(raised);
            }
            let id = state.group(group)?;
            let begun = state.executor.ask(|manager, todo| {
                let (begun, effects) = manager.write_group_control(id, file, text)?;
                effects.drain_into(todo);
                Ok(begun)
            });
            let Some(write) = begun.map_err(raised)? else { return Ok(()) };
            // Its writer does the reclaim.
            let (writer, number) = state.begin(ROOT)?;
            let outcome = state.run(&mut Call::group_write(writer, NodeId(0), write));
            state.end(writer, number);
            match outcome {
                Outcome::Refused(errno) => {
                    let text = format!("{file}: {errno}");
                    Err(Wrong::Raised(PyOSError::new_err((errno.code(), text))))
                }
                _ => Ok(()),
            }
        })
    }
}

pub fn proc_file(
    machine: &pagetide_core::process::Machine,
    file: &str,
    now: Nanos,
) -> Option<String> {
    Some(match file.strip_prefix("/proc/")? {
        "vmstat" => machine.proc_vmstat(),
        "meminfo" => machine.proc_meminfo(),
        "zoneinfo" => machine.proc_zoneinfo(),
        "buddyinfo" => machine.proc_buddyinfo(),
        "pagetypeinfo" => machine.proc_pagetypeinfo(),
        "slabinfo" => machine.slabinfo(),
        "swaps" => machine.proc_swaps(),
        "pressure/memory" => machine.proc_pressure_memory(now),
        _ => return None,
    })
}

/// What /proc/vmstat has, by name, and the counts that only tracepoints have.
pub fn vmstat(machine: &pagetide_core::process::Machine) -> BTreeMap<&'static str, u64> {
    machine.levels().into_iter().chain(machine.metrics()).collect()
}
