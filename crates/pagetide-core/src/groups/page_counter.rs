//! A hierarchical counter of pages, with a limit at every level.
//!
//! Linux: `struct page_counter` (mm/page_counter.c). A charge counts in its group and in every
//! ancestor; it is refused if one of them would exceed its limit. A counter also has the group's
//! protection from reclaim (`min`, `low`). It tells its parent how much of this protection is in
//! use, so that the parent can divide its own protection among its children.
//!
//! Invariant: a group's usage is the sum of its own pages, its children's usage, and the pages in
//! per-CPU stocks for it; `children_min_usage` is the sum of its children's `min(usage, min)`.

use crate::units::digest::State;
use crate::units::page_size::PageSize;

/// No limit: more pages than any machine has (Linux `PAGE_COUNTER_MAX` with pages of 4 KiB). This
/// number is used for every page size.
pub const UNLIMITED: u64 = PageSize::Kib4.counter_max();

/// One level of a counter, in pages.
#[derive(Clone, Debug, PartialEq, Eq, State)]
pub struct PageCounter {
    /// Pages charged to the group and its descendants.
    pub usage: u64,
    /// The hard limit.
    pub max: u64,
    /// Above this number of pages, tasks are throttled (version 2).
    pub high: u64,
    /// Pages that are never reclaimed, as set.
    pub min: u64,
    /// Pages that are reclaimed last, as set.
    pub low: u64,
    /// The part of `min` that the ancestors grant, computed during reclaim.
    pub emin: u64,
    /// The part of `low` that the ancestors grant.
    pub elow: u64,
    /// Sum of the children's `min(usage, min)`.
    pub children_min_usage: u64,
    /// Sum of the children's `min(usage, low)`.
    pub children_low_usage: u64,
    /// Highest usage so far (Linux `watermark`; `memory.peak`).
    pub peak: u64,
    /// Number of charges refused at this level.
    pub failcnt: u64,
}

impl Default for PageCounter {
    fn default() -> Self {
        PageCounter {
            usage: 0,
            max: UNLIMITED,
            high: UNLIMITED,
            min: 0,
            low: 0,
            emin: 0,
            elow: 0,
            children_min_usage: 0,
            children_low_usage: 0,
            peak: 0,
            failcnt: 0,
        }
    }
}

impl PageCounter {
    /// Pages that can still be charged.
    pub const fn margin(&self) -> u64 {
        self.max.saturating_sub(self.usage)
    }

    /// The used parts of `min` and of `low`, which count against the parent's protection.
    pub(crate) fn protected_usage(&self) -> [u64; 2] {
        self.protected_part(self.usage)
    }

    /// The parts of `min` and of `low` that `usage` pages use.
    pub(crate) fn protected_part(&self, usage: u64) -> [u64; 2] {
        [usage.min(self.min), usage.min(self.low)]
    }

    /// Updates the parent after a child's protected usage changed from `old` to `new`.
    pub(crate) fn child_protection_changed(&mut self, old: [u64; 2], new: [u64; 2]) {
        self.children_min_usage = self.children_min_usage - old[0] + new[0];
        self.children_low_usage = self.children_low_usage - old[1] + new[1];
    }
}

/// Effective protection of a group, if its parent grants `parent_effective` pages in total (Linux
/// `effective_protection`).
///
/// `siblings_protected` is the protected usage of all children together, including this one.
pub(crate) const fn effective_protection(
    usage: u64,
    setting: u64,
    parent_effective: u64,
    siblings_protected: u64,
) -> u64 {
    let protected = if usage < setting { usage } else { setting };
    if siblings_protected > parent_effective {
        // The children claim more than the parent has, so each gets a share in proportion to its
        // use.
        return (protected as u128 * parent_effective as u128 / siblings_protected as u128) as u64;
    }
    protected
}

/// The effective protection with mount option `memory_recursiveprot`: the children share the
/// unclaimed part of the parent's protection in proportion to their unprotected pages.
pub(crate) const fn recursive_protection(
    usage: u64,
    setting: u64,
    parent_effective: u64,
    siblings_protected: u64,
    parent_usage: u64,
) -> u64 {
    let own = effective_protection(usage, setting, parent_effective, siblings_protected);
    let protected = if usage < setting { usage } else { setting };
    if parent_effective <= siblings_protected
        || parent_usage <= siblings_protected
        || usage <= protected
    {
        return own;
    }
    let unclaimed = (parent_effective - siblings_protected) as u128;
    let share = unclaimed * (usage - protected) as u128;
    own + (share / (parent_usage - siblings_protected) as u128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_is_shared_in_proportion_to_use() {
        assert_eq!(effective_protection(100, 50, 1000, 50), 50, "the parent has enough");
        assert_eq!(effective_protection(30, 50, 1000, 30), 30, "no more than is used");
        // Two children claim 100 and 300 of a parent that grants 200.
        assert_eq!(effective_protection(100, 100, 200, 400), 50);
        assert_eq!(effective_protection(400, 300, 200, 400), 150);
        assert_eq!(effective_protection(100, 100, 0, 400), 0, "the parent grants nothing");
    }

    #[test]
    fn with_recursion_unclaimed_protection_is_shared_by_usage() {
        // A parent with 300 pages grants 200, of which one child claims 50; the rest is 150 of 250.
        assert_eq!(recursive_protection(200, 50, 200, 50, 300), 50 + 90);
        assert_eq!(recursive_protection(100, 0, 200, 50, 300), 60);
        assert_eq!(recursive_protection(50, 50, 200, 50, 300), 50, "all of it is claimed");
        assert_eq!(recursive_protection(100, 100, 200, 400, 500), 50, "nothing is left over");
        assert_eq!(effective_protection(100, 0, 200, 50), 0, "without recursion");
    }
}
