//! The daemons: background work that no task requests.
//!
//! Linux: the kernel threads kswapd, kcompactd, khugepaged, the writeback thread and a worker. A
//! world runs them like tasks. It steps a daemon until the daemon rests ([`DaemonRest`]), and again
//! when the rest is over or an effect has woken the daemon ([`Token::Daemon`]). The flusher and
//! khugepaged work on files and mappings, which only the owners know, so the owners do that work
//! ([`Owners::daemon_step`]).
//!
//! Invariant: a daemon that rests is woken by its own token. A daemon that sleeps in the middle of
//! its work is woken by the token of that sleep.

mod step;

#[cfg(doc)]
use crate::interface::effect::Token;
#[cfg(doc)]
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::units::{Nanos, NodeId};

/// A daemon of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// Keeps the free pages of a node between its watermarks.
    Kswapd(NodeId),
    /// Writes dirty pages to the owners' stores.
    Flusher,
    /// Compacts a node in the background.
    Kcompactd(NodeId),
    /// Collapses the owners' pages into huge pages.
    Khugepaged,
    /// Does deferred work.
    Kworker,
}

impl Daemon {
    /// Index of this daemon in [`Daemon::all`] for `nr_nodes` nodes.
    pub fn idx(self, nr_nodes: usize) -> usize {
        match self {
            Daemon::Kswapd(node) => node.idx(),
            Daemon::Flusher => nr_nodes,
            Daemon::Kcompactd(node) => nr_nodes + 1 + node.idx(),
            Daemon::Khugepaged => 2 * nr_nodes + 1,
            Daemon::Kworker => 2 * nr_nodes + 2,
        }
    }

    /// The daemon at an index of [`Daemon::all`] for `nr_nodes` nodes.
    pub fn at(at: usize, nr_nodes: usize) -> Daemon {
        match at {
            at if at < nr_nodes => Daemon::Kswapd(NodeId(at as u8)),
            at if at == nr_nodes => Daemon::Flusher,
            at if at <= 2 * nr_nodes => Daemon::Kcompactd(NodeId((at - nr_nodes - 1) as u8)),
            at if at == 2 * nr_nodes + 1 => Daemon::Khugepaged,
            _ => Daemon::Kworker,
        }
    }

    /// All daemons of a machine with `nr_nodes` nodes, always in the same order.
    pub fn all(nr_nodes: usize) -> impl Iterator<Item = Daemon> {
        (0..2 * nr_nodes + 3).map(move |at| Daemon::at(at, nr_nodes))
    }
}

/// Returned when a daemon has nothing to do: step it again when it is woken, or after `timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaemonRest {
    /// Length of the rest; [`Nanos::MAX`]: until the daemon is woken.
    pub timeout: Nanos,
}

impl DaemonRest {
    /// A rest that only a wake-up ends.
    pub const UNTIL_WOKEN: DaemonRest = DaemonRest { timeout: Nanos::MAX };

    /// A rest of `timeout`, unless the daemon is woken earlier.
    pub const fn of(timeout: Nanos) -> DaemonRest {
        DaemonRest { timeout }
    }
}

/// The throttle queue whose sleeper count includes this sleeper, if any.
pub(crate) type ThrottleQueue = Option<(NodeId, Throttle)>;
