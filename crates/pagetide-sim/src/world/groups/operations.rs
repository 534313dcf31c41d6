//! Operations of tasks on groups: create, remove and join them, and write their control files.
//!
//! A write that reclaims is a call and may sleep. An error of the kernel becomes a note of the run,
//! and the task goes on, like a shell script without `set -e`.
//!
//! Invariant: `groups[i]` is the memcg of the setup's group `i` exactly while that exists.

use crate::scheduler::TaskId;
use crate::task::{GroupCounts, GroupTotals, SimTask};
use crate::world::SimWorld;
use pagetide_core::config::Sysctl;
use pagetide_core::control::{ControlError, ControlWrite};
use pagetide_core::groups::memcg::{MemoryEvent, ROOT};
use pagetide_core::interface::effect::Effects;
use pagetide_core::process::Machine;
use pagetide_core::process::ProcessCall;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{Cpu, MemcgId, Nanos};
use pagetide_scenario::costs::Price;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::ScopeKind;
use pagetide_scenario::model::{self, TargetWrite};
use pagetide_scenario::op::Op;
use pagetide_scenario::workload::{CreateGroup, JoinGroup, RemoveGroup, Workload, WriteControl};

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
    /// Performs a phase's operation on groups. Returns its CPU time.
    pub(crate) fn group_op(
        &mut self,
        id: usize,
        op: Op,
        phase: u32,
        cpu: Cpu,
        elapsed: Nanos,
    ) -> Nanos {
        let node = self.machine.mem.cpu_node(cpu);
        let syscall = self.cpus.meter.charge(Price::Syscall, 1);
        let entered = elapsed + syscall;
        let mm = self.tasks[id].mm;
        let workload = self.setup.tasks[id].phases[phase as usize].workload.clone();
        match workload {
            Workload::WriteControl(WriteControl { write: TargetWrite::Machine(write) }) => {
                // The writing task compacts, and its write returns when that is done.
                if matches!(write, ControlWrite::Sysctl(Sysctl::CompactMemory, _)) {
                    self.begin_call(id, ProcessCall::compact_memory(mm, node), op, entered);
                } else {
                    let written = self.machine.apply_writes(&[write]).map(|effects| {
                        self.cpus.hold(effects, cpu);
                    });
                    if let Err(error) = written {
                        self.note(format!("task `{}`: {error}", self.tasks[id].name));
                    }
                }
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::Group(group, write) })
                if write.control.is_of_cpu() && self.group_exists(group) =>
            {
                match write.check() {
                    Ok(()) => self.write_cpu_control(group, write),
                    Err(error) => self.note_error(id, group, &error),
                }
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::Group(group, write) }) => {
                let Some(memcg) = self.groups[group] else {
                    self.note_refusal(id, phase, Errno::Enoent);
                    return syscall;
                };
                let written = self.machine.apply_group_write(memcg, write);
                let written = written.map(|(write, effects)| {
                    self.cpus.hold(effects, cpu);
                    write
                });
                match written {
                    Ok(None) => {}
                    Ok(Some(write)) => {
                        let call = ProcessCall::group_write(mm, node, write);
                        self.begin_call(id, call, op, entered);
                    }
                    Err(error) => self.note_error(id, group, &error),
                }
            }
            Workload::CreateGroup(CreateGroup { group }) => {
                if let Err(error) = self.create_group(group) {
                    let (task, group) = (&self.tasks[id].name, &self.setup.groups[group].name);
                    self.note(format!("task `{task}`: making group `{group}`: {error}"));
                }
            }
            Workload::RemoveGroup(RemoveGroup { group }) => {
                if let Err(errno) = self.remove_group(group, cpu) {
                    self.note_refusal(id, phase, errno);
                }
            }
            Workload::JoinGroup(JoinGroup { group }) => {
                let is_there = group.is_none_or(|group| self.group_exists(group));
                let payer = self.charged_memcg(group).filter(|_| is_there).ok_or(Errno::Enoent);
                let moved = payer.and_then(|memcg| {
                    let effects = self.machine.move_mm(mm, memcg)?;
                    self.cpus.hold(effects, cpu);
                    Ok(())
                });
                match moved {
                    Ok(()) => {
                        let leader = self.tasks[id].leader;
                        self.tasks[leader].group = group;
                        for thread in self.threads_of(leader) {
                            if !self.tasks[thread].is_over() {
                                self.cpus.move_to_group(thread, group, self.now);
                            }
                            self.report_pressure(thread as TaskId);
                        }
                    }
                    Err(errno) => self.note_refusal(id, phase, errno),
                }
            }
            _ => unreachable!("not an operation on groups"),
        }
        syscall + self.take_work()
    }

    fn create_group(&mut self, group: usize) -> Result<(), GroupError> {
        if self.group_exists(group) {
            return Err(Errno::Eexist.into());
        }
        let model = &self.setup.groups[group];
        if model.parent.is_some_and(|parent| !self.group_exists(parent)) {
            return Err(Errno::Enoent.into());
        }
        if model.has_memory {
            let parent = self.charged_memcg(model.parent).ok_or(Errno::Enoent)?;
            self.groups[group] = Some(make_group(&mut self.machine, model, parent, self.now)?);
        } else {
            self.groups_without_memory.insert(group);
        }
        self.cpus.renew_group(group, &self.setup.groups[group].controls, self.now);
        Ok(())
    }

    fn remove_group(&mut self, group: usize, cpu: Cpu) -> Result<(), Errno> {
        if !self.group_exists(group) {
            return Err(Errno::Enoent);
        }
        let of_it = |task: &SimTask| task.group == Some(group) && !task.is_over();
        let has_groups = (0..self.setup.groups.len()).any(|other| {
            self.setup.groups[other].parent == Some(group) && self.group_exists(other)
        });
        if has_groups || self.tasks.iter().any(of_it) {
            return Err(Errno::Ebusy);
        }
        let counts = self.counts_of_group(group);
        let mut totals = None;
        if let Some(memcg) = self.groups[group] {
            let had = self.totals_of_group(memcg);
            let effects = self.machine.remove_memcg(memcg)?;
            self.cpus.hold(effects, cpu);
            self.slab_samples.look_at(group, &had);
            totals = Some(had);
        }
        self.last_counts.insert(group, (counts, totals));
        self.groups[group] = None;
        self.groups_without_memory.remove(&group);
        self.note_removed(group);
        Ok(())
    }

    /// True if a group exists, with or without a memory controller.
    pub(crate) fn group_exists(&self, group: usize) -> bool {
        self.groups[group].is_some() || self.groups_without_memory.contains(&group)
    }

    /// The memcg that is charged for tasks of a group: its own, or that of an ancestor.
    fn charged_memcg(&self, group: Option<usize>) -> Option<MemcgId> {
        self.setup.charged_group(group).map_or(Some(ROOT), |payer| self.groups[payer])
    }

    /// A write failed after reclaim.
    pub(crate) fn group_write_refused(&mut self, id: usize, op: Op, errno: Errno) {
        if let Op::Group { phase } = op {
            self.note_refusal(id, phase, errno);
        }
    }

    fn note_error(&mut self, id: usize, group: usize, error: &ControlError) {
        let (task, group) = (&self.tasks[id].name, &self.setup.groups[group].name);
        self.note(format!("task `{task}`, group `{group}`: {error}"));
    }

    fn note_refusal(&mut self, id: usize, phase: u32, errno: Errno) {
        let task = &self.setup.tasks[id];
        let phase = &task.phases[phase as usize];
        let group = |group: usize| &self.setup.groups[group].name;
        let what = match &phase.workload {
            Workload::WriteControl(WriteControl { write: TargetWrite::Group(at, write) }) => {
                let name = write.control.name();
                format!("writing `{write}` to {name} of group `{}`", group(*at))
            }
            Workload::RemoveGroup(RemoveGroup { group: at }) => {
                format!("removing group `{}`", group(*at))
            }
            Workload::JoinGroup(JoinGroup { group: Some(at) }) => {
                format!("joining group `{}`", group(*at))
            }
            _ => format!("phase `{}`", phase.name),
        };
        self.note(format!("task `{}`: {what} was refused with {errno}", task.name));
    }

    pub(crate) fn note(&mut self, note: String) {
        *self.notes.entry(note).or_default() += 1;
    }

    /// Counters and levels of the groups, if there are few enough to report.
    pub(crate) fn group_counts(&self) -> Vec<GroupCounts> {
        if self.groups.len() > REPORTED_GROUPS_MAX {
            return Vec::new();
        }
        self.counts_of_groups().collect()
    }

    /// Counters and levels of the existing groups.
    pub(crate) fn counts_of_groups(&self) -> impl Iterator<Item = GroupCounts> + '_ {
        let there = (0..self.groups.len()).filter(|&group| self.group_exists(group));
        there.map(|group| self.counts_of_group(group))
    }

    /// Counters and levels of an existing group.
    fn counts_of_group(&self, group: usize) -> GroupCounts {
        let asked = self.setup.requested_group_metrics.iter();
        let mut counts = match self.groups[group] {
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

    /// Usage, peaks and stall times of a group since its creation.
    pub(crate) fn totals_of_group(&self, memcg: MemcgId) -> GroupTotals {
        let it = &self.machine.memcgs()[memcg];
        GroupTotals {
            usage: self.machine.memcg_usage(memcg),
            kmem: it.kmem.usage,
            peak: it.memory.peak,
            kmem_peak: it.kmem.peak,
            some_ns: it.psi.some_ns,
            full_ns: it.psi.full_ns,
        }
    }

    /// Counts of the groups that do not exist now, at their last removal.
    pub(crate) fn removed_groups(
        &self,
    ) -> impl Iterator<Item = &(GroupCounts, Option<GroupTotals>)> {
        let gone = self.last_counts.values();
        gone.filter(|(counts, _)| !self.group_exists(counts.group))
    }

    /// Index and memcg of the existing groups.
    pub fn groups(&self) -> impl Iterator<Item = (usize, MemcgId)> + '_ {
        let there = self.groups.iter().enumerate();
        there.filter_map(|(group, memcg)| memcg.map(|memcg| (group, memcg)))
    }
}

/// Error of creating a group.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// mkdir failed.
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

/// Memory levels and event counts of a group.
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
