//! Policies that are not built into Pagetide: one for groups and six for pages. Copy this crate to
//! start your own (docs/add-a-policy.md).

#![forbid(unsafe_code)]

pub mod fifo;
pub mod generations;
pub mod lfu;
pub mod lhd;
pub mod mru;
pub mod refaults_last;
pub mod s3_fifo;

use fifo::Fifo;
use generations::Generations;
use lfu::Lfu;
use lhd::Lhd;
use mru::Mru;
use pagetide::policy::Plugins;
use refaults_last::RefaultsLast;
use s3_fifo::S3Fifo;

/// The policies, under the names that scenarios use.
pub fn plugins() -> Plugins {
    Plugins::new()
        .groups("refaults-last", RefaultsLast::default())
        .pages("fifo", Fifo)
        .pages("generations", Generations::default())
        .pages("lfu", Lfu::default())
        .pages("lhd", Lhd::default())
        .pages("mru", Mru)
        .pages("s3-fifo", S3Fifo::default())
}
