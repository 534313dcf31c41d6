//! The locked pages of a mapping.
//!
//! Linux: `VM_LOCKED`. Linux splits a mapping to lock a part of it.
//!
//! Invariant: the ranges are sorted, not empty, and do not touch each other.

use crate::units::digest::State;
use alloc::vec::Vec;
use core::ops::Range;

/// The locked pages of a mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, State)]
pub struct LockedPages(Vec<Range<u64>>);

impl LockedPages {
    /// Whether a page is locked.
    #[inline]
    pub fn contains(&self, page: u64) -> bool {
        !self.0.is_empty() && self.find(page).is_ok()
    }

    /// Number of locked pages in a range.
    pub fn count_in(&self, pages: Range<u64>) -> u64 {
        let part = |range: &Range<u64>| {
            range.end.min(pages.end).saturating_sub(range.start.max(pages.start))
        };
        self.0.iter().map(part).sum()
    }

    /// First locked page in a range.
    pub fn first_in(&self, pages: Range<u64>) -> Option<u64> {
        let range = self.0.iter().find(|range| range.end > pages.start)?;
        Some(range.start.max(pages.start)).filter(|&first| first < pages.end)
    }

    /// Index of the range that contains a page, or the index to insert one.
    #[cold]
    #[inline(never)]
    fn find(&self, page: u64) -> Result<usize, usize> {
        let at = self.0.partition_point(|range| range.end <= page);
        match self.0.get(at) {
            Some(range) if range.start <= page => Ok(at),
            _ => Err(at),
        }
    }

    pub(super) fn set(&mut self, pages: Range<u64>, locked: bool) {
        if pages.is_empty() {
            return;
        }
        let mut left = Vec::with_capacity(self.0.len() + 2);
        let mut new = pages.clone();
        for range in self.0.drain(..) {
            if locked && range.start <= new.end && new.start <= range.end {
                new = range.start.min(new.start)..range.end.max(new.end);
                continue;
            }
            let before = range.start..range.end.min(pages.start);
            let behind = range.start.max(pages.end)..range.end;
            left.extend([before, behind].into_iter().filter(|part| !part.is_empty()));
        }
        if locked {
            left.push(new);
        }
        left.sort_by_key(|range| range.start);
        self.0 = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_grow_together_and_are_cut() {
        let mut locked = LockedPages::default();
        locked.set(10..20, true);
        locked.set(30..40, true);
        locked.set(20..30, true);
        assert_eq!((locked.0.len(), locked.0[0].clone()), (1, 10..40));
        locked.set(15..18, false);
        assert_eq!(locked.0, [10..15, 18..40]);
        locked.set(0..0, true);
        locked.set(14..19, true);
        assert_eq!((locked.0.len(), locked.0[0].clone()), (1, 10..40));
        locked.set(0..100, false);
        assert_eq!(locked, LockedPages::default());
    }

    #[test]
    fn ranges_say_what_a_set_would() {
        let (mut ranges, mut naive) = (LockedPages::default(), [false; 64]);
        let mut random = 1u64;
        for _ in 0..2000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (first, nr, locked) = (random >> 40 & 63, random >> 50 & 15, random >> 60 & 1 == 1);
            let end = (first + nr).min(64);
            ranges.set(first..end, locked);
            naive[first as usize..end as usize].fill(locked);
            for (at, &locked) in naive.iter().enumerate() {
                assert_eq!(ranges.contains(at as u64), locked, "{at} in {ranges:?}");
            }
            let all = naive.iter().filter(|&&locked| locked).count() as u64;
            assert_eq!(ranges.count_in(0..64), all);
            let first = naive.iter().skip(7).position(|&locked| locked);
            assert_eq!(ranges.first_in(7..64), first.map(|at| at as u64 + 7));
            assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
        }
    }
}
