//! Reads a live system, or a saved copy of one, into a scenario.
//!
//! The way of a system: `files` (the only reader of directories and files) -> a parser a file,
//! named after the file -> [`snapshot::HostSnapshot`] -> `layout`, `free` and `marks` (what of it
//! a scenario can say) -> [`scenario::write`]. The parsers take text from any kernel, a guest's
//! too. They never fail: what they do not know becomes a [`note::Note`] with its place.
//!
//! Invariant: what [`scenario::write`] returns loads without a mistake, and equal systems give
//! equal text.

pub mod block;
pub mod buddyinfo;
pub mod cgroup;
pub mod error;
mod files;
mod free;
mod group_tree;
mod layout;
mod marks;
pub mod meminfo;
pub mod note;
pub(crate) mod number;
pub mod pagetypeinfo;
mod plain_names;
pub mod scenario;
pub mod slabinfo;
pub mod snapshot;
pub mod swaps;
pub mod sysctl;
pub mod vmstat;
pub mod zoneinfo;
