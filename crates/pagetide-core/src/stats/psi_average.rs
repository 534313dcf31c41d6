//! Running averages of pressure: `avg10`, `avg60` and `avg300` of memory.pressure.
//!
//! Linux 6.1: `update_averages`, `calc_avgs` (kernel/sched/psi.c), `calc_load`, `fixed_power_int`
//! (kernel/sched/loadavg.c). Every two seconds each average moves towards the share of the time that
//! was stalled, in whole percent. Windows that were missed count as windows without stalls.
//!
//! Difference from Linux: the grid of a group begins with its first task, not with the group.

use crate::units::digest::State;
use crate::units::Nanos;

/// Interval of the averages (`PSI_FREQ`).
const PERIOD: Nanos = 2_000_000_000;
/// Fixed point of the averages (`FSHIFT`, `FIXED_1`).
const FSHIFT: u32 = 11;
const FIXED_1: u64 = 1 << FSHIFT;
/// `EXP_10s`, `EXP_60s`, `EXP_300s`.
const DECAYS: [u64; 3] = [1677, 1981, 2034];

/// Averages over 10, 60 and 300 seconds, in percent with [`FSHIFT`] bits after the point.
#[derive(Clone, Debug, Default, PartialEq, Eq, State)]
pub struct PsiAverages {
    /// Time from which the next update is due; 0: no task has come yet.
    next_update: Nanos,
    last_update: Nanos,
    /// Totals of some and full at the last update.
    totals: [u64; 2],
    some: [u64; 3],
    full: [u64; 3],
}

impl PsiAverages {
    /// Starts the grid with the first task.
    pub(crate) fn begin(&mut self, now: Nanos) {
        if self.next_update == 0 {
            self.next_update = now.saturating_add(PERIOD);
            self.last_update = now;
        }
    }

    /// Moves the averages if an update is due. `totals`: stall times of some and full.
    pub(crate) fn update(&mut self, now: Nanos, totals: [u64; 2]) {
        if self.next_update == 0 || now < self.next_update {
            return;
        }
        let missed = (now - self.next_update) / PERIOD;
        self.next_update = self.next_update.saturating_add((1 + missed) * PERIOD);
        let period = now - self.last_update.saturating_add(missed * PERIOD).min(now);
        self.last_update = now;
        let all = [&mut self.some, &mut self.full];
        for ((averages, total), last) in all.into_iter().zip(totals).zip(&mut self.totals) {
            // Stall times of other CPUs may be ahead of the time of the update.
            let sample = total.saturating_sub(*last).min(period);
            *last += sample;
            let percent = (sample * 100).checked_div(period).unwrap_or(0) * FIXED_1;
            for (average, decay) in averages.iter_mut().zip(DECAYS) {
                if missed > 0 {
                    *average = calc_load(*average, power(decay, missed), 0);
                }
                *average = calc_load(*average, decay, percent);
            }
        }
    }

    /// `some` over 10, 60 and 300 seconds in hundredths of a percent, as the file shows them.
    pub fn some(&self) -> [u64; 3] {
        self.some.map(hundredths)
    }

    /// `full`, like [`PsiAverages::some`].
    pub fn full(&self) -> [u64; 3] {
        self.full.map(hundredths)
    }
}

/// `LOAD_INT` and `LOAD_FRAC`.
fn hundredths(average: u64) -> u64 {
    (average >> FSHIFT) * 100 + (((average & (FIXED_1 - 1)) * 100) >> FSHIFT)
}

/// A decaying average, rounded up while it rises (`calc_load`).
fn calc_load(load: u64, decay: u64, active: u64) -> u64 {
    let round = if active >= load { FIXED_1 - 1 } else { 0 };
    (load * decay + active * (FIXED_1 - decay) + round) / FIXED_1
}

/// `base` to the power of `exponent` in fixed point (`fixed_power_int`).
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let times = |one: u64, other: u64| (one * other + (FIXED_1 >> 1)) >> FSHIFT;
    let mut result = FIXED_1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, base);
        }
        exponent >>= 1;
        base = times(base, base);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_constant_stall_raises_the_averages_as_in_linux() {
        let mut averages = PsiAverages::default();
        averages.begin(0);
        let seconds = [2u64, 4, 6, 8, 10, 20, 60];
        let mut shown = Vec::new();
        for step in 1..=30u64 {
            averages.update(step * PERIOD, [step * PERIOD, step * PERIOD / 2]);
            if seconds.contains(&(step * 2)) {
                shown.push((averages.some()[0], averages.full()[0]));
            }
        }
        // 100 % for n updates: 1 - (1677/2048)^n, and half of it.
        assert_eq!(shown[0], (1811, 905));
        assert_eq!(shown[1].0, 3294);
        assert!((6300..6340).contains(&shown[4].0), "{shown:?}");
        assert!(shown[6].0 > 9970);
        // Half a minute without updates: 15 windows without a stall.
        let [before, ..] = averages.some();
        averages.update(90 * 1_000_000_000, [60_000_000_000, 30_000_000_000]);
        let after = averages.some()[0];
        assert!(after < before / 15 && after > before / 25, "{before} {after}");
    }

    #[test]
    fn an_early_look_changes_nothing() {
        let mut averages = PsiAverages::default();
        averages.update(5, [1, 1]);
        averages.begin(0);
        let before = averages.clone();
        averages.update(PERIOD - 1, [PERIOD - 1, 0]);
        assert_eq!(averages, before);
    }
}
