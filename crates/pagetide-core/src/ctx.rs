//! The context of a step: its task, CPU, node and time.
//!
//! Linux: `current`, `smp_processor_id()`, `numa_node_id()`, `jiffies`. Here these are arguments of
//! every step.

use crate::units::{Asker, Cpu, MemcgId, Nanos, NodeId};

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
