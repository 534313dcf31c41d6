//! Kernel memory that a task allocates by order: stacks, network buffers, memory of drivers.
//!
//! Linux: `alloc_pages` and `__free_pages`, called by a module or a system call on behalf of a
//! task. The address space holds a block until the block is freed or the address space ends. A
//! block is on no list, cannot be moved, and may lie in a pageblock of any type, which fragments
//! memory. Groups are not charged for it.
//!
//! Invariant: block i of `Mm::kernel_blocks` has `index` i, its owner in `mapping`, its order in
//! `order`, and no flag set.

use crate::frames::gfp::Gfp;
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
#[cfg(doc)]
use crate::interface::kernel::Kernel;
use crate::interface::outcome::Outcome;
use crate::process::Machine;
use crate::process::MmId;
use crate::units::{Cpu, Order, Pfn, MAX_PAGE_ORDER};
use core::cmp::Reverse;

/// An allocation of kernel memory in progress.
#[derive(Clone, Copy, Debug)]
pub struct KernelAlloc {
    order: Order,
    gfp: Gfp,
}

impl KernelAlloc {
    pub(crate) fn new(order: Order, gfp: Gfp) -> KernelAlloc {
        KernelAlloc { order, gfp }
    }
}

impl Machine {
    pub(crate) fn kernel_alloc_step(
        &mut self,
        wanted: KernelAlloc,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        let KernelAlloc { order, gfp } = wanted;
        // An order above the maximum fails at once (Linux warns and fails).
        if order > MAX_PAGE_ORDER {
            return Step::Done(Outcome::NoBlock);
        }
        match self.request_page(ctx, slow, PageRequest::unpaid(order, gfp)) {
            Step::Continue => Step::Continue,
            Step::Wait(wait) => Step::Wait(wait),
            Step::Done(Ok(pfn)) => {
                self.hold_kernel_block(ctx.asker, pfn);
                Step::Done(Outcome::Block(pfn))
            }
            Step::Done(Err(_)) => Step::Done(Outcome::NoBlock),
        }
    }

    fn hold_kernel_block(&mut self, mm: MmId, pfn: Pfn) {
        let blocks = &mut self.owners.mms[mm].kernel_blocks;
        let page = &mut self.kernel.mem.pages[pfn];
        page.mapping = mm.0;
        page.index = blocks.len() as u32;
        blocks.push(pfn);
    }

    /// Frees a block that [`Outcome::Block`] returned. `false`: `mm` does not hold it, and nothing
    /// changed.
    pub fn free_kernel_block(&mut self, mm: MmId, pfn: Pfn, cpu: Cpu) -> bool {
        let Some(page) = self.mem.pages.get(pfn.idx()) else { return false };
        let (at, order) = (page.index as usize, Order::from(page.order));
        if !self.groups.has_cpu(cpu) {
            return false;
        }
        let Some(mm) = self.owners.mms.get_mut(mm.idx()) else { return false };
        let blocks = &mut mm.kernel_blocks;
        if blocks.get(at) != Some(&pfn) {
            return false;
        }
        blocks.swap_remove(at);
        if let Some(moved) = blocks.get(at) {
            self.kernel.mem.pages[*moved].index = at as u32;
        }
        self.mem.free_page(cpu, pfn, order);
        true
    }

    /// Each address space gets up to `each` of the frames that are reserved for the kernel since
    /// boot, and frees them when it ends: the memory of its program. Frames in movable pageblocks of
    /// high zones come first. Call it once, after all [`Kernel::populate_cache`] and before any
    /// allocation.
    pub fn give_boot_frames(&mut self, mms: &[MmId], each: u64) {
        let mut frames = self.mem.frames_held_by_kernel(0, u64::MAX);
        let nodes = &self.mem.nodes;
        frames.sort_by_key(|&pfn| {
            let page = self.mem.pages.peek(pfn.idx());
            let zone = &nodes[page.node()].zones[page.zone()];
            (!zone.block_type(pfn).is_movable(), Reverse(page.zone()))
        });
        let mut frames = frames.into_iter();
        for &mm in mms {
            for pfn in frames.by_ref().take(each as usize) {
                self.mem.pages.open(pfn);
                self.hold_kernel_block(mm, pfn);
            }
        }
    }

    /// Kernel blocks that an address space holds.
    pub fn kernel_blocks(&self, mm: MmId) -> &[Pfn] {
        self.owners.mms.get(mm.idx()).map_or(&[], |mm| &mm.kernel_blocks)
    }

    pub(crate) fn free_all_kernel_blocks(&mut self, mm: MmId, cpu: Cpu) {
        for pfn in core::mem::take(&mut self.owners.mms[mm].kernel_blocks) {
            let order = self.mem.pages[pfn].order;
            self.mem.free_page(cpu, pfn, order);
        }
    }
}
