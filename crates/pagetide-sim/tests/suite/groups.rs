//! Operations of tasks on groups: create, join, write, reclaim, remove.

use pagetide_testing::run_text;

const CHURN: &str = r#"
machine = { cpus = 2, memory = "64MiB", swap = "128MiB" }
group = [
  { name = "tenant", at_start = false, memory.max = "16M" },
  { name = "other" },
]
[[task]]
name = "admin"
phase = [
  { name = "make", workload = "create-group", target = "tenant" },
  { name = "join", workload = "join-group", target = "tenant" },
  { name = "fill", workload = "touch", region = "heap", size = "24MiB" },
  { name = "busy", workload = "remove-group", target = "tenant" },
  { name = "squeeze", workload = "write-control", target = "tenant", control = "memory.reclaim", text = "4M" },
  { name = "too-much", workload = "write-control", target = "tenant", control = "memory.reclaim", text = "1G" },
  { name = "bad", workload = "write-control", target = "other", control = "memory.reclaim", text = "0" },
  { name = "leave", workload = "join-group" },
  { name = "remove", workload = "remove-group", target = "tenant" },
]
[[task]]
name = "user"
group = "other"
workload = "touch"
size = "40MiB"
passes = 5
"#;

#[test]
fn groups_come_and_go_while_tasks_run() {
    let record = run_text(CHURN, 50);
    let metric = |key: &str| record.metrics[key].value;
    // The notes are exactly the errors.
    let notes = record.notes.join("\n");
    assert_eq!(record.notes.len(), 2, "{notes}");
    assert!(notes.contains("removing group `tenant` was refused with EBUSY"), "{notes}");
    assert!(notes.contains("`1G` to memory.reclaim of group `tenant` was refused with EAGAIN"));
    // 24 MiB exceed the limit of 16: the rest is in swap, and the group hit its limit.
    assert!(metric("admin.fill.tenant.memory.current") <= f64::from(16 << 20));
    assert!(metric("admin.fill.tenant.memory.events.max") > 0.0);
    assert!(metric("admin.squeeze.tenant.pgsteal_direct") >= 1024.0);
    assert!(metric("other.memory.peak") >= f64::from(30 << 20));
    // The removed tenant's counters are still reported.
    assert!(metric("tenant.memory.events.max") > 0.0);
    // So is its peak, although it never existed at a multiple of five seconds.
    assert_eq!(metric("tenant.memory.peak"), f64::from(16 << 20));
    assert!(metric("tenant.peak.usage") > 0.0);
    assert!(metric("tenant.memory.pressure.some") > 0.0);
}

#[test]
fn refused_commands_of_lru_gen_say_what_they_need() {
    let record = run_text(
        "machine.memory = \"64MiB\"\npolicy.lru = \"mglru\"\n[[task]]\nname = \"admin\"\nphase = [\n\
         { name = \"late\", workload = \"write-control\", control = \"lru_gen\", text = \"+1 0 9\" },\n\
         { name = \"full\", workload = \"write-control\", control = \"lru_gen\", text = \"+1 0 3 1 0\" },\n]\n",
        1,
    );
    let notes = record.notes.join("\n");
    assert!(notes.contains("`+1 0 9` to lru_gen was refused with EINVAL: it needs"), "{notes}");
    assert!(
        notes.contains("`+1 0 3 1 0` to lru_gen was refused with ERANGE: the group"),
        "{notes}"
    );
}

/// A phase; `; ` stands between its keys.
fn phase((name, keys): &(&str, &str)) -> String {
    format!("[[task.phase]]\nname = \"{name}\"\n{}\n", keys.replace("; ", "\n"))
}

/// A group without a memory controller is created and removed; its ancestor is charged.
#[test]
fn a_group_without_a_controller_is_paid_for_by_the_one_around_it() {
    let phases = |list: &[(&str, &str)]| list.iter().map(phase).collect::<String>();
    let text = format!(
        "[machine]\nmemory = \"64MiB\"\n\
        [[group]]\nname = \"pod\"\nsubtree_control = \"none\"\nmemory.max = \"16M\"\n\
        [[group]]\nname = \"bare\"\nparent = \"pod\"\nat_start = false\n\
        [[group]]\nname = \"inner\"\nparent = \"bare\"\nat_start = false\n\
        [[task]]\nname = \"admin\"\n{}\
        [[expect]]\ntext = \"it has none\"\nthat = \"admin.fill.inner.cgroup.controllers.memory == 0\"\n",
        phases(&[
            ("early", "workload = \"create-group\"; target = \"inner\""),
            ("make", "workload = \"create-group\"; target = \"bare\""),
            ("again", "workload = \"create-group\"; target = \"bare\""),
            ("nest", "workload = \"create-group\"; target = \"inner\""),
            ("join", "workload = \"join-group\"; target = \"inner\""),
            ("fill", "workload = \"touch\"; size = \"8MiB\""),
            ("busy", "workload = \"remove-group\"; target = \"inner\""),
            ("leave", "workload = \"join-group\""),
            ("nested", "workload = \"remove-group\"; target = \"bare\""),
            ("remove", "workload = \"remove-group\"; target = \"inner\""),
            ("gone", "workload = \"join-group\"; target = \"inner\""),
            ("remove2", "workload = \"remove-group\"; target = \"bare\""),
            ("pod", "workload = \"remove-group\"; target = \"pod\""),
        ])
    );
    let record = run_text(&text, 50);
    let metric = |key: &str| record.metrics.get(key).map(|metric| metric.value);
    assert_eq!(metric("admin.fill.inner.cgroup.controllers.memory"), Some(0.0));
    assert_eq!(metric("admin.fill.pod.cgroup.controllers.memory"), Some(1.0));
    assert_eq!(metric("admin.make.inner.cgroup.controllers.memory"), None, "does not exist");
    assert_eq!(metric("admin.fill.inner.anon"), None);
    assert_eq!((metric("inner.peak.usage"), metric("inner.peak.kmem_usage")), (None, None));
    assert!(metric("pod.peak.usage").is_some());
    assert_eq!(metric("admin.fill.pod.anon"), Some(f64::from(8 << 20)));
    let notes = record.notes.join("\n");
    let refused = [
        "making group `inner`: ENOENT",
        "making group `bare`: EEXIST",
        "removing group `inner` was refused with EBUSY",
        "removing group `bare` was refused with EBUSY",
        "joining group `inner` was refused with ENOENT",
    ];
    assert!(refused.iter().all(|note| notes.contains(note)), "{notes}");
    assert_eq!(record.notes.len(), refused.len(), "{notes}");
}

/// A task writes the CPU control files of a group without a memory controller, and they take
/// effect.
#[test]
fn a_group_without_a_memory_controller_is_given_cpu_time() {
    let write = |name: &str, target: &str, control: &str, text: &str| {
        let keys = format!("workload = \"write-control\"; target = \"{target}\"");
        phase(&(name, &format!("{keys}; control = \"{control}\"; text = \"{text}\"")))
    };
    let text = format!(
        "[machine]\nmemory = \"64MiB\"\ncpus = 2\n\
        [[group]]\nname = \"pod\"\nsubtree_control = \"none\"\n\
        [[group]]\nname = \"bare\"\nparent = \"pod\"\n\
        [[group]]\nname = \"late\"\nparent = \"pod\"\nat_start = false\n\
        [[task]]\nname = \"main\"\ngroup = \"bare\"\n{}\
        [[task]]\nname = \"admin\"\n{}",
        phase(&("work", "workload = \"compute\"; duration = \"500ms\"")),
        [
            phase(&("first", "workload = \"compute\"; duration = \"100ms\"")),
            write("weight", "bare", "cpu.weight", "50"),
            write("quota", "bare", "cpu.max", "10000 100000"),
            write("early", "late", "cpu.max", "10000 100000"),
            phase(&("second", "workload = \"sleep\"; duration = \"1s\"")),
            phase(&("make", "workload = \"create-group\"; target = \"late\"")),
            write("much", "late", "cpu.max", "50000 100000"),
            phase(&("join", "workload = \"join-group\"; target = \"late\"")),
            phase(&("third", "workload = \"compute\"; duration = \"100ms\"")),
            phase(&("leave", "workload = \"join-group\"")),
            phase(&("remove", "workload = \"remove-group\"; target = \"late\"")),
        ]
        .concat()
    );
    let record = run_text(&text, 50);
    let metric = |key: &str| record.metrics[key].value;
    // The work that remains after 100 ms takes 40 periods.
    assert!((3.8..4.2).contains(&metric("main.walltime")), "{}", metric("main.walltime"));
    let throttled = metric("admin.second.bare.cpu.stat.nr_throttled");
    assert!((9.0..=11.0).contains(&throttled), "{throttled}");
    let used = metric("bare.cpu.stat.usage_usec");
    assert!((495e3..505e3).contains(&used), "{used}");
    // Counters of a removed group are reported.
    let used = metric("late.cpu.stat.usage_usec");
    assert!((95e3..105e3).contains(&used), "{used}");
    assert!(metric("late.cpu.stat.nr_throttled") >= 1.0);
    let notes = record.notes.join("\n");
    assert_eq!(record.notes.len(), 1, "{notes}");
    assert!(notes.contains("cpu.max of group `late` was refused with ENOENT"), "{notes}");
}
