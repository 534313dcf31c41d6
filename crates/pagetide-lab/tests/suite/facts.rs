//! The sentences under the table, on small experiments: they name the task that waited, what kswapd
//! did, and the group that lost memory, with the figures of the records.

use pagetide_lab::execute::execute;
use pagetide_lab::facts::{render, sentences};
use pagetide_lab::plan::RunPlan;
use pagetide_lab::report::Report;
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::{load_str, Overrides};
use std::num::NonZeroUsize;
use std::path::Path;

fn report(text: &str) -> Report {
    let scenario = load_str("why", text, Path::new("."), &Overrides::default());
    let plan = RunPlan::new(scenario.unwrap_or_else(|errors| panic!("{errors}"))).unwrap();
    let world = Simulator::default();
    let runs = execute(&plan, &world, NonZeroUsize::new(2).unwrap(), &Default::default(), &|_| {});
    Report::new(plan, &runs)
}

fn mean(report: &Report, column: usize, key: &str) -> f64 {
    report.summary(column, &report.names.key(key)).unwrap_or_else(|| panic!("no {key}")).mean
}

#[test]
fn a_service_that_is_not_protected_waits_for_its_own_pages() {
    let report = report(
        r#"
        repeats = 2
        machine = { memory = "256MiB", swap = "1GiB" }
        group = [
          { name = "web" },
          { name = "other" },
        ]
        variant = [
          { name = "unprotected" },
          { name = "memory.low", set."group.web.memory.low" = "155MiB" },
        ]
        [[task]]
        name = "service"
        group = "web"
        workload = "working-set"
        anon = "150MiB"
        accesses = 500_000
        [[task]]
        name = "batch"
        workload = "touch"
        size = "225MiB"
        passes = 2
        "#,
    );
    let said = sentences(&report);
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said[0].starts_with("service: waited for memory "), "{said:#?}");
    assert!(
        said[0].contains(" in unprotected (") && said[0].contains(" for evicted pages"),
        "{said:#?}"
    );
    let refault = |column| mean(&report, column, "service.stall_refault");
    assert!(refault(0) > 10.0 * refault(1), "it was protected");
    assert!(refault(0) > 0.5 * mean(&report, 0, "service.walltime"));
    assert!(said[2].starts_with("group web: lost "), "{said:#?}");
    assert!(
        said[2].contains("the machine was short of memory) while batch allocated "),
        "{said:#?}"
    );
    assert!(said[2].contains(" to reclaim in unprotected "), "{said:#?}");
    assert!(said[2].contains(" in memory.low"), "{said:#?}");
    let text = render(&report, 60);
    assert!(text.starts_with("\nwhy  service: waited"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn a_group_at_its_limit_is_why_its_task_waits() {
    let report = report(
        r#"
        repeats = 2
        machine = { memory = "256MiB", swap = "256MiB", cpus = 2 }
        group = [{ name = "jobs" }]
        task = [
          { name = "batch", group = "jobs", workload = "touch", size = "64MiB", passes = 3 },
          { name = "beside", workload = "compute", duration = "200ms" },
        ]
        variant = [
          { name = "free" },
          { name = "limited", set."group.jobs.memory.max" = "32MiB" },
        ]
        "#,
    );
    let said = sentences(&report);
    assert!(said[0].starts_with("batch: waited for memory not at all in free; "), "{said:#?}");
    let last = said.last().unwrap();
    let expected = "group jobs: lost next to nothing in free; ";
    assert!(last.starts_with(expected), "{said:#?}");
    assert!(last.contains(" in limited (mostly by tasks: a group was at its limit)"), "{said:#?}");
    // kswapd had nothing to do.
    assert!(!said.iter().any(|sentence| sentence.starts_with("kswapd")), "{said:#?}");
}

/// Pages of a group are counted in its ancestors, too, and are named once, at the bottom.
#[test]
fn the_loss_of_a_group_is_not_repeated_for_its_ancestor() {
    let report = report(
        r#"
        repeats = 1
        machine = { memory = "256MiB", swap = "256MiB", cpus = 2 }
        group = [
          { name = "pod" },
          { name = "jobs", parent = "pod", "memory.max" = "32MiB" },
        ]
        task = [{ name = "batch", group = "jobs", workload = "touch", size = "64MiB", passes = 3 }]
        "#,
    );
    assert_eq!(mean(&report, 0, "pod.pgsteal"), mean(&report, 0, "jobs.pgsteal"));
    let said = sentences(&report);
    let last = said.last().unwrap();
    assert!(last.starts_with("group jobs: "), "{said:#?}");
    assert!(!last.contains(", group "), "{said:#?}");
}

#[test]
fn kswapd_is_busy_while_a_file_is_read_through_a_small_machine() {
    let report = report(
        r#"
        repeats = 2
        machine = { memory = "128MiB", cpus = 2, disk = [{ name = "disk", model = "rotating" }] }
        file = [
          { name = "log" },
          { name = "data", size = "384MiB", sparse = true },
        ]
        task = [
          { name = "dd", background = true, workload = "file-write", file = "log" },
          { name = "stream", start = "2s", workload = "mapped-read", file = "data" },
        ]
        variant = [{ name = "default" }]
        "#,
    );
    let said = sentences(&report);
    let kswapd = said.iter().find(|sentence| sentence.starts_with("kswapd: awake ")).unwrap();
    let share = mean(&report, 0, "time_kswapd_awake") / mean(&report, 0, "elapsed");
    let expected = format!("kswapd: awake {:.0} % of the run (", share * 100.0);
    assert!(kswapd.starts_with(&expected), "{share}: {said:#?}");
    // A writer faster than its disk waits for that, not for memory.
    let dd = said.iter().find(|sentence| sentence.starts_with("dd: waited for memory ")).unwrap();
    assert!(dd.contains(", was throttled for dirty pages "), "{said:#?}");
}

#[test]
fn requested_reclaim_is_not_a_shortage_of_memory() {
    let with = |phases: &str| {
        report(&format!(
            r#"
            repeats = 1
            machine = {{ memory = "1GiB", swap = "1GiB" }}
            [[group]]
            name = "pod"
            [[group]]
            name = "web"
            parent = "pod"
            [[task]]
            name = "w"
            group = "web"
            [[task.phase]]
            name = "fill"
            workload = "touch"
            size = "100MiB"
            [[task.phase]]
            name = "rest"
            workload = "sleep"
            duration = "2s"
            [[task]]
            name = "admin"
            start = "1s"
            {phases}
            "#
        ))
    };
    let write = |control: &str, target: &str, text: &str| {
        let report = with(&format!(
            "workload = \"write-control\"\ncontrol = \"{control}\"\ntarget = \"{target}\"\ntext = \"{text}\""
        ));
        assert_eq!(mean(&report, 0, "pgsteal_direct"), 0.0, "the machine has enough");
        sentences(&report).pop().unwrap()
    };
    for target in ["pod", "web"] {
        let said = write("memory.reclaim", target, "60M");
        assert!(said.contains("(mostly by tasks: memory.reclaim was written)"), "{said}");
    }
    let said = write("memory.high", "web", "40M");
    assert!(said.contains("(mostly by tasks: its limit was lowered)"), "{said}");
}

/// The pages are evicted while they are not in use, so PSI counts no stall for their reads.
#[test]
fn a_file_that_does_not_fit_is_read_again_and_again() {
    let report = report(
        r#"
        repeats = 1
        machine.memory = "512MiB"
        file = [{ name = "code", size = "64MiB" }]
        group = [{ name = "ct" }]
        [[task]]
        name = "svc"
        group = "ct"
        workload = "mapped-read"
        file = "code"
        passes = 10
        [[variant]]
        name = "fits"
        [[variant]]
        name = "too-small"
        set = { "group.ct.memory.max" = "32MiB" }
        "#,
    );
    let of = |column, name: &str| mean(&report, column, &format!("svc.{name}"));
    assert_eq!(of(0, "stall_reread"), 0.0, "its only reads are the first ones");
    assert!(of(0, "disk_wait") > 0.3 * of(0, "walltime"));
    assert!(of(1, "stall_refault") < 0.1 * of(1, "walltime"));
    assert!(of(1, "stall_reread") > 0.5 * of(1, "walltime"));
    let said = sentences(&report);
    assert!(
        said[0].starts_with("svc: waited for memory not at all in fits, for disks "),
        "{said:#?}"
    );
    assert!(said[0].contains(" re-reading evicted file pages"), "{said:#?}");
}

#[test]
fn sleeps_above_memory_high_are_told_apart() {
    let report = report(
        r#"
        repeats = 1
        machine.memory = "512MiB"
        group = [{ name = "pod", "memory.high" = "16M" }]
        task = [{ name = "job", group = "pod", workload = "touch", size = "20MiB" }]
        "#,
    );
    assert_eq!(mean(&report, 0, "job.stall_throttled"), 0.0);
    assert!(mean(&report, 0, "job.stall_high") > 0.5 * mean(&report, 0, "job.walltime"));
    let said = sentences(&report);
    assert!(said[0].contains(" throttled above memory.high"), "{said:#?}");
}

#[test]
fn slab_that_fills_a_group_is_named() {
    let report = report(
        r#"
        repeats = 1
        machine.memory = "512MiB"
        group = [{ name = "pod" }, { name = "ct", parent = "pod" }]
        [[task]]
        name = "shipper"
        group = "ct"
        workload = "names"
        kind = "missing"
        make = 100_000
        "#,
    );
    let said = sentences(&report);
    let last = said.last().unwrap();
    assert!(last.starts_with("slab: at the end ") && last.contains(" of group ct"), "{said:#?}");
}

#[test]
fn khugepaged_is_named_if_it_allocated_most() {
    let with = |limit: &str| {
        let report = report(&format!(
            r#"
            repeats = 1
            machine = {{ memory = "256MiB", swap = "256MiB" }}
            policy.thp = "madvise"
            sysctl."transparent_hugepage.khugepaged.scan_sleep_millisecs" = 10
            group = [{{ name = "pod", "memory.max" = "{limit}" }}]
            [[task]]
            name = "web"
            group = "pod"
            phase = [
              {{ name = "map", workload = "advise", size = "64MiB", advice = "normal" }},
              {{ name = "fill", workload = "touch", size = "64MiB", stride = "64KiB" }},
              {{ name = "ask", workload = "advise", advice = "huge" }},
              {{ name = "rest", workload = "sleep", duration = "1s" }},
            ]
            "#
        ));
        sentences(&report).pop().unwrap()
    };
    let said = with("40M");
    assert!(said.contains(" while khugepaged allocated "), "{said}");
    let said = with("max");
    assert!(said.starts_with("No group lost memory to reclaim; khugepaged allocated "), "{said}");
}

#[test]
fn a_reader_beside_a_writer_waits_for_the_disk() {
    let report = report(
        r#"
        repeats = 1
        time_limit = "20s"
        file = [{ name = "log" }, { name = "data", size = "4GiB", sparse = false }]
        [machine]
        memory = "512MiB"
        cpus = 2
        disk = [{ name = "disk", model = "rotating" }]
        [[task]]
        name = "reader"
        background = true
        workload = "mapped-read"
        file = "data"
        order = "random"
        [[task]]
        name = "other"
        workload = "sleep"
        duration = "5s"
        [[task]]
        name = "writer"
        background = true
        workload = "file-write"
        file = "log"
        [[variant]]
        name = "beside"
        [[variant]]
        name = "fast"
        set = { "machine.disk.disk.model" = "nvme" }
        "#,
    );
    let said = sentences(&report);
    let reader = said.iter().find(|sentence| sentence.starts_with("reader: ")).unwrap();
    assert!(reader.contains(", for disks ") && reader.contains("/s)"), "{said:#?}");
}
