//! Random operations on slab caches and groups, with every policy for accounting objects and using
//! slabs, against a model that knows only the owner of each object.

use crate::slab_world::{SlabOp, SlabWorld};
use pagetide_core::config::{Config, SlabAccounting, SlubPolicy};
use proptest::prelude::*;

const ACCOUNTING: [SlabAccounting; 4] = [
    SlabAccounting::Off,
    SlabAccounting::PerGroupCaches,
    SlabAccounting::PerGroupCachesReparent,
    SlabAccounting::PerObject,
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        max_shrink_iters: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The audit passes after every operation, every object has the right cache and owner, mistakes
    /// are refused, and after all frees no memory remains in use.
    #[test]
    fn any_sequence_is_sound(
        ops in prop::collection::vec(any::<[u8; 4]>().prop_map(SlabOp::from_bytes), 1..60),
    ) {
        for slab_accounting in ACCOUNTING {
            for &slub in SlubPolicy::ALL {
                let config = Config { slab_accounting, slub, ..Config::default() };
                let mut world = SlabWorld::new(config);
                ops.iter().for_each(|&op| world.step(op));
                world.finish();
            }
        }
    }
}
