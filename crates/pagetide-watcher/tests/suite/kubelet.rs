//! Histories of kubelet's eviction manager. Histories with `sync` lines have the values of kubelet's
//! own tests, which call `synchronize` at chosen times; the others are derived from its code.

use crate::history::{amount, histories, number, value, HistoryFile};
use pagetide_watcher::act::{SentSignal, WatcherAct};
use pagetide_watcher::kubelet::{
    GroupUse, Kubelet, KubeletOptions, KubeletReading, MemoryThreshold, PodReading,
};
use pagetide_watcher::kubelet_rank::KubeletPod;
use pagetide_watcher::{MS, SECOND};

fn threshold(text: &str) -> MemoryThreshold {
    match text.strip_suffix('%') {
        Some(percent) => MemoryThreshold::Share(number::<u64>(percent) * 100),
        None => MemoryThreshold::Bytes(amount(&[format!("x={text}")], "x")),
    }
}

fn options(history: &HistoryFile) -> KubeletOptions {
    let line = history.of("options").next().unwrap();
    let default = KubeletOptions::default();
    let seconds = |name, or: u64| value(line, name).map_or(or, |text| number::<u64>(text) * SECOND);
    let pods = history.of("pod").zip(1..).map(|(line, group)| KubeletPod {
        group,
        priority: value(line, "priority").map_or(0, number),
        request: amount(line, "request"),
        limit: value(line, "limit").map(|_| amount(line, "limit")),
        is_critical: line.iter().any(|word| word == "critical"),
    });
    KubeletOptions {
        hard: value(line, "hard").map(threshold),
        soft: value(line, "soft").map(|soft| (threshold(soft), seconds("grace", 0))),
        minimum_reclaim: value(line, "min_reclaim").map(threshold),
        max_pod_grace_ns: seconds("max_pod_grace", 0),
        transition_period_ns: seconds("transition", default.transition_period_ns),
        monitoring_interval_ns: seconds("monitoring", default.monitoring_interval_ns),
        housekeeping_interval_ns: seconds("housekeeping", default.housekeeping_interval_ns),
        pods: pods.collect(),
    }
}

/// Use of the pods in a line `name=bytes ...`, by the order of the pods.
fn used(history: &HistoryFile, line: &[String]) -> Vec<PodReading> {
    let read = |pod: &[String]| PodReading {
        used: GroupUse { usage: amount(line, &pod[0]), inactive_file: 0 },
        nr_processes: 1,
        nr_ending: 1,
    };
    history.of("pod").map(read).collect()
}

fn reading(line: &[String], pods: Vec<PodReading>) -> KubeletReading {
    let capacity = amount(line, "capacity");
    let used = capacity - amount(line, "available");
    let node = GroupUse { usage: used + 5000, inactive_file: 5000 };
    KubeletReading { capacity, node, kubepods: None, pods, draw: 0 }
}

fn name(history: &HistoryFile, act: WatcherAct) -> (String, SentSignal) {
    let WatcherAct::SignalGroup { group, signal } = act else { panic!("{act:?}") };
    (history.of("pod").nth(group as usize - 1).unwrap()[0].clone(), signal)
}

/// Calls `synchronize` at the given times; the evicted pod ends at once, and is there again.
fn synchronized(history: &HistoryFile) -> Vec<String> {
    let mut kubelet = Kubelet::new(options(history));
    let mut decided = Vec::new();
    for line in history.of("sync") {
        let now = number::<u64>(&line[0]) * SECOND;
        let read = reading(line, used(history, line));
        let step = kubelet.wake(now, &read);
        let victim = step.deeds.first().map(|deed| name(history, deed.act).0);
        let pressure = kubelet.has_pressure();
        decided.push(format!(
            "{} pressure={pressure} evicts={}",
            line[0],
            victim.as_deref().unwrap_or("-")
        ));
        let mut gone = read.clone();
        gone.pods.iter_mut().for_each(|pod| (pod.nr_processes, pod.nr_ending) = (0, 0));
        for after in [100 * MS, 1200 * MS] {
            assert!(kubelet.wake(now + after, &gone).deeds.is_empty());
        }
    }
    decided
}

/// Runs from wake-up to wake-up. A pod ends some time after SIGTERM, and at once with SIGKILL.
fn signals(history: &HistoryFile) -> Vec<String> {
    let mut kubelet = Kubelet::new(options(history));
    let pods: Vec<&[String]> = history.of("pod").collect();
    let mut ends: Vec<Option<u64>> = vec![None; pods.len()];
    let frames: Vec<&[String]> = history.of("frame").collect();
    let end = history.numbers("end")[0] * MS;
    let (mut now, mut sent) = (0, Vec::new());
    while now <= end {
        let at = frames.iter().rev().find(|line| number::<u64>(&line[0]) * MS <= now).unwrap();
        let mut read = reading(at, used(history, at));
        for (pod, end) in read.pods.iter_mut().zip(&ends) {
            pod.nr_processes = u64::from(end.is_none_or(|end| end > now));
            pod.nr_ending = pod.nr_processes;
        }
        let step = kubelet.wake(now, &read);
        for deed in step.deeds {
            let (pod, signal) = name(history, deed.act);
            sent.push(format!("{} {pod} {signal}", now / MS));
            let at = pods.iter().position(|line| line[0] == pod).unwrap();
            let dies = value(pods[at], "dies").map(|ms| number::<u64>(ms) * MS);
            ends[at] = match signal {
                SentSignal::Term => dies.map(|ns| now + ns),
                SentSignal::Kill => Some(now),
            };
        }
        now = step.wake_ns;
    }
    sent
}

#[test]
fn it_evicts_as_kubelet_does() {
    for history in histories("kubelet") {
        let expected = history.of("expect").map(|words| words.join(" "));
        let expected: Vec<String> = expected.collect();
        let is_synchronized = history.of("sync").next().is_some();
        let found = if is_synchronized { synchronized(&history) } else { signals(&history) };
        assert_eq!(found, expected, "{}", history.name);
    }
}
