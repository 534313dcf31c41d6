//! Fuzz functions for files of a host system and for reports of the guest. The fuzz targets in
//! fuzz_targets/ run them, and so does the test crates/pagetide-linux/tests/suite/corpus.rs over the
//! stored corpus.
//!
//! No function may panic, notes are single lines, and generated scenarios load.

use pagetide_core::config::Sysctl;
use pagetide_linux::console;
use pagetide_linux::counts::{record, RunName};
use pagetide_linux::host::block::BlockDevice;
use pagetide_linux::host::cgroup::{self, CgroupVersion, HostGroup};
use pagetide_linux::host::error::HostError;
use pagetide_linux::host::note::ImportNote;
use pagetide_linux::host::scenario::{write, HostImportOptions};
use pagetide_linux::host::snapshot::HostSnapshot;
use pagetide_linux::host::{
    buddyinfo, meminfo, pagetypeinfo, report, slabinfo, swaps, sysctl, vmstat, zoneinfo,
};
use pagetide_linux::reference::{is_possible_memory, KernelReference};
use pagetide_linux::start::StartMemory;
use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::model::Setup;
use std::path::Path;

/// /proc/zoneinfo and /proc/buddyinfo of a system without any other file: lines of both, in any
/// order.
pub fn host_zoneinfo(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (zones, notes) = zoneinfo::parse(&text);
    check_notes(&notes);
    let (free_blocks, notes) = buddyinfo::parse(&text);
    check_notes(&notes);
    imported(&HostSnapshot { zones, free_blocks, ..HostSnapshot::default() });
}

/// A kernel log with a report. An error names a line of the log.
pub fn kernel_report(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for number in [None, Some(2)] {
        let report = match report::parse(&text, number) {
            Ok(report) => report,
            Err(HostError::BadReport { line, .. }) => {
                assert!((1..=text.lines().count()).contains(&line));
                continue;
            }
            Err(_) => continue,
        };
        check_notes(&report.notes);
        let options =
            HostImportOptions { as_is: true, report: Some(&report), ..Default::default() };
        match write(&report.snapshot(), options) {
            Ok(written) => check_notes(&written.notes),
            Err(HostError::NoMemory(_) | HostError::TooLarge { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Any other file of /proc, given to every parser.
pub fn host_proc(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    check_notes(&meminfo::parse(&text).1);
    check_notes(&vmstat::parse(&text).1);
    let (zones, notes) = buddyinfo::parse(&text);
    check_notes(&notes);
    zones.iter().for_each(|zone| assert!(zone.pages_from(0) >= zone.pages_from(9)));
    let (slabs, notes) = slabinfo::parse(&text);
    check_notes(&notes);
    slabs.iter().for_each(|slab| assert!(slab.pages() >= slab.slabs.min(slab.pages_per_slab)));
    check_notes(&swaps::parse(&text).1);
    for &sysctl in Sysctl::ALL {
        if let Err(note) = sysctl::parse(sysctl, &text) {
            check_notes(&[note]);
        }
    }
}

/// A whole system: parts that start with a line `==> NAME <==`, as head(1) prints several files.
/// NAME is a file in /proc, `block DISK`, `group 1 PATH` or `group 2 PATH`.
pub fn host_system(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut host = HostSnapshot::default();
    for part in text.split("==> ").skip(1) {
        let Some((name, text)) = part.split_once(" <==\n") else { continue };
        let notes = add(&mut host, name, text);
        host.notes.extend(notes);
    }
    check_notes(&host.notes);
    imported(&host);
}

/// Adds a part to the system and returns its notes.
fn add(host: &mut HostSnapshot, name: &str, text: &str) -> Vec<ImportNote> {
    fn take<T>(place: &mut T, (value, notes): (T, Vec<ImportNote>)) -> Vec<ImportNote> {
        *place = value;
        notes
    }
    match name {
        "release" => host.release = Some(text.to_owned()),
        "zoneinfo" => return take(&mut host.zones, zoneinfo::parse(text)),
        "meminfo" => return take(&mut host.memory, meminfo::parse(text)),
        "vmstat" => return take(&mut host.counters, vmstat::parse(text)),
        "buddyinfo" => return take(&mut host.free_blocks, buddyinfo::parse(text)),
        "pagetypeinfo" => host.types = pagetypeinfo::parse(text),
        "slabinfo" => return take(&mut host.slabs, slabinfo::parse(text)),
        "swaps" => return take(&mut host.swaps, swaps::parse(text)),
        _ => {
            if let Some(disk) = name.strip_prefix("block ") {
                let mut lines = text.lines();
                let texts = [lines.next(), lines.next(), lines.next(), lines.next()];
                let (device, notes) = BlockDevice::parse(disk, texts);
                host.disks.push(device);
                return notes;
            }
            if let Some(path) = name.strip_prefix("group 1 ") {
                return add_group(host, CgroupVersion::V1, path, text);
            }
            if let Some(path) = name.strip_prefix("group 2 ") {
                return add_group(host, CgroupVersion::V2, path, text);
            }
            let file = Sysctl::find(name);
            if let Some(sysctl) = file.filter(|sysctl| host.sysctl(*sysctl).is_none()) {
                match sysctl::parse(sysctl, text) {
                    Ok(Some(value)) => host.sysctls.push((sysctl, value)),
                    Ok(None) => {}
                    Err(note) => return vec![note],
                }
            }
        }
    }
    Vec::new()
}

/// Adds a group with lines `FILE VALUE`. Its parent is the last group with a shorter path.
fn add_group(
    host: &mut HostSnapshot,
    version: CgroupVersion,
    path: &str,
    text: &str,
) -> Vec<ImportNote> {
    let files = text.lines().filter_map(|line| line.split_once(' '));
    let (group, notes) = cgroup::parse(version, path, files);
    let parent = host.groups.iter().rposition(|other| other.path.len() < path.len());
    host.groups.push(HostGroup { parent, ..group });
    notes
}

/// A report of the guest: it parses, or the error position is inside it.
pub fn guest_report(bytes: &[u8]) {
    let report = match console::parse(bytes) {
        Ok(report) => report,
        Err(garbage) => {
            assert!(garbage.at < bytes.len() && !garbage.problem.contains(char::is_control));
            return;
        }
    };
    assert!(
        !report.done || console::contains_line(bytes, "@done") || bytes.starts_with(b"@done\n")
    );
    let name = RunName { scenario: "s", variant: "v", seed: 1 };
    if let Ok(record) = record(name, &two_tasks(), &report) {
        assert!(record.metrics.values().all(|metric| metric.value >= 0.0));
    }
    let text = |path: &str| report.texts.get(path).map(String::as_str).unwrap_or_default();
    begun(
        [text("/proc/zoneinfo"), text("/proc/pagetypeinfo"), text("/proc/slabinfo")],
        [text("/proc/sys/vm/min_free_kbytes"), text("auto-init")],
    );
}

/// The memory of a booted kernel: /proc/zoneinfo, then a line `==> pagetypeinfo <==`, then
/// /proc/pagetypeinfo, then the same for slabinfo.
pub fn start(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (zoneinfo, types) = text.split_once("==> pagetypeinfo <==\n").unwrap_or((&text, ""));
    let (types, slabs) = types.split_once("==> slabinfo <==\n").unwrap_or((types, ""));
    begun([zoneinfo, types, slabs], ["1842\n", ""]);
}

fn begun([zoneinfo, types, slabs]: [&str; 3], [min_free_kbytes, auto_init]: [&str; 2]) {
    match StartMemory::parse(zoneinfo, types, slabs, min_free_kbytes, auto_init) {
        Ok(start) if is_possible_memory(&start) => start.apply(&mut two_tasks()),
        Ok(_) | Err(_) => {}
    }
}

/// A recorded reference: if it parses, it can be applied to a setup.
pub fn reference(bytes: &[u8]) {
    let Ok(reference) = KernelReference::parse(&String::from_utf8_lossy(bytes)) else { return };
    assert_eq!(reference.records().len(), reference.seeds.len());
    let mut setup = two_tasks();
    reference.apply(&mut setup);
    assert!(setup.machine.nodes.iter().any(|node| !node.zones.is_empty()));
}

fn two_tasks() -> Setup {
    const SCENARIO: &str = "[machine]\nmemory = '1GiB'\n\
        [[task]]\nname = 'a'\nworkload = 'touch'\nsize = '1MiB'\n\
        [[task]]\nname = 'b'\nworkload = 'touch'\nsize = '1MiB'\n";
    let loaded = load_str("s.toml", SCENARIO, Path::new(""), &Overrides::default());
    loaded.expect("a valid scenario").variants.remove(0).setup
}

fn check_notes(notes: &[ImportNote]) {
    for note in notes {
        let text = note.to_string();
        assert!(!text.is_empty() && !text.contains(char::is_control), "{text:?}");
    }
}

/// Generates scenarios with both settings of the options; [`write`] also loads them.
fn imported(host: &HostSnapshot) {
    for (as_is, all_groups) in [(false, false), (true, true)] {
        match write(host, HostImportOptions { as_is, all_groups, ..HostImportOptions::default() }) {
            Ok(written) => check_notes(&written.notes),
            Err(HostError::NoMemory(_) | HostError::TooLarge { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
