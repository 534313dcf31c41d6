//! What the record of a run has in addition to counters: samples over time.

pub(crate) mod slab_levels;
pub(crate) mod slab_samples;
pub(crate) mod timeline;
