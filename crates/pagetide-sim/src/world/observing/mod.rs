//! What observers and tests see of a run: observations, and hashes of the core's decisions.
//!
//! Invariant: without observers and hashes, each record costs one branch.

pub(crate) mod decisions;
pub(crate) mod queue;
mod show;

use crate::observe::{ActivitySlice, ObservationKind, ObserverError, WaitReason};
use crate::world::threads::WorldThread;
use decisions::{DecisionHashes, Decisions};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::stats::event::TraceEvent;
use pagetide_core::units::Nanos;
use queue::ObservationQueue;

#[derive(Debug, Default)]
pub(crate) struct Observing {
    /// `None` without observers.
    observers: Option<ObservationQueue>,
    /// `None` unless hashes were requested.
    pub decisions: Option<DecisionHashes>,
    /// Events of the last step.
    fresh: Vec<TraceEvent>,
}

impl Observing {
    /// True if there are observers.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.observers.is_some()
    }

    /// Hashes of the decisions so far, if requested.
    pub fn decided(&self) -> Option<Decisions> {
        self.decisions.as_ref().map(DecisionHashes::finish)
    }

    /// Records an observation, if there are observers.
    #[inline]
    pub fn show(&mut self, thread: WorldThread, at: Nanos, what: ObservationKind) {
        if let Some(observers) = &mut self.observers {
            observers.show(thread, at, what);
        }
    }

    #[inline]
    pub fn show_wait_over(&mut self, thread: WorldThread, wait: WaitReason, now: Nanos) {
        self.show(thread, now, ObservationKind::Ended(ActivitySlice::Wait(wait)));
    }

    pub fn show_preempted(&mut self, thread: WorldThread, now: Nanos) {
        if let Some(observers) = &mut self.observers {
            observers.hold(thread, now);
        }
    }

    pub fn show_resumed(&mut self, thread: WorldThread, now: Nanos) {
        if let Some(observers) = &mut self.observers {
            observers.release(thread, now);
        }
    }

    /// Called at each step of a daemon.
    pub fn show_work(&mut self, daemon: Daemon, now: Nanos) {
        if let Some(observers) = &mut self.observers {
            observers.work(daemon, now);
        }
    }

    pub fn show_rest(&mut self, daemon: Daemon, at: Nanos) {
        if let Some(observers) = &mut self.observers {
            observers.rest(daemon, at);
        }
    }

    /// Delivers the observations up to a time.
    #[inline]
    pub fn deliver_until(&mut self, now: Nanos) -> Result<(), ObserverError> {
        self.observers.as_mut().map_or(Ok(()), |observers| observers.deliver_until(now))
    }
}
