//! Switching between the two lists and generations.
//!
//! Linux: `lru_gen_change_state`, `fill_evictable`, `drain_evictable` (mm/vmscan.c, 6.1).

use super::memcg_lru::MemcgLru;
use super::window::Generations;
use crate::ageing::two_lists::TwoLists;
use crate::ageing::Ageing;
use crate::interface::kernel::Kernel;
use crate::units::{MemcgId, NodeId};
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Ageing {
    /// Empty lists. `by_zone`: each zone has its own two lists.
    pub(crate) fn new(generations: bool, by_zone: bool) -> Ageing {
        match generations {
            true => Ageing::Generations(Box::new(Generations::new())),
            false => Ageing::TwoLists(TwoLists::new(by_zone)),
        }
    }
}

impl Kernel {
    /// Begins the memcg LRU of each node, or ends them, as the era wants.
    pub(crate) fn set_memcg_lru(&mut self) {
        self.groups.memcg_lru.clear();
        if self.era.lists_groups {
            let mut list = MemcgLru::default();
            let online = self.memcg_ids().filter(|&id| self.groups.memcgs[id].online);
            online.for_each(|id| list.add(id));
            self.groups.memcg_lru.resize(self.mem.pgdat.len(), list);
        }
    }

    /// Puts every page on the lists that the era wants, as if it had just entered: an active page
    /// becomes young, and a page of a young generation becomes active.
    pub(crate) fn switch_ageing(&mut self) {
        let (generations, by_zone) = (self.era.generations, self.era.lists_by_zone);
        for memcg in 0..self.groups.memcgs.len() {
            for node in 0..self.groups.memcgs[memcg].lruvecs.len() {
                let (memcg, node) = (MemcgId(memcg as u16), NodeId(node as u8));
                let lruvec = &self.groups.memcgs[memcg].lruvecs[node];
                let mut pages = Vec::new();
                for list in lruvec.ageing.lists() {
                    let first = pages.len();
                    pages.extend(list.iter(&self.mem.pages));
                    pages[first..].reverse();
                }
                pages.iter().for_each(|&pfn| self.lruvec_remove(pfn));
                self.groups.memcgs[memcg].lruvecs[node].ageing = Ageing::new(generations, by_zone);
                pages.iter().for_each(|&pfn| self.lruvec_add(pfn));
            }
        }
    }
}
