//! Compaction: moves pages so that free memory forms large blocks.
//!
//! Linux: mm/compaction.c (6.1; 4.5 in compaction_4_5.rs). Two scanners walk a zone towards each
//! other: one from its start, for movable pages, one from its end, for free target frames. A
//! [`CompactControl`] is the state of a run over one zone. `migrate_scanner`, `free_scanner` and
//! `migrate` do its work. `suitable` decides whether compacting a zone can help. `defer` decides
//! how long a zone is skipped after a failure. `direct` is the entry point of an allocating task,
//! and `kcompactd` is the entry point of the daemon.
//!
//! Differs from Linux: the world (the environment that carries out effects) copies pages between
//! two steps; between them the pages have no entries. No lock or reference of another CPU makes a
//! migration fail, so fewer migrations fail.
//!
//! Invariant: between two steps, every [`Place::Isolated`](crate::frames::page::Place::Isolated) frame is
//! on a run's list of free frames, or is under migration, or is the target of a migration.

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

pub(crate) use run::{CompactRunId, Compactions};
pub use trigger::CompactMemory;
pub use zone_state::ZoneCompaction;

use crate::frames::gfp::{AllocFlags, Gfp, MigrateType};
use crate::frames::node::ZoneRef;
use crate::units::digest::State;
use crate::units::{Order, Pfn};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Maximum number of pages isolated at a time (Linux `COMPACT_CLUSTER_MAX`).
pub(crate) const COMPACT_CLUSTER_MAX: u32 = 32;

/// Operations that a run may wait for (Linux `enum migrate_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(crate) enum CompactMode {
    /// Nothing; stops if another task wants the CPU.
    Async,
    /// Locks, but not writeback.
    SyncLight,
    /// Locks and writeback.
    Sync,
}

/// Result of a run, or of an attempt over several zones: the largest of their results (Linux `enum
/// compact_result`, in its order).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, State)]
pub(crate) enum CompactResult {
    /// Too few free frames as migration targets.
    Skipped,
    /// Skipped because of recent failures.
    Deferred,
    /// The run must go on.
    Continue,
    /// The whole zone was scanned without making a block.
    Complete,
    /// The scanners met, but the run started in the middle of the zone.
    PartialSkipped,
    /// Stopped in favour of other tasks.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(crate) enum Compactor {
    Direct,
    /// kswapd, up to Linux 4.5.
    Kswapd,
    /// kcompactd, for a request.
    Kcompactd,
    /// kcompactd, to keep fragmentation low.
    Proactive,
    /// A write to `vm.compact_memory`.
    Explicit,
}

#[derive(Clone, Copy, Debug, State)]
pub(crate) struct CompactGoal {
    pub zone: ZoneRef,
    /// Order of the wanted free block; `None`: move every movable page.
    pub order: Option<Order>,
    /// Migrate type of the request.
    pub mt: MigrateType,
    pub gfp: Gfp,
    pub mode: CompactMode,
    pub flags: AllocFlags,
    pub highest_zoneidx: usize,
    pub by: Compactor,
    /// Scan the zone from end to end, take blocks of any type, ignore skip bits.
    pub thorough: bool,
}

/// One run over one zone (Linux `struct compact_control`).
#[derive(Clone, Debug, State)]
pub(crate) struct CompactControl {
    pub goal: CompactGoal,
    /// Next frame of the migrate scanner, which moves up.
    migrate_pfn: u32,
    /// Next frame of the free scanner, which moves down by pageblocks.
    free_pfn: u32,
    /// The run started at the zone's start.
    whole_zone: bool,
    ignore_skip_hint: bool,
    /// Order at which the next fast search starts.
    search_order: Order,
    /// Failed fast searches in a row.
    fast_search_fail: u32,
    /// Lowest block that a fast search has jumped over.
    fast_start: FastStart,
    /// Scan the present pageblock to its end, even after failed migrations.
    rescan: bool,
    /// Free frames to move pages to.
    freepages: VecDeque<Pfn>,
    /// Isolated pages whose migration has not begun.
    migratepages: Vec<Pfn>,
    /// Pages being copied: from, to.
    in_flight: Vec<(Pfn, Pfn)>,
    /// Failed migrations of the present batch.
    nr_failed: u32,
    out_of_frames: bool,
    /// Start of the last batch that may have freed pages to per-CPU lists.
    last_migrated: Option<u32>,
    batch_start: u32,
    update_cached: bool,
    contended: bool,
    stage: CompactStage,
    captured: Option<Pfn>,
    pub migrate_scanned: u64,
    pub free_scanned: u64,
    /// The task has abandoned the run. The run ends after its last copy.
    abandoned: bool,
}

/// The lowest block that fast searches have jumped over; the scanner returns to it once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum FastStart {
    None,
    At(u32),
    Used,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum CompactStage {
    Isolate,
    Migrating,
}
