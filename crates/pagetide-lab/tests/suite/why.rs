//! The sentences under the table, on three small experiments: they name who did wait, what kswapd did wait for, and
//! the group that did lose memory, with the figures of the records.

use pagetide_lab::execute::execute;
use pagetide_lab::plan::Plan;
use pagetide_lab::report::Report;
use pagetide_lab::why::{render, sentences};
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::{load_str, Overrides};
use std::num::NonZeroUsize;
use std::path::Path;

fn report(text: &str) -> Report {
    let scenario = load_str("why", text, Path::new("."), &Overrides::default());
    let plan = Plan::new(scenario.unwrap_or_else(|errors| panic!("{errors}"))).unwrap();
    let world = Simulator::default();
    let runs = execute(&plan, &world, NonZeroUsize::new(2).unwrap(), &Default::default(), &|_| {});
    Report::new(plan, &runs)
}

fn mean(report: &Report, column: usize, key: &str) -> f64 {
    report.summary(column, key).unwrap_or_else(|| panic!("no {key}")).mean
}

#[test]
fn a_service_that_is_not_protected_waits_for_its_own_pages() {
    let report = report(
        r#"
        repeats = 2
        [machine]
        memory = "256MiB"
        swap = "1GiB"
        [[group]]
        name = "web"
        [[group]]
        name = "other"
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
        [[variant]]
        name = "unprotected"
        [[variant]]
        name = "memory.low"
        set = { "group.web.memory.low" = "155MiB" }
        "#,
    );
    let said = sentences(&report);
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(said[0].starts_with("service waited for memory in unprotected "), "{said:#?}");
    assert!(said[0].contains(" for pages that had been evicted"), "{said:#?}");
    let refault = |column| mean(&report, column, "service.stall_refault");
    assert!(refault(0) > 10.0 * refault(1), "it was protected");
    assert!(refault(0) > 0.5 * mean(&report, 0, "service.walltime"));
    assert!(said[2].starts_with("Reclaim took from group web in unprotected "), "{said:#?}");
    assert!(said[2].contains("as the machine was short), while batch allocated "), "{said:#?}");
    assert!(said[2].contains("; in memory.low "), "{said:#?}");
    let text = render(&report, 60);
    assert!(text.starts_with("\nwhy  service waited"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn a_group_at_its_limit_is_why_its_task_waits() {
    let report = report(
        r#"
        repeats = 2
        machine = { memory = "256MiB", swap = "256MiB", cpus = 2 }
        [[group]]
        name = "jobs"
        [[task]]
        name = "batch"
        group = "jobs"
        workload = "touch"
        size = "64MiB"
        passes = 3
        [[task]]
        name = "beside"
        workload = "compute"
        duration = "200ms"
        [[variant]]
        name = "free"
        [[variant]]
        name = "limited"
        set = { "group.jobs.memory.max" = "32MiB" }
        "#,
    );
    let said = sentences(&report);
    assert!(
        said[0].starts_with("batch waited for memory in free not at all; in limited "),
        "{said:#?}"
    );
    let last = said.last().unwrap();
    let expected = "Reclaim took from group jobs in free next to nothing; in limited ";
    assert!(last.starts_with(expected), "{said:#?}");
    assert!(last.contains("(most of it by tasks, as a group was at its limit)"), "{said:#?}");
    // kswapd had nothing to do.
    assert!(!said.iter().any(|sentence| sentence.starts_with("kswapd")), "{said:#?}");
}

/// What was taken from a group was taken from those around it, too, and is told once.
#[test]
fn what_a_group_lost_is_not_told_of_the_group_around_it_again() {
    let report = report(
        r#"
        repeats = 1
        machine = { memory = "256MiB", swap = "256MiB", cpus = 2 }
        [[group]]
        name = "pod"
        [[group]]
        name = "jobs"
        parent = "pod"
        "memory.max" = "32MiB"
        [[task]]
        name = "batch"
        group = "jobs"
        workload = "touch"
        size = "64MiB"
        passes = 3
        "#,
    );
    assert_eq!(mean(&report, 0, "pod.pgsteal"), mean(&report, 0, "jobs.pgsteal"));
    let said = sentences(&report);
    let last = said.last().unwrap();
    assert!(last.starts_with("Reclaim took from group "), "{said:#?}");
    assert!(!last.contains(", and from "), "{said:#?}");
}

#[test]
fn kswapd_is_busy_while_a_file_is_read_through_a_small_machine() {
    let report = report(
        r#"
        repeats = 2
        [machine]
        memory = "128MiB"
        cpus = 2
        [[machine.disk]]
        name = "disk"
        model = "rotating"
        [[file]]
        name = "log"
        [[file]]
        name = "data"
        size = "384MiB"
        sparse = true
        [[task]]
        name = "dd"
        background = true
        workload = "file-write"
        file = "log"
        [[task]]
        name = "stream"
        start = "2s"
        workload = "mapped-read"
        file = "data"
        [[variant]]
        name = "default"
        "#,
    );
    let said = sentences(&report);
    let kswapd = said.iter().find(|sentence| sentence.starts_with("kswapd was awake ")).unwrap();
    let share = mean(&report, 0, "time_kswapd_awake") / mean(&report, 0, "elapsed");
    let expected = format!("kswapd was awake {:.0} % of the time (", share * 100.0);
    assert!(kswapd.starts_with(&expected), "{share}: {said:#?}");
    // A writer faster than its disk waits for that, not for memory as a whole.
    assert!(said[0].starts_with("dd waited for memory "), "{said:#?}");
    assert!(said[0].contains(" for its dirty pages to be written"), "{said:#?}");
}

#[test]
fn what_was_asked_for_is_not_want_of_memory() {
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
        assert!(said.contains("(most of it by tasks, as memory.reclaim was written)"), "{said}");
    }
    let said = write("memory.high", "web", "40M");
    assert!(said.contains("(most of it by tasks, as its limit was lowered)"), "{said}");
}
