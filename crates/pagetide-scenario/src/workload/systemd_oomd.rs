//! Watcher `systemd-oomd`: kills a group when swap is full, or a unit loses too much time to memory.

use super::prelude::*;
use super::watching::WatcherBase;
use crate::load::decode::named;
use crate::load::watcher_values::SystemdPercent;
use crate::names::names;
use pagetide_watcher::systemd_oomd::{OomdOptions, OomdPreference, PressureWatch};

const SECOND: u64 = 1_000_000_000;
/// Number of the root in the options of watchers.
pub const ROOT_GROUP: u32 = u32::MAX;

names! {
    /// Defaults of systemd-oomd.
    "set of defaults" OomdDefaults {
        /// systemd 254: units with a limit of 60 % for 30 s, 90 % of swap.
        Upstream = "upstream",
        /// Fedora: units with a limit of 50 % for 20 s, 90 % of swap.
        Fedora = "fedora",
    }
}
named!(OomdDefaults);

table! {
    /// A unit that systemd-oomd watches: a group, or the root slice.
    OomdUnitTable as "OomdUnit" of "the unit" {
        /// The group, or one copy, `NAME.0` (default: the root slice).
        group: Spanned<GroupTarget>,
        /// ManagedOOMSwap=kill (default false).
        swap: Spanned<bool> = false,
        /// ManagedOOMMemoryPressure=kill (default false).
        pressure: Spanned<bool> = false,
        /// ManagedOOMMemoryPressureLimit= (default: the watcher's).
        limit: Spanned<SystemdPercent>,
        /// ManagedOOMMemoryPressureDurationSec= (default: the watcher's).
        duration: Spanned<Time>,
    }
}

table! {
    /// systemd-oomd: kills a group when swap is full, or a unit loses too much time to memory.
    SystemdOomdKeys of "the watcher systemd-oomd" {
        /// Which defaults the next keys have (default upstream).
        defaults: Spanned<OomdDefaults> = OomdDefaults::Upstream,
        /// SwapUsedLimit=, also of memory (default "90%").
        swap_used_limit: Spanned<SystemdPercent> = SystemdPercent(9000),
        /// DefaultMemoryPressureLimit= (default "60%"; fedora "50%").
        memory_pressure_limit: Spanned<SystemdPercent>,
        /// DefaultMemoryPressureDurationSec= (default 30s; fedora 20s).
        memory_pressure_duration: Spanned<Time>,
        /// Units with ManagedOOMSwap or ManagedOOMMemoryPressure.
        unit: Vec<OomdUnitTable>,
        /// Groups with ManagedOOMPreference=avoid.
        avoid: Vec<Spanned<GroupTarget>>,
        /// Groups with ManagedOOMPreference=omit.
        omit: Vec<Spanned<GroupTarget>>,
        /// Memory of its own that it uses at each look (default 2MiB).
        footprint: Spanned<Size> = Size(2 << 20),
        /// Its memory is locked (default false).
        locked: Spanned<bool> = false,
        /// CPU time of a look in addition to the time for reading (default 0).
        compute: Spanned<Time> = Time(0),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemdOomdWatcher {
    pub base: WatcherBase,
    /// Groups are indices into [`Setup::groups`](crate::model::Setup::groups), or [`ROOT_GROUP`].
    pub options: OomdOptions,
    pub preferences: Vec<(usize, OomdPreference)>,
}

/// A duration of pressure: 0 stands for the default, and less than a second is refused
/// (`config_parse_duration` of systemd 257).
fn checked_duration(given: Option<&Spanned<Time>>, default: u64, sink: &mut ProblemSink) -> u64 {
    let Some(at) = given.filter(|at| at.value.0 > 0) else { return default };
    if at.value.0 < SECOND {
        let hint = "write \"1s\" or more, or 0 for the default";
        sink.hinted(at.span, "systemd-oomd refuses a duration below 1 s", hint);
    }
    at.value.0
}

impl WorkloadSpec for SystemdOomdWatcher {
    type Keys = SystemdOomdKeys;

    fn check(keys: &SystemdOomdKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let footprint = (keys.footprint(), keys.footprint.as_ref());
        let base = WatcherBase::check(footprint, keys.locked(), keys.compute(), phases, sink);
        let (limit, duration) = match keys.defaults() {
            OomdDefaults::Upstream => (6000, 30 * SECOND),
            OomdDefaults::Fedora => (5000, 20 * SECOND),
        };
        let limit = keys.memory_pressure_limit.as_ref().map_or(limit, |at| at.value.0);
        let duration = checked_duration(keys.memory_pressure_duration.as_ref(), duration, sink);
        let units = keys.unit.as_deref().unwrap_or_default();
        if units.is_empty() && !keys.bad.contains(&"unit") {
            let hint = "add [[watcher.unit]] with group, and swap = true or pressure = true";
            sink.hinted(keys.at, "systemd-oomd watches no unit", hint);
        }
        let mut options = OomdOptions {
            swap_used_limit: keys.swap_used_limit().0,
            swap_units: Vec::new(),
            pressure_units: Vec::new(),
            perturb_ns: 0,
        };
        let mut seen = Vec::new();
        for unit in units {
            let group = match &unit.group {
                None if unit.bad.contains(&"group") => continue,
                None => ROOT_GROUP,
                Some(group) => {
                    let file = if unit.swap() { "memory.swap.current" } else { "memory.pressure" };
                    match phases.scene.groups.with_memory(group, file, sink) {
                        Some(group) => group as u32,
                        None => continue,
                    }
                }
            };
            if seen.contains(&group) {
                sink.hinted(unit.at, "this group is a unit twice", "leave out one of them");
                continue;
            }
            seen.push(group);
            if !unit.swap() && !unit.pressure() && unit.bad.is_empty() {
                let hint = "add swap = true or pressure = true";
                sink.hinted(unit.at, "systemd-oomd does nothing for this unit", hint);
            }
            if let (Some(at), false) = (&unit.limit, unit.pressure()) {
                let hint = "add pressure = true, or leave out `limit`";
                sink.hinted(at.span, "`limit` needs ManagedOOMMemoryPressure=kill", hint);
            }
            if unit.swap() {
                options.swap_units.push(group);
            }
            if unit.pressure() {
                // 0 stands for the default.
                let own = unit.limit.as_ref().map(|at| at.value.0).filter(|limit| *limit > 0);
                options.pressure_units.push(PressureWatch {
                    group,
                    limit: own.unwrap_or(limit),
                    duration_ns: checked_duration(unit.duration.as_ref(), duration, sink),
                });
            }
        }
        let mut preferences = Vec::new();
        for (names, preference) in
            [(&keys.omit, OomdPreference::Omit), (&keys.avoid, OomdPreference::Avoid)]
        {
            for name in names.iter().flatten() {
                let group = phases.scene.groups.find_one(name, sink)?;
                preferences.push((group, preference));
            }
        }
        Some(SystemdOomdWatcher { base: base?, options, preferences })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        self.base.stages(phase, planner)
    }

    fn missing_end(&self) -> Option<&'static str> {
        Some("until")
    }
}
