//! Allocation of many single pages at once.
//!
//! Linux: `__alloc_pages_bulk` (mm/page_alloc.c, 6.1), for callers that want an array of pages and
//! accept fewer. One watermark check is followed by one walk along the CPU's list.
//!
//! Invariant: the zone stays above its low watermark even if all requested pages are taken.

use super::{Memory, PGALLOC};
use crate::frames::buddy::mark_allocated;
use crate::frames::fallback::FallbackLog;
use crate::frames::gfp::{AllocFlags, Gfp, Watermark};
use crate::frames::node::ZoneRef;
use crate::frames::pcp::PcpRequest;
use crate::frames::watermark::zone_watermark_fast;
use crate::units::{Cpu, NodeId, Pfn};
use alloc::vec::Vec;

impl Memory {
    /// Takes up to `nr` single pages from one local zone that stays above its low watermark without
    /// them. Appends them to `out` (Linux `__alloc_pages_bulk`). If there is no such zone, takes
    /// one page if [`Memory::alloc_fast`] returns one. Returns the number of pages taken.
    pub fn alloc_bulk(
        &mut self,
        cpu: Cpu,
        node: NodeId,
        gfp: Gfp,
        out: &mut Vec<Pfn>,
        nr: usize,
    ) -> usize {
        if nr == 0 {
            return 0;
        }
        let taken = match self.zone_for_bulk(node, gfp, nr) {
            Some(at) => self.take_bulk(cpu, at, gfp, out, nr),
            None => 0,
        };
        if taken > 0 {
            return taken;
        }
        match self.alloc_fast(cpu, node, 0, gfp) {
            Some(pfn) => {
                out.push(pfn);
                1
            }
            None => 0,
        }
    }

    fn zone_for_bulk(&self, node: NodeId, gfp: Gfp, nr: usize) -> Option<ZoneRef> {
        let flags = AllocFlags::at(Watermark::Low);
        let list = &self.zonelists[node][gfp.highest_zone()];
        let first = list.preferred?;
        let local = list.zones.iter().take_while(|at| at.node == first.node);
        local.copied().find(|at| {
            let zone = &self.nodes[at.node].zones[usize::from(at.zone)];
            let mark = zone.wmark(Watermark::Low).saturating_add(nr as u64);
            zone_watermark_fast(zone, 0, mark, first.zone.into(), flags, gfp)
        })
    }

    fn take_bulk(
        &mut self,
        cpu: Cpu,
        at: ZoneRef,
        gfp: Gfp,
        out: &mut Vec<Pfn>,
        nr: usize,
    ) -> usize {
        // As in Linux, a batch may mix types, and wakes no kswapd when it does.
        let flags = AllocFlags::at(Watermark::Low);
        let Memory { pages, nodes, vmstat, events, work, .. } = self;
        let zone = &mut nodes[at.node].zones[usize::from(at.zone)];
        let request = PcpRequest { order: 0, mt: gfp.migrate_type(), flags };
        let notes = &mut FallbackLog { vmstat, events };
        let mut taken = 0;
        while taken < nr {
            let (pfn, buddy_ops) = zone.pcp_take(pages, notes, cpu, request);
            work.buddy_ops += buddy_ops;
            let Some(pfn) = pfn else {
                break;
            };
            mark_allocated(pages, pfn, 0);
            out.push(pfn);
            taken += 1;
        }
        vmstat.add(PGALLOC[usize::from(at.zone)], taken as u64);
        work.pages_allocated += taken as u32;
        taken
    }
}
