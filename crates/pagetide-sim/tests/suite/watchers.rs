//! Watchers in the simulated world: they see what is there, kill what they choose, and cost time.

use pagetide_scenario::record::timeline::TimelineDeed;
use pagetide_scenario::record::Incomplete;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::{run_text, scenario, value};

/// A machine of 512 MiB with a task that answers requests, and one that grows beyond the memory.
fn grows(rest: &str) -> String {
    format!(
        r#"
        time_limit = "60s"
        [machine]
        memory = "512MiB"
        swap = {{ size = "256MiB", disk = "ssd" }}
        disk = [{{ name = "ssd", model = "ssd" }}]
        [[group]]
        name = "user"
        [[group]]
        name = "build"
        parent = "user"
        [[task]]
        name = "web"
        workload = "service"
        rate = 50
        duration = "40s"
        threads = 2
        cpu = "1ms"
        heap = "64MiB"
        touches = 8
        [[task]]
        name = "build"
        group = "build"
        background = true
        phase = [
          {{ name = "grow", workload = "touch", size = "1GiB", rate = "30MiB/s" }},
          {{ name = "hold", workload = "sleep", duration = "1h" }},
        ]
        {rest}
        "#
    )
}

#[test]
fn earlyoom_kills_the_largest_task_before_the_kernel_does() {
    let record = run_text(&grows("[[watcher]]\nkind = \"earlyoom\"\n"), 0);
    assert_eq!(value(&record, "earlyoom.kills"), 1.0, "{:?}", record.notes);
    assert_eq!((value(&record, "oom_kill"), value(&record, "build.times_killed")), (0.0, 1.0));
    let at = value(&record, "earlyoom.first_kill");
    assert!((10.0..30.0).contains(&at), "{at}");
    assert_eq!(record.metrics["build.walltime"].ended, Some(Incomplete::Signalled));
    assert!(record
        .notes
        .iter()
        .any(|note| note.contains("watcher `earlyoom` killed `build` with SIGTERM")));
    assert!(value(&record, "earlyoom.cpu") > 0.0);
}

fn timeline_of(text: &str) -> Vec<TimelineDeed> {
    let options = RunOptions { want_timeline: true, ..RunOptions::default() };
    run("test", &scenario(text).variants[0], 1, &options).unwrap().timeline.unwrap().deeds
}

#[test]
fn the_timeline_has_signals_and_writes_of_watchers() {
    let signals = timeline_of(&grows("[[watcher]]\nkind = \"earlyoom\"\n"));
    let [kill] = &signals[..] else { panic!("{signals:?}") };
    let expected = ("earlyoom", "SIGTERM", "build");
    assert_eq!((kill.watcher.as_str(), kill.act.as_str(), kill.target.as_str()), expected);
    assert!((10..30).contains(&(kill.ns / 1_000_000_000)), "{kill:?}");
    let writes = timeline_of(&grows(
        "[[watcher]]\nname = \"loop\"\nkind = \"reclaim-loop\"\nrule = \"senpai\"\ntarget = \"build\"\n",
    ));
    assert!(writes.len() > 10 && writes.is_sorted_by_key(|deed| deed.ns), "{writes:?}");
    assert!(writes.iter().all(|deed| !deed.is_signal() && deed.target == "build"), "{writes:?}");
}

#[test]
fn the_requests_of_all_lives_of_a_service_count() {
    let text = grows(
        "[[task]]\nname = \"leak\"\nbackground = true\nrestart = \"1s\"\nworkload = \"service\"\n\
         rate = 100\ncpu = \"1ms\"\nheap = \"8MiB\"\ntouches = 4\ngrow = \"60MiB/s\"\nduration = \"39s\"\n\
         [[watcher]]\nkind = \"earlyoom\"\n",
    )
    .replace("size = \"1GiB\"", "size = \"8MiB\"");
    let record = run_text(&text, 0);
    let lives = value(&record, "leak.restarts") + 1.0;
    assert!(lives >= 3.0, "{:?}", record.notes);
    let of = |key: &str| value(&record, &format!("leak.{key}"));
    assert_eq!(of("requests"), of("main.requests"));
    // 40 s, less a second of rest after each kill.
    let expected = 100.0 * (41.0 - lives);
    assert!((of("requests") / expected - 1.0).abs() < 0.1, "{} of {expected}", of("requests"));
}

/// earlyoom waits up to 10 s for a victim; the next life of the task is another process.
#[test]
fn earlyoom_does_not_wait_for_the_next_life_of_its_victim() {
    let text = grows("[[watcher]]\nkind = \"earlyoom\"\n").replace("30MiB/s", "300MiB/s").replace(
        "group = \"build\"\n        background",
        "group = \"build\"\nrestart = \"10ms\"\n        background",
    );
    let record = run_text(&text, 0);
    assert!(value(&record, "earlyoom.kills") >= 9.0, "{:?}", record.notes);
}

#[test]
fn a_task_that_ignores_sigterm_gets_sigkill_from_kubelet_and_starts_again() {
    let text = grows(
        "[[watcher]]\nkind = \"kubelet\"\nmemory_available = \"20%\"\nfootprint = \"4MiB\"\n\
         [[watcher.pod]]\ngroup = \"build\"\n",
    );
    let text = text.replace(
        "group = \"build\"\n        background",
        "group = \"build\"\nsigterm = \"ignore\"\nrestart = \"1s\"\n        background",
    );
    let record = run_text(&text, 0);
    let evictions = value(&record, "kubelet.evictions");
    assert!(evictions >= 1.0, "{:?}", record.notes);
    assert_eq!(value(&record, "build.times_killed"), evictions);
    assert!(value(&record, "build.restarts") >= 1.0);
    // The manager looks every 10 s.
    let at = value(&record, "kubelet.first_kill") % 10.0;
    assert!(!(0.1..=9.9).contains(&at), "{at}");
}

/// A process that starts before kubelet looks again belongs to the next pod.
#[test]
fn kubelet_does_not_wait_for_the_pod_after_the_one_it_evicted() {
    let text = grows(
        "[[watcher]]\nkind = \"kubelet\"\nmemory_available = \"30%\"\nfootprint = \"4MiB\"\n\
         monitoring_interval = \"1s\"\nhousekeeping_interval = \"1s\"\n\
         [[watcher.pod]]\ngroup = \"build\"\n",
    );
    let text = text.replace("30MiB/s", "150MiB/s").replace(
        "group = \"build\"\n        background",
        "group = \"build\"\nrestart = \"50ms\"\n        background",
    );
    let record = run_text(&text, 0);
    assert!(value(&record, "kubelet.evictions") >= 4.0, "{:?}", record.notes);
}

#[test]
fn oomd_kills_by_pressure_or_by_swap() {
    let by_swap = run_text(
        &grows("[[watcher]]\nkind = \"systemd-oomd\"\n[[watcher.unit]]\nswap = true\n"),
        0,
    );
    assert_eq!(value(&by_swap, "systemd-oomd.kills"), 1.0, "{:?}", by_swap.notes);
    let thrashes = r#"
        [[watcher]]
        kind = "systemd-oomd"
        [[watcher.unit]]
        group = "user"
        pressure = true
        limit = "20%"
        duration = "5s"
    "#;
    let text = grows(thrashes).replacen(
        "name = \"user\"\n",
        "name = \"user\"\n\"memory.high\" = \"32M\"\n",
        1,
    );
    let by_pressure = run_text(&text, 0);
    assert_eq!(value(&by_pressure, "systemd-oomd.kills"), 1.0, "{:?}", by_pressure.notes);
    assert!(by_pressure.notes.iter().any(|note| note.contains("memory pressure")));
}

#[test]
fn lmkd_kills_above_its_lowest_score() {
    // The task stalls first when it uses its memory again: then little swap is free.
    let text = grows("[[watcher]]\nkind = \"lmkd\"\n")
        .replace("1GiB", "690MiB")
        .replace(
            "workload = \"sleep\", duration = \"1h\"",
            "workload = \"touch\", size = \"690MiB\", order = \"random\", passes = 100000",
        )
        .replace(
            "group = \"build\"\n        background",
            "group = \"build\"\noom_score_adj = 900\n        background",
        );
    let record = run_text(&text, 0);
    assert!(value(&record, "lmkd.kills") >= 1.0, "{:?}", record.notes);
    assert_eq!(value(&record, "build.times_killed"), 1.0);
}

#[test]
fn a_reclaim_loop_holds_a_group_at_its_watermark() {
    let text = r#"
        [machine]
        memory = "512MiB"
        swap = { size = "512MiB", disk = "ssd" }
        disk = [{ name = "ssd", model = "ssd" }]
        [[group]]
        name = "batch"
        "memory.max" = "200M"
        [[task]]
        name = "batch"
        group = "batch"
        phase = [
          { name = "grow", workload = "touch", size = "180MiB" },
          { name = "hold", workload = "sleep", duration = "10s" },
        ]
        [[watcher]]
        kind = "reclaim-loop"
        rule = "koordinator"
        target = "batch"
        watermark = "50 %"
    "#;
    let record = run_text(text, 0);
    // Each write reclaims more than it asks for, as in Linux 6.1.
    assert!(value(&record, "reclaim-loop.control_writes") >= 2.0);
    let current = value(&record, "batch.hold.batch.memory.current");
    assert!(current <= (101 << 20) as f64, "{current}");
    assert!(value(&record, "pswpout") > 10_000.0);
}

#[test]
fn a_run_with_watchers_is_audited_and_repeats() {
    let text = grows(
        "[[watcher]]\nkind = \"earlyoom\"\nlocked = false\n[[watcher]]\nkind = \"kubelet\"\n\
         [[watcher.pod]]\ngroup = \"build\"\n",
    );
    let text = text.replace(
        "background = true\n        phase",
        "background = true\nrestart = \"500ms\"\n        phase",
    );
    let (one, other) = (run_text(&text, 2000), run_text(&text, 0));
    assert_eq!((one.digest, &one.metrics), (other.digest, &other.metrics));
    assert!(value(&one, "build.restarts") >= 1.0, "{:?}", one.notes);
}
