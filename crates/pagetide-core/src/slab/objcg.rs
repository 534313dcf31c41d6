//! Charging groups for objects: owners, bytes in advance, and what happens when a group goes.
//!
//! Linux: `struct obj_cgroup`, `obj_cgroup_charge`, `refill_obj_stock`, `drain_obj_stock`,
//! `memcg_reparent_objcgs` (mm/memcontrol.c, 6.1; since 5.9). An object remembers an *owner*, which points to
//! a group. Pages are charged, rounded up, and the bytes left over stay in the CPU's stock for the next
//! object of the same owner. When a group goes, its owners point to its parent: no object is looked at.
//!
//! Differs from Linux: owners are 16-bit ids; a reference an object is the sum of charged bytes, which is 0
//! exactly when there is none; a CPU may have more than one stock
//! ([`Config::objcg_stock_slots`](crate::config::Config::objcg_stock_slots), 1 as in Linux).
//!
//! Invariant: bytes of objects, of stocks and of remainders, of all owners, are the pages charged for
//! objects, times the page size. An owner that is not `online` lives as long as a byte or a stock needs it.

use super::allocate::Lack;
use crate::call::Ctx;
use crate::digest::Digest;
use crate::machine::Machine;
use crate::memcg::ROOT;
use crate::units::{Cpu, MemcgId};
use alloc::vec::Vec;

/// Nobody.
pub(crate) const NO_OWNER: u16 = u16::MAX;

/// What a CPU has charged in advance for one owner (Linux `struct memcg_stock_pcp`, its object part).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjStock {
    pub objcg: u16,
    /// Bytes charged and not used.
    pub nr_bytes: u32,
    /// By how much the owner's objects, unreclaimable and reclaimable, have grown; not written down yet.
    pub slab_bytes: [i64; 2],
}

impl ObjStock {
    const EMPTY: ObjStock = ObjStock { objcg: NO_OWNER, nr_bytes: 0, slab_bytes: [0; 2] };
}

/// One owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjCgroup {
    /// Who pays.
    pub memcg: MemcgId,
    /// Objects are still allocated for it.
    pub online: bool,
    /// There is such an owner.
    pub exists: bool,
    /// Bytes below a page that stocks have left behind.
    pub nr_charged_bytes: u32,
    /// Bytes of its objects, but for what stocks have not written down.
    pub bytes: i64,
    /// Position in its group's list.
    at: u32,
}

/// All owners.
#[derive(Clone, Debug)]
pub(crate) struct ObjCgroups {
    table: Vec<ObjCgroup>,
    free: Vec<u16>,
    stocks: Vec<ObjStock>,
    /// Stocks of a CPU, a power of two: its logarithm.
    slots_shift: u32,
}

impl ObjCgroups {
    pub fn new(nr_cpus: u16, slots: u32) -> ObjCgroups {
        let slots_shift = slots.clamp(1, 64).next_power_of_two().trailing_zeros();
        ObjCgroups {
            table: Vec::new(),
            free: Vec::new(),
            stocks: alloc::vec![ObjStock::EMPTY; usize::from(nr_cpus) << slots_shift],
            slots_shift,
        }
    }

    /// The stock of a CPU that an owner may have.
    #[inline(always)]
    pub fn stock_of(&mut self, cpu: Cpu, objcg: u16) -> &mut ObjStock {
        // The shift is 6 at most: no check of that here.
        let first = cpu.idx().wrapping_shl(self.slots_shift);
        let mask = 1usize.wrapping_shl(self.slots_shift).wrapping_sub(1);
        &mut self.stocks[first | usize::from(objcg) & mask]
    }

    pub fn memcg_of(&self, objcg: u16) -> MemcgId {
        self.table[usize::from(objcg)].memcg
    }

    /// Whether another owner can be made.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.table.len() < usize::from(NO_OWNER)
    }

    /// A new owner.
    fn create(&mut self, memcg: MemcgId, at: u32) -> u16 {
        let owner =
            ObjCgroup { memcg, online: true, exists: true, nr_charged_bytes: 0, bytes: 0, at };
        match self.free.pop() {
            Some(id) => {
                self.table[usize::from(id)] = owner;
                id
            }
            None => {
                self.table.push(owner);
                (self.table.len() - 1) as u16
            }
        }
    }

    /// All owners.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &ObjCgroup)> {
        let all = self.table.iter().enumerate().map(|(id, owner)| (id as u16, owner));
        all.filter(|(_, owner)| owner.exists)
    }

    /// All stocks that are in use, with their CPUs.
    pub fn stocks(&self) -> impl Iterator<Item = (Cpu, &ObjStock)> {
        let all = self.stocks.iter().enumerate();
        all.filter(|(_, stock)| stock.objcg != NO_OWNER)
            .map(|(at, stock)| (Cpu((at >> self.slots_shift) as u16), stock))
    }

    pub fn digest(&self, digest: &mut Digest) {
        let ObjCgroups { table, free, stocks, slots_shift } = self;
        digest.write_all(&[table.len() as u64, free.len() as u64, 1 << slots_shift]);
        for ObjCgroup { memcg, online, exists, nr_charged_bytes, bytes, at } in table {
            digest.write_all(&[memcg.0.into(), u64::from(*online), u64::from(*exists)]);
            digest.write_all(&[u64::from(*nr_charged_bytes), *bytes as u64, u64::from(*at)]);
        }
        for ObjStock { objcg, nr_bytes, slab_bytes } in stocks {
            digest.write_all(&[u64::from(*objcg), u64::from(*nr_bytes)]);
            digest.write_all(&[slab_bytes[0] as u64, slab_bytes[1] as u64]);
        }
    }
}

impl Machine {
    /// Makes a group's owner. There must be room for one.
    pub(crate) fn create_objcg(&mut self, memcg: MemcgId) {
        let group = &mut self.memcgs[memcg.idx()];
        let id = self.slabs.objcgs.create(memcg, group.objcgs.len() as u32);
        group.objcg = id;
        group.objcgs.push(id);
    }

    /// Charges bytes for an object of an owner (Linux `obj_cgroup_charge`).
    ///
    /// # Errors
    /// What there is no room for.
    pub(crate) fn obj_charge(
        &mut self,
        ctx: &Ctx,
        objcg: u16,
        bytes: u32,
        reclaimable: bool,
    ) -> Result<(), Lack> {
        let stock = self.slabs.objcgs.stock_of(ctx.cpu, objcg);
        if stock.objcg == objcg && stock.nr_bytes >= bytes {
            stock.nr_bytes -= bytes;
        } else {
            let page_size = self.slabs.page_size as u32;
            let nr = bytes.div_ceil(page_size);
            let memcg = self.slabs.objcgs.memcg_of(objcg);
            self.charge_kernel_pages(ctx, memcg, nr.into())?;
            self.refill_obj_stock(ctx.cpu, objcg, nr * page_size - bytes, false);
        }
        let stock = self.slabs.objcgs.stock_of(ctx.cpu, objcg);
        stock.slab_bytes[usize::from(reclaimable)] += i64::from(bytes);
        Ok(())
    }

    /// An object of an owner is gone (Linux `obj_cgroup_uncharge`).
    #[inline(always)]
    pub(crate) fn obj_uncharge(&mut self, cpu: Cpu, objcg: u16, bytes: u32, reclaimable: bool) {
        let page_size = self.slabs.page_size as u32;
        let mut stock = self.slabs.objcgs.stock_of(cpu, objcg);
        if stock.objcg == objcg && stock.nr_bytes + bytes <= page_size {
            stock.nr_bytes += bytes;
        } else {
            self.refill_obj_stock(cpu, objcg, bytes, true);
            stock = self.slabs.objcgs.stock_of(cpu, objcg);
        }
        stock.slab_bytes[usize::from(reclaimable)] -= i64::from(bytes);
    }

    /// Puts bytes into the stock, which another owner may have to leave. A new owner brings what it has
    /// left behind. More than a page goes back, if `may_uncharge` or the owner is new.
    #[cold]
    fn refill_obj_stock(&mut self, cpu: Cpu, objcg: u16, bytes: u32, may_uncharge: bool) {
        let mut may_uncharge = may_uncharge;
        if self.slabs.objcgs.stock_of(cpu, objcg).objcg != objcg {
            self.drain_obj_stock_of(cpu, objcg);
            let owner = &mut self.slabs.objcgs.table[usize::from(objcg)];
            let nr_bytes = core::mem::take(&mut owner.nr_charged_bytes);
            *self.slabs.objcgs.stock_of(cpu, objcg) =
                ObjStock { objcg, nr_bytes, slab_bytes: [0; 2] };
            may_uncharge = true;
        }
        let page_size = self.slabs.page_size as u32;
        let stock = self.slabs.objcgs.stock_of(cpu, objcg);
        stock.nr_bytes += bytes;
        if may_uncharge && stock.nr_bytes > page_size {
            let nr = stock.nr_bytes / page_size;
            stock.nr_bytes %= page_size;
            self.uncharge_object_pages(cpu, objcg, nr.into());
        }
    }

    /// Pages charged for objects go back through the stock of pages.
    fn uncharge_object_pages(&mut self, cpu: Cpu, objcg: u16, nr: u64) {
        let memcg = self.slabs.objcgs.memcg_of(objcg);
        self.account_kernel_pages(memcg, -(nr as i64));
        if memcg != ROOT {
            self.refill_stock(cpu, memcg, nr);
        }
    }

    /// Empties the stock that an owner would use (Linux `drain_obj_stock`).
    fn drain_obj_stock_of(&mut self, cpu: Cpu, objcg: u16) {
        let stock = core::mem::replace(self.slabs.objcgs.stock_of(cpu, objcg), ObjStock::EMPTY);
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
        let group = &mut self.memcgs[owner.memcg.idx()];
        for (sum, bytes) in group.slab_bytes.iter_mut().zip(stock.slab_bytes) {
            *sum += bytes;
        }
        self.release_objcg_if_unused(cpu, stock.objcg);
    }

    /// Empties the stocks of all owners that belong to a group or to one below it.
    pub(crate) fn drain_obj_stocks(&mut self, memcg: MemcgId) {
        let slots_shift = self.slabs.objcgs.slots_shift;
        for at in 0..self.slabs.objcgs.stocks.len() {
            let objcg = self.slabs.objcgs.stocks[at].objcg;
            if objcg != NO_OWNER && self.is_descendant(self.slabs.objcgs.memcg_of(objcg), memcg) {
                self.drain_obj_stock_of(Cpu((at >> slots_shift) as u16), objcg);
            }
        }
    }

    /// An owner whose group is gone goes with its last object (Linux `obj_cgroup_release`).
    fn release_objcg_if_unused(&mut self, cpu: Cpu, objcg: u16) {
        let owner = self.slabs.objcgs.table[usize::from(objcg)];
        if owner.online || owner.bytes != 0 {
            return;
        }
        if self.slabs.objcgs.stocks.iter().any(|stock| stock.objcg == objcg) {
            return;
        }
        let page_size = self.slabs.page_size as u32;
        debug_assert_eq!(owner.nr_charged_bytes % page_size, 0, "bytes without an object");
        let nr = owner.nr_charged_bytes / page_size;
        if nr > 0 {
            self.uncharge_object_pages(cpu, objcg, nr.into());
        }
        let list = &mut self.memcgs[owner.memcg.idx()].objcgs;
        list.swap_remove(owner.at as usize);
        if let Some(&moved) = list.get(owner.at as usize) {
            self.slabs.objcgs.table[usize::from(moved)].at = owner.at;
        }
        self.slabs.objcgs.table[usize::from(objcg)].exists = false;
        self.slabs.objcgs.free.push(objcg);
    }

    /// Hands a group's owners, and with them its objects, to its parent. In the number of owners, not of
    /// objects (Linux `memcg_reparent_objcgs`). Its stocks must be empty.
    pub(crate) fn reparent_objcgs(&mut self, memcg: MemcgId, parent: MemcgId) {
        let group = &mut self.memcgs[memcg.idx()];
        let owners = core::mem::take(&mut group.objcgs);
        let own = core::mem::replace(&mut group.objcg, NO_OWNER);
        let bytes = core::mem::take(&mut group.slab_bytes);
        for (sum, bytes) in self.memcgs[parent.idx()].slab_bytes.iter_mut().zip(bytes) {
            *sum += bytes;
        }
        for id in owners {
            let list = &mut self.memcgs[parent.idx()].objcgs;
            let owner = &mut self.slabs.objcgs.table[usize::from(id)];
            owner.memcg = parent;
            owner.at = list.len() as u32;
            owner.online &= id != own;
            list.push(id);
            self.release_objcg_if_unused(Cpu(0), id);
        }
    }
}
