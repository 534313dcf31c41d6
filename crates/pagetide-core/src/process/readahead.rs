//! Read-ahead: reads more pages than requested, from files and from swap.
//!
//! Linux: mm/readahead.c, mm/swap_state.c (6.1). Each open file has a window of `size` pages from
//! `start`. The first of its last `async_size` pages has the mark
//! [`PageFlags::READAHEAD`](crate::frames::page::PageFlags::READAHEAD). Touching the marked page reads the
//! next window before it is needed. A miss in a mapped file reads a window around the fault
//! instead. Swap has no marks: each mapping counts the hits of pages that were read ahead, and a
//! miss reads about as many pages as there were hits.
//!
//! Invariant: `async_size <= size`. A [`ReadaheadWindow`] never passes the end of its file; a swap
//! window never passes the end of the mapping or of the page table.

use crate::process::page_cache::FileCache;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{FileId, SwapSlot};
use core::ops::Range;

/// Read-ahead state of an open file (Linux `struct file_ra_state`), in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub struct ReadaheadState {
    /// First page of the current window.
    pub start: u32,
    /// Pages of the current window; 0 before the first one.
    pub size: u32,
    /// Number of pages from the marked page to the window's end.
    pub async_size: u32,
    /// Byte offset after the last read.
    pub prev_pos: u64,
}

/// Pages to read into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub struct ReadaheadWindow {
    /// File of the pages.
    pub file: FileId,
    /// Next page to process.
    pub next: u32,
    /// End of the window, exclusive.
    pub end: u32,
    /// Page that gets the read-ahead mark, or `u32::MAX`.
    pub marker: u32,
    /// First page of the run that is not submitted yet; equal to `next` if the run is empty.
    pub run_start: u32,
}

impl ReadaheadWindow {
    /// `nr` pages from `start`, cut at the end of the file, with the mark `lookahead` pages before
    /// the end (Linux `do_page_cache_ra`). `None` if no page is left.
    pub fn new(
        id: FileId,
        file: &FileCache,
        start: u32,
        nr: u32,
        lookahead: u32,
    ) -> Option<ReadaheadWindow> {
        let nr_file_pages = file.nr_file_pages().min(u64::from(u32::MAX)) as u32;
        if start >= nr_file_pages || nr == 0 {
            return None;
        }
        let nr = nr.min(nr_file_pages - start);
        let marker = if lookahead <= nr { start + (nr - lookahead) } else { u32::MAX };
        Some(ReadaheadWindow { file: id, next: start, end: start + nr, marker, run_start: start })
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

    /// Window around a page fault that missed (Linux `do_sync_mmap_readahead`).
    pub fn around(
        &mut self,
        id: FileId,
        file: &FileCache,
        index: u32,
        max: u32,
    ) -> Option<ReadaheadWindow> {
        self.start = index.saturating_sub(max / 2);
        self.size = max;
        self.async_size = max / 4;
        ReadaheadWindow::new(id, file, self.start, self.size, self.async_size)
    }

    /// Chooses the window for a read of `req` pages at `index` (Linux `ondemand_readahead`).
    /// `hit_marker`: the page at `index` is cached and had the read-ahead mark.
    pub fn ondemand(
        &mut self,
        id: FileId,
        file: &FileCache,
        index: u32,
        hit_marker: bool,
        req: u32,
        max: u32,
    ) -> Option<ReadaheadWindow> {
        if max == 0 {
            return ReadaheadWindow::new(id, file, index, req, 0)
                .map(|w| ReadaheadWindow { marker: u32::MAX, ..w });
        }
        let expected = self.start.saturating_add(self.size - self.async_size);
        let prev_index = file.page_size().index_of(self.prev_pos);
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
            // Cached pages just before this one may belong to an interleaved stream.
            let mut history = file.run_before(index, max);
            if history <= req {
                return ReadaheadWindow::new(id, file, index, req, 0)
                    .map(|w| ReadaheadWindow { marker: u32::MAX, ..w });
            }
            if history >= index {
                history *= 2;
            }
            self.start = index;
            self.size = (history + req).min(max);
            self.async_size = 1;
        }
        // The reader will hit the mark at once: read the next window with this one.
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
        ReadaheadWindow::new(id, file, self.start, self.size, self.async_size)
    }

    fn begin(&mut self, index: u32, req: u32, max: u32) {
        self.start = index;
        self.size = initial_size(req, max);
        self.async_size = if self.size > req { self.size - req } else { self.size };
    }
}

// ---- swap ----

/// log2 of the largest window by address (Linux `SWAP_RA_ORDER_CEILING`).
const SWAP_RA_ORDER_CEILING: u32 = 5;
/// Maximum hit count of a mapping: six bits (Linux `SWAP_RA_HITS_MAX`).
const SWAP_RA_HITS_MAX: u32 = 63;
/// Initial hit count, so that the first miss reads a window.
pub(crate) const SWAP_RA_FIRST_HITS: u32 = 4;

/// Pages to read on a swap miss (Linux `__swapin_nr_pages`): a power of two, from the hits since
/// the last miss. `adjacent`: the miss is next to the previous position. `last`: pages read at the
/// last miss.
pub(crate) fn swapin_nr_pages(adjacent: bool, hits: u32, max: u32, last: u32) -> u32 {
    let nr = match hits {
        // No page read ahead was used: read a second page only for an adjacent miss.
        0 => 1 + u32::from(adjacent),
        _ => (hits.min(max) + 2).next_power_of_two().max(4),
    };
    // One bad window only halves the number, even if a lowered limit is below the half.
    nr.min(max).max(last / 2)
}

/// History of swap-in by address, per mapping (Linux `vma->swap_readahead_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub struct SwapReadahead {
    /// Page of the last fault on a swap entry, whether it hit or missed; `None` before the first.
    last_page: Option<u64>,
    window: u32,
    pub(crate) hits: u32,
}

impl Default for SwapReadahead {
    fn default() -> SwapReadahead {
        SwapReadahead { last_page: None, window: 0, hits: SWAP_RA_FIRST_HITS }
    }
}

impl SwapReadahead {
    /// Counts a fault that found its page in the swap cache. `ahead`: read-ahead had put it there.
    pub(crate) fn hit(&mut self, page: u64, ahead: bool) {
        self.last_page = Some(page);
        self.hits = (self.hits + u32::from(ahead)).min(SWAP_RA_HITS_MAX);
    }

    /// Pages to read for a fault on `page`, which is not in the swap cache, in a mapping of `len`
    /// pages (Linux `swap_ra_info`). `None`: only that page.
    pub(crate) fn miss(
        &mut self,
        page: u64,
        len: u64,
        page_cluster: u32,
        page_size: PageSize,
    ) -> Option<Range<u64>> {
        let max = 1 << page_cluster.min(SWAP_RA_ORDER_CEILING);
        if max == 1 {
            return None;
        }
        let before = self.last_page;
        let forward = before.is_some_and(|last| page == last + 1);
        let backward = before == Some(page + 1);
        let nr = swapin_nr_pages(forward || backward, self.hits, max, self.window);
        *self = SwapReadahead { last_page: Some(page), window: nr, hits: 0 };
        if nr == 1 {
            return None;
        }
        let nr = u64::from(nr);
        // A forward run reads pages after the fault, a backward run before it, any other around it.
        let behind = match (forward, backward) {
            (true, _) => 0,
            (_, true) => nr - 1,
            _ => (nr - 1) / 2,
        };
        let ptrs_per_pte = page_size.ptrs_per_pte();
        let table = page & !(ptrs_per_pte - 1);
        let start = page.saturating_sub(behind).max(table);
        let end = (page + nr - behind).min(table + ptrs_per_pte).min(len);
        Some(start..end)
    }
}

/// How useful swap read-ahead has been, by slot (Linux `swapin_readahead_hits`).
#[derive(Clone, Copy, Debug, Default, State)]
pub struct SwapinHistory {
    pub(crate) hits: u32,
    last_window: u32,
    prev_offset: u64,
}

impl SwapinHistory {
    /// Counts a fault that found its page in the swap cache because of read-ahead.
    pub(crate) fn hit(&mut self) {
        self.hits = self.hits.saturating_add(1);
    }

    /// Slots to read for a page in `slot` that is not in the swap cache (Linux `swapin_nr_pages`,
    /// `swap_cluster_readahead`). `None`: only that slot.
    pub(crate) fn miss(
        &mut self,
        slot: SwapSlot,
        area: Range<u64>,
        page_cluster: u32,
    ) -> Option<Range<u64>> {
        let max = 1 << page_cluster.min(30);
        if max == 1 {
            return None;
        }
        // A window never has 0 pages, so 0 means "no window yet".
        let granted = if self.last_window == 0 { SWAP_RA_FIRST_HITS } else { 0 };
        let hits = core::mem::take(&mut self.hits) + granted;
        let slot = u64::from(slot.0);
        let offset = slot - area.start;
        let adjacent = offset.abs_diff(self.prev_offset) == 1;
        let nr = swapin_nr_pages(adjacent, hits, max, self.last_window);
        if hits == 0 {
            self.prev_offset = offset;
        }
        self.last_window = nr;
        if nr == 1 {
            return None;
        }
        let nr = u64::from(nr);
        let start = slot - offset % nr;
        Some(start..(start + nr).min(area.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 10_000;

    /// Faults on `pages` in order; pages of the last window hit. Returns the windows.
    fn windows(
        state: &mut SwapReadahead,
        pages: impl Iterator<Item = u64>,
        page_cluster: u32,
    ) -> alloc::vec::Vec<Range<u64>> {
        let mut all = alloc::vec::Vec::new();
        let mut cached = 0..0;
        for page in pages {
            if cached.contains(&page) {
                state.hit(page, true);
            } else {
                cached =
                    state.miss(page, LEN, page_cluster, PageSize::Kib4).unwrap_or(page..page + 1);
                all.push(cached.clone());
            }
        }
        all
    }

    #[test]
    fn pages_follow_hits() {
        assert_eq!(swapin_nr_pages(false, 0, 8, 0), 1);
        assert_eq!(swapin_nr_pages(true, 0, 8, 0), 2);
        assert_eq!(swapin_nr_pages(false, 1, 8, 0), 4);
        assert_eq!(swapin_nr_pages(false, 2, 8, 0), 4);
        assert_eq!(swapin_nr_pages(false, 3, 8, 0), 8);
        assert_eq!(swapin_nr_pages(false, 63, 8, 0), 8);
        // Without hits the number halves each time.
        assert_eq!(swapin_nr_pages(false, 0, 8, 8), 4);
        assert_eq!(swapin_nr_pages(true, 0, 8, 2), 2);
        // The limit was 32 when the last window was read.
        assert_eq!(swapin_nr_pages(false, 0, 4, 32), 16);
    }

    #[test]
    fn a_sequential_run_grows_its_window() {
        // Distant pages, so that there are no recent hits.
        let mut state = SwapReadahead::default();
        assert_eq!(windows(&mut state, [5000, 7000, 8000, 9000].into_iter(), 3).len(), 4);
        assert_eq!(state, SwapReadahead { last_page: Some(9000), window: 1, hits: 0 });
        // One page, then two, then by the hits; all after the fault.
        let run = windows(&mut state, 100..140, 5);
        let expected = [100..101, 101..103, 103..107, 107..115, 115..131, 131..163];
        assert_eq!(run, expected);
    }

    #[test]
    fn a_window_ends_at_the_limit() {
        let mut state = SwapReadahead::default();
        let run = windows(&mut state, 0..100, 3);
        // The first miss has no direction, and its page table begins at the fault.
        assert_eq!(run[0], 0..5);
        assert!(run[1..].iter().all(|window| window.end - window.start == 8), "{run:?}");
        // Above the ceiling of 32 pages `vm.page-cluster` has no effect.
        let mut state = SwapReadahead::default();
        let run = windows(&mut state, 512..1024, 10);
        assert_eq!(run.iter().map(|window| window.end - window.start).max(), Some(32));
    }

    #[test]
    fn a_backward_run_reads_behind_the_fault() {
        let mut state = SwapReadahead { last_page: Some(301), window: 8, hits: 7 };
        assert_eq!(windows(&mut state, (277..=300).rev(), 3), [293..301, 285..293, 277..285]);
    }

    #[test]
    fn any_hit_moves_the_place_and_only_read_ahead_counts() {
        let mut state = SwapReadahead::default();
        state.miss(100, LEN, 3, PageSize::Kib4);
        state.hit(200, false);
        assert_eq!(state, SwapReadahead { last_page: Some(200), window: 8, hits: 0 });
        assert_eq!(
            state.miss(201, LEN, 3, PageSize::Kib4),
            Some(201..205),
            "forward, half of the last window"
        );
        for _ in 0..100 {
            state.hit(300, true);
        }
        assert_eq!(state.hits, SWAP_RA_HITS_MAX);
    }

    #[test]
    fn a_window_stays_in_the_mapping_and_in_the_table() {
        let window = |last_page, page, len| {
            SwapReadahead { last_page, window: 8, hits: 7 }
                .miss(page, len, 3, PageSize::Kib4)
                .unwrap()
        };
        assert_eq!(window(None, 1000, LEN), 997..1005);
        assert_eq!(window(None, 1, LEN), 0..6);
        assert_eq!(window(None, LEN - 1, LEN), LEN - 4..LEN);
        assert_eq!(window(None, 511, LEN), 508..512);
        assert_eq!(window(None, 512, LEN), 512..517);
        assert_eq!(window(Some(509), 510, LEN), 510..512);
        assert_eq!(window(Some(514), 513, LEN), 512..514);
    }

    #[test]
    fn page_cluster_0_reads_one_page_and_remembers_nothing() {
        let mut state = SwapReadahead::default();
        assert_eq!(state.miss(7, LEN, 0, PageSize::Kib4), None);
        assert_eq!(state, SwapReadahead::default());
    }

    #[test]
    fn the_history_by_slot_follows_hits() {
        let mut history = SwapinHistory::default();
        let mut miss = |slot, hits| {
            history.hits += hits;
            history.miss(SwapSlot(slot), 0..1000, 3)
        };
        // The first window counts as four hits and, like any window with hits, is not remembered.
        assert_eq!(miss(999, 0), Some(992..1000));
        assert_eq!(
            miss(1, 0),
            Some(0..4),
            "adjacent to slot 0, but at least half of the last window"
        );
        assert_eq!(miss(500, 0), Some(500..502));
        assert_eq!(miss(600, 0), None);
        assert_eq!(miss(601, 0), Some(600..602), "adjacent to the last");
        assert_eq!(miss(700, 3), Some(696..704));
        assert_eq!(history.prev_offset, 601);
        assert_eq!(history.miss(SwapSlot(9), 0..1000, 0), None);
        assert_eq!(history.last_window, 8);
    }
}
