//! The view of a run that observers and tests have: observations in time order, and hashes of the
//! core's decisions.
//!
//! All steps of a time slice are performed at its start, so their times are ahead of the world's.
//! An observation waits here until the world's time reaches its own.
//!
//! Invariant: the times of a thread's observations, and the starts of its slices, never decrease.
//! Without observers and hashes, each record costs one branch.

pub(crate) mod decisions;
mod show;

use crate::observe::{
    ActivitySlice, Observation, ObservationKind, Observer, ObserverError, ObserverHandle,
    WaitReason,
};
use crate::world::threads::{ThreadNumbers, WorldThread};
use decisions::DecisionHashes;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::stats::event::TraceEvent;
use pagetide_core::units::{Cpu, IdVec, Nanos};
use std::collections::{BTreeMap, VecDeque};

/// Observers and hashes of a run, and observations not yet delivered.
#[derive(Debug, Default)]
pub(crate) struct Observing {
    numbers: ThreadNumbers,
    sinks: Vec<ObserverHandle>,
    /// Sorted by time, then by insertion.
    waiting: VecDeque<Observation>,
    /// Time of the last observation of each thread.
    last: Vec<Nanos>,
    /// Time of each thread's last observation that is not a context switch; its slices start no
    /// earlier.
    last_shown: Vec<Nanos>,
    pub on_cpu: IdVec<Cpu, Option<WorldThread>>,
    /// By preempted thread: time of the preemption, and observations of the rest of its time slice.
    held: BTreeMap<usize, (Nanos, Vec<Observation>)>,
    /// By thread: a daemon with an open `ActivitySlice::Work`.
    at_work: Vec<bool>,
    /// `None` unless hashes were requested.
    pub decisions: Option<DecisionHashes>,
    /// Events of the last step.
    fresh: Vec<TraceEvent>,
}

/// Facts already reported about a task's call in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownCall {
    pub is_shown: bool,
    pub is_major: bool,
}

impl Observing {
    pub fn new(numbers: ThreadNumbers, nr_cpus: usize) -> Observing {
        Observing {
            last: vec![0; numbers.len()],
            last_shown: vec![0; numbers.len()],
            on_cpu: vec![None; nr_cpus].into(),
            at_work: vec![false; numbers.len()],
            numbers,
            ..Observing::default()
        }
    }

    #[inline]
    pub fn is_observed(&self) -> bool {
        !self.sinks.is_empty()
    }

    /// Records an observation, if there are observers.
    #[inline]
    pub fn show(&mut self, thread: WorldThread, at: Nanos, what: ObservationKind) {
        if self.is_observed() {
            self.record(thread, at, what);
        }
    }

    pub fn show_wait_over(&mut self, thread: WorldThread, wait: WaitReason, now: Nanos) {
        self.show(thread, now, ObservationKind::Ended(ActivitySlice::Wait(wait)));
    }

    fn record(&mut self, thread: WorldThread, at: Nanos, mut what: ObservationKind) {
        let thread = self.numbers.id(thread) as usize;
        let is_switch =
            matches!(what, ObservationKind::SwitchIn(..) | ObservationKind::SwitchOut(..));
        if is_switch && self.held.contains_key(&thread) {
            self.insert(Observation { at, thread, what });
            return;
        }
        // A thread may be woken in the time slice that ends in its sleep, before the sleep starts.
        let at = at.max(self.last[thread]);
        self.last[thread] = at;
        if !is_switch {
            let before = std::mem::replace(&mut self.last_shown[thread], at);
            if let ObservationKind::Began { since, .. } = &mut what {
                // A call is reported late, once it proves to be long; another slice may have ended
                // since.
                *since = (*since).clamp(before, at);
            }
        }
        let observation = Observation { at, thread, what };
        match self.held.get_mut(&thread) {
            Some((_, held)) => held.push(observation),
            None => self.insert(observation),
        }
    }

    /// After a preemption: holds back the observations of the rest of the thread's time slice.
    pub fn show_preempted(&mut self, thread: WorldThread, now: Nanos) {
        if !self.is_observed() {
            return;
        }
        let thread = self.numbers.id(thread) as usize;
        let (held, rest): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|it| it.thread == thread && it.at > now);
        self.waiting = rest;
        self.held.insert(thread, (now, held.into()));
    }

    /// When a preempted time slice continues: shifts its held observations and queues them again.
    pub fn show_resumed(&mut self, thread: WorldThread, now: Nanos) {
        let thread = self.numbers.id(thread) as usize;
        let Some((cut, held)) = self.held.remove(&thread) else { return };
        let later = now - cut;
        self.last[thread] = (self.last[thread] + later).max(now);
        self.last_shown[thread] += later;
        for mut observation in held {
            observation.at += later;
            if let ObservationKind::Began { since, .. } = &mut observation.what {
                *since += if *since > cut { later } else { 0 };
            }
            self.insert(observation);
        }
    }

    /// Called at each step of a daemon; records the start of its work.
    pub fn show_work(&mut self, daemon: Daemon, now: Nanos) {
        let thread = WorldThread::Daemon(daemon);
        let was_at_work =
            std::mem::replace(&mut self.at_work[self.numbers.id(thread) as usize], true);
        if !was_at_work && !matches!(daemon, Daemon::Kswapd(_)) {
            let slice = ActivitySlice::Work;
            self.show(thread, now, ObservationKind::Began { slice, since: now });
        }
    }

    pub fn show_rest(&mut self, daemon: Daemon, at: Nanos) {
        let thread = WorldThread::Daemon(daemon);
        self.at_work[self.numbers.id(thread) as usize] = false;
        self.show(thread, at, ObservationKind::Ended(ActivitySlice::Work));
    }

    fn insert(&mut self, observation: Observation) {
        let at = observation.at;
        if self.waiting.back().is_none_or(|last| last.at <= at) {
            self.waiting.push_back(observation);
        } else {
            let place = self.waiting.partition_point(|waiting| waiting.at <= at);
            self.waiting.insert(place, observation);
        }
    }

    /// Delivers the observations up to a time.
    #[inline]
    pub fn deliver_until(&mut self, until: Nanos) -> Result<(), ObserverError> {
        let ready = self.waiting.partition_point(|waiting| waiting.at <= until);
        if ready == 0 {
            return Ok(());
        }
        let told = self.notify_all(|observer| {
            self.waiting.range(..ready).try_for_each(|observation| observer.observe(observation))
        });
        self.waiting.drain(..ready);
        told
    }

    fn notify_all(
        &self,
        mut say: impl FnMut(&mut (dyn Observer + Send)) -> std::io::Result<()>,
    ) -> Result<(), ObserverError> {
        self.sinks.iter().try_for_each(|sink| {
            let mut observer = sink.lock();
            say(&mut *observer).map_err(|source| ObserverError { what: observer.what(), source })
        })
    }

    /// Delivers the remaining observations and the end of the run, at `now` or later. Later
    /// observations are dropped.
    pub fn end(&mut self, now: Nanos, is_cut: bool) -> Result<(), ObserverError> {
        for (_, held) in std::mem::take(&mut self.held).into_values() {
            held.into_iter().for_each(|observation| self.insert(observation));
        }
        let end = now.max(self.waiting.back().map_or(0, |last| last.at));
        let told = self.deliver_until(Nanos::MAX);
        let told = told.and_then(|()| self.notify_all(|observer| observer.end(end, is_cut)));
        self.sinks.clear();
        told
    }
}
