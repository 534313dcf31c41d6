//! The names that a scenario may use for kinds of things: one table each, with what they stand for.
//! The loader checks against them, and the schema is made from them. Policies and control files are the
//! core's ([`pagetide_core::config`]).

mod caches;

pub use caches::kernel_caches;
pub use pagetide_core::control::{cache_and_file, CacheControl};

use crate::op::Advice;
use pagetide_core::zone::{ZONE_DMA, ZONE_DMA32, ZONE_MOVABLE, ZONE_NORMAL};

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
    /// Which of things stay.
    "pick" PickKind {
        /// Those that lie evenly: with 1 in 8 the first, the ninth and so on.
        Evenly = "evenly",
        /// Any: each is drawn.
        Random = "random",
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

names! {
    /// What `madvise` is asked for.
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
        /// MADV_POPULATE_READ: each page is made present by a read.
        PopulateRead = "populate-read",
        /// MADV_POPULATE_WRITE: each page is made present by a write, as MAP_POPULATE does.
        PopulateWrite = "populate-write",
        /// MADV_WILLNEED: pages of a file are read.
        WillNeed = "will-need",
        /// MADV_COLD: pages become the next to be reclaimed.
        Cold = "cold",
        /// MADV_PAGEOUT: pages are reclaimed now.
        PageOut = "page-out",
        /// MADV_COLLAPSE: regions become huge pages now.
        Collapse = "collapse",
    }
}

names! {
    /// What groups in a group have.
    "subtree_control" SubtreeControl {
        /// Counters and limits of their own.
        Memory = "memory",
        /// No memory controller: the group pays for them.
        None = "none",
    }
}

names! {
    /// What `lock` does.
    "how" LockKind {
        /// mlock(): locks the pages and makes them present.
        Lock = "lock",
        /// mlock2(MLOCK_ONFAULT): locks those that are present, and the others when they come.
        OnFault = "on-fault",
        /// munlock().
        Unlock = "unlock",
    }
}

impl MadviseKind {
    /// The advice that the mapping keeps, if it is such.
    pub fn of_mapping(self) -> Option<Advice> {
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

    /// Whether it is on a whole mapping only.
    pub fn is_on_whole(self) -> bool {
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
    /// When requests arrive.
    "kind of arrivals" ArrivalKind {
        /// At random: times between two are exponentially distributed, as of many independent users.
        Poisson = "poisson",
        /// At even distances.
        Even = "even",
    }
}

names! {
    /// How CPU times differ from one request to the next.
    "distribution" CpuDistribution {
        /// All are the same.
        Fixed = "fixed",
        /// Exponentially distributed, with `cpu` as their mean.
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
        /// Movable pages only.
        Movable = "Movable",
    }
}

impl ZoneName {
    /// Its index among the zones of a node.
    pub const fn index(self) -> usize {
        match self {
            ZoneName::Dma => ZONE_DMA,
            ZoneName::Dma32 => ZONE_DMA32,
            ZoneName::Normal => ZONE_NORMAL,
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
        fn check<T: Named + PartialEq + std::fmt::Debug>() {
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
