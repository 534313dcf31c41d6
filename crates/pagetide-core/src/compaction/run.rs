//! One run over one zone, batch by batch.
//!
//! Linux: `compact_zone`, `compact_finished` (mm/compaction.c; 6.1, or 4.5 if the [era](crate::config::era)
//! says so). A step isolates up to 32 pages and begins to migrate them; the next step continues
//! after their copies. The machine keeps the runs, because the task that compacts can be killed
//! between any two steps; its run then puts all pages back.
//!
//! Invariant: all frames of a run are in its goal's zone; `in_flight` is empty in stage `Isolate`.

mod steps;

use super::zone_state::{pageblock_end, pageblock_start};
use super::{
    CompactControl, CompactGoal, CompactResult, CompactStage, Compactor, FastStart,
    COMPACT_CLUSTER_MAX,
};
use crate::frames::zone::Zone;
use crate::units::digest::State;
use crate::units::{Order, Pfn, Requester, PAGEBLOCK_ORDER};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Number of pageblocks without movable pages that one step may pass.
const BLOCKS_A_STEP: u32 = COMPACT_CLUSTER_MAX;

/// Index of a run in the machine's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(crate) struct CompactRunId(pub u32);

#[derive(Clone, Copy, Debug)]
pub(crate) struct CompactRunEnd {
    pub result: CompactResult,
    /// The free block that the run has kept for its task.
    pub captured: Option<Pfn>,
    pub migrate_scanned: u64,
    pub free_scanned: u64,
}

impl CompactRunEnd {
    /// Result of a run that was abandoned or belongs to another task.
    const GIVEN_UP: CompactRunEnd = CompactRunEnd {
        result: CompactResult::Contended,
        captured: None,
        migrate_scanned: 0,
        free_scanned: 0,
    };
}

#[derive(Clone, Debug, Default, State)]
pub(crate) struct Compactions {
    runs: Vec<Option<(Requester, Box<CompactControl>)>>,
}

impl Compactions {
    fn insert(&mut self, owner: Requester, run: CompactControl) -> CompactRunId {
        let free = self.runs.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.runs.push(None);
            self.runs.len() - 1
        });
        self.runs[at] = Some((owner, Box::new(run)));
        CompactRunId(at as u32)
    }

    /// Pages under migration, and their target frames.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (Pfn, Pfn)> + '_ {
        self.runs.iter().flatten().flat_map(|(_, run)| run.in_flight.iter().copied())
    }

    /// Frames that are neither free nor in use: targets, and the first frames of captured blocks.
    pub(crate) fn idle_frames(&self) -> impl Iterator<Item = Pfn> + '_ {
        let runs = self.runs.iter().flatten();
        runs.flat_map(|(_, run)| run.freepages.iter().chain(&run.captured).copied())
    }

    /// Notes the end of a copy. If the copy failed, `unused` is its target frame. The frame returns
    /// to the run's list or, if the run was abandoned, to the caller, which must free it.
    pub(super) fn copy_ended(
        &mut self,
        id: CompactRunId,
        from: Pfn,
        unused: Option<Pfn>,
    ) -> Option<Pfn> {
        let Some(Some((_, run))) = self.runs.get_mut(id.0 as usize) else { return unused };
        run.in_flight.retain(|&(page, _)| page != from);
        let mut left = unused;
        if let Some(frame) = unused {
            run.nr_failed += 1;
            if !run.abandoned {
                run.freepages.push_back(frame);
                left = None;
            }
        }
        if run.abandoned && run.in_flight.is_empty() {
            self.runs[id.0 as usize] = None;
        }
        left
    }
}

impl CompactControl {
    fn new(goal: CompactGoal, zone: &Zone) -> CompactControl {
        CompactControl {
            goal,
            migrate_pfn: zone.start_pfn.0,
            free_pfn: last_block(zone),
            whole_zone: goal.thorough,
            ignore_skip_hint: goal.thorough,
            search_order: goal.order.unwrap_or(0),
            fast_search_fail: 0,
            fast_start: FastStart::None,
            rescan: false,
            freepages: VecDeque::new(),
            migratepages: Vec::new(),
            in_flight: Vec::new(),
            nr_failed: 0,
            out_of_frames: false,
            last_migrated: None,
            batch_start: 0,
            update_cached: false,
            contended: false,
            stage: CompactStage::Isolate,
            captured: None,
            migrate_scanned: 0,
            free_scanned: 0,
            abandoned: false,
        }
    }

    pub(super) fn is_direct(&self) -> bool {
        self.goal.by == Compactor::Direct
    }
}

/// First frame of the zone's last pageblock.
pub(super) fn last_block(zone: &Zone) -> u32 {
    pageblock_start((zone.end_pfn() - 1) as u32).max(zone.start_pfn.0)
}

/// First frame of the block of 2^`order` that holds `pfn`.
pub(super) const fn block_start(pfn: u32, order: Order) -> u32 {
    pfn & !((1 << order) - 1)
}

/// Whether the scanners are in the same pageblock (Linux `compact_scanners_met`).
pub(super) const fn scanners_met(run: &CompactControl) -> bool {
    run.free_pfn >> PAGEBLOCK_ORDER <= run.migrate_pfn >> PAGEBLOCK_ORDER
}

/// First frame after the pageblock of `pfn`, at most the zone's end.
pub(super) fn block_end_in(zone: &Zone, pfn: u32) -> u32 {
    u64::from(pageblock_end(pfn)).min(zone.end_pfn()) as u32
}
