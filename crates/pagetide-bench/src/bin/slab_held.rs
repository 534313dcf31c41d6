//! Prints the memory that caches hold for their objects after a burst and after churn, and the
//! memory to record the owners of objects.
//!
//! A million objects are allocated and nine in ten are freed at random. Then, a hundred times, a
//! tenth of those in use is freed at random and as many are allocated.

use pagetide_bench::objects::CacheMachine;
use pagetide_core::config::{Config, SlubPolicy};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::units::Cpu;

const COUNT: usize = 1_000_000;
const MEMORY: u64 = 2 << 30;
/// Rounds after the burst.
const ROUNDS: usize = 100;
const CPU: Cpu = Cpu(0);

/// Generator of our workloads.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Bytes of slabs per byte of live objects, after the burst and after the last round.
fn held(size: u32, slub: SlubPolicy) -> [f64; 2] {
    let mut kernel = CacheMachine::new(MEMORY, size, Config { slub, ..Config::default() });
    let payer = kernel.task(ROOT);
    let mut random = Random(1);
    let mut live: Vec<_> = (0..COUNT).map(|_| kernel.alloc(payer, CPU)).collect();
    let ratio = |kernel: &CacheMachine| {
        let usage = kernel.executor.manager.slab_usage(kernel.cache);
        usage.bytes as f64 / usage.active_bytes as f64
    };
    while live.len() > COUNT / 10 {
        let object = live.swap_remove(random.below(live.len()));
        kernel.free(object, CPU);
    }
    let burst = ratio(&kernel);
    for _ in 0..ROUNDS {
        let some = live.len() / 10;
        for _ in 0..some {
            let object = live.swap_remove(random.below(live.len()));
            kernel.free(object, CPU);
        }
        live.extend((0..some).map(|_| kernel.alloc(payer, CPU)));
    }
    [burst, ratio(&kernel)]
}

/// Bytes for owners per byte of objects.
fn owner_share(size: u32) -> f64 {
    let mut kernel = CacheMachine::new(MEMORY, size, Config::default());
    let payer = kernel.group();
    for _ in 0..COUNT {
        kernel.alloc(payer, CPU);
    }
    let objects = kernel.executor.manager.slab_usage(kernel.cache);
    let all = kernel.executor.manager.total_slab_usage();
    (all.bytes - objects.bytes) as f64 / objects.active_bytes as f64
}

fn main() {
    println!(
        "bytes of slabs per byte of live objects, {COUNT} objects: nine in ten freed, and churned"
    );
    for &slub in SlubPolicy::ALL {
        print!("{:10}", slub.name());
        for size in [32, 192, 1024] {
            let [burst, churned] = held(size, slub);
            print!("  {size:4} bytes: {burst:6.3} {churned:6.3}");
        }
        println!();
    }
    println!("bytes of owners per byte of objects");
    for size in [32, 192, 1024] {
        println!("{size:4} bytes: {:6.4}", owner_share(size));
    }
}
