//! Bloom filter of page tables that are worth a walk.
//!
//! Linux: `update_bloom_filter`, `test_bloom_filter` (mm/vmscan.c, 6.1). A table with at least one
//! used entry in each cache line enters the filter. The next walk reads only tables in the filter.
//! There are two filters: walks read one and fill the other.
//!
//! Difference from Linux: the hashed address of a table is made of the mapping and the position of
//! the table in it, because mappings have no addresses here.

use crate::units::digest::{Digest, State};
use crate::units::VmaId;
use alloc::boxed::Box;

/// Bits of a filter (Linux `BLOOM_FILTER_SHIFT`).
const SHIFT: u32 = 15;

const WORDS: usize = 1 << (SHIFT - 6);

/// A page table: 512 entries of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableKey {
    /// The mapping.
    pub vma: VmaId,
    /// Number of the table in the mapping, from 0.
    pub table: u32,
}

impl TableKey {
    /// The two bits of a filter that stand for the table.
    fn bits(self) -> [usize; 2] {
        // The hash of Linux: the high bits of a product with the golden ratio.
        let address = u64::from(self.vma.0) << 40 | u64::from(self.table) << 3;
        let hash = address.wrapping_mul(0x61c8_8646_80b5_83eb) >> (64 - 2 * SHIFT);
        let mask = (1 << SHIFT) - 1;
        [hash as usize & mask, hash as usize >> SHIFT]
    }
}

/// A filter; before its first use it contains every table.
#[derive(Clone, Debug, Default)]
pub struct BloomFilter(Option<Box<[u64; WORDS]>>);

impl BloomFilter {
    /// Whether a table may be in the filter.
    pub(crate) fn contains(&self, key: TableKey) -> bool {
        let Some(words) = &self.0 else { return true };
        key.bits().iter().all(|bit| words[bit / 64] >> (bit % 64) & 1 == 1)
    }

    /// Adds a table, unless the filter contains every table.
    pub(crate) fn add(&mut self, key: TableKey) {
        if let Some(words) = &mut self.0 {
            key.bits().iter().for_each(|bit| words[bit / 64] |= 1 << (bit % 64));
        }
    }

    /// Empties the filter.
    pub(crate) fn clear(&mut self) {
        match &mut self.0 {
            Some(words) => words.fill(0),
            None => self.0 = Some(Box::new([0; WORDS])),
        }
    }
}

impl State for BloomFilter {
    fn digest(&self, digest: &mut Digest) {
        let words = self.0.iter().flat_map(|words| words.iter().enumerate());
        for (at, &word) in words.filter(|&(_, &word)| word != 0) {
            digest.write_u64(at as u64);
            digest.write_u64(word);
        }
        digest.write_u64(u64::from(self.0.is_some()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(at: u32) -> TableKey {
        TableKey { vma: VmaId(at % 7), table: at }
    }

    #[test]
    fn a_filter_forgets_no_table_and_has_few_others() {
        let mut filter = BloomFilter::default();
        filter.add(key(1));
        assert!(filter.contains(key(2)), "an unused filter contains every table");
        filter.clear();
        assert!(!filter.contains(key(2)));
        let nr = 10_000;
        (0..nr).for_each(|at| filter.add(key(at)));
        assert!((0..nr).all(|at| filter.contains(key(at))));
        // Linux expects about a fifth at this number.
        let others = (nr..2 * nr).filter(|&at| filter.contains(key(at))).count();
        assert!((1000..3500).contains(&others), "{others}");
    }
}
