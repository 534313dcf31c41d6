//! Caches of objects by reference algorithms, for comparison with the simulated page cache.
//!
//! An object has a size, and a cache has room for a number of bytes. The details are those of
//! libCacheSim (aa0fc409), so that figures can be compared to four digits: the size of an object in
//! a cache is that of the request that brought it in, an object without room is not taken in, and a
//! cache evicts until the new object has room.
//!
//! Invariant: the objects in a cache never have more bytes than its room.

use super::{arc::ArcCache, belady::BeladyCache, lru::LruCache, s3_fifo::S3FifoCache};

/// Requests for an object in a row.
#[derive(Clone, Copy, Debug)]
pub struct CacheRequest {
    /// Below the stream's number of objects.
    pub object: u32,
    pub bytes: u32,
    /// Further requests for the object before one for another.
    pub repeats: u32,
    /// Not a miss in any case: the first use of anonymous memory.
    pub is_free: bool,
}

#[derive(Debug, Default)]
pub struct RequestStream {
    pub requests: Vec<CacheRequest>,
    pub nr_objects: u32,
    pub totals: RequestCount,
}

/// Requests, and the sum of their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCount {
    pub requests: u64,
    pub bytes: u64,
}

/// An algorithm that chooses what a cache evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferencePolicy {
    Lru,
    Arc,
    S3Fifo,
    Belady,
}

impl ReferencePolicy {
    pub const ALL: [ReferencePolicy; 4] = [
        ReferencePolicy::Lru,
        ReferencePolicy::Arc,
        ReferencePolicy::S3Fifo,
        ReferencePolicy::Belady,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ReferencePolicy::Lru => "LRU",
            ReferencePolicy::Arc => "ARC",
            ReferencePolicy::S3Fifo => "S3-FIFO",
            ReferencePolicy::Belady => "Belady",
        }
    }

    /// Its name in the columns of files.
    pub fn key(self) -> &'static str {
        match self {
            ReferencePolicy::Lru => "lru",
            ReferencePolicy::Arc => "arc",
            ReferencePolicy::S3Fifo => "s3fifo",
            ReferencePolicy::Belady => "belady",
        }
    }

    /// The requests that a cache with this room misses.
    pub fn misses(self, stream: &RequestStream, room: u64) -> RequestCount {
        let nr_objects = stream.nr_objects as usize;
        match self {
            ReferencePolicy::Lru => misses(LruCache::new(nr_objects, room), stream),
            ReferencePolicy::Arc => misses(ArcCache::new(nr_objects, room), stream),
            ReferencePolicy::S3Fifo => misses(S3FifoCache::new(nr_objects, room), stream),
            ReferencePolicy::Belady => misses(BeladyCache::new(stream, room), stream),
        }
    }
}

pub trait ObjectCache {
    /// Whether the cache has the object, which is requested. `at`: index of the request.
    fn find(&mut self, object: u32, at: usize) -> bool;

    /// Takes in an object that was not found. Returns false if it has no room for it at all.
    fn insert(&mut self, object: u32, bytes: u32, at: usize) -> bool;
}

/// No cache counts more requests in a row than these.
const MOST_REPEATS: u32 = 3;

fn misses(mut cache: impl ObjectCache, stream: &RequestStream) -> RequestCount {
    let mut missed = RequestCount::default();
    for (at, request) in stream.requests.iter().enumerate() {
        let CacheRequest { object, bytes, repeats, is_free } = *request;
        if !cache.find(object, at) {
            let is_kept = cache.insert(object, bytes, at);
            let times = u64::from(!is_free) + if is_kept { 0 } else { u64::from(repeats) };
            missed.requests += times;
            missed.bytes += times * u64::from(bytes);
            if !is_kept {
                continue;
            }
        }
        for _ in 0..repeats.min(MOST_REPEATS) {
            cache.find(object, at);
        }
    }
    missed
}

/// Not an object, and not a list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct ListEntry {
    newer: u32,
    older: u32,
    list: u32,
    bytes: u32,
}

#[derive(Clone, Copy, Debug)]
struct ListEnds {
    newest: u32,
    oldest: u32,
    bytes: u64,
}

/// `N` lists of objects, each object in at most one.
#[derive(Debug)]
pub struct ObjectLists<const N: usize> {
    entries: Vec<ListEntry>,
    lists: [ListEnds; N],
}

impl<const N: usize> ObjectLists<N> {
    pub fn new(nr_objects: usize) -> ObjectLists<N> {
        let entry = ListEntry { newer: NONE, older: NONE, list: NONE, bytes: 0 };
        let empty = ListEnds { newest: NONE, oldest: NONE, bytes: 0 };
        ObjectLists { entries: vec![entry; nr_objects], lists: [empty; N] }
    }

    /// The list that has the object.
    pub fn list_of(&self, object: u32) -> Option<usize> {
        let list = self.entries[object as usize].list;
        (list != NONE).then_some(list as usize)
    }

    /// Sum of the sizes of a list's objects.
    pub fn bytes(&self, list: usize) -> u64 {
        self.lists[list].bytes
    }

    /// Adds an object that is in no list as the newest of a list.
    pub fn push(&mut self, list: usize, object: u32, bytes: u32) {
        let ends = &mut self.lists[list];
        ends.bytes += u64::from(bytes);
        let older = std::mem::replace(&mut ends.newest, object);
        match older {
            NONE => ends.oldest = object,
            older => self.entries[older as usize].newer = object,
        }
        self.entries[object as usize] = ListEntry { newer: NONE, older, list: list as u32, bytes };
    }

    /// Removes an object from its list; returns its size.
    pub fn remove(&mut self, object: u32) -> u32 {
        let ListEntry { newer, older, list, bytes } = self.entries[object as usize];
        let ends = &mut self.lists[list as usize];
        ends.bytes -= u64::from(bytes);
        match newer {
            NONE => ends.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => ends.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        self.entries[object as usize].list = NONE;
        bytes
    }

    /// Moves an object to the new end of a list.
    pub fn renew(&mut self, list: usize, object: u32) {
        let bytes = self.remove(object);
        self.push(list, object, bytes);
    }

    /// Removes the oldest object of a list; returns it with its size.
    pub fn pop(&mut self, list: usize) -> Option<(u32, u32)> {
        let object = self.lists[list].oldest;
        (object != NONE).then(|| (object, self.remove(object)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const MIB: u64 = 1 << 20;

    /// The requests of objects with sizes.
    fn stream(requests: impl Iterator<Item = (u64, u32)>) -> RequestStream {
        let mut ids: HashMap<u64, u32> = HashMap::new();
        let mut stream = RequestStream::default();
        for (object, bytes) in requests {
            let next = ids.len() as u32;
            let object = *ids.entry(object).or_insert(next);
            stream.requests.push(CacheRequest { object, bytes, repeats: 0, is_free: false });
            stream.totals.requests += 1;
            stream.totals.bytes += u64::from(bytes);
        }
        RequestStream { nr_objects: ids.len() as u32, ..stream }
    }

    /// Numbers in 0..1 of the generator of docs/tutorials/trace-study.md.
    fn draws() -> impl Iterator<Item = (u64, f64)> {
        let mut x = 1u64;
        (0..).map(move |at| {
            x = x * 16807 % 2_147_483_647;
            (at, x as f64 / 2_147_483_647.0)
        })
    }

    /// Miss ratios of objects and bytes by each policy, with four digits.
    fn found(stream: &RequestStream, room: u64) -> Vec<(String, String)> {
        let of = |policy: ReferencePolicy| {
            let missed = policy.misses(stream, room);
            let objects = missed.requests as f64 / stream.totals.requests as f64;
            let bytes = missed.bytes as f64 / stream.totals.bytes as f64;
            (format!("{objects:.4}"), format!("{bytes:.4}"))
        };
        ReferencePolicy::ALL.map(of).to_vec()
    }

    #[test]
    fn pages_miss_as_in_libcachesim() {
        let requests = draws().take(200_000).map(|(at, draw)| match at % 5 {
            4 => (1_000_000 + at / 5 % 30_000, 4096),
            _ => ((draw * draw * draw * draw * 50_000.0) as u64, 4096),
        });
        let stream = stream(requests);
        // Of the Python package libcachesim 0.3.5, on the trace of docs/tutorials/trace-study.md.
        for (mib, lru, arc, s3_fifo, belady) in [
            (8, "0.7724", "0.6849", "0.6839", "0.5760"),
            (16, "0.7128", "0.6303", "0.6305", "0.5105"),
            (32, "0.6382", "0.5675", "0.5690", "0.4480"),
            (64, "0.5480", "0.4971", "0.5002", "0.3963"),
            (128, "0.4553", "0.4355", "0.4211", "0.3413"),
            (256, "0.3428", "0.3428", "0.3424", "0.3413"),
        ] {
            let expected = [lru, arc, s3_fifo, belady].map(|it| (it.to_owned(), it.to_owned()));
            assert_eq!(found(&stream, mib * MIB), expected, "{mib} MiB");
        }
    }

    #[test]
    fn objects_of_many_sizes_miss_as_in_libcachesim() {
        let requests = draws().take(100_000).map(|(at, draw)| {
            let object = match at % 5 {
                4 => 100_000 + at / 5 % 8000,
                _ => (draw * draw * draw * 20_000.0) as u64,
            };
            let part = (object * 7919 + 13) % 1009;
            (object, (100 + part * part / 20) as u32)
        });
        let stream = stream(requests);
        // Of the same package: miss ratios of objects, then of bytes.
        for (mib, objects, bytes) in [
            (4, ["0.9190", "0.8396", "0.8389", "0.7506"], ["0.9381", "0.8580", "0.8561", "0.7679"]),
            (
                16,
                ["0.8405", "0.7562", "0.7530", "0.6220"],
                ["0.8571", "0.7728", "0.7699", "0.6378"],
            ),
            (
                64,
                ["0.6920", "0.6133", "0.6160", "0.4686"],
                ["0.7077", "0.6274", "0.6299", "0.4786"],
            ),
        ] {
            let expected: Vec<(String, String)> =
                objects.iter().zip(bytes).map(|(a, b)| (a.to_string(), b.to_string())).collect();
            assert_eq!(found(&stream, mib * MIB), expected, "{mib} MiB");
        }
    }

    #[test]
    fn repeats_hit_unless_the_object_has_no_room() {
        let request =
            |object, bytes, repeats| CacheRequest { object, bytes, repeats, is_free: false };
        let requests = vec![request(0, 10, 9), request(1, 10_000, 2), request(0, 10, 0)];
        let stream = RequestStream { requests, nr_objects: 2, ..RequestStream::default() };
        for policy in ReferencePolicy::ALL {
            let expected = RequestCount { requests: 1 + 3, bytes: 10 + 30_000 };
            assert_eq!(policy.misses(&stream, 1000), expected, "{policy:?}");
        }
    }
}
