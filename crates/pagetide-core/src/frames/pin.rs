//! Pins: while a frame is pinned, it keeps its page, and the page keeps its address.
//!
//! Linux: `pin_user_pages`, `unpin_user_page`, `FOLL_PIN` (mm/gup.c, 6.1). Pins are counted. Linux
//! adds them to the page's reference count, as 1024 each for a small page. Here a table next to the
//! page array has the counts, and [`PageFlags::PINNED`] says whether a frame has any pin. A huge
//! page has one count for all its pins, and a pin of any part keeps the whole page.
//!
//! A pinned frame is neither unmapped by reclaim, moved, split nor freed. If its owner drops it
//! (munmap), the page stays until its last pin ends and is then freed, as in Linux.
//!
//! Differences from Linux: a pinned page of a file stays mapped; Linux unmaps it and then cannot
//! free it. `FOLL_LONGTERM`, which first moves pages out of zone Movable, is not modelled.
//!
//! Invariant: exactly the PINNED frames are in the table, with counts above 0, and are user memory.

use crate::frames::page::{PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::interface::bad_id::BadId;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::units::{Cpu, Pfn, HPAGE_PMD_NR};
use core::fmt;

/// Why a frame was not pinned or unpinned. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinError {
    /// Unknown mapping, page, frame or CPU; or the frame is not user memory.
    BadId(BadId),
    /// No page is mapped there with sufficient rights: the caller must fault first.
    NotPresent,
    /// The frame has no pin.
    NotPinned(Pfn),
}

impl From<BadId> for PinError {
    fn from(id: BadId) -> PinError {
        PinError::BadId(id)
    }
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinError::BadId(id) => id.fmt(f),
            PinError::NotPresent => f.write_str("no page is mapped there for this access"),
            PinError::NotPinned(pfn) => write!(f, "{pfn:?} is not pinned"),
        }
    }
}

impl Memory {
    /// The frame that counts the pins of `pfn`: `pfn`, or the first frame of its huge page.
    fn pinned_as(&self, pfn: Pfn) -> Result<Pfn, BadId> {
        if pfn.idx() >= self.pages.len() {
            return Err(BadId::Frame(pfn));
        }
        match self.pages.peek(pfn.idx()).place {
            Place::HugeTail => Ok(Pfn(pfn.0 / HPAGE_PMD_NR as u32 * HPAGE_PMD_NR as u32)),
            _ => Ok(pfn),
        }
    }
}

impl Kernel {
    /// Adds a pin to a frame of user memory that is mapped or is a page of a file.
    ///
    /// [`BadId::Frame`] if the frame does not exist or is not user memory; [`PinError::NotPresent`]
    /// if the frame is being moved, or is anonymous memory that is not mapped.
    pub fn pin_frame(&mut self, pfn: Pfn) -> Result<(), PinError> {
        let head = self.mem.pinned_as(pfn)?;
        if self.mem.pages.is_fresh(head.idx()) {
            return Err(BadId::Frame(pfn).into());
        }
        let page = &mut self.mem.pages[head];
        if !page.is_user() {
            return Err(BadId::Frame(pfn).into());
        }
        if page.has(PageFlags::MIGRATING) || (page.is_anon() && page.mapcount == 0) {
            return Err(PinError::NotPresent);
        }
        page.set(PageFlags::PINNED);
        *self.mem.pins.counts.entry(head).or_insert(0) += 1;
        self.mem.vmstat.count(Event::NrFollPinAcquired);
        Ok(())
    }

    /// Number of pins of a frame.
    pub fn pin_count(&self, pfn: Pfn) -> u64 {
        let head = self.mem.pinned_as(pfn).ok();
        head.and_then(|head| self.mem.pins.counts.get(&head)).copied().unwrap_or(0)
    }
}

impl<O: Owners> Manager<O> {
    /// Removes one pin. If it was the last one and the owner has dropped the page, the page is
    /// freed.
    ///
    /// # Errors
    /// [`PinError::NotPinned`] if there is no pin; [`BadId::Frame`], [`BadId::Cpu`].
    pub fn unpin(&mut self, pfn: Pfn, cpu: Cpu) -> Result<(), PinError> {
        self.groups.check_cpu(cpu)?;
        let head = self.mem.pinned_as(pfn)?;
        let Some(count) = self.kernel.mem.pins.counts.get_mut(&head) else {
            return Err(PinError::NotPinned(pfn));
        };
        *count -= 1;
        self.kernel.mem.vmstat.count(Event::NrFollPinReleased);
        if *count > 0 {
            return Ok(());
        }
        self.mem.pins.counts.remove(&head);
        let page = &mut self.mem.pages[head];
        page.clear(PageFlags::PINNED);
        if page.has(PageFlags::FILE) {
            O::file_page_idle(self, head, cpu);
        } else if page.mapcount == 0 {
            self.free_anon_page(head, cpu);
        }
        Ok(())
    }
}
