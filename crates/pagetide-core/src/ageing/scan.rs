//! A scan of one group's lists on one node, as reclaim sees it.
//!
//! Linux: `shrink_lruvec` (mm/vmscan.c, 6.1).
//!
//! Invariant: the pages of an [`EvictionBatch`] are isolated; the same step decides about them.

use super::generations::scan::GenerationScan;
use super::page_policy::PolicyScan;
use super::two_lists::scan::ListScan;
use crate::units::digest::State;
use crate::units::Pfn;
use alloc::vec::Vec;

/// Scan of one group's lists in progress.
#[derive(Clone, Debug, State)]
pub(crate) enum LruvecScan {
    TwoLists(ListScan),
    Generations(GenerationScan),
    Policy(PolicyScan),
}

impl LruvecScan {
    /// Pages freed so far.
    #[inline]
    pub fn nr_reclaimed(&self) -> u64 {
        match self {
            LruvecScan::TwoLists(scan) => scan.nr_reclaimed,
            LruvecScan::Generations(scan) => scan.nr_reclaimed,
            LruvecScan::Policy(scan) => scan.nr_reclaimed,
        }
    }

    /// Counts freed pages.
    #[inline]
    pub fn add_reclaimed(&mut self, nr: u64) {
        match self {
            LruvecScan::TwoLists(scan) => scan.nr_reclaimed += nr,
            LruvecScan::Generations(scan) => scan.nr_reclaimed += nr,
            LruvecScan::Policy(scan) => scan.nr_reclaimed += nr,
        }
    }

    /// Whether the scan ended because the group has no old pages left.
    pub fn is_aged(&self) -> bool {
        matches!(self, LruvecScan::Generations(scan) if scan.is_aged)
    }

    /// Whether there is nothing to scan.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            LruvecScan::TwoLists(scan) => scan.is_empty(),
            LruvecScan::Generations(scan) => scan.is_empty,
            LruvecScan::Policy(scan) => scan.left == 0,
        }
    }

    /// Priority of the group's plan.
    #[inline]
    pub fn priority(&self) -> i8 {
        match self {
            LruvecScan::TwoLists(scan) => scan.priority(),
            LruvecScan::Generations(scan) => scan.priority,
            LruvecScan::Policy(scan) => scan.priority,
        }
    }
}

/// Pages of one kind, isolated for a decision about each.
pub(crate) struct EvictionBatch {
    /// File pages; else anonymous.
    pub file: bool,
    /// Pages taken, and those of zones above the highest usable zone.
    pub nr_scanned: u64,
    /// Pages taken.
    pub nr_taken: u64,
    /// First frames of the pages. The buffer goes back to `scratch`.
    pub taken: Vec<Pfn>,
}

/// Result of a step of a scan.
pub(crate) enum ScanBatch {
    /// Decide about these pages.
    Evict(EvictionBatch),
    /// Pages were aged, and none taken.
    Aged,
    /// The scan is over.
    Done,
}
