//! A comparison as CSV: one line per variant and metric.

use crate::compare::{Comparison, CounterComparison};
use pagetide_lab::csv::{number, quoted, unit_name};
use pagetide_lab::stats;
use std::fmt::Write;

/// The first line.
pub const HEADER: &str = "scenario,variant,metric,unit,judgement,linux_mean,linux_stddev,linux_n,\
    pagetide_mean,pagetide_stddev,pagetide_n,ratio,verdict";

/// Renders all metrics of `comparison` after RFC 4180, with `\n` line ends. NaN, infinity and the
/// mean of a side that lacks the metric are empty.
pub fn render(comparison: &Comparison) -> String {
    let mut out = format!("{HEADER}\n");
    let scenario = quoted(&comparison.scenario);
    for variant in &comparison.variants {
        let name = quoted(&variant.name);
        for counter in variant.counters() {
            writeln!(out, "{scenario},{name},{}", fields(counter)).expect("writing to a string");
        }
    }
    out
}

fn fields(counter: &CounterComparison) -> String {
    let side =
        |of: &stats::Statistics| format!("{},{},{}", number(of.mean), number(of.stddev), of.n);
    format!(
        "{},{},{},{},{},{},{}",
        quoted(&counter.key),
        unit_name(counter.unit),
        counter.judgement.name(),
        side(&counter.linux),
        side(&counter.pagetide),
        counter.ratio.map(number).unwrap_or_default(),
        counter.verdict.name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::setup;
    use crate::VariantComparison;
    use pagetide_lab::testing::record;

    #[test]
    fn one_line_a_metric() {
        let run = |seed, faults| record("v", seed, &[("t.p.pgmajfault", faults)]);
        let linux = [run(1, 1999.0), run(2, 2001.0)];
        let ours = [record("v", 1, &[("t.p.pgmajfault", 3000.0), ("t.walltime", 0.25)])];
        let found = VariantComparison::new("low, high", &setup(&["t.p"]), false, &linux, &ours);
        assert_eq!(
            render(&Comparison::new("x", vec![found])),
            format!(
                "{HEADER}\n\
                 x,\"low, high\",t.p.pgmajfault,count,repeats,2000,1.4142135623730951,2,\
                 3000,0,1,1.5,off\n\
                 x,\"low, high\",t.walltime,seconds,shown,,,0,0.25,0,1,,not-judged\n"
            )
        );
        let columns = HEADER.split(',').count();
        let nan = [record("v", 1, &[("t.p.pswpin", f64::NAN)])];
        let found = VariantComparison::new("v", &setup(&["t.p"]), false, &nan, &nan);
        let text = render(&Comparison::new("x", vec![found]));
        assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
    }
}
