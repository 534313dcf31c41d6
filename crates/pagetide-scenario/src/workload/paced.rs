//! `rate` of touch and working-set: accesses that are due at times, not as soon as possible.
//!
//! A task wakes at whole milliseconds and makes the accesses that are due by then. One that is late, because
//! memory was, makes up for it.
//!
//! Invariant: a stream of operations without a clock: the times are those since the first of them.

use super::cursor::Cursor;
use super::load_curve::{check_load, Load, Point, FULL_SECOND};
use super::plan::{Planner, Stage, State};
use crate::load::decode::Rate as RateKey;
use crate::load::span::{At, Sink};
use crate::op::Op;

/// Between two times at which a task wakes.
const TICK: u64 = 1_000_000;
/// The fastest rate: a TiB a second.
pub(super) const RATE_MAX: u64 = 1 << 40;

/// Bytes a second, and how they change over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes a second at the whole of the load.
    pub bytes: u64,
    /// The share of it over time.
    pub load: Load,
}

impl Pace {
    /// From its keys: `Some(None)` without a rate, `None` after a mistake was reported.
    pub(super) fn check(
        rate: &Option<At<RateKey>>,
        load: &Option<At<Vec<Point>>>,
        bad: &[&str],
        sink: &mut Sink,
    ) -> Option<Option<Pace>> {
        let Some(rate) = rate else {
            if let (Some(load), false) = (load, bad.contains(&"rate")) {
                let hint = "add rate = \"100MiB/s\", for example: the load is a share of it";
                sink.hinted(load.span, "`load` without `rate`", hint);
                return None;
            }
            return Some(None);
        };
        check_rate(rate, sink)?;
        let curve = check_load(load, sink)?;
        if let (Some(load), true) = (load, curve.ends_at_zero()) {
            let hint = "end with a share above \"0 %\", which holds from then on";
            sink.hinted(load.span, "the load ends at 0 %: the rest is never due", hint);
            return None;
        }
        Some(Some(Pace { bytes: rate.value.0, load: curve }))
    }
}

/// Reports a rate of nothing, and one that is too fast.
pub(super) fn check_rate(rate: &At<RateKey>, sink: &mut Sink) -> Option<()> {
    if !(1..=RATE_MAX).contains(&rate.value.0) {
        let hint = "from 1 byte a second to 1TiB/s, for example \"100MiB/s\" or \"2000 pages/s\"";
        sink.hinted(rate.span, "no rate at which anything is done", hint);
        return None;
    }
    Some(())
}

impl Planner<'_> {
    /// A stage of accesses to memory, at a rate if it has one.
    pub(super) fn paced(&self, stage: Stage, pace: Option<&Pace>) -> Stage {
        let (Some(pace), Stage::Run(run)) = (pace.cloned(), &stage) else { return stage };
        let page = self.page_size.bytes();
        let run = run.clone();
        Stage::run(move |state, round| {
            let inner = run.begin(state, round);
            let (pace, done, left) = (pace.clone(), 0, 0);
            Cursor::Paced(Box::new(Paced { inner, pace, page, done, left }))
        })
    }
}

/// Accesses at a rate.
#[derive(Debug)]
pub(super) struct Paced {
    inner: Cursor,
    pace: Pace,
    /// Bytes of an access.
    page: u64,
    done: u64,
    /// Accesses that are due by now and have not been made.
    left: u64,
}

impl Paced {
    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        if self.left == 0 {
            return self.wait();
        }
        let Some(op) = self.inner.next_op() else {
            // However often it is asked from now on, there is nothing to wait for.
            self.left = u64::MAX;
            return None;
        };
        self.left -= 1;
        self.done += 1;
        Some(op)
    }

    /// Sleeps until the next access is due, with those that are due by then.
    fn wait(&mut self) -> Option<Op> {
        let Pace { bytes, load } = &self.pace;
        let (bytes, page) = (u128::from(*bytes), u128::from(self.page));
        let wanted = (u128::from(self.done) * page * u128::from(FULL_SECOND)).div_ceil(bytes);
        let due = load.when(u64::try_from(wanted).ok()?)?.div_ceil(TICK).saturating_mul(TICK);
        let brought = u128::from(load.at(due)) * bytes / (page * u128::from(FULL_SECOND));
        let by_then = u64::try_from(brought).unwrap_or(u64::MAX).saturating_add(1);
        self.left = by_then.saturating_sub(self.done).max(1);
        Some(Op::Until { ns: due })
    }

    pub(super) fn end(self, state: &mut State) {
        self.inner.end(state);
    }
}
