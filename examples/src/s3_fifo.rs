//! `policy.pages = "s3-fifo"`: three queues in place of the kernel's lists.
//!
//! S3-FIFO (Yang and others, SOSP 2023). A new page enters the small queue, a tenth of the memory. If
//! it was used again when it reaches the end, it moves to the main queue; else it is evicted, and the
//! ghost queue remembers its name. A page that comes back while the ghost queue knows it enters the
//! main queue at once. The main queue evicts in order of arrival, but a page that was used since goes
//! round again, at most three times.
//!
//! Uses by read() and write() are counted as they happen. A use through a mapping shows when reclaim
//! looks at the page: the page comes back, and counts as used.
//!
//! Invariant: the ghost queue has at most as many names as the group has pages.

use pagetide::policy::{Arrival, Digest, PageKey, PageLists, PagePlace, PagePolicy, PageVisit};
use std::collections::BTreeMap;

const SMALL: usize = 0;
const MAIN: usize = 1;
/// Most uses that count.
const MAX_USES: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct S3Fifo {
    /// Evicted pages by the number of the eviction.
    ghosts: BTreeMap<u64, PageKey>,
    known: BTreeMap<PageKey, u64>,
    nr_evictions: u64,
    pages: u64,
}

impl S3Fifo {
    fn remember(&mut self, page: PageKey) {
        self.forget(page);
        self.nr_evictions += 1;
        self.ghosts.insert(self.nr_evictions, page);
        self.known.insert(page, self.nr_evictions);
        while self.ghosts.len() as u64 > self.pages.max(1) {
            let oldest = self.ghosts.pop_first();
            oldest.map(|(_, page)| self.known.remove(&page));
        }
    }

    /// Whether the ghost queue knew the page.
    fn forget(&mut self, page: PageKey) -> bool {
        let at = self.known.remove(&page);
        at.is_some_and(|at| self.ghosts.remove(&at).is_some())
    }
}

impl PagePolicy for S3Fifo {
    fn nr_lists(&self) -> usize {
        2
    }

    fn is_active(&self, list: usize) -> bool {
        list == MAIN
    }

    fn added(&mut self, page: &mut PageVisit<'_>, arrival: Arrival) -> PagePlace {
        match arrival {
            Arrival::New { .. } if self.forget(page.key) => PagePlace::head(MAIN),
            Arrival::New { .. } => PagePlace::head(SMALL),
            // It was used, or cannot be freed now.
            Arrival::Back { .. } => PagePlace::head(MAIN),
        }
    }

    fn used(&mut self, page: &mut PageVisit<'_>) -> Option<PagePlace> {
        *page.note = (*page.note + 1).min(MAX_USES);
        None
    }

    fn evicted(&mut self, page: &mut PageVisit<'_>) {
        self.remember(page.key);
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        self.pages = lists.len(SMALL) + lists.len(MAIN);
        // A list whose pages cannot be taken is left alone for this step.
        let mut blocked = [false; 2];
        while !lists.is_done() && blocked != [true; 2] {
            let is_large = 10 * lists.len(SMALL) > lists.len(SMALL) + lists.len(MAIN);
            let list = if blocked[MAIN] || is_large && !blocked[SMALL] { SMALL } else { MAIN };
            let Some(page) = lists.tail(list) else {
                blocked[list] = true;
                continue;
            };
            let uses = lists.note(page);
            if uses > 0 {
                lists.set_note(page, if list == SMALL { 0 } else { uses - 1 });
                lists.move_to(page, PagePlace::head(MAIN));
            } else if !lists.take(page) {
                blocked[list] = true;
                lists.move_to(page, PagePlace::head(list));
            }
        }
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_all(&[self.pages, self.nr_evictions]);
        for (&at, &PageKey { is_file, owner, index }) in &self.ghosts {
            digest.write_all(&[at, is_file.into(), owner.into(), index.into()]);
        }
    }
}
