//! The objective of a hunt: a pathology with its threshold, `refault-storm=95%`.
//!
//! Each is one metric of a run, which has reached its threshold.

use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::declared::{
    MetricDecl, ALLOC_LATENCY_MAX, FROZEN_LONGEST, OOM_EVICTABLE, REFAULT_SHARE,
};
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::PageSize;
use pagetide_scenario::names::near::nearest;
use pagetide_scenario::record::RunRecord;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathologyKind {
    /// The OOM killer acts, and clean page cache is left.
    OomWithEvictablePages,
    /// No task makes progress, or one page takes very long to allocate.
    NoProgress,
    /// Most of what is evicted returns at once.
    RefaultStorm,
}

/// A pathology and its threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    pub kind: PathologyKind,
    /// In the unit of the metric: per cent, or seconds.
    pub threshold: f64,
}

impl PathologyKind {
    pub const ALL: [PathologyKind; 3] = [
        PathologyKind::OomWithEvictablePages,
        PathologyKind::NoProgress,
        PathologyKind::RefaultStorm,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            PathologyKind::OomWithEvictablePages => "oom-with-evictable-pages",
            PathologyKind::NoProgress => "no-progress",
            PathologyKind::RefaultStorm => "refault-storm",
        }
    }

    const fn default_threshold(self) -> f64 {
        match self {
            PathologyKind::OomWithEvictablePages => 10.0,
            PathologyKind::NoProgress => 5.0,
            PathologyKind::RefaultStorm => 90.0,
        }
    }

    pub const fn metric(self) -> &'static MetricDecl {
        match self {
            PathologyKind::OomWithEvictablePages => OOM_EVICTABLE,
            PathologyKind::NoProgress => FROZEN_LONGEST,
            PathologyKind::RefaultStorm => REFAULT_SHARE,
        }
    }

    const fn is_time(self) -> bool {
        matches!(self, PathologyKind::NoProgress)
    }
}

impl Objective {
    /// Reads `NAME` or `NAME=THRESHOLD`.
    pub fn parse(text: &str) -> Result<Objective, Mistake> {
        let (name, threshold) = match text.split_once('=') {
            Some((name, threshold)) => (name.trim(), Some(threshold.trim())),
            None => (text.trim(), None),
        };
        let names = PathologyKind::ALL.map(PathologyKind::name);
        let Some(kind) = PathologyKind::ALL.into_iter().find(|kind| kind.name() == name) else {
            let hint = match nearest(name, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names.join(", ")),
            };
            return Err(Mistake::new(format!("there is no objective `{name}`"), hint));
        };
        let Some(text) = threshold else {
            return Ok(Objective { kind, threshold: kind.default_threshold() });
        };
        let threshold = match (Quantity::read(text, PageSize::default()), kind.is_time()) {
            (Ok(Quantity::Nanoseconds(ns)), true) => ns as f64 / 1e9,
            (Ok(Quantity::Percent(percent)), false) => percent,
            _ => 0.0,
        };
        if threshold > 0.0 {
            return Ok(Objective { kind, threshold });
        }
        let form = if kind.is_time() { "a time, like 5s" } else { "a share above 0, like 5%" };
        Err(Mistake::new(
            format!("`{text}` is no threshold of {name}"),
            format!("give {form}: {name}={}", if kind.is_time() { "5s" } else { "5%" }),
        ))
    }

    /// How far the pathology goes in a run, in the unit of the threshold.
    pub fn value(&self, record: &RunRecord) -> f64 {
        let longest_wait = format!(".{}", ALLOC_LATENCY_MAX.name);
        let counts = |key: &str| {
            key == self.kind.metric().name || self.kind.is_time() && key.ends_with(&longest_wait)
        };
        let metrics = record.metrics.iter().filter(|(key, _)| counts(key));
        metrics.map(|(_, metric)| metric.value).fold(0.0, f64::max)
    }

    /// Whether a run with this value shows the pathology.
    pub fn is_shown_by(&self, value: f64) -> bool {
        value >= self.threshold
    }

    /// A value with its unit.
    pub fn shown(&self, value: f64) -> String {
        format!("{value:.2} {}", if self.kind.is_time() { "s" } else { "%" })
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threshold = self.shown(self.threshold);
        let or = if self.kind.is_time() {
            format!(", or alloc_latency_max of a task >= {threshold}")
        } else {
            String::new()
        };
        write!(f, "{}: {} >= {threshold}{or}", self.kind.name(), self.kind.metric().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    #[test]
    fn names_and_thresholds() {
        let read = |text: &str| Objective::parse(text).unwrap();
        assert_eq!(read("no-progress=250ms").threshold, 0.25);
        assert_eq!(
            read("refault-storm = 95 %").to_string(),
            "refault-storm: node.refault_share >= 95.00 %"
        );
        for (text, message, hint) in [
            ("refault-strom", "no objective `refault-strom`", "did you mean `refault-storm`"),
            ("x", "no objective `x`", "there are oom-with-evictable-pages, no-progress"),
            ("no-progress=5%", "`5%` is no threshold", "no-progress=5s"),
            ("refault-storm=0%", "`0%` is no threshold", "refault-storm=5%"),
            ("refault-storm=", "`` is no threshold", "a share above 0"),
        ] {
            let mistake = Objective::parse(text).unwrap_err();
            assert!(mistake.message.contains(message), "{text}: {mistake:?}");
            assert!(mistake.hint.contains(hint), "{text}: {mistake:?}");
        }
    }

    #[test]
    fn a_wait_for_one_page_is_no_progress() {
        let record = record("a", 1, &[("node.frozen_longest", 0.1), ("t.alloc_latency_max", 7.0)]);
        let objective = Objective::parse("no-progress").unwrap();
        assert!(objective.is_shown_by(objective.value(&record)));
        let storm = Objective::parse("refault-storm").unwrap();
        assert_eq!(storm.value(&record), 0.0);
    }
}
