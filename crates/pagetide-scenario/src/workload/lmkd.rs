//! Watcher `lmkd`: Android's low memory killer.

use super::prelude::*;
use super::watching::WatcherBase;
use pagetide_watcher::lmkd::LmkdOptions;

const MS: u64 = 1_000_000;

table! {
    /// lmkd: Android's low memory killer, with PSI monitors. The keys are its properties ro.lmk.*.
    LmkdKeys of "the watcher lmkd" {
        /// A device with little memory: other defaults of the next keys (default false).
        low_ram: Spanned<bool> = false,
        /// Stall of some task in a second that wakes it up (default 70ms; low_ram 200ms).
        psi_partial_stall: Spanned<Time>,
        /// Stall of all tasks in a second after which it kills (default 700ms).
        psi_complete_stall: Spanned<Time> = Time(700 * MS),
        /// Percent of free swap below which swap is low (default 10).
        swap_free_low_percentage: Spanned<Int<0, 100>> = Int(10),
        /// Percent of the page cache that may refault in a second (default 100; low_ram 30).
        thrashing_limit: Spanned<Int<0, 10_000>>,
        /// Percent by which the limit falls with each kill (default 10; low_ram 50).
        thrashing_limit_decay: Spanned<Int<0, 100>>,
        /// Thrashing at which perceptible processes die, too (default: twice the limit).
        thrashing_limit_critical: Spanned<Int<0, 20_000>>,
        /// Percent of anonymous memory that may be swapped out (default 100: any).
        swap_util_max: Spanned<Int<0, 100>> = Int(100),
        /// Page cache that must be there after thrashing (default 0).
        filecache_min: Spanned<Size> = Size(0),
        /// Kills the heaviest of the processes with one oom_score_adj (default false: the oldest).
        kill_heaviest_task: Spanned<bool> = false,
        /// Time that it waits for the end of a process (default 100ms).
        kill_timeout: Spanned<Time> = Time(100 * MS),
        /// Memory of its own that it uses at each look (default 4MiB).
        footprint: Spanned<Size> = Size(4 << 20),
        /// Its memory is locked, as by mlockall (default true).
        locked: Spanned<bool> = true,
        /// CPU time of a look in addition to the time for reading (default 0).
        compute: Spanned<Time> = Time(0),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LmkdWatcher {
    pub base: WatcherBase,
    pub options: LmkdOptions,
}

impl WorkloadSpec for LmkdWatcher {
    type Keys = LmkdKeys;

    fn check(keys: &LmkdKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let footprint = (keys.footprint(), keys.footprint.as_ref());
        let base = WatcherBase::check(footprint, keys.locked(), keys.compute(), phases, sink);
        let is_small = keys.low_ram();
        let or = |key: Option<u64>, small: u64, large: u64| {
            key.unwrap_or(if is_small { small } else { large })
        };
        let limit = or(keys.thrashing_limit.as_ref().map(|at| at.value.into()), 30, 100);
        let critical = keys.thrashing_limit_critical.as_ref();
        let partial = keys.psi_partial_stall.as_ref();
        for (key, at) in [("psi_partial_stall", partial), ("psi_complete_stall", keys.psi_complete_stall.as_ref())] {
            if let Some(at) = at.filter(|at| at.value.0 == 0 || at.value.0 > 1000 * MS) {
                let message = format!("`{key}` is a stall in a window of 1 s");
                sink.hinted(at.span, message, "write more than 0 and at most \"1s\"");
                return None;
            }
        }
        let options = LmkdOptions {
            psi_partial_stall_ns: or(partial.map(|at| at.value.0), 200 * MS, 70 * MS),
            psi_complete_stall_ns: keys.psi_complete_stall().0,
            swap_free_low_percentage: keys.swap_free_low_percentage().into(),
            thrashing_limit: limit,
            thrashing_limit_decay: or(
                keys.thrashing_limit_decay.as_ref().map(|at| at.value.into()),
                50,
                10,
            ),
            thrashing_limit_critical: critical.map_or(limit * 2, |at| at.value.into()),
            swap_util_max: keys.swap_util_max().into(),
            filecache_min_kb: keys.filecache_min().0 >> 10,
            kill_heaviest_task: keys.kill_heaviest_task(),
            kill_timeout_ns: keys.kill_timeout().0,
        };
        Some(LmkdWatcher { base: base?, options })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        self.base.stages(phase, planner)
    }

    fn missing_end(&self) -> Option<&'static str> {
        Some("until")
    }
}
