//! Imports a live system, or a saved copy of one, as a scenario.
//!
//! Data flow: `files` (the only reader of directories and files) -> one parser for each file, with
//! the file's name -> [`snapshot::HostSnapshot`] -> `layout`, `free` and `marks` (conversion to
//! what a scenario can express) -> [`scenario::write`]. The parsers accept text of any kernel,
//! including a guest's. They never fail: unknown text becomes a [`note::ImportNote`] with its
//! place. A report of the kernel's log ([`report`]) becomes a snapshot as well.
//!
//! Invariant: the result of [`scenario::write`] loads without a mistake, and equal systems give
//! equal text.

pub mod block;
pub mod buddyinfo;
pub mod cgroup;
mod cma;
pub mod compressed_swap;
pub mod daemons;
pub mod error;
mod files;
mod free;
mod group_tree;
mod layout;
mod marks;
pub mod meminfo;
pub mod note;
pub(crate) mod number;
mod page_size;
pub mod pagetypeinfo;
mod plain_names;
mod release;
pub mod report;
pub mod scenario;
pub mod setting;
pub mod slabinfo;
pub mod snapshot;
pub mod swaps;
pub mod sysctl;
mod unnamed;
pub mod vmstat;
pub mod zoneinfo;
