//! The audit of memory groups: the tree, its counters, its sums.
//!
//! Linux: the warning of `page_counter_uncharge`, and invariants that Linux does not check.

use super::{check, Violation};
use crate::ageing::lruvec::{Lru, NR_LRU_LISTS};
use crate::frames::page::PageFlags;
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::units::{IdVec, MemcgId};
use alloc::vec;
use alloc::vec::Vec;

impl Kernel {
    /// The memcg LRU of each node holds the groups that were not removed.
    fn audit_memcg_lru(&self) -> Result<(), Violation> {
        for (node, list) in self.groups.memcg_lru.iter().enumerate() {
            let online = self.memcg_ids().filter(|&id| self.groups.memcgs[id].online);
            check!(list.holds(online), "the memcg LRU of node{node} does not hold all groups");
        }
        Ok(())
    }

    /// A group's key matches its position on a node's tree; groups on no tree have no key.
    fn audit_soft_limits(&self) -> Result<(), Violation> {
        for node in 0..self.mem.pgdat.len() {
            let mut on_tree = 0;
            for (key, memcg) in self.groups.soft_limit_trees.of_node(node) {
                let known = self.groups.memcgs[memcg].lruvecs[node].soft_limit_key;
                check!(
                    known == Some(key),
                    "{memcg:?} is on node{node}'s tree by {key:?}, not {known:?}"
                );
                on_tree += 1;
            }
            let lruvecs = self.groups.memcgs.iter().filter_map(|memcg| memcg.lruvecs.get(node));
            let keys = lruvecs.filter(|lruvec| lruvec.soft_limit_key.is_some()).count();
            check!(
                keys == on_tree,
                "node{node}: {keys} groups have a key, {on_tree} are on the tree"
            );
        }
        Ok(())
    }
}

impl<O: Owners> Manager<O> {
    /// Checks the tree's links, subtree sums, and the counters of pages, swap slots and stocks.
    pub(super) fn audit_groups(&self) -> Result<(), Violation> {
        let ids: Vec<MemcgId> = self.memcg_ids().collect();
        let online = self.groups.memcgs.iter().filter(|memcg| memcg.online || memcg.dying).count();
        check!(ids.len() == online, "{online} groups exist, a walk finds {}", ids.len());
        let gone = self.groups.memcgs.len() - online;
        check!(
            self.groups.free_memcgs.len() == gone,
            "{gone} ids are free, not {:?}",
            self.groups.free_memcgs
        );

        let parents = self.groups.memcgs.iter().map(|memcg| &memcg.parent);
        check!(
            self.groups.parents.iter().eq(parents),
            "the table of parents does not match the groups"
        );

        let mut stocked: IdVec<MemcgId, u64> = vec![0; self.groups.memcgs.len()].into();
        for stock in self.groups.stocks.iter().filter(|stock| stock.memcg.is_some()) {
            stocked[stock.memcg] += stock.nr_pages;
        }
        let mut slots = vec![0u64; self.groups.memcgs.len()];
        let mut strays = 0;
        let pays = |is_cached: bool| !(self.era.counts_memory_and_swap && is_cached);
        self.swap.for_each_owner(|owner, is_cached| match slots.get_mut(owner.idx()) {
            Some(slots) if self.groups.memcgs[owner].online => *slots += u64::from(pays(is_cached)),
            _ => strays += 1,
        });
        check!(strays == 0, "{strays} swap slots in use by groups that do not exist");

        let mut writebacks: IdVec<MemcgId, _> = vec![(0u64, 0u64); self.groups.memcgs.len()].into();
        for (_, page) in self.mem.pages.opened().filter(|(_, page)| page.memcg.is_some()) {
            let of_group = &mut writebacks[page.memcg];
            of_group.0 += u64::from(page.has(PageFlags::FILE) && page.has(PageFlags::DIRTY));
            of_group.1 += u64::from(page.has(PageFlags::WRITEBACK)) * page.nr_pages();
        }
        // A walk visits parents first, so in reverse order the children's sums are complete.
        let mut memory = vec![0u64; self.groups.memcgs.len()];
        let mut swap = vec![0u64; self.groups.memcgs.len()];
        let mut protected = vec![[0u64; 2]; self.groups.memcgs.len()];
        let mut lists =
            vec![vec![[0u64; NR_LRU_LISTS]; self.mem.pgdat.len()]; self.groups.memcgs.len()];
        for &id in ids.iter().rev() {
            let (at, group) = (id.idx(), &self.groups.memcgs[id]);
            if id == ROOT {
                check!(stocked[at] == 0, "the root has a stock");
            } else {
                memory[at] += group.charged + group.kernel_pages + stocked[at];
                swap[at] += slots[at];
            }
            let counts = (group.file_dirty, group.writeback);
            check!(
                counts == writebacks[at],
                "{id:?}: (dirty, writeback) {counts:?}, not {:?}",
                writebacks[at]
            );
            if group.parent.is_some() {
                let (dirty, writeback) = writebacks[at];
                let of_parent = &mut writebacks[group.parent];
                *of_parent = (of_parent.0 + dirty, of_parent.1 + writeback);
            }
            let counter = &group.memory;
            let (usage, found) = (counter.usage, memory[at]);
            check!(usage == found, "{id:?}: usage {usage}, but own + children + stocks {found}");
            check!(
                group.swap.usage == swap[at],
                "{id:?}: {} slots, not {}",
                swap[at],
                group.swap.usage
            );
            let children = [counter.children_min_usage, counter.children_low_usage];
            check!(
                children == protected[at],
                "{id:?}: {children:?} protected below, not {:?}",
                protected[at]
            );
            for (node, lruvec) in group.lruvecs.iter().enumerate() {
                for lru in Lru::ALL {
                    let size = lruvec.size(lru);
                    let lru = lru as usize;
                    lists[at][node][lru] += size;
                    let (sum, found) = (lruvec.subtree[lru], lists[at][node][lru]);
                    check!(
                        id == ROOT || sum == found,
                        "{id:?} node{node} list {lru}: sum {sum}, not {found}"
                    );
                }
            }
            if group.parent.is_some() {
                let parent = group.parent.idx();
                memory[parent] += memory[at];
                swap[parent] += swap[at];
                let [min, low] = counter.protected_usage();
                protected[parent][0] += min;
                protected[parent][1] += low;
                let own = core::mem::take(&mut lists[at]);
                for (sums, own) in lists[parent].iter_mut().zip(&own) {
                    sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
                }
            }
        }
        for (at, group) in self.groups.memcgs.iter().enumerate().filter(|(_, group)| !group.online)
        {
            // A dying group has slab pages only.
            let usage = if group.dying { 0 } else { group.memory.usage };
            let holds = [group.charged, usage, group.swap.usage, stocked[at]];
            check!(
                holds == [0; 4] && group.nr_tasks == 0,
                "memcg{at} was removed and holds {holds:?}"
            );
        }
        let mut tables: IdVec<MemcgId, u64> = vec![0; self.groups.memcgs.len()].into();
        self.owners.for_each_table_frame(&mut |table| {
            tables[self.mem.pages[table].memcg] += 1;
        });
        self.groups.audit_kmem(&ids, &tables)?;
        self.audit_memcg_lru()?;
        self.audit_soft_limits()
    }
}
