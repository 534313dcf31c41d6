//! Checks the free lists and the CMA memory of `[[machine.zone]]`: they must fit into the zone.
//!
//! Linux: /proc/pagetypeinfo. Invariant: the core can build a machine whose free lists pass.

use crate::load::raw;
use crate::load::span::ProblemSink;
use crate::load::units::show_size;
use crate::model::{FreeLists, ZoneSetup};
use crate::names::NameSet;
use pagetide_core::frames::boot::free_lists::{FreeListsError, NR_TYPES};
use pagetide_core::frames::boot::managed_frames;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::units::{MAX_NR_ZONES, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use std::ops::Range;

/// The keys, in the order of the core's migrate types.
const KEYS: [&str; NR_TYPES] = ["unmovable", "movable", "reclaimable", "cma"];

const fn areas(zone: &raw::ZoneTable) -> [Option<&raw::FreeArea>; NR_TYPES] {
    let cma = match &zone.cma {
        Some(raw::RawCma::Lists(lists)) => Some(lists),
        _ => None,
    };
    [zone.unmovable.as_ref(), zone.movable.as_ref(), zone.reclaimable.as_ref(), cma]
}

/// Size of the zone's CMA area in pages; 0 if it has none, or free lists.
pub(super) fn check_cma(zone: &raw::ZoneTable, sink: &mut ProblemSink) -> u64 {
    let Some(raw::RawCma::Area(size)) = &zone.cma else { return 0 };
    let block = sink.page_size.bytes_of(PAGEBLOCK_NR_PAGES.into());
    if areas(zone).iter().any(Option::is_some) {
        let hint = "write cma = { pageblocks = 32, blocks = [...] }, for example";
        sink.hinted(size.span, "the zone has free lists, and none of type `cma`", hint);
        return 0;
    }
    if !size.value.0.is_multiple_of(block) {
        let hint = format!("a pageblock has 512 pages, here {}", show_size(block));
        sink.hinted(size.span, "a CMA area has whole pageblocks", hint);
        return 0;
    }
    size.value.0 / sink.page_size.bytes()
}

/// The free lists of a zone, or `None` if no list is given.
pub(super) fn check(zone: &raw::ZoneTable, sink: &mut ProblemSink) -> Option<FreeLists> {
    if areas(zone).iter().all(Option::is_none) {
        return None;
    }
    if let Some(free) = &zone.free {
        sink.hinted(free.span, "the free lists already give the free memory", "remove `free`");
    }
    let mut lists = FreeLists::default();
    for (index, area) in areas(zone).into_iter().enumerate() {
        let Some(area) = area else { continue };
        lists.pageblocks[index] = area.pageblocks().into();
        let blocks = area.blocks.as_deref().unwrap_or_default();
        if blocks.len() > lists.blocks[index].len() {
            let message = format!("{} orders of free blocks are too many", blocks.len());
            sink.hinted(
                area.at,
                message,
                "the largest block has order 10: write at most 11 numbers",
            );
        }
        for (order, count) in blocks.iter().take(lists.blocks[index].len()).enumerate() {
            lists.blocks[index][order] = (*count).into();
        }
    }
    Some(lists)
}

/// Reports free lists that do not fit into the zones of a node. `given` has the zones as decoded;
/// the invalid ones are not in `zones`.
pub(super) fn check_fit(given: &[raw::ZoneTable], zones: &[ZoneSetup], sink: &mut ProblemSink) {
    let mut spec = NodeSpec::default();
    for zone in zones {
        spec.zones[zone.name.index()] = zone.spec();
    }
    // The position of a zone depends on the other zones of its node, so all of them must be valid.
    let frames = managed_frames(&spec, sink.page_size).filter(|_| given.len() == zones.len());
    for raw in given {
        let name = raw.name.as_ref().map(|name| name.value);
        let Some(zone) = zones.iter().find(|zone| Some(zone.name) == name) else { continue };
        let Some(lists) = zone.free_lists else {
            check_room(raw, zone, frames.as_ref(), sink);
            continue;
        };
        if lists.pages() > zone.managed {
            let of = |area: usize| lists.blocks[area].iter().enumerate();
            let pages = |area: usize| -> u64 { of(area).map(|(n, &nr)| u64::from(nr) << n).sum() };
            let message = format!(
                "more free than managed: the free blocks of zone {} have {} pages, the zone manages {}",
                zone.name.name(),
                lists.pages(),
                zone.managed
            );
            let hint = "a block of order n has 2^n pages; free <= managed <= present";
            report(raw, most(raw, pages), message, hint, sink);
            continue;
        }
        total(raw, zone, &lists, sink);
        let Some(frames) = &frames else { continue };
        match lists.fits(frames[zone.name.index()].clone()) {
            Ok(needed) => check_pageblocks(raw, zone, needed, sink),
            Err(misfit) => refuse(raw, zone, &lists, misfit, sink),
        }
    }
}

/// Reports a CMA area that reaches into the kernel's memory, or beyond the zone.
fn check_room(
    raw: &raw::ZoneTable,
    zone: &ZoneSetup,
    frames: Option<&[Range<u32>; MAX_NR_ZONES]>,
    sink: &mut ProblemSink,
) {
    let (Some(raw::RawCma::Area(size)), Some(frames)) = (&raw.cma, frames) else { return };
    let room = zone.spec().cma_room(frames[zone.name.index()].clone());
    if zone.cma > room {
        let room = show_size(sink.page_size.bytes_of(room));
        let message = format!("zone {} has room for {room} of CMA", zone.name.name());
        let hint = "whole pageblocks that are free when the run starts can be CMA";
        sink.hinted(size.span, message, hint);
    }
}

/// The given type with the largest amount.
fn most(zone: &raw::ZoneTable, amount: impl Fn(usize) -> u64) -> usize {
    let given = (0..KEYS.len()).filter(|&index| areas(zone)[index].is_some());
    given.max_by_key(|&index| (amount(index), KEYS.len() - index)).unwrap_or(0)
}

/// Reports a mistake in the lists of a type.
fn report(
    zone: &raw::ZoneTable,
    index: usize,
    message: String,
    hint: &str,
    sink: &mut ProblemSink,
) {
    let at = areas(zone)[index].map_or(zone.at, |area| area.at);
    sink.hinted(at, message, hint);
}

fn refuse(
    raw: &raw::ZoneTable,
    zone: &ZoneSetup,
    lists: &FreeLists,
    misfit: FreeListsError,
    sink: &mut ProblemSink,
) {
    let name = zone.name.name();
    match misfit {
        FreeListsError::Whole { order, asked, room } => {
            let message = format!(
                "{asked} free blocks of order {order} in zone {name}, which has space for {room}"
            );
            let hint = if order > PAGEBLOCK_ORDER {
                "such a block is two pageblocks, aligned to 1024 pages, with all pages managed"
            } else {
                "a block of order 9 is a pageblock, and two free buddies would merge into order 10"
            };
            let of_order = |index: usize| lists.blocks[index][usize::from(order)].into();
            report(raw, most(raw, of_order), message, hint, sink);
        }
        FreeListsError::Parts { most, needed, room } => {
            let message = format!(
                "the free blocks below order 9 need {needed} pageblocks of zone {name}, but larger \
                 blocks leave {room}; `{}` needs most",
                KEYS[most]
            );
            let hint =
                "of two buddies at most one can be free: two would merge into the next order";
            report(raw, most, message, hint, sink);
        }
    }
}

/// Reports a type with fewer pageblocks than its free blocks need.
fn check_pageblocks(
    raw: &raw::ZoneTable,
    zone: &ZoneSetup,
    needed: [u64; NR_TYPES],
    sink: &mut ProblemSink,
) {
    for ((area, key), needed) in areas(raw).into_iter().zip(KEYS).zip(needed) {
        let Some(given) = area.and_then(|area| area.pageblocks.as_ref()) else { continue };
        let has = u64::from(given.value);
        if has < needed {
            let message = format!(
                "`pageblocks` is {has}, but the free blocks of `{key}` in zone {} need {needed}",
                zone.name.name()
            );
            let hint = format!("write {needed} or more, or leave `pageblocks` out");
            sink.hinted(given.span, message, hint);
        }
    }
}

/// Reports more pageblocks than the zone has. Those with unmanaged memory count: they have a type.
fn total(raw: &raw::ZoneTable, zone: &ZoneSetup, lists: &FreeLists, sink: &mut ProblemSink) {
    let asked: u64 = lists.pageblocks.into_iter().map(u64::from).sum();
    let has = zone.present.div_ceil(PAGEBLOCK_NR_PAGES.into());
    if asked > has {
        let most = most(raw, |index| lists.pageblocks[index].into());
        let given = areas(raw)[most].and_then(|area| area.pageblocks.as_ref());
        let message =
            format!("{asked} pageblocks of all types, but zone {} has {has}", zone.name.name());
        let hint = format!("a pageblock has 512 pages, `present` has {}", zone.present);
        sink.hinted(given.map_or(raw.at, |given| given.span), message, hint);
    }
}
