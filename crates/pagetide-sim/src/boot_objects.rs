//! Slab objects at boot, if a scenario states those of a real machine.
//!
//! Linux: the state of /proc/slabinfo and `nr_slab_*` before the first task. The pages of caches
//! that the machine does not have go into two caches (reclaimable and unreclaimable) of page-sized
//! objects that are never freed.
//!
//! Invariant: afterwards the machine has the requested slab pages, and as many free pages as
//! before.

use pagetide_core::process::Machine;
use pagetide_core::slab::{CacheSpec, SlabError};
use pagetide_core::units::CacheId;
use pagetide_scenario::model::kernel_objects::{BootCache, BootObjects};

/// Fills the machine's caches. The error names a cache that cannot be created.
pub(crate) fn populate(
    machine: &mut Machine,
    boot: &BootObjects,
) -> Result<(), (String, SlabError)> {
    let mut left = [boot.unreclaimable_pages, boot.reclaimable_pages];
    for BootCache { name, active, slabs } in &boot.caches {
        let Some(id) = machine.slabs.find_cache(name) else { continue };
        machine.populate_cache(id, *slabs, *active);
        if let Some(it) = machine.slabs.kmem_cache(id) {
            let kind = &mut left[usize::from(it.reclaimable)];
            *kind = kind.saturating_sub(it.nr_pages);
        }
    }
    let page = machine.page_size().bytes() as u32;
    let others = [("other:unreclaimable", false), ("other:reclaimable", true)];
    for ((name, reclaimable), pages) in others.into_iter().zip(left) {
        if pages > 0 {
            let id = other(machine, name, page, reclaimable).map_err(|e| (name.to_owned(), e))?;
            let per_slab =
                machine.slabs.kmem_cache(id).map_or(1, |it| u64::from(it.objects_per_slab()));
            machine.populate_cache(id, pages / per_slab, pages);
        }
    }
    Ok(())
}

fn other(
    machine: &mut Machine,
    name: &str,
    object_size: u32,
    reclaimable: bool,
) -> Result<CacheId, SlabError> {
    let spec = CacheSpec { name: name.to_owned(), object_size, reclaimable, account: false };
    let id = machine.create_cache(spec)?;
    let tuning = pagetide_core::slab::CacheTuning { order: Some(0), ..Default::default() };
    // Cannot fail: a slab of one page fits an object, and the cache has no slab yet.
    let tuned = machine.tune_cache(id, tuning);
    debug_assert_eq!(tuned, Ok(()));
    Ok(id)
}
