//! Which metrics become rows of the table.

use crate::report::Report;
use pagetide_scenario::metric::declared::{self, MetricDecl, WALLTIME};
use pagetide_scenario::metric::{MetricKey, Owner, Scope};
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
const SERVICE: [&MetricDecl; 4] =
    [declared::LATENCY_P50, declared::LATENCY_P99, declared::LATENCY_P999, declared::LATE];
/// Of fewer requests, p99.9 is the maximum, and no row.
const LEAST_FOR_P999: f64 = 1000.0;

/// The rows of `report`: those the scenario names, in its order, or the default ones.
///
/// A named row may have `*`. A name that matches nothing is a row of `-`; default rows appear only
/// if they are non-zero somewhere.
pub fn rows(report: &Report) -> Vec<MetricKey> {
    let mut rows = Rows::default();
    let named = &report.plan.scenario.rows;
    if named.is_empty() {
        default_rows(report, &mut rows);
        return rows.order;
    }
    for name in named {
        if name.contains('*') {
            let found = report.keys.iter().filter(|(text, _)| matches(name, text));
            found.for_each(|(_, key)| rows.push(key));
        } else {
            rows.push(&report.names.key(name));
        }
    }
    rows.order
}

/// Named rows that no run has, probably misspelt.
pub fn unknown_rows(report: &Report) -> Vec<&str> {
    let has = |name: &str| report.keys.keys().any(|key| matches(name, key));
    report.plan.scenario.rows.iter().map(String::as_str).filter(|name| !has(name)).collect()
}

fn default_rows(report: &Report, rows: &mut Rows) {
    let said = redundant_walltimes(report);
    for key in report.keys.values().filter(|key| key.name == WALLTIME.name) {
        if nonzero(report, key) && !said.contains(&key.scope) {
            rows.push(key);
        }
    }
    let services = of_services(report);
    services.iter().filter(|key| report.unit(key).is_some()).for_each(|key| rows.push(key));
    for pattern in DEFAULT {
        // A run of many tasks has many keys: look only at those with the prefix.
        let prefix = pattern.split('*').next().unwrap_or_default();
        let near = report.keys.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let near = near.take_while(|(text, _)| text.starts_with(prefix));
        for (_, key) in near.filter(|(text, _)| matches(pattern, text)) {
            if nonzero(report, key) {
                rows.push(key);
            }
        }
    }
    if let Some(reference) = &report.plan.scenario.reference {
        let published = reference.values.values().flat_map(|values| values.keys());
        published.for_each(|text| rows.push(&report.names.key(text)));
    }
}

fn of_services(report: &Report) -> Vec<MetricKey> {
    let tasks = report.plan.scenario.variants.iter().flat_map(|variant| &variant.setup.tasks);
    let serves = |phase: &Phase| matches!(phase.workload, Workload::Service(_));
    let services = tasks.filter(|task| task.phases.iter().any(serves));
    let families = services.map(|task| Scope::Task(Owner::new(&task.name).family()));
    let has_many = |service: &Scope| {
        let key = service.metric(declared::REQUESTS);
        let requests = report.columns.iter().filter_map(|column| column.series.get(&key));
        let mut samples = requests.flat_map(|series| &series.samples);
        samples.any(|sample| sample.value >= LEAST_FOR_P999)
    };
    let rows = families.flat_map(|service| SERVICE.map(|metric| (service.clone(), metric)));
    let rows = rows.filter(|(of, metric)| *metric != declared::LATENCY_P999 || has_many(of));
    rows.map(|(service, metric)| service.metric(metric)).collect()
}

fn nonzero(report: &Report, key: &MetricKey) -> bool {
    let series = report.columns.iter().filter_map(|column| column.series.get(key));
    series.flat_map(|s| &s.samples).any(|sample| sample.value != 0.0)
}

/// Scopes of redundant walltimes: the only phase of a task, and each of several copies, whose mean
/// is the walltime of all.
fn redundant_walltimes(report: &Report) -> BTreeSet<Scope> {
    let has = |task: &Owner| report.unit(&Scope::Task(task.clone()).metric(WALLTIME)).is_some();
    let of = |task: &Owner, it: &Phase| Scope::Phase { task: task.clone(), phase: it.name.clone() };
    let mut said = BTreeSet::new();
    for task in report.plan.scenario.variants.iter().flat_map(|v| &v.setup.tasks) {
        let own = Owner::new(&task.name);
        let family = own.copy.map(|_| own.family()).filter(has);
        if let [only] = task.phases.as_slice() {
            said.insert(of(family.as_ref().unwrap_or(&own), only));
        }
        if family.is_some() {
            said.extend(task.phases.iter().map(|phase| of(&own, phase)));
            said.insert(Scope::Task(own));
        }
    }
    said
}

/// Rows in order, each once.
#[derive(Default)]
struct Rows {
    order: Vec<MetricKey>,
    seen: BTreeSet<MetricKey>,
}

impl Rows {
    fn push(&mut self, key: &MetricKey) {
        if self.seen.insert(key.clone()) {
            self.order.push(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, task, with_setup};
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::model::Task;

    const RUNS: &[(&str, &[(&str, f64)])] = &[
        ("a", &[("dd.walltime", 2.0), ("dd.copy.walltime", 2.0), ("pswpin", 0.0), ("x", 1.0)]),
        ("b", &[("dd.walltime", 3.0), ("dd.copy.walltime", 3.0), ("allocstall", 4.0), ("x", 1.0)]),
    ];

    fn with_tasks(report: Report, tasks: Vec<Task>) -> Report {
        let mut setup = report.plan.scenario.variants[0].setup.clone();
        setup.tasks = tasks;
        with_setup(report, &setup)
    }

    fn texts(report: &Report) -> Vec<String> {
        rows(report).iter().map(|key| report.text(key)).collect()
    }

    #[test]
    fn default_rows_are_nonzero_and_not_redundant() {
        let report = with_tasks(report(RUNS), vec![task("dd", &["copy"])]);
        assert_eq!(texts(&report), ["dd.walltime", "allocstall"]);
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
        let tasks =
            vec![task("cc.0", &["main"]), task("cc.1", &["main"]), task("dd", &["fill", "read"])];
        let report = with_tasks(report(&[("a", metrics)]), tasks);
        let expected = ["cc.walltime", "dd.fill.walltime", "dd.read.walltime", "dd.walltime"];
        assert_eq!(texts(&report), expected);
    }

    #[test]
    fn named_rows_keep_their_order_and_may_be_unknown() {
        let mut report = report(RUNS);
        report.plan.scenario.rows =
            ["pswpin", "dd.*", "pswpin", "pgscam"].map(str::to_owned).to_vec();
        assert_eq!(texts(&report), ["pswpin", "dd.copy.walltime", "dd.walltime", "pgscam"]);
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
            let task = Builder::new().set("name", "web").set("workload", "service");
            let task = task.set("rate", 10).set("duration", "1s").set("cpu", "1ms");
            let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
            texts(&with_setup(report(&[("a", &metrics)]), &machine.setup().unwrap()))
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
