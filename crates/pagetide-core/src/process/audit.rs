//! Audit of the process layer: checks processes and files against their pages.
//!
//! Linux: `check_mm`, `VM_BUG_ON_PAGE` on mapcounts, and invariants that Linux does not check.

use super::page_table::{Backing, Pte};
use super::Machine;
use crate::audit::{check, Violation};
use crate::frames::page::{PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::interface::owners::OwnerSlot;
use crate::process::object::{MemoryObject, ObjectSlot};
use crate::process::Processes;
use crate::units::{FileId, IdVec, MemcgId, Pfn, HPAGE_PMD_NR};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

impl Memory {
    fn nr_huge_entries(&self, ptes: &[Pte]) -> u64 {
        let is_huge = |pte: &&Pte| {
            let present = pte.is_present() && !pte.is_zero_page();
            present && {
                let page = &self.pages[pte.pfn()];
                page.place == Place::HugeTail || page.has(PageFlags::HEAD)
            }
        };
        ptes.iter().filter(is_huge).count() as u64
    }
}

impl Processes {
    /// An id is free exactly if its object is gone; living address spaces are listed by age.
    fn audit_ids(&self) -> Result<(), Violation> {
        let owners = &self;
        let gone = [
            ("mm", owners.mms.iter().map(|mm| mm.exited).collect::<Vec<_>>(), &owners.mm_ids),
            ("vma", owners.vmas.iter().map(|vma| !vma.alive).collect(), &owners.vma_ids),
            ("file", owners.files.iter().map(|file| file.gone).collect(), &owners.file_ids),
        ];
        for (name, mut gone, ids) in gone {
            for id in ids.free() {
                let was = gone.get_mut(id as usize).map(core::mem::take);
                check!(was == Some(true), "{name}{id} is on the free list twice, or in use");
            }
            check!(!gone.contains(&true), "the id of a removed {name} is not free");
        }
        let ages: Vec<u64> = owners.living.iter().map(|mm| owners.mms[*mm].generation).collect();
        check!(ages.is_sorted(), "address spaces are not sorted by age");
        let living = owners.mms.iter().filter(|mm| !mm.exited).count();
        check!(ages.len() == living, "{living} living address spaces, {} are listed", ages.len());
        Ok(())
    }
}

impl Machine {
    /// Checks entries, kernel blocks, page caches, tasks of groups, and ids.
    pub(super) fn audit_processes(&self) -> Result<(), Violation> {
        self.audit_mappings()?;
        self.audit_huge_mappings()?;
        self.audit_objects()?;
        self.audit_kernel_blocks()?;
        self.audit_page_cache()?;
        self.audit_tree_nodes()?;
        self.audit_buffer_heads()?;
        self.audit_tasks()?;
        self.owners.audit_ids()
    }

    fn audit_tasks(&self) -> Result<(), Violation> {
        let mut tasks: IdVec<MemcgId, u32> = vec![0u32; self.groups.memcgs.len()].into();
        let dying = self.owners.mms.iter().filter(|mm| mm.oom_victim && !mm.exited).count();
        let known = self.owners.dying.iter().map(|mm| &self.owners.mms[*mm]);
        let known = known.filter(|mm| mm.oom_victim && !mm.exited).count();
        check!(dying == known, "{dying} living OOM victims, {known} are listed");
        let alive = self.owners.mms.iter().filter(|mm| !mm.exited);
        alive.for_each(|mm| tasks[mm.memcg] += 1);
        for (id, (group, found)) in self.groups.memcgs.iter().zip(tasks.iter().copied()).enumerate()
        {
            check!(group.nr_tasks == found, "memcg{id}: {found} tasks, not {}", group.nr_tasks);
        }
        Ok(())
    }

    /// The nodes of the files' trees are objects in use.
    fn audit_tree_nodes(&self) -> Result<(), Violation> {
        for (id, file) in self.owners.files.iter().enumerate() {
            check!(file.tree_bits_agree(), "file{id}: tree bits and slots disagree");
            for node in file.node_objects() {
                self.slabs.audit_in_use(node, &format!("a tree node of file{id}"))?;
            }
            for (index, node) in file.leaf_nodes() {
                let (listed, wanted) =
                    (self.slabs.is_shadow_node(node), file.has_only_shadows(index));
                check!(listed == wanted, "file{id} page {index}: shadow node listed: {listed}");
            }
        }
        Ok(())
    }

    /// A huge page is mapped by the 512 entries of its region, in order. No other entry maps one of
    /// its tail pages.
    fn audit_huge_mappings(&self) -> Result<(), Violation> {
        let mut heads = 0;
        for (head, page) in self.mem.pages.opened().filter(|(_, page)| page.has(PageFlags::HEAD)) {
            if page.mapcount == 0 {
                // The huge page is pinned or in the swap cache, and unmapped.
                continue;
            }
            heads += 1;
            let (vma, start) = (&self.owners.vmas[page.mapping as usize], u64::from(page.index));
            check!(start.is_multiple_of(HPAGE_PMD_NR), "{head:?}: at page {start} of a mapping");
            check!(vma.has_region(start), "{head:?}: extends beyond its mapping");
            for (pte, pfn) in vma.region(start).iter().zip(head.0..) {
                check!(
                    pte.is_present() && pte.is_dirty() && pte.pfn() == Pfn(pfn),
                    "{head:?}: the entry of pfn{pfn} is {pte:?}"
                );
            }
            let table = vma.tables[self.mem.page_size.table_of(start)];
            check!(table.is_some(), "{head:?}: no page table for a split");
        }
        let entries: u64 =
            self.owners.vmas.iter().map(|vma| self.mem.nr_huge_entries(&vma.ptes)).sum();
        let found = heads * HPAGE_PMD_NR;
        check!(entries == found, "{entries} entries for {heads} huge pages");
        Ok(())
    }

    fn audit_mappings(&self) -> Result<(), Violation> {
        let pages = &self.mem.pages;
        let mut mapcounts: IdVec<Pfn, u32> = vec![0; pages.len()].into();
        for (id, vma) in self.owners.vmas.iter().enumerate() {
            let (mut present, mut swapped) = (0, 0);
            for (at, &pte) in vma.ptes.iter().enumerate() {
                if let Some(slot) = pte.swap_slot() {
                    swapped += 1;
                    check!(
                        self.swap[slot].is_mapped(slot),
                        "vma {id} page {at}: {slot:?} is not mapped"
                    );
                } else if let Some((pfn, _)) = pte.migrating() {
                    let page = &pages[pfn];
                    check!(
                        page.has(PageFlags::MIGRATING) && page.index as usize == at,
                        "vma {id} page {at}: waits for {pfn:?}, which is {page:?}"
                    );
                } else if pte.is_present() && !pte.is_zero_page() {
                    present += 1;
                    let pfn = pte.pfn();
                    let page = &pages[pfn];
                    // The first entry of a huge page counts; the others are checked with it.
                    if page.place == Place::HugeTail {
                        continue;
                    }
                    mapcounts[pfn] += 1;
                    check!(
                        page.index as usize == at,
                        "vma {id} page {at}: {pfn:?} has another index"
                    );
                    match vma.backing {
                        Backing::Anon => check!(
                            page.is_anon() && page.mapping as usize == id,
                            "vma {id} page {at}: {pfn:?} has another owner"
                        ),
                        Backing::File(file) => check!(
                            self.owners.files[file].get(at as u32) == Some(pfn),
                            "vma {id} page {at}: {pfn:?} is not the cached page"
                        ),
                    }
                }
            }
            check!(
                vma.nr_present == present,
                "vma {id}: {} present, {present} found",
                vma.nr_present
            );
            check!(
                vma.nr_swapped == swapped,
                "vma {id}: {} swapped, {swapped} found",
                vma.nr_swapped
            );
            let tables = vma.tables.iter().filter(|table| table.is_some()).count() as u32;
            check!(vma.nr_tables == tables, "vma {id}: {} tables, {tables}", vma.nr_tables);
        }
        for (Pfn(at), page) in pages.opened() {
            let mapcount = u32::from(page.mapcount);
            check!(
                mapcount == mapcounts[at as usize],
                "pfn{at}: mapcount {mapcount}, {} entries",
                mapcounts[at as usize]
            );
        }
        Ok(())
    }
    fn audit_kernel_blocks(&self) -> Result<(), Violation> {
        for (id, mm) in self.owners.mms.iter().enumerate() {
            check!(
                !mm.exited || mm.kernel_blocks.is_empty(),
                "mm{id} has ended but holds kernel memory"
            );
            for (at, pfn) in mm.kernel_blocks.iter().enumerate() {
                let page = &self.mem.pages[*pfn];
                check!(
                    page.mapping as usize == id && page.index as usize == at,
                    "mm{id} block {at}: {pfn:?} has another owner"
                );
                check!(
                    page.place == Place::Allocated && page.flags == PageFlags::EMPTY,
                    "mm{id} block {at}: {pfn:?} is {page:?}"
                );
            }
        }
        Ok(())
    }

    /// Every mapped page is in the slot of its object that it names.
    fn audit_objects(&self) -> Result<(), Violation> {
        let mapped =
            self.mem.pages.opened().filter(|(_, page)| page.is_user() && page.mapcount > 0);
        for (pfn, page) in mapped.filter(|(_, page)| !page.has(PageFlags::MIGRATING)) {
            let object = MemoryObject::of(OwnerSlot::of(page));
            let slot = self.owners.slot(object, page.index);
            check!(slot == ObjectSlot::Frame(pfn), "{pfn:?}: {object:?} has {slot:?} in its slot");
        }
        Ok(())
    }

    /// Page-cache slots and dirty tags agree with page descriptors.
    fn audit_page_cache(&self) -> Result<(), Violation> {
        let pages = &self.mem.pages;
        let mut nr_file = 0;
        let mut of_writebacks = alloc::vec![(0, 0, 0); self.owners.writeback.counts().count()];
        for (id, file) in self.owners.files.iter().enumerate() {
            let (mut found, mut written) = (0, 0);
            let mut wrong = None;
            file.for_each_cached(|index, pfn| {
                found += 1;
                let page = &pages[pfn];
                written += u64::from(page.has(PageFlags::WRITEBACK));
                let matches =
                    page.has(PageFlags::FILE) && page.mapping as usize == id && page.index == index;
                if !matches {
                    wrong = Some((index, pfn));
                }
            });
            if let Some((index, pfn)) = wrong {
                return Err(Violation(format!("file{id} page {index}: {pfn:?} disagrees")));
            }
            check!(found == file.nr_pages, "file{id}: {} pages, {found} found", file.nr_pages);
            nr_file += found;
            let (mut at, mut dirty) = (0, 0);
            while let Some(index) = file.next_dirty(at) {
                at = index + 1;
                dirty += 1;
                let marked = file.get(index).is_some_and(|pfn| pages[pfn].has(PageFlags::DIRTY));
                check!(marked, "file{id} page {index} is tagged dirty, but its page is clean");
            }
            check!(dirty == file.nr_dirty, "file{id}: {} dirty, {dirty} found", file.nr_dirty);
            let queued = self.owners.writeback.nr_queued(FileId(id as u32), file.wb);
            check!(queued <= 1, "file{id} is queued for writeback {queued} times");
            check!(dirty == 0 || queued == 1, "file{id} is dirty, but not queued for writeback");
            let counted = file.nr_writeback;
            check!(written == counted, "file{id}: {counted} under writeback, {written} found");
            if let Some(wb) = file.wb {
                let (nr_dirty, nr_writeback, nr_files) = &mut of_writebacks[wb as usize];
                *nr_dirty += dirty;
                *nr_writeback += written;
                *nr_files += u32::from(written > 0);
            }
        }
        for (counted, found) in self.owners.writeback.counts().zip(of_writebacks) {
            check!(counted == found, "a writeback counts {counted:?}, its files have {found:?}");
        }
        let by_page = pages.opened().filter(|(_, page)| page.has(PageFlags::FILE)).count() as u64;
        check!(by_page == nr_file, "{by_page} file pages, {nr_file} in page caches");
        for (Pfn(at), page) in pages.opened() {
            if page.has(PageFlags::FILE) && page.has(PageFlags::DIRTY) {
                let file = &self.owners.files[FileId(page.mapping)];
                check!(
                    file.next_dirty(page.index) == Some(page.index),
                    "pfn{at} is dirty, but not tagged"
                );
            }
        }
        Ok(())
    }
}
