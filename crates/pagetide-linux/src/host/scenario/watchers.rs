//! Writes `[[watcher]]`: kubelet, systemd-oomd and earlyoom with the settings of the system.
//!
//! The loader of scenarios judges each setting in a scenario of its own; one that it refuses is left
//! out, with its message as a note. Invariant: the written watchers load together with the groups.

use super::page::{quoted, ScenarioText};
use crate::host::cgroup::CgroupVersion;
use crate::host::daemons::{is_pod, EarlyoomArgs};
use crate::host::note::ImportNote;
use crate::host::setting::{find, ConfigSetting};
use crate::host::snapshot::HostSnapshot;
use pagetide_core::control::GroupControl;
use pagetide_scenario::load::{self, Overrides};
use std::path::Path;

/// Names of the watchers, which no group may have.
pub(super) const NAMES: [&str; 3] = ["kubelet", "systemd-oomd", "earlyoom"];
/// The group of the placeholder, which is a pod if the system's groups are unknown.
pub(super) const POD: &str = "example-pod";

/// Whether the placeholder has to be a pod, because kubelet has none.
pub(super) fn needs_pod(host: &HostSnapshot) -> bool {
    host.daemons.kubelet.is_some() && !host.groups.iter().any(|group| is_pod(&group.path))
}

/// Whether a watcher needs the group `path`.
pub(super) fn is_watched(host: &HostSnapshot, path: &str) -> bool {
    (host.daemons.kubelet.is_some() && is_pod(path)) || !host.daemons.oomd_unit(path).is_empty()
}

/// Writes the watchers of a machine with `memory` bytes, whose groups have the given names.
pub(super) fn write(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    memory: u64,
    groups: &[(usize, String)],
) {
    if let Some(settings) = &host.daemons.kubelet {
        kubelet(page, host, memory, groups, settings);
    }
    oomd(page, host, memory, groups);
    if let Some(args) = &host.daemons.earlyoom {
        earlyoom(page, memory, args);
    }
}

/// The lines of one watcher.
struct WatcherLines {
    kind: &'static str,
    /// Bytes of the machine.
    memory: u64,
    lines: Vec<String>,
    notes: Vec<ImportNote>,
}

impl WatcherLines {
    fn new(kind: &'static str, memory: u64) -> WatcherLines {
        WatcherLines { kind, memory, lines: Vec::new(), notes: Vec::new() }
    }

    /// Adds lines, or the note with the reason why the loader refuses them.
    fn add(&mut self, lines: &[String], refused: impl FnOnce(String) -> ImportNote) {
        let part = match self.kind {
            "kubelet" => "[[watcher.pod]]\ngroup = \"g\"",
            "systemd-oomd" => "[[watcher.unit]]\ngroup = \"g\"\nswap = true",
            _ => "",
        };
        let text = format!(
            "[machine]\nmemory = {}\n[[group]]\nname = \"g\"\n[[task]]\nname = \"t\"\nworkload = \"touch\"\n\
             size = \"1MiB\"\n[[watcher]]\nkind = \"{}\"\n{}\n{part}\n",
            self.memory,
            self.kind,
            lines.join("\n")
        );
        match load::load_str("watcher.toml", &text, Path::new(""), &Overrides::default()) {
            Ok(_) => self.lines.extend_from_slice(lines),
            Err(mistakes) => {
                let reason = mistakes.iter().next().map_or(String::new(), |it| it.message.clone());
                self.notes.push(refused(reason));
            }
        }
    }

    /// Adds `key` with the value of a setting.
    fn set(&mut self, key: &str, value: &str, setting: &ConfigSetting) {
        self.add(&[format!("{key} = {value}")], |reason| {
            setting.note(format!("left out: {reason}"))
        });
    }

    fn write(self, page: &mut ScenarioText) {
        page.line("");
        self.notes.into_iter().for_each(|note| page.comment_note(note));
        page.line("[[watcher]]");
        page.line(&format!("kind = \"{}\"", self.kind));
        self.lines.iter().for_each(|line| page.line(line));
    }
}

fn kubelet(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    memory: u64,
    groups: &[(usize, String)],
    settings: &[ConfigSetting],
) {
    let mut watcher = WatcherLines::new("kubelet", memory);
    let get = |key: &str| {
        find(settings, key).filter(|setting| !matches!(setting.text.as_str(), "~" | ""))
    };
    let is_hard = |setting: &ConfigSetting| setting.key.starts_with("evictionHard/");
    match (get("evictionHard/memory.available"), settings.iter().find(|setting| is_hard(setting))) {
        (Some(setting), _) => watcher.set("memory_available", &quoted(&setting.text), setting),
        // `setDefaults`: the default of memory.available holds only where no threshold is set, unless
        // mergeDefaultEvictionSettings (1.34).
        (None, Some(first))
            if get("mergeDefaultEvictionSettings").is_none_or(|merge| merge.text != "true") =>
        {
            let message =
                "no hard threshold of memory.available, and others switch its default off";
            watcher.notes.push(ImportNote::new(&first.place, message));
            watcher.lines.push("memory_available = \"0%\"".to_owned());
        }
        (None, _) => {}
    }
    if let Some(soft) = get("evictionSoft/memory.available") {
        let mut lines = vec![format!("memory_available_soft = {}", quoted(&soft.text))];
        let grace = get("evictionSoftGracePeriod/memory.available");
        lines.extend(
            grace.map(|grace| format!("soft_grace_period = {}", quoted(&go_time(&grace.text)))),
        );
        watcher.add(&lines, |reason| soft.note(format!("left out: {reason}")));
    }
    if let Some(reclaim) = get("evictionMinimumReclaim/memory.available") {
        watcher.set("minimum_reclaim", &quoted(&reclaim.text), reclaim);
    }
    if let Some(period) = get("evictionPressureTransitionPeriod") {
        // `SetDefaults_KubeletConfiguration`: 0 stands for the default.
        let time = go_time(&period.text);
        if !time.chars().all(|c| !matches!(c, '1'..='9')) {
            watcher.set("pressure_transition_period", &quoted(&time), period);
        }
    }
    if let Some(grace) = get("evictionMaxPodGracePeriod") {
        let seconds = format!("{}s", grace.text.trim());
        watcher.set("max_pod_grace_period", &quoted(&seconds), grace);
    }
    let pods: Vec<_> =
        groups.iter().filter(|(index, _)| is_pod(&host.groups[*index].path)).collect();
    let of_files = [
        ("memoryThrottlingFactor", "memory_throttling_factor", false),
        ("memoryReservationPolicy", "memory_reservation_policy", true),
        ("memorySwap/swapBehavior", "swap_behavior", true),
    ];
    for (key, ours, is_text) in of_files {
        let Some(setting) = get(key) else { continue };
        if pods.is_empty() {
            let value = if is_text { quoted(&setting.text) } else { setting.text.clone() };
            watcher.set(ours, &value, setting);
        } else {
            let message =
                "the groups have the control files that kubelet wrote, so that this is left out";
            watcher.notes.push(setting.note(message));
        }
    }
    let sets_limit = |index: usize| limit(host, index).is_some();
    let kubepods = groups.iter().find(|(index, _)| {
        let path = host.groups[*index].path.as_str();
        matches!(path, "/kubepods" | "/kubepods.slice") && sets_limit(*index)
    });
    let kubepods = kubepods.map(|(_, name)| format!("kubepods = {}", quoted(name)));
    watcher.lines.extend(kubepods);
    watcher.write(page);
    if pods.is_empty() {
        page.line("[[watcher.pod]]");
        page.line(&format!("group = \"{POD}\""));
        return;
    }
    page.comment(
        "No file has the requests of pods: a guaranteed pod's is its limit, others have none here.",
    );
    for (index, name) in pods {
        page.line("[[watcher.pod]]");
        page.line(&format!("group = {}", quoted(name)));
        let path = &host.groups[*index].path;
        let is_guaranteed = !path.contains("burstable") && !path.contains("besteffort");
        if let Some(bytes) = limit(host, *index).filter(|_| is_guaranteed) {
            page.line(&format!("request = {bytes}"));
        }
    }
}

/// The limit of group `index`.
fn limit(host: &HostSnapshot, index: usize) -> Option<u64> {
    let is_limit = |control| matches!(control, GroupControl::Max | GroupControl::LimitInBytes);
    let controls = &host.groups[index].controls;
    controls.iter().find(|(control, _)| is_limit(*control)).and_then(|(_, value)| *value)
}

fn oomd(page: &mut ScenarioText, host: &HostSnapshot, memory: u64, groups: &[(usize, String)]) {
    let mut watcher = WatcherLines::new("systemd-oomd", memory);
    let get = |key: &str| find(&host.daemons.oomd, key).filter(|setting| !setting.text.is_empty());
    for (key, ours, is_time) in [
        ("OOM/SwapUsedLimit", "swap_used_limit", false),
        ("OOM/DefaultMemoryPressureLimit", "memory_pressure_limit", false),
        ("OOM/DefaultMemoryPressureDurationSec", "memory_pressure_duration", true),
    ] {
        let Some(setting) = get(key) else { continue };
        let text = if is_time { systemd_time(&setting.text) } else { setting.text.clone() };
        watcher.set(ours, &quoted(&text), setting);
    }
    let root = host
        .groups
        .first()
        .filter(|group| group.path == "/" && !groups.iter().any(|(at, _)| *at == 0));
    let named = groups.iter().map(|(index, name)| (&host.groups[*index], Some(name.as_str())));
    let all = root.into_iter().map(|group| (group, None)).chain(named);
    let mut units: Vec<Vec<String>> = Vec::new();
    let mut is_version_1 = false;
    for (group, name) in all {
        let settings = host.daemons.oomd_unit(&group.path);
        let get = |key: &str| {
            let of = settings.iter().rev().find(|setting| setting.key == key);
            of.copied().filter(|setting| !setting.text.is_empty())
        };
        let kills = |key: &str| get(key).is_some_and(|setting| setting.text == "kill");
        is_version_1 |= group.version == CgroupVersion::V1 && !settings.is_empty();
        if let (Some(preference), Some(name)) = (get("ManagedOOMPreference"), name) {
            if matches!(preference.text.as_str(), "avoid" | "omit") {
                let list = format!("{} = [", preference.text);
                let name = quoted(name);
                match watcher.lines.iter_mut().find(|line| line.starts_with(&list)) {
                    Some(line) => line.insert_str(line.len() - 1, &format!(", {name}")),
                    None => watcher.lines.push(format!("{list}{name}]")),
                }
            }
        }
        let mut unit: Vec<String> =
            name.iter().map(|name| format!("group = {}", quoted(name))).collect();
        let before = unit.len();
        if kills("ManagedOOMSwap") {
            unit.push("swap = true".to_owned());
        }
        if kills("ManagedOOMMemoryPressure") {
            unit.push("pressure = true".to_owned());
            if let Some(limit) = get("ManagedOOMMemoryPressureLimit") {
                unit.push(format!("limit = {}", quoted(&limit.text)));
            }
            if let Some(time) = get("ManagedOOMMemoryPressureDurationSec") {
                unit.push(format!("duration = {}", quoted(&systemd_time(&time.text))));
            }
        }
        if unit.len() > before {
            units.push(unit);
        }
    }
    let place = host.daemons.oomd.first().map_or("/etc/systemd/system", |setting| &setting.place);
    if is_version_1 {
        let message = "systemd-oomd is left out: it needs cgroup version 2";
        page.comment_note(ImportNote::new(place, message));
        return;
    }
    let (good, bad): (Vec<_>, Vec<_>) = units.into_iter().partition(|unit| is_unit(unit, memory));
    for unit in bad {
        let message = format!("a unit of systemd-oomd is left out: {}", unit.join(", "));
        watcher.notes.push(ImportNote::new(place, message));
    }
    if good.is_empty() {
        watcher.notes.into_iter().for_each(|note| page.comment_note(note));
        if !host.daemons.oomd.is_empty() {
            let message =
                "systemd-oomd is left out: no unit that is known here has ManagedOOMSwap or \
                           ManagedOOMMemoryPressure";
            page.comment_note(ImportNote::new(place, message));
        }
        return;
    }
    watcher.write(page);
    for unit in good {
        page.line("[[watcher.unit]]");
        unit.iter().for_each(|line| page.line(line));
    }
}

/// Whether the loader accepts the lines of a unit.
fn is_unit(unit: &[String], memory: u64) -> bool {
    let mut alone = WatcherLines::new("systemd-oomd", memory);
    let lines = unit.iter().filter(|line| !line.starts_with("group")).cloned();
    let lines: Vec<String> = ["[[watcher.unit]]".to_owned()].into_iter().chain(lines).collect();
    alone.add(&lines, |reason| ImportNote::new("", reason));
    alone.notes.is_empty()
}

/// Options as of earlyoom 1.9.
fn earlyoom(page: &mut ScenarioText, memory: u64, args: &EarlyoomArgs) {
    let mut watcher = WatcherLines::new("earlyoom", memory);
    let mut words = args.words.iter();
    while let Some(word) = words.next() {
        let (option, joined) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ if word.starts_with('-')
                && !word.starts_with("--")
                && word.len() > 2
                && word.is_char_boundary(2) =>
            {
                (&word[..2], Some(&word[2..]))
            }
            _ => (word.as_str(), None),
        };
        let mut value = || joined.or_else(|| words.next().map(String::as_str)).unwrap_or_default();
        match option {
            "-m" | "-s" => {
                let key = if option == "-m" { "mem" } else { "swap" };
                let value = value();
                let refused = |reason| {
                    args.note(&format!("left out: {reason}"), &format!("{option} {value}"))
                };
                watcher.add(&[format!("{key} = {}", quoted(value))], refused);
            }
            "--sort-by-rss" => watcher.lines.push("sort_by_rss = true".to_owned()),
            "-p" => watcher.lines.extend(["nice = -20", "oom_score_adj = -100"].map(str::to_owned)),
            "--dryrun" => {
                watcher.lines.push("enabled = false # --dryrun: it kills nothing".to_owned())
            }
            "-M" | "-S" | "--prefer" | "--avoid" | "--ignore" => {
                let message = match option {
                    "-M" | "-S" => "sizes are left out: write percentages as mem and swap",
                    _ => "left out: it names programs, which the scenario has as tasks of other names",
                };
                let value = value();
                watcher.notes.push(args.note(message, &format!("{option} {value}")));
            }
            // Reports and notifications change no decision.
            "-r" | "-N" | "-n" | "-d" | "--debug" | "--syslog" => {
                if matches!(option, "-r" | "-N") {
                    value();
                }
            }
            _ => watcher.notes.push(args.note("this option is left out", word)),
        }
    }
    watcher.write(page);
}

/// A duration of Go in the words of scenarios: its parts are `1h2m3.5s`, and `m` is a minute.
fn go_time(text: &str) -> String {
    with_parts(text, |unit| match unit {
        "" => "s",
        "m" => "min",
        other => other,
    })
}

/// A time span of systemd: `1min 30s`, `20`.
fn systemd_time(text: &str) -> String {
    with_parts(text, |unit| match unit {
        "" | "sec" | "second" | "seconds" => "s",
        "m" | "minute" | "minutes" => "min",
        "hr" | "hour" | "hours" => "h",
        "msec" => "ms",
        other => other,
    })
}

/// The time as one number with a unit that scenarios have, if all parts are whole numbers of such
/// units; otherwise the text as it is.
fn with_parts(text: &str, unit_of: impl Fn(&str) -> &str) -> String {
    let mut rest = text.trim();
    let mut total = 0u64;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let ms = match unit_of(unit) {
            "ms" => 1,
            "s" => 1000,
            "min" => 60_000,
            "h" => 3_600_000,
            _ => return text.to_owned(),
        };
        let Some(part) = number.parse::<u64>().ok().and_then(|number| number.checked_mul(ms))
        else {
            return text.to_owned();
        };
        total = total.saturating_add(part);
        rest = next.trim_start();
    }
    if total.is_multiple_of(1000) {
        format!("{}s", total / 1000)
    } else {
        format!("{total}ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_go_and_systemd() {
        for (text, wanted) in
            [("5m0s", "300s"), ("1h2m", "3720s"), ("1m30s", "90s"), ("500ms", "500ms")]
        {
            assert_eq!(go_time(text), wanted);
        }
        for (text, wanted) in
            [("20", "20s"), ("1min 30s", "90s"), ("2 min", "120s"), ("1500msec", "1500ms")]
        {
            assert_eq!(systemd_time(text), wanted);
        }
        for odd in ["1.5h", "x", "5y", "99999999999999999999s"] {
            assert_eq!((go_time(odd).as_str(), systemd_time(odd).as_str()), (odd, odd));
        }
    }
}
