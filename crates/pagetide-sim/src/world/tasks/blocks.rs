//! Blocks of kernel memory that tasks allocate by order, and operations that pace a task.
//!
//! Invariant: a slot has a block exactly while the task's mm holds that block.

use crate::world::cpus::SliceEnd;
use crate::world::SimWorld;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::model::BlockRequest;
use pagetide_scenario::op::Op;

pub(crate) fn gfp_of(request: BlockRequest) -> Gfp {
    match request {
        BlockRequest::Kernel => Gfp::KERNEL,
        BlockRequest::KernelHigh => Gfp::KERNEL.with(Gfp::HIGH),
        BlockRequest::Reclaimable => Gfp::KERNEL.with(Gfp::RECLAIMABLE),
        BlockRequest::Nowait => Gfp::NOWAIT,
        BlockRequest::Atomic => Gfp::ATOMIC,
    }
}

impl SimWorld {
    /// Ends an allocation: stores the block, if any, in its slot.
    pub(crate) fn block_allocated(&mut self, id: usize, op: Op, outcome: Outcome) {
        let Op::AllocBlock { slot, .. } = op else { return };
        let task = &mut self.tasks[id];
        task.usage.blocks_asked += 1;
        let Outcome::Block(pfn) = outcome else { return };
        task.usage.blocks_got += 1;
        let slot = slot as usize;
        if task.blocks.len() <= slot {
            task.blocks.resize(slot + 1, None);
        }
        let before = task.blocks[slot].replace(pfn);
        assert!(before.is_none(), "a slot is emptied before it is filled again");
    }

    /// Frees a block. Returns the CPU time.
    pub(crate) fn free_block(&mut self, id: usize, slot: u32, cpu: Cpu) -> Nanos {
        let task = &mut self.tasks[id];
        let Some(pfn) = task.blocks.get_mut(slot as usize).and_then(Option::take) else { return 0 };
        let was_held = self.machine.free_kernel_block(task.mm, pfn, cpu);
        assert!(was_held, "{pfn:?} was in a slot and is not held");
        let cost = self.take_work();
        self.spend_in_kernel(id, cost)
    }

    /// Sleeps until `ns` after the end of the phase's last pause, unless that time has passed.
    pub(crate) fn pace(&mut self, id: usize, ns: Nanos, elapsed: Nanos) -> Option<SliceEnd> {
        let now = self.now + elapsed;
        let due = self.tasks[id].paced.map_or(now, |last| last.saturating_add(ns));
        self.tasks[id].paced = Some(due.max(now));
        (due > now).then(|| self.sleep_until(id, due))
    }

    /// Sleeps until `ns` after the phase's first operation of this kind, unless that time has
    /// passed.
    pub(crate) fn until(&mut self, id: usize, ns: Nanos, elapsed: Nanos) -> Option<SliceEnd> {
        let now = self.now + elapsed;
        let due = self.tasks[id].until_base.get_or_insert(now).saturating_add(ns);
        (due > now).then(|| self.sleep_until(id, due))
    }
}
