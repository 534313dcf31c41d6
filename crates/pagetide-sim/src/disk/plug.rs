//! A plug: requests of a thread that wait, so that neighbours merge before the disk starts them.
//!
//! Linux 6.1: `struct blk_plug`, `blk_add_rq_to_plug`, `blk_attempt_plug_merge` (block/blk-mq.c,
//! blk-merge.c). A request merges with the last one of the plug. A plug that is full, or whose last
//! request is long, is submitted before it takes another one. It is also submitted when its thread
//! sleeps, but not when its thread is preempted.
//!
//! Differs from Linux: a plug with requests to several disks has the same maximum, and a request
//! merges with the last one only at its end. A writer that writeback throttling stops sleeps after
//! its plug, not in it. The flusher's plug ends with each step.
//!
//! Invariant: after a time slice, a closed plug is empty.

use super::{IoKind, MERGE_PAGES_MAX};
use pagetide_core::interface::effect::Io;
use pagetide_core::units::Nanos;

/// Most requests in a plug (`BLK_MAX_REQUEST_COUNT`).
const REQUESTS_MAX: u32 = 32;
/// Length of a request that ends the plug (`BLK_PLUG_FLUSH_SIZE`, 128 KiB), in pages.
const LONG_REQUEST: u32 = 32;

/// Pages of a disk that a request reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskRange {
    pub disk: usize,
    pub kind: IoKind,
    pub offset: u64,
    pub pages: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct IoPlug {
    /// More requests may come: the thread's last step ended inside the plug.
    pub is_open: bool,
    step_ns: Nanos,
    /// Requests, each with the time of its arrival.
    ios: Vec<(Io, Nanos)>,
    /// Number of requests after merging.
    nr_requests: u32,
    last: Option<DiskRange>,
}

impl IoPlug {
    /// Notes the end of a step of the thread. Call it before the requests of the step are added.
    pub fn step_ended(&mut self, is_open: bool, step_ns: Nanos) {
        (self.is_open, self.step_ns) = (is_open, step_ns);
    }

    /// Time of request `at` of `nr` in a step that ended at `now`: they are spread over the step.
    pub fn time_in_step(&self, at: usize, nr: usize, now: Nanos) -> Nanos {
        let after = (nr - 1 - at) as u64;
        now.saturating_sub(self.step_ns * after / nr as u64)
    }

    /// Adds a request that arrived at `since`. Returns the requests to submit before it, if the plug
    /// was full.
    pub fn add(&mut self, io: Io, range: DiskRange, since: Nanos) -> Option<Vec<(Io, Nanos)>> {
        let mut full = None;
        match &mut self.last {
            Some(last)
                if (last.disk, last.kind) == (range.disk, range.kind)
                    && last.offset + u64::from(last.pages) == range.offset
                    && last.pages + range.pages <= MERGE_PAGES_MAX =>
            {
                last.pages += range.pages;
            }
            last => {
                let is_long = last.is_some_and(|last| last.pages >= LONG_REQUEST);
                if self.nr_requests >= REQUESTS_MAX || is_long {
                    full = Some(std::mem::take(&mut self.ios));
                    self.nr_requests = 0;
                }
                *last = Some(range);
                self.nr_requests += 1;
            }
        }
        self.ios.push((io, since));
        full
    }

    pub fn take(&mut self) -> Vec<(Io, Nanos)> {
        self.nr_requests = 0;
        self.last = None;
        std::mem::take(&mut self.ios)
    }

    /// Whether the thread has left the plug and has not submitted its requests.
    #[inline]
    pub fn is_due(&self) -> bool {
        !self.is_open && !self.is_empty()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ios.is_empty()
    }

    pub fn ios(&self) -> impl Iterator<Item = &Io> {
        self.ios.iter().map(|(io, _)| io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_core::units::{Pfn, SwapSlot};

    fn add(plug: &mut IoPlug, offset: u32) -> Option<usize> {
        let io = Io::SwapIn { slot: SwapSlot(offset), pfn: Pfn(0) };
        let range = DiskRange { disk: 0, kind: IoKind::Read, offset: offset.into(), pages: 1 };
        plug.add(io, range, offset.into()).map(|ios| ios.len())
    }

    #[test]
    fn neighbours_merge_and_a_full_plug_is_submitted() {
        let mut plug = IoPlug::default();
        for at in 0..MERGE_PAGES_MAX {
            assert_eq!(add(&mut plug, at), None, "a request grows to its maximum");
        }
        assert_eq!(add(&mut plug, MERGE_PAGES_MAX), Some(320), "none follows a long one");
        assert_eq!(plug.take().len(), 1);
        assert_eq!(add(&mut plug, 500), None);
        for at in 1..32 {
            assert_eq!(add(&mut plug, 500 + 2 * at), None);
        }
        assert_eq!(add(&mut plug, 700), Some(32));
        assert_eq!(plug.take().len(), 1);
        assert_eq!(add(&mut plug, 701), None, "a request that was submitted does not grow");
        assert_eq!(plug.ios().count(), 1);
    }
}
