//! The sentences about groups: which one lost memory to reclaim, and what slab holds of its memory.
//!
//! Invariant: pages of a group are counted in its ancestors, too, and are named once, for the group
//! at the bottom.

use super::{bytes, percent, Facts, WORTH_NAMING};
use pagetide_core::control::GroupControl;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::HPAGE_PMD_NR;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::{Owner, Scope};
use pagetide_scenario::model::{Phase, Setup, TargetWrite};
use pagetide_scenario::names::MadviseKind;
use pagetide_scenario::workload::{Workload, WriteControl};
use std::collections::BTreeSet;

const KHUGEPAGED: &str = "khugepaged";
/// The sum over kswapd and tasks in memory.stat.
const PGSTEAL: &str = "pgsteal";
/// Bytes below which a loss or a holding gets no sentence.
const LITTLE_MEMORY: f64 = 1e6;

impl Facts<'_> {
    fn of_group(&self, column: usize, group: &Owner, metric: &MetricDecl) -> f64 {
        self.value(column, &Scope::Group(group.clone()).metric(metric))
    }

    /// The counter of this name in memory.stat.
    fn stat(&self, column: usize, group: &Owner, name: &'static str) -> f64 {
        self.value(column, &Scope::Group(group.clone()).named(name))
    }

    /// Bytes that reclaim took from a group and not from its children, including swapped pages.
    fn lost(&self, column: usize, group: &Owner) -> f64 {
        let setup = &self.report.plan.scenario.variants[column].setup;
        let family = |at: usize| Owner::new(&setup.groups[at].name).family();
        let is_child = |at: &usize| {
            setup.groups[*at].parent.is_some_and(|it| family(it) == *group) && family(*at) != *group
        };
        let children: BTreeSet<Owner> =
            (0..setup.groups.len()).filter(is_child).map(family).collect();
        let pages = |group: &Owner| self.stat(column, group, PGSTEAL);
        let of_children: f64 = children.iter().map(&pages).sum();
        let own = (pages(group) - of_children).max(0.0);
        own * setup.machine.page_size.bytes() as f64
    }

    /// The group that lost most to reclaim, why, and which task allocated most in that time.
    pub(super) fn groups(&self) -> Option<String> {
        let groups = self.owners(false);
        let columns = || 0..self.report.columns.len();
        let most = |group: &Owner| columns().map(|it| self.lost(it, group)).fold(0.0, f64::max);
        let loser = groups.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
        if most(loser) < LITTLE_MEMORY {
            let grew = columns().find_map(|column| {
                let (by, bytes_of) = self.allocator(column).filter(|(by, _)| by == KHUGEPAGED)?;
                Some(format!("; {by} allocated {}{}", bytes(bytes_of), self.in_variant(column)))
            });
            return Some(format!("No group lost memory to reclaim{}.", grew.unwrap_or_default()));
        }
        let mut to = " to reclaim";
        let mut losses: Vec<String> = Vec::new();
        for column in self.compared(|column| self.lost(column, loser)) {
            let lost = self.lost(column, loser);
            let in_variant = self.in_variant(column);
            if lost < LITTLE_MEMORY {
                losses.push(format!("next to nothing{in_variant}"));
                continue;
            }
            let mut text = format!("{}{to}{in_variant}", bytes(lost));
            to = "";
            let by_kswapd = self.stat(column, loser, Event::PgstealKswapd.name());
            let kswapd = by_kswapd / self.stat(column, loser, PGSTEAL).max(1.0);
            text += &match kswapd > 0.5 {
                true => {
                    format!(" ({} by kswapd: the machine was short of memory)", percent(kswapd))
                }
                false => format!(" (mostly by tasks: {})", self.why_by_tasks(column, loser)),
            };
            for other in groups.iter().filter(|group| *group != loser) {
                let too = self.lost(column, other);
                if too >= WORTH_NAMING * lost {
                    text += &format!(", group {other} {}", bytes(too));
                }
            }
            if let Some((task, allocated)) = self.allocator(column) {
                text += &format!(" while {task} allocated {}", bytes(allocated));
            }
            losses.push(text);
        }
        Some(format!("group {loser}: lost {}.", losses.join("; ")))
    }

    /// Why tasks reclaimed from a group. The machine's counters have no reclaim for a group.
    fn why_by_tasks(&self, column: usize, group: &Owner) -> &'static str {
        let of = |metric| self.of_group(column, group, metric);
        let is_limited = of(declared::EVENTS_MAX) + of(declared::EVENTS_HIGH) > 0.0;
        let setup = &self.report.plan.scenario.variants[column].setup;
        // With `measure`, the machine's counters are of one task, and do not show this.
        let direct = Event::PgstealDirect.name();
        let of_machine = self.value(column, &Scope::Machine.named(direct));
        let is_short =
            setup.measure.is_some() || of_machine > WORTH_NAMING * self.stat(column, group, direct);
        let is_written = |controls: &[GroupControl]| is_written(setup, group, controls);
        let is_asked = is_written(&[GroupControl::Reclaim, GroupControl::ForceEmpty]);
        match (is_limited, is_asked) {
            (true, true) => "a group was at its limit, and memory.reclaim was written",
            (true, false) => "a group was at its limit",
            (false, true) if is_short => {
                "the machine was short of memory, and memory.reclaim was written"
            }
            (false, true) => "memory.reclaim was written",
            (false, false) if is_short => "the machine was short of memory",
            (false, false) if is_written(&LIMITS) => "its limit was lowered",
            // An ancestor: its events are not counted in its descendants.
            (false, false) => "a group was at its limit",
        }
    }

    /// The task, or khugepaged, that allocated most memory.
    fn allocator(&self, column: usize) -> Option<(String, f64)> {
        let allocated =
            |task: Owner| (task.to_string(), self.of_task(column, &task, declared::ALLOCATED));
        let setup = &self.report.plan.scenario.variants[column].setup;
        // The counter has the huge pages of madvise(), too.
        let collapsed = match setup.tasks.iter().flat_map(|task| &task.phases).any(collapses) {
            true => 0.0,
            false => self.value(column, &Scope::Machine.named(Event::ThpCollapseAlloc.name())),
        };
        let collapsed = collapsed * setup.machine.page_size.bytes_of(HPAGE_PMD_NR) as f64;
        let tasks = self.owners(true).into_iter().map(allocated);
        let all = tasks.chain([(KHUGEPAGED.to_owned(), collapsed)]);
        all.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, bytes)| *bytes > 0.0)
    }

    /// `slab: at the end 191.2 MiB of the 512.0 MiB of group ct in limit; 763.0 MiB of 1.1 GiB in
    /// none.` About the group with the largest share of slab, if a share is worth naming.
    pub(super) fn slab(&self) -> Option<String> {
        let held = |column: usize, group: &Owner| {
            let of = |metric| self.of_group(column, group, metric);
            (of(declared::SLAB), of(declared::MEMORY_CURRENT))
        };
        let share = |column: usize, group: &Owner| match held(column, group) {
            (slab, whole) if slab >= LITTLE_MEMORY => slab / whole.max(slab),
            _ => 0.0,
        };
        let columns = || 0..self.report.columns.len();
        let most = |group: &Owner| columns().map(|it| share(it, group)).fold(0.0, f64::max);
        let groups = self.owners(false);
        // The first of equals is the ancestor; the last is at the bottom.
        let group = groups.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
        if most(group) < WORTH_NAMING {
            return None;
        }
        let mut of = format!(" of group {group}");
        let said = self.compared(|column| share(column, group)).into_iter().map(|column| {
            let (slab, whole) = held(column, group);
            let of = std::mem::take(&mut of);
            format!("{} of the {}{of}{}", bytes(slab), bytes(whole), self.in_variant(column))
        });
        Some(format!("slab: at the end {}.", said.collect::<Vec<String>>().join("; ")))
    }
}

/// Controls whose write reclaims down to a new limit.
const LIMITS: [GroupControl; 3] =
    [GroupControl::Max, GroupControl::High, GroupControl::LimitInBytes];

/// A group, or each of its copies, and the ancestors.
fn around<'a>(setup: &'a Setup, group: &'a Owner) -> impl Iterator<Item = usize> + 'a {
    let is_it = move |at: &usize| Owner::new(&setup.groups[*at].name).family() == *group;
    let its = (0..setup.groups.len()).filter(is_it);
    its.flat_map(|at| std::iter::successors(Some(at), |at| setup.groups[*at].parent))
}

/// Whether a task writes one of these controls of a group, of its copies, or of an ancestor.
fn is_written(setup: &Setup, group: &Owner, controls: &[GroupControl]) -> bool {
    let is_of_it = |target: usize| around(setup, group).any(|at| at == target);
    setup.tasks.iter().flat_map(|task| &task.phases).any(|phase| match &phase.workload {
        Workload::WriteControl(WriteControl { write: TargetWrite::Group(target, write) }) => {
            controls.contains(&write.control) && is_of_it(*target)
        }
        _ => false,
    })
}

fn collapses(phase: &Phase) -> bool {
    matches!(&phase.workload, Workload::Advise(it) if it.advice == MadviseKind::Collapse)
}
