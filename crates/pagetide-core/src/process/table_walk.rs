//! Reading used bits of many entries at once: the walk over the page tables of a group's tasks, and
//! the look around a used entry.
//!
//! Linux: `walk_mm`, `should_skip_mm`, `should_skip_vma`, `walk_pte_range` and
//! `lru_gen_look_around` (mm/vmscan.c, 6.1). [`crate::ageing::generations`] says which pages count.
//!
//! Difference from Linux: every task counts as having run since the last walk. A task that has not
//! run has no used entry, so only the cost differs.

use super::object::MemoryObject;
use super::page_table::{Backing, Pte, Vma};
use super::{Mm, Processes};
use crate::ageing::generations::bloom::TableKey;
use crate::ageing::generations::neighbours::LookAround;
use crate::ageing::generations::table_walk::{is_dense, TableWalk};
use crate::groups::memcg::ReclaimScope;
use crate::interface::owners::{OwnerSlot, PageReferences};
use crate::units::VmaId;

impl Vma {
    /// Whether a walk reads its tables.
    fn is_walked(&self, can_swap: bool) -> bool {
        self.nr_present > 0
            && self.advice.has_recency()
            && (can_swap || self.backing != Backing::Anon)
    }

    /// Reads the entry of a huge page, which no filter holds back. Returns whether there is one.
    fn walk_huge(&mut self, key: TableKey, walk: &mut TableWalk<'_>) -> bool {
        let start = u64::from(key.table) * walk.table_len;
        let first = self.ptes[start as usize];
        let is_huge = is_mapped(&first) && walk.is_huge(first.pfn());
        if is_huge {
            walk.found.nr_entries += 1;
            if walk.takes(first.pfn()) && self.test_clear_young_huge(start) {
                walk.found.used.push(first.pfn());
            }
        }
        is_huge
    }

    /// Reads one table. Reports its used pages, and the table if it has many.
    fn walk_table(&mut self, key: TableKey, walk: &mut TableWalk<'_>) {
        let start = u64::from(key.table) * walk.table_len;
        let end = (start + walk.table_len).min(self.len());
        let entries = &mut self.ptes[start as usize..end as usize];
        if walk.skips_unused && !entries.iter().any(|pte| is_mapped(pte) && pte.is_young()) {
            walk.found.nr_entries += 1;
            return;
        }
        let before = walk.found.used.len();
        for pte in entries.iter_mut().filter(|pte| is_mapped(pte) && pte.is_young()) {
            if walk.takes(pte.pfn()) {
                pte.test_clear_young();
                walk.found.used.push(pte.pfn());
            }
        }
        walk.found.nr_entries += entries.len() as u32;
        let nr_used = (walk.found.used.len() - before) as u64;
        if is_dense(entries.len() as u64, nr_used) {
            walk.found.dense.push(key);
        }
    }
}

impl Processes {
    /// Pages of an address space that a walk would look for.
    fn nr_walked_pages(&self, mm: &Mm, can_swap: bool) -> u64 {
        let vmas = mm.vmas.iter().map(|vma| &self.vmas[*vma]);
        vmas.filter(|vma| can_swap || vma.backing != Backing::Anon).map(|vma| vma.nr_present).sum()
    }

    /// Walks the page tables of the group's next task.
    pub(super) fn walk_tables_of_group(&mut self, walk: &mut TableWalk<'_>) {
        let from = self.living.partition_point(|mm| self.mms[*mm].generation < walk.from);
        for at in from..self.living.len() {
            let id = self.living[at];
            let mm = &self.mms[id];
            if mm.memcg != walk.memcg
                || self.nr_walked_pages(mm, walk.can_swap) < TableWalk::LEAST_PAGES
            {
                continue;
            }
            let is_new = mm.generation >= walk.first_new;
            walk.found.walked = Some(mm.generation);
            let vmas = mm.vmas.clone();
            for vma in vmas {
                if self.vmas[vma].is_walked(walk.can_swap) {
                    self.walk_mapping(vma, is_new, walk);
                }
            }
            return;
        }
        let mut living = self.living.iter().rev().map(|id| &self.mms[*id]);
        let youngest = living.find(|mm| mm.memcg == walk.memcg);
        walk.found.first_new = walk.first_new.max(youngest.map_or(0, |mm| mm.generation + 1));
    }

    fn walk_mapping(&mut self, id: VmaId, is_new: bool, walk: &mut TableWalk<'_>) {
        let vma = &mut self.vmas[id];
        for table in 0..vma.len().div_ceil(walk.table_len) as u32 {
            let key = TableKey { vma: id, table };
            let has_table = vma.tables.get(table as usize).is_none_or(|table| table.is_some());
            if !has_table || vma.walk_huge(key, walk) {
                continue;
            }
            if walk.reads(key, is_new) {
                vma.walk_table(key, walk);
            }
        }
    }

    /// Counts and clears the references of a page's entries, and looks around each used entry.
    pub(super) fn look_around(
        &mut self,
        at: OwnerSlot,
        mapcount: u16,
        huge: bool,
        within: ReclaimScope,
        around: &mut LookAround<'_>,
    ) -> PageReferences {
        let object = MemoryObject::of(at);
        let index = u64::from(at.index);
        let mut references = PageReferences::default();
        let mut left = mapcount;
        let Processes { files, vmas, mms, .. } = self;
        for &mapping in object.mappings(files) {
            let vma = &mut vmas[mapping];
            references.nr_entries_read += 1;
            if !vma.ptes.get(index as usize).is_some_and(|pte| pte.is_present()) {
                continue;
            }
            if within.contains(|| mms[vma.mm].memcg) {
                let counts = vma.advice.counts_references(&within);
                let entry = &mut vma.ptes[index as usize];
                let looks = !huge && entry.is_young() && vma.advice.has_recency();
                let mut nr = 0;
                if looks {
                    nr += 1;
                    if around.own_entry_first {
                        entry.test_clear_young();
                    }
                    let window = LookAround::window(index, vma.len(), around.table_len);
                    let entries = &mut vma.ptes[window.start as usize..window.end as usize];
                    let mut nr_used = u64::from(around.own_entry_first);
                    for pte in entries.iter_mut().filter(|pte| is_mapped(pte) && pte.is_young()) {
                        if around.takes(pte.pfn()) {
                            pte.test_clear_young();
                            around.used.push(pte.pfn());
                            nr_used += 1;
                        }
                    }
                    around.nr_entries += entries.len() as u32;
                    if is_dense(entries.len() as u64, nr_used) {
                        let table = (index / around.table_len) as u32;
                        around.dense.push(TableKey { vma: mapping, table });
                    }
                }
                let is_young = match huge {
                    true => vma.test_clear_young_huge(index),
                    false => vma.ptes[index as usize].test_clear_young(),
                };
                nr += u32::from(is_young && counts);
                references.nr += nr;
                references.executable |= nr > 0 && vma.executable;
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        references
    }
}

/// Whether an entry maps a page other than the shared zero page.
const fn is_mapped(pte: &Pte) -> bool {
    pte.is_present() && !pte.is_zero_page()
}
