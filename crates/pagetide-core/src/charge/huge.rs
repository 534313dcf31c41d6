//! A huge page with its charge.
//!
//! Linux: `vma_alloc_folio` and `mem_cgroup_charge` as `__do_huge_pmd_anonymous_page` and
//! `alloc_charge_hpage` call them (mm/huge_memory.c, mm/khugepaged.c, 6.1). The page comes first and is
//! charged as a whole, past the stock. A limit in the way is reclaimed for, if the request may wait, but
//! nobody is killed: whoever asked can do with small pages.
//!
//! A fault asks twice: first the near node alone, lightly (`__GFP_THISNODE | __GFP_NORETRY`), and, if it
//! may reclaim, then all nodes and as hard as it may. So does a machine of one node.
//!
//! Difference from Linux: the reclaim of the first attempt looks at all nodes.
//!
//! Invariant: between two steps the request holds neither page nor charge.

use super::Slow;
use crate::ctx::Ctx;
use crate::effect::{Step, Wait};
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::slowpath::SlowPath;
use crate::units::{Cpu, MemcgId, Pfn, HPAGE_PMD_NR, HPAGE_PMD_ORDER};

/// Result of asking for a huge page.
pub(crate) enum HugeAlloc {
    /// Here it is, with its charge.
    Page(Pfn),
    /// Not yet.
    Continue,
    /// Not yet: wait first.
    Wait(Wait),
    /// No block of that order is to be had.
    NoPage,
    /// Its group has no room for it.
    NoCharge,
}

/// How often a huge page is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asks {
    /// The near node lightly, then everywhere: a fault since 4.20.
    NearFirst,
    /// khugepaged, and every fault of 4.5.
    Once,
}

impl<O: Owners> Manager<O> {
    /// Asks for a huge page that `memcg` pays for. Hand it to [`Machine::charge`] or to
    /// [`Machine::discard_huge`].
    pub(crate) fn alloc_huge(
        &mut self,
        ctx: &Ctx,
        slow: &mut Option<Slow>,
        gfp: Gfp,
        memcg: MemcgId,
        asks: Asks,
    ) -> HugeAlloc {
        let first = match asks {
            Asks::NearFirst => gfp.with(Gfp::THISNODE).with(Gfp::NORETRY),
            Asks::Once => gfp,
        };
        let may_wait = gfp.has(Gfp::DIRECT_RECLAIM);
        loop {
            let pfn = match slow {
                None => match self.mem.alloc_fast(ctx.cpu, ctx.node, HPAGE_PMD_ORDER, first) {
                    Some(pfn) => pfn,
                    None => {
                        *slow = Some(Slow::Alloc(SlowPath::new(HPAGE_PMD_ORDER, first)));
                        continue;
                    }
                },
                Some(Slow::Alloc(path)) => match self.slowpath_step(path, ctx) {
                    Step::Continue => return HugeAlloc::Continue,
                    Step::Wait(wait) => return HugeAlloc::Wait(wait),
                    Step::Done(Some(pfn)) => {
                        *slow = None;
                        pfn
                    }
                    Step::Done(None) if path.gfp().has(Gfp::THISNODE) && may_wait => {
                        *slow = None;
                        match self.mem.alloc_fast(ctx.cpu, ctx.node, HPAGE_PMD_ORDER, gfp) {
                            Some(pfn) => pfn,
                            None => {
                                *slow = Some(Slow::Alloc(SlowPath::new(HPAGE_PMD_ORDER, gfp)));
                                continue;
                            }
                        }
                    }
                    Step::Done(None) => {
                        *slow = None;
                        return HugeAlloc::NoPage;
                    }
                },
                Some(Slow::Charge(path)) => {
                    match self.charge_step(path, ctx) {
                        Step::Continue => return HugeAlloc::Continue,
                        Step::Wait(wait) => return HugeAlloc::Wait(wait),
                        Step::Done(false) => {
                            *slow = None;
                            return HugeAlloc::NoCharge;
                        }
                        Step::Done(true) => {}
                    }
                    if let Err(over) = self.counter_try_charge(memcg, HPAGE_PMD_NR) {
                        // Somebody was faster; what was tried so far counts.
                        path.over = self.position_of(over);
                        path.reclaim = self.begin_limit_reclaim(over, HPAGE_PMD_NR, gfp);
                        continue;
                    }
                    self.note_over_high(ctx, memcg, HPAGE_PMD_NR);
                    *slow = None;
                    match self.mem.alloc_fast(ctx.cpu, ctx.node, HPAGE_PMD_ORDER, gfp) {
                        Some(pfn) => return HugeAlloc::Page(pfn),
                        None => {
                            self.cancel_huge_charge(memcg);
                            *slow = Some(Slow::Alloc(SlowPath::new(HPAGE_PMD_ORDER, gfp)));
                            continue;
                        }
                    }
                }
            };
            let Err(over) = self.try_charge(ctx, memcg, HPAGE_PMD_NR) else {
                return HugeAlloc::Page(pfn);
            };
            self.mem.free_page(ctx.cpu, pfn, HPAGE_PMD_ORDER);
            if !gfp.has(Gfp::DIRECT_RECLAIM) {
                return HugeAlloc::NoCharge;
            }
            *slow = Some(Slow::Charge(self.charge_path(over, HPAGE_PMD_NR, gfp)));
        }
    }

    /// Gives back a huge page and its charge that turned out not to be needed.
    pub(crate) fn discard_huge(&mut self, cpu: Cpu, pfn: Pfn, memcg: MemcgId) {
        self.cancel_huge_charge(memcg);
        self.mem.free_page(cpu, pfn, HPAGE_PMD_ORDER);
    }

    fn cancel_huge_charge(&mut self, memcg: MemcgId) {
        if memcg != ROOT {
            self.uncharge_counter(memcg, HPAGE_PMD_NR);
        }
    }
}
