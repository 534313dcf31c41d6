//! The audit of a pool.
//!
//! Linux: `VM_BUG_ON` in mm/zsmalloc.c.

use super::zspage::{ObjectSpace, ZspageFullness};
use super::ZsPool;
use crate::slab::object::Object;
use crate::units::Pfn;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Ends the audit with a message unless a condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

impl ZsPool {
    /// Calls `f` for each page of the pool, with the number of its zspage.
    pub fn for_each_page(&self, mut f: impl FnMut(u32, Pfn)) {
        for (id, zspage) in (0..).zip(&self.zspages) {
            zspage.memory.as_slice().iter().for_each(|&pfn| f(id, pfn));
        }
    }

    /// The words of all handles in use, and the descriptors of all zspages.
    pub fn kernel_objects(&self) -> (Vec<Object>, Vec<Object>) {
        let words = self.handles.iter().map(|place| place.word);
        let descriptors = self.zspages.iter().map(|zspage| zspage.memory.descriptor);
        let in_use = |object: &Object| object.is_some();
        (words.filter(in_use).collect(), descriptors.filter(in_use).collect())
    }

    /// Checks lists, counts and handles.
    ///
    /// # Errors
    /// The first violation.
    pub fn audit(&self) -> Result<(), String> {
        let mut nr_pages = 0;
        for (class, its) in self.classes.iter().enumerate() {
            let (mut nr_zspages, mut nr_objects) = (0, 0);
            for fullness in ZspageFullness::WITH_ROOM.into_iter().chain([ZspageFullness::FULL]) {
                for id in self.listed(class, fullness) {
                    let it = &self.zspages[id.idx()];
                    let is_right = it.fullness(self.policy) == fullness && it.listed == fullness;
                    check!(
                        is_right,
                        "{id:?} is on {fullness:?} but {:?}",
                        it.fullness(self.policy)
                    );
                    check!(usize::from(it.class) == class, "{id:?} is on a list of another class");
                    let wanted = self.class(class).pages_per_zspage as usize;
                    check!(it.memory.as_slice().len() == wanted, "{id:?} has not {wanted} pages");
                    nr_zspages += 1;
                    nr_pages += wanted as u64;
                    let mut inuse = 0;
                    for (at, space) in it.objects.iter().enumerate() {
                        let ObjectSpace::Used(handle) = *space else { continue };
                        inuse += 1;
                        let place = self.handles[handle.0 as usize];
                        let is_here = place.zspage == id && usize::from(place.at) == at;
                        check!(is_here, "{handle:?} is in {id:?} but names {place:?}");
                    }
                    check!(inuse == it.inuse, "{id:?}: {inuse} objects, {} counted", it.inuse);
                    nr_objects += u64::from(inuse);
                }
            }
            check!(
                (nr_zspages, nr_objects) == (its.nr_zspages, its.nr_objects),
                "class {class}: {nr_zspages} zspages, {nr_objects} objects, counted {its:?}"
            );
        }
        check!(nr_pages == self.nr_pages, "{nr_pages} pages, {} counted", self.nr_pages);
        let nr: u64 = self.classes.iter().map(|its| its.nr_objects).sum();
        check!(nr == self.nr_objects(), "{nr} objects, {} handles", self.nr_objects());
        Ok(())
    }
}
