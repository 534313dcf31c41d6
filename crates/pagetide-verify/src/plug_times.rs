//! Takes the time in plugs out of the measured times of the swap area's disk.
//!
//! /proc/diskstats counts a request from the moment when a task puts it into its plug. Until the
//! plug ends, the task allocates, charges and reclaims: time that it spends in the simulator, too.
//! So a run whose disk answers at once measures that part, and the rest is the disk's.
//!
//! Linux: `blk_mq_plug`, `blk_account_io_start` (6.1). The plug of a read of a file ends at once, and
//! that of the flusher is not modelled, so the disks of files keep their times.

use pagetide_core::units::Nanos;
use pagetide_scenario::model::Setup;
use pagetide_sim::{mean_waits, SimError};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// Lowers the latencies of the swap areas' disks by the mean time of their requests in plugs.
pub fn subtract(setup: &mut Setup, seed: u64, cancel: &AtomicBool) -> Result<(), SimError> {
    let areas: BTreeSet<usize> = setup.machine.swap.iter().map(|area| area.disk).collect();
    if areas.is_empty() {
        return Ok(());
    }
    let mut instant = setup.clone();
    for &area in &areas {
        let disk = &mut instant.machine.disks[area];
        (disk.read_latency_ns, disk.write_latency_ns) = (Some(0), Some(0));
    }
    let waits = mean_waits(&instant, seed, cancel)?;
    let less = |latency: Option<Nanos>, plugged| latency.map(|it| it.saturating_sub(plugged));
    for area in areas {
        let ([reads, writes], disk) = (waits[area], &mut setup.machine.disks[area]);
        disk.read_latency_ns = less(disk.read_latency_ns, reads);
        disk.write_latency_ns = less(disk.write_latency_ns, writes);
    }
    Ok(())
}
