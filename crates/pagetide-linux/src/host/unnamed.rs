//! Memory that the system's counters do not explain.
//!
//! Two amounts are found: memory that no line of /proc/meminfo names (a balloon, a driver), and
//! pages on the lists of anonymous memory that no process maps and that are not shared memory
//! (leaked or pinned pages). Neither is freed when programs end. Invariant: a missing counter gives
//! no amount.

use super::free::{ReportedLists, ZoneUsage};
use super::note::ImportNote;
use super::number::{scale, show_bytes};
use super::release;
use super::snapshot::HostSnapshot;
use pagetide_core::units::page_size::PageSize;

/// Lines of /proc/meminfo that together name all memory, if no driver has any. Each is required.
const NAMED: [&str; 6] = ["MemFree", "Buffers", "Cached", "AnonPages", "Slab", "PageTables"];
/// Lines that exist only on some kernels.
const ALSO: [&str; 7] =
    ["SwapCached", "KernelStack", "Percpu", "SecPageTables", "Bounce", "WritebackTmp", "Zswap"];
/// Memory up to this part of the whole needs no note.
const SLIGHT: u64 = 8;

/// Memory that no line of /proc/meminfo names, in kB.
fn unnamed(host: &HostSnapshot) -> Option<u64> {
    let get = |name: &str| host.memory.get(name);
    let named: Option<u64> = NAMED
        .iter()
        .map(|name| get(name))
        .try_fold(0u64, |sum, kbytes| Some(sum.saturating_add(kbytes?)));
    let also = ALSO.iter().fold(0u64, |sum, name| sum.saturating_add(get(name).unwrap_or(0)));
    let huge = get("HugePages_Total").unwrap_or(0).saturating_mul(get("Hugepagesize").unwrap_or(0));
    // Before 5.3 the line counted addresses, also those of devices.
    let counts_pages = host.release.as_deref().is_some_and(|name| !release::is_before(name, "5.3"));
    let vmalloc = get("VmallocUsed").filter(|_| counts_pages).unwrap_or(0);
    let all = [named?, also, huge, vmalloc].into_iter().fold(0, u64::saturating_add);
    get("MemTotal")?.checked_sub(all)
}

/// Anonymous pages on the lists that no process maps, without shared memory.
pub(super) fn unmapped_pages(host: &HostSnapshot, size: PageSize) -> u64 {
    let of_meminfo = || {
        let pages = |name: &str| Some(size.pages_in_kbytes(host.memory.get(name)?));
        let swap = pages("SwapCached").unwrap_or(0);
        let lists = pages("Active(anon)")?.saturating_add(pages("Inactive(anon)")?);
        Some([lists, pages("AnonPages")?, pages("Shmem")?, swap])
    };
    let of_zones = || {
        let nodes = host.zones.nodes.values();
        let counters: Vec<_> =
            nodes.chain(host.zones.zones.iter().map(|it| &it.counters)).collect();
        let sum = |name: &str| {
            let counts = counters.iter().filter_map(|of| of.get(name));
            counts.copied().reduce(u64::saturating_add)
        };
        let lists = sum("nr_active_anon")?.saturating_add(sum("nr_inactive_anon")?);
        Some([lists, sum("nr_anon_pages")?, sum("nr_shmem")?, 0])
    };
    let Some([lists, anon, shmem, swap]) = of_meminfo().or_else(of_zones) else { return 0 };
    // Locked pages are on another list, and counters are read one after another.
    let rest = lists.saturating_sub(anon).saturating_sub(shmem).saturating_sub(swap);
    if rest > lists / SLIGHT {
        rest
    } else {
        0
    }
}

/// The machine's pages, at most `max`, and their use, from /proc/meminfo alone. Without `MemFree`
/// all are free.
pub(super) fn of_meminfo(
    host: &HostSnapshot,
    size: PageSize,
    max: u64,
) -> Option<(u64, ZoneUsage, ReportedLists)> {
    let pages = |name: &str| host.memory.get(name).map(|kbytes| size.pages_in_kbytes(kbytes));
    let sum = |names: &[&str]| {
        names.iter().filter_map(|name| pages(name)).fold(0u64, u64::saturating_add)
    };
    let total = pages("MemTotal").filter(|pages| *pages > 0)?.min(max);
    let free = pages("MemFree").unwrap_or(total);
    let list = |name: &str| pages(name).unwrap_or(0);
    // Before 2.6.28 the lists had pages of both kinds.
    let of_file = |name: &str| pages(&format!("{name}(file)")).unwrap_or(list(name));
    let lists = ReportedLists {
        active_anon: list("Active(anon)"),
        inactive_anon: list("Inactive(anon)"),
        active_file: of_file("Active"),
        inactive_file: of_file("Inactive"),
    };
    let programs = lists.anon().saturating_add(list("Mlocked"));
    let mut usage = [ZoneUsage::of(
        total,
        [free, 0, programs, lists.file(), sum(&["SReclaimable", "PageTables"])],
    )];
    hold(&mut usage, unmapped_pages(host, size));
    Some((total, usage[0], lists))
}

/// Moves pages that no process maps from the programs to the kernel.
pub(super) fn hold(usage: &mut [ZoneUsage], pages: u64) {
    let programs = usage.iter().fold(0u64, |sum, zone| sum.saturating_add(zone.programs));
    for zone in usage {
        let part = scale(pages.min(programs), zone.programs, programs).min(zone.programs);
        zone.programs -= part;
        zone.held = zone.held.saturating_add(part);
    }
}

/// Notes about both amounts.
pub(super) fn notes(host: &HostSnapshot, size: PageSize) -> Vec<ImportNote> {
    let mut notes = Vec::new();
    let mut add = |message: String| notes.push(ImportNote::new("/proc/meminfo", message));
    let total = host.memory.get("MemTotal").unwrap_or(0);
    if let Some(kbytes) = unnamed(host).filter(|kbytes| *kbytes > total / SLIGHT) {
        add(format!(
            "{} of {} ({} %) is in no counter: a balloon, a driver or the kernel has it for good",
            show_bytes(kbytes.saturating_mul(1024)),
            show_bytes(total.saturating_mul(1024)),
            u128::from(kbytes) * 100 / u128::from(total.max(1))
        ));
    }
    let unmapped = unmapped_pages(host, size);
    if unmapped > 0 {
        add(format!(
            "{} on the lists of anonymous memory is mapped by no process and is no shared memory: \
             leaked or pinned pages, which are not freed when programs end",
            show_bytes(size.bytes_of(unmapped))
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{meminfo, zoneinfo};

    const PLAIN: &str =
        "MemTotal: 1000000 kB\nMemFree: 200000 kB\nBuffers: 10000 kB\nCached: 300000 kB\n\
        Active(anon): 250000 kB\nInactive(anon): 60000 kB\nAnonPages: 300000 kB\nShmem: 20000 kB\n\
        Slab: 100000 kB\nPageTables: 10000 kB\nHugePages_Total: 10\nHugepagesize: 2048 kB\n";

    fn host(text: &str) -> HostSnapshot {
        HostSnapshot { memory: meminfo::parse(text).0, ..HostSnapshot::default() }
    }

    #[test]
    fn memory_without_a_name_is_noted() {
        let told = |text: &str| -> Vec<String> {
            notes(&host(text), PageSize::Kib4).into_iter().map(|note| note.message).collect()
        };
        assert_eq!(unnamed(&host(PLAIN)), Some(59_520));
        assert_eq!(told(PLAIN), Vec::<String>::new());
        let balloon = told(&PLAIN.replace("Cached: 300000", "Cached: 100000"));
        assert!(
            balloon[0].starts_with("253.4 MiB of 976.6 MiB (25 %) is in no counter"),
            "{balloon:?}"
        );
        // A line is missing.
        assert_eq!(told(&PLAIN.replace("Slab: 100000 kB\n", "")), Vec::<String>::new());
        let leak = told(&PLAIN.replace("AnonPages: 300000", "AnonPages: 100000"));
        assert!(leak[1].starts_with("185.5 MiB on the lists of anonymous memory"), "{leak:?}");
    }

    #[test]
    fn pages_that_no_process_maps_belong_to_the_kernel() {
        let text =
            "Node 0, zone Normal\n per-node stats\n nr_active_anon 700\n nr_inactive_anon 200\n \
            nr_anon_pages 300\n nr_shmem 100\n pages free 1\n present 2000\n";
        let zones = zoneinfo::parse(text).0;
        let host = HostSnapshot { zones, ..HostSnapshot::default() };
        assert_eq!(unmapped_pages(&host, PageSize::Kib64), 500);
        let zone = |programs, held| ZoneUsage { programs, held, ..ZoneUsage::default() };
        let mut usage = [zone(600, 50), zone(300, 0), zone(0, 7)];
        hold(&mut usage, 450);
        assert_eq!(usage, [zone(300, 350), zone(150, 150), zone(0, 7)]);
        hold(&mut usage, u64::MAX);
        assert_eq!(usage, [zone(0, 650), zone(0, 300), zone(0, 7)]);
    }
}
