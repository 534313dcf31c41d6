//! Histories of lmkd, derived from its code.

use crate::history::{histories, number, value, HistoryFile};
use pagetide_watcher::act::WatcherAct;
use pagetide_watcher::lmkd::{Lmkd, LmkdOptions, LmkdProcess, LmkdReading, ZoneMarks};
use pagetide_watcher::MS;

/// Values at a time: each is that of the last line before it. `some` and `full` grow by the given
/// milliseconds per second.
fn reading(history: &HistoryFile, now: u64) -> LmkdReading {
    let lines = || history.of("from").filter(|line| number::<u64>(&line[0]) * MS <= now);
    let last =
        |name: &str| lines().filter_map(|line| value(line, name)).last().map_or(0, number::<u64>);
    let grown = |name: &str| {
        let mut total = 0;
        let mut rate = (0, 0);
        for line in lines() {
            let at = number::<u64>(&line[0]) * MS;
            if let Some(new) = value(line, name) {
                total += (at - rate.0) / 1000 * rate.1;
                rate = (at, number::<u64>(new));
            }
        }
        total + (now - rate.0) / 1000 * rate.1
    };
    let mut read = LmkdReading {
        page_kb: 4,
        some_ns: grown("some"),
        full_ns: grown("full"),
        ..LmkdReading::default()
    };
    read.meminfo.mem_free = last("free");
    read.meminfo.swap_total = last("swap_total");
    read.meminfo.swap_free = last("swap_free");
    read.file_lru = last("file_lru");
    read.workingset_refault_file = last("refault");
    read.pgscan_kswapd = last("scan_kswapd");
    read.pgscan_direct = last("scan_direct");
    read.marks = ZoneMarks { min: last("min"), low: last("low"), high: last("high") };
    read
}

fn kills(history: &HistoryFile) -> Vec<String> {
    let mut lmkd = Lmkd::new(LmkdOptions::default());
    let process = |line: &[String]| LmkdProcess {
        pid: number(&line[0]),
        oom_score_adj: number(&line[1]),
        rss_kb: number(&line[2]),
    };
    let mut living: Vec<LmkdProcess> = history.of("process").map(process).collect();
    let mut dying: Option<(u32, u64)> = None;
    let end = history.numbers("end")[0] * MS;
    let (mut now, mut kills) = (0, Vec::new());
    while now <= end {
        if let Some((pid, _)) = dying.filter(|(_, at)| *at <= now) {
            living.retain(|process| process.pid != pid);
        }
        let victim = lmkd.victim();
        let mut read = reading(history, now);
        read.victim_lives = living.iter().any(|process| Some(process.pid) == victim);
        read.processes.clone_from(&living);
        let step = lmkd.wake(now, &read);
        for deed in step.deeds {
            let WatcherAct::SignalProcess { pid, .. } = deed.act else { unreachable!() };
            let (why, _) = deed.why.split_once([';', '(']).unwrap();
            kills.push(format!("{} {pid} {}", now / MS, why.trim()));
            dying = Some((pid, now + 30 * MS));
        }
        now = step.wake_ns;
    }
    kills
}

#[test]
fn it_kills_by_the_rules_of_its_code() {
    for history in histories("lmkd") {
        let expected: Vec<String> = history.of("expect").map(|words| words.join(" ")).collect();
        assert_eq!(kills(&history), expected, "{}", history.name);
    }
}
