//! Walks over page tables: finds the used pages of a group.
//!
//! Linux: `walk_mm`, `walk_pte_range`, `struct lru_gen_mm_walk` (mm/vmscan.c, 6.1). The owners of
//! pages have the tables; this file has the questions that a walk asks about a page or a table.
//!
//! Invariant: a walk clears the used bit of an entry only if it reports the page.

use super::bloom::{BloomFilter, TableKey};
use super::limits::MIN_LRU_BATCH;
use super::window::TableWalkState;
use crate::frames::page::PageFlags;
use crate::frames::page_array::PageArray;
use crate::stats::work::Work;
use crate::units::{MemcgId, NodeId, Pfn};
use alloc::vec::Vec;

/// Entries of a cache line: a table is worth a walk if on average each line has a used entry
/// (Linux `suitable_to_scan`).
const ENTRIES_A_LINE: u64 = 8;

/// Whether so many used entries are enough to read a table again.
pub(crate) const fn is_dense(nr_entries: u64, nr_used: u64) -> bool {
    nr_used * ENTRIES_A_LINE >= nr_entries
}

/// The pages that a walk looks for, and the tables that it reads.
#[derive(Clone, Copy, Debug)]
pub(in crate::ageing) struct WalkScope {
    pub memcg: MemcgId,
    pub node: NodeId,
    pub can_swap: bool,
    /// Reads only tables of the filter, and all of a new address space.
    pub filters: bool,
    /// See [`TableWalk::skips_unused`].
    pub skips_unused: bool,
    /// Entries of a page table.
    pub table_len: u64,
}

impl TableWalkState {
    /// Walks the next address space of a group, in walk number `seq`: `read` reads its tables.
    /// Returns its used pages; `None`: there is none left (Linux `iterate_mm_list`, `walk_mm`).
    pub(in crate::ageing) fn walk_next(
        &mut self,
        seq: u64,
        scope: WalkScope,
        pages: &PageArray,
        work: &mut Work,
        read: impl FnOnce(&mut TableWalk<'_>),
    ) -> Option<Vec<Pfn>> {
        let WalkScope { memcg, node, can_swap, filters, skips_unused, table_len } = scope;
        let mut walk = TableWalk {
            memcg,
            node,
            can_swap,
            filter: filters.then(|| &self.filters[filter_of(seq)]),
            first_new: self.first_new,
            from: self.next_mm,
            skips_unused,
            table_len,
            pages,
            found: Default::default(),
        };
        read(&mut walk);
        let found = walk.found;
        work.ptes_walked += found.nr_entries;
        work.ptes_used += found.used.len() as u32;
        let Some(walked) = found.walked else {
            (self.first_new, self.next_mm) = (found.first_new, 0);
            return None;
        };
        if self.next_mm == 0 {
            self.filters[filter_of(seq + 1)].clear();
        }
        self.next_mm = walked + 1;
        self.note_dense(seq + 1, &found.dense);
        Some(found.used)
    }

    /// Puts tables with many used entries into the filter of walk `seq`.
    pub(in crate::ageing) fn note_dense(&mut self, seq: u64, dense: &[TableKey]) {
        dense.iter().for_each(|&table| self.filters[filter_of(seq)].add(table));
    }
}

/// The filter that walk `seq` reads.
const fn filter_of(seq: u64) -> usize {
    (seq % 2) as usize
}

/// A walk over the page tables of one of a group's tasks.
#[derive(Debug)]
pub struct TableWalk<'a> {
    /// The group of the tasks and of the pages.
    pub memcg: MemcgId,
    /// The node of the pages.
    pub node: NodeId,
    /// Whether anonymous pages count.
    pub can_swap: bool,
    /// Tables worth a walk; `None`: all.
    pub filter: Option<&'a BloomFilter>,
    /// Address spaces with this generation or a higher one are walked without the filter.
    pub first_new: u64,
    /// Address spaces with a lower generation were walked already.
    pub from: u64,
    /// The hardware notes in the upper table whether a table was used, so unused tables are not
    /// read (Linux `arch_has_hw_nonleaf_pmd_young`).
    pub skips_unused: bool,
    /// Entries of a page table.
    pub table_len: u64,
    pages: &'a PageArray,
    /// Result.
    pub found: WalkedTables,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub struct WalkedTables {
    /// Pages whose entry was used.
    pub used: Vec<Pfn>,
    /// Tables with many used entries.
    pub dense: Vec<TableKey>,
    /// Entries read.
    pub nr_entries: u32,
    /// Generation of the address space that was walked; `None`: there is none left.
    pub walked: Option<u64>,
    /// Generation of the next address space to be made, if none is left to walk.
    pub first_new: u64,
}

impl TableWalk<'_> {
    /// Fewest pages for which an address space is worth a walk.
    pub(crate) const LEAST_PAGES: u64 = MIN_LRU_BATCH;

    /// Whether to read a table of an address space.
    pub(crate) fn reads(&self, table: TableKey, is_new: bool) -> bool {
        is_new || self.filter.is_none_or(|filter| filter.contains(table))
    }

    /// Whether a used page counts (Linux `get_pfn_folio`).
    pub(crate) fn takes(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        page.memcg == self.memcg
            && page.node() == self.node
            && (page.is_file_lru() || self.can_swap)
            && !page.has(PageFlags::MLOCKED)
    }

    /// Whether an entry of the upper table maps a whole huge page that starts with this frame.
    pub(crate) fn is_huge(&self, pfn: Pfn) -> bool {
        self.pages[pfn].has(PageFlags::HEAD)
    }
}
