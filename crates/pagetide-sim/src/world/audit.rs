//! Audit of the world's state against that of the machine.
//!
//! Tests and searches request it ([`RunOptions::audit_every`](crate::RunOptions)).

use super::{SimWorld, WorldError, WorldThread};
use crate::disk::IoPlug;
use crate::scheduler::TaskId;
use crate::task::Blocked;
use pagetide_core::audit::Violation;
use pagetide_core::interface::effect::{Effect, Io};
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::units::NodeId;

macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(Violation(format!($($message)+)));
        }
    };
}

impl SimWorld {
    /// Audits the machine, then sleepers, throttles, requests and PSI states against it. Returns
    /// the first violation.
    pub fn audit(&self) -> Result<(), WorldError> {
        let checks = [
            self.machine.audit(),
            self.audit_sleepers(),
            self.audit_throttles(),
            self.audit_requests(),
            self.audit_pressure(),
        ];
        checks
            .into_iter()
            .collect::<Result<(), Violation>>()
            .map_err(|violation| WorldError::Audit { at_ns: self.now, violation })
    }

    /// Every sleeping task has a wake-up source.
    fn audit_sleepers(&self) -> Result<(), Violation> {
        for (id, task) in self.tasks.iter().enumerate() {
            let name = &task.name;
            let thread = WorldThread::Task(id);
            let nr_waits = self.waits.nr_pages(thread);
            let waits = task.blocked == Blocked::Page;
            check!(nr_waits == usize::from(waits), "{name}: {:?}, {nr_waits} waits", task.blocked);
            let timer = self.waits.has_timer(thread);
            match task.blocked {
                Blocked::Sleeping => {
                    let is_called = task.began.is_none() || self.waits_for_requests(id);
                    check!(timer || is_called, "{name} has no timer");
                }
                Blocked::Exited => {
                    check!(task.ended.is_some(), "{name} exited without an end time");
                    check!(!task.stalled, "{name} exited, but is counted as stalled");
                }
                Blocked::No => {
                    let awake = self.cpus.has_slice(thread) || !self.cpus.is_asleep(thread);
                    check!(awake, "{name} is not blocked, but asleep");
                    check!(!timer, "{name} runs and has a timer");
                }
                Blocked::Page => check!(!timer, "{name} waits for a page and has a timer"),
                Blocked::Throttled(..) => {}
                Blocked::Disk => check!(
                    self.disks.waiters.iter().any(|(waiter, _)| *waiter == thread),
                    "{name} waits for a disk, but is not in `waiters`"
                ),
            }
        }
        for (thread, full) in &self.disks.waiters {
            let idle = self.disks.of[full.disk].is_idle();
            check!(!idle, "{thread:?} waits for an idle disk");
            let knows = match thread {
                WorldThread::Task(id) => self.tasks[*id].blocked == Blocked::Disk,
                WorldThread::Daemon(daemon) => self.daemons.of(*daemon).waits_for_disk,
            };
            check!(knows, "{thread:?} is in `waiters`, but does not wait for a disk");
        }
        Ok(())
    }

    /// The reported PSI states match the threads, and PSI's counts match the reported states.
    fn audit_pressure(&self) -> Result<(), Violation> {
        let (mut nr_stalled, mut nr_running) = (0, 0);
        for (id, reported) in self.pressure.0.iter().enumerate() {
            let found = self.pressure_of(id as TaskId);
            check!(*reported == found, "thread {id}: {reported:?} reported, {found:?} found");
            nr_stalled += u32::from(found.state.stalled);
            nr_running += u32::from(found.state.running && !found.state.stalled);
        }
        let (stalled, running) = self.machine.psi().nr_tasks();
        check!(stalled == nr_stalled, "pressure: {stalled} stalled, {nr_stalled} found");
        check!(running == nr_running, "pressure: {running} running, {nr_running} found");
        Ok(())
    }

    /// Each node's count of throttled calls and daemons includes those that sleep, and those that
    /// were woken and have not run yet.
    fn audit_throttles(&self) -> Result<(), Violation> {
        for node in (0..self.machine.nr_nodes()).map(|node| NodeId(node as u8)) {
            for reason in [Throttle::Writeback, Throttle::Reserves] {
                let calls = self.tasks.iter().filter_map(|task| task.call.as_ref());
                let calls = calls.filter(|held| held.0.is_counted_in(node, reason)).count();
                let found = calls as u32 + self.machine.nr_daemons_throttled(node, reason);
                let known = self.machine.nr_throttled(node, reason);
                check!(known == found, "{node:?} {reason:?}: {known} throttled, {found} found");
            }
        }
        Ok(())
    }

    /// File writes in flight are the submitted ones, those in plugs, and those to be submitted at
    /// the end of a time slice (also of a preempted one).
    fn audit_requests(&self) -> Result<(), Violation> {
        let is_file_write = |io: &Io| matches!(io, Io::WriteFile { .. });
        let submitted = self.disks.submitted().filter(is_file_write);
        let coming = self.cpus.effects();
        let coming =
            coming.filter(|effect| matches!(effect, Effect::Submit(io) if is_file_write(io)));
        let plugs = self.tasks.iter().map(|task| &task.plug);
        let plugs = plugs.chain(self.daemons.sleeps.iter().map(|sleep| &sleep.plug));
        let plugged = plugs.flat_map(IoPlug::ios).filter(|io| is_file_write(io));
        let known = self.machine.nr_file_writes_in_flight();
        let found = submitted.count() + plugged.count() + coming.count();
        check!(known as usize == found, "{known} file writes in flight, {found} found");
        Ok(())
    }
}
