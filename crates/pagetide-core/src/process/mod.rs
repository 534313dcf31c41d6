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
pub mod fault;
pub mod filemap;
mod huge_memory;
pub mod kernel_block;
pub mod khugepaged;
pub mod oom;
pub mod page_cache;
pub mod page_table;
pub mod psi;
pub mod readahead;
mod request;
mod rmap;
mod tree_nodes;
pub mod writeback;
mod zap;

pub use crate::units::Asker as MmId;
pub use request::{Call, Request};

use crate::boot::SetupError;
use crate::config::Config;
use crate::control::Errno;
use crate::digest::Digest;
use crate::effect::Effects;
use crate::manager::Manager;
use crate::node::NodeSpec;
use crate::page::PageFlags;
use crate::units::{Cpu, FileId, MemcgId, Pfn};
use crate::vmstat::NodeStat;
use alloc::vec::Vec;
use fault::SwapinHistory;
use khugepaged::KhugepagedScan;
use page_cache::FileCache;
use page_table::{Backing, Vma, VmaId};
use writeback::Writeback;

/// Both floors together: a machine with processes and files.
pub type Machine = Manager<Processes>;

/// Processes and files.
#[derive(Clone, Debug)]
pub struct Processes {
    pub(crate) mms: Vec<Mm>,
    pub(crate) vmas: Vec<Vma>,
    pub(crate) files: Vec<FileCache>,
    pub(crate) writeback: Writeback,
    pub(crate) swapin: SwapinHistory,
    pub(crate) khugepaged: KhugepagedScan,
}

/// An address space.
#[derive(Clone, Debug)]
pub struct Mm {
    /// Group that pays for its pages.
    pub memcg: MemcgId,
    /// Its mappings.
    pub vmas: Vec<VmaId>,
    /// Blocks of kernel memory that it holds, first frames.
    pub kernel_blocks: Vec<Pfn>,
    /// Pages charged while a group on its path was above `memory.high`, not paid for yet.
    pub nr_over_high: u64,
    /// Its task has asked for something.
    pub(crate) begun: bool,
    /// Chosen by the OOM killer: may use reserves, and is not chosen again.
    pub oom_victim: bool,
    /// Gone.
    pub exited: bool,
}

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
            writeback: Writeback::new(config.page_size),
            swapin: SwapinHistory::default(),
            khugepaged: KhugepagedScan::new(config.thp),
        };
        Manager::with_owners(processes, nodes, nr_cpus, config)
    }

    /// Adds an address space whose pages `memcg` pays for.
    pub fn create_mm(&mut self, memcg: MemcgId) -> MmId {
        let id = MmId(self.owners.mms.len() as u32);
        self.memcgs[memcg.idx()].nr_tasks += 1;
        self.owners.mms.push(Mm {
            memcg,
            vmas: Vec::new(),
            kernel_blocks: Vec::new(),
            nr_over_high: 0,
            begun: false,
            oom_victim: false,
            exited: false,
        });
        id
    }

    /// The address space moves to another group; what it has stays charged where it is, as in
    /// version 2.
    ///
    /// # Errors
    /// ENOENT if there is no such group.
    pub fn move_mm(&mut self, mm: MmId, memcg: MemcgId) -> Result<Effects<'_>, Errno> {
        if !self.memcg_is_online(memcg) {
            return Err(Errno::Enoent);
        }
        if self.owners.mms[mm.idx()].exited {
            return Ok(self.hand_out());
        }
        let from = core::mem::replace(&mut self.owners.mms[mm.idx()].memcg, memcg);
        self.memcgs[from.idx()].nr_tasks -= 1;
        self.memcgs[memcg.idx()].nr_tasks += 1;
        Ok(self.hand_out())
    }

    /// Whether an address space was given up.
    pub fn is_exited(&self, mm: MmId) -> bool {
        self.owners.mms[mm.idx()].exited
    }

    /// Adds a file. Files are never removed; a file's pages are.
    pub fn create_file(&mut self, size: u64, sparse: bool) -> FileId {
        let id = FileId(self.owners.files.len() as u32);
        self.owners.files.push(FileCache::new(size, sparse, self.mem.page_size));
        id
    }

    /// Lengthens a file to `size` bytes, if it is shorter (Linux: `truncate` to more).
    pub fn extend_file(&mut self, file: FileId, size: u64) {
        self.owners.files[file.idx()].extend(size);
    }

    /// A file as the page cache sees it.
    pub fn file(&self, file: FileId) -> &FileCache {
        &self.owners.files[file.idx()]
    }

    /// Maps something into an address space; nothing is populated.
    pub fn mmap(
        &mut self,
        mm: MmId,
        backing: Backing,
        pages: u64,
        advice: crate::process::page_table::Advice,
        executable: bool,
    ) -> VmaId {
        let id = VmaId(self.owners.vmas.len() as u32);
        let page_size = self.mem.page_size;
        self.owners.vmas.push(Vma::new(mm, backing, pages, advice, executable, page_size));
        self.owners.mms[mm.idx()].vmas.push(id);
        if let Backing::File(file) = backing {
            self.owners.files[file.idx()].mappings.push(id);
        }
        id
    }

    /// Makes an anonymous mapping one that grows as it is touched, as a heap does: a part that is not
    /// there yet keeps the pages before it from being huge at their first touch.
    pub fn begin_to_grow(&mut self, vma: VmaId) {
        self.owners.vmas[vma.idx()].grown = 0;
    }

    /// A mapping.
    pub fn vma(&self, vma: VmaId) -> &Vma {
        &self.owners.vmas[vma.idx()]
    }

    /// One access. The hot path: one load, one store, no effects.
    #[inline]
    pub fn touch(&mut self, vma: VmaId, page: u64, write: bool) -> Touch {
        let pte = &mut self.owners.vmas[vma.idx()].ptes[page as usize];
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
        self.owners.vmas[vma.idx()].ptes[page as usize].is_present()
    }

    /// Whether a page of a mapping is in memory, mapped or only cached (mincore).
    pub fn is_in_core(&self, vma: VmaId, page: u64) -> bool {
        let vma = &self.owners.vmas[vma.idx()];
        let pte = vma.ptes[page as usize];
        pte.is_present()
            || match vma.backing {
                Backing::Anon => {
                    pte.swap_slot().is_some_and(|slot| self.swap.cached(slot).is_some())
                }
                Backing::File(file) => self.owners.files[file.idx()].get(page as u32).is_some(),
            }
    }

    /// Removes one mapping: its pages are unmapped, anonymous ones freed.
    pub fn munmap(&mut self, vma: VmaId, cpu: Cpu) -> Effects<'_> {
        self.unmap_vma(vma, cpu);
        self.hand_out()
    }

    /// Ends an address space and frees what only it used. A call of its that is not done is to be cancelled
    /// before ([`Manager::cancel`]).
    pub fn exit_mm(&mut self, mm: MmId, cpu: Cpu) -> Effects<'_> {
        let vmas = core::mem::take(&mut self.owners.mms[mm.idx()].vmas);
        for &vma in &vmas {
            self.unmap_vma(vma, cpu);
        }
        self.free_all_kernel_blocks(mm, cpu);
        self.abandon_compactions(mm, cpu);
        if !core::mem::replace(&mut self.owners.mms[mm.idx()].exited, true) {
            let memcg = self.owners.mms[mm.idx()].memcg;
            self.memcgs[memcg.idx()].nr_tasks -= 1;
            if self.owners.mms[mm.idx()].oom_victim {
                self.restore_soft_limits();
            }
        }
        self.hand_out()
    }

    /// Drops clean, unmapped page-cache pages of every file (`echo 1 > drop_caches`).
    pub fn drop_pagecache(&mut self, cpu: Cpu) -> Effects<'_> {
        self.drop_clean_pagecache(cpu);
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
                if page.mapcount == 0 && !page.flags.any(busy) {
                    let nodes = self.owners.files[file].nr_nodes;
                    self.owners.files[file].remove(index, Default::default());
                    self.tree_shrank(FileId(file as u32), index, nodes, cpu);
                    self.mem.pages[pfn.idx()].clear(PageFlags::FILE);
                    self.stat_dec(pfn, NodeStat::NrFilePages);
                    self.free_user_page(pfn, cpu);
                }
            }
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

impl Mm {
    /// Mixes the state into `digest`.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        let Mm { memcg, vmas, kernel_blocks, nr_over_high, begun, oom_victim, exited } = self;
        let flags = [u64::from(*oom_victim), u64::from(*exited)];
        digest.write_u64((*begun).into());
        digest.write_all(&[memcg.0.into(), *nr_over_high]);
        digest.write_all(&flags);
        digest.write_u64(vmas.len() as u64);
        for vma in vmas {
            digest.write_u64(vma.0.into());
        }
        digest.write_u64(kernel_blocks.len() as u64);
        for pfn in kernel_blocks {
            digest.write_u64(pfn.0.into());
        }
    }
}
