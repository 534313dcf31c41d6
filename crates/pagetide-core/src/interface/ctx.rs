//! The context of a step: its task, CPU, node and time.
//!
//! Linux: `current`, `smp_processor_id()`, `numa_node_id()`, `jiffies`; here arguments of a step.

use crate::units::{Cpu, MemcgId, Nanos, NodeId, Requester};

/// Context of a step: the task that runs it, its place and the time.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// The CPU that the step runs on.
    pub cpu: Cpu,
    /// The preferred node for memory.
    pub node: NodeId,
    /// The time of the step.
    pub now: Nanos,
    /// The requester; [`Requester::NONE`] for a daemon.
    pub asker: Requester,
    /// The group that is charged.
    pub memcg: MemcgId,
}
