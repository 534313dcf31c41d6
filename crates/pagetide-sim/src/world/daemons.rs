//! kswapd, kcompactd, khugepaged and the writeback thread as threads of the world.
//!
//! Invariant: a daemon that sleeps has a timer unless it sleeps until woken.

use super::{After, Event, Thread, World};
use pagetide_core::compaction::kcompactd::KcompactdIdle;
use pagetide_core::config::Thp;
use pagetide_core::effect::{Step, Wait};
use pagetide_core::process::khugepaged::KhugepagedIdle;
use pagetide_core::reclaim::kswapd::KswapdIdle;
use pagetide_core::units::{Cpu, Nanos, NodeId};

impl World {
    pub(super) fn run_kswapd(&mut self, node: NodeId, cpu: Cpu) -> (After, Nanos) {
        let thread = Thread::Kswapd(node);
        self.machine.need_resched = self.scheduler.should_resched(cpu, self.now);
        let (step, effects) = self.machine.kswapd_step(node, cpu, self.now);
        effects.drain_into(&mut self.cpus[cpu.idx()].effects);
        self.note_events(thread, cpu, self.now);
        let cost = self.cost.cost(&self.machine.take_work());
        self.times.kswapd_ran(&self.machine, node, self.now, cost);
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

    /// Sets the first timers of the daemons that look at things by themselves.
    pub(super) fn start_huge_page_daemons(&mut self) {
        if let Some(ns) = self.machine.kcompactd_first_look() {
            for node in 0..self.kcompactds.len() {
                let thread = Thread::Kcompactd(NodeId(node as u8));
                let timer = self.queue.push(self.now + ns, Event::Timer(thread));
                self.kcompactds[node].timer = Some(timer);
            }
        }
        if self.machine.config.thp != Thp::Never {
            self.wake(Thread::Khugepaged);
        }
    }

    pub(super) fn run_kcompactd(&mut self, node: NodeId, cpu: Cpu) -> (After, Nanos) {
        let thread = Thread::Kcompactd(node);
        let (step, effects) = self.machine.kcompactd_step(node, cpu, self.now);
        effects.drain_into(&mut self.cpus[cpu.idx()].effects);
        self.note_events(thread, cpu, self.now);
        let cost = self.cost.cost(&self.machine.take_work());
        self.times.kcompactd_ran(&self.machine, node, self.now, cost);
        let after = match step {
            Step::Continue => After::Runnable,
            Step::Done(KcompactdIdle::Sleep(ns)) => {
                if ns != Nanos::MAX {
                    let timer = self.queue.push(self.now + ns, Event::Timer(thread));
                    self.kcompactds[node.idx()].timer = Some(timer);
                }
                After::Block
            }
            Step::Wait(wait) => self.daemon_wait(thread, wait),
        };
        (after, cost)
    }

    pub(super) fn run_khugepaged(&mut self, cpu: Cpu) -> (After, Nanos) {
        let thread = Thread::Khugepaged;
        self.machine.need_resched = self.scheduler.should_resched(cpu, self.now);
        let (step, effects) = self.machine.khugepaged_step(cpu, self.now);
        self.cpus[cpu.idx()].take(effects);
        self.note_events(thread, cpu, self.now);
        let cost = self.cost.cost(&self.machine.take_work());
        self.times.khugepaged_ran(&self.machine, self.now, cost);
        let after = match step {
            Step::Continue => After::Runnable,
            Step::Done(KhugepagedIdle::Sleep) => After::Block,
            Step::Done(KhugepagedIdle::Nap(ns)) => {
                let timer = self.queue.push(self.now + ns, Event::Timer(thread));
                self.khugepaged.timer = Some(timer);
                After::Block
            }
            Step::Wait(wait) => self.daemon_wait(thread, wait),
        };
        (after, cost)
    }

    pub(super) fn daemon_wait(&mut self, thread: Thread, wait: Wait) -> After {
        let (node, reason, timeout) = match wait {
            Wait::Throttled { node, reason, timeout } => (node, reason, timeout),
            Wait::Page(pfn) => {
                self.page_waiters.entry(pfn.0).or_default().push(thread);
                return After::Block;
            }
        };
        let timer = self.queue.push(self.now.saturating_add(timeout), Event::Timer(thread));
        if let Some(daemon) = self.daemon(thread) {
            daemon.timer = Some(timer);
            daemon.throttled = Some((node, reason));
        }
        After::Block
    }
}
