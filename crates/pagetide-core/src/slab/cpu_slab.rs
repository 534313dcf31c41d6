//! A CPU's part of a cache, and allocation from it.
//!
//! Linux: `struct kmem_cache_cpu` with its fast paths `slab_alloc_node` and `do_slab_free`
//! (mm/slub.c, 6.1). In Linux a CPU has a list of free objects; here it has a word with one bit for
//! each of up to 64 objects of its active slab.
//!
//! Invariant: `returnable` has the objects of the word that exist, with two exceptions: cached
//! objects, and objects that another CPU has freed (the slab's own words have their bits).

use crate::units::digest::State;

use super::kmem_cache::NO_SLAB;

/// A CPU's part of a cache: one cache line.
#[derive(Clone, Debug, State)]
#[repr(align(64))]
pub(crate) struct CpuSlab {
    /// Bits of the free objects that the CPU has taken out of its active slab.
    pub word: u64,
    /// Bits of the objects in the range of that word that the CPU may free without further checks:
    /// they exist, are not cached, and no other CPU has freed them.
    pub returnable: u64,
    /// Number of the first object of that word.
    pub base: u32,
    /// Whether the active slab's objects may have owners.
    pub has_owners: bool,
    pub slot: u32,
    /// First slab of the CPU's chain of partial slabs, newest first.
    pub partial: u32,
    pub nr_partial: u32,
    /// Free objects on the chain, counted when their slabs were added (used by the policy of 5.5).
    pub partial_objects: u32,
}

impl CpuSlab {
    pub const EMPTY: CpuSlab = CpuSlab {
        word: 0,
        returnable: 0,
        base: u32::MAX,
        has_owners: false,
        slot: NO_SLAB,
        partial: NO_SLAB,
        nr_partial: 0,
        partial_objects: 0,
    };

    /// Allocates the next object of the word, if there is one.
    #[inline(always)]
    pub fn alloc_from_word(&mut self) -> Option<u32> {
        if self.word == 0 {
            return None;
        }
        // A word never includes `u32::MAX`, so the sum does not wrap.
        let number = self.base.wrapping_add(self.word.trailing_zeros());
        self.word &= self.word - 1;
        Some(number)
    }

    /// Frees an object in the range of the word. Returns false and changes nothing if the object is
    /// outside the range or invalid.
    #[inline(always)]
    pub fn take_back(&mut self, number: u32) -> bool {
        let index = number.wrapping_sub(self.base);
        // Without a word `base` is `u32::MAX`, and `returnable` has no bit for objects of other
        // words.
        if index >= u64::BITS || (self.returnable & !self.word) >> index & 1 == 0 {
            return false;
        }
        self.word |= 1 << index;
        true
    }
}

/// The lowest `count` bits, at most 64.
pub(crate) const fn low_bits(count: u32) -> u64 {
    if count >= 64 {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// Bits of the cached objects in the word that starts at `base`, according to their `entries`.
pub(crate) fn kept_bits(entries: &[u32], base: u32, word_shift: u32) -> u64 {
    let entries = entries.get(base as usize..).unwrap_or(&[]);
    let word = entries.iter().take(1 << word_shift).enumerate();
    word.fold(0, |bits, (at, &entry)| bits | u64::from(entry != u32::MAX) << at)
}
