//! Histories of earlyoom, recorded from the program with a fake /proc and a fake clock.

use crate::history::{histories, number, value, HistoryFile};
use pagetide_watcher::act::{SentSignal, WatcherAct};
use pagetide_watcher::earlyoom::{
    Earlyoom, EarlyoomLevels, EarlyoomOptions, EarlyoomPreference, EarlyoomReading,
    EarlyoomVersion, ProcessReading,
};
use pagetide_watcher::meminfo::MeminfoReading;
use pagetide_watcher::MS;

/// A process of the history, and what signals do to it.
struct FakeProcess {
    read: ProcessReading,
    /// Milliseconds from SIGTERM and from SIGKILL to its end; `None`: never.
    dies_after: [Option<u64>; 2],
    dies_at: Option<u64>,
}

fn options(history: &HistoryFile) -> (EarlyoomOptions, Vec<(String, EarlyoomPreference)>) {
    let line = history.of("options").next().unwrap();
    let levels = |name| {
        let (mem, swap) = value(line, name).unwrap().split_once(',').unwrap();
        EarlyoomLevels { mem: number(mem), swap: number(swap) }
    };
    let version = match value(line, "version") {
        Some("1.7") => EarlyoomVersion::V1_7,
        _ => EarlyoomVersion::V1_9,
    };
    let names = line.iter().filter_map(|word| {
        let (kind, name) = word.split_once('=')?;
        let preference = match kind {
            "prefer" => EarlyoomPreference::Prefer,
            "avoid" => EarlyoomPreference::Avoid,
            "ignore" => EarlyoomPreference::Ignore,
            _ => return None,
        };
        Some((name.to_owned(), preference))
    });
    let sort_by_rss = line.iter().any(|word| word == "sort_by_rss");
    let options =
        EarlyoomOptions { version, term: levels("term"), kill: levels("kill"), sort_by_rss };
    (options, names.collect())
}

fn processes(
    history: &HistoryFile,
    preferences: &[(String, EarlyoomPreference)],
) -> Vec<FakeProcess> {
    let mut all: Vec<FakeProcess> = history
        .of("process")
        .map(|line| {
            let after = |key: &str| {
                let at = line.iter().position(|word| word == key).unwrap() + 1;
                line[at].clone()
            };
            let name = after("name");
            let preference = preferences.iter().find(|(of, _)| *of == name).map(|(_, of)| *of);
            let dies = |key| Some(number::<i64>(&after(key))).filter(|ms| *ms >= 0);
            FakeProcess {
                read: ProcessReading {
                    pid: number(&line[0]),
                    rss_kb: number::<u64>(&after("rss")) / 4 * 4,
                    oom_score: number(&after("score")),
                    oom_score_adj: number(&after("adj")),
                    preference: preference.unwrap_or_default(),
                },
                dies_after: ["term", "kill"].map(|key| dies(key).map(|ms| ms as u64)),
                dies_at: None,
            }
        })
        .collect();
    all.sort_by_key(|process| process.read.pid);
    all
}

/// Milliseconds at which it reads, and its kills.
fn decisions(history: &HistoryFile) -> (Vec<u64>, Vec<String>) {
    let (options, preferences) = options(history);
    let mut all = processes(history, &preferences);
    let frames: Vec<Vec<u64>> =
        history.of("meminfo").map(|line| line.iter().map(|word| number(word)).collect()).collect();
    let end = history.numbers("end")[0];
    let mut earlyoom = Earlyoom::new(options);
    let (mut now, mut looks, mut kills) = (0, Vec::new(), Vec::new());
    while now <= end {
        let frame = frames.iter().rev().find(|frame| frame[0] <= now).unwrap_or(&frames[0]);
        let meminfo = MeminfoReading {
            mem_total: frame[1],
            mem_available: frame[2],
            anon_pages: frame[3],
            swap_total: frame[4],
            swap_free: frame[5],
            ..MeminfoReading::default()
        };
        all.retain(|process| process.dies_at.is_none_or(|at| at > now));
        let victim = earlyoom.victim();
        let read = EarlyoomReading {
            meminfo,
            processes: all.iter().map(|process| process.read).collect(),
            victim_lives: all.iter().any(|process| Some(process.read.pid) == victim),
        };
        let step = earlyoom.wake(now * MS, &read);
        looks.push(now);
        for deed in step.deeds {
            let WatcherAct::SignalProcess { pid, signal } = deed.act else { unreachable!() };
            kills.push(format!("{now} {pid} {signal}"));
            let process = all.iter_mut().find(|process| process.read.pid == pid).unwrap();
            let dies = process.dies_after[usize::from(signal == SentSignal::Kill)];
            if let Some(at) = dies.map(|ms| now + ms) {
                process.dies_at = Some(process.dies_at.map_or(at, |before| before.min(at)));
            }
        }
        now = step.wake_ns / MS;
    }
    looks.dedup();
    (looks, kills)
}

#[test]
fn it_decides_as_the_program_did() {
    for history in histories("earlyoom") {
        let (looks, kills) = decisions(&history);
        let recorded: Vec<String> = history.of("kills").map(|words| words.join(" ")).collect();
        assert_eq!(kills, recorded, "{}", history.name);
        // While it waits for a victim after SIGKILL, the program looks at the victim alone.
        let reads = history.numbers("reads");
        let missing: Vec<&u64> = reads.iter().filter(|read| !looks.contains(read)).collect();
        assert!(missing.is_empty(), "{}: {missing:?} of {looks:?}", history.name);
    }
}
