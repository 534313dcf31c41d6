//! Sets of policies: how a kernel release differs from Linux 6.1.
//!
//! A set names the variants of the policies ([`crate::config`]) that together describe a release;
//! all other policies are as in Linux 6.1. `[policy] kernel` of a scenario chooses a set, and
//! `pagetide verify` chooses the set of the kernel that it compares with.
//!
//! Invariant: a set names at most one variant of a policy, and no default variant.

use super::{FallbackPolicy, FaultPolicy, GroupWalkPolicy, LruPolicy, PolicyChoice};
use core::fmt;

/// A kernel release, described by policies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum PolicySet {
    /// Linux 6.1: every policy's default.
    #[default]
    Linux61,
    /// Linux 6.12.
    Linux612,
}

impl PolicySet {
    /// All sets, oldest first.
    pub const ALL: [PolicySet; 2] = [PolicySet::Linux61, PolicySet::Linux612];

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            PolicySet::Linux61 => "linux-6.1",
            PolicySet::Linux612 => "linux-6.12",
        }
    }

    /// The set with this name.
    pub fn find(name: &str) -> Option<PolicySet> {
        PolicySet::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Its documentation.
    pub const fn doc(self) -> &'static str {
        match self {
            PolicySet::Linux61 => "Every policy's default.",
            PolicySet::Linux612 => {
                "Linux 6.12: references through mappings with random advice are ignored (since 6.3), a retried fault \
                 counts once (6.4), tasks in direct reclaim share one position in the walk over groups (6.8), a \
                 fallback takes only the pages it needs (6.10)."
            }
        }
    }

    /// The variants that differ from Linux 6.1.
    pub const fn choices(self) -> &'static [PolicyChoice] {
        match self {
            PolicySet::Linux61 => &[],
            PolicySet::Linux612 => &[
                PolicyChoice::Lru(LruPolicy::Linux612),
                PolicyChoice::Faults(FaultPolicy::Linux612),
                PolicyChoice::Fallback(FallbackPolicy::Linux612),
                PolicyChoice::GroupWalk(GroupWalkPolicy::Shared),
            ],
        }
    }

    /// The newest set that is not newer than a release such as `6.12.95+deb12-cloud-amd64`; the
    /// oldest set if all are newer.
    pub fn of_release(release: &str) -> PolicySet {
        let mut numbers = release
            .split(|c: char| !c.is_ascii_digit())
            .map(|number| number.parse::<u32>().unwrap_or(0));
        let release = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        match release >= (6, 12) {
            true => PolicySet::Linux612,
            false => PolicySet::Linux61,
        }
    }
}

/// Prints the set's name.
impl fmt::Display for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn a_set_names_what_is_otherwise_and_once() {
        for set in PolicySet::ALL {
            assert_eq!(PolicySet::find(set.name()), Some(set));
            let policies: BTreeSet<_> =
                set.choices().iter().map(|choice| choice.policy()).collect();
            assert_eq!(policies.len(), set.choices().len(), "{set}");
            assert!(set.choices().iter().all(|choice| !choice.is_default()), "{set}");
        }
        assert_eq!(PolicySet::find("linux-6.11"), None);
    }

    #[test]
    fn a_release_has_the_newest_set_that_is_not_newer() {
        for (release, set) in [
            ("6.1.0-56-cloud-amd64", PolicySet::Linux61),
            ("6.11.10", PolicySet::Linux61),
            ("6.12.95+deb12-cloud-amd64", PolicySet::Linux612),
            ("7.0-rc1", PolicySet::Linux612),
            ("4.19.0", PolicySet::Linux61),
            ("", PolicySet::Linux61),
        ] {
            assert_eq!(PolicySet::of_release(release), set, "{release}");
        }
    }
}
