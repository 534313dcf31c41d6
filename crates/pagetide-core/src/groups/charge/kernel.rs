//! Charging groups for kernel memory: slab pages and page tables.
//!
//! Linux: `obj_cgroup_charge_pages`, `memcg_account_kmem` (6.1), `__memcg_kmem_charge` (5.5). These
//! pages count in a group's memory and also in its kernel memory (`memory.kmem.usage_in_bytes`,
//! `kernel` in memory.stat), which has its own limit in version 1. A charge that would exceed this
//! limit fails; it does not reclaim.
//!
//! Invariant: `kernel_pages` of a group is the number of pages charged to it for slabs. Its kernel
//! counter is the sum of these pages, its page tables, and the counters of its children.

use super::ChargeFailure;
use crate::frames::gfp::Gfp;
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::slab::allocate::SlabShortage;
use crate::units::{Cpu, MemcgId};

impl Groups {
    /// Charges a group for slab pages. The error says which limit prevents the charge, or that the
    /// task must first reclaim because it is above `memory.high`.
    pub(crate) fn charge_kernel_pages(
        &mut self,
        ctx: &Ctx,
        memcg: MemcgId,
        nr: u64,
        gfp: Gfp,
    ) -> Result<(), SlabShortage> {
        if let Some(over) = self.over_kernel_limit(memcg, nr) {
            self.memcgs[over].kmem.failcnt += 1;
            return Err(SlabShortage::Denied);
        }
        self.try_charge(ctx, memcg, nr, gfp).map_err(|lack| match lack {
            ChargeFailure::Limit(over) => SlabShortage::Charge(over, nr),
            ChargeFailure::Owing => SlabShortage::Owing,
        })?;
        self.account_kernel_pages(memcg, nr as i64);
        Ok(())
    }

    /// Puts pages into the CPU's stock regardless of limits, for callers that cannot wait (Linux
    /// `__GFP_NOFAIL`).
    pub(crate) fn force_charge(&mut self, cpu: Cpu, memcg: MemcgId, nr: u64) {
        if memcg != ROOT {
            self.change_usage(memcg, nr as i64);
            self.refill_stock(cpu, memcg, nr);
        }
    }

    /// Charges a group for slab pages regardless of limits.
    pub(crate) fn force_charge_kernel_pages(&mut self, memcg: MemcgId, nr: u64) {
        if memcg != ROOT {
            self.change_usage(memcg, nr as i64);
        }
        self.account_kernel_pages(memcg, nr as i64);
    }

    /// Uncharges slab pages from a group, bypassing the stock.
    pub(crate) fn uncharge_kernel_pages(&mut self, memcg: MemcgId, nr: u64) {
        self.account_kernel_pages(memcg, -(nr as i64));
        if memcg != ROOT {
            self.uncharge_counter(memcg, nr);
        }
    }

    /// Counts slab pages charged to a group (Linux `memcg_account_kmem`).
    pub(crate) fn account_kernel_pages(&mut self, memcg: MemcgId, change: i64) {
        let pages = &mut self.memcgs[memcg].kernel_pages;
        debug_assert!(*pages as i64 + change >= 0, "{memcg:?} has {pages} pages of slabs");
        *pages = pages.wrapping_add_signed(change);
        self.change_kmem(memcg, change);
    }

    pub(crate) fn change_kmem(&mut self, memcg: MemcgId, change: i64) {
        // The root's own pages are not counted.
        let mut at = if memcg == ROOT { MemcgId::NONE } else { memcg };
        while at.is_some() {
            let group = &mut self.memcgs[at];
            debug_assert!(group.kmem.usage as i64 + change >= 0, "{at:?} is uncharged too much");
            group.kmem.usage = group.kmem.usage.wrapping_add_signed(change);
            group.kmem.peak = group.kmem.peak.max(group.kmem.usage);
            at = self.parents[at];
        }
    }

    /// The first group on the path to the root whose limit of kernel memory leaves no room for `nr`
    /// pages.
    fn over_kernel_limit(&self, memcg: MemcgId, nr: u64) -> Option<MemcgId> {
        let mut at = if memcg == ROOT { MemcgId::NONE } else { memcg };
        while at.is_some() {
            let group = &self.memcgs[at];
            if group.kmem.usage + nr > group.kmem.max {
                return Some(at);
            }
            at = self.parents[at];
        }
        None
    }
}
