//! A policy that decides how pages age, and the facts for its decision.
//!
//! Linux: `folio_check_references`, `shrink_active_list`, `folio_mark_accessed`, `workingset_refault`,
//! `inactive_is_low` and `get_scan_count` (6.1) each answer one of these questions. Here each question
//! contains the kernel's answer as `linux` (with an older variant of policy `lru`, the answer of that
//! kernel). A policy that has no opinion on a question returns that answer; the default methods of the trait
//! do so.
//!
//! An access through a mapping does not ask the policy: the processor sets a bit, and reclaim finds the bit
//! later.
//!
//! Invariant: a policy reads the machine; it changes only the mark of a page and its own state.

use super::group::GroupView;
use crate::digest::Digest;
use crate::units::Pfn;
use core::fmt;

/// A policy of how pages age.
pub trait PagePolicy: fmt::Debug + Send + Sync {
    /// A page has come to memory: where does it begin? `page.refault` says whether it was there before. Its mark
    /// is 0.
    fn on_new(&mut self, _page: &mut PageView<'_>, linux: Start) -> Start {
        linux
    }

    /// A page was read or written by a system call, or its mapping went away after an access: is it activated?
    /// One that is active already, or unevictable, stays what it is.
    fn on_referenced(&mut self, _page: &mut PageView<'_>, linux: bool) -> bool {
        linux
    }

    /// A page has come to the end of its inactive list: what becomes of it?
    fn judge(&mut self, _page: &mut PageView<'_>, linux: Judged) -> Judged {
        linux
    }

    /// A page has come to the end of its active list: does it stay active? Otherwise it begins again as an
    /// inactive one.
    fn stays_active(&mut self, _page: &mut PageView<'_>, linux: bool) -> bool {
        linux
    }

    /// Whether the inactive list of a kind has become so short that its active list is to be looked at.
    fn inactive_is_low(&self, _sizes: &ListSizes, linux: bool) -> bool {
        linux
    }

    /// How anonymous memory and page cache share the pressure on one group. Not asked when nothing could be
    /// swapped.
    fn balance(&mut self, _pressure: &Pressure<'_>, linux: Balance) -> Balance {
        linux
    }

    /// Mixes in all state that a later answer can depend on, marks excepted. A policy without state of its own
    /// has nothing to do.
    fn digest(&self, digest: &mut Digest);
}

/// Facts about a page. A huge page is one page here.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PageView<'m> {
    /// The policy's own number for this page, kept with it until it leaves memory. It begins as 0, moves with the
    /// page, and is part of the machine's digest.
    pub mark: u8,
    /// Where it is.
    pub frame: Pfn,
    /// The group that pays for it.
    pub group: GroupView<'m>,
    /// Page cache; otherwise anonymous memory.
    pub is_file: bool,
    /// On an active list, or about to be.
    pub is_active: bool,
    /// 1, or 512 of a huge page.
    pub nr_pages: u64,
    /// Mappings of it.
    pub mapcount: u16,
    /// Mappings through which it was used since reclaim last looked. Known to [`PagePolicy::judge`] and
    /// [`PagePolicy::stays_active`].
    pub nr_references: u32,
    /// One of these may be executed from.
    pub executable: bool,
    /// It had been found referenced before (Linux `PG_referenced`).
    pub referenced: bool,
    /// To be written before it can go.
    pub dirty: bool,
    /// It was active when it was deactivated or reclaimed (Linux `PG_workingset`).
    pub workingset: bool,
    /// It was reclaimed and has come back. Known to [`PagePolicy::on_new`].
    pub refault: Option<Refault>,
}

/// What a shadow tells of a page that came back (Linux mm/workingset.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refault {
    /// Pages that were reclaimed or activated while it was gone.
    pub distance: u64,
    /// Pages that it competes with: it would have stayed, had all of them been its kind's inactive list.
    pub workingset_size: u64,
    /// It was active when it went.
    pub workingset: bool,
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the head of its inactive list.
    Inactive,
    /// At the head of its active list.
    Active,
}

/// What becomes of a page at the end of its inactive list (Linux `enum folio_references`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It goes: freed, or written first.
    Reclaim,
    /// It goes if it need not be written.
    ReclaimClean,
    /// Back to the head of the inactive list.
    Keep,
    /// To the head of the active list.
    Activate,
}

/// Lists of one kind: of a group and those below it on one node, of the root the node's.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListSizes {
    /// Page cache; otherwise anonymous memory.
    pub is_file: bool,
    /// Pages on the inactive list.
    pub inactive: u64,
    /// Pages on the active list.
    pub active: u64,
}

/// What the balance is decided by.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Pressure<'m> {
    /// The group whose lists are to be reclaimed.
    pub group: GroupView<'m>,
    /// Priority of its plan.
    pub priority: i8,
    /// Swappiness that counts for it.
    pub swappiness: u32,
    /// Cost of reclaiming anonymous pages lately, decayed (Linux `anon_cost`).
    pub anon_cost: u64,
    /// Cost of reclaiming file pages lately, decayed.
    pub file_cost: u64,
    /// There is cold page cache enough (Linux `cache_trim_mode`).
    pub cache_trim_mode: bool,
    /// There is hardly any page cache left (Linux `file_is_tiny`).
    pub file_is_tiny: bool,
}

/// How the pressure is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Both kinds feel all of it.
    Equal,
    /// Each kind feels this share of it.
    Fract {
        /// Of anonymous memory.
        anon: u64,
        /// Of page cache.
        file: u64,
        /// The whole.
        denominator: u64,
    },
    /// Anonymous memory feels all of it.
    Anon,
    /// Page cache feels all of it.
    File,
}

impl Balance {
    /// The shares of anonymous memory and page cache: parts, and what they are parts of.
    fn shares(self) -> [(u64, u64); 2] {
        match self {
            Balance::Equal => [(1, 1), (1, 1)],
            Balance::Fract { anon, file, denominator } => {
                [(anon, denominator), (file, denominator)]
            }
            Balance::Anon => [(1, 1), (0, 1)],
            Balance::File => [(0, 1), (1, 1)],
        }
    }

    /// Whether one of the kinds feels less than by the other balance.
    pub(crate) fn spares(self, other: Balance) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let is_less =
            |((part, of), (other, of_other))| product(part, of_other) < product(other, of);
        self.shares().into_iter().zip(other.shares()).any(is_less)
    }

    /// Whether scan targets can be computed by it.
    pub(crate) fn is_possible(self) -> bool {
        match self {
            Balance::Equal | Balance::Anon | Balance::File => true,
            Balance::Fract { anon, file, denominator } => {
                let whole = 1..=u64::from(u32::MAX);
                let within = anon.max(file) <= denominator;
                whole.contains(&denominator) && within && anon + file > 0
            }
        }
    }
}
