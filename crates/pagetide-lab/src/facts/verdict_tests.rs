use super::verdict::{verdicts, Difference, VariantVerdict};
use crate::report::{FailedRun, Report};
use crate::testing::{failure, report_of, series_mut, with_setup, TestMetrics};
use pagetide_scenario::build::Builder;
use pagetide_scenario::record::{Incomplete, Unit};

const SPREAD: [f64; 5] = [-0.01, 0.005, 0.0, 0.01, -0.005];

/// A report of five seeds whose values vary by a per cent, with the tasks `web` and `batch` and a
/// group.
fn five(variants: &[(&str, TestMetrics<'_>)]) -> Report {
    let seeds: Vec<Vec<Vec<(&str, f64)>>> = variants
        .iter()
        .map(|(_, metrics)| {
            let of = |by: &f64| metrics.iter().map(|(key, v)| (*key, v * (1.0 + by))).collect();
            SPREAD.iter().map(of).collect()
        })
        .collect();
    let runs: Vec<(&str, Vec<TestMetrics<'_>>)> = variants
        .iter()
        .zip(&seeds)
        .map(|((name, _), seeds)| (*name, seeds.iter().map(Vec::as_slice).collect()))
        .collect();
    with_tasks(report_of(&runs))
}

/// A report with a walltime of `web` for each seed.
fn walltimes(variants: &[(&str, &[f64])]) -> Report {
    let seeds = |values: &[f64]| values.iter().map(|it| [("web.walltime", *it)]).collect();
    let all: Vec<Vec<[(&str, f64); 1]>> = variants.iter().map(|(_, of)| seeds(of)).collect();
    let runs = variants.iter().zip(&all);
    let runs = runs.map(|((name, _), of)| (*name, of.iter().map(|it| it.as_slice()).collect()));
    with_tasks(report_of(&runs.collect::<Vec<_>>()))
}

fn with_tasks(report: Report) -> Report {
    let task = |name: &str| {
        Builder::new().set("name", name).set("workload", "sleep").set("duration", "1ms")
    };
    let machine = Builder::new().set("machine.memory", "2GiB");
    let machine = machine.push("group", Builder::new().set("name", "g"));
    let noise = task("noise").set("background", true);
    let machine = machine.push("task", task("web")).push("task", task("batch")).push("task", noise);
    with_setup(report, &machine.setup().unwrap())
}

fn keys(differences: &[Difference]) -> Vec<&str> {
    differences.iter().map(|it| it.metric.as_str()).collect()
}

const A: TestMetrics<'static> = &[
    ("web.walltime", 17.18),
    ("batch.walltime", 9.2),
    ("noise.walltime", 17.18),
    ("pgmajfault", 131_279.0),
    ("pgscan_kswapd", 975_269.0),
    ("nr_free_pages", 1000.0),
];

#[test]
fn gains_come_by_importance_with_figures_of_both_sides() {
    let b: TestMetrics<'_> = &[
        ("web.walltime", 1.035),
        ("batch.walltime", 2.186),
        ("noise.walltime", 1.035),
        ("pgmajfault", 8895.0),
        ("pgscan_kswapd", 152_487.0),
        ("nr_free_pages", 10.0),
    ];
    let [verdict]: [VariantVerdict; 1] =
        verdicts(&five(&[("a", A), ("memory.low", b)])).try_into().unwrap();
    assert_eq!(keys(&verdict.gains), ["web.walltime", "batch.walltime", "pgmajfault"]);
    assert_eq!(keys(&verdict.work), ["pgscan_kswapd"]);
    assert!(verdict.costs.is_empty() && verdict.ended.is_empty() && verdict.unsure.is_none());
    assert_eq!(verdict.comparisons, 4, "neither levels nor times of background tasks");
    assert_eq!((verdict.gains[0].comparisons, verdict.work[0].comparisons), (3, 1));
    assert_eq!(
        verdict.sentence,
        "memory.low: web.walltime 1.035 s instead of 17.18 s (-94 %), batch.walltime 2.186 s instead of 9.200 s \
         (-76 %), pgmajfault 8895 instead of 131279 (-93 %). Worse: none of the compared metrics. Less work: \
         pgscan_kswapd 152487 instead of 975269 (-84 %). p < 0.001, corrected for 1 to 3 comparisons."
    );
    let [low, high] = verdict.gains[0].interval.unwrap().map(|it| it.0);
    let by = 1.035 - 17.18;
    assert!(low < by && by < high && high < 0.0, "{low} {high}");
}

#[test]
fn what_gets_worse_is_a_cost_and_work_comes_last() {
    let b: TestMetrics<'_> = &[
        ("web.walltime", 17.0), // 1 %, within noise
        ("batch.walltime", 11.0),
        ("pgmajfault", 131_279.0),
        ("pgscan_kswapd", 2e6),
        ("batch.throughput", 7.0),
    ];
    let [verdict]: [VariantVerdict; 1] = verdicts(&five(&[("a", A), ("b", b)])).try_into().unwrap();
    assert!(verdict.gains.is_empty());
    assert_eq!(keys(&verdict.costs), ["batch.walltime", "pgscan_kswapd"]);
    assert!(verdict
        .sentence
        .starts_with("b: no outcome is significantly better than in a. Worse: batch.walltime "));
}

#[test]
fn rows_that_the_scenario_names_come_first_and_others_are_looked_at_too() {
    let a: TestMetrics<'_> =
        &[("pgmajfault", 100.0), ("web.walltime", 4.0), ("batch.walltime", 4.0)];
    let b: TestMetrics<'_> =
        &[("pgmajfault", 50.0), ("web.walltime", 2.0), ("batch.walltime", 8.0)];
    let mut report = five(&[("a", a), ("b", b)]);
    report.plan.scenario.rows = vec!["pgmajfault".to_owned()];
    let verdict = &verdicts(&report)[0];
    assert_eq!(keys(&verdict.gains), ["pgmajfault", "web.walltime"]);
    assert_eq!(keys(&verdict.costs), ["batch.walltime"]);
}

#[test]
fn of_a_family_the_metric_that_differs_most_is_reported() {
    let a: TestMetrics<'_> = &[("web.alloc_latency_p50", 1.0), ("web.alloc_latency_p99", 9.0)];
    let b: TestMetrics<'_> = &[("web.alloc_latency_p50", 0.9), ("web.alloc_latency_p99", 2.0)];
    let mut report = five(&[("a", a), ("b", b)]);
    report.plan.scenario.rows = vec!["web.alloc_latency_*".to_owned()];
    assert_eq!(keys(&verdicts(&report)[0].gains), ["web.alloc_latency_p99"]);
}

#[test]
fn equal_results_differ_nowhere_and_noise_is_not_sure() {
    let same = verdicts(&five(&[("a", A), ("b", A)]));
    assert_eq!(same[0].sentence, "b: no outcome differs significantly from a (by 1 % or more).");
    let noisy = walltimes(&[("a", &[10.0, 11.0, 12.0]), ("b", &[10.5, 9.0, 11.5])]);
    let verdict = &verdicts(&noisy)[0];
    assert!(verdict.gains.is_empty());
    assert_eq!(verdict.unsure.as_ref().unwrap().metric, "web.walltime");
    let closest = "Closest: web.walltime 10.33 s instead of 11.00 s (-6.1 %, p = 0.";
    assert!(verdict.sentence.contains(closest), "{}", verdict.sentence);
}

#[test]
fn probabilities_are_corrected_over_all_variants() {
    // Uncorrected p is 0.02; corrected for three comparisons it is not significant.
    let more = |name| (name, &[11.5, 12.0, 12.5][..]);
    let all = [("a", &[10.0, 10.5, 11.0][..]), more("b"), more("c"), more("d")];
    assert_eq!(verdicts(&walltimes(&all[..2]))[0].costs.len(), 1);
    let corrected = verdicts(&walltimes(&all));
    assert!(corrected.iter().all(|it| it.costs.is_empty() && it.comparisons == 3), "{corrected:?}");
}

#[test]
fn with_one_run_significance_is_unknown() {
    let b: TestMetrics<'_> =
        &[("web.walltime", 1.0), ("pgmajfault", 0.0), ("batch.walltime", 92.0)];
    let report = with_tasks(report_of(&[("a", vec![A]), ("b", vec![b])]));
    let verdict = &verdicts(&report)[0];
    assert_eq!(
        (verdict.comparisons, verdict.gains[0].p, verdict.gains[0].interval),
        (0, None, None)
    );
    assert_eq!(
        verdict.sentence,
        "b: web.walltime 1.000 s instead of 17.18 s (-94 %), pgmajfault 0 instead of 131279. Worse: batch.walltime \
         92.00 s instead of 9.200 s (10 times as much). One run per variant: significance unknown."
    );
}

#[test]
fn incomplete_variants_are_not_compared() {
    let mut report = five(&[("a", A), ("b", A), ("c", A)]);
    let end = |report: &mut Report, column: usize, ended, runs| {
        let series = series_mut(report, column, "batch.walltime");
        series.samples.iter_mut().take(runs).for_each(|sample| sample.ended = Some(ended));
    };
    end(&mut report, 1, Incomplete::OomKilled, 3);
    report.failures.push(FailedRun { variant: "c".to_owned(), seed: 1, failure: failure("no") });
    let sentences = |report: &Report| -> Vec<String> {
        verdicts(report).into_iter().map(|verdict| verdict.sentence).collect()
    };
    let killed = "b: the OOM killer killed batch in 3 of 5 runs: not compared.";
    let failed = "c: 1 of 5 runs failed; no outcome differs significantly from a (by 1 % or more).";
    assert_eq!(sentences(&report), [killed, failed]);
    end(&mut report, 0, Incomplete::Cut, 1);
    let cut = "a: the time limit cut 1 of 5 runs: not compared.";
    let failed = "c: 1 of 5 runs failed; nothing to compare with: a has incomplete runs.";
    assert_eq!(sentences(&report), [cut, killed, failed]);
}

#[test]
fn nothing_to_compare_gives_no_verdict() {
    assert!(verdicts(&five(&[("a", A)])).is_empty());
    let mut report = five(&[("a", A), ("b", A)]);
    report.columns[1].series.clear();
    report.columns[1].finished = 0;
    assert_eq!(verdicts(&report)[0].sentence, "b: no run was made.");
    report.columns[0].finished = 0;
    assert!(verdicts(&report).is_empty());
}

#[test]
fn what_adds_up_over_time_is_compared_per_second() {
    let a: TestMetrics<'_> = &[
        ("noise.bytes", 100.0),
        ("noise.stall_refault", 1.0),
        ("noise.late", 50.0),
        ("noise.walltime", 10.0),
        ("web.pgmajfault", 10.0),
        ("web.walltime", 5.0),
    ];
    // Twice the time, less than twice the totals: both rates are lower.
    let b: TestMetrics<'_> = &[
        ("noise.bytes", 180.0),
        ("noise.stall_refault", 1.5),
        ("noise.late", 100.0),
        ("noise.walltime", 20.0),
        ("web.pgmajfault", 20.0),
        ("web.walltime", 5.0),
    ];
    let mut report = five(&[("a", a), ("b", b)]);
    for column in 0..2 {
        series_mut(&mut report, column, "noise.bytes").unit = Unit::Bytes;
        series_mut(&mut report, column, "noise.stall_refault").unit = Unit::Seconds;
    }
    report.plan.scenario.rows =
        ["noise.bytes", "noise.stall_refault", "noise.late", "web.pgmajfault"]
            .map(str::to_owned)
            .to_vec();
    let verdict = &verdicts(&report)[0];
    assert_eq!(
        verdict.sentence,
        "b: noise.stall_refault 7.500 % instead of 10.00 % of its time (-25 %). Worse: noise.bytes 9.000 B/s \
         instead of 10.00 B/s (-10 %), web.pgmajfault 20.0 instead of 10.0 (+100 %). p < 0.001, corrected for 3 \
         comparisons."
    );
    // Without the run time there is no rate.
    report.columns[1].series.remove(&report.keys["noise.walltime"]);
    assert_eq!(keys(&verdicts(&report)[0].costs), ["web.pgmajfault"]);
}

#[test]
fn rows_of_the_table_come_before_metrics_without_a_row() {
    let a: TestMetrics<'_> = &[
        ("pswpout", 10.0),
        ("web.latency_p99", 3.0),
        ("web.latency_p999", 4.0),
        ("web.late", 10.0),
        ("web.dropped", 10.0),
        ("batch.alloc_latency_p99", 3e-6),
        ("batch.walltime", 5.0),
    ];
    let b: TestMetrics<'_> = &[
        ("pswpout", 148.0),
        ("web.latency_p99", 2.0),
        ("web.latency_p999", 1.0),
        ("web.late", 20.0),
        ("web.dropped", 20.0),
        ("batch.alloc_latency_p99", 9e-6),
        ("batch.walltime", 5.0),
    ];
    let mut report = five(&[("a", a), ("b", b)]);
    report.plan.scenario.rows =
        ["web.latency_p99", "pswpout", "batch.walltime"].map(str::to_owned).to_vec();
    let verdict = &verdicts(&report)[0];
    assert_eq!(keys(&verdict.gains), ["web.latency_p99"], "it is a row, p999 is none");
    assert_eq!(keys(&verdict.costs), ["pswpout", "web.late", "web.dropped"]);
    // Microseconds of allocation latency count only if the walltime changed too, or as a row.
    report.plan.scenario.rows = vec!["batch.alloc_latency_p99".to_owned()];
    let told =
        |report: &Report| keys(&verdicts(report)[0].costs).contains(&"batch.alloc_latency_p99");
    assert!(told(&report));
    report.plan.scenario.rows = vec!["batch.walltime".to_owned()];
    for key in ["web.late", "web.dropped"] {
        report.columns[1].series.remove(&report.keys[key]);
    }
    assert!(!told(&report));
    let walltime = &mut series_mut(&mut report, 1, "batch.walltime").summary;
    walltime.mean *= 2.0;
    assert!(told(&report));
}

#[test]
fn a_variant_with_one_run_is_not_sure_whatever_others_have() {
    let runs = |walltime: f64| SPREAD.map(|by| walltime * (1.0 + by));
    let (first, third) = (runs(10.0), runs(2.0));
    let verdicts = verdicts(&walltimes(&[("a", &first), ("b", &runs(5.0)[..1]), ("c", &third)]));
    assert!(
        verdicts[0].sentence.ends_with("One run per variant: significance unknown."),
        "{verdicts:?}"
    );
    assert!(!verdicts[0].sentence.contains("p <"), "{}", verdicts[0].sentence);
    assert!(verdicts[1].sentence.contains("p < 0.001"), "{}", verdicts[1].sentence);
}
