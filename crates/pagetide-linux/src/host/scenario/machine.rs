//! Writes `[machine]`: zones with exact page counts, disks, swap.
//!
//! Invariant: free <= managed <= present in every zone. `free` is either what would be free without
//! programs, or what is free now: see [`HostImportOptions::as_is`].

use super::page::ScenarioText;
use super::HostImportOptions;
use crate::host::block::BlockDevice;
use crate::host::compressed_swap::HostZswap;
use crate::host::free::ZoneUsage;
use crate::host::layout::{NodeLayout, ZoneLayout};
use crate::host::marks::{HostWatermarks, ReadMarks, WatermarkRule};
use crate::host::note::{shown, ImportNote};
use crate::host::number::{plural, show_bytes};
use crate::host::pagetypeinfo::CMA;
use crate::host::plain_names::NameAllocator;
use crate::host::snapshot::HostSnapshot;
use crate::host::swaps::HostSwap;
use pagetide_core::swap::compressor::Compressor;
use pagetide_scenario::model::FreeLists;
use pagetide_scenario::names::{DiskModel, NameSet, ZoneName};

/// Maximum number of disks; more would add no information.
const DISKS_MAX: usize = 32;
/// Maximum pages of swap.
const SWAP_PAGES_MAX: u64 = 1 << 29;
/// Order of a huge page.
const HUGE_ORDER: usize = 9;

/// Writes the rest of `[machine]`; returns the pages that are free when the run starts.
pub(super) fn write(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    nodes: &[NodeLayout],
    marks: &ReadMarks,
    notes: Vec<ImportNote>,
    options: HostImportOptions<'_>,
) -> u64 {
    let free = zones(page, host, nodes, marks, notes, options);
    let names = disks(page, &host.disks);
    let has_disk_swap = swap(page, host, &names);
    zswap(page, host.zswap.as_ref(), has_disk_swap);
    free
}

fn zones(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    nodes: &[NodeLayout],
    marks: &ReadMarks,
    notes: Vec<ImportNote>,
    options: HostImportOptions<'_>,
) -> u64 {
    page.line("");
    notes.into_iter().for_each(|note| page.comment_note(note));
    let mut free = 0u64;
    let is_single = nodes.len() == 1;
    if options.as_is {
        page.comment(
            "`free` is the memory that is free now (--as-is). Idle tasks at the end have the page cache \
             and anonymous memory; a run cannot reclaim the rest.",
        );
    } else {
        page.comment(
            "`free` is the memory that would be free without programs: managed memory minus what the \
             kernel keeps. --as-is writes the memory that is free now.",
        );
    }
    comment_initial_state(page, host, nodes);
    for node in nodes {
        if !is_single {
            page.line("");
            page.line("[[machine.node]]");
            page.comment(&format!("node {}", node.number));
        }
        for zone in &node.zones {
            page.line("");
            let table = if is_single { "machine.zone" } else { "machine.node.zone" };
            free = free.saturating_add(self::zone(page, table, zone, options));
        }
    }
    compare_marks(page, marks, nodes);
    let highs = nodes.iter().flat_map(|node| &node.zones).filter_map(|zone| zone.marks);
    let high = highs.fold(0u64, |sum, marks| sum.saturating_add(marks.high));
    if free < high {
        let message = format!(
            "{} free is less than the high watermarks of all zones ({}): a run starts with reclaim",
            page.show(free),
            page.show(high)
        );
        page.comment_note(ImportNote::new("/proc/zoneinfo", message));
    }
    free
}

fn zone(
    page: &mut ScenarioText,
    table: &str,
    zone: &ZoneLayout,
    options: HostImportOptions<'_>,
) -> u64 {
    let ZoneUsage { free, in_pagesets, programs, cache, returned, held } = zone.usage;
    let start = if options.as_is { free } else { zone.usage.free_without_programs() };
    page.line(&format!("[[{table}]]"));
    page.line(&format!("name = \"{}\"", zone.name.name()));
    page.line(&format!("present = \"{} pages\"", zone.present));
    page.line(&format!("managed = \"{} pages\" # {}", zone.managed, page.show(zone.managed)));
    let start = zone.free_lists.as_ref().map_or(start, FreeLists::pages);
    match &zone.free_lists {
        Some(lists) => free_lists(page, lists),
        None => {
            page.line(&format!("free = \"{start} pages\" # {}", page.show(start)));
            if zone.cma.pages > 0 {
                let shown = page.show(zone.cma.pages);
                page.line(&format!("cma = \"{} pages\" # {shown}", zone.cma.pages));
            }
        }
    }
    if zone.managed > 0 {
        page.comment(&format!(
            "now: free {}, in per-CPU lists {}, programs {}, page cache {}, reclaimable slab and page \
             tables {}, kernel (permanent) {}",
            page.show(free),
            page.show(in_pagesets),
            page.show(programs),
            page.show(cache),
            page.show(returned),
            page.show(held)
        ));
    }
    if let Some(HostWatermarks { min, low, high }) = zone.marks {
        page.comment(&format!("watermarks now: min {min}, low {low}, high {high} pages"));
    }
    start
}

/// The current free blocks from /proc/pagetypeinfo.
fn free_lists(page: &mut ScenarioText, lists: &FreeLists) {
    let types = ["unmovable", "movable", "reclaimable", "cma"];
    let types = &types[..if lists.pageblocks[CMA] > 0 { 4 } else { 3 }];
    for ((name, blocks), pageblocks) in types.iter().zip(lists.blocks).zip(lists.pageblocks) {
        page.line(&format!("{name} = {{ pageblocks = {pageblocks}, blocks = {blocks:?} }}"));
    }
}

/// Notes about state that a run does not start with: fragmentation, huge pages, slab, earlier
/// reclaim.
fn comment_initial_state(page: &mut ScenarioText, host: &HostSnapshot, nodes: &[NodeLayout]) {
    let sum = |order| {
        host.free_blocks.iter().fold(0u64, |sum, zone| sum.saturating_add(zone.pages_from(order)))
    };
    let (all, huge) = (sum(0), sum(HUGE_ORDER));
    let mut with_memory = nodes.iter().flat_map(|node| &node.zones).filter(|zone| zone.managed > 0);
    if all > 0 && with_memory.any(|zone| zone.free_lists.is_none()) {
        let percent = u128::from(huge) * 100 / u128::from(all);
        page.comment(&format!(
            "A run starts with unfragmented memory; now {percent} % of the free memory is in blocks \
             of at least {} pages.",
            1 << HUGE_ORDER
        ));
    }
    let huge_pages = host.memory.get("HugePages_Total").unwrap_or(0);
    if huge_pages > 0 {
        page.comment(&format!(
            "The kernel holds {huge_pages} huge pages of {} kB (vm.nr_hugepages); a run cannot free them.",
            host.memory.get("Hugepagesize").unwrap_or(0)
        ));
    }
    let mut slabs: Vec<_> = host.slabs.iter().filter(|slab| slab.pages() > 0).collect();
    slabs.sort_by(|a, b| b.pages().cmp(&a.pages()).then_with(|| a.name.cmp(&b.name)));
    if !slabs.is_empty() {
        let largest = slabs.iter().take(3);
        let largest: Vec<String> = largest
            .map(|slab| format!("{} {}", shown(&slab.name), page.show(slab.pages())))
            .collect();
        page.comment(&format!("Largest slab caches now: {}.", largest.join(", ")));
    }
    since_boot(page, host);
}

/// Whether the system has been short of memory since boot.
fn since_boot(page: &mut ScenarioText, host: &HostSnapshot) {
    if host.counters.is_empty() {
        return;
    }
    // Before 4.8 each zone had a counter of scans; since then each has one of stalls.
    let sum = |event: &str| {
        let counters = host
            .counters
            .iter()
            .filter(|(name, _)| name.starts_with(event) && name != "pgscan_direct_throttle");
        counters.fold(0u64, |sum, (_, count)| sum.saturating_add(*count))
    };
    page.comment(&format!(
        "Since boot: {} pages scanned by kswapd, {} by {} stalled allocations; {} pages swapped out; \
         {} OOM kills.",
        sum("pgscan_kswapd"),
        sum("pgscan_direct"),
        sum("allocstall"),
        sum("pswpout"),
        sum("oom_kill")
    ));
}

/// Differences up to this fraction of the high watermark need no note.
const SLIGHT: u64 = 50;

/// Adds a note if the watermarks of a run will differ from the system's.
fn compare_marks(page: &mut ScenarioText, read: &ReadMarks, nodes: &[NodeLayout]) {
    let Some(kbytes) = read.min_free_kbytes else { return };
    let rule = WatermarkRule {
        min_free_pages: page.size.pages_in_kbytes(kbytes),
        scale_factor: read.scale_factor,
    };
    let zones = || nodes.iter().flat_map(|node| &node.zones);
    let is_highmem = |zone: &ZoneLayout| zone.name == ZoneName::HighMem;
    let low = zones().filter(|zone| !is_highmem(zone));
    let total = low.fold(0u64, |sum, zone| sum.saturating_add(zone.managed));
    let compared = zones().filter_map(|zone| {
        let ours = rule.marks(zone.managed, total);
        let ours = if is_highmem(zone) { ours.of_highmem(zone.managed) } else { ours };
        zone.marks.map(|marks| (marks.distance(ours), zone.name, marks, ours))
    });
    let worst = compared.max_by_key(|(distance, ..)| *distance);
    if let Some((distance, name, theirs, ours)) = worst.filter(|(distance, ..)| *distance > 0) {
        let message = format!(
            "zone {} has the watermarks {}, {} and {} pages and will have {}, {} and {}: the kernel \
             computed them with other memory, or by another rule",
            name.name(),
            theirs.min,
            theirs.low,
            theirs.high,
            ours.min,
            ours.low,
            ours.high
        );
        page.line("");
        let note = ImportNote::new("/proc/zoneinfo", message);
        // Memory freed by boot after it computed the watermarks makes a small difference on every
        // machine.
        if distance > theirs.high / SLIGHT {
            page.comment_note(note);
        } else {
            page.comment(&note.to_string());
        }
    }
}

/// Writes the disks; returns each with its name in the scenario.
fn disks<'h>(page: &mut ScenarioText, all: &'h [BlockDevice]) -> Vec<(&'h BlockDevice, String)> {
    page.line("");
    let mut names = NameAllocator::new(&[]);
    let real: Vec<&BlockDevice> = all.iter().filter(|disk| disk.is_real()).collect();
    let left_out = all.len() - real.len();
    if left_out > 0 {
        let what = plural(left_out, "device");
        page.comment(&format!("{what} of /sys/block left out: loops, RAM disks and the like"));
    }
    if real.is_empty() {
        page.comment_note(ImportNote::new(
            "/sys/block",
            "no disks are known; the scenario has one SSD",
        ));
        page.line("[[machine.disk]]");
        page.line("name = \"disk\"");
        page.line("model = \"ssd\"");
        return Vec::new();
    }
    if real.len() > DISKS_MAX {
        let message = format!("of {} disks the scenario has the first {DISKS_MAX}", real.len());
        page.comment_note(ImportNote::new("/sys/block", message));
    }
    let mut kept = Vec::new();
    for disk in real.into_iter().take(DISKS_MAX) {
        let name = names.name(&disk.name.replace('/', "_"));
        if disk.is_virtual() && disk.model() == DiskModel::Rotating {
            let message = "a virtual disk reports itself as rotating regardless of the physical disk: set `model`";
            page.comment_note(ImportNote::new(format!("/sys/block/{name}"), message));
        }
        page.line("[[machine.disk]]");
        page.line(&format!("name = \"{name}\""));
        page.line(&format!("model = \"{}\"", disk.model().name()));
        page.line("");
        kept.push((disk, name));
    }
    kept
}

/// Writes the swap areas; returns whether one of them is on a disk.
fn swap(page: &mut ScenarioText, host: &HostSnapshot, disks: &[(&BlockDevice, String)]) -> bool {
    let of = |area: &HostSwap| {
        let device = area.device()?;
        disks.iter().find(|(disk, _)| disk.contains_device(device)).map(|(_, name)| name.as_str())
    };
    let areas = host.swaps.iter().filter(|area| area.size_kb >= page.size.kbytes_of(1));
    let areas: Vec<&HostSwap> = areas.collect();
    let mut has_disk_swap = false;
    let mut left = SWAP_PAGES_MAX;
    for area in &areas {
        let name = shown(&area.name);
        let pages = page.size.pages_in_kbytes(area.size_kb).min(left);
        left -= pages;
        if pages < page.size.pages_in_kbytes(area.size_kb) {
            let message = match pages {
                0 => format!("{name} is left out: a scenario has at most 2^29 pages of swap"),
                _ => format!("{name} is reduced to {}, the maximum", page.show(pages)),
            };
            page.comment_note(ImportNote::new("/proc/swaps", message));
        }
        if pages == 0 {
            continue;
        }
        page.line(if areas.len() == 1 { "[machine.swap]" } else { "[[machine.swap]]" });
        let key = if area.is_zram() { "zram" } else { "size" };
        page.line(&format!("{key} = \"{pages} pages\" # {}: {name}", page.show(pages)));
        if areas.len() > 1 {
            let highest = i32::from(i16::MAX);
            page.line(&format!("priority = {}", area.priority.clamp(-highest, highest)));
        }
        if area.is_zram() {
            zram(page, host, area, disks);
            continue;
        }
        has_disk_swap = true;
        match of(area) {
            Some(disk) => page.line(&format!("disk = \"{disk}\"")),
            None if disks.len() > 1 => {
                let message = format!("the disk of {name} is unknown; the first disk is used");
                page.comment_note(ImportNote::new("/proc/swaps", message));
            }
            None => {}
        }
    }
    has_disk_swap
}

/// Writes the algorithm of the device of a swap area, the most memory that it takes, and its disk.
fn zram(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    area: &HostSwap,
    disks: &[(&BlockDevice, String)],
) {
    let name = area.device().unwrap_or_default();
    let device = host.zrams.iter().find(|device| device.name == name);
    let algorithm = device.and_then(|device| device.algorithm.as_deref());
    match algorithm.map(|algorithm| (algorithm, is_compressor(algorithm))) {
        Some((algorithm, true)) => page.line(&format!("algorithm = \"{algorithm}\"")),
        Some((algorithm, false)) => {
            let place = format!("/sys/block/{}/comp_algorithm", shown(name));
            let message = "a scenario does not have this algorithm; lzo-rle is used";
            let text = shown(algorithm);
            page.comment_note(ImportNote { text, ..ImportNote::new(place, message) });
        }
        None => {
            let message =
                format!("{}: its algorithm is unknown; lzo-rle is used", shown(&area.name));
            page.comment_note(ImportNote::new("/proc/swaps", message));
        }
    }
    if let Some(limit) = device.and_then(|device| device.mem_limit) {
        page.line(&format!("mem_limit = {limit} # {}", show_bytes(limit)));
    }
    if let Some(backing) = device.and_then(|device| device.backing.as_deref()) {
        let place = format!("/sys/block/{}/backing_dev", shown(name));
        let of_disk = backing.strip_prefix("/dev/").and_then(|part| {
            disks.iter().find(|(disk, _)| disk.contains_device(part)).map(|(_, name)| name)
        });
        let text = shown(backing);
        let message = match of_disk {
            Some(disk) => {
                page.line(&format!("backing = \"{disk}\""));
                "its size is taken to be that of the zram device, and no page is there"
            }
            None => "the disk behind it is left out: it is none of the disks",
        };
        page.comment_note(ImportNote { text, ..ImportNote::new(place, message) });
    }
}

fn is_compressor(name: &str) -> bool {
    Compressor::ALL.iter().any(|one| one.name() == name)
}

fn zswap(page: &mut ScenarioText, zswap: Option<&HostZswap>, has_disk_swap: bool) {
    let Some(zswap) = zswap else { return };
    let place = "/sys/module/zswap/parameters";
    page.line("");
    if !has_disk_swap {
        let message = "zswap is on, but no swap area is on a disk: it is left out";
        page.comment_note(ImportNote::new(place, message));
        return;
    }
    page.line("[machine.zswap]");
    let percents = [
        ("max_pool_percent", zswap.max_pool_percent),
        ("accept_threshold_percent", zswap.accept_threshold_percent),
    ];
    for (key, percent) in percents {
        percent.into_iter().for_each(|percent| page.line(&format!("{key} = {percent}")));
    }
    match zswap.compressor.as_deref() {
        Some(name) if is_compressor(name) => page.line(&format!("compressor = \"{name}\"")),
        Some(name) => {
            let message = "a scenario does not have this algorithm; lzo is used";
            let note = ImportNote::new(format!("{place}/compressor"), message);
            page.comment_note(ImportNote { text: shown(name), ..note });
        }
        None => {}
    }
    zswap.is_shrinker_on.into_iter().for_each(|is_on| page.line(&format!("shrinker = {is_on}")));
}
