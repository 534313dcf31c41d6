//! Operations of tasks on groups: create, remove and join them, and write their control files.
//!
//! A write that reclaims is a call and may sleep. An error of the kernel becomes a note of the run,
//! and the task goes on, like a shell script without `set -e`.
//!
//! Invariant: a group with groups or tasks in it is not removed.

use crate::scheduler::TaskId;
use crate::task::SimTask;
use crate::world::groups::GroupTotals;
use crate::world::SimWorld;
use pagetide_core::config::Sysctl;
use pagetide_core::control::{ControlError, ControlWrite};
use pagetide_core::process::ProcessCall;
use pagetide_core::swap::zram::ZramWrite;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::model::TargetWrite;
use pagetide_scenario::op::Op;
use pagetide_scenario::workload::{CreateGroup, JoinGroup, RemoveGroup, Workload, WriteControl};

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
                    match self.machine.apply_writes(&[write]) {
                        Ok(effects) => self.cpus.hold(effects, cpu),
                        Err(error) => {
                            self.results.note(format!("task `{}`: {error}", self.tasks[id].name));
                        }
                    }
                }
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::Zram(write) }) => {
                match write {
                    _ if self.machine.zram_levels().is_none() => {
                        self.note_refusal(id, phase, Errno::Enoent);
                    }
                    // The writing task waits for each page.
                    ZramWrite::Writeback(mode) => {
                        let call = ProcessCall::zram_writeback(mm, node, mode);
                        self.begin_call(id, call, op, entered);
                    }
                    ZramWrite::Idle | ZramWrite::Limit(_) | ZramWrite::LimitEnable(_) => {
                        self.machine.write_zram(write);
                    }
                }
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::LruGen(write) }) => {
                self.begin_call(id, ProcessCall::lru_gen(mm, node, write), op, entered);
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::Group(group, write) })
                if write.control.is_of_cpu() && self.groups.exists(group) =>
            {
                match write.check() {
                    Ok(()) => self.write_cpu_control(group, write),
                    Err(error) => self.note_error(id, group, &error),
                }
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::Group(group, write) }) => {
                let Some(memcg) = self.groups.memcgs[group] else {
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
                let (setup, now) = (&self.setup, self.now);
                match self.groups.create(group, setup, &mut self.machine, now) {
                    Ok(()) => self.cpus.renew_group(group, &setup.groups[group].controls, now),
                    Err(error) => {
                        let (task, group) = (&self.tasks[id].name, &self.setup.groups[group].name);
                        self.results
                            .note(format!("task `{task}`: making group `{group}`: {error}"));
                    }
                }
            }
            Workload::RemoveGroup(RemoveGroup { group }) => {
                if let Err(errno) = self.remove_group(group, cpu) {
                    self.note_refusal(id, phase, errno);
                }
            }
            Workload::JoinGroup(JoinGroup { group }) => {
                let is_there = group.is_none_or(|group| self.groups.exists(group));
                let payer = self.groups.charged(&self.setup, group).filter(|_| is_there);
                let moved = payer.ok_or(Errno::Enoent).and_then(|memcg| {
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

    fn remove_group(&mut self, group: usize, cpu: Cpu) -> Result<(), Errno> {
        if !self.groups.exists(group) {
            return Err(Errno::Enoent);
        }
        let of_it = |task: &SimTask| task.group == Some(group) && !task.is_over();
        let has_groups = (0..self.setup.groups.len()).any(|other| {
            self.setup.groups[other].parent == Some(group) && self.groups.exists(other)
        });
        if has_groups || self.tasks.iter().any(of_it) {
            return Err(Errno::Ebusy);
        }
        let counts = self.counts_of_group(group);
        let mut totals = None;
        if let Some(memcg) = self.groups.memcgs[group] {
            let had = GroupTotals::of(&self.machine, memcg);
            let effects = self.machine.remove_memcg(memcg)?;
            self.cpus.hold(effects, cpu);
            self.results.slab_samples.look_at(group, &had);
            totals = Some(had);
        }
        self.groups.note_removed(counts, totals);
        self.results.note_removed(group);
        Ok(())
    }

    /// A write failed after reclaim.
    pub(crate) fn group_write_refused(&mut self, id: usize, op: Op, errno: Errno) {
        if let Op::Group { phase } = op {
            self.note_refusal(id, phase, errno);
        }
    }

    fn note_error(&mut self, id: usize, group: usize, error: &ControlError) {
        let (task, group) = (&self.tasks[id].name, &self.setup.groups[group].name);
        self.results.note(format!("task `{task}`, group `{group}`: {error}"));
    }

    fn note_refusal(&mut self, id: usize, phase: u32, errno: Errno) {
        let task = &self.setup.tasks[id];
        let phase = &task.phases[phase as usize];
        let group = |group: usize| &self.setup.groups[group].name;
        let mut why = "";
        let what = match &phase.workload {
            Workload::WriteControl(WriteControl { write: TargetWrite::Group(at, write) }) => {
                let name = write.control.name();
                format!("writing `{write}` to {name} of group `{}`", group(*at))
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::Zram(write) }) => {
                format!("the write to {}", write.name())
            }
            Workload::WriteControl(WriteControl { write: TargetWrite::LruGen(write) }) => {
                why = lru_gen_hint(errno, self.machine.config.lru_gen_enabled & 1 != 0);
                format!("the write of `{write}` to lru_gen")
            }
            Workload::RemoveGroup(RemoveGroup { group: at }) => {
                format!("removing group `{}`", group(*at))
            }
            Workload::JoinGroup(JoinGroup { group: Some(at) }) => {
                format!("joining group `{}`", group(*at))
            }
            _ => format!("phase `{}`", phase.name),
        };
        self.results.note(format!("task `{}`: {what} was refused with {errno}{why}", task.name));
    }
}

/// The needs of a command to lru_gen, to be appended to its error.
const fn lru_gen_hint(errno: Errno, is_on: bool) -> &'static str {
    match errno {
        _ if !is_on => ": generations are off (lru_gen.enabled)",
        Errno::Erange => ": the group has as many generations as there can be",
        _ => {
            ": it needs a group, a node and the group's youngest generation (to age) or one that is \
             older by two or more (to evict), as `pagetide inspect FILE lru_gen --at TIME` prints them"
        }
    }
}
