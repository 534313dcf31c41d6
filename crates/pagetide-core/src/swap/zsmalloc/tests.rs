//! A pool against a naive model: each object with its size, each zspage a set of objects.

use super::*;
use crate::config::ZsmallocPolicy;
use crate::units::CacheId;
use alloc::collections::{BTreeMap, BTreeSet};

/// Brings pages and kernel objects with rising numbers.
struct Bench {
    pool: ZsPool,
    next_page: u32,
    next_object: u32,
    /// Kernel objects that the pool holds.
    objects: BTreeSet<u32>,
    /// Pages that the pool holds.
    held: BTreeSet<u32>,
    sizes: BTreeMap<u32, u32>,
}

impl Bench {
    fn new() -> Bench {
        let pool = ZsPool::new(PageSize::Kib4, ZsmallocPolicy::Linux61);
        let (held, objects, sizes) = Default::default();
        Bench { pool, next_page: 0, next_object: 0, objects, held, sizes }
    }

    fn object(&mut self) -> Object {
        let number = self.next_object;
        self.objects.insert(number);
        self.next_object += 1;
        Object { cache: CacheId(0), number }
    }

    fn insert(&mut self, size: u32) -> ZsHandle {
        let mut pages = ZspageMemory::NONE;
        if self.pool.pages_wanted(size) > 0 {
            pages.descriptor = self.object();
        }
        for _ in 0..self.pool.pages_wanted(size) {
            pages.push(Pfn(self.next_page));
            self.held.insert(self.next_page);
            self.next_page += 1;
        }
        let word = self.object();
        let handle = self.pool.insert(size, word, pages);
        assert!(self.sizes.insert(handle.0, size).is_none(), "{handle:?} is in use");
        handle
    }

    fn remove(&mut self, handle: ZsHandle) {
        self.sizes.remove(&handle.0).unwrap();
        let (word, freed) = self.pool.remove(handle);
        assert!(self.objects.remove(&word.number), "{word:?} is freed twice");
        self.forget(&[freed]);
    }

    /// Returns the number of pages.
    fn forget(&mut self, freed: &[ZspageMemory]) -> u64 {
        for memory in freed.iter().filter(|memory| memory.descriptor.is_some()) {
            let number = memory.descriptor.number;
            assert!(self.objects.remove(&number), "descriptor {number} is freed twice");
        }
        let pages: Vec<Pfn> = freed.iter().flat_map(|memory| memory.as_slice()).copied().collect();
        for pfn in &pages {
            assert!(self.held.remove(&pfn.0), "{pfn:?} is freed twice");
        }
        pages.len() as u64
    }

    fn check(&self) {
        self.pool.audit().unwrap();
        let mut pages = BTreeSet::new();
        self.pool.for_each_page(|_, pfn| assert!(pages.insert(pfn.0), "{pfn:?} is held twice"));
        assert_eq!(pages, self.held);
        let (words, descriptors) = self.pool.kernel_objects();
        assert_eq!(words.len(), self.sizes.len());
        let objects = words.iter().chain(&descriptors).map(|object| object.number);
        assert_eq!(objects.collect::<BTreeSet<_>>(), self.objects);
        assert_eq!(words.len() + descriptors.len(), self.objects.len());
        assert_eq!(self.pool.nr_pages(), self.held.len() as u64);
        assert_eq!(self.pool.nr_objects(), self.sizes.len() as u64);
        // As many zspages as the objects of each class need, at least.
        let mut by_class: BTreeMap<usize, u64> = BTreeMap::new();
        for &size in self.sizes.values() {
            *by_class.entry(self.pool.sizes.class_of(size)).or_default() += 1;
        }
        let least = by_class.iter().map(|(&class, &nr)| {
            let class = self.pool.class(class);
            nr.div_ceil(class.objs_per_zspage.into()) * u64::from(class.pages_per_zspage)
        });
        let least: u64 = least.sum();
        assert!(self.pool.nr_pages() >= least, "{} pages for {least}", self.pool.nr_pages());
        // Compaction frees nothing that the objects need.
        assert!(self.pool.nr_pages() - self.pool.freeable() >= least);
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    for seed in 1..20u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = move |below: u32| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % u64::from(below)) as u32
        };
        let mut bench = Bench::new();
        let mut live: Vec<ZsHandle> = Vec::new();
        for step in 0..3000 {
            let grows = draw(1000) < if step < 2000 { 600 } else { 350 };
            if live.is_empty() || grows {
                // Few sizes, so that zspages fill.
                let size = [1 + draw(4096), 100, 700, 1300, 2000, 4096][draw(6) as usize];
                live.push(bench.insert(size));
            } else {
                let at = draw(live.len() as u32) as usize;
                bench.remove(live.swap_remove(at));
            }
            if draw(200) == 0 {
                let (before, freeable) = (bench.pool.nr_pages(), bench.pool.freeable());
                let mut freed = Vec::new();
                bench.pool.compact(&mut freed);
                let nr_freed = bench.forget(&freed);
                assert!(nr_freed >= freeable, "{nr_freed} of {freeable}");
                assert_eq!(bench.pool.nr_pages(), before - nr_freed);
                assert_eq!(bench.pool.freeable(), 0);
            }
            if step % 50 == 0 {
                bench.check();
            }
        }
        for handle in live {
            bench.remove(handle);
        }
        bench.check();
        assert_eq!((bench.pool.nr_pages(), bench.held.len(), bench.objects.len()), (0, 0, 0));
    }
}

#[test]
fn an_object_goes_to_the_fullest_zspage_with_room() {
    // Five objects of 1600 bytes share two pages.
    let mut bench = Bench::new();
    let first: Vec<ZsHandle> = (0..10).map(|_| bench.insert(1600)).collect();
    assert_eq!(bench.pool.nr_pages(), 4);
    bench.remove(first[0]);
    bench.remove(first[1]);
    bench.remove(first[5]);
    // Zspages of 3 (almost empty) and 4 (almost full) objects.
    let next = bench.insert(1600);
    let place = |bench: &Bench, handle: ZsHandle| bench.pool.handles[handle.0 as usize].zspage;
    assert_eq!(place(&bench, next), place(&bench, first[9]));
    let last = bench.insert(1600);
    assert_eq!(place(&bench, last), place(&bench, first[4]));
    bench.check();
}

#[test]
fn compaction_empties_the_emptiest_zspages() {
    let mut bench = Bench::new();
    let all: Vec<ZsHandle> = (0..50).map(|_| bench.insert(1600)).collect();
    for (nr, &handle) in all.iter().enumerate() {
        if nr % 5 > 1 {
            bench.remove(handle);
        }
    }
    assert_eq!((bench.pool.nr_pages(), bench.pool.freeable()), (20, 12));
    let mut freed = Vec::new();
    let moved = bench.pool.compact(&mut freed);
    let nr_freed = bench.forget(&freed);
    bench.check();
    assert_eq!((bench.pool.nr_pages(), nr_freed), (8, 12));
    assert!((12..20).contains(&(moved / 1632)), "{moved}");
}
