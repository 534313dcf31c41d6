//! Compaction of a pool: moves objects out of almost empty zspages, so that their pages are free.
//!
//! Linux: `zs_compact`, `__zs_compact`, `migrate_zspage`, `zs_can_compact`, `zs_shrinker_count`
//! (mm/zsmalloc.c, 6.1). The source is the first zspage of the emptiest list, the destination the
//! first of the fullest with room; each is taken off its list, and put back when it is done with.
//!
//! Invariant: compaction changes no handle and no number of objects.

use super::zspage::{ObjectSpace, ZspageFullness, ZspageId};
use super::{ZsPool, ZspageMemory};
use alloc::vec::Vec;

impl ZsPool {
    /// Pages of a class that compaction could free.
    fn class_freeable(&self, class: usize) -> u64 {
        let (size, its) = (self.class(class), &self.classes[class]);
        let nr_places = its.nr_zspages * u64::from(size.objs_per_zspage);
        let nr_free = nr_places.saturating_sub(its.nr_objects);
        nr_free / u64::from(size.objs_per_zspage) * u64::from(size.pages_per_zspage)
    }

    /// Pages that compaction could free.
    pub fn freeable(&self) -> u64 {
        (0..self.classes.len()).map(|class| self.class_freeable(class)).sum()
    }

    /// Compacts every class, the largest objects first. Appends the memory of zspages that are empty
    /// to `freed`; returns the bytes of the objects that moved.
    pub fn compact(&mut self, freed: &mut Vec<ZspageMemory>) -> u64 {
        (0..self.classes.len()).map(|class| self.compact_class(class, freed)).sum()
    }

    fn compact_class(&mut self, class: usize, freed: &mut Vec<ZspageMemory>) -> u64 {
        let mut moved = 0;
        let emptiest = || ZspageFullness::WITH_ROOM.into_iter();
        while let Some(source) = self.take_first(class, emptiest()) {
            if self.class_freeable(class) == 0 {
                self.list(source);
                return moved;
            }
            let is_stuck = loop {
                let Some(to) = self.take_first(class, emptiest().rev()) else { break true };
                moved += self.move_objects(source, to) * u64::from(self.class(class).size);
                self.list(to);
                if self.zspages[source.idx()].inuse == 0 {
                    break false;
                }
            };
            self.list(source);
            if self.zspages[source.idx()].inuse == 0 {
                freed.push(self.remove_zspage(source));
            }
            if is_stuck {
                return moved;
            }
        }
        moved
    }

    /// Takes the first zspage of the first list that has one off that list.
    fn take_first(
        &mut self,
        class: usize,
        mut lists: impl Iterator<Item = ZspageFullness>,
    ) -> Option<ZspageId> {
        let first = lists.find_map(|list| self.classes[class].first(list))?;
        self.unlist(first);
        Some(first)
    }

    /// Moves objects until the source is empty or the destination full. Returns their number.
    fn move_objects(&mut self, from: ZspageId, to: ZspageId) -> u64 {
        let mut nr_moved = 0;
        for at in 0..self.zspages[from.idx()].objects.len() {
            let ObjectSpace::Used(handle) = self.zspages[from.idx()].objects[at] else { continue };
            if self.zspages[to.idx()].fullness(self.policy) == ZspageFullness::FULL {
                break;
            }
            let new = self.zspages[to.idx()].take_object(handle);
            self.zspages[from.idx()].free_object(at as u16);
            let place = &mut self.handles[handle.0 as usize];
            (place.zspage, place.at) = (to, new);
            nr_moved += 1;
        }
        nr_moved
    }
}
