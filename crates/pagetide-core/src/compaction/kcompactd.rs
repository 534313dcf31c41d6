//! kcompactd: the daemon that makes blocks of high order in the background.
//!
//! Linux: `kcompactd`, `wakeup_kcompactd`, `kcompactd_do_work`, `proactive_compact_node`,
//! `fragmentation_score_*` (mm/compaction.c, 6.1). kswapd wakes kcompactd with the order that
//! kswapd itself was woken for. Every half second kcompactd compacts without a request if the node
//! is too fragmented for huge pages (`vm.compaction_proactiveness`).
//!
//! The patch that added kcompactd in 2016 left out the highest zone of a request by mistake; this
//! code includes it, as Linux does since 4.7.
//!
//! Invariant: `sleeping` is set exactly while the world must not step kcompactd.

mod work;

use super::run::CompactRunId;
use crate::config::Config;
use crate::frames::zone::Zone;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::units::digest::State;
use crate::units::{Nanos, Order, MAX_PAGE_ORDER, PAGEBLOCK_ORDER};

/// Interval of the fragmentation check (Linux `HPAGE_FRAG_CHECK_INTERVAL_MSEC`).
const CHECK_INTERVAL: Nanos = 500_000_000;

/// Why kcompactd compacts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum KcompactdWork {
    /// A task or kswapd wants a block.
    Request { order: Order, highest_zoneidx: usize },
    /// The node is too fragmented.
    Proactive { score_before: u64 },
    /// A write to `vm.compact_memory` that no task waits for.
    Explicit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum KcompactdStage {
    /// Asleep until woken, or until this time.
    Sleep { until: Nanos },
    /// Working: index of the zone, and the run over it if one has begun.
    Zone { work: KcompactdWork, at: usize, run: Option<CompactRunId> },
}

/// State of one node's kcompactd.
#[derive(Clone, Debug, State)]
pub struct Kcompactd {
    stage: KcompactdStage,
    /// Whether kcompactd sleeps. The world must not step it while it does.
    pub sleeping: bool,
    /// Highest requested order; 0 without a request (Linux `kcompactd_max_order`).
    pub max_order: Order,
    /// Lowest of the requests' highest zones.
    pub highest_zoneidx: usize,
    /// Compact all zones of the node.
    explicit: bool,
    /// `vm.compaction_proactiveness` was written: check at once.
    proactive_trigger: bool,
}

impl Kcompactd {
    pub(crate) fn new() -> Kcompactd {
        Kcompactd {
            stage: KcompactdStage::Sleep { until: CHECK_INTERVAL },
            sleeping: true,
            max_order: 0,
            highest_zoneidx: MAX_NR_ZONES - 1,
            explicit: false,
            proactive_trigger: false,
        }
    }
}

/// Percentage of free memory in blocks too small for a huge page (Linux
/// `fragmentation_score_zone`).
pub(crate) fn fragmentation_score_zone(zone: &Zone) -> u64 {
    let blocks = zone.buddyinfo();
    let free: u64 = blocks.iter().enumerate().map(|(order, nr)| nr << order).sum();
    let usable: u64 =
        (PAGEBLOCK_ORDER..=MAX_PAGE_ORDER).map(|order| blocks[usize::from(order)] << order).sum();
    ((free - usable) * 100).checked_div(free).unwrap_or(0)
}

/// A bound on the fragmentation score: proactive compaction starts above the high bound and ends at
/// the low one.
pub(crate) fn fragmentation_score_wmark(config: &Config, low: bool) -> u64 {
    let wmark_low = u64::from(100 - config.compaction_proactiveness.min(100)).max(5);
    if low {
        wmark_low
    } else {
        (wmark_low + 10).min(100)
    }
}
