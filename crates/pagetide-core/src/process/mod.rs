//! The process layer: address spaces and files, the owners of pages in a simulated machine.
//!
//! Linux: mm_struct, vm_area_struct, address_space. This layer has address spaces and their
//! entries, page faults, read() and write(), read-ahead, writeback, khugepaged, the OOM killer and
//! pressure stall information. [`Machine`] is the page level and the process layer together.
//!
//! The world (the environment that carries out effects) calls [`Machine::touch`] for every access.
//! If that returns [`TouchResult::Fault`], the world makes a [`ProcessCall`] and steps it until
//! done.
//!
//! Invariant: see [`crate::audit`].

mod audit;
mod buffer_heads;
mod collapse;
pub mod fault;
pub mod filemap;
mod huge_memory;
mod id_pool;
mod ids;
pub mod kernel_block;
pub mod khugepaged;
mod locked_pages;
mod madvise;
mod madvise_collapse;
pub mod mlock;
mod object;
pub mod oom;
pub mod page_cache;
pub mod page_table;
pub mod policy;
mod populate;
pub mod psi;
pub mod readahead;
mod request;
mod rmap;
mod table_walk;
mod tree_nodes;
pub mod writeback;
mod zap;

pub use crate::units::Requester as MmId;
pub use ids::{MapError, MAX_INDEX};
pub use request::{ProcessCall, ProcessRequest};

use crate::config::Config;
use crate::frames::boot::SetupError;
use crate::frames::node::NodeSpec;
use crate::frames::page::PageFlags;
use crate::interface::bad_id::BadId;
use crate::interface::effect::Effects;
use crate::interface::manager::Manager;
use crate::slab::object::Object;
use crate::stats::vmstat::NodeStat;
use crate::swap::content::ContentMixId;
use crate::units::digest::State;
use crate::units::errno::Errno;
use crate::units::{BdiId, Cpu, FileId, IdVec, MemcgId, Pfn};
use alloc::vec::Vec;
use buffer_heads::BufferHeads;
use id_pool::{put, IdPool};
use khugepaged::KhugepagedScan;
use page_cache::FileCache;
use page_table::{Backing, Vma, VmaId};
use policy::FailurePolicy;
use readahead::SwapinHistory;
use writeback::pauses::DirtyAccount;
use writeback::Writeback;

/// The page level and the process layer together: a machine with processes and files.
pub type Machine = Manager<Processes>;

/// State of the process layer.
#[derive(Clone, Debug, State)]
pub struct Processes {
    pub(crate) mms: IdVec<MmId, Mm>,
    pub(crate) vmas: IdVec<VmaId, Vma>,
    pub(crate) files: IdVec<FileId, FileCache>,
    #[state(skip)] // derived from `exited`
    pub(crate) mm_ids: IdPool,
    #[state(skip)] // likewise
    pub(crate) vma_ids: IdPool,
    #[state(skip)] // likewise
    pub(crate) file_ids: IdPool,
    /// Address spaces that have not ended, oldest first.
    #[state(skip)] // derived from `generation`
    pub(crate) living: Vec<MmId>,
    /// The OOM victims among `living`. They are few, and lookups are frequent.
    #[state(skip)] // derived from `oom_victim`
    pub(crate) dying: Vec<MmId>,
    pub(crate) failure: FailurePolicy,
    pub(crate) writeback: Writeback,
    pub(crate) buffer_heads: BufferHeads,
    pub(crate) swapin: SwapinHistory,
    pub(crate) khugepaged: KhugepagedScan,
}

/// An address space.
#[derive(Clone, Debug, State)]
pub struct Mm {
    /// Group that pays for the pages.
    pub memcg: MemcgId,
    /// Mappings of the address space.
    pub vmas: Vec<VmaId>,
    /// First frames of the kernel blocks that the address space holds.
    pub kernel_blocks: Vec<Pfn>,
    /// Buffer head saved for a page that does not exist yet.
    pub(crate) buffer_head: Option<Object>,
    /// Pages charged above `memory.high` that the next call must pay for.
    pub nr_over_high: u64,
    /// Had a fault in a region that may be huge, so khugepaged scans it (Linux `MMF_VM_HUGEPAGE`).
    pub(crate) khugepaged: bool,
    /// Pages that the task has dirtied, and its pauses.
    pub(crate) dirty: DirtyAccount,
    /// The task has made a call.
    pub(crate) begun: bool,
    /// Chosen by the OOM killer: may use reserves, and is not chosen again.
    pub oom_victim: bool,
    /// Adjusts the OOM badness, in thousandths of the memory that the tasks compete for. With
    /// [`OOM_SCORE_ADJ_MIN`] the OOM killer never chooses the address space.
    pub(crate) oom_score_adj: i16,
    /// How well its anonymous pages compress.
    pub(crate) content: ContentMixId,
    /// Whether the address space has ended.
    pub exited: bool,
    /// Generation: the number of address spaces created before.
    pub(crate) generation: u64,
}

/// The OOM killer never kills the task (Linux `OOM_SCORE_ADJ_MIN`).
pub const OOM_SCORE_ADJ_MIN: i16 = -1000;
/// Maximum of `oom_score_adj` (Linux `OOM_SCORE_ADJ_MAX`).
pub const OOM_SCORE_ADJ_MAX: i16 = 1000;

/// Whether an access needs a page fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TouchResult {
    /// The access is done.
    Hit,
    /// Not present, or not writable: make a [`ProcessCall::fault`].
    Fault,
}

impl Machine {
    /// A machine with nothing mapped or cached. `nodes` counts in pages of [`Config::page_size`].
    ///
    /// # Errors
    /// If the geometry is impossible: no memory, too many nodes, pages or CPUs.
    pub fn new(nodes: &[NodeSpec], nr_cpus: u16, config: Config) -> Result<Machine, SetupError> {
        let processes = Processes {
            mms: Vec::new().into(),
            vmas: Vec::new().into(),
            files: Vec::new().into(),
            mm_ids: IdPool::default(),
            vma_ids: IdPool::default(),
            file_ids: IdPool::default(),
            living: Vec::new(),
            dying: Vec::new(),
            failure: FailurePolicy::default(),
            writeback: Writeback::new(),
            buffer_heads: BufferHeads::default(),
            swapin: SwapinHistory::default(),
            khugepaged: KhugepagedScan::new(config.thp),
        };
        let mut machine = Manager::with_owners(processes, nodes, nr_cpus, config)?;
        // Linux does so before it has set the watermarks.
        let [thresh, _] = machine.machine_thresholds(machine.mem.nr_free_pages());
        machine.writeback_set_ratelimit(thresh);
        Ok(machine)
    }

    /// Creates an address space that is charged to `memcg`.
    ///
    /// # Errors
    /// [`BadId::Memcg`] if the group does not exist.
    pub fn create_mm(&mut self, memcg: MemcgId) -> Result<MmId, BadId> {
        if !self.groups.memcg_is_online(memcg) {
            return Err(BadId::Memcg(memcg));
        }
        let (id, born) = self.owners.mm_ids.take(self.owners.mms.len());
        self.groups.memcgs[memcg].nr_tasks += 1;
        let mm = Mm {
            memcg,
            vmas: Vec::new(),
            kernel_blocks: Vec::new(),
            buffer_head: None,
            nr_over_high: 0,
            khugepaged: false,
            dirty: DirtyAccount::new(self.mem.page_size),
            begun: false,
            oom_victim: false,
            oom_score_adj: 0,
            content: ContentMixId::default(),
            exited: false,
            generation: born,
        };
        put(&mut self.owners.mms, id, mm);
        self.owners.living.push(MmId(id));
        Ok(MmId(id))
    }

    /// Moves an address space to another group. Its pages stay charged to the old group, as in
    /// version 2.
    ///
    /// # Errors
    /// ENOENT if the group does not exist, ESRCH if the address space never existed.
    pub fn move_mm(&mut self, mm: MmId, memcg: MemcgId) -> Result<Effects<'_>, Errno> {
        if !self.groups.memcg_is_online(memcg) {
            return Err(Errno::Enoent);
        }
        match self.owners.mms.get(mm.idx()) {
            None => return Err(Errno::Esrch),
            Some(mm) if mm.exited => return Ok(self.take_effects()),
            Some(_) => {}
        }
        let from = core::mem::replace(&mut self.owners.mms[mm].memcg, memcg);
        self.groups.memcgs[from].nr_tasks -= 1;
        self.groups.memcgs[memcg].nr_tasks += 1;
        Ok(self.take_effects())
    }

    /// Whether an address space has ended or never existed.
    pub fn is_exited(&self, mm: MmId) -> bool {
        self.owners.living_mm(mm).is_err()
    }

    /// Creates a file.
    ///
    /// # Errors
    /// [`MapError::TooLarge`] above [`MAX_INDEX`] pages.
    pub fn create_file(&mut self, size: u64, sparse: bool) -> Result<FileId, MapError> {
        let page_size = self.mem.page_size;
        if page_size.pages_for(size) > MAX_INDEX {
            return Err(MapError::TooLarge);
        }
        let (id, born) = self.owners.file_ids.take(self.owners.files.len());
        let mut file = FileCache::new(size, sparse, page_size);
        file.generation = born;
        put(&mut self.owners.files, id, file);
        Ok(FileId(id))
    }

    /// Marks a file as the file system's own blocks: inode tables, directories, bitmaps. Its dirty
    /// pages and pages under writeback do not move, because the journal holds their buffers.
    ///
    /// # Errors
    /// [`BadId::File`] if the file does not exist.
    pub fn set_metadata(&mut self, file: FileId) -> Result<(), BadId> {
        self.file(file)?;
        self.owners.files[file].metadata = true;
        Ok(())
    }

    /// Puts a file on a device; by default it is on device 0. Each device has its own writeback.
    ///
    /// # Errors
    /// [`BadId::File`] if the file does not exist.
    pub fn set_bdi(&mut self, file: FileId, bdi: BdiId) -> Result<(), BadId> {
        self.file(file)?;
        let file = &mut self.owners.files[file];
        // The writeback of a file with pages is bound to its device.
        if file.wb.is_none() && bdi.is_some() {
            file.bdi = bdi;
        }
        Ok(())
    }

    /// Lengthens a file to `size` bytes if it is shorter (Linux: `truncate` to more).
    ///
    /// # Errors
    /// [`BadId::File`] if the file does not exist, [`MapError::TooLarge`] above
    /// [`MAX_INDEX`] pages.
    pub fn extend_file(&mut self, file: FileId, size: u64) -> Result<(), MapError> {
        self.file(file)?;
        if self.mem.page_size.pages_for(size) > MAX_INDEX {
            return Err(MapError::TooLarge);
        }
        self.owners.files[file].extend(size);
        Ok(())
    }

    /// The page cache of a file.
    ///
    /// # Errors
    /// [`BadId::File`] if the file does not exist.
    pub fn file(&self, file: FileId) -> Result<&FileCache, BadId> {
        let there = self.owners.files.get(file.idx()).filter(|file| !file.removed);
        there.ok_or(BadId::File(file))
    }

    /// Makes an anonymous mapping grow as it is touched, like a heap. A region beyond the present
    /// end of the mapping gets no huge page at the first touch. Pages in use stay part of the
    /// mapping.
    ///
    /// # Errors
    /// [`BadId::Vma`] if the mapping does not exist.
    pub fn grow_on_touch(&mut self, vma: VmaId) -> Result<(), BadId> {
        let ptes = &self.owners.living_vma(vma)?.ptes;
        let in_use = ptes.iter().rposition(|pte| !pte.is_empty()).map_or(0, |last| last as u64 + 1);
        self.owners.vmas[vma].grown = in_use;
        Ok(())
    }

    /// A mapping.
    ///
    /// # Errors
    /// [`BadId::Vma`] if it does not exist.
    pub fn vma(&self, vma: VmaId) -> Result<&Vma, BadId> {
        self.owners.living_vma(vma)
    }

    /// Makes one access: one load, one store, no effects. Returns [`TouchResult::Fault`] for an
    /// unknown mapping or page; the fault then reports the error.
    #[inline]
    pub fn touch(&mut self, vma: VmaId, page: u64, write: bool) -> TouchResult {
        let Some(vma) = self.owners.vmas.get_mut(vma.idx()) else { return TouchResult::Fault };
        let Some(pte) = vma.ptes.get_mut(page as usize) else { return TouchResult::Fault };
        match pte.touched(write) {
            Some(touched) => {
                *pte = touched;
                TouchResult::Hit
            }
            None => TouchResult::Fault,
        }
    }

    /// Whether a page of a mapping is present.
    pub fn is_resident(&self, vma: VmaId, page: u64) -> bool {
        let vma = self.owners.vmas.get(vma.idx());
        vma.and_then(|vma| vma.ptes.get(page as usize)).is_some_and(|pte| pte.is_present())
    }

    /// Whether a page of a mapping is in memory and up to date, mapped or only cached (mincore).
    pub fn is_in_core(&self, vma: VmaId, page: u64) -> bool {
        let Some(vma) = self.owners.vmas.get(vma.idx()) else { return false };
        let Some(&pte) = vma.ptes.get(page as usize) else { return false };
        let cached = match vma.backing {
            Backing::Anon => pte.swap_slot().and_then(|slot| self.swap_cache_head(slot)),
            Backing::File(file) => self.owners.files[file].get(page as u32),
        };
        let is_read = |pfn: Pfn| self.mem.pages[pfn].has(PageFlags::UPTODATE);
        pte.is_present() || cached.is_some_and(is_read)
    }

    /// Drops clean, unmapped page-cache pages of every file, and all shadows (`echo 1 >
    /// drop_caches`). Does nothing for an unknown CPU.
    pub fn drop_pagecache(&mut self, cpu: Cpu) -> Effects<'_> {
        if self.groups.has_cpu(cpu) {
            self.drop_clean_pagecache(cpu);
        }
        self.take_effects()
    }

    pub(crate) fn drop_clean_pagecache(&mut self, cpu: Cpu) {
        self.lru_add_drain_all();
        for file in 0..self.owners.files.len() {
            let mut victims = Vec::new();
            self.owners.files[file].for_each_cached(|index, pfn| victims.push((index, pfn)));
            for (index, pfn) in victims {
                let page = &self.mem.pages[pfn];
                let busy = PageFlags::DIRTY.with(PageFlags::WRITEBACK).with(PageFlags::LOCKED);
                if page.mapcount == 0 && !page.flags.any(busy.with(PageFlags::PINNED)) {
                    let nodes = self.owners.files[file].nr_nodes;
                    self.owners.files[file].remove(index, Default::default());
                    self.tree_shrank(FileId(file as u32), index, nodes, cpu);
                    self.mem.pages[pfn].clear(PageFlags::FILE.with(PageFlags::METADATA));
                    self.release_buffer_head(pfn, cpu);
                    self.mem.stat_dec(pfn, NodeStat::NrFilePages);
                    self.free_user_page(pfn, cpu);
                }
            }
            self.forget_all_shadows(FileId(file as u32), cpu);
        }
    }
}

impl Processes {
    /// Pages of anonymous mappings, touched or not (Linux `vm_committed_as`).
    pub(crate) fn committed_pages(&self) -> u64 {
        let mapped = self.vmas.iter().filter(|vma| vma.alive && vma.backing == Backing::Anon);
        mapped.map(|vma| vma.len()).sum()
    }
}

crate::interface::entry_points::implement_entry_points!(Processes);
