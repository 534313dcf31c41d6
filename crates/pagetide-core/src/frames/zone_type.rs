//! The zones of a node, by index.
//!
//! Linux: `enum zone_type`. A 32-bit machine has zones DMA, Normal and HighMem. HighMem has the index
//! of Movable: both are above what the kernel addresses, so only [`Gfp::HIGHUSER_MOVABLE`] requests
//! may use them, and no zone index of a request depends on the machine. A node therefore cannot
//! have both zones, and a request with `__GFP_HIGHMEM` alone stays below HighMem.
//!
//! [`Gfp::HIGHUSER_MOVABLE`]: crate::frames::gfp::Gfp::HIGHUSER_MOVABLE

pub use crate::units::MAX_NR_ZONES;

/// Memory below 16 MiB.
pub const ZONE_DMA: usize = 0;
/// Memory from 16 MiB to 4 GiB.
pub const ZONE_DMA32: usize = 1;
/// Memory above 4 GiB.
pub const ZONE_NORMAL: usize = 2;
/// Memory kept for movable pages; or memory without a kernel address ([`ZONE_HIGHMEM`]).
pub const ZONE_MOVABLE: usize = 3;
/// Memory above 896 MiB of a 32-bit machine.
pub const ZONE_HIGHMEM: usize = ZONE_MOVABLE;
/// Names as in /proc/zoneinfo, by zone index.
pub const ZONE_NAMES: [&str; MAX_NR_ZONES] = ["DMA", "DMA32", "Normal", "Movable"];
