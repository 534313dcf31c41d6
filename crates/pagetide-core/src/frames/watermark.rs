//! Watermarks: their computation, and the check of a zone's free pages against a watermark.
//!
//! Linux: `__zone_watermark_ok`, `zone_watermark_fast`, `calculate_min_free_kbytes`,
//! `__setup_per_zone_wmarks`, `setup_per_zone_lowmem_reserve`, `calculate_totalreserve_pages`
//! (mm/page_alloc.c, 6.1), `set_recommended_min_free_kbytes` (mm/khugepaged.c). One input,
//! `min_free_kbytes`, is divided among the zones by size and gives their min watermarks. The
//! [`WatermarkPolicy`] (three variants in the kernel and its patches) decides how far low and high
//! are above min.
//!
//! Invariant: min <= low <= high in every zone, and recomputing the watermarks clears the boost.

pub use crate::config::{
    default_min_free_kbytes, WatermarkInputs, WatermarkPolicy, WmarkKbytes, MIN_FREE_KBYTES_MAX,
    MIN_FREE_KBYTES_MAX_OLD, MIN_FREE_KBYTES_MIN,
};

use crate::frames::gfp::{AllocFlags, Gfp, Watermark};
use crate::frames::node::Node;
use crate::frames::zone::Zone;
use crate::frames::zone_type::{MAX_NR_ZONES, ZONE_NORMAL};
use crate::units::page_size::PageSize;
use crate::units::{Order, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES, SWAP_CLUSTER_MAX};

/// Smallest `min_free_kbytes` that Linux wants with transparent huge pages: two pageblocks per
/// populated zone, plus one pageblock for each pair of migrate types in each zone; at most 5 % of
/// the memory for kernel buffers (`lowmem_pages`).
pub const fn thp_min_free_kbytes(
    nr_populated_zones: u64,
    lowmem_pages: u64,
    page_size: PageSize,
) -> u64 {
    let blocks = nr_populated_zones * 2 + nr_populated_zones * 9;
    let pages = blocks * PAGEBLOCK_NR_PAGES as u64;
    let cap = lowmem_pages / 20;
    page_size.kbytes_of(if pages < cap { pages } else { cap })
}

/// Called when transparent huge pages are switched on or off. Raises `min_free_kbytes` to their
/// minimum, or resets it to the default, and recomputes the watermarks (Linux 6.1
/// `set_recommended_min_free_kbytes`, called by `start_stop_khugepaged`). A value that an
/// administrator wrote stays, even if it is smaller than the minimum; Linux raises it at every
/// write to `enabled`.
pub fn switch_thp(
    nodes: &mut [Node],
    inputs: &mut WatermarkInputs,
    was_on: bool,
    is_on: bool,
    page_size: PageSize,
) {
    if was_on == is_on || inputs.user_min_free_kbytes.is_some() {
        return;
    }
    if is_on {
        let nr_zones = lowmem_zones(nodes).filter(|zone| zone.present > 0).count() as u64;
        let wanted = thp_min_free_kbytes(nr_zones, nr_free_buffer_pages(nodes), page_size);
        inputs.min_free_kbytes = inputs.min_free_kbytes.max(wanted);
    } else {
        inputs.calculate_min_free_kbytes(lowmem_kbytes(nodes, page_size));
    }
    setup(nodes, inputs, page_size);
}

/// Number of pages that kernel buffers may use: pages above the high watermark in zones up to
/// Normal (Linux `nr_free_buffer_pages`, over all nodes).
pub fn nr_free_buffer_pages(nodes: &[Node]) -> u64 {
    lowmem_zones(nodes).map(|z| z.managed.saturating_sub(z.wmark(Watermark::High))).sum()
}

fn lowmem_zones(nodes: &[Node]) -> impl Iterator<Item = &Zone> {
    nodes.iter().flat_map(|node| &node.zones[..=ZONE_NORMAL])
}

/// Memory for kernel buffers in kB, the input of the default `min_free_kbytes`.
pub fn lowmem_kbytes(nodes: &[Node], page_size: PageSize) -> u64 {
    page_size.kbytes_of(nr_free_buffer_pages(nodes))
}

/// Which of a zone's managed pages to count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ManagedPages {
    /// Pages that were managed when boot first set the watermarks.
    AtBoot,
    /// All managed pages.
    Now,
}

impl ManagedPages {
    const fn of(self, zone: &Zone) -> u64 {
        match self {
            ManagedPages::AtBoot => zone.managed.saturating_sub(zone.late),
            ManagedPages::Now => zone.managed,
        }
    }
}

/// First computation of `min_free_kbytes`, watermarks and reserves, during boot (Linux
/// `init_per_zone_wmark_min`). Late memory ([`Zone::late`]) is not counted.
pub fn boot(nodes: &mut [Node], inputs: &mut WatermarkInputs, page_size: PageSize) {
    let pages: u64 = lowmem_zones(nodes).map(|zone| ManagedPages::AtBoot.of(zone)).sum();
    inputs.calculate_min_free_kbytes(page_size.kbytes_of(pages));
    setup_marks(nodes, inputs, ManagedPages::AtBoot, page_size);
    setup_reserves(nodes, inputs, ManagedPages::AtBoot);
}

/// Computes the watermarks of all zones and the sizes of the per-CPU sets, as a write to one of the
/// sysctls does (Linux `setup_per_zone_wmarks`). Clears every boost.
pub fn setup(nodes: &mut [Node], inputs: &WatermarkInputs, page_size: PageSize) {
    setup_marks(nodes, inputs, ManagedPages::Now, page_size);
}

/// Computes every `lowmem_reserve` (Linux `setup_per_zone_lowmem_reserve`).
pub fn setup_lowmem_reserve(nodes: &mut [Node], inputs: &WatermarkInputs) {
    setup_reserves(nodes, inputs, ManagedPages::Now);
}

fn setup_marks(
    nodes: &mut [Node],
    inputs: &WatermarkInputs,
    managed: ManagedPages,
    page_size: PageSize,
) {
    let zones = || nodes.iter().flat_map(|node| &node.zones);
    let lowmem = zones().filter(|zone| !zone.is_highmem);
    let total: u64 = lowmem.map(|zone| managed.of(zone)).sum();
    for node in nodes.iter_mut() {
        let nr_cpus = node.nr_cpus;
        for zone in &mut node.zones {
            let marks = zone_marks(managed.of(zone), total, inputs, page_size);
            (zone.watermark_min, zone.watermark_low, zone.watermark_high) = marks;
            if zone.is_highmem {
                // Kernel requests have no use for a reserve here. The distances stay.
                let least = highmem_min(managed.of(zone));
                zone.watermark_low = zone.watermark_low - zone.watermark_min + least;
                zone.watermark_high = zone.watermark_high - zone.watermark_min + least;
                zone.watermark_min = least;
            }
            zone.watermark_boost = 0;
            zone.watermark_boost_factor = inputs.watermark_boost_factor;
            zone.fallback = inputs.fallback;
            zone.size_pcps(managed.of(zone), nr_cpus, inputs.pcp, page_size);
        }
    }
    update_totalreserve(nodes);
}

/// The min watermark of a zone HighMem: a thousandth of the zone, within limits.
pub fn highmem_min(managed: u64) -> u64 {
    (managed / 1024).clamp(SWAP_CLUSTER_MAX, 128)
}

/// The min, low and high watermarks of a zone that has `managed` of the machine's `total` pages,
/// HighMem not counted.
pub fn zone_marks(
    managed: u64,
    total: u64,
    inputs: &WatermarkInputs,
    page_size: PageSize,
) -> (u64, u64, u64) {
    let share = |kbytes| mul_div(page_size.pages_in_kbytes(kbytes), managed, total);
    let min = share(inputs.min_free_kbytes);
    let extra = share(inputs.extra_free_kbytes);
    let (low, high) = match inputs.policy {
        WatermarkPolicy::Derived => (min + min / 4, min + min / 2),
        WatermarkPolicy::ScaleFactor => {
            let step = mul_div(managed, inputs.watermark_scale_factor.into(), 10_000).max(min / 4);
            (min + step, min + 2 * step)
        }
        WatermarkPolicy::Apart => match inputs.wmark_kbytes {
            Some(marks) => (share(marks.low).max(min), share(marks.high).max(min)),
            None => (min + min / 4, min + min / 2),
        },
    };
    (min, low + extra, high + extra)
}

/// a * b / c without overflow; 0 if c is 0.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    if c == 0 {
        return 0;
    }
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX >> 8)
}

fn setup_reserves(nodes: &mut [Node], inputs: &WatermarkInputs, managed: ManagedPages) {
    for node in nodes.iter_mut() {
        for i in 0..MAX_NR_ZONES {
            let ratio = u64::from(inputs.lowmem_reserve_ratio[i]);
            let off = ratio == 0 || managed.of(&node.zones[i]) == 0;
            let mut above = 0;
            for j in i + 1..MAX_NR_ZONES {
                above += managed.of(&node.zones[j]);
                node.zones[i].lowmem_reserve[j] = if off { 0 } else { above / ratio };
            }
        }
    }
    update_totalreserve(nodes);
}

/// Recomputes the pages of each node that are kept free: for each zone the high watermark and the
/// largest reserve (Linux `calculate_totalreserve_pages`).
fn update_totalreserve(nodes: &mut [Node]) {
    for node in nodes {
        node.totalreserve_pages = node
            .zones
            .iter()
            .map(|zone| {
                let reserve = zone.lowmem_reserve[zone.index..].iter().max().copied().unwrap_or(0);
                reserve.saturating_add(zone.wmark(Watermark::High)).min(zone.managed)
            })
            .sum();
    }
}

/// Whether the zone stays above `mark` (pages) after a request for 2^`order` pages. There must be
/// *more* free pages than watermark plus reserve, and a free block of `order` (Linux
/// `__zone_watermark_ok`).
pub fn zone_watermark_ok(
    zone: &Zone,
    order: Order,
    mark: u64,
    highest_zoneidx: usize,
    flags: AllocFlags,
) -> bool {
    zone_watermark_ok_free(zone, order, mark, highest_zoneidx, flags, zone.free_pages_counted())
}

/// Like [`zone_watermark_ok`], with an assumed number of free pages, such as the number after a
/// complete reclaim.
pub fn zone_watermark_ok_free(
    zone: &Zone,
    order: Order,
    mark: u64,
    highest_zoneidx: usize,
    flags: AllocFlags,
    free_pages: u64,
) -> bool {
    if order > MAX_PAGE_ORDER {
        return false;
    }
    let unusable = (1u64 << order) - 1 + zone.unusable_free(&flags);
    let mut min = mark;
    if flags.high {
        min -= min / 2;
    }
    if flags.oom {
        min -= min / 2;
    } else if flags.harder {
        min -= min / 4;
    }
    let needed = min
        .saturating_add(zone.lowmem_reserve[highest_zoneidx.min(MAX_NR_ZONES - 1)])
        .saturating_add(unusable);
    free_pages > needed && (order == 0 || zone.has_free_block(order, &flags))
}

/// The check of an allocation attempt, which is cheap if an order-0 request passes (Linux
/// `zone_watermark_fast`). If an atomic order-0 request is checked against the min watermark, the
/// boost is ignored: a boost must wake kswapd, but not make requests fail.
#[inline]
pub fn zone_watermark_fast(
    zone: &Zone,
    order: Order,
    mark: u64,
    highest_zoneidx: usize,
    flags: AllocFlags,
    gfp: Gfp,
) -> bool {
    if order == 0 {
        let usable = zone.free_pages_counted().saturating_sub(zone.unusable_free(&flags));
        if usable > mark + zone.lowmem_reserve[highest_zoneidx] {
            return true;
        }
    }
    watermark_slow(zone, order, mark, highest_zoneidx, flags, gfp)
}

#[cold]
fn watermark_slow(
    zone: &Zone,
    order: Order,
    mark: u64,
    highest_zoneidx: usize,
    flags: AllocFlags,
    gfp: Gfp,
) -> bool {
    if zone_watermark_ok(zone, order, mark, highest_zoneidx, flags) {
        return true;
    }
    let is_atomic = gfp.has(Gfp::HIGH) && !gfp.has(Gfp::DIRECT_RECLAIM);
    order == 0
        && is_atomic
        && zone.watermark_boost > 0
        && flags.watermark == Watermark::Min
        && zone_watermark_ok(zone, order, zone.watermark_min, highest_zoneidx, flags)
}

#[cfg(test)]
mod tests;
