//! Watcher `earlyoom`: kills the largest process when memory and swap are low.

use super::prelude::*;
use super::watching::WatcherBase;
use crate::load::decode::named;
use crate::load::watcher_values::{earlyoom_levels, EarlyoomPercents};
use crate::names::names;
use pagetide_watcher::earlyoom::{EarlyoomOptions, EarlyoomPreference, EarlyoomVersion};

names! {
    /// Releases of earlyoom that decide differently.
    "version of earlyoom" EarlyoomRelease {
        /// Percentages are of MemTotal (Debian 12).
        V1_7 = "1.7",
        /// 1.8 to 1.9: percentages are of MemAvailable + AnonPages.
        V1_9 = "1.9",
    }
}
named!(EarlyoomRelease);

table! {
    /// earlyoom: kills the process with the largest oom_score when memory and swap are both low.
    EarlyoomKeys of "the watcher earlyoom" {
        /// Release that it follows (default 1.9).
        version: Spanned<EarlyoomRelease> = EarlyoomRelease::V1_9,
        /// -m: percent of available memory for SIGTERM, and for SIGKILL (default "10,5").
        mem: Spanned<EarlyoomPercents> = EarlyoomPercents::DEFAULT,
        /// -s: percent of free swap for SIGTERM, and for SIGKILL (default "10,5"); 100 ignores swap.
        swap: Spanned<EarlyoomPercents> = EarlyoomPercents::DEFAULT,
        /// --sort-by-rss: kills the process with the most resident memory (default false).
        sort_by_rss: Spanned<bool> = false,
        /// --prefer: names of tasks; `*` stands for any text. Adds 300 to their scores.
        prefer: Vec<Spanned<String>>,
        /// --avoid: names of tasks. Subtracts 300 from their scores.
        avoid: Vec<Spanned<String>>,
        /// --ignore: names of tasks that are never killed.
        ignore: Vec<Spanned<String>>,
        /// Memory of its own that it uses at each look (default 2MiB).
        footprint: Spanned<Size> = Size(2 << 20),
        /// Its memory is locked, as by mlockall (default true).
        locked: Spanned<bool> = true,
        /// CPU time of a look in addition to the time for reading (default 0).
        compute: Spanned<Time> = Time(0),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyoomWatcher {
    pub base: WatcherBase,
    pub options: EarlyoomOptions,
    /// Patterns of task names; the first that fits decides.
    pub preferences: Vec<(String, EarlyoomPreference)>,
}

impl WorkloadSpec for EarlyoomWatcher {
    type Keys = EarlyoomKeys;

    fn check(keys: &EarlyoomKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let footprint = (keys.footprint(), keys.footprint.as_ref());
        let base = WatcherBase::check(footprint, keys.locked(), keys.compute(), phases, sink);
        let mem = keys.mem();
        if let Some(at) = keys.mem.as_ref().filter(|at| at.value.term > 9_900) {
            let message = "earlyoom refuses more than 99 percent of memory";
            sink.hinted(at.span, message, "write 99 or less, for example \"10,5\"");
            return None;
        }
        let [term, kill] = earlyoom_levels(mem, keys.swap());
        let version = match keys.version() {
            EarlyoomRelease::V1_7 => EarlyoomVersion::V1_7,
            EarlyoomRelease::V1_9 => EarlyoomVersion::V1_9,
        };
        if version == EarlyoomVersion::V1_7 {
            let ignored = keys.ignore.iter().flatten().next().map(|at| (at.span, "--ignore"));
            let by_rss = keys.sort_by_rss.as_ref().filter(|at| at.value);
            let by_rss = by_rss.map(|at| (at.span, "--sort-by-rss"));
            if let Some((at, option)) = ignored.or(by_rss) {
                let message = format!("earlyoom 1.7 has no {option}");
                sink.hinted(at, message, "leave it out, or write version = \"1.9\"");
                return None;
            }
        }
        let lists = [
            (&keys.ignore, EarlyoomPreference::Ignore),
            (&keys.prefer, EarlyoomPreference::Prefer),
            (&keys.avoid, EarlyoomPreference::Avoid),
        ];
        let named = lists.into_iter().flat_map(|(names, preference)| {
            names.iter().flatten().map(move |name| (name.value.clone(), preference))
        });
        let options = EarlyoomOptions { version, term, kill, sort_by_rss: keys.sort_by_rss() };
        Some(EarlyoomWatcher { base: base?, options, preferences: named.collect() })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        self.base.stages(phase, planner)
    }

    fn missing_end(&self) -> Option<&'static str> {
        Some("until")
    }
}

impl EarlyoomWatcher {
    pub fn preference(&self, task: &str) -> EarlyoomPreference {
        let fits = |pattern: &str| crate::names::near::matches(pattern, task);
        let found = self.preferences.iter().find(|(pattern, _)| fits(pattern));
        found.map_or(EarlyoomPreference::None, |(_, preference)| *preference)
    }
}
