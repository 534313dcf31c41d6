//! Look-around: where eviction finds a used page, it looks at the entries next to its entry.
//!
//! Linux: `lru_gen_look_around` (mm/vmscan.c, called by `folio_referenced_one`, 6.1). Used pages
//! among the neighbours become young. A table with many used entries enters the filter of the next
//! walk.

use super::neighbours::LookAround;
use super::window::place_of;
use crate::ageing::pagevec::PAGEVEC_SIZE;
use crate::frames::page::PageFlags;
use crate::groups::memcg::ReclaimScope;
use crate::interface::ctx::Ctx;
use crate::interface::manager::Manager;
use crate::interface::owners::{OwnerSlot, Owners, PageReferences};
use crate::units::{MemcgId, Pfn};
use alloc::vec::Vec;

impl<O: Owners> Manager<O> {
    /// References to a page, with a look around each.
    #[inline(never)]
    pub(crate) fn references_around(
        &mut self,
        pfn: Pfn,
        target: Option<MemcgId>,
        ctx: &Ctx,
    ) -> PageReferences {
        let Manager { kernel, owners } = self;
        let page = &kernel.mem.pages[pfn];
        let (memcg, node) = (page.memcg, page.node());
        let (at, mapcount) = (OwnerSlot::of(page), page.mapcount);
        let huge = page.has(PageFlags::HEAD);
        let walk = kernel.step.mm_walk;
        let mut within = ReclaimScope::new(&kernel.groups.memcgs, target);
        if kernel.era.forgets_random {
            within = within.without_random();
        }
        let own_entry_first = kernel.era.ages_in_eviction;
        let can_swap = match own_entry_first {
            false => walk.unwrap_or(true),
            true => !page.is_file_lru(),
        };
        let table_len = kernel.mem.page_size.ptrs_per_pte();
        let mut around =
            LookAround::of(page, can_swap, own_entry_first, &kernel.mem.pages, table_len);
        let references = owners.referenced_around(at, mapcount, huge, within, &mut around);
        let LookAround { used, dense, nr_entries, .. } = around;
        kernel.mem.work.ptes_walked += nr_entries;
        kernel.mem.work.ptes_used += used.len() as u32;
        let Some(generations) = kernel.groups.generations_mut(memcg, node) else {
            return references;
        };
        let youngest = place_of(generations.max_seq);
        generations.walks.note_dense(generations.max_seq, &dense);
        let mut older = Vec::new();
        for &pfn in &used {
            match kernel.mem.pages[pfn].generation() {
                None => kernel.mem.pages[pfn].set(PageFlags::REFERENCED),
                Some(place) if place != youngest => older.push(pfn),
                Some(_) => {}
            }
        }
        if walk.is_none() && kernel.era.activates_neighbours {
            older.iter().for_each(|&pfn| {
                kernel.mem.pages[pfn].forget_uses();
                kernel.activate_page(ctx.cpu, pfn);
            });
            return references;
        }
        if walk.is_none() && older.len() < PAGEVEC_SIZE {
            older.iter().for_each(|&pfn| kernel.activate_page(ctx.cpu, pfn));
            return references;
        }
        for &pfn in &older {
            kernel.update_generation(pfn, memcg, node, youngest);
        }
        references
    }
}
