//! One zspage, and the lists of a class's zspages by fullness.
//!
//! Linux: `struct zspage`, `get_fullness_group`, `insert_zspage`, `remove_zspage`, `obj_malloc`,
//! `obj_free` (mm/zsmalloc.c, 6.1). Free places form a list through the zspage, and the place that
//! was freed last is used first.
//!
//! Invariant: `inuse` places hold a handle; the others are on the list that begins at `first_free`.

use super::{ZsHandle, ZsPool, ZspagePages};
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

/// ZspageFullness of a zspage (Linux `enum fullness_group`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
#[repr(u8)]
pub(super) enum ZspageFullness {
    /// No object: its pages are freed at once.
    Empty,
    /// Up to three quarters of its places.
    AlmostEmpty,
    /// More, and at least one place is free.
    AlmostFull,
    Full,
}

impl ZspageFullness {
    pub const COUNT: usize = 4;
    pub const ALL: [ZspageFullness; ZspageFullness::COUNT] = [
        ZspageFullness::Empty,
        ZspageFullness::AlmostEmpty,
        ZspageFullness::AlmostFull,
        ZspageFullness::Full,
    ];

    pub fn of(inuse: u16, places: usize) -> ZspageFullness {
        let inuse = usize::from(inuse);
        if inuse == 0 {
            ZspageFullness::Empty
        } else if inuse == places {
            ZspageFullness::Full
        } else if inuse <= 3 * places / 4 {
            ZspageFullness::AlmostEmpty
        } else {
            ZspageFullness::AlmostFull
        }
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
    pub pages: ZspagePages,
    pub objects: Vec<ObjectSpace>,
    /// The list that the zspage is on; [`ZspageFullness::Empty`]: none.
    pub listed: ZspageFullness,
    prev: ZspageId,
    next: ZspageId,
}

impl Zspage {
    pub fn new(class: u16, pages: ZspagePages, places: u16) -> Zspage {
        Zspage {
            class,
            inuse: 0,
            first_free: 0,
            pages,
            objects: (1..=places).map(ObjectSpace::Free).collect(),
            listed: ZspageFullness::Empty,
            prev: ZspageId::NONE,
            next: ZspageId::NONE,
        }
    }

    pub fn fullness(&self) -> ZspageFullness {
        ZspageFullness::of(self.inuse, self.objects.len())
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
        self.heads[fullness as usize].real()
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

    /// Puts a zspage on the list of its fullness: at the head, or behind a head that is fuller.
    pub(super) fn list(&mut self, id: ZspageId) {
        let it = &self.zspages[id.idx()];
        let (class, fullness, inuse) = (usize::from(it.class), it.fullness(), it.inuse);
        if fullness == ZspageFullness::Empty {
            return;
        }
        let head = self.classes[class].heads[fullness as usize];
        let is_behind = head.real().is_some_and(|head| inuse < self.zspages[head.idx()].inuse);
        let (prev, next) = match is_behind {
            true => (head, self.zspages[head.idx()].next),
            false => (ZspageId::NONE, head),
        };
        match is_behind {
            true => self.zspages[head.idx()].next = id,
            false => self.classes[class].heads[fullness as usize] = id,
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
        let listed = core::mem::replace(&mut it.listed, ZspageFullness::Empty);
        (it.prev, it.next) = (ZspageId::NONE, ZspageId::NONE);
        if listed == ZspageFullness::Empty {
            return;
        }
        match prev.real() {
            Some(prev) => self.zspages[prev.idx()].next = next,
            None => self.classes[class].heads[listed as usize] = next,
        }
        if next != ZspageId::NONE {
            self.zspages[next.idx()].prev = prev;
        }
    }
}
