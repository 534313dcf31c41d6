//! Koordinator's loop: reclaims a bounded amount while a group is above a watermark.
//!
//! koordinator-sh/koordinator pull request 3189 (August 2026, open): for each best-effort pod,
//! `memory.current` is compared with a share of `memory.max` (`wmarkRatio`); above it, at most 32 MB
//! are written to `memory.reclaim` in each reconciliation. EAGAIN counts as success.

use crate::act::{WatcherAct, WatcherStep};
use crate::SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KoordinatorOptions {
    pub group: u32,
    /// `wmarkRatio` in percent of `memory.max`.
    pub watermark_percent: u64,
    /// Largest reclaim in bytes.
    pub step: u64,
    /// Time between two reconciliations.
    pub interval_ns: u64,
}

impl KoordinatorOptions {
    /// koordlet's defaults for best-effort pods.
    pub const fn of(group: u32) -> KoordinatorOptions {
        KoordinatorOptions { group, watermark_percent: 95, step: 32 << 20, interval_ns: SECOND }
    }
}

/// The files that koordlet reads, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KoordinatorReading {
    pub current: u64,
    /// `None`: `max`.
    pub max: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Koordinator {
    options: KoordinatorOptions,
}

impl Koordinator {
    pub fn new(options: KoordinatorOptions) -> Koordinator {
        Koordinator { options }
    }

    pub fn wake(&mut self, now_ns: u64, read: &KoordinatorReading) -> WatcherStep {
        let KoordinatorOptions { group, watermark_percent, step, interval_ns } = self.options;
        let wake_ns = now_ns + interval_ns;
        let watermark = read.max.map(|max| u128::from(max) * u128::from(watermark_percent) / 100);
        let above =
            watermark.map_or(0, |mark| u128::from(read.current).saturating_sub(mark)) as u64;
        if above == 0 {
            return WatcherStep::rest(wake_ns);
        }
        let bytes = above.min(step);
        let why = format!("{} KiB above its watermark", above >> 10);
        WatcherStep::act(WatcherAct::Reclaim { group, bytes }, why, wake_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reclaims_the_excess_in_steps() {
        let mut loop_of = Koordinator::new(KoordinatorOptions::of(3));
        let mut look = |current: u64, max| {
            let read = KoordinatorReading { current: current << 20, max };
            loop_of.wake(0, &read).deeds.first().map(|deed| deed.act)
        };
        let reclaim = |mib: u64| Some(WatcherAct::Reclaim { group: 3, bytes: mib << 20 });
        let max = Some(1000 << 20);
        assert_eq!(look(950, max), None);
        assert_eq!(look(960, max), reclaim(10));
        assert_eq!(look(1000, max), reclaim(32));
        assert_eq!(look(1000, None), None);
    }
}
