//! Size classes of zsmalloc: which sizes share a list, and how many objects a zspage has.
//!
//! Linux: `zs_create_pool`, `get_pages_per_zspage`, `get_size_class_index`, `can_merge`
//! (mm/zsmalloc.c, 6.1; `ZS_MAX_ZSPAGE_ORDER` 2). A zspage is 1 to 4 pages, as many as waste the
//! smallest percentage. Neighbouring classes with equal zspages and equal numbers of objects are one
//! class, of the largest size. From Linux 6.3 on a zspage has up to 8 pages.
//!
//! Invariant: the classes are in the order of falling sizes; each size has one class.

use crate::config::ZsmallocPolicy;
use crate::units::page_size::PageSize;
use alloc::vec::Vec;

/// Bytes before each object that say to which handle it belongs (Linux `ZS_HANDLE_SIZE`).
pub(super) const ZS_HANDLE_SIZE: u32 = 8;

/// Smallest object (Linux `ZS_MIN_ALLOC_SIZE`).
const ZS_MIN_ALLOC_SIZE: u32 = 32;

/// Most pages of a zspage (Linux `ZS_MAX_PAGES_PER_ZSPAGE`), of any kernel.
pub(super) const ZS_MAX_PAGES_PER_ZSPAGE: usize = 8;

/// The same for a kernel.
const fn max_pages(policy: ZsmallocPolicy) -> u32 {
    match policy {
        ZsmallocPolicy::Linux61 => 4,
        ZsmallocPolicy::Linux612 => ZS_MAX_PAGES_PER_ZSPAGE as u32,
    }
}

/// log2 of the number of classes before merging (Linux `CLASS_BITS`).
const CLASS_BITS: u32 = 8;

/// One class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Bytes of its objects, with the handle.
    pub size: u32,
    /// Pages of its zspages.
    pub pages_per_zspage: u32,
    /// Objects of its zspages.
    pub objs_per_zspage: u32,
}

impl SizeClass {
    fn of(size: u32, page: u32, max_pages: u32) -> SizeClass {
        let pages_per_zspage = pages_per_zspage(size, page, max_pages);
        let objs_per_zspage = pages_per_zspage * page / size;
        SizeClass { size, pages_per_zspage, objs_per_zspage }
    }

    /// Whether a zspage is one page with one object (Linux `ZsHugePage`).
    const fn is_huge(&self) -> bool {
        self.pages_per_zspage == 1 && self.objs_per_zspage == 1
    }
}

/// Number of pages of which the largest percentage is used; the smaller number of two equals.
fn pages_per_zspage(size: u32, page: u32, max_pages: u32) -> u32 {
    let used = |nr: u32| (nr * page - nr * page % size) * 100 / (nr * page);
    let better = |best: u32, nr: u32| if used(nr) > used(best) { nr } else { best };
    (2..=max_pages).fold(1, better)
}

/// The classes of a page size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeClasses {
    /// By falling size.
    classes: Vec<SizeClass>,
    /// Position in `classes` of each step of sizes, from the smallest size.
    of_step: Vec<u16>,
    step: u32,
    /// Objects of this size or more take a page (Linux `huge_class_size`).
    huge_class_size: u32,
}

impl SizeClasses {
    /// The classes of a machine with pages of this size.
    pub fn new(page_size: PageSize, policy: ZsmallocPolicy) -> SizeClasses {
        let max_pages = max_pages(policy);
        let page = page_size.bytes() as u32;
        let step = page >> CLASS_BITS;
        let nr_steps = (page - ZS_MIN_ALLOC_SIZE).div_ceil(step) + 1;
        let mut classes: Vec<SizeClass> = Vec::new();
        let mut of_step = alloc::vec![0; nr_steps as usize];
        let mut huge_class_size = page;
        for nr in (0..nr_steps).rev() {
            let class = SizeClass::of((ZS_MIN_ALLOC_SIZE + nr * step).min(page), page, max_pages);
            let is_like = |last: &&SizeClass| {
                last.pages_per_zspage == class.pages_per_zspage
                    && last.objs_per_zspage == class.objs_per_zspage
            };
            if classes.last().filter(is_like).is_none() {
                // The first class whose objects share pages ends the huge ones.
                if classes.last().is_some_and(SizeClass::is_huge) {
                    huge_class_size = class.size - (ZS_HANDLE_SIZE - 1);
                }
                classes.push(class);
            }
            of_step[nr as usize] = classes.len() as u16 - 1;
        }
        SizeClasses { classes, of_step, step, huge_class_size }
    }

    /// All classes, by falling size.
    pub fn all(&self) -> &[SizeClass] {
        &self.classes
    }

    /// Position of the class of an object of `size` bytes, in [`Self::all`].
    pub(super) fn class_of(&self, size: u32) -> usize {
        let steps = (size + ZS_HANDLE_SIZE).saturating_sub(ZS_MIN_ALLOC_SIZE).div_ceil(self.step);
        self.of_step[(steps as usize).min(self.of_step.len() - 1)].into()
    }

    /// Objects of this size or more take a page of their own (Linux `zs_huge_class_size`).
    pub fn huge_class_size(&self) -> u32 {
        self.huge_class_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of /sys/kernel/debug/zsmalloc/zram0/classes of real kernels with four pages a zspage, as
    /// posted to linux-mm and in Documentation/mm/zsmalloc.rst: size, objects, pages.
    const KERNEL_ROWS: [(u32, u32, u32); 18] = [
        (176, 93, 4),
        (192, 64, 3),
        (208, 39, 2),
        (224, 73, 4),
        (512, 8, 1),
        (528, 31, 4),
        (544, 15, 2),
        (896, 9, 2),
        (1536, 8, 3),
        (1632, 5, 2),
        (1744, 7, 3),
        (1808, 9, 4),
        (2048, 2, 1),
        (2336, 7, 4),
        (2448, 5, 3),
        (2720, 3, 2),
        (3072, 4, 3),
        (3264, 5, 4),
    ];

    #[test]
    fn classes_are_those_of_the_kernel() {
        let classes = SizeClasses::new(PageSize::Kib4, ZsmallocPolicy::Linux61);
        for (size, objs_per_zspage, pages_per_zspage) in KERNEL_ROWS {
            let class = SizeClass { size, pages_per_zspage, objs_per_zspage };
            assert!(classes.all().contains(&class), "{class:?}: {:?}", classes.all());
        }
        let largest = &classes.all()[..3];
        assert_eq!(largest.iter().map(|class| class.size).collect::<Vec<_>>(), [4096, 3264, 3072]);
        // The kernel documents that sizes 1552 to 1616 share the class of 1632.
        assert_eq!(classes.class_of(1552 - 8), classes.class_of(1632 - 8));
        assert_ne!(classes.class_of(1536 - 8), classes.class_of(1632 - 8));
        assert!(classes.all().is_sorted_by(|one, next| one.size > next.size));
    }

    #[test]
    fn later_kernels_have_longer_zspages() {
        let classes = SizeClasses::new(PageSize::Kib4, ZsmallocPolicy::Linux612);
        // The largest classes in Documentation/mm/zsmalloc.rst (6.12), with up to 8 pages a zspage.
        let largest = [(4096, 1, 1), (3632, 9, 8), (3584, 8, 7), (3504, 7, 6), (3408, 6, 5)];
        for (class, (size, objs_per_zspage, pages_per_zspage)) in classes.all().iter().zip(largest)
        {
            assert_eq!(*class, SizeClass { size, pages_per_zspage, objs_per_zspage });
        }
        assert_eq!(classes.huge_class_size(), 3632 - 7);
    }

    #[test]
    fn an_object_goes_to_the_class_with_its_handle() {
        let classes = SizeClasses::new(PageSize::Kib4, ZsmallocPolicy::Linux61);
        let size_of = |size| classes.all()[classes.class_of(size)].size;
        assert_eq!((size_of(1), size_of(24), size_of(25)), (32, 32, 48));
        assert_eq!((size_of(3256), size_of(3257), size_of(4096)), (3264, 4096, 4096));
        assert_eq!(classes.huge_class_size(), 3257);
        for size in 1..=4096 {
            let class = classes.all()[classes.class_of(size)];
            assert!(class.size >= (size + ZS_HANDLE_SIZE).min(4096), "{size}: {class:?}");
            let fits = class.objs_per_zspage * class.size <= class.pages_per_zspage * 4096;
            assert!(fits && class.objs_per_zspage > 0, "{class:?}");
        }
    }

    #[test]
    fn larger_pages_have_larger_steps() {
        let classes = SizeClasses::new(PageSize::Kib64, ZsmallocPolicy::Linux61);
        assert_eq!(classes.all()[0].size, 65536);
        assert!(classes.class_of(65536) == 0 && classes.all().len() < 256);
        assert_eq!(classes.all().last().map(|class| class.size), Some(32));
    }
}
