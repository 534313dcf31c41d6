//! systemd-oomd: kills a control group when swap is nearly full, or when a unit has lost too much
//! time to memory for too long.
//!
//! systemd 254 to 257: `monitor_swap_contexts_handler`, `monitor_memory_pressure_contexts_handler`
//! (src/oom/oomd-manager.c), `oomd_pressure_above`, `oomd_select_by_pgscan_rate`,
//! `oomd_select_by_swap_usage` (src/oom/oomd-util.c; `oomd_kill_by_*` before 258). Swap is polled
//! with a timer of 150 ms and pressure with one of 1 s, both with the accuracy of sd-event
//! ([`crate::event_timer`]).
//!
//! oomd goes through its tables in the order of a hash; here groups go by rising number. That
//! decides only between units that exceed their limits in the same second. A group without processes
//! is passed over, because the service manager removes the group of a unit that has ended; oomd would
//! try to kill it again and again. Not modelled: prekill hooks and rule files (258).

use crate::act::{SentSignal, WatcherAct, WatcherStep};
use crate::event_timer::fires_at;
use crate::meminfo::MeminfoReading;
use crate::{MS, SECOND};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const SWAP_INTERVAL: u64 = 150 * MS;
const PRESSURE_INTERVAL: u64 = SECOND;
/// After a kill for pressure, no other for this time (`POST_ACTION_DELAY_USEC`).
const POST_ACTION_DELAY: u64 = 15 * SECOND;
/// A unit that has not reclaimed for this time is not acted on (`RECLAIM_DURATION_USEC`).
const RECLAIM_DURATION: u64 = 30 * SECOND;
/// Only groups with more than this share of all swap are killed for swap.
const SWAP_CANDIDATE_PERCENT: u64 = 5;
/// Bits after the point of a pressure (`LOADAVG_PRECISION_BITS`).
const FSHIFT: u32 = 11;

/// A pressure as oomd stores it, from hundredths of a percent (`store_loadavg_fixed_point`).
const fn loadavg(hundredths: u64) -> u64 {
    ((hundredths / 100) << FSHIFT) + ((hundredths % 100) << FSHIFT) / 100
}

/// A unit with `ManagedOOMMemoryPressure=kill`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressureWatch {
    pub group: u32,
    /// `ManagedOOMMemoryPressureLimit=` in hundredths of a percent.
    pub limit: u64,
    /// `ManagedOOMMemoryPressureDurationSec=`.
    pub duration_ns: u64,
}

/// `ManagedOOMPreference=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OomdPreference {
    #[default]
    None,
    Avoid,
    Omit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OomdOptions {
    /// `SwapUsedLimit=` in hundredths of a percent.
    pub swap_used_limit: u64,
    /// Units with `ManagedOOMSwap=kill`.
    pub swap_units: Vec<u32>,
    pub pressure_units: Vec<PressureWatch>,
    /// Shift of the timers of this boot.
    pub perturb_ns: u64,
}

/// The files of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OomdGroupReading {
    pub group: u32,
    /// `None`: the root.
    pub parent: Option<u32>,
    /// `full avg10` of memory.pressure in hundredths of a percent.
    pub full_avg10: u64,
    pub memory_current: u64,
    pub swap_current: u64,
    /// `pgscan` of memory.stat; 0 for the root, which oomd does not read.
    pub pgscan: u64,
    /// memory.oom.group.
    pub kills_as_one: bool,
    /// Processes of the group and of its descendants.
    pub nr_processes: u64,
    pub preference: OomdPreference,
}

/// The readings of oomd at a wake-up: the memory, and all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OomdReading {
    pub meminfo: MeminfoReading,
    pub groups: Vec<OomdGroupReading>,
}

/// Memory of oomd about a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UnitState {
    pgscan: u64,
    last_had_reclaim: Option<u64>,
    above_since: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct SystemdOomd {
    options: OomdOptions,
    swap_due: u64,
    pressure_due: u64,
    units: BTreeMap<u32, UnitState>,
    /// `pgscan` of the candidates at the last look; empty after a look without a need for them.
    candidates: BTreeMap<u32, u64>,
    acted_at: Option<u64>,
}

impl SystemdOomd {
    pub fn new(options: OomdOptions) -> SystemdOomd {
        SystemdOomd {
            options,
            swap_due: 0,
            pressure_due: 0,
            units: BTreeMap::new(),
            candidates: BTreeMap::new(),
            acted_at: None,
        }
    }

    /// Whether the wake-up at `now_ns` reads files of groups: the timer of pressure has fired.
    pub fn reads_pressure(&self, now_ns: u64) -> bool {
        self.pressure_due <= now_ns && !self.options.pressure_units.is_empty()
    }

    pub fn wake(&mut self, now_ns: u64, read: &OomdReading) -> WatcherStep {
        let mut step = WatcherStep::default();
        let perturb = self.options.perturb_ns;
        if self.swap_due <= now_ns {
            self.swap_due = match self.options.swap_units.is_empty() {
                true => u64::MAX,
                false => fires_at(now_ns + SWAP_INTERVAL, perturb),
            };
            step.deeds.extend(self.look_at_swap(read).map(|(group, why)| kill(group, why)));
        }
        if self.pressure_due <= now_ns {
            self.pressure_due = fires_at(now_ns + PRESSURE_INTERVAL, perturb);
            step.deeds
                .extend(self.look_at_pressure(now_ns, read).map(|(group, why)| kill(group, why)));
        }
        step.wake_ns = self.swap_due.min(self.pressure_due);
        step
    }

    /// The group to kill because memory and swap are both used up.
    fn look_at_swap(&self, read: &OomdReading) -> Option<(u32, String)> {
        let meminfo = &read.meminfo;
        let left = 10_000 - self.options.swap_used_limit;
        let is_below = |free: u64, total: u64| free * 1024 < total * 1024 * left / 10_000;
        if self.options.swap_units.is_empty()
            || !is_below(meminfo.mem_available, meminfo.mem_total)
            || !is_below(meminfo.swap_free, meminfo.swap_total)
        {
            return None;
        }
        let threshold = meminfo.swap_total * 1024 * SWAP_CANDIDATE_PERCENT / 100;
        let mut found = candidates(&self.options.swap_units, read);
        found.sort_by_key(|group| (group.preference, Reverse(group.swap_current), group.group));
        let mut worth = found.iter().filter(|group| group.swap_current > threshold);
        let victim = worth.find(|group| group.nr_processes > 0)?;
        let used = |free: u64, total: u64| (total - free.min(total)) * 100 / total.max(1);
        let why = format!(
            "memory used {} % and swap used {} %, more than {} %; it has {} MiB of swap",
            used(meminfo.mem_available, meminfo.mem_total),
            used(meminfo.swap_free, meminfo.swap_total),
            self.options.swap_used_limit / 100,
            victim.swap_current >> 20
        );
        Some((victim.group, why))
    }

    /// The group to kill because a unit is above its limit of pressure.
    fn look_at_pressure(&mut self, now_ns: u64, read: &OomdReading) -> Option<(u32, String)> {
        let mut above = Vec::new();
        for unit in &self.options.pressure_units {
            let Some(group) = read.groups.iter().find(|group| group.group == unit.group) else {
                self.units.remove(&unit.group);
                continue;
            };
            let state = self.units.entry(unit.group).or_default();
            // A smaller count is of a group that was made again.
            let last = if state.pgscan > group.pgscan { 0 } else { state.pgscan };
            if group.pgscan > last {
                state.last_had_reclaim = Some(now_ns);
            }
            state.pgscan = group.pgscan;
            if loadavg(group.full_avg10) > loadavg(unit.limit) {
                let since = *state.above_since.get_or_insert(now_ns);
                if now_ns - since >= unit.duration_ns {
                    above.push((*unit, group.full_avg10));
                }
            } else {
                state.above_since = None;
            }
        }
        let is_delayed = self.acted_at.is_some_and(|at| at + POST_ACTION_DELAY > now_ns);
        if !is_delayed {
            self.acted_at = None;
        }
        let mut victim = None;
        let mut has_candidates = false;
        if is_delayed || above.is_empty() {
            if self.units.values().any(|state| state.above_since.is_some()) {
                self.rates(read);
                has_candidates = true;
            }
        } else {
            for (unit, avg10) in above {
                let reclaimed = self.units[&unit.group].last_had_reclaim;
                if reclaimed.is_none_or(|at| now_ns - at > RECLAIM_DURATION) {
                    continue;
                }
                let rates = self.rates(read);
                has_candidates = true;
                if let Some((group, rate)) = by_pgscan_rate(unit.group, &rates, read) {
                    let show = |hundredths| format!("{}.{:02}", hundredths / 100, hundredths % 100);
                    let why = format!(
                        "memory pressure {} % is above {} % for {} s with reclaim activity; it \
                         scanned {rate} pages",
                        show(avg10),
                        show(unit.limit),
                        unit.duration_ns / SECOND
                    );
                    victim = Some((group, why));
                    self.acted_at = Some(now_ns);
                    break;
                }
            }
        }
        if !has_candidates {
            self.candidates.clear();
        }
        victim
    }

    /// Pages that each candidate has scanned since the last look at the candidates.
    fn rates(&mut self, read: &OomdReading) -> BTreeMap<u32, u64> {
        let units: Vec<u32> = self.options.pressure_units.iter().map(|unit| unit.group).collect();
        let found = candidates(&units, read);
        let now: BTreeMap<u32, u64> =
            found.iter().map(|group| (group.group, group.pgscan)).collect();
        let before = std::mem::replace(&mut self.candidates, now.clone());
        let rate = |(group, pgscan): (u32, u64)| {
            let last = before.get(&group).copied().filter(|last| *last <= pgscan).unwrap_or(0);
            (group, pgscan - last)
        };
        now.into_iter().map(rate).collect()
    }
}

fn kill(group: u32, why: String) -> crate::act::WatcherDeed {
    let act = WatcherAct::SignalGroup { group, signal: SentSignal::Kill };
    crate::act::WatcherDeed { act, why }
}

/// Groups that may be killed for a unit: those below it without groups of their own, or with
/// memory.oom.group (`recursively_get_cgroup_context`). A unit without groups is its own candidate.
fn candidates(units: &[u32], read: &OomdReading) -> Vec<OomdGroupReading> {
    fn descend(group: u32, read: &OomdReading, found: &mut BTreeMap<u32, OomdGroupReading>) {
        let children: Vec<_> =
            read.groups.iter().filter(|child| child.parent == Some(group)).collect();
        if children.is_empty() {
            let of = read.groups.iter().find(|of| of.group == group);
            found.extend(of.map(|of| (group, *of)));
        }
        for child in children {
            if child.kills_as_one {
                found.insert(child.group, *child);
            } else {
                descend(child.group, read, found);
            }
        }
    }
    let mut found = BTreeMap::new();
    units.iter().for_each(|unit| descend(*unit, read, &mut found));
    found.into_values().filter(|group| group.preference != OomdPreference::Omit).collect()
}

/// The candidate below a unit that scanned most, and its pages. A group without scans and memory is
/// left out.
fn by_pgscan_rate(unit: u32, rates: &BTreeMap<u32, u64>, read: &OomdReading) -> Option<(u32, u64)> {
    let parent =
        |group: u32| read.groups.iter().find(|of| of.group == group).and_then(|of| of.parent);
    let is_below =
        |group: u32| std::iter::successors(Some(group), |at| parent(*at)).any(|at| at == unit);
    let of = |group: u32| read.groups.iter().find(|of| of.group == group);
    let mut found: Vec<(&OomdGroupReading, u64)> = rates
        .iter()
        .filter(|(group, _)| is_below(**group))
        .filter_map(|(group, rate)| Some((of(*group)?, *rate)))
        .filter(|(group, _)| group.preference != OomdPreference::Omit)
        .collect();
    found.sort_by_key(|(group, rate)| {
        (group.preference, Reverse(*rate), Reverse(group.memory_current), group.group)
    });
    let mut worth = found.into_iter();
    let found = worth.find(|(group, _)| {
        (group.pgscan > 0 || group.memory_current > 0) && group.nr_processes > 0
    });
    found.map(|(group, rate)| (group.group, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups of `test_oomd_sort_cgroups` (src/oom/test-oomd-util.c): swap, last pgscan, pgscan,
    /// memory, preference.
    const SORTED: [(u64, u64, u64, u64, OomdPreference); 7] = [
        (20, 0, 33, 10, OomdPreference::None),
        (60, 33, 1, 20, OomdPreference::None),
        (40, 1, 33, 40, OomdPreference::None),
        (10, 33, 2, 10, OomdPreference::None),
        (11, 33, 33, 10, OomdPreference::None),
        (90, 0, u64::MAX, 0, OomdPreference::Omit),
        (99, 0, u64::MAX, 0, OomdPreference::Avoid),
    ];

    fn groups(parents: [Option<u32>; 7]) -> Vec<OomdGroupReading> {
        let all = SORTED.iter().zip(parents).zip(0..);
        let group = |((&(swap, _, pgscan, memory, preference), parent), group)| OomdGroupReading {
            group,
            parent,
            memory_current: memory,
            swap_current: swap,
            pgscan,
            nr_processes: 1,
            preference,
            ..OomdGroupReading::default()
        };
        all.map(group).collect()
    }

    /// Takes victims out, one after another.
    fn order(
        mut next: impl FnMut(&OomdReading) -> Option<u32>,
        groups: Vec<OomdGroupReading>,
    ) -> Vec<u32> {
        let mut read = OomdReading { groups, ..OomdReading::default() };
        let mut order = Vec::new();
        while let Some(victim) = next(&read) {
            order.push(victim);
            read.groups
                .iter_mut()
                .filter(|it| it.group == victim)
                .for_each(|it| it.nr_processes = 0);
        }
        order
    }

    #[test]
    fn groups_are_sorted_as_in_systemds_own_test() {
        let root = 100;
        let flat = groups([Some(root); 7]);
        let options = OomdOptions {
            swap_used_limit: 9000,
            swap_units: vec![root],
            pressure_units: vec![PressureWatch { group: root, limit: 6000, duration_ns: 0 }],
            perturb_ns: 0,
        };
        let oomd = SystemdOomd::new(options.clone());
        let full =
            MeminfoReading { mem_total: 1000, swap_total: 1000, ..MeminfoReading::default() };
        let by_swap = |read: &OomdReading| {
            let mut read = OomdReading { meminfo: full, ..read.clone() };
            // The test has bytes; the floor is 5 % of all swap.
            read.groups.iter_mut().for_each(|group| group.swap_current *= 1024 * 1024);
            oomd.look_at_swap(&read).map(|(group, _)| group)
        };
        assert_eq!(order(by_swap, flat.clone()), [1, 2, 0, 4, 3, 6]);
        let rates: BTreeMap<u32, u64> = SORTED
            .iter()
            .zip(0..)
            .map(|(it, group)| {
                let last = if it.1 > it.2 { 0 } else { it.1 };
                (group, it.2 - last)
            })
            .collect();
        let by_scan = |unit| {
            let rates = rates.clone();
            move |read: &OomdReading| by_pgscan_rate(unit, &rates, read).map(|(group, _)| group)
        };
        assert_eq!(order(by_scan(root), flat), [0, 2, 3, 1, 4, 6]);
        // 1 is below 0, and 2 below 1.
        let nested = [Some(root), Some(0), Some(1), Some(root), Some(root), Some(root), Some(root)];
        assert_eq!(order(by_scan(1), groups(nested)), [2, 1]);
    }

    #[test]
    fn memory_and_swap_are_below_as_in_systemds_own_test() {
        let below = |mem_used: u64, swap_used: u64| {
            let total = 20_971_512;
            let meminfo = MeminfoReading {
                mem_total: total,
                mem_available: total - mem_used,
                swap_total: total,
                swap_free: total - swap_used,
                ..MeminfoReading::default()
            };
            let options = OomdOptions {
                swap_used_limit: 8000,
                swap_units: vec![0],
                pressure_units: Vec::new(),
                perturb_ns: 0,
            };
            let group = OomdGroupReading {
                swap_current: swap_used * 1024,
                nr_processes: 1,
                ..OomdGroupReading::default()
            };
            let read = OomdReading { meminfo, groups: vec![group] };
            SystemdOomd::new(options).look_at_swap(&read).is_some()
        };
        assert!(!below(3_310_136, 20_971_440), "memory is free");
        assert!(!below(20_971_440, 3_310_136), "swap is free");
        assert!(below(20_971_440, 20_971_440));
    }

    #[test]
    fn a_group_with_oom_group_is_one_candidate() {
        let mut groups = groups([None, Some(0), Some(1), Some(0), Some(3), None, None]);
        groups[1].kills_as_one = true;
        let read = OomdReading { groups, ..OomdReading::default() };
        let found: Vec<u32> = candidates(&[0], &read).iter().map(|group| group.group).collect();
        assert_eq!(found, [1, 4]);
    }

    #[test]
    fn pressures_are_stored_with_eleven_bits() {
        assert_eq!(loadavg(6000), 60 << 11);
        assert_eq!(loadavg(111), (1 << 11) + 225);
    }
}
