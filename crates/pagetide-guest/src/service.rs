//! `service`: threads that serve the requests of a task at their arrival times.
//!
//! A free thread takes the next request, sleeps until it arrives, and serves it. Latency counts
//! from the arrival, even if that is long ago. So requests are served in order by the first free
//! thread, like from a queue, and no dispatching thread is needed.
//!
//! Invariant: requests are taken once, in the order of arrival. A request that would have found the
//! queue full is not served.

use crate::contents::PageContents;
use crate::report::line;
use crate::sys::memory::{MappedRegions, MemoryMapping, PAGE_SIZE};
use crate::sys::process;
use pagetide_scenario::op::Op;
use pagetide_scenario::workload::{Arrivals, Program, ServiceRequest};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Mutex;
use std::time::Duration;

/// Histogram buckets for each power of two: percentiles are at most 0.8 % too high.
const STEPS: u64 = 128;

/// Outcomes of requests.
#[derive(Clone, Debug, Default)]
pub struct GuestLatencies {
    /// Count for each bucket of latencies (nanoseconds).
    buckets: Vec<u64>,
    /// Requests slower than the deadline.
    pub late: u64,
    /// Requests that would have found the queue full.
    pub dropped: u64,
    pub requests: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl GuestLatencies {
    pub fn new() -> GuestLatencies {
        GuestLatencies { buckets: vec![0; bucket_of(u64::MAX) + 1], ..GuestLatencies::default() }
    }

    pub fn record(&mut self, latency_ns: u64, deadline_ns: Option<u64>) {
        self.buckets[bucket_of(latency_ns)] += 1;
        self.late += u64::from(deadline_ns.is_some_and(|deadline| latency_ns > deadline));
        self.requests += 1;
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// The buckets with requests: the highest latency of each, and its count.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let used = self.buckets.iter().enumerate().filter(|(_, &count)| count > 0);
        used.map(|(bucket, &count)| (highest_of(bucket).min(self.max_ns), count))
    }

    fn merge(&mut self, other: &GuestLatencies) {
        for (bucket, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += others;
        }
        self.late += other.late;
        self.dropped += other.dropped;
        self.requests += other.requests;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The latency that `share` of 10 000 requests do not exceed.
    fn permyriad(&self, share: u64) -> u64 {
        let rank = (self.requests * share).div_ceil(10_000).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return highest_of(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Requests, late, dropped, sum, p50, p90, p99, p99.9, maximum.
    fn numbers(&self) -> [u64; 9] {
        let [p50, p90, p99, p999] = [5_000, 9_000, 9_900, 9_990].map(|share| self.permyriad(share));
        let GuestLatencies { requests, late, dropped, sum_ns, max_ns, .. } = *self;
        [requests, late, dropped, sum_ns, p50, p90, p99, p999, max_ns]
    }

    /// Sends its line of a snapshot.
    pub fn report(&self) {
        let [requests, late, dropped, sum, p50, p90, p99, p999, max] = self.numbers();
        line(format_args!(
            "@served {requests} {late} {dropped} {sum} {p50} {p90} {p99} {p999} {max}"
        ));
    }
}

/// Each value below [`STEPS`] has its own bucket.
fn bucket_of(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEPS.ilog2();
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

fn highest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let first = (bucket - shift * STEPS) << shift;
    first + ((1u64 << shift) - 1)
}

/// The common source of requests for the threads.
struct RequestSource {
    arrivals: Arrivals,
    /// Start time of the load.
    began: u64,
    /// Start times of requests that later ones may have waited for.
    begun: VecDeque<u64>,
    dropped: u64,
}

impl RequestSource {
    /// The next request that is not dropped, with its arrival time.
    fn next(&mut self) -> Option<(u64, ServiceRequest)> {
        loop {
            let at_ns = self.arrivals.next_at()?;
            let arrives = self.began + at_ns;
            let now = process::now_ns();
            while self.begun.front().is_some_and(|&begun| begun <= arrives) {
                self.begun.pop_front();
            }
            // No thread was free when it arrived, and the queue was full.
            if now > arrives && self.begun.len() >= self.arrivals.queue() as usize {
                self.dropped += 1;
                continue;
            }
            self.begun.push_back(now.max(arrives));
            return Some((arrives, self.arrivals.admit(at_ns)));
        }
    }
}

/// A thread's resources.
struct Worker<'a> {
    program: Program,
    regions: MappedRegions<'a>,
    contents: Option<PageContents>,
    files: &'a [Option<File>],
    buffer: &'a mut [u8],
    served: GuestLatencies,
    /// Bytes touched, read and written.
    bytes: u64,
    errors: u64,
}

impl Worker<'_> {
    fn serve_all(mut self, front: &Mutex<RequestSource>, deadline_ns: Option<u64>) -> Self {
        // Each program starts by requesting a request.
        let mut op = self.program.next_op().ok().flatten();
        while let Some(Op::Serve { .. }) = op {
            let next = front.lock().ok().and_then(|mut front| front.next());
            let Some((arrives, request)) = next else { break };
            let now = process::now_ns();
            if arrives > now {
                std::thread::sleep(Duration::from_nanos(arrives - now));
            }
            self.program.serve(&request);
            loop {
                op = self.program.next_op().ok().flatten();
                match op {
                    Some(Op::Serve { .. }) | None => break,
                    Some(op) => self.perform(op),
                }
            }
            self.served.record(process::now_ns().saturating_sub(arrives), deadline_ns);
        }
        self
    }

    fn access(&self, region: u32, page: u64, write: bool) -> bool {
        if let (Some(contents), true) = (&self.contents, write) {
            if let Some(words) = self.regions.words(region, page) {
                contents.write(words, region, page);
                return true;
            }
        }
        self.regions.access(region, page, write)
    }

    fn perform(&mut self, op: Op) {
        match op {
            Op::Access { region, page, write } => match self.access(region, page, write) {
                true => self.bytes += PAGE_SIZE,
                false => self.errors += 1,
            },
            Op::Discard { region, page, pages } => {
                self.errors += u64::from(!self.regions.discard(region, page, pages));
            }
            Op::Compute { ns } => process::spin(ns),
            Op::Read { file, offset, len } => {
                let read = |file: &File, buffer: &mut [u8], at| {
                    std::os::unix::fs::FileExt::read_at(file, buffer, at)
                };
                self.call(file, offset, len, read);
            }
            Op::Write { file, offset, len } => {
                let write = |file: &File, buffer: &mut [u8], at| {
                    std::os::unix::fs::FileExt::write_at(file, buffer, at)
                };
                self.call(file, offset, len, write);
            }
            // A request has no other operations.
            _ => self.errors += 1,
        }
    }

    fn call(
        &mut self,
        file: usize,
        offset: u64,
        len: u64,
        call: impl Fn(&File, &mut [u8], u64) -> std::io::Result<usize>,
    ) {
        let Some(file) = self.files.get(file).and_then(Option::as_ref) else { return };
        let (done, failed) = split_io(file, self.buffer, offset, len, call);
        self.bytes += done;
        self.errors += u64::from(failed);
    }
}

/// Makes a call of `len` bytes, split if it exceeds the buffer. Returns the bytes done, and whether
/// it failed.
pub fn split_io(
    file: &File,
    buffer: &mut [u8],
    offset: u64,
    len: u64,
    call: impl Fn(&File, &mut [u8], u64) -> std::io::Result<usize>,
) -> (u64, bool) {
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(buffer.len() as u64) as usize;
        match call(file, &mut buffer[..piece], offset + done) {
            Ok(0) => break,
            Ok(count) => done += count as u64,
            Err(_) => return (done, true),
        }
    }
    (done, false)
}

/// The results of a service.
pub struct ServiceOutcome {
    /// Its requests.
    pub served: GuestLatencies,
    /// Bytes that its threads touched, read and wrote.
    pub bytes: u64,
    pub errors: u64,
}

/// Serves the requests of the current phase until no more arrive. `buffers`: one for each thread.
pub fn serve(
    program: &Program,
    arrivals: Arrivals,
    (regions, contents): (&[Option<MemoryMapping>], Option<PageContents>),
    files: &[Option<File>],
    buffers: &mut [MemoryMapping],
) -> ServiceOutcome {
    process::set_timer_slack(1);
    let deadline_ns = arrivals.deadline_ns();
    let ends_ns = arrivals.duration_ns();
    let (threads, began) = (arrivals.threads(), process::now_ns());
    let front = Mutex::new(RequestSource { arrivals, began, begun: VecDeque::new(), dropped: 0 });
    let workers = buffers.iter_mut().take(threads as usize).enumerate().map(|(thread, buffer)| {
        let program = program.thread(thread as u32);
        let regions = MappedRegions::of(regions);
        let served = GuestLatencies::new();
        let buffer = buffer.bytes();
        Worker { program, regions, contents, files, buffer, served, bytes: 0, errors: 0 }
    });
    let mut workers: Vec<Worker<'_>> = workers.collect();
    let mut done = ServiceOutcome { served: GuestLatencies::new(), bytes: 0, errors: 0 };
    std::thread::scope(|scope| {
        let own = workers.pop();
        let front = &front;
        let others: Vec<_> = workers
            .into_iter()
            .map(|worker| scope.spawn(move || worker.serve_all(front, deadline_ns)))
            .collect();
        let own = own.map(|worker| worker.serve_all(front, deadline_ns));
        let others = others.into_iter().filter_map(|other| other.join().ok());
        for worker in own.into_iter().chain(others) {
            done.served.merge(&worker.served);
            done.bytes += worker.bytes;
            done.errors += worker.errors;
        }
    });
    let front = front.into_inner();
    if let Ok(front) = front {
        done.served.dropped = front.dropped;
        // The load lasts its full duration, unless it ended with the number of its requests.
        let end = ends_ns.filter(|_| front.arrivals.is_out_of_time()).map(|ns| began + ns);
        let left = end.map_or(0, |end| end.saturating_sub(process::now_ns()));
        std::thread::sleep(Duration::from_nanos(left));
    }
    process::set_timer_slack(0);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for value in
            (0..200).chain((8..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]))
        {
            let bucket = bucket_of(value);
            assert!(bucket >= last, "{value}");
            last = bucket;
            let highest = highest_of(bucket);
            assert!(highest >= value && highest - value <= value / STEPS, "{value} {highest}");
        }
        assert_eq!(highest_of(bucket_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles_are_those_of_what_was_recorded() {
        let mut served = GuestLatencies::new();
        (1..=1000).rev().for_each(|ms| served.record(ms * 1_000_000, Some(900_000_000)));
        let [requests, late, dropped, sum, p50, p90, p99, p999, max] = served.numbers();
        assert_eq!((requests, late, dropped, max), (1000, 100, 0, 1_000_000_000));
        assert_eq!(sum, 500_500_000_000);
        for (value, wanted) in [(p50, 500), (p90, 900), (p99, 990), (p999, 999)] {
            let wanted = wanted * 1_000_000;
            assert!(value >= wanted && value <= wanted + wanted / STEPS, "{value} {wanted}");
        }
    }
}
