//! Single pages from our allocator and from two crates that allocate frames, in one run.
//!
//! Ours does more for each page: watermark check, per-CPU list by migrate type, zone and counters,
//! cleared descriptor. The peers keep a set of free frame numbers: a B-tree per power of two
//! (`buddy_system_allocator`), a tree of bitmaps (`bitmap-allocator`).
//!
//! `hot_pair` allocates and frees a page. `bulk` allocates 500 000 pages and frees them in
//! allocation order; `bulk_random` frees them shuffled. Bulk times are per page, allocation and
//! free together. Time is CPU time of the thread.

use bitmap_allocator::{BitAlloc, BitAlloc1M};
use buddy_system_allocator::FrameAllocator;
use criterion::{criterion_group, criterion_main, Throughput};
use pagetide_bench::clock::CpuTime;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::frames::page_alloc::Memory;
use pagetide_core::units::{Cpu, NodeId, Pfn};
use std::hint::black_box;

type Criterion = criterion::Criterion<CpuTime>;

/// Frames each allocator starts with: 4 GiB.
const FRAMES: usize = 1 << 20;
/// Pages in use at once in the bulk benches.
const BULK: usize = 500_000;

/// Interface of an allocator under test.
trait Frames {
    fn get(&mut self) -> usize;
    fn put(&mut self, frame: usize);
    /// Called from time to time.
    fn rest(&mut self) {}
}

impl Frames for Memory {
    #[inline]
    fn get(&mut self) -> usize {
        let page = self.alloc_fast(Cpu(0), NodeId(0), 0, Gfp::HIGHUSER_MOVABLE);
        page.expect("most of memory is free").idx()
    }

    #[inline]
    fn put(&mut self, frame: usize) {
        self.free_page(Cpu(0), Pfn(frame as u32), 0);
    }

    fn rest(&mut self) {
        self.work.take();
    }
}

impl Frames for FrameAllocator {
    #[inline]
    fn get(&mut self) -> usize {
        self.alloc(1).expect("most of memory is free")
    }

    #[inline]
    fn put(&mut self, frame: usize) {
        self.dealloc(frame, 1);
    }
}

impl Frames for Box<BitAlloc1M> {
    #[inline]
    fn get(&mut self) -> usize {
        self.alloc().expect("most of memory is free")
    }

    #[inline]
    fn put(&mut self, frame: usize) {
        self.dealloc(frame);
    }
}

fn ours() -> Memory {
    Memory::new(&[NodeSpec::x86_64(4 << 30, 0, 0)], 1).expect("the machine is valid")
}

fn buddy_system() -> FrameAllocator {
    let mut frames = FrameAllocator::new();
    frames.add_frame(0, FRAMES);
    frames
}

fn bitmap() -> Box<BitAlloc1M> {
    let mut frames = Box::new(BitAlloc1M::DEFAULT);
    frames.insert(0..FRAMES);
    frames
}

/// Numbers 0..`BULK` in random order (Fisher and Yates, with the generator of our workloads).
fn shuffled() -> Vec<usize> {
    let mut order: Vec<usize> = (0..BULK).collect();
    let mut x = 1u64;
    for i in (1..BULK).rev() {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (x >> 33) as usize % (i + 1));
    }
    order
}

fn hot_pair(c: &mut Criterion, name: &str, mut frames: impl Frames) {
    c.benchmark_group("hot_pair").bench_function(name, |b| {
        frames.rest();
        b.iter(|| {
            let frame = black_box(frames.get());
            frames.put(frame);
        });
    });
}

fn bulk(c: &mut Criterion, group: &str, name: &str, order: &[usize], mut frames: impl Frames) {
    let mut group = c.benchmark_group(group);
    group.sample_size(10).throughput(Throughput::Elements(BULK as u64));
    let mut held = vec![0; BULK];
    group.bench_function(name, |b| {
        b.iter(|| {
            frames.rest();
            for slot in &mut held {
                *slot = frames.get();
            }
            for &at in order {
                frames.put(held[at]);
            }
        });
    });
}

fn page_alloc(c: &mut Criterion) {
    hot_pair(c, "pagetide", ours());
    hot_pair(c, "buddy_system_allocator", buddy_system());
    hot_pair(c, "bitmap-allocator", bitmap());
    let in_order: Vec<usize> = (0..BULK).collect();
    for (group, order) in [("bulk", in_order), ("bulk_random", shuffled())] {
        bulk(c, group, "pagetide", &order, ours());
        bulk(c, group, "buddy_system_allocator", &order, buddy_system());
        bulk(c, group, "bitmap-allocator", &order, bitmap());
    }
}

criterion_group! {
    name = benches;
    config = criterion::Criterion::default().with_measurement(CpuTime);
    targets = page_alloc
}
criterion_main!(benches);
