//! Loans: a CPU allocates objects to one group without checking the group's stock.
//!
//! Linux has no such mechanism: there each object takes its bytes from the stock and returns them
//! (`obj_cgroup_charge`, `obj_cgroup_uncharge`). Here a CPU *borrows* the stock if it has just
//! freed an object of a group and the group wants the next object. It marks as many free objects of
//! its word as the stock can pay for. A marked object in use is charged to the group. Its bytes and
//! its owner are recorded later, when the stock or the word is needed for something else (the loan
//! is *settled*). Until then an allocation or a free only changes a bit.
//!
//! Invariant: a CPU has at most one loan, of one word. When the loan began, the marked objects were
//! free and had no owner. The stock can pay for all of them, and has room for their bytes if all
//! are freed. So no decision depends on a loan: after settling, the state is the same as without
//! loans.

use super::objcg::ObjStock;
use super::Slabs;
use crate::groups::memcg::ROOT;
use crate::units::{CacheId, Cpu, MemcgId};
use alloc::borrow::Cow;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Loan {
    /// The cache of the marked word; [`CacheId::NONE`] without a loan.
    pub cache: CacheId,
    /// Cache and owner of an object that was freed to the CPU's word since the last start or end of
    /// a loan.
    came_back: (CacheId, u16),
}

impl Loan {
    pub const NONE: Loan = Loan { cache: CacheId::NONE, came_back: (CacheId::NONE, 0) };

    /// Whether a loan must end, or one can begin, before an object of `owner` is taken from the
    /// stock.
    #[inline(always)]
    pub fn concerns(&self, cache: CacheId, owner: u16) -> bool {
        self.cache.is_some() || self.came_back == (cache, owner)
    }
}

impl Slabs {
    /// Ends the loan of a CPU, if it has one: records bytes and owners.
    #[inline(always)]
    pub fn settle(&mut self, cpu: Cpu) {
        if self.loans.get(cpu.idx()).is_some_and(|loan| loan.cache.is_some()) {
            self.settle_loan(cpu);
        }
    }

    #[cold]
    fn settle_loan(&mut self, cpu: Cpu) {
        let Some((owner, bytes, reclaimable)) = self.lent(cpu) else { return };
        self.objcgs.stock_of(cpu).take(bytes, reclaimable);
        let loan = core::mem::replace(&mut self.loans[cpu.idx()], Loan::NONE);
        self.nr_loans -= 1;
        let it = &mut self.caches[loan.cache];
        let mine = &mut it.cpus[cpu];
        let mut used = core::mem::take(&mut mine.payable) & !mine.word;
        mine.payer = ROOT;
        while used != 0 {
            it.owners[(mine.base + used.trailing_zeros()) as usize] = owner;
            used &= used - 1;
        }
    }

    /// The used part of a CPU's loan: owner, bytes, and whether the objects are reclaimable.
    fn lent(&self, cpu: Cpu) -> Option<(u16, u32, bool)> {
        let loan = self.loans.get(cpu.idx()).filter(|loan| loan.cache.is_some())?;
        let it = &self.caches[loan.cache];
        let mine = &it.cpus[cpu];
        let used = (mine.payable & !mine.word).count_ones();
        Some((mine.owner, used * it.charge_size, it.reclaimable))
    }

    /// All stocks in use, with the values that they would have if all loans were settled.
    pub fn settled_stocks(&self) -> impl Iterator<Item = (Cpu, ObjStock)> + '_ {
        self.objcgs.stocks().map(|(cpu, stock)| {
            let mut stock = *stock;
            if let Some((_, bytes, reclaimable)) =
                self.lent(cpu).filter(|lent| lent.0 == stock.objcg)
            {
                stock.take(bytes, reclaimable);
            }
            (cpu, stock)
        })
    }

    pub fn settle_all(&mut self) {
        for cpu in 0..self.loans.len() {
            self.settle(Cpu(cpu as u16));
        }
    }

    /// A copy with all loans settled (or the slabs themselves if there is no loan), for readers of
    /// all owners.
    pub fn settled(&self) -> Cow<'_, Slabs> {
        if self.nr_loans == 0 {
            return Cow::Borrowed(self);
        }
        let mut slabs = self.clone();
        slabs.settle_all();
        Cow::Owned(slabs)
    }

    /// Notes that an object of an owner was freed to the CPU's word.
    #[inline(always)]
    pub fn note_return(&mut self, cpu: Cpu, cache: CacheId, owner: u16) {
        if let Some(loan) = self.loans.get_mut(cpu.idx()) {
            loan.came_back = (cache, owner);
        }
    }

    /// Called when a group will pay for an object from the CPU's stock, which has enough bytes.
    /// Begins a loan if an object of the group was freed before and the CPU's word has a free
    /// object. Returns whether a loan began. (Without frees a loan saves nothing.)
    pub fn borrow(&mut self, cpu: Cpu, cache: CacheId, payer: MemcgId, owner: u16) -> bool {
        let loan = &mut self.loans[cpu.idx()];
        debug_assert!(loan.cache.is_none());
        if core::mem::replace(loan, Loan::NONE).came_back != (cache, owner) {
            return false;
        }
        let it = &mut self.caches[cache];
        let mine = &mut it.cpus[cpu];
        let nr_bytes = self.objcgs.stock_of(cpu).nr_bytes();
        // If a stock has more bytes than a page, the next free returns pages.
        if u64::from(nr_bytes) > self.page_size {
            return false;
        }
        let payable = lowest_of(mine.word, nr_bytes / it.charge_size);
        if payable == 0 {
            return false;
        }
        (mine.payable, mine.payer, mine.owner) = (payable, payer, owner);
        loan.cache = cache;
        self.nr_loans += 1;
        true
    }
}

/// The lowest `count` set bits of `bits`.
fn lowest_of(bits: u64, count: u32) -> u64 {
    if count >= u64::BITS {
        return bits;
    }
    let mut rest = bits;
    for _ in 0..count {
        rest &= rest.wrapping_sub(1);
    }
    bits & !rest
}
