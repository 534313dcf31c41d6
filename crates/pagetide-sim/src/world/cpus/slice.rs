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
//! Invariant: the effects of a slice take place when its time has passed, wherever it ran.

use crate::world::cpus::{PreemptedSlice, SliceEnd, TimeSlice};
use crate::world::threads::WorldThread;
use crate::world::SimWorld;
use pagetide_core::interface::effect::{Effect, Token};
use pagetide_core::units::{Cpu, Nanos};

fn is_wake_of_daemon(effect: &Effect) -> bool {
    matches!(effect, Effect::Wake(Token::Daemon(_)))
}

impl SimWorld {
    /// Takes the time slice of a CPU and accounts for its time. Returns it if it is complete;
    /// otherwise saves its rest as preempted.
    pub(super) fn ended_slice(&mut self, cpu: Cpu) -> Option<TimeSlice> {
        let slice = self.cpus.of[cpu].slice.take()?;
        let id = self.cpus.numbers.id(slice.thread);
        let now = self.now;
        self.cpus.scheduler.account(cpu, id, now - slice.since);
        if slice.until <= now {
            return Some(slice);
        }
        let effects = std::mem::take(&mut self.cpus.of[cpu].effects);
        // A pending wake-up of a daemon suppresses others, so it must not wait.
        let (wakes, effects): (Vec<Effect>, _) = effects.into_iter().partition(is_wake_of_daemon);
        wakes.into_iter().for_each(|wake| self.apply(wake, cpu));
        self.observing.show_preempted(slice.thread, self.now);
        let rest = PreemptedSlice { after: slice.after, left: slice.until - now, effects };
        self.cpus.preempted.insert(id, rest);
        None
    }

    /// Continues the preempted time slice of a thread on `cpu`: returns the state after it and its
    /// remaining time, and moves its effects to this CPU.
    pub(super) fn resume_slice(
        &mut self,
        thread: WorldThread,
        cpu: Cpu,
    ) -> Option<(SliceEnd, Nanos)> {
        let slice = self.cpus.preempted.remove(&self.cpus.numbers.id(thread))?;
        self.observing.show_resumed(thread, self.now);
        debug_assert!(self.cpus.of[cpu].effects.is_empty(), "effects of an ended time slice");
        self.cpus.of[cpu].effects = slice.effects;
        Some((slice.after, slice.left))
    }
}
