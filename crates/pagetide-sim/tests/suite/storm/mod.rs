//! Storms (fuzz tests): small machines with random hardware, controls and programs, a third of them
//! short of memory, some with failing disks. Every run must end in a bounded time, pass the audits
//! during the run and at its end, and be deterministic. All runs together must cover each kind of
//! work (`tally.rs`).
//!
//! `PAGETIDE_STORM=n` runs n seeds instead of 60; `PAGETIDE_STORM_FROM=s` starts at seed s;
//! `PAGETIDE_STORM_JOBS=j` runs j at a time instead of one per CPU; `PAGETIDE_STORM_VERBOSE` prints
//! each seed before its run, and the result. Slow seeds are printed at once, failed seeds at the
//! end. `cargo test -p pagetide-sim --test suite storm::show -- --ignored --nocapture` prints the
//! setup of a seed.

mod more;
mod tally;
mod watchdog;
mod weather;

use pagetide_scenario::model::Variant;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use tally::Tally;

/// Storms that take longer are reported.
const LONG: Duration = Duration::from_secs(2);

/// Runs a storm. Returns its time, or a message about the failure.
fn storm(seed: u64, audit_every: u64) -> Result<(RunRecord, Duration), String> {
    let variant = Variant { name: "storm".into(), sets: Vec::new(), setup: weather::setup(seed) };
    let fail_copies = if seed % 8 == 3 { 5 } else { 0 };
    let watched = watchdog::watch(seed);
    let options = RunOptions {
        audit_every,
        fail_copies,
        cancel: Some(watched.cancel.clone()),
        progress: Some(watched.progress.clone()),
        ..RunOptions::default()
    };
    let ran = catch_unwind(AssertUnwindSafe(|| run("storm", &variant, seed, &options)));
    let (took, late) = watched.end();
    if let Some(late) = late {
        return Err(format!("{late}, of at most {}", variant.setup.time_limit_ns));
    }
    match ran {
        Ok(Ok(record)) => match tally::never_taken(&record) {
            None => Ok((record, took)),
            Some(note) => Err(note.clone()),
        },
        // This includes rejected setups, so that a renamed control is found here.
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("panicked (message above)".into()),
    }
}

/// Runs a storm twice, with and without audits; the results must be equal.
fn storm_twice(seed: u64, is_verbose: bool) -> Result<RunRecord, String> {
    if is_verbose {
        eprintln!("seed {seed}");
    }
    let (record, took) = storm(seed, 997)?;
    if took > LONG || is_verbose {
        let (ns, notes) = (record.elapsed_ns, &record.notes);
        eprintln!("seed {seed} took {took:?} for {ns} ns: {notes:?}");
    }
    let (again, _) = storm(seed, 0)?;
    if record.digest != again.digest || record.metrics != again.metrics {
        return Err("another run came out differently".into());
    }
    Ok(record)
}

/// Seeds that have found a defect.
#[test]
fn seeds_that_found_defects_pass() {
    for seed in [
        // Two kswapds waited for a disk that could take one more request; the woken one submitted
        // nothing.
        1165,
        // A removed group, kept alive by its slab caches, counted pages of its parent.
        2819,
        // Charges put a group back into the soft limit tree, and the reclaimer added it again.
        11635,
        // An OOM victim that had not seen its kill yet read ahead endlessly without using time.
        200_201,
        // Requests arrived while the threads of a service exited, and were assigned to an exited
        // one.
        702_204, 702_225,
        // A thread of a program stopped before its start was on a CPU, exiting, when the program
        // ended.
        9_002_829,
        // The load of a service ended between the stop of its thread and the thread's exit.
        21_005_895,
    ] {
        storm(seed, 97).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}

#[test]
fn small_machines_in_a_storm() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = number("PAGETIDE_STORM_FROM").unwrap_or(0);
    let nr = number("PAGETIDE_STORM").unwrap_or(60);
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let jobs = number("PAGETIDE_STORM_JOBS").unwrap_or(cpus);
    let is_verbose = std::env::var_os("PAGETIDE_STORM_VERBOSE").is_some();
    let next = AtomicU64::new(first);
    let failed = Mutex::new(Vec::new());
    let tally = Mutex::new(Tally::default());
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= first + nr {
            break;
        }
        match storm_twice(seed, is_verbose) {
            Ok(record) => tally.lock().unwrap().add(&record),
            Err(why) => {
                eprintln!("seed {seed} failed: {why}");
                failed.lock().unwrap().push((seed, why));
            }
        }
    };
    thread::scope(|scope| (0..jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable();
    let lines: Vec<String> =
        failed.iter().map(|(seed, why)| format!("seed {seed}: {why}")).collect();
    let (shares, out_of_bounds) = tally.into_inner().unwrap().judge(first == 0);
    println!("{shares}");
    assert!(failed.is_empty(), "{} of {nr} storms failed\n{}", failed.len(), lines.join("\n"));
    assert!(out_of_bounds.is_empty(), "{}\nall shares:\n{shares}", out_of_bounds.join("\n"));
}

#[test]
#[ignore = "prints the drawn setup of PAGETIDE_STORM_FROM"]
fn show() {
    let seed = std::env::var("PAGETIDE_STORM_FROM").unwrap().parse().unwrap();
    println!("{:#?}", weather::setup(seed));
}
