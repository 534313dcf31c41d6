//! One execution of the scenario by the guest program, an ordinary process here.
//!
//! Invariant: on return, the program and its children have ended or are about to: they die with
//! their parent.

use super::scenario::NAME;
use crate::console::{self, GuestReport, GuestSnapshot};
use crate::counts::{record, RunName};
use crate::error::LinuxError;
use pagetide_scenario::metric::{KeyNames, MetricKey, Owner, Scope};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::{Metric, RunRecord, Unit};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum duration; usual is a second, but disks may be slow.
const PATIENCE: Duration = Duration::from_secs(45);
/// Polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Prefixes in memory.stat of counters by reclaimer.
const SUMS: [&str; 2] = ["pgscan", "pgsteal"];
const FAULTS: &str = "pgfault";

/// Executes the scenario in `dir` with `program`; the record has the seed `seed`.
pub(super) fn perform(
    program: &Path,
    dir: &Path,
    setup: &Setup,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<RunRecord, LinuxError> {
    let wrong = |problem: String| LinuxError::Guest { path: program.to_owned(), problem };
    let mut child = Command::new(program)
        .arg("here")
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| wrong(format!("cannot be started: {error}")))?;
    let said = Arc::new(Mutex::new(Vec::new()));
    let reader = child.stdout.take().map(|mut output| {
        let said = Arc::clone(&said);
        thread::spawn(move || {
            let mut piece = [0; 1 << 16];
            while let Ok(read @ 1..) = output.read(&mut piece) {
                said.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..read]);
            }
        })
    });
    let ended = wait(&mut child, &said, cancel);
    // Its children hold the pipe too. They die when it ends.
    let _ = child.kill();
    let _ = child.wait();
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    let mut complaint = String::new();
    if let Some(errors) = child.stderr.take() {
        // At most a sentence; do not wait for more than the pipe holds.
        let _ = errors.take(1024).read_to_string(&mut complaint);
    }
    if cancel.load(Ordering::Relaxed) {
        return Err(LinuxError::Cancelled);
    }
    let bytes = said.lock().unwrap_or_else(PoisonError::into_inner);
    let report = console::parse(&bytes).map_err(|garbage| LinuxError::Report {
        at: garbage.at,
        problem: garbage.problem,
        console: Vec::new(),
    })?;
    let doing = match report.last_step.as_str() {
        "" => "beginning".to_owned(),
        doing => doing.to_owned(),
    };
    if let Some(problem) = report.failed {
        return Err(LinuxError::GaveUp { doing, problem, console: Vec::new() });
    }
    if !report.done {
        let problem = match (ended, complaint.trim()) {
            (true, "") => "its program ended".to_owned(),
            (true, complaint) => format!("its program ended: {complaint}"),
            (false, _) => "it took too long".to_owned(),
        };
        return Err(LinuxError::GaveUp { doing, problem, console: Vec::new() });
    }
    let name = RunName { scenario: NAME, variant: super::VARIANT, seed };
    let mut record = record(name, setup, &report).map_err(|problem| LinuxError::Report {
        at: 0,
        problem,
        console: Vec::new(),
    })?;
    put_sums(&mut record, setup, &report);
    Ok(record)
}

/// Waits until the program has ended. Returns false if it failed or took too long.
fn wait(child: &mut Child, said: &Mutex<Vec<u8>>, cancel: &AtomicBool) -> bool {
    let begun = Instant::now();
    while !cancel.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return true;
        }
        if console::has_failed(&said.lock().unwrap_or_else(PoisonError::into_inner)) {
            return false;
        }
        thread::sleep(LOOK_EVERY);
    }
    false
}

/// Adds two values for each phase: faults of the process, because those of the machine include
/// other processes, and sums over reclaimers in memory.stat, because kernels differ in the names of
/// reclaimers.
fn put_sums(record: &mut RunRecord, setup: &Setup, report: &GuestReport) {
    let names = KeyNames::of(setup);
    for (id, task) in setup.tasks.iter().enumerate() {
        let of = |kind: &'static str, phase: usize| {
            let is_it =
                move |it: &&GuestSnapshot| it.kind == kind && it.task == id && it.phase == phase;
            report.snapshots.iter().find(is_it)
        };
        for (number, phase) in task.phases.iter().enumerate() {
            let ends = of("phase-begin", number).zip(of("phase-end", number));
            let Some((begin, end)) = ends else { continue };
            let mut put = |scope: &Scope, name: &'static str, from: u64, to: u64| {
                let key = MetricKey { scope: scope.clone(), name: name.into() };
                let metric = Metric::new(to.saturating_sub(from) as f64, Unit::Count);
                record.metrics.insert(names.text(&key), metric);
            };
            let scope = Scope::Phase { task: Owner::new(&task.name), phase: phase.name.clone() };
            let faults =
                |of: &GuestSnapshot| of.usage.minor_faults.saturating_add(of.usage.major_faults);
            put(&scope, FAULTS, faults(begin), faults(end));
            let Some(group) = task.group else { continue };
            let scope = scope.with_group(Owner::new(&setup.groups[group].name));
            let sum = |snapshot: &GuestSnapshot, name: &str| -> Option<u64> {
                let said = snapshot.groups.get(&group)?;
                said.iter().find(|(it, _)| it == name).map(|(_, value)| *value)
            };
            for name in SUMS {
                if let Some((from, to)) = sum(begin, name).zip(sum(end, name)) {
                    put(&scope, name, from, to);
                }
            }
        }
    }
}
