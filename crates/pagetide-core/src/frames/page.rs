//! The descriptor of a page frame, 32 bytes.
//!
//! Linux: `struct page`. A descriptor holds the *place* of the frame (a free list, a per-CPU set,
//! one LRU list, isolated, ...), its owner and its links. Linux spends 64 bytes; here links are
//! 32-bit frame numbers, and the reverse map is computed from `mapping` and `index`.
//!
//! Invariant: a frame is in exactly one [`Place`]. Its links are valid only if that place is a
//! list.

use crate::units::digest::State;
use crate::units::{MemcgId, NodeId, Pfn, HPAGE_PMD_NR};
use zerocopy::FromZeros;

/// Place of a frame. Each frame is in exactly one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State, FromZeros)]
#[repr(u8)]
pub enum Place {
    /// Not managed: a hole, or memory that the kernel image and boot allocations keep for good.
    Reserved,
    /// Head of a free block on a buddy free list; `private` is its order.
    Buddy,
    /// A frame behind the first of a block, free or allocated; the first frame's descriptor
    /// describes the block.
    BuddyTail,
    /// On a per-CPU free list; `private` is its migrate type.
    Pcp,
    /// Allocated and on no list: kernel memory, or a user page between two lists.
    Allocated,
    /// In a CPU's batch, to be added to the LRU (Linux: `lru_pvecs` / folio batch).
    LruBatch,
    /// Among the pages that can be evicted; [`crate::ageing`] knows on which list.
    Lru,
    /// On the list of pages that cannot be evicted, because they are locked.
    Unevictable,
    /// Taken off its LRU list by reclaim or compaction, to be put back or freed; or taken off the
    /// free lists by compaction, as a migration target.
    Isolated,
    /// A frame behind the first of a huge page; the first frame has the place of the whole page.
    HugeTail,
}

impl Place {
    /// Whether the frame is free or reserved.
    #[inline]
    pub(crate) const fn is_unused(self) -> bool {
        matches!(self, Place::Reserved | Place::Buddy | Place::BuddyTail | Place::Pcp)
    }

    /// Whether the frame is on an LRU list.
    #[inline]
    pub const fn is_lru(self) -> bool {
        matches!(self, Place::Lru | Place::Unevictable)
    }
}

/// State bits of a page (Linux `PG_*`).
#[derive(Clone, Copy, PartialEq, Eq, Default, State, FromZeros)]
#[repr(transparent)]
pub struct PageFlags(u32);

macro_rules! page_flags {
    ($($(#[$meta:meta])* $const:ident = $bit:literal;)*) => {
        impl PageFlags {
            $($(#[$meta])* pub const $const: PageFlags = PageFlags(1 << $bit);)*
        }
        impl core::fmt::Debug for PageFlags {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut list = f.debug_list();
                $(if self.has(Self::$const) { list.entry(&stringify!($const)); })*
                if let Some(gen) = self.generation() {
                    list.entry(&format_args!("generation {gen}, {} uses", self.uses()));
                }
                list.finish()
            }
        }
    };
}

page_flags! {
    /// Referenced once (`PG_referenced`).
    REFERENCED = 0;
    /// In use, as far as ageing knows (`PG_active`).
    ACTIVE = 1;
    /// Contents are newer than in the backing store (`PG_dirty`).
    DIRTY = 2;
    /// Being written (`PG_writeback`).
    WRITEBACK = 3;
    /// Reclaim it as soon as its write ends (`PG_reclaim`).
    RECLAIM = 4;
    /// Backed by swap: it is on the lists of anonymous memory (`PG_swapbacked`).
    SWAPBACKED = 5;
    /// Has a swap slot in `private` (`PG_swapcache`).
    SWAPCACHE = 6;
    /// Contents are valid (`PG_uptodate`).
    UPTODATE = 7;
    /// Was part of the working set when deactivated or evicted (`PG_workingset`).
    WORKINGSET = 8;
    /// Reading this page starts read-ahead of the next window (`PG_readahead`).
    READAHEAD = 9;
    /// Locked: under read I/O (`PG_locked`).
    LOCKED = 10;
    /// A locked mapping maps the page, so it must not be evicted (`PG_mlocked`).
    MLOCKED = 11;
    /// Pinned: must be neither unmapped nor moved. [`crate::frames::pin`] has the pin counts.
    PINNED = 12;
    /// In the page cache of file `mapping`.
    FILE = 13;
    /// In a CPU's activate or rotate batch: must not be freed until the batch is drained.
    BATCHED = 14;
    /// A task waits for the page's lock or write (`PG_waiters`).
    WAITERS = 15;
    /// First page of a huge page; its descriptor describes the whole (`PG_head`).
    HEAD = 16;
    /// Being moved: its entries are migration entries, and no task may use the page.
    MIGRATING = 17;
    /// First page of a slab; `mapping` is the number of its cache (`PG_slab`).
    SLAB = 18;
    /// Has a buffer head, numbered by `private` (`PG_private`).
    PRIVATE = 19;
    /// Metadata block of a file system. While it is dirty, the journal holds its buffers and it
    /// cannot move.
    METADATA = 20;
    /// Page of a pool of compressed pages; `mapping` is its pool, `index` its zspage.
    ZSPAGE = 21;
    /// A fault has added the page, which is not yet on the lists of a page policy.
    FAULTED = 22;
}

impl PageFlags {
    /// No flag set.
    pub const EMPTY: PageFlags = PageFlags(0);

    /// Whether every flag of `other` is set.
    #[inline]
    pub const fn has(self, other: PageFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[inline]
    pub const fn any(self, other: PageFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Generation of a page under the multi-generational LRU, as its place in the window of
    /// generations (Linux `folio_lru_gen`). `None`: the page is on no list of a generation.
    #[inline]
    pub const fn generation(self) -> Option<u8> {
        match (self.0 & GENERATION) >> GENERATION_SHIFT {
            0 => None,
            next => Some(next as u8 - 1),
        }
    }

    /// Uses by read() and write() beyond the second (Linux `LRU_REFS_MASK`), at most [`MAX_USES`].
    #[inline]
    pub const fn uses(self) -> u32 {
        self.0 >> USES_SHIFT
    }

    /// Both sets together.
    #[inline]
    pub const fn with(self, other: PageFlags) -> PageFlags {
        PageFlags(self.0 | other.0)
    }
}

/// Generation plus 1, in the flags; 0: none.
const GENERATION: u32 = 7 << GENERATION_SHIFT;
const GENERATION_SHIFT: u32 = 25;

/// Generation of the list that the page is on, in the flags. Ageing changes the generation of a
/// page, and eviction moves the page when it meets it.
const LISTED: u32 = 3 << LISTED_SHIFT;
const LISTED_SHIFT: u32 = 28;

/// Under a page policy: the list plus 1 (0: none), in place of the generations.
const POLICY_LIST: u32 = GENERATION | LISTED;

const USES_SHIFT: u32 = 30;

/// The largest count of [`PageFlags::uses`].
pub const MAX_USES: u32 = 3;

/// The descriptor of one frame.
#[derive(Clone, Debug, State, FromZeros)]
#[repr(C)]
pub struct Page {
    /// Neighbour towards the head of the list.
    pub prev: Pfn,
    /// Neighbour towards the tail of the list.
    pub next: Pfn,
    /// Owner: a file ([`PageFlags::FILE`]), or a mapping of anonymous memory.
    pub mapping: u32,
    /// Page index inside the owner.
    pub index: u32,
    /// Order of a free block, migrate type on a per-CPU list, swap slot in the swap cache, or
    /// buffer head of a file page.
    pub private: u32,
    /// Number of page-table entries that map the frame.
    pub mapcount: u16,
    /// Group charged for the frame.
    pub memcg: MemcgId,
    /// State bits.
    pub flags: PageFlags,
    /// Where the frame is.
    pub place: Place,
    /// Order of the allocated block that starts here.
    pub order: u8,
    /// Index of the zone in the low 2 bits, node in the other bits.
    zone_node: u8,
}

const _: () = assert!(size_of::<Page>() <= 32, "a frame costs at most 32 bytes");

impl Page {
    /// A frame of the given zone and node that is not managed yet.
    pub const fn reserved(zone: u8, node: NodeId) -> Page {
        Page {
            prev: Pfn::NONE,
            next: Pfn::NONE,
            mapping: u32::MAX,
            index: 0,
            private: 0,
            mapcount: 0,
            memcg: MemcgId::NONE,
            flags: PageFlags::EMPTY,
            place: Place::Reserved,
            order: 0,
            zone_node: zone | node.0 << 2,
        }
    }

    /// Index of the frame's zone within its node (DMA, DMA32, Normal, Movable).
    #[inline]
    pub const fn zone(&self) -> usize {
        (self.zone_node & 3) as usize
    }

    /// The frame's node.
    #[inline]
    pub const fn node(&self) -> NodeId {
        NodeId(self.zone_node >> 2)
    }

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has(&self, flags: PageFlags) -> bool {
        self.flags.has(flags)
    }

    /// Sets `flags`.
    #[inline]
    pub const fn set(&mut self, flags: PageFlags) {
        self.flags.0 |= flags.0;
    }

    /// Clears `flags`.
    #[inline]
    pub const fn clear(&mut self, flags: PageFlags) {
        self.flags.0 &= !flags.0;
    }

    /// Clears `flag` and returns whether it was set.
    #[inline]
    pub const fn test_clear(&mut self, flag: PageFlags) -> bool {
        let was = self.flags.has(flag);
        self.flags.0 &= !flag.0;
        was
    }

    /// Place of the page's generation ([`PageFlags::generation`]).
    #[inline]
    pub const fn generation(&self) -> Option<u8> {
        self.flags.generation()
    }

    /// Sets the generation; `None` for a page that leaves the lists.
    #[inline]
    pub(crate) const fn set_generation(&mut self, generation: Option<u8>) {
        let next = match generation {
            None => 0,
            Some(generation) => generation as u32 + 1,
        };
        self.flags.0 = self.flags.0 & !GENERATION | next << GENERATION_SHIFT;
    }

    /// Generation of the list that the page is on.
    #[inline]
    pub(crate) const fn listed_generation(&self) -> usize {
        ((self.flags.0 & LISTED) >> LISTED_SHIFT) as usize
    }

    /// Sets the generation of the list that the page is on.
    #[inline]
    pub(crate) const fn set_listed_generation(&mut self, generation: u8) {
        self.flags.0 = self.flags.0 & !LISTED | (generation as u32) << LISTED_SHIFT;
    }

    /// List of a page policy that the page is on, or was on before it was taken off.
    #[inline]
    pub(crate) const fn policy_list(&self) -> Option<usize> {
        match (self.flags.0 & POLICY_LIST) >> GENERATION_SHIFT {
            0 => None,
            next => Some(next as usize - 1),
        }
    }

    /// Sets the list of a page policy, below 31.
    #[inline]
    pub(crate) const fn set_policy_list(&mut self, list: Option<usize>) {
        let next = match list {
            None => 0,
            Some(list) => list as u32 + 1,
        };
        self.flags.0 = self.flags.0 & !POLICY_LIST | next << GENERATION_SHIFT;
    }

    /// Sets the count of uses beyond the second.
    #[inline]
    pub(crate) const fn set_uses(&mut self, uses: u32) {
        self.flags.0 = self.flags.0 & !(MAX_USES << USES_SHIFT) | uses << USES_SHIFT;
    }

    /// Forgets all uses that ageing has noted (Linux `LRU_REFS_MASK | LRU_REFS_FLAGS`).
    pub(crate) const fn forget_uses(&mut self) {
        self.set_uses(0);
        self.clear(PageFlags::REFERENCED.with(PageFlags::WORKINGSET));
    }

    /// Number of pages that the descriptor stands for: 512 at the first frame of a huge page (Linux
    /// `folio_nr_pages`).
    #[inline]
    pub const fn nr_pages(&self) -> u64 {
        if self.has(PageFlags::HEAD) {
            HPAGE_PMD_NR
        } else {
            1
        }
    }

    /// Whether the page belongs on a file LRU list.
    #[inline]
    pub const fn is_file_lru(&self) -> bool {
        !self.has(PageFlags::SWAPBACKED)
    }

    /// Whether its owner is anonymous memory (Linux `PageAnon`).
    #[inline]
    pub const fn is_anon(&self) -> bool {
        self.has(PageFlags::SWAPBACKED) && !self.has(PageFlags::FILE)
    }

    /// Whether it is user memory: anonymous or of a file.
    #[inline]
    pub const fn is_user(&self) -> bool {
        self.flags.any(PageFlags::SWAPBACKED.with(PageFlags::FILE))
    }
}
