//! The simulator around the memory manager: CPUs, disks and tasks in virtual time.
//!
//! [`run`](run::run) runs one variant of a scenario with a seed and returns a record. Reading
//! order: `event_queue`, `cost`, `scheduler`, `disk`, then `task`, `world`, `run`.

#![forbid(unsafe_code)]

mod boot_objects;
pub mod cost;
pub mod disk;
pub mod event_queue;
pub mod foresight;
pub mod histogram;
mod meter;
mod metrics;
pub mod observe;
pub mod run;
pub mod scheduler;
mod slab_tables;
pub mod task;
pub mod world;

pub use run::{
    count_work, mean_waits, record, run, watermarks, PhaseWork, RunIdentity, RunOptions, SimError,
    CUT,
};
pub use world::{outside, Decisions};

/// The API for policies of other crates: traits, facts, registry.
pub mod policy {
    pub use pagetide_core::ageing::lruvec::LruSizes;
    pub use pagetide_core::ageing::page_policy::*;
    pub use pagetide_core::reclaim::plugin::*;
    pub use pagetide_core::reclaim::Reclaimer;
    pub use pagetide_core::units::digest::Digest;
    pub use pagetide_core::units::{MemcgId, NodeId, Pfn};
}
