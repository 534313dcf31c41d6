//! Lists of frames, linked through the page array.
//!
//! Linux: `list_head`. A list is a head, a tail and a length. The links are frame numbers in
//! [`Page`](crate::frames::page::Page), so a list can be moved at no cost, needs no unsafe code and has a
//! stable order.
//!
//! Invariant: a frame is on at most one list, its `place` says which kind of list, and `len` is the
//! number of frames reachable from `head`.

use crate::frames::page::Place;
use crate::frames::page_array::PageArray;
use crate::units::digest::State;
use crate::units::Pfn;

/// A doubly linked list of frames. New entries go to the head; reclaim works from the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub struct List {
    /// Most recently added frame.
    pub head: Pfn,
    /// Oldest frame.
    pub tail: Pfn,
    /// Number of frames.
    pub len: u64,
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// An empty list.
    pub const fn new() -> List {
        List { head: Pfn::NONE, tail: Pfn::NONE, len: 0 }
    }

    /// Whether the list is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `pfn` at the head and marks it as being in `place`.
    #[inline]
    pub fn push_head(&mut self, pages: &mut PageArray, pfn: Pfn, place: Place) {
        let old = self.head;
        let page = &mut pages[pfn];
        debug_assert!(page.prev.is_none() && page.next.is_none(), "{pfn:?} is already linked");
        page.prev = Pfn::NONE;
        page.next = old;
        page.place = place;
        if old.is_some() {
            pages[old].prev = pfn;
        } else {
            self.tail = pfn;
        }
        self.head = pfn;
        self.len += 1;
    }

    /// Adds `pfn` at the tail and marks it as being in `place`.
    #[inline]
    pub fn push_tail(&mut self, pages: &mut PageArray, pfn: Pfn, place: Place) {
        let old = self.tail;
        let page = &mut pages[pfn];
        debug_assert!(page.prev.is_none() && page.next.is_none(), "{pfn:?} is already linked");
        page.next = Pfn::NONE;
        page.prev = old;
        page.place = place;
        if old.is_some() {
            pages[old].next = pfn;
        } else {
            self.head = pfn;
        }
        self.tail = pfn;
        self.len += 1;
    }

    /// Adds a fresh block at the tail without touching its page descriptors
    /// ([`PageArray::link_fresh`]). Returns false and changes nothing if the block is not fresh.
    pub(crate) fn push_tail_fresh(&mut self, pages: &mut PageArray, pfn: Pfn, mt: u8) -> bool {
        if !pages.link_fresh(pfn, mt, self.tail) {
            return false;
        }
        if self.head.is_none() {
            self.head = pfn;
        }
        self.tail = pfn;
        self.len += 1;
        true
    }

    /// Inserts `pfn` next to `at`, on the side of the head. `at` is on the list.
    pub fn insert_before(&mut self, pages: &mut PageArray, at: Pfn, pfn: Pfn, place: Place) {
        let prev = core::mem::replace(&mut pages[at].prev, pfn);
        let page = &mut pages[pfn];
        debug_assert!(page.prev.is_none() && page.next.is_none(), "{pfn:?} is already linked");
        page.prev = prev;
        page.next = at;
        page.place = place;
        if prev.is_some() {
            pages[prev].next = pfn;
        } else {
            self.head = pfn;
        }
        self.len += 1;
    }

    /// Removes `pfn` from the list. The caller sets the frame's new place.
    #[inline]
    pub fn remove(&mut self, pages: &mut PageArray, pfn: Pfn) {
        debug_assert!(self.len > 0, "{pfn:?} removed from an empty list");
        let page = &mut pages[pfn];
        let (prev, next) = (page.prev, page.next);
        page.prev = Pfn::NONE;
        page.next = Pfn::NONE;
        if prev.is_some() {
            pages[prev].next = next;
        } else {
            debug_assert_eq!(self.head, pfn, "{pfn:?} is not on this list");
            self.head = next;
        }
        if next.is_some() {
            pages[next].prev = prev;
        } else {
            debug_assert_eq!(self.tail, pfn, "{pfn:?} is not on this list");
            self.tail = prev;
        }
        self.len -= 1;
    }

    /// Removes the oldest frame.
    #[inline]
    pub fn pop_tail(&mut self, pages: &mut PageArray) -> Option<Pfn> {
        if self.tail.is_none() {
            return None;
        }
        let pfn = self.tail;
        self.remove(pages, pfn);
        Some(pfn)
    }

    /// Removes the newest frame.
    #[inline]
    pub fn pop_head(&mut self, pages: &mut PageArray) -> Option<Pfn> {
        if self.head.is_none() {
            return None;
        }
        let pfn = self.head;
        self.remove(pages, pfn);
        Some(pfn)
    }

    /// Walks from head to tail.
    pub fn iter<'a>(&self, pages: &'a PageArray) -> impl Iterator<Item = Pfn> + 'a {
        let mut at = self.head;
        core::iter::from_fn(move || {
            if at.is_none() {
                return None;
            }
            let pfn = at;
            at = pages.peek(pfn.idx()).next;
            Some(pfn)
        })
    }
}
