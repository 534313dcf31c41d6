//! The inputs of the watermarks. Three of them are the watermarks that a patch of 2011 sets
//! directly.
//!
//! Linux: the variables behind `min_free_kbytes` and related sysctls (mm/page_alloc.c), and
//! `calculate_min_free_kbytes`. [`crate::frames::watermark`] has the computation.
//!
//! Invariant: the three separate watermarks satisfy min <= low <= high.

use super::{FallbackPolicy, PcpPolicy, WatermarkPolicy};
use crate::units::digest::State;
use crate::units::{int_sqrt, MAX_NR_ZONES};

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
    /// The three values while only `vm.min_free_kbytes` is set; none exceeds the range of an `int`.
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

/// The inputs of the watermarks: the sysctls of the same names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct WatermarkInputs {
    /// Reserve of the whole machine in kB, from which all min watermarks are computed.
    pub min_free_kbytes: u64,
    /// The value that an administrator wrote, if any. A smaller default does not replace it.
    pub user_min_free_kbytes: Option<u64>,
    /// Distance of low from min and of high from low, in 1/10000 of the zone (default 10).
    pub watermark_scale_factor: u32,
    /// Largest boost in 1/10000 of the high watermark (default 15000); 0 turns boosting off.
    pub watermark_boost_factor: u32,
    /// Out of tree (Rik van Riel, 2011): kB by which low and high are raised (default 0).
    pub extra_free_kbytes: u64,
    /// The three separate watermarks, once one of them was written.
    pub wmark_kbytes: Option<WmarkKbytes>,
    /// A request for a higher zone must leave pages free in zone i: the size of the zones above it
    /// divided by this number; 0: none.
    pub lowmem_reserve_ratio: [u32; MAX_NR_ZONES],
    /// Upper clamp of the default `min_free_kbytes`, in kB.
    pub min_free_kbytes_max: u64,
    /// How the low and high watermarks follow from min.
    pub policy: WatermarkPolicy,
    /// How the sizes of the per-CPU sets are computed; some depend on the watermarks.
    pub pcp: PcpPolicy,
    /// Rule for taking pages from a pageblock of another type.
    pub fallback: FallbackPolicy,
}

/// Upper clamp of the default `min_free_kbytes` since Linux 5.8, in kB.
pub const MIN_FREE_KBYTES_MAX: u64 = 262_144;
/// Upper clamp of the default `min_free_kbytes` before Linux 5.8, in kB.
pub const MIN_FREE_KBYTES_MAX_OLD: u64 = 65_536;
/// Lower clamp of the default `min_free_kbytes`, in kB.
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
            fallback: FallbackPolicy::Linux61,
        }
    }
}

impl WatermarkInputs {
    /// Recomputes `min_free_kbytes` for a machine with this much memory for kernel buffers (Linux
    /// `calculate_min_free_kbytes`). A larger value that the user wrote stays.
    pub fn calculate_min_free_kbytes(&mut self, lowmem_kbytes: u64) {
        let default = min_free_kbytes_unclamped(lowmem_kbytes);
        self.min_free_kbytes = match self.user_min_free_kbytes {
            Some(user) if user >= default => user,
            Some(_) | None => default
                .clamp(MIN_FREE_KBYTES_MIN, self.min_free_kbytes_max.max(MIN_FREE_KBYTES_MIN)),
        };
    }

    /// The three watermarks in kB under [`WatermarkPolicy::Apart`].
    pub fn wmark_kbytes(&self) -> WmarkKbytes {
        self.wmark_kbytes.unwrap_or(WmarkKbytes::derived(self.min_free_kbytes))
    }

    /// Writes `vm.min_free_kbytes`. Under [`WatermarkPolicy::Apart`] this recomputes all three
    /// watermarks.
    pub const fn write_min_free_kbytes(&mut self, kbytes: u64) {
        self.min_free_kbytes = kbytes;
        self.user_min_free_kbytes = Some(kbytes);
        self.wmark_kbytes = None;
    }

    /// Writes one or more of the three separate watermarks; `min_free_kbytes` becomes the new min.
    /// Returns false and changes nothing unless min <= low <= high.
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

/// Default `min_free_kbytes` of a machine with this much memory for kernel buffers (kB), clamped to
/// 128 and `max` ([`MIN_FREE_KBYTES_MAX`] or [`MIN_FREE_KBYTES_MAX_OLD`]).
///
/// ```
/// use pagetide_core::frames::watermark::{default_min_free_kbytes, MIN_FREE_KBYTES_MAX};
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
