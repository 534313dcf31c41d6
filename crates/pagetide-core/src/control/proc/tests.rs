//! Formats: strict parsers written from real kernels' output, applied to Pagetide's output and, if
//! this host has the file, to the host's own.

use super::*;
use crate::config::Config;
use crate::frames::node::NodeSpec;
use crate::interface::effect::{Effect, Step};
use crate::interface::outcome::Outcome;
use crate::process::page_table::{Advice, Backing};
use crate::process::Machine;
use crate::process::ProcessCall;
use crate::stats::psi::TaskState;
use crate::swap::SwapOptions;
use crate::units::{Cpu, MemcgId, NodeId, PAGE_SIZE};
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::{format, vec};

/// The host's own file, if the host runs Linux 6 and has it.
fn host(name: &str) -> Option<String> {
    let version = std::fs::read_to_string("/proc/version").ok()?;
    let text = std::fs::read_to_string(format!("/proc/{name}")).ok()?;
    version.starts_with("Linux version 6.").then_some(text)
}

fn drive(machine: &mut Machine, mut call: ProcessCall) {
    let mut now = 0;
    loop {
        now += 1_000_000;
        let (step, effects) = machine.step(&mut call, Cpu(0), now);
        let mut todo = vec![];
        effects.drain_into(&mut todo);
        let mut at = 0;
        while at < todo.len() {
            if let Effect::Submit(io) = todo[at] {
                machine.io_done(io, true, Cpu(0), now).drain_into(&mut todo);
            }
            at += 1;
        }
        match step {
            Step::Done(Outcome::Got(_) | Outcome::Minor | Outcome::Major) => return,
            Step::Done(outcome) => panic!("{outcome:?}"),
            Step::Continue | Step::Wait(_) => {}
        }
    }
}

/// A small machine under pressure: swapped anonymous memory, clean and dirty cache, two groups.
fn used_machine() -> Machine {
    let mut machine =
        Machine::new(&[NodeSpec::x86_64(32 << 20, 0, 0)], 2, Config::default()).unwrap();
    machine.swapon(SwapOptions::new(16384));
    let group = machine.create_memcg("group".into(), Machine::ROOT).unwrap();
    let child = machine.create_memcg("child".into(), group).unwrap();
    let clean = machine.create_file(512 * PAGE_SIZE, true).unwrap();
    let dirty = machine.create_file(64 * PAGE_SIZE, true).unwrap();
    let mm = machine.create_mm(Machine::ROOT).unwrap();
    let len = 512 * PAGE_SIZE;
    drive(&mut machine, ProcessCall::read(mm, NodeId(0), clean, 0, len, Default::default()));
    for (memcg, pages) in [(child, 9000), (group, 500)] {
        let mm = machine.create_mm(memcg).unwrap();
        let vma = machine.mmap(mm, Backing::Anon, pages, Advice::Normal, false).unwrap();
        for page in 0..pages {
            drive(&mut machine, ProcessCall::fault(mm, NodeId(0), vma, page, true));
        }
    }
    let mm = machine.create_mm(group).unwrap();
    drive(&mut machine, ProcessCall::write(mm, NodeId(0), dirty, 0, 16 * PAGE_SIZE));
    machine.audit().unwrap();
    assert!(machine.swap().used() > 0 && machine.mem.global_node_stat(NodeStat::NrDirty) > 0);
    machine
}

/// `name value` lines.
fn read_pairs(text: &str) -> Vec<(&str, u64)> {
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| {
            let (name, value) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
            let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(!name.is_empty() && name.chars().all(word), "{line:?}");
            assert!(value.chars().all(|c| c.is_ascii_digit()), "{line:?}");
            (name, value.parse().unwrap())
        })
        .collect()
}

/// Asserts that the `names` that are in `reference` have the same order there.
fn assert_same_order<'a>(names: impl Iterator<Item = &'a str>, reference: &[&str]) {
    let places: Vec<(usize, &str)> = names
        .filter_map(|name| Some((reference.iter().position(|&known| known == name)?, name)))
        .collect();
    for pair in places.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{} stands before {}", pair[0].1, pair[1].1);
    }
}

#[test]
fn vmstat_has_the_kernels_names_in_the_kernels_order() {
    let machine = used_machine();
    let text = machine.proc_vmstat();
    let rows = read_pairs(&text);
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names[0], "nr_free_pages");
    let unique: BTreeMap<&str, u64> = rows.iter().copied().collect();
    assert_eq!(unique.len(), rows.len(), "a name stands twice");
    assert_same_order(names.iter().copied(), VMSTAT_ORDER);
    let end = names.iter().position(|&name| name == "nr_unstable").unwrap();
    for name in &names[..end] {
        assert!(kernel_position(name).is_some(), "{name} is not the kernel's");
    }
    for event in Event::ALL {
        assert!(unique.contains_key(event.name()), "{} is missing", event.name());
    }
    // Values from the machine, in pages.
    assert_eq!(unique["nr_free_pages"], machine.mem.nr_free_pages());
    assert_eq!(unique["nr_dirty"], unique["nr_zone_write_pending"]);
    assert_eq!(unique["nr_zone_inactive_anon"], unique["nr_inactive_anon"]);
    assert!(unique["allocstall"] > 0 || unique["mm_vmscan_kswapd_wake"] > 0);
    assert!(unique["pswpout"] > 0 && unique["nr_dirty_threshold"] > 0);
    // The host's kernel may be newer; the common names have the same order.
    if let Some(host) = host("vmstat") {
        let host: Vec<&str> = read_pairs(&host).into_iter().map(|(name, _)| name).collect();
        assert_same_order(names[..end].iter().copied(), &host);
        let common = names[..end].iter().filter(|name| host.contains(name)).count();
        assert!(common * 10 >= end * 9, "of {end} names the host has {common}");
    }
}

#[test]
fn metrics_are_vmstat() {
    let machine = used_machine();
    let text = machine.proc_vmstat();
    let rows: Vec<CounterRow> = machine.metrics().collect();
    let printed: Vec<(&str, u64)> =
        read_pairs(&text).into_iter().filter(|(name, _)| *name != "nr_unstable").collect();
    assert_eq!(rows, printed);
}

/// One zone of a zoneinfo.
#[derive(Debug, Default)]
struct ZoneInfo {
    node: u64,
    name: String,
    node_stats: Vec<(String, u64)>,
    pages: BTreeMap<String, u64>,
    protection: Vec<u64>,
    stats: Vec<(String, u64)>,
    /// count, high and batch of each CPU.
    pagesets: Vec<[u64; 3]>,
    start_pfn: Option<u64>,
}

/// `label value` after exact indentation; the value may be padded.
fn field(line: &str, indent: usize) -> Option<(&str, u64)> {
    let rest = line.strip_prefix(&" ".repeat(indent))?;
    if rest.starts_with(' ') {
        return None;
    }
    let (label, value) = rest.rsplit_once(' ')?;
    Some((label.trim_end(), value.parse().ok()?))
}

/// Parses zoneinfo in the kernel's format, and panics on anything else.
fn read_zoneinfo(text: &str) -> Vec<ZoneInfo> {
    let mut zones: Vec<ZoneInfo> = vec![];
    let mut in_node_stats = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            let (node, name) = rest.split_once(", zone ").unwrap();
            assert!(name.len() >= 8, "names are padded to 8: {line:?}");
            let zone = ZoneInfo {
                node: node.parse().unwrap(),
                name: name.trim_start().into(),
                ..ZoneInfo::default()
            };
            zones.push(zone);
            in_node_stats = false;
            continue;
        }
        let zone = zones.last_mut().expect("a zone comes first");
        if line == "  per-node stats" {
            in_node_stats = true;
        } else if let Some(free) = line.strip_prefix("  pages free     ") {
            in_node_stats = false;
            zone.pages.insert("free".into(), free.parse().unwrap());
        } else if let Some(list) = line.strip_prefix("        protection: (") {
            let list = list.strip_suffix(')').unwrap();
            zone.protection = list.split(", ").map(|value| value.parse().unwrap()).collect();
        } else if line == "  pagesets" {
            assert!(zone.pagesets.is_empty());
        } else if let Some(cpu) = line.strip_prefix("    cpu: ") {
            assert_eq!(cpu.parse(), Ok(zone.pagesets.len()));
            zone.pagesets.push([0; 3]);
        } else if let Some((label, value)) = field(line, 14) {
            let place = ["count:", "high:", "batch:"].iter().position(|known| *known == label);
            if let Some(place) = place {
                zone.pagesets.last_mut().unwrap()[place] = value;
            } else {
                assert!(["high_min:", "high_max:"].contains(&label), "{line:?}");
            }
        } else if let Some((label, value)) = field(line, 8) {
            zone.pages.insert(label.into(), value);
        } else if let Some((label, value)) = field(line, 6) {
            let name_is_padded = line.len() >= 6 + 12;
            assert!(name_is_padded, "{line:?}");
            let stats = if in_node_stats { &mut zone.node_stats } else { &mut zone.stats };
            stats.push((label.into(), value));
        } else if let Some(pfn) = line.strip_prefix("  start_pfn:           ") {
            zone.start_pfn = Some(pfn.parse().unwrap());
        } else {
            let (label, value) = field(line, 2).unwrap_or_else(|| panic!("{line:?}"));
            assert!(["vm stats threshold:", "node_unreclaimable:"].contains(&label), "{line:?}");
            assert!(value < 1 << 16);
        }
    }
    zones
}

#[test]
fn zoneinfo_reads_as_the_kernels() {
    let machine = used_machine();
    let zones = read_zoneinfo(&machine.proc_zoneinfo());
    let names: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
    assert_eq!(names, ["DMA", "DMA32", "Normal", "Movable"]);
    for (info, zone) in zones.iter().zip(&machine.mem.nodes[0].zones) {
        assert_eq!(info.node, 0);
        assert_eq!(info.pages["free"], zone.free_pages());
        assert_eq!(info.pages["min"], zone.watermark_min + zone.watermark_boost);
        assert_eq!(info.pages["boost"], zone.watermark_boost);
        assert_eq!(info.pages["managed"], zone.managed);
        assert_eq!(info.pages["present"], zone.present);
        assert_eq!(info.pages["spanned"], zone.spanned);
        assert_eq!(info.pages["cma"], 0);
        assert_eq!(info.protection, zone.lowmem_reserve);
        let populated = zone.present > 0;
        assert_eq!(info.pagesets.len(), if populated { 2 } else { 0 });
        assert_eq!(info.start_pfn, populated.then_some(zone.start_pfn.0.into()));
        assert_eq!(info.stats.len(), if populated { 8 } else { 0 });
    }
    let node_stats: BTreeMap<&str, u64> =
        zones[0].node_stats.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    for stat in NodeStat::ALL {
        assert!(node_stats.contains_key(stat.name()), "{} is missing", stat.name());
    }
    assert!(node_stats.contains_key("workingset_refault_anon"));
    assert!(!node_stats.contains_key("pgfault") && !node_stats.contains_key("nr_free_pages"));
    assert!(zones[1..].iter().all(|zone| zone.node_stats.is_empty()));
    // The zones' values add up to the node's.
    for name in ["inactive_anon", "active_anon", "inactive_file", "active_file"] {
        let zone_name = format!("nr_zone_{name}");
        let stats = zones.iter().flat_map(|zone| &zone.stats);
        let sum: u64 = stats.filter(|(stat, _)| *stat == zone_name).map(|(_, value)| value).sum();
        assert_eq!(sum, node_stats[format!("nr_{name}").as_str()], "{name}");
    }
    let pending = zones.iter().flat_map(|zone| &zone.stats);
    let pending = pending.filter(|(stat, _)| stat == "nr_zone_write_pending");
    let pending: u64 = pending.map(|(_, value)| value).sum();
    assert_eq!(pending, node_stats["nr_dirty"] + node_stats["nr_writeback"]);
}

#[test]
fn the_hosts_zoneinfo_reads_the_same_way() {
    let Some(text) = host("zoneinfo") else { return };
    let zones = read_zoneinfo(&text);
    let ours = read_zoneinfo(&used_machine().proc_zoneinfo());
    let Some(theirs) = zones.iter().find(|zone| !zone.node_stats.is_empty()) else { return };
    let names = |stats: &[(String, u64)]| -> Vec<String> {
        stats.iter().map(|(name, _)| name.clone()).collect()
    };
    let host_names = names(&theirs.node_stats);
    let host_names: Vec<&str> = host_names.iter().map(String::as_str).collect();
    assert_same_order(names(&ours[0].node_stats).iter().map(String::as_str), &host_names);
    for label in ours[0].pages.keys() {
        assert!(theirs.pages.contains_key(label), "the host has no `{label}`");
    }
    assert!(theirs.protection.len() >= ours[0].protection.len());
}

#[test]
fn several_nodes_have_a_block_each() {
    let nodes = [NodeSpec::x86_64(32 << 20, 0, 0), NodeSpec::remote(16 << 20, 0, 8 << 20)];
    let machine = Machine::new(&nodes, 2, Config::default()).unwrap();
    let zones = read_zoneinfo(&machine.proc_zoneinfo());
    assert_eq!(zones.len(), 8);
    let with_block: Vec<(u64, &str)> = zones
        .iter()
        .filter(|zone| !zone.node_stats.is_empty())
        .map(|zone| (zone.node, zone.name.as_str()))
        .collect();
    assert_eq!(with_block, [(0, "DMA"), (1, "Normal")]);
    assert_eq!(machine.proc_buddyinfo().lines().count(), 4);
    assert_eq!(machine.proc_pagetypeinfo().matches("Page block order: 9\n").count(), 2);
}

/// Node, zone and the counts of a line of buddyinfo.
fn read_buddyinfo(text: &str) -> Vec<(u64, String, Vec<u64>)> {
    text.lines()
        .map(|line| {
            let rest = line.strip_prefix("Node ").unwrap();
            let (node, rest) = rest.split_once(", zone ").unwrap();
            let (name, counts) = rest.split_at(8);
            assert!(counts.starts_with(' ') && counts.ends_with(' '), "{line:?}");
            let counts = counts.split_whitespace().map(|count| count.parse().unwrap()).collect();
            (node.parse().unwrap(), name.trim_start().into(), counts)
        })
        .collect()
}

#[test]
fn buddyinfo_counts_every_free_page() {
    let machine = used_machine();
    let text = machine.proc_buddyinfo();
    let zones = read_buddyinfo(&text);
    assert_eq!(zones.len(), 2);
    for (node, name, counts) in &zones {
        assert_eq!((*node, counts.len()), (0, 11));
        let zones = &machine.mem.nodes[0].zones;
        let zone = zones.iter().find(|zone| zone.name() == name).unwrap();
        let pages: u64 = counts.iter().enumerate().map(|(order, count)| count << order).sum();
        assert_eq!(pages, zone.free_pages());
    }
    let told = machine.free_blocks_of_zones().into_iter();
    let told: Vec<_> =
        told.map(|(node, name, blocks)| (node.0.into(), name.into(), blocks.to_vec())).collect();
    assert_eq!(told, zones);
    // The first line, exactly.
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("Node 0, zone      DMA "), "{first:?}");
    assert_eq!(first.len(), "Node 0, zone      DMA ".len() + 11 * 7);
    if let Some(host) = host("buddyinfo") {
        assert!(read_buddyinfo(&host).iter().all(|(_, _, counts)| counts.len() >= 11));
    }
}

#[test]
fn pagetypeinfo_agrees_with_buddyinfo() {
    let machine = used_machine();
    let text = machine.proc_pagetypeinfo();
    let (free, blocks) = text.split_once("\n\n").unwrap().1.split_once("\n\n").unwrap();
    assert!(text.starts_with("Page block order: 9\nPages per block:  512\n\n"));
    let head = "Free pages count per migrate type at order       0      1      2      3      4 ";
    assert!(free.starts_with(head), "{free}");
    let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in free.lines().skip(1) {
        // As in the kernel: "Node    0, zone      DMA, type    Unmovable      0 ...".
        assert_eq!(&line[..19], "Node    0, zone    ", "{line:?}");
        assert_eq!(&line[24..31], ", type ", "{line:?}");
        let name = line[16..24].trim_start().to_string();
        let counts = line[43..].split_whitespace().map(|count| count.parse::<u64>().unwrap());
        let sum = sums.entry(name).or_insert_with(|| vec![0; 11]);
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    for (_, name, counts) in read_buddyinfo(&machine.proc_buddyinfo()) {
        assert_eq!(sums[&name], counts);
    }
    let mut lines = blocks.lines();
    assert_eq!(
        lines.next(),
        Some(
            "Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      \
             Isolate "
        )
    );
    assert!(lines.next().unwrap().starts_with("Node 0, zone      DMA "));
}

/// A machine with these free blocks after boot: 100 pages, 60 pairs and 10 blocks of four in zone
/// DMA32, one block of order 9 and one of order 10 in zone DMA.
fn fragmented_machine() -> Machine {
    use crate::frames::boot::free_lists::FreeLists;
    use crate::frames::node::ZoneSpec;
    let with = |blocks: [u32; 11]| {
        let lists =
            FreeLists { blocks: [[0; 11], blocks, [0; 11], [0; 11]], pageblocks: [0, 8, 0, 0] };
        let free = blocks.iter().enumerate().map(|(order, &n)| u64::from(n) << order).sum();
        ZoneSpec { free, free_lists: Some(lists), ..ZoneSpec::all_free(8 * 512) }
    };
    let mut spec = NodeSpec::default();
    spec.zones[0] = with([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    spec.zones[1] = with([100, 60, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
    Machine::new(&[spec], 1, Config::default()).unwrap()
}

/// compaction/fragmentation.rs computes these values by hand.
#[test]
fn the_indices_of_debugfs_to_the_letter() {
    let machine = fragmented_machine();
    assert_eq!(
        machine.proc_buddyinfo(),
        "Node 0, zone      DMA      0      0      0      0      0      0      0      0      0      1      1 \n\
         Node 0, zone    DMA32    100     60     10      0      0      0      0      0      0      0      0 \n"
    );
    assert_eq!(
        machine.debugfs_extfrag_index(),
        "Node 0, zone      DMA -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 -1.000 \n\
         Node 0, zone    DMA32 -1.000 -1.000 -1.000  0.803  0.899  0.947  0.971  0.983  0.989  0.992  0.993 \n"
    );
    assert_eq!(
        machine.debugfs_unusable_index(),
        "Node 0, zone      DMA 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.333 \n\
         Node 0, zone    DMA32 0.000 0.384 0.846 1.000 1.000 1.000 1.000 1.000 1.000 1.000 1.000 \n"
    );
}

#[test]
fn long_free_lists_are_cut_as_the_kernel_cuts_them() {
    use crate::frames::gfp::{Gfp, MigrateType};
    let node = NodeSpec::x86_64(1 << 30, 0, 0);
    let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
    let mut pfns = vec![];
    while let Some(pfn) = machine.mem.alloc_fast(Cpu(0), NodeId(0), 0, Gfp::HIGHUSER_MOVABLE) {
        pfns.push(pfn);
    }
    for pfn in pfns.into_iter().filter(|pfn| pfn.0 % 2 == 0) {
        machine.mem.free_page(Cpu(0), pfn, 0);
    }
    machine.mem.drain_all();
    assert!(machine.mem.nodes[0].zones[1].pagetypeinfo(MigrateType::Movable)[0] > 100_000);
    let text = machine.proc_pagetypeinfo();
    assert!(text.contains("type      Movable >100000 "), "{text}");
}

/// Lines of meminfo: name, value, whether in kB.
fn read_meminfo(text: &str) -> Vec<(&str, u64, bool)> {
    text.lines()
        .map(|line| {
            let (name, rest) = line.split_once(':').unwrap();
            let (value, unit) = match rest.strip_suffix(" kB") {
                Some(value) => (value, true),
                None => (rest, false),
            };
            // Numbers end in column 24, unless they are too long.
            assert!(line.len() == if unit { 27 } else { 24 } || value.trim().len() > 8, "{line:?}");
            (name, value.trim_start().parse().unwrap(), unit)
        })
        .collect()
}

#[test]
fn meminfo_reads_as_the_kernels() {
    let machine = used_machine();
    let text = machine.proc_meminfo();
    let lines = read_meminfo(&text);
    let names: Vec<&str> = lines.iter().map(|(name, ..)| *name).collect();
    let kb: BTreeMap<&str, u64> = lines.iter().map(|(name, value, _)| (*name, *value)).collect();
    assert_eq!(names[..4], ["MemTotal", "MemFree", "MemAvailable", "Buffers"]);
    assert_eq!(kb["MemTotal"], machine.mem.nodes[0].managed_pages() * 4);
    assert_eq!(kb["MemFree"], machine.mem.nr_free_pages() * 4);
    assert!(kb["MemAvailable"] < kb["MemTotal"]);
    assert_eq!(kb["Active"], kb["Active(anon)"] + kb["Active(file)"]);
    assert_eq!(kb["SwapTotal"], 16384 * 4);
    assert_eq!(kb["SwapTotal"] - kb["SwapFree"], u64::from(machine.swap().used()) * 4);
    assert_eq!(kb["Dirty"], 64);
    assert_eq!(kb["Committed_AS"], 9500 * 4);
    assert!(kb["PageTables"] > 0 && kb["AnonPages"] > 0);
    let with_unit = lines.iter().filter(|(name, ..)| !name.starts_with("HugePages_"));
    assert!(with_unit.clone().all(|(_, _, unit)| *unit));
    if let Some(host) = host("meminfo") {
        let host: Vec<&str> = host_lines_of_meminfo(&host);
        assert_same_order(names.iter().copied(), &host);
        let common = names.iter().filter(|name| host.contains(name)).count();
        assert!(common * 10 >= names.len() * 9, "of {} names {common}", names.len());
    }
}

/// Names of the host's meminfo. Its lines are checked like ours, except `HardwareCorrupted`: its
/// name is too long for the columns.
fn host_lines_of_meminfo(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with("HardwareCorrupted"));
    lines.map(|line| read_meminfo(line)[0].0).collect()
}

#[test]
fn swaps_read_as_the_kernels() {
    let machine = used_machine();
    let text = machine.proc_swaps();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"));
    let line = lines.next().unwrap();
    assert_eq!(&line[..49], format!("{:<40}partition", "/dev/swap0"));
    let fields: Vec<&str> = line.split_whitespace().collect();
    let used = (u64::from(machine.swap().used()) * 4).to_string();
    assert_eq!(fields, ["/dev/swap0", "partition", "65536", &used, "-2"]);
    assert_eq!(lines.next(), None);
    let none = Machine::new(&[NodeSpec::x86_64(32 << 20, 0, 0)], 1, Config::default()).unwrap();
    assert_eq!(none.proc_swaps().lines().count(), 1);
    if let Some(host) = host("swaps") {
        assert_eq!(host.lines().next(), text.lines().next());
    }
}

#[test]
fn pressure_totals_are_brought_up_to_now() {
    let mut machine =
        Machine::new(&[NodeSpec::x86_64(32 << 20, 0, 0)], 1, Config::default()).unwrap();
    let sleeps = TaskState { stalled: true, ..TaskState::default() };
    let change = [TaskState::default(), sleeps];
    machine.psi_task_change(ROOT, Cpu(0), change, 1_000_000);
    let line = |kind, total| format!("{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
    assert_eq!(machine.proc_pressure_memory(9_000_999), line("some", 8000) + &line("full", 8000));
    // After five windows of stall the averages are at 63.2, 15.4 and 3.5 percent.
    let later = machine.proc_pressure_memory(10_001_000_000);
    assert!(later.starts_with("some avg10=63."), "{later}");
    // Reading changes nothing, and time does not go backwards.
    assert_eq!(machine.proc_pressure_memory(0), line("some", 0) + &line("full", 0));
    if let Some(host) = host("pressure/memory") {
        for (line, kind) in host.lines().zip(["some", "full"]) {
            let keys: Vec<&str> = line
                .split(' ')
                .map(|word| word.split_once('=').map_or(word, |(key, _)| key))
                .collect();
            assert_eq!(keys, [kind, "avg10", "avg60", "avg300", "total"]);
        }
    }
}

#[test]
fn memory_stat_sums_a_group_and_those_below_it() {
    let machine = used_machine();
    let stat = |id| -> BTreeMap<String, u64> {
        let text = machine.memory_stat(MemcgId(id));
        read_pairs(&text).into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    };
    let (root, group, child) = (stat(0), stat(1), stat(2));
    assert_eq!(root["anon"], machine.mem.global_node_stat(NodeStat::NrAnonPages) * PAGE_SIZE);
    // The groups have all anonymous memory; the root has the page cache that was read.
    assert_eq!(root["anon"], group["anon"]);
    assert_eq!(root["pagetables"], group["pagetables"]);
    assert!(root["file"] > group["file"] && group["anon"] > child["anon"]);
    assert_eq!((group["file_dirty"], child["file_dirty"]), (16 * PAGE_SIZE, 0));
    for name in ["inactive_anon", "active_anon", "pgfault", "swapcached"] {
        assert!(group[name] >= child[name], "{name}");
    }
    assert_eq!(group["pgfault"], 9500);
    assert_eq!(root["pgscan"], root["pgscan_kswapd"] + root["pgscan_direct"]);
    assert_eq!(
        root["pgsteal"],
        machine.mem.vmstat.get(Event::PgstealDirect) + machine.mem.vmstat.get(Event::PgstealKswapd)
    );
    assert_same_order(
        machine.memory_stat(Machine::ROOT).lines().map(|line| line.split_once(' ').unwrap().0),
        &[
            "anon",
            "file",
            "kernel",
            "pagetables",
            "file_mapped",
            "inactive_anon",
            "pgscan",
            "pgfault",
        ],
    );
    assert_eq!(machine.memory_stat(MemcgId(3)), "");
    assert_eq!(machine.memory_stat(MemcgId::NONE), "");
}

#[test]
fn workingset_nodes_are_the_nodes_that_hold_only_shadows() {
    let machine = used_machine();
    let nodes = machine.metrics().find(|(name, _)| *name == "workingset_nodes").unwrap().1;
    let files = machine.owners.files.iter();
    let found = files.flat_map(|file| file.leaf_nodes().map(move |(index, _)| (file, index)));
    let found = found.filter(|(file, index)| file.has_only_shadows(*index)).count() as u64;
    assert_eq!(nodes, found);
    assert!(nodes > 0, "no page cache was evicted");
}

/// A 32-bit machine: 16 MiB of CMA in zone Normal, which has 64 MiB; 128 MiB of HighMem.
fn machine_of_32_bits() -> Machine {
    use crate::frames::node::ZoneSpec;
    let mut spec = NodeSpec::default();
    spec.zones[2] = ZoneSpec { cma: 4096, ..ZoneSpec::all_free(16_384) };
    spec.zones[3] = ZoneSpec { is_highmem: true, ..ZoneSpec::all_free(32_768) };
    Machine::new(&[spec], 1, Config::default()).unwrap()
}

#[test]
fn cma_and_highmem_have_lines_of_their_own() {
    let machine = machine_of_32_bits();
    let text = machine.proc_meminfo();
    let kb: BTreeMap<&str, u64> =
        read_meminfo(&text).into_iter().map(|(name, kb, _)| (name, kb)).collect();
    assert_eq!((kb["CmaTotal"], kb["CmaFree"]), (16 << 10, 16 << 10));
    assert_eq!((kb["HighTotal"], kb["HighFree"]), (128 << 10, 128 << 10));
    assert_eq!((kb["LowTotal"], kb["LowFree"]), (64 << 10, 64 << 10));
    let zones = machine.proc_zoneinfo();
    assert!(zones.contains("cma      4096\n") && zones.contains("nr_free_cma  4096\n"));
    assert!(zones.contains("zone  HighMem\n") && !zones.contains("Movable"), "{zones}");
    assert!(machine.proc_vmstat().contains("\nnr_free_cma 4096\n"));
    let types = machine.proc_pagetypeinfo();
    let row =
        "zone   Normal, type          CMA      0      0      0      0      0      0      0      \
               0      0      0      4 \n";
    assert!(types.contains(row), "{types}");
    assert!(types.contains("Reclaimable   HighAtomic          CMA      Isolate \n"), "{types}");
    let usual = used_machine();
    for text in [usual.proc_meminfo(), usual.proc_pagetypeinfo(), usual.proc_vmstat()] {
        assert!(!text.to_lowercase().contains("cma") && !text.contains("HighT"), "{text}");
    }
}

#[test]
fn highmem_is_not_dirtyable() {
    let machine = machine_of_32_bits();
    let low = machine.mem.nodes[0].zones[2].managed;
    let (background, threshold) = machine.dirty_limits();
    // vm.dirty_background_ratio is 10, vm.dirty_ratio is 20.
    assert!(threshold <= low / 5 && threshold > low / 6, "{threshold} of {low}");
    assert!(background <= low / 10);
}
