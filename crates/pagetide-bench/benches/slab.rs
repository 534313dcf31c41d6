//! Objects of slab caches, next to objects of the same size from mimalloc and jemalloc, in one run.
//!
//! Ours is used as by a world: `Machine::kmem_cache_alloc`, and a call when that finds no free
//! object. A peer returns an address and trusts its caller; ours returns a number, refuses a double
//! free or the wrong cache, and records the owner of the object.
//!
//! `slab_hot_pair` allocates and frees an object. `slab_lifo` allocates 10 000 and frees them, last
//! first; `slab_random` allocates 1 000 000 and frees them shuffled: times are per object, both
//! ways. `slab_round_robin` is the hot pair for 16 groups in turn. Time is CPU time of the thread.

use criterion::{criterion_group, criterion_main, Throughput};
use mimalloc::MiMalloc;
use pagetide_bench::clock::CpuTime;
use pagetide_bench::objects::{CacheMachine, Payer};
use pagetide_core::config::Config;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::slab::object::Object;
use pagetide_core::units::Cpu;
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use tikv_jemallocator::Jemalloc;

type Criterion = criterion::Criterion<CpuTime>;

const SIZES: [u32; 3] = [32, 192, 1024];
/// Objects in use at once.
const LIFO: usize = 10_000;
const RANDOM: usize = 1_000_000;
/// Groups that take turns.
const GROUPS: usize = 16;
/// Memory of the machine: enough for 1 000 000 objects of 1 KiB.
const MEMORY: u64 = 2 << 30;

/// Interface of an allocator of objects of one size.
trait Objects {
    type Object: Copy;
    fn get(&mut self) -> Self::Object;
    fn put(&mut self, object: Self::Object);
    /// Called from time to time.
    fn rest(&mut self) {}
}

/// One of our caches, and the payer of its objects.
struct Ours {
    kernel: CacheMachine,
    payer: Payer,
    cpu: Cpu,
}

impl Objects for Ours {
    type Object = Object;

    #[inline(always)]
    fn get(&mut self) -> Object {
        self.kernel.alloc(self.payer, self.cpu)
    }

    #[inline(always)]
    fn put(&mut self, object: Object) {
        self.kernel.free(object, self.cpu);
    }

    fn rest(&mut self) {
        self.kernel.executor.manager.take_work();
    }
}

/// One of our caches that allocates for each of its groups in turn.
struct RoundRobin {
    ours: Ours,
    groups: [Payer; GROUPS],
    next: usize,
}

impl Objects for RoundRobin {
    type Object = Object;

    #[inline(always)]
    fn get(&mut self) -> Object {
        self.next = (self.next + 1) % GROUPS;
        self.ours.payer = self.groups[self.next];
        self.ours.get()
    }

    #[inline(always)]
    fn put(&mut self, object: Object) {
        self.ours.put(object);
    }
}

/// An allocator of bytes.
struct Peer<A> {
    allocator: A,
    layout: Layout,
}

impl<A: GlobalAlloc> Objects for Peer<A> {
    type Object = *mut u8;

    #[inline(always)]
    fn get(&mut self) -> *mut u8 {
        // SAFETY: the layout has a size.
        let object = unsafe { self.allocator.alloc(self.layout) };
        assert!(!object.is_null());
        object
    }

    #[inline(always)]
    fn put(&mut self, object: *mut u8) {
        // SAFETY: the benches free each object once, with the allocator that returned it.
        unsafe { self.allocator.dealloc(object, self.layout) }
    }
}

fn peer<A: GlobalAlloc>(allocator: A, size: u32) -> Peer<A> {
    let layout = Layout::from_size_align(size as usize, 8).expect("a size and a power of two");
    Peer { allocator, layout }
}

/// A cache with objects charged to no group.
fn root(size: u32) -> Ours {
    let mut kernel = CacheMachine::new(MEMORY, size, Config::default());
    let payer = kernel.task(ROOT);
    Ours { kernel, payer, cpu: Cpu(0) }
}

/// A cache with objects charged to a group.
fn group(size: u32) -> Ours {
    let mut kernel = CacheMachine::new(MEMORY, size, Config::default());
    let payer = kernel.group();
    Ours { kernel, payer, cpu: Cpu(0) }
}

fn round_robin(size: u32) -> RoundRobin {
    let mut kernel = CacheMachine::new(MEMORY, size, Config::default());
    let groups = std::array::from_fn(|_| kernel.group());
    RoundRobin { ours: Ours { kernel, payer: groups[0], cpu: Cpu(0) }, groups, next: 0 }
}

/// Numbers 0..`count` in random order (Fisher and Yates, with the generator of our workloads).
fn shuffled(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut x = 1u64;
    for i in (1..count).rev() {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (x >> 33) as usize % (i + 1));
    }
    order
}

fn pair(c: &mut Criterion, group: &str, name: &str, mut objects: impl Objects) {
    c.benchmark_group(group).bench_function(name, |b| {
        objects.rest();
        b.iter(|| {
            let object = black_box(objects.get());
            objects.put(object);
        });
    });
}

/// Allocates as many objects as `order` has numbers, and frees them in that order.
fn bulk(c: &mut Criterion, group: &str, name: &str, order: &[usize], mut objects: impl Objects) {
    let mut group = c.benchmark_group(group);
    group.sample_size(10).throughput(Throughput::Elements(order.len() as u64));
    let mut held = Vec::with_capacity(order.len());
    group.bench_function(name, |b| {
        b.iter(|| {
            objects.rest();
            held.clear();
            held.extend(order.iter().map(|_| objects.get()));
            for &at in order {
                objects.put(held[at]);
            }
        });
    });
}

fn hot_pairs(c: &mut Criterion) {
    for size in SIZES {
        let title = format!("slab_hot_pair_{size}");
        pair(c, &title, "mimalloc", peer(MiMalloc, size));
        pair(c, &title, "jemalloc", peer(Jemalloc, size));
        pair(c, &title, "pagetide", root(size));
        pair(c, &title, "pagetide, a group pays", group(size));
    }
}

fn round_robins(c: &mut Criterion) {
    for size in SIZES {
        let mut objects = round_robin(size);
        const PAIRS: usize = 1000 * GROUPS;
        for at in 0..2 * PAIRS {
            if at == PAIRS {
                objects.rest();
                objects.ours.kernel.executor.manager.take_work();
            }
            let object = objects.get();
            objects.put(object);
        }
        let drains = objects.ours.kernel.executor.manager.take_work().objcg_drains;
        println!("slab_round_robin_{size}/pagetide: {drains} drains in {PAIRS} pairs");
        pair(c, &format!("slab_round_robin_{size}"), "pagetide", objects);
    }
}

fn bulks(c: &mut Criterion) {
    let lifo: Vec<usize> = (0..LIFO).rev().collect();
    for (what, order) in [("lifo", lifo), ("random", shuffled(RANDOM))] {
        for size in SIZES {
            let title = format!("slab_{what}_{size}");
            bulk(c, &title, "mimalloc", &order, peer(MiMalloc, size));
            bulk(c, &title, "jemalloc", &order, peer(Jemalloc, size));
            bulk(c, &title, "pagetide", &order, root(size));
            bulk(c, &title, "pagetide, a group pays", &order, group(size));
        }
    }
}

criterion_group! {
    name = benches;
    config = criterion::Criterion::default()
        .with_measurement(CpuTime)
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = hot_pairs, round_robins, bulks
}
criterion_main!(benches);
