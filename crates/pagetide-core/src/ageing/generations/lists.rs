//! Changes of a page's generation.
//!
//! Linux: `folio_update_gen`, `folio_inc_gen` (mm/vmscan.c), `lru_gen_update_size` (mm_inline.h,
//! 6.1).

use super::window::{place_of, Generations};
use crate::ageing::lruvec::Lru;
use crate::ageing::Ageing;
use crate::frames::page::PageFlags;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::units::{MemcgId, NodeId, Pfn};

impl Groups {
    /// The generations of a group on a node; `None` under the two lists.
    #[inline]
    pub(crate) fn generations(&self, memcg: MemcgId, node: NodeId) -> Option<&Generations> {
        match &self.memcgs[memcg].lruvecs[node].ageing {
            Ageing::Generations(generations) => Some(generations),
            Ageing::TwoLists(_) | Ageing::Policy(_) => None,
        }
    }

    /// As [`Groups::generations`].
    #[inline]
    pub(crate) fn generations_mut(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
    ) -> Option<&mut Generations> {
        match &mut self.memcgs[memcg].lruvecs[node].ageing {
            Ageing::Generations(generations) => Some(generations),
            Ageing::TwoLists(_) | Ageing::Policy(_) => None,
        }
    }
}

impl Kernel {
    /// Gives a page a younger generation. It stays on its list until eviction meets it.
    pub(super) fn update_generation(&mut self, pfn: Pfn, memcg: MemcgId, node: NodeId, to: u8) {
        let page = &mut self.mem.pages[pfn];
        let Some(from) = page.generation() else {
            // The page is off its list: reclaim will see that it was used.
            page.set(PageFlags::REFERENCED);
            return;
        };
        page.set_generation(Some(to));
        page.forget_uses();
        self.generation_changed(pfn, memcg, node, from, to);
    }

    /// Moves a page of the oldest generation to the next one, or finds that ageing has given it a
    /// younger one.
    pub(super) fn next_generation(&mut self, pfn: Pfn, memcg: MemcgId, node: NodeId) {
        let file = self.mem.pages[pfn].is_file_lru();
        let Some(generations) = self.groups.generations(memcg, node) else { return };
        let oldest = place_of(generations.min_seq[usize::from(file)]);
        let page = &mut self.mem.pages[pfn];
        if page.generation() != Some(oldest) {
            return;
        }
        let next = place_of(u64::from(oldest) + 1);
        page.set_generation(Some(next));
        page.forget_uses();
        self.generation_changed(pfn, memcg, node, oldest, next);
    }

    /// Updates the sizes after a page has changed its generation.
    fn generation_changed(&mut self, pfn: Pfn, memcg: MemcgId, node: NodeId, from: u8, to: u8) {
        let page = &self.mem.pages[pfn];
        let (file, zone, nr) = (page.is_file_lru(), page.zone(), page.nr_pages());
        let Some(generations) = self.groups.generations_mut(memcg, node) else { return };
        generations.nr_pages[usize::from(from)][usize::from(file)][zone] -= nr;
        generations.nr_pages[usize::from(to)][usize::from(file)][zone] += nr;
        let [before, after] =
            [from, to].map(|place| Lru::of_kind(file, generations.is_active(place)));
        if before != after {
            self.count_pages(memcg, (node, zone), before, -(nr as i64));
            self.count_pages(memcg, (node, zone), after, nr as i64);
        }
    }
}
