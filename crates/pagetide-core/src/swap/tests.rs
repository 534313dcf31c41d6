//! Which area a page goes to, against a model that looks at all areas for each slot.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const ROOT: MemcgId = MemcgId(0);

fn areas(options: &[(u32, Option<i16>)]) -> SwapAreas {
    let mut areas = SwapAreas::default();
    for &(pages, priority) in options {
        assert!(areas.swapon(
            SwapOptions { priority, ..SwapOptions::new(pages) },
            PageSize::Kib4,
            ZsmallocPolicy::Linux61
        ));
    }
    areas
}

/// Areas of the next `nr` pages.
fn turns(swap: &mut SwapAreas, nr: u32) -> Vec<usize> {
    let slots: Vec<_> = (0..nr).map_while(|pfn| swap.alloc(Pfn(pfn), ROOT)).collect();
    slots.into_iter().map(|slot| swap.area_of(slot)).collect()
}

#[test]
fn areas_without_a_priority_are_filled_in_order() {
    let mut swap = areas(&[(100, None), (100, Some(3)), (100, None)]);
    let priorities: Vec<i16> = swap.areas().iter().map(|area| area.priority).collect();
    assert_eq!(priorities, [-2, 3, -3]);
    let found = turns(&mut swap, 400);
    assert_eq!(found, [[1; 100], [0; 100], [2; 100]].concat());
    assert_eq!((swap.used(), swap.free(), swap.usable()), (300, 0, 300));
}

#[test]
fn equal_areas_take_turns_of_64_slots() {
    let mut swap = areas(&[(1000, Some(1)), (1000, Some(1)), (1000, Some(0))]);
    let found = turns(&mut swap, 192);
    assert_eq!(found, [[0; 64], [1; 64], [0; 64]].concat());
}

#[test]
fn a_huge_page_goes_to_the_next_area_only() {
    let mut swap = areas(&[(600, Some(1)), (4 * SWAPFILE_CLUSTER, Some(1))]);
    let runs: Vec<_> =
        (0..5).map(|at| swap.alloc_cluster(Pfn(at * SWAPFILE_CLUSTER), ROOT)).collect();
    let of: Vec<_> = runs.iter().map(|run| run.map(|slot| swap.area_of(slot))).collect();
    assert_eq!(of, [Some(0), Some(1), None, Some(1), None], "the first area has one run");
    let mut rotating = SwapAreas::default();
    assert!(rotating.swapon(
        SwapOptions::new(4096).rotational(true),
        PageSize::Kib4,
        ZsmallocPolicy::Linux61
    ));
    assert_eq!(rotating.alloc_cluster(Pfn(0), ROOT), None);
}

#[test]
fn more_slots_than_entries_can_name_are_refused() {
    let mut swap = areas(&[(MAX_SLOTS - 600, None)]);
    assert!(!swap.swapon(SwapOptions::new(1200), PageSize::Kib4, ZsmallocPolicy::Linux61));
    assert_eq!(swap.areas().len(), 1);
}

proptest! {
    #[test]
    fn each_slot_is_of_the_highest_priority_with_room(
        options in prop::collection::vec((0u32..200, prop::option::of(-3i16..3)), 1..5),
        steps in prop::collection::vec(any::<bool>(), 1..600),
    ) {
        let mut swap = areas(&options);
        let mut used = BTreeSet::new();
        for (pfn, takes) in (0..).zip(steps) {
            if takes || used.is_empty() {
                let highest = swap.areas().iter().filter(|area| area.free() > 0);
                let highest = highest.map(|area| area.priority).max();
                let in_turn = swap.turn_left > 0;
                let slot = swap.alloc(Pfn(pfn), ROOT);
                prop_assert_eq!(slot.is_some(), highest.is_some());
                let Some(slot) = slot else { continue };
                // A turn goes on although a slot of a higher priority has become free.
                prop_assert!(in_turn || Some(swap[slot].priority) == highest);
                prop_assert!(swap[slot].slots().contains(&u64::from(slot.0)));
                prop_assert!(used.insert(slot.0), "slot {} is in use", slot.0);
            } else {
                let slot = SwapSlot(*used.iter().nth(pfn as usize % used.len()).unwrap());
                used.remove(&slot.0);
                prop_assert_eq!(
                    swap[slot].remove_from_cache(slot, crate::ageing::shadow::Shadow::NONE),
                    Some(ROOT)
                );
            }
            prop_assert_eq!(swap.used() as usize, used.len());
            for area in swap.areas() {
                prop_assert_eq!(area.count().0, area.used());
            }
        }
    }
}
