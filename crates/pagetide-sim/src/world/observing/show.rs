//! Reports of the world's threads to [`observe`](crate::observe).
//!
//! Invariant: after every step the core's log is empty, so each event belongs to the thread of that
//! step.

use super::decisions::DecisionHashes;
use crate::observe::{
    ActivitySlice, CallKind, ExitReason, NamedEvent, ObservationKind, ObserverHandle, RunCast,
    SwitchReason, ThreadInfo, ThreadRole,
};
use crate::task::Blocked;
use crate::world::results::timeline::path_of;
use crate::world::{SimWorld, WorldError, WorldThread};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::process::Machine;
use pagetide_core::stats::event::{TraceEvent, TraceField};
use pagetide_core::units::{Cpu, MemcgId, Nanos};
use pagetide_scenario::op::Op;

/// First pid of kernel threads, similar to a machine that has just booted.
const FIRST_KERNEL_PID: u32 = 30;
const FIRST_TASK_PID: u32 = 1001;

impl SimWorld {
    /// Delivers observations to `sinks` from now on. Returns the error of an observer that cannot
    /// begin.
    pub fn observe(&mut self, sinks: Vec<ObserverHandle>) -> Result<(), WorldError> {
        if sinks.is_empty() {
            return Ok(());
        }
        self.machine.record_events(true);
        let cast = self.cast();
        self.observing.sinks = sinks;
        Ok(self.observing.notify_all(|observer| observer.begin(&cast))?)
    }

    pub fn hash_decisions(&mut self) {
        self.machine.record_events(true);
        self.observing.decisions = Some(DecisionHashes::default());
    }

    fn cast(&self) -> RunCast {
        let tasks = self.tasks.iter().enumerate().map(|(id, task)| {
            let nr = self.threads_of(task.leader).position(|thread| thread == id).unwrap_or(0);
            let group = self.setup.tasks[task.leader].group;
            let role = ThreadRole::Task { group, nr: nr as u32 };
            ThreadInfo { comm: task.name.clone(), pid: FIRST_TASK_PID + id as u32, role }
        });
        let daemons = Daemon::all(self.machine.nr_nodes()).enumerate().map(|(at, daemon)| {
            let comm = match daemon {
                Daemon::Kswapd(node) => format!("kswapd{}", node.0),
                Daemon::Flusher => "flusher".to_owned(),
                Daemon::Kcompactd(node) => format!("kcompactd{}", node.0),
                Daemon::Khugepaged => "khugepaged".to_owned(),
                Daemon::Kworker => "kworker".to_owned(),
            };
            ThreadInfo { comm, pid: FIRST_KERNEL_PID + at as u32, role: ThreadRole::Kernel(daemon) }
        });
        RunCast {
            cpus: self.cpus.of.len() as u16,
            page_size: self.machine.page_size().bytes(),
            groups: (0..self.setup.groups.len()).map(|group| path_of(&self.setup, group)).collect(),
            threads: tasks.chain(daemons).collect(),
        }
    }

    /// Takes the events that the core logged in a step of `thread`, which started at `at`.
    #[inline]
    pub(crate) fn note_events(&mut self, thread: WorldThread, cpu: Cpu, at: Nanos) {
        if self.observing.is_observed() || self.observing.decisions.is_some() {
            self.take_events(thread, cpu, at);
        }
    }

    fn take_events(&mut self, thread: WorldThread, cpu: Cpu, at: Nanos) {
        let mut fresh = std::mem::take(&mut self.observing.fresh);
        self.machine.take_events(&mut fresh);
        if !fresh.is_empty() {
            if let Some(decisions) = &mut self.observing.decisions {
                decisions.events(thread, cpu, at, &fresh);
            }
            if self.observing.is_observed() {
                if let WorldThread::Task(id) = thread {
                    self.show_call(id, at);
                }
                for &event in &fresh {
                    let named = NamedEvent::new(event, self.names_in(&event));
                    self.observing.show(thread, at, ObservationKind::Event(cpu, named));
                }
            }
            fresh.clear();
        }
        self.observing.fresh = fresh;
    }

    fn names_in(&self, event: &TraceEvent) -> Vec<Option<String>> {
        let mut names = Vec::new();
        event.each_field(|_, value| match value {
            TraceField::Group(memcg) => names.push(group_path(&self.machine, memcg)),
            TraceField::Mm(mm) => {
                let task = self.tasks.iter().find(|task| task.mm == mm);
                names.push(task.map(|task| task.name.clone()));
            }
            TraceField::Number(_)
            | TraceField::Priority(_)
            | TraceField::Flag(_)
            | TraceField::Name(_)
            | TraceField::Gfp(_) => {}
        });
        names
    }

    #[inline]
    pub(crate) fn show_began(&mut self, thread: WorldThread, at: Nanos, slice: ActivitySlice) {
        if self.observing.is_observed() {
            let is_of_call =
                matches!(slice, ActivitySlice::Wait(_) | ActivitySlice::DirectCompaction);
            if let (WorldThread::Task(id), true) = (thread, is_of_call) {
                self.show_call(id, at);
            }
            self.observing.show(thread, at, ObservationKind::Began { slice, since: at });
        }
    }

    /// Reports the start of a task's call, once it proves to be long.
    fn show_call(&mut self, id: usize, at: Nanos) {
        let task = &mut self.tasks[id];
        let Some(op) = task.call_of.filter(|_| !task.shown_call.is_shown) else { return };
        task.shown_call.is_shown = true;
        let slice = ActivitySlice::Call(kind_of(op, task.shown_call.is_major));
        let since = task.call_began;
        self.observing.show(WorldThread::Task(id), at, ObservationKind::Began { slice, since });
    }

    /// The page fault in progress is a major fault.
    pub(crate) fn show_major(&mut self, id: usize, at: Nanos) {
        self.tasks[id].shown_call.is_major = true;
        self.show_call(id, at);
    }

    pub(crate) fn show_call_over(&mut self, id: usize, op: Op, at: Nanos) {
        let task = &mut self.tasks[id];
        // Later waits and events of the task (for a full disk, or of a control file) are outside
        // the call.
        task.call_of = None;
        let shown = std::mem::take(&mut task.shown_call);
        if shown.is_shown {
            let slice = ActivitySlice::Call(kind_of(op, shown.is_major));
            self.observing.show(WorldThread::Task(id), at, ObservationKind::Ended(slice));
        }
    }

    pub(crate) fn show_exit(&mut self, id: usize) {
        let task = &self.tasks[id];
        let exit = match (task.killed || task.crashed, task.stopped) {
            (true, _) => ExitReason::Killed,
            (false, true) => ExitReason::Stopped,
            (false, false) => ExitReason::Done,
        };
        self.observing.show(WorldThread::Task(id), self.now, ObservationKind::Exited(exit));
    }

    /// Reports a context switch, if the CPU's thread has changed.
    pub(crate) fn show_switch(&mut self, cpu: Cpu, next: Option<WorldThread>) {
        if !self.observing.is_observed() {
            return;
        }
        let before = std::mem::replace(&mut self.observing.on_cpu[cpu], next);
        if before == next {
            return;
        }
        if let Some(before) = before {
            let left = self.switch_reason(before);
            self.observing.show(before, self.now, ObservationKind::SwitchOut(cpu, left));
        }
        if let Some(next) = next {
            self.observing.show(next, self.now, ObservationKind::SwitchIn(cpu));
        }
    }

    fn switch_reason(&self, thread: WorldThread) -> SwitchReason {
        match thread {
            _ if self.cpus.is_preempted(thread) => SwitchReason::Preempted,
            WorldThread::Task(id) => match self.tasks[id].blocked {
                Blocked::No => SwitchReason::Preempted,
                Blocked::Sleeping => SwitchReason::Sleeps,
                Blocked::Page => SwitchReason::Page,
                Blocked::Disk => SwitchReason::Disk,
                Blocked::Throttled(..) => SwitchReason::Throttled,
                Blocked::Exited => SwitchReason::Exited,
            },
            WorldThread::Daemon(daemon) => {
                let sleep = self.daemons.of(daemon);
                if !self.cpus.is_asleep(thread) {
                    SwitchReason::Preempted
                } else if sleep.throttled.is_some() {
                    SwitchReason::Throttled
                } else if sleep.waits_for_disk {
                    SwitchReason::Disk
                } else {
                    SwitchReason::Sleeps
                }
            }
        }
    }

    /// Delivers the remaining observations and the end of the run. Later observations are dropped.
    /// Returns an observer's write error.
    pub fn end_observing(&mut self, is_cut: bool) -> Result<(), WorldError> {
        if !self.observing.is_observed() {
            return Ok(());
        }
        self.machine.record_events(false);
        Ok(self.observing.end(self.now, is_cut)?)
    }
}

fn kind_of(op: Op, major: bool) -> CallKind {
    match op {
        Op::Access { .. } => CallKind::Fault { major },
        Op::Read { .. } => CallKind::Read,
        Op::Write { .. } => CallKind::Write,
        Op::Group { .. } => CallKind::ControlFile,
        _ => CallKind::KernelMemory,
    }
}

/// Path of a group; the root is `/`. `None` if it has been removed.
fn group_path(machine: &Machine, memcg: MemcgId) -> Option<String> {
    if memcg == ROOT {
        return Some("/".to_owned());
    }
    let mut path = String::new();
    let mut at = memcg;
    while at != ROOT {
        if !machine.groups.memcg_is_online(at) {
            return None;
        }
        let group = &machine.memcgs()[at];
        path = format!("/{}{path}", group.name);
        at = group.parent;
    }
    Some(path)
}
