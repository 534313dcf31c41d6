//! `policy.pages = "mru"`: evicts the newest page first, which suits scans that are repeated.
//!
//! A scan over more than the memory is the worst case of every policy that evicts old pages: each
//! page leaves just before it is needed again. If the newest page leaves, the others stay for the
//! next scan (cache_ext, SOSP 2025, has this policy for its file search).
//!
//! Invariant: the list is in order of arrival, except for pages that could not be taken: they are at
//! the tail.

use pagetide::policy::{Arrival, Digest, PageLists, PagePlace, PagePolicy, PageVisit};

#[derive(Clone, Debug)]
pub struct Mru;

impl PagePolicy for Mru {
    fn nr_lists(&self) -> usize {
        1
    }

    fn added(&mut self, _: &mut PageVisit<'_>, arrival: Arrival) -> PagePlace {
        match arrival {
            Arrival::New { .. } => PagePlace::head(0),
            // Out of the way of the next batch.
            Arrival::Back { .. } => PagePlace::tail(0),
        }
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        for _ in 0..lists.len(0) {
            let Some(page) = lists.head(0).filter(|_| !lists.is_done()) else { return };
            if !lists.take(page) {
                lists.move_to(page, PagePlace::tail(0));
            }
        }
    }

    fn digest(&self, _: &mut Digest) {}
}
