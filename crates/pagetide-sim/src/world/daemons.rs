//! kswapd and the writeback thread as threads of the world.
//!
//! Invariant: a daemon that sleeps has a timer unless it sleeps until woken.

use super::{After, Event, Thread, World};
use pagetide_core::effect::{Step, Wait};
use pagetide_core::reclaim::kswapd::KswapdIdle;
use pagetide_core::units::{Cpu, Nanos, NodeId};

impl World {
    pub(super) fn run_kswapd(&mut self, node: NodeId, cpu: Cpu) -> (After, Nanos) {
        let (step, effects) = self.machine.kswapd_step(node, cpu, self.now);
        effects.drain_into(&mut self.cpus[cpu.idx()].effects);
        self.note_events(Thread::Kswapd(node), cpu, self.now);
        let cost = self.cost.cost(&self.machine.take_work());
        let thread = Thread::Kswapd(node);
        let after = match step {
            Step::Continue => After::Runnable,
            Step::Done(KswapdIdle::Sleep) => After::Block,
            Step::Done(KswapdIdle::Nap(ns)) => {
                let timer = self.queue.push(self.now + ns, Event::Timer(thread));
                self.kswapds[node.idx()].timer = Some(timer);
                After::Block
            }
            Step::Wait(wait) => self.daemon_wait(thread, wait),
        };
        (after, cost)
    }

    pub(super) fn run_flusher(&mut self, cpu: Cpu) -> (After, Nanos) {
        let (step, effects) = self.machine.flusher_step(cpu, self.now);
        effects.drain_into(&mut self.cpus[cpu.idx()].effects);
        self.note_events(Thread::Flusher, cpu, self.now);
        let cost = self.cost.cost(&self.machine.take_work());
        let after = match step {
            Step::Continue => After::Runnable,
            Step::Done(idle) => {
                if idle.timeout != u64::MAX {
                    let at = self.now + idle.timeout;
                    self.flusher.timer = Some(self.queue.push(at, Event::Timer(Thread::Flusher)));
                }
                After::Block
            }
            Step::Wait(wait) => self.daemon_wait(Thread::Flusher, wait),
        };
        (after, cost)
    }

    pub(super) fn daemon_wait(&mut self, thread: Thread, wait: Wait) -> After {
        let Wait::Throttled { node, reason, timeout } = wait else {
            unreachable!("daemons do not wait for pages")
        };
        let timer = self.queue.push(self.now.saturating_add(timeout), Event::Timer(thread));
        let daemon = match thread {
            Thread::Kswapd(node) => &mut self.kswapds[node.idx()],
            _ => &mut self.flusher,
        };
        daemon.timer = Some(timer);
        daemon.throttled = Some((node, reason));
        After::Block
    }
}
