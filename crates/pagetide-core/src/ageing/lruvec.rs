//! The LRU lists of one group on one node.
//!
//! Linux: `struct lruvec` (mmzone.h). Pages that can be evicted are ordered by age ([`Ageing`]);
//! the others are on a list of their own. Sizes have the names of the kernel's five lists and are
//! also kept per zone, because reclaim for a low zone counts only the zones it may use. Sizes are
//! in pages: a huge page is one entry of a list but counts as all its pages.
//!
//! Invariant: `zone_sizes[z][l]` is the number of pages of the entries of list `l` in zone `z`;
//! every entry has this lruvec's group and node.

use crate::ageing::generations::limits::MAX_NR_GENS;
use crate::ageing::generations::window::{place_of, Departure, ListEnd};
use crate::ageing::two_lists::TwoLists;
use crate::ageing::Ageing;
use crate::frames::list::List;
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_array::PageArray;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::stats::vmstat::NodeStat;
use crate::units::digest::State;
use crate::units::{MemcgId, Pfn};

/// Number of LRU lists, the unevictable one included.
pub const NR_LRU_LISTS: usize = 5;

/// Number of lists with pages that can be evicted.
pub const NR_EVICTABLE_LISTS: usize = 4;

/// One of the five lists (Linux `enum lru_list`, same order).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Lru {
    /// Inactive anonymous.
    InactiveAnon = 0,
    /// Active anonymous.
    ActiveAnon = 1,
    /// Inactive file.
    InactiveFile = 2,
    /// Active file.
    ActiveFile = 3,
    /// Not evictable.
    Unevictable = 4,
}

impl Lru {
    /// All lists, in the kernel's order.
    pub const ALL: [Lru; NR_LRU_LISTS] =
        [Lru::InactiveAnon, Lru::ActiveAnon, Lru::InactiveFile, Lru::ActiveFile, Lru::Unevictable];

    /// The list for a page with these flags.
    #[inline]
    pub const fn of(page: &Page) -> Lru {
        if page.has(PageFlags::MLOCKED) {
            return Lru::Unevictable;
        }
        Lru::evictable(page)
    }

    #[inline]
    const fn evictable(page: &Page) -> Lru {
        Lru::of_kind(!page.has(PageFlags::SWAPBACKED), page.has(PageFlags::ACTIVE))
    }

    /// The list for pages of a kind that are in use or not.
    #[inline]
    pub const fn of_kind(file: bool, active: bool) -> Lru {
        match (file, active) {
            (false, false) => Lru::InactiveAnon,
            (false, true) => Lru::ActiveAnon,
            (true, false) => Lru::InactiveFile,
            (true, true) => Lru::ActiveFile,
        }
    }

    /// The [`Place`] of a page on this list.
    #[inline]
    pub const fn place(self) -> Place {
        match self {
            Lru::Unevictable => Place::Unevictable,
            _ => Place::Lru,
        }
    }

    /// The node statistic with its size.
    pub const fn stat(self) -> NodeStat {
        NodeStat::ALL[self as usize]
    }
}

/// Pages on lists, by [`Lru`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LruSizes(pub [u64; NR_LRU_LISTS]);

impl LruSizes {
    /// Pages on one list.
    pub const fn on(self, lru: Lru) -> u64 {
        self.0[lru as usize]
    }

    /// Anonymous pages that can be evicted.
    pub const fn anon(self) -> u64 {
        self.on(Lru::InactiveAnon) + self.on(Lru::ActiveAnon)
    }

    /// File pages that can be evicted.
    pub const fn file(self) -> u64 {
        self.on(Lru::InactiveFile) + self.on(Lru::ActiveFile)
    }

    /// File pages that are not in use, as far as ageing knows.
    pub const fn cold_file(self) -> u64 {
        self.on(Lru::InactiveFile)
    }

    /// Anonymous pages that are not in use, as far as ageing knows.
    pub const fn cold_anon(self) -> u64 {
        self.on(Lru::InactiveAnon)
    }
}

/// The lists of one group on one node, with reclaim's statistics about them.
#[derive(Clone, Debug, State)]
pub struct Lruvec {
    /// The evictable pages, ordered by age.
    pub ageing: Ageing,
    /// The pages that must not be evicted.
    pub unevictable: List,
    /// Pages of each list by zone.
    pub zone_sizes: [[u64; NR_LRU_LISTS]; MAX_NR_ZONES],
    /// Evictions and activations so far: the clock of refault distances.
    pub nonresident_age: u64,
    /// `workingset_activate_{anon,file}` of this group and its descendants.
    pub workingset_activate: [u64; 2],
    /// Pages on each list of the group and its descendants. Unused in the root, which uses the
    /// node's sums. (Linux computes sums on reading and may be up to two seconds late; this sum is
    /// always exact.)
    pub subtree: [u64; NR_LRU_LISTS],
    /// Reclaim for the group's own limit found only pages under writeback (`LRUVEC_CONGESTED`).
    pub congested: bool,
    /// Where the next walk over this group and its descendants continues, for reclaimers that share
    /// a walk (Linux `mem_cgroup_reclaim_iter`); `NONE`: at the group itself.
    pub reclaim_position: MemcgId,
    /// The group's key in the soft-limit tree of the node; `None` if it is not on the tree.
    pub soft_limit_key: Option<(u64, u64)>,
}

impl Lruvec {
    /// Empty lists.
    pub fn new(ageing: Ageing) -> Lruvec {
        Lruvec {
            ageing,
            unevictable: List::new(),
            zone_sizes: [[0; NR_LRU_LISTS]; MAX_NR_ZONES],
            nonresident_age: 0,
            workingset_activate: [0; 2],
            subtree: [0; NR_LRU_LISTS],
            congested: false,
            reclaim_position: MemcgId::NONE,
            soft_limit_key: None,
        }
    }

    /// The list in which a page counts; `None` if it is on none.
    #[inline]
    pub fn lru_on(&self, page: &Page) -> Option<Lru> {
        match (page.place, &self.ageing) {
            (Place::Lru, Ageing::TwoLists(_)) => Some(Lru::evictable(page)),
            (Place::Lru, Ageing::Generations(generations)) => {
                let active = generations.is_active(page.generation()?);
                Some(Lru::of_kind(page.is_file_lru(), active))
            }
            (Place::Lru, Ageing::Policy(_)) => Some(Lru::evictable(page)),
            (Place::Unevictable, _) => Some(Lru::Unevictable),
            _ => None,
        }
    }

    /// One of the two lists with the pages of a zone, or the list of unevictable pages.
    #[inline]
    pub fn list(&self, lru: Lru, zone: usize) -> &List {
        let set = self.ageing.two_lists().map(|two| &two.of_zone(zone).lists);
        set.and_then(|lists| lists.get(lru as usize)).unwrap_or(&self.unevictable)
    }

    /// The list that holds a page, by what the page notes.
    pub(crate) fn list_of(&self, page: &Page) -> &List {
        match &self.ageing {
            Ageing::Generations(generations) if page.place == Place::Lru => {
                let of_kind = &generations.lists[page.listed_generation()];
                &of_kind[usize::from(page.is_file_lru())][page.zone()]
            }
            Ageing::Policy(lists) if page.place == Place::Lru => lists.list_of(page),
            _ => self.list(Lru::of(page), page.zone()),
        }
    }

    /// Whether each zone has lists of its own.
    pub(crate) fn has_zone_lists(&self) -> bool {
        self.ageing.two_lists().is_some_and(|two| !two.upper.is_empty())
    }

    /// How many generations a page is older than the youngest; `None` under the two lists.
    pub(crate) fn age_of(&self, page: &Page) -> Option<u64> {
        let (Ageing::Generations(generations), Some(place)) = (&self.ageing, page.generation())
        else {
            return None;
        };
        let youngest = place_of(generations.max_seq);
        Some(u64::from(youngest + MAX_NR_GENS as u8 - place) % MAX_NR_GENS as u64)
    }

    /// Gives each zone lists of its own, or the node one set of lists. Every list keeps its order.
    pub(crate) fn set_zone_lists(&mut self, pages: &mut PageArray, by_zone: bool) {
        let Some(two) = self.ageing.two_lists_mut() else { return };
        let mut new =
            TwoLists { costs: two.costs, refaults: two.refaults, ..TwoLists::new(by_zone) };
        for set in [&mut two.first].into_iter().chain(&mut two.upper) {
            for (list, lru) in set.lists.iter_mut().zip(Lru::EVICTABLE) {
                while list.tail.is_some() {
                    let pfn = list.tail;
                    list.remove(pages, pfn);
                    let lists = &mut new.of_zone_mut(pages[pfn].zone()).lists;
                    lists[lru as usize].push_head(pages, pfn, lru.place());
                }
            }
        }
        *two = new;
    }

    /// Number of entries on all lists: a huge page is one.
    pub(crate) fn nr_entries(&self) -> u64 {
        self.lists().map(|list| list.len).sum()
    }

    /// All lists, the unevictable one last.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &List> {
        self.ageing.lists().chain([&self.unevictable])
    }

    /// As [`Lruvec::list`]; `None`: generations or a policy order the pages.
    #[inline]
    fn list_mut(&mut self, lru: Lru, zone: usize) -> Option<&mut List> {
        match &mut self.ageing {
            _ if lru == Lru::Unevictable => Some(&mut self.unevictable),
            Ageing::TwoLists(two) => two.of_zone_mut(zone).lists.get_mut(lru as usize),
            Ageing::Generations(_) | Ageing::Policy(_) => None,
        }
    }

    /// Adds a page to the generation of a certain age, or to the oldest one.
    pub(crate) fn add_aged(&mut self, pages: &mut PageArray, pfn: Pfn, age: u64) -> Lru {
        let Ageing::Generations(generations) = &mut self.ageing else {
            return self.add_tail(pages, pfn);
        };
        let oldest = generations.min_seq[usize::from(pages[pfn].is_file_lru())];
        let seq = (generations.max_seq - age).max(oldest);
        let active = generations.add_to(pages, pfn, seq, ListEnd::Tail);
        let lru = Lru::of_kind(pages[pfn].is_file_lru(), active);
        self.zone_sizes[pages[pfn].zone()][lru as usize] += pages[pfn].nr_pages();
        lru
    }

    /// Adds a page to the generations or to the lists of a policy. Returns the list in which it
    /// counts.
    #[inline(never)]
    fn add_ordered(&mut self, pages: &mut PageArray, pfn: Pfn, end: ListEnd) -> Lru {
        let active = match &mut self.ageing {
            Ageing::TwoLists(_) => unreachable!("the two lists have every page"),
            Ageing::Generations(generations) => generations.add(pages, pfn, end),
            Ageing::Policy(lists) => lists.add(pages, pfn, end),
        };
        let lru = Lru::of_kind(pages[pfn].is_file_lru(), active);
        self.zone_sizes[pages[pfn].zone()][lru as usize] += pages[pfn].nr_pages();
        lru
    }

    /// Takes a page off the generations or the lists of a policy. Returns the list in which it
    /// counted.
    #[inline(never)]
    fn take_ordered(&mut self, pages: &mut PageArray, pfn: Pfn) -> Option<Lru> {
        let lru = self.lru_on(&pages[pfn])?;
        match &mut self.ageing {
            Ageing::TwoLists(_) => unreachable!("the two lists have every page"),
            Ageing::Generations(generations) => {
                generations.remove(pages, pfn, Departure::Moved);
            }
            Ageing::Policy(lists) => lists.remove(pages, pfn),
        }
        Some(lru)
    }

    /// Pages on a list.
    #[inline]
    pub fn size(&self, lru: Lru) -> u64 {
        self.size_in_zones(lru, MAX_NR_ZONES - 1)
    }

    /// Pages on a list in the zones up to `highest_zone` (Linux `lruvec_lru_size`).
    pub fn size_in_zones(&self, lru: Lru, highest_zone: usize) -> u64 {
        self.zone_sizes[..=highest_zone].iter().map(|sizes| sizes[lru as usize]).sum()
    }

    /// Sizes of the lists of the group itself.
    pub(crate) fn sizes(&self) -> LruSizes {
        self.sizes_of(None)
    }

    /// Sizes of the lists of the group itself, in one zone or in all.
    pub(crate) fn sizes_of(&self, zone: Option<usize>) -> LruSizes {
        match zone {
            Some(zone) => LruSizes(self.zone_sizes[zone]),
            None => LruSizes(Lru::ALL.map(|lru| self.size(lru))),
        }
    }

    /// The largest number of pages that one scan can choose from: a scan at priority `p` finds
    /// nothing if this number is below `1 << p`.
    pub(crate) fn largest_evictable(&self) -> u64 {
        self.sizes().0[..NR_EVICTABLE_LISTS].iter().copied().max().unwrap_or(0)
    }

    /// Pages on each evictable list, summed over some zones.
    #[inline]
    pub(crate) fn sizes_in(zones: &[[u64; NR_LRU_LISTS]]) -> [u64; 4] {
        let mut sizes = [0u64; 4];
        for zone in zones {
            // A sum of pages cannot overflow; without an overflow check the loop adds four values
            // at once.
            sizes.iter_mut().zip(zone).for_each(|(size, pages)| *size = size.wrapping_add(*pages));
        }
        sizes
    }

    /// Adds a page at the head of the list that its flags name. Returns that list.
    #[inline(always)]
    pub fn add(&mut self, pages: &mut PageArray, pfn: Pfn) -> Lru {
        let page = &pages[pfn];
        let (lru, zone, nr) = (Lru::of(page), page.zone(), page.nr_pages());
        let Some(list) = self.list_mut(lru, zone) else {
            return self.add_ordered(pages, pfn, ListEnd::Head);
        };
        list.push_head(pages, pfn, lru.place());
        self.zone_sizes[zone][lru as usize] += nr;
        lru
    }

    /// Adds a page at the tail, where it is the next to be reclaimed. Returns the list.
    #[inline]
    pub fn add_tail(&mut self, pages: &mut PageArray, pfn: Pfn) -> Lru {
        let page = &pages[pfn];
        let (lru, zone, nr) = (Lru::of(page), page.zone(), page.nr_pages());
        let Some(list) = self.list_mut(lru, zone) else {
            return self.add_ordered(pages, pfn, ListEnd::Tail);
        };
        list.push_tail(pages, pfn, lru.place());
        self.zone_sizes[zone][lru as usize] += nr;
        lru
    }

    /// Takes a page off its list. Returns the list in which it counted; `None`: it was on none. The
    /// caller sets the page's new place.
    #[inline(always)]
    pub(crate) fn take(&mut self, pages: &mut PageArray, pfn: Pfn) -> Option<Lru> {
        let page = &pages[pfn];
        let (zone, nr) = (page.zone(), page.nr_pages());
        let lru = match page.place {
            Place::Lru => {
                let lru = Lru::evictable(page);
                match &mut self.ageing {
                    Ageing::TwoLists(two) => {
                        two.of_zone_mut(zone).lists[lru as usize].remove(pages, pfn);
                        lru
                    }
                    Ageing::Generations(_) | Ageing::Policy(_) => self.take_ordered(pages, pfn)?,
                }
            }
            Place::Unevictable => {
                self.unevictable.remove(pages, pfn);
                Lru::Unevictable
            }
            _ => return None,
        };
        self.zone_sizes[zone][lru as usize] -= nr;
        Some(lru)
    }

    /// Adds a part of a huge page that is being split to the huge page's list, towards the head.
    pub(crate) fn add_split(&mut self, pages: &mut PageArray, head: Pfn, pfn: Pfn) {
        let Some(lru) = self.lru_on(&pages[head]) else { return };
        let zone = pages[head].zone();
        if let Some(list) = self.list_mut(lru, zone) {
            return list.insert_before(pages, head, pfn, lru.place());
        }
        match &mut self.ageing {
            Ageing::TwoLists(_) => unreachable!("the two lists have every page"),
            Ageing::Generations(generations) => generations.add_split(pages, head, pfn),
            Ageing::Policy(lists) => lists.add_split(pages, head, pfn),
        }
    }
}
