//! Prints the memory that caches hold for a million objects, and the memory for owners' ids.

use pagetide_bench::churn::held;
use pagetide_bench::objects::CacheMachine;
use pagetide_core::config::{Config, SlabOwners, SlubPolicy};
use pagetide_core::units::Cpu;

const COUNT: usize = 1_000_000;
const MEMORY: u64 = 2 << 30;

/// Bytes for owners per byte of objects.
fn owner_share(size: u32, slab_owners: SlabOwners) -> f64 {
    let mut kernel = CacheMachine::new(MEMORY, size, Config { slab_owners, ..Config::default() });
    let payer = kernel.group();
    for _ in 0..COUNT {
        kernel.alloc(payer, Cpu(0));
    }
    let objects = kernel.executor.manager.slab_usage(kernel.cache);
    let all = kernel.executor.manager.total_slab_usage();
    (all.bytes - objects.bytes) as f64 / objects.active_bytes as f64
}

fn main() {
    println!(
        "bytes of slabs per byte of live objects, {COUNT} objects: nine in ten freed, and churned"
    );
    for (name, slub) in [
        ("linux-6.1", SlubPolicy::Linux61),
        ("linux-5.5", SlubPolicy::Linux55),
        ("fullest", SlubPolicy::Fullest),
        ("lowest", SlubPolicy::Lowest),
    ] {
        print!("{name:10}");
        for size in [32, 192, 1024] {
            let held = held(MEMORY, size, COUNT, slub);
            print!("  {size:4} bytes: {:6.3} {:6.3}", held.burst, held.churned);
        }
        println!();
    }
    println!("bytes of owners per byte of objects");
    for (name, owners) in [("pointers", SlabOwners::Pointers), ("ids", SlabOwners::Ids)] {
        print!("{name:10}");
        for size in [32, 192, 1024] {
            print!("  {size:4} bytes: {:6.4}", owner_share(size, owners));
        }
        println!();
    }
}
