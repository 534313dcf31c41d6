//! The number of pins of each frame.
//!
//! Linux: `page_ref_count`, `GUP_PIN_COUNTING_BIAS`.
//!
//! Invariant: a frame with a count has [`crate::frames::page::PageFlags::PINNED`].

use crate::units::digest::State;
use crate::units::Pfn;
use alloc::collections::BTreeMap;

/// Number of pins of each frame; for a huge page, of its first frame.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Pins {
    pub counts: BTreeMap<Pfn, u64>,
}

impl Pins {
    /// Frames with their pins, for the audit.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pfn, u64)> + '_ {
        self.counts.iter().map(|(&pfn, &count)| (pfn, count))
    }
}
