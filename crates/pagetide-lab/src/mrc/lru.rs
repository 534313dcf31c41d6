//! Misses of exact LRU lists of several lengths, in one pass.
//!
//! The stack distance of a use is the number of pages used since the last use of the page,
//! including itself: a list of at least that length still has the page (Mattson and others, 1970).
//! A Fenwick tree over the positions of last uses counts the distance in O(log pages).
//!
//! Invariant: every used page has one position, and the tree counts exactly these positions.

use std::collections::HashMap;

/// Least number of positions of a tree.
const LEAST_PLACES: usize = 1 << 10;

/// LRU lists of several lengths.
#[derive(Debug)]
pub struct LruLists {
    /// Lengths in pages, ascending.
    lengths: Vec<u64>,
    /// By `n`: number of uses that exactly the first `n` lists miss.
    too_far: Vec<u64>,
    places: HashMap<u64, usize>,
    /// Fenwick tree over positions from 1 on.
    tree: Vec<usize>,
    next: usize,
}

impl LruLists {
    /// Empty lists of these lengths, in ascending order.
    pub fn new(lengths: &[u64]) -> LruLists {
        LruLists {
            lengths: lengths.to_vec(),
            too_far: vec![0; lengths.len() + 1],
            places: HashMap::new(),
            tree: vec![0; LEAST_PLACES + 1],
            next: 1,
        }
    }

    /// A page is used; `is_read_first`: its first use is a miss.
    pub fn touch(&mut self, page: u64, is_read_first: bool) {
        if self.next == self.tree.len() {
            self.renumber();
        }
        let (place, all) = (self.next, self.places.len());
        self.next += 1;
        let before = self.places.insert(page, place);
        let nr_short = match before {
            Some(before) => {
                let distance = (all - self.sum(before) + 1) as u64;
                self.add(before, false);
                self.lengths.partition_point(|length| *length < distance)
            }
            None if is_read_first => self.lengths.len(),
            None => 0,
        };
        self.add(place, true);
        self.too_far[nr_short] += 1;
    }

    /// Misses of each length.
    pub fn misses(&self) -> Vec<u64> {
        (0..self.lengths.len()).map(|at| self.too_far[at + 1..].iter().sum()).collect()
    }

    /// Number of pages with a position up to `place`.
    fn sum(&self, mut place: usize) -> usize {
        let mut sum = 0;
        while place > 0 {
            sum += self.tree[place];
            place &= place - 1;
        }
        sum
    }

    fn add(&mut self, mut place: usize, is_there: bool) {
        while place < self.tree.len() {
            match is_there {
                true => self.tree[place] += 1,
                false => self.tree[place] -= 1,
            }
            place += place & place.wrapping_neg();
        }
    }

    /// Renumbers the positions in order, in a tree with room for as many again.
    fn renumber(&mut self) {
        let mut pages: Vec<(usize, u64)> =
            self.places.iter().map(|(&page, &place)| (place, page)).collect();
        pages.sort_unstable();
        self.tree = vec![0; (2 * pages.len()).max(LEAST_PLACES) + 1];
        self.next = pages.len() + 1;
        for (place, (_, page)) in (1..).zip(pages) {
            self.places.insert(page, place);
            self.add(place, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list that is searched from its front.
    fn naive(uses: &[(u64, bool)], length: usize) -> u64 {
        let mut list: Vec<u64> = Vec::new();
        let mut known = std::collections::HashSet::new();
        let mut misses = 0;
        for &(page, is_read_first) in uses {
            let is_new = known.insert(page);
            let at = list.iter().position(|it| *it == page);
            misses += u64::from(at.is_none_or(|at| at >= length) && (!is_new || is_read_first));
            if let Some(at) = at {
                list.remove(at);
            }
            list.insert(0, page);
        }
        misses
    }

    #[test]
    fn as_a_list_that_is_searched() {
        let mut state = 1u64;
        let uses: Vec<(u64, bool)> = (0..6000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (a, b) = ((state >> 33) % 40, (state >> 45) % 40);
                (a * b, a % 2 == 0)
            })
            .map(|(page, _)| (page, page % 3 != 0))
            .collect();
        let lengths = [1, 2, 10, 64, 100, 300, 5000];
        let mut lru = LruLists::new(&lengths);
        uses.iter().for_each(|&(page, first)| lru.touch(page, first));
        let expected = lengths.map(|length| naive(&uses, length as usize));
        assert_eq!(lru.misses(), expected);
        assert!(expected[0] > expected[3] && expected[3] > expected[6]);
    }
}
