//! Collects the metrics of a run.
//!
//! A world puts values into a [`MetricWriter`] for each scope. At the end, the metrics over the
//! copies of a task or of a group are added, and all metrics become the texts of a record.
//!
//! Invariant: a key has one value, the last one put in.

use super::declared::{is_level_of_phase, is_state, MetricDecl};
use super::key::{MetricKey, Scope};
use super::names::KeyNames;
use crate::record::{Incomplete, Metric, Unit};
use std::borrow::Cow;
use std::collections::BTreeMap;

type ScopeMetrics = BTreeMap<Cow<'static, str>, Metric>;

/// Metrics by key.
#[derive(Clone, Debug, Default)]
pub struct RunMetricSet {
    by_scope: BTreeMap<Scope, ScopeMetrics>,
}

/// Adds metrics of one scope.
#[derive(Debug)]
pub struct MetricWriter<'m> {
    scope: Scope,
    metrics: &'m mut ScopeMetrics,
    ended: Option<Incomplete>,
}

impl<'m> MetricWriter<'m> {
    /// Marks all metrics put in from now on with the reason that ended their work early, if any.
    pub fn with_incomplete(mut self, ended: Option<Incomplete>) -> MetricWriter<'m> {
        self.ended = ended;
        self
    }

    /// Puts in a declared metric; its declaration gives the name and the unit.
    pub fn put(&mut self, metric: &MetricDecl, value: f64) {
        debug_assert!(
            metric.scopes.contains(&self.scope.kind()),
            "{} of {}",
            metric.name,
            self.scope
        );
        self.put_named(metric.name, value, metric.unit);
    }

    /// Puts in a counter with the kernel's name.
    pub fn put_named(&mut self, name: impl Into<Cow<'static, str>>, value: f64, unit: Unit) {
        self.metrics.insert(name.into(), Metric { value, unit, ended: self.ended });
    }
}

impl RunMetricSet {
    pub fn new() -> RunMetricSet {
        RunMetricSet::default()
    }

    /// A writer for this scope.
    pub fn of(&mut self, scope: Scope) -> MetricWriter<'_> {
        let metrics = self.by_scope.entry(scope.clone()).or_default();
        MetricWriter { scope, metrics, ended: None }
    }

    /// Adds the common metrics of the copies of a task or of a group: means of times, latencies and
    /// shares, sums of everything else. Copies of a task see one machine and one group, so levels
    /// of these at the ends of their phases ([`is_level_of_phase`]) have a mean, too. Copies that
    /// lack a metric do not count. If the work of one copy is incomplete, so is the common metric.
    /// A state ([`is_state`]) is added only if all copies have the same value.
    pub fn add_copies(&mut self) {
        let mut together: BTreeMap<Scope, BTreeMap<Cow<'static, str>, (Metric, u32)>> =
            BTreeMap::new();
        let mut unlike: Vec<(Scope, Cow<'static, str>)> = Vec::new();
        for (scope, metrics) in &self.by_scope {
            let Some(scope) = scope.family() else { continue };
            let family = together.entry(scope.clone()).or_default();
            for (name, metric) in metrics {
                let none = (Metric::new(0.0, metric.unit), 0);
                let (sum, nr) = family.entry(name.clone()).or_insert(none);
                if is_state(name) {
                    if *nr > 0 && sum.value != metric.value {
                        unlike.push((scope.clone(), name.clone()));
                    }
                    *sum = Metric {
                        ended: Incomplete::first_reason(sum.ended, metric.ended),
                        ..*metric
                    };
                    *nr += 1;
                    continue;
                }
                sum.value += metric.value;
                sum.ended = Incomplete::first_reason(sum.ended, metric.ended);
                *nr += 1;
            }
        }
        for (scope, name) in unlike {
            if let Some(family) = together.get_mut(&scope) {
                family.remove(&name);
            }
        }
        for (scope, metrics) in together {
            let kind = scope.kind();
            let of_family = self.by_scope.entry(scope).or_default();
            for (name, (Metric { value, unit, ended }, nr)) in metrics {
                let value = match unit {
                    Unit::Seconds | Unit::Percent | Unit::Ratio => value / f64::from(nr),
                    _ if is_level_of_phase(kind, &name, unit) && !is_state(&name) => {
                        value / f64::from(nr)
                    }
                    Unit::Count
                    | Unit::Pages
                    | Unit::Bytes
                    | Unit::Kilobytes
                    | Unit::BytesPerSecond
                    | Unit::PerSecond => value,
                };
                of_family.insert(name, Metric { value, unit, ended });
            }
        }
    }

    pub fn into_texts(self, names: &KeyNames) -> BTreeMap<String, Metric> {
        let mut texts = BTreeMap::new();
        for (scope, metrics) in self.by_scope {
            let mut key = MetricKey { scope, name: Cow::Borrowed("") };
            for (name, metric) in metrics {
                key.name = name;
                texts.insert(names.text(&key), metric);
            }
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::super::declared::{self, NO_LIMIT};
    use super::super::key::Owner;
    use super::*;

    #[test]
    fn copies_have_a_state_together_only_if_it_is_the_same_of_all() {
        let mut metrics = RunMetricSet::new();
        for (copy, errno, max) in [(0, 0.0, 4096.0), (1, 22.0, 8192.0), (2, 0.0, 4096.0)] {
            let task = Owner { name: "t".to_owned(), copy: Some(copy) };
            let scope = Scope::Phase { task, phase: "p".to_owned() };
            metrics.of(scope).put(declared::ERRNO, errno);
            let mut put =
                metrics.of(Scope::Group(Owner { name: "g".to_owned(), copy: Some(copy) }));
            put.put(declared::MEMORY_HIGH, NO_LIMIT as f64);
            put.put(declared::MEMORY_MAX, max);
            put.put(declared::MEMORY_CURRENT, 100.0);
        }
        metrics.add_copies();
        let family = |scope: Scope| metrics.by_scope[&scope].clone();
        let group = family(Scope::Group(Owner::new("g")));
        assert_eq!(group["memory.high"].value, NO_LIMIT as f64, "no sum");
        assert_eq!(group["memory.current"].value, 300.0);
        assert!(!group.contains_key("memory.max"));
        let phase = family(Scope::Phase { task: Owner::new("t"), phase: "p".to_owned() });
        assert!(!phase.contains_key("errno"));
    }
}
