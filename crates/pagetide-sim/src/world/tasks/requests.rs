//! Services: requests arrive, wait in a queue, and are served by the threads of a task.
//!
//! Linux: a listening socket and a pool of threads that wait on it (`accept`, or `epoll_wait` with
//! EPOLLEXCLUSIVE, which wakes one). All threads belong to one process and share its address space.
//! Each has its own calls and is scheduled by itself.
//!
//! The load is an open loop: requests arrive at the times of the workload, however slow the service
//! is, and wait in the order of arrival. The latency of a request is measured from its arrival, not
//! from the start of its service, to the end of its last operation. So a stall delays all requests
//! that arrive during it.
//!
//! Invariant: a thread is idle, called or busy. Requests wait only while no thread is idle.

use crate::histogram::LatencyHistogram;
use pagetide_core::units::Nanos;
use pagetide_scenario::workload::{Arrivals, ServiceRequest};
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub struct RequestResults {
    /// From arrival to end.
    pub latency: LatencyHistogram,
    /// Number of requests that exceeded the deadline.
    pub late: u64,
    /// Number of requests that arrived at a full queue.
    pub dropped: u64,
    /// Number of requests waiting or in service when the task was stopped or the run ended.
    pub unfinished: u64,
}

impl RequestResults {
    pub fn merge(&mut self, other: &RequestResults) {
        self.latency.merge(&other.latency);
        self.late += other.late;
        self.dropped += other.dropped;
        self.unfinished += other.unfinished;
    }
}

/// A service with its current load.
#[derive(Debug)]
pub(crate) struct Service {
    pub arrivals: Arrivals,
    pub began: Nanos,
    /// Arrival of the next request, relative to `began`; `None`: no more requests.
    pub next_at: Option<Nanos>,
    pub is_closed: bool,
    pub waiting: VecDeque<ServiceRequest>,
    /// Threads that wait for requests, each with the start of its wait.
    pub idle: Vec<(Nanos, usize)>,
    /// Number of threads that were woken for a request and have not taken one yet.
    pub called: u32,
    /// Number of threads that serve a request.
    pub busy: u32,
    /// When the last idle thread was called; it counts while none is idle.
    pub all_busy_since: Nanos,
}

/// Requests of which a share of this waited or were dropped make an overload.
const OVERLOAD_PART: u64 = 20;
/// Fewer requests are no load.
const OVERLOAD_REQUESTS: u64 = 100;

impl Service {
    /// A service that begins now, with all its threads idle.
    pub fn new(mut arrivals: Arrivals, began: Nanos, idle: Vec<(Nanos, usize)>) -> Service {
        Service {
            next_at: arrivals.next_at(),
            arrivals,
            began,
            is_closed: false,
            waiting: VecDeque::new(),
            idle,
            called: 0,
            busy: 0,
            all_busy_since: began,
        }
    }

    /// The requests that wait or were dropped, and all that arrived, if the service cannot keep up:
    /// a part was dropped, or a part waits and no thread was idle in the second half of the time
    /// until now.
    pub fn overload(&self, results: &RequestResults, now: Nanos) -> Option<(u64, u64)> {
        let lost = self.waiting.len() as u64 + results.dropped;
        let arrived = lost + results.latency.count() + u64::from(self.busy);
        let is_part = |requests: u64| requests * OVERLOAD_PART >= arrived;
        let are_all_busy =
            self.idle.is_empty() && 2 * (self.all_busy_since - self.began) <= now - self.began;
        let is_overloaded = is_part(results.dropped) || are_all_busy && is_part(lost);
        (is_overloaded && arrived >= OVERLOAD_REQUESTS).then_some((lost, arrived))
    }

    /// True if no request will arrive, waits or is in service.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.waiting.is_empty() && self.busy == 0 && self.called == 0
    }

    /// Removes a thread that exits.
    pub fn forget(&mut self, thread: usize) {
        self.idle.retain(|(_, idle)| *idle != thread);
    }

    /// Time at which the last thread became idle.
    pub fn latest(&self) -> Nanos {
        self.idle.iter().map(|(since, _)| *since).max().unwrap_or(0)
    }
}
