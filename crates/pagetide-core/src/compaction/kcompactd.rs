//! kcompactd: the daemon that makes blocks of high order in the background.
//!
//! Linux: `kcompactd`, `wakeup_kcompactd`, `kcompactd_do_work`, `proactive_compact_node`,
//! `fragmentation_score_*` (mm/compaction.c, 6.1). kswapd wakes it with the order for which kswapd was
//! woken. Every half second it looks whether a node's free memory has become too fragmented for huge
//! pages, and compacts without a request (`vm.compaction_proactiveness`).
//!
//! The patch of 2016 left the highest zone of a request out by mistake; here, as since 4.7, it is in.
//!
//! Invariant: `sleeping` is set exactly while the world must not step the daemon.

mod work;

use super::run::RunId;
use crate::config::Config;
use crate::digest::State;
use crate::units::{Nanos, Order, MAX_PAGE_ORDER, PAGEBLOCK_ORDER};
use crate::zone::{Zone, MAX_NR_ZONES};

/// How often fragmentation is looked at (Linux `HPAGE_FRAG_CHECK_INTERVAL_MSEC`).
const CHECK_INTERVAL: Nanos = 500_000_000;

/// What the daemon works at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum Work {
    /// Somebody's request.
    Request { order: Order, highest_zoneidx: usize },
    /// Too much fragmentation.
    Proactive { score_before: u64 },
    /// A write to `vm.compact_memory` that no task waits for.
    Explicit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum Stage {
    /// Asleep, until woken or until then.
    Sleep { until: Nanos },
    /// Working; the next zone, and the run over the present one.
    Zone { work: Work, at: usize, run: Option<RunId> },
}

/// The daemon of one node.
#[derive(Clone, Debug, State)]
pub struct Kcompactd {
    stage: Stage,
    /// Asleep.
    pub sleeping: bool,
    /// Highest order asked for; 0: nobody asked (Linux `kcompactd_max_order`).
    pub max_order: Order,
    /// Lowest of the highest zones asked for.
    pub highest_zoneidx: usize,
    /// Everything is to be compacted.
    explicit: bool,
    /// The sysctl was written: look at once.
    proactive_trigger: bool,
}

impl Kcompactd {
    pub(crate) fn new() -> Kcompactd {
        Kcompactd {
            stage: Stage::Sleep { until: CHECK_INTERVAL },
            sleeping: true,
            max_order: 0,
            highest_zoneidx: MAX_NR_ZONES - 1,
            explicit: false,
            proactive_trigger: false,
        }
    }
}

/// Per cent of a zone's free memory that is not in blocks fit for a huge page (Linux
/// `fragmentation_score_zone`).
pub(crate) fn fragmentation_score_zone(zone: &Zone) -> u64 {
    let blocks = zone.buddyinfo();
    let free: u64 = blocks.iter().enumerate().map(|(order, nr)| nr << order).sum();
    let usable: u64 =
        (PAGEBLOCK_ORDER..=MAX_PAGE_ORDER).map(|order| blocks[usize::from(order)] << order).sum();
    ((free - usable) * 100).checked_div(free).unwrap_or(0)
}

/// The scores between which proactive compaction works: it begins above the one and ends at the other.
pub(crate) fn fragmentation_score_wmark(config: &Config, low: bool) -> u64 {
    let wmark_low = u64::from(100 - config.compaction_proactiveness.min(100)).max(5);
    if low {
        wmark_low
    } else {
        (wmark_low + 10).min(100)
    }
}
