//! Time slices: the work of a thread between interruptions, the choice of the next thread, and
//! preemption.
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
//! Invariant: the effects of a slice take place when its time has passed, wherever it ran. After
//! its event, a CPU has a time slice, or its queue is empty.

use crate::meter::ChargedThread;
use crate::scheduler::WakeSource;
use crate::world::cpus::{PreemptedSlice, SliceEnd, TimeSlice};
use crate::world::{SimWorld, WorldError, WorldEvent, WorldThread};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::{Effect, Token};
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::model::costs::Price;

fn is_wake_of_daemon(effect: &Effect) -> bool {
    matches!(effect, Effect::Wake(Token::Daemon(_)))
}

impl SimWorld {
    pub(crate) fn cpu_event(&mut self, cpu: Cpu) -> Result<(), WorldError> {
        self.cpus.of[cpu].event = None;
        self.cpus.meter.at(cpu);
        if let Some(TimeSlice { thread, after, .. }) = self.ended_slice(cpu) {
            let id = self.cpus.numbers.id(thread);
            if let WorldThread::Daemon(daemon) = thread {
                self.daemon_stalls(daemon, false);
            }
            // Block first: the effects of the time slice may wake the thread again.
            if after == SliceEnd::Block {
                self.cpus.scheduler.block(cpu);
            }
            self.cpus.waker = Some(WakeSource { cpu, task: Some(id) });
            let has_plug = after == SliceEnd::Runnable && self.plug(thread).is_open;
            let mut full = self.apply_effects(thread, cpu, has_plug);
            if let WorldThread::Task(task) = thread {
                self.send_signals(task);
                if after == SliceEnd::Exit || self.tasks[task].must_exit() {
                    self.exit_task(task, cpu);
                    self.apply_effects(thread, cpu, false);
                    full = None;
                    // It may be asleep, running, or (if its own effects killed it) on the queue of
                    // any CPU.
                    self.cpus.scheduler.remove_task(id);
                }
            }
            // A thread that sleeps for another reason waits for the disk at its next request.
            if let Some(full) = full.filter(|_| after == SliceEnd::Runnable) {
                self.cpus.scheduler.block(cpu);
                self.wait_for_disk(thread, full);
            }
            self.cpus.waker = None;
        }
        self.dispatch(cpu)
    }

    /// Picks the next thread of the CPU and starts its time slice.
    fn dispatch(&mut self, cpu: Cpu) -> Result<(), WorldError> {
        // A wake-up in this event may already have scheduled an event for the CPU.
        if let Some(event) = self.cpus.of[cpu].event.take() {
            self.queue.cancel(event);
        }
        if let Some(idle) = self.cpus.scheduler.balance(cpu, self.now) {
            self.cpus.reschedule(idle, self.now, &mut self.queue);
        }
        if self.cpus.scheduler.current(cpu).is_none()
            || self.cpus.scheduler.should_resched(cpu, self.now)
        {
            self.cpus.scheduler.pick_next(cpu, self.now);
        }
        let next = self.cpus.scheduler.current(cpu).map(|id| self.cpus.numbers.thread(id));
        self.show_switch(cpu, next);
        let Some(thread) = next else {
            let state = &mut self.cpus.of[cpu];
            state.idle_since.get_or_insert(self.now);
            // The idle task runs now: the next thread pays for a switch.
            state.last = None;
            return Ok(());
        };
        self.cpus.refresh_vm_stats(cpu, self.now, &mut self.machine);
        let mut cost = std::mem::take(&mut self.cpus.of[cpu].debt);
        if self.cpus.of[cpu].last.replace(thread) != Some(thread) {
            cost += self.cpus.meter.charge(Price::ContextSwitch, 1);
        }
        // A preempted thread first gets the rest of its time slice.
        let (after, left, ran) = match (self.resume_slice(thread, cpu), thread) {
            (Some((after, left)), _) => (after, left, 0),
            (None, WorldThread::Task(task)) => {
                let (after, ran) = self.run_task(task, cpu)?;
                (after, 0, ran.max(1))
            }
            (None, WorldThread::Daemon(daemon)) => {
                let (after, ran) = self.run_daemon(daemon, cpu);
                (after, 0, ran.max(1))
            }
        };
        let ran = ran + cost;
        self.cpus.meter.ran(match thread {
            WorldThread::Task(task) => ChargedThread::Task(task),
            WorldThread::Daemon(Daemon::Kswapd(_)) => ChargedThread::Kswapd,
            WorldThread::Daemon(Daemon::Flusher) => ChargedThread::Flusher,
            WorldThread::Daemon(_) => ChargedThread::Other,
        });
        self.cpus.busy_ns += ran;
        match thread {
            WorldThread::Task(task) => self.tasks[task].cpu_ns += ran,
            WorldThread::Daemon(Daemon::Kswapd(node)) => {
                self.daemons.times.kswapd_charged(node, cost)
            }
            WorldThread::Daemon(Daemon::Flusher) => self.daemons.times.flusher_ran(ran),
            WorldThread::Daemon(_) => {}
        }
        let state = &mut self.cpus.of[cpu];
        let until = self.now + left + ran;
        state.slice = Some(TimeSlice { thread, after, since: self.now, until });
        state.event = Some(self.queue.push(until, WorldEvent::Cpu(cpu)));
        Ok(())
    }

    /// CPU time of the machine's work since the last call.
    pub(crate) fn take_work(&mut self) -> Nanos {
        self.cpus.meter.work(self.machine.take_work())
    }

    /// Takes the time slice of a CPU and accounts for its time. Returns it if it is complete;
    /// otherwise saves its rest as preempted.
    fn ended_slice(&mut self, cpu: Cpu) -> Option<TimeSlice> {
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
    fn resume_slice(&mut self, thread: WorldThread, cpu: Cpu) -> Option<(SliceEnd, Nanos)> {
        let slice = self.cpus.preempted.remove(&self.cpus.numbers.id(thread))?;
        self.observing.show_resumed(thread, self.now);
        debug_assert!(self.cpus.of[cpu].effects.is_empty(), "effects of an ended time slice");
        self.cpus.of[cpu].effects = slice.effects;
        Some((slice.after, slice.left))
    }
}
