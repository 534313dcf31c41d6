//! Fuzz function for slab caches. The fuzz target `slab-ops` runs it, and so does the test
//! crates/pagetide-core/tests/suite/corpus.rs over the stored corpus.
//!
//! No sequence of operations may violate the audit or differ from the model.

use crate::slab_world::{SlabOp, SlabWorld};
use pagetide_core::config::{Config, SlabAccounting, SlubPolicy};

/// Operations on slab caches and groups. The first byte selects the policies; each following group
/// of four bytes is an operation.
pub fn slab_ops(bytes: &[u8]) {
    const OPS: usize = 500;
    let Some((&policies, bytes)) = bytes.split_first() else { return };
    let slab_accounting = match policies & 3 {
        0 => SlabAccounting::PerObject,
        1 => SlabAccounting::PerGroupCaches,
        2 => SlabAccounting::PerGroupCachesReparent,
        _ => SlabAccounting::Off,
    };
    let slub = SlubPolicy::ALL[usize::from(policies >> 2 & 1)];
    let config = Config { slab_accounting, slub, ..Config::default() };
    let mut world = SlabWorld::new(config);
    for op in bytes.chunks_exact(4).take(OPS) {
        world.step(SlabOp::from_bytes([op[0], op[1], op[2], op[3]]));
    }
    world.finish();
}
