//! Writes idle tasks with the memory that the system's programs and its page cache have now
//! (`--as-is`).
//!
//! The amounts of each zone come from its LRU counters, those of a group from its `memory.stat`;
//! the rest belongs to the root. Anonymous pages that no process maps have a task of their own.
//! Invariant: a zone's amounts and their page tables fit into its memory that is not free.

use super::page::ScenarioText;
use crate::host::cgroup::CgroupVersion;
use crate::host::free::{scaled, PageLists};
use crate::host::layout::NodeLayout;
use crate::host::number::scale;
use crate::host::plain_names::NameAllocator;
use crate::host::report::ReportedProcess;
use crate::host::snapshot::HostSnapshot;
use crate::host::{unnamed, vmstat};
use pagetide_core::units::page_size::PageSize;
use pagetide_scenario::model::FreeLists;
use pagetide_scenario::names::NameSet;
use std::cmp::Reverse;

/// Maximum number of processes of a report; the others are part of the task `idle`.
const PROCESSES_MAX: usize = 24;
/// The most text that one group adds.
pub(super) const GROUP_BYTES: usize = 320;

/// Writes the tasks. `groups` are the groups of the scenario, by index into the system's.
pub(super) fn write(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    nodes: &[NodeLayout],
    groups: &[(usize, String)],
    processes: &[ReportedProcess],
    names: &mut NameAllocator,
) {
    let size = page.size;
    let mut zones = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        for zone in &node.zones {
            let start = zone.free_lists.as_ref().map_or(zone.usage.free, FreeLists::pages);
            // Each task of the zone has page tables of its own.
            let tables = zone.lists.anon() / size.ptrs_per_pte() + 4;
            let room = zone.managed.saturating_sub(start).saturating_sub(tables);
            zones.push((
                format!("node = {index}, zone = \"{}\"", zone.name.name()),
                fit(zone.lists, room),
            ));
        }
    }
    let total = |of: fn(&PageLists) -> u64| {
        zones.iter().fold(0u64, |sum, (_, lists)| sum.saturating_add(of(lists)))
    };
    let (anon, file) = (total(PageLists::anon), total(PageLists::file));
    if anon == 0 && file == 0 {
        return;
    }
    page.line("");
    page.comment(
        "Memory of programs and page cache now: idle tasks have it, on the lists that the system's \
         counters say. A run reclaims it; no task uses it. The OOM killer spares tasks that stand \
         for several processes.",
    );
    let mut in_groups = PageLists::default();
    let mut of_groups = Vec::new();
    for (index, name) in groups {
        let lists = own_lists(host, *index, groups, size);
        let sum = in_groups.plus(lists);
        // A few pages move between two readings; more than all there is would be a mistake.
        if lists.all() > 0 && sum.anon() <= anon && sum.file() <= file {
            in_groups = sum;
            of_groups.push((name, lists));
        }
    }
    let unmapped = unnamed::unmapped_pages(host, size).min(anon - in_groups.anon());
    let mut rest = anon - in_groups.anon() - unmapped;
    let mut largest: Vec<&ReportedProcess> = processes.iter().filter(|it| it.rss > 0).collect();
    largest.sort_by_key(|process| Reverse(process.rss));
    largest.truncate(PROCESSES_MAX);
    // Resident pages of a process can be shared, or of a file.
    let resident = largest.iter().fold(0u64, |sum, it| sum.saturating_add(it.rss));
    let of_processes = resident.min(rest);
    let mut all = Vec::new();
    for process in largest {
        let pages = scale(of_processes, process.rss, resident);
        rest -= pages;
        all.push((process.name.as_str(), process.oom_score_adj, pages, 0));
    }
    let part = |lists: PageLists, of_anon: u64, of_file: u64| PageLists {
        active_anon: scale(lists.active_anon, of_anon, anon),
        inactive_anon: scale(lists.inactive_anon, of_anon, anon),
        active_file: scale(lists.active_file, of_file, file),
        inactive_file: scale(lists.inactive_file, of_file, file),
    };
    let spared = -1000;
    all.push(("idle", spared, rest, file - in_groups.file()));
    all.push(("unmapped", spared, unmapped, 0));
    for (name, adj, of_anon, of_file) in all {
        let lines: Vec<String> = zones
            .iter()
            .map(|(place, lists)| (place, part(*lists, of_anon, of_file)))
            .filter(|(_, lists)| lists.all() > 0)
            .map(|(place, lists)| format!("    {{ {place}, {} }},", keys(lists)))
            .collect();
        task(page, &names.name(&name.replace('/', "_")), None, adj, &lines);
    }
    for (group, lists) in of_groups {
        let name = names.name(&format!("idle-{group}"));
        task(page, &name, Some(group), spared, &[format!("    {{ {} }},", keys(lists))]);
    }
}

fn task(page: &mut ScenarioText, name: &str, group: Option<&str>, adj: i16, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    page.line("[[task]]");
    page.line(&format!("name = \"{name}\""));
    group.iter().for_each(|group| page.line(&format!("group = \"{group}\"")));
    page.line("background = true");
    page.line(&format!("oom_score_adj = {adj}"));
    page.line("workload = \"sleep\"");
    page.line("duration = \"1000h\"");
    page.line("resident = [");
    lines.iter().for_each(|line| page.line(line));
    page.line("]");
}

fn keys(lists: PageLists) -> String {
    let named = [
        ("active_anon", lists.active_anon),
        ("inactive_anon", lists.inactive_anon),
        ("active_file", lists.active_file),
        ("inactive_file", lists.inactive_file),
    ];
    let named = named.iter().filter(|(_, pages)| *pages > 0);
    let keys: Vec<String> =
        named.map(|(name, pages)| format!("{name} = \"{pages} pages\"")).collect();
    keys.join(", ")
}

/// The lists, reduced in proportion if they are more than `room`.
fn fit(lists: PageLists, room: u64) -> PageLists {
    match lists.all() {
        all if all <= room => lists,
        all => scaled(lists, room, all),
    }
}

/// The pages of a group without those of its descendants in the scenario.
fn own_lists(
    host: &HostSnapshot,
    index: usize,
    groups: &[(usize, String)],
    size: PageSize,
) -> PageLists {
    let of = |index: usize| {
        let group = &host.groups[index];
        let prefix = if group.version == CgroupVersion::V1 { "total_" } else { "" };
        let pages = |name: &str| {
            let bytes = vmstat::get(&group.stat, &format!("{prefix}{name}"));
            size.pages_in(bytes.unwrap_or(0))
        };
        PageLists {
            active_anon: pages("active_anon"),
            inactive_anon: pages("inactive_anon"),
            active_file: pages("active_file"),
            inactive_file: pages("inactive_file"),
        }
    };
    let is_kept = |index: usize| groups.iter().any(|(kept, _)| *kept == index);
    // The kept group above another, with groups between them that are left out.
    let above = |mut index: usize| loop {
        index = host.groups[index].parent?;
        if is_kept(index) {
            return Some(index);
        }
    };
    let below = groups.iter().filter(|(other, _)| above(*other) == Some(index));
    below.fold(of(index), |own, (other, _)| own.minus(of(*other)))
}
