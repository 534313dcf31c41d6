//! Requests of `service`: their arrival times, and the work of a thread for one request.
//!
//! Invariant: arrivals and work are functions of the seed and the number of the request. The thread
//! and the time of serving change neither, so all variants have the same requests.

use super::load_curve::{LoadCurve, FULL_SECOND};
use super::modulo::Scatter;
use super::order::PageOrder;
use super::state::ProgramState;
use crate::draws::prng::SplitMix64;
use crate::draws::zipf::{log2, Zipf};
use crate::op::Op;
use std::ops::Range;
use std::sync::Arc;

/// ln 2, in units of 2^-32.
const LN_2: u64 = 2_977_044_472;
/// One request in the unit of a rate: thousandths, times the unit of [`FULL_SECOND`].
const REQUEST: u128 = 1000 * FULL_SECOND as u128;

/// A draw from the exponential distribution with mean 1, in units of 2^-32: -ln of a uniform draw.
fn exponential(prng: &mut SplitMix64) -> u64 {
    let bits = (64 << 32) - log2(prng.next_u64().max(1));
    ((u128::from(bits) * u128::from(LN_2)) >> 32) as u64
}

/// Requests, their arrivals and their work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceWorkload {
    /// The intervals between arrivals are exponentially distributed; if false, they are equal.
    pub poisson: bool,
    /// Requests in 1000 seconds, at the full load.
    pub rate: u64,
    /// Share of the rate over time.
    pub load: LoadCurve,
    /// Time during which requests arrive, if given.
    pub duration_ns: Option<u64>,
    /// Number of requests, if given.
    pub requests: Option<u64>,
    pub threads: u32,
    /// Number of requests that may wait for a thread.
    pub queue: u32,
    /// A request that takes longer is late.
    pub deadline_ns: Option<u64>,
    /// CPU time of a request, or its mean.
    pub cpu_ns: u64,
    /// CPU times are exponentially distributed.
    pub cpu_exponential: bool,
    /// Memory that requests touch: name of the region, pages.
    pub heap: Option<(String, u64)>,
    /// Whether every page of the heap is written first.
    pub populate: bool,
    /// Pages of the heap that a request touches.
    pub touches: u32,
    /// `Random` or `Zipf`.
    pub order: PageOrder,
    /// Share of the touches that write, in per cent.
    pub write_percent: u32,
    /// The file that requests read and write, index into
    /// [`Setup::files`](crate::model::Setup::files).
    pub file: Option<usize>,
    /// Bytes that a request reads.
    pub read: u64,
    /// Bytes that a request writes.
    pub write: u64,
    /// Pages that a request allocates and frees.
    pub allocate: u64,
    /// Bytes per second by which the service grows.
    pub grow: u64,
}

/// An admitted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRequest {
    /// Number, counted from 0, including dropped requests.
    pub number: u64,
    /// Arrival time, from the start of the load.
    pub at_ns: u64,
    /// Pages by which it grows the service.
    grown: Range<u64>,
}

/// Arrival times of the requests of a phase, in order.
#[derive(Clone, Debug)]
pub struct Arrivals {
    service: Arc<ServiceWorkload>,
    /// Bytes of a page.
    page: u64,
    prng: SplitMix64,
    number: u64,
    /// Sum of the exponential draws so far.
    drawn: u128,
    /// Pages of growth up to the last admitted request.
    grown: u64,
}

impl Arrivals {
    /// Arrival time of the next request, from the start of the load; `None`: there are no more.
    pub fn next_at(&mut self) -> Option<u64> {
        let service = &self.service;
        if service.requests.is_some_and(|requests| self.number >= requests) {
            return None;
        }
        let sum = match service.poisson {
            true => {
                self.drawn += u128::from(exponential(&mut self.prng));
                (self.drawn * REQUEST / u128::from(service.rate)) >> 32
            }
            false => (u128::from(self.number) * REQUEST).div_ceil(u128::from(service.rate)),
        };
        let at = service.load.when(u64::try_from(sum).ok()?)?;
        if service.duration_ns.is_some_and(|duration| at >= duration) {
            return None;
        }
        self.number += 1;
        Some(at)
    }

    /// Admits the last request, which arrived at `at_ns`.
    pub fn admit(&mut self, at_ns: u64) -> ServiceRequest {
        let bytes = u128::from(self.service.grow) * u128::from(at_ns) / 1_000_000_000;
        let until = (bytes / u128::from(self.page)) as u64;
        let from = std::mem::replace(&mut self.grown, until);
        ServiceRequest { number: self.number - 1, at_ns, grown: from..until }
    }

    /// Whether arrivals ended because the time is over, not because all requests have arrived.
    pub fn is_out_of_time(&self) -> bool {
        self.service.requests.is_none_or(|requests| self.number < requests)
    }

    /// Duration of the load, if given.
    pub fn duration_ns(&self) -> Option<u64> {
        self.service.duration_ns
    }

    /// Limit of the latency; a slower request is late.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.service.deadline_ns
    }

    /// Largest number of waiting requests.
    pub fn queue(&self) -> u32 {
        self.service.queue
    }

    /// Number of threads.
    pub fn threads(&self) -> u32 {
        self.service.threads
    }
}

/// Region numbers of a service.
#[derive(Debug)]
pub(super) struct ServiceRegions {
    pub(super) heap: Option<(u32, Option<Arc<Zipf>>, Scatter)>,
    /// Region for allocations; each thread has its own pages.
    pub(super) arena: Option<u32>,
    pub(super) grown: Option<u32>,
}

/// State shared by all threads.
#[derive(Debug)]
pub(super) struct ServiceState {
    pub(super) phase: u32,
    pub(super) service: Arc<ServiceWorkload>,
    pub(super) places: ServiceRegions,
    pub(super) file_size: u64,
    /// Bytes of a page.
    pub(super) page: u64,
    /// Start of the generators of arrivals and of requests.
    arrivals: u64,
    requests: u64,
}

impl ServiceState {
    /// Draws the start of the generators for this pass through the phase.
    pub(super) fn new(
        phase: u32,
        service: Arc<ServiceWorkload>,
        places: ServiceRegions,
        (file_size, page): (u64, u64),
        state: &mut ProgramState,
    ) -> ServiceState {
        let mut prng = state.draws("requests");
        let (arrivals, requests) = (prng.next_u64(), prng.next_u64());
        state.keep_draws("requests", prng);
        ServiceState { phase, service, places, file_size, page, arrivals, requests }
    }
}

/// A thread of a service.
#[derive(Debug)]
pub(super) struct ServiceThread {
    shared: Arc<ServiceState>,
    thread: u32,
    /// The current request.
    work: Option<RequestWork>,
    is_over: bool,
}

/// The remaining work of a request.
#[derive(Debug)]
struct RequestWork {
    prng: SplitMix64,
    part: RequestPart,
    grown: Range<u64>,
}

/// The parts of a request, in order.
#[derive(Clone, Copy, Debug)]
enum RequestPart {
    /// Writes this page of its allocation.
    Allocate(u64),
    Read,
    /// Remaining touches.
    Touch(u32),
    Grow,
    Compute,
    Write,
    Free,
    End,
}

impl ServiceThread {
    pub(super) fn new(shared: Arc<ServiceState>, thread: u32) -> ServiceThread {
        ServiceThread { shared, thread, work: None, is_over: false }
    }

    /// The same service for another thread.
    pub(super) fn of_thread(&self, thread: u32) -> ServiceThread {
        ServiceThread::new(Arc::clone(&self.shared), thread)
    }

    pub(super) fn arrivals(&self) -> Arrivals {
        let ServiceState { service, page, arrivals, .. } = &*self.shared;
        Arrivals {
            service: Arc::clone(service),
            page: *page,
            prng: SplitMix64::new(*arrivals),
            number: 0,
            drawn: 0,
            grown: 0,
        }
    }

    /// Starts to serve a request.
    pub(super) fn serve(&mut self, request: &ServiceRequest) {
        // Jump to the draw with the request's number in the generator that starts at `requests`.
        let mut start = SplitMix64::nth(self.shared.requests, request.number);
        let prng = SplitMix64::new(start.next_u64());
        self.work = Some(RequestWork {
            prng,
            part: RequestPart::Allocate(0),
            grown: request.grown.clone(),
        });
    }

    /// Ends the load: no more requests arrive.
    pub(super) fn end_load(&mut self) {
        self.is_over = true;
    }

    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        if let Some(work) = &mut self.work {
            if let Some(op) = work.next_op(&self.shared, self.thread) {
                return Some(op);
            }
            self.work = None;
        }
        (!self.is_over).then_some(Op::Serve { phase: self.shared.phase })
    }
}

impl RequestWork {
    fn next_op(&mut self, shared: &ServiceState, thread: u32) -> Option<Op> {
        let ServiceState { service, places, .. } = shared;
        let access = |region, page, write| Some(Op::Access { region, page, write });
        let own = u64::from(thread) * service.allocate;
        loop {
            match self.part {
                RequestPart::Allocate(page) => match places.arena {
                    Some(region) if page < service.allocate => {
                        self.part = RequestPart::Allocate(page + 1);
                        return access(region, own + page, true);
                    }
                    _ => self.part = RequestPart::Read,
                },
                RequestPart::Read => {
                    self.part = RequestPart::Touch(service.touches);
                    if let (Some(file), true) = (service.file, service.read > 0) {
                        let (offset, len) = self.place(shared, service.read);
                        return Some(Op::Read { file, offset, len });
                    }
                }
                RequestPart::Touch(left) => match &places.heap {
                    Some((region, zipf, scatter)) if left > 0 => {
                        self.part = RequestPart::Touch(left - 1);
                        let page = match zipf {
                            Some(zipf) => scatter.page(zipf.draw(&mut self.prng) - 1),
                            None => self.prng.below(scatter.pages()),
                        };
                        let percent = u64::from(service.write_percent);
                        let write = match percent {
                            0 => false,
                            100 => true,
                            _ => self.prng.below(100) < percent,
                        };
                        return access(*region, page, write);
                    }
                    _ => self.part = RequestPart::Grow,
                },
                RequestPart::Grow => match (places.grown, self.grown.next()) {
                    (Some(region), Some(page)) => return access(region, page, true),
                    _ => self.part = RequestPart::Compute,
                },
                RequestPart::Compute => {
                    self.part = RequestPart::Write;
                    let ns = match service.cpu_exponential {
                        false => service.cpu_ns,
                        true => {
                            let drawn = u128::from(exponential(&mut self.prng));
                            ((u128::from(service.cpu_ns) * drawn) >> 32) as u64
                        }
                    };
                    if ns > 0 {
                        return Some(Op::Compute { ns });
                    }
                }
                RequestPart::Write => {
                    self.part = RequestPart::Free;
                    if let (Some(file), true) = (service.file, service.write > 0) {
                        let (offset, len) = self.place(shared, service.write);
                        return Some(Op::Write { file, offset, len });
                    }
                }
                RequestPart::Free => {
                    self.part = RequestPart::End;
                    if let Some(region) = places.arena {
                        let pages = service.allocate;
                        return Some(Op::Discard { region, page: own, pages });
                    }
                }
                RequestPart::End => return None,
            }
        }
    }

    /// A random range of the file, aligned to its length.
    fn place(&mut self, shared: &ServiceState, len: u64) -> (u64, u64) {
        (self.prng.below(shared.file_size / len) * len, len)
    }
}

impl SplitMix64 {
    /// The generator that starts with `seed`, after `draws` draws.
    fn nth(seed: u64, draws: u64) -> SplitMix64 {
        SplitMix64::new(seed.wrapping_add(draws.wrapping_mul(crate::draws::prng::GOLDEN_GAMMA)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_exponential() {
        let mut prng = SplitMix64::new(1);
        let draws: Vec<f64> =
            (0..200_000).map(|_| exponential(&mut prng) as f64 / (1u64 << 32) as f64).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance =
            draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        for quantile in [0.1, 0.5, 0.9, 0.99] {
            let above = draws.iter().filter(|&&draw| draw > -f64::ln(1.0 - quantile)).count();
            let share = above as f64 / draws.len() as f64;
            assert!((share - (1.0 - quantile)).abs() < 0.005, "{quantile}: {share}");
        }
    }

    #[test]
    fn a_generator_is_found_by_the_number_of_its_draws() {
        let mut prng = SplitMix64::new(42);
        for number in 0..10 {
            assert_eq!(SplitMix64::nth(42, number), prng);
            prng.next_u64();
        }
    }
}
