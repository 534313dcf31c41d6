//! Which group lost memory to reclaim, and what slab holds of a group's memory.
//!
//! Invariant: pages of a group are counted in its ancestors, too, and are named once, for the group
//! at the bottom.

use super::{largest, FactFinder, RunFact, WORTH_NAMING};
use pagetide_core::control::GroupControl;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::HPAGE_PMD_NR;
use pagetide_scenario::metric::declared;
use pagetide_scenario::metric::{Owner, Scope};
use pagetide_scenario::model::{Phase, Setup, TargetWrite};
use pagetide_scenario::names::MadviseKind;
use pagetide_scenario::workload::{Workload, WriteControl};
use std::collections::BTreeSet;

const KHUGEPAGED: &str = "khugepaged";
/// The sum over kswapd and tasks in memory.stat.
const PGSTEAL: &str = "pgsteal";
/// Bytes below which a loss or a holding is not told.
pub(super) const LITTLE_MEMORY: f64 = 1e6;

/// The memory that a group lost to reclaim in a variant.
pub(super) struct GroupLoss {
    /// Bytes that the group lost and its children did not, including swapped pages.
    pub(super) bytes: f64,
    /// The share that kswapd reclaimed.
    pub(super) by_kswapd: f64,
    /// Why tasks reclaimed.
    pub(super) causes: Vec<ReclaimCause>,
    /// Other groups that lost at least a tenth as much, with their losses.
    pub(super) others: Vec<(Owner, f64)>,
    /// The task, or khugepaged, that allocated most memory.
    pub(super) allocator: Option<(String, f64)>,
}

/// Why tasks reclaimed from a group.
pub(super) enum ReclaimCause {
    /// The group, or an ancestor, was at a limit.
    Limit,
    LoweredLimit,
    /// The machine was short of memory.
    Machine,
    /// memory.reclaim was written.
    Request,
}

impl FactFinder<'_> {
    /// The counter of this name in memory.stat.
    fn stat(&self, column: usize, group: &Owner, name: &'static str) -> f64 {
        self.value(column, &Scope::Group(group.clone()).named(name))
    }

    /// [`GroupLoss::bytes`].
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
    pub(super) fn groups(&self) -> Option<RunFact> {
        let groups = self.owners(false);
        let most = |group: &Owner| self.most(|column| self.lost(column, group));
        let loser = largest(&groups, most)?;
        if most(loser) < LITTLE_MEMORY {
            let grew = |column| {
                let (by, bytes) = self.allocator(column)?;
                (by == KHUGEPAGED).then_some((column, bytes))
            };
            return Some(RunFact::NoLoss((0..self.report.columns.len()).find_map(grew)));
        }
        let loss = |column| {
            let bytes = self.lost(column, loser);
            let others = groups.iter().filter(|group| *group != loser);
            let others = others.map(|group| (group.clone(), self.lost(column, group)));
            let by_kswapd = self.stat(column, loser, Event::PgstealKswapd.name());
            GroupLoss {
                bytes,
                by_kswapd: by_kswapd / self.stat(column, loser, PGSTEAL).max(1.0),
                causes: self.causes(column, loser),
                others: others.filter(|(_, too)| *too >= WORTH_NAMING * bytes).collect(),
                allocator: self.allocator(column),
            }
        };
        let lost = self.compared(|column| self.lost(column, loser), loss);
        Some(RunFact::Loss(loser.clone(), lost))
    }

    /// Why tasks reclaimed from a group. The machine's counters have no reclaim for a group.
    fn causes(&self, column: usize, group: &Owner) -> Vec<ReclaimCause> {
        let of = |metric| self.value(column, &Scope::Group(group.clone()).metric(metric));
        let is_limited = of(declared::EVENTS_MAX) + of(declared::EVENTS_HIGH) > 0.0;
        let setup = &self.report.plan.scenario.variants[column].setup;
        // With `measure`, the machine's counters are of one task, and do not show this.
        let direct = Event::PgstealDirect.name();
        let of_machine = self.value(column, &Scope::Machine.named(direct));
        let is_short =
            setup.measure.is_some() || of_machine > WORTH_NAMING * self.stat(column, group, direct);
        let is_written = |controls: &[GroupControl]| is_written(setup, group, controls);
        let request = is_written(&[GroupControl::Reclaim, GroupControl::ForceEmpty])
            .then_some(ReclaimCause::Request);
        let cause = match (is_limited, is_short, &request) {
            (true, ..) => Some(ReclaimCause::Limit),
            (false, true, _) => Some(ReclaimCause::Machine),
            (false, false, Some(_)) => None,
            (false, false, None) if is_written(&LIMITS) => Some(ReclaimCause::LoweredLimit),
            // An ancestor: its events are not counted in its descendants.
            (false, false, None) => Some(ReclaimCause::Limit),
        };
        cause.into_iter().chain(request).collect()
    }

    /// [`GroupLoss::allocator`].
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

    /// The group with the largest share of slab, if a share is worth naming.
    pub(super) fn slab(&self) -> Option<RunFact> {
        let held = |column: usize, group: &Owner| {
            let of = |metric| self.value(column, &Scope::Group(group.clone()).metric(metric));
            (of(declared::SLAB), of(declared::MEMORY_CURRENT))
        };
        let share = |column: usize, group: &Owner| match held(column, group) {
            (slab, whole) if slab >= LITTLE_MEMORY => slab / whole.max(slab),
            _ => 0.0,
        };
        let most = |group: &Owner| self.most(|column| share(column, group));
        let groups = self.owners(false);
        // The first of equals is the ancestor; the last is at the bottom.
        let group = largest(&groups, most).filter(|group| most(group) >= WORTH_NAMING)?;
        let slab = self.compared(|it| share(it, group), |column| held(column, group));
        Some(RunFact::Slab(group.clone(), slab))
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
