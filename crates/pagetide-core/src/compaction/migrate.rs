//! Moving a page to another frame.
//!
//! Linux: `migrate_pages`, `unmap_and_move`, `migrate_folio_move`, `remove_migration_ptes`
//! (mm/migrate.c, 6.1). A page's entries are replaced by migration entries, the world copies its bytes
//! ([`Effect::CopyPage`]), and when it says that it has ([`Manager::copy_done`]) the page takes over
//! its new frame: owner, flags, charge, slots in the page cache or in swap, entries. If the copy
//! failed, everything is as it was. A task that touches the page meanwhile waits for it.
//!
//! What cannot be moved at once fails: pages locked while they are read, pages under writeback, pinned pages, dirty
//! blocks of a file system (`PageFlags::METADATA`).
//!
//! Differs from Linux: the journal holds a block from its first change until it is written, also where ext4 has
//! let go of it in between; if one of several entries of a page was young, all are young afterwards; there
//! is one attempt to move a page, where Linux tries up to ten times to get a lock.
//!
//! Invariant: a page on its way is [`Place::Isolated`], MIGRATING and LOCKED, has no present entry, its
//! new frame in `next`, its run in `prev`; the new frame holds nothing but, in `private`, whether an
//! entry was young.

use super::migrate_scanner::isolated_stat;
use super::run::RunId;
use super::CompactControl;
use crate::buddy::clear_page;
use crate::effect::{Effect, Effects};
use crate::manager::Manager;
use crate::owners::Owners;
use crate::owners::{Gone, Slot};
use crate::page::{PageFlags, Place};
use crate::planted::Defect;
use crate::units::{Cpu, Pfn, SwapSlot};
use crate::vmstat::Event;

impl<O: Owners> Manager<O> {
    /// Begins to move what a run has isolated, as far as there are frames to move it to.
    pub(super) fn migrate_pages(&mut self, id: RunId, run: &mut CompactControl) {
        let mut pages = core::mem::take(&mut run.migratepages);
        // As many frames as the batch has pages are looked for each time that there is none left.
        let wanted = pages.len() as u32;
        if !self.era.migrates_oldest_first {
            pages.reverse();
        }
        for pfn in pages.drain(..) {
            if run.out_of_frames {
                self.putback_isolated(pfn);
                continue;
            }
            if !self.is_migratable(pfn) {
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
            if !self.begin_migration(id, pfn, frame) {
                run.freepages.push_front(frame);
                self.putback_isolated(pfn);
                run.nr_failed += 1;
                self.mem.vmstat.count(Event::PgmigrateFail);
                continue;
            }
            if self.is_planted(Defect::SkippedCopy) {
                self.effects.pop();
                self.end_migration(pfn, true, Cpu(0));
                continue;
            }
            run.in_flight.push((pfn, frame));
        }
        run.migratepages = pages;
    }

    /// Whether an isolated page can be moved now. Linux waits for locks, and for writes in a synchronous
    /// run, unless a task compacts for itself; here who cannot have the page at once goes without.
    fn is_migratable(&self, pfn: Pfn) -> bool {
        let busy = PageFlags::LOCKED
            .with(PageFlags::WRITEBACK)
            .with(PageFlags::PINNED)
            .with(PageFlags::BATCHED);
        let page = &self.mem.pages[pfn.idx()];
        // `buffer_migrate_folio_norefs`: the journal has a reference to each buffer that is not written yet.
        let held = page.has(PageFlags::METADATA.with(PageFlags::DIRTY));
        !held && !page.flags.any(busy)
    }

    /// Takes the page from its owner and asks the world to copy it. `false`: somebody has pinned it, and
    /// nothing has changed.
    fn begin_migration(&mut self, id: RunId, pfn: Pfn, frame: Pfn) -> bool {
        debug_assert_eq!(self.mem.pages[pfn.idx()].place, Place::Isolated);
        let Some(young) = self.unmap_for_migration(pfn) else { return false };
        let page = &mut self.mem.pages[pfn.idx()];
        page.set(PageFlags::LOCKED.with(PageFlags::MIGRATING));
        page.next = frame;
        page.prev = Pfn(id.0);
        self.mem.pages[frame.idx()].private = u32::from(young);
        self.mem.work.bytes_copied += self.mem.page_size.bytes() as u32;
        self.mem.work.pages_migrated += 1;
        self.effects.push(Effect::CopyPage { from: pfn, to: frame });
        true
    }

    /// Has the owner say that the page is on its way. Whether an entry was young; `None` if the page is
    /// pinned.
    fn unmap_for_migration(&mut self, pfn: Pfn) -> Option<bool> {
        let page = &self.mem.pages[pfn.idx()];
        let (at, mapcount) = (Slot::of(page), page.mapcount);
        if mapcount == 0 {
            return Some(false);
        }
        let unmapped = self.owners.unmap(at, mapcount, Gone::Moving(pfn));
        if unmapped.nr < mapcount {
            self.owners.moved(at, pfn, pfn, unmapped.young);
            return None;
        }
        for _ in 0..unmapped.nr {
            self.page_remove_rmap(pfn);
        }
        self.mem.work.rmap_walks += unmapped.nr_looked_at;
        self.mem.work.ptes_set += u32::from(unmapped.nr);
        self.mem.work.tlb_flushes += 1;
        self.munlock_page(pfn);
        Some(unmapped.young)
    }

    /// The world has copied a frame ([`Effect::CopyPage`]), or could not: the page lives in its new
    /// frame now, or stays where it was. A frame that is not on its way is passed over.
    pub fn copy_done(&mut self, from: Pfn, ok: bool, cpu: Cpu) -> Effects<'_> {
        let page = self.mem.pages.get(from.idx());
        if self.has_cpu(cpu) && page.is_some_and(|page| page.has(PageFlags::MIGRATING)) {
            self.end_migration(from, ok, cpu);
        }
        self.hand_out()
    }

    fn end_migration(&mut self, from: Pfn, ok: bool, cpu: Cpu) {
        self.wake_page(from);
        let page = &mut self.mem.pages[from.idx()];
        page.clear(PageFlags::LOCKED.with(PageFlags::MIGRATING));
        let (run, frame) = (RunId(page.prev.0), page.next);
        page.prev = Pfn::NONE;
        page.next = Pfn::NONE;
        let stat = isolated_stat(page);
        self.stat_dec(from, stat);
        let young = self.mem.pages[frame.idx()].private != 0;
        clear_page(&mut self.mem.pages[frame.idx()], Place::Isolated);
        let event = if ok { Event::PgmigrateSuccess } else { Event::PgmigrateFail };
        self.mem.vmstat.count(event);
        let home = if ok { frame } else { from };
        if ok {
            self.take_over(from, frame);
        }
        self.mem.pages[home.idx()].place = Place::Allocated;
        let nr = self.owners.moved(Slot::of(&self.mem.pages[home.idx()]), from, home, young);
        for _ in 0..nr {
            self.page_add_rmap(home);
        }
        self.mem.work.rmap_walks += u32::from(nr);
        self.mem.work.ptes_set += u32::from(nr);
        if nr > 0 && self.is_page_locked(&self.mem.pages[home.idx()]) {
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
        // Everybody who had it has gone meanwhile.
        let page = &self.mem.pages[home.idx()];
        let cached = page.flags.any(PageFlags::FILE.with(PageFlags::SWAPCACHE));
        if page.mapcount == 0 && !cached {
            self.free_user_page(home, cpu);
        } else if page.has(PageFlags::FILE) {
            O::file_page_idle(self, home, cpu);
        }
    }

    /// Gives the page in `from` the frame `to`: everything that says where it is.
    fn take_over(&mut self, from: Pfn, to: Pfn) {
        let old = self.mem.pages[from.idx()].clone();
        let page = &mut self.mem.pages[to.idx()];
        page.mapping = old.mapping;
        page.index = old.index;
        page.private = old.private;
        page.memcg = old.memcg;
        page.flags = old.flags;
        page.mark = old.mark;
        page.place = Place::Isolated;
        clear_page(&mut self.mem.pages[from.idx()], Place::Allocated);
        if old.has(PageFlags::SWAPCACHE) {
            self.swap.replace_cached(SwapSlot(old.private), to);
        }
        self.mem.work.cache_ops += 1;
    }
}
