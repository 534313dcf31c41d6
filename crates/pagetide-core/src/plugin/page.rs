//! Page policies: how pages age, and the facts for the decision.
//!
//! Linux: `folio_check_references`, `shrink_active_list`, `folio_mark_accessed`,
//! `workingset_refault`, `inactive_is_low` and `get_scan_count` (6.1) each answer one question of
//! [`PagePolicy`]. Each question includes the kernel's answer as `linux` (under an older variant of
//! policy `lru`, the answer of that older kernel). A policy without an opinion returns this answer,
//! as the default methods of the trait do.
//!
//! The policy is not asked when a page is accessed through a mapping: the processor only sets a
//! bit, and reclaim finds the bit later.
//!
//! Invariant: a policy only reads the machine; it changes only the mark of a page and its own
//! state.

use super::group::GroupView;
use crate::digest::Digest;
use crate::units::Pfn;
use core::fmt;

/// A policy that decides how pages age.
pub trait PagePolicy: fmt::Debug + Send + Sync {
    /// The first list of a page that is new in memory. `page.refault` says whether it was in memory
    /// before. Its mark is 0.
    fn on_new(&mut self, _page: &mut PageView<'_>, linux: InitialList) -> InitialList {
        linux
    }

    /// Whether to activate a page that a system call has read or written, or that was accessed
    /// through a mapping that is now being removed. A page that is already active, or unevictable,
    /// does not change.
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

    /// Whether the inactive list of one kind of pages is so short that reclaim scans the active
    /// list.
    fn inactive_is_low(&self, _sizes: &ListSizes, linux: bool) -> bool {
        linux
    }

    /// How anonymous memory and page cache share the pressure on one group. Not called if nothing
    /// can be swapped.
    fn balance(&mut self, _pressure: &ScanPressure<'_>, linux: ScanBalance) -> ScanBalance {
        linux
    }

    /// Hashes all state that a later answer can depend on, except marks. A policy without state
    /// does nothing here.
    fn digest(&self, digest: &mut Digest);
}

/// Facts about a page. A huge page counts as one page here.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PageView<'m> {
    /// The policy's own number for this page, kept until the page leaves memory. It starts at 0,
    /// moves with the page, and is part of the machine's digest.
    pub mark: u8,
    /// Its frame.
    pub frame: Pfn,
    /// The group that the page is charged to.
    pub group: GroupView<'m>,
    /// Whether it is page cache; otherwise it is anonymous memory.
    pub is_file: bool,
    /// Whether it is on an active list or will be put on one.
    pub is_active: bool,
    /// 1; 512 for a huge page.
    pub nr_pages: u64,
    /// Number of mappings that map it.
    pub mapcount: u16,
    /// Number of mappings through which it was used since the last check by reclaim. Set for
    /// [`PagePolicy::judge`] and [`PagePolicy::stays_active`].
    pub nr_references: u32,
    /// Whether one of these mappings is executable.
    pub executable: bool,
    /// Whether an earlier scan found it referenced (Linux `PG_referenced`).
    pub referenced: bool,
    /// Whether it must be written before it can be freed.
    pub dirty: bool,
    /// Whether it was active when it was deactivated or reclaimed (Linux `PG_workingset`).
    pub workingset: bool,
    /// Set if the page was reclaimed and has come back. For [`PagePolicy::on_new`].
    pub refault: Option<Refault>,
}

/// Facts about a page that came back, from its shadow entry (Linux mm/workingset.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refault {
    /// Number of pages that were reclaimed or activated while it was out of memory.
    pub distance: u64,
    /// Number of pages that it competes with. If the distance is not larger than this, the page
    /// would have stayed in memory, had all these pages been part of its kind's inactive list.
    pub workingset_size: u64,
    /// Whether it was active when it was reclaimed.
    pub workingset: bool,
}

/// First list of a new page.
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
    /// Reclaim the page: free it, or write it first.
    Reclaim,
    /// Reclaim the page if it need not be written.
    ReclaimClean,
    /// Move it to the head of the inactive list.
    Keep,
    /// Move it to the head of the active list.
    Activate,
}

/// Sizes of the lists of one kind of pages on one node, for a group and its descendants; for the
/// root, the sizes of the node's lists.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ListSizes {
    /// Whether the pages are page cache; otherwise they are anonymous memory.
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
    /// The group to reclaim from.
    pub group: GroupView<'m>,
    /// Priority in the group's plan.
    pub priority: i8,
    /// Effective swappiness.
    pub swappiness: u32,
    /// Recent cost of reclaiming anonymous pages, decayed (Linux `anon_cost`).
    pub anon_cost: u64,
    /// Recent cost of reclaiming file pages, decayed.
    pub file_cost: u64,
    /// Whether there is enough cold page cache (Linux `cache_trim_mode`).
    pub cache_trim_mode: bool,
    /// Whether hardly any page cache is left (Linux `file_is_tiny`).
    pub file_is_tiny: bool,
}

/// How anonymous memory and page cache share the pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanBalance {
    /// Both kinds get the full pressure.
    Equal,
    /// Each kind gets a share of the pressure.
    Fract {
        /// Share of anonymous memory.
        anon: u64,
        /// Share of page cache.
        file: u64,
        /// The whole, of which `anon` and `file` are shares.
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

    /// Whether one of the kinds gets a smaller share than with `other`.
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
