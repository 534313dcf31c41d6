//! The daemons of the core: why each sleeps, and the times for which they are awake.
//!
//! Invariant: a daemon is throttled or waits for a disk only while it sleeps.

mod run;
pub(crate) mod times;

use crate::disk::IoPlug;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::units::NodeId;
use times::DaemonTimes;

#[derive(Debug, Default)]
pub(crate) struct DaemonSleep {
    pub throttled: Option<(NodeId, Throttle)>,
    pub waits_for_disk: bool,
    /// True for a kswapd that balances its node; PSI counts it as stalled.
    pub stalled: bool,
    /// Its last step, which may still be in progress, ended its work.
    pub rests: bool,
    pub plug: IoPlug,
}

#[derive(Debug)]
pub(crate) struct SimDaemons {
    nr_nodes: usize,
    /// In the order of [`Daemon::all`].
    pub sleeps: Vec<DaemonSleep>,
    /// Times for which daemons and tasks were awake or compacting.
    pub times: DaemonTimes,
}

impl SimDaemons {
    pub fn new(nr_nodes: usize) -> SimDaemons {
        let sleeps = Daemon::all(nr_nodes).map(|_| DaemonSleep::default()).collect();
        SimDaemons { nr_nodes, sleeps, times: DaemonTimes::new(nr_nodes) }
    }

    pub fn of(&self, daemon: Daemon) -> &DaemonSleep {
        &self.sleeps[daemon.idx(self.nr_nodes)]
    }

    pub fn of_mut(&mut self, daemon: Daemon) -> &mut DaemonSleep {
        &mut self.sleeps[daemon.idx(self.nr_nodes)]
    }

    pub fn throttled(&self, node: NodeId, reason: Throttle) -> Vec<Daemon> {
        let is_throttled = |daemon: &Daemon| self.of(*daemon).throttled == Some((node, reason));
        Daemon::all(self.nr_nodes).filter(is_throttled).collect()
    }
}
