//! The report as CSV: one line per variant, metric and seed.

use crate::json::as_integer;
use crate::report::Report;
use crate::report_format::ReportFormat;
use pagetide_scenario::record::{Incomplete, Unit};
use std::borrow::Cow;
use std::fmt::Write;

pub const FORMAT: ReportFormat = ReportFormat {
    name: "csv",
    about: "One line for each variant, metric and seed, for spreadsheets",
    render: |wanted, _| render(wanted),
    join: |texts| {
        let head = format!("{HEADER}\n");
        head.clone() + &texts.concat().replace(&head, "")
    },
};

/// The first line.
pub const HEADER: &str = "scenario,version,variant,metric,unit,seed,value,ended";

/// Renders `report` after RFC 4180, with `\n` line ends. NaN and infinity are empty. `ended` says
/// what ended the work early, and is empty for a measurement.
pub fn render(report: &Report) -> String {
    let mut out = format!("{HEADER}\n");
    let scenario = quoted(&report.plan.scenario.name);
    let version = quoted(&report.version);
    for column in &report.columns {
        let variant = quoted(&column.name);
        for (key, series) in report.by_text(column) {
            let key = quoted(key);
            let unit = unit_name(series.unit);
            for sample in &series.samples {
                let (seed, value) = (sample.seed, number(sample.value));
                let ended = sample.ended.map_or("", Incomplete::word);
                let front = format!("{scenario},{version},{variant},{key},{unit}");
                writeln!(out, "{front},{seed},{value},{ended}").expect("writing to a string");
            }
        }
    }
    out
}

/// The name that records and JSON use.
pub fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Pages => "pages",
        Unit::Bytes => "bytes",
        Unit::Kilobytes => "kilobytes",
        Unit::Seconds => "seconds",
        Unit::BytesPerSecond => "bytes-per-second",
        Unit::PerSecond => "per-second",
        Unit::Percent => "percent",
        Unit::Ratio => "ratio",
    }
}

/// A value; empty for NaN and infinity.
pub fn number(value: f64) -> String {
    match as_integer(value) {
        Some(integer) => integer.to_string(),
        None if value.is_finite() => value.to_string(),
        None => String::new(),
    }
}

/// A field, in quotes if needed.
pub fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report_of, series_mut};

    #[test]
    fn one_line_per_sample() {
        let mut report = report_of(&[
            ("a", vec![&[("pgfault", 3.0), ("dd.walltime", 0.25)], &[("pgfault", 4.0)]]),
            ("low, high \"x\"", vec![&[("pgfault", f64::NAN)]]),
        ]);
        let series = series_mut(&mut report, 0, "dd.walltime");
        series.samples[0].ended = Some(Incomplete::Cut);
        let v = crate::VERSION;
        assert_eq!(
            render(&report),
            format!(
                "{HEADER}\n\
                 fake,{v},a,dd.walltime,seconds,1,0.25,cut\n\
                 fake,{v},a,pgfault,count,1,3,\n\
                 fake,{v},a,pgfault,count,2,4,\n\
                 fake,{v},\"low, high \"\"x\"\"\",pgfault,count,1,,\n"
            )
        );
    }

    #[test]
    fn unit_names_are_those_of_records() {
        use Unit::*;
        let rates = [BytesPerSecond, PerSecond];
        for unit in
            [Count, Pages, Bytes, Kilobytes, Seconds, Percent, Ratio].into_iter().chain(rates)
        {
            let name = serde_json::to_string(&unit).unwrap();
            assert_eq!(name, format!("\"{}\"", unit_name(unit)));
        }
    }
}
