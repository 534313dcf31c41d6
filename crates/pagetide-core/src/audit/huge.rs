//! The audit of huge pages: first pages, what is behind them, and the entries of both.
//!
//! Linux: what `VM_BUG_ON_PAGE` checks about compound pages here and there.

use super::Violation;
use crate::page::{PageFlags, Place};
use crate::process::page_table::Pte;
use crate::process::Machine;
use crate::units::{MemcgId, Pfn, HPAGE_PMD_NR, HPAGE_PMD_ORDER};
use alloc::format;

macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(Violation(format!($($message)+)));
        }
    };
}

impl Machine {
    /// Every first page has its 511, which are nobody else's; its entries are those of its region, all
    /// of them, in order; and no entry is for a page behind another first page.
    pub(super) fn audit_huge_pages(&self) -> Result<(), Violation> {
        let (mut heads, mut tails) = (0, 0);
        for (at, page) in self.mem.pages.iter().enumerate() {
            tails += u64::from(page.place == Place::HugeTail);
            if page.has(PageFlags::HEAD) {
                heads += 1;
                self.audit_huge_page(Pfn(at as u32))?;
            }
        }
        let behind = heads * (HPAGE_PMD_NR - 1);
        check!(tails == behind, "{tails} pages behind {heads} first pages");
        let entries: u64 = self.vmas.iter().map(|vma| self.nr_huge_entries(&vma.ptes)).sum();
        let found = heads * HPAGE_PMD_NR;
        check!(entries == found, "{entries} entries for {heads} huge pages");
        Ok(())
    }

    fn audit_huge_page(&self, head: Pfn) -> Result<(), Violation> {
        let page = &self.mem.pages[head.idx()];
        check!(
            page.order == HPAGE_PMD_ORDER && head.0.trailing_zeros() >= HPAGE_PMD_ORDER.into(),
            "{head:?}: not a huge page's first: {page:?}"
        );
        let never = PageFlags::FILE.with(PageFlags::SWAPCACHE).with(PageFlags::WRITEBACK);
        check!(
            page.has(PageFlags::ANON) && !page.flags.any(never) && page.mapcount == 1,
            "{head:?}: no mapped anonymous memory: {page:?}"
        );
        check!(page.memcg.is_some(), "{head:?}: a huge page that nobody pays for");
        for behind in head.0 + 1..head.0 + HPAGE_PMD_NR as u32 {
            let tail = &self.mem.pages[behind as usize];
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
        let (vma, start) = (&self.vmas[page.mapping as usize], u64::from(page.index));
        check!(start.is_multiple_of(HPAGE_PMD_NR), "{head:?}: at page {start} of a mapping");
        check!(vma.has_region(start), "{head:?}: reaches out of its mapping");
        for (pte, pfn) in vma.region(start).iter().zip(head.0..) {
            check!(
                pte.is_present() && pte.is_dirty() && pte.pfn() == Pfn(pfn),
                "{head:?}: the entry of pfn{pfn} is {pte:?}"
            );
        }
        let table = vma.tables[self.mem.page_size.table_of(start)];
        check!(table.is_some(), "{head:?}: no table to split with");
        Ok(())
    }

    fn nr_huge_entries(&self, ptes: &[Pte]) -> u64 {
        let is_huge = |pte: &&Pte| {
            let present = pte.is_present() && !pte.is_zero_page();
            present && {
                let page = &self.mem.pages[pte.pfn().idx()];
                page.place == Place::HugeTail || page.has(PageFlags::HEAD)
            }
        };
        ptes.iter().filter(is_huge).count() as u64
    }
}
