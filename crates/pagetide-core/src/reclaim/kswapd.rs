//! kswapd: the daemon that keeps a node between its marks.
//!
//! Linux: `kswapd`, `balance_pgdat`, `kswapd_try_to_sleep`, `wakeup_kswapd` (6.1). Woken when an
//! allocation finds every zone below its low mark, it reclaims until one zone is above its high mark,
//! naps 100 ms, and goes to full sleep if no allocation woke it meanwhile. A zone whose marks are
//! boosted because fallbacks polluted its pageblocks is worked on mildly until the boost is gone.
//!
//! Invariant: `sleeping` is set exactly while the world must not step the daemon.

mod balance_pgdat;

use super::kswapd_4_5::{Balance, Zones};
use super::kswapd_compacts::CompactZones;
use super::shrink_node::ShrinkNode;
use super::{Reclaimer, ScanControl};
use crate::digest::{Digest, State};
use crate::gfp::Gfp;
use crate::units::{Nanos, Order};
use crate::zone::MAX_NR_ZONES;
use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

/// Fruitless descents after which kswapd gives up (Linux 6.1).
pub const MAX_RECLAIM_RETRIES: u32 = 16;
/// The short nap before the full sleep (Linux: HZ/10).
const NAP: Nanos = 100_000_000;

#[derive(Clone, Debug, State)]
enum Stage {
    /// Decide whether to sleep.
    TrySleep,
    /// In the short nap.
    Nap { until: Nanos },
    /// Asleep until woken.
    Sleep,
    /// Take the request and begin.
    Begin,
    /// Top of a round.
    Round,
    /// In the middle of a node pass. Boxed: the stage is moved at every step, and with many groups most
    /// steps do nothing else.
    Shrink(Box<ShrinkNode>),
    /// Compacting at the end of a round.
    Compact(CompactZones),
    /// In a descent of Linux 4.5.
    Balance(Box<Balance>),
}

/// What a node's kswapd remembers besides.
#[derive(Clone, Copy, Debug, Default, State)]
pub(super) struct Descent {
    /// Pages reclaimed before the present descent began.
    pub reclaimed_before: u64,
}

/// What a kswapd scans by. A step of a pass takes it in hand, as the machine is borrowed beside it, and puts it back:
/// boxed, for it is large, and with many groups a step is a page or two.
///
/// Invariant: between two steps it is in its place.
#[derive(Clone, Debug)]
pub(super) struct KswapdScan(Option<Box<ScanControl>>);

impl KswapdScan {
    pub(super) fn of(sc: ScanControl) -> KswapdScan {
        KswapdScan(Some(Box::new(sc)))
    }

    /// Takes it in hand.
    pub(super) fn take(&mut self) -> Box<ScanControl> {
        self.0.take().expect("one step at a time has it in hand")
    }

    pub(super) fn put_back(&mut self, sc: Box<ScanControl>) {
        self.0 = Some(sc);
    }
}

impl Deref for KswapdScan {
    type Target = ScanControl;

    fn deref(&self) -> &ScanControl {
        self.0.as_deref().expect("no step has it in hand")
    }
}

impl DerefMut for KswapdScan {
    fn deref_mut(&mut self) -> &mut ScanControl {
        self.0.as_deref_mut().expect("no step has it in hand")
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
    stage: Stage,
    /// Highest order asked for.
    pub order: Order,
    /// Highest zone asked for; `None`: nobody asked.
    pub highest_zoneidx: Option<usize>,
    /// Descents in a row that freed nothing.
    pub failures: u32,
    /// In its nap or asleep.
    pub sleeping: bool,
    pub(super) alloc_order: Order,
    reclaim_order: Order,
    pub(super) zoneidx: usize,
    /// Highest zone of the request, for kcompactd: not what kswapd made of it.
    request_zoneidx: usize,
    pub(super) sc: KswapdScan,
    boosts: [u64; MAX_NR_ZONES],
    nr_boost_reclaim: u64,
    round_reclaimed: u64,
    raise_priority: bool,
    /// The round is for a block that no zone has, and kswapd compacts.
    needs_compaction: bool,
    /// What older kernels remember besides.
    pub(super) of_2_6_37: Descent,
    /// See above.
    pub(super) of_4_5: Zones,
}

impl Kswapd {
    /// A daemon that sleeps.
    pub(crate) fn new() -> Kswapd {
        Kswapd {
            stage: Stage::Sleep,
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
            of_2_6_37: Descent::default(),
            of_4_5: Zones::default(),
        }
    }
}
