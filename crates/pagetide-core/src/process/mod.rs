//! The first floor: processes and files, the owners that a simulated machine has.
//!
//! Linux: mm_struct, vm_area_struct, address_space. Address spaces with their entries, page faults,
//! read() and write(), read-ahead, write-back, khugepaged, the out-of-memory killer and pressure stall
//! information. [`Machine`] is both floors together.
//!
//! A world calls [`Machine::touch`] for every access; if that says "fault" it makes a [`Call`] and steps it
//! until done.
//!
//! Invariant: see [`crate::audit`].

mod audit;
mod buffer_heads;
mod collapse;
pub mod fault;
pub mod filemap;
mod huge_memory;
mod ids;
pub mod kernel_block;
pub mod khugepaged;
mod madvise;
mod madvise_collapse;
pub mod mlock;
pub mod oom;
pub mod page_cache;
pub mod page_table;
pub mod policy;
mod populate;
pub mod psi;
pub mod readahead;
mod request;
mod rmap;
mod tree_nodes;
pub mod writeback;
mod zap;

pub use crate::units::Asker as MmId;
pub use ids::{MapError, MAX_INDEX};
pub use request::{Call, Request};

use crate::bad_id::BadId;
use crate::boot::SetupError;
use crate::config::Config;
use crate::control::Errno;
use crate::digest::State;
use crate::effect::Effects;
use crate::manager::Manager;
use crate::node::NodeSpec;
use crate::page::PageFlags;
use crate::slab::Object;
use crate::units::{Cpu, FileId, MemcgId, Pfn};
use crate::vmstat::NodeStat;
use alloc::vec::Vec;
use buffer_heads::BufferHeads;
use fault::SwapinHistory;
use ids::{put, Ids};
use khugepaged::KhugepagedScan;
use page_cache::FileCache;
use page_table::{Backing, Vma, VmaId};
use policy::FailurePolicy;
use writeback::Writeback;

/// Both floors together: a machine with processes and files.
pub type Machine = Manager<Processes>;

/// Processes and files.
#[derive(Clone, Debug, State)]
pub struct Processes {
    pub(crate) mms: Vec<Mm>,
    pub(crate) vmas: Vec<Vma>,
    pub(crate) files: Vec<FileCache>,
    #[state(skip)] // follow from who is gone
    pub(crate) mm_ids: Ids,
    #[state(skip)] // likewise
    pub(crate) vma_ids: Ids,
    #[state(skip)] // likewise
    pub(crate) file_ids: Ids,
    /// Address spaces that have not ended, oldest first.
    #[state(skip)] // follows from ages
    pub(crate) living: Vec<MmId>,
    /// Those of them that the OOM killer has chosen: few at a time, where many ask for them.
    #[state(skip)] // follows from who was chosen
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
    /// Group that pays for its pages.
    pub memcg: MemcgId,
    /// Its mappings.
    pub vmas: Vec<VmaId>,
    /// Blocks of kernel memory that it holds, first frames.
    pub kernel_blocks: Vec<Pfn>,
    /// Buffer head of a page that it is yet to make, to write to it.
    pub(crate) buffer_head: Option<Object>,
    /// Pages charged above `memory.high` that its next call pays for.
    pub nr_over_high: u64,
    /// khugepaged looks at it: it has had a fault in a region that might be huge (Linux `MMF_VM_HUGEPAGE`).
    pub(crate) khugepaged: bool,
    /// Its task has asked for something.
    pub(crate) begun: bool,
    /// Chosen by the OOM killer: may use reserves, and is not chosen again.
    pub oom_victim: bool,
    /// What is added to its badness, in thousandths of the memory that it competes for; with
    /// [`OOM_SCORE_ADJ_MIN`] the OOM killer never chooses it.
    pub(crate) oom_score_adj: i16,
    /// Gone.
    pub exited: bool,
    /// Which of all that ever were it is, by age.
    pub(crate) born: u64,
}

/// The task is never killed for memory (Linux `OOM_SCORE_ADJ_MIN`).
pub const OOM_SCORE_ADJ_MIN: i16 = -1000;
/// The most that can be added to a badness (Linux `OOM_SCORE_ADJ_MAX`).
pub const OOM_SCORE_ADJ_MAX: i16 = 1000;

/// Whether an access needs the fault handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// Done: the page is there.
    Hit,
    /// Not there, or not writable: make a [`Call::fault`].
    Fault,
}

impl Machine {
    /// A machine with the given nodes and CPUs, nothing mapped, nothing cached. The nodes are counted in
    /// pages of [`Config::page_size`].
    ///
    /// # Errors
    /// When the geometry is impossible: no memory, too many nodes, pages or CPUs.
    pub fn new(nodes: &[NodeSpec], nr_cpus: u16, config: Config) -> Result<Machine, SetupError> {
        let processes = Processes {
            mms: Vec::new(),
            vmas: Vec::new(),
            files: Vec::new(),
            mm_ids: Ids::default(),
            vma_ids: Ids::default(),
            file_ids: Ids::default(),
            living: Vec::new(),
            dying: Vec::new(),
            failure: FailurePolicy::default(),
            writeback: Writeback::new(config.page_size),
            buffer_heads: BufferHeads::default(),
            swapin: SwapinHistory::default(),
            khugepaged: KhugepagedScan::new(config.thp),
        };
        Manager::with_owners(processes, nodes, nr_cpus, config)
    }

    /// Adds an address space whose pages `memcg` pays for.
    ///
    /// # Errors
    /// [`BadId::Memcg`] if there is no such group.
    pub fn create_mm(&mut self, memcg: MemcgId) -> Result<MmId, BadId> {
        if !self.memcg_is_online(memcg) {
            return Err(BadId::Memcg(memcg));
        }
        let (id, born) = self.owners.mm_ids.take(self.owners.mms.len());
        self.memcgs[memcg.idx()].nr_tasks += 1;
        let mm = Mm {
            memcg,
            vmas: Vec::new(),
            kernel_blocks: Vec::new(),
            buffer_head: None,
            nr_over_high: 0,
            khugepaged: false,
            begun: false,
            oom_victim: false,
            oom_score_adj: 0,
            exited: false,
            born,
        };
        put(&mut self.owners.mms, id, mm);
        self.owners.living.push(MmId(id));
        Ok(MmId(id))
    }

    /// The address space moves to another group; what it has stays charged where it is, as in
    /// version 2.
    ///
    /// # Errors
    /// ENOENT if there is no such group, ESRCH if there never was such an address space.
    pub fn move_mm(&mut self, mm: MmId, memcg: MemcgId) -> Result<Effects<'_>, Errno> {
        if !self.memcg_is_online(memcg) {
            return Err(Errno::Enoent);
        }
        match self.owners.mms.get(mm.idx()) {
            None => return Err(Errno::Esrch),
            Some(mm) if mm.exited => return Ok(self.hand_out()),
            Some(_) => {}
        }
        let from = core::mem::replace(&mut self.owners.mms[mm.idx()].memcg, memcg);
        self.memcgs[from.idx()].nr_tasks -= 1;
        self.memcgs[memcg.idx()].nr_tasks += 1;
        Ok(self.hand_out())
    }

    /// Whether an address space was given up, or never was.
    pub fn is_exited(&self, mm: MmId) -> bool {
        self.living_mm(mm).is_err()
    }

    /// Adds a file.
    ///
    /// # Errors
    /// [`MapError::TooLarge`].
    pub fn create_file(&mut self, size: u64, sparse: bool) -> Result<FileId, MapError> {
        let page_size = self.mem.page_size;
        if page_size.pages_for(size) > MAX_INDEX {
            return Err(MapError::TooLarge);
        }
        let (id, born) = self.owners.file_ids.take(self.owners.files.len());
        let mut file = FileCache::new(size, sparse, page_size);
        file.born = born;
        put(&mut self.owners.files, id, file);
        Ok(FileId(id))
    }

    /// Says that a file stands for a file system's own blocks: inode tables, directories, bitmaps. Its pages
    /// that are dirty, or being written, do not move: the journal holds their buffers.
    ///
    /// # Errors
    /// [`BadId::File`].
    pub fn set_metadata(&mut self, file: FileId) -> Result<(), BadId> {
        self.file(file)?;
        self.owners.files[file.idx()].metadata = true;
        Ok(())
    }

    /// Lengthens a file to `size` bytes, if it is shorter (Linux: `truncate` to more).
    ///
    /// # Errors
    /// [`BadId::File`], [`MapError::TooLarge`].
    pub fn extend_file(&mut self, file: FileId, size: u64) -> Result<(), MapError> {
        self.file(file)?;
        if self.mem.page_size.pages_for(size) > MAX_INDEX {
            return Err(MapError::TooLarge);
        }
        self.owners.files[file.idx()].extend(size);
        Ok(())
    }

    /// A file as the page cache sees it.
    ///
    /// # Errors
    /// [`BadId::File`].
    pub fn file(&self, file: FileId) -> Result<&FileCache, BadId> {
        let there = self.owners.files.get(file.idx()).filter(|file| !file.removed);
        there.ok_or(BadId::File(file))
    }

    /// Makes an anonymous mapping one that grows as it is touched, as a heap does: a part that is not
    /// there yet keeps the pages before it from being huge at their first touch. What is in use is there.
    ///
    /// # Errors
    /// [`BadId::Vma`].
    pub fn begin_to_grow(&mut self, vma: VmaId) -> Result<(), BadId> {
        let ptes = &self.living_vma(vma)?.ptes;
        let in_use = ptes.iter().rposition(|pte| !pte.is_empty()).map_or(0, |last| last as u64 + 1);
        self.owners.vmas[vma.idx()].grown = in_use;
        Ok(())
    }

    /// A mapping.
    ///
    /// # Errors
    /// [`BadId::Vma`].
    pub fn vma(&self, vma: VmaId) -> Result<&Vma, BadId> {
        self.living_vma(vma)
    }

    /// One access. The hot path: one load, one store, no effects. Where there is no such page the fault
    /// says so.
    #[inline]
    pub fn touch(&mut self, vma: VmaId, page: u64, write: bool) -> Touch {
        let Some(vma) = self.owners.vmas.get_mut(vma.idx()) else { return Touch::Fault };
        let Some(pte) = vma.ptes.get_mut(page as usize) else { return Touch::Fault };
        match pte.touched(write) {
            Some(touched) => {
                *pte = touched;
                Touch::Hit
            }
            None => Touch::Fault,
        }
    }

    /// Whether a page of a mapping is in memory.
    pub fn is_resident(&self, vma: VmaId, page: u64) -> bool {
        let vma = self.owners.vmas.get(vma.idx());
        vma.and_then(|vma| vma.ptes.get(page as usize)).is_some_and(|pte| pte.is_present())
    }

    /// Whether a page of a mapping is in memory, mapped or only cached, and read (mincore).
    pub fn is_in_core(&self, vma: VmaId, page: u64) -> bool {
        let Some(vma) = self.owners.vmas.get(vma.idx()) else { return false };
        let Some(&pte) = vma.ptes.get(page as usize) else { return false };
        let cached = match vma.backing {
            Backing::Anon => pte.swap_slot().and_then(|slot| self.swap.cached(slot)),
            Backing::File(file) => self.owners.files[file.idx()].get(page as u32),
        };
        let is_read = |pfn: Pfn| self.mem.pages[pfn.idx()].has(PageFlags::UPTODATE);
        pte.is_present() || cached.is_some_and(is_read)
    }

    /// Drops clean, unmapped page-cache pages of every file, and all shadows (`echo 1 > drop_caches`).
    /// A CPU that there is not drops nothing.
    pub fn drop_pagecache(&mut self, cpu: Cpu) -> Effects<'_> {
        if self.has_cpu(cpu) {
            self.drop_clean_pagecache(cpu);
        }
        self.hand_out()
    }

    pub(crate) fn drop_clean_pagecache(&mut self, cpu: Cpu) {
        self.lru_add_drain_all();
        for file in 0..self.owners.files.len() {
            let mut victims = Vec::new();
            self.owners.files[file].for_each_cached(|index, pfn| victims.push((index, pfn)));
            for (index, pfn) in victims {
                let page = &self.mem.pages[pfn.idx()];
                let busy = PageFlags::DIRTY.with(PageFlags::WRITEBACK).with(PageFlags::LOCKED);
                if page.mapcount == 0 && !page.flags.any(busy.with(PageFlags::PINNED)) {
                    let nodes = self.owners.files[file].nr_nodes;
                    self.owners.files[file].remove(index, Default::default());
                    self.tree_shrank(FileId(file as u32), index, nodes, cpu);
                    self.mem.pages[pfn.idx()].clear(PageFlags::FILE.with(PageFlags::METADATA));
                    self.release_buffer_head(pfn, cpu);
                    self.stat_dec(pfn, NodeStat::NrFilePages);
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
