//! Charges of compressed pages, and the limits of groups.
//!
//! Linux: `obj_cgroup_may_zswap`, `obj_cgroup_charge_zswap`, `obj_cgroup_uncharge_zswap`,
//! `mem_cgroup_zswap_writeback_enabled` (mm/memcontrol.c, 6.1 and 6.12). The group of a page pays for
//! its compressed bytes as for an object of the kernel; a charge in reclaim is never refused.
//!
//! Invariant: `zswap_bytes` and `zswapped` of a group are the bytes and the number of the entries
//! charged to it and to its descendants.

use super::{ZswapContent, ZswapEntry};
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::slab::objcg::NO_OWNER;
use crate::units::{Cpu, MemcgId};

impl ZswapEntry {
    pub(super) fn size(&self) -> u32 {
        match self.content {
            ZswapContent::Same => 0,
            ZswapContent::Object { size, .. } => size,
        }
    }
}

impl Groups {
    /// Whether pages of a group may be stored: no group on the path to the root is at its
    /// `memory.zswap.max`.
    pub(super) fn may_zswap(&self, memcg: MemcgId, page_bytes: u64) -> bool {
        self.path(memcg).all(|at| {
            let group = &self.memcgs[at];
            group.zswap_bytes / page_bytes < group.zswap_max
        })
    }

    /// Whether pages of a group may leave zswap for its disk, or go there around it
    /// (`memory.zswap.writeback`).
    pub(in crate::swap) fn zswap_writeback_enabled(&self, memcg: MemcgId) -> bool {
        self.path(memcg).all(|at| self.memcgs[at].zswap_writeback)
    }

    /// A group and its ancestors, without the root.
    fn path(&self, memcg: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        let real = |at: MemcgId| (at.is_some() && at != ROOT).then_some(at);
        core::iter::successors(real(memcg), move |&at| real(self.memcgs[at].parent))
    }

    fn change_zswap(&mut self, memcg: MemcgId, change: impl Fn(&mut u64, &mut u64)) {
        let mut at = memcg;
        while at.is_some() {
            let group = &mut self.memcgs[at];
            change(&mut group.zswap_bytes, &mut group.zswapped);
            at = group.parent;
        }
    }
}

impl Kernel {
    /// The owner of kernel memory that pays for a page of a group; none for the root, or if kernel
    /// memory is not charged.
    pub(super) fn zswap_owner(&self, memcg: MemcgId) -> u16 {
        if self.era.counts_memory_and_swap {
            return NO_OWNER;
        }
        let owners = self.groups.path(memcg).map(|at| self.groups.memcgs[at].objcg);
        owners.into_iter().find(|&owner| owner != NO_OWNER).unwrap_or(NO_OWNER)
    }

    pub(super) fn charge_zswap(&mut self, entry: &ZswapEntry, cpu: Cpu) {
        if entry.objcg == NO_OWNER {
            return;
        }
        let bytes = entry.size();
        self.obj_charge_zswap(cpu, entry.objcg, bytes);
        self.groups.change_zswap(entry.memcg, |sum, nr| {
            *sum += u64::from(bytes);
            *nr += 1;
        });
    }

    pub(super) fn uncharge_zswap(&mut self, entry: &ZswapEntry, cpu: Cpu) {
        if entry.objcg == NO_OWNER {
            return;
        }
        let bytes = entry.size();
        self.groups.change_zswap(entry.memcg, |sum, nr| {
            *sum -= u64::from(bytes);
            *nr -= 1;
        });
        self.obj_uncharge_zswap(cpu, entry.objcg, bytes);
    }
}
