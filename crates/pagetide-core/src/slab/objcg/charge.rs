//! Charging groups for objects, and reparenting the owners of a removed group.
//!
//! Linux: `obj_cgroup_charge`, `refill_obj_stock`, `drain_obj_stock`, `memcg_reparent_objcgs`
//! (mm/memcontrol.c, 6.1).

use super::{ObjStock, NO_OWNER};
use crate::frames::gfp::Gfp;
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::slab::allocate::SlabShortage;
use crate::units::{Cpu, MemcgId};

impl Kernel {
    /// Creates a group's owner. The table must have room for it.
    pub(crate) fn create_objcg(&mut self, memcg: MemcgId) {
        let group = &mut self.groups.memcgs[memcg];
        let id = self.slabs.objcgs.create(memcg, group.objcgs.len() as u32);
        group.objcg = id;
        group.objcgs.push(id);
    }

    /// Charges bytes for an object of an owner (Linux `obj_cgroup_charge`). The error says which
    /// limit prevents the charge, or that the task must first reclaim because it is above
    /// `memory.high`.
    pub(crate) fn obj_charge(
        &mut self,
        ctx: &Ctx,
        objcg: u16,
        bytes: u32,
        reclaimable: bool,
        gfp: Gfp,
    ) -> Result<(), SlabShortage> {
        let stock = self.slabs.objcgs.stock_of(ctx.cpu);
        if stock.objcg == objcg && stock.nr_bytes >= bytes {
            stock.take(bytes, reclaimable);
        } else {
            let page_size = self.slabs.page_size as u32;
            let nr = bytes.div_ceil(page_size);
            let memcg = self.slabs.objcgs.memcg_of(objcg);
            self.groups.charge_kernel_pages(ctx, memcg, nr.into(), gfp)?;
            self.refill_obj_stock(ctx.cpu, objcg, nr * page_size - bytes, false);
            self.slabs.objcgs.stock_of(ctx.cpu).grow(bytes.into(), reclaimable);
        }
        Ok(())
    }

    /// Charges bytes regardless of limits. Bypasses the stock of pages, which may be too small for
    /// these bytes.
    pub(crate) fn obj_force_charge(&mut self, cpu: Cpu, objcg: u16, bytes: u32, reclaimable: bool) {
        let page_size = self.slabs.page_size as u32;
        let nr = bytes.div_ceil(page_size);
        let memcg = self.slabs.objcgs.memcg_of(objcg);
        self.groups.force_charge_kernel_pages(memcg, nr.into());
        self.refill_obj_stock(cpu, objcg, nr * page_size - bytes, false);
        self.slabs.objcgs.stock_of(cpu).grow(bytes.into(), reclaimable);
    }

    /// Charges bytes of zswap regardless of limits. They are the owner's, but not of slabs.
    pub(crate) fn obj_charge_zswap(&mut self, cpu: Cpu, objcg: u16, bytes: u32) {
        let stock = self.slabs.objcgs.stock_of(cpu);
        if stock.objcg == objcg && stock.nr_bytes >= bytes {
            stock.nr_bytes -= bytes;
        } else {
            let page_size = self.slabs.page_size as u32;
            let nr = bytes.div_ceil(page_size);
            let memcg = self.slabs.objcgs.memcg_of(objcg);
            self.groups.force_charge_kernel_pages(memcg, nr.into());
            self.refill_obj_stock(cpu, objcg, nr * page_size - bytes, false);
        }
        self.slabs.objcgs.table[usize::from(objcg)].bytes += i64::from(bytes);
    }

    /// Uncharges bytes of zswap.
    pub(crate) fn obj_uncharge_zswap(&mut self, cpu: Cpu, objcg: u16, bytes: u32) {
        self.slabs.objcgs.table[usize::from(objcg)].bytes -= i64::from(bytes);
        self.refill_obj_stock(cpu, objcg, bytes, true);
    }

    /// Uncharges an object of an owner (Linux `obj_cgroup_uncharge`).
    #[inline(always)]
    pub(crate) fn obj_uncharge(&mut self, cpu: Cpu, objcg: u16, bytes: u32, reclaimable: bool) {
        let page_size = self.slabs.page_size as u32;
        let stock = self.slabs.objcgs.stock_of(cpu);
        if stock.objcg != objcg || !stock.put(bytes, reclaimable, page_size) {
            self.refill_obj_stock(cpu, objcg, bytes, true);
            self.slabs.objcgs.stock_of(cpu).grow(-i64::from(bytes), reclaimable);
        }
    }

    /// Puts bytes into a stock. If the stock belongs to another owner, its bytes are drained first,
    /// and the new owner's remainder is added. Whole pages are uncharged if `may_uncharge` is set
    /// or the owner is new.
    #[cold]
    fn refill_obj_stock(&mut self, cpu: Cpu, objcg: u16, bytes: u32, may_uncharge: bool) {
        let mut may_uncharge = may_uncharge;
        if self.slabs.objcgs.stock_of(cpu).objcg != objcg {
            self.drain_obj_stock(cpu);
            let owner = &mut self.slabs.objcgs.table[usize::from(objcg)];
            let nr_bytes = core::mem::take(&mut owner.nr_charged_bytes);
            *self.slabs.objcgs.stock_of(cpu) = ObjStock::new(objcg, nr_bytes);
            may_uncharge = true;
        }
        let page_size = self.slabs.page_size as u32;
        let stock = self.slabs.objcgs.stock_of(cpu);
        stock.nr_bytes += bytes;
        if may_uncharge && stock.nr_bytes > page_size {
            let nr = stock.nr_bytes / page_size;
            stock.nr_bytes %= page_size;
            self.uncharge_object_pages(cpu, objcg, nr.into());
        }
    }

    /// Uncharges pages of objects through the stock of pages.
    fn uncharge_object_pages(&mut self, cpu: Cpu, objcg: u16, nr: u64) {
        let memcg = self.slabs.objcgs.memcg_of(objcg);
        self.groups.account_kernel_pages(memcg, -(nr as i64));
        if memcg != ROOT {
            self.groups.refill_stock(cpu, memcg, nr);
        }
    }

    /// Empties a CPU's stock (Linux `drain_obj_stock`).
    fn drain_obj_stock(&mut self, cpu: Cpu) {
        let stock = core::mem::replace(self.slabs.objcgs.stock_of(cpu), ObjStock::EMPTY);
        if stock.objcg == NO_OWNER {
            return;
        }
        self.mem.work.objcg_drains += 1;
        let page_size = self.slabs.page_size as u32;
        let nr = stock.nr_bytes / page_size;
        if nr > 0 {
            self.uncharge_object_pages(cpu, stock.objcg, nr.into());
        }
        let owner = &mut self.slabs.objcgs.table[usize::from(stock.objcg)];
        owner.nr_charged_bytes += stock.nr_bytes % page_size;
        owner.bytes += stock.slab_bytes[0] + stock.slab_bytes[1];
        let group = &mut self.groups.memcgs[owner.memcg];
        for (sum, bytes) in group.slab_bytes.iter_mut().zip(stock.slab_bytes) {
            *sum += bytes;
        }
        self.release_objcg_if_unused(cpu, stock.objcg);
    }

    /// Empties the object stocks of a group and its descendants.
    pub(crate) fn drain_obj_stocks(&mut self, memcg: MemcgId) {
        for cpu in 0..self.slabs.objcgs.stocks.len() {
            let objcg = self.slabs.objcgs.stocks[cpu].objcg;
            if objcg != NO_OWNER
                && self.groups.is_descendant(self.slabs.objcgs.memcg_of(objcg), memcg)
            {
                self.drain_obj_stock(Cpu(cpu as u16));
            }
        }
    }

    /// Removes an owner that has no group any more, when its last object is gone (Linux
    /// `obj_cgroup_release`).
    fn release_objcg_if_unused(&mut self, cpu: Cpu, objcg: u16) {
        let owner = self.slabs.objcgs.table[usize::from(objcg)];
        let mut stocks = self.slabs.objcgs.stocks.iter();
        if owner.online || owner.bytes != 0 || stocks.any(|stock| stock.objcg == objcg) {
            return;
        }
        let page_size = self.slabs.page_size as u32;
        debug_assert_eq!(owner.nr_charged_bytes % page_size, 0, "bytes without an object");
        let nr = owner.nr_charged_bytes / page_size;
        if nr > 0 {
            self.uncharge_object_pages(cpu, objcg, nr.into());
        }
        let list = &mut self.groups.memcgs[owner.memcg].objcgs;
        list.swap_remove(owner.at as usize);
        if let Some(&moved) = list.get(owner.at as usize) {
            self.slabs.objcgs.table[usize::from(moved)].at = owner.at;
        }
        self.slabs.objcgs.table[usize::from(objcg)].exists = false;
        self.slabs.objcgs.free.push(objcg);
    }

    /// Moves a group's owners, and with them its objects, to its parent, in O(owners) (Linux
    /// `memcg_reparent_objcgs`). The group's stocks must be empty.
    pub(crate) fn reparent_objcgs(&mut self, memcg: MemcgId, parent: MemcgId) {
        let group = &mut self.groups.memcgs[memcg];
        let owners = core::mem::take(&mut group.objcgs);
        let own = core::mem::replace(&mut group.objcg, NO_OWNER);
        let bytes = core::mem::take(&mut group.slab_bytes);
        // This comes before the loop, in which owners without objects return the pages of their
        // remainders.
        let pages = core::mem::take(&mut group.kernel_pages);
        self.groups.memcgs[parent].kernel_pages += pages;
        for (sum, bytes) in self.groups.memcgs[parent].slab_bytes.iter_mut().zip(bytes) {
            *sum += bytes;
        }
        for id in owners {
            let list = &mut self.groups.memcgs[parent].objcgs;
            let owner = &mut self.slabs.objcgs.table[usize::from(id)];
            owner.memcg = parent;
            owner.at = list.len() as u32;
            owner.online &= id != own;
            list.push(id);
            self.release_objcg_if_unused(Cpu(0), id);
        }
    }
}
