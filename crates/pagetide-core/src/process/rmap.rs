//! Reverse mapping: what processes and files answer to the page level ([`Owners`]).
//!
//! Linux: mm/rmap.c (`folio_referenced`, `try_to_unmap`, `try_to_migrate`); also
//! `remove_migration_ptes`, `address_space_operations`. An anonymous page has one entry, in the
//! mapping that it names; a file page may have one in each mapping of the file.
//!
//! Invariant: an entry reported as removed is gone from the table and its mapping's counts.

use super::page_table::{Pte, VmaId};
use super::policy::OomPolicy;
use super::request::Request;
use super::{Machine, Processes};
use crate::audit::Violation;
use crate::call::Asks;
use crate::ctx::Ctx;
use crate::daemon::{Daemon, Rest};
use crate::effect::{Io, Step};
use crate::memcg::Within;
use crate::outcome::Outcome;
use crate::owners::{Gone, Owners, OwnersReport, References, Slot, Store, Unmapped};
use crate::page_request::SlowRequest;
use crate::shadow::Shadow;
use crate::units::{Asker, Cpu, FileId, MemcgId, Nanos, Pfn};

impl Processes {
    /// The entry that may map a page, in the file's first mapping.
    #[inline]
    fn first_pte(&self, at: Slot) -> Option<Pte> {
        let vma = match at.store {
            Store::Swap => at.owner as usize,
            Store::Own => self.files[at.owner as usize].mappings.first()?.idx(),
        };
        self.vmas.get(vma)?.ptes.get(at.index as usize).copied()
    }

    /// Number of mappings that may have an entry for a page.
    fn nr_mappings(&self, at: Slot) -> usize {
        match at.store {
            Store::Swap => 1,
            Store::Own => self.files[at.owner as usize].mappings.len(),
        }
    }

    /// Mapping `number` of those, and the index of the entry.
    fn mapping_of(&self, at: Slot, number: usize) -> Option<(VmaId, usize)> {
        let vma = match at.store {
            Store::Swap => VmaId(at.owner),
            Store::Own => *self.files[at.owner as usize].mappings.get(number)?,
        };
        let index = at.index as usize;
        let mapped = self.vmas.get(vma.idx()).is_some_and(|vma| index < vma.ptes.len());
        mapped.then_some((vma, index))
    }

    /// Replaces an anonymous page's entry by a swap entry.
    fn swap_out(&mut self, at: Slot, to: Pte) -> Unmapped {
        let vma = &mut self.vmas[at.owner as usize];
        let pte = core::mem::replace(&mut vma.ptes[at.index as usize], to);
        vma.nr_present -= 1;
        vma.nr_swapped += 1;
        Unmapped { nr: 1, dirty: pte.is_dirty(), young: pte.is_young(), nr_looked_at: 1 }
    }

    /// Removes the `mapcount` entries of a file page.
    fn unmap_file(&mut self, at: Slot, mapcount: u16) -> Unmapped {
        let mut unmapped = Unmapped::default();
        let Processes { files, vmas, .. } = self;
        for mapping in &files[at.owner as usize].mappings {
            if unmapped.nr == mapcount {
                break;
            }
            let vma = &mut vmas[mapping.idx()];
            unmapped.nr_looked_at += 1;
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
    fn begin_to_move(&mut self, at: Slot, from: Pfn) -> Unmapped {
        let mut unmapped = Unmapped::default();
        for number in 0..self.nr_mappings(at) {
            let Some((vma, index)) = self.mapping_of(at, number) else { continue };
            let vma = &mut self.vmas[vma.idx()];
            let entry = &mut vma.ptes[index];
            if entry.is_present() && !entry.is_zero_page() && entry.pfn() == from {
                unmapped.young |= entry.is_young();
                *entry = Pte::migration(from, entry.is_dirty());
                vma.nr_present -= 1;
                unmapped.nr += 1;
                unmapped.nr_looked_at += 1;
            }
        }
        unmapped
    }
}

impl Asks for Processes {
    type Request = Request;

    fn request_step(
        machine: &mut Machine,
        request: &mut Request,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if let Err(outcome) = machine.check_request(request) {
            if let Some(slow) = slow.take() {
                machine.slow_given_up(&slow, ctx.asker, ctx.cpu);
            }
            return Step::Done(outcome);
        }
        match request {
            Request::Fault(fault) => machine.fault_step(fault, slow, ctx),
            Request::Read(read) => machine.read_step(read, slow, ctx),
            Request::Write(write) => machine.write_step(write, slow, ctx),
            Request::KernelAlloc(wanted) => machine.kernel_alloc_step(*wanted, slow, ctx),
            Request::Populate(populate) => machine.populate_step(populate, slow, ctx),
            Request::Leave(leave) => machine.leave_step(leave, ctx),
            Request::Collapse(collapse) => machine.madvise_collapse_step(collapse, slow, ctx),
        }
    }
}

impl Owners for Processes {
    #[inline]
    fn prefetch(&self, at: Slot) -> u32 {
        self.first_pte(at).map_or(0, Pte::bits)
    }

    #[inline]
    fn prefetch_eviction(&self, at: Slot, is_mapped: bool) -> u32 {
        let young = is_mapped && self.first_pte(at).is_some_and(Pte::is_young);
        if at.store == Store::Own && !young {
            return u32::from(self.files[at.owner as usize].get(at.index).is_some());
        }
        0
    }

    fn referenced(&mut self, at: Slot, mapcount: u16, huge: bool, within: Within) -> References {
        if at.store == Store::Swap {
            let vma = &mut self.vmas[at.owner as usize];
            let young = if huge {
                vma.test_clear_young_huge(at.index.into())
            } else {
                vma.ptes[at.index as usize].test_clear_young()
            };
            let counts = vma.advice.is_heeded(&within);
            let executable = vma.executable;
            return References { nr: u32::from(young && counts), executable, nr_looked_at: 1 };
        }
        let mut references = References::default();
        let mut left = mapcount;
        let Processes { files, vmas, mms, .. } = self;
        for mapping in &files[at.owner as usize].mappings {
            let vma = &mut vmas[mapping.idx()];
            let foreign = !within.contains(|| mms[vma.mm.idx()].memcg);
            references.nr_looked_at += 1;
            let Some(pte) = vma.ptes.get_mut(at.index as usize) else { continue };
            if !pte.is_present() {
                continue;
            }
            if !foreign && pte.test_clear_young() {
                references.nr += u32::from(vma.advice.is_heeded(&within));
                references.executable |= vma.executable;
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        references
    }

    fn unmap(&mut self, at: Slot, mapcount: u16, to: Gone) -> Unmapped {
        match to {
            Gone::Swapped(slot) => self.swap_out(at, Pte::swapped(slot)),
            Gone::Unmapped => self.unmap_file(at, mapcount),
            Gone::Moving(from) => self.begin_to_move(at, from),
        }
    }

    fn moved(&mut self, at: Slot, from: Pfn, to: Pfn, young: bool) -> u16 {
        if at.store == Store::Own && from != to {
            self.files[at.owner as usize].replace(at.index, to);
        }
        let mut nr = 0;
        for number in 0..self.nr_mappings(at) {
            let Some((vma, index)) = self.mapping_of(at, number) else { continue };
            let vma = &mut self.vmas[vma.idx()];
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

    fn split(&mut self, at: Slot) {
        self.vmas[at.owner as usize].split_region(at.index.into());
    }

    #[inline]
    fn is_locked(&self, at: Slot, huge: bool) -> bool {
        self.is_slot_locked(at, huge)
    }

    fn is_write_congested(&self) -> bool {
        self.writeback.is_congested()
    }

    fn note_written(&mut self) {
        self.writeback.note_written();
    }

    fn for_each_own_frame(&self, f: &mut dyn FnMut(Pfn)) {
        let tables = self.vmas.iter().flat_map(|vma| &vma.tables);
        tables.filter(|table| table.is_some()).for_each(|&table| f(table));
    }

    fn asks(&mut self, asker: Asker) -> MemcgId {
        let mm = &mut self.mms[asker.idx()];
        mm.begun = true;
        mm.memcg
    }

    #[inline]
    fn tenure(&self, asker: Asker) -> Option<u64> {
        self.mms.get(asker.idx()).filter(|mm| !mm.exited).map(|mm| mm.born)
    }

    fn payer(&self, asker: Asker) -> Option<MemcgId> {
        self.mms.get(asker.idx()).filter(|mm| !mm.exited).map(|mm| mm.memcg)
    }

    fn is_dying(&self, asker: Asker) -> bool {
        self.mms.get(asker.idx()).is_some_and(|mm| mm.oom_victim)
    }

    fn note_over_high(&mut self, asker: Asker, nr: u64) {
        if let Some(mm) = self.mms.get_mut(asker.idx()) {
            mm.nr_over_high += nr;
        }
    }

    #[inline]
    fn take_over_high(&mut self, asker: Asker) -> u64 {
        self.mms.get_mut(asker.idx()).map_or(0, |mm| core::mem::take(&mut mm.nr_over_high))
    }

    fn daemon_step(machine: &mut Machine, daemon: Daemon, cpu: Cpu, now: Nanos) -> Step<Rest> {
        match daemon {
            Daemon::Flusher => machine.flusher_step(now),
            Daemon::Khugepaged => machine.khugepaged_step(cpu, now),
            // Daemons of the page level.
            Daemon::Kswapd(_) | Daemon::Kcompactd(_) | Daemon::Kworker => {
                Step::Done(Rest::UNTIL_WOKEN)
            }
        }
    }

    fn daemon_rest(machine: &Machine, daemon: Daemon) -> Rest {
        match daemon {
            Daemon::Flusher => machine.flusher_timeout(),
            Daemon::Khugepaged => machine.khugepaged_first_rest(),
            Daemon::Kswapd(_) | Daemon::Kcompactd(_) | Daemon::Kworker => Rest::UNTIL_WOKEN,
        }
    }

    fn huge_pages_on(machine: &mut Machine) {
        machine.wake_khugepaged();
    }

    fn take_back(machine: &mut Machine, asker: Asker, outcome: Outcome, cpu: Cpu) {
        if let Outcome::Block(pfn) = outcome {
            machine.free_kernel_block(asker, pfn, cpu);
        }
    }

    fn out_of_memory(machine: &mut Machine, scope: MemcgId, asker: Asker) -> bool {
        match machine.owners.failure.oom {
            OomPolicy::Kill => machine.oom_kill_process(scope, asker),
            OomPolicy::Fail => false,
        }
    }

    fn dirtied(machine: &mut Machine, pfn: Pfn) {
        machine.set_page_dirty(pfn);
    }

    fn write_page(machine: &mut Machine, pfn: Pfn) {
        let page = &machine.mem.pages[pfn.idx()];
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

    fn io_done(machine: &mut Machine, io: Io, ok: bool, cpu: Cpu) {
        machine.file_io_done(io, ok, cpu);
    }

    fn tick(machine: &mut Machine, now: Nanos) {
        machine.update_bandwidth(now);
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
