//! Ids of address spaces, mappings and files, and their reuse.
//!
//! Linux: `get_unused_fd` and the pid allocator give the lowest number that is free; so do these
//! tables. Reused ids do not show which of two things is older. So each entry has a number that is
//! never reused (`born`), as Linux's lists are in order of creation.
//!
//! An id is free as soon as the thing that it named is gone: an address space when it has ended, a
//! mapping when it is unmapped, a file when it was removed, nothing maps it and its last page has left
//! memory. Later uses of such an id are harmless: a page under I/O names its mapping, but has no entry
//! in it; a request in progress remembers `born` of the thing that it named, and ends if that thing is
//! gone.
//!
//! Invariant: an id is free exactly when its entry says that it is gone.

use super::fault::Fault;
use super::page_table::{Backing, Vma, VmaId};
use super::request::Request;
use super::{Machine, MmId, Processes};
use crate::bad_id::BadId;
use crate::control::Errno;
use crate::effect::Effects;
use crate::outcome::Outcome;
use crate::page::PageFlags;
use crate::units::{Cpu, FileId, Pfn};
use crate::vmstat::NodeStat;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

/// Pages of a file or of a mapping at most: their numbers are kept in 32 bits.
pub const MAX_INDEX: u64 = u32::MAX as u64;

/// Free ids of one table, and how many entries were ever made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    free: BinaryHeap<Reverse<u32>>,
    nr_born: u64,
}

impl Ids {
    /// The lowest free id of a table of `len` entries, and the number of this birth.
    pub fn take(&mut self, len: usize) -> (u32, u64) {
        let born = self.nr_born;
        self.nr_born += 1;
        (self.free.pop().map_or(len as u32, |Reverse(id)| id), born)
    }

    /// What had the id is gone.
    pub fn give_back(&mut self, id: u32) {
        self.free.push(Reverse(id));
    }

    /// Free ids, in no order, for the audit.
    pub fn free(&self) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().map(|&Reverse(id)| id)
    }
}

/// Puts an entry where its id says.
pub(crate) fn put<T>(table: &mut Vec<T>, id: u32, entry: T) {
    match table.get_mut(id as usize) {
        Some(place) => *place = entry,
        None => table.push(entry),
    }
}

/// Why a mapping or a file was refused. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// There is no such address space, mapping, file or CPU.
    BadId(BadId),
    /// More pages than [`MAX_INDEX`] (Linux: EFBIG, ENOMEM).
    TooLarge,
    /// Some of the pages are locked (Linux: EINVAL).
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

/// What a request has that has not begun instead of the age of what it names.
pub(super) const NOT_BEGUN: u64 = u64::MAX;

impl Processes {
    /// Whether a fault's mapping is the one that it began with, if it has begun.
    #[inline(always)]
    fn fault_goes_on(&self, fault: &Fault) -> Result<(), Outcome> {
        let is_same = |vma: &Vma| vma.born == fault.born;
        match fault.born == NOT_BEGUN || self.vmas.get(fault.vma().idx()).is_some_and(is_same) {
            true => Ok(()),
            // Somebody else's now.
            false => Err(Outcome::NoMemory),
        }
    }

    /// Whether a file is there and, if a request for it has begun, is the one that it began with.
    fn file_goes_on(&self, file: FileId, begun: &mut u64) -> Result<(), Outcome> {
        match self.born_of_file(file) {
            Ok(born) if *begun == NOT_BEGUN || *begun == born => {
                *begun = born;
                Ok(())
            }
            Err(id) if *begun == NOT_BEGUN => Err(Outcome::BadId(id)),
            Ok(_) | Err(_) => Err(Outcome::IoError),
        }
    }

    fn born_of_file(&self, file: FileId) -> Result<u64, BadId> {
        let there = self.files.get(file.idx()).filter(|file| !file.removed);
        there.map(|file| file.born).ok_or(BadId::File(file))
    }
}

impl Machine {
    /// Whether a request can go on: what it named when it began is there.
    ///
    /// # Errors
    /// How it ends otherwise.
    #[inline(always)]
    pub(super) fn check_request(&self, request: &mut Request) -> Result<(), Outcome> {
        match request {
            Request::Fault(fault) => self.owners.fault_goes_on(fault),
            Request::Read(read) => self.owners.file_goes_on(read.file, &mut read.born),
            Request::Write(write) => {
                if self.mem.page_size.pages_for(write.end()) > MAX_INDEX {
                    return Err(Outcome::Refused(Errno::Efbig));
                }
                self.owners.file_goes_on(write.file, &mut write.born)
            }
            Request::KernelAlloc(_) => Ok(()),
            Request::Populate(populate) => match populate.fault() {
                Some(fault) => self.owners.fault_goes_on(fault),
                None => Ok(()),
            },
            // They look for themselves whether the mapping is theirs.
            // These look for themselves whether the mapping is theirs.
            Request::Leave(_) | Request::Collapse(_) => Ok(()),
        }
    }

    /// A mapping that is there.
    pub(crate) fn living_vma(&self, vma: VmaId) -> Result<&Vma, BadId> {
        self.owners.vmas.get(vma.idx()).filter(|vma| vma.alive).ok_or(BadId::Vma(vma))
    }

    /// An address space that has not ended.
    pub(crate) fn living_mm(&self, mm: MmId) -> Result<&super::Mm, BadId> {
        self.owners.mms.get(mm.idx()).filter(|mm| !mm.exited).ok_or(BadId::Mm(mm))
    }

    /// Pages of a file, the last perhaps partial. A mapping may have more: a touch beyond is SIGBUS.
    ///
    /// # Errors
    /// [`BadId::File`].
    pub fn nr_pages_of_file(&self, file: FileId) -> Result<u64, BadId> {
        self.owners.born_of_file(file)?;
        Ok(self.owners.files[file.idx()].nr_file_pages())
    }

    /// Maps something into an address space; nothing is populated.
    ///
    /// # Errors
    /// [`BadId::Mm`], [`BadId::File`], [`MapError::TooLarge`].
    pub fn mmap(
        &mut self,
        mm: MmId,
        backing: Backing,
        pages: u64,
        advice: super::page_table::Advice,
        executable: bool,
    ) -> Result<VmaId, MapError> {
        self.living_mm(mm)?;
        if let Backing::File(file) = backing {
            self.owners.born_of_file(file)?;
        }
        if pages > MAX_INDEX {
            return Err(MapError::TooLarge);
        }
        let (id, born) = self.owners.vma_ids.take(self.owners.vmas.len());
        let vma =
            Vma { born, ..Vma::new(mm, backing, pages, advice, executable, self.mem.page_size) };
        put(&mut self.owners.vmas, id, vma);
        let id = VmaId(id);
        self.owners.mms[mm.idx()].vmas.push(id);
        if let Backing::File(file) = backing {
            self.owners.files[file.idx()].mappings.push(id);
        }
        Ok(id)
    }

    /// Removes one mapping: its pages are unmapped, anonymous ones freed. Its id may be given to another
    /// from now on.
    ///
    /// # Errors
    /// [`BadId::Vma`], [`BadId::Cpu`].
    pub fn munmap(&mut self, vma: VmaId, cpu: Cpu) -> Result<Effects<'_>, BadId> {
        self.check_cpu(cpu)?;
        self.living_vma(vma)?;
        let mut gathered = Vec::new();
        self.unmap_vma(vma, cpu, &mut gathered);
        self.free_gathered(gathered, cpu);
        Ok(self.hand_out())
    }

    /// Ends an address space and frees what only it used. Its id may be given to another from now on; calls
    /// of its that are in progress end at their next step.
    ///
    /// # Errors
    /// [`BadId::Mm`] if there is none or it has ended; [`BadId::Cpu`].
    pub fn exit_mm(&mut self, mm: MmId, cpu: Cpu) -> Result<Effects<'_>, BadId> {
        self.check_cpu(cpu)?;
        let memcg = self.living_mm(mm)?.memcg;
        let mut gathered = Vec::new();
        for vma in core::mem::take(&mut self.owners.mms[mm.idx()].vmas) {
            self.unmap_vma(vma, cpu, &mut gathered);
        }
        self.free_gathered(gathered, cpu);
        self.free_all_kernel_blocks(mm, cpu);
        self.free_kept_buffer_head(mm, cpu);
        self.abandon_compactions(mm, cpu);
        let gone = &mut self.owners.mms[mm.idx()];
        gone.exited = true;
        let was_victim = gone.oom_victim;
        self.memcgs[memcg.idx()].nr_tasks -= 1;
        self.owners.living.retain(|&other| other != mm);
        self.owners.mm_ids.give_back(mm.0);
        if was_victim {
            self.owners.dying.retain(|&other| other != mm);
            self.restore_soft_limits();
        }
        Ok(self.hand_out())
    }

    /// Removes a file (unlink). What maps it goes on; requests to read or write it end with an error. When
    /// nothing maps it, its pages leave memory, dirty ones unwritten, and with the last of them its id is
    /// free. A page that is being read, written or moved, or is pinned, leaves when that has ended.
    ///
    /// # Errors
    /// [`BadId::File`], [`BadId::Cpu`].
    pub fn remove_file(&mut self, file: FileId, cpu: Cpu) -> Result<Effects<'_>, BadId> {
        self.check_cpu(cpu)?;
        self.owners.born_of_file(file)?;
        self.owners.files[file.idx()].removed = true;
        self.reap_file(file, cpu);
        Ok(self.hand_out())
    }

    /// Takes what it can of a removed file out of memory, if nothing maps it any more (Linux
    /// `truncate_inode_pages_final`).
    pub(super) fn reap_file(&mut self, file: FileId, cpu: Cpu) {
        let cache = &self.owners.files[file.idx()];
        if !cache.removed || cache.gone || !cache.mappings.is_empty() {
            return;
        }
        let mut cached = Vec::new();
        cache.for_each_cached(|index, pfn| cached.push((index, pfn)));
        let held = PageFlags::LOCKED
            .with(PageFlags::WRITEBACK)
            .with(PageFlags::MIGRATING)
            .with(PageFlags::PINNED);
        for (index, pfn) in cached {
            let page = &mut self.mem.pages[pfn.idx()];
            debug_assert_eq!(page.mapcount, 0, "nothing maps the file");
            if page.flags.any(held) {
                continue;
            }
            if page.test_clear(PageFlags::DIRTY) {
                self.owners.files[file.idx()].clear_dirty(index);
                self.stat_dec(pfn, NodeStat::NrDirty);
            }
            self.remove_from_page_cache(pfn, Default::default(), cpu);
            self.free_user_page(pfn, cpu);
        }
        if self.owners.files[file.idx()].nr_pages > 0 {
            return;
        }
        self.forget_all_shadows(file, cpu);
        self.owners.writeback.forget_file(file);
        self.owners.files[file.idx()].become_gone();
        self.owners.file_ids.give_back(file.0);
    }

    /// A page of a file is not held any more: it may have been all that a removed file waited for.
    pub(super) fn reap_file_of(&mut self, pfn: Pfn, cpu: Cpu) {
        let page = &self.mem.pages[pfn.idx()];
        if page.has(PageFlags::FILE) {
            self.reap_file(FileId(page.mapping), cpu);
        }
    }
}
