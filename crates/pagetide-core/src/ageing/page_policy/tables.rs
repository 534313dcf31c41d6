//! The page tables behind the lists of a page policy.
//!
//! Linux has no such hook. A policy reads used bits as generations do, at the same price, and with a
//! filter of tables of its own ([`PolicyWalks`]).
//!
//! Invariant: see [`crate::ageing::generations::table_walk`].

use super::lists::{GroupTables, PolicyWalks};
use crate::ageing::generations::neighbours::LookAround;
use crate::ageing::generations::table_walk::{TableWalk, WalkScope};
use crate::frames::page::PageFlags;
use crate::frames::page_array::PageArray;
use crate::groups::memcg::ReclaimScope;
use crate::interface::owners::{OwnerSlot, Owners, PageReferences};
use crate::stats::work::Work;
use crate::units::{IdVec, MemcgId, NodeId, Pfn};
use alloc::vec::Vec;
use core::fmt;

/// The page tables that map the pages of a group on a node.
pub(super) struct TablesOf<'a, O> {
    pub owners: &'a mut O,
    pub memcg: MemcgId,
    pub node: NodeId,
    /// Whether anonymous memory of the group can be swapped.
    pub can_swap: bool,
    /// A copy of the era's field.
    pub forgets_random: bool,
    /// Entries of a page table.
    pub table_len: u64,
    pub work: &'a mut Work,
}

impl<O> fmt::Debug for TablesOf<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TablesOf").field("memcg", &self.memcg).finish_non_exhaustive()
    }
}

impl<O: Owners> GroupTables for TablesOf<'_, O> {
    fn walk(&mut self, pages: &PageArray, walks: &mut PolicyWalks, all: bool) -> Vec<Pfn> {
        let &mut TablesOf { memcg, node, can_swap, table_len, .. } = self;
        let scope =
            WalkScope { memcg, node, can_swap, filters: !all, skips_unused: true, table_len };
        let mut used = Vec::new();
        loop {
            let read = |walk: &mut TableWalk<'_>| self.owners.walk_tables(walk);
            match walks.tables.walk_next(walks.nr, scope, pages, self.work, read) {
                Some(more) => used.extend(more),
                None => return used,
            }
        }
    }

    fn look_around(&mut self, pages: &PageArray, walks: &mut PolicyWalks, pfn: Pfn) -> Vec<Pfn> {
        // Uses by tasks of every group count, so no group is asked for its parent.
        let no_groups = IdVec::default();
        let mut within = ReclaimScope::new(&no_groups, None);
        if self.forgets_random {
            within = within.without_random();
        }
        let page = &pages[pfn];
        let (at, huge) = (OwnerSlot::of(page), page.has(PageFlags::HEAD));
        let mut around = LookAround::of(page, self.can_swap, true, pages, self.table_len);
        let PageReferences { nr, nr_entries_read, .. } =
            self.owners.referenced_around(at, page.mapcount, huge, within, &mut around);
        let LookAround { used: neighbours, dense, nr_entries, .. } = around;
        self.work.ptes_walked += nr_entries;
        self.work.ptes_used += neighbours.len() as u32;
        self.work.rmap_walks += nr_entries_read;
        walks.tables.note_dense(walks.nr + 1, &dense);
        (nr > 0).then_some(pfn).into_iter().chain(neighbours).collect()
    }
}
