//! The groups of the setup: which exist, and the memcg of each.
//!
//! Invariant: `memcgs[i]` is the memcg of the setup's group `i` exactly while that exists.

mod counts;
mod operations;

use pagetide_core::control::ControlError;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::Effects;
use pagetide_core::process::Machine;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{Cpu, MemcgId, Nanos};
use pagetide_scenario::model::{self, Setup};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub struct GroupCounts {
    /// Index of the group in the setup.
    pub group: usize,
    /// Sizes in bytes, by the names of memory.stat.
    pub levels: Vec<(&'static str, u64)>,
    /// Counts, by the names of memory.stat and memory.events.
    pub counts: Vec<(&'static str, u64)>,
}

impl GroupCounts {
    pub fn since(&mut self, before: &[GroupCounts]) {
        let Some(before) = before.iter().find(|before| before.group == self.group) else { return };
        for ((_, count), (_, before)) in self.counts.iter_mut().zip(&before.counts) {
            // The counters of a group that was removed and created again start at 0.
            *count = count.saturating_sub(*before);
        }
    }
}

/// Usage, peaks and PSI stall times of a group since its creation.
#[derive(Clone, Copy, Debug)]
pub struct GroupTotals {
    pub usage: u64,
    pub kmem: u64,
    pub peak: u64,
    pub kmem_peak: u64,
    pub some_ns: Nanos,
    pub full_ns: Nanos,
}

impl GroupTotals {
    pub fn of(machine: &Machine, memcg: MemcgId) -> GroupTotals {
        let it = &machine.memcgs()[memcg];
        GroupTotals {
            usage: machine.memcg_usage(memcg),
            kmem: it.kmem.usage,
            peak: it.memory.peak,
            kmem_peak: it.kmem.peak,
            some_ns: it.psi.some_ns,
            full_ns: it.psi.full_ns,
        }
    }
}

/// The groups, by index in the setup.
#[derive(Debug)]
pub(crate) struct SimGroups {
    /// `None`: the group does not exist, or has no memory controller.
    pub memcgs: Vec<Option<MemcgId>>,
    without_memory: BTreeSet<usize>,
    /// Counts of groups at their last removal.
    last_counts: BTreeMap<usize, (GroupCounts, Option<GroupTotals>)>,
}

impl SimGroups {
    pub fn new(setup: &Setup, memcgs: Vec<Option<MemcgId>>) -> SimGroups {
        let groups = setup.groups.iter().enumerate();
        let without_memory = groups.filter(|(_, group)| group.at_start && !group.has_memory);
        SimGroups {
            memcgs,
            without_memory: without_memory.map(|(group, _)| group).collect(),
            last_counts: BTreeMap::new(),
        }
    }

    /// True if a group exists, with or without a memory controller.
    pub fn exists(&self, group: usize) -> bool {
        self.memcgs[group].is_some() || self.without_memory.contains(&group)
    }

    /// The memcg that is charged for tasks of a group: its own, or that of an ancestor.
    pub(crate) fn charged(&self, setup: &Setup, group: Option<usize>) -> Option<MemcgId> {
        setup.charged_group(group).map_or(Some(ROOT), |payer| self.memcgs[payer])
    }

    /// Index and memcg of the existing groups.
    pub fn iter(&self) -> impl Iterator<Item = (usize, MemcgId)> + '_ {
        let there = self.memcgs.iter().enumerate();
        there.filter_map(|(group, memcg)| memcg.map(|memcg| (group, memcg)))
    }

    /// Counts of the groups that do not exist now, at their last removal.
    pub fn removed(&self) -> impl Iterator<Item = &(GroupCounts, Option<GroupTotals>)> {
        self.last_counts.values().filter(|(counts, _)| !self.exists(counts.group))
    }

    fn create(
        &mut self,
        group: usize,
        setup: &Setup,
        machine: &mut Machine,
        now: Nanos,
    ) -> Result<(), GroupError> {
        if self.exists(group) {
            return Err(Errno::Eexist.into());
        }
        let model = &setup.groups[group];
        if model.parent.is_some_and(|parent| !self.exists(parent)) {
            return Err(Errno::Enoent.into());
        }
        if model.has_memory {
            let parent = self.charged(setup, model.parent).ok_or(Errno::Enoent)?;
            self.memcgs[group] = Some(make_group(machine, model, parent, now)?);
        } else {
            self.without_memory.insert(group);
        }
        Ok(())
    }

    fn note_removed(&mut self, counts: GroupCounts, totals: Option<GroupTotals>) {
        let group = counts.group;
        self.last_counts.insert(group, (counts, totals));
        self.memcgs[group] = None;
        self.without_memory.remove(&group);
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    #[error("{0}")]
    Mkdir(Errno),
    /// A control file rejected its value, so the group was removed again.
    #[error("{0}")]
    Control(ControlError),
}

impl From<Errno> for GroupError {
    fn from(errno: Errno) -> GroupError {
        GroupError::Mkdir(errno)
    }
}

/// Creates a group and writes its control files. If a write fails, removes the group.
pub(crate) fn make_group(
    machine: &mut Machine,
    model: &model::Group,
    parent: MemcgId,
    now: Nanos,
) -> Result<MemcgId, GroupError> {
    let memcg = machine.create_memcg(model.name.clone(), parent)?;
    machine.charge_counters(memcg, Cpu(0), now);
    for &write in &model.controls {
        let written = machine.apply_group_write(memcg, write);
        let refused = written.map(|(left, effects)| {
            // An empty group has nothing to reclaim, so writes return at once, without effects.
            debug_assert!(left.is_none() && effects.is_empty(), "{write:?}: {effects:?}");
            effects.discard();
        });
        if let Err(error) = refused {
            let removed = machine.remove_memcg(memcg).map(Effects::discard);
            debug_assert_eq!(removed, Ok(()), "a new group is empty");
            return Err(GroupError::Control(error));
        }
    }
    Ok(memcg)
}
