//! Folding: merges the references to a page within a window into one record.
//!
//! A program touches the same few pages over and over, code and data by turns. The fold cuts the
//! stream of references into windows. A window ends before it exceeds [`FoldWindow::pages`]
//! distinct pages or [`FoldWindow::time`]. Each page of a window gives one record, with the number
//! and kinds of its references, in the order of first references. A window of one page merges
//! consecutive references to the same page.
//!
//! The error of folding (docs/trace-format.md has the argument): for the first reference of every
//! record, the LRU stack distance in the folded stream differs from the true one by less than
//! `pages`. Every other reference has a distance below `pages`. So an LRU memory of M pages has at
//! least the faults that M + `pages` pages have on the full stream, and at most those of M -
//! `pages` pages.

use crate::format::{AccessKinds, FoldWindow};

/// References to one page in the current window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowPage {
    pub(crate) page: u32,
    pub(crate) kinds: AccessKinds,
    pub(crate) references: u64,
    /// Absolute time of the first reference.
    pub(crate) first: u64,
    /// Bytes of the first request, if the page is the first of an object.
    pub(crate) bytes: u64,
}

/// Merges references to pages numbered densely from 0.
#[derive(Debug)]
pub(crate) struct ReferenceFold {
    window: FoldWindow,
    /// Pages of the current window, in the order of first references.
    open: Vec<WindowPage>,
    /// Page -> index in `open`. Valid only if that entry has this page, so a new window need not
    /// clear the table.
    index: Vec<u32>,
}

impl ReferenceFold {
    pub(crate) fn new(window: FoldWindow) -> ReferenceFold {
        assert!(window.pages > 0);
        ReferenceFold { window, open: Vec::new(), index: Vec::new() }
    }

    /// Merges a reference into the current window. Returns false if the window must end first.
    #[inline]
    pub(crate) fn merge(&mut self, page: u32, kinds: AccessKinds, now: u64, bytes: u64) -> bool {
        if let Some(first) = self.open.first() {
            if now - first.first > self.window.time {
                return false;
            }
        }
        if let Some(&slot) = self.index.get(page as usize) {
            if let Some(open) = self.open.get_mut(slot as usize) {
                if open.page == page {
                    open.kinds = open.kinds.union(kinds);
                    open.references += 1;
                    return true;
                }
            }
        }
        if self.open.len() >= self.window.pages as usize {
            return false;
        }
        if self.index.len() <= page as usize {
            self.index.resize(page as usize + 1, u32::MAX);
        }
        self.index[page as usize] = self.open.len() as u32;
        self.open.push(WindowPage { page, kinds, references: 1, first: now, bytes });
        true
    }

    /// The records of the current window.
    pub(crate) fn open(&self) -> &[WindowPage] {
        &self.open
    }

    /// Starts a new window.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Folds a stream of pages; each reference takes one unit of time.
    fn fold(pages: &[u32], window: FoldWindow) -> Vec<WindowPage> {
        let mut fold = ReferenceFold::new(window);
        let mut out = Vec::new();
        for (now, &page) in pages.iter().enumerate() {
            if !fold.merge(page, AccessKinds::READ, now as u64, 0) {
                out.extend_from_slice(fold.open());
                fold.clear();
                assert!(fold.merge(page, AccessKinds::READ, now as u64, 0));
            }
        }
        out.extend_from_slice(fold.open());
        out
    }

    /// LRU stack distance of each reference, by brute force; `None` for the first reference to a
    /// page.
    fn distances(pages: &[u32]) -> Vec<Option<usize>> {
        let mut stack: Vec<u32> = Vec::new();
        let mut distances = Vec::new();
        for &page in pages {
            let found = stack.iter().rev().position(|&other| other == page);
            distances.push(found);
            stack.retain(|&other| other != page);
            stack.push(page);
        }
        distances
    }

    #[test]
    fn a_window_of_one_page_merges_runs() {
        let window = FoldWindow { pages: 1, time: u64::MAX };
        let runs: Vec<_> = fold(&[1, 1, 1, 0, 0, 1], window)
            .iter()
            .map(|open| (open.page, open.references))
            .collect();
        assert_eq!(runs, [(1, 3), (0, 2), (1, 1)]);
    }

    #[test]
    fn a_window_ends_when_its_time_is_up() {
        let window = FoldWindow { pages: 8, time: 2 };
        let runs: Vec<_> = fold(&[0, 1, 0, 0, 1, 1, 1], window)
            .iter()
            .map(|open| (open.page, open.references, open.first))
            .collect();
        assert_eq!(runs, [(0, 2, 0), (1, 1, 1), (0, 1, 3), (1, 2, 4), (1, 1, 6)]);
    }

    proptest! {
        #[test]
        fn distances_are_kept_to_within_the_window(
            pages in prop::collection::vec(0u32..24, 1..400),
            window_pages in 1u32..12,
            window_time in prop_oneof![1u64..50, Just(u64::MAX)],
        ) {
            let window = FoldWindow { pages: window_pages, time: window_time };
            let folded = fold(&pages, window);
            prop_assert_eq!(folded.iter().map(|open| open.references).sum::<u64>(), pages.len() as u64);
            let full = distances(&pages);
            let folded_pages: Vec<u32> = folded.iter().map(|open| open.page).collect();
            let kept: Vec<usize> = folded.iter().map(|open| open.first as usize).collect();
            for (open, distance) in folded.iter().zip(distances(&folded_pages)) {
                let truth = full[open.first as usize];
                prop_assert_eq!(truth.is_none(), distance.is_none());
                let (truth, distance) = (truth.unwrap_or(0), distance.unwrap_or(0));
                prop_assert!(truth.abs_diff(distance) < window_pages as usize);
            }
            for (at, distance) in full.iter().enumerate() {
                let is_kept = kept.binary_search(&at).is_ok();
                prop_assert!(is_kept || distance.is_some_and(|d| d < window_pages as usize));
            }
        }
    }
}
