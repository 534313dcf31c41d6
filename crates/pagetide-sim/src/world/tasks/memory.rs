//! Memory that tasks ask for by system calls: mlock(), munlock(), madvise(), and blocks of kernel
//! memory by order.
//!
//! A request that faults pages in, reads or reclaims them becomes a call with steps. Others take
//! effect at once.
//!
//! Invariant: a slot has a block exactly while the task's mm holds that block.

use crate::task::PhaseLevel;
use crate::world::SimWorld;
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Backing, Vma};
use pagetide_core::process::ProcessCall;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::metric::declared;
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::model::BlockRequest;
use pagetide_scenario::names::{LockKind, MadviseKind};
use pagetide_scenario::op::Op;
use std::ops::Range;

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
    /// mlock(), mlock2() and munlock(). Returns the CPU time, and a call that faults in missing
    /// pages: with writes in an anonymous mapping, with reads in a file mapping.
    pub(crate) fn lock(
        &mut self,
        id: usize,
        (region, pages): (u32, Range<u64>),
        how: LockKind,
        cpu: Cpu,
    ) -> (Nanos, Option<ProcessCall>) {
        let vma = self.tasks[id].regions[region as usize];
        let nr = pages.end - pages.start;
        let done = match how {
            LockKind::Lock | LockKind::OnFault => self.machine.mlock(vma, pages.start, nr, cpu),
            LockKind::Unlock => self.machine.munlock(vma, pages.start, nr, cpu),
        };
        let cost = self.cpus.meter.charge(Price::Syscall, 1) + self.take_work();
        self.spend_in_kernel(id, cost);
        let populates = done.is_ok() && how == LockKind::Lock;
        let call = populates.then(|| {
            let node = self.machine.mem.cpu_node(cpu);
            let write = self.machine.vma(vma).is_ok_and(|vma| vma.backing == Backing::Anon);
            ProcessCall::populate(self.tasks[id].mm, node, vma, pages, write)
        });
        (cost, call)
    }

    /// madvise(). Returns the CPU time, and the call that does the rest.
    pub(crate) fn advise(
        &mut self,
        id: usize,
        (region, pages): (u32, Range<u64>),
        advice: MadviseKind,
        cpu: Cpu,
    ) -> (Nanos, Option<ProcessCall>) {
        let (mm, vma) = (self.tasks[id].mm, self.tasks[id].regions[region as usize]);
        let node = self.machine.mem.cpu_node(cpu);
        // An error is recorded, and the task goes on.
        self.tasks[id].errno = 0;
        let call = match advice {
            MadviseKind::Normal
            | MadviseKind::Random
            | MadviseKind::Sequential
            | MadviseKind::Huge
            | MadviseKind::NoHuge => {
                let kept = advice.mapping_advice().unwrap_or_default();
                let all = self.machine.vma(vma).map_or(0, Vma::len);
                let done = match pages == (0..all) {
                    true => self.machine.set_advice(vma, kept),
                    false => self.machine.advise_huge(vma, pages, advice == MadviseKind::Huge),
                };
                if let Ok(effects) = done {
                    self.cpus.hold(effects, cpu);
                }
                None
            }
            MadviseKind::PopulateRead => Some(ProcessCall::populate(mm, node, vma, pages, false)),
            MadviseKind::PopulateWrite => Some(ProcessCall::populate(mm, node, vma, pages, true)),
            MadviseKind::WillNeed => Some(ProcessCall::will_need(mm, node, vma, pages)),
            MadviseKind::Cold => Some(ProcessCall::cold(mm, node, vma, pages)),
            MadviseKind::PageOut => Some(ProcessCall::page_out(mm, node, vma, pages)),
            MadviseKind::Collapse => Some(ProcessCall::collapse(mm, node, vma, pages)),
        };
        let cost = self.cpus.meter.charge(Price::Syscall, 1) + self.take_work();
        (self.spend_in_kernel(id, cost), call)
    }

    /// Number of resident pages of a region, as a metric.
    pub(crate) fn resident(&self, id: usize, region: &str) -> Option<PhaseLevel> {
        let task = &self.tasks[id];
        let number = task.program.region_number(region)?;
        let &vma = task.regions.get(number as usize)?;
        let len = self.machine.vma(vma).ok()?.len();
        let nr = (0..len).filter(|&page| self.machine.is_in_core(vma, page)).count();
        Some((declared::RESIDENT, nr as u64))
    }

    /// MADV_DONTNEED.
    pub(crate) fn discard(
        &mut self,
        id: usize,
        region: u32,
        page: u64,
        pages: u64,
        cpu: Cpu,
    ) -> Nanos {
        let vma = self.tasks[id].regions[region as usize];
        if let Ok(effects) = self.machine.discard(vma, page, pages, cpu) {
            self.cpus.hold(effects, cpu);
        }
        let cost = self.cpus.meter.charge(Price::Syscall, 1) + self.take_work();
        self.spend_in_kernel(id, cost)
    }

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
}
