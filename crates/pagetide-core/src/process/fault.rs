//! Page faults: the stages of the handler.
//!
//! Linux: mm/memory.c `handle_mm_fault`, mm/filemap.c `filemap_fault` (6.1). Anonymous memory gets
//! a zeroed page, or its page back from swap. File memory is mapped from the page cache together
//! with cached neighbours (fault-around); missing pages are read (read-ahead). A fault that starts
//! I/O drops the lock of the address space and is tried again, which counts as a second `pgfault`,
//! as in Linux.
//!
//! Invariant: every stage checks all its assumptions again when it is entered, because other tasks
//! and reclaim run between two steps.

pub mod at_boot;
mod dirty;
mod file;
mod huge;
mod swap_in;
#[cfg(test)]
mod tests;

use crate::config::KmemAccounting;
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::groups::memcg::ROOT;
use crate::interface::bad_id::BadId;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effect, Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::outcome::{Contents, FaultedPage, Frame, Outcome};
use crate::process::buffer_heads::BufferHeadRequest;
use crate::process::id_pool::NOT_BEGUN;
use crate::process::object::MemoryObject;
use crate::process::page_table::{Backing, Pte, VmaId, HEAP_TOP_PAD};
use crate::process::readahead::ReadaheadWindow;
use crate::process::Machine;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::digest::State;
use crate::units::{Cpu, FileId, MemcgId, Pfn};

/// Returns the step of a stage, or continues with the next stage. Each stage has its own return: if
/// all stages shared a variable, it would be written in parts and then copied as a whole, which
/// stalls the CPU.
macro_rules! go_on_or_return {
    ($stage:expr) => {
        if let Some(step) = $stage {
            return step;
        }
    };
}

/// A fault in progress.
#[derive(Clone, Debug, State)]
pub struct Fault {
    vma: VmaId,
    page: u64,
    write: bool,
    /// Generation of the mapping, known once the fault has begun. Another mapping may get its id.
    pub(super) born: u64,
    stage: FaultStage,
    /// Second attempt after the lock was dropped (Linux `FAULT_FLAG_TRIED`).
    tried: bool,
    /// The lock was dropped in this attempt: end it with a retry.
    dropped_lock: bool,
    /// The page cache was searched in this attempt. Only the first search starts read-ahead. If
    /// read-ahead could not allocate the page, the fault creates it, or fails.
    searched: bool,
    /// This attempt reads the page alone. If the read fails on the second attempt, the fault fails.
    read_alone: bool,
    major: bool,
    /// The fault reads a page for a collapse. It is not an access, and it is not tried again.
    for_collapse: bool,
    /// The region had no page table, and a huge page may fill it.
    huge: bool,
    /// The writer has paused in this fault and does not pause again.
    paused: bool,
    /// Remaining pages of a swap read-ahead, as page offsets or slots.
    swap_window: SwapWindow,
    buffer: BufferHeadRequest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
enum FaultStage {
    /// Read the entry and decide.
    Start,
    /// Wait for the migration of the page.
    Migration(Pfn),
    /// Allocate a missing page table.
    PageTable,
    /// Allocate a huge page, and map it if the region is still empty.
    Huge,
    /// Allocate a zeroed page.
    Anon,
    /// Look the page up in the page cache.
    File,
    /// Read a window of pages, then search the page cache again.
    Readahead(ReadaheadWindow),
    /// Allocate a buffer head for a page that will be written.
    BufferHead,
    /// The entry is writable; the writer pauses.
    Throttled,
    /// Create the missing page and read it alone.
    FileCreate,
    /// Wait for the read of the page.
    FileLocked(Pfn),
    /// Look the slot up in the swap cache.
    Swap,
    /// Read from swap, with neighbours.
    SwapRead,
    /// Wait for the read from swap.
    SwapLocked(Pfn),
}

/// Neighbours of a swapped page to read with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
struct SwapWindow {
    next: u64,
    end: u64,
    /// By slot (rotating disks) instead of by address.
    by_slot: bool,
    active: bool,
    /// The page goes to its owner without the swap cache: it is loaded at once.
    skips_cache: bool,
}

impl Fault {
    pub(crate) fn new(vma: VmaId, page: u64, write: bool) -> Fault {
        Fault {
            vma,
            page,
            write,
            born: NOT_BEGUN,
            stage: FaultStage::Start,
            tried: false,
            dropped_lock: false,
            searched: false,
            read_alone: false,
            major: false,
            for_collapse: false,
            huge: false,
            paused: false,
            swap_window: SwapWindow::default(),
            buffer: BufferHeadRequest::default(),
        }
    }

    /// A fault that reads a page from swap for a collapse (Linux: `do_swap_page` called by
    /// `__collapse_huge_page_swapin`). Ends with the page, with [`Outcome::Minor`] if the page is
    /// no longer in swap, or with [`Outcome::NoMemory`] if the collapse must give up the region.
    pub(super) fn swap_in(vma: VmaId, born: u64, page: u64) -> Fault {
        Fault { born, stage: FaultStage::Swap, for_collapse: true, ..Fault::new(vma, page, false) }
    }

    #[inline(always)]
    pub(super) fn vma(&self) -> VmaId {
        self.vma
    }

    /// Whether the fault dropped the lock while it waited for the page (Linux `VM_FAULT_RETRY`).
    pub(super) fn has_dropped_lock(&self) -> bool {
        self.tried
    }

    /// Ends the fault: the entry maps `pfn`.
    fn got(&self, pfn: Pfn, contents: Contents) -> Step<Outcome> {
        Step::Done(Outcome::Got(FaultedPage { frame: Frame::At(pfn), contents, major: self.major }))
    }

    /// Ends the fault with a page that was in memory, or was read.
    fn got_kept(&self, pfn: Pfn) -> Step<Outcome> {
        self.got(pfn, if self.major { Contents::Read } else { Contents::Kept })
    }

    /// Ends the fault: the entry maps the zero page.
    fn got_zeroes(&self) -> Step<Outcome> {
        let (frame, contents) = (Frame::Zeroes, Contents::Fresh);
        Step::Done(Outcome::Got(FaultedPage { frame, contents, major: self.major }))
    }
}

impl Memory {
    /// Waits for the migration to end, then faults again (Linux `migration_entry_wait`).
    fn fault_migration(&mut self, fault: &mut Fault, pfn: Pfn) -> Option<Step<Outcome>> {
        let page = &mut self.pages[pfn];
        if page.has(PageFlags::MIGRATING) {
            page.set(PageFlags::WAITERS);
            return Some(Step::Wait(Sleep::on_page(pfn)));
        }
        fault.stage = FaultStage::Start;
        None
    }
}

impl Kernel {
    /// Asks the world to zero a frame that was allocated without `__GFP_ZERO`.
    pub(crate) fn zero_page(&mut self, pfn: Pfn) {
        self.mem.work.pages_zeroed += 1;
        self.step.effects.push_contents(Effect::Zero { frame: pfn, order: 0 });
    }

    /// Asks the world to zero a frame that was allocated with `__GFP_ZERO`.
    pub(crate) fn zero_new_page(&mut self, pfn: Pfn) {
        self.mem.work.pages_allocated_zeroed += 1;
        self.step.effects.push_contents(Effect::Zero { frame: pfn, order: 0 });
    }
}

impl Machine {
    /// As [`Machine::fault_step`], under generations or a page policy: pages that the fault adds are
    /// young, unless the mapping has random or sequential advice (Linux `lru_gen_enter_fault`).
    pub(crate) fn young_fault_step(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        let vma = self.owners.vmas.get(fault.vma.idx());
        if vma.is_some_and(|vma| vma.advice.has_recency()) {
            let mark = if self.era.generations { PageFlags::ACTIVE } else { PageFlags::FAULTED };
            self.step.fault_mark = mark;
        }
        let step = self.fault_step(fault, slow, ctx);
        self.step.fault_mark = PageFlags::EMPTY;
        step
    }

    pub(crate) fn fault_step(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        loop {
            match fault.stage {
                FaultStage::Start if fault.for_collapse => {
                    // The fault dropped the lock to wait for the page, and must not be tried again.
                    let outcome = if fault.tried { Outcome::NoMemory } else { Outcome::Minor };
                    return Step::Done(outcome);
                }
                FaultStage::Start => go_on_or_return!(self.fault_start(fault, ctx)),
                FaultStage::Migration(pfn) => {
                    go_on_or_return!(self.mem.fault_migration(fault, pfn))
                }
                FaultStage::PageTable => go_on_or_return!(self.fault_page_table(fault, slow, ctx)),
                FaultStage::Huge => go_on_or_return!(self.fault_huge(fault, slow, ctx)),
                FaultStage::Anon => go_on_or_return!(self.fault_anon(fault, slow, ctx)),
                FaultStage::File => go_on_or_return!(self.fault_file(fault, ctx)),
                FaultStage::Readahead(window) => {
                    go_on_or_return!(self.fault_readahead(fault, window, slow, ctx))
                }
                FaultStage::BufferHead => {
                    go_on_or_return!(self.fault_buffer_head(fault, slow, ctx))
                }
                FaultStage::Throttled => go_on_or_return!(self.fault_throttled(fault, ctx)),
                FaultStage::FileCreate => {
                    go_on_or_return!(self.fault_file_create(fault, slow, ctx))
                }
                FaultStage::FileLocked(pfn) => go_on_or_return!(self.fault_file_locked(fault, pfn)),
                FaultStage::Swap => go_on_or_return!(self.fault_swap(fault, ctx)),
                FaultStage::SwapRead => go_on_or_return!(self.fault_swap_read(fault, slow, ctx)),
                FaultStage::SwapLocked(pfn) => {
                    go_on_or_return!(self.fault_swap_locked(fault, pfn, ctx))
                }
            }
        }
    }

    fn fault_start(&mut self, fault: &mut Fault, ctx: &Ctx) -> Option<Step<Outcome>> {
        if !(fault.tried && self.era.counts_faults_once) {
            self.mem.vmstat.count(Event::Pgfault);
            self.groups.memcgs[ctx.memcg].events.count(Event::Pgfault);
        }
        self.mem.work.faults += 1;
        fault.dropped_lock = false;
        fault.searched = false;
        fault.read_alone = false;
        let Some(vma) = self.owners.vmas.get_mut(fault.vma.idx()) else {
            return Some(Step::Done(Outcome::BadId(BadId::Vma(fault.vma))));
        };
        if !vma.alive {
            return Some(Step::Done(Outcome::NoMemory));
        }
        if fault.page >= vma.len() {
            return Some(Step::Done(Outcome::BadId(BadId::Page(fault.vma))));
        }
        fault.born = vma.generation;
        if fault.page >= vma.grown {
            // In Linux the heap has just grown, by brk() or by an mmap() merged with this mapping.
            let pad = self.kernel.mem.page_size.pages_in(HEAP_TOP_PAD);
            vma.grown = (fault.page + 1 + pad).min(vma.len());
        }
        let table = self.mem.page_size.table_of(fault.page);
        if self.owners.vmas[fault.vma].tables[table].is_none() {
            fault.stage = FaultStage::PageTable;
            fault.huge = self.wants_huge(fault);
            self.khugepaged_enter(fault.vma, fault.page);
            return None;
        }
        if self.wants_huge_in_table(fault) {
            fault.stage = FaultStage::Huge;
            return None;
        }
        self.fault_dispatch(fault, ctx)
    }

    fn fault_dispatch(&mut self, fault: &mut Fault, ctx: &Ctx) -> Option<Step<Outcome>> {
        let vma = &mut self.owners.vmas[fault.vma];
        let pte = vma.ptes[fault.page as usize];
        if let Some(touched) = pte.touched(fault.write) {
            // Another task has handled the fault.
            vma.ptes[fault.page as usize] = touched;
            return Some(match touched.is_zero_page() {
                true => fault.got_zeroes(),
                false => fault.got(touched.pfn(), Contents::Kept),
            });
        }
        if let Some((pfn, _)) = pte.migrating() {
            fault.stage = FaultStage::Migration(pfn);
            return None;
        }
        fault.stage = match vma.backing {
            Backing::File(_) if pte.is_present() => {
                if !self.try_attach_buffer_head(pte.pfn(), &mut fault.buffer, ctx) {
                    fault.stage = FaultStage::BufferHead;
                    return None;
                }
                self.set_page_dirty_by(pte.pfn(), ctx);
                self.set_pte(fault.vma, fault.page, Pte::map(pte.pfn(), true));
                return self.fault_dirtied(fault, fault.got(pte.pfn(), Contents::Kept), ctx);
            }
            Backing::File(_) => FaultStage::File,
            Backing::Anon if pte.swap_slot().is_some() => FaultStage::Swap,
            Backing::Anon if pte.is_present() && !pte.is_zero_page() => {
                self.reuse_anon_page(fault, pte.pfn(), ctx.cpu);
                return Some(fault.got(pte.pfn(), Contents::Kept));
            }
            Backing::Anon if !fault.write => {
                self.owners.vmas[fault.vma].ptes[fault.page as usize] = Pte::ZERO_PAGE;
                self.mem.work.ptes_set += 1;
                return Some(fault.got_zeroes());
            }
            Backing::Anon => FaultStage::Anon,
        };
        None
    }

    fn fault_page_table(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let payer =
            if self.config.kmem_accounting == KmemAccounting::On { ctx.memcg } else { ROOT };
        let request = PageRequest::page(Gfp::KERNEL.with(Gfp::ZERO), payer);
        let pfn = match self.request_page(ctx, slow, request) {
            Step::Continue => return Some(Step::Continue),
            Step::Wait(wait) => return Some(Step::Wait(wait)),
            Step::Done(Ok(pfn)) => pfn,
            Step::Done(Err(_)) => return Some(Step::Done(Outcome::NoMemory)),
        };
        let table = self.mem.page_size.table_of(fault.page);
        let vma = &mut self.owners.vmas[fault.vma];
        if !vma.alive || vma.tables[table].is_some() {
            self.discard_charged(ctx.cpu, pfn, payer);
        } else {
            vma.tables[table] = pfn;
            vma.nr_tables += 1;
            self.charge(ctx.cpu, pfn, payer);
            self.groups.change_kmem(payer, 1);
            self.zero_new_page(pfn);
            self.mem.stat_inc(pfn, NodeStat::NrPageTablePages);
        }
        if !self.owners.vmas[fault.vma].alive {
            return Some(Step::Done(Outcome::NoMemory));
        }
        if fault.huge {
            fault.stage = FaultStage::Huge;
            return None;
        }
        self.fault_dispatch(fault, ctx)
    }

    /// Makes the entry writable again: the page has no other user.
    fn reuse_anon_page(&mut self, fault: &Fault, pfn: Pfn, cpu: Cpu) {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::SWAPCACHE) && !page.has(PageFlags::WRITEBACK) {
            self.delete_from_swap_cache(pfn, Default::default(), cpu);
        }
        self.mem.pages[pfn].set(PageFlags::DIRTY);
        self.set_pte(fault.vma, fault.page, Pte::map(pfn, true));
    }

    fn set_pte(&mut self, vma: VmaId, page: u64, pte: Pte) {
        self.owners.vmas[vma].ptes[page as usize] = pte;
        self.mem.work.ptes_set += 1;
    }

    /// Maps `pfn` at an entry that was empty or a swap entry.
    fn map_page(&mut self, vma: VmaId, page: u64, pfn: Pfn, dirty: bool) {
        let mapping = &mut self.owners.vmas[vma];
        mapping.ptes[page as usize] = Pte::map(pfn, dirty);
        mapping.nr_present += 1;
        self.kernel.mem.work.ptes_set += 1;
        let locked = mapping.locked.contains(page);
        self.mem.page_add_rmap(pfn);
        if locked {
            self.mlock_page(pfn);
        }
        self.mem.work.rmap_walks += 1;
    }

    fn fault_anon(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let request = PageRequest::page(Gfp::HIGHUSER_MOVABLE.with(Gfp::ZERO), ctx.memcg);
        let pfn = match self.request_page(ctx, slow, request) {
            Step::Continue => return Some(Step::Continue),
            Step::Wait(wait) => return Some(Step::Wait(wait)),
            Step::Done(Ok(pfn)) => pfn,
            Step::Done(Err(_)) => return Some(Step::Done(Outcome::NoMemory)),
        };
        let vma = &self.owners.vmas[fault.vma];
        let changed = !vma.alive || {
            let pte = vma.ptes[fault.page as usize];
            !(pte.is_empty() || pte.is_zero_page())
        };
        if changed {
            self.discard_charged(ctx.cpu, pfn, ctx.memcg);
            fault.stage = FaultStage::Start;
            return None;
        }
        self.zero_new_page(pfn);
        let at = MemoryObject::Anon(fault.vma).at(fault.page);
        self.begin_anon_page(pfn, at, PageFlags::EMPTY, ctx.memcg, ctx.cpu);
        self.map_page(fault.vma, fault.page, pfn, true);
        self.folio_add_lru(ctx.cpu, pfn);
        Some(fault.got(pfn, Contents::Fresh))
    }

    /// Puts a new page, locked, in the page cache and on the LRU. `false`: it is already cached.
    pub(crate) fn add_to_page_cache(
        &mut self,
        file: FileId,
        index: u32,
        pfn: Pfn,
        ctx: &Ctx,
        refault: bool,
    ) -> bool {
        if self.owners.files[file].get(index).is_some() {
            return false;
        }
        self.mem.init_user_page(pfn, file.0, index, PageFlags::FILE.with(PageFlags::LOCKED));
        self.charge(ctx.cpu, pfn, ctx.memcg);
        let nodes = self.owners.files[file].nr_nodes;
        let shadow = self.owners.files[file].insert(index, pfn);
        self.tree_grew(file, index, nodes, ctx);
        self.mem.stat_inc(pfn, NodeStat::NrFilePages);
        self.mem.work.cache_ops += 1;
        if refault {
            self.workingset_refault(pfn, shadow);
        }
        self.folio_add_lru(ctx.cpu, pfn);
        true
    }

    /// Group of an address space, also after the address space has ended, until its id is reused.
    ///
    /// # Errors
    /// [`BadId::Mm`] if no such address space ever existed.
    pub fn mm_memcg(&self, mm: crate::process::MmId) -> Result<MemcgId, BadId> {
        let found = self.owners.mms.get(mm.idx()).map(|mm| mm.memcg);
        found.ok_or(BadId::Mm(mm))
    }
}
