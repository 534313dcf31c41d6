//! A few figures for many comparisons: the median error of the counters, and the worst.
//!
//! Every judged counter counts once by its ratio, also one that is within noise. A variant for which
//! the kernel behaves otherwise does not count.

use crate::compare::{factor, Agreement, Comparison, CounterComparison};
use crate::judge::{least_judged, CounterGrade};
use pagetide_lab::stats;
use std::fmt;

/// A counter that is off by more than this factor is listed by name.
pub const BEYOND: f64 = 1.5;

/// Scores of all judged counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonSummary {
    /// Counters that hardly vary between runs of the kernel.
    pub repeats: GradeScore,
    /// Counters that vary more.
    pub varies: GradeScore,
    /// Counters that depend on time, where the costs were measured.
    pub timed: GradeScore,
    /// Counters that no ratio judges because Linux is below [`least_judged`], while Pagetide
    /// reaches it and has more than [`BEYOND`] times as many: (key, Linux's mean, Pagetide's mean).
    pub surplus: Vec<(String, f64, f64)>,
}

/// The judged counters of one grade. Keys start with scenario and variant if there are several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GradeScore {
    pub counters: usize,
    /// Median ratio error (0.05 is 5 %), infinite if Pagetide has 0 in half of them; `None` without
    /// counters.
    pub median_error: Option<f64>,
    /// The ratio furthest from 1, and its key.
    pub worst: Option<(f64, String)>,
    /// Counters that are off by more than [`BEYOND`], worst first.
    pub beyond: Vec<(String, f64)>,
}

/// The summary of all `comparisons` together.
pub fn summarise(comparisons: &[Comparison]) -> ComparisonSummary {
    let mut summary = ComparisonSummary::default();
    let (mut repeats, mut varies, mut timed) = (Vec::new(), Vec::new(), Vec::new());
    for comparison in comparisons {
        for variant in comparison.variants.iter().filter(|variant| variant.is_alike) {
            let mut of = String::new();
            if comparisons.len() > 1 {
                of += &format!("{} ", comparison.scenario);
            }
            if comparison.variants.len() > 1 {
                of += &format!("{} ", variant.name);
            }
            for counter in variant.counters() {
                let key = || format!("{of}{}", counter.key);
                if is_surplus(counter) {
                    summary.surplus.push((key(), counter.linux.mean, counter.pagetide.mean));
                }
                let Some(ratio) = counter.ratio else { continue };
                match counter.judgement {
                    _ if counter.verdict == Agreement::NotJudged => {}
                    CounterGrade::Repeats => repeats.push((key(), ratio)),
                    CounterGrade::Varies => varies.push((key(), ratio)),
                    CounterGrade::Timed => timed.push((key(), ratio)),
                    CounterGrade::Shown => {}
                }
            }
        }
    }
    summary.repeats = GradeScore::new(repeats);
    summary.varies = GradeScore::new(varies);
    summary.timed = GradeScore::new(timed);
    summary
}

fn is_surplus(counter: &CounterComparison) -> bool {
    let (linux, pagetide) = (counter.linux.mean, counter.pagetide.mean);
    matches!(counter.judgement, CounterGrade::Repeats | CounterGrade::Varies)
        && linux.is_finite()
        && pagetide.is_finite()
        && linux < least_judged(counter.unit)
        && pagetide >= least_judged(counter.unit)
        && pagetide > BEYOND * linux
}

impl Comparison {
    /// Summary of this comparison alone.
    pub fn summary(&self) -> ComparisonSummary {
        summarise(std::slice::from_ref(self))
    }
}

impl GradeScore {
    fn new(mut ratios: Vec<(String, f64)>) -> GradeScore {
        // Stable: of equal ones the first in the scenario is named.
        ratios.sort_by(|a, b| factor(b.1).total_cmp(&factor(a.1)));
        let errors: Vec<f64> = ratios.iter().map(|(_, ratio)| factor(*ratio) - 1.0).collect();
        GradeScore {
            counters: ratios.len(),
            median_error: (!errors.is_empty()).then(|| stats::Statistics::of(&errors).median),
            worst: ratios.first().map(|(key, ratio)| (*ratio, key.clone())),
            beyond: ratios.into_iter().take_while(|(_, ratio)| factor(*ratio) > BEYOND).collect(),
        }
    }

    fn write(&self, (one, many): (&str, &str), f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.counters, if self.counters == 1 { one } else { many })?;
        if let (Some(median), Some((ratio, key))) = (self.median_error, &self.worst) {
            let (median, worst) = (percent(median), times(*ratio, 2));
            write!(f, ": median error {median}, worst ratio {worst}x ({key})")?;
        }
        Ok(())
    }
}

/// Larger figures are printed as `>MOST`.
const MOST: f64 = 1e6;

/// A ratio error, which may be infinite.
fn percent(error: f64) -> String {
    if error * 100.0 < MOST {
        format!("{:.1} %", error * 100.0)
    } else {
        format!(">{MOST} %")
    }
}

/// A ratio with `decimals` decimals, fewer if it is large.
pub fn times(ratio: f64, decimals: usize) -> String {
    match ratio {
        ratio if ratio >= MOST => format!(">{MOST}"),
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio > -MOST => format!("{ratio:.decimals$}"),
        _ => "-".to_owned(),
    }
}

/// One line.
impl fmt::Display for ComparisonSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.repeats.write(("stable counter", "stable counters"), f)?;
        f.write_str(" \u{b7} ")?;
        self.varies.write(("variable counter", "variable counters"), f)?;
        if self.timed.counters > 0 {
            f.write_str(" \u{b7} ")?;
            self.timed.write(("timing counter", "timing counters"), f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::compared;

    fn score(ratios: &[f64]) -> GradeScore {
        GradeScore::new(ratios.iter().enumerate().map(|(i, r)| (format!("k{i}"), *r)).collect())
    }

    #[test]
    fn the_median_is_of_errors_not_of_ratios() {
        assert_eq!(score(&[]).median_error, None);
        assert_eq!(score(&[1.5]).median_error, Some(0.5));
        assert_eq!(score(&[0.5, 1.0, 1.25]).median_error, Some(0.25)); // 100 %, 0, 25 %
        assert_eq!(score(&[0.5, 1.0, 1.25, 1.75]).median_error, Some(0.5)); // and 75 %
        assert_eq!(score(&[0.0, 0.0, 1.0]).median_error, Some(f64::INFINITY));
    }

    #[test]
    fn the_median_has_as_many_on_either_side() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / f64::from(1 << 23) + 0.001
        };
        for n in 1..60 {
            let ratios: Vec<f64> = (0..n).map(|_| draw()).collect();
            let score = score(&ratios);
            let median = score.median_error.unwrap();
            let errors = || ratios.iter().map(|ratio| factor(*ratio) - 1.0);
            let (below, above) = (
                errors().filter(|e| *e < median).count(),
                errors().filter(|e| *e > median).count(),
            );
            assert!(below <= n / 2 && above <= n / 2, "{n}: {below} below, {above} above");
            assert_eq!(score.counters, n);
            assert_eq!(factor(score.worst.unwrap().0) - 1.0, errors().fold(0.0, f64::max));
            assert_eq!(score.beyond.len(), errors().filter(|e| *e > 0.5).count());
        }
    }

    #[test]
    fn beyond_is_worst_first_and_either_way() {
        let score = score(&[1.5, 1.6, 0.6, 1.0 / 1.5, 0.0]);
        let keys: Vec<&str> = score.beyond.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["k4", "k2", "k1"]);
        assert_eq!(score.worst, Some((0.0, "k4".to_owned())));
    }

    #[test]
    fn several_comparisons_are_one_summary() {
        let one = |name: &str, ours| {
            let mut found = compared(&[
                ("t.p.pgmajfault", 2000.0, ours),
                ("t.p.pgactivate", 4000.0, 4000.0),
                ("t.p.pgscan_kswapd", 9000.0, 1.0), // never judged
                ("t.p.pswpin", 999.0, 1.0),         // too few
            ]);
            found.name = name.to_owned();
            found
        };
        let twice = Comparison::new("x", vec![one("low", 2200.0), one("high", 8000.0)]);
        let once = Comparison::new("y", vec![one("default", 1000.0)]);
        let all = summarise(&[twice.clone(), once.clone()]);
        assert_eq!((all.repeats.counters, all.varies.counters), (3, 3));
        assert_eq!(all.repeats.worst, Some((4.0, "x high t.p.pgmajfault".to_owned())));
        assert_eq!(all.repeats.median_error, Some(1.0));
        let beyond: Vec<&str> = all.repeats.beyond.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(beyond, ["x high t.p.pgmajfault", "y t.p.pgmajfault"]);
        assert_eq!(all.varies.median_error, Some(0.0));
        assert_eq!(all.surplus, [], "these have a ratio");
        assert_eq!(once.summary().repeats.worst, Some((0.5, "t.p.pgmajfault".to_owned())));
        assert_eq!(twice.summary().repeats.beyond[0].0, "high t.p.pgmajfault");
        assert_eq!(
            once.summary().to_string(),
            "1 stable counter: median error 100.0 %, worst ratio 0.50x (t.p.pgmajfault) \u{b7} \
             1 variable counter: median error 0.0 %, worst ratio 1.00x (t.p.pgactivate)"
        );
        assert_eq!(summarise(&[]).to_string(), "0 stable counters \u{b7} 0 variable counters");
    }

    #[test]
    fn a_variant_for_which_the_kernel_behaves_otherwise_does_not_count() {
        let mut other =
            compared(&[("t.p.pgmajfault", 2000.0, 9000.0), ("t.p.pswpin", 0.0, 5000.0)]);
        other.is_alike = false;
        let linux = compared(&[("t.p.pgmajfault", 2000.0, 2200.0)]);
        let summary = Comparison::new("x", vec![linux, other]).summary();
        assert_eq!((summary.repeats.counters, summary.varies.counters), (1, 0));
        assert_eq!(summary.repeats.worst.as_ref().map(|(ratio, _)| *ratio), Some(1.1));
        assert_eq!((summary.repeats.beyond.len(), summary.surplus.len()), (0, 0));
    }

    #[test]
    fn counters_that_only_pagetide_has_are_listed() {
        let found = compared(&[
            ("t.p.pswpout", 0.0, 50_000.0),
            ("t.p.pswpin", 999.0, 1001.0),
            ("t.p.pgfault", 0.0, 50_000.0),
        ]);
        let summary = Comparison::new("x", vec![found]).summary();
        assert_eq!(summary.surplus, [("t.p.pswpout".to_owned(), 0.0, 50_000.0)]);
        assert_eq!((summary.repeats.counters, summary.varies.counters), (0, 0));
    }

    #[test]
    fn no_ratio_prints_as_a_float_would() {
        let found = compared(&[("t.p.pgmajfault", 5000.0, 0.0), ("t.p.pswpin", 1000.0, 1e300)]);
        assert_eq!(
            Comparison::new("x", vec![found]).summary().to_string(),
            "1 stable counter: median error >1000000 %, worst ratio 0.00x (t.p.pgmajfault) \u{b7} \
             1 variable counter: median error >1000000 %, worst ratio >1000000x (t.p.pswpin)"
        );
        let printed = [0.9996, 99.99, 123.4, 1e300, f64::INFINITY, f64::NAN, -1e300, 0.0];
        let expected = ["1.000", "99.990", "123", ">1000000", ">1000000", "-", "-", "0.000"];
        assert_eq!(printed.map(|ratio| times(ratio, 3)), expected);
    }
}
