//! Memory objects: the owners of the pages of processes.
//!
//! Linux: `page->mapping`, which is a `struct anon_vma` or a `struct address_space`. An object has
//! mappings, and a slot for each page: a frame, a swap slot or the shadow of an evicted page. The
//! slots of anonymous memory are the entries of its mapping; a file has an array of its own
//! ([`super::page_cache`]). Faults, reclaim and migration find the entries of a page through its
//! object.
//!
//! Invariant: `mapping` and `index` of a page name its object and its slot there
//! ([`OwnerSlot::of`]).

use crate::ageing::shadow::Shadow;
use crate::interface::owners::{BackingStore, OwnerSlot};
use crate::units::{FileId, Pfn, SwapSlot, VmaId};

/// The owner of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryObject {
    /// Anonymous memory, of one mapping.
    Anon(VmaId),
    /// A file.
    File(FileId),
}

/// Contents of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectSlot {
    /// Never used, or evicted without a trace.
    Empty,
    /// The page is in this frame.
    Frame(Pfn),
    /// The page is in swap.
    Swap(SwapSlot),
    /// The page was evicted.
    Shadow(Shadow),
}

impl MemoryObject {
    /// The object that owns a slot.
    #[inline]
    pub const fn of(at: OwnerSlot) -> MemoryObject {
        match at.store {
            BackingStore::Swap => MemoryObject::Anon(VmaId(at.owner)),
            BackingStore::Own => MemoryObject::File(FileId(at.owner)),
        }
    }

    /// The slot of a page.
    #[inline]
    pub const fn at(self, index: u64) -> OwnerSlot {
        let (owner, store) = match self {
            MemoryObject::Anon(vma) => (vma.0, BackingStore::Swap),
            MemoryObject::File(file) => (file.0, BackingStore::Own),
        };
        OwnerSlot { owner, index: index as u32, store }
    }
}
