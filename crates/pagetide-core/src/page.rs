//! The descriptor of a page frame: 32 bytes for each.
//!
//! Linux: `struct page`. A descriptor has the one *place* of the frame (a free list, a
//! per-CPU set, one LRU list, isolated, ...), its owner and its links. Linux spends 64 bytes; here
//! links are 32-bit frame numbers and the reverse map is computed from `mapping` and `index`.
//!
//! Invariant: a frame is in exactly one [`Place`], and the links are meaningful only while that
//! place is a list.

use crate::digest::State;
use crate::units::{MemcgId, NodeId, Pfn, HPAGE_PMD_NR};
use zerocopy::FromZeros;

/// Where a frame is. Each frame is in exactly one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State, FromZeros)]
#[repr(u8)]
pub enum Place {
    /// Not managed: a hole, or memory the kernel image and boot allocations keep for good.
    Reserved,
    /// Head of a free block on a buddy free list; `private` is its order.
    Buddy,
    /// Behind the first frame of a block, free or handed out; all that is to know of it is there. Also a free frame
    /// that is a bit of an open pageblock.
    BuddyTail,
    /// On a per-CPU free list; `private` is its migrate type.
    Pcp,
    /// Handed out, on no list: kernel memory, or a user page between two lists.
    Allocated,
    /// Waiting in a CPU's batch to be added to the LRU (Linux: `lru_pvecs` / folio batch).
    LruBatch,
    /// Inactive anonymous list.
    InactiveAnon,
    /// Active anonymous list.
    ActiveAnon,
    /// Inactive file list.
    InactiveFile,
    /// Active file list.
    ActiveFile,
    /// Unevictable (mlocked) list.
    Unevictable,
    /// Taken off its LRU list by reclaim or compaction, to be put back or freed; or taken out of the
    /// free lists by compaction, to be filled.
    Isolated,
    /// Behind the first page of a huge page, whose place is that of the whole.
    HugeTail,
}

impl Place {
    /// Whether the frame is the allocator's own, or nobody's.
    #[inline]
    pub(crate) const fn is_unused(self) -> bool {
        matches!(self, Place::Reserved | Place::Buddy | Place::BuddyTail | Place::Pcp)
    }

    /// Whether the frame is on one of the five LRU lists.
    #[inline]
    pub const fn is_lru(self) -> bool {
        matches!(
            self,
            Place::InactiveAnon
                | Place::ActiveAnon
                | Place::InactiveFile
                | Place::ActiveFile
                | Place::Unevictable
        )
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
                list.finish()
            }
        }
    };
}

page_flags! {
    /// Seen referenced once (`PG_referenced`).
    REFERENCED = 0;
    /// Belongs on an active list (`PG_active`).
    ACTIVE = 1;
    /// Content newer than its backing store (`PG_dirty`).
    DIRTY = 2;
    /// Being written (`PG_writeback`).
    WRITEBACK = 3;
    /// To be reclaimed as soon as its write ends (`PG_reclaim`).
    RECLAIM = 4;
    /// Anonymous memory, backed by swap (`PG_swapbacked`).
    ANON = 5;
    /// Has a swap slot in `private` (`PG_swapcache`).
    SWAPCACHE = 6;
    /// Content is valid (`PG_uptodate`).
    UPTODATE = 7;
    /// Was part of the working set when deactivated or evicted (`PG_workingset`).
    WORKINGSET = 8;
    /// Reading this page starts the next read-ahead window (`PG_readahead`).
    READAHEAD = 9;
    /// Locked: under read I/O (`PG_locked`).
    LOCKED = 10;
    /// A locked mapping maps it: it must not be evicted (`PG_mlocked`).
    MLOCKED = 11;
    /// Pinned: may be neither unmapped nor moved. How often, [`crate::pin`] knows.
    PINNED = 12;
    /// Page-cache page in the page cache of file `mapping`.
    FILE = 13;
    /// Held by a CPU's activate or rotate batch: may not be freed until that is drained.
    BATCHED = 14;
    /// Somebody waits for the page to be unlocked or written (`PG_waiters`).
    WAITERS = 15;
    /// First page of a huge page, which stands for all of it (`PG_head`).
    HEAD = 16;
    /// Being moved to another frame: its entries say so, and nobody may use it until that is over.
    MIGRATING = 17;
    /// First page of a slab; `mapping` is its cache (`PG_slab`).
    SLAB = 18;
    /// Has a buffer head, which `private` names (`PG_private`).
    PRIVATE = 19;
    /// Block of a file system's own: while it is dirty the journal holds its buffers, and it does not move.
    METADATA = 20;
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

    /// Both sets together.
    #[inline]
    pub const fn with(self, other: PageFlags) -> PageFlags {
        PageFlags(self.0 | other.0)
    }
}

/// One frame's descriptor.
#[derive(Clone, Debug, State, FromZeros)]
#[repr(C)]
pub struct Page {
    /// Neighbour towards the head of the list.
    pub prev: Pfn,
    /// Neighbour towards the tail of the list.
    pub next: Pfn,
    /// Owner: the address space ([`PageFlags::ANON`]) or the file ([`PageFlags::FILE`]).
    pub mapping: u32,
    /// Page offset inside the owner.
    pub index: u32,
    /// Order of a free block, migrate type on a per-CPU list, swap slot in the swap cache, buffer head of a page of a
    /// file.
    pub private: u32,
    /// Number of page-table entries that map the frame.
    pub mapcount: u16,
    /// Group that is charged for the frame.
    pub memcg: MemcgId,
    /// State bits.
    pub flags: PageFlags,
    /// Where the frame is.
    pub place: Place,
    /// Order of the block that was handed out and begins here.
    pub order: u8,
    /// Zone index in the low 2 bits, node in the rest.
    zone_node: u8,
    /// A page policy's own number for the page ([`crate::plugin`]); 0 without one.
    pub mark: u8,
}

const _: () = assert!(size_of::<Page>() <= 32, "a frame costs at most 32 bytes");

impl Page {
    /// A frame of the given zone and node that nobody manages yet.
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
            mark: 0,
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

    /// Clears `flag` and says whether it was set.
    #[inline]
    pub const fn test_clear(&mut self, flag: PageFlags) -> bool {
        let was = self.flags.has(flag);
        self.flags.0 &= !flag.0;
        was
    }

    /// Pages that the descriptor stands for: those of a huge page, if it is the first of one (Linux
    /// `folio_nr_pages`).
    #[inline]
    pub const fn nr_pages(&self) -> u64 {
        if self.has(PageFlags::HEAD) {
            HPAGE_PMD_NR
        } else {
            1
        }
    }

    /// Whether the page sits on a file LRU list when it is on one.
    #[inline]
    pub const fn is_file_lru(&self) -> bool {
        !self.has(PageFlags::ANON)
    }
}
