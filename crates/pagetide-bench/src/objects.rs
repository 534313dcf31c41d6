//! A machine with one cache of small objects, used like by a world.
//!
//! Linux: the callers of `kmem_cache_alloc` with `GFP_KERNEL`. The fast path is tried first; a call
//! takes pages and charges them.
//!
//! Invariant: the machine is large enough for every allocation to succeed.

use super::no_bytes::NoBytes;
use pagetide_core::config::Config;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::executor::Executor;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::{Machine, MmId, ProcessCall, Processes};
use pagetide_core::slab::object::Object;
use pagetide_core::slab::CacheSpec;
use pagetide_core::units::{CacheId, Cpu, MemcgId, NodeId};

/// A task and its group.
#[derive(Clone, Copy, Debug)]
pub struct Payer {
    mm: MmId,
    memcg: MemcgId,
}

pub struct CacheMachine {
    /// Runs the machine, which is its manager.
    pub executor: Executor<Processes, NoBytes>,
    pub cache: CacheId,
}

impl CacheMachine {
    /// A machine of `memory` bytes, and a cache of objects of `size` bytes, charged to the payers.
    pub fn new(memory: u64, size: u32, config: Config) -> CacheMachine {
        let nodes = [NodeSpec::x86_64(memory, 0, 0)];
        let mut machine = Machine::new(&nodes, 1, config).expect("the machine is valid");
        let name = String::from("object");
        let spec = CacheSpec { name, object_size: size, reclaimable: false, account: true };
        let cache = machine.create_cache(spec).expect("the cache is possible");
        CacheMachine { executor: Executor::new(machine, NoBytes::default(), Cpu(0)), cache }
    }

    /// A task in a new group.
    pub fn group(&mut self) -> Payer {
        let memcg =
            self.executor.manager.create_memcg("group".into(), ROOT).expect("there is room");
        self.task(memcg)
    }

    /// A task of a group.
    pub fn task(&mut self, memcg: MemcgId) -> Payer {
        Payer { mm: self.executor.manager.create_mm(memcg).unwrap(), memcg }
    }

    /// Allocates an object, charged to the group of `payer`.
    #[inline(always)]
    pub fn alloc(&mut self, payer: Payer, cpu: Cpu) -> Object {
        match self.executor.manager.kmem_cache_alloc(self.cache, payer.memcg, false, cpu) {
            Some(object) => object,
            None => self.alloc_slow(payer.mm, cpu),
        }
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&mut self, mm: MmId, cpu: Cpu) -> Object {
        let mut call = ProcessCall::kmem_alloc(mm, NodeId(0), self.cache, false, Gfp::KERNEL);
        match self.executor.run(&mut call, cpu) {
            Outcome::Object(object) => object,
            other => panic!("the machine is too small: {other:?}"),
        }
    }

    #[inline(always)]
    pub fn free(&mut self, object: Object, cpu: Cpu) {
        self.executor.manager.kmem_cache_free(self.cache, object, cpu).expect("it was allocated");
    }
}
