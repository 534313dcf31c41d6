//! `pagetide.core.Machine`: the memory manager itself, without a simulated world around it.
//!
//! The core's own executor runs calls to their end. There are no disks and no costs: I/O ends at once, and time passes
//! only where somebody sleeps, or by `step`.
//!
//! Invariant: between two methods no call is under way and no effect is waiting.

use crate::buffer::Buffer;
use crate::errors;
use crate::values;
use pagetide_core::config::Config;
use pagetide_core::control::ControlError;
use pagetide_core::effect::{Effect, Io, Step};
use pagetide_core::executor::{Executor, World};
use pagetide_core::memcg::ROOT;
use pagetide_core::node::NodeSpec;
use pagetide_core::outcome::Outcome;
use pagetide_core::page_size::PageSize;
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::{Call, MmId, Processes, Touch};
use pagetide_core::units::{Asker, Cpu, FileId, MemcgId, Nanos, NodeId, VmaId};
use pagetide_lab::execute::room::available;
use pagetide_scenario::load;
use pagetide_scenario::near::nearest;
use pyo3::exceptions::{PyIndexError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Touches between two looks at signals.
const BATCH: usize = 1 << 18;
/// Bytes of this computer for a page of a machine's memory, about; for one of a mapping, a file or swap.
const FRAME: u64 = 64;
const ENTRY: u64 = 16;
/// Virtual time between two looks at daemons, and how many there are between two at signals.
const STEP: Nanos = 10_000_000;
const STEPS: usize = 1000;
/// Where the calls run, and where daemons do.
const CPU: Cpu = Cpu(0);

/// A world in which nothing takes time.
#[derive(Debug, Default)]
struct Still {
    now: Nanos,
    /// Pages moved: read from files, written to files, from swap, to swap.
    moved: [u64; 4],
    doomed: Vec<Asker>,
}

impl World for Still {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn submit(&mut self, io: Io) -> Option<bool> {
        let (kind, pages) = match io {
            Io::ReadFile { nr, .. } => (0, nr),
            Io::WriteFile { nr, .. } => (1, nr),
            Io::SwapIn { .. } => (2, 1),
            Io::SwapOut { .. } => (3, 1),
        };
        self.moved[kind] += u64::from(pages);
        Some(true)
    }

    fn ended(&mut self, patience: Nanos) -> Option<(Io, bool)> {
        self.now = self.now.saturating_add(patience);
        None
    }

    fn move_bytes(&mut self, _effect: Effect) -> bool {
        true
    }

    fn kill(&mut self, asker: Asker) {
        self.doomed.push(asker);
    }
}

struct State {
    executor: Executor<Processes, Still>,
    groups: BTreeMap<String, MemcgId>,
    page_size: u64,
}

impl State {
    /// Runs a call to its end. Who is chosen by the OOM killer ends at once.
    fn run(&mut self, call: &mut Call) -> Outcome {
        loop {
            let step = self.executor.step(call, CPU);
            let reaped = self.reap();
            match step {
                Step::Continue => {}
                Step::Wait(_) if reaped => {}
                Step::Wait(sleep) => {
                    let until = self.executor.world.now.saturating_add(sleep.timeout);
                    self.executor.sleep(sleep.token, until);
                    self.reap();
                }
                Step::Done(outcome) => return outcome,
            }
        }
    }

    fn reap(&mut self) -> bool {
        let doomed = std::mem::take(&mut self.executor.world.doomed);
        for &asker in &doomed {
            self.executor.ask(|manager, todo| {
                if let Ok(effects) = manager.exit_mm(asker, CPU) {
                    effects.drain_into(todo);
                }
            });
        }
        !doomed.is_empty()
    }

    fn group(&self, py: Python<'_>, name: Option<&str>) -> PyResult<MemcgId> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(ROOT) };
        self.groups.get(name).copied().ok_or_else(|| {
            let hint = match nearest(name, self.groups.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "make it with create_group".to_owned(),
            };
            errors::input(py, format!("there is no group `{name}`"), hint)
        })
    }
}

/// The memory manager itself: groups, address spaces, touches, control files, counters. There are no disks, so I/O
/// takes no time; a scenario's machine with disks, CPUs and tasks is `pagetide.core.Simulation`.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Machine {
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Machine {
    /// Does something with the state, without the interpreter's lock.
    fn with<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut State) -> T + Send) -> T {
        py.detach(|| ask(&mut lock(&self.state)))
    }
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
        let state = State { executor, groups: BTreeMap::new(), page_size: page_size.bytes() };
        Ok(Machine { state: Arc::new(Mutex::new(state)) })
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
        {
            let mut state = lock(&self.state);
            let parent = state.group(py, parent)?;
            if name.is_empty() || state.groups.contains_key(&name) {
                let message = format!("a group cannot be called `{name}`");
                return Err(errors::input(py, message, "names are unique, and not empty"));
            }
            let made = state.executor.ask(|manager, _| manager.create_memcg(name.clone(), parent));
            let id = made.map_err(|errno| PyOSError::new_err((errno.code(), errno.name())))?;
            state.groups.insert(name.clone(), id);
        }
        writes.iter().try_for_each(|(file, text)| self.write_text(py, file, text, Some(&name)))
    }

    /// An address space, in a group or in the root.
    #[pyo3(signature = (group = None))]
    fn create_task(&self, py: Python<'_>, group: Option<&str>) -> PyResult<Task> {
        let mut state = lock(&self.state);
        let group = state.group(py, group)?;
        let mm = state.executor.ask(|manager, _| manager.create_mm(group));
        let mm = mm.map_err(errors::bug)?;
        Ok(Task { state: Arc::clone(&self.state), mm })
    }

    /// A file of so many bytes (or `"1GiB"`), to be mapped. Returns its number.
    fn create_file(&self, py: Python<'_>, size: &Bound<'_, PyAny>) -> PyResult<u32> {
        let size = bytes(size, "size")?;
        room(py, (size / 4096).saturating_mul(ENTRY))?;
        let made = self
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
        let state = lock(&self.state);
        let (manager, now) = (&state.executor.manager, state.executor.world.now);
        if group.is_some() {
            let id = state.group(py, group)?;
            return manager.read_group_control(id, file, now).map_err(|error| refused(&error));
        }
        match proc_file(manager, file, now) {
            Some(text) => Ok(text),
            None => manager.read_control(file).map_err(|error| refused(&error)),
        }
    }

    /// The rows of /proc/vmstat, and the events that Linux has as tracepoints, by their names: counts since boot and
    /// levels in pages.
    #[getter]
    fn vmstat(&self) -> BTreeMap<&'static str, u64> {
        vmstat(&lock(&self.state).executor.manager)
    }

    /// Virtual time, in nanoseconds.
    #[getter]
    fn now(&self) -> u64 {
        lock(&self.state).executor.world.now
    }

    /// Pages that were moved so far: read and written from and to files, read and written from and to swap.
    #[getter]
    fn moved(&self) -> BTreeMap<&'static str, u64> {
        let names = ["file_reads", "file_writes", "swap_ins", "swap_outs"];
        names.into_iter().zip(lock(&self.state).executor.world.moved).collect()
    }

    /// Bytes in a page.
    #[getter]
    fn page_size(&self) -> u64 {
        lock(&self.state).page_size
    }

    /// Lets `ns` nanoseconds pass: kswapd, the flushers and the other daemons do what is due.
    fn step(&self, py: Python<'_>, ns: u64) -> PyResult<()> {
        let until = self.now().saturating_add(ns);
        loop {
            let is_there = self.with(py, |state| {
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
        self.with(py, |state| state.executor.manager.audit()).map_err(errors::bug)
    }

    fn __repr__(&self) -> String {
        let state = lock(&self.state);
        let free = state.executor.manager.nr_free_pages() * state.page_size;
        format!("<pagetide.core.Machine: {} MiB free, {} groups>", free >> 20, state.groups.len())
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
        let Some(_) = group.filter(|group| !group.is_empty()) else {
            return self
                .with(py, |state| {
                    let asked = |manager: &mut pagetide_core::process::Machine,
                                 todo: &mut Vec<Effect>| {
                        manager.write_control(file, text).map(|effects| effects.drain_into(todo))
                    };
                    state.executor.ask(asked)
                })
                .map_err(|error| refused(&error));
        };
        let id = lock(&self.state).group(py, group)?;
        self.with(py, |state| {
            let begun = state.executor.ask(|manager, todo| {
                let (begun, effects) = manager.write_group_control(id, file, text)?;
                effects.drain_into(todo);
                Ok::<_, ControlError>(begun)
            });
            let Some(write) = begun.map_err(|error| refused(&error))? else { return Ok(()) };
            // Its writer does the reclaim.
            let writer = state.executor.ask(|manager, _| manager.create_mm(ROOT));
            let writer = writer.map_err(errors::bug)?;
            let outcome = state.run(&mut Call::group_write(writer, NodeId(0), write));
            state.executor.ask(|manager, todo| {
                if let Ok(effects) = manager.exit_mm(writer, CPU) {
                    effects.drain_into(todo);
                }
            });
            match outcome {
                Outcome::Refused(errno) => {
                    Err(PyOSError::new_err((errno.code(), format!("{file}: {errno}"))))
                }
                _ => Ok(()),
            }
        })
    }
}

/// A file of /proc.
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

/// An address space. Make mappings with `map`.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Task {
    state: Arc<Mutex<State>>,
    mm: MmId,
}

#[pymethods]
impl Task {
    /// Maps so many bytes (or `"64MiB"`): anonymous memory, or a file (the number that `create_file` gave), whose
    /// pages are shared with others that map it. `random`: without read-ahead.
    #[pyo3(signature = (size, *, file = None, random = false))]
    fn map(
        &self,
        py: Python<'_>,
        size: &Bound<'_, PyAny>,
        file: Option<u32>,
        random: bool,
    ) -> PyResult<Mapping> {
        let size = bytes(size, "size")?;
        room(py, (size / 4096).saturating_mul(ENTRY))?;
        let mut state = lock(&self.state);
        let pages = size.div_ceil(state.page_size);
        let backing = file.map_or(Backing::Anon, |file| Backing::File(FileId(file)));
        let advice = if random { Advice::Random } else { Advice::Normal };
        let mm = self.mm;
        let made = state.executor.ask(|manager, _| manager.mmap(mm, backing, pages, advice, false));
        let vma = made.map_err(|error| {
            errors::input(py, format!("cannot be mapped: {error}"), "is the task over?")
        })?;
        Ok(Mapping { state: Arc::clone(&self.state), mm, vma, pages })
    }

    /// Whether it has ended: by `exit`, or by the OOM killer.
    #[getter]
    fn is_over(&self) -> bool {
        lock(&self.state).executor.manager.is_exited(self.mm)
    }

    /// Ends it, and frees what only it used.
    fn exit(&self) {
        let mm = self.mm;
        lock(&self.state).executor.ask(|manager, todo| {
            if let Ok(effects) = manager.exit_mm(mm, CPU) {
                effects.drain_into(todo);
            }
        });
    }
}

/// A stretch of pages of a task.
#[pyclass(frozen, module = "pagetide.core")]
pub struct Mapping {
    state: Arc<Mutex<State>>,
    mm: MmId,
    vma: VmaId,
    pages: u64,
}

#[pymethods]
impl Mapping {
    /// Touches pages, one after the other: `pages` is a buffer of whole numbers (`array('Q', ...)`, numpy's uint64 or
    /// uint32), which is not copied, or one number. Returns (hits, minor faults, major faults); fewer in all than were
    /// asked for if the task was killed, which `Task.is_over` says.
    ///
    /// Raises `IndexError` for a page that the mapping does not have (those before it are touched), `TypeError` for
    /// another kind of buffer.
    #[pyo3(signature = (pages, *, write = false))]
    fn touch(
        &self,
        py: Python<'_>,
        pages: &Bound<'_, PyAny>,
        write: bool,
    ) -> PyResult<(u64, u64, u64)> {
        let mut counts = [0; 3];
        if pages.is_instance_of::<PyInt>() {
            let page: u64 = pages
                .extract()
                .map_err(|_| PyIndexError::new_err(format!("the mapping has no page {pages}")))?;
            self.touch_all(py, 1, |_| page, write, &mut counts)?;
        } else {
            let buffer = Buffer::of(pages)?;
            let mut done = 0;
            while done < buffer.len() {
                let nr = (buffer.len() - done).min(BATCH);
                let goes_on =
                    self.touch_all(py, nr, |at| buffer.at(done + at), write, &mut counts)?;
                py.check_signals()?;
                if !goes_on {
                    break;
                }
                done += nr;
            }
        }
        let [hits, minor, major] = counts;
        Ok((hits, minor, major))
    }

    /// How many of its pages are in memory.
    #[getter]
    fn resident(&self, py: Python<'_>) -> u64 {
        py.detach(|| {
            let state = lock(&self.state);
            let manager = &state.executor.manager;
            (0..self.pages).filter(|page| manager.is_resident(self.vma, *page)).count() as u64
        })
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.pages).unwrap_or(usize::MAX)
    }
}

impl Mapping {
    /// Whether the task is still there.
    fn touch_all(
        &self,
        py: Python<'_>,
        nr: usize,
        page_at: impl Fn(usize) -> u64 + Send + Sync,
        write: bool,
        counts: &mut [u64; 3],
    ) -> PyResult<bool> {
        let wrong = py.detach(|| {
            let mut state = lock(&self.state);
            if state.executor.manager.is_exited(self.mm) {
                return Ok(false);
            }
            for at in 0..nr {
                let page = page_at(at);
                if page >= self.pages {
                    return Err(page);
                }
                match state.executor.manager.touch(self.vma, page, write) {
                    Touch::Hit => counts[0] += 1,
                    Touch::Fault => {
                        let mut call = Call::fault(self.mm, NodeId(0), self.vma, page, write);
                        match state.run(&mut call) {
                            Outcome::Got(got) => counts[1 + usize::from(got.major)] += 1,
                            _ => return Ok(false),
                        }
                    }
                }
            }
            Ok(true)
        });
        wrong.map_err(|page| {
            PyIndexError::new_err(format!("the mapping has {} pages, none {page}", self.pages))
        })
    }
}
