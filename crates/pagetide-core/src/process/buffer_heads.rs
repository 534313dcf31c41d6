//! Buffer heads: what a file system keeps for each page of a file that somebody has written.
//!
//! Linux: `create_empty_buffers`, `alloc_page_buffers`, `try_to_free_buffers` (fs/buffer.c, 6.1) under ext4 with
//! blocks of a page. write() and the first store through a mapping (`block_page_mkwrite`) give a page its buffer head
//! before it is dirty; reading does not. It is an object of the cache `buffer_head`, 104 bytes, charged to the
//! group that pays for the page. The page keeps it when it is clean again, and loses it when it leaves the page
//! cache: by reclaim, invalidation or truncation.
//!
//! Differs from Linux: where no memory can be had for it there is none (`__GFP_NOFAIL`); where there is no room under
//! a limit its group is charged beyond it, as there. A page larger than 4 KiB has one. ext4 has no journal here, so
//! that jbd2 keeps nothing. The objects of the extent status tree, one for a run of blocks, are left out.
//!
//! Invariant: a page with [`PRIVATE`](crate::page::PageFlags::PRIVATE) is of a file, and its `private` is the place
//! of its object in the table; no other place is in use.

mod attach;

use crate::digest::State;
use crate::slab::call::KmemAlloc;
use crate::slab::Object;
use alloc::vec::Vec;

/// The buffer heads of all pages.
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

/// A task on its way to a buffer head for the page that it is to write.
#[derive(Clone, Debug, Default, State)]
pub(super) struct BufferWanted {
    /// It is being asked for.
    asked: Option<KmemAlloc>,
    /// Page for which there is none to be had.
    without: Option<u32>,
}

impl BufferWanted {
    /// Whether the task asks for one, and has to go on with that.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }
}
