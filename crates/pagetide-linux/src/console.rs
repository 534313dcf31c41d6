//! Parses the report of the guest. `crates/pagetide-guest/src/report.rs` describes the format.
//!
//! Invariant: any bytes give a [`GuestReport`] or an error with its position, never a panic.

use crate::compressed_counts::CompressedCounts;
use crate::host::slabinfo::{self, SlabCache};
use pagetide_scenario::metric::declared::{buddyinfo_name, NO_LIMIT};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Version of the format.
const VERSION: &str = "1";

/// The parsed report, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestReport {
    /// The last step of the preparation that began.
    pub last_step: String,
    /// Features that the kernel lacks.
    pub missing: Vec<String>,
    /// Values that the kernel rejected, each with its error.
    pub rejected: Vec<String>,
    /// Control files of patched kernels that select policies.
    pub switches: Vec<String>,
    pub notes: Vec<String>,
    /// Why the guest gave up, if it did.
    pub failed: Option<String>,
    /// Whether the preparation is finished.
    pub ready: bool,
    /// Kernel files by path; the last reading of each.
    pub texts: BTreeMap<String, String>,
    pub snapshots: Vec<GuestSnapshot>,
    /// (task, phase) -> (nanoseconds that the program takes to generate its operations, number of
    /// operations). The last round of each.
    pub programs: BTreeMap<(usize, usize), (u64, u64)>,
    /// Tasks with an abnormal end: number and reason.
    pub ended: Vec<(usize, String)>,
    /// Whether the run is finished.
    pub done: bool,
}

/// The counters at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestSnapshot {
    /// `run-begin`, `task-end`, ...
    pub kind: String,
    /// Task, or 0.
    pub task: usize,
    /// Phase of the task, or 0.
    pub phase: usize,
    /// Nanoseconds since boot.
    pub ns: u64,
    /// /proc/vmstat, and tracepoints under their names.
    pub counts: Vec<(String, u64)>,
    /// Resource usage of the task so far.
    pub usage: GuestTaskUsage,
    /// Resident pages of its regions.
    pub resident: Vec<(String, u64)>,
    /// Blocks of kernel memory that the task requested and got.
    pub blocks: [u64; 2],
    /// The result of the phase's madvise().
    pub errno: Option<u64>,
    /// CPU times, if the guest reports them.
    pub cpu: Option<CpuTimes>,
    /// Requests of a service.
    pub served: Option<ServiceStats>,
    /// /proc/slabinfo, if the setup has names or pipes.
    pub slabs: Vec<SlabCache>,
    /// Of zram and zswap, if the setup has them.
    pub compressed: CompressedCounts,
    /// The files of each group that existed, by its number. The lines of memory.stat keep their
    /// names; others have the file's name before them (`memory.events.low`).
    pub groups: BTreeMap<usize, Vec<(String, u64)>>,
}

/// CPU times at a snapshot, in nanoseconds. Reporting takes time itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Of the task, before its report.
    pub before: u64,
    pub after: u64,
    /// Of all kswapds.
    pub kswapd: u64,
    /// Of all kernel workers that are not bound to a CPU; they write dirty pages back.
    pub writeback: u64,
    /// End of the report, since boot.
    pub ended: u64,
}

/// Requests of a service in a phase. Latencies are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceStats {
    pub requests: u64,
    /// Requests slower than the deadline.
    pub late: u64,
    /// Requests that found the queue full.
    pub dropped: u64,
    /// Sum of all latencies.
    pub sum_ns: u64,
    /// Median, percentiles 90, 99 and 99.9, and maximum.
    pub latencies_ns: [u64; 5],
}

/// Resource usage of a task so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestTaskUsage {
    /// User time in microseconds.
    pub user_us: u64,
    /// System time in microseconds.
    pub system_us: u64,
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults that waited for I/O, including retries.
    pub major_faults: u64,
    /// Bytes read, written or touched.
    pub bytes: u64,
}

/// A line of the report that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportError {
    /// Offset of the line.
    pub at: usize,
    /// Description of the error.
    pub problem: String,
}

/// Whether the report contains the line `word`, such as `@ready`.
pub fn contains_line(report: &[u8], word: &str) -> bool {
    let line = format!("\n{word}\n");
    // Search backwards: the awaited lines are at the end.
    report.windows(line.len()).rev().any(|window| window == line.as_bytes())
}

/// Whether the guest gave up.
pub fn has_failed(report: &[u8]) -> bool {
    report.windows(7).rev().any(|window| window == b"\n@fail ")
}

/// Parses a report. An incomplete last line is ignored; see [`GuestReport::done`].
/// The error is the first line that does not have the guest's format.
pub fn parse(bytes: &[u8]) -> Result<GuestReport, ReportError> {
    let mut report = GuestReport::default();
    let mut open: Option<GuestSnapshot> = None;
    let mut at = 0;
    while at < bytes.len() {
        let Some(len) = bytes[at..].iter().position(|&byte| byte == b'\n') else {
            break; // an incomplete line
        };
        let line = String::from_utf8_lossy(&bytes[at..at + len]);
        let garbage = |problem: String| ReportError { at, problem };
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut next = at + len + 1;
        match word {
            "@pagetide" if rest == VERSION => {}
            "@pagetide" => {
                return Err(garbage(format!("format {rest}; this program reads {VERSION}")));
            }
            "@doing" => rest.clone_into(&mut report.last_step),
            "@lacks" => report.missing.push(rest.to_owned()),
            "@refuses" => report.rejected.push(rest.to_owned()),
            "@switch" => report.switches.push(rest.to_owned()),
            "@note" => report.notes.push(rest.to_owned()),
            "@fail" => report.failed = Some(rest.to_owned()),
            "@ready" => report.ready = true,
            "@done" => report.done = true,
            "@text" => {
                let (name, size) = rest.rsplit_once(' ').unwrap_or((rest, ""));
                let size: usize = number(size).map_err(garbage)?;
                let Some(text) = bytes.get(next..next.saturating_add(size)) else { break };
                next += size + 1;
                let text = String::from_utf8_lossy(text);
                match &mut open {
                    Some(snapshot) if name == "vmstat" => {
                        snapshot.counts.extend(vmstat(&text).map_err(garbage)?);
                    }
                    Some(snapshot) if name == "buddyinfo" => {
                        snapshot.counts.extend(free_blocks(&text).map_err(garbage)?);
                    }
                    Some(snapshot) if name == "pressure" => {
                        snapshot.counts.extend(pressure("psi.memory", &text).map_err(garbage)?);
                    }
                    Some(snapshot) if name == "slabinfo" => {
                        let (slabs, notes) = slabinfo::parse(&text);
                        if let Some(note) = notes.first() {
                            return Err(garbage(note.to_string()));
                        }
                        snapshot.slabs = slabs;
                    }
                    Some(snapshot) if name.starts_with("zram ") || name.starts_with("zswap ") => {
                        snapshot.compressed.read(name, &text);
                    }
                    Some(snapshot) if name.starts_with("group ") => {
                        add_group(snapshot, name, &text).map_err(garbage)?;
                    }
                    _ => {
                        report.texts.insert(name.to_owned(), text.into_owned());
                    }
                }
            }
            "@snap" => {
                let mut fields = rest.split(' ');
                let mut field = || fields.next().unwrap_or_default();
                open = Some(GuestSnapshot {
                    kind: field().to_owned(),
                    task: number(field()).map_err(garbage)?,
                    phase: number(field()).map_err(garbage)?,
                    ns: number(field()).map_err(garbage)?,
                    ..GuestSnapshot::default()
                });
            }
            "@program" => {
                let [task, phase, ns, operations] = numbers(rest).map_err(garbage)?;
                report.programs.insert((task as usize, phase as usize), (ns, operations));
            }
            "@trace" | "@cpu" | "@blocks" | "@resident" | "@errno" | "@usage" | "@served"
            | "@snapped" => {
                let Some(mut snapshot) = open.take() else {
                    return Err(garbage(format!("{word} outside of a snapshot")));
                };
                if word == "@snapped" {
                    report.snapshots.push(snapshot);
                } else {
                    add(&mut snapshot, word, rest).map_err(garbage)?;
                    open = Some(snapshot);
                }
            }
            "@ended" => {
                let (task, how) = rest.split_once(' ').unwrap_or((rest, ""));
                report.ended.push((number(task).map_err(garbage)?, how.to_owned()));
            }
            _ => {
                let shown: String = line.chars().take(60).collect();
                return Err(garbage(format!("unknown line `{}`", shown.escape_debug())));
            }
        }
        at = next;
    }
    Ok(report)
}

/// The numbers of a line.
fn numbers<const N: usize>(rest: &str) -> Result<[u64; N], String> {
    let mut numbers = [0u64; N];
    let mut fields = rest.split(' ');
    for into in &mut numbers {
        *into = number(fields.next().unwrap_or_default())?;
    }
    Ok(numbers)
}

fn add(snapshot: &mut GuestSnapshot, word: &str, rest: &str) -> Result<(), String> {
    if word == "@served" {
        let [requests, late, dropped, sum_ns, latencies_ns @ ..] = numbers::<9>(rest)?;
        snapshot.served = Some(ServiceStats { requests, late, dropped, sum_ns, latencies_ns });
        return Ok(());
    }
    if word == "@blocks" {
        snapshot.blocks = numbers(rest)?;
        return Ok(());
    }
    if word == "@errno" {
        snapshot.errno = Some(number(rest)?);
        return Ok(());
    }
    if word == "@cpu" {
        let [before, after, kswapd, writeback, ended] = numbers(rest)?;
        snapshot.cpu = Some(CpuTimes { before, after, kswapd, writeback, ended });
        return Ok(());
    }
    if word == "@usage" {
        let [user_us, system_us, minor_faults, major_faults, bytes] = numbers(rest)?;
        snapshot.usage = GuestTaskUsage { user_us, system_us, minor_faults, major_faults, bytes };
        return Ok(());
    }
    let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
    let entry = (name.to_owned(), number(value)?);
    match word {
        "@trace" => snapshot.counts.push(entry),
        _ => snapshot.resident.push(entry),
    }
    Ok(())
}

/// Adds a file of a group, from a text named `group NUMBER FILE`.
fn add_group(snapshot: &mut GuestSnapshot, name: &str, text: &str) -> Result<(), String> {
    let mut words = name.split(' ').skip(1);
    let (group, file) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let of_group = snapshot.groups.entry(number(group)?).or_default();
    if file == "memory.pressure" {
        of_group.extend(pressure(file, text)?);
        return Ok(());
    }
    if file == "cgroup.controllers" {
        let has_memory = text.split_ascii_whitespace().any(|controller| controller == "memory");
        of_group.push((format!("{file}.memory"), has_memory.into()));
        return Ok(());
    }
    for line in text.lines() {
        let (name, value) = match line.split_once(' ') {
            Some((name, value)) if file == "memory.stat" => (name.to_owned(), value),
            Some((name, value)) => (format!("{file}.{name}"), value),
            // A limit that is not set.
            None if line == "max" => {
                of_group.push((file.to_owned(), NO_LIMIT));
                continue;
            }
            None => (file.to_owned(), line),
        };
        of_group.push((name, number(value)?));
    }
    Ok(())
}

fn vmstat(text: &str) -> Result<Vec<(String, u64)>, String> {
    text.lines()
        .map(|line| {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            // A counter that is folded late can be printed as a small negative number.
            let value = if value.starts_with('-') { 0 } else { number(value)? };
            Ok((name.to_owned(), value))
        })
        .collect()
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`: the totals in microseconds, as `FILE.some`
/// and `FILE.full`.
fn pressure(file: &str, text: &str) -> Result<Vec<(String, u64)>, String> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let total = rest.rsplit_once("total=").map_or("", |(_, total)| total);
        Ok((format!("{file}.{name}"), number(total)?))
    };
    text.lines().map(line).collect()
}

/// Free blocks of each order: the sum over all zones as `nr_free_blocks_ORDER`, then each zone.
fn free_blocks(text: &str) -> Result<Vec<(String, u64)>, String> {
    let mut sums: Vec<u64> = Vec::new();
    let mut zones = Vec::new();
    for line in text.lines() {
        // Node 0, zone   DMA32      1      2 ...
        let mut words = line.split_ascii_whitespace().skip(1);
        let node = words.next().unwrap_or_default().trim_end_matches(',');
        let zone = words.nth(1).unwrap_or_default();
        for (order, column) in words.enumerate() {
            if sums.len() <= order {
                sums.push(0);
            }
            let blocks = number(column)?;
            sums[order] = sums[order].saturating_add(blocks);
            zones.push((buddyinfo_name(node, zone, order), blocks));
        }
    }
    let names = (0..sums.len()).map(|order| format!("nr_free_blocks_{order}"));
    Ok(names.zip(sums).chain(zones).collect())
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("`{}` is not a number", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "@pagetide 1\n@doing mounting disks\n@lacks vm.extra_free_kbytes\n\
        @refuses vm.swappiness = 900: Invalid argument\n@switch vm.soft_limit_reclaim\n\
        @text /proc/version 6\nLinux\n\n@ready\n@snap phase-end 2 1 77\n@text vmstat 27\n\
        nr_free_pages 10\npgfault 3\n\n@text pressure 61\n\
        some avg10=0.00 avg60=0.00 total=70\nfull avg10=0.00 total=60\n\n\
        @trace mm_vmscan_kswapd_wake 4\n@cpu 5 6 7 8 80\n@usage 1 2 3 4 5\n\
        @resident anon_hot_resident 9\n@errno 22\n@blocks 9 4\n@served 9 8 7 6 1 2 3 4 5\n\
        @text group 1 memory.stat 20\nanon 4096\npgfault 7\n\n\
        @text group 1 memory.current 5\n8192\n\n@text group 1 memory.events 6\nlow 3\n\n@snapped\n\
        @ended 2 signal 9\n@program 2 1 900 30\n@done\n";

    #[test]
    fn free_blocks_are_those_of_all_zones() {
        let text = "Node 0, zone      DMA      1      0      3 \nNode 0, zone    DMA32     10      2      4 \n";
        let names = [
            ("nr_free_blocks_0", 11),
            ("nr_free_blocks_1", 2),
            ("nr_free_blocks_2", 7),
            ("buddyinfo.node0.DMA.nr_free_blocks_0", 1),
            ("buddyinfo.node0.DMA.nr_free_blocks_1", 0),
            ("buddyinfo.node0.DMA.nr_free_blocks_2", 3),
            ("buddyinfo.node0.DMA32.nr_free_blocks_0", 10),
            ("buddyinfo.node0.DMA32.nr_free_blocks_1", 2),
            ("buddyinfo.node0.DMA32.nr_free_blocks_2", 4),
        ];
        let wanted: Vec<(String, u64)> =
            names.into_iter().map(|(name, nr)| (name.to_owned(), nr)).collect();
        assert_eq!(free_blocks(text), Ok(wanted));
        assert!(free_blocks("Node 0, zone DMA x").is_err());
        assert_eq!(free_blocks(""), Ok(Vec::new()));
    }

    #[test]
    fn a_report_is_read() {
        let report = parse(SAMPLE.as_bytes()).unwrap();
        assert_eq!(report.last_step, "mounting disks");
        assert_eq!(report.missing, ["vm.extra_free_kbytes"]);
        assert_eq!(report.rejected, ["vm.swappiness = 900: Invalid argument"]);
        assert_eq!(report.switches, ["vm.soft_limit_reclaim"]);
        assert_eq!(report.texts["/proc/version"], "Linux\n");
        assert!(report.ready && report.done && report.failed.is_none());
        let snapshot = &report.snapshots[0];
        assert_eq!((snapshot.task, snapshot.phase, snapshot.ns), (2, 1, 77));
        assert_eq!(
            snapshot.counts,
            [
                ("nr_free_pages".to_owned(), 10),
                ("pgfault".to_owned(), 3),
                ("psi.memory.some".to_owned(), 70),
                ("psi.memory.full".to_owned(), 60),
                ("mm_vmscan_kswapd_wake".to_owned(), 4)
            ]
        );
        let cpu = CpuTimes { before: 5, after: 6, kswapd: 7, writeback: 8, ended: 80 };
        assert_eq!(snapshot.cpu, Some(cpu));
        assert_eq!(report.programs[&(2, 1)], (900, 30));
        assert_eq!(snapshot.usage.bytes, 5);
        let of_group: Vec<(&str, u64)> =
            snapshot.groups[&1].iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(
            of_group,
            [("anon", 4096), ("pgfault", 7), ("memory.current", 8192), ("memory.events.low", 3)]
        );
        assert_eq!(snapshot.resident, [("anon_hot_resident".to_owned(), 9)]);
        assert_eq!(snapshot.errno, Some(22));
        assert_eq!(snapshot.blocks, [9, 4]);
        let latencies_ns = [1, 2, 3, 4, 5];
        let served = ServiceStats { requests: 9, late: 8, dropped: 7, sum_ns: 6, latencies_ns };
        assert_eq!(snapshot.served, Some(served));
        assert_eq!(report.ended, [(2, "signal 9".to_owned())]);
        assert!(contains_line(SAMPLE.as_bytes(), "@ready") && !contains_line(b"@ready", "@ready"));
    }

    #[test]
    fn caches_of_a_snapshot_are_its_own() {
        let caches = "slabinfo - version: 2.1\n# name <active_objs> ...\n\
            dentry 3 21 192 21 1 : tunables 0 0 0 : slabdata 1 1 0\n";
        let of = |caches: &str| {
            let text = format!("@snap run-end 0 0 1\n@text slabinfo {}\n", caches.len());
            parse(format!("{text}{caches}\n@snapped\n").as_bytes())
        };
        let report = of(caches).unwrap();
        let cache = &report.snapshots[0].slabs[0];
        assert_eq!((cache.name.as_str(), cache.active_objects, cache.objects), ("dentry", 3, 21));
        assert!(of("dentry three\n").is_err());
    }

    #[test]
    fn a_report_cut_anywhere_is_read_to_there() {
        for end in 0..SAMPLE.len() {
            let report = parse(&SAMPLE.as_bytes()[..end]).unwrap();
            assert!(!report.done, "cut at {end}");
        }
    }

    #[test]
    fn garbage_has_a_place() {
        let mut text = SAMPLE.to_owned();
        text.insert_str(12, "Kernel panic\n");
        let garbage = parse(text.as_bytes()).unwrap_err();
        assert_eq!(garbage.at, 12);
        assert!(garbage.problem.contains("Kernel panic"), "{}", garbage.problem);
        for broken in [
            "@pagetide 9\n",
            "@snapped\n",
            "@snap x y z\n",
            "@text a\n",
            "@usage 1\n",
            "@text a 99999999999999999999999\n",
            "@snap x 0 0 0\n@text group x memory.stat 7\nanon 1\n\n",
            "@snap x 0 0 0\n@text group 0 memory.stat 7\nanon x\n\n",
            "\u{0}\u{1}\n",
        ] {
            assert!(parse(broken.as_bytes()).is_err(), "{broken:?}");
        }
    }
}
