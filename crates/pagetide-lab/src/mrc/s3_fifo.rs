//! S3-FIFO (Yang and others, 2023): new objects enter a small queue of a tenth of the room. Objects
//! that are requested twice there go on to the main queue, the others are evicted and remembered. A
//! remembered object enters the main queue. The main queue gives an object another round for each
//! request, up to three.

use super::caches::{ObjectCache, ObjectLists};

const SMALL: usize = 0;
const MAIN: usize = 1;
/// Objects that the small queue has evicted.
const REMEMBERED: usize = 2;

/// Requests in the small queue that take an object to the main queue.
const TO_MAIN: u8 = 2;
/// Most rounds in the main queue.
const MOST_ROUNDS: u8 = 3;

#[derive(Debug)]
pub struct S3FifoCache {
    lists: ObjectLists<3>,
    /// Requests for each object since it entered its queue.
    requests: Vec<u8>,
    room: u64,
    /// Rooms of the queues.
    small: u64,
    remembered: u64,
    has_evicted: bool,
    /// The object of this request was remembered.
    was_remembered: bool,
}

impl S3FifoCache {
    pub fn new(nr_objects: usize, room: u64) -> S3FifoCache {
        S3FifoCache {
            lists: ObjectLists::new(nr_objects),
            requests: vec![0; nr_objects],
            room,
            small: (room as f64 * 0.1) as u64,
            remembered: (room as f64 * 0.9) as u64,
            has_evicted: false,
            was_remembered: false,
        }
    }

    fn enter(&mut self, list: usize, object: u32, bytes: u32, requests: u8) {
        self.requests[object as usize] = requests;
        self.lists.push(list, object, bytes);
    }

    fn evict_from_small(&mut self) {
        while let Some((object, bytes)) = self.lists.pop(SMALL) {
            if self.requests[object as usize] >= TO_MAIN {
                self.enter(MAIN, object, bytes, 0);
                continue;
            }
            if u64::from(bytes) <= self.remembered {
                while self.lists.bytes(REMEMBERED) + u64::from(bytes) > self.remembered {
                    self.lists.pop(REMEMBERED);
                }
                self.lists.push(REMEMBERED, object, bytes);
            }
            return;
        }
    }

    fn evict_from_main(&mut self) {
        while let Some((object, bytes)) = self.lists.pop(MAIN) {
            match self.requests[object as usize] {
                0 => return,
                requests => self.enter(MAIN, object, bytes, requests.min(MOST_ROUNDS) - 1),
            }
        }
    }
}

impl ObjectCache for S3FifoCache {
    fn find(&mut self, object: u32, _: usize) -> bool {
        let list = self.lists.list_of(object);
        self.was_remembered = list == Some(REMEMBERED);
        match list {
            Some(SMALL | MAIN) => {
                let requests = &mut self.requests[object as usize];
                *requests = requests.saturating_add(1);
                true
            }
            Some(_) => {
                self.lists.remove(object);
                false
            }
            None => false,
        }
    }

    fn insert(&mut self, object: u32, bytes: u32, _: usize) -> bool {
        let size = u64::from(bytes);
        if size > self.small {
            return false;
        }
        while self.lists.bytes(SMALL) + self.lists.bytes(MAIN) + size > self.room {
            self.has_evicted = true;
            match self.lists.bytes(MAIN) > self.room - self.small || self.lists.bytes(SMALL) == 0 {
                true => self.evict_from_main(),
                false => self.evict_from_small(),
            }
        }
        // Until the cache is full, the small queue keeps to its room.
        let is_filling = !self.has_evicted && self.lists.bytes(SMALL) + size > self.small;
        let list = if self.was_remembered || is_filling { MAIN } else { SMALL };
        self.enter(list, object, bytes, 0);
        true
    }
}
