//! One zspage, and the lists of a class's zspages by fullness.
//!
//! Linux: `struct zspage`, `get_fullness_group`, `insert_zspage`, `remove_zspage`, `obj_malloc`,
//! `obj_free` (mm/zsmalloc.c, 6.1). Free places form a list through the zspage, and the place that
//! was freed last is used first.
//!
//! Invariant: `inuse` places hold a handle; the others are on the list that begins at `first_free`.

use super::{ZsHandle, ZsPool, ZspageMemory};
use crate::config::ZsmallocPolicy;
use crate::units::digest::State;
use alloc::vec::Vec;

/// Names a zspage of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(super) struct ZspageId(pub u32);

impl ZspageId {
    pub const NONE: ZspageId = ZspageId(u32::MAX);

    pub fn idx(self) -> usize {
        self.0 as usize
    }

    fn real(self) -> Option<ZspageId> {
        (self != ZspageId::NONE).then_some(self)
    }
}

/// How full a zspage is, as far as lists tell (Linux `enum fullness_group`): from 0, an empty one,
/// whose pages are freed at once, to [`Self::FULL`]. Linux 6.1 knows two between: up to three
/// quarters of the places, and more. Since 6.3 there is one for each tenth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(super) struct ZspageFullness(u8);

impl ZspageFullness {
    pub const COUNT: usize = 12;
    pub const EMPTY: ZspageFullness = ZspageFullness(0);
    pub const FULL: ZspageFullness = ZspageFullness(11);
    /// Those between, by rising fullness.
    pub const WITH_ROOM: [ZspageFullness; 10] = {
        let mut all = [ZspageFullness::EMPTY; 10];
        let mut at = 0;
        while at < all.len() {
            all[at] = ZspageFullness(at as u8 + 1);
            at += 1;
        }
        all
    };

    pub fn of(inuse: u16, places: usize, policy: ZsmallocPolicy) -> ZspageFullness {
        let inuse = usize::from(inuse);
        if inuse == 0 {
            return ZspageFullness::EMPTY;
        } else if inuse == places {
            return ZspageFullness::FULL;
        }
        ZspageFullness(match policy {
            ZsmallocPolicy::Linux61 => 1 + u8::from(inuse > 3 * places / 4),
            ZsmallocPolicy::Linux612 => 1 + (100 * inuse / places / 10) as u8,
        })
    }

    pub fn idx(self) -> usize {
        self.0.into()
    }
}

/// A place for an object: the handle of its object, or the next free place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(super) enum ObjectSpace {
    Used(ZsHandle),
    Free(u16),
}

#[derive(Clone, Debug, State)]
pub(super) struct Zspage {
    pub class: u16,
    pub inuse: u16,
    first_free: u16,
    pub memory: ZspageMemory,
    pub objects: Vec<ObjectSpace>,
    /// The list that the zspage is on; [`ZspageFullness::EMPTY`]: none.
    pub listed: ZspageFullness,
    prev: ZspageId,
    next: ZspageId,
}

impl Zspage {
    pub fn new(class: u16, memory: ZspageMemory, places: u16) -> Zspage {
        Zspage {
            class,
            inuse: 0,
            first_free: 0,
            memory,
            objects: (1..=places).map(ObjectSpace::Free).collect(),
            listed: ZspageFullness::EMPTY,
            prev: ZspageId::NONE,
            next: ZspageId::NONE,
        }
    }

    pub fn fullness(&self, policy: ZsmallocPolicy) -> ZspageFullness {
        ZspageFullness::of(self.inuse, self.objects.len(), policy)
    }

    /// Takes the first free place for an object. There is one.
    pub fn take_object(&mut self, handle: ZsHandle) -> u16 {
        let at = self.first_free;
        let place = &mut self.objects[usize::from(at)];
        if let ObjectSpace::Free(next) = *place {
            self.first_free = next;
        }
        *place = ObjectSpace::Used(handle);
        self.inuse += 1;
        at
    }

    pub fn free_object(&mut self, at: u16) {
        self.objects[usize::from(at)] = ObjectSpace::Free(self.first_free);
        self.first_free = at;
        self.inuse -= 1;
    }
}

/// The zspages of a class.
#[derive(Clone, Debug, State)]
pub(super) struct ClassZspages {
    /// First zspage of each fullness.
    heads: [ZspageId; ZspageFullness::COUNT],
    pub nr_zspages: u64,
    pub nr_objects: u64,
}

impl Default for ClassZspages {
    fn default() -> ClassZspages {
        ClassZspages {
            heads: [ZspageId::NONE; ZspageFullness::COUNT],
            nr_zspages: 0,
            nr_objects: 0,
        }
    }
}

impl ClassZspages {
    pub fn first(&self, fullness: ZspageFullness) -> Option<ZspageId> {
        self.heads[fullness.idx()].real()
    }
}

impl ZsPool {
    /// Zspages of a list, from its head.
    pub(super) fn listed(
        &self,
        class: usize,
        fullness: ZspageFullness,
    ) -> impl Iterator<Item = ZspageId> + '_ {
        let first = self.classes[class].first(fullness);
        core::iter::successors(first, |id| self.zspages[id.idx()].next.real())
    }

    /// Puts a zspage on the list of its fullness: at the head, or (6.1) behind a head that is fuller.
    pub(super) fn list(&mut self, id: ZspageId) {
        let it = &self.zspages[id.idx()];
        let (class, fullness, inuse) = (usize::from(it.class), it.fullness(self.policy), it.inuse);
        if fullness == ZspageFullness::EMPTY {
            return;
        }
        let head = self.classes[class].heads[fullness.idx()];
        let is_behind = self.policy == ZsmallocPolicy::Linux61
            && head.real().is_some_and(|head| inuse < self.zspages[head.idx()].inuse);
        let (prev, next) = match is_behind {
            true => (head, self.zspages[head.idx()].next),
            false => (ZspageId::NONE, head),
        };
        match is_behind {
            true => self.zspages[head.idx()].next = id,
            false => self.classes[class].heads[fullness.idx()] = id,
        }
        if next != ZspageId::NONE {
            self.zspages[next.idx()].prev = id;
        }
        let it = &mut self.zspages[id.idx()];
        (it.listed, it.prev, it.next) = (fullness, prev, next);
    }

    /// Takes a zspage off its list, if it is on one.
    pub(super) fn unlist(&mut self, id: ZspageId) {
        let it = &mut self.zspages[id.idx()];
        let (class, prev, next) = (usize::from(it.class), it.prev, it.next);
        let listed = core::mem::replace(&mut it.listed, ZspageFullness::EMPTY);
        (it.prev, it.next) = (ZspageId::NONE, ZspageId::NONE);
        if listed == ZspageFullness::EMPTY {
            return;
        }
        match prev.real() {
            Some(prev) => self.zspages[prev.idx()].next = next,
            None => self.classes[class].heads[listed.idx()] = next,
        }
        if next != ZspageId::NONE {
            self.zspages[next.idx()].prev = prev;
        }
    }
}
