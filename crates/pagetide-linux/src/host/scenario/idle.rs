//! Writes idle tasks with the memory that the system's programs and its page cache have now
//! (`--as-is`).
//!
//! The amounts of each zone come from its LRU counters, those of a group from its `memory.stat`;
//! the rest belongs to the root. Anonymous pages that no process maps have a task of their own.
//! Invariant: the tasks together have the lists of each zone; with their page tables these fit into
//! its memory that is not free.

use super::page::ScenarioText;
use crate::host::cgroup::CgroupVersion;
use crate::host::free::{scaled, ReportedLists};
use crate::host::layout::NodeLayout;
use crate::host::note::ImportNote;
use crate::host::number::{plural, scale};
use crate::host::plain_names::NameAllocator;
use crate::host::report::{KernelReport, ReportedProcess};
use crate::host::snapshot::HostSnapshot;
use crate::host::{unnamed, vmstat};
use pagetide_core::units::page_size::PageSize;
use pagetide_scenario::model::FreeLists;
use pagetide_scenario::names::NameSet;
use std::cmp::Reverse;

/// Maximum number of processes of a report; the others are part of the task `idle`.
const PROCESSES_MAX: usize = 24;
/// The most text that one group adds, without the lines of its nodes.
pub(super) const GROUP_BYTES: usize = 170;
/// The most text that a group adds for each node.
pub(super) const NODE_BYTES: usize = 150;
/// `oom_score_adj` of tasks that stand for several processes.
const SPARED: i16 = -1000;

/// A task, and its pages.
struct IdleTask<'t> {
    name: String,
    group: Option<&'t str>,
    oom_score_adj: i16,
    lists: ReportedLists,
}

/// Memory to give to tasks.
struct IdleMemory<'t> {
    /// Lists of each group, without those of its descendants.
    groups: Vec<(&'t str, ReportedLists)>,
    /// Anonymous pages that no process maps.
    unmapped: u64,
    processes: Vec<&'t ReportedProcess>,
    /// Whether the processes are those of the last group.
    is_of_group: bool,
}

/// Writes the tasks. `groups` are the groups of the scenario, by index into the system's.
pub(super) fn write(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    nodes: &[NodeLayout],
    groups: &[(usize, String)],
    report: Option<&KernelReport>,
    names: &mut NameAllocator,
) {
    let size = page.size;
    let mut places = Vec::new();
    let mut rooms = Vec::new();
    let mut zones = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        for zone in &node.zones {
            let start = zone.free_lists.as_ref().map_or(zone.usage.free, FreeLists::pages);
            places.push((index, zone.name));
            rooms.push(zone.managed.saturating_sub(start));
            zones.push(zone.lists);
        }
    }
    let memory = IdleMemory::new(host, groups, report, size);
    let (tasks, parts) = memory.fitted(&mut zones, &rooms, size);
    if tasks.is_empty() {
        return;
    }
    page.line("");
    page.comment(
        "Memory of programs and page cache now: idle tasks have it, on the lists that the system's \
         counters say. A run reclaims it; no task uses it. The OOM killer spares tasks that stand \
         for several processes.",
    );
    let in_groups = memory.groups.iter().fold(0u64, |sum, (_, own)| sum.saturating_add(own.all()));
    let kept = tasks.iter().filter(|task| task.group.is_some());
    let cut = in_groups.saturating_sub(kept.fold(0, |sum, task| sum + task.lists.all()));
    if cut > 0 {
        let message = format!(
            "the lists of {} are cut by {}: the zones' lists do not have it all",
            plural(memory.groups.len(), "group"),
            plural(usize::try_from(cut).unwrap_or(usize::MAX), "page")
        );
        page.comment_note(ImportNote::new("/sys/fs/cgroup", message));
    }
    for (task, parts) in tasks.iter().zip(parts) {
        let lines: Vec<String> = match task.group {
            None => places
                .iter()
                .zip(parts)
                .filter(|(_, lists)| lists.all() > 0)
                .map(|((node, zone), lists)| {
                    format!("    {{ node = {node}, zone = \"{}\", {} }},", zone.name(), keys(lists))
                })
                .collect(),
            // The zones of a group's pages are unknown.
            Some(_) => (0..nodes.len())
                .map(|node| {
                    let of_node = places.iter().zip(&parts).filter(|((at, _), _)| *at == node);
                    let none = ReportedLists::default();
                    (node, of_node.fold(none, |sum, (_, lists)| sum.plus(*lists)))
                })
                .filter(|(_, lists)| lists.all() > 0)
                .map(|(node, lists)| match nodes.len() {
                    1 => format!("    {{ {} }},", keys(lists)),
                    _ => format!("    {{ node = {node}, {} }},", keys(lists)),
                })
                .collect(),
        };
        write_task(page, &names.name(&task.name.replace('/', "_")), task, &lines);
    }
}

impl<'t> IdleMemory<'t> {
    fn new(
        host: &HostSnapshot,
        groups: &'t [(usize, String)],
        report: Option<&'t KernelReport>,
        size: PageSize,
    ) -> IdleMemory<'t> {
        let own = |(index, name): &'t (usize, String)| {
            (name.as_str(), own_lists(host, *index, groups, size))
        };
        let processes = report.map_or(&[][..], |report| &report.processes);
        let mut processes: Vec<_> = processes.iter().filter(|it| it.rss > 0).collect();
        processes.sort_by_key(|process| Reverse(process.rss));
        processes.truncate(PROCESSES_MAX);
        IdleMemory {
            groups: groups.iter().map(own).filter(|(_, lists)| lists.all() > 0).collect(),
            unmapped: unnamed::unmapped_pages(host, size),
            processes,
            is_of_group: report.is_some_and(|report| report.request.is_of_group),
        }
    }

    /// The tasks, with the pages of each in each zone. Cuts the lists of the zones until they and
    /// the page tables fit into `rooms`.
    fn fitted(
        &self,
        zones: &mut [ReportedLists],
        rooms: &[u64],
        size: PageSize,
    ) -> (Vec<IdleTask<'t>>, Vec<Vec<ReportedLists>>) {
        for (zone, room) in zones.iter_mut().zip(rooms) {
            *zone = fit(*zone, *room);
        }
        loop {
            let tasks = self.tasks(zones);
            let mut left = zones.to_vec();
            let parts: Vec<Vec<ReportedLists>> =
                tasks.iter().map(|task| take(&mut left, task.lists)).collect();
            let mut is_cut = false;
            for (index, (zone, room)) in zones.iter_mut().zip(rooms).enumerate() {
                let needed =
                    parts.iter().fold(0, |sum, parts| sum + page_tables(parts[index], size));
                let over = (zone.all() + needed).saturating_sub(*room);
                is_cut |= over > 0;
                *zone = fit(*zone, zone.all().saturating_sub(over));
            }
            if !is_cut {
                return (tasks, parts);
            }
        }
    }

    /// The tasks. Together they have the lists of the zones.
    fn tasks(&self, zones: &[ReportedLists]) -> Vec<IdleTask<'t>> {
        let none = ReportedLists::default();
        let mut left = zones.iter().fold(none, |sum, zone| sum.plus(*zone));
        let mut of_groups: Vec<IdleTask<'t>> = Vec::new();
        for (group, own) in &self.groups {
            let lists = own.with(left, u64::min);
            left = left.minus(lists);
            let (name, group) = (format!("idle-{group}"), Some(*group));
            of_groups.push(IdleTask { name, group, oom_score_adj: SPARED, lists });
        }
        let unmapped = anon_part(left, self.unmapped);
        left = left.minus(unmapped);
        let last = of_groups.last_mut().filter(|_| self.is_of_group);
        let (group, pool) = match last {
            Some(task) => (task.group, &mut task.lists),
            None => (None, &mut left),
        };
        // Resident pages of a process can be shared, or of a file.
        let anon = pool.anon();
        let resident = |process: &ReportedProcess| process.rss.min(anon);
        let all = self.processes.iter().fold(0u64, |sum, it| sum.saturating_add(resident(it)));
        let mut tasks = Vec::new();
        for process in &self.processes {
            let lists = anon_part(*pool, scale(all.min(anon), resident(process), all));
            *pool = pool.minus(lists);
            let (name, oom_score_adj) = (process.name.clone(), process.oom_score_adj);
            tasks.push(IdleTask { name, group, oom_score_adj, lists });
        }
        for (name, lists) in [("idle", left), ("unmapped", unmapped)] {
            tasks.push(IdleTask { name: name.into(), group: None, oom_score_adj: SPARED, lists });
        }
        tasks.append(&mut of_groups);
        tasks.retain(|task| task.lists.all() > 0);
        tasks
    }
}

/// Takes `lists`, which the zones have, from each zone in proportion to what it has.
fn take(zones: &mut [ReportedLists], mut lists: ReportedLists) -> Vec<ReportedLists> {
    let none = ReportedLists::default();
    let mut all = zones.iter().fold(none, |sum, zone| sum.plus(*zone));
    let from = |zone: &mut ReportedLists| {
        let part = ReportedLists {
            active_anon: scale(lists.active_anon, zone.active_anon, all.active_anon),
            inactive_anon: scale(lists.inactive_anon, zone.inactive_anon, all.inactive_anon),
            active_file: scale(lists.active_file, zone.active_file, all.active_file),
            inactive_file: scale(lists.inactive_file, zone.inactive_file, all.inactive_file),
        };
        all = all.minus(*zone);
        lists = lists.minus(part);
        *zone = zone.minus(part);
        part
    };
    zones.iter_mut().map(from).collect()
}

/// At most `pages` anonymous pages of `lists`, of both in proportion.
fn anon_part(lists: ReportedLists, pages: u64) -> ReportedLists {
    let pages = pages.min(lists.anon());
    let active_anon = scale(lists.active_anon, pages, lists.anon());
    ReportedLists { active_anon, inactive_anon: pages - active_anon, ..ReportedLists::default() }
}

/// The page tables that a scenario reserves for the pages of a task in a zone.
fn page_tables(lists: ReportedLists, size: PageSize) -> u64 {
    match lists.anon() {
        0 => 0,
        anon => anon.div_ceil(size.ptrs_per_pte()) + 1,
    }
}

fn write_task(page: &mut ScenarioText, name: &str, task: &IdleTask<'_>, lines: &[String]) {
    page.line("[[task]]");
    page.line(&format!("name = \"{name}\""));
    task.group.iter().for_each(|group| page.line(&format!("group = \"{group}\"")));
    page.line("background = true");
    page.line(&format!("oom_score_adj = {}", task.oom_score_adj));
    page.line("workload = \"sleep\"");
    page.line("duration = \"1000h\"");
    page.line("resident = [");
    lines.iter().for_each(|line| page.line(line));
    page.line("]");
}

fn keys(lists: ReportedLists) -> String {
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
fn fit(lists: ReportedLists, room: u64) -> ReportedLists {
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
) -> ReportedLists {
    let of = |index: usize| {
        let group = &host.groups[index];
        let prefix = if group.version == CgroupVersion::V1 { "total_" } else { "" };
        let pages = |name: &str| {
            let bytes = vmstat::get(&group.stat, &format!("{prefix}{name}"));
            size.pages_in(bytes.unwrap_or(0))
        };
        ReportedLists {
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
