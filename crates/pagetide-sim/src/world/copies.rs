//! Copies of frames that fail, for tests.
//!
//! Invariant: without `every` no copy fails.

#[derive(Debug, Default)]
pub(crate) struct CopyFaults {
    /// Every n-th copy of a frame fails; 0: none.
    pub every: u64,
    nr_copies: u64,
}

impl CopyFaults {
    /// Counts a copy. Returns true if it fails.
    pub fn next_fails(&mut self) -> bool {
        self.nr_copies += 1;
        self.every != 0 && self.nr_copies.is_multiple_of(self.every)
    }
}
