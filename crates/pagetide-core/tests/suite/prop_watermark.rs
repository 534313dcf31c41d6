//! Properties of all watermark inputs and of all zones checked against a watermark.

use pagetide_core::frames::gfp::{AllocFlags, Gfp, Watermark};
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::frames::page_alloc::Memory;
use pagetide_core::frames::watermark::{
    default_min_free_kbytes, zone_marks, zone_watermark_fast, zone_watermark_ok,
    zone_watermark_ok_free, WatermarkInputs, WatermarkPolicy, WmarkKbytes, MIN_FREE_KBYTES_MAX,
};
use pagetide_core::frames::zone::Zone;
use pagetide_core::frames::zone_type::ZONE_NORMAL;
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{Cpu, NodeId};
use proptest::prelude::*;

fn inputs() -> impl Strategy<Value = WatermarkInputs> {
    let policy = prop_oneof![
        Just(WatermarkPolicy::Derived),
        Just(WatermarkPolicy::ScaleFactor),
        Just(WatermarkPolicy::Apart),
    ];
    let kbytes = 0..(4u64 << 20);
    let apart = prop::option::of((kbytes.clone(), kbytes.clone(), kbytes.clone()));
    (policy, kbytes.clone(), 1..3000u32, kbytes, apart).prop_map(
        |(policy, min_free_kbytes, watermark_scale_factor, extra_free_kbytes, apart)| {
            let mut inputs = WatermarkInputs {
                min_free_kbytes,
                watermark_scale_factor,
                extra_free_kbytes,
                policy,
                ..WatermarkInputs::default()
            };
            if let Some((a, b, c)) = apart {
                let (min, max) = (a.min(b).min(c), a.max(b).max(c));
                let low = a + b + c - min - max;
                assert!(inputs.write_wmark_kbytes(WmarkKbytes { min, low, high: max }));
            }
            inputs
        },
    )
}

fn flags() -> impl Strategy<Value = AllocFlags> {
    any::<(bool, bool, bool)>().prop_map(|(high, harder, oom)| AllocFlags {
        high,
        harder,
        oom,
        ..AllocFlags::at(Watermark::Min)
    })
}

/// A zone with holes: every `keep`th page of the allocated ones is kept.
fn zone(taken: usize, keep: usize) -> Zone {
    let mut spec = NodeSpec::default();
    spec.zones[ZONE_NORMAL] = ZoneSpec::all_free(4096);
    let mut memory = Memory::new(&[spec], 1).expect("the machine is valid");
    let flags = AllocFlags::at(Watermark::None);
    for nth in 0..taken {
        let pfn = memory.get_page_from_freelist(Cpu(0), NodeId(0), 0, Gfp::KERNEL, flags);
        if let Some(pfn) = pfn.filter(|_| nth % keep != 0) {
            memory.free_page(Cpu(0), pfn, 0);
        }
    }
    memory.drain_all();
    memory.nodes[0].zones[ZONE_NORMAL].clone()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// min <= low <= high, and the min watermarks never exceed the requested reserve in total.
    #[test]
    fn marks_are_ordered_and_share_out_the_reserve(
        inputs in inputs(),
        managed in prop::collection::vec(0..(1u64 << 24), 1..5),
    ) {
        let total: u64 = managed.iter().sum();
        let mut sum = 0;
        for zone in &managed {
            let (min, low, high) = zone_marks(*zone, total, &inputs, PageSize::Kib4);
            prop_assert!(min <= low && low <= high);
            sum += min;
        }
        let asked = inputs.min_free_kbytes / 4;
        prop_assert!(sum <= asked);
        // Each zone rounds down: the sum is short by less than one page per zone.
        prop_assert!(total == 0 || asked - sum < managed.len() as u64);
    }

    #[test]
    fn the_default_reserve_grows_with_memory(a in any::<u64>(), b in any::<u64>()) {
        let of = |kbytes| default_min_free_kbytes(kbytes, MIN_FREE_KBYTES_MAX);
        prop_assert!(of(a.min(b)) <= of(a.max(b)));
    }

    /// Passing is monotone in free pages, and antitone in watermark, order and reserve.
    #[test]
    fn the_test_is_monotone(
        taken in 0..4000usize,
        keep in 1..9usize,
        free in 0..5000u64,
        mark in 0..5000u64,
        order in 0..=10u8,
        reserve in 0..5000u64,
        flags in flags(),
    ) {
        let mut zone = zone(taken, keep);
        zone.lowmem_reserve[3] = reserve;
        let ok = |free, mark, order, highest| {
            zone_watermark_ok_free(&zone, order, mark, highest, flags, free)
        };
        if ok(free, mark, order, 3) {
            prop_assert!(ok(free + 1, mark, order, 3));
            prop_assert!(mark == 0 || ok(free, mark - 1, order, 3));
            prop_assert!(order == 0 || ok(free, mark, order - 1, 3));
            prop_assert!(ok(free, mark, order, 2));
            prop_assert!(free > 0);
            let plain = AllocFlags::at(Watermark::Min);
            let left = free - (1 << order) + 1;
            let enough = left > mark + reserve;
            let plain_ok = zone_watermark_ok_free(&zone, order, mark, 3, plain, free);
            prop_assert!(enough || !plain_ok);
        }
        // A right never makes a check fail.
        let more = AllocFlags { high: true, harder: true, oom: true, ..flags };
        let with = zone_watermark_ok_free(&zone, order, mark, 3, more, free);
        prop_assert!(with || !ok(free, mark, order, 3));
    }

    /// The allocator's quick check has the same result as the full one.
    #[test]
    fn the_quick_test_agrees(
        taken in 0..4000usize,
        keep in 1..9usize,
        mark in 0..5000u64,
        order in 0..=10u8,
        reserved in 0..3u64,
    ) {
        let mut zone = zone(taken, keep);
        zone.nr_reserved_highatomic = reserved * 512;
        let flags = AllocFlags::at(Watermark::Low);
        prop_assert_eq!(
            zone_watermark_fast(&zone, order, mark, 3, flags, Gfp::KERNEL),
            zone_watermark_ok(&zone, order, mark, 3, flags)
        );
    }
}
