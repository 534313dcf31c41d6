//! mlock: locking all or some pages of a mapping, and pinning a page.
//!
//! Linux: `mlock2`, `munlock`, `VM_LOCKED` (mm/mlock.c), `pin_user_pages` (mm/gup.c) (6.1). Present
//! pages are locked at once, other pages when they are faulted in. As with `MLOCK_ONFAULT`, locking
//! does not fault pages in; to model mlock(), the caller touches every page afterwards. Linux
//! splits a mapping in three to lock a part of it; here a mapping stores the ranges of its locked
//! pages.
//!
//! Differences from Linux: no `RLIMIT_MEMLOCK`. If a range locks only a part of a huge page, the
//! page itself is split; Linux splits only its entry.
//!
//! Invariant: a locked page that is present is marked ([`crate::ageing::mlock`]).

use super::huge_memory::region_of;
use super::page_table::{Vma, VmaId};
use super::{Machine, Processes};
use crate::frames::pin::PinError;
use crate::interface::bad_id::BadId;
use crate::interface::owners::OwnerSlot;
use crate::process::object::MemoryObject;
use crate::units::{Cpu, Pfn, HPAGE_PMD_NR};

impl Vma {
    /// Whether all or none of a region's pages are locked: a huge page is not locked in part.
    pub(crate) fn is_uniformly_locked(&self, page: u64) -> bool {
        let start = region_of(page);
        let locked = self.locked.count_in(start..start + HPAGE_PMD_NR);
        locked == 0 || locked == HPAGE_PMD_NR
    }
}

impl Processes {
    /// Whether a mapping that maps the slot's page has locked it.
    pub(super) fn is_slot_locked(&self, at: OwnerSlot, huge: bool) -> bool {
        let page = u64::from(at.index);
        let object = MemoryObject::of(at);
        object.mappings(&self.files).iter().any(|vma| {
            let vma = &self.vmas[*vma];
            let is_locked = match huge {
                true => vma.locked.count_in(page..page + HPAGE_PMD_NR) == HPAGE_PMD_NR,
                false => vma.locked.contains(page),
            };
            is_locked && vma.ptes.get(page as usize).is_some_and(|pte| pte.is_present())
        })
    }
}

impl Machine {
    /// Locks `nr` pages of a mapping from `first` on. They are not reclaimed until they are
    /// unlocked or unmapped. Locks do not nest.
    ///
    /// # Errors
    /// If the mapping, a page or the CPU does not exist: [`BadId::Vma`], [`BadId::Page`]
    /// (Linux: ENOMEM), [`BadId::Cpu`].
    pub fn mlock(&mut self, vma: VmaId, first: u64, nr: u64, cpu: Cpu) -> Result<(), BadId> {
        self.set_locked(vma, first, nr, true, cpu)
    }

    /// Unlocks `nr` pages of a mapping from `first` on, locked or not.
    ///
    /// # Errors
    /// If the mapping, a page or the CPU does not exist: [`BadId::Vma`], [`BadId::Page`]
    /// (Linux: ENOMEM), [`BadId::Cpu`].
    pub fn munlock(&mut self, vma: VmaId, first: u64, nr: u64, cpu: Cpu) -> Result<(), BadId> {
        self.set_locked(vma, first, nr, false, cpu)
    }

    fn set_locked(
        &mut self,
        vma: VmaId,
        first: u64,
        nr: u64,
        locked: bool,
        cpu: Cpu,
    ) -> Result<(), BadId> {
        self.groups.check_cpu(cpu)?;
        let len = self.owners.living_vma(vma)?.len();
        let end = first.checked_add(nr).filter(|&end| end <= len);
        let end = end.ok_or(BadId::Page(vma))?;
        // Pages in the CPU's batches must be on an LRU list first.
        self.lru_add_drain(cpu);
        for edge in [first, end] {
            if !edge.is_multiple_of(HPAGE_PMD_NR) {
                if let Some(head) = self.huge_page_at(vma, edge) {
                    self.split_huge_page(head);
                }
            }
        }
        self.owners.vmas[vma].locked.set(first..end, locked);
        let mut at = first;
        while at < end {
            // A busy huge page could not be split, so it is locked as a whole or not at all.
            if let Some(head) = self.huge_page_at(vma, at) {
                self.sync_mlock(head);
                at = region_of(at) + HPAGE_PMD_NR;
                continue;
            }
            let pte = self.owners.vmas[vma].ptes[at as usize];
            if pte.is_present() && !pte.is_zero_page() {
                self.sync_mlock(pte.pfn());
            }
            at += 1;
        }
        Ok(())
    }

    /// Locks or unlocks a page according to its mappings.
    fn sync_mlock(&mut self, pfn: Pfn) {
        if self.is_page_locked(&self.mem.pages[pfn]) {
            self.mlock_page(pfn);
        } else {
            self.munlock_page(pfn);
        }
    }

    /// Pins the frame of a page of a mapping, for reading or writing, and returns it. The page
    /// stays in the frame, mapped or not, until [`Machine::unpin`](crate::interface::manager::Manager::unpin).
    ///
    /// # Errors
    /// [`PinError::NotPresent`] if an access would fault or would read the zero page. The
    /// caller must then fault the page in first, by a write if it is the zero page. (Linux's
    /// `pin_user_pages` faults it in itself.) [`BadId::Vma`] or [`BadId::Page`] if the mapping or
    /// page does not exist.
    pub fn pin(&mut self, vma: VmaId, page: u64, write: bool) -> Result<Pfn, PinError> {
        let mapping = self.owners.living_vma(vma)?;
        let pte = *usize::try_from(page)
            .ok()
            .and_then(|at| mapping.ptes.get(at))
            .ok_or(BadId::Page(vma))?;
        if pte.touched(write).is_none() || pte.is_zero_page() {
            return Err(PinError::NotPresent);
        }
        self.pin_frame(pte.pfn())?;
        Ok(pte.pfn())
    }
}
