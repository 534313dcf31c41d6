//! `policy.pages = "fifo"`: evicts the oldest page first, whether or not it was used.
//!
//! Invariant: the list is in order of arrival.

use pagetide::policy::{Arrival, Digest, PageLists, PagePlace, PagePolicy, PageVisit};

#[derive(Clone, Debug)]
pub struct Fifo;

impl PagePolicy for Fifo {
    fn nr_lists(&self) -> usize {
        1
    }

    fn added(&mut self, _: &mut PageVisit<'_>, _: Arrival) -> PagePlace {
        PagePlace::head(0)
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        for _ in 0..lists.len(0) {
            let Some(page) = lists.tail(0).filter(|_| !lists.is_done()) else { return };
            if !lists.take(page) {
                lists.move_to(page, PagePlace::head(0));
            }
        }
    }

    fn digest(&self, _: &mut Digest) {}
}
