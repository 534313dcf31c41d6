//! The contents of frames, swap slots and disks, next to the contents they should have.
//!
//! A page is four numbers, one per quarter; a number stands for the last bytes written there.
//! Effects move numbers. Stores and write() put new numbers both where the machine says and into a
//! model by address space and page, or file and page. Every read must return the model's numbers.
//!
//! Invariant: no two writes have the same number, so that contents of different owners differ.

use pagetide_core::frames::page::{Page, PageFlags};
use pagetide_core::interface::effect::{Effect, Io};
use pagetide_core::process::page_table::{Backing, Pte, VmaId};
use pagetide_core::process::Machine;
use pagetide_core::units::{FileId, IdVec, Pfn};
use std::collections::BTreeMap;

/// The quarters of a page.
pub type PageQuarters = [u64; 4];

const ZEROES: PageQuarters = [0; 4];

/// The expected contents of a file's page.
#[derive(Clone, Copy)]
struct FilePage {
    last: PageQuarters,
    /// The disk's contents, if a write of the page failed: Linux then clears the dirty state, so
    /// that the last write is lost when the page leaves memory (`io_done`).
    lost_to: Option<PageQuarters>,
}

/// An I/O in progress: its frames and, if the disk took the data at once, their contents.
#[derive(Clone)]
pub struct Transfer {
    frames: Vec<Pfn>,
    taken: Option<Vec<PageQuarters>>,
}

#[allow(dead_code)] // each test file uses its part
#[derive(Clone, Default)]
pub struct ContentsModel {
    frames: IdVec<Pfn, PageQuarters>,
    slots: BTreeMap<u32, PageQuarters>,
    /// Pages of slots that are stored without I/O. The disk of the slots may have older ones.
    stored: BTreeMap<u32, PageQuarters>,
    disk: BTreeMap<(u32, u32), PageQuarters>,
    /// Initial size of each file, and whether it was sparse.
    files: BTreeMap<u32, (u64, bool)>,
    anon: BTreeMap<(u32, u64), PageQuarters>,
    cached: BTreeMap<(u32, u32), FilePage>,
    /// Blocks of kernel memory: order, and the number that the kernel has written to each frame.
    blocks: BTreeMap<u32, (u8, u64)>,
    page_bytes: u64,
    nr_writes: u64,
    /// Loads and parts of read() with correct contents.
    pub nr_checked: u64,
    /// The test reports I/O that never happened: contents are not compared.
    pub is_blind: bool,
}

#[allow(dead_code)] // each test file uses its part
impl ContentsModel {
    pub fn new(machine: &Machine) -> ContentsModel {
        let mut contents =
            ContentsModel { page_bytes: machine.page_size().bytes(), ..Default::default() };
        // Firmware does not leave zeroes.
        contents.frames = (0..machine.mem.pages.len()).map(|_| contents.garbage()).collect();
        contents
    }

    /// A unique number.
    fn fresh(&mut self) -> u64 {
        self.nr_writes += 1;
        self.nr_writes
    }

    fn garbage(&mut self) -> PageQuarters {
        let number = self.fresh() | 1 << 62;
        [number; 4]
    }

    /// Records the contents of a file before its first write; must be called before the file grows.
    pub fn know_file(&mut self, machine: &Machine, file: FileId) {
        if let Ok(now) = machine.file(file) {
            self.files.entry(file.0).or_insert((now.size, now.sparse));
        }
    }

    /// A file is created, perhaps with the id of a removed file.
    pub fn forget_file(&mut self, file: FileId) {
        self.files.remove(&file.0);
        self.disk.retain(|&(at, _), _| at != file.0);
        self.cached.retain(|&(at, _), _| at != file.0);
    }

    fn at_first(&self, file: u32, index: u32) -> PageQuarters {
        let (size, sparse) = self.files.get(&file).copied().unwrap_or((0, true));
        let number = 1 << 61 | u64::from(file) << 40 | u64::from(index) << 4;
        let quarter = self.page_bytes / 4;
        core::array::from_fn(|at| {
            let start = u64::from(index) * self.page_bytes + at as u64 * quarter;
            if sparse || start >= size {
                0
            } else {
                number | at as u64
            }
        })
    }

    fn on_disk(&self, file: u32, index: u32) -> PageQuarters {
        let written = self.disk.get(&(file, index)).copied();
        written.unwrap_or_else(|| self.at_first(file, index))
    }

    fn of_file(&self, file: u32, index: u32) -> FilePage {
        let known = self.cached.get(&(file, index)).copied();
        known.unwrap_or_else(|| FilePage { last: self.at_first(file, index), lost_to: None })
    }

    // ---- effects ----

    /// Carries out an immediate effect. `position`: the call's file and position in it.
    pub fn perform(&mut self, effect: &Effect, position: &mut Option<(FileId, u64)>) {
        match *effect {
            Effect::Zero { frame, order } => {
                self.frames.as_mut_slice()[frame.idx()..][..1 << order].fill(ZEROES);
            }
            Effect::CollapsePage { from, to } => self.frames[to] = self.frames[from],
            Effect::ReadOut { frame, offset, len } => {
                let (file, index) = self.piece(position, offset, len);
                let found = self.frames[frame];
                self.check_file(file, index, found, "read()");
            }
            Effect::WriteIn { frame, offset, len } => {
                let (file, index) = self.piece(position, offset, len);
                self.write_in(file, index, frame, offset.into(), len.into());
            }
            Effect::StorePage { slot, pfn } => {
                self.stored.insert(slot.0, self.frames[pfn]);
            }
            Effect::LoadPage { slot, pfn } => {
                let stored = self.stored.get(&slot.0).copied();
                self.frames[pfn] = stored.unwrap_or_else(|| self.garbage());
            }
            _ => {}
        }
    }

    /// The page of a part of a call; advances the position of the call.
    fn piece(&self, position: &mut Option<(FileId, u64)>, offset: u32, len: u32) -> (u32, u32) {
        let (file, pos) = position.as_mut().expect("a part of a read() or write()");
        assert_eq!(*pos % self.page_bytes, u64::from(offset), "parts are in order");
        assert!(len > 0 && u64::from(offset + len) <= self.page_bytes);
        let index = (*pos / self.page_bytes) as u32;
        *pos += u64::from(len);
        (file.0, index)
    }

    /// Compares the contents of a file's page with the expected ones. `by` names the operation.
    fn check_file(&mut self, file: u32, index: u32, found: PageQuarters, by: &str) {
        let page = self.of_file(file, index);
        self.nr_checked += 1;
        if found == page.last || self.is_blind {
            return;
        }
        assert!(
            page.lost_to == Some(found),
            "{by}: page {index} of file {file} holds {found:x?}, not {:x?} (lost: {:x?})",
            page.last,
            page.lost_to,
        );
        self.cached.insert((file, index), FilePage { last: found, lost_to: None });
    }

    fn write_in(&mut self, file: u32, index: u32, frame: Pfn, offset: u64, len: u64) {
        let quarter = self.page_bytes / 4;
        let number = self.fresh();
        let mut page = self.of_file(file, index);
        let found = self.frames[frame];
        let is_whole = |at: u64| offset <= at * quarter && (at + 1) * quarter <= offset + len;
        let is_apart = |at: u64| (at + 1) * quarter <= offset || offset + len <= at * quarter;
        let agrees = |with: &PageQuarters| {
            (0..4).all(|at| is_whole(at) || found[at as usize] == with[at as usize])
        };
        if !self.is_blind && !agrees(&page.last) {
            let lost = page.lost_to.filter(|lost| agrees(lost));
            page.last = lost.unwrap_or_else(|| {
                panic!(
                    "write(): page {index} of file {file} held {found:x?}, not {:x?}, around {offset}+{len}",
                    page.last
                )
            });
        }
        for at in 0..4 {
            if !is_apart(at) {
                // A partly written quarter holds a mixture.
                let old = if is_whole(at) { 0 } else { page.last[at as usize] };
                page.last[at as usize] = old.rotate_left(7).wrapping_mul(31) ^ number;
            }
        }
        self.frames[frame] = page.last;
        self.cached.insert((file, index), FilePage { last: page.last, lost_to: None });
    }

    /// Starts an I/O. `early`: the disk takes its data at once, else at the end.
    pub fn begin(&mut self, machine: &Machine, io: Io, early: bool) -> Transfer {
        if let Io::ReadFile { file, .. } | Io::WriteFile { file, .. } = io {
            self.know_file(machine, file);
        }
        let cached = |file: FileId, index, nr, flag| -> Vec<Pfn> {
            let frame = |at| {
                let pfn = frame_of(machine, file, at).expect("a page under I/O is cached");
                assert!(machine.mem.pages[pfn].has(flag), "{pfn:?}: {io:?}");
                pfn
            };
            (index..index + nr).map(frame).collect()
        };
        let (frames, writes) = match io {
            Io::ReadFile { file, index, nr } => (cached(file, index, nr, PageFlags::LOCKED), false),
            Io::WriteFile { file, index, nr } => {
                (cached(file, index, nr, PageFlags::WRITEBACK), true)
            }
            Io::SwapIn { pfn, .. } => (vec![pfn], false),
            Io::SwapOut { pfn, nr, .. } => ((pfn.0..pfn.0 + nr).map(Pfn).collect(), true),
        };
        let taken = (writes && early).then(|| self.held(&frames));
        Transfer { frames, taken }
    }

    fn held(&self, frames: &[Pfn]) -> Vec<PageQuarters> {
        frames.iter().map(|&pfn| self.frames[pfn]).collect()
    }

    /// Ends an I/O, before the machine knows. A failed one leaves garbage at its destination.
    pub fn end(&mut self, io: Io, transfer: Transfer, ok: bool) {
        let Transfer { frames, taken } = transfer;
        let written = taken.unwrap_or_else(|| self.held(&frames));
        match io {
            Io::ReadFile { file, index, .. } => {
                for (at, pfn) in (index..).zip(frames) {
                    let read = if ok { self.on_disk(file.0, at) } else { self.garbage() };
                    self.frames[pfn] = read;
                }
            }
            Io::WriteFile { file, index, .. } => {
                for (at, new) in (index..).zip(written) {
                    self.end_file_write(file.0, at, new, ok);
                }
            }
            Io::SwapIn { slot, pfn } => {
                let read = self.slots.get(&slot.0).copied().filter(|_| ok);
                self.frames[pfn] = read.unwrap_or_else(|| self.garbage());
            }
            Io::SwapOut { slot, .. } => {
                for (slot, new) in (slot.0..).zip(written) {
                    let new = if ok { new } else { self.garbage() };
                    self.slots.insert(slot, new);
                }
            }
        }
    }

    fn end_file_write(&mut self, file: u32, index: u32, new: PageQuarters, ok: bool) {
        let mut page = self.of_file(file, index);
        if ok {
            // Dirty again, by a fault before its store: the lost data is lost.
            page.last = page.lost_to.take().filter(|&lost| lost == new).unwrap_or(page.last);
            self.disk.insert((file, index), new);
        } else {
            // The write was partly done.
            let old = self.on_disk(file, index);
            let torn = [new[0], new[1], old[2], old[3]];
            self.disk.insert((file, index), torn);
            page.lost_to = Some(torn);
        }
        self.cached.insert((file, index), page);
    }

    /// Starts a copy; returns its data if it is copied at once.
    pub fn begin_copy(&self, from: Pfn, early: bool) -> Option<PageQuarters> {
        early.then(|| self.frames[from])
    }

    pub fn end_copy(&mut self, from: Pfn, to: Pfn, taken: Option<PageQuarters>, ok: bool) {
        let copied = taken.unwrap_or(self.frames[from]);
        self.frames[to] = if ok { copied } else { self.garbage() };
    }

    // ---- programs ----

    /// A load or a store by a program. The page-table entry allows it.
    pub fn access(&mut self, machine: &Machine, vma: VmaId, page: u64, write: bool) {
        let mapping = machine.vma(vma).unwrap();
        let pte = mapping.ptes[page as usize];
        let found = self.behind(pte);
        let what = format!("{vma:?} page {page} ({pte:?})");
        match mapping.backing {
            Backing::Anon => {
                let held = self.anon.get(&(vma.0, page)).copied().unwrap_or(ZEROES);
                assert!(found == held || self.is_blind, "{what} holds {found:x?}, not {held:x?}");
            }
            Backing::File(file) => {
                self.know_file(machine, file);
                self.check_file(file.0, page as u32, found, &what);
            }
        }
        self.nr_checked += 1;
        if !write {
            return;
        }
        assert!(pte.is_dirty() && !pte.is_zero_page(), "{what} is written to");
        let mut new = found;
        let number = self.fresh();
        new[(number % 4) as usize] = number;
        self.frames[pte.pfn()] = new;
        match mapping.backing {
            Backing::Anon => {
                self.anon.insert((vma.0, page), new);
            }
            Backing::File(file) => {
                self.cached.insert((file.0, page as u32), FilePage { last: new, lost_to: None });
            }
        }
    }

    fn behind(&self, pte: Pte) -> PageQuarters {
        if pte.is_zero_page() {
            ZEROES
        } else {
            self.frames[pte.pfn()]
        }
    }

    /// A program has discarded pages: absent pages read as zeroes. `None`: the whole mapping.
    pub fn forget(&mut self, machine: &Machine, vma: VmaId, pages: Option<(u64, u64)>) {
        let (first, end) = pages.unwrap_or((0, u64::MAX));
        // A removed mapping has no pages.
        let ptes = machine.vma(vma).map_or(&[][..], |vma| &vma.ptes);
        let gone = |page: u64| ptes.get(page as usize).is_none_or(|pte| pte.is_empty());
        self.anon
            .retain(|&(at, page), _| at != vma.0 || !(first..end).contains(&page) || !gone(page));
    }

    /// An address space has ended: drops contents that only its mappings had.
    pub fn forget_dead(&mut self, machine: &Machine) {
        self.anon.retain(|&(at, _), _| machine.vma(VmaId(at)).is_ok());
    }

    /// The kernel allocates a block, and writes to it.
    pub fn hold_block(&mut self, pfn: Pfn, order: u8) {
        let number = self.fresh();
        self.frames.as_mut_slice()[pfn.idx()..][..1 << order].fill([number; 4]);
        self.blocks.insert(pfn.0, (order, number));
    }

    /// The kernel frees a block: its contents must be unchanged.
    pub fn free_block(&mut self, pfn: Pfn) {
        if let Some((order, number)) = self.blocks.remove(&pfn.0) {
            for at in pfn.idx()..pfn.idx() + (1 << order) {
                assert!(self.frames[at] == [number; 4], "kernel memory at {at} was overwritten");
            }
        }
    }

    // ---- all contents ----

    /// Checks all contents and their positions against the model. Changes nothing.
    pub fn verify(&self, machine: &Machine, vmas: &[VmaId]) {
        for &vma in vmas {
            // A removed mapping has no pages.
            let Ok(mapping) = machine.vma(vma) else { continue };
            for table in mapping.tables.iter().filter(|table| table.is_some()) {
                // The entry is the machine's, and the frame has no other user.
                assert!(
                    self.frames[*table] == ZEROES,
                    "table {table:?} of {vma:?} was overwritten"
                );
            }
            if mapping.backing != Backing::Anon {
                continue;
            }
            let mut known = self.anon.range((vma.0, 0)..=(vma.0, u64::MAX)).peekable();
            for (page, pte) in mapping.ptes.iter().enumerate() {
                let held = known.next_if(|((_, at), _)| *at == page as u64);
                let held = held.map_or(ZEROES, |(_, &held)| held);
                let found = self.anywhere(machine, *pte);
                assert!(
                    found.is_none_or(|found| found == held),
                    "{vma:?} page {page} ({pte:?}) is {found:x?}, not {held:x?}"
                );
            }
        }
        for (&(file, index), page) in &self.cached {
            let frame = frame_of(machine, FileId(file), index);
            let found = match frame.map(|pfn| (pfn, &machine.mem.pages[pfn])) {
                None => self.on_disk(file, index),
                Some((pfn, at)) if at.has(PageFlags::UPTODATE) => self.frames[pfn],
                Some(_) => continue,
            };
            assert!(
                found == page.last || page.lost_to == Some(found),
                "page {index} of file {file} (in {frame:?}) is {found:x?}, not {:x?} (lost: {:x?})",
                page.last,
                page.lost_to
            );
        }
    }

    /// The contents of a page of anonymous memory, wherever it is. `None`: being read from swap.
    fn anywhere(&self, machine: &Machine, pte: Pte) -> Option<PageQuarters> {
        if pte.is_empty() {
            return Some(ZEROES);
        }
        if pte.is_present() {
            return Some(self.behind(pte));
        }
        if let Some((pfn, _)) = pte.migrating() {
            return Some(self.frames[pfn]);
        }
        let slot = pte.swap_slot().expect("an entry is one of these");
        match machine.swap()[slot].cached(slot) {
            Some(pfn) if machine.mem.pages[pfn].has(PageFlags::UPTODATE) => Some(self.frames[pfn]),
            Some(_) => None,
            None => {
                let swap = machine.swap();
                let is_in_zram = swap[slot].zram().is_some() && !swap.is_written_back(slot);
                let is_stored = is_in_zram || swap.is_in_zswap(slot) || swap.is_zero_page(slot);
                let slots = if is_stored { &self.stored } else { &self.slots };
                Some(slots.get(&slot.0).copied().unwrap_or([1 << 63; 4]))
            }
        }
    }
}

/// The frame of a file's page, if it is in memory. Mappings of a removed file still have pages.
fn frame_of(machine: &Machine, file: FileId, index: u32) -> Option<Pfn> {
    if let Ok(cache) = machine.file(file) {
        return cache.get(index);
    }
    let pages = &machine.mem.pages;
    let is_it =
        |page: &Page| page.has(PageFlags::FILE) && (page.mapping, page.index) == (file.0, index);
    pages.opened().find(|(_, page)| is_it(page)).map(|(pfn, _)| pfn)
}
