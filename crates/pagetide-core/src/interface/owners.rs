//! The users of frames, behind one trait. It is the only way in which the page level calls them.
//!
//! Linux: the reverse map (mm/rmap.c), `address_space_operations` and `struct task_struct` as seen
//! from mm/vmscan.c. The page level (frames, groups, lists, reclaim, compaction, slabs) knows two
//! numbers for each page: its owner and its index in that owner ([`OwnerSlot`]). It does not know
//! what an owner is. In a simulated machine the owners are processes and files
//! ([`crate::process`]); in a page pool they are tables of atomics ([`crate::interface::slots`]).
//!
//! A manager has one type of owners, known at compile time, so a query costs one direct call.
//!
//! Invariant: methods that take `self` change no page, list or counter of the page level; methods
//! that take the whole manager are named after the change they make.

use crate::ageing::generations::neighbours::LookAround;
use crate::ageing::generations::table_walk::TableWalk;
use crate::ageing::shadow::Shadow;
use crate::audit::violation::Violation;
use crate::frames::page::Page;
use crate::groups::memcg::ReclaimScope;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Io, Step};
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::swap::content::ContentMixId;
use crate::units::digest::State;
use crate::units::{Cpu, MemcgId, Nanos, Pfn, Requester, SwapSlot};

/// The owner of a page and the page's index in it (`Page::{mapping, index}`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerSlot {
    /// Number of the owner; files and owners of anonymous memory are numbered separately.
    pub owner: u32,
    /// Index of the page in the owner, from 0.
    pub index: u32,
    /// Where the owner's pages go when memory is short.
    pub store: BackingStore,
}

/// Where an owner's pages go when memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackingStore {
    /// The swap area: anonymous memory.
    Swap,
    /// The owner's own store: a file.
    Own,
}

impl OwnerSlot {
    /// The owner and index of a page of user memory.
    #[inline]
    pub const fn of(page: &Page) -> OwnerSlot {
        let store = if page.is_anon() { BackingStore::Swap } else { BackingStore::Own };
        OwnerSlot { owner: page.mapping, index: page.index, store }
    }
}

/// References to a page since the previous query (Linux `folio_referenced`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageReferences {
    /// Number of entries that were used.
    pub nr: u32,
    /// Whether one of them is executable.
    pub executable: bool,
    /// Number of entries that were read for this answer.
    pub nr_entries_read: u32,
}

/// Where a page goes that is being unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmapTarget {
    /// To this swap slot; the entries name the slot from now on.
    Swapped(SwapSlot),
    /// Nowhere: the entries are only removed. The owner's store has the data or will get it.
    Unmapped,
    /// From this frame to another one; [`Owners::moved`] completes the move.
    Moving(Pfn),
}

/// Result of unmapping a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmapResult {
    /// Number of removed entries; if less than the mapcount, the page is pinned and stays.
    pub nr: u16,
    /// Whether the page was written through one of them.
    pub dirty: bool,
    /// Whether one of them was used since the previous query.
    pub young: bool,
    /// Number of entries that were read.
    pub nr_entries_read: u32,
}

/// Numbers of the owners for the files of /proc.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnersReport {
    /// Committed pages of swap-backed memory, present or not (`Committed_AS`).
    pub nr_committed: u64,
    /// Dirty pages at which background writeback starts, and at which writers are throttled
    /// (`nr_dirty_background_threshold`, `nr_dirty_threshold`).
    pub dirty_limits: (u64, u64),
}

/// Users of frames.
pub trait Owners: State + Sized {
    // ---- the entries of one page ----

    /// Counts and clears the references through the page's `mapcount` entries since the previous
    /// query. Only users in the groups of the scope `within` count. `huge`: the slot is the first
    /// of a huge page.
    fn referenced(
        &mut self,
        at: OwnerSlot,
        mapcount: u16,
        huge: bool,
        within: ReclaimScope,
    ) -> PageReferences;

    /// As [`Owners::referenced`], and looks at the entries around each used one.
    fn referenced_around(
        &mut self,
        at: OwnerSlot,
        mapcount: u16,
        huge: bool,
        within: ReclaimScope,
        _around: &mut LookAround<'_>,
    ) -> PageReferences {
        self.referenced(at, mapcount, huge, within)
    }

    /// Walks the page tables of a group's next task.
    fn walk_tables(&mut self, _walk: &mut TableWalk<'_>) {}

    /// Removes the page's entries. If any entry remains afterwards, the page is pinned.
    fn unmap(&mut self, at: OwnerSlot, mapcount: u16, to: UnmapTarget) -> UnmapResult;

    /// Completes a move ([`UnmapTarget::Moving`]). The page is now in `to`, which equals `from` if
    /// the move failed. Returns the number of entries that map the page.
    fn moved(&mut self, at: OwnerSlot, from: Pfn, to: Pfn, young: bool) -> u16;

    /// Splits a huge page into 512 small ones in place.
    fn split(&mut self, _at: OwnerSlot) {}

    /// Whether a locked mapping maps the page. Called only for a page that has entries. `huge`: the
    /// query is about the whole huge page that starts at the slot.
    fn is_locked(&self, _at: OwnerSlot, _huge: bool) -> bool {
        false
    }

    /// How well the pages of an owner compress.
    fn content_mix(&self, _at: OwnerSlot) -> ContentMixId {
        ContentMixId::default()
    }

    /// Whether the owners' disks are too busy for more writes (up to 5.14).
    fn is_write_congested(&self) -> bool {
        false
    }

    /// Calls `f` for every frame that the owners use for page tables.
    fn for_each_table_frame(&self, _f: &mut dyn FnMut(Pfn)) {}

    /// Generation of a requester: a later requester with the same id has a different generation.
    /// `None`: unknown id, or the requester has ended.
    fn generation(&self, _asker: Requester) -> Option<u64> {
        Some(0)
    }

    /// Records a request of `asker`. Returns the group to charge.
    fn note_request(&mut self, asker: Requester) -> MemcgId;

    /// The group to charge for requests of `asker`. `None`: unknown id, or the requester has ended.
    fn payer(&self, asker: Requester) -> Option<MemcgId>;

    /// Whether the requester is about to end and may use the reserves (Linux `tsk_is_oom_victim`).
    fn is_dying(&self, _asker: Requester) -> bool {
        false
    }

    /// Adds `nr` pages above `memory.high` that a cancelled call has not paid for.
    fn note_over_high(&mut self, _asker: Requester, _nr: u64) {}

    /// Returns and clears the pages above `memory.high` that the requester must still pay for.
    fn take_over_high(&mut self, _asker: Requester) -> u64 {
        0
    }

    // ---- with the whole manager ----

    /// One bounded step of [`Daemon::Flusher`] or [`Daemon::Khugepaged`]; by default no work.
    fn daemon_step(
        _manager: &mut Manager<Self>,
        _daemon: Daemon,
        _cpu: Cpu,
        _now: Nanos,
    ) -> Step<DaemonRest> {
        Step::Done(DaemonRest::UNTIL_WOKEN)
    }

    /// Rest of [`Daemon::Flusher`] or [`Daemon::Khugepaged`] before its first step.
    fn daemon_rest(_manager: &Manager<Self>, _daemon: Daemon) -> DaemonRest {
        DaemonRest::UNTIL_WOKEN
    }

    /// Reports that huge pages were switched on.
    fn huge_pages_on(_manager: &mut Manager<Self>) {}

    /// Gives back the result of a call that was cancelled after it was done.
    fn undo_outcome(_manager: &mut Manager<Self>, _asker: Requester, _outcome: Outcome, _cpu: Cpu) {
    }

    /// Called if nothing can be reclaimed for a group (the root: for the machine). Kills a task
    /// ([`crate::interface::effect::Effect::OomKill`]) or lets the request fail. Returns whether memory will
    /// be freed. By default the request fails.
    fn out_of_memory(_manager: &mut Manager<Self>, _scope: MemcgId, _asker: Requester) -> bool {
        false
    }

    // The next functions matter only to owners with stores of their own.

    /// Reports that a page of an own store was written to.
    fn dirtied(_manager: &mut Manager<Self>, _pfn: Pfn) {}

    /// Writes a dirty page of an own store, so that it can be reclaimed.
    fn write_page(_manager: &mut Manager<Self>, _pfn: Pfn) {}

    /// Evicts a clean page of an own store and leaves its shadow in the page's slot.
    fn evict(_manager: &mut Manager<Self>, _pfn: Pfn, _shadow: Shadow, _cpu: Cpu) {}

    /// Frees a tree node that has only shadows. `owner` and `index` are the values that the node
    /// got when it was put on the list of shadow nodes.
    fn forget_shadows(_manager: &mut Manager<Self>, _owner: u32, _index: u32, _cpu: Cpu) {}

    /// Reports that a page of an own store is used only by its owner: it has no pin and does not
    /// migrate.
    fn file_page_idle(_manager: &mut Manager<Self>, _pfn: Pfn, _cpu: Cpu) {}

    /// Reports the end of an I/O of an own store.
    fn io_done(_manager: &mut Manager<Self>, _io: Io, _ok: bool, _cpu: Cpu, _now: Nanos) {}

    /// Reports a new value of a knob for dirty limits.
    fn dirty_limits_changed(_manager: &mut Manager<Self>) {}

    /// Reports that a group was removed and its pages went to its parent.
    fn group_removed(_manager: &mut Manager<Self>, _memcg: MemcgId, _parent: MemcgId) {}

    /// Starts writeback of all dirty pages, because reclaim met only dirty pages.
    fn wake_writeback(_manager: &mut Manager<Self>) {}

    /// Drops clean unmapped pages (`vm.drop_caches`).
    fn drop_caches(_manager: &mut Manager<Self>, _cpu: Cpu) {}

    /// Returns the numbers of the owners for the files of /proc.
    fn report(_manager: &Manager<Self>) -> OwnersReport {
        OwnersReport::default()
    }

    /// Checks the owners' tables against the page level.
    ///
    /// # Errors
    /// The first violation found.
    fn audit(manager: &Manager<Self>) -> Result<(), Violation>;
}
