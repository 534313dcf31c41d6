//! A zone's counter of free pages, and for each CPU a *difference* (per-CPU delta) that the counter
//! lacks so far.
//!
//! Linux: `vm_stat[NR_FREE_PAGES]` of a zone and `per_cpu_zonestats` (mm/vmstat.c, 6.1). A CPU
//! keeps a difference and adds it to the counter when the difference exceeds a threshold. Watermark
//! checks read the counter, which lags behind, so their result may be wrong by a few pages. The lag
//! of all CPUs together could hide that free pages have fallen to the min watermark. So if the
//! counter is below a limit (the drift mark), kswapd reads the exact sum; and while kswapd is
//! awake, such zones have smaller thresholds.
//!
//! A CPU adds its difference when it goes idle (`quiet_vmstat`) and once a second
//! (`vmstat_update`); the world triggers this ([`crate::interface::kernel::Kernel::refresh_cpu_vm_stats`]).
//! Other counters are always exact here, because no decision depends on a few pages of them.
//!
//! Invariant: the counter plus all differences is the zone's number of free pages. No difference
//! exceeds the threshold that was in force when the difference last changed.

use crate::units::digest::State;
use crate::units::{Cpu, IdVec};
use alloc::vec;

/// Largest threshold in pages.
const STAT_THRESHOLD_MAX: u64 = 125;

/// The counter and the differences.
#[derive(Clone, Debug, State)]
pub(crate) struct ZoneStat {
    counted: i64,
    diffs: IdVec<Cpu, i64>,
    threshold: i64,
    /// If the counter is below this number of pages, the exact sum is read; 0: never (Linux
    /// `percpu_drift_mark`).
    drift_mark: u64,
    /// The CPU that allocates or frees. Blocks that compaction moves are counted on the CPU before
    /// it.
    pub(crate) this_cpu: Cpu,
}

/// Inputs of the thresholds.
#[derive(Clone, Copy)]
pub(crate) struct StatMarks {
    pub managed: u64,
    pub min: u64,
    pub low: u64,
    pub high: u64,
}

/// Position of the highest set bit, counted from 1; `fls(0)` is 0 (Linux `fls`).
const fn fls(of: u64) -> u64 {
    (u64::BITS - of.leading_zeros()) as u64
}

impl ZoneStat {
    pub(crate) fn new(nr_cpus: u16) -> ZoneStat {
        ZoneStat {
            counted: 0,
            diffs: vec![0; nr_cpus.into()].into(),
            threshold: 0,
            drift_mark: 0,
            this_cpu: Cpu(0),
        }
    }

    /// The counter (Linux `zone_page_state`).
    #[inline]
    pub(crate) const fn counted(&self) -> u64 {
        if self.counted < 0 {
            0
        } else {
            self.counted as u64
        }
    }

    /// The number that kswapd compares with a watermark, where `exact` is the exact number of free
    /// pages (Linux `zone_watermark_ok_safe`).
    #[inline]
    pub(crate) const fn safe(&self, exact: u64) -> u64 {
        let counted = self.counted();
        if counted < self.drift_mark {
            exact
        } else {
            counted
        }
    }

    /// Adds `delta` pages on this CPU (Linux `__mod_zone_page_state`).
    #[inline]
    pub(crate) fn add(&mut self, delta: i64) {
        let diff = &mut self.diffs[self.this_cpu];
        *diff += delta;
        if diff.abs() > self.threshold {
            self.counted += core::mem::take(diff);
        }
    }

    #[inline]
    pub(crate) fn add_each(&mut self, pages: i64, times: u32) {
        let mut times = times;
        // Adds one at a time. The first addition also adds an excess that a lower threshold has
        // left.
        while times > 0 && (times == 1 || self.diffs[self.this_cpu].abs() > self.threshold) {
            self.add(pages);
            times -= 1;
        }
        if times == 0 {
            return;
        }
        let diff = &mut self.diffs[self.this_cpu];
        let mut left = i64::from(times);
        // The threshold is exceeded by the first of these additions, and then by every n-th one.
        let first = (self.threshold - *diff) / pages + 1;
        if left >= first {
            self.counted += *diff + pages * first;
            *diff = 0;
            left -= first;
            let next = self.threshold / pages + 1;
            self.counted += left / next * next * pages;
            left %= next;
        }
        *diff += pages * left;
    }

    /// Adds a CPU's difference to the counter (Linux `refresh_cpu_vm_stats`).
    pub(crate) fn refresh(&mut self, cpu: Cpu) {
        self.counted += core::mem::take(&mut self.diffs[cpu]);
    }

    /// Computes the thresholds at machine start (Linux `refresh_zone_stat_thresholds`). `unit` is
    /// the number of pages in 128 MiB.
    pub(crate) fn set_thresholds(&mut self, marks: StatMarks, unit: u64) {
        let nr_cpus = self.diffs.len() as u64;
        let normal = normal_threshold(marks.managed, nr_cpus, unit);
        self.threshold = normal as i64;
        let max_drift = nr_cpus * normal;
        let tolerated = marks.low - marks.min;
        self.drift_mark = if max_drift > tolerated { marks.high + max_drift } else { 0 };
    }

    /// Adjusts the thresholds when kswapd goes to full sleep or wakes up (Linux
    /// `set_pgdat_percpu_threshold`). If a difference exceeds the new threshold, the CPU adds it
    /// with its next page.
    pub(crate) fn set_pressure(&mut self, awake: bool, marks: StatMarks, unit: u64) {
        if self.drift_mark == 0 {
            return;
        }
        let nr_cpus = self.diffs.len() as u64;
        self.threshold = match awake {
            true => ((marks.low - marks.min) / nr_cpus).clamp(1, STAT_THRESHOLD_MAX),
            false => normal_threshold(marks.managed, nr_cpus, unit),
        } as i64;
    }

    /// The counter plus all differences.
    pub(crate) fn sum(&self) -> i64 {
        self.counted + self.diffs.iter().sum::<i64>()
    }
}

/// Threshold of a CPU's difference while memory is not short (Linux `calculate_normal_threshold`).
fn normal_threshold(managed: u64, nr_cpus: u64, unit: u64) -> u64 {
    (2 * fls(nr_cpus) * (1 + fls(managed / unit))).min(STAT_THRESHOLD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNIT: u64 = 1 << 15;

    fn zone(managed: u64, nr_cpus: u16) -> ZoneStat {
        let mut stat = ZoneStat::new(nr_cpus);
        stat.set_thresholds(StatMarks { managed, min: 32, low: 40, high: 48 }, UNIT);
        stat
    }

    #[test]
    fn thresholds_are_those_of_the_kernel() {
        // A zone of 15 MiB and one of 203 MiB; the sizes are those of the comment of mm/vmstat.c.
        assert_eq!(zone(3840, 1).threshold, 2);
        assert_eq!(zone(52_065, 1).threshold, 4);
        assert_eq!(zone(1 << 18, 2).threshold, 4 * 5);
        assert_eq!(zone(1 << 22, 512).threshold, 125);
        assert_eq!((zone(3840, 2).drift_mark, zone(3840, 4).drift_mark), (0, 48 + 24));
    }

    #[test]
    fn the_counter_lags_until_the_threshold_is_exceeded() {
        let mut stat = zone(3840, 1);
        for (delta, counted) in [(5, 5), (-1, 5), (-1, 5), (-1, 2), (1, 2), (2, 5), (-2, 5)] {
            stat.add(delta);
            assert_eq!(stat.counted(), counted);
        }
        stat.refresh(Cpu(0));
        assert_eq!((stat.counted(), stat.safe(77)), (3, 3));
    }

    #[test]
    fn near_the_marks_of_a_zone_with_drift_kswapd_reads_the_sum() {
        let mut stat = zone(3840, 8);
        assert_eq!((stat.threshold, stat.drift_mark), (8, 48 + 64));
        stat.add(100);
        stat.add(5);
        assert_eq!((stat.counted(), stat.safe(105)), (100, 105));
        let marks = StatMarks { managed: 3840, min: 32, low: 40, high: 48 };
        stat.set_pressure(true, marks, UNIT);
        assert_eq!(stat.threshold, 1);
        stat.set_pressure(false, marks, UNIT);
        assert_eq!(stat.threshold, 8);
    }

    proptest! {
        #[test]
        fn many_additions_are_as_one_after_the_other(
            cpus in 1u16..20,
            before in -8i64..8,
            pages in 0u32..4,
            times in 1u32..200,
            awake: bool,
        ) {
            let mut at_once = zone(3840, cpus);
            at_once.add(before);
            at_once.set_pressure(awake, StatMarks { managed: 3840, min: 32, low: 40, high: 48 }, UNIT);
            let mut one_by_one = at_once.clone();
            at_once.add_each(1 << pages, times);
            (0..times).for_each(|_| one_by_one.add(1 << pages));
            prop_assert_eq!(at_once.counted, one_by_one.counted);
            prop_assert_eq!(at_once.diffs, one_by_one.diffs);
        }
    }
}
