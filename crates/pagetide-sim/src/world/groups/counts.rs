//! Counters and levels of groups, for phases and for the record.
//!
//! Invariant: only existing groups are counted.

use super::GroupCounts;
use crate::world::SimWorld;
use pagetide_core::groups::memcg::MemoryEvent;
use pagetide_core::process::Machine;
use pagetide_core::units::MemcgId;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::ScopeKind;

const EVENTS: [(MemoryEvent, [&MetricDecl; 2]); 6] = [
    (MemoryEvent::Low, [declared::EVENTS_LOW, declared::LOCAL_EVENTS_LOW]),
    (MemoryEvent::High, [declared::EVENTS_HIGH, declared::LOCAL_EVENTS_HIGH]),
    (MemoryEvent::Max, [declared::EVENTS_MAX, declared::LOCAL_EVENTS_MAX]),
    (MemoryEvent::Oom, [declared::EVENTS_OOM, declared::LOCAL_EVENTS_OOM]),
    (MemoryEvent::OomKill, [declared::EVENTS_OOM_KILL, declared::LOCAL_EVENTS_OOM_KILL]),
    (
        MemoryEvent::OomGroupKill,
        [declared::EVENTS_OOM_GROUP_KILL, declared::LOCAL_EVENTS_OOM_GROUP_KILL],
    ),
];

/// Most groups for which phases report each group.
const REPORTED_GROUPS_MAX: usize = 16;

impl SimWorld {
    /// Counters and levels of the groups, if there are few enough to report.
    pub(crate) fn group_counts(&self) -> Vec<GroupCounts> {
        if self.groups.memcgs.len() > REPORTED_GROUPS_MAX {
            return Vec::new();
        }
        self.counts_of_groups().collect()
    }

    /// Counters and levels of the existing groups.
    pub(crate) fn counts_of_groups(&self) -> impl Iterator<Item = GroupCounts> + '_ {
        let there = (0..self.groups.memcgs.len()).filter(|&group| self.groups.exists(group));
        there.map(|group| self.counts_of_group(group))
    }

    pub(super) fn counts_of_group(&self, group: usize) -> GroupCounts {
        let asked = self.setup.requested_group_metrics.iter();
        let mut counts = match self.groups.memcgs[group] {
            Some(memcg) => {
                let mut counts = counts_of(&self.machine, group, memcg);
                let asked = asked.map(|&name| (name, asked_level(&self.machine, memcg, name)));
                counts.levels.extend(asked);
                counts
            }
            None => {
                let is_it = |name: &&&str| **name == declared::CONTROLLERS_MEMORY.name;
                let levels = asked.filter(is_it).map(|&name| (name, 0)).collect();
                GroupCounts { group, levels, counts: Vec::new() }
            }
        };
        counts.counts.extend(self.cpus.group_counts(group));
        counts
    }
}

/// The value of a metric that is reported on request ([`declared::ON_REQUEST`]).
fn asked_level(machine: &Machine, memcg: MemcgId, name: &str) -> u64 {
    if name == declared::DYING_DESCENDANTS.name {
        return machine.nr_descendants(memcg).1;
    }
    if name == declared::CONTROLLERS_MEMORY.name {
        return 1;
    }
    let text = machine.read_group_control(memcg, name, 0);
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(declared::NO_LIMIT)
}

fn counts_of(machine: &Machine, group: usize, memcg: MemcgId) -> GroupCounts {
    let it = &machine.memcgs()[memcg];
    let page_size = machine.page_size();
    let mut levels = vec![
        (declared::MEMORY_CURRENT.name, page_size.bytes_of(machine.memcg_usage(memcg))),
        (declared::MEMORY_SWAP_CURRENT.name, page_size.bytes_of(it.swap.usage)),
    ];
    let is_reported = |name: &str| declared::find(ScopeKind::PhaseGroup, name).is_some();
    let sizes = machine.memory_stat_sizes(memcg);
    levels.extend(sizes.into_iter().filter(|(name, _)| is_reported(name)));
    let mut counts = machine.memcg_events(memcg).rows();
    counts.extend(EVENTS.iter().flat_map(|(event, [metric, local])| {
        let at = *event as usize;
        [(metric.name, it.memory_events[at]), (local.name, it.memory_events_local[at])]
    }));
    GroupCounts { group, levels, counts }
}
