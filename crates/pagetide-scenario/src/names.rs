//! The names that a scenario may use for knobs, policies and kinds: one table each, with what
//! they stand for. The loader checks against them, the schema and the documentation are made
//! from them, and a world that meets another name has a bug.

mod caches;
mod knobs;

use crate::op::Advice;

pub use caches::{cache_and_file, find_sysctl, kernel_caches, CACHE_CONTROLS};
pub use knobs::{find_knob, listed, Knob, KnobForm, GROUP_CONTROLS, SYSCTLS};

/// A closed set of names.
pub trait Named: Copy + Sized + 'static {
    /// What one of them is called in a message, for example `disk model`.
    const WHAT: &'static str;
    /// All of them, in the order of the documentation.
    const ALL: &'static [Self];
    /// Its name in a scenario.
    fn name(self) -> &'static str;
    /// What it stands for.
    fn doc(self) -> &'static str;
    /// The one called `name`.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }
}

macro_rules! names {
    (
        $(#[doc = $enum_doc:literal])+
        $what:literal $name:ident {
            $( $(#[doc = $doc:literal])+ $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[doc = $enum_doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl $crate::names::Named for $name {
            const WHAT: &'static str = $what;
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn name(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }

            fn doc(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),+), )+ }
            }
        }
    };
}

pub(crate) use names;

names! {
    /// How the low and high watermarks follow from what the user sets.
    "policy" WatermarksPolicy {
        /// Until Linux 4.5: low = 1.25 min, high = 1.5 min.
        Derived = "derived",
        /// Since Linux 4.6: low and high are min plus one and two steps of
        /// vm.watermark_scale_factor.
        ScaleFactor = "scale-factor",
        /// The patch of January 2011: vm.wmark_min_kbytes, vm.wmark_low_kbytes and
        /// vm.wmark_high_kbytes each set their mark.
        Apart = "apart",
    }
}

names! {
    /// How kswapd balances a node.
    "policy" KswapdPolicy {
        /// Node-wide balancing with boost and failure count.
        Linux61 = "linux-6.1",
        /// Linux 4.5 and 4.6: zone by zone, at the order asked for, each up to its high mark.
        Linux45 = "linux-4.5",
        /// Zone by zone, with naps at congestion, as in January 2011.
        Linux2637 = "linux-2.6.37",
    }
}

names! {
    /// Who makes blocks of high order in the background.
    "policy" BackgroundCompactionPolicy {
        /// kcompactd, woken before kswapd's nap, so that requests that keep coming cannot starve it
        /// (since Linux 4.6).
        KcompactdEarly = "kcompactd-early",
        /// kcompactd, woken when kswapd goes to sleep for good: the patch of March 2016.
        Kcompactd = "kcompactd",
        /// kswapd, in the middle of its rounds, as up to Linux 4.5 (with kswapd linux-4.5).
        Kswapd = "kswapd",
        /// Nobody.
        Off = "off",
    }
}

names! {
    /// How compaction is judged worth while, how it scans, and when an allocation resorts to it.
    "policy" CompactionPolicy {
        /// Linux 6.1.
        Linux61 = "linux-6.1",
        /// Linux 4.5: asynchronous before every reclaim, synchronous after it, done only if the low
        /// mark is met as well.
        Linux45 = "linux-4.5",
    }
}

names! {
    /// Whether a task that compacts for itself takes the block it has made before it is free.
    "policy" CompactionCapturePolicy {
        /// It does (since Linux 5.1).
        On = "on",
        /// It competes for it with everybody.
        Off = "off",
    }
}

names! {
    /// Who pays for small objects of the kernel.
    "policy" SlabAccountingPolicy {
        /// Caches are shared, and every object has an owner (since Linux 5.9).
        PerObject = "per-object",
        /// Each group has caches of its own, which hold it when it is gone (Linux 3.8 to 5.2).
        PerGroupCaches = "per-group-caches",
        /// The same, and its parent takes them over (5.3 to 5.8).
        PerGroupCachesReparent = "per-group-caches-reparent",
        /// Nobody.
        Off = "off",
    }
}

names! {
    /// Which slab of a cache is used next.
    "policy" SlubPolicy {
        /// Chains of slabs a CPU by number, queues a node.
        Linux61 = "linux-6.1",
        /// Chains by free objects (up to Linux 5.15).
        Linux55 = "linux-5.5",
        /// No chains; the fullest partial slab (Pagetide's).
        Fullest = "fullest",
        /// No chains; the partial slab with the lowest address (Pagetide's).
        Lowest = "lowest",
    }
}

names! {
    /// How an object remembers its owner.
    "policy" SlabOwnersPolicy {
        /// By a pointer, in a vector that is an object itself (Linux).
        Pointers = "pointers",
        /// By an id of two bytes, at the end of the slab where there is room (Pagetide's).
        Ids = "ids",
    }
}

names! {
    /// Owners for which a CPU has bytes in advance.
    "policy" ObjcgStockPolicy {
        /// As Linux.
        One = "1",
        /// Four.
        Four = "4",
        /// Eight.
        Eight = "8",
        /// Sixteen.
        Sixteen = "16",
        /// Sixty-four.
        SixtyFour = "64",
    }
}

names! {
    /// When anonymous memory gets huge pages (transparent_hugepage/enabled).
    "policy" ThpPolicy {
        /// Wherever it can.
        Always = "always",
        /// Where madvise asked for it.
        Madvise = "madvise",
        /// Nowhere.
        Never = "never",
    }
}

names! {
    /// What a fault does for a huge page that is not there (transparent_hugepage/defrag).
    "policy" ThpDefragPolicy {
        /// Reclaims and compacts, once.
        Always = "always",
        /// Wakes the daemons.
        Defer = "defer",
        /// Reclaims and compacts where madvise asked for it, wakes the daemons elsewhere.
        DeferMadvise = "defer+madvise",
        /// Reclaims and compacts where madvise asked for it, does nothing elsewhere.
        Madvise = "madvise",
        /// Does nothing.
        Never = "never",
    }
}

names! {
    /// How an allocating task reclaims for itself.
    "policy" DirectReclaimPolicy {
        /// Node-wide, with throttling when kswapd cannot keep up.
        Linux61 = "linux-6.1",
        /// Zone by zone, with naps at congestion, as in January 2011.
        Linux2637 = "linux-2.6.37",
        /// As 2.6.37, with unconditional waits and without draining per-CPU lists.
        Linux2635 = "linux-2.6.35",
    }
}

names! {
    /// How large the per-CPU lists of free pages are.
    "policy" PerCpuListsPolicy {
        /// The low mark shared out among the CPUs, less during reclaim (5.14 and later).
        Linux61 = "linux-6.1",
        /// Six batches of at most 31 pages (before 5.14).
        Linux2637 = "linux-2.6.37",
    }
}

names! {
    /// How pages age, and how page cache and anonymous memory share the pressure.
    "policy" LruPolicy {
        /// New anonymous pages are inactive, their refaults are judged, costs decide the balance.
        Linux61 = "linux-6.1",
        /// Linux 3.15 to 5.7: new anonymous pages are active and stay so at the first reference; only
        /// page cache has refaults; what was scanned and rotated decides, and cold page cache goes
        /// first.
        Linux54 = "linux-5.4",
        /// Before: no refaults, no preference for cold page cache.
        Linux33 = "linux-3.3",
    }
}

names! {
    /// How global reclaim heeds soft limits (memory.soft_limit_in_bytes).
    "policy" SoftLimitPolicy {
        /// Since Linux 2.6.31, cgroup version 1: trees of groups by excess, a reclaim stage of
        /// their own before the regular one.
        Tree = "tree",
        /// The patch of January 2012: a group over its soft limit, or below one, is scanned at
        /// priority 0 in the one regular walk.
        Hierarchical = "hierarchical",
        /// The rework of 2013: only groups over their limit first, everybody only if that scanned
        /// nothing.
        TwoPass = "two-pass",
        /// Pagetide's: the priority falls with the relative excess.
        Graded = "graded",
        /// Soft limits are not heeded.
        Off = "off",
    }
}

names! {
    /// Whether the group whose limit raised the pressure counts as over its soft limit.
    "policy" SoftLimitRootPolicy {
        /// It does not, as agreed in review.
        Excluded = "excluded",
        /// It does, as posted.
        Included = "included",
    }
}

names! {
    /// How tasks that reclaim for themselves press groups over their soft limits.
    "policy" SoftLimitDirectPolicy {
        /// As kswapd does.
        Full = "full",
        /// Only two priorities harder than the others.
        Bounded = "bounded",
        /// Not at all: only kswapd heeds soft limits.
        Ignored = "ignored",
    }
}

names! {
    /// What a soft limit is on one node.
    "policy" SoftLimitNodePolicy {
        /// The whole limit against the group's whole size.
        Global = "global",
        /// Its share: soft limit x node's size / group's size, as the author
        /// of the patch proposed.
        Local = "local",
    }
}

names! {
    /// What memory.global_shrink_priority does.
    "policy" ShrinkPriorityPolicy {
        /// As posted, but negative values are refused, and a descent that freed nothing is
        /// repeated without it.
        Guarded = "guarded",
        /// The patch of December 2019 as it was.
        Posted = "posted",
        /// Guarded, and a group's value is the least on its path to the root.
        Hierarchical = "hierarchical",
        /// Nothing.
        Off = "off",
    }
}

names! {
    /// How a reclaimer walks the groups.
    "policy" GroupWalkPolicy {
        /// Linux 5.4 to 6.7: every reclaimer visits every group.
        Whole = "whole",
        /// Since 6.8: tasks that reclaim for themselves share a remembered position and stop when
        /// they have enough.
        Shared = "shared",
    }
}

names! {
    /// Presets of disks; the simulator's cost model has their figures.
    "disk model" DiskModel {
        /// A rotating disk: seeks, one request at a time.
        Rotating = "rotating",
        /// A SATA solid-state disk.
        Ssd = "ssd",
        /// An NVMe solid-state disk.
        Nvme = "nvme",
        /// No latency and no limit of bandwidth.
        Instant = "instant",
    }
}

names! {
    /// What a name stands for.
    "kind of name" NameKind {
        /// An empty file on the memory file system (tmpfs).
        File = "file",
        /// Nothing: it is looked for on the first disk, which has no such file.
        Missing = "missing",
    }
}

names! {
    /// Which page comes next.
    "order" OrderKind {
        /// Page 0, 1, 2, and so on.
        Sequential = "sequential",
        /// Each page once: page = i * 7368787 mod pages.
        Scattered = "scattered",
        /// Uniform draws.
        Random = "random",
        /// Zipf-distributed draws: page r * 7368787 mod pages for the rank r.
        Zipf = "zipf",
    }
}

names! {
    /// Advice on a mapping.
    "advice" AdviceKind {
        /// Read-ahead and fault-around as configured.
        Normal = "normal",
        /// MADV_RANDOM: one page a fault.
        Random = "random",
        /// MADV_SEQUENTIAL.
        Sequential = "sequential",
    }
}

names! {
    /// Advice on anonymous memory.
    "advice" HugeAdviceKind {
        /// As policy thp says.
        Normal = "normal",
        /// MADV_HUGEPAGE: huge pages, if policy thp allows any.
        Huge = "huge",
        /// MADV_NOHUGEPAGE: none.
        NoHuge = "no-huge",
    }
}

impl From<AdviceKind> for Advice {
    fn from(kind: AdviceKind) -> Advice {
        match kind {
            AdviceKind::Normal => Advice::Normal,
            AdviceKind::Random => Advice::Random,
            AdviceKind::Sequential => Advice::Sequential,
        }
    }
}

impl From<HugeAdviceKind> for Advice {
    fn from(kind: HugeAdviceKind) -> Advice {
        match kind {
            HugeAdviceKind::Normal => Advice::Normal,
            HugeAdviceKind::Huge => Advice::Huge,
            HugeAdviceKind::NoHuge => Advice::NoHuge,
        }
    }
}

names! {
    /// What an attempt at a block of high order may do.
    "request" HighOrderRequest {
        /// GFP_KERNEL | __GFP_HIGH: sleep, reclaim, compact.
        Direct = "direct",
        /// GFP_NOWAIT | __GFP_HIGH: wake kswapd.
        Nowait = "nowait",
    }
}

names! {
    /// What an allocation of kernel memory may do.
    "request" KernelRequest {
        /// GFP_KERNEL: sleep, reclaim, compact.
        Kernel = "kernel",
        /// GFP_ATOMIC: wake kswapd, and use half of the reserve.
        Atomic = "atomic",
        /// GFP_NOWAIT: wake kswapd.
        Nowait = "nowait",
        /// GFP_KERNEL | __GFP_RECLAIMABLE: as kernel, among memory that a shrinker frees.
        Reclaimable = "reclaimable",
    }
}

names! {
    /// Zones of a node.
    "zone" ZoneName {
        /// Up to 16 MiB.
        Dma = "DMA",
        /// Up to 4 GiB.
        Dma32 = "DMA32",
        /// Above 4 GiB.
        Normal = "Normal",
        /// Movable pages only.
        Movable = "Movable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_come_back() {
        fn check<T: Named + PartialEq + std::fmt::Debug>() {
            let names: BTreeSet<&str> = T::ALL.iter().map(|one| one.name()).collect();
            assert_eq!(names.len(), T::ALL.len());
            for one in T::ALL {
                assert_eq!(T::from_name(one.name()), Some(*one));
                assert!(!one.doc().trim().is_empty());
            }
            assert_eq!(T::from_name("no such name"), None);
        }
        check::<WatermarksPolicy>();
        check::<KswapdPolicy>();
        check::<DirectReclaimPolicy>();
        check::<PerCpuListsPolicy>();
        check::<LruPolicy>();
        check::<SoftLimitPolicy>();
        check::<SoftLimitRootPolicy>();
        check::<SoftLimitDirectPolicy>();
        check::<SoftLimitNodePolicy>();
        check::<ShrinkPriorityPolicy>();
        check::<GroupWalkPolicy>();
        check::<DiskModel>();
        check::<crate::workload::WorkloadKind>();
        check::<OrderKind>();
        check::<AdviceKind>();
        check::<ZoneName>();
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b or c");
        for table in [SYSCTLS, GROUP_CONTROLS, CACHE_CONTROLS] {
            let names: BTreeSet<&str> = table.iter().map(|knob| knob.name).collect();
            assert_eq!(names.len(), table.len());
        }
    }
}
