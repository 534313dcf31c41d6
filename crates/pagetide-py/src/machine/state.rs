//! The manager behind the objects of `pagetide.core`, and the lock around it.

use super::CPU;
use crate::errors;
use pagetide_core::effect::{Effect, Io, Step};
use pagetide_core::executor::{Executor, World};
use pagetide_core::memcg::ROOT;
use pagetide_core::outcome::Outcome;
use pagetide_core::process::{Call, MmId, Processes};
use pagetide_core::units::{Asker, MemcgId, Nanos};
use pagetide_scenario::near::nearest;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A world in which nothing takes time.
#[derive(Debug, Default)]
pub struct Still {
    pub now: Nanos,
    /// Pages moved: read from files, written to files, from swap, to swap.
    pub moved: [u64; 4],
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

/// The manager, and what has names.
pub struct State {
    pub executor: Executor<Processes, Still>,
    pub groups: BTreeMap<String, MemcgId>,
    /// The address spaces that are there, each with its number.
    tasks: BTreeMap<MmId, u64>,
    nr_tasks: u64,
}

impl State {
    /// A machine without groups.
    pub fn new(executor: Executor<Processes, Still>) -> State {
        State { executor, groups: BTreeMap::new(), tasks: BTreeMap::new(), nr_tasks: 0 }
    }

    /// Runs a call to its end. Who is chosen by the OOM killer ends at once.
    pub fn run(&mut self, call: &mut Call) -> Outcome {
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

    /// Ends whom the OOM killer has chosen. Says whether there was anybody.
    pub fn reap(&mut self) -> bool {
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

    pub fn group(&self, name: Option<&str>) -> Result<MemcgId, Wrong> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(ROOT) };
        self.groups.get(name).copied().ok_or_else(|| {
            let hint = match nearest(name, self.groups.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "make it with create_group".to_owned(),
            };
            Wrong::Input(format!("there is no group `{name}`"), hint)
        })
    }

    /// Takes a group back in which nothing has happened.
    pub fn remove_group(&mut self, name: &str) {
        if let Some(id) = self.groups.remove(name) {
            self.executor.ask(|manager, todo| {
                if let Ok(effects) = manager.remove_memcg(id) {
                    effects.drain_into(todo);
                }
            });
        }
    }

    /// A new address space, with a number that no other has: ids of the manager are used again.
    pub fn begin(&mut self, group: MemcgId) -> Result<(MmId, u64), Wrong> {
        let mm = self.executor.ask(|manager, _| manager.create_mm(group));
        let mm = mm.map_err(|error| Wrong::Raised(errors::bug(error)))?;
        self.nr_tasks += 1;
        self.tasks.insert(mm, self.nr_tasks);
        Ok((mm, self.nr_tasks))
    }

    /// Ends an address space, if it is still that of this number.
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

/// What is wrong with a request, found where the interpreter's lock is not held.
pub enum Wrong {
    /// An `InputError`: message and hint.
    Input(String, String),
    /// Another exception.
    Raised(PyErr),
}

impl Wrong {
    /// As an exception.
    pub fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Wrong::Input(message, hint) => errors::input(py, message, hint),
            Wrong::Raised(error) => error,
        }
    }
}

/// What several objects of Python share.
///
/// Invariant: it is locked only without the interpreter's lock, which [`Shared::with`] sees to. Who waited for it with
/// that one in hand would stop whoever has it and needs the interpreter.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<State>>);

impl Shared {
    pub fn new(state: State) -> Shared {
        Shared(Arc::new(Mutex::new(state)))
    }

    /// Does something with the state, without the interpreter's lock.
    pub fn with<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut State) -> T + Send) -> T {
        py.detach(|| ask(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The same of what may be refused.
    pub fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut State) -> Result<T, Wrong> + Send,
    ) -> PyResult<T> {
        self.with(py, ask).map_err(|wrong| wrong.raised(py))
    }
}
