//! A CPU's batches of pages that will be added to LRU lists or moved between them.
//!
//! Linux: `struct pagevec`, `lru_pvecs` (mm/swap.c, 6.1).

use crate::units::digest::State;
use crate::units::Pfn;
use alloc::vec::Vec;

/// Number of pages in a full batch (Linux `PAGEVEC_SIZE`).
pub const PAGEVEC_SIZE: usize = 15;

/// The same since Linux 6.9.
pub const PAGEVEC_SIZE_6_9: usize = 31;

/// The batches of one CPU.
#[derive(Clone, Debug, Default, State)]
pub struct LruBatches {
    /// Pages to add to a list.
    pub add: Vec<Pfn>,
    /// Pages to move to their active list.
    pub activate: Vec<Pfn>,
    /// Pages to move to the tail after their write, to be reclaimed next.
    pub rotate: Vec<Pfn>,
}

impl LruBatches {
    /// Empty batches with capacity for a full one.
    pub fn new() -> LruBatches {
        LruBatches {
            add: Vec::with_capacity(PAGEVEC_SIZE),
            activate: Vec::with_capacity(PAGEVEC_SIZE),
            rotate: Vec::with_capacity(PAGEVEC_SIZE),
        }
    }
}
