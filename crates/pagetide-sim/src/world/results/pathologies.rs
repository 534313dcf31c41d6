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
            self.end_window(machine);
        }
    }

    fn end_window(&mut self, machine: &Machine) {
        let sum = |events: &[Event]| events.iter().map(|&it| machine.mem.vmstat.get(it)).sum();
        let now: [u64; 2] = [sum(&REFAULTS), sum(&EVICTIONS)];
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
