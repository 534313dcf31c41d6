//! The closed sets of names in a scenario: one table each, with the meaning of every name. The
//! loader checks names against them, and the schema is generated from them. Policies and control
//! files are in the core ([`pagetide_core::config`]).

mod caches;
pub mod near;
pub mod takes;
pub mod unmodelled;

pub use caches::kernel_caches;
pub use pagetide_core::control::{cache_and_file, CacheControl};
pub use pagetide_core::swap::compressor::Compressor;

use crate::op::Advice;
use pagetide_core::frames::zone_type::{
    ZONE_DMA, ZONE_DMA32, ZONE_HIGHMEM, ZONE_MOVABLE, ZONE_NORMAL,
};

pub trait NameSet: Copy + Sized + 'static {
    /// Noun for a name of this set in messages, for example `disk model`.
    const WHAT: &'static str;
    /// All names, in the order of the documentation.
    const ALL: &'static [Self];
    /// Name in a scenario.
    fn name(self) -> &'static str;
    /// Description of the name.
    fn doc(self) -> &'static str;
    /// The value called `name`.
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

        impl $crate::names::NameSet for $name {
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

impl NameSet for Compressor {
    const WHAT: &'static str = "algorithm";
    const ALL: &'static [Self] = &Compressor::ALL;

    fn name(self) -> &'static str {
        Compressor::name(self)
    }

    fn doc(self) -> &'static str {
        Compressor::doc(self)
    }
}

names! {
    /// Object that a name refers to.
    "kind of name" NameKind {
        /// An empty file on the memory file system (tmpfs).
        File = "file",
        /// A name that does not exist: it is looked up on the first disk, which has no such file.
        Missing = "missing",
    }
}

names! {
    /// Which files or pipes stay.
    "pick" PickKind {
        /// Every Nth: with 1 in 8 the first, the ninth and so on.
        Evenly = "evenly",
        /// Random ones: each is drawn.
        Random = "random",
    }
}

names! {
    /// Effect of SIGTERM on a task.
    "effect of SIGTERM" SigtermEffect {
        /// The task ends at once.
        Exit = "exit",
        /// Nothing: as the first process of a container without a handler.
        Ignore = "ignore",
    }
}

names! {
    /// Order of the pages.
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
    /// Advice on a mapping of a file.
    "advice" AdviceKind {
        /// Read-ahead and fault-around as configured.
        Normal = "normal",
        /// MADV_RANDOM: a fault reads one page.
        Random = "random",
        /// MADV_SEQUENTIAL.
        Sequential = "sequential",
    }
}

names! {
    /// Advice on anonymous memory.
    "advice" HugeAdviceKind {
        /// Huge pages as policy thp allows.
        Normal = "normal",
        /// MADV_HUGEPAGE: huge pages, if policy thp allows any.
        Huge = "huge",
        /// MADV_NOHUGEPAGE: no huge pages.
        NoHuge = "no-huge",
    }
}

names! {
    /// Advice values of `madvise`.
    "advice" MadviseKind {
        /// MADV_NORMAL.
        Normal = "normal",
        /// MADV_RANDOM.
        Random = "random",
        /// MADV_SEQUENTIAL.
        Sequential = "sequential",
        /// MADV_HUGEPAGE.
        Huge = "huge",
        /// MADV_NOHUGEPAGE.
        NoHuge = "no-huge",
        /// MADV_POPULATE_READ: makes each page present by a read.
        PopulateRead = "populate-read",
        /// MADV_POPULATE_WRITE: makes each page present by a write, like MAP_POPULATE.
        PopulateWrite = "populate-write",
        /// MADV_WILLNEED: reads the pages of a file.
        WillNeed = "will-need",
        /// MADV_COLD: makes the pages the next to be reclaimed.
        Cold = "cold",
        /// MADV_PAGEOUT: reclaims the pages now.
        PageOut = "page-out",
        /// MADV_COLLAPSE: makes huge pages of the regions now.
        Collapse = "collapse",
    }
}

names! {
    /// Which controller child groups have.
    "subtree_control" SubtreeControl {
        /// A memory controller: counters and limits of their own.
        Memory = "memory",
        /// No memory controller: this group is charged for them.
        None = "none",
    }
}

names! {
    /// Operations of `lock`.
    "how" LockKind {
        /// mlock(): locks the pages and makes them present.
        Lock = "lock",
        /// mlock2(MLOCK_ONFAULT): locks present pages now, the others when they fault in.
        OnFault = "on-fault",
        /// munlock().
        Unlock = "unlock",
    }
}

impl MadviseKind {
    /// The advice that a mapping keeps, if this is such an advice.
    pub fn mapping_advice(self) -> Option<Advice> {
        match self {
            MadviseKind::Normal => Some(Advice::Normal),
            MadviseKind::Random => Some(Advice::Random),
            MadviseKind::Sequential => Some(Advice::Sequential),
            MadviseKind::Huge => Some(Advice::Huge),
            MadviseKind::NoHuge => Some(Advice::NoHuge),
            MadviseKind::PopulateRead
            | MadviseKind::PopulateWrite
            | MadviseKind::WillNeed
            | MadviseKind::Cold
            | MadviseKind::PageOut
            | MadviseKind::Collapse => None,
        }
    }

    /// Whether the advice applies to a whole mapping only.
    pub fn needs_whole_region(self) -> bool {
        matches!(self, MadviseKind::Normal | MadviseKind::Random | MadviseKind::Sequential)
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
    /// Rights of the allocation of a block of high order.
    "request" HighOrderRequest {
        /// GFP_KERNEL | __GFP_HIGH: sleep, reclaim, compact.
        Direct = "direct",
        /// GFP_NOWAIT | __GFP_HIGH: wake kswapd.
        Nowait = "nowait",
    }
}

names! {
    /// Rights of an allocation of kernel memory.
    "request" KernelRequest {
        /// GFP_KERNEL: sleep, reclaim, compact.
        Kernel = "kernel",
        /// GFP_ATOMIC: wake kswapd, and use half of the reserve.
        Atomic = "atomic",
        /// GFP_NOWAIT: wake kswapd.
        Nowait = "nowait",
        /// GFP_KERNEL | __GFP_RECLAIMABLE: like kernel, but in memory that a shrinker frees.
        Reclaimable = "reclaimable",
    }
}

names! {
    /// Distribution of the arrivals of requests.
    "kind of arrivals" ArrivalKind {
        /// At random: exponentially distributed intervals, as from many independent users.
        Poisson = "poisson",
        /// At equal intervals.
        Even = "even",
    }
}

names! {
    /// Distribution of the CPU times of requests.
    "distribution" CpuDistribution {
        /// All are equal.
        Fixed = "fixed",
        /// Exponentially distributed with the mean `cpu`.
        Exponential = "exponential",
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
        /// Above the low memory of a 32-bit machine: pages of programs and page cache only.
        HighMem = "HighMem",
        /// Movable pages only.
        Movable = "Movable",
    }
}

impl ZoneName {
    /// Index among the zones of a node.
    pub const fn index(self) -> usize {
        match self {
            ZoneName::Dma => ZONE_DMA,
            ZoneName::Dma32 => ZONE_DMA32,
            ZoneName::Normal => ZONE_NORMAL,
            ZoneName::HighMem => ZONE_HIGHMEM,
            ZoneName::Movable => ZONE_MOVABLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_come_back() {
        fn check<T: NameSet + PartialEq + std::fmt::Debug>() {
            let names: BTreeSet<&str> = T::ALL.iter().map(|one| one.name()).collect();
            assert_eq!(names.len(), T::ALL.len());
            for one in T::ALL {
                assert_eq!(T::from_name(one.name()), Some(*one));
                assert!(!one.doc().trim().is_empty());
            }
            assert_eq!(T::from_name("no such name"), None);
        }
        check::<DiskModel>();
        check::<crate::workload::WorkloadKind>();
        check::<OrderKind>();
        check::<AdviceKind>();
        check::<ZoneName>();
    }
}
