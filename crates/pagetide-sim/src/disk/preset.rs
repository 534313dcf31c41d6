//! Parameters of disks: four presets, and the overrides of a scenario.
//!
//! Each preset models one product and names its data sheet. Data sheets give the latency of a whole
//! 4 KiB request; the model needs the time before the transfer, so the transfer time is subtracted.
//!
//! Invariant: a preset has the data sheet's latency of a 4 KiB request at depth 1, its requests per
//! second at full depth, and its bandwidth for large sequential requests.

use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{Nanos, PAGE_SIZE};
use pagetide_scenario::model::latency_shape::LatencyShape;
use pagetide_scenario::{model, names};
use std::sync::Arc;

/// Longest latency and longest transfer (a day), even if a scenario has more.
pub(super) const SERVICE_NS_MAX: Nanos = 24 * 3600 * 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoScheduler {
    /// First come, first served: Linux's default for disks with several hardware queues (NVMe).
    None,
    /// Sorted batches, reads first: Linux's default for disks with one hardware queue (SATA).
    MqDeadline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLane {
    /// Mean time from the start of service to the start of the transfer, for a random position. The
    /// latencies of several requests overlap. On a rotating disk: average seek plus half a
    /// rotation.
    pub latency_ns: Nanos,
    /// The same for a request that continues the previous one of its direction.
    pub latency_sequential_ns: Nanos,
    /// Time for which the shared channel stays busy after a non-sequential request. It limits the
    /// requests per second to less than bandwidth divided by size.
    pub recovery_ns: Nanos,
    /// Bytes per second over the shared channel; 0: no limit.
    pub bandwidth: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskMechanics {
    /// One rotation; the wait for the sector is uniform over it.
    pub rotation_ns: Nanos,
    pub seek_min_ns: Nanos,
    /// Number of pages: of 4 KiB in a preset, of the machine's page size in a disk.
    pub capacity_pages: u64,
}

/// Parameters of a disk. The constants name their sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskParams {
    pub read: DiskLane,
    pub write: DiskLane,
    /// Most requests in service. A rotating disk always serves one; there, the depth only limits
    /// the number of requests that the elevator reorders.
    pub queue_depth: u32,
    /// Present for a rotating disk.
    pub mechanics: Option<DiskMechanics>,
    pub scheduler: IoScheduler,
    /// Largest deviation of a latency from its mean, in thousandths; triangular.
    pub jitter_permille: u32,
    /// Distributions of the latencies of reads and of writes; they replace the position of the
    /// request, the jitter and the moving parts. `None`, as in the presets: no data sheet of a
    /// preset has percentiles.
    pub read_shape: Option<Arc<LatencyShape>>,
    pub write_shape: Option<Arc<LatencyShape>>,
}

/// The data sheet's latency of a 4 KiB request minus its transfer time.
const fn before_transfer(request_ns: Nanos, bandwidth: u64) -> Nanos {
    request_ns - PAGE_SIZE * 1_000_000_000 / bandwidth
}

/// Gap between the transfers of two 4 KiB requests at the data sheet's requests per second.
const fn recovery(requests_per_second: u64, bandwidth: u64) -> Nanos {
    1_000_000_000 / requests_per_second - PAGE_SIZE * 1_000_000_000 / bandwidth
}

impl DiskParams {
    /// A 7200 rpm disk of the early 2010s.
    ///
    /// Source: Seagate Constellation ES.3 product manual (2012-2016): 7200 rpm, average rotational
    /// latency 4.16 ms, sustained transfer 83 to 175 MB/s from the inner to the outer zone (here
    /// 150, without zones), capacity of the 1 TB model, NCQ depth 32. Average seeks of 8.5 ms for
    /// reads and 9.5 ms for writes, and 1 ms from track to track, are typical of the class. The 20
    /// us per command are nominal: the drive's own read-ahead hides the rest.
    pub const ROTATING: DiskParams = DiskParams {
        read: DiskLane {
            latency_ns: 8_500_000 + 4_166_667,
            latency_sequential_ns: 20_000,
            recovery_ns: 0,
            bandwidth: 150_000_000,
        },
        write: DiskLane {
            latency_ns: 9_500_000 + 4_166_667,
            latency_sequential_ns: 20_000,
            recovery_ns: 0,
            bandwidth: 150_000_000,
        },
        queue_depth: 32,
        mechanics: Some(DiskMechanics {
            rotation_ns: 8_333_333,
            seek_min_ns: 1_000_000,
            capacity_pages: 1_000_000_000_000 / PAGE_SIZE,
        }),
        scheduler: IoScheduler::MqDeadline,
        jitter_permille: 100,
        read_shape: None,
        write_shape: None,
    };

    /// A SATA solid-state disk.
    ///
    /// Source: Intel SSD DC S4500 product specification (2017): 4 KiB random 72 000 reads and 33
    /// 000 writes a second, sequential 500 and 490 MB/s, typical latency random 110/52 us,
    /// sequential 36/36 us. NCQ depth 32.
    pub const SSD: DiskParams = DiskParams {
        read: DiskLane {
            latency_ns: before_transfer(110_000, 500_000_000),
            latency_sequential_ns: before_transfer(36_000, 500_000_000),
            recovery_ns: recovery(72_000, 500_000_000),
            bandwidth: 500_000_000,
        },
        write: DiskLane {
            latency_ns: before_transfer(52_000, 490_000_000),
            latency_sequential_ns: before_transfer(36_000, 490_000_000),
            recovery_ns: recovery(33_000, 490_000_000),
            bandwidth: 490_000_000,
        },
        queue_depth: 32,
        mechanics: None,
        scheduler: IoScheduler::MqDeadline,
        jitter_permille: 100,
        read_shape: None,
        write_shape: None,
    };

    /// An NVMe solid-state disk.
    ///
    /// Source: Intel SSD DC P4500 2 TB as in Lenovo's product guide (2017): 4 KiB random 490 000
    /// reads and 38 000 writes a second, sequential 3.2 and 1.05 GB/s, latency random 85/20 us,
    /// sequential 10/13 us. Depth 128 stands for the 1023 tags of a hardware queue: 42 saturate it.
    pub const NVME: DiskParams = DiskParams {
        read: DiskLane {
            latency_ns: before_transfer(85_000, 3_200_000_000),
            latency_sequential_ns: before_transfer(10_000, 3_200_000_000),
            recovery_ns: recovery(490_000, 3_200_000_000),
            bandwidth: 3_200_000_000,
        },
        write: DiskLane {
            latency_ns: before_transfer(20_000, 1_050_000_000),
            latency_sequential_ns: before_transfer(13_000, 1_050_000_000),
            recovery_ns: recovery(38_000, 1_050_000_000),
            bandwidth: 1_050_000_000,
        },
        queue_depth: 128,
        mechanics: None,
        scheduler: IoScheduler::None,
        jitter_permille: 100,
        read_shape: None,
        write_shape: None,
    };

    /// Every request completes at the time of its submission. For experiments without the effects
    /// of I/O, and for comparison with the practically infinitely fast disk of the real-kernel
    /// reference.
    pub const INSTANT: DiskParams = DiskParams {
        read: DiskLane { latency_ns: 0, latency_sequential_ns: 0, recovery_ns: 0, bandwidth: 0 },
        write: DiskLane { latency_ns: 0, latency_sequential_ns: 0, recovery_ns: 0, bandwidth: 0 },
        queue_depth: 1024,
        mechanics: None,
        scheduler: IoScheduler::None,
        jitter_permille: 0,
        read_shape: None,
        write_shape: None,
    };

    /// True if every request completes at the time of its submission.
    pub fn is_instant(&self) -> bool {
        let at_once = |lane: &DiskLane| lane.latency_ns == 0 && lane.bandwidth == 0;
        at_once(&self.read) && at_once(&self.write)
    }

    pub const fn preset(name: names::DiskModel) -> DiskParams {
        match name {
            names::DiskModel::Rotating => Self::ROTATING,
            names::DiskModel::Ssd => Self::SSD,
            names::DiskModel::Nvme => Self::NVME,
            names::DiskModel::Instant => Self::INSTANT,
        }
    }

    /// The preset that a scenario names, with its overrides.
    ///
    /// A latency in the scenario is the mean time before the transfer, for a random position. It is
    /// also an upper limit of the sequential latency. A bandwidth of 0 means no limit.
    pub fn of_scenario(disk: &model::DiskSetup) -> DiskParams {
        let mut this = Self::preset(disk.model);
        let overrides = [
            (&mut this.read, disk.read_latency_ns, disk.read_bandwidth),
            (&mut this.write, disk.write_latency_ns, disk.write_bandwidth),
        ];
        for (lane, latency_ns, bandwidth) in overrides {
            if let Some(latency_ns) = latency_ns {
                // A preset without latency uses the same latency for sequential requests.
                let same = lane.latency_ns == 0;
                lane.latency_ns = latency_ns.min(SERVICE_NS_MAX);
                lane.latency_sequential_ns =
                    if same { lane.latency_ns } else { lane.latency_sequential_ns.min(latency_ns) };
            }
            lane.bandwidth = bandwidth.unwrap_or(lane.bandwidth);
        }
        let shape = |shape: &Option<Arc<LatencyShape>>, lane: &DiskLane| {
            shape.as_ref().map(|shape| Arc::new(shape.with_mean(lane.latency_ns)))
        };
        this.read_shape = shape(&disk.read_shape, &this.read);
        this.write_shape = shape(&disk.write_shape, &this.write);
        this.queue_depth = disk.queue_depth.unwrap_or(this.queue_depth).max(1);
        this
    }
}

impl DiskLane {
    /// Time on the shared channel for `pages`, rounded up.
    pub(super) fn transfer_ns(&self, pages: u32, page_size: PageSize) -> Nanos {
        if self.bandwidth == 0 {
            return 0;
        }
        let byte_ns = u128::from(page_size.bytes_of(pages.into())) * 1_000_000_000;
        let transfer_ns = byte_ns.div_ceil(u128::from(self.bandwidth));
        transfer_ns.min(u128::from(SERVICE_NS_MAX)) as Nanos
    }
}
