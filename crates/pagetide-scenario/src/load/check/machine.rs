//! Checks `[machine]` and `[[file]]`: sizes must be possible, and disks must exist.

use super::free_lists;
use super::latency;
use super::names::{require_key, NameIndex};
use super::MACHINE_PAGES_MAX;
use crate::load::decode::{Int, Size};
use crate::load::raw;
use crate::load::span::{ProblemSink, SourceSpan, Spanned, SpannedProblem};
use crate::load::units::show_size;
use crate::model::{DiskFaults, DiskSetup, MachineSetup, NodeSetup, Swap, ZoneSetup, ZramSetup};
use crate::names::{Compressor, DiskModel, NameSet, ZoneName};
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zswap::ZswapOptions;
use std::path::PathBuf;

/// Name of the disk of a machine without `[[machine.disk]]`.
const DEFAULT_DISK: &str = "disk";
const NODES_MAX: usize = 64;
/// Largest zone DMA, in bytes.
const ZONE_DMA_MAX: u64 = 16 << 20;

pub(super) fn check<'a>(
    raw: &'a raw::ScenarioTable,
    at: SourceSpan,
    sink: &mut ProblemSink,
) -> (MachineSetup, NameIndex<'a>) {
    let mut disks = NameIndex::new("disk");
    let page_size = sink.page_size;
    let empty = || MachineSetup { cpus: 1, page_size, ..MachineSetup::default() };
    let example = "write [machine] and then memory = \"2GiB\"";
    let Some(machine) = &raw.machine else {
        if raw.bad.is_empty() {
            sink.hinted(at, "there is no [machine]", example);
        }
        disks.is_incomplete = true;
        return (empty(), disks);
    };
    let mut checked = empty();
    checked.cpus = machine.cpus.as_ref().map_or(1, |cpus| cpus.value.0 as u16);
    checked.kmem_accounting = machine.kmem_accounting.as_ref().is_none_or(|on| on.value);
    checked.memory_recursiveprot = machine.memory_recursiveprot();
    checked.init_on_alloc = machine.init_on_alloc.as_ref().map(|on| on.value);
    checked.costs = machine.costs.as_ref().map(|costs| costs.check(sink)).unwrap_or_default();
    checked.nodes = check_nodes(machine, sink);
    disks.is_incomplete = machine.bad.contains(&"disk");
    match machine.disk.as_deref() {
        None | Some([]) => {
            checked.disks.push(DiskSetup::new(DEFAULT_DISK, DiskModel::Ssd));
            disks.insert(DEFAULT_DISK, machine.at, 0, sink);
        }
        Some(list) => {
            for disk in list {
                let index = checked.disks.len();
                match &disk.name {
                    Some(name) => disks.insert(&name.value.0, name.span, index, sink),
                    None => disks.is_incomplete = true,
                }
                let files = &mut checked.latency_files;
                checked.disks.push(check_disk(disk, files, sink));
            }
        }
    }
    checked.zswap = machine.zswap.as_ref().map(|zswap| check_zswap(&zswap.0));
    if let Some(content) = &machine.content {
        checked.content = content.check(ContentMix::DEFAULT, sink);
    }
    if let Some(swap) = &machine.swap {
        checked.swap = swap.0.iter().filter_map(|area| check_swap(area, &disks, sink)).collect();
        let bytes = checked.swap.iter().fold(0u64, |sum, area| sum.saturating_add(area.size));
        let limit = sink.page_size.bytes_of(MACHINE_PAGES_MAX);
        if let Some(extra) = swap.0.get(SWAP_AREAS_MAX) {
            let message = format!("{} swap areas are too many", swap.0.len());
            sink.hinted(extra.at, message, format!("Linux has at most {SWAP_AREAS_MAX}"));
            checked.swap.truncate(SWAP_AREAS_MAX);
        }
        if let Some(last) = swap.0.last().filter(|_| swap.0.len() > 1 && bytes > limit) {
            let hint = format!("they have at most {} together", show_size(limit));
            sink.hinted(last.at, "the swap areas are too large", hint);
        }
    }
    let areas = machine.swap.iter().flat_map(|swap| &swap.0);
    let has_disk_swap = areas.into_iter().any(|area| area.zram.is_none());
    let is_known = !machine.bad.contains(&"swap");
    if let Some(zswap) = machine.zswap.as_ref().filter(|_| is_known && !has_disk_swap) {
        let hint = "its pages have slots there: write, for example, swap = \"4GiB\"";
        sink.hinted(zswap.0.at, "zswap needs a swap area on a disk", hint);
    }
    (checked, disks)
}

fn check_nodes(machine: &raw::MachineTable, sink: &mut ProblemSink) -> Vec<NodeSetup> {
    let Some(nodes) = machine.node.as_deref().filter(|nodes| !nodes.is_empty()) else {
        let node = raw::MemoryNode {
            at: machine.at,
            bad: machine.bad.clone(),
            memory: machine.memory.clone(),
            reserved: machine.reserved.clone(),
            movable: machine.movable.clone(),
            zone: machine.zone.clone(),
        };
        let what = "the machine";
        let mut pages = 0;
        return check_node(&node, what, &mut pages, sink).into_iter().collect();
    };
    for value in [&machine.memory, &machine.reserved, &machine.movable].into_iter().flatten() {
        let hint = "write this key in each [[machine.node]]";
        sink.hinted(value.span, "the machine has [[machine.node]]", hint);
    }
    if let Some(zone) = machine.zone.as_deref().and_then(<[_]>::first) {
        let hint = "write [[machine.node.zone]]";
        sink.hinted(zone.at, "the machine has [[machine.node]]", hint);
    }
    if let Some(node) = nodes.get(NODES_MAX) {
        sink.error(node.at, format!("a machine has at most {NODES_MAX} nodes"));
        return Vec::new();
    }
    let mut pages = 0;
    nodes.iter().filter_map(|node| check_node(node, "the node", &mut pages, sink)).collect()
}

/// Checks a node; adds its pages to `pages`, the machine's total.
fn check_node(
    node: &raw::MemoryNode,
    what: &str,
    pages: &mut u64,
    sink: &mut ProblemSink,
) -> Option<NodeSetup> {
    let zones = check_zones(node, sink);
    if zones.is_empty() && node.zone.as_ref().is_some_and(|zones| !zones.is_empty()) {
        return None;
    }
    let memory = if zones.is_empty() {
        require_key(&node.memory, "memory", (node.at, &node.bad), what, "\"2GiB\"", sink)?.clone()
    } else {
        let present: u64 = zones.iter().map(|zone| zone.present).sum();
        let value = Size(sink.page_size.bytes_of(present));
        for given in [&node.memory, &node.reserved, &node.movable].into_iter().flatten() {
            let hint = "remove it: the zones' `present` gives the memory, and `managed` what the kernel keeps";
            sink.hinted(given.span, "the zones already give this size", hint);
        }
        Spanned { value, span: node.at }
    };
    let bytes = memory.value.0;
    if bytes == 0 {
        sink.hinted(memory.span, format!("{what} has no memory"), "memory = \"2GiB\", for example");
        return None;
    }
    check_pages(&memory, sink);
    *pages = pages.saturating_add(bytes / sink.page_size.bytes());
    if *pages > MACHINE_PAGES_MAX {
        let limit = show_size(sink.page_size.bytes_of(MACHINE_PAGES_MAX));
        let message =
            format!("{} is more memory than a simulated machine can have", show_size(bytes));
        sink.hinted(memory.span, message, format!("all nodes together have at most {limit}"));
        return None;
    }
    let part = |part: &Option<Spanned<Size>>, taken: u64, sink: &mut ProblemSink| match part {
        Some(size) if zones.is_empty() => {
            check_pages(size, sink);
            if size.value.0 >= bytes - taken {
                let message = format!("{} of {} taken", show_size(size.value.0), show_size(bytes));
                let hint = "leave some memory for the system";
                sink.hinted(size.span, format!("no memory is left: {message}"), hint);
                return 0;
            }
            size.value.0
        }
        _ => 0,
    };
    let reserved = part(&node.reserved, 0, sink);
    let movable = part(&node.movable, reserved, sink);
    Some(NodeSetup { memory: bytes, reserved, movable, zones })
}

fn check_pages(size: &Spanned<Size>, sink: &mut ProblemSink) {
    let (bytes, page) = (size.value.0, sink.page_size.bytes());
    if !bytes.is_multiple_of(page) {
        let message = format!("{bytes} bytes are not whole pages");
        let hint = match bytes / page {
            0 => format!("a page has {}: is the unit missing, as in \"512MiB\"?", show_size(page)),
            near => format!("a page has {}: \"{near} pages\", for example", show_size(page)),
        };
        sink.hinted(size.span, message, hint);
    }
}

fn check_zones(node: &raw::MemoryNode, sink: &mut ProblemSink) -> Vec<ZoneSetup> {
    let mut zones: Vec<ZoneSetup> = Vec::new();
    let page = sink.page_size.bytes();
    let mut names = NameIndex::new("zone");
    let mut last = None;
    for zone in node.zone.as_deref().unwrap_or_default() {
        let (name, present) = (zone.name(sink), zone.present(sink));
        let (Some(name), Some(present)) = (name, present) else { continue };
        names.insert(name.value.name(), name.span, zones.len(), sink);
        if last > Some(name.value) {
            let hint = "write the zones in the order DMA, DMA32, Normal, HighMem, Movable";
            sink.hinted(name.span, "zones out of order", hint);
        }
        last = Some(name.value);
        let has = |name| zones.iter().any(|zone: &ZoneSetup| zone.name == name);
        let is_64_bit = matches!(name.value, ZoneName::HighMem) && has(ZoneName::Dma32)
            || matches!(name.value, ZoneName::Movable) && has(ZoneName::HighMem);
        if is_64_bit {
            let message = "zone HighMem in a node with DMA32 or Movable";
            let hint = "a 32-bit machine has zones DMA, Normal and HighMem";
            sink.hinted(name.span, message, hint);
        }
        let managed = zone.managed.as_ref().unwrap_or(present);
        let free_lists = free_lists::check(zone, sink);
        let on_lists = free_lists.map(|lists| Spanned {
            value: Size(sink.page_size.bytes_of(lists.pages())),
            span: zone.at,
        });
        let is_full = on_lists.as_ref().is_some_and(|free| free.value.0 > managed.value.0);
        let free = on_lists.as_ref().or(zone.free.as_ref()).unwrap_or(managed);
        for size in [present, managed, free] {
            check_pages(size, sink);
        }
        // With free lists, the lists have already been checked.
        let free_or_all = if is_full { managed } else { free };
        check_zone_parts(name.value, present, managed, free_or_all, sink);
        let late = zone.late().0;
        if let Some(size) = zone.late.as_ref().filter(|size| size.value.0 > managed.value.0) {
            sink.hinted(size.span, "more late than managed memory", "write late <= managed");
        }
        zones.push(ZoneSetup {
            name: name.value,
            present: present.value.0 / page,
            managed: managed.value.0 / page,
            free: free.value.0 / page,
            late: late / page,
            cma: free_lists::check_cma(zone, sink),
            free_lists,
        });
    }
    free_lists::check_fit(node.zone.as_deref().unwrap_or_default(), &zones, sink);
    zones
}

fn check_zone_parts(
    name: ZoneName,
    present: &Spanned<Size>,
    managed: &Spanned<Size>,
    free: &Spanned<Size>,
    sink: &mut ProblemSink,
) {
    if present.value.0 == 0 {
        sink.hinted(present.span, "the zone has no memory", "leave the zone out");
    }
    if name == ZoneName::Dma && present.value.0 > ZONE_DMA_MAX {
        sink.hinted(present.span, "zone DMA is too large", "it ends at 16MiB");
    }
    for (part, whole, names) in
        [(managed, present, ["managed", "present"]), (free, managed, ["free", "managed"])]
    {
        if part.value.0 > whole.value.0 {
            let [part_name, whole_name] = names;
            sink.push(SpannedProblem {
                span: part.span,
                message: format!("more {part_name} than {whole_name}"),
                hint: Some("write free <= managed <= present".into()),
                also: Some((whole.span, format!("{whole_name} here"))),
            });
        }
    }
}

fn check_disk(
    disk: &raw::DiskTable,
    files: &mut Vec<PathBuf>,
    sink: &mut ProblemSink,
) -> DiskSetup {
    let (name, model) = (disk.name(sink), disk.model(sink));
    let name = name.map_or("", |name| &name.value.0);
    let mut checked = DiskSetup::new(name, model.map_or(DiskModel::Ssd, |model| model.value));
    for rate in [&disk.read_bandwidth, &disk.write_bandwidth].into_iter().flatten() {
        if rate.value.0 == 0 {
            let hint = "write more than 0, or leave it out for the preset's value";
            sink.hinted(rate.span, "the disk would transfer nothing", hint);
        }
    }
    let mut latency = |written: &Option<raw::RawLatency>, jobs, sink: &mut ProblemSink| {
        let found = written.as_ref().and_then(|it| latency::check(it, jobs, files, sink));
        found.map_or((None, None), |(mean_ns, shape)| (Some(mean_ns), shape))
    };
    (checked.read_latency_ns, checked.read_shape) = latency(&disk.read_latency, "read", sink);
    (checked.write_latency_ns, checked.write_shape) = latency(&disk.write_latency, "write", sink);
    checked.read_bandwidth = disk.read_bandwidth.as_ref().map(|rate| rate.value.0);
    checked.write_bandwidth = disk.write_bandwidth.as_ref().map(|rate| rate.value.0);
    checked.queue_depth = disk.queue_depth.as_ref().map(|depth| depth.value.0 as u32);
    if let Some(rotational) = &disk.rotational {
        checked.rotational = rotational.value;
    }
    if let Some(faults) = &disk.faults {
        checked.faults = DiskFaults {
            read_error_ppm: faults.read_error_ppm().into(),
            write_error_ppm: faults.write_error_ppm().into(),
            slow_ppm: faults.slow_ppm().into(),
            slow_factor: faults.slow_factor().into(),
        };
    }
    checked
}

fn check_zswap(zswap: &raw::ZswapTable) -> ZswapOptions {
    let default = ZswapOptions::default();
    let percent = |key: &Option<Spanned<Int<0, 100>>>, default| {
        key.as_ref().map_or(default, |percent| percent.value.0 as u8)
    };
    ZswapOptions {
        compressor: zswap.compressor.as_ref().map_or(default.compressor, |name| name.value.0),
        max_pool_percent: percent(&zswap.max_pool_percent, default.max_pool_percent),
        accept_threshold_percent: percent(
            &zswap.accept_threshold_percent,
            default.accept_threshold_percent,
        ),
        shrinker: zswap.shrinker.as_ref().map_or(default.shrinker, |on| on.value),
    }
}

/// Most swap areas (Linux 6.1 `MAX_SWAPFILES` with device memory, migration and poisoned pages).
const SWAP_AREAS_MAX: usize = 23;

/// Size of a swap area on a disk, or of a zram device. Reports keys that do not go together.
fn swap_size<'a>(swap: &'a raw::SwapTable, sink: &mut ProblemSink) -> Option<&'a Spanned<Size>> {
    let is_zram = swap.zram.is_some() || swap.bad.contains(&"zram");
    let of_zram = [
        ("algorithm", swap.algorithm.as_ref().map(|it| it.span)),
        ("mem_limit", swap.mem_limit.as_ref().map(|it| it.span)),
        ("backing", swap.backing.as_ref().map(|it| it.span)),
        ("backing_size", swap.backing_size.as_ref().map(|it| it.span)),
    ];
    let of_disk = [
        ("size", swap.size.as_ref().map(|it| it.span)),
        ("disk", swap.disk.as_ref().map(|it| it.span)),
    ];
    let wrong = if is_zram { &of_disk[..] } else { &of_zram[..] };
    for (key, span) in wrong.iter().filter_map(|(key, span)| Some((key, (*span)?))) {
        let (what, hint) = match is_zram {
            true => (
                "a zram device is on no disk",
                "write its size as zram = \"4GiB\"; the disk behind it is its `backing`",
            ),
            false => ("the swap area is on a disk", "for compressed memory write zram = \"4GiB\""),
        };
        sink.hinted(span, format!("`{key}`: {what}"), hint);
    }
    if swap.zram.is_none() && swap.size.is_none() && swap.bad.is_empty() {
        let hint = "write size = \"4GiB\" for an area on a disk, or zram = \"4GiB\"";
        sink.hinted(swap.at, "the swap area has no size", hint);
    }
    swap.zram.as_ref().or(swap.size.as_ref())
}

fn check_swap(
    swap: &raw::SwapTable,
    disks: &NameIndex<'_>,
    sink: &mut ProblemSink,
) -> Option<Swap> {
    let disk = swap.disk.as_ref().or(swap.backing.as_ref());
    let disk = disk.map_or(Some(0), |disk| disks.find(disk, sink));
    let size = swap_size(swap, sink)?;
    let page = sink.page_size.bytes();
    check_pages(size, sink);
    if size.value.0 == 0 {
        sink.hinted(
            size.span,
            "the swap area has size 0",
            "to have no swap area, leave `swap` out",
        );
    }
    if size.value.0 / page > MACHINE_PAGES_MAX {
        let limit = show_size(sink.page_size.bytes_of(MACHINE_PAGES_MAX));
        sink.hinted(size.span, "the swap area is too large", format!("it has at most {limit}"));
    }
    let full_after_pages = swap.full_after.as_ref().map(|size| size.value.0 / page);
    let priority = swap.priority.as_ref().map(|priority| priority.value.0 as i16);
    if let (Some(size), None) = (&swap.backing_size, &swap.backing) {
        let hint = "add backing = \"disk\", the name of the disk";
        sink.hinted(size.span, "`backing_size` needs a disk", hint);
    }
    let backing = swap.backing_size.as_ref().unwrap_or(size);
    if backing.value.0 / page < 2 && swap.backing.is_some() {
        let hint = "its first block is not used: write at least two pages";
        sink.hinted(backing.span, "the disk behind the zram device is too small", hint);
    }
    if backing.value.0 / page > MACHINE_PAGES_MAX {
        let limit = show_size(sink.page_size.bytes_of(MACHINE_PAGES_MAX));
        sink.hinted(backing.span, "`backing_size` is too large", format!("it is at most {limit}"));
    }
    let zram = swap.zram.as_ref().map(|_| ZramSetup {
        algorithm: swap.algorithm.as_ref().map_or(Compressor::LzoRle, |name| name.value.0),
        mem_limit: swap.mem_limit.as_ref().map(|limit| limit.value.0),
        backing: swap.backing.as_ref().map(|_| backing.value.0),
    });
    Some(Swap { disk: disk?, size: size.value.0, full_after_pages, priority, zram })
}
