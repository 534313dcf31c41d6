//! A write of 1 to `vm.compact_memory`: compacts every zone from end to end.
//!
//! Linux: `sysctl_compaction_handler`, `compact_nodes`, `compact_node` (6.1). The task that writes
//! does the work.
//!
//! Invariant: a node's zones are compacted once each, lowest first.

use super::run::CompactRunId;
use super::{CompactGoal, CompactMode, Compactor};
use crate::frames::gfp::{AllocFlags, Gfp, MigrateType, Watermark};
use crate::frames::node::ZoneRef;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::interface::owners::Owners;
use crate::units::{Cpu, NodeId, Requester};

/// State of a write to `vm.compact_memory`.
#[derive(Clone, Debug, Default)]
pub struct CompactMemory {
    began: bool,
    node: usize,
    zone: usize,
    run: Option<CompactRunId>,
}

impl Kernel {
    /// The task gives up the write: abandons its run.
    pub(crate) fn cancel_compact_memory(&mut self, state: &CompactMemory, by: Requester, cpu: Cpu) {
        if let Some(run) = state.run {
            self.cancel_compact_run(run, by, cpu);
        }
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn compact_memory_step(
        &mut self,
        state: &mut CompactMemory,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if !core::mem::replace(&mut state.began, true) {
            self.mem.work.syscalls += 1;
            self.lru_add_drain_all();
        }
        if let Some(id) = state.run {
            return match self.compact_step(id, ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(_) => {
                    state.run = None;
                    state.zone += 1;
                    Step::Continue
                }
            };
        }
        while state.node < self.mem.pgdat.len() {
            let node = NodeId(state.node as u8);
            let zones = &self.mem.nodes[state.node].zones;
            match zones.get(state.zone).map(|zone| zone.is_populated()) {
                None => {
                    state.node += 1;
                    state.zone = 0;
                }
                Some(false) => state.zone += 1,
                Some(true) => {
                    let goal = CompactGoal {
                        zone: ZoneRef { node, zone: state.zone as u8 },
                        order: None,
                        mt: MigrateType::Movable,
                        gfp: Gfp::KERNEL,
                        mode: CompactMode::Sync,
                        flags: AllocFlags::at(Watermark::Min),
                        highest_zoneidx: state.zone,
                        by: Compactor::Explicit,
                        thorough: true,
                    };
                    match self.compact_begin(goal, ctx) {
                        Ok(id) => {
                            state.run = Some(id);
                            return Step::Continue;
                        }
                        Err(_) => state.zone += 1,
                    }
                }
            }
        }
        Step::Done(Outcome::Minor)
    }
}
