//! A scan of one group's generations in progress.
//!
//! Linux: local variables of `lru_gen_shrink_lruvec` (mm/vmscan.c, 6.1).
//!
//! Invariant: [`GenerationScan`] holds the whole state between two batches.

use crate::units::digest::State;

/// Scan of one group's generations in progress.
#[derive(Clone, Debug, State)]
pub(crate) struct GenerationScan {
    /// Pages freed so far.
    pub nr_reclaimed: u64,
    /// Priority of the group's plan.
    pub priority: i8,
    /// There is nothing to do.
    #[state(skip)] // follows from the generations
    pub is_empty: bool,
    /// Number of the youngest generation when the scan began; `None`: it has not begun.
    pub(super) max_seq: Option<u64>,
    /// The group has no old pages left, or is protected.
    pub is_aged: bool,
    /// Swappiness of the last batch.
    pub(super) swappiness: Option<u64>,
    /// Pages scanned so far.
    pub(super) nr_scanned: u64,
    /// The group needed ageing at the last look.
    pub(super) needs_ageing: bool,
    /// Anonymous pages were evicted.
    pub(super) has_swapped: bool,
    /// Pages that the last batch scanned, of so many to scan.
    pub(super) last: Option<(u64, u64)>,
    /// A walk over page tables is open: whether it looks at anonymous pages.
    pub(super) walk: Option<bool>,
    /// It takes part in a walk that will end this youngest generation.
    pub(super) walks_for: Option<u64>,
}

impl GenerationScan {
    pub(crate) fn new(priority: i8, is_empty: bool) -> GenerationScan {
        GenerationScan {
            nr_reclaimed: 0,
            priority,
            is_empty,
            max_seq: None,
            is_aged: false,
            swappiness: None,
            nr_scanned: 0,
            needs_ageing: false,
            has_swapped: false,
            last: None,
            walk: None,
            walks_for: None,
        }
    }
}
