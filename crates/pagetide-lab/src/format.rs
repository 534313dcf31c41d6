//! Numbers for people: one scale per row, four digits per value.

use pagetide_scenario::metric::declared::NO_LIMIT;
use pagetide_scenario::record::Unit;

/// Unit in which a row is printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Printed after the metric's name.
    pub symbol: &'static str,
    /// Printed number = value in the record's unit times this.
    factor: f64,
    kind: Kind,
    /// The value that is printed as `max`.
    no_limit: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Whole numbers; means have this number of decimals.
    Whole { decimals: usize },
    /// Four significant digits.
    Digits,
}

/// Steps from small to large: symbol and size of one in base units.
type Ladder = &'static [(&'static str, f64)];

const TIME: Ladder = &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
const KIB: f64 = 1024.0;
const SIZE: Ladder = &[
    ("B", 1.0),
    ("KiB", KIB),
    ("MiB", KIB * KIB),
    ("GiB", KIB * KIB * KIB),
    ("TiB", KIB * KIB * KIB * KIB),
];
const RATE: Ladder = &[
    ("B/s", 1.0),
    ("KiB/s", KIB),
    ("MiB/s", KIB * KIB),
    ("GiB/s", KIB * KIB * KIB),
    ("TiB/s", KIB * KIB * KIB * KIB),
];

/// Largest printed number; a row loses digits of its small values before it exceeds this.
const MOST: f64 = 1e6;
/// A smaller value has fewer than four digits; then the row uses a smaller unit.
const LEAST: f64 = 0.1;

/// `1 seed`, `5 seeds`.
pub fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A value alone: `800.0 us`.
pub fn shown(unit: Unit, value: f64) -> String {
    let scale = Scale::new(unit, &[(value, 0.0)]);
    format!("{} {}", scale.print(value, 0.0).0, scale.symbol)
}

impl Scale {
    /// The scale for all values of a row, each with its spread.
    pub fn new(unit: Unit, values: &[(f64, f64)]) -> Scale {
        let (ladder, base) = match unit {
            Unit::Count => return Scale::whole("", values),
            Unit::Pages => return Scale::whole("pages", values),
            Unit::Percent => return Scale::digits("%", 1.0),
            Unit::PerSecond => return Scale::digits("/s", 1.0),
            Unit::Ratio => return Scale::digits("", 1.0),
            Unit::Seconds => (TIME, 1.0),
            Unit::Bytes => (SIZE, 1.0),
            Unit::Kilobytes => (SIZE, KIB),
            Unit::BytesPerSecond => (RATE, 1.0),
        };
        let no_limit = (unit == Unit::Bytes).then_some(NO_LIMIT as f64);
        let limits = || values.iter().map(|(v, _)| *v).filter(|v| Some(*v) != no_limit);
        let sizes = || limits().map(|v| v.abs() * base).filter(|v| *v > 0.0 && v.is_finite());
        let Some(largest) = sizes().max_by(f64::total_cmp) else {
            let (symbol, size) = match unit {
                Unit::Seconds => ("s", 1.0),
                _ if !values.is_empty() && limits().count() == 0 => ("", 1.0),
                _ => ladder[0],
            };
            return Scale { no_limit, ..Scale::digits(symbol, base / size) };
        };
        let smallest = sizes().min_by(f64::total_cmp).unwrap_or(largest);
        let mut step = ladder.iter().rposition(|(_, size)| largest >= *size).unwrap_or(0);
        while step > 0 && smallest / ladder[step].1 < LEAST && largest / ladder[step - 1].1 < MOST {
            step -= 1;
        }
        let (symbol, size) = ladder[step];
        Scale { no_limit, ..Scale::digits(symbol, base / size) }
    }

    fn digits(symbol: &'static str, factor: f64) -> Scale {
        Scale { symbol, factor, kind: Kind::Digits, no_limit: None }
    }

    /// Decimals only for small means: 16384.2 says no more than 16384.
    fn whole(symbol: &'static str, values: &[(f64, f64)]) -> Scale {
        let fractional = |(value, spread): &&(f64, f64)| {
            value.is_finite() && (value.fract() != 0.0 || spread.fract() != 0.0)
        };
        let smallest =
            values.iter().filter(fractional).map(|(v, _)| v.abs()).min_by(f64::total_cmp);
        let decimals = match smallest {
            None => 0,
            Some(value) if value >= 100.0 => 0,
            Some(value) if value >= 1.0 => 1,
            Some(value) if value >= 0.1 => 2,
            Some(_) => 3,
        };
        Scale { symbol, factor: 1.0, kind: Kind::Whole { decimals }, no_limit: None }
    }

    /// Prints a published value without trailing zeros.
    pub fn print_as_given(&self, value: f64) -> String {
        let printed = self.print(value, 0.0).0;
        match printed.split_once('.') {
            Some(_) => printed.trim_end_matches('0').trim_end_matches('.').to_owned(),
            None => printed,
        }
    }

    /// Prints the ends of an interval with enough digits to differ.
    pub fn print_apart(&self, ends: [f64; 2]) -> [String; 2] {
        let [from, to] = ends.map(|end| self.print(end, 0.0).0);
        if from != to || ends[0] == ends[1] {
            return [from, to];
        }
        let with = |decimals: usize| ends.map(|end| fixed(end * self.factor, decimals));
        let apart = (1..=6).map(with).find(|[from, to]| from != to);
        apart.unwrap_or([from, to])
    }

    /// Whether the value is "no limit", printed as `max`.
    pub fn is_no_limit(&self, value: f64) -> bool {
        self.no_limit == Some(value)
    }

    /// Prints `value` and, with the same decimals, its spread.
    pub fn print(&self, value: f64, spread: f64) -> (String, String) {
        if self.is_no_limit(value) {
            return ("max".to_owned(), String::new());
        }
        let (value, spread) = (value * self.factor, spread * self.factor);
        let decimals = match self.kind {
            Kind::Whole { decimals } => decimals,
            Kind::Digits => digits(if value == 0.0 { spread } else { value }),
        };
        (fixed(value, decimals), fixed(spread, decimals))
    }
}

fn digits(value: f64) -> usize {
    match value.abs() {
        0.0 => 0,
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    }
}

fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    format!("{value:.decimals$}")
}

/// A size in bytes with a unit: `2 GiB`, `251 MiB`, `1.5 TiB`.
pub fn size(bytes: u64) -> String {
    let step = SIZE.iter().rposition(|(_, size)| bytes as f64 >= *size).unwrap_or(0);
    let (symbol, size) = SIZE[step];
    let value = bytes as f64 / size;
    if value.fract() == 0.0 {
        format!("{value} {symbol}")
    } else {
        format!("{value:.*} {symbol}", if value >= 100.0 { 0 } else { 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unit: Unit, values: &[f64]) -> String {
        let pairs: Vec<(f64, f64)> = values.iter().map(|&v| (v, 0.0)).collect();
        let scale = Scale::new(unit, &pairs);
        let mut out: Vec<String> = values.iter().map(|&v| scale.print(v, 0.0).0).collect();
        out.push(scale.symbol.to_owned());
        out.join(" ")
    }

    #[test]
    fn seconds_below_one_are_milliseconds() {
        assert_eq!(row(Unit::Seconds, &[0.503, 0.364, 0.337]), "503.0 364.0 337.0 ms");
        assert_eq!(row(Unit::Seconds, &[12.25, 4.0]), "12.25 4.000 s");
        assert_eq!(row(Unit::Seconds, &[0.0, 0.0]), "0 0 s");
        assert_eq!(row(Unit::Seconds, &[12_345.6]), "12346 s");
    }

    #[test]
    fn a_row_with_a_wide_range_goes_down_a_step() {
        // The follow-up of the watermark patch: worst latency 517.762 -> 0.020775 ms.
        assert_eq!(row(Unit::Seconds, &[0.517_762, 20.775e-6]), "517762 20.77 us");
        // but not so far that the large value becomes unreadable
        assert_eq!(row(Unit::Seconds, &[2000.0, 1e-6]), "2000 0.000 s");
    }

    #[test]
    fn counts_are_whole_unless_their_mean_is_not() {
        assert_eq!(row(Unit::Count, &[32768.0, 5.0, 0.0]), "32768 5 0 ");
        assert_eq!(row(Unit::Count, &[1809.4, 1809.0]), "1809 1809 ");
        assert_eq!(row(Unit::Count, &[1809.4, 5.2, 0.0]), "1809.4 5.2 0 ");
        assert_eq!(row(Unit::Count, &[0.2, 3.0]), "0.20 3.00 ");
        let small = Scale::new(Unit::Count, &[(5.0, 1.58), (2000.0, 0.5)]);
        assert_eq!(small.print(5.0, 1.58), ("5.0".to_owned(), "1.6".to_owned()));
        let large = Scale::new(Unit::Count, &[(2000.0, 1.58)]);
        assert_eq!(large.print(2000.0, 1.58), ("2000".to_owned(), "2".to_owned()));
    }

    #[test]
    fn ends_that_look_the_same_get_more_digits() {
        let scale = Scale::new(Unit::Percent, &[(-1000.4, 0.0), (-1000.2, 0.0)]);
        assert_eq!(scale.print_apart([-1000.4, -1000.2]), ["-1000.4", "-1000.2"]);
        assert_eq!(scale.print_apart([3.0, 3.0])[0], scale.print_apart([3.0, 3.0])[1]);
        assert_eq!(scale.print_apart([1.0, 2.0]), ["1.000", "2.000"]);
    }

    #[test]
    fn sizes_and_rates() {
        assert_eq!(row(Unit::Bytes, &[3.0 * 1048576.0, 1536.0 * 1024.0]), "3.000 1.500 MiB");
        assert_eq!(row(Unit::Kilobytes, &[2_097_152.0]), "2.000 GiB");
        assert_eq!(row(Unit::BytesPerSecond, &[150e6]), "143.1 MiB/s");
        assert_eq!(size(2 << 30), "2 GiB");
        assert_eq!(size(263_000_000), "251 MiB");
        assert_eq!(size(1_650_000_000_000), "1.5 TiB");
        assert_eq!(size(0), "0 B");
    }

    #[test]
    fn no_limit_is_max() {
        let max = NO_LIMIT as f64;
        assert_eq!(row(Unit::Bytes, &[max, max]), "max max ");
        assert_eq!(row(Unit::Bytes, &[max, 50.0 * 1048576.0]), "max 50.00 MiB");
        assert_eq!(row(Unit::Bytes, &[max, 0.0]), "max 0 B");
        assert_eq!(Scale::new(Unit::Bytes, &[(max, 0.0)]).print(max, 0.0).1, "");
    }

    #[test]
    fn published_values_gain_no_digits() {
        let scale = Scale::new(Unit::Seconds, &[(0.503, 0.0), (0.0205, 0.0)]);
        assert_eq!(scale.print_as_given(0.503), "503");
        assert_eq!(scale.print_as_given(0.0205), "20.5");
        assert_eq!(scale.print_as_given(0.1), "100");
        assert_eq!(Scale::new(Unit::Count, &[(1.5, 0.0)]).print_as_given(10.0), "10");
    }

    #[test]
    fn not_a_number_is_a_dash() {
        assert_eq!(row(Unit::Seconds, &[f64::NAN, 1.0]), "- 1.000 s");
        assert_eq!(row(Unit::Count, &[f64::INFINITY, 1.0]), "- 1 ");
    }
}
