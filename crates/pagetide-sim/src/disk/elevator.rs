//! The I/O scheduler of a disk: merges requests and selects the next one.
//!
//! Linux 6.1, block/mq-deadline.c and block/elevator.c. Adjacent requests are merged, up to
//! [`MERGE_PAGES_MAX`]. With `mq-deadline`, requests are dispatched in batches of one direction and
//! increasing offset, up to [`FIFO_BATCH`]. Reads are preferred, but a batch of writes follows
//! after [`WRITES_STARVED`] batches of reads while writes wait. A batch starts where the last one
//! of its direction ended. It starts with the oldest request if no request is further on, or if the
//! oldest is past its deadline. With `none`, the oldest request is next.
//!
//! As in Linux, only the oldest requests are sorted: as many as the scheduler has tags, twice the
//! disk's depth.
//!
//! Differs from Linux: no I/O priorities, no zones. The caller does the plugging (it submits
//! several requests at once).
//!
//! Invariant: `by_offset` has exactly the requests in `by_age`. No request waits forever.

use super::preset::IoScheduler;
use super::{IoKind, Submitter};
use pagetide_core::units::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Most requests in a batch (`fifo_batch`).
pub const FIFO_BATCH: u32 = 16;
/// Batches of reads dispatched before a waiting write (`writes_starved`).
pub const WRITES_STARVED: u32 = 2;
/// Age at which a read starts a batch (`read_expire`, 500 ms).
pub const READ_EXPIRE_NS: Nanos = 500_000_000;
/// Age at which a write starts a batch (`write_expire`, 5 s).
pub const WRITE_EXPIRE_NS: Nanos = 5_000_000_000;
/// Most pages in a merged request (`max_sectors_kb`, 1280 KiB).
pub const MERGE_PAGES_MAX: u32 = 320;
/// The scheduler has twice as many tags as the queue depth, which counts up to this
/// (`BLKDEV_DEFAULT_RQ`).
pub(super) const TAG_DEPTH_MAX: u32 = 128;

/// A caller's request, as a part of a possibly merged request.
#[derive(Clone, Debug)]
pub(super) struct MergedPart {
    pub id: u64,
    pub pages: u32,
    pub submitted: Nanos,
    pub fails: bool,
}

#[derive(Clone, Debug)]
pub(super) struct QueuedRequest {
    /// Order of arrival of the oldest part.
    pub sequence: u64,
    pub kind: IoKind,
    pub offset: u64,
    pub pages: u32,
    pub slow: bool,
    /// Submitter of the oldest part; the limits count the request for it.
    pub submitter: Submitter,
    pub parts: Vec<MergedPart>,
}

impl QueuedRequest {
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.pages)
    }

    /// Start of the oldest part, in the plug if there was one.
    pub(super) fn submitted(&self) -> Nanos {
        self.parts.iter().map(|part| part.submitted).min().expect("a request has parts")
    }

    fn absorb(&mut self, other: QueuedRequest) {
        self.pages += other.pages;
        self.offset = self.offset.min(other.offset);
        self.slow |= other.slow;
        self.parts.extend(other.parts);
    }
}

#[derive(Clone, Debug, Default)]
struct DirectionQueue {
    by_age: BTreeMap<u64, QueuedRequest>,
    by_offset: BTreeSet<(u64, u64)>,
    /// End of the last dispatched request.
    position: u64,
}

impl DirectionQueue {
    fn insert(&mut self, request: QueuedRequest) {
        self.by_offset.insert((request.offset, request.sequence));
        self.by_age.insert(request.sequence, request);
    }

    fn remove(&mut self, sequence: u64) -> QueuedRequest {
        let request = self.by_age.remove(&sequence).expect("named by the other index");
        assert!(self.by_offset.remove(&(request.offset, sequence)));
        request
    }

    /// A waiting request that `new` can be merged with, at either end.
    fn neighbour(&self, new: &QueuedRequest) -> Option<u64> {
        let before = self.by_offset.range(..(new.offset, 0)).next_back();
        let after = self.by_offset.range((new.end(), 0)..).next();
        before.into_iter().chain(after).map(|&(_, sequence)| sequence).find(|sequence| {
            let old = &self.by_age[sequence];
            let touches = old.end() == new.offset || new.end() == old.offset;
            touches && old.pages + new.pages <= MERGE_PAGES_MAX
        })
    }

    fn oldest(&self) -> Option<&QueuedRequest> {
        self.by_age.values().next()
    }

    /// The first request at or after `position`, among the oldest `window`.
    fn successor(&self, window: usize) -> Option<u64> {
        let ahead = self.by_age.values().take(window).filter(|one| one.offset >= self.position);
        ahead.min_by_key(|one| (one.offset, one.sequence)).map(|one| one.sequence)
    }
}

/// The request queue. See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Elevator {
    scheduler: IoScheduler,
    window: usize,
    reads: DirectionQueue,
    writes: DirectionQueue,
    batch_kind: IoKind,
    /// Requests dispatched in the current batch; [`FIFO_BATCH`] ends it.
    batching: u32,
    starved: u32,
}

impl Elevator {
    pub(super) fn new(scheduler: IoScheduler, queue_depth: u32) -> Self {
        let window = 2 * queue_depth.min(TAG_DEPTH_MAX) as usize;
        Self {
            scheduler,
            window,
            reads: DirectionQueue::default(),
            writes: DirectionQueue::default(),
            batch_kind: IoKind::Read,
            batching: FIFO_BATCH,
            starved: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.reads.by_age.len() + self.writes.by_age.len()
    }

    /// Adds a request. Returns true if it was merged into a waiting one.
    pub(super) fn add(&mut self, request: QueuedRequest) -> bool {
        let direction = self.direction_mut(request.kind);
        if let Some(sequence) = direction.neighbour(&request) {
            let mut merged = direction.remove(sequence);
            merged.absorb(request);
            direction.insert(merged);
            return true;
        }
        direction.insert(request);
        false
    }

    pub(super) fn next(&mut self, now: Nanos) -> Option<QueuedRequest> {
        let (kind, sequence) = match self.scheduler {
            IoScheduler::None => self.choose_oldest()?,
            IoScheduler::MqDeadline => self.choose_deadline(now)?,
        };
        let direction = self.direction_mut(kind);
        let request = direction.remove(sequence);
        direction.position = request.end();
        Some(request)
    }

    fn choose_oldest(&self) -> Option<(IoKind, u64)> {
        let heads = [self.reads.oldest(), self.writes.oldest()];
        let oldest = heads.into_iter().flatten().min_by_key(|one| one.sequence)?;
        Some((oldest.kind, oldest.sequence))
    }

    fn choose_deadline(&mut self, now: Nanos) -> Option<(IoKind, u64)> {
        if self.batching < FIFO_BATCH {
            if let Some(sequence) = self.direction(self.batch_kind).successor(self.window) {
                self.batching += 1;
                return Some((self.batch_kind, sequence));
            }
        }
        let kind = self.choose_direction()?;
        let direction = self.direction(kind);
        let oldest = direction.oldest().expect("the direction chosen has requests");
        let expire_ns = match kind {
            IoKind::Read => READ_EXPIRE_NS,
            IoKind::Write => WRITE_EXPIRE_NS,
        };
        let expired = oldest.submitted() + expire_ns <= now;
        let successor = if expired { None } else { direction.successor(self.window) };
        let sequence = successor.unwrap_or(oldest.sequence);
        self.batch_kind = kind;
        self.batching = 1;
        Some((kind, sequence))
    }

    fn choose_direction(&mut self) -> Option<IoKind> {
        let (has_reads, has_writes) =
            (!self.reads.by_age.is_empty(), !self.writes.by_age.is_empty());
        match (has_reads, has_writes) {
            (false, false) => None,
            (true, false) => Some(IoKind::Read),
            (true, true) if self.starved < WRITES_STARVED => {
                self.starved += 1;
                Some(IoKind::Read)
            }
            (_, true) => {
                self.starved = 0;
                Some(IoKind::Write)
            }
        }
    }

    fn direction(&self, kind: IoKind) -> &DirectionQueue {
        match kind {
            IoKind::Read => &self.reads,
            IoKind::Write => &self.writes,
        }
    }

    fn direction_mut(&mut self, kind: IoKind) -> &mut DirectionQueue {
        match kind {
            IoKind::Read => &mut self.reads,
            IoKind::Write => &mut self.writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sequence: u64, kind: IoKind, offset: u64, pages: u32) -> QueuedRequest {
        let part = MergedPart { id: sequence, pages, submitted: sequence, fails: false };
        QueuedRequest {
            sequence,
            kind,
            offset,
            pages,
            slow: false,
            submitter: Submitter::Reader,
            parts: vec![part],
        }
    }

    fn drain(elevator: &mut Elevator, now: Nanos) -> Vec<(IoKind, u64)> {
        std::iter::from_fn(|| elevator.next(now).map(|one| (one.kind, one.offset))).collect()
    }

    #[test]
    fn none_keeps_the_order() {
        let mut elevator = Elevator::new(IoScheduler::None, 4);
        elevator.add(request(0, IoKind::Write, 50, 1));
        elevator.add(request(1, IoKind::Read, 90, 1));
        elevator.add(request(2, IoKind::Read, 10, 1));
        let order = drain(&mut elevator, 0);
        assert_eq!(order, [(IoKind::Write, 50), (IoKind::Read, 90), (IoKind::Read, 10)]);
    }

    #[test]
    fn a_batch_goes_in_one_direction_over_the_disk() {
        let mut elevator = Elevator::new(IoScheduler::MqDeadline, 32);
        for (sequence, offset) in [(0, 500), (1, 100), (2, 900), (3, 300)] {
            elevator.add(request(sequence, IoKind::Read, offset, 1));
        }
        let offsets: Vec<u64> = drain(&mut elevator, 0).iter().map(|one| one.1).collect();
        assert_eq!(offsets, [100, 300, 500, 900]);
    }

    #[test]
    fn at_the_end_of_the_disk_the_oldest_starts_the_next_batch() {
        let mut elevator = Elevator::new(IoScheduler::MqDeadline, 32);
        elevator.add(request(0, IoKind::Read, 1000, 1));
        assert_eq!(drain(&mut elevator, 0).len(), 1);
        for (sequence, offset) in [(1, 500), (2, 100), (3, 600)] {
            elevator.add(request(sequence, IoKind::Read, offset, 1));
        }
        let offsets: Vec<u64> = drain(&mut elevator, 0).iter().map(|one| one.1).collect();
        assert_eq!(offsets, [500, 600, 100]);
    }

    #[test]
    fn only_the_oldest_tags_are_sorted() {
        let mut elevator = Elevator::new(IoScheduler::MqDeadline, 1);
        for (sequence, offset) in [(0, 500), (1, 400), (2, 100)] {
            elevator.add(request(sequence, IoKind::Read, offset, 1));
        }
        assert_eq!(drain(&mut elevator, 0)[0], (IoKind::Read, 400));
    }

    #[test]
    fn writes_go_after_two_batches_of_reads() {
        let mut elevator = Elevator::new(IoScheduler::MqDeadline, 128);
        for i in 0..100 {
            elevator.add(request(2 * i, IoKind::Read, 10 * i, 1));
            elevator.add(request(2 * i + 1, IoKind::Write, 10 * i, 1));
        }
        let order = drain(&mut elevator, 0);
        assert!(order[..32].iter().all(|one| one.0 == IoKind::Read));
        assert!(order[32..48].iter().all(|one| one.0 == IoKind::Write));
        assert!(order[48..80].iter().all(|one| one.0 == IoKind::Read));
        assert_eq!(order.len(), 200);
    }

    #[test]
    fn an_expired_request_starts_a_batch() {
        let mut elevator = Elevator::new(IoScheduler::MqDeadline, 32);
        elevator.add(request(0, IoKind::Read, 900, 1));
        elevator.add(request(1, IoKind::Read, 100, 1));
        let mut late = elevator.clone();
        assert_eq!(drain(&mut elevator, 0)[0].1, 100);
        assert_eq!(drain(&mut late, READ_EXPIRE_NS)[0].1, 900);
    }

    #[test]
    fn touching_requests_merge_at_both_ends_up_to_the_limit() {
        let mut elevator = Elevator::new(IoScheduler::MqDeadline, 32);
        assert!(!elevator.add(request(0, IoKind::Write, 1000, 10)));
        assert!(elevator.add(request(1, IoKind::Write, 1010, 10)));
        assert!(elevator.add(request(2, IoKind::Write, 990, 10)));
        assert!(!elevator.add(request(3, IoKind::Read, 1020, 10)), "other direction");
        assert!(!elevator.add(request(4, IoKind::Write, 1021, 10)), "a gap");
        assert!(!elevator.add(request(5, IoKind::Write, 670, MERGE_PAGES_MAX)), "too large");
        assert_eq!(elevator.len(), 4);
        let merged = elevator.writes.by_age[&0].clone();
        assert_eq!((merged.offset, merged.pages, merged.parts.len()), (990, 30, 3));
    }
}
