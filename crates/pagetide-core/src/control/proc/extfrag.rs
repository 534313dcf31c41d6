//! extfrag_index and unusable_index of /sys/kernel/debug/extfrag (Linux: mm/vmstat.c, 6.1).
//!
//! One line per zone with memory, one number per order. The kernel prints an index between -1 and 0
//! as ` 0.-500`, and so does Pagetide.

use super::put;
use super::zones::put_zone_head;
use crate::compaction::fragmentation::{fragmentation_index, unusable_index};
use crate::frames::page_alloc::Memory;
use crate::frames::zone::Zone;
use crate::interface::kernel::Kernel;
use crate::units::{Order, MAX_PAGE_ORDER};
use alloc::string::String;
use core::fmt::Write;

impl Memory {
    /// Formats thousandths as `0.123`; the integer part has at least `width` characters.
    fn index_text(&self, width: usize, index: fn(&Zone, Order) -> i32) -> String {
        let mut out = String::new();
        for zone in self.present_zones() {
            put_zone_head(&mut out, zone);
            out.push(' ');
            for order in 0..=MAX_PAGE_ORDER {
                let index = index(zone, order);
                put!(out, "{:>width$}.{:03} ", index / 1000, index % 1000);
            }
            out.push('\n');
        }
        out
    }
}

impl Kernel {
    /// extfrag_index: for each order, why a request would fail (lack of memory or fragmentation).
    pub fn debugfs_extfrag_index(&self) -> String {
        self.mem.index_text(2, fragmentation_index)
    }

    /// unusable_index: for each order, the fraction of free memory that a request cannot use.
    pub fn debugfs_unusable_index(&self) -> String {
        self.mem.index_text(1, unusable_index)
    }
}
