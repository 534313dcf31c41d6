//! The LRU lists of one group on one node.
//!
//! Linux: `struct lruvec` (mmzone.h). There are five lists. New pages enter the inactive list at
//! the head and reclaim takes pages from the tail. Sizes are also kept per zone, because reclaim
//! for a low zone counts only the zones it may use. Sizes are in pages: a huge page is one entry of
//! a list but counts as all its pages.
//!
//! Invariant: `zone_sizes[z][l]` is the number of pages of the entries of list `l` in zone `z`;
//! every entry of list `l` has the matching [`Place`] and this lruvec's group and node.

use crate::frames::list::List;
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_array::PageArray;
use crate::frames::zone::MAX_NR_ZONES;
use crate::units::digest::State;
use crate::units::{MemcgId, Pfn};

/// Recent reclaim results of one group's lists, as [anonymous, file].
#[derive(Clone, Copy, Debug, Default, State)]
pub struct ZoneReclaimStat {
    /// Pages scanned.
    pub recent_scanned: [u64; 2],
    /// Pages found in use.
    pub recent_rotated: [u64; 2],
}

/// Number of LRU lists, the unevictable one included.
pub const NR_LRU_LISTS: usize = 5;

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
    /// The four lists that reclaim scans, in its order.
    pub const EVICTABLE: [Lru; 4] =
        [Lru::InactiveAnon, Lru::ActiveAnon, Lru::InactiveFile, Lru::ActiveFile];

    /// The list that a page's flags name.
    #[inline]
    pub const fn of(page: &Page) -> Lru {
        if page.has(PageFlags::MLOCKED) {
            return Lru::Unevictable;
        }
        match (page.has(PageFlags::ANON), page.has(PageFlags::ACTIVE)) {
            (true, false) => Lru::InactiveAnon,
            (true, true) => Lru::ActiveAnon,
            (false, false) => Lru::InactiveFile,
            (false, true) => Lru::ActiveFile,
        }
    }

    /// Whether it holds file pages.
    #[inline]
    pub const fn is_file(self) -> bool {
        matches!(self, Lru::InactiveFile | Lru::ActiveFile)
    }

    /// Whether it is an active list.
    #[inline]
    pub const fn is_active(self) -> bool {
        matches!(self, Lru::ActiveAnon | Lru::ActiveFile)
    }

    /// The [`Place`] of a page on this list.
    #[inline]
    pub const fn place(self) -> Place {
        match self {
            Lru::InactiveAnon => Place::InactiveAnon,
            Lru::ActiveAnon => Place::ActiveAnon,
            Lru::InactiveFile => Place::InactiveFile,
            Lru::ActiveFile => Place::ActiveFile,
            Lru::Unevictable => Place::Unevictable,
        }
    }

    /// The list of a [`Place`]; `None` if the place is not an LRU list.
    #[inline]
    pub const fn of_place(place: Place) -> Option<Lru> {
        match place {
            Place::InactiveAnon => Some(Lru::InactiveAnon),
            Place::ActiveAnon => Some(Lru::ActiveAnon),
            Place::InactiveFile => Some(Lru::InactiveFile),
            Place::ActiveFile => Some(Lru::ActiveFile),
            Place::Unevictable => Some(Lru::Unevictable),
            _ => None,
        }
    }
}

/// The lists of one group on one node, with reclaim's statistics about them.
#[derive(Clone, Debug, State)]
pub struct Lruvec {
    /// The five lists, indexed by [`Lru`].
    pub lists: [List; NR_LRU_LISTS],
    /// Pages of each list by zone.
    pub zone_sizes: [[u64; NR_LRU_LISTS]; MAX_NR_ZONES],
    /// Cost of reclaiming anonymous pages, decayed (Linux `anon_cost`).
    pub anon_cost: u64,
    /// Cost of reclaiming file pages, decayed (Linux `file_cost`).
    pub file_cost: u64,
    /// Statistics that kernels before 5.8 keep instead of the costs.
    pub recent: ZoneReclaimStat,
    /// Evictions and activations so far: the clock of refault distances.
    pub nonresident_age: u64,
    /// Value of `workingset_activate_{anon,file}` at the last check by reclaim.
    pub refaults: [u64; 2],
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
    pub const fn new() -> Lruvec {
        Lruvec {
            lists: [List::new(); NR_LRU_LISTS],
            zone_sizes: [[0; NR_LRU_LISTS]; MAX_NR_ZONES],
            anon_cost: 0,
            file_cost: 0,
            recent: ZoneReclaimStat { recent_scanned: [0; 2], recent_rotated: [0; 2] },
            nonresident_age: 0,
            refaults: [0; 2],
            workingset_activate: [0; 2],
            subtree: [0; NR_LRU_LISTS],
            congested: false,
            reclaim_position: MemcgId::NONE,
            soft_limit_key: None,
        }
    }

    /// Pages of files on the lists of the group and its descendants; not for the root.
    pub(crate) fn nr_file_pages_in_subtree(&self) -> u64 {
        self.subtree[Lru::InactiveFile as usize] + self.subtree[Lru::ActiveFile as usize]
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
    #[inline]
    pub fn add(&mut self, pages: &mut PageArray, pfn: Pfn) -> Lru {
        let page = &pages[pfn];
        let lru = Lru::of(page);
        self.zone_sizes[page.zone()][lru as usize] += page.nr_pages();
        self.lists[lru as usize].push_head(pages, pfn, lru.place());
        lru
    }

    /// Adds a page at the tail, where it is the next to be reclaimed. Returns the list.
    #[inline]
    pub fn add_tail(&mut self, pages: &mut PageArray, pfn: Pfn) -> Lru {
        let page = &pages[pfn];
        let lru = Lru::of(page);
        self.zone_sizes[page.zone()][lru as usize] += page.nr_pages();
        self.lists[lru as usize].push_tail(pages, pfn, lru.place());
        lru
    }

    /// Removes a page from its list. The caller sets the page's new place.
    #[inline]
    pub fn remove(&mut self, pages: &mut PageArray, pfn: Pfn, lru: Lru) {
        let page = &pages[pfn];
        self.zone_sizes[page.zone()][lru as usize] -= page.nr_pages();
        self.lists[lru as usize].remove(pages, pfn);
    }
}

impl Default for Lruvec {
    fn default() -> Self {
        Self::new()
    }
}
