//! Sets of policies: how a kernel release differs from Linux 6.1.
//!
//! A set names the variants of the policies ([`crate::config`]) that together describe a release;
//! all other policies are as in Linux 6.1. `[policy] kernel` of a scenario chooses a set, and
//! `pagetide verify` chooses the set of the kernel that it compares with.
//!
//! Invariant: a set names at most one variant of a policy, and no default variant.

use super::{
    BackgroundCompaction, CgroupVersion, CompactionCapture, CompactionPolicy, DirectReclaimPolicy,
    FallbackPolicy, FaultPolicy, GroupWalkPolicy, KswapdPolicy, LruPolicy, MglruRules, PcpPolicy,
    PolicyChoice, SchedulerPolicy, SlabAccounting, SlubPolicy, SwapReadaheadPolicy, Sysctl,
    WatermarkPolicy, ZeroPagesPolicy, ZsmallocPolicy, ZswapPolicy,
};
use core::fmt;

/// A kernel release: major, minor and patch number.
type Release = (u32, u32, u32);

/// The parts of a set.
struct SetParts {
    name: &'static str,
    /// The release.
    since: Release,
    doc: &'static str,
    choices: &'static [PolicyChoice],
}

macro_rules! sets {
    ($($(#[doc = $doc:literal])+ $set:ident $(($default:ident))? = $name:literal, since $since:expr
        $(, $policy:ident($variant:expr))*;)+) => {
        /// A kernel release, described by policies.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
        pub enum PolicySet {
            $( $(#[doc = $doc])+ $(#[$default])? $set, )+
        }

        impl PolicySet {
            /// All sets, oldest first.
            pub const ALL: &'static [PolicySet] = &[$(PolicySet::$set),+];

            const fn parts(self) -> SetParts {
                match self {
                    $( PolicySet::$set => SetParts {
                        name: $name,
                        since: $since,
                        doc: concat!($($doc),+).trim_ascii(),
                        choices: &[$(PolicyChoice::$policy($variant)),*],
                    }, )+
                }
            }
        }
    };
}

sets! {
    /// Linux 2.6.37: no compaction in the background, no memory accounting of slabs, and dirty
    /// pages are written by reclaim and by the tasks that dirty them.
    Linux2637 = "linux-2.6.37", since (2, 6, 37),
        Watermarks(WatermarkPolicy::Derived), PerCpuLists(PcpPolicy::Linux2637),
        Kswapd(KswapdPolicy::Linux2637), DirectReclaim(DirectReclaimPolicy::Linux2637),
        Lru(LruPolicy::Linux2637), Cgroup(CgroupVersion::V1),
        BackgroundCompaction(BackgroundCompaction::Off), Compaction(CompactionPolicy::Linux45),
        SlabAccounting(SlabAccounting::Off), Slub(SlubPolicy::Linux55),
        SwapReadahead(SwapReadaheadPolicy::Linux33), Faults(FaultPolicy::Linux50);
    /// Linux 3.3: global reclaim walks the lists of all groups, and does not write dirty pages of
    /// files while the pressure is mild.
    Linux33 = "linux-3.3", since (3, 3, 0),
        Watermarks(WatermarkPolicy::Derived), PerCpuLists(PcpPolicy::Linux2637),
        Kswapd(KswapdPolicy::Linux33), DirectReclaim(DirectReclaimPolicy::Linux33),
        Lru(LruPolicy::Linux33), Cgroup(CgroupVersion::V1), Fallback(FallbackPolicy::Linux54),
        BackgroundCompaction(BackgroundCompaction::Off), Compaction(CompactionPolicy::Linux45),
        SlabAccounting(SlabAccounting::Off), Slub(SlubPolicy::Linux55),
        SwapReadahead(SwapReadaheadPolicy::Linux33), Faults(FaultPolicy::Linux50);
    /// Linux 3.16: as linux-4.5, with groups of version 1. Made of parts of these two kernels' sets;
    /// no case was recorded on a kernel between 3.4 and 4.4.
    Linux316 = "linux-3.16", since (3, 16, 0),
        Watermarks(WatermarkPolicy::Derived), PerCpuLists(PcpPolicy::Linux2637),
        Kswapd(KswapdPolicy::Linux45), DirectReclaim(DirectReclaimPolicy::Linux59),
        Lru(LruPolicy::Linux45), Cgroup(CgroupVersion::V1),
        Fallback(FallbackPolicy::Linux54), BackgroundCompaction(BackgroundCompaction::Kswapd),
        Compaction(CompactionPolicy::Linux45), SlabAccounting(SlabAccounting::PerGroupCaches),
        Slub(SlubPolicy::Linux55), SwapReadahead(SwapReadaheadPolicy::Linux45),
        Faults(FaultPolicy::Linux50);
    /// Linux 4.5: kswapd has a goal for each zone, and compacts; refaults of page cache are tested;
    /// each group has caches of its own.
    Linux45 = "linux-4.5", since (4, 5, 0),
        Watermarks(WatermarkPolicy::Derived), PerCpuLists(PcpPolicy::Linux2637),
        Kswapd(KswapdPolicy::Linux45), DirectReclaim(DirectReclaimPolicy::Linux59),
        Lru(LruPolicy::Linux45), Fallback(FallbackPolicy::Linux54),
        BackgroundCompaction(BackgroundCompaction::Kswapd), Compaction(CompactionPolicy::Linux45),
        SlabAccounting(SlabAccounting::PerGroupCaches), Slub(SlubPolicy::Linux55),
        SwapReadahead(SwapReadaheadPolicy::Linux45), Faults(FaultPolicy::Linux50);
    /// Linux 4.6: as linux-4.5, but kcompactd compacts, and vm.watermark_scale_factor sets the
    /// distance of the watermarks.
    Linux46 = "linux-4.6", since (4, 6, 0),
        PerCpuLists(PcpPolicy::Linux2637), Fallback(FallbackPolicy::Linux54),
        Kswapd(KswapdPolicy::Linux45), DirectReclaim(DirectReclaimPolicy::Linux59),
        Lru(LruPolicy::Linux45),
        Compaction(CompactionPolicy::Linux45), SlabAccounting(SlabAccounting::PerGroupCaches),
        Slub(SlubPolicy::Linux55), SwapReadahead(SwapReadaheadPolicy::Linux45),
        Faults(FaultPolicy::Linux50);
    /// Linux 4.8: nodes have LRU lists, and reclaim has one goal for a node. Made of parts of
    /// linux-4.6 and linux-5.4; no case was recorded on a kernel between 4.7 and 5.3.
    Linux48 = "linux-4.8", since (4, 8, 0),
        PerCpuLists(PcpPolicy::Linux2637), Fallback(FallbackPolicy::Linux54),
        DirectReclaim(DirectReclaimPolicy::Linux59),
        Lru(LruPolicy::Linux54), Compaction(CompactionPolicy::Linux58),
        CompactionCapture(CompactionCapture::Off),
        SlabAccounting(SlabAccounting::PerGroupCaches), Slub(SlubPolicy::Linux55),
        SwapReadahead(SwapReadaheadPolicy::Linux45), Faults(FaultPolicy::Linux50);
    /// Linux 5.4: as linux-4.8, but the watermarks of a fragmented zone are boosted, and the parent
    /// of a removed group takes over its slab caches.
    Linux54 = "linux-5.4", since (5, 4, 0),
        PerCpuLists(PcpPolicy::Linux2637), Fallback(FallbackPolicy::Linux54),
        DirectReclaim(DirectReclaimPolicy::Linux59),
        Lru(LruPolicy::Linux54), Compaction(CompactionPolicy::Linux58),
        SlabAccounting(SlabAccounting::PerGroupCachesReparent), Slub(SlubPolicy::Linux55);
    /// Linux 5.8: the cost of reclaim decides between page cache and anonymous memory.
    Linux58 = "linux-5.8", since (5, 8, 0),
        PerCpuLists(PcpPolicy::Linux2637), DirectReclaim(DirectReclaimPolicy::Linux59),
        Lru(LruPolicy::Linux58),
        Compaction(CompactionPolicy::Linux58),
        SlabAccounting(SlabAccounting::PerGroupCachesReparent), Slub(SlubPolicy::Linux55);
    /// Linux 5.9: new anonymous pages start on the inactive list and refault, groups share the slab
    /// caches, and kcompactd also compacts without a request.
    Linux59 = "linux-5.9", since (5, 9, 0),
        PerCpuLists(PcpPolicy::Linux2637), DirectReclaim(DirectReclaimPolicy::Linux59),
        Slub(SlubPolicy::Linux55);
    /// Every policy's default.
    Linux61(default) = "linux-6.1", since (6, 1, 0);
    /// Linux 6.12: references through mappings with random advice are ignored and zsmalloc has
    /// longer zspages (since 6.3), a retried fault counts once (6.4), the scheduler is EEVDF (6.6),
    /// per-CPU lists adapt to their CPU (6.7), tasks in direct reclaim share one position in the
    /// walk over groups and zswap has a list for each group (6.8), a fallback takes only the pages
    /// it needs (6.10), pages of zeroes are not written to swap (6.12). With lru = mglru,
    /// generations are those of 6.12.
    Linux612 = "linux-6.12", since (6, 12, 0),
        PerCpuLists(PcpPolicy::Linux612), Scheduler(SchedulerPolicy::Linux612),
        Lru(LruPolicy::Linux612), Faults(FaultPolicy::Linux612),
        Fallback(FallbackPolicy::Linux612), GroupWalk(GroupWalkPolicy::Shared),
        Zswap(ZswapPolicy::Linux612), MglruRules(MglruRules::Linux612),
        Zsmalloc(ZsmallocPolicy::Linux612), ZeroPages(ZeroPagesPolicy::Linux612);
}

impl PolicySet {
    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        self.parts().name
    }

    /// The set with this name.
    pub fn find(name: &str) -> Option<PolicySet> {
        PolicySet::ALL.iter().copied().find(|set| set.name() == name)
    }

    /// Its documentation.
    pub const fn doc(self) -> &'static str {
        self.parts().doc
    }

    /// The variants that differ from Linux 6.1.
    pub const fn choices(self) -> &'static [PolicyChoice] {
        self.parts().choices
    }

    /// Whether the release has pressure stall information (since 4.20). In the simulator every
    /// machine has it.
    pub fn has_psi(self) -> bool {
        self.parts().since >= (4, 20, 0)
    }

    /// Control files whose mechanism the release does not have yet, with the value that turns the
    /// mechanism off.
    pub fn switched_off(self) -> &'static [(Sysctl, u64)] {
        let since = self.parts().since;
        if since >= (5, 0, 0) {
            &[]
        } else if since >= (3, 15, 0) {
            &[(Sysctl::WatermarkBoostFactor, 0)]
        } else {
            &[(Sysctl::WatermarkBoostFactor, 0), (Sysctl::FaultAroundBytes, 4096)]
        }
    }

    /// The newest set that is not newer than a release such as `6.12.95+deb12-cloud-amd64`; the
    /// oldest set if all are newer.
    pub fn of_release(release: &str) -> PolicySet {
        let release = parse_release(release);
        let sets = PolicySet::ALL.iter().copied();
        let known = sets.rev().find(|set| set.parts().since <= release);
        known.unwrap_or(PolicySet::ALL[0])
    }
}

fn parse_release(release: &str) -> Release {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
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
        for &set in PolicySet::ALL {
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
            ("5.15.0-119-generic", PolicySet::Linux59),
            ("5.8.18", PolicySet::Linux58),
            ("5.4.286", PolicySet::Linux54),
            ("4.19.0", PolicySet::Linux48),
            ("4.7.10", PolicySet::Linux46),
            ("4.5.0", PolicySet::Linux45),
            ("3.10.0-1160.el7", PolicySet::Linux33),
            ("4.1.27", PolicySet::Linux316),
            ("2.6.39", PolicySet::Linux2637),
            ("2.6.16.60", PolicySet::Linux2637),
            ("", PolicySet::Linux2637),
        ] {
            assert_eq!(PolicySet::of_release(release), set, "{release}");
        }
    }
}
