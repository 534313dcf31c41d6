//! Walks over page tables: finds the used pages of a group.
//!
//! Linux: `walk_mm`, `walk_pte_range`, `struct lru_gen_mm_walk` (mm/vmscan.c, 6.1). The owners of
//! pages have the tables; this file has the questions that a walk asks about a page or a table.
//!
//! Invariant: a walk clears the used bit of an entry only if it reports the page.

use super::bloom::{BloomFilter, TableKey};
use super::limits::MIN_LRU_BATCH;
use crate::frames::page::PageFlags;
use crate::frames::page_array::PageArray;
use crate::units::{MemcgId, NodeId, Pfn};
use alloc::vec::Vec;

/// Entries of a cache line: a table is worth a walk if on average each line has a used entry
/// (Linux `suitable_to_scan`).
const ENTRIES_A_LINE: u64 = 8;

/// Whether so many used entries are enough to read a table again.
pub(crate) const fn is_dense(nr_entries: u64, nr_used: u64) -> bool {
    nr_used * ENTRIES_A_LINE >= nr_entries
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
    pub(super) pages: &'a PageArray,
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
