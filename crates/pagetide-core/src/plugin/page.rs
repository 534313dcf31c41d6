//! Page policies: how pages age, and the facts for the decision.
//!
//! Linux: `folio_check_references`, `shrink_active_list`, `folio_mark_accessed`,
//! `workingset_refault`, `inactive_is_low` and `get_scan_count` (6.1) each answer one of these
//! questions. Each question contains the kernel's answer as `linux` (with an older variant of
//! policy `lru`, the answer of that kernel). A policy without an opinion returns that answer, as
//! the default methods of the trait do.
//!
//! An access through a mapping does not ask the policy: the processor sets a bit, and reclaim finds
//! the bit later.
//!
//! Invariant: a policy reads the machine; it changes only the mark of a page and its own state.

use super::group::GroupView;
use crate::digest::Digest;
use crate::units::Pfn;
use core::fmt;

/// A policy that decides how pages age.
pub trait PagePolicy: fmt::Debug + Send + Sync {
    /// The list of a new page in memory. `page.refault` says whether it was in memory before. Its
    /// mark is 0.
    fn on_new(&mut self, _page: &mut PageView<'_>, linux: InitialList) -> InitialList {
        linux
    }

    /// Whether to activate a page that a system call read or wrote, or that was accessed through a
    /// mapping removed now. A page that is active or unevictable does not change.
    fn on_referenced(&mut self, _page: &mut PageView<'_>, linux: bool) -> bool {
        linux
    }

    /// Decides about a page at the end of its inactive list.
    fn judge(&mut self, _page: &mut PageView<'_>, linux: PageVerdict) -> PageVerdict {
        linux
    }

    /// Whether a page at the end of its active list stays active. Otherwise it goes to the head of
    /// the inactive list.
    fn stays_active(&mut self, _page: &mut PageView<'_>, linux: bool) -> bool {
        linux
    }

    /// Whether the inactive list of a kind is so short that reclaim scans its active list.
    fn inactive_is_low(&self, _sizes: &ListSizes, linux: bool) -> bool {
        linux
    }

    /// How anonymous memory and page cache share the pressure on one group. Not asked if nothing
    /// can be swapped.
    fn balance(&mut self, _pressure: &ScanPressure<'_>, linux: ScanBalance) -> ScanBalance {
        linux
    }

    /// Hashes all state that a later answer can depend on, except marks. A policy without state
    /// hashes nothing.
    fn digest(&self, digest: &mut Digest);
}

/// Facts about a page. A huge page counts as one page here.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PageView<'m> {
    /// The policy's own number for this page, kept until the page leaves memory. It is 0 at first,
    /// moves with the page, and is part of the machine's digest.
    pub mark: u8,
    /// Its frame.
    pub frame: Pfn,
    /// The group that is charged for it.
    pub group: GroupView<'m>,
    /// Page cache; otherwise anonymous memory.
    pub is_file: bool,
    /// On an active list, or about to be.
    pub is_active: bool,
    /// 1, or 512 of a huge page.
    pub nr_pages: u64,
    /// Number of mappings.
    pub mapcount: u16,
    /// Mappings through which it was used since reclaim last looked. Set for [`PagePolicy::judge`]
    /// and [`PagePolicy::stays_active`].
    pub nr_references: u32,
    /// One of these mappings is executable.
    pub executable: bool,
    /// An earlier scan found it referenced (Linux `PG_referenced`).
    pub referenced: bool,
    /// Must be written before it can be freed.
    pub dirty: bool,
    /// It was active when it was deactivated or reclaimed (Linux `PG_workingset`).
    pub workingset: bool,
    /// Set if it was reclaimed and has come back. For [`PagePolicy::on_new`].
    pub refault: Option<Refault>,
}

/// Data from the shadow entry of a page that came back (Linux mm/workingset.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refault {
    /// Pages that were reclaimed or activated while it was gone.
    pub distance: u64,
    /// Pages that it competes with. With a distance of at most this it would have stayed if all of
    /// them were its kind's inactive list.
    pub workingset_size: u64,
    /// It was active when it was reclaimed.
    pub workingset: bool,
}

/// First list of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialList {
    /// Head of the inactive list.
    Inactive,
    /// Head of the active list.
    Active,
}

/// Decision about a page at the end of its inactive list (Linux `enum folio_references`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageVerdict {
    /// Reclaimed: freed, or written first.
    Reclaim,
    /// Reclaimed if it need not be written.
    ReclaimClean,
    /// Back to the head of the inactive list.
    Keep,
    /// To the head of the active list.
    Activate,
}

/// Sizes of the lists of one kind on one node: of a group and its descendants, or the node's for
/// the root.
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

/// Inputs of the balance decision.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ScanPressure<'m> {
    /// The group being reclaimed.
    pub group: GroupView<'m>,
    /// Priority of the group's plan.
    pub priority: i8,
    /// Effective swappiness.
    pub swappiness: u32,
    /// Recent cost of reclaiming anonymous pages, decayed (Linux `anon_cost`).
    pub anon_cost: u64,
    /// Recent cost of reclaiming file pages, decayed.
    pub file_cost: u64,
    /// Enough cold page cache (Linux `cache_trim_mode`).
    pub cache_trim_mode: bool,
    /// Hardly any page cache left (Linux `file_is_tiny`).
    pub file_is_tiny: bool,
}

/// How anonymous memory and page cache share the pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanBalance {
    /// Both kinds get all of it.
    Equal,
    /// Each kind gets a share.
    Fract {
        /// Share of anonymous memory.
        anon: u64,
        /// Share of page cache.
        file: u64,
        /// The whole.
        denominator: u64,
    },
    /// Only anonymous memory is scanned.
    Anon,
    /// Only page cache is scanned.
    File,
}

impl ScanBalance {
    /// Shares of anonymous memory and page cache, each as (numerator, denominator).
    fn shares(self) -> [(u64, u64); 2] {
        match self {
            ScanBalance::Equal => [(1, 1), (1, 1)],
            ScanBalance::Fract { anon, file, denominator } => {
                [(anon, denominator), (file, denominator)]
            }
            ScanBalance::Anon => [(1, 1), (0, 1)],
            ScanBalance::File => [(0, 1), (1, 1)],
        }
    }

    /// Whether one of the kinds gets less than with `other`.
    pub(crate) fn spares(self, other: ScanBalance) -> bool {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let is_less =
            |((part, of), (other, of_other))| product(part, of_other) < product(other, of);
        self.shares().into_iter().zip(other.shares()).any(is_less)
    }

    /// Whether scan targets can be computed from it.
    pub(crate) fn is_possible(self) -> bool {
        match self {
            ScanBalance::Equal | ScanBalance::Anon | ScanBalance::File => true,
            ScanBalance::Fract { anon, file, denominator } => {
                let whole = 1..=u64::from(u32::MAX);
                let within = anon.max(file) <= denominator;
                whole.contains(&denominator) && within && anon + file > 0
            }
        }
    }
}
