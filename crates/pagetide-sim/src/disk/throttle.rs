//! When a submitter has to wait before it puts more to a disk.
//!
//! Linux 6.1. block/blk-mq-tag.c: a request needs a tag, of which the scheduler has `nr_requests`
//! (twice the disk's depth; without a scheduler, the depth); who finds none sleeps.
//! block/mq-deadline.c (`async_depth`): writes that nobody waits for leave a quarter of them to
//! others. block/blk-wbt.c: of such writes no more than a few are under way at all, so that reads do
//! not queue behind them: `RWB_DEF_DEPTH` of kswapd's, half as many of everybody else's together.
//!
//! Differs from Linux: a whole batch (32 pages at most) is put to the disk before its submitter looks;
//! the depths do not follow measured latencies; background writeback has the depth of other writes.
//!
//! Invariant: `under_way` counts the requests that are queued or in service, merged ones once.

use super::elevator::TAG_DEPTH_MAX;
use super::preset::IoScheduler;

/// Linux: `RWB_DEF_DEPTH`.
const WRITEBACK_DEPTH: u32 = 16;

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
    /// Writes of kswapd's that may be under way; half as many of everybody else's.
    writeback_depth: u32,
}

impl Throttle {
    /// Of a disk with this scheduler and depth; `None`: a disk without limits.
    pub(super) fn new(scheduler: IoScheduler, queue_depth: Option<u32>) -> Self {
        let Some(depth) = queue_depth else {
            return Self::with_tags(u32::MAX, u32::MAX);
        };
        let (tags, tags_for_writes) = match scheduler {
            IoScheduler::None => (depth, depth),
            IoScheduler::MqDeadline => {
                let tags = 2 * depth.min(TAG_DEPTH_MAX);
                (tags, (tags * 3 / 4).max(1))
            }
        };
        Self::with_tags(tags, tags_for_writes)
    }

    fn with_tags(tags: u32, tags_for_writes: u32) -> Self {
        Self { under_way: [0; 3], tags, tags_for_writes, writeback_depth: WRITEBACK_DEPTH }
    }

    /// Leaves only the tags: writeback throttling came with Linux 4.10.
    pub(super) fn without_writeback_throttling(&mut self) {
        self.writeback_depth = u32::MAX;
    }

    pub(super) fn begin(&mut self, submitter: Submitter) {
        self.under_way[submitter as usize] += 1;
    }

    pub(super) fn end(&mut self, submitter: Submitter) {
        self.under_way[submitter as usize] -= 1;
    }

    /// Whether `submitter` has to wait before it submits more.
    pub(super) fn is_full(&self, submitter: Submitter) -> bool {
        let own = self.under_way[submitter as usize];
        let all: u32 = self.under_way.iter().sum();
        let depth = match submitter {
            Submitter::Reader => return all >= self.tags,
            Submitter::Kswapd => self.writeback_depth,
            Submitter::Writeback => self.writeback_depth / 2,
        };
        self.tags != u32::MAX && (own >= depth || all >= self.tags_for_writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_wait_long_before_readers_do() {
        let mut throttle = Throttle::new(IoScheduler::MqDeadline, Some(32));
        for submitted in 0..64 {
            assert_eq!(throttle.is_full(Submitter::Writeback), submitted >= 8);
            assert!(!throttle.is_full(Submitter::Reader));
            throttle.begin(Submitter::Writeback);
        }
        assert!(throttle.is_full(Submitter::Reader), "64 tags are taken");
        assert!(throttle.is_full(Submitter::Kswapd), "48 of them are for writes");
        for _ in 0..17 {
            throttle.end(Submitter::Writeback);
        }
        assert!(!throttle.is_full(Submitter::Kswapd) && !throttle.is_full(Submitter::Reader));
        for submitted in 0..17 {
            assert_eq!(throttle.is_full(Submitter::Kswapd), submitted >= 1, "{submitted}");
            throttle.begin(Submitter::Kswapd);
        }
    }

    #[test]
    fn before_writeback_throttling_only_tags_were_short() {
        let mut throttle = Throttle::new(IoScheduler::MqDeadline, Some(32));
        throttle.without_writeback_throttling();
        for submitted in 0..48 {
            assert!(!throttle.is_full(Submitter::Writeback), "{submitted}");
            throttle.begin(Submitter::Writeback);
        }
        assert!(throttle.is_full(Submitter::Writeback) && throttle.is_full(Submitter::Kswapd));
    }

    #[test]
    fn a_disk_without_limits_makes_nobody_wait() {
        let mut throttle = Throttle::new(IoScheduler::None, None);
        (0..10_000).for_each(|_| throttle.begin(Submitter::Kswapd));
        assert!(!throttle.is_full(Submitter::Kswapd));
        assert!(!throttle.is_full(Submitter::Writeback));
    }
}
