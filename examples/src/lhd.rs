//! `policy.pages = "lhd"`: evicts the page with the least hit density.
//!
//! LHD (Beckmann, Chen and Cidon, NSDI 2018). The hit density of a page is the number of hits that it
//! will have, divided by the time that it will stay. It is estimated from the history of pages of the
//! same class and age: the age counts from the last use, in uses of all pages, and the class is the
//! logarithm of the age at that use. Ages are counted in half octaves, so no scale has to be chosen.
//! Histories fade by a tenth with each new estimate. A victim is the least dense of 32 pages; the
//! others move to the head of the list, so each page is looked at in turn.
//!
//! Uses by read() and write() are counted as they happen. A use through a mapping counts when reclaim
//! finds it.
//!
//! Invariant: a note is the class in the upper 4 bits, and the time of the last use below.

use pagetide::policy::{Arrival, Digest, PageLists, PagePlace, PagePolicy, PageVisit};

/// Pages among which a victim is chosen.
const SAMPLE: u64 = 32;
/// log2 of the times that a note can tell apart.
const TIME_BITS: u32 = 28;
/// Half octaves of ages.
const AGES: usize = 2 * TIME_BITS as usize;
/// Class 0 is of pages that were not used again.
const CLASSES: usize = 16;
/// Fractional bits of counts of events.
const EVENT_BITS: u32 = 16;

/// Hits and evictions of pages of a class, by age, and the estimates that follow.
#[derive(Clone, Copy, Debug)]
struct History {
    hits: [u64; AGES],
    evictions: [u64; AGES],
    density: [u64; AGES],
}

impl History {
    /// Before any event a young page is denser than an old one.
    const NEW: History = {
        let mut density = [0; AGES];
        let mut age = 0;
        while age < AGES {
            density[age] = (AGES - age) as u64;
            age += 1;
        }
        History { hits: [0; AGES], evictions: [0; AGES], density }
    };

    /// Estimates from the oldest age to the youngest: hits from this age on, divided by the time
    /// that pages spend from this age on.
    fn estimate(&mut self) {
        let (mut hits, mut events, mut time) = (0_u128, 0_u128, 0_u128);
        for age in (0..AGES).rev() {
            // All pages that came this far spent the width of the age, or the time to its event.
            time += events * u128::from(width(age));
            hits += u128::from(self.hits[age]);
            events += u128::from(self.hits[age] + self.evictions[age]);
            time += u128::from(self.hits[age] + self.evictions[age]) * u128::from(width(age)) / 2;
            if let Some(density) = (hits << 40).checked_div(time) {
                self.density[age] = u64::try_from(density).unwrap_or(u64::MAX);
            }
            self.hits[age] -= self.hits[age] / 10;
            self.evictions[age] -= self.evictions[age] / 10;
        }
    }
}

/// The half octave of an age.
fn index(age: u64) -> usize {
    let octave = age.max(1).ilog2();
    let half = age.max(1) << 1 >> octave & 1;
    (2 * octave as usize + half as usize).min(AGES - 1)
}

/// Width of a half octave.
fn width(index: usize) -> u64 {
    (1_u64 << (index / 2) >> 1).max(1)
}

#[derive(Clone, Debug)]
pub struct Lhd {
    histories: [History; CLASSES],
    /// Uses and arrivals so far.
    now: u64,
    next_estimate: u64,
}

impl Default for Lhd {
    fn default() -> Self {
        Lhd { histories: [History::NEW; CLASSES], now: 0, next_estimate: 0 }
    }
}

impl Lhd {
    /// Class and half octave of the age of a page.
    fn class_and_age(&self, note: u32) -> (usize, usize) {
        let age = (self.now as u32).wrapping_sub(note) & ((1 << TIME_BITS) - 1);
        ((note >> TIME_BITS) as usize, index(age.into()))
    }

    fn note(&self, class: usize) -> u32 {
        (class as u32) << TIME_BITS | self.now as u32 & ((1 << TIME_BITS) - 1)
    }

    fn hit(&mut self, page: &mut PageVisit<'_>) {
        let (class, age) = self.class_and_age(*page.note);
        self.histories[class].hits[age] += 1 << EVENT_BITS;
        self.now += 1;
        *page.note = self.note(1 + (age / 4).min(CLASSES - 2));
    }

    fn density(&self, note: u32) -> u64 {
        let (class, age) = self.class_and_age(note);
        self.histories[class].density[age]
    }
}

impl PagePolicy for Lhd {
    fn nr_lists(&self) -> usize {
        1
    }

    fn added(&mut self, page: &mut PageVisit<'_>, arrival: Arrival) -> PagePlace {
        match arrival {
            Arrival::New { .. } => {
                self.now += 1;
                *page.note = self.note(0);
            }
            Arrival::Back { used: true } => self.hit(page),
            Arrival::Back { used: false } => {}
        }
        PagePlace::head(0)
    }

    fn used(&mut self, page: &mut PageVisit<'_>) -> Option<PagePlace> {
        self.hit(page);
        None
    }

    fn evicted(&mut self, page: &mut PageVisit<'_>) {
        let (class, age) = self.class_and_age(*page.note);
        self.histories[class].evictions[age] += 1 << EVENT_BITS;
    }

    fn evict(&mut self, lists: &mut PageLists<'_>) {
        if self.now >= self.next_estimate {
            // A new estimate after as many uses as the group has pages.
            self.next_estimate = self.now + lists.len(0).max(1);
            self.histories.iter_mut().for_each(History::estimate);
        }
        while !lists.is_done() {
            let mut victim = None;
            for _ in 0..lists.len(0).min(SAMPLE) {
                let Some(page) = lists.tail(0) else { break };
                let density = self.density(lists.note(page));
                if lists.can_take(page) && victim.is_none_or(|(least, _)| density < least) {
                    victim = Some((density, page));
                }
                lists.move_to(page, PagePlace::head(0));
            }
            if victim.is_none_or(|(_, page)| !lists.take(page)) && lists.is_empty(0) {
                return;
            }
        }
    }

    fn digest(&self, digest: &mut Digest) {
        digest.write_all(&[self.now, self.next_estimate]);
        for History { hits, evictions, density } in &self.histories {
            digest.write_all(hits);
            digest.write_all(evictions);
            digest.write_all(density);
        }
    }
}
