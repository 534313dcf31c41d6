//! A waking thread preempts another one in the middle of a long operation.
//!
//! Linux: `check_preempt_wakeup`, and `cond_resched` in the loops of the kernel.

use pagetide_core::units::Nanos;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::{Observation, ObservationKind, ObserverHandle, SwitchReason};
use pagetide_sim::{run, RunOptions};
use pagetide_testing::runs::watch;
use pagetide_testing::{scenario_with, value};
use std::sync::{Arc, Mutex};

/// One CPU. `hog` faults pages in; each fault takes 4 ms. `reader` waits for the disk, 200 us each
/// time.
const SCENARIO: &str = r#"
name = "preemption"
file = [{ name = "data", size = "400KiB" }]
[machine]
cpus = 1
memory = "256MiB"
costs.page_zero = "4ms"
disk = [{ name = "disk", model = "instant", read_latency = "200us" }]
[[task]]
name = "reader"
phase = [
  { name = "read", workload = "mapped-read", file = "data", order = "random", advice = "random" },
]
[[task]]
name = "hog"
phase = [{ name = "touch", workload = "touch", size = "2MiB" }]
"#;

/// Context switches: `None` for a switch in, or the reason of a switch out.
type Switches = Arc<Mutex<Vec<(Nanos, usize, Option<SwitchReason>)>>>;

fn switches_into(switches: Switches) -> ObserverHandle {
    watch(move |observation: &Observation| {
        let left = match observation.what {
            ObservationKind::SwitchIn(_) => None,
            ObservationKind::SwitchOut(_, left) => Some(left),
            _ => return,
        };
        switches.lock().unwrap().push((observation.at, observation.thread, left));
    })
}

fn record(sets: &[(&str, &str)]) -> RunRecord {
    watched(sets, Vec::new())
}

fn watched(sets: &[(&str, &str)], observers: Vec<ObserverHandle>) -> RunRecord {
    let variant = scenario_with(SCENARIO, sets).variants.remove(0);
    let options = RunOptions { audit_every: 1, observers, ..RunOptions::default() };
    run("preemption", &variant, 1, &options).unwrap()
}

#[test]
fn a_task_that_waited_for_a_disk_preempts_a_long_fault() {
    let beside = record(&[]);
    let alone = record(&[("task.hog.phase.touch.size", "4KiB")]);
    let waits = beside.metrics["reader.read.pgmajfault"].value;
    assert!(waits > 50.0, "{waits}");
    // Alone, the reader only has its waits of 200 us. With the hog, each wait would also take the
    // rest of a 4 ms fault, without preemption. With preemption, it waits only until it is far
    // enough behind to preempt.
    let (alone, beside_s) = (value(&alone, "reader.walltime"), value(&beside, "reader.walltime"));
    assert!((0.010..0.040).contains(&alone), "{alone}");
    assert!(beside_s < alone + 0.050, "{beside_s} beside the hog, {alone} alone");
    // Preempted time slices continue: no time is lost or charged twice.
    let cpu = value(&beside, "hog.cpu");
    let pages = 512.0 + 1.0;
    assert!((pages * 0.004..pages * 0.004 + 0.02).contains(&cpu), "{cpu}");
    let walltime = value(&beside, "hog.walltime");
    assert!(walltime >= cpu && walltime < cpu + 0.050, "{walltime} of which {cpu} on the CPU");
}

#[test]
fn a_preempted_task_is_reported_with_time_and_reason() {
    const HOG: usize = 1;
    let switches = Switches::default();
    let record = watched(&[], vec![switches_into(switches.clone())]);
    let (mut on_cpu, mut last, mut ran, mut cut) = (None, 0, 0, 0);
    for &(at, thread, left) in &*switches.lock().unwrap() {
        assert!(at >= last, "{at} after {last}");
        last = at;
        match (on_cpu, left) {
            (None, None) => on_cpu = Some((thread, at)),
            (Some((running, since)), Some(left)) => {
                assert_eq!(running, thread, "at {at}");
                ran += if thread == HOG { at - since } else { 0 };
                cut += u32::from(thread == HOG && left == SwitchReason::Preempted);
                on_cpu = None;
            }
            (_, _) => panic!("{thread} at {at}: {left:?} with {on_cpu:?}"),
        }
    }
    let cpu = value(&record, "hog.cpu");
    assert!((ran as f64 / 1e9 - cpu).abs() < 0.01 * cpu, "{ran} ns on the CPU, {cpu} s");
    assert!(cut > 50, "{cut}: each time that the reader wakes");
}
