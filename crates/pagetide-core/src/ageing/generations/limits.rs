//! Numbers of the multi-generational LRU.
//!
//! Linux: mmzone.h (6.1).

/// Generations that always exist (Linux `MIN_NR_GENS`).
pub const MIN_NR_GENS: u64 = 2;

/// Most generations that can exist (Linux `MAX_NR_GENS`).
pub const MAX_NR_GENS: usize = 4;

/// Most pages that eviction takes at once, and most entries that it looks at around a used one
/// (Linux `MIN_LRU_BATCH`).
pub(crate) const MIN_LRU_BATCH: u64 = 64;

/// Most pages that eviction sorts at once (Linux `MAX_LRU_BATCH`).
pub(crate) const MAX_LRU_BATCH: u64 = MIN_LRU_BATCH * 64;

/// A value for anonymous memory and one for page cache.
pub(crate) type ByKind<T> = [T; 2];
