//! Flags of an allocation: permitted actions of the request, its reserves and its migrate type.
//!
//! Linux: `gfp_t`, `ALLOC_*` and `enum migratetype` (include/linux/gfp_types.h, mm/internal.h,
//! include/linux/mmzone.h, 6.1). The caller passes a [`Gfp`]; the allocator derives [`AllocFlags`]
//! from it for each attempt; [`MigrateType`] names the suitable pageblocks.
//!
//! Invariant: the [`Gfp`] alone determines the zones and pageblocks that a request may use. A
//! combination of zone bits that Linux forbids gets the lowest of the named zones.

use crate::frames::zone_type::{ZONE_DMA, ZONE_DMA32, ZONE_MOVABLE, ZONE_NORMAL};
use crate::units::digest::State;
use core::fmt;

/// Request flags (Linux `gfp_t`): zones, mobility, and permission to wait.
#[derive(Clone, Copy, PartialEq, Eq, Default, State)]
#[repr(transparent)]
pub struct Gfp(u32);

macro_rules! gfp_flags {
    ($($(#[$meta:meta])* $const:ident = $bit:literal;)*) => {
        impl Gfp {
            $($(#[$meta])* pub const $const: Gfp = Gfp(1 << $bit);)*
        }

        impl fmt::Debug for Gfp {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut list = f.debug_list();
                $(if self.has(Self::$const) { list.entry(&stringify!($const)); })*
                list.finish()
            }
        }
    };
}

gfp_flags! {
    /// Only zone DMA (`__GFP_DMA`).
    DMA = 0;
    /// Zone DMA32 or below (`__GFP_DMA32`).
    DMA32 = 1;
    /// Needs no kernel address (`__GFP_HIGHMEM`); together with [`Gfp::MOVABLE`] it allows zone
    /// Movable.
    HIGHMEM = 2;
    /// Can be moved or reclaimed later (`__GFP_MOVABLE`).
    MOVABLE = 3;
    /// Slab memory that a shrinker can free (`__GFP_RECLAIMABLE`).
    RECLAIMABLE = 4;
    /// May use half of the minimum reserve (`__GFP_HIGH`).
    HIGH = 5;
    /// May start I/O (`__GFP_IO`).
    IO = 6;
    /// May call into file systems (`__GFP_FS`).
    FS = 7;
    /// May reclaim directly, and therefore sleep (`__GFP_DIRECT_RECLAIM`).
    DIRECT_RECLAIM = 8;
    /// May wake kswapd (`__GFP_KSWAPD_RECLAIM`).
    KSWAPD_RECLAIM = 9;
    /// Prints no message on failure (`__GFP_NOWARN`).
    NOWARN = 10;
    /// Gives up after one light attempt (`__GFP_NORETRY`).
    NORETRY = 11;
    /// Tries hard but may fail (`__GFP_RETRY_MAYFAIL`).
    RETRY_MAYFAIL = 12;
    /// Must not fail (`__GFP_NOFAIL`).
    NOFAIL = 13;
    /// Will soon free memory, so no watermark applies (`__GFP_MEMALLOC`).
    MEMALLOC = 14;
    /// Must not use the reserves in any context (`__GFP_NOMEMALLOC`).
    NOMEMALLOC = 15;
    /// Wants cleared memory (`__GFP_ZERO`).
    ZERO = 16;
    /// From the requesting CPU's node only (`__GFP_THISNODE`).
    THISNODE = 17;
}

impl Gfp {
    /// No flag: zone Normal or below, unmovable, no waiting, no wake-up.
    pub const EMPTY: Gfp = Gfp(0);
    /// Direct reclaim and waking kswapd (`__GFP_RECLAIM`).
    pub const RECLAIM: Gfp = Gfp::DIRECT_RECLAIM.with(Gfp::KSWAPD_RECLAIM);
    /// Cannot sleep, and may use part of the reserve (`GFP_ATOMIC`).
    pub const ATOMIC: Gfp = Gfp::HIGH.with(Gfp::KSWAPD_RECLAIM);
    /// Cannot sleep, no reserve (`GFP_NOWAIT`).
    pub const NOWAIT: Gfp = Gfp::KSWAPD_RECLAIM;
    /// Ordinary kernel memory (`GFP_KERNEL`).
    pub const KERNEL: Gfp = Gfp::RECLAIM.with(Gfp::IO).with(Gfp::FS);
    /// May reclaim and do I/O but not enter file systems (`GFP_NOFS`).
    pub const NOFS: Gfp = Gfp::RECLAIM.with(Gfp::IO);
    /// May reclaim only clean memory (`GFP_NOIO`).
    pub const NOIO: Gfp = Gfp::RECLAIM;
    /// Memory for user space that the kernel also addresses (`GFP_USER`).
    pub const USER: Gfp = Gfp::KERNEL;
    /// A user page: any zone, movable (`GFP_HIGHUSER_MOVABLE`).
    pub const HIGHUSER_MOVABLE: Gfp = Gfp::USER.with(Gfp::HIGHMEM).with(Gfp::MOVABLE);
    /// A huge page, without any reclaim (`GFP_TRANSHUGE_LIGHT`).
    pub const TRANSHUGE_LIGHT: Gfp =
        Gfp::HIGHUSER_MOVABLE.with(Gfp::NOMEMALLOC).with(Gfp::NOWARN).without(Gfp::RECLAIM);
    /// A huge page, with direct reclaim (`GFP_TRANSHUGE`).
    pub const TRANSHUGE: Gfp = Gfp::TRANSHUGE_LIGHT.with(Gfp::DIRECT_RECLAIM);

    /// Whether every flag of `other` is set.
    #[inline]
    pub const fn has(self, other: Gfp) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[inline]
    pub const fn with(self, other: Gfp) -> Gfp {
        Gfp(self.0 | other.0)
    }

    /// This set without the flags of `other`.
    #[inline]
    pub const fn without(self, other: Gfp) -> Gfp {
        Gfp(self.0 & !other.0)
    }

    /// Index of the highest zone allowed (Linux `gfp_zone`). Only a request with both HIGHMEM and
    /// MOVABLE may use zone Movable.
    #[inline]
    pub const fn highest_zone(self) -> usize {
        if self.has(Gfp::DMA) {
            ZONE_DMA
        } else if self.has(Gfp::DMA32) {
            ZONE_DMA32
        } else if self.has(Gfp::HIGHMEM.with(Gfp::MOVABLE)) {
            ZONE_MOVABLE
        } else {
            ZONE_NORMAL
        }
    }

    /// Migrate type of the request (Linux `gfp_migratetype`).
    #[inline]
    pub const fn migrate_type(self) -> MigrateType {
        if self.has(Gfp::MOVABLE) {
            MigrateType::Movable
        } else if self.has(Gfp::RECLAIMABLE) {
            MigrateType::Reclaimable
        } else {
            MigrateType::Unmovable
        }
    }
}

/// The watermark that an attempt must respect (Linux `ALLOC_WMARK_*`, `ALLOC_NO_WATERMARKS`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub enum Watermark {
    /// Below it only requests that may use the reserves succeed; all others reclaim.
    Min,
    /// Below it allocations wake kswapd.
    Low,
    /// kswapd stops when it is reached.
    High,
    /// No watermark, because the request will soon free memory.
    None,
}

/// Rights and restrictions of one allocation attempt (Linux `ALLOC_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct AllocFlags {
    /// The watermark to respect.
    pub watermark: Watermark,
    /// May use half of the watermark (`ALLOC_HIGH`, later `ALLOC_MIN_RESERVE`).
    pub high: bool,
    /// May also use a quarter of what then remains of the watermark, and the high-atomic reserve
    /// (`ALLOC_HARDER`).
    pub harder: bool,
    /// An OOM victim: may also use half of what then remains of the watermark (`ALLOC_OOM`).
    pub oom: bool,
    /// Must not mix types in a pageblock while another zone has free memory (`ALLOC_NOFRAGMENT`).
    pub nofragment: bool,
    /// May wake kswapd (`ALLOC_KSWAPD`).
    pub kswapd: bool,
    /// For a movable page: may use CMA memory (`ALLOC_CMA`).
    pub cma: bool,
}

impl AllocFlags {
    /// Respects `watermark`; no rights and no restrictions.
    #[inline]
    pub const fn at(watermark: Watermark) -> AllocFlags {
        AllocFlags {
            watermark,
            high: false,
            harder: false,
            oom: false,
            nofragment: false,
            kswapd: false,
            cma: false,
        }
    }

    /// Like [`AllocFlags::at`], for a movable page.
    #[inline]
    pub const fn movable_at(watermark: Watermark) -> AllocFlags {
        AllocFlags { cma: true, ..AllocFlags::at(watermark) }
    }

    /// Flags of the first attempt: the low watermark, no reserves.
    #[inline]
    pub const fn fast(gfp: Gfp) -> AllocFlags {
        AllocFlags {
            kswapd: gfp.has(Gfp::KSWAPD_RECLAIM),
            cma: gfp.migrate_type().is_movable(),
            ..AllocFlags::at(Watermark::Low)
        }
    }

    /// Flags of the slow path (Linux `gfp_to_alloc_flags`): the min watermark, and the reserves
    /// that the request may use. A request is atomic if it has [`Gfp::HIGH`] and cannot reclaim.
    /// Linux 6.1 has a separate flag for this, which only `GFP_ATOMIC` sets.
    #[inline]
    pub const fn slow(gfp: Gfp) -> AllocFlags {
        let high = gfp.has(Gfp::HIGH);
        AllocFlags {
            high,
            harder: high && !gfp.has(Gfp::DIRECT_RECLAIM) && !gfp.has(Gfp::NOMEMALLOC),
            kswapd: gfp.has(Gfp::KSWAPD_RECLAIM),
            cma: gfp.migrate_type().is_movable(),
            ..AllocFlags::at(Watermark::Min)
        }
    }

    /// Whether the request may use the high-atomic reserve.
    #[inline]
    pub const fn may_use_highatomic(&self) -> bool {
        self.harder || self.oom
    }
}

/// Type of a pageblock, and of the free lists (Linux `enum migratetype`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, State)]
#[repr(u8)]
pub enum MigrateType {
    /// Stays where it is until freed.
    Unmovable,
    /// Can be migrated or reclaimed.
    Movable,
    /// Can be freed by a shrinker, not moved.
    Reclaimable,
    /// Reserve for atomic requests of order > 0.
    HighAtomic,
    /// Set aside for a driver, which takes a contiguous range when it needs one (Linux
    /// `MIGRATE_CMA`). Until then only movable pages may be here.
    Cma,
    /// Being emptied: its free pages are not counted as free, and they are not allocated.
    Isolate,
}

impl MigrateType {
    /// Number of migrate types.
    pub const COUNT: usize = 6;
    /// Number of types with per-CPU lists (Linux `MIGRATE_PCPTYPES`); these types come first.
    pub const PCP_COUNT: usize = 3;
    /// All types in the order of their lists.
    pub const ALL: [MigrateType; MigrateType::COUNT] = [
        MigrateType::Unmovable,
        MigrateType::Movable,
        MigrateType::Reclaimable,
        MigrateType::HighAtomic,
        MigrateType::Cma,
        MigrateType::Isolate,
    ];

    /// Index into arrays of lists.
    #[inline]
    pub const fn idx(self) -> usize {
        self as usize
    }

    /// The type with index `raw`, as stored in a page descriptor.
    #[inline]
    pub(crate) const fn from_raw(raw: u32) -> MigrateType {
        match raw {
            0 => MigrateType::Unmovable,
            1 => MigrateType::Movable,
            2 => MigrateType::Reclaimable,
            3 => MigrateType::HighAtomic,
            4 => MigrateType::Cma,
            _ => MigrateType::Isolate,
        }
    }

    /// Whether blocks of this type merge across pageblocks and are kept on per-CPU lists (Linux
    /// `migratetype_is_mergeable`).
    #[inline]
    pub const fn is_mergeable(self) -> bool {
        (self as usize) < MigrateType::PCP_COUNT
    }

    /// Whether pageblocks of this type are for movable pages (Linux `is_migrate_movable`).
    #[inline]
    pub const fn is_movable(self) -> bool {
        matches!(self, MigrateType::Movable | MigrateType::Cma)
    }

    /// Types to fall back to when the type's own lists are empty, best first. CMA is none
    /// of them: a movable request may use it, but never claims its pageblocks.
    #[inline]
    pub const fn fallbacks(self) -> &'static [MigrateType] {
        use MigrateType::{Cma, HighAtomic, Isolate, Movable, Reclaimable, Unmovable};
        match self {
            Unmovable => &[Reclaimable, Movable],
            Movable => &[Reclaimable, Unmovable],
            Reclaimable => &[Unmovable, Movable],
            HighAtomic | Cma | Isolate => &[],
        }
    }

    /// Name as in /proc/pagetypeinfo.
    pub const fn name(self) -> &'static str {
        match self {
            MigrateType::Unmovable => "Unmovable",
            MigrateType::Movable => "Movable",
            MigrateType::Reclaimable => "Reclaimable",
            MigrateType::HighAtomic => "HighAtomic",
            MigrateType::Cma => "CMA",
            MigrateType::Isolate => "Isolate",
        }
    }
}

/// The kernel's names for sets of flags, larger sets first.
const GFP_NAMES: [(Gfp, &str); 25] = [
    (Gfp::HIGHUSER_MOVABLE, "GFP_HIGHUSER_MOVABLE"),
    (Gfp::KERNEL, "GFP_KERNEL"),
    (Gfp::NOFS, "GFP_NOFS"),
    (Gfp::ATOMIC, "GFP_ATOMIC"),
    (Gfp::NOIO, "GFP_NOIO"),
    (Gfp::NOWAIT, "GFP_NOWAIT"),
    (Gfp::DMA, "GFP_DMA"),
    (Gfp::DMA32, "GFP_DMA32"),
    (Gfp::HIGHMEM, "__GFP_HIGHMEM"),
    (Gfp::MOVABLE, "__GFP_MOVABLE"),
    (Gfp::RECLAIMABLE, "__GFP_RECLAIMABLE"),
    (Gfp::HIGH, "__GFP_HIGH"),
    (Gfp::IO, "__GFP_IO"),
    (Gfp::FS, "__GFP_FS"),
    (Gfp::DIRECT_RECLAIM, "__GFP_DIRECT_RECLAIM"),
    (Gfp::KSWAPD_RECLAIM, "__GFP_KSWAPD_RECLAIM"),
    (Gfp::NOWARN, "__GFP_NOWARN"),
    (Gfp::NORETRY, "__GFP_NORETRY"),
    (Gfp::RETRY_MAYFAIL, "__GFP_RETRY_MAYFAIL"),
    (Gfp::NOFAIL, "__GFP_NOFAIL"),
    (Gfp::MEMALLOC, "__GFP_MEMALLOC"),
    (Gfp::NOMEMALLOC, "__GFP_NOMEMALLOC"),
    (Gfp::ZERO, "__GFP_ZERO"),
    (Gfp::THISNODE, "__GFP_THISNODE"),
    (Gfp::EMPTY, "none"),
];

impl fmt::Display for Gfp {
    /// Prints the flags like the kernel: `GFP_KERNEL|__GFP_ZERO`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = *self;
        let mut separator = "";
        for (flags, name) in GFP_NAMES {
            let is_last = flags == Gfp::EMPTY;
            if left.has(flags) && (!is_last || *self == Gfp::EMPTY) {
                write!(f, "{separator}{name}")?;
                left = left.without(flags);
                separator = "|";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn zones_and_kinds_follow_from_the_request() {
        assert_eq!(Gfp::KERNEL.highest_zone(), ZONE_NORMAL);
        assert_eq!(Gfp::HIGHUSER_MOVABLE.highest_zone(), ZONE_MOVABLE);
        assert_eq!(Gfp::KERNEL.with(Gfp::DMA).highest_zone(), ZONE_DMA);
        assert_eq!(Gfp::USER.with(Gfp::DMA32).highest_zone(), ZONE_DMA32);
        // MOVABLE alone does not allow zone Movable: the kernel must be able to address the memory.
        assert_eq!(Gfp::KERNEL.with(Gfp::MOVABLE).highest_zone(), ZONE_NORMAL);
        assert_eq!(Gfp::KERNEL.migrate_type(), MigrateType::Unmovable);
        assert_eq!(Gfp::HIGHUSER_MOVABLE.migrate_type(), MigrateType::Movable);
        assert_eq!(Gfp::NOFS.with(Gfp::RECLAIMABLE).migrate_type(), MigrateType::Reclaimable);
    }

    #[test]
    fn only_atomic_requests_try_harder() {
        assert!(AllocFlags::slow(Gfp::ATOMIC).harder);
        assert!(!AllocFlags::slow(Gfp::ATOMIC.with(Gfp::NOMEMALLOC)).harder);
        assert!(!AllocFlags::slow(Gfp::KERNEL.with(Gfp::HIGH)).harder);
        assert!(AllocFlags::slow(Gfp::KERNEL.with(Gfp::HIGH)).high);
        assert!(!AllocFlags::slow(Gfp::NOWAIT).high);
    }

    #[test]
    fn raw_types_round_trip() {
        for mt in MigrateType::ALL {
            assert_eq!(MigrateType::from_raw(mt as u32), mt);
            assert!(mt.fallbacks().iter().all(|&f| f != mt && f.is_mergeable()));
        }
    }

    #[test]
    fn flags_are_printed_as_the_kernel_does() {
        assert_eq!(Gfp::HIGHUSER_MOVABLE.to_string(), "GFP_HIGHUSER_MOVABLE");
        assert_eq!(Gfp::KERNEL.with(Gfp::ZERO).to_string(), "GFP_KERNEL|__GFP_ZERO");
        assert_eq!(Gfp::NOFS.with(Gfp::MOVABLE).to_string(), "GFP_NOFS|__GFP_MOVABLE");
        assert_eq!(Gfp::FS.to_string(), "__GFP_FS");
        assert_eq!(Gfp::EMPTY.to_string(), "none");
    }
}
