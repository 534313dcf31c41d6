//! /proc/slabinfo, version 2.1: the kernel's object caches. Only root can read it.
//!
//! Linux: `slab_show` (mm/slab_common.c). A line is `NAME active objects size per_slab pages :
//! tunables ... : slabdata active_slabs slabs shared`, with more columns on debugging kernels.
//! Invariant: caches are in the order of the text.

use super::note::{FileNotes, ImportNote};
use super::number::count;

/// A cache of objects of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlabCache {
    pub name: String,
    /// Objects in use.
    pub active_objects: u64,
    /// Capacity in objects.
    pub objects: u64,
    /// Size of an object in bytes.
    pub object_bytes: u64,
    pub pages_per_slab: u64,
    pub slabs: u64,
}

impl SlabCache {
    /// Pages of all its slabs.
    pub fn pages(&self) -> u64 {
        self.slabs.saturating_mul(self.pages_per_slab)
    }
}

pub fn parse(text: &str) -> (Vec<SlabCache>, Vec<ImportNote>) {
    let mut notes = FileNotes::new("/proc/slabinfo");
    let mut caches = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("slabinfo - version:") {
            if !line.contains("version: 2.1") {
                notes.line(index, "not version 2.1", line);
            }
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            match parse_line(line) {
                Some(cache) => caches.push(cache),
                None => notes.line(index, "not a cache", line),
            }
        }
    }
    (caches, notes.finish())
}

fn parse_line(line: &str) -> Option<SlabCache> {
    let mut parts = line.split(':');
    let objects: Vec<&str> = parts.next()?.split_whitespace().collect();
    let slabs: Vec<&str> =
        parts.find_map(|part| part.trim().strip_prefix("slabdata"))?.split_whitespace().collect();
    // The name is everything before the five numbers, because a name may contain blanks.
    let (name, numbers) = objects.split_at_checked(objects.len().checked_sub(5)?)?;
    let numbers: Vec<u64> = numbers.iter().map(|word| count(word)).collect::<Option<_>>()?;
    let [active_objects, objects, object_bytes, _, pages_per_slab] = numbers[..] else {
        return None;
    };
    let slabs = count(slabs.get(1)?)?;
    if name.is_empty() {
        return None;
    }
    let name = name.join(" ");
    Some(SlabCache { name, active_objects, objects, object_bytes, pages_per_slab, slabs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read() {
        let text = "slabinfo - version: 2.1\n# name <active_objs> : tunables : slabdata\n\
            dentry 100 210 192 21 1 : tunables 0 0 0 : slabdata 10 11 0\r\n\
            a cache 1 2 3 4 5 : tunables 0 0 0 : slabdata 6 7 0 : globalstat 1 : cpustat 2\n";
        let (caches, notes) = parse(text);
        assert_eq!(notes, []);
        assert_eq!((caches[0].name.as_str(), caches[0].pages()), ("dentry", 11));
        assert_eq!((caches[0].active_objects, caches[0].objects), (100, 210));
        assert_eq!((caches[1].name.as_str(), caches[1].pages()), ("a cache", 35));
    }

    #[test]
    fn what_is_strange_is_noted() {
        let text = "slabinfo - version: 1.1\ndentry 1 2\n 1 2 3 4 5 : slabdata 1 1 1\n\
            x 1 2 3 4 5 : tunables\ny 1 2 3 4 5 : slabdata 1\nz -1 2 3 4 5 : slabdata 1 2 3\n:\n";
        let (caches, notes) = parse(text);
        assert_eq!((caches.len(), notes.len()), (0, 7), "{notes:?}");
        let huge = format!("x 1 2 3 4 {0} : slabdata 1 {0} 3", u64::MAX);
        assert_eq!(parse(&huge).0[0].pages(), u64::MAX);
    }
}
