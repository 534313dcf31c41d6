//! Which metrics become rows of the table.

use crate::report::Report;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::model::{Phase, Workload};
use pagetide_scenario::names::near::matches;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Default rows, after every `*.walltime` and the [`SERVICE`] rows: the counters that reclaim mails
/// quote. A plain name is the machine's counter; `*` matches anything.
const DEFAULT: &[&str] = &[
    "pgmajfault",
    "allocstall",
    "mm_vmscan_kswapd_wake",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pswpin",
    "pswpout",
    "workingset_refault_*",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_collapse_alloc",
    "thp_split_page",
    "oom_kill",
    "psi*",
    "memory.pressure*",
];

/// Default rows of a service.
const SERVICE: [&str; 4] = ["latency_p50", "latency_p99", "latency_p999", "late"];
/// Of fewer requests, p99.9 is the maximum, and no row.
const LEAST_FOR_P999: f64 = 1000.0;

/// The rows of `report`: those the scenario names, in its order, or the default ones.
///
/// A named row may have `*`. A name that matches nothing is a row of `-`; default rows appear only
/// if they are non-zero somewhere.
pub fn rows(report: &Report) -> Vec<String> {
    let keys: BTreeSet<&str> =
        report.columns.iter().flat_map(|c| c.series.keys().map(String::as_str)).collect();
    let mut rows = Rows::default();
    let named = &report.plan.scenario.rows;
    if named.is_empty() {
        default_rows(report, &keys, &mut rows);
        return rows.order;
    }
    for name in named {
        if name.contains('*') {
            keys.iter().filter(|key| matches(name, key)).for_each(|key| rows.push(key));
        } else {
            rows.push(name);
        }
    }
    rows.order
}

/// Named rows that no run has, probably misspelt.
pub fn unknown_rows(report: &Report) -> Vec<&str> {
    let has =
        |name: &str| report.columns.iter().any(|c| c.series.keys().any(|key| matches(name, key)));
    report.plan.scenario.rows.iter().map(String::as_str).filter(|name| !has(name)).collect()
}

fn default_rows(report: &Report, keys: &BTreeSet<&str>, rows: &mut Rows) {
    let said = redundant_walltimes(report, keys);
    for key in keys {
        if key.ends_with(".walltime") && nonzero(report, key) && !said.contains(*key) {
            rows.push(key);
        }
    }
    for key in of_services(report) {
        if keys.contains(key.as_str()) {
            rows.push(&key);
        }
    }
    for pattern in DEFAULT {
        // A run of many tasks has many keys: look only at those with the prefix.
        let prefix = pattern.split('*').next().unwrap_or_default();
        let near = keys.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let near = near.take_while(|key| key.starts_with(prefix));
        for key in near.filter(|key| matches(pattern, key)) {
            if nonzero(report, key) {
                rows.push(key);
            }
        }
    }
    if let Some(reference) = &report.plan.scenario.reference {
        reference.values.values().flat_map(|values| values.keys()).for_each(|key| rows.push(key));
    }
}

fn of_services(report: &Report) -> Vec<String> {
    let tasks = report.plan.scenario.variants.iter().flat_map(|variant| &variant.setup.tasks);
    let serves = |phase: &Phase| matches!(phase.workload, Workload::Service(_));
    let services = tasks.filter(|task| task.phases.iter().any(serves));
    let families = services.map(|task| Owner::new(&task.name).family().name);
    let rows = families.flat_map(|name| SERVICE.map(|metric| (name.clone(), metric)));
    let has_many = |name: &str| {
        let key = format!("{name}.requests");
        let requests = report.columns.iter().filter_map(|column| column.series.get(&key));
        let mut samples = requests.flat_map(|series| &series.samples);
        samples.any(|sample| sample.value >= LEAST_FOR_P999)
    };
    let rows = rows.filter(|(name, metric)| *metric != "latency_p999" || has_many(name));
    rows.map(|(name, metric)| format!("{name}.{metric}")).collect()
}

fn nonzero(report: &Report, key: &str) -> bool {
    let series = report.columns.iter().filter_map(|column| column.series.get(key));
    series.flat_map(|s| &s.samples).any(|sample| sample.value != 0.0)
}

/// Redundant walltimes: of the only phase of a task, and of each of several copies, whose mean is
/// `NAME.walltime`.
fn redundant_walltimes(report: &Report, keys: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for task in report.plan.scenario.variants.iter().flat_map(|v| &v.setup.tasks) {
        let all = task.name.rsplit_once('.').map(|(all, _copy)| all);
        let all = all.filter(|all| keys.contains(format!("{all}.walltime").as_str()));
        let phase = |name: &str, phase: &str| format!("{name}.{phase}.walltime");
        if all.is_some() {
            said.insert(format!("{}.walltime", task.name));
            said.extend(task.phases.iter().map(|p| phase(&task.name, &p.name)));
        }
        if let [only] = task.phases.as_slice() {
            said.insert(phase(all.unwrap_or(&task.name), &only.name));
        }
    }
    said
}

/// Row names in order, each once.
#[derive(Default)]
struct Rows {
    order: Vec<String>,
    seen: BTreeSet<String>,
}

impl Rows {
    fn push(&mut self, key: &str) {
        if self.seen.insert(key.to_owned()) {
            self.order.push(key.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report;
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::model::{Phase, SleepWorkload, Task, TaskStart, Workload};

    const RUNS: &[(&str, &[(&str, f64)])] = &[
        ("a", &[("dd.walltime", 2.0), ("dd.copy.walltime", 2.0), ("pswpin", 0.0), ("x", 1.0)]),
        ("b", &[("dd.walltime", 3.0), ("dd.copy.walltime", 3.0), ("allocstall", 4.0), ("x", 1.0)]),
    ];

    fn task(name: &str, phases: &[&str]) -> Task {
        let workload = Workload::Sleep(SleepWorkload { ns: 1 });
        let phase = |name: &&str| Phase { name: (*name).to_owned(), workload: workload.clone() };
        Task {
            name: name.to_owned(),
            group: None,
            start: TaskStart { delay_ns: 0, after: None },
            background: false,
            until: None,
            nice: 0,
            oom_score_adj: 0,
            loops: 1,
            phases: phases.iter().map(phase).collect(),
        }
    }

    #[test]
    fn default_rows_are_nonzero_and_not_redundant() {
        let mut report = report(RUNS);
        for variant in &mut report.plan.scenario.variants {
            variant.setup.tasks = vec![task("dd", &["copy"])];
        }
        assert_eq!(rows(&report), ["dd.walltime", "allocstall"]);
    }

    #[test]
    fn copies_are_one_row_and_several_phases_are_several() {
        let metrics: &[(&str, f64)] = &[
            ("cc.walltime", 1.5),
            ("cc.main.walltime", 1.4),
            ("cc.0.walltime", 1.0),
            ("cc.0.main.walltime", 0.9),
            ("cc.1.walltime", 2.0),
            ("cc.1.main.walltime", 1.9),
            ("dd.walltime", 3.0),
            ("dd.fill.walltime", 1.0),
            ("dd.read.walltime", 2.0),
        ];
        let mut report = report(&[("a", metrics)]);
        report.plan.scenario.variants[0].setup.tasks =
            vec![task("cc.0", &["main"]), task("cc.1", &["main"]), task("dd", &["fill", "read"])];
        let expected = ["cc.walltime", "dd.fill.walltime", "dd.read.walltime", "dd.walltime"];
        assert_eq!(rows(&report), expected);
    }

    #[test]
    fn named_rows_keep_their_order_and_may_be_unknown() {
        let mut report = report(RUNS);
        report.plan.scenario.rows =
            ["pswpin", "dd.*", "pswpin", "pgscam"].map(str::to_owned).to_vec();
        assert_eq!(rows(&report), ["pswpin", "dd.copy.walltime", "dd.walltime", "pgscam"]);
        assert_eq!(unknown_rows(&report), ["pgscam"]);
    }

    #[test]
    fn p999_is_a_row_of_many_requests_and_huge_pages_if_there_are_any() {
        let rows_of = |requests: f64| {
            let metrics = [
                ("web.latency_p50", 1.0),
                ("web.latency_p99", 2.0),
                ("web.latency_p999", 3.0),
                ("web.requests", requests),
                ("thp_fault_alloc", 4.0),
                ("thp_fault_fallback", 0.0),
            ];
            let mut report = report(&[("a", &metrics)]);
            let task = Builder::new().set("name", "web").set("workload", "service");
            let task = task.set("rate", 10).set("duration", "1s").set("cpu", "1ms");
            let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
            report.plan.scenario.variants[0].setup = machine.setup().unwrap();
            rows(&report)
        };
        let few = ["web.latency_p50", "web.latency_p99", "thp_fault_alloc"];
        assert_eq!(rows_of(999.0), few);
        let many = [&few[..2], &["web.latency_p999", few[2]]].concat();
        assert_eq!(rows_of(1000.0), many);
    }

    #[test]
    fn star_matches_anything() {
        assert!(matches("workingset_refault_*", "workingset_refault_anon"));
        assert!(matches("*.walltime", "cc.0.walltime"));
        assert!(matches("a*b*c", "abbc"));
        assert!(!matches("a*b", "abc"));
        assert!(matches("*", ""));
        assert!(!matches("psi*", "ps"));
    }
}
