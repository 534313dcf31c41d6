//! Ids of address spaces, mappings and files, and their reuse.
//!
//! Linux: `get_unused_fd` and the pid allocator return the lowest free number; so do these tables.
//! Reused ids do not show which object is older. So each entry has a generation number that is
//! never reused (`generation`), which gives the creation order of Linux's lists.
//!
//! An id is free as soon as its object is gone: an address space when it has ended; a mapping when
//! it is unmapped; a file when it was removed, no mapping maps it, and its last page has left
//! memory. Stale uses of an id are harmless. A page under I/O names its mapping but has no entry in
//! it. A request in progress remembers the `generation` of its object, and ends if that object is
//! gone.
//!
//! Invariant: an id is free exactly if its entry is marked as gone.

use super::fault::Fault;
use super::id_pool::{put, NOT_BEGUN};
use super::page_table::{Backing, Vma, VmaId};
use super::request::ProcessRequest;
use super::{Machine, MmId, Processes};
use crate::frames::page::PageFlags;
use crate::interface::bad_id::BadId;
use crate::interface::effect::Effects;
use crate::interface::outcome::Outcome;
use crate::swap::content::ContentMix;
use crate::units::errno::Errno;
use crate::units::{Cpu, FileId, Pfn};
use alloc::vec::Vec;
use core::fmt;

/// Maximum number of pages of a file or mapping: page indices have 32 bits.
pub const MAX_INDEX: u64 = u32::MAX as u64;

/// Error of a call on a mapping or a file. The call has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// No such address space, mapping, page, file or CPU.
    BadId(BadId),
    /// More pages than [`MAX_INDEX`] (Linux: EFBIG, ENOMEM).
    TooLarge,
    /// Some of the pages are locked with mlock() (Linux: EINVAL).
    Locked,
}

impl From<BadId> for MapError {
    fn from(id: BadId) -> MapError {
        MapError::BadId(id)
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::BadId(id) => id.fmt(f),
            MapError::TooLarge => write!(f, "more than {MAX_INDEX} pages"),
            MapError::Locked => f.write_str("some of the pages are locked"),
        }
    }
}

impl core::error::Error for MapError {}

impl Processes {
    /// Whether the fault's mapping still exists, if the fault has begun.
    #[inline(always)]
    fn fault_goes_on(&self, fault: &Fault) -> Result<(), Outcome> {
        let is_same = |vma: &Vma| vma.generation == fault.born;
        match fault.born == NOT_BEGUN || self.vmas.get(fault.vma().idx()).is_some_and(is_same) {
            true => Ok(()),
            // The id belongs to another mapping now.
            false => Err(Outcome::NoMemory),
        }
    }

    /// Whether the file exists and is the one that the request began with.
    fn file_goes_on(&self, file: FileId, begun: &mut u64) -> Result<(), Outcome> {
        match self.file_generation(file) {
            Ok(born) if *begun == NOT_BEGUN || *begun == born => {
                *begun = born;
                Ok(())
            }
            Err(id) if *begun == NOT_BEGUN => Err(Outcome::BadId(id)),
            Ok(_) | Err(_) => Err(Outcome::IoError),
        }
    }

    fn file_generation(&self, file: FileId) -> Result<u64, BadId> {
        let there = self.files.get(file.idx()).filter(|file| !file.removed);
        there.map(|file| file.generation).ok_or(BadId::File(file))
    }

    pub(crate) fn living_vma(&self, vma: VmaId) -> Result<&Vma, BadId> {
        self.vmas.get(vma.idx()).filter(|vma| vma.alive).ok_or(BadId::Vma(vma))
    }

    pub(crate) fn living_mm(&self, mm: MmId) -> Result<&super::Mm, BadId> {
        self.mms.get(mm.idx()).filter(|mm| !mm.exited).ok_or(BadId::Mm(mm))
    }
}

impl Machine {
    /// Checks that the object of a request still exists.
    ///
    /// # Errors
    /// The outcome of the request if not.
    #[inline(always)]
    pub(super) fn check_request(&self, request: &mut ProcessRequest) -> Result<(), Outcome> {
        match request {
            ProcessRequest::Fault(fault) => self.owners.fault_goes_on(fault),
            ProcessRequest::Read(read) => self.owners.file_goes_on(read.file, &mut read.born),
            ProcessRequest::Write(write) => {
                if self.mem.page_size.pages_for(write.end()) > MAX_INDEX {
                    return Err(Outcome::Refused(Errno::Efbig));
                }
                self.owners.file_goes_on(write.file, &mut write.born)
            }
            ProcessRequest::KernelAlloc(_) => Ok(()),
            ProcessRequest::Populate(populate) => match populate.fault() {
                Some(fault) => self.owners.fault_goes_on(fault),
                None => Ok(()),
            },
            // These requests check their mapping themselves.
            ProcessRequest::MadviseLru(_) | ProcessRequest::Collapse(_) => Ok(()),
        }
    }

    /// Number of pages of a file, including a partial last page. If a mapping is longer, touching a
    /// page beyond them is SIGBUS.
    ///
    /// # Errors
    /// [`BadId::File`] if the file does not exist.
    pub fn nr_pages_of_file(&self, file: FileId) -> Result<u64, BadId> {
        self.owners.file_generation(file)?;
        Ok(self.owners.files[file].nr_file_pages())
    }

    /// Maps a file or anonymous memory, without populating it.
    ///
    /// # Errors
    /// [`BadId::Mm`], [`BadId::File`]; [`MapError::TooLarge`] above [`MAX_INDEX`] pages.
    pub fn mmap(
        &mut self,
        mm: MmId,
        backing: Backing,
        pages: u64,
        advice: super::page_table::Advice,
        executable: bool,
    ) -> Result<VmaId, MapError> {
        self.owners.living_mm(mm)?;
        if let Backing::File(file) = backing {
            self.owners.file_generation(file)?;
        }
        if pages > MAX_INDEX {
            return Err(MapError::TooLarge);
        }
        let (id, born) = self.owners.vma_ids.take(self.owners.vmas.len());
        let vma = Vma {
            generation: born,
            ..Vma::new(mm, backing, pages, advice, executable, self.mem.page_size)
        };
        put(&mut self.owners.vmas, id, vma);
        let id = VmaId(id);
        self.owners.mms[mm].vmas.push(id);
        if let Backing::File(file) = backing {
            self.owners.files[file].mappings.push(id);
        }
        Ok(id)
    }

    /// Sets how well the anonymous pages of an address space compress.
    ///
    /// # Errors
    /// [`BadId::Mm`] if the address space does not exist.
    pub fn set_content(&mut self, mm: MmId, mix: ContentMix) -> Result<(), BadId> {
        self.owners.living_mm(mm)?;
        self.owners.mms[mm].content = self.kernel.content_mix_id(mix);
        Ok(())
    }

    /// Removes a mapping and frees its anonymous pages. Its id may be reused.
    ///
    /// # Errors
    /// [`BadId::Vma`] or [`BadId::Cpu`] if unknown.
    pub fn munmap(&mut self, vma: VmaId, cpu: Cpu) -> Result<Effects<'_>, BadId> {
        self.groups.check_cpu(cpu)?;
        self.owners.living_vma(vma)?;
        let mut gathered = Vec::new();
        self.unmap_vma(vma, cpu, &mut gathered);
        self.free_gathered(gathered, cpu);
        Ok(self.take_effects())
    }

    /// Ends an address space and frees memory that only it used. Its id may be reused; its calls in
    /// progress end at their next step.
    ///
    /// # Errors
    /// [`BadId::Mm`] if it does not exist or has ended; [`BadId::Cpu`].
    pub fn exit_mm(&mut self, mm: MmId, cpu: Cpu) -> Result<Effects<'_>, BadId> {
        self.groups.check_cpu(cpu)?;
        let memcg = self.owners.living_mm(mm)?.memcg;
        let mut gathered = Vec::new();
        for vma in core::mem::take(&mut self.owners.mms[mm].vmas) {
            self.unmap_vma(vma, cpu, &mut gathered);
        }
        self.free_gathered(gathered, cpu);
        self.free_all_kernel_blocks(mm, cpu);
        self.free_kept_buffer_head(mm, cpu);
        self.abandon_compactions(mm, cpu);
        let gone = &mut self.owners.mms[mm];
        gone.exited = true;
        let nr_dirtied = gone.dirty.nr_dirtied;
        let was_victim = gone.oom_victim;
        self.owners.writeback.leave_to_others(nr_dirtied, cpu);
        self.groups.memcgs[memcg].nr_tasks -= 1;
        self.owners.living.retain(|&other| other != mm);
        self.owners.mm_ids.give_back(mm.0);
        if was_victim {
            self.owners.dying.retain(|&other| other != mm);
            self.restore_soft_limits();
        }
        Ok(self.take_effects())
    }

    /// Removes a file (unlink). Mappings keep working; read and write requests end with an error.
    /// When no mapping is left, its pages leave memory, dirty ones unwritten, and its id is freed
    /// with the last page. A page that is pinned, or is being read, written or migrated, leaves
    /// memory afterwards.
    ///
    /// # Errors
    /// [`BadId::File`] or [`BadId::Cpu`] if unknown.
    pub fn remove_file(&mut self, file: FileId, cpu: Cpu) -> Result<Effects<'_>, BadId> {
        self.groups.check_cpu(cpu)?;
        self.owners.file_generation(file)?;
        self.owners.files[file].removed = true;
        self.reap_file(file, cpu);
        Ok(self.take_effects())
    }

    /// Evicts idle pages of a removed, unmapped file (Linux `truncate_inode_pages_final`).
    pub(super) fn reap_file(&mut self, file: FileId, cpu: Cpu) {
        let cache = &self.owners.files[file];
        if !cache.removed || cache.gone || !cache.mappings.is_empty() {
            return;
        }
        let mut cached = Vec::new();
        cache.for_each_cached(|_, pfn| cached.push(pfn));
        let held = PageFlags::LOCKED
            .with(PageFlags::WRITEBACK)
            .with(PageFlags::MIGRATING)
            .with(PageFlags::PINNED);
        for pfn in cached {
            let page = &mut self.mem.pages[pfn];
            debug_assert_eq!(page.mapcount, 0, "nothing maps the file");
            if page.flags.any(held) {
                continue;
            }
            self.cancel_dirty(pfn);
            self.remove_from_page_cache(pfn, Default::default(), cpu);
            self.free_user_page(pfn, cpu);
        }
        if self.owners.files[file].nr_pages > 0 {
            return;
        }
        self.forget_all_shadows(file, cpu);
        let wb = self.owners.files[file].wb;
        self.owners.writeback.forget_file(file, wb);
        self.owners.files[file].mark_gone();
        self.owners.file_ids.give_back(file.0);
    }

    /// Retries the removal of a page's file after the page became idle.
    pub(super) fn reap_file_of(&mut self, pfn: Pfn, cpu: Cpu) {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::FILE) {
            self.reap_file(FileId(page.mapping), cpu);
        }
    }
}
