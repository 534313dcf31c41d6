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
//! Invariant: the ranges of locked pages are sorted, not empty, and do not touch each other.

use super::huge_memory::region_of;
use super::page_table::{Vma, VmaId};
use super::{Machine, Processes};
use crate::frames::pin::PinError;
use crate::interface::bad_id::BadId;
use crate::interface::owners::OwnerSlot;
use crate::process::object::MemoryObject;
use crate::units::digest::State;
use crate::units::{Cpu, Pfn, HPAGE_PMD_NR};
use alloc::vec::Vec;
use core::ops::Range;

/// The locked pages of a mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, State)]
pub struct LockedPages(Vec<Range<u64>>);

impl LockedPages {
    /// Whether a page is locked.
    #[inline]
    pub fn contains(&self, page: u64) -> bool {
        !self.0.is_empty() && self.find(page).is_ok()
    }

    /// Number of locked pages in a range.
    pub fn count_in(&self, pages: Range<u64>) -> u64 {
        let part = |range: &Range<u64>| {
            range.end.min(pages.end).saturating_sub(range.start.max(pages.start))
        };
        self.0.iter().map(part).sum()
    }

    /// First locked page in a range.
    pub fn first_in(&self, pages: Range<u64>) -> Option<u64> {
        let range = self.0.iter().find(|range| range.end > pages.start)?;
        Some(range.start.max(pages.start)).filter(|&first| first < pages.end)
    }

    /// Index of the range that contains a page, or the index to insert one.
    #[cold]
    #[inline(never)]
    fn find(&self, page: u64) -> Result<usize, usize> {
        let at = self.0.partition_point(|range| range.end <= page);
        match self.0.get(at) {
            Some(range) if range.start <= page => Ok(at),
            _ => Err(at),
        }
    }

    fn set(&mut self, pages: Range<u64>, locked: bool) {
        if pages.is_empty() {
            return;
        }
        let mut left = Vec::with_capacity(self.0.len() + 2);
        let mut new = pages.clone();
        for range in self.0.drain(..) {
            if locked && range.start <= new.end && new.start <= range.end {
                new = range.start.min(new.start)..range.end.max(new.end);
                continue;
            }
            let before = range.start..range.end.min(pages.start);
            let behind = range.start.max(pages.end)..range.end;
            left.extend([before, behind].into_iter().filter(|part| !part.is_empty()));
        }
        if locked {
            left.push(new);
        }
        left.sort_by_key(|range| range.start);
        self.0 = left;
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_together_and_are_cut() {
        let mut locked = LockedPages::default();
        locked.set(10..20, true);
        locked.set(30..40, true);
        locked.set(20..30, true);
        assert_eq!((locked.0.len(), locked.0[0].clone()), (1, 10..40));
        locked.set(15..18, false);
        assert_eq!(locked.0, [10..15, 18..40]);
        locked.set(0..0, true);
        locked.set(14..19, true);
        assert_eq!((locked.0.len(), locked.0[0].clone()), (1, 10..40));
        locked.set(0..100, false);
        assert_eq!(locked, LockedPages::default());
    }

    #[test]
    fn ranges_say_what_a_set_would() {
        let (mut ranges, mut naive) = (LockedPages::default(), [false; 64]);
        let mut random = 1u64;
        for _ in 0..2000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (first, nr, locked) = (random >> 40 & 63, random >> 50 & 15, random >> 60 & 1 == 1);
            let end = (first + nr).min(64);
            ranges.set(first..end, locked);
            naive[first as usize..end as usize].fill(locked);
            for (at, &locked) in naive.iter().enumerate() {
                assert_eq!(ranges.contains(at as u64), locked, "{at} in {ranges:?}");
            }
            let all = naive.iter().filter(|&&locked| locked).count() as u64;
            assert_eq!(ranges.count_in(0..64), all);
            let first = naive.iter().skip(7).position(|&locked| locked);
            assert_eq!(ranges.first_in(7..64), first.map(|at| at as u64 + 7));
            assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
        }
    }
}
