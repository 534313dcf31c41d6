//! How fragmented a zone is.
//!
//! Linux: `__fragmentation_index`, `unusable_free_index`, `extfrag_for_order` (mm/vmstat.c, 6.1).

use crate::units::Order;
use crate::zone::Zone;

/// Why an allocation of `order` would fail, in thousandths: near 0 for want of memory, near 1000 for
/// fragmentation; -1000 if it would not fail.
pub fn fragmentation_index(zone: &Zone, order: Order) -> i32 {
    let blocks = zone.buddyinfo();
    let nr: u64 = blocks.iter().sum();
    let free: u64 = blocks.iter().enumerate().map(|(order, nr)| nr << order).sum();
    if blocks[usize::from(order).min(blocks.len())..].iter().any(|&nr| nr > 0) {
        return -1000;
    }
    if nr == 0 {
        return 0;
    }
    let requested = 1u64 << order;
    1000 - ((1000 + free * 1000 / requested) / nr) as i32
}
