//! The timeline as counters: zones with watermarks, groups, pressure, and /proc/vmstat.
//!
//! Levels are in bytes, so that the UI prints MiB. Counts are running totals, as in the kernel's
//! files: the last value is that of the table.

use super::packets::{CounterUnit, PacketWriter, TrackId};
use pagetide_scenario::record::timeline::{GroupRow, Timeline};
use std::io::{self, Write};

/// Rows of /proc/vmstat that are shown.
const VMSTAT: [&str; 19] = [
    "pgfault",
    "pgmajfault",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "pswpin",
    "pswpout",
    "workingset_refault_anon",
    "workingset_refault_file",
    "compact_stall",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "pgmigrate_success",
    "oom_kill",
];

/// Writes all counters of a run below `machine` and the tracks of the groups, by their index in the
/// scenario.
pub fn write<W: Write>(
    timeline: &Timeline,
    page_size: u64,
    machine: TrackId,
    groups: &[TrackId],
    packets: &mut PacketWriter<W>,
) -> io::Result<()> {
    zones(timeline, page_size, machine, packets)?;
    vmstat(timeline, machine, packets)?;
    for (at, track) in std::iter::once(machine).chain(groups.iter().copied()).enumerate() {
        group(timeline, page_size, at, track, packets)?;
    }
    Ok(())
}

fn zones<W: Write>(
    timeline: &Timeline,
    page_size: u64,
    machine: TrackId,
    packets: &mut PacketWriter<W>,
) -> io::Result<()> {
    for (at, zone) in timeline.zones.iter().enumerate() {
        let name = format!("node {} zone {}", zone.node, zone.zone);
        let parent = packets.group(Some(machine), &name)?;
        for what in ["free", "min", "low", "high"] {
            let counter = format!("{name} {what}");
            let track = packets.counter(parent, &counter, CounterUnit::Bytes, Some(&name))?;
            for sample in &timeline.samples {
                let Some(row) = sample.zones.get(at) else { continue };
                let pages = match what {
                    "free" => row.free_pages,
                    "min" => row.min_pages,
                    "low" => row.low_pages,
                    _ => row.high_pages,
                };
                packets.value(sample.end_ns, track, pages.saturating_mul(page_size))?;
            }
        }
    }
    Ok(())
}

fn vmstat<W: Write>(
    timeline: &Timeline,
    machine: TrackId,
    packets: &mut PacketWriter<W>,
) -> io::Result<()> {
    let parent = packets.group(Some(machine), "vmstat")?;
    for (at, name) in timeline.vmstat.iter().enumerate() {
        if !VMSTAT.contains(&name.as_str()) {
            continue;
        }
        let of = |row: &[u64]| row.get(at).copied().unwrap_or(0);
        // Events that never happened only take space.
        if timeline.samples.iter().all(|sample| of(&sample.vmstat) == 0) {
            continue;
        }
        let track = packets.counter(parent, name, CounterUnit::Count, None)?;
        for sample in &timeline.samples {
            packets.value(sample.end_ns, track, of(&sample.vmstat))?;
        }
    }
    Ok(())
}

/// A level of a group.
type Level = (&'static str, fn(&GroupRow) -> u64);

fn group<W: Write>(
    timeline: &Timeline,
    page_size: u64,
    row: usize,
    parent: TrackId,
    packets: &mut PacketWriter<W>,
) -> io::Result<()> {
    let levels: [Level; 4] = [
        ("memory.current", |row| row.usage_pages),
        ("anon", |row| row.anon_pages),
        ("file", |row| row.file_pages),
        ("swap", |row| row.swap_pages),
    ];
    let rows = || {
        let samples = timeline.samples.iter();
        samples.filter_map(move |sample| Some((sample.end_ns, sample.rows.get(row)?.as_ref()?)))
    };
    // A group may be created later or removed, so its share is of the length of the sample.
    let lengths = || {
        let ends = std::iter::once(0).chain(timeline.samples.iter().map(|sample| sample.end_ns));
        let lengths = timeline.samples.iter().zip(ends);
        lengths.filter_map(move |(sample, before)| {
            let row = sample.rows.get(row)?.as_ref()?;
            Some((sample.end_ns, row, sample.end_ns.saturating_sub(before).max(1)))
        })
    };
    for (name, of) in levels {
        let name = if row == 0 && name == "memory.current" { "used" } else { name };
        let track = packets.counter(parent, name, CounterUnit::Bytes, None)?;
        for (at, row) in rows() {
            packets.value(at, track, of(row).saturating_mul(page_size))?;
        }
    }
    let pressures: [Level; 2] =
        [("memory.pressure some", |row| row.some_ns), ("memory.pressure full", |row| row.full_ns)];
    for (name, of) in pressures {
        let share = packets.counter(parent, name, CounterUnit::Percent, Some("pressure"))?;
        for (at, row, length) in lengths() {
            packets.double_value(at, share, 100.0 * of(row) as f64 / length as f64)?;
        }
        let total = packets.counter(parent, &format!("{name} total"), CounterUnit::Nanos, None)?;
        let mut sum = 0u64;
        for (at, row) in rows() {
            sum = sum.saturating_add(of(row));
            packets.value(at, total, sum)?;
        }
    }
    Ok(())
}
