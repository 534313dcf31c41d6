//! The entries around a used page-table entry.
//!
//! Linux: the bounds of `lru_gen_look_around` (mm/vmscan.c, 6.1).

use super::bloom::TableKey;
use super::limits::MIN_LRU_BATCH;
use crate::frames::page::Page;
use crate::frames::page_array::PageArray;
use crate::units::{MemcgId, NodeId, Pfn};
use alloc::vec::Vec;

/// A look at the neighbours of a page's entries.
#[derive(Debug)]
pub struct LookAround<'a> {
    memcg: MemcgId,
    node: NodeId,
    can_swap: bool,
    /// The used bit of the page's own entry is cleared before its neighbours are read (6.12). Linux
    /// 6.1: the page counts as its own neighbour, so it counts as used twice.
    pub own_entry_first: bool,
    /// Entries of a page table.
    pub table_len: u64,
    pages: &'a PageArray,
    /// Used pages found, the page itself included.
    pub used: Vec<Pfn>,
    /// Tables with many used entries.
    pub dense: Vec<TableKey>,
    /// Entries read.
    pub nr_entries: u32,
}

impl<'a> LookAround<'a> {
    /// A look at the neighbours of a page in use. `can_swap`: anonymous pages count.
    pub(in crate::ageing) fn of(
        page: &Page,
        can_swap: bool,
        own_entry_first: bool,
        pages: &'a PageArray,
        table_len: u64,
    ) -> LookAround<'a> {
        LookAround {
            memcg: page.memcg,
            node: page.node(),
            can_swap,
            own_entry_first,
            table_len,
            pages,
            used: Vec::new(),
            dense: Vec::new(),
            nr_entries: 0,
        }
    }

    /// The entries around an entry of a mapping of `len` pages: at most 64, in the same table.
    pub(crate) fn window(at: u64, len: u64, table_len: u64) -> core::ops::Range<u64> {
        let start = at / table_len * table_len;
        let end = (start + table_len).min(len);
        let half = MIN_LRU_BATCH / 2;
        if end - start <= MIN_LRU_BATCH {
            start..end
        } else if at - start < half {
            start..start + MIN_LRU_BATCH
        } else if end - at < half {
            end - MIN_LRU_BATCH..end
        } else {
            at - half..at + half
        }
    }

    /// Whether a used page counts.
    pub(crate) fn takes(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        page.memcg == self.memcg
            && page.node() == self.node
            && (page.is_file_lru() || self.can_swap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_64_entries_of_one_table() {
        assert_eq!(LookAround::window(0, 10_000, 512), 0..64);
        assert_eq!(LookAround::window(31, 10_000, 512), 0..64);
        assert_eq!(LookAround::window(100, 10_000, 512), 68..132);
        assert_eq!(LookAround::window(511, 10_000, 512), 448..512);
        assert_eq!(LookAround::window(515, 10_000, 512), 512..576);
        assert_eq!(LookAround::window(3, 20, 512), 0..20);
        assert_eq!(LookAround::window(599, 600, 512), 536..600);
    }
}
