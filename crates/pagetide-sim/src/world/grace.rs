//! Objects that are freed once no CPU can be looking at them any more.
//!
//! Linux: `call_rcu`: open files, inodes and names go only after a grace period, all that were put off
//! together in one go, by a softirq of the CPU that put them off. Meanwhile they take memory, so that who
//! opens and closes a thousand files has hundreds of them.
//!
//! Differs from Linux: a grace period takes always as long; in 6.1 it is three to six ticks of a busy machine and
//! more of an idle one.
//!
//! Invariant: while objects wait there is one event that will free them.

use super::{Event, World};
use pagetide_core::slab::Object;
use pagetide_core::units::{Cpu, Nanos};

/// A grace period: four ticks of 4 ms.
const GRACE_PERIOD: Nanos = 16_000_000;

/// What waits.
#[derive(Debug, Default)]
pub(super) struct GracePeriod {
    /// Put off before the present grace period began, and since.
    waiting: Vec<(Object, Cpu)>,
    next: Vec<(Object, Cpu)>,
}

/// Caches whose objects go late.
const LATE: [&str; 4] = ["filp", "shmem_inode_cache", "dentry", "lsm_inode_cache"];

impl World {
    /// Frees an object of a thing, now or after a grace period.
    pub(super) fn give_back_late(&mut self, object: Object, cpu: Cpu) {
        let cache = self.machine.kmem_cache(self.machine.cache_of_object(object));
        let is_late = cache.is_some_and(|cache| LATE.contains(&cache.name.as_str()));
        if !is_late {
            self.give_object_back(object, cpu);
            return;
        }
        if self.grace.waiting.is_empty() && self.grace.next.is_empty() {
            self.queue.push(self.now + GRACE_PERIOD, Event::GracePeriod);
        }
        self.grace.next.push((object, cpu));
    }

    /// A grace period is over.
    pub(super) fn end_grace_period(&mut self) {
        for (object, cpu) in std::mem::take(&mut self.grace.waiting) {
            self.give_object_back(object, cpu);
            self.cpus[cpu.idx()].debt +=
                self.cost.cost(&self.machine.take_work()) + self.cost.object_ns;
        }
        self.grace.waiting = std::mem::take(&mut self.grace.next);
        if !self.grace.waiting.is_empty() {
            self.queue.push(self.now + GRACE_PERIOD, Event::GracePeriod);
        }
    }
}
