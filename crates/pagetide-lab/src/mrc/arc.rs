//! ARC (Megiddo and Modha, 2003): a list of objects requested once (T1) and one of others (T2),
//! each with a list of the objects it lost lately (B1, B2). A request for a lost object moves the
//! target for the size of T1.
//!
//! As in libCacheSim, such a request moves the target by the ratio of B1 and B2 in *bytes*, not in
//! objects, so the target moves slowly.

use super::caches::{ObjectCache, ObjectLists};

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

#[derive(Debug)]
pub struct ArcCache {
    lists: ObjectLists<4>,
    room: u64,
    /// Target for the bytes in T1.
    target: f64,
    /// The list of lost objects that had the object of this request.
    lost_by: Option<usize>,
}

impl ArcCache {
    pub fn new(nr_objects: usize, room: u64) -> ArcCache {
        ArcCache { lists: ObjectLists::new(nr_objects), room, target: 0.0, lost_by: None }
    }

    /// Moves an object from T1 to B1, or from T2 to B2.
    fn replace(&mut self) {
        let once = self.lists.bytes(T1);
        let is_above =
            once as f64 > self.target || once as f64 == self.target && self.lost_by == Some(B2);
        let from_once = once > 0 && is_above || self.lists.bytes(T2) == 0;
        let (from, to) = if from_once { (T1, B1) } else { (T2, B2) };
        if let Some((object, bytes)) = self.lists.pop(from) {
            self.lists.push(to, object, bytes);
        }
    }

    /// Makes room for an object that no list has.
    fn replace_for_new(&mut self, bytes: u64) {
        let once = self.lists.bytes(T1) + self.lists.bytes(B1);
        if once + bytes > self.room {
            if self.lists.pop(B1).is_none() {
                self.lists.pop(T1);
                return;
            }
        } else if once + self.lists.bytes(T2) + self.lists.bytes(B2) >= 2 * self.room {
            self.lists.pop(B2);
        }
        self.replace();
    }
}

impl ObjectCache for ArcCache {
    fn find(&mut self, object: u32, _: usize) -> bool {
        let list = self.lists.list_of(object);
        self.lost_by = list.filter(|list| [B1, B2].contains(list));
        match list {
            Some(T1 | T2) => {
                self.lists.renew(T2, object);
                true
            }
            Some(list) => {
                let [once, others] = [B1, B2].map(|list| self.lists.bytes(list) as f64);
                self.target = match list {
                    B1 => (self.target + (others / once).max(1.0)).min(self.room as f64),
                    _ => (self.target - (once / others).max(1.0)).max(0.0),
                };
                self.lists.remove(object);
                false
            }
            None => false,
        }
    }

    fn insert(&mut self, object: u32, bytes: u32, _: usize) -> bool {
        let size = u64::from(bytes);
        if size > self.room {
            return false;
        }
        while self.lists.bytes(T1) + self.lists.bytes(T2) + size > self.room {
            match self.lost_by {
                Some(_) => self.replace(),
                None => self.replace_for_new(size),
            }
        }
        self.lists.push(if self.lost_by.is_some() { T2 } else { T1 }, object, bytes);
        true
    }
}
