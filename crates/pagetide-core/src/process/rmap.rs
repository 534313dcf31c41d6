//! Reverse mapping: the process layer's answers to questions of the page level ([`Owners`]).
//!
//! Linux: mm/rmap.c (`folio_referenced`, `try_to_unmap`, `try_to_migrate`); also
//! `remove_migration_ptes`, `address_space_operations`. A page may have an entry in each mapping of
//! its object ([`super::object`]).
//!
//! Invariant: an entry reported as removed is no longer in the table or in its mapping's counts.

use super::object::{MemoryObject, ObjectSlot};
use super::page_table::Pte;
use super::policy::OomPolicy;
use super::request::ProcessRequest;
use super::{Machine, Processes};
use crate::ageing::generations::neighbours::LookAround;
use crate::ageing::generations::table_walk::TableWalk;
use crate::ageing::shadow::Shadow;
use crate::audit::Violation;
use crate::frames::page_request::SlowRequest;
use crate::groups::memcg::ReclaimScope;
use crate::interface::call::RequestOwners;
use crate::interface::ctx::Ctx;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Io, Step};
use crate::interface::outcome::Outcome;
use crate::interface::owners::{
    OwnerSlot, Owners, OwnersReport, PageReferences, UnmapResult, UnmapTarget,
};
use crate::swap::content::ContentMixId;
use crate::units::{Cpu, FileId, MemcgId, Nanos, Pfn, Requester};

impl Processes {
    /// Contents of a slot.
    pub(crate) fn slot(&self, object: MemoryObject, index: u32) -> ObjectSlot {
        match object {
            MemoryObject::File(file) => self.files[file].slot(index),
            MemoryObject::Anon(vma) => {
                let entry = self.vmas.get(vma.idx()).and_then(|it| it.ptes.get(index as usize));
                match entry {
                    Some(pte) if pte.is_present() && !pte.is_zero_page() => {
                        ObjectSlot::Frame(pte.pfn())
                    }
                    Some(pte) => match (pte.swap_slot(), pte.migrating()) {
                        (Some(slot), _) => ObjectSlot::Swap(slot),
                        (None, Some((pfn, _))) => ObjectSlot::Frame(pfn),
                        (None, None) => ObjectSlot::Empty,
                    },
                    None => ObjectSlot::Empty,
                }
            }
        }
    }
}

impl RequestOwners for Processes {
    type Request = ProcessRequest;

    fn request_step(
        machine: &mut Machine,
        request: &mut ProcessRequest,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if let Err(outcome) = machine.check_request(request) {
            if let Some(slow) = slow.take() {
                machine.abandon_slow_request(&slow, ctx.asker, ctx.cpu);
            }
            return Step::Done(outcome);
        }
        match request {
            ProcessRequest::Fault(fault) if machine.leaves_two_lists => {
                machine.young_fault_step(fault, slow, ctx)
            }
            ProcessRequest::Fault(fault) => machine.fault_step(fault, slow, ctx),
            ProcessRequest::Read(read) => machine.read_step(read, slow, ctx),
            ProcessRequest::Write(write) => machine.write_step(write, slow, ctx),
            ProcessRequest::KernelAlloc(wanted) => machine.kernel_alloc_step(*wanted, slow, ctx),
            ProcessRequest::Populate(populate) => machine.populate_step(populate, slow, ctx),
            ProcessRequest::MadviseLru(leave) => machine.madvise_lru_step(leave, ctx),
            ProcessRequest::Collapse(collapse) => {
                machine.madvise_collapse_step(collapse, slow, ctx)
            }
        }
    }
}

impl Owners for Processes {
    fn content_mix(&self, at: OwnerSlot) -> ContentMixId {
        let mm = self.vmas.get(at.owner as usize).and_then(|vma| self.mms.get(vma.mm.idx()));
        mm.map_or(ContentMixId::default(), |mm| mm.content)
    }

    fn referenced(
        &mut self,
        at: OwnerSlot,
        mapcount: u16,
        huge: bool,
        within: ReclaimScope,
    ) -> PageReferences {
        let object = MemoryObject::of(at);
        let index = at.index as usize;
        let mut references = PageReferences::default();
        let mut left = mapcount;
        let Processes { files, vmas, mms, .. } = self;
        for mapping in object.mappings(files) {
            let vma = &mut vmas[*mapping];
            references.nr_entries_read += 1;
            if !vma.ptes.get(index).is_some_and(|pte| pte.is_present()) {
                continue;
            }
            let is_foreign = !within.contains(|| mms[vma.mm].memcg);
            let is_young = !is_foreign
                && match huge {
                    true => vma.test_clear_young_huge(at.index.into()),
                    false => vma.ptes[index].test_clear_young(),
                };
            if is_young {
                references.nr += u32::from(vma.advice.counts_references(&within));
                references.executable |= vma.executable;
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        references
    }

    fn referenced_around(
        &mut self,
        at: OwnerSlot,
        mapcount: u16,
        huge: bool,
        within: ReclaimScope,
        around: &mut LookAround<'_>,
    ) -> PageReferences {
        self.look_around(at, mapcount, huge, within, around)
    }

    fn walk_tables(&mut self, walk: &mut TableWalk<'_>) {
        self.walk_tables_of_group(walk);
    }

    fn unmap(&mut self, at: OwnerSlot, mapcount: u16, to: UnmapTarget) -> UnmapResult {
        let object = MemoryObject::of(at);
        let mut unmapped = UnmapResult::default();
        // The cost of an entry that does not map the page was measured for reclaim only.
        let counts_all = !matches!(to, UnmapTarget::Moving(_));
        let Processes { files, vmas, .. } = self;
        for mapping in object.mappings(files) {
            if unmapped.nr == mapcount {
                break;
            }
            let vma = &mut vmas[*mapping];
            unmapped.nr_entries_read += u32::from(counts_all);
            let present = |pte: &&mut Pte| pte.is_present() && !pte.is_zero_page();
            let Some(pte) = vma.ptes.get_mut(at.index as usize).filter(present) else {
                continue;
            };
            let old = *pte;
            *pte = match to {
                UnmapTarget::Swapped(slot) => Pte::swapped(slot),
                UnmapTarget::Unmapped => Pte::EMPTY,
                UnmapTarget::Moving(from) => Pte::migration(from, old.is_dirty()),
            };
            vma.nr_present -= 1;
            vma.nr_swapped += u64::from(matches!(to, UnmapTarget::Swapped(_)));
            unmapped.nr += 1;
            unmapped.nr_entries_read += u32::from(!counts_all);
            unmapped.dirty |= old.is_dirty();
            unmapped.young |= old.is_young();
        }
        unmapped
    }

    fn moved(&mut self, at: OwnerSlot, from: Pfn, to: Pfn, young: bool) -> u16 {
        let object = MemoryObject::of(at);
        let Processes { files, vmas, .. } = self;
        if let (MemoryObject::File(file), true) = (object, from != to) {
            files[file].replace(at.index, to);
        }
        let mut nr = 0;
        for mapping in object.mappings(files) {
            // A page that was read ahead from swap has no mapping yet.
            let Some(vma) = vmas.get_mut(mapping.idx()) else { continue };
            let Some(entry) = vma.ptes.get_mut(at.index as usize) else { continue };
            if let Some((_, dirty)) = entry.migrating().filter(|&(old, _)| old == from) {
                *entry = Pte::map(to, dirty);
                if !young {
                    entry.test_clear_young();
                }
                vma.nr_present += 1;
                nr += 1;
            }
        }
        nr
    }

    fn split(&mut self, at: OwnerSlot) {
        self.vmas[at.owner as usize].split_region(at.index.into());
    }

    #[inline]
    fn is_locked(&self, at: OwnerSlot, huge: bool) -> bool {
        self.is_slot_locked(at, huge)
    }

    fn is_write_congested(&self) -> bool {
        self.writeback.is_congested()
    }

    fn for_each_table_frame(&self, f: &mut dyn FnMut(Pfn)) {
        let tables = self.vmas.iter().flat_map(|vma| &vma.tables);
        tables.filter(|table| table.is_some()).for_each(|&table| f(table));
    }

    fn note_request(&mut self, asker: Requester) -> MemcgId {
        let mm = &mut self.mms[asker];
        mm.begun = true;
        mm.memcg
    }

    #[inline]
    fn generation(&self, asker: Requester) -> Option<u64> {
        self.mms.get(asker.idx()).filter(|mm| !mm.exited).map(|mm| mm.generation)
    }

    fn payer(&self, asker: Requester) -> Option<MemcgId> {
        self.mms.get(asker.idx()).filter(|mm| !mm.exited).map(|mm| mm.memcg)
    }

    fn is_dying(&self, asker: Requester) -> bool {
        self.mms.get(asker.idx()).is_some_and(|mm| mm.oom_victim)
    }

    fn note_over_high(&mut self, asker: Requester, nr: u64) {
        if let Some(mm) = self.mms.get_mut(asker.idx()) {
            mm.nr_over_high += nr;
        }
    }

    #[inline]
    fn take_over_high(&mut self, asker: Requester) -> u64 {
        self.mms.get_mut(asker.idx()).map_or(0, |mm| core::mem::take(&mut mm.nr_over_high))
    }

    fn daemon_step(
        machine: &mut Machine,
        daemon: Daemon,
        cpu: Cpu,
        now: Nanos,
    ) -> Step<DaemonRest> {
        match daemon {
            Daemon::Flusher => machine.flusher_step(now),
            Daemon::Khugepaged => machine.khugepaged_step(cpu, now),
            // Daemons of the page level.
            Daemon::Kswapd(_) | Daemon::Kcompactd(_) | Daemon::Kworker => {
                Step::Done(DaemonRest::UNTIL_WOKEN)
            }
        }
    }

    fn daemon_rest(machine: &Machine, daemon: Daemon) -> DaemonRest {
        match daemon {
            Daemon::Khugepaged => machine.config.khugepaged_first_rest(),
            Daemon::Flusher => machine.owners.writeback.first_rest(),
            Daemon::Kswapd(_) | Daemon::Kcompactd(_) | Daemon::Kworker => DaemonRest::UNTIL_WOKEN,
        }
    }

    fn huge_pages_on(machine: &mut Machine) {
        machine.wake_khugepaged();
    }

    fn undo_outcome(machine: &mut Machine, asker: Requester, outcome: Outcome, cpu: Cpu) {
        if let Outcome::Block(pfn) = outcome {
            machine.free_kernel_block(asker, pfn, cpu);
        }
    }

    fn out_of_memory(machine: &mut Machine, scope: MemcgId, asker: Requester) -> bool {
        match machine.owners.failure.oom {
            OomPolicy::Kill => machine.oom_kill_process(scope, asker),
            OomPolicy::Fail => false,
        }
    }

    fn dirtied(machine: &mut Machine, pfn: Pfn) {
        machine.set_page_dirty(pfn);
    }

    fn write_page(machine: &mut Machine, pfn: Pfn) {
        let page = &machine.mem.pages[pfn];
        let (file, index) = (FileId(page.mapping), page.index);
        machine.begin_file_writeback(pfn);
        machine.submit_file_write(file, index, index + 1);
    }

    fn evict(machine: &mut Machine, pfn: Pfn, shadow: Shadow, cpu: Cpu) {
        machine.remove_from_page_cache(pfn, shadow, cpu);
    }

    fn forget_shadows(machine: &mut Machine, owner: u32, index: u32, cpu: Cpu) {
        machine.forget_shadows_of_node(FileId(owner), index, cpu);
    }

    fn file_page_idle(machine: &mut Machine, pfn: Pfn, cpu: Cpu) {
        machine.reap_file_of(pfn, cpu);
    }

    fn io_done(machine: &mut Machine, io: Io, ok: bool, cpu: Cpu, now: Nanos) {
        machine.file_io_done(io, ok, cpu, now);
    }

    fn dirty_limits_changed(machine: &mut Machine) {
        let (_, thresh) = machine.dirty_limits();
        machine.writeback_set_ratelimit(thresh);
    }

    fn group_removed(machine: &mut Machine, memcg: MemcgId, parent: MemcgId) {
        machine.reparent_writeback(memcg, parent);
    }

    fn wake_writeback(machine: &mut Machine) {
        machine.wakeup_flusher_threads();
    }

    fn drop_caches(machine: &mut Machine, cpu: Cpu) {
        machine.drop_clean_pagecache(cpu);
    }

    fn report(machine: &Machine) -> OwnersReport {
        let processes = &machine.owners;
        OwnersReport {
            nr_committed: processes.committed_pages(),
            dirty_limits: machine.dirty_limits(),
        }
    }

    fn audit(machine: &Machine) -> Result<(), Violation> {
        machine.audit_processes()
    }
}
