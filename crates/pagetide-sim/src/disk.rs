//! Disks: requests go in, completions come out later.
//!
//! Stands for a block device with its queue: Linux's elevator (`elevator`, a file beside this one),
//! then the device itself (figures in `preset`). The device serves several requests at a time.
//! Each first takes its latency, in parallel with the others; then its data crosses the one
//! channel, one request after the other, at the disk's bandwidth. A rotating disk has one arm, so
//! one request is in service, and its latency is the seek from where the arm is, by the square
//! root of the distance (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994), and
//! a wait for the sector; a request that continues the last one pays neither.
//!
//! # What may vary and what may fail
//!
//! Everything random comes from the run's seed, through generators of the disk's own: one for
//! latencies, one for errors, one for slowness. Latencies deviate by at most the preset's jitter
//! (triangular, two draws a request); a rotating disk's wait is uniform over a rotation (one draw
//! a request). Faults follow TigerBeetle's habit of saying first what may fail, how, and why that
//! can be survived:
//!
//! * A read or a write **fails** as a whole, with the given odds, after taking its usual time. The
//!   data on disk stays as it was; the same request made again draws again. So every error is
//!   transient, and a manager that reports or repeats it loses nothing.
//! * A request is **slow**: its latency is multiplied. The channel is not held meanwhile; other
//!   requests overtake it.
//! * Never: lost or doubled completions, corrupt data, completions before their time.
//!
//! Faults are drawn when a request is submitted, in that order: which request fails does not
//! depend on timing, and turning one fault on or off does not shift the others.
//!
//! Invariant: each request submitted completes exactly once, not before it was submitted; at most
//! `queue_depth` are in service; the channel carries one at a time.

mod elevator;
mod preset;
#[cfg(test)]
mod tests;
mod throttle;

pub use elevator::{FIFO_BATCH, MERGE_PAGES_MAX, READ_EXPIRE_NS, WRITES_STARVED, WRITE_EXPIRE_NS};
pub use preset::{DiskModel, IoScheduler, Lane, Mechanics};
pub use throttle::Submitter;

use elevator::{Elevator, Part, Queued};
use pagetide_core::page_size::PageSize;
use pagetide_core::units::{int_sqrt, Nanos};
use pagetide_scenario::model;
use pagetide_scenario::prng::{sub_seed, SplitMix64};
use preset::SERVICE_NS_MAX;
use std::collections::{BTreeMap, VecDeque};
use throttle::Throttle;

/// Direction of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoKind {
    /// From disk to memory.
    Read,
    /// From memory to disk.
    Write,
}

/// What a caller asks of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's name for it, returned in [`Completion::id`].
    pub id: u64,
    /// Read or write.
    pub kind: IoKind,
    /// First page on the disk.
    pub offset: u64,
    /// Pages, at least one.
    pub pages: u32,
    pub submitter: Submitter,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IoError {
    /// The disk was told to fail it (`EIO`).
    #[error("input/output error (injected)")]
    Injected,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Name given in [`Request::id`].
    pub id: u64,
    /// Read or write.
    pub kind: IoKind,
    /// How it went.
    pub result: Result<(), IoError>,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it was done.
    pub at: Nanos,
}

/// What a disk has done so far. Linux: /proc/diskstats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Reads completed, failed ones included.
    pub reads: u64,
    /// Writes completed, failed ones included.
    pub writes: u64,
    /// Bytes read, without failed reads.
    pub read_bytes: u64,
    /// Bytes written, without failed writes.
    pub write_bytes: u64,
    /// Reads failed.
    pub read_errors: u64,
    /// Writes failed.
    pub write_errors: u64,
    /// Requests made slow.
    pub slow: u64,
    /// Requests merged into one that waited.
    pub merges: u64,
    /// Time with at least one request in service.
    pub busy_ns: Nanos,
    /// Time that requests waited in the queue, summed.
    pub queue_ns: Nanos,
    /// Time that requests were in service, summed.
    pub service_ns: Nanos,
}

impl DiskStats {
    fn count(&mut self, kind: IoKind, part: &Part, page_size: PageSize) {
        let (requests, bytes, errors) = match kind {
            IoKind::Read => (&mut self.reads, &mut self.read_bytes, &mut self.read_errors),
            IoKind::Write => (&mut self.writes, &mut self.write_bytes, &mut self.write_errors),
        };
        *requests += 1;
        if part.fails {
            *errors += 1;
        } else {
            *bytes += page_size.bytes_of(part.pages.into());
        }
    }
}

/// A request in service.
#[derive(Clone, Debug)]
struct InService {
    request: Queued,
    dispatched: Nanos,
    transfer_ns: Nanos,
    recovery_ns: Nanos,
}

/// A disk with its queue.
///
/// Times given to it must not decrease. After every call, [`Disk::next_completion`] may have
/// changed.
#[derive(Clone, Debug)]
pub struct Disk {
    model: DiskModel,
    /// What offsets and lengths count.
    page_size: PageSize,
    faults: model::DiskFaults,
    latency_prng: SplitMix64,
    error_prng: SplitMix64,
    slow_prng: SplitMix64,

    elevator: Elevator,
    throttle: Throttle,
    /// Waiting for their data, by (time it is there, order of dispatch).
    accessing: BTreeMap<(Nanos, u64), InService>,
    /// On the channel or in line for it, with the time each is done; in order.
    transferring: VecDeque<(Nanos, InService)>,
    /// Done, not yet fetched; in order.
    done: VecDeque<Completion>,

    channel_free_at: Nanos,
    /// Where the last request of each direction ended; where the arm is, for a rotating disk.
    read_end: u64,
    write_end: u64,
    arm: u64,

    now: Nanos,
    busy_since: Nanos,
    next_sequence: u64,
    next_dispatch: u64,
    stats: DiskStats,
}

impl Disk {
    /// A disk as the scenario describes it; `seed` is the run's.
    pub fn new(disk: &model::Disk, seed: u64) -> Self {
        let model = DiskModel::of_scenario(disk);
        let prng = |part| SplitMix64::new(sub_seed(seed, &format!("disk.{}.{part}", disk.name)));
        Self {
            elevator: Elevator::new(model.scheduler, model.queue_depth),
            throttle: Throttle::new(
                model.scheduler,
                Some(model.queue_depth).filter(|_| !model.is_instant()),
            ),
            model,
            page_size: PageSize::default(),
            faults: disk.faults.clone(),
            latency_prng: prng("latency"),
            error_prng: prng("error"),
            slow_prng: prng("slow"),
            accessing: BTreeMap::new(),
            transferring: VecDeque::new(),
            done: VecDeque::new(),
            channel_free_at: 0,
            read_end: 0,
            write_end: 0,
            arm: 0,
            now: 0,
            busy_since: 0,
            next_sequence: 0,
            next_dispatch: 0,
            stats: DiskStats::default(),
        }
    }

    /// Makes it a disk whose offsets and lengths count pages of this size, not of 4 KiB.
    pub fn with_page_size(mut self, page_size: PageSize) -> Self {
        if let Some(mechanics) = &mut self.model.mechanics {
            let bytes = self.page_size.bytes_of(mechanics.capacity_pages);
            mechanics.capacity_pages = page_size.pages_in(bytes);
        }
        self.page_size = page_size;
        self
    }

    /// Makes it a disk of a kernel that does not throttle writeback (before 4.10).
    pub fn without_writeback_throttling(mut self) -> Self {
        self.throttle.without_writeback_throttling();
        self
    }

    /// The figures in force.
    pub fn model(&self) -> &DiskModel {
        &self.model
    }

    /// Queues a request and starts it if the disk has room.
    pub fn submit(&mut self, now: Nanos, request: Request) {
        self.submit_all(now, [request]);
    }

    /// Queues several requests before any of them starts, so that neighbours merge. Linux: what a
    /// task submits under one plug.
    pub fn submit_all(&mut self, now: Nanos, requests: impl IntoIterator<Item = Request>) {
        self.advance(now);
        for request in requests {
            self.enqueue(request);
        }
        self.dispatch(now);
    }

    /// When the next request is done, if nothing else is submitted before; `None` if none is due.
    /// May lie at or before the present: that completion is ready to be fetched.
    pub fn next_completion(&self) -> Option<Nanos> {
        if let Some(completion) = self.done.front() {
            return Some(completion.at);
        }
        if let Some((at, _)) = self.transferring.front() {
            return Some(*at);
        }
        // Nothing is on the channel, so the first to have its data is the first done.
        let ((ready, _), first) = self.accessing.first_key_value()?;
        Some((*ready).max(self.channel_free_at) + first.transfer_ns)
    }

    /// Fetches the earliest completion that is due at `now`.
    pub fn pop_completion(&mut self, now: Nanos) -> Option<Completion> {
        self.advance(now);
        self.done.pop_front()
    }

    /// Requests that `submitter` may submit now before it has to wait for completions; 0: it has to
    /// wait. Nobody has to wait for a disk that has nothing to do.
    pub fn room(&self, submitter: Submitter, now: Nanos) -> u32 {
        self.throttle.room(submitter, now)
    }

    /// A writer to this disk is being paused for the dirty limits.
    pub fn writer_paused(&mut self, now: Nanos) {
        self.throttle.writer_paused(now);
    }

    /// Requests in service.
    pub fn in_service(&self) -> usize {
        self.accessing.len() + self.transferring.len()
    }

    /// Requests waiting in the queue, merged ones counted once.
    pub fn queued(&self) -> usize {
        self.elevator.len()
    }

    /// Whether nothing is queued, in service or waiting to be fetched.
    pub fn is_idle(&self) -> bool {
        self.queued() == 0 && self.in_service() == 0 && self.done.is_empty()
    }

    /// The counters, as of the last call that gave a time.
    pub fn stats(&self) -> DiskStats {
        let mut stats = self.stats;
        if self.in_service() > 0 {
            stats.busy_ns += self.now - self.busy_since;
        }
        stats
    }

    fn enqueue(&mut self, request: Request) {
        assert!(request.pages > 0, "request {} is empty", request.id);
        let error_ppm = match request.kind {
            IoKind::Read => self.faults.read_error_ppm,
            IoKind::Write => self.faults.write_error_ppm,
        };
        // Both are drawn for every request, whatever the odds.
        let fails = self.error_prng.below(1_000_000) < u64::from(error_ppm);
        let slow = self.slow_prng.below(1_000_000) < u64::from(self.faults.slow_ppm);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let part = Part { id: request.id, pages: request.pages, submitted: self.now, fails };
        let merged = self.elevator.add(Queued {
            sequence,
            kind: request.kind,
            offset: request.offset,
            pages: request.pages,
            slow,
            submitter: request.submitter,
            parts: vec![part],
        });
        if !merged {
            self.throttle.begin(request.submitter, self.now);
        }
        self.stats.merges += u64::from(merged);
        self.stats.slow += u64::from(slow);
    }

    /// Lets the disk work until `now`.
    fn advance(&mut self, now: Nanos) {
        assert!(now >= self.now, "time ran backwards from {} to {now}", self.now);
        loop {
            let done_at = self.transferring.front().map_or(Nanos::MAX, |(at, _)| *at);
            let ready_at = self.accessing.keys().next().map_or(Nanos::MAX, |key| key.0);
            if done_at.min(ready_at) > now {
                break;
            }
            if done_at <= ready_at {
                let (at, served) = self.transferring.pop_front().expect("has a time");
                self.now = at;
                self.complete(at, served);
                self.dispatch(at);
            } else {
                let ((ready, _), served) = self.accessing.pop_first().expect("has a time");
                self.now = ready;
                let end = ready.max(self.channel_free_at) + served.transfer_ns;
                self.channel_free_at = end + served.recovery_ns;
                self.transferring.push_back((end, served));
            }
        }
        self.now = now;
    }

    fn dispatch(&mut self, now: Nanos) {
        let servers = if self.model.mechanics.is_some() { 1 } else { self.model.queue_depth };
        while self.in_service() < servers as usize {
            let Some(request) = self.elevator.next(now) else {
                return;
            };
            if self.in_service() == 0 {
                self.busy_since = now;
            }
            let (ready, served) = self.start(now, request);
            self.accessing.insert((ready, self.next_dispatch), served);
            self.next_dispatch += 1;
        }
    }

    /// Starts service: when the data is there, and what follows.
    fn start(&mut self, now: Nanos, request: Queued) -> (Nanos, InService) {
        let (lane, end) = match request.kind {
            IoKind::Read => (self.model.read, &mut self.read_end),
            IoKind::Write => (self.model.write, &mut self.write_end),
        };
        let continues = *end == request.offset;
        *end = request.end();
        let mut latency_ns = match self.model.mechanics {
            Some(mechanics) => self.position_arm(&mechanics, &lane, &request),
            None if continues => self.jittered(lane.latency_sequential_ns),
            None => self.jittered(lane.latency_ns),
        };
        if request.slow {
            latency_ns = latency_ns.saturating_mul(u64::from(self.faults.slow_factor.max(1)));
        }
        for part in &request.parts {
            self.stats.queue_ns += now - part.submitted;
        }
        let served = InService {
            dispatched: now,
            transfer_ns: lane.transfer_ns(request.pages, self.page_size),
            recovery_ns: if continues { 0 } else { lane.recovery_ns },
            request,
        };
        (now + latency_ns.min(SERVICE_NS_MAX), served)
    }

    /// Moves the arm to the request and past it; the time until the first sector is under the head.
    fn position_arm(&mut self, mechanics: &Mechanics, lane: &Lane, request: &Queued) -> Nanos {
        let from = std::mem::replace(&mut self.arm, request.end());
        let command_ns = self.jittered(lane.latency_sequential_ns);
        let half_rotation_ns = (mechanics.rotation_ns / 2).min(lane.latency_ns);
        let wait_ns = self.latency_prng.below(2 * half_rotation_ns + 1);
        if from == request.offset {
            return command_ns;
        }
        let seek_mean_ns = lane.latency_ns - half_rotation_ns;
        let distance = from.abs_diff(request.offset).min(mechanics.capacity_pages);
        let seek_ns = seek_time(mechanics, seek_mean_ns, distance);
        let jump_ns = seek_ns + wait_ns;
        // A short gap ahead passes under the head by itself.
        let gap_ns = match u32::try_from(distance) {
            Ok(gap) if request.offset > from => lane.transfer_ns(gap, self.page_size),
            _ => Nanos::MAX,
        };
        command_ns + jump_ns.min(gap_ns)
    }

    /// `mean_ns` with the preset's triangular deviation. Two draws, always.
    fn jittered(&mut self, mean_ns: Nanos) -> Nanos {
        let spread = u64::from(self.model.jitter_permille);
        let up = self.latency_prng.below(spread + 1);
        let down = self.latency_prng.below(spread + 1);
        let permille = 1000 + up - down;
        (u128::from(mean_ns) * u128::from(permille) / 1000) as Nanos
    }

    fn complete(&mut self, at: Nanos, served: InService) {
        let kind = served.request.kind;
        self.throttle.end(served.request.submitter, at);
        for part in &served.request.parts {
            assert!(at >= part.submitted);
            self.stats.service_ns += at - served.dispatched;
            self.stats.count(kind, part, self.page_size);
            self.done.push_back(Completion {
                id: part.id,
                kind,
                result: if part.fails { Err(IoError::Injected) } else { Ok(()) },
                submitted: part.submitted,
                at,
            });
        }
        if self.in_service() == 0 {
            self.stats.busy_ns += at - self.busy_since;
        }
    }
}

/// Seek over `distance` pages: the shortest seek, rising with the square root of the distance to
/// the mean seek at a third of the disk, which is the mean distance of random requests.
fn seek_time(mechanics: &Mechanics, seek_mean_ns: Nanos, distance: u64) -> Nanos {
    const SCALE_BITS: u32 = 10;
    let shortest_ns = mechanics.seek_min_ns.min(seek_mean_ns);
    let thirds = (u128::from(distance) * 3) << (2 * SCALE_BITS);
    let ratio = (thirds / u128::from(mechanics.capacity_pages)) as u64;
    shortest_ns + (((seek_mean_ns - shortest_ns) * int_sqrt(ratio)) >> SCALE_BITS)
}
