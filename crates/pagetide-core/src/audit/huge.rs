//! The audit of the frames of huge pages. `process/audit.rs` checks the entries that map them.
//!
//! Linux: the checks of compound pages by `VM_BUG_ON_PAGE`.

use super::{check, Violation};
use crate::frames::page::{PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::swap::SWAPFILE_CLUSTER;
use crate::units::{MemcgId, Pfn, HPAGE_PMD_NR, HPAGE_PMD_ORDER};

impl Memory {
    /// Checks the state of the first frame of every huge page, and of the 511 frames after it.
    /// Checks that no other frame is marked as part of a huge page.
    pub(super) fn audit_huge_pages(&self) -> Result<(), Violation> {
        let (mut heads, mut tails) = (0, 0);
        for (pfn, page) in self.pages.opened() {
            tails += u64::from(page.place == Place::HugeTail);
            if page.has(PageFlags::HEAD) {
                heads += 1;
                self.audit_huge_page(pfn)?;
            }
        }
        let behind = heads * (HPAGE_PMD_NR - 1);
        check!(tails == behind, "{tails} pages behind {heads} first pages");
        Ok(())
    }

    fn audit_huge_page(&self, head: Pfn) -> Result<(), Violation> {
        let page = &self.pages[head];
        check!(
            page.order == HPAGE_PMD_ORDER && head.0.trailing_zeros() >= HPAGE_PMD_ORDER.into(),
            "{head:?}: not the first frame of a huge page: {page:?}"
        );
        check!(page.is_anon(), "{head:?}: not anonymous memory: {page:?}");
        let in_swap = page.has(PageFlags::SWAPCACHE);
        check!(
            in_swap || !page.has(PageFlags::WRITEBACK),
            "{head:?}: written without a slot: {page:?}"
        );
        check!(
            !in_swap || page.private.is_multiple_of(SWAPFILE_CLUSTER),
            "{head:?}: not in a run of slots: {page:?}"
        );
        let let_go = page.mapcount == 0 && page.has(PageFlags::PINNED) != in_swap;
        check!(
            page.mapcount == 1 && !in_swap || let_go,
            "{head:?}: mapped {} times",
            page.mapcount
        );
        check!(page.memcg.is_some(), "{head:?}: a huge page charged to no group");
        for behind in head.0 + 1..head.0 + HPAGE_PMD_NR as u32 {
            let tail = &self.pages[behind as usize];
            check!(
                tail.place == Place::HugeTail
                    && tail.flags == PageFlags::EMPTY
                    && tail.memcg == MemcgId::NONE
                    && tail.mapcount == 0
                    && tail.zone() == page.zone()
                    && tail.node() == page.node(),
                "pfn{behind} is not behind {head:?}: {tail:?}"
            );
        }
        Ok(())
    }
}
