//! Compares the watermarks of a simulated machine with those of the system.
//!
//! Linux: `__setup_per_zone_wmarks` (mm/page_alloc.c), as described in docs/scenario.md. A system
//! can have other watermarks: they may have been computed when it had less memory (at boot, before
//! memory was added), or by a rule of its kernel (zone Movable since 6.4). Invariant: this module
//! only compares; a scenario gets the system's `vm.min_free_kbytes` and related knobs, never a
//! watermark.

use super::number::scale;

/// The inputs of the watermarks.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatermarkRule {
    /// `vm.min_free_kbytes`, in pages of 4 KiB.
    pub min_free_pages: u64,
    /// `vm.watermark_scale_factor`; `None` before 4.6.
    pub scale_factor: Option<u64>,
}

/// Min, low and high in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostWatermarks {
    pub min: u64,
    pub low: u64,
    pub high: u64,
}

impl WatermarkRule {
    /// The watermarks of a zone of `managed` pages among `total`.
    pub(super) fn marks(self, managed: u64, total: u64) -> HostWatermarks {
        let min = scale(self.min_free_pages, managed, total);
        let (to_low, to_high) = match self.scale_factor {
            None => (min / 4, min / 2),
            Some(factor) => {
                let step = scale(managed, factor, 10_000).max(min / 4);
                (step, step.saturating_mul(2))
            }
        };
        HostWatermarks { min, low: min.saturating_add(to_low), high: min.saturating_add(to_high) }
    }
}

impl HostWatermarks {
    /// The larger of the differences in min and in high, in pages.
    pub(super) fn distance(self, other: HostWatermarks) -> u64 {
        self.min.abs_diff(other.min).max(self.high.abs_diff(other.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_real_machine() {
        let rule = WatermarkRule { min_free_pages: 67_584 / 4, scale_factor: Some(10) };
        let total = 3840 + 772_918 + 4_030_464;
        assert_eq!(rule.marks(3840, total), HostWatermarks { min: 13, low: 16, high: 19 });
        assert_eq!(rule.marks(772_918, total), HostWatermarks { min: 2716, low: 3488, high: 4260 });
        assert_eq!(
            rule.marks(4_030_464, total),
            HostWatermarks { min: 14_165, low: 18_195, high: 22_225 }
        );
    }

    #[test]
    fn old_kernels_derive_them_from_min() {
        let rule = WatermarkRule { min_free_pages: 1000, scale_factor: None };
        assert_eq!(rule.marks(100, 100), HostWatermarks { min: 1000, low: 1250, high: 1500 });
        assert_eq!(rule.marks(100, 0), HostWatermarks { min: 0, low: 0, high: 0 });
        let huge = WatermarkRule { min_free_pages: u64::MAX, scale_factor: Some(u64::MAX) };
        assert_eq!(huge.marks(u64::MAX, 1).high, u64::MAX);
    }
}
