//! kswapd: the daemon that keeps the free memory of a node between its watermarks.
//!
//! Linux: `kswapd`, `balance_pgdat`, `kswapd_try_to_sleep`, `wakeup_kswapd` (6.1). An allocation
//! that finds every zone below its low watermark wakes kswapd. kswapd reclaims until one zone is
//! above its high watermark, naps 100 ms, and goes to full sleep if no allocation woke it during
//! the nap. If fallbacks have polluted pageblocks of a zone, its watermarks are boosted; kswapd
//! reclaims mildly from such a zone until the boost is gone.
//!
//! Invariant: `sleeping` is set exactly while the world must not step the daemon.

mod balance_pgdat;

use super::kswapd_by_zone::{ZoneDescent, ZoneKswapdState};
use super::kswapd_compacts::CompactZones;
use super::shrink_node::ShrinkNode;
use super::{Reclaimer, ScanControl};
use crate::frames::gfp::Gfp;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::units::digest::{Digest, State};
use crate::units::{Nanos, Order};
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

/// Failed descents in a row after which kswapd gives up (Linux 6.1).
pub const MAX_RECLAIM_RETRIES: u32 = 16;
/// The short nap before the full sleep (Linux: HZ/10).
const NAP: Nanos = 100_000_000;

#[derive(Clone, Debug, State)]
enum KswapdStage {
    /// Deciding whether to sleep.
    TrySleep,
    /// Napping before the full sleep.
    Nap { until: Nanos },
    /// Asleep until woken.
    Sleep,
    /// Taking the request.
    Begin,
    /// At the top of a round.
    Round,
    /// In a node pass. Boxed, because every step moves the stage, and with many groups most steps
    /// do little else.
    Shrink(Box<ShrinkNode>),
    /// Compacting at the end of a round.
    Compact(CompactZones),
    /// In a descent by zone (up to Linux 4.7).
    Balance(Box<ZoneDescent>),
}

/// Scan control of a kswapd. A step takes it out, so that the machine can be borrowed at the same
/// time, and puts it back. Boxed, because it is large, and with many groups a step handles only a
/// page or two.
///
/// Invariant: it is present between two steps.
#[derive(Clone, Debug)]
pub(super) struct KswapdScan(Option<Box<ScanControl>>);

impl KswapdScan {
    pub(super) fn of(sc: ScanControl) -> KswapdScan {
        KswapdScan(Some(Box::new(sc)))
    }

    pub(super) fn take(&mut self) -> Box<ScanControl> {
        self.0.take().expect("present between two steps")
    }

    pub(super) fn put_back(&mut self, sc: Box<ScanControl>) {
        self.0 = Some(sc);
    }
}

impl Deref for KswapdScan {
    type Target = ScanControl;

    fn deref(&self) -> &ScanControl {
        self.0.as_deref().expect("present between two steps")
    }
}

impl DerefMut for KswapdScan {
    fn deref_mut(&mut self) -> &mut ScanControl {
        self.0.as_deref_mut().expect("present between two steps")
    }
}

impl State for KswapdScan {
    fn digest(&self, digest: &mut Digest) {
        (**self).digest(digest);
    }
}

/// The daemon of one node.
#[derive(Clone, Debug, State)]
pub struct Kswapd {
    stage: KswapdStage,
    /// Highest order requested.
    pub order: Order,
    /// Highest zone requested; `None`: no request.
    pub highest_zoneidx: Option<usize>,
    /// Descents in a row that freed nothing.
    pub failures: u32,
    /// Napping or asleep.
    pub sleeping: bool,
    pub(super) alloc_order: Order,
    reclaim_order: Order,
    pub(super) zoneidx: usize,
    /// Highest zone in the original request, for kcompactd. (kswapd may have lowered `zoneidx`.)
    request_zoneidx: usize,
    pub(super) sc: KswapdScan,
    boosts: [u64; MAX_NR_ZONES],
    nr_boost_reclaim: u64,
    round_reclaimed: u64,
    raise_priority: bool,
    /// This kswapd compacts, the round needs a block, and no zone has such a block.
    needs_compaction: bool,
    /// State of older kernels.
    pub(super) by_zone: ZoneKswapdState,
}

impl Kswapd {
    pub(crate) fn new() -> Kswapd {
        Kswapd {
            stage: KswapdStage::Sleep,
            order: 0,
            highest_zoneidx: None,
            failures: 0,
            sleeping: true,
            alloc_order: 0,
            reclaim_order: 0,
            zoneidx: MAX_NR_ZONES - 1,
            request_zoneidx: MAX_NR_ZONES - 1,
            sc: KswapdScan::of(ScanControl::new(Reclaimer::Kswapd, 0, Gfp::KERNEL, 0)),
            boosts: [0; MAX_NR_ZONES],
            nr_boost_reclaim: 0,
            round_reclaimed: 0,
            raise_priority: true,
            needs_compaction: false,
            by_zone: ZoneKswapdState::default(),
        }
    }
}
