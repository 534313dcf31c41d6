//! Checks `[[task.resident]]`: memory of a task at the start of the run.
//!
//! Invariant: a valid setup has a frame for each resident page and for its page tables, among the
//! managed frames that are not free.

use crate::load::raw::{self, ResidentTable};
use crate::load::span::{ProblemSink, Spanned};
use crate::load::units::show_size;
use crate::model::{Resident, Setup};
use crate::names::NameSet;

pub(super) fn check(list: &[ResidentTable], sink: &mut ProblemSink) -> Vec<Resident> {
    list.iter().map(|table| one(table, sink)).collect()
}

fn one(table: &ResidentTable, sink: &mut ProblemSink) -> Resident {
    let mut pages = |size: Option<&Spanned<crate::load::decode::Size>>| {
        let Some(size) = size else { return 0 };
        let page = sink.page_size;
        if !size.value.0.is_multiple_of(page.bytes()) {
            let hint = format!("write \"{} pages\", for example", page.pages_for(size.value.0));
            sink.hinted(size.span, format!("{} bytes are not whole pages", size.value.0), hint);
        }
        page.pages_in(size.value.0)
    };
    Resident {
        active_anon: pages(table.active_anon.as_ref()),
        inactive_anon: pages(table.inactive_anon.as_ref()),
        active_file: pages(table.active_file.as_ref()),
        inactive_file: pages(table.inactive_file.as_ref()),
        node: table.node().0 as usize,
        zone: table.zone.as_ref().map(|zone| zone.value),
    }
}

/// Reports the first table without room, in the order in which a run places the memory: tables with
/// a zone come first.
pub(super) fn check_room(raw: &raw::ScenarioTable, setup: &Setup, sink: &mut ProblemSink) {
    let tasks = raw.task.as_deref().unwrap_or_default();
    let tables: Vec<&ResidentTable> =
        tasks.iter().flat_map(|task| task.table.resident.iter().flatten()).collect();
    if tables.is_empty() {
        return;
    }
    let size = setup.machine.page_size;
    // Reported already.
    let mut quiet = ProblemSink::default();
    quiet.page_size = size;
    let mut room: Vec<Vec<(_, u64)>> = setup
        .machine
        .nodes
        .iter()
        .map(|node| {
            let held =
                node.zones.iter().map(|zone| (zone.name, zone.managed.saturating_sub(zone.free)));
            held.collect()
        })
        .collect();
    for is_placed in [true, false] {
        for task in tasks {
            let copies = task.table.copies().0 as u64;
            for table in task.table.resident.iter().flatten() {
                if table.zone.is_some() != is_placed {
                    continue;
                }
                let pages = one(table, &mut quiet);
                let page_tables = match pages.anon() {
                    0 => 0,
                    anon => anon.div_ceil(size.ptrs_per_pte()) + 1,
                };
                let all = [pages.anon(), pages.file(), page_tables];
                let all = all.into_iter().fold(0, u64::saturating_add).saturating_mul(copies);
                let mut left = all;
                let zones = room.get_mut(pages.node).into_iter().flatten().rev();
                for (_, free) in
                    zones.filter(|(name, _)| pages.zone.is_none_or(|zone| zone == *name))
                {
                    let part = left.min(*free);
                    (*free, left) = (*free - part, left - part);
                }
                if left > 0 {
                    let place = pages
                        .zone
                        .map_or("the node".to_owned(), |zone| format!("zone {}", zone.name()));
                    let message = format!(
                        "{place} has no room for {} of this memory (with its page tables {})",
                        show_size(size.bytes_of(left)),
                        show_size(size.bytes_of(all))
                    );
                    let hint =
                        "it is part of the managed memory of [[machine.zone]] that is not free";
                    sink.hinted(table.at, message, hint);
                    return;
                }
            }
        }
    }
}
