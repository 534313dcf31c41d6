//! Page-table entries and mappings: the simulated MMU.
//!
//! Linux: `pte_t`, `vm_area_struct`. An entry has 32 bits: present, referenced ("young") and dirty
//! bits with 29 bits of frame number, or a swap slot. Mappings are numbered machine-wide
//! ([`VmaId`]), so a page finds its entry by (`mapping`, `index`) and needs no reverse-map memory.
//!
//! An entry that is neither present nor swapped can be a migration entry.
//!
//! One bit stands for both "dirty" and "writable": a writable entry has been written.

use crate::groups::memcg::ReclaimScope;
use crate::process::locked_pages::LockedPages;
use crate::process::MmId;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{FileId, Pfn, SwapSlot};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use zerocopy::FromZeros;

pub use crate::units::VmaId;

/// One page-table entry.
#[derive(Clone, Copy, PartialEq, Eq, Default, State, FromZeros)]
#[repr(transparent)]
pub struct Pte(u32);

impl core::fmt::Debug for Pte {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.is_present() {
            write!(
                f,
                "{:?}{}{}",
                self.pfn(),
                if self.is_young() { "+young" } else { "" },
                if self.is_dirty() { "+dirty" } else { "" }
            )
        } else if let Some((pfn, _)) = self.migrating() {
            write!(f, "{pfn:?}+migrating")
        } else if let Some(slot) = self.swap_slot() {
            write!(f, "{slot:?}")
        } else {
            write!(f, "none")
        }
    }
}

const PRESENT: u32 = 1 << 31;
const YOUNG: u32 = 1 << 30;
const DIRTY: u32 = 1 << 29;
const PFN_MASK: u32 = DIRTY - 1;

impl Pte {
    /// No page and no swap slot.
    pub const EMPTY: Pte = Pte(0);
    /// Maps the shared zero page, after a read of untouched anonymous memory.
    pub const ZERO_PAGE: Pte = Pte(PRESENT | PFN_MASK);

    /// An entry that maps `pfn`: young, and dirty if made by a write.
    #[inline]
    pub const fn map(pfn: Pfn, dirty: bool) -> Pte {
        Pte(PRESENT | YOUNG | if dirty { DIRTY } else { 0 } | pfn.0)
    }

    /// An entry whose page is in swap. Slots are below 2^30.
    #[inline]
    pub const fn swapped(slot: SwapSlot) -> Pte {
        Pte(slot.0 + 1)
    }

    /// The entry of a page under migration from `pfn`.
    #[inline]
    pub const fn migration(pfn: Pfn, dirty: bool) -> Pte {
        Pte(YOUNG | if dirty { DIRTY } else { 0 } | pfn.0)
    }

    /// The old frame of a page under migration, and whether the entry was dirty.
    #[inline]
    pub const fn migrating(self) -> Option<(Pfn, bool)> {
        if self.0 & (PRESENT | YOUNG) == YOUNG {
            Some((Pfn(self.0 & PFN_MASK), self.0 & DIRTY != 0))
        } else {
            None
        }
    }

    /// Whether a page is mapped (the zero page included).
    #[inline]
    pub const fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }

    /// Whether the entry maps the shared zero page.
    #[inline]
    pub const fn is_zero_page(self) -> bool {
        self.0 & (PRESENT | PFN_MASK) == PRESENT | PFN_MASK
    }

    /// Whether the entry is [`Pte::EMPTY`].
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the page was accessed since the last clearing.
    #[inline]
    pub const fn is_young(self) -> bool {
        self.0 & YOUNG != 0
    }

    /// Whether the page was written, and can be written without a fault.
    #[inline]
    pub const fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// The mapped frame. Only for present entries other than the zero page.
    #[inline]
    pub const fn pfn(self) -> Pfn {
        Pfn(self.0 & PFN_MASK)
    }

    /// The swap slot, if swapped out.
    #[inline]
    pub const fn swap_slot(self) -> Option<SwapSlot> {
        if self.0 & (PRESENT | YOUNG) != 0 || self.0 == 0 {
            None
        } else {
            Some(SwapSlot(self.0 - 1))
        }
    }

    /// Clears the referenced bit. Returns whether it was set.
    #[inline]
    pub const fn test_clear_young(&mut self) -> bool {
        let was = self.is_young();
        self.0 &= !YOUNG;
        was
    }

    /// Clears the dirty bit, and with it the write permission. Returns whether it was set.
    #[inline]
    pub const fn clean(&mut self) -> bool {
        let was = self.is_dirty();
        self.0 &= !DIRTY;
        was
    }

    /// The entry after an access, or `None` if the access must fault.
    #[inline]
    pub const fn touched(self, write: bool) -> Option<Pte> {
        if self.0 & PRESENT == 0 || (write && self.0 & DIRTY == 0) {
            None
        } else {
            Some(Pte(self.0 | YOUNG))
        }
    }

    /// The raw bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// Advice for a mapping (madvise).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum Advice {
    /// Read-ahead and fault-around as configured.
    #[default]
    Normal,
    /// MADV_RANDOM: no read-ahead.
    Random,
    /// MADV_SEQUENTIAL: read-ahead at full width at once.
    Sequential,
    /// MADV_HUGEPAGE: allow huge pages. Otherwise as `Normal`.
    Huge,
    /// MADV_NOHUGEPAGE: no huge pages, whatever the sysfs setting. Otherwise as `Normal`.
    NoHuge,
}

impl Advice {
    /// Whether the order of uses matters in a mapping with this advice (Linux `lru_gen_enter_fault`,
    /// 6.1).
    pub(crate) fn has_recency(self) -> bool {
        !matches!(self, Advice::Sequential | Advice::Random)
    }

    /// Whether references through a mapping with this advice count for this kind of reclaim.
    pub(crate) fn counts_references(self, by: &ReclaimScope<'_>) -> bool {
        by.has_recency(self == Advice::Sequential, self == Advice::Random)
    }
}

/// Ranges of a mapping that have another huge-page advice than the mapping itself. They are sorted,
/// not empty, and merged if adjacent and equal. Linux splits the mapping instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, State)]
pub struct AdvisedParts(Vec<(Range<u64>, Advice)>);

impl AdvisedParts {
    /// Whether the whole mapping has one advice.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The advice of a range of a mapping with the advice `own`, if uniform.
    pub(crate) fn of(&self, pages: Range<u64>, own: Advice) -> Option<Advice> {
        let touches =
            |part: &&(Range<u64>, Advice)| part.0.start < pages.end && pages.start < part.0.end;
        match self.0.iter().find(touches) {
            None => Some(own),
            Some((part, advice)) if part.start <= pages.start && pages.end <= part.end => {
                Some(*advice)
            }
            Some(_) => None,
        }
    }

    /// Sets the advice of a range of a mapping with the advice `own`.
    pub(super) fn set(&mut self, pages: Range<u64>, advice: Advice, own: Advice) {
        let mut parts = Vec::with_capacity(self.0.len() + 2);
        for (part, advice) in self.0.drain(..) {
            parts.push((part.start..part.end.min(pages.start), advice));
            parts.push((part.start.max(pages.end)..part.end, advice));
        }
        parts.push((pages, advice));
        parts.retain(|(part, advice)| !part.is_empty() && *advice != own);
        parts.sort_by_key(|(part, _)| part.start);
        parts.dedup_by(|next, last| {
            let joins = next.1 == last.1 && next.0.start == last.0.end;
            if joins {
                last.0.end = next.0.end;
            }
            joins
        });
        self.0 = parts;
    }
}

/// Memory behind a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub enum Backing {
    /// Anonymous memory.
    Anon,
    /// A shared mapping of a file, from page 0.
    File(FileId),
}

/// One mapping.
#[derive(Clone, Debug, State)]
pub struct Vma {
    /// Address space of the mapping.
    pub mm: MmId,
    /// Anonymous memory or a file.
    pub backing: Backing,
    /// Advice of the mapping.
    pub advice: Advice,
    /// Ranges with another huge-page advice.
    pub parts: AdvisedParts,
    /// Executable: its referenced file pages stay active (Linux `VM_EXEC`).
    pub executable: bool,
    /// One entry per page.
    #[state(sparse)]
    pub ptes: Vec<Pte>,
    /// Frame of each page table (512 entries); [`Pfn::NONE`] until an entry is needed.
    pub tables: Vec<Pfn>,
    /// Number of existing page tables, kept because it is read often.
    #[state(skip)] // derived from `tables`
    pub(crate) nr_tables: u32,
    /// Present entries other than the zero page.
    pub nr_present: u64,
    /// Entries that are swapped out.
    pub nr_swapped: u64,
    /// Read-ahead state of the mapping's open file.
    pub readahead: crate::process::readahead::ReadaheadState,
    /// Faults without read-ahead hits (Linux `mmap_miss`).
    pub mmap_miss: u32,
    /// History of swap read-ahead.
    pub swap_readahead: crate::process::readahead::SwapReadahead,
    /// Number of pages so far. Less than the length only in a heap that grows.
    pub grown: u64,
    /// Locked pages (Linux `VM_LOCKED`).
    pub locked: LockedPages,
    /// Whether the mapping still exists.
    pub alive: bool,
    /// Generation: the number of mappings created before.
    pub(crate) generation: u64,
}

/// Bytes by which a heap grows beyond each request (glibc: `M_TOP_PAD`).
pub const HEAP_TOP_PAD: u64 = 128 << 10;

/// Empty entries in untouched zero pages of the host.
fn empty_ptes(nr: usize) -> Vec<Pte> {
    // If the host is out of memory, `vec!` fails in the usual way.
    Pte::new_vec_zeroed(nr).unwrap_or_else(|_| vec![Pte::EMPTY; nr])
}

impl Vma {
    /// A mapping of `pages` pages with nothing mapped yet.
    pub fn new(
        mm: MmId,
        backing: Backing,
        pages: u64,
        advice: Advice,
        executable: bool,
        page_size: PageSize,
    ) -> Vma {
        let nr_tables = pages.div_ceil(page_size.ptrs_per_pte()) as usize;
        Vma {
            mm,
            backing,
            advice,
            parts: AdvisedParts::default(),
            executable,
            ptes: empty_ptes(pages as usize),
            tables: vec![Pfn::NONE; nr_tables],
            nr_tables: 0,
            nr_present: 0,
            nr_swapped: 0,
            readahead: Default::default(),
            mmap_miss: 0,
            swap_readahead: Default::default(),
            grown: pages,
            locked: LockedPages::default(),
            alive: true,
            generation: 0,
        }
    }

    /// Number of pages of the mapping.
    pub fn len(&self) -> u64 {
        self.ptes.len() as u64
    }

    /// Whether the mapping has no page.
    pub fn is_empty(&self) -> bool {
        self.ptes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_the_advice_given_last() {
        let kinds = [Advice::Normal, Advice::Huge, Advice::NoHuge];
        let (mut parts, mut naive) = (AdvisedParts::default(), [Advice::Huge; 64]);
        let mut random = 1u64;
        for _ in 0..2000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (first, nr) = (random >> 40 & 63, random >> 50 & 15);
            let (advice, end) = (kinds[(random >> 58) as usize % 3], (first + nr).min(64));
            parts.set(first..end, advice, Advice::Huge);
            naive[first as usize..end as usize].fill(advice);
            for start in (0..64).step_by(8) {
                let pages = &naive[start..start + 8];
                let all = Some(pages[0]).filter(|first| pages.iter().all(|page| page == first));
                let range = start as u64..start as u64 + 8;
                assert_eq!(parts.of(range, Advice::Huge), all, "{start} in {parts:?}");
            }
        }
        parts.set(0..64, Advice::Huge, Advice::Huge);
        assert_eq!(parts, AdvisedParts::default());
    }
}
