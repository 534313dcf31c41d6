//! senpai: takes memory from a group as long as the group does not stall.
//!
//! Two rules. [`Senpai`] is the script (senpai.py, facebookincubator/senpai c51e8e2): once a second
//! it moves `memory.high` so that the group stalls for a given time per interval. [`SenpaiReclaim`]
//! is the plug-in of Facebook's oomd with `immediate_backoff` (Senpai.cpp, facebookincubator/oomd
//! 88c28fd): it writes `memory.reclaim` while the averages of the pressure are low.
//!
//! The programs compute with doubles; here fractions are exact and rounded down, so a limit can
//! differ by one page. Pressure of I/O is not modelled, so the plug-in's test of it always passes.
//! Not modelled: its options `swap_validation` and `modulate_swappiness`, which are off by default.

use crate::act::{WatcherAct, WatcherStep};
use crate::SECOND;

/// Value of a `memory.high` that has the text `max`.
pub const NO_HIGH: u64 = u64::MAX;
const PAGE: u64 = 4096;
/// Parts of a share: a probe or backoff of 1 000 000 is the whole limit.
const WHOLE: u128 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenpaiOptions {
    pub group: u32,
    /// Bounds of the limit in bytes.
    pub min_size: u64,
    pub max_size: u64,
    /// Ticks of one second between two probes.
    pub interval: u64,
    /// Stall time per interval that senpai aims at, in microseconds.
    pub pressure_us: u64,
    /// Largest changes of the limit, in millionths.
    pub max_probe: u64,
    pub max_backoff: u64,
    pub coeff_probe: u64,
    pub coeff_backoff: u64,
}

impl SenpaiOptions {
    /// The script's defaults.
    pub const fn of(group: u32) -> SenpaiOptions {
        SenpaiOptions {
            group,
            min_size: 100 << 20,
            max_size: 100 << 30,
            interval: 6,
            pressure_us: 10_000,
            max_probe: 10_000,
            max_backoff: 1_000_000,
            coeff_probe: 10,
            coeff_backoff: 20,
        }
    }
}

/// The files of the group that the script reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenpaiReading {
    /// `some total` of memory.pressure, in microseconds.
    pub total_us: u64,
    pub high: u64,
    pub current: u64,
}

#[derive(Clone, Debug)]
pub struct Senpai {
    options: SenpaiOptions,
    limit: Option<u64>,
    last_total: u64,
    integral: u64,
    grace_ticks: u64,
}

impl Senpai {
    pub fn new(options: SenpaiOptions) -> Senpai {
        let grace_ticks = options.interval;
        Senpai { options, limit: None, last_total: 0, integral: 0, grace_ticks }
    }

    pub fn wake(&mut self, now_ns: u64, read: &SenpaiReading) -> WatcherStep {
        let wake_ns = now_ns + SECOND;
        let Some(limit) = self.limit else {
            self.last_total = read.total_us;
            return self.set(read, read.high, "start: the limit is memory.current".into(), wake_ns);
        };
        self.integral += read.total_us.saturating_sub(self.last_total);
        self.last_total = read.total_us;
        let SenpaiOptions { pressure_us, interval, .. } = self.options;
        let (integral, now) = (self.integral, u128::from(read.high));
        if integral > pressure_us {
            let most = u128::from(self.options.max_backoff);
            let at = u128::from(pressure_us) * u128::from(self.options.coeff_backoff);
            let change = now.saturating_mul(squared(u128::from(integral), at, most)) / WHOLE;
            self.grace_ticks = interval.saturating_sub(1);
            self.integral = 0;
            let limit = u64::try_from(now + change).unwrap_or(u64::MAX);
            let why = format!("backoff: stalled for {integral} us, above {pressure_us} us");
            return self.set(read, limit, why, wake_ns);
        }
        if self.grace_ticks > 0 {
            self.grace_ticks -= 1;
            return WatcherStep::rest(wake_ns);
        }
        let most = u128::from(self.options.max_probe);
        let at = u128::from(integral.max(1)) * u128::from(self.options.coeff_probe);
        let change = now.saturating_mul(squared(pressure_us.into(), at, most)).div_ceil(WHOLE);
        self.grace_ticks = interval.saturating_sub(1);
        self.integral = 0;
        let why = format!("probe: stalled for {integral} us, limit was {} MiB", limit >> 20);
        self.set(read, (now - change.min(now)) as u64, why, wake_ns)
    }

    /// Writes a limit. If another program has changed memory.high, begins again at memory.current.
    fn set(&mut self, read: &SenpaiReading, limit: u64, why: String, wake_ns: u64) -> WatcherStep {
        let is_own = self.limit == Some(read.high);
        let (limit, why) = match (is_own, self.limit) {
            (true, _) => (limit, why),
            (false, None) => (read.current, why),
            (false, Some(own)) => {
                let why = format!(
                    "another program changed its limit of {} MiB: it begins again",
                    own >> 20
                );
                (read.current, why)
            }
        };
        let bytes = limit.min(self.options.max_size).max(self.options.min_size) / PAGE * PAGE;
        self.limit = Some(bytes);
        let group = self.options.group;
        WatcherStep::act(WatcherAct::SetHigh { group, bytes }, why, wake_ns)
    }
}

/// `most * (value / at)^2` in millionths, at most `most`.
fn squared(value: u128, at: u128, most: u128) -> u128 {
    if value >= at {
        return most;
    }
    // Below 2^64 each, so that the product fits.
    (value * value).saturating_mul(most) / (at * at)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenpaiReclaimOptions {
    pub group: u32,
    /// Bytes that are left to the group in addition to what cannot be reclaimed.
    pub limit_min: u64,
    /// Runs of the plug-in between two reclaims.
    pub interval: u64,
    /// Time between two runs: oomd's `--interval`.
    pub run_ns: u64,
    /// Averages of the pressure below which it reclaims, in hundredths of a percent.
    pub pressure_pct: u64,
    /// Share of the reclaimable memory that one reclaim asks for, in millionths.
    pub max_probe: u64,
}

impl SenpaiReclaimOptions {
    /// The plug-in's defaults.
    pub const fn of(group: u32) -> SenpaiReclaimOptions {
        SenpaiReclaimOptions {
            group,
            limit_min: 100 << 20,
            interval: 6,
            run_ns: 5 * SECOND,
            pressure_pct: 10,
            max_probe: 10_000,
        }
    }
}

/// The files that the plug-in reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenpaiReclaimReading {
    /// `some avg10` and `some avg60` of memory.pressure in hundredths of a percent.
    pub some_avg10: u64,
    pub some_avg60: u64,
    /// Bytes.
    pub current: u64,
    pub min: u64,
    pub file: u64,
    pub anon: u64,
    /// Swap that the group may still use; 0 if vm.swappiness is 0.
    pub swap_free: u64,
}

#[derive(Clone, Debug)]
pub struct SenpaiReclaim {
    options: SenpaiReclaimOptions,
    ticks: u64,
}

impl SenpaiReclaim {
    pub fn new(options: SenpaiReclaimOptions) -> SenpaiReclaim {
        // A group that it has not seen before is first looked at in the next run.
        SenpaiReclaim { options, ticks: options.interval + 1 }
    }

    pub fn wake(&mut self, now_ns: u64, read: &SenpaiReclaimReading) -> WatcherStep {
        let wake_ns = now_ns + self.options.run_ns;
        if self.ticks > 0 {
            self.ticks -= 1;
            return WatcherStep::rest(wake_ns);
        }
        let reclaimable = read.file + read.swap_free.min(read.anon);
        let kept = self.options.limit_min + read.current.saturating_sub(reclaimable);
        let kept = kept.max(read.min);
        let pressure = read.some_avg10.max(read.some_avg60);
        if pressure >= self.options.pressure_pct || read.current <= kept {
            return WatcherStep::rest(wake_ns);
        }
        let share = u128::from(read.current - kept) * u128::from(self.options.max_probe) / WHOLE;
        let bytes = share as u64 / PAGE * PAGE;
        self.ticks = self.options.interval;
        let why = format!(
            "{} MiB of {} MiB could be reclaimed",
            (read.current - kept) >> 20,
            read.current >> 20
        );
        let group = self.options.group;
        WatcherStep::act(WatcherAct::Reclaim { group, bytes }, why, wake_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_limit_than_its_own_starts_it_again() {
        let mut senpai = Senpai::new(SenpaiOptions::of(1));
        let read = SenpaiReading { total_us: 0, high: NO_HIGH, current: 200 << 20 };
        let act = |step: WatcherStep| step.deeds.first().map(|deed| deed.act);
        let set = |bytes| Some(WatcherAct::SetHigh { group: 1, bytes });
        assert_eq!(act(senpai.wake(0, &read)), set(200 << 20));
        let read = SenpaiReading { high: 500 << 20, total_us: 1_000_000, ..read };
        let step = senpai.wake(SECOND, &read);
        assert!(step.deeds[0].why.contains("begins again"), "{}", step.deeds[0].why);
        assert_eq!(act(step), set(200 << 20));
    }
}
