//! Switching between the two lists, generations and a page policy.
//!
//! Linux: `lru_gen_change_state`, `fill_evictable`, `drain_evictable` (mm/vmscan.c, 6.1).

use super::generations::memcg_lru::MemcgLru;
use super::generations::window::Generations;
use super::page_policy::PolicyLists;
use super::two_lists::TwoLists;
use super::Ageing;
use crate::config::era::Era;
use crate::interface::kernel::Kernel;
use crate::units::{MemcgId, NodeId};
use alloc::boxed::Box;
use alloc::vec::Vec;

impl Ageing {
    /// Empty lists as the era wants them.
    pub(crate) fn built_in(era: &Era) -> Ageing {
        match era.generations {
            true => Ageing::Generations(Box::new(Generations::new())),
            false => Ageing::TwoLists(TwoLists::new(era.lists_by_zone)),
        }
    }
}

impl Kernel {
    /// Empty lists as the machine orders pages.
    pub(crate) fn new_ageing(&self) -> Ageing {
        match &self.plugin.pages {
            Some(chosen) => Ageing::Policy(Box::new(PolicyLists::new(chosen.policy.boxed()))),
            None => Ageing::built_in(&self.era),
        }
    }

    /// Whether a plug-in orders pages.
    pub(crate) fn has_page_policy(&self) -> bool {
        self.plugin.pages.is_some()
    }

    /// Begins the memcg LRU of each node, or ends them, as the era wants.
    pub(crate) fn set_memcg_lru(&mut self) {
        self.groups.memcg_lru.clear();
        if self.era.lists_groups {
            let mut list = MemcgLru::new(self.groups.memcg_lru_seed);
            let online = self.memcg_ids().filter(|&id| self.groups.memcgs[id].online);
            online.for_each(|id| list.add(id));
            self.groups.memcg_lru.resize(self.mem.pgdat.len(), list);
        }
    }

    /// Puts every page on the lists that the era or a plug-in wants, as if it had just entered: an active page
    /// becomes young, and a page of a young generation becomes active.
    pub(crate) fn switch_ageing(&mut self) {
        self.leaves_two_lists = self.era.generations || self.has_page_policy();
        let in_flight: Vec<_> = self.compactions.in_flight().map(|(pfn, _)| pfn).collect();
        for pfn in in_flight {
            self.mem.pages[pfn].set_policy_list(None);
        }
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
                for &pfn in &pages {
                    self.lruvec_remove(pfn);
                    self.mem.pages[pfn].set_policy_list(None);
                }
                let unevictable = self.groups.memcgs[memcg].lruvecs[node].unevictable;
                let locked: Vec<_> = unevictable.iter(&self.mem.pages).collect();
                for pfn in locked {
                    self.mem.pages[pfn].set_policy_list(None);
                }
                self.groups.memcgs[memcg].lruvecs[node].ageing = self.new_ageing();
                pages.iter().for_each(|&pfn| self.lruvec_add(pfn));
            }
        }
    }
}
