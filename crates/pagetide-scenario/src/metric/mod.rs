//! Metrics: their keys, the list of all metrics, and how a world records their values.
//!
//! A [`MetricKey`] is a [`Scope`] (the machine, a task, a phase of a task, a group, ...) and a
//! name. [`KeyNames`] converts keys to the texts of records and back. [`declared`] lists the
//! metrics that no kernel counter names; [`RunMetricSet`] collects the metrics of a run;
//! [`criterion`] has the conditions on metrics, [`quantity`] the values in them. Linux has no
//! scopes: a scope stands for the place and moment at which a user of Linux would read the
//! value. Most names are those of /proc/vmstat, memory.stat and /proc/slabinfo.

pub mod better;
pub mod catalogue;
pub mod criterion;
pub mod declared;
mod key;
mod metrics;
mod names;
pub mod quantity;

pub use pagetide_core::groups::memcg::events::COUNTED;

pub use better::MetricDirection;
pub use key::{KeyError, MetricKey, Owner, Scope, ScopeKind};
pub use metrics::{MetricWriter, RunMetricSet};
pub use names::KeyNames;
