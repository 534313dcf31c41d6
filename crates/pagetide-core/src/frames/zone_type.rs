//! The zones of a node, by index.
//!
//! Linux: `enum zone_type`.

pub use crate::units::MAX_NR_ZONES;

/// Memory below 16 MiB.
pub const ZONE_DMA: usize = 0;
/// Memory from 16 MiB to 4 GiB.
pub const ZONE_DMA32: usize = 1;
/// Memory above 4 GiB.
pub const ZONE_NORMAL: usize = 2;
/// Memory kept for movable pages.
pub const ZONE_MOVABLE: usize = 3;
/// Names as in /proc/zoneinfo, by zone index.
pub const ZONE_NAMES: [&str; MAX_NR_ZONES] = ["DMA", "DMA32", "Normal", "Movable"];
