//! The audit of zswap: its entries, lists, counts and charges.
//!
//! Linux: no such check; `zswap_entry_free` and the rbtree have warnings only.

use super::{Zswap, ZswapContent, ZswapEntryId};
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::slab::objcg::NO_OWNER;
use crate::slab::object::Object;
use crate::swap::slot_tree::SlotTreeKind;
use crate::swap::zswap::ZswapStats;
use crate::units::{IdVec, MemcgId, NodeId, SwapSlot};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Ends the audit with a message unless a condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

impl Zswap {
    /// The memory of all entries.
    pub fn kernel_objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.entries.iter().flatten().map(|entry| entry.object)
    }

    /// Checks that the lists have each entry with an object once, in order.
    fn audit_lists(&self) -> Result<(), String> {
        let mut nr_listed = 0;
        for at in 0..self.lists.len() {
            let (memcg, node) = (MemcgId((at / self.nr_nodes) as u16), at % self.nr_nodes);
            let node = NodeId(node as u8);
            let ids: Vec<ZswapEntryId> = self.listed(memcg, node).collect();
            let turns: Vec<u64> = ids.iter().map(|&id| self.at(id).turn).collect();
            check!(turns.is_sorted(), "{memcg:?}'s entries are out of order: {turns:?}");
            check!(self.lists[at].len == ids.len() as u64, "{memcg:?}: {} listed", ids.len());
            for entry in ids.iter().map(|&id| self.at(id)) {
                let is_here = (entry.memcg, entry.node) == (memcg, node);
                check!(is_here, "{entry:?} is on the list of {memcg:?}");
                check!(entry.content != ZswapContent::Same, "{entry:?} is on a list");
            }
            nr_listed += ids.len() as u64;
        }
        check!(nr_listed == self.pool.nr_objects(), "{nr_listed} entries are on lists");
        Ok(())
    }
}

impl Kernel {
    /// Checks zswap; `Ok` if it is not enabled.
    pub(crate) fn audit_zswap(&self) -> Result<(), String> {
        let mut sums: IdVec<MemcgId, (u64, u64)> = vec![(0, 0); self.groups.memcgs.len()].into();
        if let Some(zswap) = &self.swap.zswap {
            zswap.audit_lists()?;
            let mut found = ZswapStats {
                stored_pages: 0,
                same_filled_pages: 0,
                compressed_bytes: 0,
                ..zswap.stats
            };
            for (at, entry) in zswap.entries.iter().enumerate() {
                let Some(entry) = entry else { continue };
                found.count(entry.content, true);
                let slot = entry.slot;
                let is_its = zswap.entry_of(slot) == Some(ZswapEntryId(at as u32));
                check!(is_its, "{entry:?} is not the entry of its slot");
                let area = &self.swap[slot];
                check!(!area.is_synchronous(), "{entry:?} is in front of a zram area");
                check!(area.use_of(slot).0, "{slot:?} is free but zswap stores it");
                check!(entry.memcg == self.zswap_group(entry.objcg), "{entry:?}: wrong group");
                if entry.objcg != NO_OWNER {
                    sums[entry.memcg].0 += u64::from(entry.size());
                    sums[entry.memcg].1 += 1;
                }
            }
            check!(found == zswap.stats, "zswap: {found:?}, counted {:?}", zswap.stats);
            for area in self.swap.areas() {
                let slots = area.slots().map(|slot| SwapSlot(slot as u32));
                let in_tree = slots
                    .filter(|&slot| zswap.entry_of(slot).is_some_and(|id| zswap.at(id).in_tree));
                let in_area = in_tree.map(|slot| slot.0 - area.first);
                let tree = &area.trees[SlotTreeKind::Zswap as usize];
                check!(tree.has_exactly(in_area), "a tree of zswap has other entries");
            }
            let nr = zswap.by_slot.iter().filter(|id| id.real().is_some()).count() as u64;
            check!(nr == found.stored_pages, "zswap: {nr} slots, {found:?}");
        }
        let ids: Vec<MemcgId> = self.memcg_ids().collect();
        for &id in ids.iter().rev() {
            let (sum, group) = (sums[id], &self.groups.memcgs[id]);
            let counted = (group.zswap_bytes, group.zswapped);
            check!(counted == sum, "{id:?}: {counted:?} bytes and pages in zswap, {sum:?} found");
            if id != ROOT {
                let parent = &mut sums[group.parent];
                (parent.0, parent.1) = (parent.0 + sum.0, parent.1 + sum.1);
            }
        }
        Ok(())
    }

    /// Adds the bytes that each owner pays for in zswap.
    pub(crate) fn add_zswap_bytes(&self, bytes: &mut [i64]) {
        let entries = self.swap.zswap.iter().flat_map(|zswap| &zswap.entries).flatten();
        for entry in entries.filter(|entry| entry.objcg != NO_OWNER) {
            bytes[usize::from(entry.objcg)] += i64::from(entry.size());
        }
    }
}
