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
use std::sync::atomic::AtomicBool;

/// Lowers the latencies of the swap area's disk by the mean time of its requests in plugs.
pub(super) fn subtract(setup: &mut Setup, seed: u64, cancel: &AtomicBool) -> Result<(), SimError> {
    let Some(area) = setup.machine.swap.as_ref().map(|swap| swap.disk) else { return Ok(()) };
    let mut instant = setup.clone();
    let disk = &mut instant.machine.disks[area];
    (disk.read_latency_ns, disk.write_latency_ns) = (Some(0), Some(0));
    let [reads, writes] = mean_waits(&instant, seed, cancel)?[area];
    let less = |latency: Option<Nanos>, plugged| latency.map(|it| it.saturating_sub(plugged));
    let disk = &mut setup.machine.disks[area];
    disk.read_latency_ns = less(disk.read_latency_ns, reads);
    disk.write_latency_ns = less(disk.write_latency_ns, writes);
    Ok(())
}
