//! Objects that are freed once no CPU can be looking at them any more.
//!
//! Linux: `call_rcu` (kernel/rcu/tree.c, 6.1): open files, inodes, names, nodes of the page cache, tasks and their
//! credentials go only after a grace period ([`FREED_LATE`]), all that were put off together in one go, by a
//! softirq of the CPU that put them off. Meanwhile they take memory, so that who opens and closes a thousand files
//! has hundreds of them.
//!
//! All that happens at timer ticks. At one a CPU says that it has new callbacks, and a period begins if none is
//! under way; at the next, having switched to RCU's own thread in between, it says that it holds on to nothing, and
//! with one CPU the period is over. Idle CPUs say nothing: the thread looks at them after a timer of one
//! tick, which rounds up to two. At the tick that ends the period what waited is freed: two ticks after it was put
//! off with one CPU and more with several; the next period, for what came meanwhile, follows at once.
//! The softirq frees ten at a time but comes back until all is done.
//!
//! A CPU that has put off more than `qhimark` objects since it last looked hurries: it begins a period at once, or
//! has the thread look at idle CPUs, so that the period under way ends at the next tick.
//!
//! Differs from Linux: slabs of caches with SLAB_TYPESAFE_BY_RCU (sockets, anon_vma), whose objects go at once, do
//! so, too; a CPU with other work is not asked later than an idle one; other users of RCU do not begin periods.
//!
//! Invariant: while objects wait there is one event, at the next tick.

use super::{Event, World};
use pagetide_core::process::Machine;
use pagetide_core::slab::Object;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::costs::Price;

/// Between two timer interrupts (CONFIG_HZ=250, as distributions have it).
const TICK: Nanos = 4_000_000;

/// Callbacks after which a CPU hurries (Linux `qhimark`).
const QHIMARK: u64 = 10_000;
/// Caches of 6.1 whose objects are freed by `call_rcu`. Those of inodes, each file system's own, end in
/// `inode_cache`.
const FREED_LATE: [&str; 6] =
    ["dentry", "filp", "radix_tree_node", "task_struct", "pid", "cred_jar"];

/// Which caches these are, by their id.
pub(super) fn caches_that_free_late(machine: &Machine) -> Vec<bool> {
    let mut late = Vec::new();
    for (id, cache) in machine.kmem_caches() {
        late.resize(late.len().max(id.idx() + 1), false);
        // Another kernel's objects of the name have their size behind it.
        let name = cache.name.split(':').next().unwrap_or_default();
        late[id.idx()] = FREED_LATE.contains(&name) || name.ends_with("inode_cache");
    }
    late
}

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
    /// By CPU; as long as anybody has put off anything.
    queues: Vec<Queue>,
}

/// What a CPU has put off.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    len: u64,
    /// How many they were when it last hurried (Linux `qlen_last_fqs_check`).
    len_at_check: u64,
}

impl Queue {
    fn must_hurry(&self) -> bool {
        self.len > self.len_at_check + QHIMARK
    }

    fn took(&mut self) {
        self.len -= 1;
        // Enough have gone: it may hurry again.
        if self.len == 0 || self.len + QHIMARK < self.len_at_check {
            self.len_at_check = self.len;
        }
    }
}

impl GracePeriod {
    fn is_empty(&self) -> bool {
        self.next.is_empty() && self.waiting.is_empty() && self.done.is_empty()
    }

    /// A CPU has put off one more. A hurried period is over at `next_tick`.
    fn put_off(&mut self, cpu: Cpu, next_tick: Nanos) {
        if self.queues.len() <= cpu.idx() {
            self.queues.resize(cpu.idx() + 1, Queue::default());
        }
        let queue = &mut self.queues[cpu.idx()];
        queue.len += 1;
        if !queue.must_hurry() {
            return;
        }
        if self.waiting.is_empty() {
            self.waiting = std::mem::take(&mut self.next);
        } else {
            queue.len_at_check = queue.len;
        }
        self.until = next_tick;
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
        self.grace.put_off(cpu, (self.now / TICK + 1) * TICK);
    }

    /// Frees an object as its cache does: at once, or after a grace period.
    pub(super) fn give_up_object(&mut self, object: Object, cpu: Cpu) {
        let cache = self.machine.cache_of_object(object);
        match self.frees_late.get(cache.idx()) {
            Some(true) => self.give_back_late(object, cpu),
            Some(false) | None => self.give_object_back(object, cpu),
        }
    }

    fn await_tick(&mut self) {
        self.queue.push((self.now / TICK + 1) * TICK, Event::GracePeriod);
    }

    /// A timer tick while something waits.
    pub(super) fn grace_period_tick(&mut self) {
        let period = if self.cpus.len() == 1 { TICK } else { 2 * TICK };
        let now = self.now;
        let GracePeriod { next, waiting, until, done, queues: _ } = &mut self.grace;
        if now >= *until {
            *done = std::mem::take(waiting);
            *waiting = std::mem::take(next);
            *until = now + period;
        }
        for (object, cpu) in std::mem::take(&mut self.grace.done) {
            self.grace.queues[cpu.idx()].took();
            self.give_object_back(object, cpu);
            self.meter.at(cpu);
            self.cpus[cpu.idx()].debt +=
                self.meter.work(self.machine.take_work()) + self.meter.some(Price::Object, 1);
        }
        if !self.grace.is_empty() {
            self.await_tick();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_has_put_off_many_begins_a_period_and_then_ends_it() {
        let mut grace = GracePeriod::default();
        let put_off = |grace: &mut GracePeriod, nr: u64| {
            for _ in 0..nr {
                grace.next.push((Object::NONE, Cpu(1)));
                grace.put_off(Cpu(1), TICK);
            }
        };
        put_off(&mut grace, QHIMARK);
        assert!(grace.waiting.is_empty() && grace.until == 0);
        put_off(&mut grace, 1);
        assert_eq!((grace.waiting.len() as u64, grace.until), (QHIMARK + 1, TICK));
        // Another tick, by now in a period of two: the next hurries it, once.
        grace.until = 3 * TICK;
        put_off(&mut grace, 1);
        assert_eq!(grace.until, TICK);
        grace.until = 3 * TICK;
        put_off(&mut grace, QHIMARK);
        assert_eq!(grace.until, 3 * TICK);
        put_off(&mut grace, 1);
        assert_eq!(grace.until, TICK);
        // When all are gone it begins anew.
        for _ in 0..2 * QHIMARK + 3 {
            grace.queues[1].took();
        }
        assert_eq!((grace.queues[1].len, grace.queues[1].len_at_check), (0, 0));
    }
}
