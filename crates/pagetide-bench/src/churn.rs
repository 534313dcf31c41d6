//! The memory that a cache holds for its objects after a burst, and after churn.
//!
//! Objects are allocated and nine in ten are freed at random. Then, a hundred times, a tenth of
//! those in use is freed at random and as many are allocated. The slab that a cache fills first
//! decides how much it keeps. (Also a test: crates/pagetide-core/tests/slab_held.rs.)
//!
//! Invariant: after the burst a tenth of the objects is in use at the end of every round.

use super::objects::CacheMachine;
use pagetide_core::config::{Config, SlubPolicy};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::units::Cpu;

/// Rounds after the burst.
const ROUNDS: usize = 100;
const CPU: Cpu = Cpu(0);

/// Bytes of slabs per byte of live objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlabHolding {
    /// After most objects were freed.
    pub burst: f64,
    /// After the last round.
    pub churned: f64,
}

/// Generator of our workloads.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Memory held for `count` objects of `size` bytes, on a machine of `memory` bytes.
pub fn held(memory: u64, size: u32, count: usize, slub: SlubPolicy) -> SlabHolding {
    let mut kernel = CacheMachine::new(memory, size, Config { slub, ..Config::default() });
    let payer = kernel.task(ROOT);
    let mut random = Random(1);
    let mut live: Vec<_> = (0..count).map(|_| kernel.alloc(payer, CPU)).collect();
    let ratio = |kernel: &CacheMachine| {
        let usage = kernel.executor.manager.slab_usage(kernel.cache);
        assert_eq!(usage.active_objs, (count / 10) as u64);
        usage.bytes as f64 / usage.active_bytes as f64
    };
    while live.len() > count / 10 {
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
    SlabHolding { burst, churned: ratio(&kernel) }
}
