//! zsmalloc: a pool of pages for objects smaller than a page.
//!
//! Linux: mm/zsmalloc.c (6.1). An object lies in a *zspage*, one to four pages that need not be
//! adjacent, together with objects of its size class only. The zspages of a class are in groups by
//! fullness ([`ZspageFullness`]); an object goes into the fullest with room. A *handle* names an
//! object, because compaction moves objects between zspages ([`compact`]).
//!
//! The pool holds no bytes and takes no pages: the caller brings the pages of a new zspage and gets
//! those of an empty one back (`swap::pool_pages`). zram stores its objects here, and
//! another user of compressed pages can.
//!
//! Difference from Linux: a handle is a word in a slab there (8 bytes an object) and a descriptor of
//! 56 bytes a zspage; here neither takes memory of the machine. Effect: the pool is smaller by 0.5 %
//! or less.
//!
//! Invariant: every zspage that is not empty is on the list of its class and fullness; `nr_pages` is
//! the number of their pages; each handle in use names a place that names the handle.

mod audit;
pub mod compact;
pub mod size_class;
mod zspage;

use crate::config::ZsmallocPolicy;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::Pfn;
use alloc::vec::Vec;
use size_class::{SizeClass, SizeClasses, ZS_MAX_PAGES_PER_ZSPAGE};
use zspage::{ClassZspages, Zspage, ZspageFullness, ZspageId};

/// Names an object of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct ZsHandle(u32);

/// Pages of one zspage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct ZspagePages {
    pages: [Pfn; ZS_MAX_PAGES_PER_ZSPAGE],
    nr: u8,
}

impl ZspagePages {
    pub const NONE: ZspagePages =
        ZspagePages { pages: [Pfn::NONE; ZS_MAX_PAGES_PER_ZSPAGE], nr: 0 };

    pub fn push(&mut self, pfn: Pfn) {
        self.pages[usize::from(self.nr)] = pfn;
        self.nr += 1;
    }

    pub fn as_slice(&self) -> &[Pfn] {
        &self.pages[..self.nr.into()]
    }
}

/// Place of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
struct ObjectPlace {
    zspage: ZspageId,
    at: u16,
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

    /// Number of pages that the caller must bring to store an object of `size` bytes.
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

    /// Stores an object of `size` bytes (Linux `zs_malloc`). `pages` are as many as
    /// [`Self::pages_wanted`] says.
    pub fn insert(&mut self, size: u32, pages: ZspagePages) -> ZsHandle {
        let class = self.sizes.class_of(size);
        let handle = self.take_handle();
        let zspage = match self.zspage_with_room(class) {
            Some(zspage) => zspage,
            None => self.add_zspage(class, pages),
        };
        self.put_object(zspage, handle);
        self.fix_fullness(zspage);
        handle
    }

    /// Frees an object. Returns the pages of its zspage if that is now empty (Linux `zs_free`).
    pub fn remove(&mut self, handle: ZsHandle) -> ZspagePages {
        let ObjectPlace { zspage, at } = self.handles[handle.0 as usize];
        self.unused_handles.push(handle);
        let it = &mut self.zspages[zspage.idx()];
        it.free_object(at);
        self.classes[usize::from(it.class)].nr_objects -= 1;
        match self.fix_fullness(zspage) {
            ZspageFullness::EMPTY => self.remove_zspage(zspage),
            _ => ZspagePages::NONE,
        }
    }

    /// Replaces a page of a zspage by another, to which its bytes were copied (Linux
    /// `zs_page_migrate`).
    pub fn replace_page(&mut self, zspage: u32, from: Pfn, to: Pfn) {
        let pages = &mut self.zspages[zspage as usize].pages.pages;
        pages.iter_mut().filter(|page| **page == from).for_each(|page| *page = to);
    }

    fn take_handle(&mut self) -> ZsHandle {
        self.unused_handles.pop().unwrap_or_else(|| {
            self.handles.push(ObjectPlace { zspage: ZspageId::NONE, at: 0 });
            ZsHandle(self.handles.len() as u32 - 1)
        })
    }

    fn add_zspage(&mut self, class: usize, pages: ZspagePages) -> ZspageId {
        let nr_objects = self.class(class).objs_per_zspage;
        let it = Zspage::new(class as u16, pages, nr_objects as u16);
        self.nr_pages += u64::from(pages.nr);
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

    /// Forgets an empty zspage, which is on no list. Returns its pages.
    fn remove_zspage(&mut self, id: ZspageId) -> ZspagePages {
        let it = &mut self.zspages[id.idx()];
        let pages = core::mem::replace(&mut it.pages, ZspagePages::NONE);
        it.objects = Vec::new();
        self.classes[usize::from(it.class)].nr_zspages -= 1;
        self.nr_pages -= u64::from(pages.nr);
        self.unused_zspages.push(id);
        pages
    }

    /// Puts an object into a zspage with room (Linux `obj_malloc`). The zspage's list is not changed.
    fn put_object(&mut self, zspage: ZspageId, handle: ZsHandle) {
        let it = &mut self.zspages[zspage.idx()];
        let at = it.take_object(handle);
        self.classes[usize::from(it.class)].nr_objects += 1;
        self.handles[handle.0 as usize] = ObjectPlace { zspage, at };
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
