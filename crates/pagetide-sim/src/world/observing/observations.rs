//! The world's side of [`observe`](crate::observe): records observations and delivers them in time
//! order.
//!
//! All steps of a time slice are performed at its start, so their times are ahead of the world's.
//! An observation waits in a queue until the world's time reaches its own.
//!
//! Invariants: after every step the core's log is empty, so each event belongs to the thread of
//! that step. The times of a thread's observations, and the starts of its slices, never decrease.
//! Without observers, each record costs one branch.

use crate::observe::{
    ActivitySlice, CallKind, ExitReason, NamedEvent, Observation, ObservationKind, ObserverError,
    ObserverHandle, RunCast, SwitchReason, ThreadInfo, ThreadRole, WaitReason,
};
use crate::task::Blocked;
use crate::world::threads::WorldThread;
use crate::world::{SimWorld, WorldError};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::process::Machine;
use pagetide_core::stats::event::{TraceEvent, TraceField};
use pagetide_core::units::{Cpu, IdVec, MemcgId, Nanos};
use pagetide_scenario::op::Op;
use std::collections::{BTreeMap, VecDeque};

/// First pid of kernel threads, similar to a machine that has just booted.
const FIRST_KERNEL_PID: u32 = 30;
const FIRST_TASK_PID: u32 = 1001;

/// Observers, and observations not yet delivered.
#[derive(Debug)]
pub(crate) struct ObservationQueue {
    sinks: Vec<ObserverHandle>,
    /// Sorted by time, then by insertion.
    waiting: VecDeque<Observation>,
    /// Time of the last observation of each thread.
    last: Vec<Nanos>,
    /// Time of each thread's last observation that is not a context switch; its slices start no
    /// earlier.
    last_shown: Vec<Nanos>,
    /// The thread of each CPU, as reported.
    on_cpu: IdVec<Cpu, Option<WorldThread>>,
    /// By preempted thread: time of the preemption, and observations of the rest of its time slice.
    held: BTreeMap<usize, (Nanos, Vec<Observation>)>,
    /// By thread: a daemon with an open `ActivitySlice::Work`.
    at_work: Vec<bool>,
}

/// Facts already reported about a task's call in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownCall {
    is_shown: bool,
    is_major: bool,
}

impl SimWorld {
    /// Delivers observations to `sinks` from now on. Returns the error of an observer that cannot
    /// begin.
    pub fn observe(&mut self, sinks: Vec<ObserverHandle>) -> Result<(), WorldError> {
        if sinks.is_empty() {
            return Ok(());
        }
        self.machine.record_events(true);
        let cast = self.cast();
        let nr_threads = cast.threads.len();
        let observing = ObservationQueue {
            waiting: VecDeque::new(),
            last: vec![0; nr_threads],
            last_shown: vec![0; nr_threads],
            on_cpu: vec![None; self.cpus.of.len()].into(),
            held: BTreeMap::new(),
            at_work: vec![false; nr_threads],
            sinks,
        };
        observing.notify_all(|observer| observer.begin(&cast))?;
        self.observing = Some(observing);
        Ok(())
    }

    fn cast(&self) -> RunCast {
        let tasks = self.tasks.iter().enumerate().map(|(id, task)| {
            let nr = self.threads_of(task.leader).position(|thread| thread == id).unwrap_or(0);
            let group = self.setup.tasks[task.leader].group;
            let pid = FIRST_TASK_PID + id as u32;
            ThreadInfo {
                comm: task.name.clone(),
                pid,
                role: ThreadRole::Task { group, nr: nr as u32 },
            }
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
            groups: (0..self.setup.groups.len())
                .map(|group| crate::world::results::timeline::path_of(&self.setup, group))
                .collect(),
            threads: tasks.chain(daemons).collect(),
        }
    }

    /// Takes the events that the core logged in a step of `thread`, which started at `at`.
    #[inline]
    pub(crate) fn note_events(&mut self, thread: WorldThread, cpu: Cpu, at: Nanos) {
        if self.observing.is_some() || self.decisions.is_some() {
            self.take_events(thread, cpu, at);
        }
    }

    fn take_events(&mut self, thread: WorldThread, cpu: Cpu, at: Nanos) {
        let mut fresh = std::mem::take(&mut self.fresh_events);
        self.machine.take_events(&mut fresh);
        if !fresh.is_empty() {
            if let Some(decisions) = &mut self.decisions {
                decisions.events(thread, cpu, at, &fresh);
            }
            if self.observing.is_some() {
                if let WorldThread::Task(id) = thread {
                    self.show_call(id, at);
                }
                for &event in &fresh {
                    let names = self.names_in(&event);
                    self.show(
                        thread,
                        at,
                        ObservationKind::Event(cpu, NamedEvent::new(event, names)),
                    );
                }
            }
            fresh.clear();
        }
        self.fresh_events = fresh;
    }

    fn names_in(&self, event: &TraceEvent) -> Vec<Option<String>> {
        let mut names = Vec::new();
        event.each_field(|_, value| match value {
            TraceField::Group(memcg) => names.push(group_path(&self.machine, memcg)),
            TraceField::Mm(mm) => {
                names.push(
                    self.tasks.iter().find(|task| task.mm == mm).map(|task| task.name.clone()),
                );
            }
            TraceField::Number(_)
            | TraceField::Priority(_)
            | TraceField::Flag(_)
            | TraceField::Name(_)
            | TraceField::Gfp(_) => {}
        });
        names
    }

    /// Records an observation, if there are observers.
    #[inline]
    pub(crate) fn show(&mut self, thread: WorldThread, at: Nanos, what: ObservationKind) {
        if self.observing.is_some() {
            self.show_it(thread, at, what);
        }
    }

    fn show_it(&mut self, thread: WorldThread, at: Nanos, mut what: ObservationKind) {
        let thread = self.cpus.numbers.id(thread) as usize;
        let Some(observing) = &mut self.observing else { return };
        let is_switch =
            matches!(what, ObservationKind::SwitchIn(..) | ObservationKind::SwitchOut(..));
        if is_switch && observing.held.contains_key(&thread) {
            observing.insert(Observation { at, thread, what });
            return;
        }
        // A thread may be woken in the time slice that ends in its sleep, before the sleep starts.
        let at = at.max(observing.last[thread]);
        observing.last[thread] = at;
        if !is_switch {
            let before = std::mem::replace(&mut observing.last_shown[thread], at);
            if let ObservationKind::Began { since, .. } = &mut what {
                // A call is reported late, once it proves to be long; another slice may have ended
                // since.
                *since = (*since).clamp(before, at);
            }
        }
        let observation = Observation { at, thread, what };
        match observing.held.get_mut(&thread) {
            Some((_, held)) => held.push(observation),
            None => observing.insert(observation),
        }
    }

    /// After a preemption: holds back the observations of the rest of the thread's time slice.
    pub(crate) fn show_preempted(&mut self, thread: WorldThread) {
        let (thread, now) = (self.cpus.numbers.id(thread) as usize, self.now);
        let Some(observing) = &mut self.observing else { return };
        let (held, rest): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut observing.waiting)
            .into_iter()
            .partition(|it| it.thread == thread && it.at > now);
        observing.waiting = rest;
        observing.held.insert(thread, (now, held.into()));
    }

    /// When a preempted time slice continues: shifts its held observations and queues them again.
    pub(crate) fn show_resumed(&mut self, thread: WorldThread) {
        let (thread, now) = (self.cpus.numbers.id(thread) as usize, self.now);
        let Some(observing) = &mut self.observing else { return };
        let Some((cut, held)) = observing.held.remove(&thread) else { return };
        let later = now - cut;
        observing.last[thread] = (observing.last[thread] + later).max(now);
        observing.last_shown[thread] += later;
        for mut observation in held {
            observation.at += later;
            if let ObservationKind::Began { since, .. } = &mut observation.what {
                *since += if *since > cut { later } else { 0 };
            }
            observing.insert(observation);
        }
    }

    #[inline]
    pub(crate) fn show_began(&mut self, thread: WorldThread, at: Nanos, slice: ActivitySlice) {
        if self.observing.is_some() {
            if let (
                WorldThread::Task(id),
                ActivitySlice::Wait(_) | ActivitySlice::DirectCompaction,
            ) = (thread, slice)
            {
                self.show_call(id, at);
            }
            self.show_it(thread, at, ObservationKind::Began { slice, since: at });
        }
    }

    #[inline]
    pub(crate) fn show_wait_over(&mut self, thread: WorldThread, wait: WaitReason) {
        if self.observing.is_some() {
            self.show_it(thread, self.now, ObservationKind::Ended(ActivitySlice::Wait(wait)));
        }
    }

    /// Reports the start of a task's call, once it proves to be long.
    fn show_call(&mut self, id: usize, at: Nanos) {
        let task = &mut self.tasks[id];
        let Some(op) = task.call_of.filter(|_| !task.shown_call.is_shown) else { return };
        task.shown_call.is_shown = true;
        let slice = ActivitySlice::Call(kind_of(op, task.shown_call.is_major));
        let since = task.call_began;
        self.show_it(WorldThread::Task(id), at, ObservationKind::Began { slice, since });
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
            self.show_it(WorldThread::Task(id), at, ObservationKind::Ended(slice));
        }
    }

    /// Called at each step of a daemon; reports the start of its work.
    pub(crate) fn show_work(&mut self, daemon: Daemon) {
        let thread = WorldThread::Daemon(daemon);
        let number = self.cpus.numbers.id(thread) as usize;
        let Some(observing) = &mut self.observing else { return };
        let was_at_work = std::mem::replace(&mut observing.at_work[number], true);
        if !was_at_work && !matches!(daemon, Daemon::Kswapd(_)) {
            self.show_began(thread, self.now, ActivitySlice::Work);
        }
    }

    /// Reports the end of a daemon's work.
    pub(crate) fn show_rest(&mut self, daemon: Daemon, at: Nanos) {
        let thread = WorldThread::Daemon(daemon);
        let number = self.cpus.numbers.id(thread) as usize;
        let Some(observing) = &mut self.observing else { return };
        observing.at_work[number] = false;
        self.show_it(thread, at, ObservationKind::Ended(ActivitySlice::Work));
    }

    pub(crate) fn show_exit(&mut self, id: usize) {
        let task = &self.tasks[id];
        let exit = match (task.killed || task.crashed, task.stopped) {
            (true, _) => ExitReason::Killed,
            (false, true) => ExitReason::Stopped,
            (false, false) => ExitReason::Done,
        };
        self.show(WorldThread::Task(id), self.now, ObservationKind::Exited(exit));
    }

    /// Reports a context switch, if the CPU's thread has changed.
    pub(crate) fn show_switch(&mut self, cpu: Cpu, next: Option<WorldThread>) {
        let Some(observing) = &mut self.observing else { return };
        let before = std::mem::replace(&mut observing.on_cpu[cpu], next);
        if before == next {
            return;
        }
        if let Some(before) = before {
            let left = self.switch_reason(before);
            self.show_it(before, self.now, ObservationKind::SwitchOut(cpu, left));
        }
        if let Some(next) = next {
            self.show_it(next, self.now, ObservationKind::SwitchIn(cpu));
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

    /// Delivers the observations up to the current time.
    #[inline]
    pub(crate) fn deliver_observations(&mut self) -> Result<(), WorldError> {
        let now = self.now;
        match &mut self.observing {
            None => Ok(()),
            Some(observing) => observing.deliver_until(now),
        }
    }

    /// Delivers the remaining observations and the end of the run. Later observations are dropped.
    /// Returns an observer's write error.
    pub fn end_observing(&mut self, is_cut: bool) -> Result<(), WorldError> {
        let Some(mut observing) = self.observing.take() else { return Ok(()) };
        self.machine.record_events(false);
        for (_, held) in std::mem::take(&mut observing.held).into_values() {
            held.into_iter().for_each(|observation| observing.insert(observation));
        }
        let end = self.now.max(observing.waiting.back().map_or(0, |last| last.at));
        observing.deliver_until(Nanos::MAX)?;
        observing.notify_all(|observer| observer.end(end, is_cut))
    }
}

impl ObservationQueue {
    fn insert(&mut self, observation: Observation) {
        let at = observation.at;
        if self.waiting.back().is_none_or(|last| last.at <= at) {
            self.waiting.push_back(observation);
        } else {
            let place = self.waiting.partition_point(|waiting| waiting.at <= at);
            self.waiting.insert(place, observation);
        }
    }

    fn deliver_until(&mut self, until: Nanos) -> Result<(), WorldError> {
        let ready = self.waiting.partition_point(|waiting| waiting.at <= until);
        if ready == 0 {
            return Ok(());
        }
        let waiting = &self.waiting;
        let told = self.sinks.iter().try_for_each(|sink| {
            let mut observer = sink.lock();
            let mut it = waiting.range(..ready);
            it.try_for_each(|observation| observer.observe(observation))
                .map_err(|source| ObserverError { what: observer.what(), source })
        });
        self.waiting.drain(..ready);
        told.map_err(WorldError::Unwritten)
    }

    fn notify_all(
        &self,
        mut say: impl FnMut(&mut (dyn crate::observe::Observer + Send)) -> std::io::Result<()>,
    ) -> Result<(), WorldError> {
        self.sinks.iter().try_for_each(|sink| {
            let mut observer = sink.lock();
            say(&mut *observer).map_err(|source| {
                WorldError::Unwritten(ObserverError { what: observer.what(), source })
            })
        })
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
        if !machine.memcg_is_online(at) {
            return None;
        }
        let group = &machine.memcgs()[at];
        path = format!("/{}{path}", group.name);
        at = group.parent;
    }
    Some(path)
}
