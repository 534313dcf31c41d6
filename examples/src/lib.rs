//! A group policy that is not built into Pagetide. Copy this crate to start your own
//! (docs/add-a-policy.md).

#![forbid(unsafe_code)]

pub mod refaults_last;

use pagetide::policy::Plugins;
use refaults_last::RefaultsLast;

/// The policy, under the name that scenarios use.
pub fn plugins() -> Plugins {
    Plugins::new().groups("refaults-last", RefaultsLast::default())
}
