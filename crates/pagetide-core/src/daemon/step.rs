//! One step of any daemon, and the counts of daemons that sleep in a queue.
//!
//! Linux: `kthread_run`, and the counts that `reclaim_throttle` keeps around `schedule_timeout` (6.1).

use super::{CountedIn, Daemon, Rest};
use crate::effect::{Effects, Sleep, Step, Throttle, Token};
use crate::manager::Manager;
use crate::owners::Owners;
use crate::units::{Cpu, Nanos, NodeId};

impl<O: Owners> Manager<O> {
    /// The machine's daemons, in the order of [`Daemon::all`], and how long each of them rests before its
    /// first step. A world asks once, when it begins.
    pub fn daemons(&self) -> impl Iterator<Item = (Daemon, Rest)> + '_ {
        Daemon::all(self.nr_nodes()).map(|daemon| {
            let rest = match daemon {
                Daemon::Kswapd(_) | Daemon::Kworker => Rest::UNTIL_WOKEN,
                Daemon::Kcompactd(_) => self.kcompactd_first_rest(),
                Daemon::Flusher | Daemon::Khugepaged => O::daemon_rest(self, daemon),
            };
            (daemon, rest)
        })
    }

    /// One bounded step of a daemon, which runs on `cpu`. A daemon must not be stepped while it rests or
    /// sleeps, except when its time is over. That of a node that there is not rests until it is woken, and so
    /// does every one on a CPU that there is not.
    pub fn step_daemon(
        &mut self,
        daemon: Daemon,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<Rest>, Effects<'_>) {
        if !self.has_daemon(daemon) || !self.has_cpu(cpu) {
            return (Step::Done(Rest::UNTIL_WOKEN), self.hand_out());
        }
        let at = daemon.idx(self.nr_nodes());
        let counted = self.daemon_sleeps[at].take();
        self.leave_queue(counted);
        let step = match daemon {
            Daemon::Kswapd(node) => self.kswapd_step(node, cpu, now),
            Daemon::Kcompactd(node) => self.kcompactd_step(node, cpu, now),
            Daemon::Kworker => self.kworker_step(cpu, now),
            Daemon::Flusher | Daemon::Khugepaged => O::daemon_step(self, daemon, cpu, now),
        };
        // What a daemon charges to a group above `memory.high` nobody pays for.
        self.nr_over_high = 0;
        match step {
            // What most steps end with. A step is written in parts; to copy it is to read it whole, and a processor waits
            // for what it reads wider than it was written.
            Step::Continue => return (Step::Continue, self.hand_out()),
            Step::Wait(sleep) => self.daemon_sleeps[at] = self.enter_queue(sleep),
            Step::Done(_) => {}
        }
        (step, self.hand_out())
    }

    /// Whether the machine has such a daemon.
    fn has_daemon(&self, daemon: Daemon) -> bool {
        match daemon {
            Daemon::Kswapd(node) | Daemon::Kcompactd(node) => self.has_node(node),
            Daemon::Flusher | Daemon::Khugepaged | Daemon::Kworker => true,
        }
    }

    /// Whoever sleeps in one of the two queues whose sleepers are counted is from now on, until it is
    /// stepped again (Linux counts in `reclaim_throttle`, before and after `schedule_timeout`).
    #[inline]
    pub(crate) fn enter_queue(&mut self, sleep: Sleep) -> CountedIn {
        let Token::Throttled(node, reason) = sleep.token else { return None };
        let state = &mut self.nodes[node.idx()];
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
            | Throttle::MemoryHigh => return None,
        }
        Some((node, reason))
    }

    /// A sleeper goes on, or is given up.
    #[inline]
    pub(crate) fn leave_queue(&mut self, counted: CountedIn) {
        let Some((node, reason)) = counted else { return };
        let state = &mut self.nodes[node.idx()];
        match reason {
            Throttle::Writeback => state.nr_writeback_throttled -= 1,
            _ => state.nr_reserve_throttled -= 1,
        }
    }

    /// Daemons that are counted in a node's queue.
    pub fn nr_daemons_throttled(&self, node: NodeId, reason: Throttle) -> u32 {
        self.daemon_sleeps.iter().filter(|&&at| at == Some((node, reason))).count() as u32
    }

    /// Who is counted in a node's queue, calls and daemons: of [`Throttle::Writeback`] and
    /// [`Throttle::Reserves`]; sleepers for other reasons are not counted.
    pub fn nr_throttled(&self, node: NodeId, reason: Throttle) -> u32 {
        let Some(state) = self.nodes.get(node.idx()) else { return 0 };
        match reason {
            Throttle::Writeback => state.nr_writeback_throttled,
            Throttle::Reserves => state.nr_reserve_throttled,
            _ => 0,
        }
    }
}
