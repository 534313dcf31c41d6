//! Tests of `run --events` and `inspect --timeline`.

use pagetide_testing::command::end;
use pagetide_testing::directory::TestDir;
use pagetide_testing::scenarios::{GROUPS, SMALL};
use serde_json::Value;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

fn place() -> TestDir {
    TestDir::with("groups.toml", GROUPS)
}

fn lines(place: &TestDir, name: &str) -> Vec<Value> {
    let text = place.read(name);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_are_those_of_the_first_run_and_leave_the_results_alone() {
    let place = place();
    let run = place.starting("run groups.toml");
    let plain = run("--format csv").quietly();
    let recorded = run("--format csv --events out.jsonl");
    assert_eq!((recorded.code, &recorded.stdout), (Some(0), &plain.stdout));
    recorded.says(&["note: events of variant tree, seed 5, are in out.jsonl\n"]);

    let events = lines(&place, "out.jsonl");
    let of = |name: &str| events.iter().filter(|line| line["event"] == name).count();
    assert!(of("mm_vmscan_kswapd_wake") > 0);
    assert!(of("mm_vmscan_memcg_softlimit_reclaim_begin") > 0, "the stage of `tree`");
    let slave = |line: &&Value| line["memcg"] == "/slave" && !line["nr_reclaimed"].is_null();
    assert!(events.iter().filter(slave).count() > 0);

    // The bytes do not depend on other runs. The first variant is the one recorded.
    run("--jobs 1 --repeats 1 --events again.jsonl");
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    assert!(read("out.jsonl") == read("again.jsonl"));
    run("--variant hierarchical --seed 9 --events hierarchical.jsonl")
        .says(&["events of variant hierarchical, seed 9, are in hierarchical.jsonl"]);
    let stage = |line: &Value| line["event"] == "mm_vmscan_memcg_softlimit_reclaim_begin";
    assert!(!lines(&place, "hierarchical.jsonl").iter().any(stage));
}

#[test]
fn a_trace_and_events_are_of_the_same_run() {
    let place = place();
    let run = place.starting("run groups.toml");
    let plain = run("--format csv").quietly();
    let recorded = run("--format csv --perfetto out.pftrace --events out.jsonl");
    assert_eq!((recorded.code, &recorded.stdout), (Some(0), &plain.stdout));
    recorded.says(&[
        "note: events of variant tree, seed 5, are in out.jsonl\n",
        "note: a Perfetto trace of variant tree, seed 5, is in out.pftrace\n",
    ]);
    let read = |name: &str| fs::read(place.path(name)).unwrap();
    assert!(read("out.pftrace").starts_with(&[0x0a, 0x04, 0x50, 0x01, 0x68, 0x01]));
    // The same bytes, over the old ones, whatever runs beside it.
    let first = read("out.pftrace");
    run("--jobs 1 --repeats 1 --perfetto out.pftrace");
    assert!(read("out.pftrace") == first && first.len() > 10_000);
    assert_eq!(place.names(), ["groups.toml", "out.jsonl", "out.pftrace"]);
}

#[cfg(unix)]
#[test]
fn events_end_with_an_interruption_and_say_so() {
    let place = TestDir::with("long.toml", SMALL.replace("\"96MiB\"", "\"1TiB\""));
    let child = place.command("run long.toml --jobs 1 --events out.jsonl").spawn().unwrap();
    sleep(Duration::from_millis(500));
    let note =
        "note: events of variant default, seed 7, up to the interruption, are in out.jsonl\n";
    end(child, "INT").exits(130).says(&[note]);
    assert!(!lines(&place, "out.jsonl").is_empty());
    assert_eq!(place.names(), ["long.toml", "out.jsonl"]);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_stays() {
    let place = place();
    std::os::unix::fs::symlink("absent", place.path("out")).unwrap();
    for option in ["--events", "--perfetto"] {
        let ran = place.run(format!("run groups.toml {option} out"));
        ran.fails(2, &["out is a dangling symbolic link", "hint: nothing was written"]);
    }
    assert_eq!(place.names(), ["groups.toml", "out"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_run() {
    let place = place();
    for (option, what) in [("events", "events"), ("perfetto", "Perfetto trace")] {
        let line = format!("run groups.toml --variant tree --repeats 1 --{option} /dev/full");
        let error = format!("variant tree, seed 5: the {what} cannot be written: ");
        place.run(line).fails(1, &[&error, "hint: the run stopped: the disk may be full"]);
    }
}

#[test]
fn a_timeline_draws_every_group() {
    let place = place();
    let node = "\nnode 0, free memory unusable at order 9 (0 to 1.000)\n";
    let ran = place
        .run("inspect groups.toml --timeline")
        .succeeds()
        .prints(&["machine, free memory (0 to ", node, "\n/master (0 to ", "\n/slave (0 to "])
        .prints(&["\n pgscan_kswapd |", "\npgsteal_kswapd |", "#:", "A column is "]);
    assert!(ran.stdout.lines().all(|line| line.len() <= 100 && line == line.trim_end()));
    assert!(ran.stdout.is_ascii() && !ran.stdout.contains('\u{1b}'));
    ran.says(&["groups, variant tree, seed 5, pagetide "]);
}

#[test]
fn a_machine_without_groups_has_a_timeline() {
    let place = TestDir::with("small.toml", SMALL);
    let inspect = place.starting("inspect small.toml");
    let wanted = ["machine, free memory (0 to ", "\nnode 0, ", "\n      free MiB |"];
    inspect("--timeline").prints(&wanted);
    let csv = inspect("--timeline --format csv").stdout;
    let last = |group: &str| csv.lines().rfind(|row| row.contains(group)).unwrap();
    let fields: Vec<&str> = last(",node0,").split(',').collect();
    let files = inspect("--only vmstat").stdout;
    assert!(files.starts_with(&format!("nr_free_pages {}\n", fields[10])), "{}", last(",node0,"));
}

#[test]
fn a_timelines_csv_sums_up_to_the_files() {
    let place = place();
    let inspect = place.starting("inspect groups.toml");
    let csv = inspect("--timeline --format csv").stdout;
    let mut rows = csv.lines();
    let header = "ns,group,usage_pages,pgscan_kswapd,pgscan_direct,pgsteal_kswapd,\
                  pgsteal_direct,pgmajfault,usage_min_pages,usage_max_pages,free_pages,\
                  free_blocks_order9,unusable_index,unusable_index_min,unusable_index_max,\
                  compact_migrate_scanned,compact_free_scanned,pgmigrate_success,requests,late,dropped,\
                  latency_mean_ns,latency_max_ns,pgfault,oom_kill,anon_pages,file_pages,\
                  inactive_file_pages,swap_pages,psi_some_ns,psi_full_ns,min_pages,low_pages,high_pages,\
                  stall_refault_ns,stall_reread_ns,stall_reclaim_ns,stall_throttled_ns,stall_high_ns,\
                  stall_dirty_ns,stall_dirty_group_ns";
    assert_eq!(rows.next(), Some(header));
    let (mut stolen, mut nodes) = (0, 0);
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        assert_eq!(fields.len(), header.split(',').count(), "{row}");
        if fields[1].starts_with("zone ") || fields[1].starts_with("task ") {
            continue;
        }
        if fields[1] == "node0" {
            assert!(
                fields[2..10].iter().chain(&fields[15..]).all(|field| field.is_empty()),
                "{row}"
            );
            let index = |at: usize| -> f64 { fields[at].parse().unwrap() };
            assert!(index(13) <= index(12) && index(12) <= index(14), "{row}");
            nodes += 1;
            continue;
        }
        let number = |at: usize| -> u64 { fields[at].parse().unwrap() };
        assert!(["", "/master", "/slave"].contains(&fields[1]), "{row}");
        assert!(number(8) <= number(2) && number(2) <= number(9), "{row}");
        if fields[1] == "/slave" {
            stolen += number(5) + number(6);
        }
    }
    let stat = inspect("--only /sys/fs/cgroup/slave/memory.stat").stdout;
    let count = |name: &str| -> u64 {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {stat}")).parse().unwrap()
    };
    assert!(stolen > 0 && nodes >= 256);
    assert_eq!(stolen, count("pgsteal_kswapd") + count("pgsteal_direct"));
}

#[test]
fn a_timeline_is_instead_of_files() {
    let place = place();
    let inspect = place.starting("inspect groups.toml");
    inspect("--format csv").fails(2, &["--timeline"]);
    inspect("vmstat --timeline").fails(2, &["cannot be used with", "--timeline"]);
    inspect("--only vmstat --timeline").fails(2, &["cannot be used with"]);
}
