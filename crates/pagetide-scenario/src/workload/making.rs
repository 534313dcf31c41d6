//! Kernel objects made one by one: all are made, in order, then all except the kept share are removed, in
//! order. Of those that were kept, a later phase removes all but a share of its own.
//!
//! The numbers of names and slots continue over all phases of their kind and all loops of the task, so that
//! the objects that a phase keeps are not replaced. Invariant: a task removes only objects that it has made,
//! each once.

use super::cursor::{Cursor, Generator};
use super::plan::{Planner, Stage, State};
use crate::load::decode::Share;
use crate::names::PickKind;
use crate::op::Op;
use crate::prng::SplitMix64;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    File,
    Missing,
    Pipe,
}

/// Which of things stay: `part` of each `of` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// So many ...
    pub part: u32,
    /// ... of so many, 1 or more.
    pub of: u32,
    /// Those that lie evenly, or any.
    pub pick: PickKind,
}

impl Keep {
    pub(super) fn new(Share { part, of }: Share, pick: PickKind) -> Keep {
        Keep { part, of, pick }
    }

    /// Evenly, so many per cent.
    pub const fn percent(percent: u32) -> Keep {
        Keep { part: percent, of: 100, pick: PickKind::Evenly }
    }

    /// How many stay of the first `count`; at random, about so many.
    ///
    /// ```
    /// use pagetide_scenario::workload::Keep;
    /// assert_eq!([0, 1, 10, 11].map(|count| Keep::percent(10).of_first(count)), [0, 1, 1, 2]);
    /// ```
    pub fn of_first(self, count: u64) -> u64 {
        (count * u64::from(self.part)).div_ceil(u64::from(self.of.max(1)))
    }
}

/// Says of things, one after the other, which stay.
#[derive(Clone, Debug)]
struct Chooser {
    keep: Keep,
    seen: u64,
    prng: SplitMix64,
}

impl Chooser {
    /// Whether the next thing stays. Evenly: if the share, rounded up, grows with it, so the first does.
    fn keeps_next(&mut self) -> bool {
        let Keep { part, of, pick } = self.keep;
        let seen = self.seen;
        self.seen += 1;
        match pick {
            PickKind::Evenly => self.keep.of_first(seen + 1) > self.keep.of_first(seen),
            PickKind::Random => self.prng.below(of.max(1).into()) < part.into(),
        }
    }
}

/// The things of a phase, and what it and later phases keep of them.
#[derive(Clone, Debug)]
pub(super) struct Made {
    thing: Thing,
    make: u32,
    /// By the phases that remove some, in their order.
    keeps: Vec<(u32, Keep)>,
}

impl Made {
    /// Goes through the things of which number `first` is the first, after so many were made.
    fn walk(&self, state: &State, first: u32, made: u32) -> Cursor {
        let chooser = |&(phase, keep): &(u32, Keep)| {
            // Whoever looks again at what a phase has kept finds the same.
            let prng = state.fresh(&format!("keep{phase}/{first}"));
            Chooser { keep, seen: 0, prng }
        };
        let choosers = self.keeps.iter().map(chooser).collect();
        let Made { thing, make, .. } = *self;
        Box::new(Makes { thing, make, choosers, first, made, looked_at: 0 }).into()
    }
}

impl Planner<'_> {
    /// The stage of a phase that makes things and removes some of them. `counted`: the name under which the
    /// task counts things of the kind.
    pub(super) fn makes(
        &mut self,
        phase: u32,
        thing: Thing,
        counted: &'static str,
        (make, keep): (u32, Keep),
    ) -> Stage {
        let made = Made { thing, make, keeps: vec![(phase, keep)] };
        self.made.insert(phase, made.clone());
        Stage::run(move |state, _| {
            // Counted at once: a stage is entered once, and always to its end.
            let next = state.counts.entry(counted).or_default();
            let first = *next;
            *next = next.wrapping_add(make);
            state.firsts.insert(phase, first);
            made.walk(state, first, 0)
        })
    }

    /// The stage of a phase that removes things of phase `of`, which comes before it.
    pub(super) fn removes(&mut self, phase: u32, of: u32, keep: Keep) -> Stage {
        let made = self.made.get_mut(&of).expect("a phase before it makes things");
        made.keeps.push((phase, keep));
        let made = made.clone();
        Stage::run(move |state, _| match state.firsts.get(&of) {
            Some(&first) => made.walk(state, first, made.make),
            None => Cursor::Idle,
        })
    }
}

/// Where a task is among the things that a phase makes and removes.
#[derive(Debug)]
struct Makes {
    thing: Thing,
    make: u32,
    /// The last says what this phase keeps of what those before it have kept.
    choosers: Vec<Chooser>,
    /// Number of the first in the task.
    first: u32,
    /// Steps done: `make` to make, and as many to look at what to remove.
    made: u32,
    looked_at: u32,
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
        let (last, before) = self.choosers.split_last_mut()?;
        while self.looked_at < self.make {
            let number = self.first.wrapping_add(self.looked_at);
            self.looked_at += 1;
            let is_there = before.iter_mut().all(Chooser::keeps_next);
            if !is_there || last.keeps_next() {
                continue;
            }
            return match self.thing {
                Thing::Missing => None,
                Thing::File => Some(Op::RemoveName { name: number }),
                Thing::Pipe => Some(Op::ClosePipe { slot: number }),
            };
        }
        None
    }
}
