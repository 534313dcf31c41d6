//! Mean, spread and difference of a handful of samples.
//!
//! Samples are processed in order, so equal samples give equal bits. A value that cannot be
//! computed (no sample, or a NaN) is NaN and printed as `-`.

/// Statistics of the samples of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Number of samples.
    pub n: usize,
    /// Arithmetic mean; NaN without samples.
    pub mean: f64,
    /// Sample standard deviation (divisor n - 1); 0 with one sample, NaN without.
    pub stddev: f64,
    /// Middle sample, or the mean of the two in the middle.
    pub median: f64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
}

impl Statistics {
    /// Summarises `samples`.
    ///
    /// ```
    /// let s = pagetide_lab::stats::Statistics::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
    /// assert_eq!((s.mean, s.median, s.min, s.max), (5.0, 4.5, 2.0, 9.0));
    /// assert!((s.stddev - 2.138_089_935).abs() < 1e-9);
    /// ```
    pub fn of(samples: &[f64]) -> Statistics {
        let n = samples.len();
        if n == 0 || samples.iter().any(|value| value.is_nan()) {
            let nan = f64::NAN;
            return Statistics { n, mean: nan, stddev: nan, median: nan, min: nan, max: nan };
        }
        let mean = samples.iter().sum::<f64>() / n as f64;
        let stddev = if n == 1 {
            0.0
        } else {
            // Two passes: subtracting large squares from each other would lose the digits.
            let squares: f64 = samples.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1) as f64).sqrt()
        };
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = if n % 2 == 1 {
            sorted[n / 2]
        } else {
            f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])
        };
        Statistics { n, mean, stddev, median, min: sorted[0], max: sorted[n - 1] }
    }
}

/// How a value differs from the baseline's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeanChange {
    /// In per cent of the baseline.
    Percent(f64),
    /// The baseline is 0 and the value is not.
    New,
    /// One of the two is missing or not a number.
    Unknown,
}

/// The change from `baseline` to `value`.
///
/// ```
/// use pagetide_lab::stats::{change, MeanChange};
/// assert_eq!(change(500.0, 365.0), MeanChange::Percent(-27.0));
/// assert_eq!(change(0.0, 3.0), MeanChange::New);
/// assert_eq!(change(0.0, 0.0), MeanChange::Percent(0.0));
/// assert_eq!(change(f64::NAN, 3.0), MeanChange::Unknown);
/// ```
pub fn change(baseline: f64, value: f64) -> MeanChange {
    if baseline.is_nan() || value.is_nan() {
        MeanChange::Unknown
    } else if baseline == value {
        MeanChange::Percent(0.0)
    } else if baseline == 0.0 {
        MeanChange::New
    } else {
        let percent = (value - baseline) / baseline.abs() * 100.0;
        if percent.is_finite() {
            MeanChange::Percent(percent)
        } else {
            MeanChange::Unknown
        }
    }
}

/// Two means differ if p is below this level.
pub const SIGNIFICANCE: f64 = 0.05;

/// Whether Welch's t-test says that the means differ at [`SIGNIFICANCE`].
pub fn differs(a: &Statistics, b: &Statistics) -> bool {
    welch(a, b).is_some_and(|test| test.p < SIGNIFICANCE)
}

/// Result of Welch's t-test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The statistic, positive when the first mean is larger.
    pub t: f64,
    /// Degrees of freedom after Welch and Satterthwaite.
    pub df: f64,
    /// Two-sided probability of a difference at least this large between equal means.
    pub p: f64,
}

/// Welch's unequal-variances t-test; `None` with fewer than two samples on a side or a NaN.
///
/// Without spread on both sides, which is common in a deterministic simulator, equal means give
/// p = 1 and different ones p = 0.
pub fn welch(a: &Statistics, b: &Statistics) -> Option<Welch> {
    if a.n < 2 || b.n < 2 || !a.mean.is_finite() || !b.mean.is_finite() {
        return None;
    }
    let (na, nb) = (a.n as f64, b.n as f64);
    let (va, vb) = (a.stddev.powi(2) / na, b.stddev.powi(2) / nb);
    let difference = a.mean - b.mean;
    if va + vb == 0.0 {
        let t = if difference == 0.0 { 0.0 } else { f64::INFINITY.copysign(difference) };
        return Some(Welch { t, df: na + nb - 2.0, p: if difference == 0.0 { 1.0 } else { 0.0 } });
    }
    let t = difference / (va + vb).sqrt();
    let df = (va + vb).powi(2) / (va.powi(2) / (na - 1.0) + vb.powi(2) / (nb - 1.0));
    if !t.is_finite() || !df.is_finite() {
        return None;
    }
    Some(Welch { t, df, p: two_sided(t, df) })
}

/// Probability that a variable with Student's t distribution is at least this far from zero.
pub fn two_sided(t: f64, df: f64) -> f64 {
    regularised_incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
}

/// Confidence interval of the second mean minus the first, after Welch; `None` as for [`welch`].
///
/// ```
/// use pagetide_lab::stats::{difference, Statistics};
/// let (a, b) = (Statistics::of(&[1.0, 2.0]), Statistics::of(&[5.0, 6.0]));
/// let (low, high) = difference(&a, &b, 0.95).unwrap();
/// assert!((low - 0.957).abs() < 1e-3 && (high - 7.043).abs() < 1e-3);
/// ```
pub fn difference(a: &Statistics, b: &Statistics, confidence: f64) -> Option<(f64, f64)> {
    let test = welch(a, b)?;
    let error = (a.stddev.powi(2) / a.n as f64 + b.stddev.powi(2) / b.n as f64).sqrt();
    let reach = error * two_sided_quantile(1.0 - confidence, test.df);
    let middle = b.mean - a.mean;
    Some((middle - reach, middle + reach))
}

/// The quantile of Student's t distribution for this two-sided probability.
fn two_sided_quantile(p: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, df) > p && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, df) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Probabilities of several tests at once, each raised so far that the chance of a single false
/// alarm among all of them stays what it was for one (Holm, 1979).
///
/// ```
/// let p = pagetide_lab::stats::holm(&[0.01, 0.04, 0.03]);
/// assert!((p[0] - 0.03).abs() < 1e-12 && (p[1] - 0.06).abs() < 1e-12 && (p[2] - 0.06).abs() < 1e-12);
/// ```
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut most: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        most = most.max(p[at] * (p.len() - rank) as f64).min(1.0);
        corrected[at] = most;
    }
    corrected
}

/// The one-sided lower confidence bound of a share, given `held` of `of` samples (Clopper and
/// Pearson, 1934).
///
/// ```
/// let bound = pagetide_lab::stats::lower_bound(20, 20, 0.95);
/// assert!((bound - 0.05f64.powf(1.0 / 20.0)).abs() < 1e-9); // 86 %
/// ```
pub fn lower_bound(held: u32, of: u32, confidence: f64) -> f64 {
    if held == 0 || of == 0 {
        return 0.0;
    }
    // The share for which `held` or more has probability 1 - confidence; that grows with the share.
    let (a, b) = (f64::from(held), f64::from(of - held.min(of)) + 1.0);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if regularised_incomplete_beta(a, b, middle) < 1.0 - confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// I_x(a, b), by its continued fraction (modified Lentz); good to about 1e-12 here.
fn regularised_incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges quickly only left of the mean of the distribution.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const STEPS: u32 = 10_000;
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };

    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// ln of the gamma function for x > 0: Lanczos' approximation, g = 7, nine terms.
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Reflection keeps the series in the range where it is accurate.
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let mut sum = TERMS[0];
    for (i, term) in (1u32..).zip(&TERMS[1..]) {
        sum += term / (x + f64::from(i));
    }
    let t = x + G + 0.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not within {tolerance} of {b}");
    }

    #[test]
    fn summary_of_one_none_and_nan() {
        let one = Statistics::of(&[3.0]);
        assert_eq!((one.n, one.mean, one.stddev, one.median), (1, 3.0, 0.0, 3.0));
        assert!(Statistics::of(&[]).mean.is_nan());
        assert!(Statistics::of(&[1.0, f64::NAN]).stddev.is_nan());
    }

    #[test]
    fn spread_survives_a_large_offset() {
        close(
            Statistics::of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]).stddev.powi(2),
            30.0,
            1e-6,
        );
    }

    #[test]
    fn t_distribution_against_closed_forms_and_tables() {
        close(two_sided(1.0, 1.0), 0.5, 1e-12); // Cauchy
        close(two_sided(2.0, 2.0), 1.0 - 2.0 / 6.0f64.sqrt(), 1e-12);
        close(two_sided(2.228_138_852, 10.0), 0.05, 1e-9); // tables
        close(two_sided(4.604_094_871, 4.0), 0.01, 1e-9);
        close(two_sided(1.959_963_985, 1e7), 0.05, 1e-6); // the normal distribution
        close(two_sided(0.0, 5.0), 1.0, 1e-12);
    }

    #[test]
    fn intervals_on_students_sleep_data() {
        // The same manual: 95 percent confidence interval: -3.3654832 0.2054832 of the first minus
        // the second.
        let a = Statistics::of(&[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]);
        let b = Statistics::of(&[1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]);
        let (low, high) = difference(&a, &b, 0.95).unwrap();
        close(low, -0.205_483_2, 1e-6);
        close(high, 3.365_483_2, 1e-6);
        let same = Statistics::of(&[2.0, 2.0]);
        assert_eq!(difference(&same, &same, 0.95), Some((0.0, 0.0)));
        assert_eq!(difference(&same, &Statistics::of(&[1.0]), 0.95), None);
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn lower_bounds_against_tables() {
        // R: binom.test(19, 20, alternative = "greater")$conf.int and its like.
        close(lower_bound(19, 20, 0.95), 0.783_893, 1e-6);
        close(lower_bound(10, 20, 0.95), 0.302_0, 1e-4);
        close(lower_bound(1, 10, 0.95), 0.005_116, 1e-6);
        close(lower_bound(20, 20, 0.95), 0.860_892, 1e-6);
        assert_eq!(lower_bound(0, 20, 0.95), 0.0);
        assert_eq!(lower_bound(0, 0, 0.95), 0.0);
    }

    #[test]
    fn welch_on_students_sleep_data() {
        // Student (1908), as in the manual of R's t.test: t = -1.8608, df = 17.776, p = 0.07939.
        let a = Statistics::of(&[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]);
        let b = Statistics::of(&[1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]);
        let test = welch(&a, &b).unwrap();
        close(test.t, -1.8608, 5e-5);
        close(test.df, 17.776, 5e-4);
        close(test.p, 0.07939, 5e-6);
        assert!(!differs(&a, &b));
    }

    #[test]
    fn welch_without_spread_or_samples() {
        let same = Statistics::of(&[5.0, 5.0, 5.0]);
        let other = Statistics::of(&[4.0, 4.0, 4.0]);
        assert_eq!(welch(&same, &same).unwrap().p, 1.0);
        assert!(differs(&same, &other));
        assert_eq!(welch(&same, &Statistics::of(&[4.0])), None);
        assert_eq!(welch(&same, &Statistics::of(&[f64::NAN, 1.0])), None);
        assert!(!differs(&same, &Statistics::of(&[f64::INFINITY, 1.0])));
    }

    #[test]
    fn change_keeps_the_sign_of_a_negative_baseline() {
        assert_eq!(change(-10.0, -5.0), MeanChange::Percent(50.0));
        assert_eq!(change(1.0, f64::INFINITY), MeanChange::Unknown);
    }
}
