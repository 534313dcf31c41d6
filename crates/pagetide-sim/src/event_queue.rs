//! The event queue of the simulation, ordered by virtual time.
//!
//! It models the hardware timers and interrupts of a real machine. Events of the same time are
//! returned in the order of insertion, so a run never depends on a hash or an address.
//!
//! A binary heap holds small keys; payloads are stored in separate slots. Cancelling empties the
//! slot and leaves the key, which is skipped later. Keys of cancelled events are removed once they
//! are the majority, so memory stays proportional to the pending events.
//!
//! Invariant: the top of the heap is a live event, or the heap is empty. Time never runs backwards:
//! an event cannot be inserted before the last one returned.

use pagetide_core::units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Identifies a pending event, for [`EventQueue::cancel`]. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId {
    sequence: u64,
    slot: u32,
}

/// Heap key: time, sequence, slot. Sequence numbers are unique, so the slot does not affect the
/// order.
type HeapKey = Reverse<(Nanos, u64, u32)>;

#[derive(Clone, Debug)]
struct EventSlot<T> {
    sequence: u64,
    payload: Option<T>,
}

/// Events by (time, order of insertion).
///
/// ```
/// let mut queue = pagetide_sim::event_queue::EventQueue::new();
/// queue.push(20, "second");
/// let first = queue.push(10, "first");
/// queue.push(20, "third");
/// assert_eq!(queue.cancel(first), Some("first"));
/// assert_eq!(queue.pop(), Some((20, "second")));
/// assert_eq!(queue.pop(), Some((20, "third")));
/// assert_eq!(queue.pop(), None);
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<HeapKey>,
    slots: Vec<EventSlot<T>>,
    free_slots: Vec<u32>,
    next_sequence: u64,
    now: Nanos,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> EventQueue<T> {
    /// An empty queue at time 0.
    pub const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            next_sequence: 0,
            now: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event. O(log n).
    ///
    /// # Panics
    /// If `at` is before the last event returned.
    pub fn push(&mut self, at: Nanos, payload: T) -> EventId {
        assert!(at >= self.now, "event at {at} ns, but it is already {} ns", self.now);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let filled = EventSlot { sequence, payload: Some(payload) };
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.slots[slot as usize] = filled;
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 events");
                self.slots.push(filled);
                slot
            }
        };
        self.heap.push(Reverse((at, sequence, slot)));
        EventId { sequence, slot }
    }

    /// Cancels an event. Returns its payload, or `None` if it was returned or cancelled before.
    /// Amortised O(log n).
    pub fn cancel(&mut self, id: EventId) -> Option<T> {
        if !self.is_live(id.sequence, id.slot) {
            return None;
        }
        let payload = self.take(id.slot);
        self.drop_dead_top();
        self.sweep();
        Some(payload)
    }

    /// Takes the earliest event, with its time. O(log n).
    pub fn pop(&mut self) -> Option<(Nanos, T)> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        debug_assert!(at >= self.now);
        self.now = at;
        let payload = self.take(slot);
        self.drop_dead_top();
        Some((at, payload))
    }

    /// Time of the earliest event. O(1).
    pub fn peek_time(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    fn is_live(&self, sequence: u64, slot: u32) -> bool {
        self.slots
            .get(slot as usize)
            .is_some_and(|held| held.sequence == sequence && held.payload.is_some())
    }

    fn take(&mut self, slot: u32) -> T {
        self.free_slots.push(slot);
        self.slots[slot as usize].payload.take().expect("the slot of a live key is filled")
    }

    /// Removes dead keys from the top, after a slot was emptied.
    fn drop_dead_top(&mut self) {
        while let Some(&Reverse((_, sequence, slot))) = self.heap.peek() {
            if self.is_live(sequence, slot) {
                return;
            }
            self.heap.pop();
        }
    }

    /// Removes the keys of cancelled events once they are the majority.
    fn sweep(&mut self) {
        const SMALL: usize = 64;
        if self.heap.len() > SMALL && self.heap.len() > 2 * self.len() {
            let mut keys = std::mem::take(&mut self.heap).into_vec();
            keys.retain(|&Reverse((_, sequence, slot))| self.is_live(sequence, slot));
            self.heap = BinaryHeap::from(keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::draws::prng::SplitMix64;
    use std::collections::BTreeMap;

    #[test]
    fn same_time_comes_out_in_order_of_insertion() {
        let mut queue = EventQueue::new();
        for i in 0..100 {
            queue.push(u64::from(i % 3 == 0), i);
        }
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop().map(|(_, i)| i)).collect();
        let expected: Vec<i32> =
            (0..100).filter(|i| i % 3 != 0).chain((0..100).filter(|i| i % 3 == 0)).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn a_cancelled_event_does_not_happen() {
        let mut queue = EventQueue::new();
        let a = queue.push(1, 'a');
        let b = queue.push(2, 'b');
        assert_eq!(queue.cancel(a), Some('a'));
        assert_eq!(queue.cancel(a), None);
        assert_eq!(queue.peek_time(), Some(2));
        assert_eq!(queue.pop(), Some((2, 'b')));
        assert_eq!(queue.cancel(b), None);
        // The slot is reused; the old id stays invalid.
        let c = queue.push(3, 'c');
        assert_eq!(queue.cancel(a), None);
        assert_eq!(queue.cancel(c), Some('c'));
        assert!(queue.is_empty());
        assert_eq!(queue.peek_time(), None);
    }

    #[test]
    #[should_panic(expected = "already 10 ns")]
    fn the_past_is_closed() {
        let mut queue = EventQueue::new();
        queue.push(10, ());
        queue.pop();
        queue.push(9, ());
    }

    #[test]
    fn agrees_with_an_ordered_map() {
        let mut prng = SplitMix64::new(7);
        let mut queue = EventQueue::new();
        let mut model: BTreeMap<(Nanos, u64), (EventId, u64)> = BTreeMap::new();
        let mut now = 0;
        for sequence in 0..20_000 {
            match prng.below(4) {
                0 | 1 => {
                    let at = now + prng.below(50);
                    let id = queue.push(at, sequence);
                    model.insert((at, sequence), (id, sequence));
                }
                2 => {
                    let popped = queue.pop();
                    let expected = model.pop_first().map(|((at, _), (_, value))| (at, value));
                    assert_eq!(popped, expected);
                    now = popped.map_or(now, |(at, _)| at);
                }
                _ => {
                    let nth = prng.below(model.len() as u64) as usize;
                    if let Some((&key, &(id, value))) = model.iter().nth(nth) {
                        assert_eq!(queue.cancel(id), Some(value));
                        model.remove(&key);
                    }
                }
            }
            assert_eq!(queue.len(), model.len());
            assert_eq!(queue.peek_time(), model.keys().next().map(|key| key.0));
        }
    }

    #[test]
    fn cancelling_for_ever_does_not_grow_the_queue() {
        let mut queue = EventQueue::new();
        queue.push(1, 0);
        for at in 0..100_000 {
            let id = queue.push(1_000_000 + at, 1);
            queue.cancel(id);
        }
        assert_eq!(queue.len(), 1);
        assert!(queue.heap.len() <= 65);
        assert!(queue.slots.len() <= 2);
    }
}
