//! `pagetide.core.Machine`: the memory manager alone, without a simulated world.
//!
//! The core's own executor runs each call to its end. There are no disks and no costs: I/O
//! completes at once, and time passes only in sleeps and in `step`.
//!
//! Invariant: between two method calls, no kernel call is running and no effect is pending.

mod state;
mod task;

pub use task::{Mapping, Task};

use crate::errors;
use crate::values;
use pagetide_core::config::Config;
use pagetide_core::control::ControlError;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::executor::Executor;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::ProcessCall;
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{Cpu, Nanos, NodeId};
use pagetide_lab::execute::room::available;
use pagetide_scenario::load;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use state::{InstantWorld, MachineError, MachineState, SharedMachine};
use std::collections::BTreeMap;

/// Approximate host memory, in bytes, for a page of machine memory, of a mapping, a file, or swap.
const FRAME: u64 = 64;
const ENTRY: u64 = 16;
/// Virtual time between two runs of the daemons, and the number of those between two checks for
/// signals.
const STEP: Nanos = 10_000_000;
const STEPS: usize = 1000;
/// The CPU that executes calls and daemons.
const CPU: Cpu = Cpu(0);

/// The memory manager alone: groups, address spaces, page touches, control files, counters.
///
/// There are no disks, so I/O takes no time. `pagetide.core.Simulation` has a machine with disks,
/// CPUs and tasks.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Machine {
    state: SharedMachine,
}

/// The bytes of a size: a number, or text like `"64MiB"`.
fn bytes(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    if value.is_instance_of::<PyInt>() {
        return value.extract();
    }
    let text: String = value.extract()?;
    load::size(&text)
        .map_err(|(message, hint)| errors::input(value.py(), format!("{what}: {message}"), hint))
}

/// Rejects tables for which this computer has too little memory; allocating them would end the
/// process.
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

/// An error of the kernel, as `OSError` with its errno.
fn refused(error: &ControlError) -> PyErr {
    PyOSError::new_err((error.errno.code(), error.to_string()))
}

#[pymethods]
impl Machine {
    /// Boots a machine with one node.
    ///
    /// `memory`, `swap`: bytes, or text (`"1GiB"`). `cpus`: number of CPUs. `sysctl`: control files
    /// to write first (`{"vm.swappiness": 10}`).
    ///
    /// Raises `InputError` for an impossible machine, `OSError` if a control file rejects its text.
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
        let wrong = |message: String| errors::input(py, message, "memory must be 4MiB to 1TiB");
        let memory = bytes(memory, "memory")?;
        let swap = swap.map_or(Ok(0), |swap| bytes(swap, "swap"))?;
        if !(4 << 20..=MOST).contains(&memory) || swap > MOST {
            return Err(wrong(format!(
                "a machine cannot have {memory} bytes of memory and {swap} bytes of swap"
            )));
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
            machine.swapon(SwapOptions::new(pages));
        }
        let mut executor = Executor::new(machine, InstantWorld::default(), CPU);
        executor
            .ask(|manager, todo| {
                manager.write_controls(&writes).map(|effects| effects.drain_into(todo))
            })
            .map_err(|error| refused(&error))?;
        Ok(Machine { state: SharedMachine::new(MachineState::new(executor)) })
    }

    /// Creates a group below the root or below `parent`, and writes its control files
    /// (`controls={"memory.max": "64M"}`). Names are unique.
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
                return Err(MachineError::Input(
                    message,
                    "choose a name that is unique and not empty".into(),
                ));
            }
            let made = state.executor.ask(|manager, _| manager.create_memcg(name.clone(), parent));
            let refused = |errno: Errno| PyOSError::new_err((errno.code(), errno.name()));
            let id = made.map_err(|errno| MachineError::Raised(refused(errno)))?;
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

    /// Creates an address space, in a group or in the root.
    #[pyo3(signature = (group = None))]
    fn create_task(&self, py: Python<'_>, group: Option<&str>) -> PyResult<Task> {
        let task = self.state.ask(py, |state| {
            let group = state.group(group)?;
            state.begin(group)
        })?;
        Ok(Task::new(self.state.clone(), task))
    }

    /// Creates a file of `size` bytes (or `"1GiB"`), which can be mapped. Returns its number.
    fn create_file(&self, py: Python<'_>, size: &Bound<'_, PyAny>) -> PyResult<u32> {
        let size = bytes(size, "size")?;
        room(py, (size / 4096).saturating_mul(ENTRY))?;
        let made = self
            .state
            .with(py, |state| state.executor.ask(|manager, _| manager.create_file(size, false)));
        let too_large = |_| {
            errors::input(py, format!("a file cannot have {size} bytes"), "give a smaller size")
        };
        made.map(|file| file.0).map_err(too_large)
    }

    /// Writes a control file of the machine (`"vm.swappiness"`) or of a group (`"memory.high"`,
    /// `group="web"`).
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
        self.write_text(py, file, &values::to_text(value, file)?, group)
    }

    /// Reads a file of the machine (`"vm.swappiness"`, `/proc/vmstat`, `/proc/meminfo`,
    /// `/proc/zoneinfo`, `/proc/buddyinfo`, `/proc/pressure/memory`) or of a group
    /// (`"memory.stat"`), as read(2) would.
    #[pyo3(signature = (file, *, group = None))]
    fn read(&self, py: Python<'_>, file: &str, group: Option<&str>) -> PyResult<String> {
        self.state.ask(py, |state| {
            let (manager, now) = (&state.executor.manager, state.executor.world.now);
            let text = if group.is_some() {
                manager.read_group_control(state.group(group)?, file, now)
            } else {
                proc_file(manager, file, now).map_or_else(|| manager.read_control(file), Ok)
            };
            text.map_err(|error| MachineError::Raised(refused(&error)))
        })
    }

    /// The rows of /proc/vmstat by name, and counts of events that Linux has only as tracepoints.
    ///
    /// Counts are since boot, levels are in pages.
    #[getter]
    fn vmstat(&self, py: Python<'_>) -> BTreeMap<&'static str, u64> {
        self.state.with(py, |state| vmstat(&state.executor.manager))
    }

    /// Virtual time, in nanoseconds.
    #[getter]
    fn now(&self, py: Python<'_>) -> u64 {
        self.state.with(py, |state| state.executor.world.now)
    }

    /// Pages transferred so far: read from files, written to files, read from swap, written to
    /// swap.
    #[getter]
    fn moved(&self, py: Python<'_>) -> BTreeMap<&'static str, u64> {
        let names = ["file_reads", "file_writes", "swap_ins", "swap_outs"];
        names.into_iter().zip(self.state.with(py, |state| state.executor.world.moved)).collect()
    }

    /// Bytes of a page.
    #[getter]
    fn page_size(&self) -> u64 {
        PageSize::default().bytes()
    }

    /// Advances virtual time by `ns` nanoseconds. kswapd, the flushers and the other daemons do
    /// their due work.
    fn step(&self, py: Python<'_>, ns: u64) -> PyResult<()> {
        let until = self.now(py).saturating_add(ns);
        loop {
            let is_there = self.state.with(py, |state| {
                for _ in 0..STEPS {
                    state.executor.run_daemons();
                    state.kill_oom_victims();
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

    /// Checks every invariant of the manager. Raises `RuntimeError` if one is violated, which is a
    /// bug.
    fn audit(&self, py: Python<'_>) -> PyResult<()> {
        self.state.with(py, |state| state.executor.manager.audit()).map_err(errors::bug)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (free, groups) = self
            .state
            .with(py, |state| (state.executor.manager.mem.nr_free_pages(), state.groups.len()));
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
            let raised = |error: ControlError| MachineError::Raised(refused(&error));
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
            // The writer of the file performs the reclaim.
            let (writer, number) = state.begin(ROOT)?;
            let outcome = state.run(&mut ProcessCall::group_write(writer, NodeId(0), write));
            state.end(writer, number);
            match outcome {
                Outcome::Refused(errno) => {
                    let text = format!("{file}: {errno}");
                    Err(MachineError::Raised(PyOSError::new_err((errno.code(), text))))
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

/// The rows of /proc/vmstat by name, and the counts that only tracepoints have.
pub fn vmstat(machine: &pagetide_core::process::Machine) -> BTreeMap<&'static str, u64> {
    machine.levels().into_iter().chain(machine.metrics()).collect()
}
