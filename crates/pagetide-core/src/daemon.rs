//! The daemons: work that no task asks for, and the one function that steps them.
//!
//! Linux: the kernel threads kswapd, kcompactd, khugepaged, the writeback thread and a workqueue's. A
//! world runs them as it runs tasks: it steps a daemon that is awake until the daemon rests ([`Rest`]),
//! and again when the rest is over or an effect has woken the daemon ([`Token::Daemon`]). Two of them
//! work on files and huge pages, which the owners of pages know; the owners do that work
//! ([`Owners::daemon_step`]).
//!
//! Invariant: a daemon that rests is woken by the token of its own, one that sleeps in the middle of its work
//! by the token of that sleep.

mod step;

use crate::effect::Throttle;
use crate::units::{Nanos, NodeId};

/// A daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// Keeps a node between its marks.
    Kswapd(NodeId),
    /// Writes dirty pages of the owners' own stores.
    Flusher,
    /// Makes blocks of high order on a node.
    Kcompactd(NodeId),
    /// Makes the owners' pages huge.
    Khugepaged,
    /// Does what was put off.
    Kworker,
}

impl Daemon {
    /// Its place in [`Daemon::all`] of so many nodes.
    pub fn idx(self, nr_nodes: usize) -> usize {
        match self {
            Daemon::Kswapd(node) => node.idx(),
            Daemon::Flusher => nr_nodes,
            Daemon::Kcompactd(node) => nr_nodes + 1 + node.idx(),
            Daemon::Khugepaged => 2 * nr_nodes + 1,
            Daemon::Kworker => 2 * nr_nodes + 2,
        }
    }

    /// The daemon at a place in [`Daemon::all`] of so many nodes.
    pub fn at(at: usize, nr_nodes: usize) -> Daemon {
        match at {
            at if at < nr_nodes => Daemon::Kswapd(NodeId(at as u8)),
            at if at == nr_nodes => Daemon::Flusher,
            at if at <= 2 * nr_nodes => Daemon::Kcompactd(NodeId((at - nr_nodes - 1) as u8)),
            at if at == 2 * nr_nodes + 1 => Daemon::Khugepaged,
            _ => Daemon::Kworker,
        }
    }

    /// All daemons of a machine with so many nodes, in one order for ever.
    pub fn all(nr_nodes: usize) -> impl Iterator<Item = Daemon> {
        (0..2 * nr_nodes + 3).map(move |at| Daemon::at(at, nr_nodes))
    }
}

/// A daemon has nothing to do: step it again when it is woken, or after so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The longest rest; [`Nanos::MAX`]: until it is woken.
    pub timeout: Nanos,
}

impl Rest {
    /// A rest that only a wake-up ends.
    pub const UNTIL_WOKEN: Rest = Rest { timeout: Nanos::MAX };

    /// A rest of so long, unless it is woken before.
    pub const fn of(timeout: Nanos) -> Rest {
        Rest { timeout }
    }

    /// Whether only a wake-up ends it.
    pub const fn is_until_woken(self) -> bool {
        self.timeout == Nanos::MAX
    }
}

/// The queue that a sleeper is counted in, if it is one whose sleepers are.
pub(crate) type CountedIn = Option<(NodeId, Throttle)>;
