//! kswapd of Linux 4.5 and 4.6: it works zone by zone. Until kcompactd took over, it also
//! compacted.
//!
//! Linux: `balance_pgdat`, `kswapd_shrink_zone`, `zone_balanced`, `pgdat_balanced` (mm/vmscan.c)
//! before and after Vlastimil Babka's "mm, kswapd: replace kswapd compaction with waking up
//! kcompactd" of March 2016. [`BackgroundCompaction`](crate::config::BackgroundCompaction) chooses
//! between the two.
//!
//! Before (`kswapd`): a zone is balanced when it has its high watermark *at the order requested*. A
//! round reclaims from the zones that are not balanced, at order 0 if compaction could do the rest.
//! At the end of a round kswapd compacts the node if the round has reclaimed more pages than it
//! attempted.
//!
//! If requests only wake kswapd, it never compacts. In zone DMA it tries to reclaim and gets
//! nothing. kswapd does not try the other zones, because they have enough pages of order 0. So it
//! has reclaimed 0 pages, which is not more than it attempted. It then goes down all priorities
//! without effect, again and again. The patch fixes this flaw; this policy keeps it.
//!
//! After (`kcompactd` and the others): kswapd is woken for the order, balances for order 0, and
//! leaves compaction to kcompactd.
//!
//! Differs from Linux: LRU lists belong to nodes (as since 4.8); the lists of a zone are the node's
//! lists without the pages of other zones. A zone counts as unreclaimable after six full scans
//! without success.

mod balance;

use super::kswapd_compacts::CompactZones;
use super::shrink_node::ShrinkNode;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::units::digest::State;

/// State that only kswapd of Linux 4.5 has.
#[derive(Clone, Copy, Debug, Default, State)]
pub(super) struct Kswapd45State {
    /// Pages of each zone scanned since the last page was reclaimed from it.
    pub pages_scanned: [u64; MAX_NR_ZONES],
    pub compacting: bool,
}

/// State of a descent (rounds with falling priority, see [`super`]).
#[derive(Clone, Debug, State)]
pub(super) struct ZoneDescent {
    /// Highest zone that was not balanced. It decides whether kswapd sleeps.
    end_zone: usize,
    at: ZoneDescentStage,
    nr_attempted: u64,
    needs_compaction: bool,
    raise_priority: bool,
    /// Pages reclaimed before the present zone.
    reclaimed_before: u64,
    /// Pages reclaimed in the finished rounds of this descent.
    reclaimed: u64,
}

#[derive(Clone, Debug, State)]
enum ZoneDescentStage {
    /// Top of a round.
    Top,
    /// The next zone of the round.
    Zone(usize),
    /// Shrinking a zone.
    Shrink(usize, ShrinkNode),
    /// All zones are done.
    AfterZones,
    Compact(CompactZones),
    /// End of the round.
    End,
}

impl ZoneDescent {
    pub(super) fn new(zoneidx: usize) -> ZoneDescent {
        ZoneDescent {
            end_zone: zoneidx,
            at: ZoneDescentStage::Top,
            nr_attempted: 0,
            needs_compaction: false,
            raise_priority: true,
            reclaimed_before: 0,
            reclaimed: 0,
        }
    }
}

impl ZoneDescent {
    pub(super) fn end_zoneidx(&self) -> usize {
        self.end_zone
    }
}

#[cfg(test)]
mod tests;
