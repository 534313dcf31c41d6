//! zsmalloc: a pool of pages for objects smaller than a page.
//!
//! Linux: mm/zsmalloc.c (6.1). An object lies in a *zspage*, one to four pages that need not be
//! adjacent, together with objects of its size class only. The zspages of a class are in groups by
//! fullness ([`ZspageFullness`]); an object goes into the fullest with room. A *handle* names an
//! object, because compaction moves objects between zspages ([`compact`]).
//!
//! The pool holds no bytes and takes no memory: the caller brings the pages and the descriptor of a
//! new zspage and the word of a new handle, and gets them back when they are not needed
//! (`swap::pool_pages`). zram stores its objects here, and another user of compressed pages can.
//!
//! Invariant: every zspage that is not empty is on the list of its class and fullness; `nr_pages` is
//! the number of their pages; each handle in use names a place that names the handle.

mod audit;
pub mod compact;
pub mod size_class;
mod zspage;

use crate::config::ZsmallocPolicy;
use crate::slab::object::Object;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::Pfn;
use alloc::vec::Vec;
use size_class::{SizeClass, SizeClasses, ZS_MAX_PAGES_PER_ZSPAGE};
use zspage::{ClassZspages, Zspage, ZspageFullness, ZspageId};

/// Names an object of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct ZsHandle(u32);

/// Pages of one zspage, and the kernel object that describes it (Linux `struct zspage`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct ZspageMemory {
    pages: [Pfn; ZS_MAX_PAGES_PER_ZSPAGE],
    nr: u8,
    pub descriptor: Object,
}

impl ZspageMemory {
    pub const NONE: ZspageMemory = ZspageMemory {
        pages: [Pfn::NONE; ZS_MAX_PAGES_PER_ZSPAGE],
        nr: 0,
        descriptor: Object::NONE,
    };

    pub fn push(&mut self, pfn: Pfn) {
        self.pages[usize::from(self.nr)] = pfn;
        self.nr += 1;
    }

    pub fn as_slice(&self) -> &[Pfn] {
        &self.pages[..self.nr.into()]
    }
}

/// Place of an object, which its handle names. Linux writes it into a word of a slab, `word`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
struct ObjectPlace {
    zspage: ZspageId,
    at: u16,
    word: Object,
}

/// A pool.
#[derive(Clone, Debug, State)]
pub(crate) struct ZsPool {
    #[state(skip)] // fixed
    policy: ZsmallocPolicy,
    #[state(skip)] // follows from the page size
    sizes: SizeClasses,
    /// The zspages of each class, in the order of the classes.
    classes: Vec<ClassZspages>,
    zspages: Vec<Zspage>,
    unused_zspages: Vec<ZspageId>,
    /// Place of the object of each handle.
    handles: Vec<ObjectPlace>,
    unused_handles: Vec<ZsHandle>,
    nr_pages: u64,
}

impl ZsPool {
    pub fn new(page_size: PageSize, policy: ZsmallocPolicy) -> ZsPool {
        let sizes = SizeClasses::new(page_size, policy);
        let classes = sizes.all().iter().map(|_| ClassZspages::default()).collect();
        ZsPool {
            policy,
            sizes,
            classes,
            zspages: Vec::new(),
            unused_zspages: Vec::new(),
            handles: Vec::new(),
            unused_handles: Vec::new(),
            nr_pages: 0,
        }
    }

    pub fn sizes(&self) -> &SizeClasses {
        &self.sizes
    }

    /// Pages of all zspages (Linux `zs_get_total_pages`).
    pub fn nr_pages(&self) -> u64 {
        self.nr_pages
    }

    /// Number of objects.
    pub fn nr_objects(&self) -> u64 {
        (self.handles.len() - self.unused_handles.len()) as u64
    }

    fn class(&self, class: usize) -> SizeClass {
        self.sizes.all()[class]
    }

    /// The zspage that takes the next object of a class (Linux `find_get_zspage`).
    fn zspage_with_room(&self, class: usize) -> Option<ZspageId> {
        let lists = &self.classes[class];
        ZspageFullness::WITH_ROOM.into_iter().rev().find_map(|fullness| lists.first(fullness))
    }

    /// Number of pages that the caller must bring to store an object of `size` bytes. If there are
    /// any, it also brings a descriptor.
    pub fn pages_wanted(&self, size: u32) -> u32 {
        let class = self.sizes.class_of(size);
        match self.zspage_with_room(class) {
            Some(_) => 0,
            None => self.class(class).pages_per_zspage,
        }
    }

    /// The number that the next new zspage gets.
    pub fn next_zspage(&self) -> u32 {
        self.unused_zspages.last().map_or(self.zspages.len() as u32, |zspage| zspage.0)
    }

    /// Stores an object of `size` bytes (Linux `zs_malloc`). `memory` has as many pages as
    /// [`Self::pages_wanted`] says.
    pub fn insert(&mut self, size: u32, word: Object, memory: ZspageMemory) -> ZsHandle {
        let class = self.sizes.class_of(size);
        let handle = self.take_handle(word);
        let zspage = match self.zspage_with_room(class) {
            Some(zspage) => zspage,
            None => self.add_zspage(class, memory),
        };
        self.put_object(zspage, handle);
        self.fix_fullness(zspage);
        handle
    }

    /// Frees an object. Returns the word of its handle, and the memory of its zspage if that is now
    /// empty (Linux `zs_free`).
    pub fn remove(&mut self, handle: ZsHandle) -> (Object, ZspageMemory) {
        let nothing = ObjectPlace { word: Object::NONE, ..self.handles[handle.0 as usize] };
        let ObjectPlace { zspage, at, word } =
            core::mem::replace(&mut self.handles[handle.0 as usize], nothing);
        self.unused_handles.push(handle);
        let it = &mut self.zspages[zspage.idx()];
        it.free_object(at);
        self.classes[usize::from(it.class)].nr_objects -= 1;
        let freed = match self.fix_fullness(zspage) {
            ZspageFullness::EMPTY => self.remove_zspage(zspage),
            _ => ZspageMemory::NONE,
        };
        (word, freed)
    }

    /// Replaces a page of a zspage by another, to which its bytes were copied (Linux
    /// `zs_page_migrate`).
    pub fn replace_page(&mut self, zspage: u32, from: Pfn, to: Pfn) {
        let pages = &mut self.zspages[zspage as usize].memory.pages;
        pages.iter_mut().filter(|page| **page == from).for_each(|page| *page = to);
    }

    fn take_handle(&mut self, word: Object) -> ZsHandle {
        let place = ObjectPlace { zspage: ZspageId::NONE, at: 0, word };
        let handle = self.unused_handles.pop().unwrap_or_else(|| {
            self.handles.push(place);
            ZsHandle(self.handles.len() as u32 - 1)
        });
        self.handles[handle.0 as usize] = place;
        handle
    }

    fn add_zspage(&mut self, class: usize, memory: ZspageMemory) -> ZspageId {
        let nr_objects = self.class(class).objs_per_zspage;
        let it = Zspage::new(class as u16, memory, nr_objects as u16);
        self.nr_pages += u64::from(memory.nr);
        self.classes[class].nr_zspages += 1;
        match self.unused_zspages.pop() {
            Some(id) => {
                self.zspages[id.idx()] = it;
                id
            }
            None => {
                self.zspages.push(it);
                ZspageId(self.zspages.len() as u32 - 1)
            }
        }
    }

    /// Forgets an empty zspage, which is on no list. Returns its memory.
    fn remove_zspage(&mut self, id: ZspageId) -> ZspageMemory {
        let it = &mut self.zspages[id.idx()];
        let memory = core::mem::replace(&mut it.memory, ZspageMemory::NONE);
        it.objects = Vec::new();
        self.classes[usize::from(it.class)].nr_zspages -= 1;
        self.nr_pages -= u64::from(memory.nr);
        self.unused_zspages.push(id);
        memory
    }

    /// Puts an object into a zspage with room (Linux `obj_malloc`). The zspage's list is not changed.
    fn put_object(&mut self, zspage: ZspageId, handle: ZsHandle) {
        let it = &mut self.zspages[zspage.idx()];
        let at = it.take_object(handle);
        self.classes[usize::from(it.class)].nr_objects += 1;
        let place = &mut self.handles[handle.0 as usize];
        (place.zspage, place.at) = (zspage, at);
    }

    /// Moves a zspage to the list of its fullness, if that has changed (Linux
    /// `fix_fullness_group`). An empty zspage is on no list.
    fn fix_fullness(&mut self, id: ZspageId) -> ZspageFullness {
        let it = &self.zspages[id.idx()];
        let (listed, now) = (it.listed, it.fullness(self.policy));
        if listed != now {
            self.unlist(id);
            self.list(id);
        }
        now
    }
}

#[cfg(test)]
mod tests;
