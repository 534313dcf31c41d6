//! Files and pipes made one by one: a phase makes all, in order, then removes all except the kept
//! share, in order. A later phase can remove the kept ones except for its own share.
//!
//! Numbers of names and slots continue over all phases of their kind and all loops of the task, so
//! that kept objects are not replaced. Invariant: a task removes only its own objects, each once.

use super::cursor::{Cursor, Generator};
use super::plan::{PhaseStage, Planner};
use super::state::ProgramState;
use crate::draws::prng::SplitMix64;
use crate::load::decode::Share;
use crate::names::PickKind;
use crate::op::Op;

/// The kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MadeKind {
    File,
    Missing,
    Pipe,
}

/// The share that stays: `part` of each `of` objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepShare {
    /// Numerator ...
    pub part: u32,
    /// ... and denominator, 1 or more.
    pub of: u32,
    /// Every Nth, or random ones.
    pub pick: PickKind,
}

impl KeepShare {
    pub(super) fn new(Share { part, of }: Share, pick: PickKind) -> KeepShare {
        KeepShare { part, of, pick }
    }

    /// This share in per cent, spread evenly.
    pub const fn percent(percent: u32) -> KeepShare {
        KeepShare { part: percent, of: 100, pick: PickKind::Evenly }
    }

    /// Number that stay of the first `count`; for random choice, the expected number.
    ///
    /// ```
    /// use pagetide_scenario::workload::KeepShare;
    /// let keep = KeepShare::percent(10);
    /// assert_eq!([0, 1, 10, 11].map(|count| keep.kept_of_first(count)), [0, 1, 1, 2]);
    /// ```
    pub fn kept_of_first(self, count: u64) -> u64 {
        (count * u64::from(self.part)).div_ceil(u64::from(self.of.max(1)))
    }
}

/// Decides for one object after another whether it stays.
#[derive(Clone, Debug)]
struct Chooser {
    keep: KeepShare,
    seen: u64,
    prng: SplitMix64,
}

impl Chooser {
    /// Whether the next object stays. Evenly: if it increases the share, rounded up (as the first
    /// does).
    fn next_stays(&mut self) -> bool {
        let KeepShare { part, of, pick } = self.keep;
        let seen = self.seen;
        self.seen += 1;
        match pick {
            PickKind::Evenly => self.keep.kept_of_first(seen + 1) > self.keep.kept_of_first(seen),
            PickKind::Random => self.prng.below(of.max(1).into()) < part.into(),
        }
    }
}

/// The objects of a phase, and the shares that this and later phases keep.
#[derive(Clone, Debug)]
pub(super) struct MadeObjects {
    thing: MadeKind,
    make: u32,
    /// By phase, in the order of removal.
    keeps: Vec<(u32, KeepShare)>,
}

impl MadeObjects {
    /// Makes and removes objects from number `first`; `made` of them already exist.
    fn walk(&self, state: &ProgramState, first: u32, made: u32) -> Cursor {
        let chooser = |&(phase, keep): &(u32, KeepShare)| {
            // Start from the same seed each time: later phases repeat the choice of earlier ones.
            let prng = state.fresh(&format!("keep{phase}/{first}"));
            Chooser { keep, seen: 0, prng }
        };
        let choosers = self.keeps.iter().map(chooser).collect();
        let MadeObjects { thing, make, .. } = *self;
        Box::new(MakeObjects { thing, make, choosers, first, made, looked_at: 0 }).into()
    }
}

impl Planner<'_> {
    /// The stage of a phase that makes objects and removes some of them. `counted`: the task's
    /// counter for this kind of object.
    pub(super) fn make_stage(
        &mut self,
        phase: u32,
        thing: MadeKind,
        counted: &'static str,
        (make, keep): (u32, KeepShare),
    ) -> PhaseStage {
        let made = MadeObjects { thing, make, keeps: vec![(phase, keep)] };
        self.made.insert(phase, made.clone());
        PhaseStage::run(move |state, _| {
            // Count all now: a stage is entered once and always runs to its end.
            let next = state.counts.entry(counted).or_default();
            let first = *next;
            *next = next.wrapping_add(make);
            state.firsts.insert(phase, first);
            made.walk(state, first, 0)
        })
    }

    /// The stage of a phase that removes objects of the earlier phase `of`.
    pub(super) fn remove_stage(&mut self, phase: u32, of: u32, keep: KeepShare) -> PhaseStage {
        let made = self.made.get_mut(&of).expect("a phase before it makes things");
        made.keeps.push((phase, keep));
        let made = made.clone();
        PhaseStage::run(move |state, _| match state.firsts.get(&of) {
            Some(&first) => made.walk(state, first, made.make),
            None => Cursor::Idle,
        })
    }
}

/// Progress of a phase that makes and removes objects.
#[derive(Debug)]
struct MakeObjects {
    thing: MadeKind,
    make: u32,
    /// The last is this phase's choice among the objects that the earlier phases kept.
    choosers: Vec<Chooser>,
    /// Number of the first object in the task.
    first: u32,
    /// Objects made; then `looked_at` counts the objects considered for removal.
    made: u32,
    looked_at: u32,
}

impl Generator for MakeObjects {
    fn next_op(&mut self) -> Option<Op> {
        if self.made < self.make {
            let number = self.first.wrapping_add(self.made);
            self.made += 1;
            return Some(match self.thing {
                MadeKind::File => Op::MakeName { name: number, missing: false },
                MadeKind::Missing => Op::MakeName { name: number, missing: true },
                MadeKind::Pipe => Op::OpenPipe { slot: number },
            });
        }
        let (last, before) = self.choosers.split_last_mut()?;
        while self.looked_at < self.make {
            let number = self.first.wrapping_add(self.looked_at);
            self.looked_at += 1;
            let is_there = before.iter_mut().all(Chooser::next_stays);
            if !is_there || last.next_stays() {
                continue;
            }
            return match self.thing {
                MadeKind::Missing => None,
                MadeKind::File => Some(Op::RemoveName { name: number }),
                MadeKind::Pipe => Some(Op::ClosePipe { slot: number }),
            };
        }
        None
    }
}
