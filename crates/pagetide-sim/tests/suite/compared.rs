//! Settings that a comparison with a kernel takes from its record: the memory of programs, the
//! moment of their start, the times of reports. And the times of requests in plugs.

use pagetide_scenario::model::{Setup, Variant};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{mean_waits, run, RunOptions};
use pagetide_testing::{scenario, setup, value};
use std::sync::atomic::AtomicBool;

/// Changes the first variant and runs it with this seed.
fn run_with(text: &str, seed: u64, change: impl Fn(&mut Setup)) -> RunRecord {
    let mut variant: Variant = scenario(text).variants.remove(0);
    change(&mut variant.setup);
    run("test", &variant, seed, &RunOptions { audit_every: 1000, ..RunOptions::default() }).unwrap()
}

const TWO_TASKS: &str = r#"
    [[machine.node]]
    zone = [{ name = "DMA32", present = "16384 pages", free = "12288 pages" }]
    [[task]]
    name = "first"
    workload = "compute"
    duration = "2ms"
    [[task]]
    name = "second"
    phase = [
      { name = "a", workload = "compute", duration = "6ms" },
      { name = "b", workload = "compute", duration = "2ms" },
    ]
"#;

/// In a window of read-ahead, the first page waits while others are allocated.
#[test]
fn swap_read_ahead_waits_in_a_plug() {
    let waits = |cluster: u32| {
        let text = format!(
            "[machine]\nmemory = \"64MiB\"\nswap = \"64MiB\"\n[sysctl]\n\
             \"vm.page-cluster\" = {cluster}\n[[group]]\nname = \"g\"\n\"memory.max\" = \"16M\"\n\
             [[task]]\nname = \"t\"\ngroup = \"g\"\nworkload = \"touch\"\nsize = \"24MiB\"\n\
             passes = 3\n"
        );
        let setup = &setup(&text);
        let [reads, writes] = mean_waits(setup, 1, &AtomicBool::new(false)).unwrap()[0];
        assert!(writes > 0, "reclaim has a plug, too");
        reads
    };
    let (window, page) = (waits(3), waits(0));
    assert!(window > 10_000 + 4 * page, "{window} ns in a window, {page} ns for one page");
}

#[test]
fn a_program_gives_its_frames_back_when_it_ends() {
    let free = |frames: u64| {
        let record = run_with(TWO_TASKS, 1, |setup| setup.machine.program_frames = frames);
        (value(&record, "first.walltime"), value(&record, "nr_free_pages"))
    };
    let ((time, plain), (same_time, more)) = (free(0), free(1500));
    assert_eq!(time, same_time);
    // Some are in per-CPU lists.
    assert!((2500.0..=3000.0).contains(&(more - plain)), "{plain} {more}: two programs ended");
    let (_, all) = free(u64::MAX / 2);
    assert!(all - plain <= 4096.0, "the kernel has no more: 16 MiB");
}

#[test]
fn tasks_of_a_comparison_start_in_their_order() {
    for seed in 0..8 {
        let record = run_with(TWO_TASKS, seed, |setup| setup.machine.starts_at_once = true);
        let ends = ["first", "second"].map(|task| value(&record, &format!("{task}.walltime")));
        assert!(ends[0] < 0.0045, "seed {seed}: {ends:?}");
    }
}

/// The report between two phases takes CPU time that is in neither of them.
#[test]
fn a_report_is_no_part_of_a_phase() {
    let text =
        format!("{TWO_TASKS}{}", "[[task]]\nname = \"n\"\nworkload = \"names\"\nmake = 10\n");
    let cpu = |report: Option<u64>| {
        let record = run_with(&text, 1, |setup| setup.machine.call_times.report = report);
        let user = value(&record, "second.b.user") - 0.002;
        assert!(user.abs() < 0.0001, "user time of the report: {user}");
        ["second.a.cpu", "second.b.cpu", "second.cpu"].map(|key| value(&record, key))
    };
    let ([a, b, task], [with_a, with_b, with_task]) = (cpu(None), cpu(Some(3_000_000)));
    assert!((with_a - a).abs() < 0.0001, "{a} {with_a}");
    assert!((with_b - b).abs() < 0.0001, "{b} {with_b}");
    assert!((with_task - task - 0.006).abs() < 0.0005, "{task} {with_task}");
}

/// A measured time of a call has its slabs in it, so these are not paid again.
#[test]
fn a_measured_call_takes_its_time_in_all() {
    let text = "[machine]\nmemory = \"256MiB\"\n[[task]]\nname = \"t\"\nworkload = \"names\"\n\
                make = 20000\nkind = \"missing\"\n";
    let record = run_with(text, 1, |setup| setup.machine.call_times.missing = Some(5_000));
    let mean_us = value(&record, "t.cpu") * 1e6 / 20_000.0;
    assert!((4.99..5.02).contains(&mean_us), "{mean_us}");
}

#[test]
fn resident_memory_is_reclaimed_when_a_task_needs_it() {
    const TEXT: &str = "[[machine.zone]]\nname = 'DMA32'\npresent = '16384 pages'\nfree = '2000 pages'\n\
        [[group]]\nname = 'g'\n\
        [[task]]\nname = 'idle'\ngroup = 'g'\nbackground = true\nworkload = 'sleep'\nduration = '9h'\n\
        resident = [{ active_file = '3000 pages', inactive_file = '7000 pages', inactive_anon = '500 pages' }]\n\
        [[task]]\nname = 'a'\nworkload = 'touch'\nsize = '6000 pages'\n";
    let record = run_with(TEXT, 1, |_| {});
    let value = |name: &str| value(&record, name);
    assert_eq!((value("oom_kill"), value("pswpout")), (0.0, 0.0));
    let stolen = value("pgsteal_kswapd") + value("pgsteal_direct");
    assert!((4000.0..6000.0).contains(&stolen), "{stolen}");
    assert!(value("nr_inactive_file") < 3000.0 && value("nr_inactive_anon") >= 500.0);
}

#[test]
fn a_note_describes_the_request_for_which_memory_ran_out() {
    const TEXT: &str = "[machine]\nmemory = '64MiB'\n[[group]]\nname = 'g'\n'memory.max' = '8M'\n\
        [[task]]\nname = 'a'\ngroup = 'g'\nworkload = 'touch'\nsize = '16MiB'\n\
        [[task]]\nname = 'b'\nafter = 'a'\nworkload = 'touch'\nsize = '80MiB'\n";
    let notes = run_with(TEXT, 1, |_| {}).notes;
    let flags = "order 0, GFP_HIGHUSER_MOVABLE|__GFP_ZERO; ";
    let [a, b] = &notes[..] else { panic!("{notes:?}") };
    let group = "group `g` has 8192 kB of 8192 kB)";
    assert_eq!(*a, format!("task `a` of group `g` was killed: out of memory ({flags}{group}"));
    let machine = format!("task `b` was killed: out of memory ({flags}DMA: free ");
    assert!(b.starts_with(&machine) && b.contains("kB; DMA32: free "), "{b}");
}
