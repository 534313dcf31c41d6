//! Histories of senpai: the script recorded with a fake group and a fake clock, the plug-in derived
//! from its code.

use crate::history::{amount, histories, number, value, HistoryFile};
use pagetide_watcher::act::{WatcherAct, WatcherStep};
use pagetide_watcher::senpai::{
    Senpai, SenpaiOptions, SenpaiReading, SenpaiReclaim, SenpaiReclaimOptions,
    SenpaiReclaimReading, NO_HIGH,
};
use pagetide_watcher::SECOND;

fn bytes_of(step: &WatcherStep) -> Option<u64> {
    step.deeds.first().map(|deed| match deed.act {
        WatcherAct::SetHigh { bytes, .. } | WatcherAct::Reclaim { bytes, .. } => bytes,
        other => panic!("{other:?}"),
    })
}

/// Seconds and values of the script's writes.
fn script(history: &HistoryFile) -> Vec<(u64, u64)> {
    let line = history.of("options").next().unwrap();
    let or = |name, default| value(line, name).map_or(default, number);
    let of = SenpaiOptions::of(1);
    let options = SenpaiOptions {
        interval: or("interval", of.interval),
        pressure_us: or("pressure", of.pressure_us),
        max_probe: or("max_probe", of.max_probe),
        max_backoff: or("max_backoff", of.max_backoff),
        coeff_probe: or("coeff_probe", of.coeff_probe),
        coeff_backoff: or("coeff_backoff", of.coeff_backoff),
        min_size: or("min_size", of.min_size),
        max_size: or("max_size", of.max_size),
        ..of
    };
    let external: Vec<u64> = history.numbers("external");
    let mut senpai = Senpai::new(options);
    let (mut high, mut writes) = (NO_HIGH, Vec::new());
    for line in history.of("second") {
        let [second, total_us, current] = [0, 1, 2].map(|at| number(&line[at]));
        if let Some([_, bytes]) = external.chunks(2).find(|pair| pair[0] == second) {
            high = *bytes;
        }
        let step = senpai.wake(second * SECOND, &SenpaiReading { total_us, high, current });
        if let Some(bytes) = bytes_of(&step) {
            high = bytes;
            writes.push((second, bytes));
        }
    }
    writes
}

/// Runs and values of the plug-in's writes.
fn plug_in(history: &HistoryFile) -> Vec<(u64, u64)> {
    let mut senpai = SenpaiReclaim::new(SenpaiReclaimOptions::of(1));
    let mut writes = Vec::new();
    for line in history.of("run") {
        let run = number(&line[0]);
        let read = SenpaiReclaimReading {
            some_avg10: amount(line, "avg10"),
            some_avg60: amount(line, "avg60"),
            current: amount(line, "current"),
            min: amount(line, "min"),
            file: amount(line, "file"),
            anon: amount(line, "anon"),
            swap_free: amount(line, "swap_free"),
        };
        writes.extend(bytes_of(&senpai.wake(run * SECOND, &read)).map(|bytes| (run, bytes)));
    }
    writes
}

#[test]
fn limits_follow_the_recorded_ones() {
    for history in histories("senpai") {
        let line = history.of("options").next().unwrap();
        let is_script = value(line, "kind") == Some("script");
        let writes = if is_script { script(&history) } else { plug_in(&history) };
        let recorded = history.numbers("writes");
        let recorded: Vec<(u64, u64)> = recorded.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        let [seconds, expected] = [&writes, &recorded]
            .map(|all| all.iter().map(|(second, _)| *second).collect::<Vec<_>>());
        assert_eq!(seconds, expected, "{}", history.name);
        for ((second, bytes), (_, expected)) in writes.iter().zip(&recorded) {
            // A difference of a page stays in the limit, which the next change scales.
            let apart = bytes.abs_diff(*expected);
            assert!(apart <= 4 * 4096, "{}, {second} s: {bytes}, not {expected}", history.name);
        }
    }
}
