//! Set of page numbers, to count distinct pages: a bitmap in chunks of 4096 pages. Its size depends
//! on the pages seen, not on the highest page number.

use std::collections::BTreeMap;

const WORDS: usize = 64;
const CHUNK_SHIFT: u32 = 12;

#[derive(Debug, Default)]
pub(crate) struct PageSet {
    chunks: BTreeMap<u64, Box<[u64; WORDS]>>,
    len: u64,
}

impl PageSet {
    /// Adds a page; true if it is new.
    pub(crate) fn insert(&mut self, page: u64) -> bool {
        let chunk = self.chunks.entry(page >> CHUNK_SHIFT).or_insert_with(|| Box::new([0; WORDS]));
        let word = &mut chunk[(page >> 6) as usize % WORDS];
        let bit = 1u64 << (page % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += u64::from(is_new);
        is_new
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_page_once() {
        let mut set = PageSet::default();
        for page in [0, 1, 63, 64, 4095, 4096, 4160, u64::MAX, 0, 4096, u64::MAX] {
            set.insert(page);
        }
        assert_eq!(set.len(), 8);
        assert!(!set.insert(64));
        set.clear();
        assert_eq!(set.len(), 0);
        assert!(set.insert(64));
    }
}
