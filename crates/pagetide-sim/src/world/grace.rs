//! Objects that are freed once no CPU can be looking at them any more.
//!
//! Linux: `call_rcu` (kernel/rcu/tree.c, 6.1): open files, inodes and names go only after a grace period, all
//! that were put off together in one go, by a softirq of the CPU that put them off. Meanwhile they take
//! memory, so that who opens and closes a thousand files has hundreds of them.
//!
//! All that happens at timer ticks. At one a CPU says that it has new callbacks, and a period begins if none is
//! under way; at the next, having switched to RCU's own thread in between, it says that it holds on to nothing, and
//! with one CPU the period is over. Idle CPUs say nothing: the thread looks at them after a timer of one
//! tick, which rounds up to two. At the tick that ends the period what waited is freed: two ticks after it was put
//! off with one CPU and more with several; the next period, for what came meanwhile, follows at once.
//! The softirq frees ten at a time but comes back until all is done.
//!
//! Differs from Linux: a CPU with other work is not asked later than an idle one; other users of RCU
//! do not begin periods.
//!
//! Invariant: while objects wait there is one event, at the next tick.

use super::{Event, World};
use pagetide_core::slab::Object;
use pagetide_core::units::{Cpu, Nanos};

/// Between two timer interrupts (CONFIG_HZ=250, as distributions have it).
const TICK: Nanos = 4_000_000;

/// What waits.
#[derive(Debug, Default)]
pub(super) struct GracePeriod {
    /// Put off since the present period began.
    next: Vec<(Object, Cpu)>,
    /// Put off before it began, and when it is over.
    waiting: Vec<(Object, Cpu)>,
    until: Nanos,
    /// Their period is over.
    done: Vec<(Object, Cpu)>,
}

impl GracePeriod {
    fn is_empty(&self) -> bool {
        self.next.is_empty() && self.waiting.is_empty() && self.done.is_empty()
    }

    /// Takes all that waits, the oldest first.
    pub fn take_all(&mut self) -> Vec<(Object, Cpu)> {
        let GracePeriod { next, waiting, done, .. } = std::mem::take(self);
        done.into_iter().chain(waiting).chain(next).collect()
    }
}

impl World {
    /// Frees an object after a grace period.
    pub(super) fn give_back_late(&mut self, object: Object, cpu: Cpu) {
        if let Some(decisions) = &mut self.decisions {
            decisions.free_late(self.now, cpu, object);
        }
        if self.grace.is_empty() {
            self.await_tick();
        }
        self.grace.next.push((object, cpu));
    }

    fn await_tick(&mut self) {
        self.queue.push((self.now / TICK + 1) * TICK, Event::GracePeriod);
    }

    /// A timer tick while something waits.
    pub(super) fn grace_period_tick(&mut self) {
        let period = if self.cpus.len() == 1 { TICK } else { 2 * TICK };
        let now = self.now;
        let GracePeriod { next, waiting, until, done } = &mut self.grace;
        if now >= *until {
            *done = std::mem::take(waiting);
            *waiting = std::mem::take(next);
            *until = now + period;
        }
        for (object, cpu) in std::mem::take(&mut self.grace.done) {
            self.give_object_back(object, cpu);
            self.cpus[cpu.idx()].debt +=
                self.cost.cost(&self.machine.take_work()) + self.cost.object_ns;
        }
        if !self.grace.is_empty() {
            self.await_tick();
        }
    }
}
