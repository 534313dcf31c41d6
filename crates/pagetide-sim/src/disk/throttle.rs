//! Limits on the requests in flight, above which a submitter must wait.
//!
//! Linux 6.1. block/blk-mq-tag.c: a request needs a tag. The scheduler has `nr_requests` tags
//! (twice the disk's depth; without a scheduler, the depth), and a submitter without a tag sleeps.
//! block/mq-deadline.c (`async_depth`): asynchronous writes leave a quarter of the tags to others.
//! block/blk-wbt.c: only a few asynchronous writes may be in flight, so that reads do not queue
//! behind them. kswapd may have `RWB_DEF_DEPTH`. All other writers together may have as many if a
//! writer was paused in balance_dirty_pages() in the last second, a quarter if the disk has read
//! within 100 ms, and half otherwise.
//!
//! Differs from Linux: a batch (at most 32 pages) is submitted before the limits are checked. The
//! depths do not adapt to measured latencies. For a disk with a volatile cache, Linux wakes no
//! waiter until all writes complete. Sleepers are checked only when a request completes.
//!
//! Invariant: `under_way` counts the requests that are queued or in service; merged requests count
//! as one.

use super::elevator::TAG_DEPTH_MAX;
use super::preset::IoScheduler;
use pagetide_core::units::Nanos;

/// Linux: `RWB_DEF_DEPTH`.
const WRITEBACK_DEPTH: u32 = 16;
/// Time for which a pause of a writer counts as recent (Linux `wb_recent_wait`: a second).
const PAUSE_COUNTS_NS: Nanos = 1_000_000_000;
/// Time for which a read counts as recent (Linux `close_io`: a tenth of a second).
const READ_COUNTS_NS: Nanos = 100_000_000;

/// Class of a request's submitter, for the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Submitter {
    /// Reads, which a task waits for.
    #[default]
    Reader,
    Kswapd,
    /// Writes of direct reclaim or of the writeback thread.
    Writeback,
}

#[derive(Clone, Debug)]
pub(super) struct SubmitLimits {
    under_way: [u32; 3],
    tags: u32,
    tags_for_writes: u32,
    /// Limit of kswapd's writes in flight.
    writeback_depth: u32,
    last_read: Option<Nanos>,
    last_pause: Option<Nanos>,
}

impl SubmitLimits {
    /// Limits for a scheduler and a queue depth; `None`: no limits.
    pub(super) fn new(scheduler: IoScheduler, queue_depth: Option<u32>) -> Self {
        let (tags, tags_for_writes) = match (scheduler, queue_depth) {
            (_, None) => (u32::MAX, u32::MAX),
            (IoScheduler::None, Some(depth)) => (depth, depth),
            (IoScheduler::MqDeadline, Some(depth)) => {
                let tags = 2 * depth.min(TAG_DEPTH_MAX);
                (tags, (tags * 3 / 4).max(1))
            }
        };
        let writeback_depth = if queue_depth.is_none() { u32::MAX } else { WRITEBACK_DEPTH };
        let (last_read, last_pause) = (None, None);
        Self { under_way: [0; 3], tags, tags_for_writes, writeback_depth, last_read, last_pause }
    }

    /// Keeps only the limits of the tags; writeback throttling came with Linux 4.10.
    pub(super) fn without_writeback_throttling(&mut self) {
        self.writeback_depth = u32::MAX;
    }

    pub(super) fn begin(&mut self, submitter: Submitter, now: Nanos) {
        self.under_way[submitter as usize] += 1;
        self.note_read(submitter, now);
    }

    pub(super) fn end(&mut self, submitter: Submitter, now: Nanos) {
        self.under_way[submitter as usize] -= 1;
        self.note_read(submitter, now);
    }

    fn note_read(&mut self, submitter: Submitter, now: Nanos) {
        if submitter == Submitter::Reader {
            self.last_read = Some(now);
        }
    }

    /// Notes that a writer is paused in balance_dirty_pages().
    pub(super) fn writer_paused(&mut self, now: Nanos) {
        self.last_pause = Some(now);
    }

    /// Number of further requests that `submitter` may submit now.
    pub(super) fn room(&self, submitter: Submitter, now: Nanos) -> u32 {
        let own = self.under_way[submitter as usize];
        let all: u32 = self.under_way.iter().sum();
        let recent = |then: Option<Nanos>, counts: Nanos| {
            then.is_some_and(|then| now.saturating_sub(then) < counts)
        };
        let depth = match submitter {
            Submitter::Reader => return self.tags.saturating_sub(all),
            Submitter::Kswapd => self.writeback_depth,
            Submitter::Writeback if recent(self.last_pause, PAUSE_COUNTS_NS) => {
                self.writeback_depth
            }
            Submitter::Writeback if recent(self.last_read, READ_COUNTS_NS) => {
                self.writeback_depth / 4
            }
            Submitter::Writeback => self.writeback_depth / 2,
        };
        depth.saturating_sub(own).min(self.tags_for_writes.saturating_sub(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSD: (IoScheduler, Option<u32>) = (IoScheduler::MqDeadline, Some(32));

    #[test]
    fn writers_wait_long_before_readers_do() {
        let mut throttle = SubmitLimits::new(SSD.0, SSD.1);
        for submitted in 0..64 {
            assert_eq!(throttle.room(Submitter::Writeback, 0), 8u32.saturating_sub(submitted));
            assert_eq!(throttle.room(Submitter::Reader, 0), 64 - submitted);
            throttle.begin(Submitter::Writeback, 0);
        }
        assert_eq!(throttle.room(Submitter::Reader, 0), 0, "64 tags are taken");
        assert_eq!(throttle.room(Submitter::Kswapd, 0), 0, "48 of them are for writes");
        for _ in 0..17 {
            throttle.end(Submitter::Writeback, 0);
        }
        assert_eq!(throttle.room(Submitter::Kswapd, 0), 1);
        assert_eq!(throttle.room(Submitter::Reader, 0), 17);
    }

    #[test]
    fn reads_leave_less_to_writers_and_pauses_more() {
        let mut throttle = SubmitLimits::new(SSD.0, SSD.1);
        throttle.begin(Submitter::Reader, 1_000);
        assert_eq!(throttle.room(Submitter::Writeback, 2_000), 4);
        assert_eq!(throttle.room(Submitter::Kswapd, 2_000), 16);
        assert_eq!(throttle.room(Submitter::Writeback, 1_000 + READ_COUNTS_NS), 8);
        throttle.writer_paused(3_000);
        assert_eq!(throttle.room(Submitter::Writeback, 4_000), 16);
        assert_eq!(throttle.room(Submitter::Writeback, 3_000 + PAUSE_COUNTS_NS), 8);
    }

    #[test]
    fn before_writeback_throttling_only_tags_were_short() {
        let mut throttle = SubmitLimits::new(SSD.0, SSD.1);
        throttle.without_writeback_throttling();
        for submitted in 0..48 {
            assert!(throttle.room(Submitter::Writeback, 0) > 0, "{submitted}");
            throttle.begin(Submitter::Writeback, 0);
        }
        assert_eq!(throttle.room(Submitter::Writeback, 0), 0);
        assert_eq!(throttle.room(Submitter::Kswapd, 0), 0);
    }

    #[test]
    fn a_disk_without_limits_makes_no_task_wait() {
        let mut throttle = SubmitLimits::new(IoScheduler::None, None);
        (0..10_000).for_each(|_| throttle.begin(Submitter::Kswapd, 0));
        assert!(throttle.room(Submitter::Kswapd, 0) > 0);
        assert!(throttle.room(Submitter::Writeback, 0) > 0);
    }
}
