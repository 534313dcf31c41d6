//! The initial free lists of a scenario (`--as-is`), adapted from /proc/pagetypeinfo, and its CMA
//! areas.
//!
//! Invariant: the loader accepts the result; with `--as-is` a note names each populated zone without
//! free lists; a note names each area that is not complete.

use crate::host::cma::HostCma;
use crate::host::layout::{NodeLayout, ZoneLayout};
use crate::host::note::ImportNote;
use crate::host::number::show_pages;
use crate::host::pagetypeinfo::{self, CMA, MOVABLE};
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

/// Sets the initial free lists of each zone, if they are known and wanted, and cuts the CMA areas to
/// what a run has room for.
pub(super) fn assign_free_lists(
    host: &HostSnapshot,
    nodes: &mut [NodeLayout],
    size: PageSize,
    as_is: bool,
    notes: &mut Vec<ImportNote>,
) {
    notes.extend(host.types.notes.iter().filter(|_| as_is).cloned());
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
            let lists = zone.free_lists.take().filter(|_| as_is);
            match lists.map(|lists| fitted(zone, lists, frames.clone())) {
                None => without.extend(as_is.then(|| place.clone())),
                Some(Ok(lists)) => {
                    notes.extend(more_than_counted(zone, &lists, &place));
                    zone.free_lists = Some(lists);
                }
                Some(Err(reason)) => {
                    let message = format!("the free lists of zone {place} are left out: {reason}");
                    notes.push(ImportNote::new(PLACE, message));
                }
            }
            if let Some(message) = cut_cma(zone, frames, as_is, size) {
                let message = format!("the CMA area of zone {place} {message}");
                notes.push(ImportNote::new("/proc/zoneinfo", message));
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

/// A note if the lists have more pages than the zone counts as free.
fn more_than_counted(zone: &ZoneLayout, lists: &FreeLists, place: &str) -> Option<ImportNote> {
    let (listed, counted) = (lists.pages(), zone.usage.free);
    let message = format!(
        "the free lists of zone {place} have {listed} pages, but /proc/zoneinfo counts {counted}: \
         the files are of different times, and the scenario has the lists"
    );
    (listed.saturating_sub(counted) > zone.managed / 64).then(|| ImportNote::new(PLACE, message))
}

/// Cuts the CMA area of a zone to its pageblocks in the free lists, or to whole pageblocks that are
/// free. Free memory that is not CMA now is not CMA then. Returns what differs from the system, if
/// anything.
fn cut_cma(
    zone: &mut ZoneLayout,
    frames: Option<Range<u32>>,
    as_is: bool,
    size: PageSize,
) -> Option<String> {
    let HostCma { pages, free } = zone.cma;
    zone.cma.pages = match (&zone.free_lists, frames) {
        (Some(lists), _) => u64::from(lists.pageblocks[CMA]) * u64::from(PAGEBLOCK_NR_PAGES),
        (None, Some(frames)) => {
            let ZoneLayout { present, managed, usage, .. } = *zone;
            let start = if as_is { usage.free } else { usage.free_without_programs() };
            let spec = ZoneSpec { present, managed, free: start, ..ZoneSpec::default() };
            let most = start.saturating_sub(usage.free.saturating_sub(free));
            let block = u64::from(PAGEBLOCK_NR_PAGES);
            pages.min(most / block * block).min(spec.cma_room(frames))
        }
        (None, None) => 0,
    };
    let [was, is, free] = [pages, zone.cma.pages, free].map(|pages| show_pages(pages, size));
    if pages != zone.cma.pages {
        Some(format!("has {was} and {is} here: no more of its pageblocks are free at the start"))
    } else if as_is && pages > 0 && !zone.has_types {
        Some(format!("has {free} free; which blocks these are is unknown: the largest ones here"))
    } else {
        None
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
    let mut lists = pagetypeinfo::with_pages(lists, MOVABLE, rest);
    let (pages, managed) = (lists.pages(), zone.managed);
    if pages > managed {
        return Err(format!("they have {pages} pages, and the zone manages {managed}"));
    }
    let frames = frames.ok_or("the node's zones cannot be laid out")?;
    let block = PAGEBLOCK_NR_PAGES;
    let whole = u64::from((frames.end / block).saturating_sub(frames.start.div_ceil(block)));
    let needed = lists.fits(frames).map_err(|misfit| {
        format!("they do not fit into the zone as a run lays it out: {}", in_words(misfit))
    })?;
    // A block can be on the list of another type than its pageblock's.
    for (pageblocks, needed) in lists.pageblocks.iter_mut().zip(needed) {
        *pageblocks = (*pageblocks).max(u32::try_from(needed).unwrap_or(u32::MAX));
    }
    // The kernel counts pageblocks in holes too; by default they are unmovable. CMA, which comes
    // last, has managed pageblocks only.
    let all: u64 = lists.pageblocks.into_iter().map(u64::from).sum();
    let has = match lists.pageblocks[CMA] {
        0 => zone.present.div_ceil(PAGEBLOCK_NR_PAGES.into()),
        _ => whole,
    };
    let mut excess = all.saturating_sub(has);
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
