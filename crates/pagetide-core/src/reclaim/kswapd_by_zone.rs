//! kswapd up to Linux 4.7: it works zone by zone, because each zone has lists of its own.
//!
//! Linux: `balance_pgdat`, `kswapd_shrink_zone`, `zone_balanced`, `pgdat_balanced`,
//! `sleeping_prematurely` (mm/vmscan.c of 2.6.37, 3.3, 4.5 and 4.6).
//!
//! A round begins at the highest zone that needs work. It goes through the zones from DMA up to
//! this one. In each zone the soft-limit stage comes first; then the lists are scanned, unless the
//! zone has more than its high watermark and a gap.
//!
//! * 2.6.37 and 3.3: a scan of a zone has no goal and does not stop early. The priority falls after
//!   each round. When a descent has freed 32 pages, or after the last priority, kswapd starts again
//!   at the first priority, until every zone is above its high watermark. Below priority 10 each
//!   round ends with a nap for congested disks.
//! * 4.5 and 4.6: the goal of a scan is the zone's high watermark. The priority falls only after a
//!   round that scanned too little or freed nothing.
//!
//! [`BackgroundCompaction`](crate::config::BackgroundCompaction) chooses between 4.5 (`kswapd`) and
//! 4.6, which has Vlastimil Babka's "mm, kswapd: replace kswapd compaction with waking up
//! kcompactd" of March 2016:
//!
//! * 4.5: a zone is balanced when it has its high watermark *at the order requested*. A round
//!   reclaims from the zones that are not balanced, at order 0 if compaction could do the rest. At
//!   the end of a round kswapd compacts the node if the round has reclaimed more pages than it
//!   attempted. If all zones have enough pages of order 0, it attempts and reclaims 0 pages. So it
//!   never compacts, and goes down all priorities without effect, again and again. The patch fixes
//!   this flaw; this policy keeps it.
//! * 4.6 (`kcompactd` and the others): kswapd is woken for the order, balances for order 0, and
//!   leaves compaction to kcompactd.
//!
//! Differs from Linux: a zone counts as unreclaimable after six full scans in which kswapd freed no
//! page (Linux: since any page of the zone was freed). With the rules of 2.6.37 and 3.3 kswapd
//! sleeps after 16 descents in a row that freed nothing (Linux goes on for ever).
//!
//! Invariant: these functions run only if the [era](crate::config::era) has lists by zone.

mod balance;

use super::kswapd_compacts::CompactZones;
use super::shrink_node::ShrinkNode;
use super::soft_limit_tree::SoftReclaim;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::units::digest::State;
use alloc::boxed::Box;

/// State of a kswapd that works by zone.
#[derive(Clone, Copy, Debug, Default, State)]
pub(super) struct ZoneKswapdState {
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
    /// Pages scanned since the descent began or started again (2.6.37, 3.3).
    scanned: u64,
    /// A zone of the round is below its high watermark (2.6.37, 3.3).
    is_short: bool,
    /// A zone of the round is below its min watermark (2.6.37, 3.3).
    is_under_min: bool,
}

#[derive(Clone, Debug, State)]
enum ZoneDescentStage {
    /// Top of a round.
    Top,
    /// The next zone of the round.
    Zone(usize),
    /// In the soft-limit stage of a zone.
    Soft(usize, Box<SoftReclaim>),
    /// Before the lists of a zone.
    Lists(usize),
    /// Scanning the lists of a zone.
    Shrink(usize, ShrinkNode),
    /// Done with a zone.
    ZoneEnd(usize),
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
            scanned: 0,
            is_short: false,
            is_under_min: false,
        }
    }

    pub(super) fn end_zoneidx(&self) -> usize {
        self.end_zone
    }
}

#[cfg(test)]
mod tests;
