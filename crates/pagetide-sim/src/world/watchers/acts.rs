//! Acts of watchers: signals to tasks, and writes to control files.
//!
//! Linux: kill(2), a loop over cgroup.procs for a group, write(2). A task with SIGKILL exits as soon
//! as it has a CPU, whatever it waits for. Difference from Linux: the OOM reaper does not help; the
//! memory is free when the task has exited.
//!
//! Invariant: a watcher does not signal itself.

use crate::observe::{ObservationKind, WatcherObservation};
use crate::world::{SimWorld, WorldThread};
use pagetide_core::control::GroupControlWrite;
use pagetide_core::process::ProcessCall;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::names::SigtermEffect;
use pagetide_scenario::op::Op;
use pagetide_scenario::record::timeline::TimelineDeed;
use pagetide_watcher::act::{SentSignal, WatcherAct, WatcherDeed};

impl SimWorld {
    /// Carries out the signals of a watcher whose time slice has ended.
    pub(crate) fn send_signals(&mut self, watcher: usize) {
        if self.watchers.due.is_empty() {
            return;
        }
        let due = std::mem::take(&mut self.watchers.due);
        let (own, others): (Vec<_>, Vec<_>) = due.into_iter().partition(|(by, _)| *by == watcher);
        self.watchers.due = others;
        for (by, deed) in own {
            self.send_signal(by, deed);
        }
    }

    fn send_signal(&mut self, by: usize, deed: WatcherDeed) {
        let (targets, name, signal): (Vec<usize>, String, SentSignal) = match deed.act {
            WatcherAct::SignalProcess { pid, signal } => {
                let Some(id) = self.process_of(pid) else { return };
                (vec![id], self.tasks[id].name.clone(), signal)
            }
            WatcherAct::SignalGroup { group, signal } => {
                let group = group as usize;
                let in_group = self.processes().filter(|(_, task)| {
                    group >= self.setup.groups.len() || self.is_in_group(task.group, group)
                });
                let name = self.setup.groups.get(group).map_or("/", |of| &of.name).to_owned();
                (in_group.map(|(it, _)| it).filter(|it| *it != by).collect(), name, signal)
            }
            WatcherAct::Reclaim { .. } | WatcherAct::SetHigh { .. } => return,
        };
        if targets.is_empty() {
            return;
        }
        let now = self.now;
        if let Some(watcher) = self.watchers.of.get_mut(&by) {
            let follows = Some((SentSignal::Term, name.clone()));
            if signal == SentSignal::Term || watcher.last != follows {
                watcher.counts.kills += 1;
            }
            watcher.counts.first_kill.get_or_insert(now);
            watcher.last = Some((signal, name.clone()));
        }
        let evicts = self.watchers.of.get(&by).is_some_and(super::SimWatcher::evicts);
        let verb = if evicts { "evicted" } else { "killed" };
        let own = &self.tasks[by].name;
        self.results.note(format!(
            "watcher `{own}` {verb} `{name}` with {signal} at {}.{:03} s: {}",
            now / 1_000_000_000,
            now / 1_000_000 % 1000,
            deed.why
        ));
        self.show_deed(by, &signal.to_string(), name, deed.why);
        for id in targets {
            self.tasks[id].is_ending = true;
            let ignores = self.setup.tasks[id].settings.sigterm == SigtermEffect::Ignore;
            if signal == SentSignal::Kill || !ignores {
                self.kill_program(id);
            }
        }
    }

    /// Shows a deed to the observers and in the timeline.
    fn show_deed(&mut self, watcher: usize, act: &str, target: String, why: String) {
        let (ns, name) = (self.now, &self.tasks[watcher].name);
        self.results.note_deed(|| TimelineDeed {
            ns,
            watcher: name.clone(),
            act: act.to_owned(),
            target: target.clone(),
        });
        if self.observing.is_observed() {
            let deed = WatcherObservation { act: act.to_owned(), target, why };
            let what = ObservationKind::Watched(deed);
            self.observing.show(WorldThread::Task(watcher), self.now, what);
        }
    }

    /// Makes all threads of a program exit.
    fn kill_program(&mut self, id: usize) {
        self.tasks[id].times_killed += 1;
        for thread in self.threads_of(id) {
            let task = &mut self.tasks[thread];
            if !task.is_over() && !task.killed {
                (task.killed, task.signalled) = (true, true);
                self.interrupt(thread);
            }
        }
    }

    /// A write of a watcher to a control file of a group. If the kernel reclaims before the write
    /// returns, it becomes a call of the watcher's task.
    pub(super) fn write_of_watcher(
        &mut self,
        id: usize,
        deed: &WatcherDeed,
        op: Op,
        cpu: Cpu,
        entered: Nanos,
    ) {
        let (group, file, bytes) = match deed.act {
            WatcherAct::Reclaim { group, bytes } => (group, "memory.reclaim", bytes),
            WatcherAct::SetHigh { group, bytes } => (group, "memory.high", bytes),
            WatcherAct::SignalProcess { .. } | WatcherAct::SignalGroup { .. } => return,
        };
        let Some(memcg) = self.groups.memcgs[group as usize] else { return };
        let Ok(write) = GroupControlWrite::read(file, &bytes.to_string()) else { return };
        if let Some(watcher) = self.watchers.of.get_mut(&id) {
            watcher.counts.writes += 1;
        }
        let name = self.setup.groups[group as usize].name.clone();
        self.show_deed(id, &format!("{file} {bytes}"), name, deed.why.clone());
        let node = self.machine.mem.cpu_node(cpu);
        let mm = self.tasks[id].mm;
        let written = self.machine.apply_group_write(memcg, write).map(|(write, effects)| {
            self.cpus.hold(effects, cpu);
            write
        });
        match written {
            Ok(Some(write)) => {
                self.begin_call(id, ProcessCall::group_write(mm, node, write), op, entered);
            }
            Ok(None) => {}
            Err(error) => {
                let task = &self.tasks[id].name;
                self.results.note(format!("watcher `{task}`: {error}"));
            }
        }
    }
}
