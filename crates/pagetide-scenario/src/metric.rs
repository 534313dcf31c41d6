//! Metrics: what they are called, what there are, and how a world writes them down.
//!
//! A [`Key`] is a [`Scope`] (the machine, a task, a phase of it, a group, ...) and a name. [`Names`] writes a
//! key as the text of a record and reads it again. [`declared`] has the metrics that no kernel names;
//! [`Metrics`] collects those of a run. Linux has no such thing: a scope is where somebody would have
//! looked, and most names are those of /proc/vmstat, memory.stat and /proc/slabinfo.

pub mod declared;
mod key;
mod metrics;
mod names;

pub use pagetide_core::memcg::events::COUNTED;

pub use key::{Key, KeyError, Kind, Owner, Scope};
pub use metrics::{Metrics, Writer};
pub use names::Names;
