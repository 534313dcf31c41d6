//! Watermarks: how they are computed, and the test of a zone against one.
//!
//! Linux: `__zone_watermark_ok`, `zone_watermark_fast`, `calculate_min_free_kbytes`,
//! `__setup_per_zone_wmarks`, `setup_per_zone_lowmem_reserve`, `calculate_totalreserve_pages`
//! (mm/page_alloc.c, 6.1), `set_recommended_min_free_kbytes` (mm/khugepaged.c). One input,
//! `min_free_kbytes`, is shared out among the zones by size; how far low and high stand above min
//! is the [`WatermarkPolicy`], of which the kernel has had three in its time.
//!
//! Invariant: min <= low <= high in every zone, and computing the marks again clears the boost.

use crate::digest::State;
use crate::gfp::{AllocFlags, Gfp, Watermark};
use crate::node::Node;
use crate::page_size::PageSize;
use crate::pcp::PcpPolicy;
use crate::units::{int_sqrt, Order, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES};
use crate::zone::{Zone, MAX_NR_ZONES, ZONE_NORMAL};

/// How the low and high marks follow from the min mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub enum WatermarkPolicy {
    /// Linux up to 4.5: low is 5/4 of min, high 3/2.
    Derived,
    /// Linux from 4.6: both steps are the larger of min/4 and `watermark_scale_factor`/10000 of
    /// the zone.
    ScaleFactor,
    /// Satoru Moriya's patch of 2011: three sysctls, one for each mark. Until one of them is
    /// written the marks are as under [`WatermarkPolicy::Derived`].
    Apart,
}

/// The three sysctls of [`WatermarkPolicy::Apart`], in kB for the whole machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct WmarkKbytes {
    /// `vm.wmark_min_kbytes`
    pub min: u64,
    /// `vm.wmark_low_kbytes`, at least min.
    pub low: u64,
    /// `vm.wmark_high_kbytes`, at least low.
    pub high: u64,
}

impl WmarkKbytes {
    /// What the three are while only `vm.min_free_kbytes` is set. None is more than can be written
    /// to its knob, an `int`.
    pub const fn derived(min_free_kbytes: u64) -> WmarkKbytes {
        const fn at_most_int(kbytes: u64) -> u64 {
            if kbytes > i32::MAX as u64 {
                i32::MAX as u64
            } else {
                kbytes
            }
        }
        let min = at_most_int(min_free_kbytes);
        WmarkKbytes { min, low: at_most_int(min + min / 4), high: at_most_int(min + min / 2) }
    }

    /// Whether min <= low <= high.
    pub const fn is_ordered(&self) -> bool {
        self.min <= self.low && self.low <= self.high
    }
}

/// What the marks are computed from: the sysctls of that name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct WatermarkInputs {
    /// Reserve of the whole machine in kB, the basis of all min marks.
    pub min_free_kbytes: u64,
    /// What an administrator wrote to it, if anything; a smaller default does not replace it.
    pub user_min_free_kbytes: Option<u64>,
    /// Distance of low from min and of high from low, in 1/10000 of the zone (10).
    pub watermark_scale_factor: u32,
    /// Largest boost in 1/10000 of the high mark (15000); 0 turns boosting off.
    pub watermark_boost_factor: u32,
    /// Out of tree (Rik van Riel, 2011): kB by which low and high are raised (0).
    pub extra_free_kbytes: u64,
    /// The three separate marks, once one of them was written.
    pub wmark_kbytes: Option<WmarkKbytes>,
    /// Zone i is protected from requests that could use higher zones by their size divided by
    /// this; 0 is no protection.
    pub lowmem_reserve_ratio: [u32; MAX_NR_ZONES],
    /// Upper clamp of the default `min_free_kbytes`, in kB.
    pub min_free_kbytes_max: u64,
    /// How low and high follow.
    pub policy: WatermarkPolicy,
    /// How the per-CPU sets are sized, which follows from the marks.
    pub pcp: PcpPolicy,
}

/// Upper clamp of the default `min_free_kbytes` since Linux 5.8, in kB.
pub const MIN_FREE_KBYTES_MAX: u64 = 262_144;
/// The same before 5.8, in kB.
pub const MIN_FREE_KBYTES_MAX_OLD: u64 = 65_536;
/// Lower clamp, in kB.
pub const MIN_FREE_KBYTES_MIN: u64 = 128;

impl Default for WatermarkInputs {
    fn default() -> Self {
        WatermarkInputs {
            min_free_kbytes: 1024,
            user_min_free_kbytes: None,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15_000,
            extra_free_kbytes: 0,
            wmark_kbytes: None,
            lowmem_reserve_ratio: [256, 256, 32, 0],
            min_free_kbytes_max: MIN_FREE_KBYTES_MAX,
            policy: WatermarkPolicy::ScaleFactor,
            pcp: PcpPolicy::Linux61,
        }
    }
}

impl WatermarkInputs {
    /// Recomputes `min_free_kbytes` for a machine with that much memory for kernel buffers
    /// (Linux `calculate_min_free_kbytes`). A larger value written by the user stays.
    pub fn calculate_min_free_kbytes(&mut self, lowmem_kbytes: u64) {
        let default = min_free_kbytes_unclamped(lowmem_kbytes);
        self.min_free_kbytes = match self.user_min_free_kbytes {
            Some(user) if user >= default => user,
            Some(_) | None => default
                .clamp(MIN_FREE_KBYTES_MIN, self.min_free_kbytes_max.max(MIN_FREE_KBYTES_MIN)),
        };
    }

    /// The three marks in kB under [`WatermarkPolicy::Apart`].
    pub fn wmark_kbytes(&self) -> WmarkKbytes {
        self.wmark_kbytes.unwrap_or(WmarkKbytes::derived(self.min_free_kbytes))
    }

    /// Writes `vm.min_free_kbytes`: under [`WatermarkPolicy::Apart`] all three marks follow again.
    pub const fn write_min_free_kbytes(&mut self, kbytes: u64) {
        self.min_free_kbytes = kbytes;
        self.user_min_free_kbytes = Some(kbytes);
        self.wmark_kbytes = None;
    }

    /// Writes one or more of the three separate marks; `min_free_kbytes` follows min.
    /// Says whether the write was accepted: min <= low <= high must hold, else nothing changes.
    #[must_use]
    pub const fn write_wmark_kbytes(&mut self, marks: WmarkKbytes) -> bool {
        if !marks.is_ordered() {
            return false;
        }
        self.min_free_kbytes = marks.min;
        self.user_min_free_kbytes = Some(marks.min);
        self.wmark_kbytes = Some(marks);
        true
    }
}

const fn min_free_kbytes_unclamped(lowmem_kbytes: u64) -> u64 {
    int_sqrt(lowmem_kbytes.saturating_mul(16))
}

/// Default `min_free_kbytes` of a machine with that much memory for kernel buffers (kB), clamped
/// to 128 and `max` ([`MIN_FREE_KBYTES_MAX`] or [`MIN_FREE_KBYTES_MAX_OLD`]).
///
/// ```
/// use pagetide_core::watermark::{default_min_free_kbytes, MIN_FREE_KBYTES_MAX};
/// assert_eq!(default_min_free_kbytes(2_067_844, MIN_FREE_KBYTES_MAX), 5752);
/// ```
pub const fn default_min_free_kbytes(lowmem_kbytes: u64, max: u64) -> u64 {
    let default = min_free_kbytes_unclamped(lowmem_kbytes);
    let default = if default > max { max } else { default };
    if default < MIN_FREE_KBYTES_MIN {
        MIN_FREE_KBYTES_MIN
    } else {
        default
    }
}

/// `min_free_kbytes` that Linux wants at least when transparent huge pages are on: two pageblocks
/// a populated zone and one for each pair of migrate types and zone, at most 5 % of the memory
/// for kernel buffers (`lowmem_pages`).
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

/// Transparent huge pages go on or off: `min_free_kbytes` is raised to what they want, or is the
/// default again, and the marks follow (Linux 6.1 `set_recommended_min_free_kbytes`, called by
/// `start_stop_khugepaged`). What an administrator wrote stays, even if it is less; Linux raises it,
/// and does so again at every write to `enabled`.
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

/// Pages that kernel buffers may use: above the high mark, in zones up to Normal
/// (Linux `nr_free_buffer_pages`, seen from any node).
pub fn nr_free_buffer_pages(nodes: &[Node]) -> u64 {
    lowmem_zones(nodes).map(|z| z.managed.saturating_sub(z.wmark(Watermark::High))).sum()
}

fn lowmem_zones(nodes: &[Node]) -> impl Iterator<Item = &Zone> {
    nodes.iter().flat_map(|node| &node.zones[..=ZONE_NORMAL])
}

/// Memory for kernel buffers in kB: what the default `min_free_kbytes` grows with.
pub fn lowmem_kbytes(nodes: &[Node], page_size: PageSize) -> u64 {
    page_size.kbytes_of(nr_free_buffer_pages(nodes))
}

/// How many of a zone's managed pages count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Managed {
    /// Those that boot had when it first set the marks.
    AtBoot,
    /// All.
    Now,
}

impl Managed {
    const fn of(self, zone: &Zone) -> u64 {
        match self {
            Managed::AtBoot => zone.managed.saturating_sub(zone.late),
            Managed::Now => zone.managed,
        }
    }
}

/// First computation of `min_free_kbytes` and all marks and reserves, as during boot
/// (Linux `init_per_zone_wmark_min`): memory that arrives late ([`Zone::late`]) is not counted.
pub fn boot(nodes: &mut [Node], inputs: &mut WatermarkInputs, page_size: PageSize) {
    let pages: u64 = lowmem_zones(nodes).map(|zone| Managed::AtBoot.of(zone)).sum();
    inputs.calculate_min_free_kbytes(page_size.kbytes_of(pages));
    setup_marks(nodes, inputs, Managed::AtBoot, page_size);
    setup_reserves(nodes, inputs, Managed::AtBoot);
}

/// Computes the marks of all zones and with them the sizes of the per-CPU sets, as after a write
/// to one of the sysctls (Linux `setup_per_zone_wmarks`). Clears every boost.
pub fn setup(nodes: &mut [Node], inputs: &WatermarkInputs, page_size: PageSize) {
    setup_marks(nodes, inputs, Managed::Now, page_size);
}

/// Computes every `lowmem_reserve` (Linux `setup_per_zone_lowmem_reserve`), as after a write to
/// `vm.lowmem_reserve_ratio`.
pub fn setup_lowmem_reserve(nodes: &mut [Node], inputs: &WatermarkInputs) {
    setup_reserves(nodes, inputs, Managed::Now);
}

fn setup_marks(
    nodes: &mut [Node],
    inputs: &WatermarkInputs,
    managed: Managed,
    page_size: PageSize,
) {
    let zones = || nodes.iter().flat_map(|node| &node.zones);
    let total: u64 = zones().map(|zone| managed.of(zone)).sum();
    for node in nodes.iter_mut() {
        let nr_cpus = node.nr_cpus;
        for zone in &mut node.zones {
            let marks = zone_marks(managed.of(zone), total, inputs, page_size);
            (zone.watermark_min, zone.watermark_low, zone.watermark_high) = marks;
            zone.watermark_boost = 0;
            zone.watermark_boost_factor = inputs.watermark_boost_factor;
            zone.size_pcps(managed.of(zone), nr_cpus, inputs.pcp, page_size);
        }
    }
    update_totalreserve(nodes);
}

/// Min, low and high of a zone of `managed` pages among `total`, in pages.
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

/// a * b / c without losing bits; 0 when c is 0.
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    if c == 0 {
        return 0;
    }
    u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX >> 8)
}

fn setup_reserves(nodes: &mut [Node], inputs: &WatermarkInputs, managed: Managed) {
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

/// Recomputes the pages of each node that ordinary use should leave alone: the high mark and the
/// largest reserve of each zone (Linux `calculate_totalreserve_pages`).
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

/// Whether a request for 2^`order` pages would leave the zone above `mark` (pages): free pages
/// must be *more* than mark and reserve, and for order > 0 a block must actually exist
/// (Linux `__zone_watermark_ok`).
pub fn zone_watermark_ok(
    zone: &Zone,
    order: Order,
    mark: u64,
    highest_zoneidx: usize,
    flags: AllocFlags,
) -> bool {
    zone_watermark_ok_free(zone, order, mark, highest_zoneidx, flags, zone.free_pages())
}

/// [`zone_watermark_ok`] for an assumed number of free pages: reclaim asks what would be if it
/// freed everything it could.
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
    let mut unusable = (1u64 << order) - 1;
    if !flags.may_use_highatomic() {
        unusable += zone.nr_reserved_highatomic;
    }
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
    free_pages > needed && (order == 0 || zone.has_free_block(order, flags.may_use_highatomic()))
}

/// The test of an allocation attempt, cheap when an order-0 request passes
/// (Linux `zone_watermark_fast`). An atomic order-0 request tested against the min mark may
/// ignore the boost, which is there to wake kswapd and not to fail anybody.
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
        let reserved = if flags.may_use_highatomic() { 0 } else { zone.nr_reserved_highatomic };
        let usable = zone.free_pages().saturating_sub(reserved);
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
