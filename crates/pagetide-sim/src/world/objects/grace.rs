//! RCU grace periods: objects that are freed late, when no CPU can still read them.
//!
//! Linux: `call_rcu` (kernel/rcu/tree.c, 6.1). Open files, inodes, dentries, page cache nodes,
//! tasks and credentials ([`FREED_LATE`]) are freed after a grace period. A softirq on the CPU that
//! queued them frees all objects of the period together. Until then they occupy memory: a task that
//! opens and closes a thousand files holds hundreds.
//!
//! Everything happens at timer ticks. At the first tick a CPU reports new callbacks, and a period
//! starts if none is in progress. By the next tick the CPU has switched to the RCU thread and
//! reports a quiescent state; with one CPU this ends the period. Idle CPUs do not report; the RCU
//! thread checks them after a timer of one tick, which rounds up to two. The tick that ends the
//! period frees its objects: two ticks after they were queued with one CPU, later with several. The
//! next period, for objects queued since, starts at once. The softirq frees ten objects at a time
//! but is raised again until all are freed.
//!
//! A CPU that has queued more than `qhimark` objects since its last check expedites: it starts a
//! period at once, or makes the RCU thread check the idle CPUs, so that the current period ends at
//! the next tick.
//!
//! Differs from Linux: slabs of SLAB_TYPESAFE_BY_RCU caches (sockets, anon_vma) are freed at once;
//! in Linux only their objects are. A busy CPU does not report later than an idle one. Other users
//! of RCU start no periods.
//!
//! Invariant: objects are freed in the order in which they were queued.

use pagetide_core::process::Machine;
use pagetide_core::slab::object::Object;
use pagetide_core::units::{CacheId, Cpu, IdVec, Nanos};

/// Time between two timer interrupts (CONFIG_HZ=250, as in distributions).
const TICK: Nanos = 4_000_000;

/// Number of callbacks after which a CPU expedites (Linux `qhimark`).
const QHIMARK: u64 = 10_000;
/// Slab caches of 6.1 that free with `call_rcu`, in addition to the file systems' inode caches,
/// which end in `inode_cache`.
const FREED_LATE: [&str; 6] =
    ["dentry", "filp", "radix_tree_node", "task_struct", "pid", "cred_jar"];

/// For each cache id, true if its objects are freed after a grace period.
fn caches_that_free_late(machine: &Machine) -> Vec<bool> {
    let mut late = Vec::new();
    for (id, cache) in machine.slabs.kmem_caches() {
        late.resize(late.len().max(id.idx() + 1), false);
        // A cache with another kernel's object size is named `NAME:SIZE`.
        let name = cache.name.split(':').next().unwrap_or_default();
        late[id.0 as usize] = FREED_LATE.contains(&name) || name.ends_with("inode_cache");
    }
    late
}

#[derive(Debug, Default)]
pub(crate) struct GracePeriod {
    /// Queued during the current period.
    next: Vec<(Object, Cpu)>,
    /// Queued before the current period; freed at its end, `until`.
    waiting: Vec<(Object, Cpu)>,
    until: Nanos,
    /// Queued before a period that has ended.
    done: Vec<(Object, Cpu)>,
    /// By CPU; grows on demand.
    queues: IdVec<Cpu, CallbackQueue>,
    /// By cache id: its objects are freed after a grace period.
    frees_late: Vec<bool>,
}

/// Number of objects that a CPU has queued.
#[derive(Clone, Copy, Debug, Default)]
struct CallbackQueue {
    len: u64,
    /// `len` when the CPU last expedited (Linux `qlen_last_fqs_check`).
    len_at_check: u64,
}

impl CallbackQueue {
    fn must_hurry(&self) -> bool {
        self.len > self.len_at_check + QHIMARK
    }

    fn took(&mut self) {
        self.len -= 1;
        // The queue is short enough that the CPU may expedite again.
        if self.len == 0 || self.len + QHIMARK < self.len_at_check {
            self.len_at_check = self.len;
        }
    }
}

impl GracePeriod {
    pub fn new(machine: &Machine) -> GracePeriod {
        GracePeriod { frees_late: caches_that_free_late(machine), ..GracePeriod::default() }
    }

    /// True if the objects of a cache are freed after a grace period.
    pub fn is_of(&self, cache: CacheId) -> bool {
        self.frees_late.get(cache.idx()) == Some(&true)
    }

    pub fn next_tick(now: Nanos) -> Nanos {
        (now / TICK + 1) * TICK
    }

    pub fn queue(&mut self, object: Object, cpu: Cpu, now: Nanos) {
        self.next.push((object, cpu));
        self.note_queued(cpu, GracePeriod::next_tick(now));
    }

    /// Timer tick. Returns the objects to free now.
    pub fn tick(&mut self, now: Nanos, nr_cpus: usize) -> Vec<(Object, Cpu)> {
        if now >= self.until {
            self.done = std::mem::take(&mut self.waiting);
            self.waiting = std::mem::take(&mut self.next);
            self.until = now + if nr_cpus == 1 { TICK } else { 2 * TICK };
        }
        for &(_, cpu) in &self.done {
            self.queues[cpu].took();
        }
        std::mem::take(&mut self.done)
    }

    pub fn is_empty(&self) -> bool {
        self.next.is_empty() && self.waiting.is_empty() && self.done.is_empty()
    }

    /// Counts an object queued by a CPU. An expedited period ends at `next_tick`.
    fn note_queued(&mut self, cpu: Cpu, next_tick: Nanos) {
        if self.queues.len() <= cpu.idx() {
            self.queues.resize(cpu.idx() + 1, CallbackQueue::default());
        }
        let queue = &mut self.queues[cpu];
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

    /// Takes all waiting objects, oldest first.
    pub fn take_all(&mut self) -> Vec<(Object, Cpu)> {
        let GracePeriod { next, waiting, done, .. } = std::mem::take(self);
        done.into_iter().chain(waiting).chain(next).collect()
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
                grace.note_queued(Cpu(1), TICK);
            }
        };
        put_off(&mut grace, QHIMARK);
        assert!(grace.waiting.is_empty() && grace.until == 0);
        put_off(&mut grace, 1);
        assert_eq!((grace.waiting.len() as u64, grace.until), (QHIMARK + 1, TICK));
        // In a period that ends in two ticks, the next object expedites it, once.
        grace.until = 3 * TICK;
        put_off(&mut grace, 1);
        assert_eq!(grace.until, TICK);
        grace.until = 3 * TICK;
        put_off(&mut grace, QHIMARK);
        assert_eq!(grace.until, 3 * TICK);
        put_off(&mut grace, 1);
        assert_eq!(grace.until, TICK);
        // After all are freed, the counters start again at 0.
        for _ in 0..2 * QHIMARK + 3 {
            grace.queues[1].took();
        }
        assert_eq!((grace.queues[1].len, grace.queues[1].len_at_check), (0, 0));
    }
}
