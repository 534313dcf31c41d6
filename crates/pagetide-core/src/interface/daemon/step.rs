//! One step of any daemon, and the counts of sleepers in throttle queues.
//!
//! Linux: `kthread_run`, and the counting in `reclaim_throttle` around `schedule_timeout` (6.1).

use super::{Daemon, DaemonRest, ThrottleQueue};
use crate::frames::page_alloc::Memory;
use crate::interface::effect::{Effects, Sleep, Step, Token};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::units::{Cpu, Nanos, NodeId};

impl Memory {
    fn has_daemon(&self, daemon: Daemon) -> bool {
        match daemon {
            Daemon::Kswapd(node) | Daemon::Kcompactd(node) => self.has_node(node),
            Daemon::Flusher | Daemon::Khugepaged | Daemon::Kworker => true,
        }
    }

    /// Counts a call or daemon that goes to sleep in one of the two counted queues, until its next
    /// step (Linux counts in `reclaim_throttle`, before and after `schedule_timeout`).
    #[inline]
    pub(crate) fn enter_queue(&mut self, sleep: Sleep) -> ThrottleQueue {
        let Token::Throttled(node, reason) = sleep.token else { return None };
        let state = &mut self.pgdat[node];
        match reason {
            Throttle::Writeback => {
                if state.nr_writeback_throttled == 0 {
                    state.nr_written_while_throttled = 0;
                }
                state.nr_writeback_throttled += 1;
            }
            Throttle::Reserves => state.nr_reserve_throttled += 1,
            Throttle::Isolated
            | Throttle::NoProgress
            | Throttle::Congested
            | Throttle::CongestionWait
            | Throttle::Requests
            | Throttle::Dirty
            | Throttle::GroupDirty
            | Throttle::MemoryHigh => return None,
        }
        Some((node, reason))
    }

    /// Removes a sleeper from the count of its queue, because it runs again or was cancelled.
    #[inline]
    pub(crate) fn leave_queue(&mut self, counted: ThrottleQueue) {
        let Some((node, reason)) = counted else { return };
        let state = &mut self.pgdat[node];
        match reason {
            Throttle::Writeback => state.nr_writeback_throttled -= 1,
            _ => state.nr_reserve_throttled -= 1,
        }
    }
}

impl Kernel {
    /// Number of daemons that sleep in a node's queue.
    pub fn nr_daemons_throttled(&self, node: NodeId, reason: Throttle) -> u32 {
        self.step.daemon_sleeps.iter().filter(|&&at| at == Some((node, reason))).count() as u32
    }

    /// Number of calls and daemons that sleep in a node's queue of [`Throttle::Writeback`] or
    /// [`Throttle::Reserves`]. Other reasons are not counted.
    pub fn nr_throttled(&self, node: NodeId, reason: Throttle) -> u32 {
        let Some(state) = self.mem.pgdat.get(node.idx()) else { return 0 };
        match reason {
            Throttle::Writeback => state.nr_writeback_throttled,
            Throttle::Reserves => state.nr_reserve_throttled,
            _ => 0,
        }
    }
}

impl<O: Owners> Manager<O> {
    /// The machine's daemons in the order of [`Daemon::all`], each with its rest before the first
    /// step. A world reads this once, at the start.
    pub fn daemons(&self) -> impl Iterator<Item = (Daemon, DaemonRest)> + '_ {
        Daemon::all(self.nr_nodes()).map(|daemon| {
            let rest = match daemon {
                Daemon::Kswapd(_) | Daemon::Kworker => DaemonRest::UNTIL_WOKEN,
                Daemon::Kcompactd(_) => self.kcompactd_first_rest(),
                Daemon::Flusher | Daemon::Khugepaged => O::daemon_rest(self, daemon),
            };
            (daemon, rest)
        })
    }

    pub(crate) fn do_step_daemon(
        &mut self,
        daemon: Daemon,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<DaemonRest>, Effects<'_>) {
        if !self.mem.has_daemon(daemon) || !self.groups.has_cpu(cpu) {
            return (Step::Done(DaemonRest::UNTIL_WOKEN), self.take_effects());
        }
        let at = daemon.idx(self.nr_nodes());
        let counted = self.step.daemon_sleeps[at].take();
        self.mem.leave_queue(counted);
        self.step.plugged = false;
        let step = match daemon {
            Daemon::Kswapd(node) => self.kswapd_step(node, cpu, now),
            Daemon::Kcompactd(node) => self.kcompactd_step(node, cpu, now),
            Daemon::Kworker => match self.zswap_worker_step(cpu, now) {
                Some(step) => step,
                None => self.kworker_step(cpu, now),
            },
            Daemon::Flusher | Daemon::Khugepaged => O::daemon_step(self, daemon, cpu, now),
        };
        // A daemon's charges above `memory.high` are not paid for by any task.
        self.groups.nr_over_high = 0;
        match step {
            // The common result is built here, in place. Copying `step` would read the whole value
            // right after it was written in parts, which stalls the processor.
            Step::Continue => return (Step::Continue, self.take_effects()),
            Step::Wait(sleep) => self.step.daemon_sleeps[at] = self.mem.enter_queue(sleep),
            Step::Done(_) => {}
        }
        (step, self.take_effects())
    }
}
