//! The window of generations: their numbers, lists and sizes, and the pages on the lists.
//!
//! Linux: `struct lru_gen_struct` (mmzone.h), `lru_gen_add_folio`, `lru_gen_del_folio`
//! (mm_inline.h, 6.1).
//!
//! Invariant: see the parent module.

use super::bloom::BloomFilter;
use super::feedback::RefaultFeedback;
use super::limits::{ByKind, MAX_NR_GENS, MIN_NR_GENS};
use crate::frames::list::List;
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_array::PageArray;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::units::digest::State;
use crate::units::{Nanos, Pfn};

/// The end of a list where a page enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListEnd {
    /// Among the most recent pages.
    Head,
    /// The next page to be evicted.
    Tail,
}

/// Why a page leaves the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The page notes whether it was active, because it will enter a list again.
    Moved,
    /// The page is about to be evicted.
    Evicted,
}

/// The generations of a group's pages on a node.
#[derive(Clone, Debug, State)]
pub struct Generations {
    /// Number of the youngest generation.
    pub max_seq: u64,
    /// Number of the oldest generation, as [anonymous, file].
    pub min_seq: ByKind<u64>,
    /// Birth of each generation, by place; 0: it is as old as the group.
    pub births: [Nanos; MAX_NR_GENS],
    /// The lists, by place, kind and zone.
    pub lists: [ByKind<[List; MAX_NR_ZONES]>; MAX_NR_GENS],
    /// Pages of each generation, by place, kind and zone.
    pub nr_pages: [ByKind<[u64; MAX_NR_ZONES]>; MAX_NR_GENS],
    pub(crate) feedback: RefaultFeedback,
    pub(crate) walks: TableWalkState,
}

/// State of walks over page tables between two generations (Linux `struct lru_gen_mm_state`).
#[derive(Clone, Debug, Default, State)]
pub(crate) struct TableWalkState {
    /// Tables with many used entries: a filter for the next walk, and one for the walk after it.
    pub filters: [BloomFilter; 2],
    /// Address spaces with this generation or a higher one are walked for the first time, without
    /// the filter.
    pub first_new: u64,
    /// The walk in progress goes on with this address space or a younger one; 0: none has begun
    /// (Linux `mm_state->head`).
    pub next_mm: u64,
}

/// Place of a generation in the window (Linux `lru_gen_from_seq`).
pub(crate) const fn place_of(seq: u64) -> u8 {
    (seq % MAX_NR_GENS as u64) as u8
}

impl Generations {
    pub(crate) fn new() -> Generations {
        Generations {
            max_seq: MIN_NR_GENS + 1,
            min_seq: [0; 2],
            births: [0; MAX_NR_GENS],
            lists: [[[List::new(); MAX_NR_ZONES]; 2]; MAX_NR_GENS],
            nr_pages: [[[0; MAX_NR_ZONES]; 2]; MAX_NR_GENS],
            feedback: RefaultFeedback::default(),
            walks: TableWalkState::default(),
        }
    }

    /// Number of generations of a kind (Linux `get_nr_gens`).
    pub(crate) const fn nr_generations(&self, file: bool) -> u64 {
        self.max_seq - self.min_seq[file as usize] + 1
    }

    /// Pages of a generation in all zones.
    pub fn size(&self, file: bool, seq: u64) -> u64 {
        self.nr_pages[place_of(seq) as usize][usize::from(file)].iter().sum()
    }

    /// Whether pages of a generation count as active (Linux `lru_gen_is_active`).
    pub(crate) const fn is_active(&self, place: u8) -> bool {
        place == place_of(self.max_seq) || place == place_of(self.max_seq - 1)
    }

    /// Numbers of the generations of a kind, oldest first.
    pub(crate) fn seqs(&self, file: bool) -> core::ops::RangeInclusive<u64> {
        self.min_seq[usize::from(file)]..=self.max_seq
    }

    /// All lists.
    pub(crate) fn all_lists(&self) -> impl Iterator<Item = &List> {
        self.lists.iter().flatten().flatten()
    }

    /// Whether the numbers of generations are possible (Linux `seq_is_valid`).
    pub(crate) fn is_valid(&self) -> bool {
        let [anon, file] = [false, true].map(|file| self.nr_generations(file));
        MIN_NR_GENS <= file && file <= anon && anon <= MAX_NR_GENS as u64
    }
}

impl Generations {
    /// The generation of a page that enters the lists. A page in use: the youngest. A page that
    /// cannot be evicted at once: the second youngest. A page to be evicted first: the oldest.
    fn seq_of_new(&self, page: &Page, end: ListEnd) -> u64 {
        let file = page.is_file_lru();
        let oldest = self.min_seq[usize::from(file)];
        let unwritten = page.has(PageFlags::RECLAIM)
            && page.flags.any(PageFlags::DIRTY.with(PageFlags::WRITEBACK));
        if page.has(PageFlags::ACTIVE) {
            self.max_seq
        } else if !file && !page.has(PageFlags::SWAPCACHE) || unwritten {
            self.max_seq - 1
        } else if end == ListEnd::Tail || oldest + MIN_NR_GENS >= self.max_seq {
            oldest
        } else {
            oldest + 1
        }
    }

    /// Adds a page to the list of the generation that its state asks for. Returns whether it counts
    /// as active.
    pub(crate) fn add(&mut self, pages: &mut PageArray, pfn: Pfn, end: ListEnd) -> bool {
        let seq = self.seq_of_new(&pages[pfn], end);
        self.add_to(pages, pfn, seq, end)
    }

    /// Adds a page to the list of a generation.
    pub(crate) fn add_to(
        &mut self,
        pages: &mut PageArray,
        pfn: Pfn,
        seq: u64,
        end: ListEnd,
    ) -> bool {
        let place = place_of(seq);
        let page = &mut pages[pfn];
        page.clear(PageFlags::ACTIVE);
        page.set_generation(Some(place));
        let (file, zone) = (page.is_file_lru(), page.zone());
        self.nr_pages[usize::from(place)][usize::from(file)][zone] += page.nr_pages();
        self.link(pages, pfn, place, end);
        self.is_active(place)
    }

    pub(super) fn link(&mut self, pages: &mut PageArray, pfn: Pfn, place: u8, end: ListEnd) {
        let page = &mut pages[pfn];
        page.set_listed_generation(place);
        let (file, zone) = (page.is_file_lru(), page.zone());
        let list = &mut self.lists[usize::from(place)][usize::from(file)][zone];
        match end {
            ListEnd::Head => list.push_head(pages, pfn, Place::Lru),
            ListEnd::Tail => list.push_tail(pages, pfn, Place::Lru),
        }
    }

    pub(super) fn unlink(&mut self, pages: &mut PageArray, pfn: Pfn) {
        let page = &pages[pfn];
        let (file, zone, listed) = (page.is_file_lru(), page.zone(), page.listed_generation());
        self.lists[listed][usize::from(file)][zone].remove(pages, pfn);
    }

    /// Moves a page to the list of its generation.
    pub(super) fn relist(&mut self, pages: &mut PageArray, pfn: Pfn, end: ListEnd) {
        let Some(place) = pages[pfn].generation() else { return };
        self.unlink(pages, pfn);
        self.link(pages, pfn, place, end);
    }

    /// Takes a page off its list. Returns whether it counted as active. The caller sets the page's
    /// new place.
    pub(crate) fn remove(&mut self, pages: &mut PageArray, pfn: Pfn, as_: Departure) -> bool {
        self.unlink(pages, pfn);
        let page = &mut pages[pfn];
        let (file, zone) = (page.is_file_lru(), page.zone());
        let place = page.generation().unwrap_or(0);
        let active = self.is_active(place);
        self.nr_pages[usize::from(place)][usize::from(file)][zone] -= page.nr_pages();
        page.set_generation(None);
        page.set_listed_generation(0);
        if as_ == Departure::Moved && active {
            page.set(PageFlags::ACTIVE);
        }
        active
    }

    /// Adds a part of a huge page that is being split, towards the head of the huge page's list.
    pub(crate) fn add_split(&mut self, pages: &mut PageArray, head: Pfn, pfn: Pfn) {
        let page = &pages[head];
        let (file, zone, listed) = (page.is_file_lru(), page.zone(), page.listed_generation());
        let list = &mut self.lists[listed][usize::from(file)][zone];
        list.insert_before(pages, head, pfn, Place::Lru);
    }
}

/// Findings of a reclaimer about the generations (Linux: fields of `struct scan_control`, 6.1).
#[derive(Clone, Copy, Debug, Default, State)]
pub struct GenerationFindings {
    /// kswapd must age groups before the next round (Linux `memcgs_need_aging`).
    pub needs_ageing: bool,
    /// Pages freed before the current round (Linux `last_reclaimed`).
    pub reclaimed_before: u64,
    /// The current pass over a node has walked the page tables of a group (Linux
    /// `reclaim_state::mm_walk`, 6.12).
    pub has_open_walk: bool,
}
