//! Page policies from outside the core (plug-ins): which page of a group is evicted next.
//!
//! Linux has no such hook; cache_ext and reclaim_ext propose one. A [`PagePolicy`] takes the place of
//! the two lists and of generations. Each group has a copy of it on each node, with up to 31 lists
//! ([`PageLists`]) that may mix anonymous memory and page cache, and a note of 32 bits for each page.
//! The policy decides where a page enters and which pages a reclaimer looks at next. Reclaim then
//! decides about each of these pages as under the two lists: a page that was used through a mapping,
//! or cannot be freed, comes back. A policy can also look for used pages itself, by the walks and the
//! look-around of generations ([`PageLists::walk_tables`], [`PageLists::look_around`]).
//!
//! A policy gets no machine and no bytes, so it can break no invariant. If it offers no page where
//! pages are left, the next attempt of reclaim takes them from the tails of its lists (metric
//! `plugin_overruled`).
//!
//! Invariant: a page on list `l` has `l` in its flags, and [`PageFlags::ACTIVE`] if the policy calls
//! `l` active.

mod evict;
mod lists;
mod scan;
mod tables;

pub(crate) use lists::PolicyLists;
pub use lists::{ListSide, PageLists, PagePlace};
pub(crate) use scan::PolicyScan;

use crate::frames::page::{Page, PageFlags};
use crate::units::digest::Digest;
use crate::units::Pfn;
use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::Debug;

/// Name of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageKey {
    /// Page cache; else anonymous memory.
    pub is_file: bool,
    /// The file, or the mapping of anonymous memory. Numbers are used again.
    pub owner: u32,
    /// Index of the page in it.
    pub index: u32,
}

/// A page that enters or leaves the lists, or was used.
#[derive(Debug)]
pub struct PageVisit<'a> {
    /// The frame. It names the page until the page is removed or evicted.
    pub frame: Pfn,
    /// The page's name, also while the page is not in memory.
    pub key: PageKey,
    /// The policy's note about the page; 0 for a new page.
    pub note: &'a mut u32,
}

/// How a page comes to the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was not in memory.
    New {
        /// It was evicted so lately that it would have stayed in a larger memory (Linux
        /// `workingset_refault`).
        refault: bool,
        /// A fault has brought it, in a mapping without advice. Else read(), write(), or a mapping
        /// with sequential or random advice.
        fault: bool,
    },
    /// It was off the lists for a while: reclaim or compaction did not take it, or it was locked.
    Back {
        /// Reclaim found it in use, or could not free it.
        used: bool,
    },
}

/// An order of pages. Equal inputs give equal results: no clocks, floats or random numbers of the
/// host.
pub trait PagePolicy: Debug + Send + Sync {
    /// Number of lists, from 1 to 31; more count as 31.
    fn nr_lists(&self) -> usize;

    /// Whether pages of a list count as active in sizes such as nr_active_file.
    fn is_active(&self, list: usize) -> bool {
        let _ = list;
        false
    }

    /// A page enters the lists. Returns its place.
    fn added(&mut self, page: &mut PageVisit<'_>, arrival: Arrival) -> PagePlace;

    /// read() or write() used a page again. Returns its new place, or `None` to leave it.
    fn used(&mut self, page: &mut PageVisit<'_>) -> Option<PagePlace> {
        let _ = page;
        None
    }

    /// A page left the lists, but not by [`PageLists::take`]: it was freed, or will come back.
    fn removed(&mut self, page: &mut PageVisit<'_>) {
        let _ = page;
    }

    /// A page was evicted.
    fn evicted(&mut self, page: &mut PageVisit<'_>) {
        let _ = page;
    }

    /// kswapd begins a round.
    fn age(&mut self, lists: &mut PageLists<'_>) {
        let _ = lists;
    }

    /// A reclaimer wants pages: take some ([`PageLists::take`]) until [`PageLists::is_done`].
    fn evict(&mut self, lists: &mut PageLists<'_>);

    /// Puts all state that affects later answers into the digest of the machine.
    fn digest(&self, digest: &mut Digest);
}

/// A cloneable page policy.
pub(crate) trait ClonePagePolicy: PagePolicy {
    /// A copy in the same state.
    fn boxed(&self) -> Box<dyn ClonePagePolicy>;
}

impl<P: PagePolicy + Clone + 'static> ClonePagePolicy for P {
    fn boxed(&self) -> Box<dyn ClonePagePolicy> {
        Box::new(self.clone())
    }
}

/// A page policy with the name under which it was registered.
#[derive(Debug)]
pub struct NamedPagePolicy {
    pub(crate) name: String,
    pub(crate) policy: Box<dyn ClonePagePolicy>,
}

impl Clone for NamedPagePolicy {
    fn clone(&self) -> Self {
        NamedPagePolicy { name: self.name.clone(), policy: self.policy.boxed() }
    }
}

fn visit_of<'a>(page: &Page, frame: Pfn, note: &'a mut u32) -> PageVisit<'a> {
    let key = PageKey { is_file: page.is_file_lru(), owner: page.mapping, index: page.index };
    PageVisit { frame, key, note }
}

/// How a page comes to the lists, by its state.
fn arrival_of(page: &Page) -> Arrival {
    let active = page.has(PageFlags::ACTIVE);
    match page.policy_list() {
        None => Arrival::New { refault: active, fault: page.has(PageFlags::FAULTED) },
        Some(_) => Arrival::Back { used: active },
    }
}
