//! The kernel objects with which a machine begins, where it is known what a real one began with.
//!
//! Linux: what /proc/slabinfo and `nr_slab_*` show before the first task. Of most caches only the pages
//! matter here: they are one cache of blobs of a page for each kind of pages, which nobody frees.
//!
//! Invariant: afterwards the machine has the slab pages that were asked for, and as much free as before.

use pagetide_core::process::Machine;
use pagetide_core::slab::{CacheSpec, SlabError};
use pagetide_core::units::CacheId;
use pagetide_scenario::kernel_objects::{BootCache, BootObjects};

/// Fills the machine's caches; those that it does not have stay among the other pages.
///
/// # Errors
/// The cache that could not be made, and why.
pub(crate) fn populate(
    machine: &mut Machine,
    boot: &BootObjects,
) -> Result<(), (String, SlabError)> {
    let mut left = [boot.unreclaimable_pages, boot.reclaimable_pages];
    for BootCache { name, active, slabs } in &boot.caches {
        let Some(id) = machine.find_cache(name) else { continue };
        machine.populate_cache(id, *slabs, *active);
        if let Some(it) = machine.kmem_cache(id) {
            let kind = &mut left[usize::from(it.reclaimable)];
            *kind = kind.saturating_sub(it.nr_pages);
        }
    }
    let page = machine.page_size().bytes() as u32;
    let others = [("other:unreclaimable", false), ("other:reclaimable", true)];
    for ((name, reclaimable), pages) in others.into_iter().zip(left) {
        if pages > 0 {
            let id = other(machine, name, page, reclaimable).map_err(|e| (name.to_owned(), e))?;
            let per_slab = machine.kmem_cache(id).map_or(1, |it| u64::from(it.objects_per_slab()));
            machine.populate_cache(id, pages / per_slab, pages);
        }
    }
    Ok(())
}

/// A cache of blobs of a page.
fn other(
    machine: &mut Machine,
    name: &str,
    object_size: u32,
    reclaimable: bool,
) -> Result<CacheId, SlabError> {
    let spec = CacheSpec { name: name.to_owned(), object_size, reclaimable, account: false };
    let id = machine.create_cache(spec)?;
    let tuning = pagetide_core::slab::CacheTuning { order: Some(0), ..Default::default() };
    // A slab of one page holds a blob of a page, and there is no slab yet.
    let tuned = machine.tune_cache(id, tuning);
    debug_assert_eq!(tuned, Ok(()));
    Ok(id)
}
