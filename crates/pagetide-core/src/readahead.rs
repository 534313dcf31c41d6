//! File read-ahead: which pages to read beside the one that was asked for.
//!
//! Linux: mm/readahead.c (6.1). Each open file keeps a window: `start`, `size`, and the last
//! `async_size` pages of it, whose first page carries [`PageFlags::READAHEAD`](crate::page::PageFlags::READAHEAD). Touching the
//! marked page reads the next window before it is needed. Mapped files without a hit read a
//! window around the fault instead.
//!
//! Invariant: `async_size <= size`; a [`Window`] never passes the end of its file.

use crate::digest::Digest;
use crate::page_cache::FileCache;
use crate::units::{FileId, PAGE_SHIFT};

/// What an open file remembers of its reads (Linux `struct file_ra_state`), in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadaheadState {
    /// First page of the current window.
    pub start: u32,
    /// Pages of the current window; 0 before the first.
    pub size: u32,
    /// Pages at its end whose first is marked.
    pub async_size: u32,
    /// Byte offset just after the last read.
    pub prev_pos: u64,
}

/// Pages about to be read into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The file.
    pub file: FileId,
    /// Next page to look at.
    pub next: u32,
    /// One past the last page.
    pub end: u32,
    /// Page that gets the read-ahead mark, or `u32::MAX`.
    pub marker: u32,
    /// First page of the run that has not been submitted yet; equal to `next` if there is none.
    pub run_start: u32,
}

impl Window {
    /// `nr` pages from `start`, marked `lookahead` before the end, cut at the end of the file
    /// (Linux `do_page_cache_ra`). `None` if nothing is left.
    pub fn new(
        id: FileId,
        file: &FileCache,
        start: u32,
        nr: u32,
        lookahead: u32,
    ) -> Option<Window> {
        let nr_file_pages = file.nr_file_pages().min(u64::from(u32::MAX)) as u32;
        if start >= nr_file_pages || nr == 0 {
            return None;
        }
        let nr = nr.min(nr_file_pages - start);
        let marker = if lookahead <= nr { start + (nr - lookahead) } else { u32::MAX };
        Some(Window { file: id, next: start, end: start + nr, marker, run_start: start })
    }
}

/// First window of a sequential read of `size` pages (Linux `get_init_ra_size`).
fn initial_size(size: u32, max: u32) -> u32 {
    let size = size.max(1).next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

impl ReadaheadState {
    /// Size of the window after this one (Linux `get_next_ra_size`).
    const fn next_size(&self, max: u32) -> u32 {
        if self.size < max / 16 {
            4 * self.size
        } else if self.size <= max / 2 {
            2 * self.size
        } else {
            max
        }
    }

    /// Window around a mapped fault that missed (Linux `do_sync_mmap_readahead`).
    pub fn around(&mut self, id: FileId, file: &FileCache, index: u32, max: u32) -> Option<Window> {
        self.start = index.saturating_sub(max / 2);
        self.size = max;
        self.async_size = max / 4;
        Window::new(id, file, self.start, self.size, self.async_size)
    }

    /// Decides what to read for `req` pages at `index` (Linux `ondemand_readahead`).
    /// `hit_marker`: the page at `index` is cached and carried the read-ahead mark.
    pub fn ondemand(
        &mut self,
        id: FileId,
        file: &FileCache,
        index: u32,
        hit_marker: bool,
        req: u32,
        max: u32,
    ) -> Option<Window> {
        if max == 0 {
            return Window::new(id, file, index, req, 0).map(|w| Window { marker: u32::MAX, ..w });
        }
        let expected = self.start.saturating_add(self.size - self.async_size);
        let prev_index = (self.prev_pos >> PAGE_SHIFT) as u32;
        if index == 0 {
            self.begin(index, req, max);
        } else if index == expected || index == self.start.saturating_add(self.size) {
            self.start = self.start.saturating_add(self.size);
            self.size = self.next_size(max);
            self.async_size = self.size;
        } else if hit_marker {
            // The state belongs to another stream: continue after what is already cached.
            let start = file.next_miss(index + 1, max);
            if start - index > max {
                return None;
            }
            self.start = start;
            self.size = start - index + req;
            self.size = self.next_size(max);
            self.async_size = self.size;
        } else if req > max || index.wrapping_sub(prev_index) <= 1 {
            self.begin(index, req, max);
        } else {
            // Cached pages just before look like an interleaved stream.
            let mut history = file.run_before(index, max);
            if history <= req {
                return Window::new(id, file, index, req, 0)
                    .map(|w| Window { marker: u32::MAX, ..w });
            }
            if history >= index {
                history *= 2;
            }
            self.start = index;
            self.size = (history + req).min(max);
            self.async_size = 1;
        }
        // The reader will hit the mark at once: read the next window together with this one.
        if index == self.start && self.size == self.async_size {
            let add = self.next_size(max);
            if self.size + add <= max {
                self.async_size = add;
                self.size += add;
            } else {
                self.size = max;
                self.async_size = max >> 1;
            }
        }
        Window::new(id, file, self.start, self.size, self.async_size)
    }

    /// Mixes the state into `digest`.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        let ReadaheadState { start, size, async_size, prev_pos } = self;
        digest.write_all(&[u64::from(*start), u64::from(*size), u64::from(*async_size), *prev_pos]);
    }

    fn begin(&mut self, index: u32, req: u32, max: u32) {
        self.start = index;
        self.size = initial_size(req, max);
        self.async_size = if self.size > req { self.size - req } else { self.size };
    }
}
