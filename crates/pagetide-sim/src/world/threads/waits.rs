//! Waits of sleeping threads: for a page, or for a time.
//!
//! Invariant: a thread has at most one timer, and waits for at most one page.

use super::{ThreadNumbers, WorldEvent, WorldQueue, WorldThread};
use crate::event_queue::EventId;
use pagetide_core::units::{Nanos, Pfn};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct ThreadWaits {
    numbers: ThreadNumbers,
    pages: BTreeMap<u32, Vec<WorldThread>>,
    /// By thread.
    timers: Vec<Option<EventId>>,
}

impl ThreadWaits {
    pub fn new(numbers: ThreadNumbers) -> ThreadWaits {
        ThreadWaits { numbers, pages: BTreeMap::new(), timers: vec![None; numbers.len()] }
    }

    pub fn begin_page(&mut self, thread: WorldThread, pfn: Pfn) {
        self.pages.entry(pfn.0).or_default().push(thread);
    }

    /// Takes the threads that wait for a page.
    pub fn take_page(&mut self, pfn: Pfn) -> Vec<WorldThread> {
        self.pages.remove(&pfn.0).unwrap_or_default()
    }

    /// A thread no longer waits for its page.
    pub fn cancel_page(&mut self, thread: WorldThread) {
        for waiters in self.pages.values_mut() {
            waiters.retain(|&waiter| waiter != thread);
        }
    }

    /// Number of pages for which a thread waits.
    pub fn nr_pages(&self, thread: WorldThread) -> usize {
        self.pages.values().flatten().filter(|&&waiter| waiter == thread).count()
    }

    pub fn set_timer(&mut self, thread: WorldThread, at: Nanos, queue: &mut WorldQueue) {
        self.timers[self.numbers.id(thread) as usize] =
            Some(queue.push(at, WorldEvent::Timer(thread)));
    }

    pub fn cancel_timer(&mut self, thread: WorldThread, queue: &mut WorldQueue) {
        if let Some(timer) = self.timers[self.numbers.id(thread) as usize].take() {
            queue.cancel(timer);
        }
    }

    pub fn timer_expired(&mut self, thread: WorldThread) {
        self.timers[self.numbers.id(thread) as usize] = None;
    }

    pub fn has_timer(&self, thread: WorldThread) -> bool {
        self.timers[self.numbers.id(thread) as usize].is_some()
    }
}
