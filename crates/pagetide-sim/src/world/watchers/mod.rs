//! Watchers: tasks that read counters, decide, and then kill tasks or write control files.
//!
//! The decisions are in `pagetide-watcher`. This world gives each watcher the readings of its files
//! at the moment of the look, charges the CPU time for reading, and carries out the acts: writes at
//! once, signals at the end of the watcher's time slice.
//!
//! Invariant: a watcher acts only in a time slice of its own task.

mod acts;
mod readings;

use crate::task::SimTask;
use crate::world::{SimWorld, SliceEnd};
use pagetide_core::process::Machine;
use pagetide_core::units::digest::Digest;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::draws::prng::{sub_seed, SplitMix64};
use pagetide_scenario::model::{ReclaimLoopRule, Setup, Workload};
use pagetide_scenario::op::Op;
use pagetide_watcher::act::{SentSignal, WatcherDeed, WatcherStep};
use pagetide_watcher::earlyoom::Earlyoom;
use pagetide_watcher::koordinator::Koordinator;
use pagetide_watcher::kubelet::Kubelet;
use pagetide_watcher::lmkd::Lmkd;
use pagetide_watcher::senpai::{Senpai, SenpaiReclaim};
use pagetide_watcher::systemd_oomd::SystemdOomd;
use std::collections::BTreeMap;

/// CPU time to read a small file of /proc or of a group (earlyoom's main.c: 6 us for /proc/meminfo).
const FILE_NS: Nanos = 6_000;
/// Files of /proc/PID that a look at a process reads: stat, oom_score, oom_score_adj.
const FILES_OF_PROCESS: u64 = 3;
/// Shift of systemd's timers in a boot: below a minute.
const PERTURB_MAX: Nanos = 60_000_000_000;
/// Interval at which progress of the watched tasks is looked at.
const PROGRESS_TICK: Nanos = 100_000_000;

/// The decisions of a watcher.
#[derive(Debug)]
enum WatcherProgram {
    Kubelet(Kubelet),
    SystemdOomd(SystemdOomd),
    Earlyoom(Earlyoom),
    Lmkd(Lmkd),
    Senpai(Senpai),
    SenpaiReclaim(SenpaiReclaim),
    Koordinator(Koordinator),
}

/// Counts of a watcher, for its metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatcherCounts {
    pub looks: u64,
    /// Tasks or groups that got a first signal.
    pub kills: u64,
    pub writes: u64,
    pub first_kill: Option<Nanos>,
}

#[derive(Debug)]
pub(crate) struct SimWatcher {
    program: WatcherProgram,
    wake_at: Nanos,
    draws: SplitMix64,
    pub counts: WatcherCounts,
    /// The last signal and its target: SIGKILL after SIGTERM is not counted again.
    last: Option<(SentSignal, String)>,
}

impl SimWatcher {
    /// The watcher of a workload, if it is one.
    fn new(workload: &Workload, seed: u64) -> Option<SimWatcher> {
        let mut draws = SplitMix64::new(seed);
        let program = match workload {
            Workload::Kubelet(of) => WatcherProgram::Kubelet(Kubelet::new(of.options.clone())),
            Workload::SystemdOomd(of) => {
                let mut options = of.options.clone();
                options.perturb_ns = draws.below(PERTURB_MAX);
                WatcherProgram::SystemdOomd(SystemdOomd::new(options))
            }
            Workload::Earlyoom(of) => WatcherProgram::Earlyoom(Earlyoom::new(of.options.clone())),
            Workload::Lmkd(of) => WatcherProgram::Lmkd(Lmkd::new(of.options)),
            Workload::ReclaimLoop(of) => match of.rule {
                ReclaimLoopRule::Senpai(of) => WatcherProgram::Senpai(Senpai::new(of)),
                ReclaimLoopRule::SenpaiReclaim(of) => {
                    WatcherProgram::SenpaiReclaim(SenpaiReclaim::new(of))
                }
                ReclaimLoopRule::Koordinator(of) => {
                    WatcherProgram::Koordinator(Koordinator::new(of))
                }
            },
            _ => return None,
        };
        let counts = WatcherCounts::default();
        Some(SimWatcher { program, wake_at: 0, draws, counts, last: None })
    }

    /// Whether its kills are evictions of pods.
    pub fn evicts(&self) -> bool {
        matches!(self.program, WatcherProgram::Kubelet(_))
    }

    /// Looks so far, if the program counts them itself.
    fn nr_looks(&self) -> Option<u64> {
        match &self.program {
            WatcherProgram::Kubelet(kubelet) => Some(kubelet.nr_looks()),
            WatcherProgram::SystemdOomd(_)
            | WatcherProgram::Earlyoom(_)
            | WatcherProgram::Lmkd(_)
            | WatcherProgram::Senpai(_)
            | WatcherProgram::SenpaiReclaim(_)
            | WatcherProgram::Koordinator(_) => None,
        }
    }

    /// Whether it only writes control files.
    pub fn only_writes(&self) -> bool {
        matches!(
            self.program,
            WatcherProgram::Senpai(_)
                | WatcherProgram::SenpaiReclaim(_)
                | WatcherProgram::Koordinator(_)
        )
    }
}

/// All watchers by task.
#[derive(Debug, Default)]
pub(crate) struct SimWatchers {
    pub of: BTreeMap<usize, SimWatcher>,
    /// Signals of the current time slices, by watcher.
    due: Vec<(usize, WatcherDeed)>,
    progress: ProgressMeter,
}

impl SimWatchers {
    pub fn new(setup: &Setup, seed: u64) -> SimWatchers {
        let mut of = BTreeMap::new();
        for (id, task) in setup.tasks.iter().enumerate() {
            let seed = sub_seed(seed, &format!("watcher {}", task.name));
            let mut workloads = task.phases.iter().map(|phase| &phase.workload);
            if let Some(watcher) = workloads.find_map(|workload| SimWatcher::new(workload, seed)) {
                of.insert(id, watcher);
            }
        }
        let is_measured = !of.is_empty() || setup.measures_pathologies;
        let next_tick = if is_measured { PROGRESS_TICK } else { Nanos::MAX };
        let progress = ProgressMeter { next_tick, ..ProgressMeter::default() };
        SimWatchers { of, progress, ..SimWatchers::default() }
    }

    /// Time in which no watched task made progress; `None`: nothing watches.
    pub fn frozen_ns(&self) -> Option<Nanos> {
        (!self.of.is_empty()).then_some(self.progress.frozen_ns)
    }

    /// The longest such time on end.
    pub fn longest_frozen_ns(&self) -> Nanos {
        self.progress.longest_ns
    }

    /// The digest of the machine and of what the watchers know; that of the machine if nothing
    /// watches.
    pub fn digest(&self, machine: u64) -> u64 {
        if self.of.is_empty() {
            return machine;
        }
        let mut digest = Digest::default();
        digest.write_u64(machine);
        // The programs are outside the core, so that their fields have no digest of their own.
        for byte in format!("{:?}", self.of).bytes() {
            digest.write_u64(byte.into());
        }
        digest.finish()
    }

    #[inline]
    pub fn look_until(&mut self, at: Nanos, tasks: &[SimTask]) {
        while self.progress.next_tick <= at {
            self.progress.look(tasks, &self.of);
        }
    }
}

/// Counts the time in which tasks want to run and none makes progress in user mode.
#[derive(Debug, Default)]
struct ProgressMeter {
    next_tick: Nanos,
    /// User time and bytes of all watched tasks at the last look.
    done: u128,
    frozen_ns: Nanos,
    /// The time without progress until now, and the longest one.
    current_ns: Nanos,
    longest_ns: Nanos,
}

impl ProgressMeter {
    fn look(&mut self, tasks: &[SimTask], watchers: &BTreeMap<usize, SimWatcher>) {
        self.next_tick = self.next_tick.saturating_add(PROGRESS_TICK);
        let watched = || {
            let all = tasks.iter().enumerate();
            all.filter(|(_, task)| !watchers.contains_key(&task.leader)).map(|(_, task)| task)
        };
        let done = watched()
            .map(|task| u128::from(task.usage.user_ns) + u128::from(task.usage.bytes))
            .sum::<u128>();
        let wants_to_run = watched().any(SimTask::wants_to_run);
        if wants_to_run && done == self.done {
            self.frozen_ns += PROGRESS_TICK;
            self.current_ns += PROGRESS_TICK;
            self.longest_ns = self.longest_ns.max(self.current_ns);
        } else {
            self.current_ns = 0;
        }
        self.done = done;
    }
}

impl SimWorld {
    /// A look of a watcher. Returns its CPU time.
    pub(crate) fn watch(&mut self, id: usize, phase: u32, cpu: Cpu, elapsed: Nanos) -> Nanos {
        let Some(mut watcher) = self.watchers.of.remove(&id) else { return 0 };
        let now = self.now + elapsed;
        let workload = self.setup.tasks[id].phases[phase as usize].workload.clone();
        let nr_looks = watcher.nr_looks();
        let (step, files) = self.step_watcher(id, &mut watcher, &workload, now);
        let is_look = files > 0 && nr_looks.is_none_or(|before| watcher.nr_looks() != Some(before));
        watcher.counts.looks += u64::from(is_look);
        watcher.wake_at = step.wake_ns;
        self.watchers.of.insert(id, watcher);
        let own = workload.watcher().map_or(0, |base| base.compute_ns);
        let cost = files * FILE_NS;
        self.tasks[id].compute_left = if files > 0 { own } else { 0 };
        self.spend_in_kernel(id, cost);
        for deed in step.deeds {
            if deed.act.is_kill() {
                self.watchers.due.push((id, deed));
            } else {
                self.write_of_watcher(id, &deed, Op::Watch { phase }, cpu, elapsed + cost);
            }
        }
        cost + self.take_work()
    }

    /// Sleeps until the next look, unless it is due.
    pub(crate) fn watch_rest(&mut self, id: usize, elapsed: Nanos) -> Option<SliceEnd> {
        let at = self.watchers.of.get(&id).map_or(Nanos::MAX, |watcher| watcher.wake_at);
        (at > self.now + elapsed).then(|| self.sleep_until(id, at))
    }

    /// Reads for a watcher and lets it decide. Returns the number of files read, too; 0: only the
    /// kernel looked, for a PSI monitor.
    fn step_watcher(
        &mut self,
        id: usize,
        watcher: &mut SimWatcher,
        workload: &Workload,
        now: Nanos,
    ) -> (WatcherStep, u64) {
        match (&mut watcher.program, workload) {
            (WatcherProgram::Kubelet(kubelet), Workload::Kubelet(of)) => {
                let draw = watcher.draws.next_u64();
                let read = self.kubelet_reading(kubelet.pods(), of.kubepods, draw);
                // meminfo and memory.stat of the root; memory.current and memory.stat of each pod.
                let files = 2 + 2 * read.pods.len() as u64;
                (kubelet.wake(now, &read), files)
            }
            (WatcherProgram::SystemdOomd(oomd), Workload::SystemdOomd(of)) => {
                let read = self.oomd_reading(id, &of.preferences, now);
                // pressure, current, min, low, swap.current and stat of each watched group.
                let files = if oomd.reads_pressure(now) {
                    1 + 6 * of.options.pressure_units.len() as u64
                } else {
                    1
                };
                let step = oomd.wake(now, &read);
                let reads_all = !step.deeds.is_empty();
                (step, files + if reads_all { 6 * read.groups.len() as u64 } else { 0 })
            }
            (WatcherProgram::Earlyoom(earlyoom), Workload::Earlyoom(of)) => {
                let read = self.earlyoom_reading(id, of, earlyoom);
                let files = 1 + FILES_OF_PROCESS * read.processes.len() as u64;
                (earlyoom.wake(now, &read), files)
            }
            (WatcherProgram::Lmkd(lmkd), Workload::Lmkd(_)) => {
                let was_polling = lmkd.is_polling();
                let read = self.lmkd_reading(id, lmkd, now);
                let step = lmkd.wake(now, &read);
                // vmstat, meminfo, and zoneinfo once a minute.
                let files = if was_polling || lmkd.is_polling() { 2 } else { 0 };
                (step, files)
            }
            (program, Workload::ReclaimLoop(of)) => self.step_reclaim_loop(program, of.target, now),
            _ => (WatcherStep::rest(Nanos::MAX), 0),
        }
    }

    fn step_reclaim_loop(
        &self,
        program: &mut WatcherProgram,
        target: usize,
        now: Nanos,
    ) -> (WatcherStep, u64) {
        match program {
            WatcherProgram::Senpai(senpai) => {
                (senpai.wake(now, &self.senpai_reading(target, now)), 3)
            }
            WatcherProgram::SenpaiReclaim(senpai) => {
                (senpai.wake(now, &self.senpai_reclaim_reading(target, now)), 5)
            }
            WatcherProgram::Koordinator(koordinator) => {
                (koordinator.wake(now, &self.koordinator_reading(target)), 2)
            }
            WatcherProgram::Kubelet(_)
            | WatcherProgram::SystemdOomd(_)
            | WatcherProgram::Earlyoom(_)
            | WatcherProgram::Lmkd(_) => (WatcherStep::rest(Nanos::MAX), 0),
        }
    }
}

/// Resident kB of a task.
fn rss_kb(machine: &Machine, task: &SimTask) -> u64 {
    machine.page_size().kbytes_of(machine.mm_rss(task.mm))
}
