//! Model of a block device with its request queue.
//!
//! Requests wait in Linux's elevator (`elevator`), then the device serves them (parameters in
//! `preset`), several at a time. Each request first takes its latency, in parallel with the others.
//! Then its data crosses a single channel, one request after the other, at the disk's bandwidth. A
//! rotating disk has one arm and serves one request at a time. Its latency is a seek, which grows
//! with the square root of the distance (Ruemmler and Wilkes, "An introduction to disk drive
//! modeling", 1994), and a wait for the sector. A request that continues the last one has neither.
//!
//! # Randomness and faults
//!
//! All randomness comes from the run's seed, through three generators per disk: for latencies,
//! errors and slowness. Latencies deviate by at most the preset's jitter (triangular, two draws a
//! request). The wait for the sector is uniform over a rotation (one draw a request). A scenario may
//! give a distribution of the latencies in place of these (`LatencyShape`); each request then draws
//! its latency from it, independently of the others (one draw). These faults are possible:
//!
//! * A read or write **fails** as a whole, with the given probability, after its usual time. The
//!   data on disk does not change, and a repeated request draws again. So every error is transient,
//!   and a caller that reports or repeats it loses nothing.
//! * A request is **slow**: its latency is multiplied. It does not hold the channel during that
//!   time, so other requests overtake it.
//! * Never: lost or duplicate completions, corrupt data, completions before their time.
//!
//! Faults are drawn at submission, in the order of submission. So the failing requests do not
//! depend on timing, and enabling one kind of fault does not change the others.
//!
//! Invariant: each submitted request completes exactly once, not before its submission. At most
//! `queue_depth` requests are in service. The channel carries one at a time.

mod elevator;
mod plug;
mod preset;
#[cfg(test)]
mod tests;
mod throttle;

pub use elevator::{FIFO_BATCH, MERGE_PAGES_MAX, READ_EXPIRE_NS, WRITES_STARVED, WRITE_EXPIRE_NS};
pub(crate) use plug::{DiskRange, IoPlug};
pub use preset::{DiskLane, DiskMechanics, DiskParams, IoScheduler};
pub use throttle::Submitter;

use elevator::{Elevator, MergedPart, QueuedRequest};
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{int_sqrt, Nanos};
use pagetide_scenario::draws::prng::{sub_seed, SplitMix64};
use pagetide_scenario::model;
use preset::SERVICE_NS_MAX;
use std::collections::{BTreeMap, VecDeque};
use throttle::SubmitLimits;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoKind {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRequest {
    /// Chosen by the caller, returned in [`DiskCompletion::id`].
    pub id: u64,
    pub kind: IoKind,
    /// First page on the disk.
    pub offset: u64,
    /// Number of pages, at least one.
    pub pages: u32,
    pub submitter: Submitter,
    /// Time for which it was in a plug before its submission.
    pub plugged: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IoError {
    /// A fault injected by the scenario (`EIO`).
    #[error("input/output error (injected)")]
    Injected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCompletion {
    pub id: u64,
    pub kind: IoKind,
    pub result: Result<(), IoError>,
    /// Time of submission, or of the start of its plug.
    pub submitted: Nanos,
    pub at: Nanos,
}

/// Statistics of a disk. Linux: /proc/diskstats.
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
    pub read_errors: u64,
    pub write_errors: u64,
    /// Requests slowed down by a fault.
    pub slow: u64,
    pub merges: u64,
    /// Time with at least one request in service.
    pub busy_ns: Nanos,
    /// Sum of the times of requests in plugs and in the queue.
    pub queue_ns: Nanos,
    pub service_ns: Nanos,
    /// Requests that were started, after merging, and their time in plugs and in the queue; reads
    /// and writes.
    pub waits: [DiskWaits; 2],
}

/// Time of requests before their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskWaits {
    pub requests: u64,
    pub ns: Nanos,
}

impl DiskStats {
    fn count(&mut self, kind: IoKind, part: &MergedPart, page_size: PageSize) {
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

#[derive(Clone, Debug)]
struct InService {
    request: QueuedRequest,
    dispatched: Nanos,
    transfer_ns: Nanos,
    recovery_ns: Nanos,
}

/// A disk with its queue.
///
/// The times passed to it must not decrease. Any call may change [`Disk::next_completion`].
#[derive(Clone, Debug)]
pub struct Disk {
    model: DiskParams,
    /// Unit of offsets and lengths.
    page_size: PageSize,
    faults: model::DiskFaults,
    latency_prng: SplitMix64,
    error_prng: SplitMix64,
    slow_prng: SplitMix64,

    elevator: Elevator,
    throttle: SubmitLimits,
    /// Requests in their latency, by (end of the latency, order of dispatch).
    accessing: BTreeMap<(Nanos, u64), InService>,
    /// Requests that use or wait for the channel, each with its end, in order.
    transferring: VecDeque<(Nanos, InService)>,
    /// Completions not yet fetched, in order.
    done: VecDeque<DiskCompletion>,

    channel_free_at: Nanos,
    /// End of the last request of each direction; position of the arm of a rotating disk.
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
    /// Creates a disk of the scenario. `seed` is the run's.
    pub fn new(disk: &model::DiskSetup, seed: u64) -> Self {
        let model = DiskParams::of_scenario(disk);
        let prng = |part| SplitMix64::new(sub_seed(seed, &format!("disk.{}.{part}", disk.name)));
        Self {
            elevator: Elevator::new(model.scheduler, model.queue_depth),
            throttle: SubmitLimits::new(
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

    /// Sets the unit of offsets and lengths to pages of this size; the default is 4 KiB.
    pub fn with_page_size(mut self, page_size: PageSize) -> Self {
        if let Some(mechanics) = &mut self.model.mechanics {
            let bytes = self.page_size.bytes_of(mechanics.capacity_pages);
            mechanics.capacity_pages = page_size.pages_in(bytes);
        }
        self.page_size = page_size;
        self
    }

    /// Turns off writeback throttling, as in kernels before 4.10.
    pub fn without_writeback_throttling(mut self) -> Self {
        self.throttle.without_writeback_throttling();
        self
    }

    pub fn model(&self) -> &DiskParams {
        &self.model
    }

    /// Queues a request, and starts it if the disk can serve more.
    pub fn submit(&mut self, now: Nanos, request: DiskRequest) {
        self.submit_all(now, [request]);
    }

    /// Queues several requests before any of them starts, so that neighbours merge. Linux: the
    /// requests of a plug.
    pub fn submit_all(&mut self, now: Nanos, requests: impl IntoIterator<Item = DiskRequest>) {
        self.advance(now);
        for request in requests {
            self.enqueue(request);
        }
        self.dispatch(now);
    }

    /// Time of the next completion, if nothing else is submitted before; `None` if the disk has no
    /// requests. A time that is not in the future means that a completion can be fetched.
    pub fn next_completion(&self) -> Option<Nanos> {
        if let Some(completion) = self.done.front() {
            return Some(completion.at);
        }
        if let Some((at, _)) = self.transferring.front() {
            return Some(*at);
        }
        // The channel is free, so the request with the earliest end of latency completes first.
        let ((ready, _), first) = self.accessing.first_key_value()?;
        Some((*ready).max(self.channel_free_at) + first.transfer_ns)
    }

    /// Fetches the earliest completion that is due at `now`.
    pub fn pop_completion(&mut self, now: Nanos) -> Option<DiskCompletion> {
        self.advance(now);
        self.done.pop_front()
    }

    /// Number of requests that `submitter` may submit now; 0: it must wait for completions. It is
    /// never 0 for an idle disk.
    pub fn room(&self, submitter: Submitter, now: Nanos) -> u32 {
        self.throttle.room(submitter, now)
    }

    /// Notes that a writer to this disk is paused in balance_dirty_pages().
    pub fn writer_paused(&mut self, now: Nanos) {
        self.throttle.writer_paused(now);
    }

    pub fn in_service(&self) -> usize {
        self.accessing.len() + self.transferring.len()
    }

    /// Number of requests in the queue; merged requests count as one.
    pub fn queued(&self) -> usize {
        self.elevator.len()
    }

    /// True if no request is queued, in service or waiting to be fetched.
    pub fn is_idle(&self) -> bool {
        self.queued() == 0 && self.in_service() == 0 && self.done.is_empty()
    }

    /// The statistics at the time of the last call.
    pub fn stats(&self) -> DiskStats {
        let mut stats = self.stats;
        if self.in_service() > 0 {
            stats.busy_ns += self.now - self.busy_since;
        }
        stats
    }

    fn enqueue(&mut self, request: DiskRequest) {
        assert!(request.pages > 0, "request {} is empty", request.id);
        let error_ppm = match request.kind {
            IoKind::Read => self.faults.read_error_ppm,
            IoKind::Write => self.faults.write_error_ppm,
        };
        // Draw both for every request, so that the probabilities do not shift later draws.
        let fails = self.error_prng.below(1_000_000) < u64::from(error_ppm);
        let slow = self.slow_prng.below(1_000_000) < u64::from(self.faults.slow_ppm);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let submitted = self.now.saturating_sub(request.plugged);
        let part = MergedPart { id: request.id, pages: request.pages, submitted, fails };
        let merged = self.elevator.add(QueuedRequest {
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

    /// Starts the service of a request. Returns the end of its latency.
    fn start(&mut self, now: Nanos, request: QueuedRequest) -> (Nanos, InService) {
        let (lane, shape, end) = match request.kind {
            IoKind::Read => (self.model.read, &self.model.read_shape, &mut self.read_end),
            IoKind::Write => (self.model.write, &self.model.write_shape, &mut self.write_end),
        };
        let continues = *end == request.offset;
        *end = request.end();
        let mut latency_ns = match (shape, self.model.mechanics) {
            (Some(shape), _) => {
                self.arm = request.end();
                shape.draw(&mut self.latency_prng)
            }
            (None, Some(mechanics)) => self.position_arm(&mechanics, &lane, &request),
            (None, None) if continues => self.jittered(lane.latency_sequential_ns),
            (None, None) => self.jittered(lane.latency_ns),
        };
        if request.slow {
            latency_ns = latency_ns.saturating_mul(u64::from(self.faults.slow_factor.max(1)));
        }
        let waits = &mut self.stats.waits[request.kind as usize];
        waits.requests += 1;
        waits.ns += now - request.submitted();
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

    /// Moves the arm to the end of the request. Returns the time until the head reaches its first
    /// sector.
    fn position_arm(
        &mut self,
        mechanics: &DiskMechanics,
        lane: &DiskLane,
        request: &QueuedRequest,
    ) -> Nanos {
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
        // To skip a short gap ahead, waiting is faster than a seek.
        let gap_ns = match u32::try_from(distance) {
            Ok(gap) if request.offset > from => lane.transfer_ns(gap, self.page_size),
            _ => Nanos::MAX,
        };
        command_ns + jump_ns.min(gap_ns)
    }

    /// `mean_ns` with the preset's triangular deviation. Always makes two draws.
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
            self.done.push_back(DiskCompletion {
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

/// Seek time over `distance` pages. It grows with the square root of the distance, from the
/// shortest seek to the mean seek at a third of the disk (the mean distance of random requests).
fn seek_time(mechanics: &DiskMechanics, seek_mean_ns: Nanos, distance: u64) -> Nanos {
    const SCALE_BITS: u32 = 10;
    let shortest_ns = mechanics.seek_min_ns.min(seek_mean_ns);
    let thirds = (u128::from(distance) * 3) << (2 * SCALE_BITS);
    let ratio = (thirds / u128::from(mechanics.capacity_pages)) as u64;
    shortest_ns + (((seek_mean_ns - shortest_ns) * int_sqrt(ratio)) >> SCALE_BITS)
}
