//! Pins: a user of a frame's bytes keeps the frame in its place.
//!
//! Linux: `pin_user_pages`, `unpin_user_page`, `FOLL_PIN` (mm/gup.c, 6.1). A pin is a count. Linux adds
//! it to the page's reference count, as 1024 for a small page; here it is in a table beside the page
//! array, and [`PageFlags::PINNED`] says whether there is one. A huge page has one count for all its
//! pins; a pin holds the whole page.
//!
//! While there is a pin the frame is neither unmapped by reclaim, moved, split nor freed. Its owner may
//! let go of it (munmap): the page then stays until the last pin goes, as in Linux, and is freed with it.
//!
//! Difference from Linux: a pinned page of a file stays mapped, where Linux unmaps it and then cannot free
//! it; there is no `FOLL_LONGTERM`, which moves pages out of zone Movable first.
//!
//! Invariant: PINNED frames are those in the table, with counts above 0, and are user memory.

use crate::bad_id::BadId;
use crate::digest::State;
use crate::manager::Manager;
use crate::owners::Owners;
use crate::page::{PageFlags, Place};
use crate::units::{Cpu, Pfn, HPAGE_PMD_NR};
use crate::vmstat::Event;
use alloc::collections::BTreeMap;
use core::fmt;

/// How often each frame is pinned, first frames of huge pages for all of theirs.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct Pins {
    counts: BTreeMap<Pfn, u64>,
}

impl Pins {
    /// Frames with their pins, for the audit.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pfn, u64)> + '_ {
        self.counts.iter().map(|(&pfn, &count)| (pfn, count))
    }
}

/// Why a pin was refused, or could not be taken away. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinError {
    /// There is no such mapping, page of it, frame or CPU; or the frame is not user memory.
    BadId(BadId),
    /// Nothing is mapped there that the access could use: fault first.
    NotPresent,
    /// The frame has no pin that could go.
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

impl<O: Owners> Manager<O> {
    /// Pins a frame of user memory once more: one that is mapped, or a page of a file.
    ///
    /// # Errors
    /// [`BadId::Frame`] if there is no such frame or it is not user memory; [`PinError::NotPresent`] if it is
    /// on its way to another frame, or anonymous and mapped nowhere.
    pub fn pin_frame(&mut self, pfn: Pfn) -> Result<(), PinError> {
        let head = self.pinned_as(pfn)?;
        if self.mem.pages.is_fresh(head.idx()) {
            return Err(BadId::Frame(pfn).into());
        }
        let page = &mut self.mem.pages[head.idx()];
        let (anon, file) = (page.has(PageFlags::ANON), page.has(PageFlags::FILE));
        if !anon && !file {
            return Err(BadId::Frame(pfn).into());
        }
        if page.has(PageFlags::MIGRATING) || (anon && page.mapcount == 0) {
            return Err(PinError::NotPresent);
        }
        page.set(PageFlags::PINNED);
        *self.pins.counts.entry(head).or_insert(0) += 1;
        self.mem.vmstat.count(Event::NrFollPinAcquired);
        Ok(())
    }

    /// Takes one pin away. With the last one goes a page that its owner has let go of.
    ///
    /// # Errors
    /// [`PinError::NotPinned`] if there is none; [`BadId::Frame`], [`BadId::Cpu`].
    pub fn unpin(&mut self, pfn: Pfn, cpu: Cpu) -> Result<(), PinError> {
        self.check_cpu(cpu)?;
        let head = self.pinned_as(pfn)?;
        let Some(count) = self.pins.counts.get_mut(&head) else {
            return Err(PinError::NotPinned(pfn));
        };
        *count -= 1;
        self.mem.vmstat.count(Event::NrFollPinReleased);
        if *count > 0 {
            return Ok(());
        }
        self.pins.counts.remove(&head);
        let page = &mut self.mem.pages[head.idx()];
        page.clear(PageFlags::PINNED);
        if page.has(PageFlags::FILE) {
            O::file_page_idle(self, head, cpu);
        } else if page.mapcount == 0 {
            self.free_anon_page(head, cpu);
        }
        Ok(())
    }

    /// How often a frame is pinned.
    pub fn pin_count(&self, pfn: Pfn) -> u64 {
        let head = self.pinned_as(pfn).ok();
        head.and_then(|head| self.pins.counts.get(&head)).copied().unwrap_or(0)
    }

    /// The frame that has the pins of a frame: itself, or the first of its huge page.
    fn pinned_as(&self, pfn: Pfn) -> Result<Pfn, BadId> {
        if pfn.idx() >= self.mem.pages.len() {
            return Err(BadId::Frame(pfn));
        }
        match self.mem.pages.peek(pfn.idx()).place {
            Place::HugeTail => Ok(Pfn(pfn.0 / HPAGE_PMD_NR as u32 * HPAGE_PMD_NR as u32)),
            _ => Ok(pfn),
        }
    }
}
