//! No thread spins or starves, and no valid scenario hangs or panics.
//!
//! Each scenario is a regression test for an endless run or a panic.

use pagetide_scenario::model::costs::Price;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::directory::TestDir;
use pagetide_testing::{run_text, scenario_in};
use pagetide_trace::{
    AccessKinds, Clock, FoldWindow, Header, Record, RegionKind, TraceRegion, TraceWriter,
};

fn milliseconds(record: &RunRecord, metric: &str) -> f64 {
    record.metrics[metric].value * 1000.0
}

#[test]
fn a_task_killed_by_its_own_allocation_leaves_its_cpu() {
    let record = run_text(
        r#"
        machine.memory = "24MiB"
        task = [
          { name = "victim", workload = "touch", size = "64MiB" },
          { name = "other", start = "100ms", workload = "compute", duration = "50ms" },
        ]
        "#,
        10_000,
    );
    assert_eq!(record.metrics["oom_kill"].value, 1.0);
    assert!(milliseconds(&record, "other.walltime") < 51.0);
}

#[test]
fn the_writeback_thread_does_not_spin_on_pages_that_are_being_written() {
    // The last page of the file is dirtied again while it is under (slow) writeback.
    let record = run_text(
        r#"
        sysctl = { "vm.dirty_background_bytes" = 4096, "vm.dirty_writeback_centisecs" = 1 }
        file = [{ name = "log" }]
        task = [
          { name = "writer", workload = "file-write", file = "log", block = 100, total = "4MiB" },
          { name = "other", start = "5ms", workload = "compute", duration = "50ms" },
        ]
        [machine]
        memory = "64MiB"
        cpus = 2
        disk = [{ name = "disk", model = "rotating", write_latency = "100ms" }]
        "#,
        10_000,
    );
    assert!(milliseconds(&record, "other.walltime") < 53.0);
}

#[test]
fn a_read_whose_window_does_not_fit_reads_the_page_alone() {
    // Programs use all but a few pages, fewer than the read-ahead window.
    let record = run_text(
        r#"
        time_limit = "20s"
        machine = { memory = "2MiB", cpus = 2 }
        sysctl."block.read_ahead_kb" = 1024
        file = [{ name = "data", size = "4MiB", sparse = true }]
        [[task]]
        name = "programs"
        background = true
        phase = [
          { name = "start", workload = "touch", size = "276 pages" },
          { name = "stay", workload = "sleep", duration = "1h" },
        ]
        [[task]]
        name = "reader"
        start = "100ms"
        workload = "file-read"
        file = "data"
        block = 300_000
        "#,
        10_000,
    );
    assert_eq!(record.notes, Vec::<String>::new());
}

#[test]
fn old_kswapd_sleeps_beside_a_zone_with_nothing_to_reclaim() {
    // Without swap, nothing in zone DMA is reclaimable; other zones have a little page cache.
    let record = run_text(
        r#"
        time_limit = "20s"
        machine = { memory = "32MiB", disk = [{ name = "disk", model = "rotating" }] }
        policy.kswapd = "linux-2.6.37"
        file = [{ name = "data", size = "64MiB" }]
        [[task]]
        name = "programs"
        background = true
        phase = [
          { name = "start", workload = "touch", size = "7000 pages" },
          { name = "stay", workload = "sleep", duration = "1h" },
        ]
        [[task]]
        name = "reader"
        background = true
        start = "100ms"
        workload = "mapped-read"
        file = "data"
        order = "random"
        advice = "random"
        [[task]]
        name = "other"
        start = "3s"
        workload = "compute"
        duration = "500ms"
        "#,
        10_000,
    );
    assert_eq!(record.notes, Vec::<String>::new());
    assert!(milliseconds(&record, "other.walltime") < 520.0);
}

#[test]
fn background_and_hard_dirty_limit_may_lie_a_page_apart() {
    run_text(
        r#"
        machine.memory = "64MiB"
        sysctl = { "vm.dirty_bytes" = 4_294_967_296, "vm.dirty_background_bytes" = 4_294_963_200 }
        file = [{ name = "log" }]
        [[task]]
        name = "writer"
        loops = 2
        phase = [
          { name = "write", workload = "file-write", file = "log", total = "2MiB" },
          { name = "wait", workload = "sleep", duration = "300ms" },
        ]
        "#,
        10_000,
    );
}

#[test]
fn a_read_ahead_larger_than_any_file_is_harmless() {
    run_text(
        r#"
        machine.memory = "64MiB"
        sysctl."block.read_ahead_kb" = 4_294_967_295
        file = [{ name = "data", size = "8MiB" }]
        [[task]]
        name = "reader"
        phase = [
          { name = "read", workload = "file-read", file = "data" },
          { name = "map", workload = "mapped-read", file = "data", order = "random" },
        ]
        "#,
        10_000,
    );
}

fn write_trace(place: &TestDir, name: &str, pages: u64) {
    let kind = RegionKind::File { key: 9, executable: true };
    let region = TraceRegion { name: "library".into(), kind, pages, start: 0 };
    let window = FoldWindow { pages: 1, time: 1 };
    let header = Header::new(Clock::Instructions, window, "test".into(), vec![region]);
    let mut writer = TraceWriter::new(Vec::new(), &header).unwrap();
    for page in [0, pages - 1] {
        let kinds = AccessKinds::EXECUTE;
        writer
            .push(&Record { region: 0, page, kinds, references: 1, time: 4000, bytes: 0 })
            .unwrap();
    }
    let (bytes, _) = writer.finish(0).unwrap();
    place.write(name, bytes);
}

#[test]
fn two_traces_may_know_different_lengths_of_one_file() {
    let place = TestDir::new();
    write_trace(&place, "short.ptt", 3);
    write_trace(&place, "long.ptt", 300);
    let text = r#"
        machine.memory = "24MiB"
        task = [
          { name = "short", workload = "trace", path = "short.ptt" },
          { name = "long", after = "short", workload = "trace", path = "long.ptt" },
        ]
        "#;
    let options = RunOptions { audit_every: 10_000, ..RunOptions::default() };
    let record = run("test", &scenario_in(&place, text).variants[0], 1, &options).unwrap();
    assert_eq!(record.notes, Vec::<String>::new());
}

/// Old dirty pages are written in one round, whatever their number (Linux `wb_writeback`,
/// for_kupdate).
#[test]
fn all_old_dirty_pages_are_written() {
    let text = "[machine]\nmemory = \"1GiB\"\n[[file]]\nname = \"log\"\n[[task]]\nname = \"t\"\n\
                [[task.phase]]\nname = \"write\"\nworkload = \"file-write\"\nfile = \"log\"\n\
                total = \"64MiB\"\n[[task.phase]]\nname = \"rest\"\nworkload = \"sleep\"\n\
                duration = \"45s\"\n";
    let record = run_text(text, 0);
    assert_eq!(record.metrics["nr_written"].value, 16384.0, "64 MiB");
}

#[test]
fn others_run_beside_a_task_whose_operations_cost_nothing() {
    let prices = Price::ALL.map(|price| format!("{} = \"0ns\"\n", price.name())).concat();
    let record = run_text(
        &format!(
            r#"
            [machine]
            memory = "64MiB"
            [machine.costs]
            {prices}
            [[task]]
            name = "spins"
            workload = "touch"
            size = "1MiB"
            passes = 1000000000
            until = "other"
            [[task]]
            name = "other"
            workload = "compute"
            duration = "2ms"
            "#
        ),
        10_000,
    );
    assert!(milliseconds(&record, "other.walltime") < 20.0);
}
