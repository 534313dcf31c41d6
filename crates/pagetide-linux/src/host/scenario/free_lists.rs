//! The initial free lists of a scenario (`--as-is`), adapted from /proc/pagetypeinfo.
//!
//! Invariant: the loader accepts the result; a note names each populated zone without free lists.

use crate::host::layout::{NodeLayout, ZoneLayout};
use crate::host::note::ImportNote;
use crate::host::pagetypeinfo;
use crate::host::snapshot::HostSnapshot;
use pagetide_core::frames::boot::free_lists::FreeListsError;
use pagetide_core::frames::boot::managed_frames;
use pagetide_core::frames::node::{NodeSpec, ZoneSpec};
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::PAGEBLOCK_NR_PAGES;
use pagetide_scenario::model::FreeLists;
use pagetide_scenario::names::NameSet;
use std::ops::Range;

const PLACE: &str = "/proc/pagetypeinfo";

/// Sets the initial free lists of each zone, if they are known.
pub(super) fn assign_free_lists(
    host: &HostSnapshot,
    nodes: &mut [NodeLayout],
    size: PageSize,
    notes: &mut Vec<ImportNote>,
) {
    notes.extend(host.types.notes.iter().cloned());
    let mut without = Vec::new();
    for node in nodes {
        let mut spec = NodeSpec::default();
        for ZoneLayout { name, present, managed, .. } in &node.zones {
            let of_zone = ZoneSpec { present: *present, managed: *managed, ..ZoneSpec::default() };
            spec.zones[name.index()] = of_zone;
        }
        let frames = managed_frames(&spec, size);
        for zone in node.zones.iter_mut().filter(|zone| zone.managed > 0) {
            let place = format!("{} of node {}", zone.name.name(), node.number);
            let frames = frames.as_ref().map(|frames| frames[zone.name.index()].clone());
            match zone.free_lists.take().map(|lists| fitted(zone, lists, frames)) {
                None => without.push(place),
                Some(Ok(lists)) => zone.free_lists = Some(lists),
                Some(Err(reason)) => {
                    let message = format!("the free lists of zone {place} are left out: {reason}");
                    notes.push(ImportNote::new(PLACE, message));
                }
            }
        }
    }
    if !without.is_empty() {
        let message = format!(
            "the free lists of zone {} are unknown: free memory starts in blocks as large as possible",
            without.join(", ")
        );
        notes.push(ImportNote::new(PLACE, message));
    }
}

/// The lists with the missing free pages as movable blocks, and with pageblocks that the zone has.
fn fitted(
    zone: &ZoneLayout,
    lists: FreeLists,
    frames: Option<Range<u32>>,
) -> Result<FreeLists, String> {
    // Blocks for high-order atomic allocations have none of the types, and a few pages move between
    // two readings.
    let (shown, free) = (lists.pages(), zone.usage.free);
    let rest = free.saturating_sub(shown);
    if rest > zone.managed / 8 {
        return Err(format!("they have {shown} of {free} free pages"));
    }
    let mut lists = pagetypeinfo::with_movable(lists, rest);
    let (pages, managed) = (lists.pages(), zone.managed);
    if pages > managed {
        return Err(format!("they have {pages} pages, and the zone manages {managed}"));
    }
    let frames = frames.ok_or("the node's zones cannot be laid out")?;
    let needed = lists.fits(frames).map_err(|misfit| {
        format!("they do not fit into the zone as a run lays it out: {}", in_words(misfit))
    })?;
    // A block can be on the list of another type than its pageblock's.
    for (pageblocks, needed) in lists.pageblocks.iter_mut().zip(needed) {
        *pageblocks = (*pageblocks).max(u32::try_from(needed).unwrap_or(u32::MAX));
    }
    // The kernel counts pageblocks in holes too; by default they are unmovable.
    let all: u64 = lists.pageblocks.into_iter().map(u64::from).sum();
    let mut excess = all.saturating_sub(zone.present.div_ceil(PAGEBLOCK_NR_PAGES.into()));
    for (pageblocks, needed) in lists.pageblocks.iter_mut().zip(needed) {
        let cut = excess.min(u64::from(*pageblocks).saturating_sub(needed));
        *pageblocks -= cut as u32;
        excess -= cut;
    }
    Ok(lists)
}

/// Describes what does not fit.
fn in_words(misfit: FreeListsError) -> String {
    match misfit {
        FreeListsError::Whole { order, asked, room } => {
            format!("{asked} free blocks of order {order}, and there is room for {room}")
        }
        FreeListsError::Parts { needed, room, .. } => format!(
            "the free blocks below order 9 need {needed} pageblocks, and larger blocks leave {room}"
        ),
    }
}
