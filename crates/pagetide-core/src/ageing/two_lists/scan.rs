//! A scan of one group's lists: which list gives the next batch.
//!
//! Linux: `shrink_lruvec`, `shrink_list` (mm/vmscan.c, 6.1). The lists take turns, 32 pages each
//! time, until each list has reached its target. Once enough pages were freed, one kind (page cache
//! or anonymous memory) stops: the one with fewer pages left to scan. The target of the other kind
//! is lowered to the same share.
//!
//! Invariant: [`ListScan`] holds the whole state between two batches.

mod batch;

use crate::ageing::lruvec::{Lru, NR_EVICTABLE_LISTS};
use crate::units::digest::State;
use crate::units::SWAP_CLUSTER_MAX;

/// Scan of one group's lists in progress.
#[derive(Clone, Debug, State)]
pub(crate) struct ListScan {
    nr: [u64; NR_EVICTABLE_LISTS],
    targets: [u64; NR_EVICTABLE_LISTS],
    /// Pages freed so far.
    pub nr_reclaimed: u64,
    nr_to_reclaim: u64,
    /// Scan the targets completely, so that both kinds feel equal pressure: direct reclaim at the
    /// mildest priority does this.
    proportional: bool,
    /// Stop with the first round over the lists that has freed enough (up to 3.9).
    until_enough: bool,
    /// List of the next batch.
    at: usize,
    /// Priority of the group's plan, for the event log.
    #[state(skip)] // follows from the targets
    priority: i8,
}

impl ListScan {
    /// Whether no list has a page to scan.
    pub fn is_empty(&self) -> bool {
        self.nr == [0; NR_EVICTABLE_LISTS]
    }

    /// Priority of the group's plan.
    pub fn priority(&self) -> i8 {
        self.priority
    }

    /// Enough was freed: stops the kind with fewer pages left to scan, and lowers the target of the
    /// other kind, so that both are scanned to the same share of their targets.
    fn balance_targets(&mut self) {
        let nr_anon = self.nr[0] + self.nr[1];
        let nr_file = self.nr[2] + self.nr[3];
        if nr_anon == 0 || nr_file == 0 {
            self.nr = [0; NR_EVICTABLE_LISTS];
            return;
        }
        let (stop, keep, left) = if nr_file > nr_anon { (0, 2, nr_anon) } else { (2, 0, nr_file) };
        let target = self.targets[stop] + self.targets[stop + 1] + 1;
        let percentage = left * 100 / target;
        self.nr[stop] = 0;
        self.nr[stop + 1] = 0;
        for lru in [keep, keep + 1] {
            let scanned = self.targets[lru] - self.nr[lru];
            let scaled = self.targets[lru] * (100 - percentage) / 100;
            self.nr[lru] = scaled - scaled.min(scanned);
        }
    }

    /// The next list with pages to scan, and how many; `None`: the scan is over.
    fn next(&mut self) -> Option<(Lru, u64)> {
        loop {
            if self.at == NR_EVICTABLE_LISTS {
                // A round over all lists is complete.
                self.at = 0;
                if self.nr_reclaimed >= self.nr_to_reclaim && !self.proportional {
                    match self.until_enough {
                        true => return None,
                        false => self.balance_targets(),
                    }
                }
            }
            // Pages left on the active anonymous list alone do not go on.
            if self.at == 0 && self.nr[0] + self.nr[2] + self.nr[3] == 0 {
                return None;
            }
            let lru = Lru::EVICTABLE[self.at];
            self.at += 1;
            let left = &mut self.nr[lru as usize];
            if *left > 0 {
                let batch = (*left).min(SWAP_CLUSTER_MAX);
                *left -= batch;
                return Some((lru, batch));
            }
        }
    }
}
