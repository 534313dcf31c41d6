//! The size of the system's pages.
//!
//! Linux: `PAGE_SIZE`, which no file of /proc states for the whole system. It follows from
//! `KernelPageSize` in smaps, from the free lists of a report, from the values of /proc/meminfo (all
//! are multiples of a page), from counts of pages beside their size in kB, or from the place of the
//! zones of x86-64 and arm64.
//! Invariant: a size that is only assumed has a note.

use super::note::ImportNote;
use super::number::{show_bytes, show_pages};
use super::snapshot::HostSnapshot;
use super::{free, release};
use pagetide_core::units::page_size::PageSize;

/// The size, and how it is known.
pub(super) fn of(host: &HostSnapshot, notes: &mut Vec<ImportNote>) -> (PageSize, &'static str) {
    let zones = &host.zones.zones;
    let pages = zones.iter().fold(0u64, |sum, zone| sum.saturating_add(free::managed(zone)));
    let found = of_smaps(host)
        .or_else(|| of_multiples(host))
        .or_else(|| of_counts(host, pages))
        .or_else(|| of_zones(host))
        .or_else(|| of_hints(host));
    let (size, how) = found.unwrap_or_else(|| {
        let message = "the size of a page is unknown: 4 KiB is assumed";
        notes.push(ImportNote::new("/proc/meminfo", message));
        (PageSize::Kib4, "assumed")
    });
    let total = host.memory.get("MemTotal").unwrap_or(0);
    if pages > 0 && total > 0 && kbytes(size, pages).abs_diff(total) > total / 100 {
        let message = format!(
            "the zones manage {}, but /proc/meminfo says MemTotal is {}; the scenario has the \
             zones' memory",
            show_pages(pages, size),
            show_bytes(total.saturating_mul(1024))
        );
        notes.push(ImportNote::new("/proc/zoneinfo", message));
    }
    (size, how)
}

/// Memory in kB, without overflow.
pub(super) fn kbytes(size: PageSize, pages: u64) -> u64 {
    size.bytes_of(pages) >> 10
}

type Evidence = Option<(PageSize, &'static str)>;

fn of_smaps(host: &HostSnapshot) -> Evidence {
    Some((PageSize::from_bytes(host.kernel_page_kb?.checked_mul(1024)?)?, "stated"))
}

/// Values that are numbers of pages in kB on every kernel.
const IN_PAGES: [&str; 16] = [
    "MemTotal",
    "MemFree",
    "Buffers",
    "Cached",
    "SwapCached",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "AnonPages",
    "Mapped",
    "Shmem",
    "Slab",
    "PageTables",
];

/// Of eight values or more, one is no multiple of a size that is too large.
fn of_multiples(host: &HostSnapshot) -> Evidence {
    const ENOUGH: usize = 8;
    let values = IN_PAGES.iter().filter_map(|name| host.memory.get(name));
    let values: Vec<u64> = values.filter(|kbytes| *kbytes > 0).collect();
    let fits =
        |size: &&PageSize| values.iter().all(|kbytes| kbytes.is_multiple_of(size.kbytes_of(1)));
    let size = PageSize::ALL.iter().rev().find(fits).filter(|_| values.len() >= ENOUGH)?;
    Some((*size, "all values of /proc/meminfo are multiples"))
}

/// Counts of pages, and the same memory in kB. A factor of two shows that the machine grew or
/// shrank, or that the files are not from one moment.
fn of_counts(host: &HostSnapshot, managed: u64) -> Evidence {
    let count = |name: &str| host.counters.iter().find(|(one, _)| *one == name).map(|(_, n)| *n);
    let pairs = [
        (Some(managed), "MemTotal", "MemTotal and the pages of the zones"),
        (count("nr_free_pages"), "MemFree", "MemFree and nr_free_pages"),
        (count("nr_file_pages"), "Cached", "Cached and nr_file_pages"),
    ];
    for (pages, name, how) in pairs {
        let (Some(pages), Some(same)) = (pages, host.memory.get(name)) else { continue };
        let is_near = |size: &&PageSize| kbytes(**size, pages).abs_diff(same) <= same / 8;
        if let Some(size) = PageSize::ALL.iter().find(is_near).filter(|_| pages > 0) {
            return Some((*size, how));
        }
    }
    None
}

/// Zone Normal of x86-64 and arm64 begins at 4 GiB, if DMA32 is below it.
fn of_zones(host: &HostSnapshot) -> Evidence {
    let zones = &host.zones.zones;
    let start = |name: &str| {
        let zone = zones.iter().find(|zone| zone.name == name && free::managed(zone) > 0)?;
        zone.counters.get("start_pfn").copied()
    };
    start("DMA32").filter(|pfn| *pfn < start("Normal").unwrap_or(0))?;
    let normal = start("Normal")?;
    let size = PageSize::ALL.into_iter().find(|size| size.pages_in(4 << 30) == normal)?;
    Some((size, "zone Normal begins at 4 GiB"))
}

/// The architecture in the release, and the size of a huge page of arm64.
fn of_hints(host: &HostSnapshot) -> Evidence {
    if host.release.as_deref().is_some_and(release::is_x86) {
        return Some((PageSize::Kib4, "x86"));
    }
    match host.memory.get("Hugepagesize")? {
        524_288 => Some((PageSize::Kib64, "a huge page has 512 MiB")),
        32_768 => Some((PageSize::Kib16, "a huge page has 32 MiB")),
        4096 => Some((PageSize::Kib4, "a huge page has 4 MiB")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{meminfo, vmstat, zoneinfo};

    fn found(zones: &str, meminfo: &str, vmstat: &str) -> (u64, &'static str, usize) {
        let host = HostSnapshot {
            zones: zoneinfo::parse(zones).0,
            memory: meminfo::parse(meminfo).0,
            counters: vmstat::parse(vmstat).0,
            ..HostSnapshot::default()
        };
        let mut notes = Vec::new();
        let (size, how) = of(&host, &mut notes);
        (size.kbytes_of(1), how, notes.len())
    }

    #[test]
    fn each_source_gives_the_size() {
        let zone = "Node 0, zone Normal\n pages free 9\n present 16384\n";
        let (size, how, notes) = found(zone, "MemTotal: 1048000 kB\n", "");
        assert_eq!((size, how, notes), (64, "MemTotal and the pages of the zones", 0));
        assert_eq!(found(zone, "MemTotal: 262144 kB\n", "").0, 16);
        // Half of the memory: neither size fits.
        assert_eq!(found(zone, "MemTotal: 2097152 kB\n", ""), (4, "assumed", 2));
        let all = |unit: u64| {
            let line = |(index, name): (usize, &&str)| {
                format!("{name}: {} kB\n", (index as u64 + 1) * unit)
            };
            IN_PAGES.iter().enumerate().map(line).collect::<String>()
        };
        for unit in [4, 16, 64] {
            let (size, how, notes) = found("", &all(unit), "");
            assert_eq!((size, notes), (unit, 0));
            assert!(how.contains("multiples"), "{how}");
        }
        assert_eq!(
            found("", "MemTotal: 262144 kB\nMemFree: 1600 kB\n", "nr_free_pages 100\n").0,
            16
        );
        let low = "Node 0, zone DMA32\n pages free 1\n present 30000\n start_pfn: 0\n";
        let high = "Node 0, zone Normal\n pages free 1\n present 30000\n start_pfn: 65536\n";
        assert_eq!(found(&format!("{low}{high}"), "", ""), (64, "zone Normal begins at 4 GiB", 0));
        assert_eq!(found("", "MemTotal: 9 kB\nHugepagesize: 524288 kB\n", "").0, 64);
        assert_eq!(found("", "MemTotal: 1048576 kB\n", ""), (4, "assumed", 1));
        let x86 =
            HostSnapshot { release: Some("4.18.0-80.el8.x86_64".into()), ..Default::default() };
        assert_eq!(of(&x86, &mut Vec::new()), (PageSize::Kib4, "x86"));
        let smaps = HostSnapshot { kernel_page_kb: Some(16), ..Default::default() };
        assert_eq!(of(&smaps, &mut Vec::new()).0, PageSize::Kib16);
    }
}
