//! The users of frames: the one trait by which the ground floor calls upwards.
//!
//! Linux: the reverse map (mm/rmap.c), `address_space_operations` and `struct task_struct` seen from
//! mm/vmscan.c. The ground floor (frames, groups, lists, reclaim, compaction, slabs) knows two numbers
//! of a page: its owner and its place in that owner ([`Slot`]). It does not know what an owner is. A
//! simulated machine's owners are processes and files ([`crate::process`]); a page pool's are tables of
//! atomics ([`crate::slots`]).
//!
//! Calls are static: a manager has one type of owners, so a question costs one function call.
//!
//! Invariant: owners change no page, list or counter of the ground floor from the methods that take
//! `self`; the names of methods that take the whole manager say which change they make.

use crate::audit::violation::Violation;
use crate::daemon::{Daemon, Rest};
use crate::digest::State;
use crate::effect::{Io, Step};
use crate::manager::Manager;
use crate::memcg::Within;
use crate::outcome::Outcome;
use crate::page::{Page, PageFlags};
use crate::shadow::Shadow;
use crate::units::{Asker, Cpu, MemcgId, Nanos, Pfn, SwapSlot};

/// Where a page belongs: its owner, and its place there (`Page::{mapping, index}`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The owner, numbered by [`Slot::store`].
    pub owner: u32,
    /// Page of the owner, from 0.
    pub index: u32,
    /// Where the owner's pages go when memory is short.
    pub store: Store,
}

/// Where an owner's pages go when memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// The swap area: anonymous memory.
    Swap,
    /// A store of the owner's own: a file.
    Own,
}

impl Slot {
    /// Where a page of user memory belongs.
    #[inline]
    pub const fn of(page: &Page) -> Slot {
        let store = if page.has(PageFlags::ANON) { Store::Swap } else { Store::Own };
        Slot { owner: page.mapping, index: page.index, store }
    }
}

/// Answer to "was it used since I last asked?" (Linux `folio_referenced`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Entries that were used.
    pub nr: u32,
    /// One of them may be executed from.
    pub executable: bool,
    /// Entries that had to be looked at.
    pub nr_looked_at: u32,
}

/// Where a page goes that is taken from its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Into this slot of the swap area: what its entry says from now on.
    Swapped(SwapSlot),
    /// Out of the entries only: the owner's own store has it, or will.
    Unmapped,
    /// From this frame to another one; [`Owners::moved`] ends it.
    Moving(Pfn),
}

/// What became of a page's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmapped {
    /// Entries that were taken away. Fewer than there are: the page is pinned, and stays.
    pub nr: u16,
    /// One of them had been written through.
    pub dirty: bool,
    /// One of them had been used since the last question.
    pub young: bool,
    /// Entries that had to be looked at.
    pub nr_looked_at: u32,
}

/// What the owners add to the files of /proc.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnersReport {
    /// Pages of swap-backed memory that were promised, there or not (`Committed_AS`).
    pub nr_committed: u64,
    /// Pages that may be dirty before they are written in the background, and before writers wait
    /// (`nr_dirty_background_threshold`, `nr_dirty_threshold`).
    pub dirty_limits: (u64, u64),
}

/// Those who use frames, and answer for them.
pub trait Owners: State + Sized {
    // ---- the entries of one page ----

    /// Loads what [`Owners::referenced`] will look at. Returns anything that depends on it.
    #[inline]
    fn prefetch(&self, _at: Slot) -> u32 {
        0
    }

    /// Loads what the page's eviction will look at, if it is likely to come to that.
    #[inline]
    fn prefetch_eviction(&self, _at: Slot, _is_mapped: bool) -> u32 {
        0
    }

    /// Which of the page's entries were used since last asked; forgets it. Only users `within` a group
    /// count. `huge`: the slot is the first of a huge page. `mapcount` entries map the page.
    fn referenced(&mut self, at: Slot, mapcount: u16, huge: bool, within: Within) -> References;

    /// Takes the page from its owner: no entry maps it afterwards, or it is pinned.
    fn unmap(&mut self, at: Slot, mapcount: u16, to: Gone) -> Unmapped;

    /// A page that was [`Gone::Moving`] has arrived: it lives in `to` now, which is `from` if it could not
    /// be moved. Returns the entries that map it.
    fn moved(&mut self, at: Slot, from: Pfn, to: Pfn, young: bool) -> u16;

    /// A huge page becomes 512 small ones in place.
    fn split(&mut self, _at: Slot) {}

    /// Whether a locked mapping maps the page, which has entries. `huge`: all of the huge page whose first
    /// the slot is.
    fn is_locked(&self, _at: Slot, _huge: bool) -> bool {
        false
    }

    /// Whether the disks of the owners' own stores are too busy writing to take more (up to 5.14).
    fn is_write_congested(&self) -> bool {
        false
    }

    /// A page was written, to swap or to an own store.
    fn note_written(&mut self) {}

    /// Calls `f` for every frame that the owners hold for themselves: tables of entries.
    fn for_each_own_frame(&self, _f: &mut dyn FnMut(Pfn)) {}

    // ---- those who ask ----

    /// A number that is somebody's as long as the name is; another who gets the name has another. `None`:
    /// there is nobody of that name (any more).
    fn tenure(&self, _asker: Asker) -> Option<u64> {
        Some(0)
    }

    /// Somebody asks; returns the group that pays.
    fn asks(&mut self, asker: Asker) -> MemcgId;

    /// The group that pays for what somebody asks for. `None`: there is nobody of that name (any more).
    fn payer(&self, asker: Asker) -> Option<MemcgId>;

    /// Whether somebody is about to go, and may dip into the reserves to do so (Linux
    /// `tsk_is_oom_victim`).
    fn is_dying(&self, _asker: Asker) -> bool {
        false
    }

    /// Somebody has given up a call before it paid for `nr` pages above `memory.high`.
    fn note_over_high(&mut self, _asker: Asker, _nr: u64) {}

    /// What somebody owes for such calls; it is paid now.
    fn take_over_high(&mut self, _asker: Asker) -> u64 {
        0
    }

    // ---- with the whole manager ----

    /// One bounded step of a daemon that works for these owners: [`Daemon::Flusher`],
    /// [`Daemon::Khugepaged`]. Without a word of the owners' it has nothing to do.
    fn daemon_step(
        _manager: &mut Manager<Self>,
        _daemon: Daemon,
        _cpu: Cpu,
        _now: Nanos,
    ) -> Step<Rest> {
        Step::Done(Rest::UNTIL_WOKEN)
    }

    /// How long such a daemon rests before its first step.
    fn daemon_rest(_manager: &Manager<Self>, _daemon: Daemon) -> Rest {
        Rest::UNTIL_WOKEN
    }

    /// Huge pages were switched on.
    fn huge_pages_on(_manager: &mut Manager<Self>) {}

    /// A call that was given up had ended like this, and nobody has been told: what its asker was to have
    /// goes back.
    fn take_back(_manager: &mut Manager<Self>, _asker: Asker, _outcome: Outcome, _cpu: Cpu) {}

    /// Nothing can be reclaimed for a group, or for anybody if it is the root: end somebody
    /// ([`crate::effect::Effect::OomKill`]), or let the request fail. Returns whether memory can be
    /// expected. Without a word of the owners' requests fail.
    fn out_of_memory(_manager: &mut Manager<Self>, _scope: MemcgId, _asker: Asker) -> bool {
        false
    }

    // The next six are asked of owners that have stores of their own.

    /// A page of an own store has been written to.
    fn dirtied(_manager: &mut Manager<Self>, _pfn: Pfn) {}

    /// Write a dirty page of an own store, so that it can go.
    fn write_page(_manager: &mut Manager<Self>, _pfn: Pfn) {}

    /// A clean page of an own store goes; its place keeps the shadow.
    fn evict(_manager: &mut Manager<Self>, _pfn: Pfn, _shadow: Shadow, _cpu: Cpu) {}

    /// Forget the shadows of a tree node that has nothing else, and give the node up. `owner` and `index` are what
    /// the node was listed with.
    fn forget_shadows(_manager: &mut Manager<Self>, _owner: u32, _index: u32, _cpu: Cpu) {}

    /// Nobody but its owner holds a page of an own store any more: neither a pin nor a move.
    fn file_page_idle(_manager: &mut Manager<Self>, _pfn: Pfn, _cpu: Cpu) {}

    /// An I/O of an own store has ended.
    fn io_done(_manager: &mut Manager<Self>, _io: Io, _ok: bool, _cpu: Cpu) {}

    /// Time has passed, and I/O has ended.
    fn tick(_manager: &mut Manager<Self>, _now: Nanos) {}

    /// Reclaim met nothing but dirty pages: write everything.
    fn wake_writeback(_manager: &mut Manager<Self>) {}

    /// Give up clean pages that nobody maps (`vm.drop_caches`).
    fn drop_caches(_manager: &mut Manager<Self>, _cpu: Cpu) {}

    /// What the owners add to the files of /proc.
    fn report(_manager: &Manager<Self>) -> OwnersReport {
        OwnersReport::default()
    }

    /// Checks the owners against the ground floor.
    ///
    /// # Errors
    /// The first violation found.
    fn audit(manager: &Manager<Self>) -> Result<(), Violation>;
}
