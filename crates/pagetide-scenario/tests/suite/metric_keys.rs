//! Every key has its own text, and the text reads back as the key.

use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::metric::{
    declared, KeyNames, MetricKey, Owner, RunMetricSet, Scope, ScopeKind, COUNTED,
};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::Unit;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

fn setup(tasks: &[(&str, u32, &[&str])], groups: &[(&str, u32)]) -> Setup {
    let mut text = "[machine]\nmemory = \"64MiB\"\n".to_owned();
    for (name, copies) in groups {
        text += &format!("[[group]]\nname = \"{name}\"\ncopies = {copies}\n");
    }
    for (name, copies, phases) in tasks {
        text += &format!("[[task]]\nname = \"{name}\"\ncopies = {copies}\n");
        for phase in *phases {
            text += &format!(
                "[[task.phase]]\nname = \"{phase}\"\nworkload = \"sleep\"\nduration = \"1s\"\n"
            );
        }
    }
    pagetide_testing::setup(&text)
}

/// Metric names of a kind of scope: the declared ones, and some kernel counters.
fn names_of(kind: ScopeKind) -> Vec<String> {
    let all = declared::ALL.iter().filter(|metric| metric.scopes.contains(&kind));
    let mut names: Vec<String> = all.map(|metric| metric.name.to_owned()).collect();
    match kind {
        ScopeKind::Machine
        | ScopeKind::Idle
        | ScopeKind::Done
        | ScopeKind::Shrunk
        | ScopeKind::Phase => {
            names.extend(["pgfault", "pgscan_kswapd", "nr_free_pages"].map(str::to_owned));
            names.extend(declared::slabinfo_names("kmalloc-1k"));
            names.push(declared::buddyinfo_name(0, "DMA32", 9));
        }
        ScopeKind::Group | ScopeKind::PhaseGroup => {
            names.extend(COUNTED.iter().map(|event| event.name().to_owned()));
        }
        ScopeKind::Task | ScopeKind::Disk | ScopeKind::Unread => {}
    }
    names
}

/// Every key that a record of the setup can have.
fn keys(setup: &Setup) -> Vec<MetricKey> {
    let with_family = |name: &str| {
        let owner = Owner::new(name);
        [owner.family(), owner]
    };
    let groups: Vec<Owner> =
        setup.groups.iter().flat_map(|group| with_family(&group.name)).collect();
    let of_run = [Scope::Machine, Scope::Idle, Scope::Done, Scope::Shrunk];
    let mut scopes = of_run.to_vec();
    scopes.push(Scope::Disk("swap".into()));
    scopes.extend(groups.iter().cloned().map(Scope::Group));
    for task in &setup.tasks {
        for owner in with_family(&task.name) {
            scopes.push(Scope::Task(owner.clone()));
            for phase in &task.phases {
                let phase = Scope::Phase { task: owner.clone(), phase: phase.name.clone() };
                scopes.extend(groups.iter().map(|group| phase.with_group(group.clone())));
                scopes.push(phase);
            }
        }
    }
    scopes.sort();
    scopes.dedup();
    let of_scope = |scope: Scope| {
        let names = names_of(scope.kind());
        names.into_iter().map(move |name| MetricKey { scope: scope.clone(), name: name.into() })
    };
    scopes.into_iter().flat_map(of_scope).collect()
}

/// Writes and reads all keys of a setup; returns how many need the full form.
fn all_are_told_apart(setup: &Setup) -> usize {
    let names = KeyNames::of(setup);
    let mut texts: BTreeMap<String, MetricKey> = BTreeMap::new();
    for key in keys(setup) {
        assert_eq!(key.to_string().parse(), Ok(key.clone()));
        let text = names.text(&key);
        assert_eq!(names.read(&text).as_ref(), Some(&key), "{text}");
        let full = names.read(&key.to_string());
        assert_eq!(full.as_ref(), Some(&key), "the full text is always understood");
        if let Some(other) = texts.insert(text.clone(), key) {
            panic!("{text} is {other}, too");
        }
    }
    texts.keys().filter(|text| text.contains(':')).count()
}

#[test]
fn a_task_and_a_group_of_one_name_keep_all_their_metrics() {
    let setup = setup(&[("web", 1, &["main"]), ("db", 2, &["fill"])], &[("web", 1), ("db", 2)]);
    let names = KeyNames::of(&setup);
    let task = Scope::Task(Owner::new("web"));
    let group = Scope::Group(Owner::new("web"));
    let key =
        |scope: &Scope, name: &'static str| MetricKey { scope: scope.clone(), name: name.into() };
    for (scope, name, text) in [
        (&task, "pgfault", "web.pgfault"),
        (&group, "pgfault", "group:web:pgfault"),
        (&task, "walltime", "web.walltime"),
        (&group, "memory.current", "web.memory.current"),
        (&group, "pgsteal_kswapd", "web.pgsteal_kswapd"),
    ] {
        assert_eq!(names.text(&key(scope, name)), text);
    }
    let mut metrics = RunMetricSet::new();
    metrics.of(task).put(declared::TASK_PGFAULT, 1.0);
    metrics.of(group).put_named("pgfault", 2.0, Unit::Count);
    for copy in ["db.0", "db.1"] {
        metrics.of(Scope::Task(Owner::new(copy))).put(declared::TASK_PGFAULT, 4.0);
        metrics.of(Scope::Group(Owner::new(copy))).put_named("pgfault", 8.0, Unit::Count);
    }
    metrics.add_copies();
    let texts = metrics.into_texts(&names);
    let values: Vec<(&str, f64)> =
        texts.iter().map(|(text, metric)| (text.as_str(), metric.value)).collect();
    assert_eq!(
        values,
        [
            ("db.0.pgfault", 4.0),
            ("db.1.pgfault", 4.0),
            ("db.pgfault", 8.0),
            ("group:db.0:pgfault", 8.0),
            ("group:db.1:pgfault", 8.0),
            ("group:db:pgfault", 16.0),
            ("group:web:pgfault", 2.0),
            ("web.pgfault", 1.0),
        ]
    );
}

#[test]
fn without_such_names_no_key_is_written_in_full() {
    let tasks: &[(&str, u32, &[&str])] = &[("a", 3, &["fill", "again"]), ("b", 1, &["main"])];
    assert_eq!(all_are_told_apart(&setup(tasks, &[("g", 2), ("h", 1)])), 0);
    assert_eq!(all_are_told_apart(&setup(tasks, &[])), 0);
}

#[test]
fn a_text_without_a_known_owner_or_metric_is_no_key() {
    let names = KeyNames::of(&setup(&[("a", 1, &["fill"])], &[("g", 1)]));
    for text in ["x.walltime", "a.nonsense", "a.fill.x.y", "g.memory.x", "group:a:anon", "a.", ""] {
        assert_eq!(names.read(text), None, "{text}");
    }
    assert_eq!(names.read("task:a:walltime"), names.read("a.walltime"));
}

#[test]
fn every_text_of_a_record_is_a_key_and_is_written_again() {
    let names = KeyNames::of(&setup(&[("a", 2, &["fill"])], &[("a", 1)]));
    for text in [
        "pgfault",
        "a.walltime",
        "a.1.fill.walltime",
        "a.01.walltime",
        "group:a:pgfault",
        "task:a:walltime",
        "x.walltime",
        "a.",
        "",
    ] {
        assert_eq!(names.text(&names.key(text)), text);
    }
    let unread = |text: &str| names.key(text).scope == Scope::Unread;
    assert!(unread("x.walltime") && unread("task:a:walltime") && unread("a.01.walltime"));
    assert!(!unread("a.walltime"));
}

#[test]
fn walltimes_name_tasks_and_phases() {
    let texts = ["a.walltime", "a.fill.walltime", "c.0.walltime", "c.0.p.walltime", "b.pgfault"];
    let names = KeyNames::of_walltimes(texts);
    let phase =
        |task: &str, phase: &str| Scope::Phase { task: Owner::new(task), phase: phase.to_owned() };
    assert_eq!(names.key("a.stall_high").scope, Scope::Task(Owner::new("a")));
    assert_eq!(names.key("a.fill.pgfault").scope, phase("a", "fill"));
    assert_eq!(names.key("c.0.p.walltime").scope, phase("c.0", "p"));
    assert_eq!(names.key("c.0.walltime").scope, Scope::Task(Owner::new("c.0")));
    assert_eq!(names.key("b.pgfault").scope, Scope::Unread);
}

#[test]
fn copies_are_summed_and_times_and_shares_are_means() {
    let mut metrics = RunMetricSet::new();
    for (copy, time, share) in [("t.0", 1.0, 0.5), ("t.1", 3.0, 0.7), ("t.2", 8.0, 0.9)] {
        let scope = Scope::Phase { task: Owner::new(copy), phase: "p".into() };
        let mut put = metrics.of(scope);
        put.put(declared::WALLTIME, time);
        put.put(declared::SLAB_UTILISATION, share);
        put.put_named("pgscan", time, Unit::Count);
        if copy != "t.0" {
            put.put(declared::SUCCESS, time * 10.0);
        }
    }
    metrics.add_copies();
    let texts = metrics.into_texts(&KeyNames::of(&setup(&[("t", 3, &["p"])], &[])));
    assert_eq!(texts["t.p.walltime"].value, 4.0);
    assert!((texts["t.p.slab_utilisation"].value - 0.7).abs() < 1e-9);
    assert_eq!(texts["t.p.pgscan"].value, 12.0);
    assert_eq!(texts["t.p.success"].value, 55.0, "of those that have it");
}

/// Copies of a task see one machine and one group at the ends of their phases.
#[test]
fn levels_of_a_phase_are_means_over_copies_of_the_task() {
    let mut metrics = RunMetricSet::new();
    for (copy, nr) in [("t.0", 10.0), ("t.1", 30.0)] {
        let phase = Scope::Phase { task: Owner::new(copy), phase: "p".into() };
        let mut put = metrics.of(phase.clone());
        put.put_named("nr_free_pages", nr, Unit::Pages);
        put.put_named("nr_free_blocks_9", nr, Unit::Count);
        put.put_named("slabinfo.dentry.num_objs", nr, Unit::Count);
        put.put(declared::SLAB, nr);
        // These are the task's own.
        put.put(declared::BYTES, nr);
        put.put(declared::RESIDENT, nr);
        let mut put = metrics.of(phase.with_group(Owner::new("g")));
        put.put(declared::MEMORY_CURRENT, nr);
        put.put(declared::DYING_DESCENDANTS, nr);
        put.put(declared::EVENTS_MAX, nr);
    }
    metrics.add_copies();
    let texts = metrics.into_texts(&KeyNames::of(&setup(&[("t", 2, &["p"])], &[("g", 1)])));
    let levels = ["nr_free_pages", "nr_free_blocks_9", "slabinfo.dentry.num_objs", "slab"];
    let of_group = ["g.memory.current", "g.cgroup.stat.nr_dying_descendants"];
    for name in levels.into_iter().chain(of_group) {
        assert_eq!(texts[&format!("t.p.{name}")].value, 20.0, "{name}");
    }
    for name in ["bytes", "resident", "g.memory.events.max"] {
        assert_eq!(texts[&format!("t.p.{name}")].value, 40.0, "{name}");
    }
}

fn names() -> impl Strategy<Value = &'static str> {
    let odd = ["a", "b", "0", "1", "idle", "shrunk", "disk", "swap", "peak", "psi", "memory"];
    let of_metrics = ["slabinfo", "slab", "pgfault", "events", "group", "task"];
    prop::sample::select([&odd[..], &of_metrics[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Names that are easily confused.
    #[test]
    fn every_key_has_a_text_of_its_own(
        tasks in prop::collection::btree_map(
            names(),
            (1u32..3, prop::collection::btree_set(names(), 1..4)),
            1..4,
        ),
        groups in prop::collection::btree_map(names(), 1u32..3, 0..4),
    ) {
        let tasks: Vec<(&str, u32, Vec<&str>)> = tasks
            .into_iter()
            .map(|(name, (copies, phases))| (name, copies, phases.into_iter().collect()))
            .collect();
        let tasks: Vec<(&str, u32, &[&str])> =
            tasks.iter().map(|(name, copies, phases)| (*name, *copies, &phases[..])).collect();
        let groups: Vec<(&str, u32)> = groups.into_iter().collect();
        all_are_told_apart(&setup(&tasks, &groups));
    }
}

#[test]
fn a_report_may_name_keys_in_full() {
    let rows = |row: &str| {
        let text = format!(
            "[machine]\nmemory = \"64MiB\"\n[[group]]\nname = \"web\"\n[[task]]\nname = \"web\"\n\
             workload = \"sleep\"\nduration = \"1s\"\n[report]\nrows = [\"{row}\"]\n"
        );
        load_str("s.toml", &text, Path::new(""), &Overrides::default()).map(|loaded| loaded.rows)
    };
    assert_eq!(rows("group:web:pgfault").unwrap(), ["group:web:pgfault"]);
    assert_eq!(rows("task:web:pgfault").unwrap(), ["web.pgfault"], "as records have it");
    assert_eq!(rows("group:web:memory.current").unwrap(), ["web.memory.current"]);
    assert_eq!(rows("machine:pswpout").unwrap(), ["pswpout"]);
    for row in ["group:other:pgfault", "group:web", "owner:web:pgfault"] {
        let error = rows(row).unwrap_err().to_string();
        assert!(error.contains("metric") || error.contains("no task or group"), "{row}: {error}");
    }
}
