//! Per-CPU sets that adapt to their CPU (since Linux 6.7, policy `per_cpu_lists`).
//!
//! Linux: `nr_pcp_alloc`, `nr_pcp_high`, `nr_pcp_free`, `decay_pcp_high`, `ZONE_BELOW_HIGH`
//! (mm/page_alloc.c, 6.12). While a CPU only allocates, each refill is twice as large as the one
//! before, up to 32 batches. The limit of the set grows with the refills, up to the CPU's share of
//! an eighth of the zone. It shrinks with each free while the zone is below its high watermark or
//! is reclaimed from, and by an eighth once a second.
//!
//! Difference from Linux: every machine counts as one with a large cache, which keeps a batch of
//! pages before it returns larger blocks (`PCPF_FREE_HIGH_BATCH`). The check of the high watermark
//! is made before and after refills, which lower the number of free pages, for one page of any zone.
//! Linux makes it at each request.
//!
//! Invariant: `high_min <= high <= high_max` after each use.

use crate::frames::gfp::{AllocFlags, Watermark};
use crate::frames::page_array::PageArray;
use crate::frames::pcp::Pcp;
use crate::frames::watermark::zone_watermark_ok;
use crate::frames::zone::Zone;
use crate::frames::zone_type::ZONE_MOVABLE;
use crate::units::{Cpu, Order, PAGE_ALLOC_COSTLY_ORDER};

/// Refills and frees of up to 2 to this power batches (Linux `CONFIG_PCP_BATCH_SCALE_MAX`).
const BATCH_SCALE_MAX: u8 = 5;

impl Pcp {
    fn clamp_high(&mut self) {
        self.high = self.high.clamp(self.tuning.high_min, self.tuning.high_max);
    }

    fn lower_high(&mut self, by: u32) {
        self.high = self.high.saturating_sub(by).max(self.tuning.high_min);
    }

    /// Number of blocks with which to refill the list of `order`.
    fn tuned_refill(&mut self, order: Order, below_high: bool) -> u32 {
        self.clamp_high();
        let base = self.batch;
        if self.high < base {
            return 1;
        }
        let factor = if order == 0 { self.tuning.alloc_factor } else { 0 };
        let mut batch = base << factor;
        if self.tuning.high_min != self.tuning.high_max && !below_high {
            self.high = (self.high + batch).min(self.tuning.high_max);
        }
        if order == 0 {
            let most = self.high.saturating_sub(self.count + base).max(base);
            if batch <= most && self.tuning.alloc_factor < BATCH_SCALE_MAX {
                self.tuning.alloc_factor += 1;
            }
            batch = batch.min(most);
        }
        if batch > 1 {
            (batch >> order).max(2)
        } else {
            batch
        }
    }

    /// Number of pages to return after a free of `order`; 0: none.
    fn tuned_excess(&mut self, order: Order, reclaim_active: bool, below_high: bool) -> u32 {
        let batch = self.batch;
        self.tuning.alloc_factor >>= 1;
        let larger = order > 0 && order <= PAGE_ALLOC_COSTLY_ORDER;
        let frees_larger =
            larger && self.tuning.freed_larger && self.frees >= batch && self.count >= batch;
        self.tuning.freed_larger = larger;
        if self.frees < batch << BATCH_SCALE_MAX {
            self.frees += 1 << order;
        }
        self.clamp_high();
        let in_a_row = self.frees.max(batch);
        let limit = if self.high == 0 {
            0
        } else if frees_larger {
            self.lower_high(batch << BATCH_SCALE_MAX);
            return self.count.min(batch << BATCH_SCALE_MAX);
        } else if reclaim_active {
            self.lower_high(in_a_row);
            self.high.min(batch << 2)
        } else if self.tuning.high_min == self.tuning.high_max {
            self.high
        } else if below_high {
            self.lower_high(in_a_row);
            self.count.max(self.tuning.high_min)
        } else {
            let limit = self.high;
            if self.count >= limit {
                self.high = self.high.max(self.frees + batch).min(self.tuning.high_max);
            }
            limit
        };
        if self.count < limit {
            return 0;
        }
        match limit.checked_sub(batch) {
            None => 1,
            Some(most) => self.frees.min(most).max(batch),
        }
    }

    /// Lowers the limit once a second. Returns the number of pages above it.
    fn decay_high(&mut self) -> u32 {
        let kept = self.count.saturating_sub(self.batch << BATCH_SCALE_MAX);
        if self.high > self.tuning.high_min {
            self.high = (self.high - (self.high >> 3)).max(kept).max(self.tuning.high_min);
        }
        self.count.saturating_sub(self.high)
    }
}

impl Zone {
    fn is_above_high(&self) -> bool {
        let (mark, flags) = (self.wmark(Watermark::High), AllocFlags::at(Watermark::High));
        zone_watermark_ok(self, 0, mark, ZONE_MOVABLE, flags)
    }

    #[inline(never)]
    pub(super) fn note_below_high(&mut self) {
        self.below_high |= !self.is_above_high();
    }

    /// Number of blocks for the next refill of a CPU's list.
    #[inline(never)]
    pub(super) fn tuned_refill(&mut self, cpu: Cpu, order: Order) -> u32 {
        self.note_below_high();
        let below_high = self.below_high;
        self.pcps[cpu].tuned_refill(order, below_high)
    }

    /// Returns pages of the CPU's set after a free to its list `index`, if it has too many. Returns
    /// the number of blocks.
    #[inline(never)]
    pub(super) fn tuned_shrink(
        &mut self,
        pages: &mut PageArray,
        cpu: Cpu,
        order: Order,
        index: usize,
    ) -> u32 {
        let (reclaim_active, below_high) = (self.reclaim_active, self.below_high);
        let nr = self.pcps[cpu].tuned_excess(order, reclaim_active, below_high);
        if nr == 0 {
            return 0;
        }
        let blocks = self.pcp_shrink(pages, cpu, nr, index);
        self.below_high &= !self.is_above_high();
        blocks
    }

    /// Lowers the limit of the CPU's set, and returns the pages above it. Returns the number of
    /// blocks.
    pub(super) fn decay_pcp_high(&mut self, pages: &mut PageArray, cpu: Cpu) -> u32 {
        let nr = self.pcps[cpu].decay_high();
        match nr {
            0 => 0,
            _ => self.pcp_shrink(pages, cpu, nr, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::gfp::Gfp;
    use crate::frames::pcp::{PcpPolicy, PcpTuning};
    use crate::frames::watermark::WatermarkInputs;
    use crate::units::NodeId;

    fn pcp(high_min: u32, high_max: u32) -> Pcp {
        let tuning = PcpTuning { high_min, high_max, ..PcpTuning::default() };
        Pcp { high: high_min, batch: 15, policy: PcpPolicy::Linux612, tuning, ..Pcp::new() }
    }

    #[test]
    fn refills_double_while_nothing_is_freed() {
        let mut pcp = pcp(532, 6475);
        let refills: [u32; 7] = core::array::from_fn(|_| pcp.tuned_refill(0, false));
        assert_eq!(refills, [15, 30, 60, 120, 240, 480, 480]);
        assert_eq!(pcp.high, 532 + 945 + 480);
        pcp.count = 1;
        pcp.tuned_excess(0, false, false);
        assert_eq!(pcp.tuned_refill(0, false), 60);
        assert_eq!(pcp.tuned_refill(2, false), 3);
    }

    #[test]
    fn a_zone_below_its_high_watermark_shrinks_the_limit_with_each_free() {
        let mut pcp = pcp(60, 6475);
        pcp.high = 1000;
        pcp.count = 100;
        assert_eq!(pcp.tuned_refill(0, true), 15, "and does not raise it");
        assert_eq!(pcp.tuned_excess(0, false, true), 15);
        assert_eq!(pcp.high, 985);
        pcp.count = 10;
        assert_eq!(pcp.tuned_excess(0, false, true), 0);
    }

    #[test]
    fn frees_in_a_row_return_as_many_pages_as_they_were() {
        let mut pcp = pcp(532, 532);
        pcp.count = 531;
        let nr = (0..480).map(|_| pcp.tuned_excess(0, false, false)).sum::<u32>();
        assert_eq!(nr, 0, "the set is not full");
        pcp.count = 600;
        assert_eq!(pcp.tuned_excess(0, false, false), 480);
        assert_eq!(pcp.tuned_excess(0, true, false), 45, "four batches, less one");
    }

    #[test]
    fn a_zone_may_have_a_low_watermark_above_its_eighth() {
        let mut memory = crate::frames::page_alloc::tests::normal(8192);
        for min_free_kbytes in [1024, 24_000] {
            memory.setup_watermarks(&WatermarkInputs {
                min_free_kbytes,
                pcp: PcpPolicy::Linux612,
                ..Default::default()
            });
            let pfn = memory.alloc_fast(Cpu(0), NodeId(0), 0, Gfp::HIGHUSER_MOVABLE);
            pfn.into_iter().for_each(|pfn| memory.free_page(Cpu(0), pfn, 0));
            memory.audit().unwrap();
        }
    }

    #[test]
    fn the_limit_falls_by_an_eighth_a_second() {
        let mut pcp = pcp(532, 6475);
        pcp.high = 1000;
        pcp.count = 900;
        assert_eq!(pcp.decay_high(), 25);
        assert_eq!(pcp.high, 875);
        pcp.count = 0;
        (0..10).for_each(|_| assert_eq!(pcp.decay_high(), 0));
        assert_eq!(pcp.high, 532);
    }
}
