//! The key `load`: a curve of shares that changes a rate over time; due times at such a rate.
//!
//! Invariant: integers only. [`LoadCurve::when`] is the inverse of [`LoadCurve::at`]: the first
//! time at which the curve has reached an amount.

use crate::load::decode::{expected, Decode, Percent, Time};
use crate::load::span::{ProblemSink, Spanned, SpannedProblem};
use crate::load::tree::{TomlNode, TomlValue};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// The full rate, in per cent.
const ALL: u32 = 100;
/// One second at the full rate, in the unit of [`LoadCurve::at`].
pub(super) const FULL_SECOND: u64 = ALL as u64 * 1_000_000_000;
/// Latest time of a point, about two years: products of two times fit in 128 bits.
pub(super) const TIME_MAX: u64 = 1 << 56;
const POINTS_MAX: usize = 1000;
/// Form of a curve, for messages.
const FORM: &str = "a curve is written like [[\"0s\", \"20 %\"], [\"10min\", \"100 %\"]]";

/// A share of a rate over time: linear between points, constant outside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadCurve {
    points: Vec<Corner>,
}

/// A point, and the amount of the curve up to it, in per cent of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Corner {
    at_ns: u64,
    percent: u32,
    before: u64,
}

impl Default for LoadCurve {
    /// The full rate at all times.
    fn default() -> LoadCurve {
        LoadCurve::new(&[(0, ALL)])
    }
}

impl LoadCurve {
    /// A curve through points: (time, per cent).
    ///
    /// # Panics
    /// If a time is before the previous one. The loader accepts neither such points nor times after
    /// two years.
    pub fn new(points: &[(u64, u32)]) -> LoadCurve {
        let first = points.first().map_or(ALL, |point| point.1);
        let mut load = LoadCurve { points: vec![Corner { at_ns: 0, percent: first, before: 0 }] };
        for &(at_ns, percent) in points {
            let last = load.points[load.points.len() - 1];
            let length = at_ns - last.at_ns;
            let brought = u128::from(length) * u128::from(last.percent + percent) / 2;
            let before = last.before + brought as u64;
            load.points.push(Corner { at_ns, percent, before });
        }
        load
    }

    /// The amount up to `at_ns`, in nanoseconds times per cent.
    pub(super) fn at(&self, at_ns: u64) -> u64 {
        let next = self.points.partition_point(|point| point.at_ns <= at_ns);
        let from = self.points[next - 1];
        from.before.saturating_add(self.brought(next, at_ns - from.at_ns))
    }

    /// The first time at which the curve has reached an amount; `None`: never.
    pub(super) fn when(&self, brought: u64) -> Option<u64> {
        let next = self.points.partition_point(|point| point.before < brought);
        if next == 0 {
            return Some(0);
        }
        let from = self.points[next - 1];
        let wanted = brought - from.before;
        let Some(to) = self.points.get(next) else {
            let percent = u64::from(from.percent);
            return (percent > 0).then(|| from.at_ns.saturating_add(wanted.div_ceil(percent)));
        };
        let (mut low, mut high) = (0, to.at_ns - from.at_ns);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.brought(next, middle) < wanted {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Some(from.at_ns + low)
    }

    /// The amount of the first `ns` of the segment that ends at point number `next`.
    fn brought(&self, next: usize, ns: u64) -> u64 {
        let from = self.points[next - 1];
        let (ns, first) = (u128::from(ns), u128::from(from.percent));
        let change = match self.points.get(next) {
            Some(to) if to.at_ns > from.at_ns => {
                let length = 2 * u128::from(to.at_ns - from.at_ns);
                let square = ns * ns * u128::from(to.percent.abs_diff(from.percent));
                (square / length, square.div_ceil(length), to.percent >= from.percent)
            }
            _ => (0, 0, true),
        };
        let brought = match change {
            (more, _, true) => ns * first + more,
            (_, less, false) => (ns * first).saturating_sub(less),
        };
        u64::try_from(brought).unwrap_or(u64::MAX)
    }

    /// Whether the rate is zero from some time on.
    pub(super) fn ends_at_zero(&self) -> bool {
        self.points.last().is_some_and(|point| point.percent == 0)
    }
}

/// A point of a curve in a scenario: a time and a share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadPoint {
    at: Spanned<Time>,
    share: Spanned<Percent>,
}

impl Decode for LoadPoint {
    fn decode(node: &TomlNode, sink: &mut ProblemSink) -> Option<Self> {
        let TomlValue::Array(pair) = &node.value else {
            expected(node, "a time and a share", FORM, sink);
            return None;
        };
        let [at, share] = pair.as_slice() else {
            sink.hinted(node.span, "a point has a time and a share", FORM);
            return None;
        };
        let (at, share) = (Spanned::decode(at, sink), Spanned::decode(share, sink));
        Some(LoadPoint { at: at?, share: share? })
    }
}

impl JsonSchema for LoadPoint {
    fn schema_name() -> Cow<'static, str> {
        "Point".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (time, share) =
            (generator.subschema_for::<Time>(), generator.subschema_for::<Percent>());
        json_schema!({
            "description": "A point of a curve: a time and a share of the rate",
            "type": "array",
            "prefixItems": [time, share],
            "minItems": 2,
            "maxItems": 2,
        })
    }
}

/// The curve of a rate; the full rate without `points`. `None` after a mistake was reported.
pub(super) fn check_load(
    points: &Option<Spanned<Vec<LoadPoint>>>,
    sink: &mut ProblemSink,
) -> Option<LoadCurve> {
    let Some(points) = points else { return Some(LoadCurve::default()) };
    if points.value.is_empty() || points.value.len() > POINTS_MAX {
        let message = match points.value.len() {
            0 => "the curve has no points".to_owned(),
            nr => format!("the curve has {nr} points"),
        };
        let hint = format!("write 1 to {POINTS_MAX} points; {FORM}");
        sink.hinted(points.span, message, hint);
        return None;
    }
    for pair in points.value.windows(2) {
        if pair[1].at.value.0 < pair[0].at.value.0 {
            sink.push(SpannedProblem {
                span: pair[1].at.span,
                message: "the point is earlier than the previous one".into(),
                hint: Some("write the points in the order of their times".into()),
                also: Some((pair[0].at.span, "the previous point".into())),
            });
            return None;
        }
    }
    let last = points.value.last()?;
    if last.at.value.0 > TIME_MAX {
        sink.hinted(last.at.span, "the time of the point is too large", "write at most two years");
        return None;
    }
    if points.value.iter().all(|point| point.share.value.0 == 0) {
        sink.hinted(
            points.span,
            "the load is 0 % at all times",
            "give a point a share above \"0 %\"",
        );
        return None;
    }
    let of = |point: &LoadPoint| (point.at.value.0, point.share.value.0 as u32);
    Some(LoadCurve::new(&points.value.iter().map(of).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn without_a_curve_time_is_all_there_is() {
        let load = LoadCurve::default();
        assert_eq!(load.at(7), 700);
        assert_eq!((load.when(700), load.when(701), load.when(0)), (Some(7), Some(8), Some(0)));
    }

    #[test]
    fn a_curve_is_linear_between_its_points() {
        // Half of the first ten seconds, then the full rate, then a step down to a tenth.
        let load =
            LoadCurve::new(&[(0, 0), (10 * SECOND, 100), (20 * SECOND, 100), (20 * SECOND, 10)]);
        assert_eq!(load.at(5 * SECOND), 125 * SECOND);
        assert_eq!(load.at(10 * SECOND), 500 * SECOND);
        assert_eq!(load.at(20 * SECOND), 1500 * SECOND);
        assert_eq!(load.at(30 * SECOND), 1600 * SECOND);
        assert_eq!(load.when(125 * SECOND), Some(5 * SECOND));
        assert_eq!(load.when(1600 * SECOND), Some(30 * SECOND));
        let falling = LoadCurve::new(&[(0, 100), (10 * SECOND, 0)]);
        assert_eq!(falling.at(5 * SECOND), 375 * SECOND);
        assert_eq!(falling.at(60 * SECOND), 500 * SECOND);
        assert_eq!(falling.when(500 * SECOND + 1), None);
        assert!(falling.ends_at_zero() && !load.ends_at_zero());
    }

    #[test]
    fn when_is_the_inverse() {
        let load = LoadCurve::new(&[(3, 20), (1000, 100), (1000, 0), (5000, 7), (777_777, 63)]);
        for brought in (0..load.at(900_000)).step_by(977) {
            let at = load.when(brought).unwrap();
            assert!(load.at(at) >= brought, "{brought}");
            assert!(at == 0 || load.at(at - 1) < brought, "{brought}");
        }
    }
}
