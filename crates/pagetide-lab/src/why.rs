//! The sentences under the table: which task waited for memory, how busy kswapd was, which group
//! lost memory and which task allocated then. They compare the first variant with the one that
//! differs most from it.
//!
//! Invariant: each figure is the mean of a metric over the seeds, or a sum or share of such means.

use crate::format::Scale;
use crate::heading::wrap;
use crate::report::Report;
use crate::rows;
use pagetide_core::control::GroupControl;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::model::{Setup, TargetWrite};
use pagetide_scenario::record::Unit;
use pagetide_scenario::workload::{Workload, WriteControl};
use std::collections::BTreeSet;

/// Smaller shares get no sentence.
const LITTLE: f64 = 0.001;
/// A part is named if it is at least this share of the whole.
const WORTH_NAMING: f64 = 0.1;

/// Reasons to wait for memory: the metric of a task, in words.
const WAITS: [(&str, &str); 4] = [
    ("stall_refault", "for evicted pages"),
    ("stall_reclaim", "reclaiming"),
    ("stall_throttled", "throttled in reclaim"),
    ("stall_dirty", "for dirty pages to be written"),
];

/// The sentences in lines of at most `width` characters; each starts a line. Empty without runs.
pub fn render(report: &Report, width: usize) -> String {
    let mut out = String::new();
    for (number, sentence) in sentences(report).iter().enumerate() {
        let label = if number == 0 { "why  " } else { "     " };
        let lines = wrap(sentence, width.saturating_sub(label.len()).max(20));
        for (line, text) in lines.iter().enumerate() {
            let label = if line == 0 { label } else { "     " };
            out += &format!("{label}{text}\n");
        }
    }
    match out.is_empty() {
        true => out,
        false => format!("\n{out}"),
    }
}

pub fn sentences(report: &Report) -> Vec<String> {
    if report.columns.is_empty() || !report.has_data() {
        return Vec::new();
    }
    let facts = Facts { report };
    facts.stalls().into_iter().chain(facts.kswapd()).chain(facts.groups()).collect()
}

struct Facts<'a> {
    report: &'a Report,
}

impl Facts<'_> {
    fn value(&self, column: usize, key: &str) -> f64 {
        let summary = self.report.shown_summary(column, key);
        summary.map_or(0.0, |summary| summary.mean).max(0.0)
    }

    /// Names of the tasks or groups of all variants, copies together.
    fn owners(&self, is_task: bool) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut owners = Vec::new();
        for variant in &self.report.plan.scenario.variants {
            let names: Vec<&str> = match is_task {
                true => variant.setup.tasks.iter().map(|task| task.name.as_str()).collect(),
                false => variant.setup.groups.iter().map(|group| group.name.as_str()).collect(),
            };
            for name in names {
                let family = Owner::new(name).family().name;
                if seen.insert(family.clone()) {
                    owners.push(family);
                }
            }
        }
        owners
    }

    fn has_copies(&self, task: &str) -> bool {
        let tasks = self.report.plan.scenario.variants.iter().flat_map(|it| &it.setup.tasks);
        let owners = tasks.map(|task| Owner::new(&task.name));
        owners.into_iter().any(|owner| owner.name == task && owner.copy.is_some())
    }

    /// Threads of the task, or of each copy: the most in any variant.
    fn threads(&self, task: &str) -> u32 {
        let tasks = self.report.plan.scenario.variants.iter().flat_map(|it| &it.setup.tasks);
        let of_family = tasks.filter(|it| Owner::new(&it.name).family().name == task);
        let phases = of_family.flat_map(|task| &task.phases);
        phases.map(|phase| phase.workload.threads()).max().unwrap_or(1)
    }

    /// The first variant, and the one that differs most from it in `value`.
    fn compared(&self, value: impl Fn(usize) -> f64) -> Vec<usize> {
        let first = value(0);
        let far = |column: &usize| (value(*column) - first).abs();
        let others = 1..self.report.columns.len();
        let mut furthest: Option<usize> = None;
        for column in others.filter(|column| self.report.columns[*column].finished > 0) {
            if furthest.is_none_or(|best| far(&column) > far(&best)) {
                furthest = Some(column);
            }
        }
        std::iter::once(0).chain(furthest).collect()
    }

    fn in_variant(&self, column: usize) -> String {
        match self.report.columns.len() {
            1 => String::new(),
            _ => format!(" in {}", self.report.columns[column].name),
        }
    }

    fn waited(&self, column: usize, task: &str) -> f64 {
        WAITS.iter().map(|(metric, _)| self.value(column, &format!("{task}.{metric}"))).sum()
    }

    /// The task that the table is about: the measured one, or that of the first row of a task.
    fn subject(&self, tasks: &[String]) -> Option<String> {
        let rows = rows::rows(self.report);
        let owner = |row: &String| tasks.iter().find(|task| row.starts_with(&format!("{task}.")));
        let measured = self.report.plan.scenario.variants.iter().find_map(|variant| {
            let task = variant.setup.measure?;
            Some(Owner::new(&variant.setup.tasks[task].name).family().name)
        });
        let named = !self.report.plan.scenario.rows.is_empty();
        measured.or_else(|| rows.iter().find_map(owner).filter(|_| named).cloned())
    }

    /// Waits of the task that the table is about, and of the task that waited longest.
    fn stalls(&self) -> Vec<String> {
        let tasks = self.owners(true);
        let columns = || 0..self.report.columns.len();
        let most =
            |task: &String| columns().map(|column| self.waited(column, task)).fold(0.0, f64::max);
        let Some(longest) = tasks.iter().max_by(|a, b| most(a).total_cmp(&most(b))) else {
            return Vec::new();
        };
        let elapsed = columns().map(|it| self.value(it, "elapsed")).fold(0.0, f64::max);
        if most(longest) <= LITTLE * elapsed {
            return vec!["No task waited for memory for more than 0.1 % of the run.".to_owned()];
        }
        let subject = self.subject(&tasks).filter(|subject| subject != longest);
        subject.iter().chain([longest]).map(|task| self.stall(task)).collect()
    }

    /// `web (8 threads): waited for memory 7.4 s of 60 s in none (7.4 s for evicted pages).`
    fn stall(&self, longest: &str) -> String {
        let mut about = Vec::new();
        if self.has_copies(longest) {
            about.push("mean of the copies".to_owned());
        }
        if self.threads(longest) > 1 {
            about.push(format!("{} threads together", self.threads(longest)));
        }
        let about =
            if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let waits =
            self.compared(|column| self.waited(column, longest)).into_iter().map(|column| {
                let waited = self.waited(column, longest);
                let walltime = self.value(column, &format!("{longest}.walltime"));
                let in_variant = self.in_variant(column);
                if waited <= LITTLE * walltime {
                    let little = if waited == 0.0 { "not at all" } else { "hardly at all" };
                    return format!("{little}{in_variant}");
                }
                let mut parts: Vec<(f64, &str)> = WAITS
                    .iter()
                    .map(|(metric, words)| {
                        (self.value(column, &format!("{longest}.{metric}")), *words)
                    })
                    .filter(|(part, _)| *part >= WORTH_NAMING * waited)
                    .collect();
                parts.sort_by(|a, b| b.0.total_cmp(&a.0));
                let parts: Vec<String> = parts
                    .iter()
                    .map(|(part, words)| format!("{} {words}", seconds(*part)))
                    .collect();
                let (waited, walltime) = (seconds(waited), seconds(walltime));
                format!("{waited} of {walltime}{in_variant} ({})", parts.join(", "))
            });
        let waits: Vec<String> = waits.collect();
        format!("{longest}{about}: waited for memory {}.", waits.join("; "))
    }

    /// `kswapd: awake 57 % of the run in none (mostly working), 36 % in low (mostly working).`
    fn kswapd(&self) -> Option<String> {
        let busy = |column: usize| {
            let elapsed = self.value(column, "elapsed");
            let nodes = self.report.plan.scenario.variants[column].setup.machine.nodes.len();
            match elapsed > 0.0 {
                true => self.value(column, "time_kswapd_awake") / elapsed / nodes.max(1) as f64,
                false => 0.0,
            }
        };
        if (0..self.report.columns.len()).all(|column| busy(column) < LITTLE) {
            return None;
        }
        let mut of = " of the run";
        let mut shares: Vec<String> = Vec::new();
        for column in self.compared(busy) {
            let in_variant = self.in_variant(column);
            if busy(column) < LITTLE {
                shares.push(format!("hardly ever{in_variant}"));
                continue;
            }
            let awake = self.value(column, "time_kswapd_awake");
            let cpu = self.value(column, "cpu_kswapd");
            let disk = self.value(column, "time_kswapd_disk");
            let throttled = self.value(column, "time_kswapd_throttled");
            let rest = awake - cpu - disk - throttled;
            let parts = [
                (cpu, "working"),
                (disk, "waiting for the disk"),
                (throttled, "waiting for writeback"),
                (rest, "in short sleeps or waiting for a CPU"),
            ];
            let doing = mostly(&parts, awake);
            shares.push(format!("{}{of}{in_variant} ({doing})", percent(busy(column))));
            of = "";
        }
        Some(format!("kswapd: awake {}.", shares.join(", ")))
    }

    /// Bytes that reclaim took from a group, including swapped pages.
    fn lost(&self, column: usize, group: &str) -> f64 {
        let page = self.report.plan.scenario.variants[column].setup.machine.page_size.bytes();
        self.value(column, &format!("{group}.pgsteal")) * page as f64
    }

    /// The group that lost most to reclaim, why, and the task that allocated most in that time.
    fn groups(&self) -> Option<String> {
        let groups = self.owners(false);
        let columns = || 0..self.report.columns.len();
        let most = |group: &String| columns().map(|it| self.lost(it, group)).fold(0.0, f64::max);
        let loser = groups.iter().max_by(|a, b| most(a).total_cmp(&most(b)))?;
        if most(loser) < 1e6 {
            return Some("No group lost memory to reclaim.".to_owned());
        }
        let mut to = " to reclaim";
        let mut losses: Vec<String> = Vec::new();
        for column in self.compared(|column| self.lost(column, loser)) {
            let lost = self.lost(column, loser);
            let in_variant = self.in_variant(column);
            if lost < 1e6 {
                losses.push(format!("next to nothing{in_variant}"));
                continue;
            }
            let mut text = format!("{}{to}{in_variant}", bytes(lost));
            to = "";
            let of = |metric: &str| self.value(column, &format!("{loser}.{metric}"));
            let kswapd = of("pgsteal_kswapd") / of("pgsteal").max(1.0);
            text += &match kswapd > 0.5 {
                true => {
                    format!(" ({} by kswapd: the machine was short of memory)", percent(kswapd))
                }
                false => format!(" (mostly by tasks: {})", self.why_by_tasks(column, loser)),
            };
            let setup = &self.report.plan.scenario.variants[column].setup;
            // Pages of a group are counted in its ancestors, too: name only one of them.
            let is_counted =
                |group: &str| is_within(setup, group, loser) || is_within(setup, loser, group);
            for other in groups.iter().filter(|group| !is_counted(group)) {
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
    fn why_by_tasks(&self, column: usize, group: &str) -> &'static str {
        let of = |metric: &str| self.value(column, &format!("{group}.{metric}"));
        let is_limited = of("memory.events.max") + of("memory.events.high") > 0.0;
        let setup = &self.report.plan.scenario.variants[column].setup;
        // With `measure`, the machine's counters are of one task, and do not show this.
        let is_short = setup.measure.is_some()
            || self.value(column, "pgsteal_direct") > WORTH_NAMING * of("pgsteal_direct");
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

    /// The task that allocated most memory.
    fn allocator(&self, column: usize) -> Option<(String, f64)> {
        let allocated = |task: String| {
            let bytes = self.value(column, &format!("{task}.allocated"));
            (task, bytes)
        };
        let tasks = self.owners(true).into_iter().map(allocated);
        tasks.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, bytes)| *bytes > 0.0)
    }
}

/// Controls whose write reclaims down to a new limit.
const LIMITS: [GroupControl; 3] =
    [GroupControl::Max, GroupControl::High, GroupControl::LimitInBytes];

/// A group, or each of its copies, and the ancestors.
fn around<'a>(setup: &'a Setup, group: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_it = move |at: &usize| Owner::new(&setup.groups[*at].name).family().name == group;
    let its = (0..setup.groups.len()).filter(is_it);
    its.flat_map(|at| std::iter::successors(Some(at), |at| setup.groups[*at].parent))
}

/// Whether a group is `other` or a descendant of it.
fn is_within(setup: &Setup, group: &str, other: &str) -> bool {
    around(setup, group).any(|at| Owner::new(&setup.groups[at].name).family().name == other)
}

/// Whether a task writes one of these controls of a group, of its copies, or of an ancestor.
fn is_written(setup: &Setup, group: &str, controls: &[GroupControl]) -> bool {
    let is_of_it = |target: usize| around(setup, group).any(|at| at == target);
    setup.tasks.iter().flat_map(|task| &task.phases).any(|phase| match &phase.workload {
        Workload::WriteControl(WriteControl { write: TargetWrite::Group(target, write) }) => {
            controls.contains(&write.control) && is_of_it(*target)
        }
        _ => false,
    })
}

/// `mostly X` if one part is more than half of `whole`, else the two largest parts.
fn mostly(parts: &[(f64, &str)], whole: f64) -> String {
    let mut parts = parts.to_vec();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = |part: f64| percent(part / whole);
    match parts.as_slice() {
        [(most, doing), ..] if *most > whole / 2.0 => format!("mostly {doing}"),
        [(first, one), (second, other), ..] => {
            format!("{} {one}, {} {other}", share(*first), share(*second))
        }
        _ => String::new(),
    }
}

fn shown(unit: Unit, value: f64) -> String {
    let scale = Scale::new(unit, &[(value, 0.0)]);
    format!("{} {}", scale.print(value, 0.0).0, scale.symbol)
}

fn seconds(value: f64) -> String {
    shown(Unit::Seconds, value)
}

fn bytes(value: f64) -> String {
    shown(Unit::Bytes, value)
}

/// A share in whole per cent.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 1.0 => "less than 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, TestMetrics};
    use pagetide_scenario::build::Builder;

    #[test]
    fn a_little_waiting_is_not_none() {
        let of = |stall: f64| {
            [("elapsed", 1.0), ("batch.walltime", 1.0), ("batch.stall_reclaim", stall)]
        };
        let said = |before: f64| {
            let (before, after) = (of(before), of(0.5));
            let sides: [(&str, TestMetrics<'_>); 2] = [("a", &before), ("b", &after)];
            let mut report = report(&sides);
            let task =
                Builder::new().set("name", "batch").set("workload", "sleep").set("duration", "1ms");
            let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
            for variant in &mut report.plan.scenario.variants {
                variant.setup = machine.setup().unwrap();
            }
            sentences(&report).remove(0)
        };
        assert!(said(0.0)
            .starts_with("batch: waited for memory not at all in a; 500.0 ms of 1.000 s in b"));
        assert!(
            said(0.000_235).starts_with("batch: waited for memory hardly at all in a; 500.0 ms")
        );
    }
}
