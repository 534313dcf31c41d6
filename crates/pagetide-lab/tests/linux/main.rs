//! Held against Linux: every shipped case with what a real kernel counted on it
//! (experiments/verify, recorded in experiments/verify/linux-6.1), without QEMU.
//!
//! `bounds.rs` has a line for each case with what it reached: how many counters are judged, the median of
//! their errors, the worst. A case fails if it is worse than its line, and also if it is much better: then
//! the line is to be renewed, so that nothing hides in the room. A counter that is off by more than half is
//! an exception, named by variant, phase and counter, with a bound of its own and the reason; one that is no
//! longer needed fails, too.
//!
//! `cargo test -p pagetide-lab --test linux -- --nocapture` prints the lines as they are now.

mod bounds;

use bounds::{Case, Grade, Off, CASES, OVERLAP};
use pagetide_lab::plan::Plan;
use pagetide_lab::stats;
use pagetide_lab::verify::ask::{verify, KernelSide, ANOTHER_TEXT};
use pagetide_lab::verify::compare::{factor, Counter};
use pagetide_lab::verify::judge::Judgement;
use pagetide_lab::verify::summary::BEYOND;
use pagetide_lab::verify::{summarise, Comparison, Verdict};
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::{load, Overrides};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Huge pages that a phase got may differ by so many.
const HUGE_PAGES: f64 = 2.0;

/// A bound is given up if it is larger than what is reached by more than this part and this much: of errors,
/// where 0.01 is 1 per cent.
const ROOM: (f64, f64) = (0.5, 0.03);

fn experiments() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments/verify")
}

/// Both sides of a case, all its variants.
fn compare(case: &str) -> Comparison {
    let file = experiments().join(format!("{case}.toml"));
    let overrides = Overrides { repeats: Some(3), ..Overrides::default() };
    let scenario = load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let variants = scenario.variants.len();
    let plan = Plan::new(scenario).unwrap();
    let references = experiments().join("linux-6.1");
    let cancel = Arc::new(AtomicBool::new(false));
    let jobs = NonZeroUsize::new(2).unwrap();
    let verified = verify(
        &plan,
        &KernelSide::Recorded { dir: &references, file: &file },
        &Simulator::default(),
        jobs,
        &cancel,
        &|_| {},
    );
    assert!(verified.errors.is_empty(), "{case}: {:?}", verified.errors);
    let stale = verified.sides.notes.iter().any(|note| note.contains(ANOTHER_TEXT));
    assert!(!stale, "{case}: the scenario has changed since its references were recorded");
    let comparison = verified.comparison.unwrap();
    assert_eq!(comparison.variants.len(), variants, "{case}: a variant is missing");
    println!("{case}: {}", comparison.summary());
    comparison
}

/// A counter of a comparison by variant, phase and name.
type Place<'a> = (&'a str, &'a str, &'a str);

/// Every judged counter of a case.
fn judged(comparison: &Comparison) -> BTreeMap<Place<'_>, &Counter> {
    let mut all = BTreeMap::new();
    for variant in &comparison.variants {
        for phase in &variant.phases {
            let judged = phase.counters.iter().filter(|it| it.verdict != Verdict::NotJudged);
            all.extend(judged.map(|counter| {
                ((variant.name.as_str(), phase.key.as_str(), counter.name.as_str()), counter)
            }));
        }
    }
    all
}

/// How many times the larger mean is the smaller.
fn times(counter: &Counter) -> f64 {
    factor(counter.ratio.expect("a judged counter has a ratio"))
}

/// What a bound on an error, or on a factor less one, has become: enough, too narrow, or too wide.
fn is_outdated(bound: f64, reached: f64) -> bool {
    // Both are infinite where Pagetide has nothing.
    reached > bound || (bound > reached * (1.0 + ROOM.0) + ROOM.1 && bound != reached)
}

/// The counters of a grade: how many, the median of their errors, and the worst factor of those that neither
/// the kernel's scatter explains nor an exception names.
fn reached(
    counters: &BTreeMap<Place<'_>, &Counter>,
    grade: Judgement,
    is_exception: impl Fn(&Place<'_>) -> bool,
) -> Grade {
    let of_grade = counters.iter().filter(|(_, counter)| counter.judgement == grade);
    let mut errors: Vec<f64> = of_grade.clone().map(|(_, counter)| times(counter) - 1.0).collect();
    errors.sort_by(f64::total_cmp);
    let middle = errors.len() / 2;
    let median = match errors.len() {
        0 => 0.0,
        nr if nr % 2 == 1 => errors[middle],
        _ => f64::midpoint(errors[middle - 1], errors[middle]),
    };
    let of_itself = of_grade
        .filter(|(place, counter)| counter.verdict != Verdict::WithinNoise && !is_exception(place));
    let worst = of_itself.map(|(_, counter)| times(counter)).fold(1.0, f64::max);
    Grade { counters: errors.len(), median_percent: median * 100.0, worst }
}

/// A line of the table, rounded up.
fn line(name: &str, repeats: Grade, varies: Grade) -> String {
    let grade = |it: Grade| {
        let up = |value: f64, by: f64| (value * by - 1e-9).ceil() / by + 0.0;
        format!(
            "grade({}, {:.1}, {:.2})",
            it.counters,
            up(it.median_percent, 10.0),
            up(it.worst, 100.0)
        )
    };
    format!("case(\"{name}\", {}, {}, ..)", grade(repeats), grade(varies))
}

/// What is wrong with a case; empty if nothing is.
fn complaints(case: &Case, comparison: &Comparison) -> Vec<String> {
    let counters = judged(comparison);
    let mut exceptions: BTreeMap<Place<'_>, f64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for Off { variant, phase, counters, why } in case.off {
        assert!(why.contains(' '), "{}: an exception without a reason", case.name);
        for (counter, bound) in *counters {
            let place = (*variant, *phase, *counter);
            if exceptions.insert(place, *bound).is_some() {
                wrong.push(format!("{place:?} is named twice"));
            }
        }
    }
    let is_off = |counter: &Counter| counter.verdict == Verdict::Off && times(counter) > BEYOND;
    for (place, bound) in &exceptions {
        match counters.get(place) {
            None => wrong.push(format!("{place:?}: there is no such judged counter")),
            Some(counter) if !is_off(counter) => {
                let (verdict, times) = (counter.verdict.name(), times(counter));
                wrong.push(format!(
                    "{place:?} is not needed any more: {verdict}, factor {times:.2}"
                ));
            }
            Some(counter) if is_outdated(bound - 1.0, times(counter) - 1.0) => {
                let times = times(counter);
                wrong.push(format!("{place:?}: factor {times:.2}, bound {bound:.2}"));
            }
            Some(_) => {}
        }
    }
    for (place, counter) in &counters {
        if is_off(counter) && !exceptions.contains_key(place) {
            let (linux, ours) = (counter.linux, counter.pagetide.mean);
            wrong.push(format!(
                "{place:?} is off and not named: {ours:.0}, Linux {:.0} +- {:.0}, factor {:.2}",
                linux.mean,
                linux.stddev,
                times(counter)
            ));
        }
    }
    let grade = |grade| reached(&counters, grade, |place| exceptions.contains_key(place));
    let (repeats, varies) = (grade(Judgement::Repeats), grade(Judgement::Varies));
    let line = line(case.name, repeats, varies);
    println!("{line}");
    let is_at = |bound: Grade, reached: Grade| {
        bound.counters == reached.counters
            && !is_outdated(bound.median_percent / 100.0, reached.median_percent / 100.0)
            && !is_outdated(bound.worst - 1.0, reached.worst - 1.0)
    };
    if !is_at(case.repeats, repeats) || !is_at(case.varies, varies) {
        wrong.push(format!("the line should be {line}"));
    }
    wrong
}

#[test]
fn every_case_is_as_close_to_the_kernel_as_it_was() {
    let mut cases: Vec<String> = std::fs::read_dir(experiments())
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    cases.sort();
    let named: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(named, cases, "a line for each shipped case, in order");
    let mut text = String::new();
    let mut comparisons = Vec::new();
    for case in CASES {
        let comparison = compare(case.name);
        let overlaps = case.off.iter().any(|off| off.why == OVERLAP);
        let differing = if overlaps { differing_sums(&comparison) } else { Vec::new() };
        for wrong in complaints(case, &comparison).into_iter().chain(differing) {
            writeln!(text, "{}: {wrong}", case.name).unwrap();
        }
        comparisons.push(comparison);
    }
    println!("all: {}", summarise(&comparisons));
    assert!(text.is_empty(), "\n{text}");
}

/// What [`OVERLAP`] says: the sums over the phases of a task agree, whichever phase it was.
fn differing_sums(comparison: &Comparison) -> Vec<String> {
    const COUNTERS: [&str; 3] = ["pgscan_anon", "pgsteal_anon", "pswpout"];
    const SHARE: f64 = 0.035;
    let mut sums: BTreeMap<Place<'_>, (f64, f64)> = BTreeMap::new();
    for variant in &comparison.variants {
        for phase in &variant.phases {
            let (task, rest) = phase.key.split_once('.').expect("TASK.PHASE");
            let of_machine = phase.counters.iter().filter(|_| !rest.contains('.'));
            for counter in of_machine.filter(|it| COUNTERS.contains(&it.name.as_str())) {
                let sum = sums.entry((&variant.name, task, &counter.name)).or_default();
                // What happened in no run of a phase is not in its reference.
                let all_of = |side: stats::Summary| if side.n == 0 { 0.0 } else { side.mean };
                *sum = (sum.0 + all_of(counter.linux), sum.1 + all_of(counter.pagetide));
            }
        }
    }
    assert!(sums.len() >= 12, "{}: two variants, two tasks: {sums:?}", comparison.scenario);
    let differ = sums.iter().filter(|(_, (linux, ours))| (ours / linux - 1.0).abs() > SHARE);
    differ
        .map(|(place, (linux, ours))| format!("{place:?}: {ours} in all, Linux {linux}"))
        .collect()
}

/// Too few for the verdicts above, and what it is all about.
#[test]
fn as_many_faults_get_huge_pages_as_on_the_kernel() {
    let mut seen = 0;
    for variant in &compare("huge").variants {
        for counter in variant.counters().filter(|counter| counter.name == "thp_fault_alloc") {
            let (linux, ours) = (counter.linux.mean, counter.pagetide.mean);
            let what = format!("{} {}: {ours}, Linux {linux}", variant.name, counter.key);
            assert!((linux - ours).abs() <= HUGE_PAGES, "{what}");
            seen += u32::from(linux > 0.0);
        }
    }
    assert!(seen >= 14, "two phases and the whole of five variants: {seen}");
}

/// A line that has become too narrow or too wide, and exceptions that are missing or in vain.
#[test]
fn what_is_outdated_is_said() {
    assert!(!is_outdated(0.05, 0.05) && !is_outdated(0.05, 0.045) && !is_outdated(0.01, 0.0));
    assert!(is_outdated(0.05, 0.051), "worse");
    assert!(is_outdated(0.05, 0.01), "better by far");
    assert!(!is_outdated(f64::INFINITY, f64::INFINITY) && is_outdated(f64::INFINITY, 9.0));
    let comparison = compare("zipf");
    let zipf = CASES.iter().find(|case| case.name == "zipf").unwrap();
    assert_eq!(complaints(zipf, &comparison), Vec::<String>::new());
    let said = |case: Case| complaints(&case, &comparison).join("\n");
    let nothing_named = said(Case { off: &[], ..*zipf });
    assert!(
        nothing_named.contains("mm_vmscan_kswapd_wake\") is off and not named"),
        "{nothing_named}"
    );
    let fine = Off {
        variant: "default",
        phase: "reader.zipf0",
        counters: &[("pgsteal_total", 2.0), ("pgstolen", 2.0)],
        why: "for the test",
    };
    let with_fine: Vec<Off> = zipf.off.iter().copied().chain([fine]).collect();
    let in_vain = said(Case { off: with_fine.leak(), ..*zipf });
    assert!(in_vain.contains("\"pgsteal_total\") is not needed any more"), "{in_vain}");
    assert!(in_vain.contains("\"pgstolen\"): there is no such"), "{in_vain}");
    let fewer = Grade { counters: zipf.varies.counters + 1, ..zipf.varies };
    assert!(said(Case { varies: fewer, ..*zipf }).contains("the line should be"), "a counter lost");
}
