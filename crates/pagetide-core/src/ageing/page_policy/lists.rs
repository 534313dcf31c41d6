//! The lists of a page policy, for one group on one node.
//!
//! Linux has no such lists. Invariant: see the parent module. Sizes change with every page that
//! changes between an active and an inactive list; [`PageLists`] collects these changes, because
//! sums of other parts of the machine depend on them.

use super::{arrival_of, visit_of, Arrival, ClonePagePolicy};
use crate::ageing::generations::window::{ListEnd, TableWalkState};
use crate::ageing::lruvec::Lru;
use crate::frames::list::List;
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_array::PageArray;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::units::digest::{Digest, State};
use crate::units::{MemcgId, NodeId, Pfn, SWAP_CLUSTER_MAX};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;

/// Most lists of a policy.
const MAX_LISTS: usize = 31;

/// Most pages that a policy can look at in one step.
const LOOKS_A_STEP: u32 = 1024;

/// A side of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListSide {
    /// Where pages usually enter.
    Head,
    /// Where eviction usually looks first.
    Tail,
}

/// A place on the lists of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// Number of the list; one that does not exist means the last.
    pub list: usize,
    /// The side at which the page enters.
    pub side: ListSide,
}

impl PagePlace {
    /// At the head of a list.
    pub const fn head(list: usize) -> PagePlace {
        PagePlace { list, side: ListSide::Head }
    }

    /// At the tail of a list.
    pub const fn tail(list: usize) -> PagePlace {
        PagePlace { list, side: ListSide::Tail }
    }
}

/// The pages of a group on a node, ordered by a policy.
#[derive(Debug)]
pub struct PolicyLists {
    policy: Box<dyn ClonePagePolicy>,
    lists: Vec<List>,
    walks: PolicyWalks,
}

/// Walks over the page tables of the group.
#[derive(Clone, Debug, Default, State)]
pub(super) struct PolicyWalks {
    pub tables: TableWalkState,
    /// Walks so far.
    pub nr: u64,
}

impl Clone for PolicyLists {
    fn clone(&self) -> PolicyLists {
        let PolicyLists { policy, lists, walks } = self;
        PolicyLists { policy: policy.boxed(), lists: lists.clone(), walks: walks.clone() }
    }
}

impl State for PolicyLists {
    fn digest(&self, digest: &mut Digest) {
        self.lists.digest(digest);
        self.policy.digest(digest);
        self.walks.digest(digest);
    }
}

impl PolicyLists {
    pub(crate) fn new(policy: Box<dyn ClonePagePolicy>) -> PolicyLists {
        let nr_lists = policy.nr_lists().clamp(1, MAX_LISTS);
        let lists = vec![List::new(); nr_lists];
        PolicyLists { policy, lists, walks: PolicyWalks::default() }
    }

    /// All lists.
    pub(crate) fn all(&self) -> &[List] {
        &self.lists
    }

    /// The list that holds a page.
    pub(crate) fn list_of(&self, page: &Page) -> &List {
        &self.lists[page.policy_list().unwrap_or(0)]
    }

    fn link(&mut self, pages: &mut PageArray, pfn: Pfn, place: PagePlace) {
        let at = place.list.min(self.lists.len() - 1);
        let active = self.policy.is_active(at);
        let page = &mut pages[pfn];
        page.set_policy_list(Some(at));
        page.clear(PageFlags::ACTIVE);
        if active {
            page.set(PageFlags::ACTIVE);
        }
        match place.side {
            ListSide::Head => self.lists[at].push_head(pages, pfn, Place::Lru),
            ListSide::Tail => self.lists[at].push_tail(pages, pfn, Place::Lru),
        }
    }

    fn unlink(&mut self, pages: &mut PageArray, pfn: Pfn) {
        let at = pages[pfn].policy_list().unwrap_or(0);
        self.lists[at].remove(pages, pfn);
    }

    /// Adds a page where the policy wants it; always at the tail if its write has ended. Returns
    /// whether it counts as active.
    pub(crate) fn add(&mut self, pages: &mut PageArray, pfn: Pfn, end: ListEnd) -> bool {
        let arrival = arrival_of(&pages[pfn]);
        pages[pfn].clear(PageFlags::FAULTED);
        let mut note = pages.note(pfn);
        if matches!(arrival, Arrival::New { .. }) {
            note = 0;
        }
        let mut place = self.policy.added(&mut visit_of(&pages[pfn], pfn, &mut note), arrival);
        if end == ListEnd::Tail {
            place.side = ListSide::Tail;
        }
        pages.set_note(pfn, note);
        self.link(pages, pfn, place);
        pages[pfn].has(PageFlags::ACTIVE)
    }

    /// Adds a part of a huge page that is being split, next to the huge page.
    pub(crate) fn add_split(&mut self, pages: &mut PageArray, head: Pfn, pfn: Pfn) {
        let at = pages[head].policy_list().unwrap_or(0);
        self.lists[at].insert_before(pages, head, pfn, Place::Lru);
    }

    /// Takes a page off its list.
    pub(crate) fn remove(&mut self, pages: &mut PageArray, pfn: Pfn) {
        self.unlink(pages, pfn);
        let mut note = pages.note(pfn);
        self.policy.removed(&mut visit_of(&pages[pfn], pfn, &mut note));
        pages.set_note(pfn, note);
    }

    /// A page was evicted.
    pub(crate) fn evicted(&mut self, pages: &mut PageArray, pfn: Pfn) {
        let mut note = pages.note(pfn);
        self.policy.evicted(&mut visit_of(&pages[pfn], pfn, &mut note));
    }

    /// read() or write() used a page again. Returns whether it moved to another list.
    pub(crate) fn used(&mut self, pages: &mut PageArray, pfn: Pfn) {
        let mut note = pages.note(pfn);
        let place = self.policy.used(&mut visit_of(&pages[pfn], pfn, &mut note));
        pages.set_note(pfn, note);
        if let Some(place) = place {
            self.unlink(pages, pfn);
            self.link(pages, pfn, place);
        }
    }

    /// Lets the policy choose pages for a reclaimer, or age them.
    pub(super) fn visit(
        &mut self,
        pages: &mut PageArray,
        lruvec: (MemcgId, NodeId),
        tables: &mut dyn GroupTables,
        taken: Vec<Pfn>,
        may_take: Option<MayTake>,
        task: PolicyTask,
    ) -> PolicyVisit {
        let PolicyLists { policy, lists, walks } = self;
        let nr_lists = lists.len();
        let mut view = PageLists {
            lists,
            lruvec,
            active: (0..nr_lists)
                .filter(|&at| policy.is_active(at))
                .fold(0, |all, at| all | 1 << at),
            pages,
            tables,
            walks,
            may_take,
            found: PolicyVisit { taken, ..PolicyVisit::default() },
        };
        match task {
            PolicyTask::Evict => policy.evict(&mut view),
            PolicyTask::Age => policy.age(&mut view),
            PolicyTask::Overrule => view.take_tails(),
        }
        view.found
    }
}

/// The reason for a visit of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyTask {
    Evict,
    Age,
    /// The policy has offered nothing: the tails are taken.
    Overrule,
}

/// The page tables that map a group's pages. (The lists do not know the owners of pages.)
pub(super) trait GroupTables: Debug {
    /// Walks over the tables of the group's tasks; `all`: without the filter. Returns the used pages.
    fn walk(&mut self, pages: &PageArray, walks: &mut PolicyWalks, all: bool) -> Vec<Pfn>;

    /// Looks at the entries of a mapped page, and around the used ones. Returns the used pages.
    fn look_around(&mut self, pages: &PageArray, walks: &mut PolicyWalks, pfn: Pfn) -> Vec<Pfn>;
}

/// Which pages a reclaimer may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct MayTake {
    pub anon: bool,
    pub mapped: bool,
    pub highest_zone: usize,
}

/// Result of a visit of a policy.
#[derive(Debug, Default)]
pub(super) struct PolicyVisit {
    /// Pages taken off the lists, of one kind.
    pub taken: Vec<Pfn>,
    pub nr_taken: u64,
    /// Pages that the policy took, moved or asked for.
    pub nr_looks: u32,
    /// Change of each size, by zone.
    pub changes: [[i64; 4]; MAX_NR_ZONES],
}

/// The lists of a group on a node, as its policy sees them.
#[derive(Debug)]
pub struct PageLists<'a> {
    lists: &'a mut Vec<List>,
    lruvec: (MemcgId, NodeId),
    /// Bits of the active lists.
    active: u32,
    pages: &'a mut PageArray,
    tables: &'a mut dyn GroupTables,
    walks: &'a mut PolicyWalks,
    may_take: Option<MayTake>,
    found: PolicyVisit,
}

impl PageLists<'_> {
    /// Entries on a list; a huge page is one.
    pub fn len(&self, list: usize) -> u64 {
        self.lists.get(list).map_or(0, |list| list.len)
    }

    /// Whether a list has no page.
    pub fn is_empty(&self, list: usize) -> bool {
        self.len(list) == 0
    }

    /// The page at the tail of a list.
    pub fn tail(&self, list: usize) -> Option<Pfn> {
        self.lists.get(list).map(|list| list.tail).filter(|pfn| pfn.is_some())
    }

    /// The page at the head of a list.
    pub fn head(&self, list: usize) -> Option<Pfn> {
        self.lists.get(list).map(|list| list.head).filter(|pfn| pfn.is_some())
    }

    /// The page next to another one on its list, towards the head.
    pub fn towards_head(&self, frame: Pfn) -> Option<Pfn> {
        self.list_of(frame)?;
        Some(self.pages[frame].prev).filter(|pfn| pfn.is_some())
    }

    /// The list that a page is on; `None` if the page is not on these lists.
    pub fn list_of(&self, frame: Pfn) -> Option<usize> {
        let page = self.pages.get(frame.idx())?;
        if page.place != Place::Lru || (page.memcg, page.node()) != self.lruvec {
            return None;
        }
        page.policy_list()
    }

    /// The note of a page on the lists; 0 for another frame.
    pub fn note(&self, frame: Pfn) -> u32 {
        self.list_of(frame).map_or(0, |_| self.pages.note(frame))
    }

    /// Writes the note of a page on the lists.
    pub fn set_note(&mut self, frame: Pfn, note: u32) {
        if self.list_of(frame).is_some() {
            self.pages.set_note(frame, note);
        }
    }

    /// Whether a page is page cache; else anonymous memory.
    pub fn is_file(&self, frame: Pfn) -> bool {
        self.pages.get(frame.idx()).is_some_and(Page::is_file_lru)
    }

    /// Whether the reclaimer needs no more pages, or has looked at enough for one step.
    pub fn is_done(&self) -> bool {
        self.found.nr_taken >= SWAP_CLUSTER_MAX || self.found.nr_looks >= LOOKS_A_STEP
    }

    /// Moves a page on these lists.
    pub fn move_to(&mut self, frame: Pfn, place: PagePlace) {
        let Some(from) = self.list_of(frame) else { return };
        self.found.nr_looks += 1;
        let to = place.list.min(self.lists.len() - 1);
        self.lists[from].remove(self.pages, frame);
        match place.side {
            ListSide::Head => self.lists[to].push_head(self.pages, frame, Place::Lru),
            ListSide::Tail => self.lists[to].push_tail(self.pages, frame, Place::Lru),
        }
        self.count(frame, -1);
        let page = &mut self.pages[frame];
        page.set_policy_list(Some(to));
        page.clear(PageFlags::ACTIVE);
        if self.active >> to & 1 != 0 {
            page.set(PageFlags::ACTIVE);
        }
        self.count(frame, 1);
    }

    /// Counts a page in the size that its flags name.
    fn count(&mut self, frame: Pfn, sign: i64) {
        let page = &self.pages[frame];
        let lru = Lru::of_kind(page.is_file_lru(), page.has(PageFlags::ACTIVE));
        self.found.changes[page.zone()][lru as usize] += sign * page.nr_pages() as i64;
    }

    /// Whether the reclaimer can take a page: its zone is one that the request can use, anonymous
    /// memory can be swapped, and all pages of a step are of one kind.
    pub fn can_take(&self, frame: Pfn) -> bool {
        let (Some(may), true) = (self.may_take, self.list_of(frame).is_some()) else {
            return false;
        };
        let page = &self.pages[frame];
        let is_first_kind = self
            .found
            .taken
            .first()
            .is_none_or(|&first| self.pages[first].is_file_lru() == page.is_file_lru());
        !self.is_done()
            && is_first_kind
            && (may.mapped || page.mapcount == 0)
            && (page.is_file_lru() || may.anon || page.has(PageFlags::SWAPCACHE))
            && page.zone() <= may.highest_zone
    }

    /// Looks for used pages in the page tables of the group's tasks, and clears the used bits that
    /// it finds. Returns the used pages of these lists; a page in two tables may be there twice. As
    /// in Linux, tasks with fewer than 64 pages and mappings with sequential or random advice are
    /// left out; and without `all`, tables that had few used entries at the last walk.
    pub fn walk_tables(&mut self, all: bool) -> Vec<Pfn> {
        self.walks.nr += 1;
        let used = self.tables.walk(self.pages, self.walks, all);
        self.listed(used)
    }

    /// Reads and clears the used bits of a page of these lists. Around each used entry it looks at
    /// up to 63 neighbours in the same table. Returns the used pages of these lists; the page itself
    /// is the first if it was used.
    pub fn look_around(&mut self, frame: Pfn) -> Vec<Pfn> {
        if self.list_of(frame).is_none() || self.pages[frame].mapcount == 0 {
            return Vec::new();
        }
        let used = self.tables.look_around(self.pages, self.walks, frame);
        self.listed(used)
    }

    /// Those pages that are on these lists. Reclaim will see that the others were used.
    fn listed(&mut self, mut used: Vec<Pfn>) -> Vec<Pfn> {
        used.retain(|&frame| {
            let is_listed = self.list_of(frame).is_some();
            if !is_listed {
                self.pages[frame].set(PageFlags::REFERENCED);
            }
            is_listed
        });
        used
    }

    /// Gives a page to the reclaimer. Returns whether the reclaimer takes it. A page that it cannot
    /// free comes back ([`Arrival::Back`]).
    pub fn take(&mut self, frame: Pfn) -> bool {
        self.found.nr_looks += 1;
        if !self.can_take(frame) {
            return false;
        }
        let Some(list) = self.list_of(frame) else { return false };
        self.lists[list].remove(self.pages, frame);
        self.count(frame, -1);
        let page = &mut self.pages[frame];
        page.place = Place::Isolated;
        page.clear(PageFlags::ACTIVE);
        self.found.nr_taken += page.nr_pages();
        self.found.taken.push(frame);
        true
    }

    /// Takes what can be taken, from the tails.
    fn take_tails(&mut self) {
        for list in 0..self.lists.len() {
            let mut next = self.tail(list);
            while let Some(frame) = next.filter(|_| !self.is_done()) {
                next = self.towards_head(frame);
                if self.can_take(frame) {
                    self.take(frame);
                }
            }
        }
    }
}
