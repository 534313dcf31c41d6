//! The core's daemons as threads of the world: kswapd, kcompactd, khugepaged, the writeback thread,
//! a kworker.
//!
//! Invariant: a daemon that rests or sleeps has a timer, unless it does so until woken.

use crate::observe::{ActivitySlice, WaitReason};
use crate::world::daemons::times::KswapdWait;
use crate::world::{SimWorld, SliceEnd, WorldThread};
use pagetide_core::interface::daemon::{Daemon, DaemonRest};
use pagetide_core::interface::effect::{Sleep, Step, Token};
use pagetide_core::units::{Cpu, Nanos};

impl SimWorld {
    /// Starts the first rest of every daemon.
    pub(crate) fn start_daemons(&mut self) {
        for (daemon, rest) in self.machine.daemons().collect::<Vec<_>>() {
            match rest {
                DaemonRest { timeout: 0 } => self.wake(WorldThread::Daemon(daemon)),
                rest => self.daemon_rests(daemon, rest),
            }
        }
    }

    pub(crate) fn run_daemon(&mut self, daemon: Daemon, cpu: Cpu) -> (SliceEnd, Nanos) {
        let thread = WorldThread::Daemon(daemon);
        self.daemon_stalls(daemon, true);
        self.observing.show_work(daemon, self.now);
        self.machine.set_need_resched(self.cpus.scheduler.should_resched(cpu, self.now));
        let (step, effects) = self.machine.step_daemon(daemon, cpu, self.now);
        self.cpus.hold(effects, cpu);
        self.note_events(thread, cpu, self.now);
        let cost = self.take_work();
        let is_plugged = self.machine.is_plugged();
        self.daemons.of_mut(daemon).plug.step_ended(is_plugged, cost);
        match daemon {
            Daemon::Kswapd(node) => {
                self.daemons.times.kswapd_ran(&self.machine, node, self.now, cost)
            }
            Daemon::Kcompactd(node) => {
                self.daemons.times.kcompactd_ran(&self.machine, node, self.now, cost);
            }
            Daemon::Khugepaged => self.daemons.times.khugepaged_ran(&self.machine, self.now, cost),
            Daemon::Flusher | Daemon::Kworker => {}
        }
        self.daemons.of_mut(daemon).rests = matches!(step, Step::Done(_));
        let after = match step {
            Step::Continue => SliceEnd::Runnable,
            Step::Wait(sleep) => {
                if let (Daemon::Kswapd(node), Token::Throttled(..)) = (daemon, sleep.token) {
                    self.daemons.times.kswapd_sleeps(node, KswapdWait::Throttled, self.now + cost);
                }
                let wait = match sleep.token {
                    Token::Throttled(_, reason) => WaitReason::Throttled(reason),
                    Token::Page(_) | Token::Daemon(_) => WaitReason::Page,
                };
                self.show_began(thread, self.now + cost, ActivitySlice::Wait(wait));
                self.daemon_sleeps(daemon, sleep);
                SliceEnd::Block
            }
            Step::Done(rest) => {
                self.observing.show_rest(daemon, self.now + cost);
                self.daemon_rests(daemon, rest);
                SliceEnd::Block
            }
        };
        (after, cost)
    }

    /// Updates kswapd's PSI stall at the start or end of a time slice: it is stalled from the first
    /// time slice of its work to the end of the last, including sleeps.
    pub(crate) fn daemon_stalls(&mut self, daemon: Daemon, begins: bool) {
        let state = self.daemons.of_mut(daemon);
        if matches!(daemon, Daemon::Kswapd(_)) && state.stalled != begins && (begins || state.rests)
        {
            state.stalled = begins;
            self.report_pressure(self.cpus.numbers.id(WorldThread::Daemon(daemon)));
        }
    }

    fn daemon_rests(&mut self, daemon: Daemon, rest: DaemonRest) {
        if rest != DaemonRest::UNTIL_WOKEN {
            let at = self.now + rest.timeout;
            self.waits.set_timer(WorldThread::Daemon(daemon), at, &mut self.queue);
        }
    }

    fn daemon_sleeps(&mut self, daemon: Daemon, sleep: Sleep) {
        let thread = WorldThread::Daemon(daemon);
        match sleep.token {
            Token::Page(pfn) => self.waits.begin_page(thread, pfn),
            Token::Throttled(node, reason) => {
                let at = self.now.saturating_add(sleep.timeout);
                self.waits.set_timer(thread, at, &mut self.queue);
                self.daemons.of_mut(daemon).throttled = Some((node, reason));
            }
            Token::Daemon(other) => unreachable!("{daemon:?} sleeps on {other:?}"),
        }
    }
}
