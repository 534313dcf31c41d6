//! The memory manager behind the objects of `pagetide.core`, and its lock.

use super::CPU;
use crate::errors;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::{Effect, Io, Step};
use pagetide_core::interface::executor::{Executor, World};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::{MmId, ProcessCall, Processes};
use pagetide_core::units::{MemcgId, Nanos, Requester};
use pagetide_scenario::names::near::nearest;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A world in which no effect takes time.
#[derive(Debug, Default)]
pub struct InstantWorld {
    pub now: Nanos,
    /// Pages transferred: read from files, written to files, read from swap, written to swap.
    pub moved: [u64; 4],
    doomed: Vec<Requester>,
}

impl World for InstantWorld {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn submit(&mut self, io: Io) -> Option<bool> {
        let (kind, pages) = match io {
            Io::ReadFile { nr, .. } => (0, nr),
            Io::WriteFile { nr, .. } => (1, nr),
            Io::SwapIn { .. } => (2, 1),
            Io::SwapOut { nr, .. } => (3, nr),
        };
        self.moved[kind] += u64::from(pages);
        Some(true)
    }

    fn next_completion(&mut self, patience: Nanos) -> Option<(Io, bool)> {
        self.now = self.now.saturating_add(patience);
        None
    }

    fn move_bytes(&mut self, _effect: Effect) -> bool {
        true
    }

    fn kill(&mut self, asker: Requester) {
        self.doomed.push(asker);
    }
}

/// The manager, and the names of groups and files.
pub struct MachineState {
    pub executor: Executor<Processes, InstantWorld>,
    pub groups: BTreeMap<String, MemcgId>,
    /// The existing address spaces, each with its number.
    tasks: BTreeMap<MmId, u64>,
    nr_tasks: u64,
}

impl MachineState {
    pub fn new(executor: Executor<Processes, InstantWorld>) -> MachineState {
        MachineState { executor, groups: BTreeMap::new(), tasks: BTreeMap::new(), nr_tasks: 0 }
    }

    /// Runs a call to its end. A victim of the OOM killer ends at once.
    pub fn run(&mut self, call: &mut ProcessCall) -> Outcome {
        loop {
            let step = self.executor.step(call, CPU);
            let reaped = self.kill_oom_victims();
            match step {
                Step::Continue => {}
                Step::Wait(_) if reaped => {}
                Step::Wait(sleep) => {
                    let until = self.executor.world.now.saturating_add(sleep.timeout);
                    self.executor.sleep(sleep.token, until);
                    self.kill_oom_victims();
                }
                Step::Done(outcome) => return outcome,
            }
        }
    }

    /// Ends the victims of the OOM killer. Returns whether there were any.
    pub fn kill_oom_victims(&mut self) -> bool {
        let doomed = std::mem::take(&mut self.executor.world.doomed);
        for &asker in &doomed {
            self.tasks.remove(&asker);
            self.executor.ask(|manager, todo| {
                if let Ok(effects) = manager.exit_mm(asker, CPU) {
                    effects.drain_into(todo);
                }
            });
        }
        !doomed.is_empty()
    }

    pub fn group(&self, name: Option<&str>) -> Result<MemcgId, MachineError> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(ROOT) };
        self.groups.get(name).copied().ok_or_else(|| {
            let hint = match nearest(name, self.groups.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "create it with create_group".to_owned(),
            };
            MachineError::Input(format!("there is no group `{name}`"), hint)
        })
    }

    /// Removes a group that is unused.
    pub fn remove_group(&mut self, name: &str) {
        if let Some(id) = self.groups.remove(name) {
            self.executor.ask(|manager, todo| {
                if let Ok(effects) = manager.remove_memcg(id) {
                    effects.drain_into(todo);
                }
            });
        }
    }

    /// A new address space with a unique number; the manager reuses its ids.
    pub fn begin(&mut self, group: MemcgId) -> Result<(MmId, u64), MachineError> {
        let mm = self.executor.ask(|manager, _| manager.create_mm(group));
        let mm = mm.map_err(|error| MachineError::Raised(errors::bug(error)))?;
        self.nr_tasks += 1;
        self.tasks.insert(mm, self.nr_tasks);
        Ok((mm, self.nr_tasks))
    }

    /// Ends an address space, if it still has this number.
    pub fn end(&mut self, mm: MmId, number: u64) {
        if self.is_over(mm, number) {
            return;
        }
        self.tasks.remove(&mm);
        self.executor.ask(|manager, todo| {
            if let Ok(effects) = manager.exit_mm(mm, CPU) {
                effects.drain_into(todo);
            }
        });
    }

    /// Whether the address space of this number has ended.
    pub fn is_over(&self, mm: MmId, number: u64) -> bool {
        self.tasks.get(&mm) != Some(&number)
    }
}

/// An error that was found without the interpreter's lock.
pub enum MachineError {
    /// An `InputError`: message and hint.
    Input(String, String),
    /// Another exception.
    Raised(PyErr),
}

impl MachineError {
    /// Converts to an exception.
    pub fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            MachineError::Input(message, hint) => errors::input(py, message, hint),
            MachineError::Raised(error) => error,
        }
    }
}

/// The state, shared by several Python objects.
///
/// Invariant: it is locked only without the interpreter's lock, which [`SharedMachine::with`]
/// ensures. A thread that waits for this lock with the interpreter's lock held would deadlock with
/// the owner of this lock.
#[derive(Clone)]
pub struct SharedMachine(Arc<Mutex<MachineState>>);

impl SharedMachine {
    pub fn new(state: MachineState) -> SharedMachine {
        SharedMachine(Arc::new(Mutex::new(state)))
    }

    /// Accesses the state, without the interpreter's lock.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut MachineState) -> T + Send,
    ) -> T {
        py.detach(|| ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The same for a fallible access.
    pub fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut MachineState) -> Result<T, MachineError> + Send,
    ) -> PyResult<T> {
        self.with(py, ask).map_err(|wrong| wrong.raised(py))
    }
}
