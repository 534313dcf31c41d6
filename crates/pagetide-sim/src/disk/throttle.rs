//! When a submitter has to wait before it puts more to a disk.
//!
//! Linux 6.1. block/blk-mq-tag.c: a request needs a tag, of which the scheduler has `nr_requests`
//! (twice the disk's depth; without a scheduler, the depth); who finds none sleeps.
//! block/mq-deadline.c (`async_depth`): writes that nobody waits for leave a quarter of them to
//! others. block/blk-wbt.c: of such writes no more than a few are under way at all, so that reads do
//! not queue behind them. kswapd has `RWB_DEF_DEPTH`; everybody else together as many if a writer
//! was paused for the dirty limits in the last second, a quarter if the disk has read within 100
//! ms, else half.
//!
//! Differs from Linux: a batch (32 pages at most) is put to the disk before its submitter looks; the
//! depths do not follow measured latencies; on a disk with a volatile cache Linux lets nobody on
//! until all writes are done. Time only enters when somebody looks: who sleeps is looked at when a
//! request is done.
//!
//! Invariant: `under_way` counts the requests that are queued or in service, merged ones once.

use super::elevator::TAG_DEPTH_MAX;
use super::preset::IoScheduler;
use pagetide_core::units::Nanos;

/// Linux: `RWB_DEF_DEPTH`.
const WRITEBACK_DEPTH: u32 = 16;
/// A pause of a writer counts so long (Linux `wb_recent_wait`: a second).
const PAUSE_COUNTS_NS: Nanos = 1_000_000_000;
/// A read counts so long (Linux `close_io`: a tenth of a second).
const READ_COUNTS_NS: Nanos = 100_000_000;

/// Whose request it is, as far as waiting is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Submitter {
    /// Somebody who waits for the data.
    #[default]
    Reader,
    /// kswapd, writing.
    Kswapd,
    /// A task that reclaims for itself, or the writeback thread, writing.
    Writeback,
}

/// The requests under way, and how many may be.
#[derive(Clone, Debug)]
pub(super) struct Throttle {
    under_way: [u32; 3],
    tags: u32,
    tags_for_writes: u32,
    /// Writes of kswapd's that may be under way.
    writeback_depth: u32,
    last_read: Option<Nanos>,
    last_pause: Option<Nanos>,
}

impl Throttle {
    /// Of a disk with this scheduler and depth; `None`: a disk without limits.
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

    /// Leaves only the tags: writeback throttling came with Linux 4.10.
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

    /// A writer is being paused for the dirty limits.
    pub(super) fn writer_paused(&mut self, now: Nanos) {
        self.last_pause = Some(now);
    }

    /// Requests that `submitter` may put to the disk now, besides those under way.
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
        let mut throttle = Throttle::new(SSD.0, SSD.1);
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
        let mut throttle = Throttle::new(SSD.0, SSD.1);
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
        let mut throttle = Throttle::new(SSD.0, SSD.1);
        throttle.without_writeback_throttling();
        for submitted in 0..48 {
            assert!(throttle.room(Submitter::Writeback, 0) > 0, "{submitted}");
            throttle.begin(Submitter::Writeback, 0);
        }
        assert_eq!(throttle.room(Submitter::Writeback, 0), 0);
        assert_eq!(throttle.room(Submitter::Kswapd, 0), 0);
    }

    #[test]
    fn a_disk_without_limits_makes_nobody_wait() {
        let mut throttle = Throttle::new(IoScheduler::None, None);
        (0..10_000).for_each(|_| throttle.begin(Submitter::Kswapd, 0));
        assert!(throttle.room(Submitter::Kswapd, 0) > 0);
        assert!(throttle.room(Submitter::Writeback, 0) > 0);
    }
}
