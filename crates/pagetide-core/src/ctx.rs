//! Who asks, where and when: what every step of a request carries.
//!
//! Linux: `current`, `smp_processor_id()`, `numa_node_id()`, `jiffies`. Here nothing is ambient; a step is
//! told.

use crate::call::Outcome;
use crate::effect::Step;
use crate::units::{Asker, Cpu, MemcgId, Nanos, NodeId, Pfn};

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// The CPU that the step runs on.
    pub cpu: Cpu,
    /// The node that memory is to come from.
    pub node: NodeId,
    /// The time.
    pub now: Nanos,
    /// Who asks; [`Asker::NONE`] for a daemon.
    pub asker: Asker,
    /// The group that pays.
    pub memcg: MemcgId,
}

/// Result of asking for a page.
pub(crate) enum Alloc {
    /// Here it is.
    Page(Pfn),
    /// Not yet: hand this to the world.
    Pending(Step<Outcome>),
    /// There is none.
    Failed,
}
