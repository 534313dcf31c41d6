//! Kernel objects made one by one: all are made, in order, then all except the kept share are removed, in
//! order.
//!
//! The numbers of names and slots continue over all phases of their kind and all loops of the task, so that
//! the objects that a phase keeps are not replaced. Invariant: a task removes only objects that it has made.

use super::cursor::Generator;
use super::plan::Stage;
use crate::op::Op;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    File,
    Missing,
    Pipe,
}

/// Whether thing number `index` is among the `percent` per cent that are kept: those at which the
/// share, rounded up, grows. They lie evenly, and number 0 is the first.
///
/// ```
/// use pagetide_scenario::workload::is_kept;
/// let kept: Vec<u32> = (0..25).filter(|&index| is_kept(index, 10)).collect();
/// assert_eq!(kept, [0, 10, 20]);
/// ```
pub fn is_kept(index: u32, percent: u32) -> bool {
    let share = |count: u64| (count * u64::from(percent)).div_ceil(100);
    share(u64::from(index) + 1) > share(u64::from(index))
}

/// Where a task is among the things that a phase makes and removes.
#[derive(Debug)]
pub(super) struct Makes {
    thing: Thing,
    make: u32,
    keep_percent: u32,
    /// Number of the first in the task.
    first: u32,
    /// Steps done: `make` to make, and as many to look at what to remove.
    made: u32,
    looked_at: u32,
}

impl Makes {
    /// `counted`: the name under which the task counts things of the kind.
    pub(super) fn stage(
        thing: Thing,
        counted: &'static str,
        make: u32,
        keep_percent: u32,
    ) -> Stage {
        Stage::run(move |state, _| {
            // Counted at once: a stage is entered once, and always to its end.
            let next = state.counts.entry(counted).or_default();
            let first = *next;
            *next = next.wrapping_add(make);
            Box::new(Makes { thing, make, keep_percent, first, made: 0, looked_at: 0 }).into()
        })
    }
}

impl Generator for Makes {
    fn next_op(&mut self) -> Option<Op> {
        if self.made < self.make {
            let number = self.first.wrapping_add(self.made);
            self.made += 1;
            return Some(match self.thing {
                Thing::File => Op::MakeName { name: number, missing: false },
                Thing::Missing => Op::MakeName { name: number, missing: true },
                Thing::Pipe => Op::OpenPipe { slot: number },
            });
        }
        while self.looked_at < self.make {
            let index = self.looked_at;
            self.looked_at += 1;
            let number = self.first.wrapping_add(index);
            match self.thing {
                Thing::Missing => return None,
                _ if is_kept(index, self.keep_percent) => {}
                Thing::File => return Some(Op::RemoveName { name: number }),
                Thing::Pipe => return Some(Op::ClosePipe { slot: number }),
            }
        }
        None
    }
}
