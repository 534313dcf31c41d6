//! LRU: evicts the object whose last request is the longest ago.

use super::caches::{ObjectCache, ObjectLists};

#[derive(Debug)]
pub struct LruCache {
    lists: ObjectLists<1>,
    room: u64,
}

impl LruCache {
    pub fn new(nr_objects: usize, room: u64) -> LruCache {
        LruCache { lists: ObjectLists::new(nr_objects), room }
    }
}

impl ObjectCache for LruCache {
    fn find(&mut self, object: u32, _: usize) -> bool {
        let is_here = self.lists.list_of(object).is_some();
        if is_here {
            self.lists.renew(0, object);
        }
        is_here
    }

    fn insert(&mut self, object: u32, bytes: u32, _: usize) -> bool {
        if u64::from(bytes) > self.room {
            return false;
        }
        while self.lists.bytes(0) + u64::from(bytes) > self.room {
            self.lists.pop(0);
        }
        self.lists.push(0, object, bytes);
        true
    }
}
