//! The values of a knob along the x axis of a chart.
//!
//! Invariant: positions ascend. Values that are not all numbers of one kind (words, `max`) are at
//! 1, 2, and so on, and are the ticks of the axis.

use crate::lines::ChartAxis;
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::PageSize;
use pagetide_scenario::record::Unit;

/// The axis is logarithmic from this ratio of largest to smallest value on.
const LOG_FROM: f64 = 20.0;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnobAxis {
    pub(super) axis: ChartAxis,
    /// Position of each value.
    pub(super) x: Vec<f64>,
}

/// The positions of `values`, which are distinct and in the order of the knob.
pub(super) fn along(path: &str, values: &[&str], page_size: PageSize) -> KnobAxis {
    let numbers: Option<Vec<(f64, Unit)>> =
        values.iter().map(|text| number(text, page_size)).collect();
    if let Some(numbers) = numbers {
        let ascends = numbers.windows(2).all(|pair| pair[0].0 < pair[1].0);
        // `0` has no unit.
        let mut units = numbers.iter().filter(|(number, _)| *number != 0.0).map(|(_, unit)| *unit);
        let unit = units.next().unwrap_or(Unit::Count);
        if ascends && units.all(|other| other == unit) {
            let x: Vec<f64> = numbers.iter().map(|(number, _)| *number).collect();
            let axis = ChartAxis::new(path, unit);
            let is_wide = x.len() > 1 && x[0] > 0.0 && x[x.len() - 1] / x[0] >= LOG_FROM;
            return KnobAxis { axis: if is_wide { axis.log() } else { axis }, x };
        }
    }
    let names = values.iter().map(|value| (*value).to_owned()).collect();
    let axis = ChartAxis::of_names(path, names);
    KnobAxis { axis, x: (1..=values.len()).map(|number| number as f64).collect() }
}

fn number(text: &str, page_size: PageSize) -> Option<(f64, Unit)> {
    Some(match Quantity::read(text, page_size).ok()? {
        Quantity::Integer(integer) => (integer as f64, Unit::Count),
        Quantity::Decimal(number) => (number, Unit::Count),
        Quantity::Percent(number) => (number, Unit::Percent),
        Quantity::Bytes(bytes) => (bytes as f64, Unit::Bytes),
        Quantity::Nanoseconds(ns) => (ns as f64 / 1e9, Unit::Seconds),
        Quantity::BytesPerSecond(rate) => (rate as f64, Unit::BytesPerSecond),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_and_words_are_counted() {
        let of = |values: &[&str]| along("k", values, PageSize::Kib4);
        assert_eq!(of(&["0", "10", "200"]).x, [0.0, 10.0, 200.0]);
        assert!(!of(&["0", "10", "200"]).axis.log && of(&["10", "200"]).axis.log);
        let sizes = of(&["64MiB", "1GiB"]);
        assert_eq!((sizes.axis.unit, sizes.x[0]), (Unit::Bytes, 67_108_864.0));
        assert_eq!(of(&["0", "1GiB"]).axis.unit, Unit::Bytes);
        for words in [["always", "never"], ["10", "max"], ["10", "5"], ["1GiB", "5 %"]] {
            let axis = of(&words);
            assert_eq!(axis.x, [1.0, 2.0]);
            assert_eq!(
                (axis.axis.label.as_str(), axis.axis.names.as_slice()),
                ("k", &words.map(str::to_owned)[..])
            );
        }
        assert!(of(&[]).x.is_empty());
    }
}
