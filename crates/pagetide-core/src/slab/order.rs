//! The order of a cache's slabs, and the lengths of its partial lists.
//!
//! Linux: `calculate_order`, `slab_order`, `set_cpu_partial`, `set_min_partial` (mm/slub.c, 6.1). A
//! slab has enough objects for the number of CPUs, and wastes little memory at its end. A cache
//! does not use orders above 3 only to waste less.
//!
//! Invariant: a slab of the computed order holds at least one object and at most [`MAX_OBJECTS`].

use crate::units::{Order, MAX_PAGE_ORDER, PAGE_ALLOC_COSTLY_ORDER};

/// Largest order that is chosen for density (Linux `slub_max_order`).
const MAX_ORDER: Order = PAGE_ALLOC_COSTLY_ORDER;
/// Largest number of objects in a slab (Linux `MAX_OBJS_PER_PAGE`).
pub const MAX_OBJECTS: u64 = 32767;

/// Order of slabs with objects of `size` bytes and pages of `page_size` bytes, on a machine with
/// `nr_cpus` CPUs. `None`: no block is large enough for one object.
pub fn calculate_order(size: u64, nr_cpus: u16, page_size: u64) -> Option<Order> {
    let wanted = 4 * (u64::from(u16::BITS - nr_cpus.leading_zeros()) + 1);
    let mut min_objects = wanted.min((page_size << MAX_ORDER) / size);
    while min_objects > 1 {
        for fraction in [16, 8, 4] {
            let order = slab_order(size, min_objects, MAX_ORDER, fraction, page_size);
            if order.is_some() {
                return order;
            }
        }
        min_objects -= 1;
    }
    slab_order(size, 1, MAX_ORDER, 1, page_size)
        .or_else(|| slab_order(size, 1, MAX_PAGE_ORDER, 1, page_size))
}

/// The smallest order up to `max` that holds `min_objects` objects and wastes at most 1 /
/// `fraction` of the slab.
fn slab_order(
    size: u64,
    min_objects: u64,
    max: Order,
    fraction: u64,
    page_size: u64,
) -> Option<Order> {
    let first = smallest_order(min_objects * size, page_size)?;
    (first..=max).find(|&order| {
        let bytes = page_size << order;
        bytes / size <= MAX_OBJECTS && bytes % size <= bytes / fraction
    })
}

/// The smallest order that holds `bytes` bytes (Linux `get_order`); `None` if no order does.
pub fn smallest_order(bytes: u64, page_size: u64) -> Option<Order> {
    (0..=MAX_PAGE_ORDER).find(|&order| page_size << order >= bytes)
}

/// Objects that a CPU's chain of partial slabs may hold (Linux 6.1 `slub_set_cpu_partial`).
pub const fn cpu_partial_objects(size: u64, page_size: u64) -> u32 {
    if size >= page_size {
        6
    } else if size >= 1024 {
        24
    } else if size >= 256 {
        52
    } else {
        120
    }
}

/// Objects that a CPU's chain may hold in kernels up to 5.15.
pub const fn cpu_partial_objects_5_5(size: u64, page_size: u64) -> u32 {
    if size >= page_size {
        2
    } else if size >= 1024 {
        6
    } else if size >= 256 {
        13
    } else {
        30
    }
}

/// Empty slabs that a node keeps on its partial list (Linux `set_min_partial`).
pub const fn min_partial(size: u64) -> u32 {
    let wanted = size.ilog2() / 2;
    if wanted < 5 {
        5
    } else if wanted > 10 {
        10
    } else {
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_as_large_as_the_number_of_cpus_wants() {
        // radix_tree_node in /proc/slabinfo: 14 objects in 8 kB on few CPUs, 28 in 16 kB on more.
        let order = |cpus| calculate_order(584, cpus, 4096).unwrap();
        assert_eq!([1, 2, 3, 4, 8, 16].map(order), [1, 1, 1, 2, 2, 2]);
        // On 80 CPUs with pages of 64 KiB one page holds the wanted 32 objects.
        assert_eq!(calculate_order(584, 80, 65536), Some(0));
        assert_eq!(calculate_order(192, 2, 4096), Some(0));
        assert_eq!(calculate_order(8192, 2, 4096), Some(3));
    }

    #[test]
    fn what_is_larger_than_any_block_has_no_order() {
        assert_eq!(calculate_order(4096 << 10, 1, 4096), Some(10));
        assert_eq!(calculate_order((4096 << 10) + 8, 1, 4096), None);
        assert_eq!(calculate_order(u64::MAX / 8, 1, 4096), None);
    }

    #[test]
    fn every_size_gets_a_slab_that_holds_it() {
        for page_size in [4096, 16384, 65536] {
            for cpus in [1, 2, 80, 4096] {
                for size in (8..40_000).step_by(8) {
                    let order = calculate_order(size, cpus, page_size).unwrap();
                    let objects = (page_size << order) / size;
                    assert!((1..=MAX_OBJECTS).contains(&objects), "{size}: {objects} of {order}");
                }
            }
        }
    }

    #[test]
    fn budgets_follow_the_size() {
        assert_eq!([8, 256, 1024, 4096].map(|s| cpu_partial_objects(s, 4096)), [120, 52, 24, 6]);
        assert_eq!([8, 256, 1024, 4096].map(|s| cpu_partial_objects_5_5(s, 4096)), [30, 13, 6, 2]);
        assert_eq!([8, 192, 4096, 1 << 22].map(min_partial), [5, 5, 6, 10]);
    }
}
