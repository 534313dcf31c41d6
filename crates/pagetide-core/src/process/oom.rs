//! The out-of-memory killer's choice.
//!
//! Linux: mm/oom_kill.c. The address space with the most resident and swapped pages and page tables
//! dies; ties go to the older one. One victim at a time: while a victim is still exiting no other is
//! chosen. If a group cannot stay below its limit, the victim is a task of this group or of a group
//! below it.
//!
//! Difference from Linux: no `oom_score_adj`.

use super::MmId;
use crate::effect::Effect;
use crate::event::TraceEvent;
use crate::memcg::MemoryEvent;
use crate::process::Machine;
use crate::units::MemcgId;
use crate::vmstat::Event;

impl Machine {
    /// Kills somebody of a group or below it; of anybody, for the root. Returns whether memory can be
    /// expected: a victim was chosen or is dying.
    pub(crate) fn oom_kill_process(&mut self, scope: MemcgId, asker: MmId) -> bool {
        let in_scope = |mm: &super::Mm| self.is_descendant(mm.memcg, scope);
        if self.owners.dying.iter().any(|mm| in_scope(&self.owners.mms[mm.idx()])) {
            return true;
        }
        let badness = |mm: &super::Mm| -> u64 {
            mm.vmas
                .iter()
                .map(|vma| {
                    let vma = &self.owners.vmas[vma.idx()];
                    let tables = vma.tables.iter().filter(|table| table.is_some()).count() as u64;
                    vma.nr_present + vma.nr_swapped + tables
                })
                .sum()
        };
        let mut victim: Option<(u64, usize)> = None;
        for &id in &self.owners.living {
            let (id, mm) = (id.idx(), &self.owners.mms[id.idx()]);
            if mm.oom_victim || !in_scope(mm) {
                continue;
            }
            let points = badness(mm);
            if points > 0 && victim.is_none_or(|(most, _)| points > most) {
                victim = Some((points, id));
            }
        }
        // Who has nothing but kernel memory would be a process with a program and a stack. Of several the
        // one that asks is meant, or the first that has ever asked for anything.
        let others = self.owners.living.iter().map(|mm| mm.idx());
        let mut asked = core::iter::once(asker.idx()).chain(others);
        let victim = victim.or_else(|| {
            let id = asked.find(|&id| {
                let mm = self.owners.mms.get(id);
                mm.is_some_and(|mm| mm.begun && !mm.exited && !mm.oom_victim && in_scope(mm))
            })?;
            Some((0, id))
        });
        let Some((_, id)) = victim else { return false };
        self.owners.mms[id].oom_victim = true;
        self.owners.dying.push(MmId(id as u32));
        self.mem.vmstat.count(Event::OomKill);
        let (victim, memcg) = (MmId(id as u32), self.owners.mms[id].memcg);
        self.memory_event(memcg, MemoryEvent::OomKill);
        self.events.record(TraceEvent::MarkVictim { victim, memcg, oom_memcg: scope });
        self.effects.push(Effect::OomKill(victim));
        true
    }
}
