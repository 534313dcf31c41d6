//! The page of `pagetide inspect`: the memory of a machine at one time as bars: zones and
//! watermarks, free blocks by order, memory by use, and groups with their limits.
//!
//! Invariant: every figure is from the files that `inspect` prints, which are at the end of the
//! page. A part is left out if its file is missing or cannot be read.

use super::bars::{Bar, BarTable};
use super::heat::{HeatCell, HeatMap};
use super::look::NR_COLOURS;
use super::page::{anchor, HtmlPage, PageBlock, PageSection};
use super::run::{self, PageSource};
use crate::format::{size, Scale};
use maud::{html, Markup};
use pagetide_core::control::GroupControlWrite;
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::{RunRecord, Unit};

/// Bars of a zone end at this multiple of its high watermark: an empty machine would dwarf them.
const TIMES_HIGH: f64 = 4.0;
/// Groups that are drawn.
const MOST_GROUPS: usize = 200;
/// Bytes of files on the page.
const MOST_TEXT: usize = 512 << 10;
/// Directory of the groups' files.
const CGROUP: &str = "/sys/fs/cgroup/";
/// Parts of a group's memory in memory.stat; the rest of memory.current is `other`.
const OF_GROUPS: [&str; 3] = ["anon", "file", "kernel"];

/// The page of a record with files. `heading`: one line about the run. `is_end`: it ran to its end.
pub fn page(
    record: &RunRecord,
    setup: &Setup,
    heading: &str,
    is_end: bool,
    source: &PageSource,
) -> HtmlPage {
    let state = State { record };
    HtmlPage {
        title: format!("{}: memory after {} s", record.scenario, seconds(record)),
        kind: "pagetide inspect",
        lead: html! {
            p { (heading) }
            @if is_end {
                p.warning {
                    "This is the end of the run: its tasks have exited and freed their memory. "
                    "To see the machine at work, give a time: " code { "--at " (half_time(record)) } "."
                }
            }
            @for note in &record.notes { p.warning { (note) } }
        },
        sections: vec![
            PageSection::new("zones", "Zones", state.zones()),
            PageSection::new("orders", "Free blocks", state.orders()),
            PageSection::new("machine", "Memory by use", state.machine()),
            PageSection::new("groups", "Groups", state.groups(setup)),
            PageSection::new("files", "Files", state.files()),
            PageSection::new("scenario", "The scenario", run::scenario_blocks(source)),
        ],
        foot: run::foot(&record.version, source),
    }
}

/// Half of the run time, with few digits.
fn half_time(record: &RunRecord) -> String {
    let half = record.elapsed_ns as f64 / 2e9;
    let decimals = if half >= 10.0 {
        0
    } else if half >= 0.1 {
        2
    } else {
        6
    };
    format!("{half:.decimals$}s")
}

fn seconds(record: &RunRecord) -> String {
    format!("{:.3}", record.elapsed_ns as f64 / 1e9)
}

struct State<'a> {
    record: &'a RunRecord,
}

/// A zone of /proc/zoneinfo, in pages.
#[derive(Clone, Debug, Default, PartialEq)]
struct Zone {
    name: String,
    free: u64,
    min: u64,
    low: u64,
    high: u64,
    managed: u64,
}

impl State<'_> {
    /// The text of a file; a bare name is one of /proc.
    fn file(&self, name: &str) -> &str {
        let is_it = |file: &str| file.strip_prefix("/proc/").unwrap_or(file) == name;
        let found = self.record.files.iter().find(|(file, _)| is_it(file));
        found.map_or("", |(_, text)| text.as_str())
    }

    fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.record.page_size)
    }

    fn zones(&self) -> Vec<PageBlock> {
        let zones = zones(self.file("zoneinfo"));
        let mut blocks: Vec<PageBlock> = Vec::new();
        for zone in zones.iter().filter(|zone| zone.managed > 0) {
            let end = (zone.high as f64 * TIMES_HIGH).min(zone.managed as f64).max(1.0);
            let bar = |name: &str, pages: u64| {
                let share = pages as f64 / end;
                let beyond = if share > 1.0 { ", beyond the bar's end" } else { "" };
                let text = format!("{} ({pages} pages{beyond})", size(self.bytes(pages)));
                Bar { name: name.to_owned(), text, parts: vec![(share, name.to_owned())] }
            };
            let marks = [("min", zone.min), ("low", zone.low), ("high", zone.high)];
            let mut bars = vec![bar("free", zone.free)];
            bars.extend(marks.map(|(name, pages)| bar(name, pages)));
            let below = marks.iter().find(|(_, mark)| zone.free < *mark);
            let where_ = match below {
                None => "free memory is above all watermarks",
                Some(("min", _)) => "free memory is below min: only reserves are left",
                Some(("low", _)) => "free memory is below low: kswapd is woken",
                Some(_) => "free memory is below high: kswapd, if awake, continues",
            };
            let managed = size(self.bytes(zone.managed));
            let caption = format!("{}, {managed}: {where_}", zone.name);
            let head = ["level".to_owned(), "memory".to_owned()];
            blocks.push(BarTable { caption, head, bars }.markup().into());
        }
        if !blocks.is_empty() {
            let note = html! {
                p.note {
                    "Free memory and watermarks, boost included. Bars of a zone end at " (TIMES_HIGH)
                    " times its high watermark, or at its whole memory."
                }
            };
            blocks.insert(0, note.into());
        }
        blocks
    }

    fn orders(&self) -> Vec<PageBlock> {
        let zones = buddyinfo(self.file("buddyinfo"));
        let orders = zones.iter().map(|(_, blocks)| blocks.len()).max().unwrap_or(0);
        if orders == 0 {
            return Vec::new();
        }
        let cell = |blocks: &[u64], order: usize| {
            let number = blocks.get(order).copied();
            let memory = number.map(|it| self.bytes(it.checked_shl(order as u32).unwrap_or(0)));
            HeatCell {
                value: memory.map(|bytes| bytes as f64),
                text: number.map_or("-".to_owned(), |it| it.to_string()),
            }
        };
        let of_order = |order: usize| {
            let memory = self.record.page_size.checked_shl(order as u32).unwrap_or(u64::MAX);
            format!("{order} ({})", size(memory).replace(' ', "\u{a0}"))
        };
        let heat = HeatMap {
            caption: "Free blocks by order; the more memory, the more a cell stands out".to_owned(),
            axes: ["order".to_owned(), "zone".to_owned()],
            columns: (0..orders).map(of_order).collect(),
            rows: zones
                .iter()
                .map(|(zone, blocks)| {
                    (zone.clone(), (0..orders).map(|order| cell(blocks, order)).collect())
                })
                .collect(),
        };
        vec![heat.markup().into()]
    }

    fn machine(&self) -> Vec<PageBlock> {
        let kb =
            |name: &str| value_of(self.file("meminfo"), &format!("{name}:")).map(|kb| kb * 1024);
        let Some(total) = kb("MemTotal").filter(|total| *total > 0) else { return Vec::new() };
        let parts = [
            ("free", "MemFree"),
            ("anonymous", "AnonPages"),
            ("page cache", "Cached"),
            ("swap cache", "SwapCached"),
            ("slabs", "Slab"),
            ("page tables", "PageTables"),
        ];
        let bar = |name: &str, bytes: u64, of: u64| Bar {
            name: name.to_owned(),
            text: size(bytes),
            parts: vec![(bytes as f64 / of.max(1) as f64, size(bytes))],
        };
        let mut bars: Vec<Bar> =
            parts.iter().filter_map(|(name, field)| Some(bar(name, kb(field)?, total))).collect();
        let mut caption = format!("Memory of {}", size(total));
        if let (Some(all), Some(free)) = (kb("SwapTotal"), kb("SwapFree")) {
            if all > 0 {
                bars.push(bar("swap in use", all.saturating_sub(free), all));
                caption += &format!("; swap of {}", size(all));
            }
        }
        let head = ["use".to_owned(), "memory".to_owned()];
        vec![BarTable { caption, head, bars }.markup().into()]
    }

    fn groups(&self, setup: &Setup) -> Vec<PageBlock> {
        let names: Vec<&str> =
            self.record.files.iter().filter_map(|(file, _)| group_of(file)).collect();
        if names.is_empty() {
            return Vec::new();
        }
        let of = |group: &str| {
            let stat = self.file(&format!("{CGROUP}{group}/memory.stat"));
            let current = self.number(group, "memory.current");
            let swap = self.number(group, "memory.swap.current");
            let parts = OF_GROUPS.map(|name| value_of(stat, name).unwrap_or(0));
            (current.unwrap_or(0), parts, swap)
        };
        let most = names.iter().map(|group| {
            let (current, parts, swap) = of(group);
            current.max(parts.iter().sum()) + swap.unwrap_or(0)
        });
        let most = most.max().unwrap_or(0).max(1) as f64;
        let bar = |group: &&str| {
            let (current, parts, swap) = of(group);
            let rest = current.saturating_sub(parts.iter().sum());
            let all = OF_GROUPS.iter().copied().zip(parts).chain([("other", rest)]);
            let all: Vec<(&str, u64)> = all.chain(swap.map(|swap| ("swap", swap))).collect();
            let words: Vec<String> = all
                .iter()
                .filter(|(_, bytes)| *bytes > 0)
                .map(|(name, bytes)| format!("{name} {}", size(*bytes)))
                .collect();
            let mut text = size(current);
            if !words.is_empty() {
                text += &format!(": {}", words.join(", "));
            }
            let limits = limits(setup, group);
            if !limits.is_empty() {
                text += &format!(" ({limits})");
            }
            let part = |(name, bytes): &(&str, u64)| {
                (*bytes as f64 / most, format!("{name} {}", size(*bytes)))
            };
            Bar { name: (*group).to_owned(), text, parts: all.iter().map(part).collect() }
        };
        let bars = names.iter().take(MOST_GROUPS).map(bar).collect();
        let head = ["group".to_owned(), "memory, and its limits".to_owned()];
        let caption = "Memory charged to each group, including descendants".to_owned();
        let has_swap = names.iter().any(|group| of(group).2.is_some());
        let mut kinds = OF_GROUPS.to_vec();
        kinds.push("other");
        if has_swap {
            kinds.push("swap");
        }
        vec![html! {
            (legend(&kinds))
            (BarTable { caption, head, bars }.markup())
            @if names.len() > MOST_GROUPS {
                p.note { "The first " (MOST_GROUPS) " of " (names.len()) " groups." }
            }
        }
        .into()]
    }

    /// A file of a group that is one number.
    fn number(&self, group: &str, file: &str) -> Option<u64> {
        let text = self.file(&format!("{CGROUP}{group}/{file}")).trim();
        // A metric's key has the last part of the path.
        let name = group.rsplit_once('/').map_or(group, |(_, name)| name);
        let declared = || self.record.metrics.get(&format!("{name}.{file}"));
        text.parse().ok().or_else(|| declared().map(|metric| metric.value.max(0.0) as u64))
    }

    fn files(&self) -> Vec<PageBlock> {
        let mut left = MOST_TEXT;
        let mut blocks: Vec<PageBlock> = Vec::new();
        for (name, text) in &self.record.files {
            if name.starts_with("/sys/kernel/slab/") || text.len() > left {
                continue;
            }
            left -= text.len();
            let id = anchor("file", name);
            let path = if name.starts_with('/') { name.clone() } else { format!("/proc/{name}") };
            let markup = html! {
                details.file {
                    summary { (path) }
                    p { button type="button" data-copy=(id) hidden { "Copy" } }
                    pre.scenario tabindex="0" { code id=(id) { (text) } }
                }
            };
            blocks.push(markup.into());
        }
        blocks
    }
}

/// Key to the colours of a bar's parts.
fn legend(names: &[&str]) -> Markup {
    html! {
        p.key {
            @for (number, name) in names.iter().enumerate() {
                span.{ "c" (number % NR_COLOURS) } { i {} (name) }
                " "
            }
        }
    }
}

/// The values that the scenario writes to the control files of a group.
fn limits(setup: &Setup, group: &str) -> String {
    let last = group.rsplit('/').next().unwrap_or(group);
    let Some(found) = setup.groups.iter().find(|it| it.name == last) else { return String::new() };
    let control = |write: &GroupControlWrite| {
        let text = format!("{write}");
        let bytes: Option<f64> = text.parse().ok().filter(|bytes: &f64| *bytes >= 4096.0);
        let scale = bytes.map(|bytes| (Scale::new(Unit::Bytes, &[(bytes, 0.0)]), bytes));
        let value = match scale {
            Some((scale, bytes)) => format!("{} {}", scale.print(bytes, 0.0).0, scale.symbol),
            None => text,
        };
        format!("{} {value}", write.control.name())
    };
    found.controls.iter().map(control).collect::<Vec<String>>().join(", ")
}

/// The group of a memory.current file; not the root.
fn group_of(file: &str) -> Option<&str> {
    let group = file.strip_prefix(CGROUP)?.strip_suffix("/memory.current")?;
    (!group.is_empty()).then_some(group)
}

/// The number after a word at the start of a line.
fn value_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.next()?.parse().ok()).flatten()
    })
}

fn zones(zoneinfo: &str) -> Vec<Zone> {
    let mut zones: Vec<Zone> = Vec::new();
    for line in zoneinfo.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), zones.last_mut()) {
            (["Node", node, "zone", zone], _) => {
                let name = format!("node {} {zone}", node.trim_end_matches(','));
                zones.push(Zone { name, ..Zone::default() });
            }
            ([name, number], Some(zone)) => {
                let Ok(number) = number.parse() else { continue };
                match *name {
                    "min" => zone.min = number,
                    "low" => zone.low = number,
                    "high" => zone.high = number,
                    "managed" => zone.managed = number,
                    _ => {}
                }
            }
            (["pages", "free", number], Some(zone)) => zone.free = number.parse().unwrap_or(0),
            _ => {}
        }
    }
    zones
}

/// Free blocks by order, of each zone.
fn buddyinfo(text: &str) -> Vec<(String, Vec<u64>)> {
    let zone = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["Node", node, "zone", zone, blocks @ ..] = words.as_slice() else { return None };
        let blocks: Option<Vec<u64>> = blocks.iter().map(|number| number.parse().ok()).collect();
        Some((format!("node {} {zone}", node.trim_end_matches(',')), blocks?))
    };
    text.lines().filter_map(zone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{record, scenario};

    const ZONEINFO: &str = "Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 0\n\
        \x20 pages free     3000\n        boost    0\n        min      100\n        low      125\n\
        \x20       high     150\n        managed  3840\n\
        Node 0, zone   Normal\n  pages free     120\n        min      130\n        low      160\n\
        \x20       high     190\n\
        \x20       managed  258048\n        protection: (0, 0)\n    cpu: 0\n              high:  9\n";

    fn with_files(files: &[(&str, &str)]) -> String {
        let mut record = record("a", 1, &[]);
        record.files = files.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let setup = scenario(&["a"]).variants[0].setup.clone();
        page(&record, &setup, "a run", true, &PageSource::default()).render()
    }

    #[test]
    fn zones_are_shown_with_their_watermarks() {
        let found = zones(ZONEINFO);
        assert_eq!((found[0].free, found[0].high, found[0].managed), (3000, 150, 3840));
        assert_eq!((found[1].name.as_str(), found[1].high), ("node 0 Normal", 190));
        let text = with_files(&[("/proc/zoneinfo", ZONEINFO)]);
        for wanted in ["free memory is below min", "above all watermarks", "beyond the bar's end"] {
            assert!(text.contains(wanted), "{wanted}");
        }
    }

    #[test]
    fn groups_and_blocks_have_their_figures_and_odd_files_are_left_out() {
        let group = "/sys/fs/cgroup/a<b/";
        let text = with_files(&[
            ("buddyinfo", "Node 0, zone  DMA  8 0 1\nNode 0, zone odd x\nnonsense\n"),
            ("meminfo", "MemTotal: 1024 kB\nMemFree: 512 kB\nCached: x kB\n"),
            (&format!("{group}memory.current"), "3145728\n"),
            (&format!("{group}memory.stat"), "anon 1048576\nfile 1048576\nkernel oops\n"),
        ]);
        for wanted in
            ["2 (16\u{a0}KiB)", "512 KiB", "3 MiB: anon 1 MiB, file 1 MiB, other 1 MiB", "a&lt;b"]
        {
            assert!(text.contains(wanted), "{wanted}");
        }
        let empty =
            with_files(&[("zoneinfo", "?"), ("buddyinfo", ""), ("meminfo", "MemTotal: 0 kB")]);
        assert!(empty.contains("This is the end of the run"));
        assert!(!empty.contains("id=\"zones\"") && empty.contains("id=\"files\""));
    }
}
