//! Belady's MIN (1966): evicts the object whose next request is the latest. No algorithm that takes
//! in every missed object misses fewer requests, if all objects have the same size.

use super::caches::{ObjectCache, RequestStream};
use std::collections::BinaryHeap;

/// Later than every request.
const NEVER: usize = usize::MAX;

#[derive(Debug)]
pub struct BeladyCache {
    /// For each request, the index of the next one for its object.
    next_of: Vec<usize>,
    /// Size of each object in the cache, with its next request.
    kept: Vec<Option<(u32, usize)>>,
    /// By next request. An entry is stale if the object's next request is another.
    queue: BinaryHeap<(usize, u32)>,
    bytes: u64,
    room: u64,
}

impl BeladyCache {
    pub fn new(stream: &RequestStream, room: u64) -> BeladyCache {
        let mut next = vec![NEVER; stream.nr_objects as usize];
        let mut next_of: Vec<usize> = (0..stream.requests.len())
            .rev()
            .map(|at| std::mem::replace(&mut next[stream.requests[at].object as usize], at))
            .collect();
        next_of.reverse();
        let kept = vec![None; next.len()];
        BeladyCache { next_of, kept, queue: BinaryHeap::new(), bytes: 0, room }
    }

    fn keep(&mut self, object: u32, bytes: u32, at: usize) {
        self.kept[object as usize] = Some((bytes, self.next_of[at]));
        self.queue.push((self.next_of[at], object));
    }
}

impl ObjectCache for BeladyCache {
    fn find(&mut self, object: u32, at: usize) -> bool {
        let Some((bytes, next)) = self.kept[object as usize] else { return false };
        // A repeat within a request changes nothing.
        if next == at {
            self.keep(object, bytes, at);
        }
        true
    }

    fn insert(&mut self, object: u32, bytes: u32, at: usize) -> bool {
        if u64::from(bytes) > self.room {
            return false;
        }
        while self.bytes + u64::from(bytes) > self.room {
            let Some((next, latest)) = self.queue.pop() else { break };
            let kept = &mut self.kept[latest as usize];
            if let Some((size, _)) = kept.take_if(|(_, known)| *known == next) {
                self.bytes -= u64::from(size);
            }
        }
        self.bytes += u64::from(bytes);
        self.keep(object, bytes, at);
        true
    }
}
