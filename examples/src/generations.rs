//! `policy.pages = "generations"`: the kernel's generations (`lru = "mglru"`) as a plug-in.
//!
//! A fault brings a page to the youngest of up to four generations, read() to an old one. Eviction
//! takes from the oldest. A page there that was used through a mapping becomes young, with its used
//! neighbours. If fewer than two old generations are left, or the oldest of two is small, a walk
//! over the page tables finds the used pages: they are a new youngest generation.
//!
//! The tier of a page is the logarithm of its uses by read() after the first one. A tier that comes
//! back more often than tier 0 moves to the next generation instead. The kind, anonymous or file,
//! that comes back less often is evicted first.
//!
//! Differences from Linux: both kinds have the same oldest generation, swappiness does not count,
//! and a page in use moves when it is found.
//!
//! Invariant: a page of generation `g` is on list `g % 4` of its kind; its note has its uses.

use pagetide::policy::{
    Arrival, Digest, PageKey, PageLists, PagePlace, PagePolicy, PageVisit, Pfn,
};
use std::collections::BTreeMap;

const GENERATIONS: u64 = 4;
const TIERS: usize = 4;
/// Most uses that count.
const MAX_USES: u32 = 4;

/// How often pages came back while the generation that they were evicted from was the oldest. The
/// end of a generation halves both numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Refaults {
    returned: u64,
    /// Pages evicted, or moved to the next generation.
    decided: u64,
}

impl Refaults {
    /// Whether too few pages have come back, or no more than `gain` times the share of others.
    fn permits(self, others: Refaults, gain: u64) -> bool {
        let share = self.returned * (others.decided + 64);
        self.returned < 64 || share <= (others.returned + 1) * self.decided * gain
    }
}

#[derive(Clone, Debug)]
pub struct Generations {
    youngest: u64,
    oldest: u64,
    /// Pages evicted from the oldest generation, with their tiers.
    evicted: BTreeMap<PageKey, usize>,
    /// By kind and tier.
    refaults: [[Refaults; TIERS]; 2],
}

impl Default for Generations {
    fn default() -> Self {
        let refaults = Default::default();
        Generations { youngest: GENERATIONS - 1, oldest: 0, evicted: BTreeMap::new(), refaults }
    }
}

fn list(generation: u64, is_file: bool) -> usize {
    (2 * (generation % GENERATIONS)) as usize + usize::from(is_file)
}

fn tier(uses: u32) -> usize {
    (u32::BITS - uses.leading_zeros()) as usize
}

impl Generations {
    fn make_young(&self, used: Vec<Pfn>, lists: &mut PageLists<'_>) {
        for page in used {
            lists.set_note(page, 0);
            lists.move_to(page, PagePlace::head(list(self.youngest, lists.is_file(page))));
        }
    }

    /// Sorts the oldest pages of a kind, and takes some. Returns whether it has taken one.
    fn evict_kind(&mut self, is_file: bool, lists: &mut PageLists<'_>) -> bool {
        let refaults = &mut self.refaults[usize::from(is_file)];
        let denied = (1..TIERS).find(|&tier| !refaults[tier].permits(refaults[0], 2));
        let mut has_taken = false;
        while let Some(page) = lists.tail(list(self.oldest, is_file)).filter(|_| !lists.is_done()) {
            let uses = lists.note(page);
            let used = lists.look_around(page);
            if used.first() == Some(&page) {
                self.make_young(used, lists);
                continue;
            }
            let is_spared = uses == MAX_USES || denied.is_some_and(|denied| tier(uses) >= denied);
            if !is_spared && lists.take(page) {
                has_taken = true;
                continue;
            }
            if is_spared {
                self.refaults[usize::from(is_file)][tier(uses)].decided += 1;
                lists.set_note(page, 0);
            }
            lists.move_to(page, PagePlace::tail(list(self.oldest + 1, is_file)));
        }
        has_taken
    }
}

impl PagePolicy for Generations {
    fn nr_lists(&self) -> usize {
        2 * GENERATIONS as usize
    }

    fn added(&mut self, page: &mut PageVisit<'_>, arrival: Arrival) -> PagePlace {
        let is_file = page.key.is_file;
        if let Some(tier) = self.evicted.remove(&page.key) {
            self.refaults[usize::from(is_file)][tier].returned += 1;
        }
        let generation = match arrival {
            Arrival::New { fault: true, .. } | Arrival::Back { used: true } => self.youngest,
            Arrival::New { .. } if !is_file => self.youngest - 1,
            Arrival::New { .. } if self.youngest - self.oldest == 3 => self.oldest + 1,
            // Reclaim could not free it yet.
            Arrival::New { .. } | Arrival::Back { used: false } => self.oldest,
        };
        PagePlace::head(list(generation, is_file))
    }

    fn used(&mut self, page: &mut PageVisit<'_>) -> Option<PagePlace> {
        *page.note = (*page.note + 1).min(MAX_USES);
        None
    }

    fn evicted(&mut self, page: &mut PageVisit<'_>) {
        let tier = tier(*page.note);
        self.refaults[usize::from(page.key.is_file)][tier].decided += 1;
        self.evicted.insert(page.key, tier);
    }

    fn age(&mut self, lists: &mut PageLists<'_>) {
        let size = |seq| lists.len(list(seq, false)) + lists.len(list(seq, true));
        let all: u64 = (self.oldest..=self.youngest).map(size).sum();
        let is_uneven = 2 * size(self.youngest) > all || 4 * size(self.oldest) < all;
        if self.youngest - self.oldest < 2 || self.youngest - self.oldest == 2 && is_uneven {
            self.youngest += 1;
            self.make_young(lists.walk_tables(false), lists);
        }
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        for _ in 0..GENERATIONS {
            self.age(lists);
            // A step takes pages of one kind.
            let file = self.refaults[1][0].permits(self.refaults[0][0], 1);
            if self.evict_kind(file, lists) || self.evict_kind(!file, lists) || lists.is_done() {
                return;
            }
            self.oldest += 1;
            self.evicted.clear();
            for Refaults { returned, decided } in self.refaults.iter_mut().flatten() {
                (*returned, *decided) = (*returned / 2, *decided / 2);
            }
        }
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_all(&[self.youngest, self.oldest]);
        for &Refaults { returned, decided } in self.refaults.iter().flatten() {
            digest.write_all(&[returned, decided]);
        }
        for (&PageKey { is_file, owner, index }, &tier) in &self.evicted {
            digest.write_all(&[is_file.into(), owner.into(), index.into(), tier as u64]);
        }
    }
}
