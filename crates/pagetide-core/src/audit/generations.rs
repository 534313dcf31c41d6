//! Audit of generations.
//!
//! Linux: the assertions of the multi-generational LRU (`seq_is_valid`, `state_is_valid`,
//! mm/vmscan.c, 6.1).

use super::{check, Violation};
use crate::ageing::lruvec::Lruvec;
use crate::ageing::Ageing;
use crate::frames::page::PageFlags;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::kernel::Kernel;
use alloc::format;

impl Kernel {
    /// Checks that a group's pages are ordered as the era wants, and that the sizes of generations
    /// are the numbers of their pages.
    pub(super) fn audit_generations(&self, lruvec: &Lruvec) -> Result<(), Violation> {
        let Ageing::Generations(generations) = &lruvec.ageing else {
            check!(!self.era.generations, "other lists instead of generations");
            let has_policy = matches!(lruvec.ageing, Ageing::Policy(_));
            check!(has_policy == self.has_page_policy(), "lists of a page policy, or without it");
            return Ok(());
        };
        check!(self.era.generations, "generations instead of two lists");
        let (max, min) = (generations.max_seq, generations.min_seq);
        check!(generations.is_valid(), "generations {min:?} to {max}");
        let mut sizes = [[[0u64; MAX_NR_ZONES]; 2]; 4];
        for list in generations.all_lists() {
            for pfn in list.iter(&self.mem.pages) {
                let page = &self.mem.pages[pfn];
                let Some(place) = page.generation() else {
                    return Err(Violation(format!("{pfn:?} is on a list without a generation")));
                };
                check!(!page.has(PageFlags::ACTIVE), "{pfn:?} is listed as active");
                sizes[usize::from(place)][usize::from(page.is_file_lru())][page.zone()] +=
                    page.nr_pages();
            }
        }
        check!(
            sizes == generations.nr_pages,
            "{:?} in generations, not {sizes:?}",
            generations.nr_pages
        );
        Ok(())
    }
}
