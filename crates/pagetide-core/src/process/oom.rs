//! The OOM killer: choice of its victim.
//!
//! Linux: mm/oom_kill.c `oom_badness`, `oom_kill_process`, mm/memcontrol.c
//! `mem_cgroup_get_oom_group` (6.1). The address space with the most resident pages, swapped pages
//! and page tables dies; `oom_score_adj` adds thousandths of the memory that the tasks compete for.
//! In a tie the younger one dies. While a victim exits, no other is chosen. If a group cannot stay
//! below its limit, the victim is a task of that group or of a descendant. `memory.oom.group`
//! counts in the victim's group and its ancestors, up to the group that is out of memory. All tasks
//! of the highest group that has it set die too.
//!
//! Invariant: an address space with [`OOM_SCORE_ADJ_MIN`] is never killed.

use super::{Mm, MmId, OOM_SCORE_ADJ_MAX, OOM_SCORE_ADJ_MIN};
use crate::groups::memcg::{MemoryEvent, ROOT};
use crate::groups::Groups;
use crate::interface::bad_id::BadId;
use crate::interface::effect::Effect;
use crate::interface::kernel::Kernel;
use crate::process::Machine;
use crate::process::Processes;
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::Event;
use crate::units::MemcgId;
use alloc::vec::Vec;

impl Groups {
    /// The highest group with `memory.oom.group` between a victim's group and `scope`, both
    /// included (Linux `mem_cgroup_get_oom_group`).
    fn oom_group_of(&self, memcg: MemcgId, scope: MemcgId) -> Option<MemcgId> {
        let mut found = None;
        let mut at = memcg;
        while at.is_some() && at != ROOT {
            if self.memcgs[at].oom_group {
                found = Some(at);
            }
            if at == scope {
                break;
            }
            at = self.memcgs[at].parent;
        }
        found
    }
}

impl Processes {
    /// Size of an address space in pages: resident, swapped, and page tables.
    fn size_of_mm(&self, mm: &Mm) -> u64 {
        let vmas = mm.vmas.iter().map(|vma| &self.vmas[*vma]);
        vmas.map(|vma| vma.nr_present + vma.nr_swapped + u64::from(vma.nr_tables)).sum()
    }
}

impl Kernel {
    /// Memory and swap that the tasks in scope compete for, up to the group's limits (Linux
    /// `constrained_alloc`, `mem_cgroup_get_max`).
    fn oom_total_pages(&self, scope: MemcgId) -> u64 {
        let swap = u64::from(self.swap.usable());
        if scope == ROOT {
            let zones = self.mem.nodes.iter().flat_map(|node| &node.zones);
            return zones.map(|zone| zone.managed).sum::<u64>() + swap;
        }
        let group = &self.groups.memcgs[scope];
        let swaps = self.memcg_swappiness(scope) > 0;
        group.memory.max + if swaps { group.swap.max.min(swap) } else { 0 }
    }
}

impl Machine {
    /// Writes `/proc/PID/oom_score_adj`, clamped to its bounds.
    ///
    /// # Errors
    /// [`BadId::Mm`] if the address space does not exist.
    pub fn set_oom_score_adj(&mut self, mm: MmId, adj: i16) -> Result<(), BadId> {
        let space = self.owners.mms.get_mut(mm.idx()).filter(|mm| !mm.exited);
        let space = space.ok_or(BadId::Mm(mm))?;
        space.oom_score_adj = adj.clamp(OOM_SCORE_ADJ_MIN, OOM_SCORE_ADJ_MAX);
        Ok(())
    }

    /// `/proc/PID/oom_score`: the badness in the whole machine, scaled to 0..2000 (Linux
    /// `proc_oom_score`, fs/proc/base.c 6.1). 0 for an address space that has ended.
    pub fn oom_score(&self, mm: MmId) -> i64 {
        let Some(space) = self.owners.mms.get(mm.idx()).filter(|mm| !mm.exited) else { return 0 };
        if space.oom_score_adj == OOM_SCORE_ADJ_MIN {
            return 0;
        }
        let total = self.oom_total_pages(ROOT) as i64;
        let size = self.owners.size_of_mm(space) as i64;
        let points = size + i64::from(space.oom_score_adj) * (total / 1000);
        (1000 + points * 1000 / total.max(1)) * 2 / 3
    }

    /// `VmRSS` of an address space in pages.
    pub fn mm_rss(&self, mm: MmId) -> u64 {
        let space = self.owners.mms.get(mm.idx()).filter(|mm| !mm.exited);
        let vmas = space.into_iter().flat_map(|mm| &mm.vmas);
        vmas.map(|vma| self.owners.vmas[*vma].nr_present).sum()
    }

    /// Whether the OOM killer has chosen an address space (Linux `tsk_is_oom_victim`).
    pub fn is_oom_victim(&self, mm: MmId) -> bool {
        self.owners.mms.get(mm.idx()).is_some_and(|mm| mm.oom_victim)
    }

    /// Kills a task of the group `scope` or of a descendant (for the root: of any group). Returns
    /// whether memory will become free: a victim was chosen or is exiting.
    pub(crate) fn oom_kill_process(&mut self, scope: MemcgId, asker: MmId) -> bool {
        let in_scope = |mm: &Mm| self.groups.is_descendant(mm.memcg, scope);
        if self.owners.dying.iter().any(|mm| in_scope(&self.owners.mms[*mm])) {
            return true;
        }
        let total = self.oom_total_pages(scope);
        let mut victim: Option<(i64, usize)> = None;
        for &id in &self.owners.living {
            let (id, mm) = (id.idx(), &self.owners.mms[id]);
            if mm.oom_victim || mm.oom_score_adj == OOM_SCORE_ADJ_MIN || !in_scope(mm) {
                continue;
            }
            let size = self.owners.size_of_mm(mm) as i64;
            let points = size + i64::from(mm.oom_score_adj) * (total / 1000) as i64;
            // Among equal points the youngest is chosen (Linux `oom_evaluate_task`).
            if size > 0 && victim.is_none_or(|(most, _)| points >= most) {
                victim = Some((points, id));
            }
        }
        // If every candidate has size 0, choose the address space of the requesting task. If that
        // is no candidate, choose the oldest candidate that has ever made a call. (In Linux a
        // process always has a size: its program and its stack.)
        let others = self.owners.living.iter().map(|mm| mm.idx());
        let mut asked = core::iter::once(asker.idx()).chain(others);
        let victim = victim.map(|(_, id)| id).or_else(|| {
            asked.find(|&id| {
                let mm = self.owners.mms.get(id);
                mm.is_some_and(|mm| {
                    let may_die = !mm.oom_victim && mm.oom_score_adj != OOM_SCORE_ADJ_MIN;
                    mm.begun && !mm.exited && may_die && in_scope(mm)
                })
            })
        });
        let Some(victim) = victim else { return false };
        let group = self.groups.oom_group_of(self.owners.mms[victim].memcg, scope);
        self.oom_kill(victim, scope);
        if let Some(group) = group {
            self.groups.memory_event(group, MemoryEvent::OomGroupKill);
            let members: Vec<usize> = self.owners.living.iter().map(|mm| mm.idx()).collect();
            for id in members {
                let mm = &self.owners.mms[id];
                let may_die = mm.oom_score_adj != OOM_SCORE_ADJ_MIN;
                let (memcg, is_dying) = (mm.memcg, mm.oom_victim);
                if !may_die || !self.groups.is_descendant(memcg, group) {
                    continue;
                }
                if is_dying {
                    // Linux kills the chosen victim a second time with its group, and counts both
                    // kills.
                    self.mem.vmstat.count(Event::OomKill);
                    self.groups.memory_event(memcg, MemoryEvent::OomKill);
                } else {
                    self.oom_kill(id, scope);
                }
            }
        }
        true
    }

    fn oom_kill(&mut self, id: usize, scope: MemcgId) {
        self.owners.mms[id].oom_victim = true;
        self.owners.dying.push(MmId(id as u32));
        self.mem.vmstat.count(Event::OomKill);
        let (victim, memcg) = (MmId(id as u32), self.owners.mms[id].memcg);
        self.groups.memory_event(memcg, MemoryEvent::OomKill);
        self.mem.events.record(TraceEvent::MarkVictim { victim, memcg, oom_memcg: scope });
        self.step.effects.push(Effect::OomKill(victim));
    }
}
