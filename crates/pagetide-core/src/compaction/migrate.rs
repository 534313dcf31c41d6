//! Migration: moving a page to another frame.
//!
//! Linux: `migrate_pages`, `unmap_and_move`, `migrate_folio_move`, `remove_migration_ptes`
//! (mm/migrate.c, 6.1). Migration entries replace the page's entries and the world copies its bytes
//! ([`Effect::CopyPage`]). When the world reports the end of the copy ([`Manager::copy_done`]), the
//! page moves to its new frame with its owner, flags, charge, slot in the page cache or in swap,
//! and entries. If the copy failed, the page stays where it was. A task that touches the page
//! during the copy waits.
//!
//! The migration of a page fails if the page is locked (being read), under writeback, pinned, or a
//! dirty block of a file system (`PageFlags::METADATA`). A page of a pool of compressed pages has no
//! owner and is moved at once.
//!
//! Differences from Linux: the journal holds a block from its first change until it is written,
//! even where ext4 releases it in between. If one of several entries of a page was young, all are
//! young afterwards. Each page gets one attempt; Linux tries up to ten times to get a lock.
//!
//! Invariant: a page under migration is [`Place::Isolated`], MIGRATING and LOCKED, and has no
//! present entry. Its fields `next` and `prev` hold its new frame and its run. In the descriptor of
//! the new frame only `private` is set; it says whether an entry was young.

use super::migrate_scanner::isolated_stat;
use super::run::CompactRunId;
use super::CompactControl;
use crate::frames::buddy::clear_page;
use crate::frames::page::{PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::interface::effect::{Effect, Effects};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::owners::{OwnerSlot, UnmapTarget};
use crate::interface::planted::Defect;
use crate::stats::vmstat::Event;
use crate::units::{Cpu, Pfn, SwapSlot};

impl Memory {
    /// Whether an isolated page can be moved now. Linux waits for locks and, in a synchronous run
    /// that is not direct, for writeback. Here a busy page is skipped.
    fn is_migratable(&self, pfn: Pfn) -> bool {
        let busy = PageFlags::LOCKED
            .with(PageFlags::WRITEBACK)
            .with(PageFlags::PINNED)
            .with(PageFlags::BATCHED);
        let page = &self.pages[pfn];
        // `buffer_migrate_folio_norefs`: the journal holds a reference to each unwritten buffer.
        let held = page.has(PageFlags::METADATA.with(PageFlags::DIRTY));
        !held && !page.flags.any(busy)
    }
}

impl Kernel {
    /// Moves the identity of the page (owner, flags, charge, swap slot) from one frame to another.
    fn move_page_identity(&mut self, from: Pfn, to: Pfn) {
        let old = self.mem.pages[from].clone();
        let page = &mut self.mem.pages[to];
        page.mapping = old.mapping;
        page.index = old.index;
        page.private = old.private;
        page.memcg = old.memcg;
        page.flags = old.flags;
        page.set_uses(0);
        page.place = Place::Isolated;
        let note = self.mem.pages.note(from);
        self.mem.pages.set_note(to, note);
        clear_page(&mut self.mem.pages[from], Place::Allocated);
        if old.has(PageFlags::SWAPCACHE) {
            let slot = SwapSlot(old.private);
            self.swap[slot].replace_cached(slot, to);
        }
        self.mem.work.cache_ops += 1;
    }
}

impl Kernel {
    /// Moves a page of a pool of compressed pages, at once, because nothing maps it (Linux
    /// `zs_page_migrate`).
    fn migrate_pool_page(&mut self, from: Pfn, to: Pfn, cpu: Cpu) {
        self.mem.pages[from].place = Place::Allocated;
        self.mem.pages[to].place = Place::Allocated;
        self.move_pool_page(from, to);
        self.mem.free_page(cpu, from, 0);
        self.mem.work.bytes_copied += self.mem.page_size.bytes() as u32;
        self.mem.work.pages_migrated += 1;
        self.mem.vmstat.count(Event::PgmigrateSuccess);
    }
}

impl<O: Owners> Manager<O> {
    /// Begins to move the isolated pages of a run, as long as there are target frames.
    pub(super) fn migrate_pages(&mut self, id: CompactRunId, run: &mut CompactControl, cpu: Cpu) {
        let mut pages = core::mem::take(&mut run.migratepages);
        // Each time the list of frames is empty, look for as many frames as the batch has pages.
        let wanted = pages.len() as u32;
        if !self.era.migrates_oldest_first {
            pages.reverse();
        }
        for pfn in pages.drain(..) {
            if run.out_of_frames {
                self.putback_isolated(pfn);
                continue;
            }
            if !self.mem.is_migratable(pfn) {
                self.putback_isolated(pfn);
                run.nr_failed += 1;
                self.mem.vmstat.count(Event::PgmigrateFail);
                continue;
            }
            if run.freepages.is_empty() {
                self.isolate_freepages(run, wanted);
            }
            let Some(frame) = run.freepages.pop_front() else {
                run.out_of_frames = true;
                self.mem.vmstat.count(Event::PgmigrateFail);
                self.putback_isolated(pfn);
                continue;
            };
            if self.mem.pages[pfn].has(PageFlags::ZSPAGE) {
                self.migrate_pool_page(pfn, frame, cpu);
                continue;
            }
            if !self.begin_migration(id, pfn, frame) {
                run.freepages.push_front(frame);
                self.putback_isolated(pfn);
                run.nr_failed += 1;
                self.mem.vmstat.count(Event::PgmigrateFail);
                continue;
            }
            if self.is_planted(Defect::SkippedCopy) {
                self.step.effects.pop();
                self.end_migration(pfn, true, Cpu(0));
                continue;
            }
            run.in_flight.push((pfn, frame));
        }
        run.migratepages = pages;
    }

    /// Unmaps a page and asks the world to copy it. `false`: the page is pinned; nothing changed.
    fn begin_migration(&mut self, id: CompactRunId, pfn: Pfn, frame: Pfn) -> bool {
        debug_assert_eq!(self.mem.pages[pfn].place, Place::Isolated);
        let Some(young) = self.unmap_for_migration(pfn) else { return false };
        let page = &mut self.mem.pages[pfn];
        page.set(PageFlags::LOCKED.with(PageFlags::MIGRATING));
        page.next = frame;
        page.prev = Pfn(id.0);
        self.mem.pages[frame].private = u32::from(young);
        self.mem.work.bytes_copied += self.mem.page_size.bytes() as u32;
        self.mem.work.pages_migrated += 1;
        self.step.effects.push(Effect::CopyPage { from: pfn, to: frame });
        true
    }

    /// Makes all entries migration entries. Returns whether one was young; `None`: page is pinned.
    fn unmap_for_migration(&mut self, pfn: Pfn) -> Option<bool> {
        let page = &self.mem.pages[pfn];
        let (at, mapcount) = (OwnerSlot::of(page), page.mapcount);
        if mapcount == 0 {
            return Some(false);
        }
        let unmapped = self.owners.unmap(at, mapcount, UnmapTarget::Moving(pfn));
        if unmapped.nr < mapcount {
            self.owners.moved(at, pfn, pfn, unmapped.young);
            return None;
        }
        for _ in 0..unmapped.nr {
            self.mem.page_remove_rmap(pfn);
        }
        self.mem.work.rmap_walks += unmapped.nr_entries_read;
        self.mem.work.ptes_set += u32::from(unmapped.nr);
        self.mem.work.tlb_flushes += 1;
        self.munlock_page(pfn);
        Some(unmapped.young)
    }

    pub(crate) fn do_copy_done(&mut self, from: Pfn, ok: bool, cpu: Cpu) -> Effects<'_> {
        let page = self.mem.pages.get(from.idx());
        if self.groups.has_cpu(cpu) && page.is_some_and(|page| page.has(PageFlags::MIGRATING)) {
            self.end_migration(from, ok, cpu);
        }
        self.take_effects()
    }

    fn end_migration(&mut self, from: Pfn, ok: bool, cpu: Cpu) {
        self.wake_page(from);
        let page = &mut self.mem.pages[from];
        page.clear(PageFlags::LOCKED.with(PageFlags::MIGRATING));
        let (run, frame) = (CompactRunId(page.prev.0), page.next);
        page.prev = Pfn::NONE;
        page.next = Pfn::NONE;
        let stat = isolated_stat(page);
        self.mem.stat_dec(from, stat);
        let young = self.mem.pages[frame].private != 0;
        clear_page(&mut self.mem.pages[frame], Place::Isolated);
        let event = if ok { Event::PgmigrateSuccess } else { Event::PgmigrateFail };
        self.mem.vmstat.count(event);
        let home = if ok { frame } else { from };
        if ok {
            self.move_page_identity(from, frame);
        }
        self.mem.pages[home].place = Place::Allocated;
        let nr = self.owners.moved(OwnerSlot::of(&self.mem.pages[home]), from, home, young);
        for _ in 0..nr {
            self.mem.page_add_rmap(home);
        }
        self.mem.work.rmap_walks += u32::from(nr);
        self.mem.work.ptes_set += u32::from(nr);
        if nr > 0 && self.is_page_locked(&self.mem.pages[home]) {
            self.mlock_page(home);
        }
        let unused = self.compactions.copy_ended(run, from, (!ok).then_some(frame));
        self.lruvec_add(home);
        if ok {
            self.mem.free_page(cpu, from, 0);
        }
        if let Some(frame) = unused {
            self.mem.free_page(cpu, frame, 0);
        }
        // All users of the page may have gone during the copy.
        let page = &self.mem.pages[home];
        let cached = page.flags.any(PageFlags::FILE.with(PageFlags::SWAPCACHE));
        if page.mapcount == 0 && !cached {
            self.free_user_page(home, cpu);
        } else if page.has(PageFlags::FILE) {
            O::file_page_idle(self, home, cpu);
        }
    }
}
