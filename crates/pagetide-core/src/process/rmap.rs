//! Reverse mapping: the process layer's answers to questions of the page level ([`Owners`]).
//!
//! Linux: mm/rmap.c (`folio_referenced`, `try_to_unmap`, `try_to_migrate`); also
//! `remove_migration_ptes`, `address_space_operations`. An anonymous page has one entry, in the
//! mapping that it names; a file page may have one in each mapping of the file.
//!
//! Invariant: an entry reported as removed is no longer in the table or in its mapping's counts.

use super::page_table::{Pte, VmaId};
use super::policy::OomPolicy;
use super::request::ProcessRequest;
use super::{Machine, Processes};
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
    BackingStore, OwnerSlot, Owners, OwnersReport, PageReferences, UnmapResult, UnmapTarget,
};
use crate::units::{Cpu, FileId, MemcgId, Nanos, Pfn, Requester};

impl Processes {
    /// Number of mappings that may have an entry for a page.
    fn nr_mappings(&self, at: OwnerSlot) -> usize {
        match at.store {
            BackingStore::Swap => 1,
            BackingStore::Own => self.files[at.owner as usize].mappings.len(),
        }
    }

    /// Mapping `number` of these mappings, and the index of the page's entry in it.
    fn mapping_of(&self, at: OwnerSlot, number: usize) -> Option<(VmaId, usize)> {
        let vma = match at.store {
            BackingStore::Swap => VmaId(at.owner),
            BackingStore::Own => *self.files[at.owner as usize].mappings.get(number)?,
        };
        let index = at.index as usize;
        let mapped = self.vmas.get(vma.idx()).is_some_and(|vma| index < vma.ptes.len());
        mapped.then_some((vma, index))
    }

    /// Replaces an anonymous page's entry by a swap entry.
    fn swap_out(&mut self, at: OwnerSlot, to: Pte) -> UnmapResult {
        let vma = &mut self.vmas[at.owner as usize];
        let pte = core::mem::replace(&mut vma.ptes[at.index as usize], to);
        vma.nr_present -= 1;
        vma.nr_swapped += 1;
        UnmapResult { nr: 1, dirty: pte.is_dirty(), young: pte.is_young(), nr_entries_read: 1 }
    }

    /// Removes the `mapcount` entries of a file page.
    fn unmap_file(&mut self, at: OwnerSlot, mapcount: u16) -> UnmapResult {
        let mut unmapped = UnmapResult::default();
        let Processes { files, vmas, .. } = self;
        for mapping in &files[at.owner as usize].mappings {
            if unmapped.nr == mapcount {
                break;
            }
            let vma = &mut vmas[*mapping];
            unmapped.nr_entries_read += 1;
            let present = |pte: &&mut Pte| pte.is_present();
            let Some(pte) = vma.ptes.get_mut(at.index as usize).filter(present) else {
                continue;
            };
            let old = core::mem::replace(pte, Pte::EMPTY);
            vma.nr_present -= 1;
            unmapped.nr += 1;
            unmapped.dirty |= old.is_dirty();
            unmapped.young |= old.is_young();
        }
        unmapped
    }

    /// Replaces the entries of a page by migration entries.
    fn set_migration_entries(&mut self, at: OwnerSlot, from: Pfn) -> UnmapResult {
        let mut unmapped = UnmapResult::default();
        for number in 0..self.nr_mappings(at) {
            let Some((vma, index)) = self.mapping_of(at, number) else { continue };
            let vma = &mut self.vmas[vma];
            let entry = &mut vma.ptes[index];
            if entry.is_present() && !entry.is_zero_page() && entry.pfn() == from {
                unmapped.young |= entry.is_young();
                *entry = Pte::migration(from, entry.is_dirty());
                vma.nr_present -= 1;
                unmapped.nr += 1;
                unmapped.nr_entries_read += 1;
            }
        }
        unmapped
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
    fn referenced(
        &mut self,
        at: OwnerSlot,
        mapcount: u16,
        huge: bool,
        within: ReclaimScope,
    ) -> PageReferences {
        if at.store == BackingStore::Swap {
            let vma = &mut self.vmas[at.owner as usize];
            let young = if huge {
                vma.test_clear_young_huge(at.index.into())
            } else {
                vma.ptes[at.index as usize].test_clear_young()
            };
            let counts = vma.advice.counts_references(&within);
            let executable = vma.executable;
            return PageReferences {
                nr: u32::from(young && counts),
                executable,
                nr_entries_read: 1,
            };
        }
        let mut references = PageReferences::default();
        let mut left = mapcount;
        let Processes { files, vmas, mms, .. } = self;
        for mapping in &files[at.owner as usize].mappings {
            let vma = &mut vmas[*mapping];
            let foreign = !within.contains(|| mms[vma.mm].memcg);
            references.nr_entries_read += 1;
            let Some(pte) = vma.ptes.get_mut(at.index as usize) else { continue };
            if !pte.is_present() {
                continue;
            }
            if !foreign && pte.test_clear_young() {
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

    fn unmap(&mut self, at: OwnerSlot, mapcount: u16, to: UnmapTarget) -> UnmapResult {
        match to {
            UnmapTarget::Swapped(slot) => self.swap_out(at, Pte::swapped(slot)),
            UnmapTarget::Unmapped => self.unmap_file(at, mapcount),
            UnmapTarget::Moving(from) => self.set_migration_entries(at, from),
        }
    }

    fn moved(&mut self, at: OwnerSlot, from: Pfn, to: Pfn, young: bool) -> u16 {
        if at.store == BackingStore::Own && from != to {
            self.files[at.owner as usize].replace(at.index, to);
        }
        let mut nr = 0;
        for number in 0..self.nr_mappings(at) {
            let Some((vma, index)) = self.mapping_of(at, number) else { continue };
            let vma = &mut self.vmas[vma];
            let entry = &mut vma.ptes[index];
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
            Daemon::Khugepaged => machine.khugepaged_first_rest(),
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
