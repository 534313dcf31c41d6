//! What the disks are: the four presets and how a scenario overrides them.
//!
//! Each preset stands for one product whose data sheet is named. Data sheets give the latency of a
//! whole 4 KiB request; the model wants the time before the transfer starts, so the transfer is
//! taken off.
//!
//! Invariant: at depth 1 a 4 KiB request takes what the data sheet says; at full depth requests a
//! second are what it says; large sequential requests move at the bandwidth it says.

use pagetide_core::page_size::PageSize;
use pagetide_core::units::{Nanos, PAGE_SIZE};
use pagetide_scenario::{model, names};

/// No latency and no transfer takes longer than a day, whatever a scenario says.
pub(super) const SERVICE_NS_MAX: Nanos = 24 * 3600 * 1_000_000_000;

/// Which of Linux's I/O schedulers stands before the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoScheduler {
    /// First come, first served: Linux's default for disks with several hardware queues (NVMe).
    None,
    /// Sorted batches, reads first: Linux's default for disks with one hardware queue (SATA).
    MqDeadline,
}

/// One direction of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// From the start of service to the start of the transfer, anywhere on the disk. Requests in
    /// service overlap here. On a rotating disk: average seek and half a rotation.
    pub latency_ns: Nanos,
    /// The same for a request that continues the previous one of its direction.
    pub latency_sequential_ns: Nanos,
    /// How long the shared channel stays busy after a request that continues nothing: what bounds
    /// requests a second below bandwidth divided by size.
    pub recovery_ns: Nanos,
    /// Bytes a second over the shared channel; 0 means no limit.
    pub bandwidth: u64,
}

/// The moving parts of a rotating disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanics {
    /// One rotation; the wait for the sector is uniform over it.
    pub rotation_ns: Nanos,
    /// Shortest seek.
    pub seek_min_ns: Nanos,
    /// Pages from the first to the last track: of 4 KiB in a preset, of the machine's in a disk.
    pub capacity_pages: u64,
}

/// A disk's figures. See the constants for the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskModel {
    /// Reading.
    pub read: Lane,
    /// Writing.
    pub write: Lane,
    /// Requests in service at a time. A rotating disk has one arm whatever its depth; there, depth
    /// only bounds how many requests the elevator may reorder.
    pub queue_depth: u32,
    /// Present if something rotates.
    pub mechanics: Option<Mechanics>,
    /// The scheduler before it.
    pub scheduler: IoScheduler,
    /// Largest deviation of a latency from its mean, in thousandths; triangular.
    pub jitter_permille: u32,
}

/// The product latency of a 4 KiB request less its transfer.
const fn before_transfer(request_ns: Nanos, bandwidth: u64) -> Nanos {
    request_ns - PAGE_SIZE * 1_000_000_000 / bandwidth
}

/// What is left between two 4 KiB requests at the product's requests a second.
const fn recovery(requests_per_second: u64, bandwidth: u64) -> Nanos {
    1_000_000_000 / requests_per_second - PAGE_SIZE * 1_000_000_000 / bandwidth
}

impl DiskModel {
    /// A 7200 rpm disk of the early 2010s.
    ///
    /// Source: Seagate Constellation ES.3 product manual (2012-2016): 7200 rpm, average rotational
    /// latency 4.16 ms, sustained transfer 83 to 175 MB/s from the inner to the outer zone (150
    /// taken, without zones), capacity of the 1 TB model, NCQ depth 32. Average seek 8.5 ms
    /// reading, 9.5 ms writing and 1 ms from track to track are the usual figures of the class. 20
    /// us a command is nominal: it is what the drive's own read-ahead leaves visible.
    pub const ROTATING: DiskModel = DiskModel {
        read: Lane {
            latency_ns: 8_500_000 + 4_166_667,
            latency_sequential_ns: 20_000,
            recovery_ns: 0,
            bandwidth: 150_000_000,
        },
        write: Lane {
            latency_ns: 9_500_000 + 4_166_667,
            latency_sequential_ns: 20_000,
            recovery_ns: 0,
            bandwidth: 150_000_000,
        },
        queue_depth: 32,
        mechanics: Some(Mechanics {
            rotation_ns: 8_333_333,
            seek_min_ns: 1_000_000,
            capacity_pages: 1_000_000_000_000 / PAGE_SIZE,
        }),
        scheduler: IoScheduler::MqDeadline,
        jitter_permille: 100,
    };

    /// A SATA solid-state disk.
    ///
    /// Source: Intel SSD DC S4500 product specification (2017): 4 KiB random 72 000 reads and 33
    /// 000 writes a second, sequential 500 and 490 MB/s, typical latency random 110/52 us,
    /// sequential 36/36 us. NCQ depth 32.
    pub const SSD: DiskModel = DiskModel {
        read: Lane {
            latency_ns: before_transfer(110_000, 500_000_000),
            latency_sequential_ns: before_transfer(36_000, 500_000_000),
            recovery_ns: recovery(72_000, 500_000_000),
            bandwidth: 500_000_000,
        },
        write: Lane {
            latency_ns: before_transfer(52_000, 490_000_000),
            latency_sequential_ns: before_transfer(36_000, 490_000_000),
            recovery_ns: recovery(33_000, 490_000_000),
            bandwidth: 490_000_000,
        },
        queue_depth: 32,
        mechanics: None,
        scheduler: IoScheduler::MqDeadline,
        jitter_permille: 100,
    };

    /// An NVMe solid-state disk.
    ///
    /// Source: Intel SSD DC P4500 2 TB as in Lenovo's product guide (2017): 4 KiB random 490 000
    /// reads and 38 000 writes a second, sequential 3.2 and 1.05 GB/s, latency random 85/20 us,
    /// sequential 10/13 us. Depth 128 stands for the 1023 tags of a hardware queue: 42 saturate it.
    pub const NVME: DiskModel = DiskModel {
        read: Lane {
            latency_ns: before_transfer(85_000, 3_200_000_000),
            latency_sequential_ns: before_transfer(10_000, 3_200_000_000),
            recovery_ns: recovery(490_000, 3_200_000_000),
            bandwidth: 3_200_000_000,
        },
        write: Lane {
            latency_ns: before_transfer(20_000, 1_050_000_000),
            latency_sequential_ns: before_transfer(13_000, 1_050_000_000),
            recovery_ns: recovery(38_000, 1_050_000_000),
            bandwidth: 1_050_000_000,
        },
        queue_depth: 128,
        mechanics: None,
        scheduler: IoScheduler::None,
        jitter_permille: 100,
    };

    /// No disk at all: every request is done at the instant it is made. For experiments in which
    /// I/O must not matter, and for comparison with the practically infinitely fast disk of the
    /// real-kernel reference.
    pub const INSTANT: DiskModel = DiskModel {
        read: Lane { latency_ns: 0, latency_sequential_ns: 0, recovery_ns: 0, bandwidth: 0 },
        write: Lane { latency_ns: 0, latency_sequential_ns: 0, recovery_ns: 0, bandwidth: 0 },
        queue_depth: 1024,
        mechanics: None,
        scheduler: IoScheduler::None,
        jitter_permille: 0,
    };

    /// Whether every request is done at the instant it is made.
    pub fn is_instant(&self) -> bool {
        let at_once = |lane: &Lane| lane.latency_ns == 0 && lane.bandwidth == 0;
        at_once(&self.read) && at_once(&self.write)
    }

    pub const fn preset(name: names::DiskModel) -> DiskModel {
        match name {
            names::DiskModel::Rotating => Self::ROTATING,
            names::DiskModel::Ssd => Self::SSD,
            names::DiskModel::Nvme => Self::NVME,
            names::DiskModel::Instant => Self::INSTANT,
        }
    }

    /// The preset a scenario names, with its overrides.
    ///
    /// A latency given by the scenario is the mean before the transfer starts, anywhere on the
    /// disk. It also bounds the sequential latency. A bandwidth of 0 means no limit.
    pub fn of_scenario(disk: &model::Disk) -> DiskModel {
        let mut this = Self::preset(disk.model);
        let overrides = [
            (&mut this.read, disk.read_latency_ns, disk.read_bandwidth),
            (&mut this.write, disk.write_latency_ns, disk.write_bandwidth),
        ];
        for (lane, latency_ns, bandwidth) in overrides {
            if let Some(latency_ns) = latency_ns {
                // A disk without latency has no other for sequential requests.
                let same = lane.latency_ns == 0;
                lane.latency_ns = latency_ns.min(SERVICE_NS_MAX);
                lane.latency_sequential_ns =
                    if same { lane.latency_ns } else { lane.latency_sequential_ns.min(latency_ns) };
            }
            lane.bandwidth = bandwidth.unwrap_or(lane.bandwidth);
        }
        this.queue_depth = disk.queue_depth.unwrap_or(this.queue_depth).max(1);
        this
    }
}

impl Lane {
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
