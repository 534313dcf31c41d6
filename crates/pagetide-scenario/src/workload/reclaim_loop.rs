//! Watcher `reclaim-loop`: takes memory from a group by a rule.

use super::prelude::*;
use super::watching::WatcherBase;
use crate::load::decode::{named, Percent};
use crate::load::watcher_values::Fraction;
use crate::names::{names, NameSet};
use pagetide_watcher::koordinator::KoordinatorOptions;
use pagetide_watcher::senpai::{SenpaiOptions, SenpaiReclaimOptions};

const SECOND: u64 = 1_000_000_000;

names! {
    /// Rules that take memory from a group.
    "rule" ReclaimRule {
        /// senpai.py: moves memory.high so that the group stalls for a given time per interval.
        Senpai = "senpai",
        /// The senpai plug-in of Facebook's oomd: memory.reclaim while the pressure is low.
        SenpaiReclaim = "senpai-reclaim",
        /// Koordinator (2026): memory.reclaim in steps above a share of memory.max.
        Koordinator = "koordinator",
    }
}
named!(ReclaimRule);

table! {
    /// A program that takes memory from a group by a rule.
    ReclaimLoopKeys of "the watcher reclaim-loop" {
        /// The rule.
        rule: Spanned<ReclaimRule> => required "\"senpai\"",
        /// The group, or one copy, `NAME.0`.
        target: Spanned<GroupTarget> => required "\"batch\"",
        /// senpai: time between two probes, in whole seconds (default 6s). koordinator: time between
        /// two looks (default 1s). senpai-reclaim: time between two runs (default 5s).
        interval: Spanned<Time>,
        /// senpai-reclaim: runs between two reclaims (default 6).
        runs: Spanned<Int<0, 1_000_000>>,
        /// senpai: stall per interval that it aims at (default 10ms).
        pressure: Spanned<Time>,
        /// senpai, senpai-reclaim: largest share that a probe takes (default 0.01).
        max_probe: Spanned<Fraction>,
        /// senpai: largest share that a backoff returns (default 1).
        max_backoff: Spanned<Fraction>,
        /// senpai: a probe is largest when the stall is this part of `pressure` (default 10).
        coeff_probe: Spanned<Int<1, 10_000>>,
        /// senpai: a backoff is largest when the stall is this multiple of `pressure` (default 20).
        coeff_backoff: Spanned<Int<1, 10_000>>,
        /// senpai, senpai-reclaim: memory that is left to the group (default 100MiB).
        min_size: Spanned<Size>,
        /// senpai: largest limit (default 100GiB).
        max_size: Spanned<Size>,
        /// koordinator: share of memory.max above which it reclaims (default "95 %").
        watermark: Spanned<Percent>,
        /// koordinator: largest reclaim of one look (default 32MiB).
        step: Spanned<Size>,
        /// Memory of its own that it uses at each look (default 8MiB).
        footprint: Spanned<Size> = Size(8 << 20),
        /// Its memory is locked (default false).
        locked: Spanned<bool> = false,
        /// CPU time of a look in addition to the time for reading (default 0).
        compute: Spanned<Time> = Time(0),
    }
}

/// A rule with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimLoopRule {
    Senpai(SenpaiOptions),
    SenpaiReclaim(SenpaiReclaimOptions),
    Koordinator(KoordinatorOptions),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimLoopWatcher {
    pub base: WatcherBase,
    /// The group: index into [`Setup::groups`](crate::model::Setup::groups).
    pub target: usize,
    pub rule: ReclaimLoopRule,
}

impl WorkloadSpec for ReclaimLoopWatcher {
    type Keys = ReclaimLoopKeys;

    fn check(keys: &ReclaimLoopKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let footprint = (keys.footprint(), keys.footprint.as_ref());
        let base = WatcherBase::check(footprint, keys.locked(), keys.compute(), phases, sink);
        let (rule, target) = (keys.rule(sink), keys.target(sink));
        let (rule, target) = (rule?.value, target?);
        let file = if rule == ReclaimRule::Senpai { "memory.high" } else { "memory.reclaim" };
        let group = phases.scene.groups.with_memory(target, file, sink)?;
        keys.report_foreign(rule, sink);
        let rule = match rule {
            ReclaimRule::Senpai => ReclaimLoopRule::Senpai(keys.senpai(group as u32, sink)?),
            ReclaimRule::SenpaiReclaim => {
                let or = SenpaiReclaimOptions::of(group as u32);
                ReclaimLoopRule::SenpaiReclaim(SenpaiReclaimOptions {
                    limit_min: keys.min_size.as_ref().map_or(or.limit_min, |at| at.value.0),
                    interval: keys.runs.as_ref().map_or(or.interval, |at| at.value.into()),
                    run_ns: keys.interval(or.run_ns, sink)?,
                    max_probe: keys.max_probe.as_ref().map_or(or.max_probe, |at| at.value.0),
                    ..or
                })
            }
            ReclaimRule::Koordinator => {
                let or = KoordinatorOptions::of(group as u32);
                let percent = keys.watermark.as_ref().map(|at| at.value.0);
                ReclaimLoopRule::Koordinator(KoordinatorOptions {
                    watermark_percent: percent.unwrap_or(or.watermark_percent),
                    step: keys.step.as_ref().map_or(or.step, |at| at.value.0),
                    interval_ns: keys.interval(or.interval_ns, sink)?,
                    ..or
                })
            }
        };
        Some(ReclaimLoopWatcher { base: base?, target: group, rule })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        self.base.stages(phase, planner)
    }

    fn missing_end(&self) -> Option<&'static str> {
        Some("until")
    }
}

impl ReclaimLoopKeys {
    fn interval(&self, or: u64, sink: &mut ProblemSink) -> Option<u64> {
        let Some(at) = &self.interval else { return Some(or) };
        if at.value.0 == 0 {
            sink.hinted(at.span, "the interval is 0", "write interval = \"1s\", for example");
            return None;
        }
        Some(at.value.0)
    }

    fn senpai(&self, group: u32, sink: &mut ProblemSink) -> Option<SenpaiOptions> {
        let or = SenpaiOptions::of(group);
        let interval = self.interval(or.interval * SECOND, sink)?;
        if let Some(at) = self.interval.as_ref().filter(|_| !interval.is_multiple_of(SECOND)) {
            let hint = "senpai looks once a second: write interval = \"6s\", for example";
            sink.hinted(at.span, "the interval is not a whole number of seconds", hint);
            return None;
        }
        let pressure = self.pressure.as_ref();
        if let Some(at) = pressure.filter(|at| at.value.0 < 1000) {
            let hint = "senpai counts microseconds: write pressure = \"10ms\", for example";
            sink.hinted(at.span, "the pressure is below a microsecond", hint);
            return None;
        }
        let options = SenpaiOptions {
            group,
            min_size: self.min_size.as_ref().map_or(or.min_size, |at| at.value.0),
            max_size: self.max_size.as_ref().map_or(or.max_size, |at| at.value.0),
            interval: interval / SECOND,
            pressure_us: pressure.map_or(or.pressure_us, |at| at.value.0 / 1000),
            max_probe: self.max_probe.as_ref().map_or(or.max_probe, |at| at.value.0),
            max_backoff: self.max_backoff.as_ref().map_or(or.max_backoff, |at| at.value.0),
            coeff_probe: self.coeff_probe.as_ref().map_or(or.coeff_probe, |at| at.value.into()),
            coeff_backoff: self.coeff_backoff.as_ref().map_or(or.coeff_backoff, |at| at.value.into()),
        };
        if let Some(at) = self.min_size.as_ref().filter(|_| options.min_size > options.max_size) {
            sink.hinted(at.span, "`min_size` is above `max_size`", "write min_size <= max_size");
            return None;
        }
        Some(options)
    }

    /// Reports keys of another rule.
    fn report_foreign(&self, rule: ReclaimRule, sink: &mut ProblemSink) {
        use ReclaimRule::{Koordinator, Senpai, SenpaiReclaim};
        let keys = [
            ("runs", self.runs.as_ref().map(|at| at.span), &[SenpaiReclaim][..]),
            ("pressure", self.pressure.as_ref().map(|at| at.span), &[Senpai]),
            ("max_probe", self.max_probe.as_ref().map(|at| at.span), &[Senpai, SenpaiReclaim]),
            ("max_backoff", self.max_backoff.as_ref().map(|at| at.span), &[Senpai]),
            ("coeff_probe", self.coeff_probe.as_ref().map(|at| at.span), &[Senpai]),
            ("coeff_backoff", self.coeff_backoff.as_ref().map(|at| at.span), &[Senpai]),
            ("min_size", self.min_size.as_ref().map(|at| at.span), &[Senpai, SenpaiReclaim]),
            ("max_size", self.max_size.as_ref().map(|at| at.span), &[Senpai]),
            ("watermark", self.watermark.as_ref().map(|at| at.span), &[Koordinator]),
            ("step", self.step.as_ref().map(|at| at.span), &[Koordinator]),
        ];
        for (key, span, rules) in keys {
            if let Some(span) = span.filter(|_| !rules.contains(&rule)) {
                let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
                let message = format!("rule \"{}\" has no `{key}`", rule.name());
                sink.hinted(span, message, format!("it belongs to {}", names.join(" and ")));
            }
        }
    }
}
