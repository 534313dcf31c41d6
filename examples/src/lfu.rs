//! `policy.pages = "lfu"`: evicts the page that was used least often, with ageing.
//!
//! A page is on the list of the logarithm of its uses; within a list the page that came first is
//! evicted first. Counts are halved after as many evictions as the group has pages, so a page that
//! was in use long ago does not stay for ever. A page that returns begins with the count that it had
//! when it was evicted, for the last thousand evictions.
//!
//! Invariant: a page with `n` uses is on list `log2(n + 1)`, or on the last one.

use pagetide::policy::{Arrival, Digest, PageKey, PageLists, PagePlace, PagePolicy, PageVisit};
use std::collections::BTreeMap;

/// Lists, for up to 2^15 uses.
const LISTS: usize = 16;
/// Evictions whose counts are remembered.
const REMEMBERED: u64 = 1000;

fn list_of(uses: u32) -> usize {
    uses.saturating_add(1).ilog2().min(LISTS as u32 - 1) as usize
}

#[derive(Clone, Debug, Default)]
pub struct Lfu {
    /// Uses of evicted pages, with the number of the eviction.
    evicted: BTreeMap<PageKey, (u64, u32)>,
    nr_evictions: u64,
    next_halving: u64,
}

impl PagePolicy for Lfu {
    fn nr_lists(&self) -> usize {
        LISTS
    }

    fn is_active(&self, list: usize) -> bool {
        list > 1
    }

    fn added(&mut self, page: &mut PageVisit<'_>, arrival: Arrival) -> PagePlace {
        match arrival {
            Arrival::New { .. } => {
                let known = self.evicted.remove(&page.key);
                *page.note = known.map_or(0, |(_, uses)| uses.saturating_add(1));
            }
            Arrival::Back { used: true } => *page.note = page.note.saturating_add(1),
            Arrival::Back { used: false } => {}
        }
        PagePlace::head(list_of(*page.note))
    }

    fn used(&mut self, page: &mut PageVisit<'_>) -> Option<PagePlace> {
        *page.note = page.note.saturating_add(1);
        // Most uses leave the logarithm as it is.
        page.note.wrapping_add(1).is_power_of_two().then(|| PagePlace::head(list_of(*page.note)))
    }

    fn evicted(&mut self, page: &mut PageVisit<'_>) {
        self.nr_evictions += 1;
        self.evicted.insert(page.key, (self.nr_evictions, *page.note));
        if self.evicted.len() as u64 > 2 * REMEMBERED {
            let oldest = self.nr_evictions - REMEMBERED;
            self.evicted.retain(|_, &mut (at, _)| at > oldest);
        }
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        let pages: u64 = (0..LISTS).map(|list| lists.len(list)).sum();
        if self.nr_evictions >= self.next_halving + pages {
            self.next_halving = self.nr_evictions;
            halve(lists);
        }
        for list in 0..LISTS {
            for _ in 0..lists.len(list) {
                let Some(page) = lists.tail(list).filter(|_| !lists.is_done()) else { break };
                if !lists.take(page) {
                    lists.move_to(page, PagePlace::head(list));
                }
            }
        }
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_all(&[self.nr_evictions, self.next_halving]);
        for (&PageKey { is_file, owner, index }, &(at, uses)) in &self.evicted {
            digest.write_all(&[is_file.into(), owner.into(), index.into(), at, uses.into()]);
        }
    }
}

/// Halves all counts.
fn halve(lists: &mut PageLists<'_>) {
    for list in 1..LISTS {
        for _ in 0..lists.len(list) {
            let Some(page) = lists.tail(list) else { break };
            let uses = lists.note(page) / 2;
            lists.set_note(page, uses);
            lists.move_to(page, PagePlace::head(list_of(uses)));
        }
    }
}
