//! Buffer heads: one object per file page that was written at least once.
//!
//! Linux: `create_empty_buffers`, `alloc_page_buffers`, `try_to_free_buffers` (fs/buffer.c, 6.1),
//! for ext4 with page-sized blocks. write() and the first store through a mapping
//! (`block_page_mkwrite`) give a page its buffer head before the page becomes dirty; reading does
//! not. The object comes from the cache `buffer_head`, has 104 bytes, and is charged to the page's
//! group, also beyond the group's limit. The page keeps its buffer head when it is clean again, and
//! loses it when it leaves the page cache: by reclaim, invalidation or truncation.
//!
//! Differences from Linux: if no memory is available, the page gets no buffer head (Linux:
//! `__GFP_NOFAIL`). A page larger than 4 KiB has one buffer head. ext4 has no journal here, so jbd2
//! keeps nothing. Objects of the extent status tree (one for a run of blocks) are left out.
//!
//! Invariant: a page with [`PRIVATE`](crate::frames::page::PageFlags::PRIVATE) is a file page, and its
//! field `private` is the index of its object in the table. All other indices are in the free list.

mod attach;

use crate::slab::call::KmemAlloc;
use crate::slab::object::Object;
use crate::units::digest::State;
use alloc::vec::Vec;
#[derive(Clone, Debug, Default, State)]
pub(crate) struct BufferHeads {
    table: Vec<Object>,
    free: Vec<u32>,
}

impl BufferHeads {
    fn insert(&mut self, object: Object) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.table[at as usize] = object;
                at
            }
            None => {
                self.table.push(object);
                (self.table.len() - 1) as u32
            }
        }
    }

    fn remove(&mut self, at: u32) -> Object {
        self.free.push(at);
        core::mem::replace(&mut self.table[at as usize], Object::NONE)
    }
}

/// State of a task that needs a buffer head for the page that it writes.
#[derive(Clone, Debug, Default, State)]
pub(super) struct BufferHeadRequest {
    asked: Option<KmemAlloc>,
    /// Page that must go without a buffer head because none can be allocated.
    unavailable: Option<u32>,
}

impl BufferHeadRequest {
    /// Whether an allocation is in progress and must be continued.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }
}
