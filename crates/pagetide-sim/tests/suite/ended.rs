//! Values of incomplete work are marked as such, because the times of a killed task are not
//! measurements.

use pagetide_scenario::record::{Incomplete, RunRecord};
use pagetide_testing::run_text;

/// Checks the mark of these metrics; `None`: complete.
fn check(record: &RunRecord, expected: &[(&str, Option<Incomplete>)]) {
    for (key, ended) in expected {
        let metric = record.metrics.get(*key).unwrap_or_else(|| panic!("no {key}"));
        assert_eq!(metric.ended, *ended, "{key}");
    }
}

#[test]
fn a_killed_task_has_no_walltime_that_counts() {
    let record = run_text(
        r#"
        machine.memory = "64MiB"
        group = [{ name = "limited", "memory.max" = "8M" }]
        [[task]]
        name = "pair"
        copies = 2
        phase = [
          { name = "begin", workload = "compute", duration = "1ms" },
          { name = "rest", workload = "compute", duration = "20ms" },
        ]
        [[task]]
        name = "batch"
        group = "limited"
        phase = [
          { name = "small", workload = "touch", size = "1MiB" },
          { name = "large", workload = "touch", size = "16MiB" },
        ]
        "#,
        0,
    );
    let killed = Some(Incomplete::OomKilled);
    check(
        &record,
        &[
            ("batch.walltime", killed),
            ("batch.alloc_latency_p99", killed),
            ("batch.pgfault", killed),
            ("batch.large.walltime", killed),
            ("batch.large.pgscan_direct", killed),
            ("batch.large.limited.memory.current", killed),
            ("batch.small.walltime", None),
            ("batch.small.throughput", None),
            ("batch.throughput", killed),
            ("limited.memory.events.oom_kill", None),
            ("pair.walltime", None),
            ("pair.0.walltime", None),
            ("elapsed", killed),
            ("user", killed),
            ("system", killed),
            ("oom_kill", None),
            ("psi.memory.some", None),
        ],
    );
}

#[test]
fn a_task_in_the_background_has_a_rate() {
    let record = run_text(
        r#"
        machine = { memory = "64MiB" }
        [[task]]
        name = "scan"
        background = true
        workload = "touch"
        size = "4MiB"
        passes = 1000000
        [[task]]
        name = "main"
        workload = "compute"
        duration = "20ms"
        "#,
        0,
    );
    let of = |key: &str| record.metrics[key].value;
    assert!(of("scan.throughput") > 0.0);
    assert_eq!(of("scan.throughput"), of("scan.bytes") / of("scan.walltime"));
    check(
        &record,
        &[
            ("scan.throughput", None),
            ("scan.pgfault", None),
            ("scan.walltime", Some(Incomplete::Stopped)),
            ("elapsed", None),
        ],
    );
}

#[test]
fn what_copies_did_together_is_not_done_if_one_was_killed() {
    let record = run_text(
        r#"
        machine.memory = "32MiB"
        [[task]]
        name = "hog"
        copies = 2
        phase = [{ name = "fill", workload = "touch", size = "20MiB" }]
        "#,
        0,
    );
    let of = |key: &str| record.metrics[key].ended;
    let ended = [of("hog.0.walltime"), of("hog.1.walltime")];
    assert!(ended.contains(&None) && ended.contains(&Some(Incomplete::OomKilled)), "{ended:?}");
    let killed = Some(Incomplete::OomKilled);
    check(&record, &[("hog.walltime", killed), ("hog.fill.walltime", killed)]);
}

#[test]
fn a_run_that_was_cut_has_times_only_of_what_had_ended() {
    let record = run_text(
        r#"
        time_limit = "50ms"
        machine = { memory = "64MiB", cpus = 2 }
        group = [{ name = "all" }]
        [[task]]
        name = "short"
        workload = "compute"
        duration = "10ms"
        [[task]]
        name = "long"
        phase = [
          { name = "first", workload = "compute", duration = "1ms" },
          { name = "second", workload = "compute", duration = "10s" },
        ]
        [[task]]
        name = "never"
        start = "1s"
        workload = "compute"
        duration = "1ms"
        "#,
        0,
    );
    let cut = Some(Incomplete::Cut);
    check(
        &record,
        &[
            ("long.walltime", cut),
            ("long.first.walltime", None),
            ("short.walltime", None),
            ("never.user", cut),
            ("elapsed", cut),
            ("user", cut),
            ("psi.memory.some", cut),
            ("pgfault", cut),
            ("all.memory.peak", cut),
        ],
    );
    assert!(!record.metrics.contains_key("long.second.walltime"));
}

#[test]
fn a_background_task_that_is_stopped_has_ended_as_it_should() {
    let record = run_text(
        r#"
        machine = { memory = "64MiB", cpus = 2 }
        task = [
          { name = "program", workload = "compute", duration = "10ms" },
          { name = "with", until = "program", workload = "compute", duration = "10s" },
          { name = "beside", background = true, workload = "compute", duration = "10s" },
        ]
        "#,
        0,
    );
    let ended: Vec<&str> = record
        .metrics
        .iter()
        .filter(|(_, it)| it.ended.is_some())
        .map(|(key, _)| key.as_str())
        .collect();
    assert_eq!(ended, ["beside.walltime"]);
    assert!(record.metrics["with.walltime"].value < 0.1);
}

#[test]
fn a_fault_that_cannot_be_read_ends_a_task() {
    let record = run_text(
        r#"
        file = [{ name = "data", size = "1MiB" }]
        task = [{ name = "program", workload = "mapped-read", file = "data" }]
        [machine]
        memory = "64MiB"
        disk = [{ name = "broken", model = "ssd", faults.read_error_ppm = 1_000_000 }]
        "#,
        0,
    );
    check(&record, &[("program.walltime", Some(Incomplete::IoError))]);
}

#[test]
fn a_task_that_gets_no_memory_and_cannot_be_killed_is_not_a_victim_of_the_oom_killer() {
    let record = run_text(
        r#"
        machine.memory = "64MiB"
        group = [{ name = "limited", "memory.max" = "1M" }]
        [[task]]
        name = "spared"
        group = "limited"
        oom_score_adj = -1000
        workload = "touch"
        size = "2MiB"
        "#,
        0,
    );
    let refused = Some(Incomplete::Refused);
    check(&record, &[("spared.walltime", refused), ("spared.pgfault", refused)]);
}

/// The OOM killer acts although there is memory, because all of it is too young.
#[test]
fn a_kill_for_min_ttl_says_so() {
    let record = run_text(
        r#"
        machine = { memory = "64MiB", swap = "256MiB" }
        policy.lru = "mglru"
        sysctl = { "lru_gen.min_ttl_ms" = 100000000 }
        [[task]]
        name = "big"
        workload = "touch"
        size = "128MiB"
        "#,
        1,
    );
    let notes = record.notes.join("\n");
    assert!(notes.contains("younger than lru_gen.min_ttl_ms, 100000000 ms"), "{notes}");
}
