//! Compaction: moving pages together so that free memory comes in large blocks.
//!
//! Linux: mm/compaction.c (6.1; 4.5 in compaction_4_5.rs). Two scanners walk a zone towards each other:
//! one from its beginning, for pages that can be moved, one from its end, for free frames to move them
//! to. A [`CompactControl`] is the state of a run over one zone. `migrate_scanner`, `free_scanner` and
//! `migrate` do its work; `suitable` decides whether compacting the zone can help; `defer` decides how
//! long a zone is left alone after a failure. `direct` is the entry for the allocating task,
//! `kcompactd` the entry for the daemon.
//!
//! Differs from Linux: copies are made by the world, between two steps, while the pages have no
//! entries; no lock and no reference of another CPU can make a migration fail, so fewer migrations
//! fail.
//!
//! Invariant: every frame that is [`Place::Isolated`](crate::page::Place::Isolated) between two steps
//! is on a run's list of free frames, or is being migrated, or is the target of such a page.

mod compaction_4_5;
pub(crate) mod defer;
pub(crate) mod direct;
pub mod fragmentation;
mod free_scanner;
pub mod kcompactd;
mod migrate;
mod migrate_scanner;
mod run;
pub(crate) mod suitable;
mod trigger;
mod zone_state;

pub(crate) use run::{Compactions, RunId};
pub use trigger::CompactMemory;
pub use zone_state::ZoneCompaction;

use crate::digest::State;
use crate::gfp::{AllocFlags, Gfp, MigrateType};
use crate::node::ZoneRef;
use crate::units::{Order, Pfn};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Pages isolated at a time (Linux `COMPACT_CLUSTER_MAX`).
pub(crate) const COMPACT_CLUSTER_MAX: u32 = 32;

/// What may be waited for (Linux `enum migrate_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(crate) enum CompactMode {
    /// Nothing; gives up when somebody else wants the CPU.
    Async,
    /// Locks, but no writes.
    SyncLight,
    /// Everything.
    Sync,
}

/// How a run, or an attempt over several zones, ended (Linux `enum compact_result`, in its order: of
/// several zones the largest counts).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, State)]
pub(crate) enum CompactResult {
    /// Too little free memory to move anything to.
    Skipped,
    /// Tried in vain not long ago.
    Deferred,
    /// More to do.
    Continue,
    /// The whole zone was scanned, and there is no block.
    Complete,
    /// The scanners met, having begun in the middle.
    PartialSkipped,
    /// Gave up for somebody else's sake.
    Contended,
    /// There is a block.
    Success,
}

impl CompactResult {
    /// As the kernel prints it (`COMPACTION_STATUS`).
    pub(crate) const fn name(self) -> &'static str {
        match self {
            CompactResult::Skipped => "skipped",
            CompactResult::Deferred => "deferred",
            CompactResult::Continue => "continue",
            CompactResult::Complete => "complete",
            CompactResult::PartialSkipped => "partial_skipped",
            CompactResult::Contended => "contended",
            CompactResult::Success => "success",
        }
    }
}

/// Who compacts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(crate) enum Compactor {
    /// An allocating task.
    Direct,
    /// kswapd, as it did up to 4.5.
    Kswapd,
    /// kcompactd, for a request.
    Kcompactd,
    /// kcompactd, to keep fragmentation low.
    Proactive,
    /// Who wrote to `vm.compact_memory`.
    Explicit,
}

/// What a run is to achieve.
#[derive(Clone, Copy, Debug, State)]
pub(crate) struct Goal {
    /// The zone.
    pub zone: ZoneRef,
    /// A free block of this order; `None`: everything moved that can be.
    pub order: Option<Order>,
    /// Type of the request.
    pub mt: MigrateType,
    /// What the request may do.
    pub gfp: Gfp,
    pub mode: CompactMode,
    pub flags: AllocFlags,
    pub highest_zoneidx: usize,
    pub by: Compactor,
    /// From end to end, blocks of any type, whatever the skip bits say.
    pub thorough: bool,
}

/// One run over one zone (Linux `struct compact_control`).
#[derive(Clone, Debug, State)]
pub(crate) struct CompactControl {
    pub goal: Goal,
    /// Next frame of the migrate scanner, which goes up.
    migrate_pfn: u32,
    /// Where the free scanner goes on, downwards by pageblock.
    free_pfn: u32,
    /// Began at the zone's beginning.
    whole_zone: bool,
    ignore_skip_hint: bool,
    /// Order at which the search of the free lists goes on.
    search_order: Order,
    /// Searches of the free lists in a row that found nothing.
    fast_search_fail: u32,
    /// Lowest block that a search of the free lists has jumped over.
    fast_start: FastStart,
    /// The pageblock under the scanner is done to its end, whatever fails.
    rescan: bool,
    /// Free frames to move pages to.
    freepages: VecDeque<Pfn>,
    /// Isolated pages, not yet on their way.
    migratepages: Vec<Pfn>,
    /// Pages on their way: from, to.
    in_flight: Vec<(Pfn, Pfn)>,
    /// Of the present batch.
    nr_failed: u32,
    out_of_frames: bool,
    /// Where the last batch began that freed something, if per-CPU lists may hold that.
    last_migrated: Option<u32>,
    batch_start: u32,
    update_cached: bool,
    contended: bool,
    stage: Stage,
    captured: Option<Pfn>,
    pub migrate_scanned: u64,
    pub free_scanned: u64,
    /// Its owner is gone: it only waits for its copies.
    abandoned: bool,
}

/// The lowest block that the search for sources has jumped over, to come back to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum FastStart {
    None,
    At(u32),
    Used,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum Stage {
    /// Find something to move.
    Isolate,
    /// A batch is being copied.
    Migrating,
}
