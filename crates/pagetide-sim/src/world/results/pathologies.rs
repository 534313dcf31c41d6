//! Signs of a pathology: page cache that is left when the OOM killer acts, and refaults beside
//! evictions.
//!
//! Recorded on request ([`PATHOLOGIES`](pagetide_scenario::metric::declared::PATHOLOGIES)). Clean
//! page cache on the lists counts as evictable also if it is in use: under enough pressure the two
//! lists take such pages.

use pagetide_core::groups::memcg::ROOT;
use pagetide_core::process::Machine;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::{MemcgId, Nanos};

/// Length of a window in which refaults are compared with evictions.
const WINDOW: Nanos = 1_000_000_000;
/// A window with fewer evictions does not count.
const EVICTIONS_MIN: u64 = 1000;

const REFAULTS: [Event; 2] = [Event::WorkingsetRefaultAnon, Event::WorkingsetRefaultFile];
const EVICTIONS: [Event; 2] = [Event::PgstealAnon, Event::PgstealFile];

#[derive(Debug, Default)]
pub(crate) struct PathologyMeter {
    next: Nanos,
    /// Refaults and evictions at the start of the window.
    before: [u64; 2],
    /// Most refaults for each 100 evictions.
    pub refault_percent: f64,
    /// Largest share of a limit that was evictable at a kill.
    pub evictable_percent: f64,
}

impl PathologyMeter {
    pub fn new() -> PathologyMeter {
        PathologyMeter { next: WINDOW, ..PathologyMeter::default() }
    }

    /// Ends all windows until `at`.
    #[inline]
    pub fn until(&mut self, at: Nanos, machine: &Machine) {
        while self.next <= at {
            self.next += WINDOW;
            let sum = |events: [Event; 2]| events.map(|it| machine.mem.vmstat.get(it)).iter().sum();
            self.end_window([sum(REFAULTS), sum(EVICTIONS)]);
        }
    }

    /// There were so many refaults and evictions until now.
    fn end_window(&mut self, now: [u64; 2]) {
        let [refaults, evictions] = [0, 1].map(|at| now[at] - self.before[at]);
        self.before = now;
        if evictions >= EVICTIONS_MIN {
            let percent = refaults as f64 * 100.0 / evictions as f64;
            self.refault_percent = self.refault_percent.max(percent);
        }
    }

    /// The OOM killer has acted for the limit of a group, or for the machine.
    pub fn note_oom(&mut self, machine: &Machine, scope: MemcgId) {
        let page_size = machine.page_size();
        let limit = match scope {
            ROOT => {
                let zones = machine.mem.nodes.iter().flat_map(|node| &node.zones);
                zones.map(|zone| zone.managed).sum()
            }
            group => machine.groups.memcgs[group].memory.max,
        };
        let sizes = machine.memory_stat_sizes(scope);
        let size = |name: &str| sizes.iter().find(|(of, _)| *of == name).map_or(0, |(_, it)| *it);
        let unclean = size("file_dirty") + size("file_writeback");
        let evictable = (size("active_file") + size("inactive_file")).saturating_sub(unclean);
        let percent = evictable as f64 * 100.0 / page_size.bytes_of(limit.max(1)) as f64;
        self.evictable_percent = self.evictable_percent.max(percent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{build, run, RunOptions};
    use pagetide_scenario::load::{load_str, Overrides};
    use pagetide_scenario::model::Variant;
    use std::path::Path;

    #[test]
    fn each_window_counts_for_itself() {
        let mut meter = PathologyMeter::new();
        // The share of all evictions, 950 of 2000, is less; few evictions do not count.
        for (now, most) in [([0, 999], 0.0), ([900, 1999], 90.0), ([950, 2000], 90.0)] {
            meter.end_window(now);
            assert_eq!(meter.refault_percent, most);
        }
    }

    fn variant(text: &str) -> Variant {
        let loaded = load_str("x", text, Path::new("."), &Overrides::default());
        let mut variant = loaded.unwrap_or_else(|errors| panic!("{errors}")).variants.remove(0);
        variant.setup.measures_pathologies = true;
        variant
    }

    #[test]
    fn windows_end_with_the_time() {
        let setup = variant(
            "machine.memory = '64MiB'\ntask = [{ name = 'a', workload = 'touch', size = '1MiB' }]",
        )
        .setup;
        let world = build(&setup, 1).unwrap();
        let mut meter = PathologyMeter::new();
        meter.until(WINDOW - 1, &world.machine);
        assert_eq!(meter.next, WINDOW);
        meter.until(3 * WINDOW, &world.machine);
        assert_eq!(meter.next, 4 * WINDOW);
    }

    /// A group at its limit has no page cache. Later kswapd kills a task with most of the machine
    /// in use as page cache, for which no request has failed.
    #[test]
    fn a_kill_for_the_time_to_live_is_the_machines() {
        let text = r#"
            machine = { memory = "64MiB", disk = [{ name = "d", model = "nvme" }] }
            policy = { kernel = "linux-6.12", lru = "mglru" }
            sysctl.lru_gen.min_ttl_ms = 100000
            group = [{ name = "g", memory.max = "4M" }]
            file = [{ name = "data", size = "128MiB" }]
            task = [
                { name = "small", group = "g", workload = "touch", size = "8MiB" },
                { name = "large", start = "100ms", workload = "file-read", file = "data" },
            ]
        "#;
        let percent = |text: &str| {
            let record = run("x", &variant(text), 1, &RunOptions::default()).unwrap();
            (record.metrics["oom_kill"].value, record.metrics["node.oom_evictable"].value)
        };
        let (kills, evictable) = percent(&text.replace("100000", "0"));
        assert_eq!(kills, 1.0);
        assert!(evictable < 1.0, "{evictable}");
        let (kills, evictable) = percent(text);
        assert_eq!(kills, 2.0);
        assert!((50.0..100.0).contains(&evictable), "{evictable}");
    }
}
