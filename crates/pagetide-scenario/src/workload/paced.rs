//! The key `rate` of touch and working-set: accesses are due at fixed times.
//!
//! A task wakes at whole milliseconds and makes the accesses that are due by then. A task that is
//! late because memory was slow catches up.
//!
//! Invariant: the operations are a stream without a clock; times count from the first operation.

use super::cursor::Cursor;
use super::load_curve::{check_load, LoadCurve, LoadPoint, FULL_SECOND};
use super::plan::{PhaseStage, Planner};
use super::state::ProgramState;
use crate::load::decode::Rate as RateKey;
use crate::load::span::{ProblemSink, Spanned};
use crate::op::Op;

/// Time between two wake-ups of a task.
const TICK: u64 = 1_000_000;
/// Largest rate: 1 TiB/s.
pub(super) const RATE_MAX: u64 = 1 << 40;

/// A rate in bytes per second, and its change over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Bytes per second at the full load.
    pub bytes: u64,
    /// Share of the rate over time.
    pub load: LoadCurve,
}

impl Pace {
    /// Checks the keys: `Some(None)` without a rate, `None` after a mistake was reported.
    pub(super) fn check(
        rate: &Option<Spanned<RateKey>>,
        load: &Option<Spanned<Vec<LoadPoint>>>,
        bad: &[&str],
        sink: &mut ProblemSink,
    ) -> Option<Option<Pace>> {
        let Some(rate) = rate else {
            if let (Some(load), false) = (load, bad.contains(&"rate")) {
                let hint = "add rate = \"100MiB/s\", for example: `load` is a share of the rate";
                sink.hinted(load.span, "`load` needs `rate`", hint);
                return None;
            }
            return Some(None);
        };
        check_rate(rate, sink)?;
        let curve = check_load(load, sink)?;
        if let (Some(load), true) = (load, curve.ends_at_zero()) {
            let hint = "end with a share above \"0 %\"; it holds after the last point";
            sink.hinted(
                load.span,
                "the load ends at 0 %: the remaining accesses would never be due",
                hint,
            );
            return None;
        }
        Some(Some(Pace { bytes: rate.value.0, load: curve }))
    }
}

/// Reports a rate of 0, and one that is too large.
pub(super) fn check_rate(rate: &Spanned<RateKey>, sink: &mut ProblemSink) -> Option<()> {
    if !(1..=RATE_MAX).contains(&rate.value.0) {
        let hint =
            "write a rate from 1 byte/s to 1TiB/s, for example \"100MiB/s\" or \"2000 pages/s\"";
        sink.hinted(rate.span, "the rate is out of range", hint);
        return None;
    }
    Some(())
}

impl Planner<'_> {
    /// A stage of memory accesses, paced if it has a rate.
    pub(super) fn paced(&self, stage: PhaseStage, pace: Option<&Pace>) -> PhaseStage {
        let (Some(pace), PhaseStage::Run(run)) = (pace.cloned(), &stage) else { return stage };
        let page = self.page_size.bytes();
        let run = run.clone();
        PhaseStage::run(move |state, round| {
            let inner = run.begin(state, round);
            let (pace, done, left) = (pace.clone(), 0, 0);
            Cursor::Paced(Box::new(PacedAccesses { inner, pace, page, done, left }))
        })
    }
}

/// Accesses at a rate.
#[derive(Debug)]
pub(super) struct PacedAccesses {
    inner: Cursor,
    pace: Pace,
    /// Bytes of an access.
    page: u64,
    done: u64,
    /// Accesses that are due by now and not yet made.
    left: u64,
}

impl PacedAccesses {
    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        if self.left == 0 {
            return self.wait();
        }
        let Some(op) = self.inner.next_op() else {
            // The stage has ended: further calls must not wait.
            self.left = u64::MAX;
            return None;
        };
        self.left -= 1;
        self.done += 1;
        Some(op)
    }

    /// Sleeps until the next access is due, and sets `left` to the number of accesses due by then.
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

    pub(super) fn end(self, state: &mut ProgramState) {
        self.inner.end(state);
    }
}
