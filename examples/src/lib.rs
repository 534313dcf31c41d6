//! Two policies that are not built into Pagetide: one for groups, one for page ageing. Copy this
//! crate to start your own (docs/add-a-policy.md).

#![forbid(unsafe_code)]

pub mod refaults_last;
pub mod two_queues;

use pagetide::policy::Plugins;
use refaults_last::RefaultsLast;
use two_queues::TwoQueues;

/// Both policies, under the names that scenarios use.
pub fn plugins() -> Plugins {
    Plugins::new().groups("refaults-last", RefaultsLast::default()).pages("two-queues", TwoQueues)
}
