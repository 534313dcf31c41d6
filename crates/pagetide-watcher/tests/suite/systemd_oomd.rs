//! Histories of systemd-oomd, recorded from the program with a fake cgroupfs and a fake clock. (The
//! unit tests beside the code have the values of systemd's own tests.)
//!
//! `scripts/record_oomd/record.py PROGRAM HISTORY...`, as root, plays histories to a systemd-oomd and
//! writes their `expect` lines again; Debian's package `systemd-oomd` has one.

use crate::history::{amount, histories, number, value, HistoryFile};
use pagetide_watcher::act::WatcherAct;
use pagetide_watcher::meminfo::MeminfoReading;
use pagetide_watcher::systemd_oomd::{
    OomdGroupReading, OomdOptions, OomdPreference, OomdReading, PressureWatch, SystemdOomd,
};
use pagetide_watcher::{MS, SECOND};

fn options(history: &HistoryFile) -> OomdOptions {
    let line = history.of("options").next().unwrap();
    let units = || history.of("unit").map(|line| (number::<u32>(&line[0]), line));
    let has = |line: &[String], word: &str| line.iter().any(|it| it == word);
    let swap_units = units().filter(|(_, line)| has(line, "swap")).map(|(group, _)| group);
    let pressure = units().filter(|(_, line)| value(line, "limit").is_some());
    OomdOptions {
        swap_used_limit: value(line, "swap_used_limit").map_or(9000, number),
        swap_units: swap_units.collect(),
        pressure_units: pressure
            .map(|(group, line)| PressureWatch {
                group,
                limit: amount(line, "limit"),
                duration_ns: amount(line, "duration") * SECOND,
            })
            .collect(),
        perturb_ns: 0,
    }
}

fn kills(history: &HistoryFile) -> Vec<String> {
    let mut oomd = SystemdOomd::new(options(history));
    let mut groups: Vec<OomdGroupReading> = history
        .of("group")
        .map(|line| OomdGroupReading {
            group: number(&line[0]),
            parent: value(line, "parent").map(number),
            kills_as_one: line.iter().any(|word| word == "oom_group"),
            preference: match value(line, "preference") {
                Some("avoid") => OomdPreference::Avoid,
                Some("omit") => OomdPreference::Omit,
                _ => OomdPreference::None,
            },
            nr_processes: 1,
            ..OomdGroupReading::default()
        })
        .collect();
    let mut lines = history.of("at").peekable();
    let mut meminfo = MeminfoReading::default();
    let end = history.numbers("end")[0] * MS;
    let (mut now, mut kills) = (0, Vec::new());
    while now <= end {
        while let Some(line) = lines.next_if(|line| number::<u64>(&line[0]) * MS <= now) {
            if value(line, "available").is_some() {
                meminfo.mem_total = amount(line, "total") >> 10;
                meminfo.mem_available = amount(line, "available") >> 10;
                meminfo.swap_total = amount(line, "swap") >> 10;
                meminfo.swap_free = amount(line, "swap_free") >> 10;
                continue;
            }
            let of = number::<u32>(value(line, "group").unwrap());
            // The group of a unit that has ended is gone.
            let Some(group) = groups.iter_mut().find(|group| group.group == of) else { continue };
            for (key, place) in [
                ("full", &mut group.full_avg10),
                ("current", &mut group.memory_current),
                ("swapped", &mut group.swap_current),
                ("pgscan", &mut group.pgscan),
            ] {
                if value(line, key).is_some() {
                    *place = amount(line, key);
                }
            }
        }
        let step = oomd.wake(now, &OomdReading { meminfo, groups: groups.clone() });
        for deed in step.deeds {
            let WatcherAct::SignalGroup { group: killed, .. } = deed.act else { unreachable!() };
            kills.push(format!("{} {killed}", now / MS));
            let is_below = |mut at: u32| loop {
                if at == killed {
                    return true;
                }
                match groups.iter().find(|group| group.group == at).and_then(|it| it.parent) {
                    Some(parent) => at = parent,
                    None => return false,
                }
            };
            let dead: Vec<u32> =
                groups.iter().map(|group| group.group).filter(|&group| is_below(group)).collect();
            groups.retain(|group| !dead.contains(&group.group));
        }
        now = step.wake_ns;
    }
    kills
}

#[test]
fn it_kills_what_the_recorded_program_killed() {
    for history in histories("systemd-oomd") {
        let expected: Vec<String> = history.of("expect").map(|words| words.join(" ")).collect();
        assert_eq!(kills(&history), expected, "{}", history.name);
    }
}
