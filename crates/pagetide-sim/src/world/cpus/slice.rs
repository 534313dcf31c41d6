//! Time slices: the work of a thread between interruptions, and preemption by other threads.
//!
//! The state changes of a time slice happen at its start. Then its time passes, and at its end its
//! effects take place. If a waking thread preempts it, the rest of its time and its effects are
//! saved until the thread has a CPU again. Only its wake-ups of daemons take place at the
//! preemption. Times recorded by the slice are not adjusted: a call that ends in it does not
//! include the time without a CPU.
//!
//! Linux: `cond_resched` in a `PREEMPT_VOLUNTARY` kernel, as distributions use. Reclaim calls it
//! for each page.
//!
//! Invariant: a thread has at most one time slice, running or preempted. A preempted thread is
//! runnable.

use crate::world::event::WorldEvent;
use crate::world::threads::WorldThread;
use crate::world::SimWorld;
use pagetide_core::interface::effect::{Effect, Token};
use pagetide_core::units::{Cpu, Nanos};

/// State of a thread after its time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceEnd {
    Runnable,
    /// The thread sleeps, unless it is woken during the slice.
    Block,
    Exit,
}

/// A time slice in execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeSlice {
    pub(crate) thread: WorldThread,
    pub(crate) after: SliceEnd,
    /// Time of its start, or of its continuation after a preemption.
    pub(crate) since: Nanos,
    /// Time of its end, unless preempted.
    pub(crate) until: Nanos,
}

/// Rest of a preempted time slice.
#[derive(Debug)]
pub(crate) struct PreemptedSlice {
    after: SliceEnd,
    left: Nanos,
    effects: Vec<Effect>,
}

fn is_wake_of_daemon(effect: &Effect) -> bool {
    matches!(effect, Effect::Wake(Token::Daemon(_)))
}

impl SimWorld {
    /// The state of a thread after its time slice, if it has one.
    pub(crate) fn slice_end(&mut self, thread: WorldThread) -> Option<&mut SliceEnd> {
        let id = self.numbers.id(thread);
        let running = self.cpus.iter_mut().filter_map(|cpu| cpu.piece.as_mut());
        let running = running.filter(|piece| piece.thread == thread).map(|piece| &mut piece.after);
        running.chain(self.cut.get_mut(&id).map(|piece| &mut piece.after)).next()
    }

    /// True if a thread has a time slice, running or preempted.
    pub(crate) fn has_slice(&self, thread: WorldThread) -> bool {
        let runs = |piece: &TimeSlice| piece.thread == thread;
        self.cut.contains_key(&self.numbers.id(thread))
            || self.cpus.iter().any(|cpu| cpu.piece.as_ref().is_some_and(runs))
    }

    /// True if the time slice of a thread was preempted.
    pub(crate) fn is_preempted(&self, thread: WorldThread) -> bool {
        self.cut.contains_key(&self.numbers.id(thread))
    }

    /// Pending effects of preempted time slices.
    pub(crate) fn preempted_effects(&self) -> impl Iterator<Item = &Effect> {
        self.cut.values().flat_map(|piece| &piece.effects)
    }

    /// Schedules the end of a CPU's time slice for now, to preempt its thread.
    pub(crate) fn preempt_slice(&mut self, cpu: Cpu) {
        let state = &mut self.cpus[cpu];
        if let Some(event) = state.event.take() {
            self.queue.cancel(event);
        }
        state.event = Some(self.queue.push(self.now, WorldEvent::Cpu(cpu)));
    }

    /// Takes the time slice of a CPU and accounts for its time. Returns it if it is complete;
    /// otherwise saves its rest as preempted.
    pub(crate) fn ended_piece(&mut self, cpu: Cpu) -> Option<TimeSlice> {
        let piece = self.cpus[cpu].piece.take()?;
        let id = self.numbers.id(piece.thread);
        let now = self.now;
        self.scheduler.account(cpu, id, now - piece.since);
        if piece.until <= now {
            return Some(piece);
        }
        let effects = std::mem::take(&mut self.cpus[cpu].effects);
        // A pending wake-up of a daemon suppresses others, so it must not wait.
        let (wakes, effects): (Vec<Effect>, _) = effects.into_iter().partition(is_wake_of_daemon);
        wakes.into_iter().for_each(|wake| self.apply(wake, cpu));
        self.show_preempted(piece.thread);
        self.cut
            .insert(id, PreemptedSlice { after: piece.after, left: piece.until - now, effects });
        None
    }

    /// Continues the preempted time slice of a thread on `cpu`: returns the state after it and its
    /// remaining time, and moves its effects to this CPU.
    pub(crate) fn resume_slice(
        &mut self,
        thread: WorldThread,
        cpu: Cpu,
    ) -> Option<(SliceEnd, Nanos)> {
        let piece = self.cut.remove(&self.numbers.id(thread))?;
        self.show_resumed(thread);
        debug_assert!(self.cpus[cpu].effects.is_empty(), "effects of an ended time slice");
        self.cpus[cpu].effects = piece.effects;
        Some((piece.after, piece.left))
    }
}
