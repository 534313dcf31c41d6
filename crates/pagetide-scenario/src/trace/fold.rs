//! The window that merges references: one record a page and window.
//!
//! A program touches the same few pages over and over, code and data by turns. The fold cuts the
//! stream of references into windows; a window ends before it would hold more than
//! [`Window::pages`] distinct pages or last longer than [`Window::time`]. Within a window each
//! page gives one record, in the order of first references, with the number and kinds of all of
//! them. A window of one page merges plain runs.
//!
//! What that costs (docs/trace-format.md has the argument): for every reference that begins a
//! record, the LRU stack distance in the folded stream differs from the true one by less than
//! `pages`, and every reference that was merged away had a distance below `pages`. So an LRU
//! memory of M pages has no fewer faults than one of M + `pages` has on the full stream, and no
//! more than one of M - `pages`.

use super::format::{Kinds, Window};

/// References to one page in the present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) page: u32,
    pub(crate) kinds: Kinds,
    pub(crate) references: u64,
    /// Absolute time of the first reference.
    pub(crate) first: u64,
}

/// Merges references to pages numbered densely from 0.
#[derive(Debug)]
pub(crate) struct Fold {
    window: Window,
    /// The present window, in order of first references.
    open: Vec<Open>,
    /// Page -> index in `open`; right only if that entry is of this page, so that a new window
    /// need not clear it.
    index: Vec<u32>,
}

impl Fold {
    pub(crate) fn new(window: Window) -> Fold {
        assert!(window.pages > 0);
        Fold { window, open: Vec::new(), index: Vec::new() }
    }

    /// Merges a reference into the present window, if the window can take it.
    #[inline]
    pub(crate) fn merge(&mut self, page: u32, kinds: Kinds, now: u64) -> bool {
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
        self.open.push(Open { page, kinds, references: 1, first: now });
        true
    }

    /// The present window.
    pub(crate) fn open(&self) -> &[Open] {
        &self.open
    }

    /// Begins a new window.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}
