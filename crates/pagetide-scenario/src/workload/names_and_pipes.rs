//! Kernel objects made one by one: all are made, in order, then all but the kept share go, in order.
//!
//! Names and slots count over all phases of their kind and all loops of the task, so that what a
//! phase keeps stays. Invariant: nothing is removed that this task has not made.

use crate::model::is_kept;
use crate::op::Op;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    File,
    Missing,
    Pipe,
}

/// Things that a phase makes and removes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Making {
    pub(super) thing: Thing,
    pub(super) make: u32,
    pub(super) keep_percent: u32,
}

/// Where a task is in it.
#[derive(Debug)]
pub(super) struct Makes {
    making: Making,
    /// Number of the first in the task.
    first: u32,
    /// Steps done: `make` to make, and as many to look at what to remove.
    made: u32,
    looked_at: u32,
}

impl Makes {
    pub(super) fn new(making: Making, first: u32) -> Self {
        Self { making, first, made: 0, looked_at: 0 }
    }

    pub(super) fn next_op(&mut self) -> Option<Op> {
        let Making { thing, make, keep_percent } = self.making;
        if self.made < make {
            let number = self.first.wrapping_add(self.made);
            self.made += 1;
            return Some(match thing {
                Thing::File => Op::MakeName { name: number, missing: false },
                Thing::Missing => Op::MakeName { name: number, missing: true },
                Thing::Pipe => Op::OpenPipe { slot: number },
            });
        }
        while self.looked_at < make {
            let index = self.looked_at;
            self.looked_at += 1;
            let number = self.first.wrapping_add(index);
            match thing {
                Thing::Missing => return None,
                _ if is_kept(index, keep_percent) => {}
                Thing::File => return Some(Op::RemoveName { name: number }),
                Thing::Pipe => return Some(Op::ClosePipe { slot: number }),
            }
        }
        None
    }
}
