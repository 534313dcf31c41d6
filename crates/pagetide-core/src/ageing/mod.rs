//! Ageing: which page of a group on a node is evicted next.
//!
//! Linux: `struct lruvec`, mm/swap.c, mm/workingset.c, and the part of mm/vmscan.c that chooses
//! pages. The rest of the core asks mainly by these entries and does not know how pages are ordered:
//!
//! * a page is added (`folio_add_lru`, `putback_page`), referenced (`mark_page_accessed`,
//!   `activate_page`, `deactivate_page`) and removed (`lru_forget`, `lruvec_remove`);
//! * lists are aged in the background (`kswapd_age_node`);
//! * a scan is planned (`prepare_scan_count`, `plan_scan`);
//! * a batch of pages is isolated (`next_batch`);
//! * sizes are read by the kernel's names ([`sizes`]).
//!
//! Invariant: only this room names a list of [`lruvec::Lru`].

pub mod generations;
pub mod lru;
pub mod lruvec;
pub(crate) mod mlock;
pub mod page_policy;
pub mod pagevec;
pub(crate) mod scan;
pub mod shadow;
pub mod sizes;
mod switch;
pub mod two_lists;
pub mod workingset;

use crate::frames::list::List;
use crate::units::digest::State;
use alloc::boxed::Box;
use generations::window::Generations;
use page_policy::PolicyLists;
use two_lists::TwoLists;

/// How the evictable pages of a [`lruvec::Lruvec`] are ordered by age.
// Every move of a page asks for the variant; one in a niche of a pointer takes more instructions.
#[derive(Clone, Debug, State)]
#[repr(u8)]
pub enum Ageing {
    /// An active and an inactive list for anonymous memory and for page cache.
    TwoLists(TwoLists),
    /// Up to four generations of each.
    Generations(Box<Generations>),
    /// Lists of a plug-in.
    Policy(Box<PolicyLists>),
}

impl Ageing {
    /// The two lists, if they order the pages.
    #[inline]
    pub(crate) fn two_lists(&self) -> Option<&TwoLists> {
        match self {
            Ageing::TwoLists(two) => Some(two),
            Ageing::Generations(_) | Ageing::Policy(_) => None,
        }
    }

    /// As [`Ageing::two_lists`].
    #[inline]
    pub(crate) fn two_lists_mut(&mut self) -> Option<&mut TwoLists> {
        match self {
            Ageing::TwoLists(two) => Some(two),
            Ageing::Generations(_) | Ageing::Policy(_) => None,
        }
    }

    /// All lists of pages that can be evicted.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &List> {
        let sets = self.two_lists().into_iter().flat_map(TwoLists::sets);
        let generations = match self {
            Ageing::TwoLists(_) | Ageing::Policy(_) => None,
            Ageing::Generations(generations) => Some(generations.all_lists()),
        };
        let of_policy = match self {
            Ageing::Policy(lists) => lists.all(),
            Ageing::TwoLists(_) | Ageing::Generations(_) => &[],
        };
        let built_in = sets.flat_map(|set| &set.lists).chain(generations.into_iter().flatten());
        built_in.chain(of_policy)
    }
}
