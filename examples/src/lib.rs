//! Policies that are not built into Pagetide: one for groups and three for pages. Copy this crate to
//! start your own (docs/add-a-policy.md).

#![forbid(unsafe_code)]

pub mod lfu;
pub mod mru;
pub mod refaults_last;
pub mod s3_fifo;

use lfu::Lfu;
use mru::Mru;
use pagetide::policy::Plugins;
use refaults_last::RefaultsLast;
use s3_fifo::S3Fifo;

/// The policies, under the names that scenarios use.
pub fn plugins() -> Plugins {
    Plugins::new()
        .groups("refaults-last", RefaultsLast::default())
        .pages("lfu", Lfu::default())
        .pages("mru", Mru)
        .pages("s3-fifo", S3Fifo::default())
}
