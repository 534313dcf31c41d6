//! Quantities and indices as types: page frame numbers, ids, virtual time.
//!
//! Linux: `pfn`, `nid`, `memcg id`, `swp_entry_t`. Every id is an index into exactly one table.
//! `NONE` (all ones) is the absent value, so an optional id needs no extra bytes. Names of sizes
//! contain pages or bytes; times are integer nanoseconds ([`Nanos`]).

pub mod digest;
pub mod errno;
pub mod id_vec;
pub mod page_size;
pub(crate) mod scramble;

pub use id_vec::IdVec;

use crate::units::digest::State;
use crate::units::page_size::PageSize;
use core::fmt;
use zerocopy::FromZeros;

/// Virtual or real time in nanoseconds. The core never reads a clock; time is always an argument.
pub type Nanos = u64;

/// One timer tick of the kernel (250 HZ as in distributions).
pub const TICK: Nanos = 4_000_000;

/// log2 of the number of pages in a block: 0..=[`MAX_PAGE_ORDER`] (Linux: allocation order).
pub type Order = u8;

/// Bytes in a page of 4 KiB, the default. [`PageSize`] has the other sizes.
pub const PAGE_SIZE: u64 = PageSize::Kib4.bytes();
/// Number of zones of a node (Linux `MAX_NR_ZONES`).
pub const MAX_NR_ZONES: usize = 4;
/// Largest order of the buddy allocator, inclusive (Linux `MAX_PAGE_ORDER`).
pub const MAX_PAGE_ORDER: Order = 10;
/// Number of orders (Linux `NR_PAGE_ORDERS`).
pub const NR_PAGE_ORDERS: usize = MAX_PAGE_ORDER as usize + 1;
/// Order of a pageblock, the unit that has a migrate type (512 pages; 2 MiB with pages of 4 KiB).
pub const PAGEBLOCK_ORDER: Order = 9;
/// Pages in a pageblock.
pub const PAGEBLOCK_NR_PAGES: u32 = 1 << PAGEBLOCK_ORDER;
/// Order of a huge page, which one page-table entry of the second level maps (Linux
/// `HPAGE_PMD_ORDER`).
pub const HPAGE_PMD_ORDER: Order = PAGEBLOCK_ORDER;
/// Pages in a huge page (Linux `HPAGE_PMD_NR`).
pub const HPAGE_PMD_NR: u64 = 1 << HPAGE_PMD_ORDER;
/// Orders above this one are costly: the allocator may give up on them (Linux 6.1).
pub const PAGE_ALLOC_COSTLY_ORDER: Order = 3;
/// Pages that reclaim takes off a list at a time.
pub const SWAP_CLUSTER_MAX: u64 = 32;
/// First scan priority, which scans least: a pass scans `list >> 12` pages.
pub const DEF_PRIORITY: i8 = 12;

/// An index into one table.
pub trait Id: Copy {
    /// The place in the table.
    fn place(self) -> usize;
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $repr:ty, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, State, FromZeros)]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl $name {
            /// The absent value.
            pub const NONE: Self = Self(<$repr>::MAX);

            /// Whether this is a real id.
            #[inline]
            pub const fn is_some(self) -> bool {
                self.0 != <$repr>::MAX
            }

            /// Whether this is [`Self::NONE`].
            #[inline]
            pub const fn is_none(self) -> bool {
                self.0 == <$repr>::MAX
            }

            /// Index into its table.
            #[inline]
            pub const fn idx(self) -> usize {
                self.0 as usize
            }
        }

        impl Id for $name {
            #[inline]
            fn place(self) -> usize {
                self.idx()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.is_none() {
                    write!(f, concat!($prefix, "-"))
                } else {
                    write!(f, concat!($prefix, "{}"), self.0)
                }
            }
        }
    };
}

id!(
    /// Page frame number: index into the page array. A machine has at most 2^29 pages (2 TiB).
    Pfn, u32, "pfn"
);
id!(
    /// NUMA node.
    NodeId, u8, "node"
);
id!(
    /// Memory group (Linux: memory cgroup). Group 0 is the root.
    MemcgId, u16, "memcg"
);
id!(
    /// A requester of memory, numbered by the owners: an address space of a simulated machine
    /// (Linux `mm_struct`), or a tenant of a pool.
    Requester, u32, "mm"
);
id!(
    /// File in the page cache (Linux `address_space` of an inode).
    FileId, u32, "file"
);
id!(
    /// Device that holds files (Linux `struct backing_dev_info`).
    BdiId, u16, "bdi"
);
id!(
    /// Mapping of an address space (Linux: one `vm_area_struct`).
    VmaId, u32, "vma"
);
id!(
    /// Slot of the swap area (Linux `swp_entry_t` offset).
    SwapSlot, u32, "swap"
);
id!(
    /// Cache of slabs (Linux `struct kmem_cache`).
    CacheId, u32, "cache"
);
id!(
    /// A simulated or real processor. Always an argument, never ambient.
    Cpu, u16, "cpu"
);

/// Largest number of pages a machine can have: a page-table entry keeps 29 bits of frame number.
pub const MAX_PAGES: u64 = 1 << 29;

/// Integer square root, rounded down (Linux `int_sqrt`).
///
/// ```
/// assert_eq!(pagetide_core::units::int_sqrt(16 * 2_067_844), 5752);
/// ```
pub const fn int_sqrt(x: u64) -> u64 {
    if x < 2 {
        return x;
    }
    let mut low = 1u64;
    let mut high = if x < 1 << 32 { x } else { 1 << 32 };
    while low < high {
        let mid = low + (high - low).div_ceil(2);
        if mid <= x / mid {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    low
}
