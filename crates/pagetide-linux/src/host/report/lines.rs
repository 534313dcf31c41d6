//! From the lines of one report to its parts.
//!
//! Invariant: amounts are in pages of the report's own page size, which the free lists state.

use super::log::LogLine;
use super::{
    gfp, FailedRequest, KernelReport, ReportedGroup, ReportedLimit, ReportedProcess, PLACE,
};
use crate::host::buddyinfo::BuddyInfo;
use crate::host::error::HostError;
use crate::host::note::{shown, ImportNote};
use crate::host::number::count;
use crate::host::release;
use crate::host::zoneinfo::HostZone;
use std::collections::BTreeMap;

const ZONES: [&str; 6] = ["DMA", "DMA32", "Normal", "HighMem", "Movable", "Device"];
/// Maximum number of zones and of processes.
const ENTRIES_MAX: usize = 4096;
/// Maximum number of notes.
const NOTES_MAX: usize = 12;

/// Whether a report begins with this line.
pub(super) fn is_start(text: &str) -> bool {
    text.contains(" invoked oom-killer:") || text.contains(": page allocation failure")
}

/// Reads the lines of a report; the first is its start.
pub(super) fn read(lines: &[LogLine]) -> Result<KernelReport, HostError> {
    let page_kb = page_kb_of(lines);
    let mut reader = ReportReader {
        page_kb: page_kb.unwrap_or(4),
        report: KernelReport { page_kb: page_kb.unwrap_or(0), ..KernelReport::default() },
        ..ReportReader::default()
    };
    for (index, line) in lines.iter().enumerate() {
        if index == 0 {
            reader.report.request = first_line(lines)?;
        } else {
            reader.line(line)?;
        }
    }
    reader.finish()
}

/// The request of the first line, which can be wrapped: then with what follows.
fn first_line(lines: &[LogLine]) -> Result<FailedRequest, HostError> {
    let mut joined = lines[0].clone();
    let refused = match request(&joined) {
        Ok(request) => return Ok(request),
        Err(refused) => refused,
    };
    for next in lines[1..].iter().take(2) {
        joined.text = format!("{} {}", joined.text, next.text);
        if let Ok(request) = request(&joined) {
            return Ok(request);
        }
    }
    Err(refused)
}

/// The size of a page that most free lists have.
fn page_kb_of(lines: &[LogLine]) -> Option<u64> {
    let found: Vec<u64> = lines.iter().filter_map(|line| page_kb(&line.text)).collect();
    let number = |kb: &u64| found.iter().filter(|other| *other == kb).count();
    // The first of those that are equally frequent.
    found.iter().rev().copied().max_by_key(number)
}

/// The size of a page, from a free list: `1*4kB 0*8kB ...`.
fn page_kb(text: &str) -> Option<u64> {
    let (_, list) = text.split_once(": ")?;
    let (_, size) = list.split_whitespace().next()?.split_once('*')?;
    kbytes(size).filter(|kb| [4, 16, 64].contains(kb))
}

fn kbytes(text: &str) -> Option<u64> {
    count(text.strip_suffix("kB").or_else(|| text.strip_suffix("KB"))?)
}

/// `firefox invoked oom-killer: gfp_mask=0xd0, order=0`, `sh: page allocation failure: order:2, mode:0x20`.
fn request(line: &LogLine) -> Result<FailedRequest, HostError> {
    let text = &line.text;
    let refuse = |message: &str| HostError::BadReport {
        line: line.number,
        message: format!("{message}: `{}`", shown(text)),
    };
    let (comm, rest, is_oom) = match text.split_once(" invoked oom-killer:") {
        Some((comm, rest)) => (comm, rest, true),
        None => {
            let (comm, rest) = text.split_once(": page allocation failure").unwrap_or((text, ""));
            (comm, rest, false)
        }
    };
    let after = |names: [&str; 2]| names.iter().find_map(|name| Some(rest.split_once(name)?.1));
    let order = after(["order:", "order="]).ok_or_else(|| refuse("the order is missing"))?;
    let digits = order.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
    let order = count(digits).filter(|order| *order < 32);
    let order = order.ok_or_else(|| refuse("not an order"))?;
    let flags = after(["gfp_mask=", "mode:"]).ok_or_else(|| refuse("the flags are missing"))?;
    let end = match flags.split_once(')') {
        Some((flags, _)) if flags.contains('(') && !flags.contains(',') => flags.len(),
        _ => flags.find([',', ' ']).unwrap_or(flags.len()),
    };
    let flags = gfp::parse(&flags[..end]).ok_or_else(|| refuse("not a mask of flags"))?;
    Ok(FailedRequest {
        comm: shown(comm),
        is_oom,
        order: order as u32,
        flags,
        line: line.number,
        is_of_group: false,
    })
}

#[derive(Debug, Default)]
struct ReportReader {
    report: KernelReport,
    page_kb: u64,
    /// Line of each zone.
    zone_lines: Vec<usize>,
    /// Node and name of the zones with a line of free lists.
    listed: Vec<(u32, String)>,
    /// Columns of the table of processes, behind the PID.
    columns: Option<Vec<String>>,
    /// In the totals of the machine: between `Mem-Info:` and the first node.
    is_in_totals: bool,
    totals: BTreeMap<String, u64>,
    /// In the statistics of the group.
    is_in_stat: bool,
}

impl ReportReader {
    fn note(&mut self, line: &LogLine, message: &str) {
        if self.report.notes.len() < NOTES_MAX {
            let note = ImportNote::new(PLACE, message);
            let note = ImportNote { line: Some(line.number), text: shown(&line.text), ..note };
            self.report.notes.push(note);
        }
    }

    fn line(&mut self, line: &LogLine) -> Result<(), HostError> {
        let text = line.text.as_str();
        // A hard wrap can glue two counters together.
        let spaced = text.replace("kB", "kB ").replace("KB", "KB ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let was_in_stat = std::mem::take(&mut self.is_in_stat);
        match words.as_slice() {
            [] => self.is_in_stat = was_in_stat,
            ["Mem-Info:" | "Mem-info:", ..] => self.is_in_totals = true,
            ["CPU", cpu, ..] if cpu.ends_with(':') => self.cpu(cpu),
            ["cpu", cpu, "hot:" | "cold:", ..] => self.cpu(cpu),
            [first, ..] if is_first_total(first) => {
                self.is_in_totals = true;
                self.totals(&words);
            }
            ["Node", node, rest @ ..] if count(node).is_some() => {
                self.is_in_totals = false;
                let node = count(node).and_then(|node| u32::try_from(node).ok()).unwrap_or(0);
                match rest {
                    [name, rest @ ..] if ZONES.contains(&name.trim_end_matches(':')) => {
                        self.zone(node, name, rest, line)?;
                    }
                    _ => self.node(node, rest),
                }
            }
            [name, rest @ ..] if ZONES.contains(&name.trim_end_matches(':')) => {
                self.is_in_totals = false;
                self.zone(0, name, rest, line)?;
            }
            ["lowmem_reserve[]:", pages @ ..] => {
                let pages: Option<Vec<u64>> = pages.iter().map(|pages| count(pages)).collect();
                if let Some((zone, pages)) = self.report.zones.zones.last_mut().zip(pages) {
                    zone.protection = pages;
                }
            }
            ["Total", "swap", "=", kb, ..] => match kbytes(kb) {
                Some(kb) => self.report.swap_kb = Some(kb),
                None => self.note(line, "not an amount in kB"),
            },
            ["Task", "in", _, "killed", "as", "a", "result", "of", "limit", "of", path, ..] => {
                self.group().path = shown(path);
            }
            ["memory:", "usage", rest @ ..] => self.limit(rest, line, |group, memory| {
                group.memory = Some(memory);
            }),
            ["memory+swap:", "usage", rest @ ..] => self.limit(rest, line, |group, both| {
                group.memory_and_swap = Some(both);
            }),
            ["Memory", "cgroup", "stats", "for", path, stat @ ..] => {
                let path = path.trim_end_matches(':');
                let group = self.group();
                if group.path.is_empty() {
                    group.path = shown(path);
                }
                // Before 5.3 each group below the limit has a line with what is its own.
                for word in stat {
                    let (name, value) = word.split_once(':').unwrap_or((word, ""));
                    if let Some(kb) = kbytes(value) {
                        add_stat(&mut group.stat, name, kb.saturating_mul(1024));
                    }
                }
                self.is_in_stat = true;
            }
            [name, bytes] if was_in_stat && count(bytes).is_some() && !name.contains(':') => {
                let bytes = count(bytes).unwrap_or(0);
                add_stat(&mut self.group().stat, name, bytes);
                self.is_in_stat = true;
            }
            [word, ..] if word.starts_with("oom-kill:constraint=") => self.constraint(text),
            _ if text.starts_with('[') && text.contains("total_vm") => {
                let columns = text.split_once(']').map_or("", |(_, columns)| columns);
                self.columns = Some(columns.split_whitespace().map(str::to_owned).collect());
            }
            _ if text.starts_with('[') && self.columns.is_some() => self.process(line),
            _ if self.is_in_totals => self.totals(&words),
            _ => self.about_the_kernel(text),
        }
        Ok(())
    }

    fn totals(&mut self, words: &[&str]) {
        for (name, value) in words.iter().filter_map(|word| word.split_once(':')) {
            if let Some(pages) = count(value) {
                self.totals.entry(name.to_lowercase()).or_insert(pages);
            }
        }
    }

    /// `CPU: 7 PID: 111104 Comm: java Not tainted 4.9.24-coreos #1`
    fn about_the_kernel(&mut self, text: &str) {
        if !(text.contains("omm:") && text.contains('#')) {
            return;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let version = words.windows(2).find(|pair| pair[1].starts_with('#'));
        if let Some([name, _]) = version.filter(|pair| release::is_release(pair[0])) {
            self.report.release.get_or_insert_with(|| shown(name));
        }
        if let ["CPU:", cpu, ..] = words.as_slice() {
            self.cpu(cpu);
        }
    }

    fn cpu(&mut self, cpu: &str) {
        let cpu = count(cpu.trim_end_matches(':')).and_then(|cpu| u32::try_from(cpu).ok());
        self.report.last_cpu = self.report.last_cpu.max(cpu);
    }

    fn group(&mut self) -> &mut ReportedGroup {
        self.report.request.is_of_group = true;
        self.report.group.get_or_insert_default()
    }

    /// `307200kB, limit 307200kB, failcnt 93`
    fn limit(
        &mut self,
        words: &[&str],
        line: &LogLine,
        set: fn(&mut ReportedGroup, ReportedLimit),
    ) {
        // The commas stand alone after the amounts were set apart.
        let amounts: Vec<u64> =
            words.iter().filter_map(|word| kbytes(word.trim_end_matches(','))).collect();
        match amounts.as_slice() {
            &[usage_kb, limit_kb, ..] => set(self.group(), ReportedLimit { usage_kb, limit_kb }),
            _ => self.note(line, "not a usage and a limit in kB"),
        }
    }

    /// `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),...,oom_memcg=/a,task_memcg=/a/b,...`
    fn constraint(&mut self, text: &str) {
        let value = |key: &str| text.split(',').find_map(|part| part.strip_prefix(key));
        if let Some(path) = value("oom_memcg=") {
            let path = shown(path);
            self.group().path = path;
        }
    }

    /// A node's counters since 4.8: `active_anon:2393412kB`.
    fn node(&mut self, node: u32, words: &[&str]) {
        for (name, kb) in counters(words) {
            let name = match name {
                "isolated(anon)" | "isolated(file)" | "all_unreclaimable?" => continue,
                "kernel_stack" => "nr_kernel_stack".to_owned(),
                "pagetables" => "nr_page_table_pages".to_owned(),
                name => format!("nr_{name}"),
            };
            let counters = self.report.zones.nodes.entry(node).or_default();
            counters.insert(name, kb / self.page_kb);
        }
    }

    /// The amounts of a zone, or its free lists.
    fn zone(
        &mut self,
        node: u32,
        name: &str,
        words: &[&str],
        line: &LogLine,
    ) -> Result<(), HostError> {
        match words.first() {
            Some(word) if word.starts_with("free:") => {}
            Some(word) if word.contains('*') => {
                self.free_lists(node, name.trim_end_matches(':'), words, line);
                return Ok(());
            }
            _ => return Ok(()),
        }
        let refuse = |message: String| HostError::BadReport { line: line.number, message };
        let zones = &mut self.report.zones.zones;
        if zones.iter().any(|zone| zone.node == node && zone.name == name) {
            self.note(line, "the zone has been described before");
            return Ok(());
        }
        if zones.len() == ENTRIES_MAX {
            return Err(refuse("too many zones".to_owned()));
        }
        let mut zone = HostZone { node, name: name.to_owned(), ..HostZone::default() };
        for (name, kb) in counters(words) {
            let pages = kb / self.page_kb;
            match name {
                "free" => zone.free = Some(pages),
                "boost" => zone.boost = Some(pages),
                "min" => zone.min = Some(pages),
                "low" => zone.low = Some(pages),
                "high" => zone.high = Some(pages),
                "present" => zone.present = Some(pages),
                "managed" => zone.managed = Some(pages),
                "free_pcp" | "local_pcp" => {}
                "mlocked" => {
                    zone.counters.insert("nr_mlock".to_owned(), pages);
                }
                "pagetables" => {
                    zone.counters.insert("nr_page_table_pages".to_owned(), pages);
                }
                // Before 2.6.28 a list had pages of both kinds.
                "active" | "inactive" => {
                    zone.counters.insert(name.to_owned(), pages);
                }
                "active_anon" | "inactive_anon" | "active_file" | "inactive_file" => {
                    zone.counters.insert(format!("nr_zone_{name}"), pages);
                }
                name => {
                    zone.counters.insert(format!("nr_{name}"), pages);
                }
            }
        }
        let needed = [("free", zone.free), ("min", zone.min), ("low", zone.low)];
        let needed = needed.into_iter().chain([("high", zone.high), ("present", zone.present)]);
        let missing = needed.filter(|(_, pages)| pages.is_none()).map(|(name, _)| name).next();
        if let Some(missing) = missing {
            return Err(refuse(format!(
                "zone {name} of node {node} has no `{missing}` in kB: the report is cut, or other \
                 messages stand in it"
            )));
        }
        self.report.zones.zones.push(zone);
        self.zone_lines.push(line.number);
        Ok(())
    }

    /// `1*4kB (U) 0*8kB 2*16kB (UM) ... = 15908kB`
    fn free_lists(&mut self, node: u32, name: &str, words: &[&str], line: &LogLine) {
        let mut blocks: Vec<u64> = Vec::new();
        let mut letters: Vec<String> = Vec::new();
        let mut total = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if *word == "=" {
                total = words.next().and_then(|word| kbytes(word));
                break;
            }
            if let Some(types) = word.strip_prefix('(') {
                letters.resize(blocks.len(), String::new());
                if let Some(last) = letters.last_mut() {
                    *last = types.trim_end_matches(')').to_owned();
                }
                continue;
            }
            let block = word.split_once('*').and_then(|(n, size)| Some((count(n)?, kbytes(size)?)));
            match block.filter(|(_, kb)| blocks.len() < 16 && *kb == self.page_kb << blocks.len()) {
                Some((number, _)) => blocks.push(number),
                None => break,
            }
        }
        letters.resize(blocks.len(), String::new());
        self.listed.push((node, name.to_owned()));
        let info = BuddyInfo { node, zone: name.to_owned(), blocks, letters };
        match total {
            Some(kb) if info.pages_from(0).saturating_mul(self.page_kb) == kb => {
                self.report.free_blocks.push(info);
            }
            _ => self.note(line, "left out: the blocks are not the total at the end"),
        }
    }

    fn process(&mut self, line: &LogLine) {
        let Some(columns) = &self.columns else { return };
        let Some((pid, rest)) = line.text.split_once(']') else { return };
        if count(pid.trim_start_matches('[').trim()).is_none() {
            return;
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let get = |name: &str| {
            let at = columns.iter().position(|column| column == name)?;
            words.get(at).copied()
        };
        let anon = get("rss_anon").and_then(count).or_else(|| get("rss").and_then(count));
        let old = get("oom_adj").and_then(|adj| adj.parse::<i32>().ok());
        // Before 2.6.36 the adjustment went from -17 (never) to 15. Converted as Linux 2.6.36 does
        // (oom_adjust_write in fs/proc/base.c).
        let old = old.map(|adj| match adj.clamp(-17, 15) {
            15 => 1000,
            adj => adj * 1000 / 17,
        });
        let adj = get("oom_score_adj").and_then(|adj| adj.parse::<i32>().ok()).or(old);
        let names = columns.iter().position(|column| column == "name");
        let name = names.and_then(|at| words.get(at..)).map(|words| words.join(" "));
        match (anon, name.filter(|name| !name.is_empty())) {
            (Some(rss), Some(name)) if self.report.processes.len() < ENTRIES_MAX => {
                let oom_score_adj = adj.unwrap_or(0).clamp(-1000, 1000) as i16;
                self.report.processes.push(ReportedProcess {
                    name: shown(&name),
                    rss,
                    oom_score_adj,
                });
            }
            (Some(_), Some(_)) => {}
            _ => self.note(line, "not a process"),
        }
    }

    /// A report prints the amounts of all zones, then the free lists of all, then swap.
    fn refuse_a_cut(&self) -> Result<(), HostError> {
        let mut zones = self.report.zones.zones.iter().zip(&self.zone_lines);
        let Some((zone, &line)) = zones.find(|(zone, _)| !self.has_free_lists(zone)) else {
            return Ok(());
        };
        let (name, node) = (&zone.name, zone.node);
        let message = format!(
            "zone {name} of node {node} has no line of free lists (`{name}: 1*4kB 0*8kB ...`): the \
             report is cut"
        );
        Err(HostError::BadReport { line, message })
    }

    fn has_free_lists(&self, zone: &HostZone) -> bool {
        self.listed.iter().any(|(node, name)| *node == zone.node && *name == zone.name)
    }

    /// Notes zones that the report does not describe: its total of free pages is larger.
    fn note_missing_zones(&mut self) {
        let free = self.report.zones.zones.iter().filter_map(|zone| zone.free);
        let described = free.fold(0, u64::saturating_add);
        let total = self.totals.get("free").copied().unwrap_or(0);
        if !self.report.zones.zones.is_empty() && described < total - total / 8 {
            let message = format!(
                "the zones have {described} of the machine's {total} free pages: others are missing, \
                 so the machine is too small (is the report cut?)"
            );
            self.report.notes.push(ImportNote::new(PLACE, message));
        }
    }

    fn finish(mut self) -> Result<KernelReport, HostError> {
        self.refuse_a_cut()?;
        self.note_missing_zones();
        // Totals that no zone and no node has.
        if let Some(node) = self.report.zones.zones.first().map(|zone| zone.node) {
            let zones = &self.report.zones;
            let has = |name: &str| {
                let of_zones = zones.zones.iter().map(|zone| &zone.counters);
                zones.nodes.values().chain(of_zones).any(|counters| counters.contains_key(name))
            };
            let names = [
                ("slab_reclaimable", "nr_slab_reclaimable"),
                ("pagetables", "nr_page_table_pages"),
            ];
            let missing: Vec<_> = names.into_iter().filter(|(_, name)| !has(name)).collect();
            for (total, name) in missing {
                if let Some(pages) = self.totals.get(total) {
                    let counters = self.report.zones.nodes.entry(node).or_default();
                    counters.insert(name.to_owned(), *pages);
                }
            }
        }
        if let Some(group) = &self.report.group {
            if group.memory.is_none() && self.report.zones.zones.is_empty() {
                return Err(HostError::BadReport {
                    line: self.report.request.line,
                    message: "the report names a group, but not its usage and limit".to_owned(),
                });
            }
        }
        Ok(self.report)
    }
}

fn add_stat(stat: &mut Vec<(String, u64)>, name: &str, bytes: u64) {
    match stat.iter_mut().find(|(entry, _)| entry == name) {
        Some((_, sum)) => *sum = sum.saturating_add(bytes),
        None => stat.push((name.to_owned(), bytes)),
    }
}

/// Whether the machine's totals begin with this word.
fn is_first_total(word: &str) -> bool {
    let (name, pages) = word.split_once(':').unwrap_or((word, ""));
    matches!(name, "active_anon" | "Active_anon" | "Active") && count(pages).is_some()
}

/// Counters in kB: `free:15908kB`, also with a space before the amount.
fn counters<'t>(words: &[&'t str]) -> Vec<(&'t str, u64)> {
    let mut counters = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some((name, mut value)) = word.split_once(':') else { continue };
        if value.is_empty() {
            value = words.peek().copied().copied().unwrap_or("");
        }
        if let Some(kb) = kbytes(value) {
            counters.push((name, kb));
        }
    }
    counters
}
