//! The context of a step: its task, CPU, node and time.
//!
//! Linux: `current`, `smp_processor_id()`, `numa_node_id()`, `jiffies`; here arguments of a step.

use crate::units::{Asker, Cpu, MemcgId, Nanos, NodeId};

/// Who runs a step, where and when.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// The CPU that the step runs on.
    pub cpu: Cpu,
    /// The preferred node for memory.
    pub node: NodeId,
    /// The time of the step.
    pub now: Nanos,
    /// The requester; [`Asker::NONE`] for a daemon.
    pub asker: Asker,
    /// The group that is charged.
    pub memcg: MemcgId,
}
