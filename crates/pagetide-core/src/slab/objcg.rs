//! Object cgroups: owners of objects, per-CPU stocks of charged bytes, and reparenting.
//!
//! Linux: `struct obj_cgroup`, `obj_cgroup_charge`, `refill_obj_stock`, `drain_obj_stock`,
//! `memcg_reparent_objcgs` (mm/memcontrol.c, 6.1; since 5.9). An object has an *owner*, which
//! points to a group. Whole pages are charged, and bytes that are not needed yet stay in the CPU's
//! stock for the next object of the same owner. When a group is removed, its owners are changed to
//! point to its parent; the objects do not change.
//!
//! Differences from Linux: owners are 16-bit ids. Instead of a reference count an owner has the sum
//! of charged bytes, which is 0 exactly when it has no object.
//!
//! Invariant: the bytes of all objects, stocks and remainders equal the pages charged for objects
//! times the page size. An owner that is not `online` exists while it has bytes or a stock.

mod charge;

use crate::units::digest::State;
use crate::units::{Cpu, IdVec, MemcgId};
use alloc::vec::Vec;

pub(crate) const NO_OWNER: u16 = u16::MAX;

/// Bytes that a CPU has charged in advance for one owner (object part of Linux's `struct
/// memcg_stock_pcp`).
#[derive(Clone, Copy, Debug, State)]
#[repr(align(32))] // half a cache line, so that no stock spans two
pub(crate) struct ObjStock {
    pub objcg: u16,
    /// Bytes that are charged and not used.
    pub nr_bytes: u32,
    /// Growth of the owner's unreclaimable and reclaimable objects that has not been flushed yet.
    pub slab_bytes: [i64; 2],
}

impl ObjStock {
    const EMPTY: ObjStock = ObjStock::new(NO_OWNER, 0);

    const fn new(objcg: u16, nr_bytes: u32) -> ObjStock {
        ObjStock { objcg, nr_bytes, slab_bytes: [0; 2] }
    }

    // No overflow checks here, because they would cost as much as the sums. The sums cannot
    // overflow: an object has less than 2^27 bytes, a stock at most a page more, and no machine has
    // 2^63 bytes.

    /// Pays for objects; the stock must have enough.
    #[inline(always)]
    pub fn take(&mut self, bytes: u32, reclaimable: bool) {
        self.nr_bytes = self.nr_bytes.wrapping_sub(bytes);
        self.grow(bytes.into(), reclaimable);
    }

    /// Records that the owner's objects have grown.
    #[inline(always)]
    pub fn grow(&mut self, bytes: i64, reclaimable: bool) {
        let sum = &mut self.slab_bytes[usize::from(reclaimable)];
        *sum = sum.wrapping_add(bytes);
    }

    /// Returns an object's bytes to the stock, unless the stock would exceed `most`. Returns
    /// whether the bytes were returned.
    #[inline(always)]
    fn put(&mut self, bytes: u32, reclaimable: bool, most: u32) -> bool {
        let nr_bytes = self.nr_bytes.wrapping_add(bytes);
        if nr_bytes > most {
            return false;
        }
        self.nr_bytes = nr_bytes;
        self.grow(-i64::from(bytes), reclaimable);
        true
    }
}

#[derive(Clone, Copy, Debug, State)]
pub(crate) struct ObjCgroup {
    /// The group that is charged.
    pub memcg: MemcgId,
    /// Whether new objects may be allocated for it.
    pub online: bool,
    /// Whether the id is in use.
    pub exists: bool,
    /// Charged bytes, less than a page, that drained stocks have left.
    pub nr_charged_bytes: u32,
    /// Bytes of its objects, without changes that stocks have not flushed yet.
    pub bytes: i64,
    /// Index in its group's list.
    pub at: u32,
}

#[derive(Clone, Debug, State)]
pub(crate) struct ObjCgroups {
    table: Vec<ObjCgroup>,
    free: Vec<u16>,
    /// The stock of each CPU.
    stocks: IdVec<Cpu, ObjStock>,
}

impl ObjCgroups {
    pub fn new(nr_cpus: u16) -> ObjCgroups {
        let stocks = alloc::vec![ObjStock::EMPTY; nr_cpus.into()].into();
        ObjCgroups { table: Vec::new(), free: Vec::new(), stocks }
    }

    /// The stock of a CPU.
    #[inline(always)]
    pub fn stock_of(&mut self, cpu: Cpu) -> &mut ObjStock {
        &mut self.stocks[cpu]
    }

    pub fn memcg_of(&self, objcg: u16) -> MemcgId {
        self.table[usize::from(objcg)].memcg
    }

    /// Whether another owner can be created.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.table.len() < usize::from(NO_OWNER)
    }

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

    /// Records that bytes charged like an object belong to a group's counters: they are in no slab.
    pub fn add_counter_bytes(&mut self, cpu: Cpu, objcg: u16, bytes: u32) {
        self.stock_of(cpu).grow(-i64::from(bytes), false);
        self.table[usize::from(objcg)].bytes += i64::from(bytes);
    }

    /// Undoes [`Self::add_counter_bytes`] after the bytes were uncharged.
    pub fn remove_counter_bytes(&mut self, cpu: Cpu, objcg: u16, bytes: u32) {
        self.stock_of(cpu).grow(bytes.into(), false);
        self.table[usize::from(objcg)].bytes -= i64::from(bytes);
    }

    /// One more than the largest id that was ever in use.
    pub fn nr_ids(&self) -> usize {
        self.table.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u16, &ObjCgroup)> {
        let all = self.table.iter().enumerate().map(|(id, owner)| (id as u16, owner));
        all.filter(|(_, owner)| owner.exists)
    }

    /// All stocks in use, with their CPUs.
    pub fn stocks(&self) -> impl Iterator<Item = (Cpu, &ObjStock)> {
        let all = self.stocks.iter().enumerate();
        all.filter(|(_, stock)| stock.objcg != NO_OWNER)
            .map(|(cpu, stock)| (Cpu(cpu as u16), stock))
    }
}
