//! Compares every shipped case (experiments/verify) with recordings of a real kernel
//! (experiments/verify/linux-6.1), without QEMU. Some cases are also compared with Linux 6.12
//! (linux-6.12) under the policies of that kernel, and those of the proposals with a kernel that
//! has the patches of kernels/linux-6.1 (proposals/linux-6.1).
//!
//! `bounds.rs` has one line per case: the number of judged counters, their median error, and the
//! worst. A case fails if it is worse than its line, and also if it is much better: then the line
//! must be updated, so that later regressions do not hide. A counter that is off by more than half
//! is an exception, named by variant, phase and counter, with a bound and a reason; an exception
//! that is not needed fails, too. Timed counters are bounded by their median and by the number that
//! is off by more than half.
//!
//! `cargo test -p pagetide-verify --test suite linux -- --nocapture` prints the present lines, and the times
//! by kind.

mod bounds;
mod bounds_6_12;
mod bounds_compete;
mod bounds_compressed;
mod bounds_mglru;
mod bounds_proposals;

use bounds::{Case, Grade, Off, Time, CASES};
use bounds_6_12::{Held, CASES_6_12};
use bounds_compete::CASES_COMPETE;
use bounds_compressed::{COMPRESSED_6_1, COMPRESSED_6_12};
use bounds_mglru::{MGLRU_6_1, MGLRU_6_12};
use bounds_proposals::CASES_PROPOSALS;
use pagetide_lab::plan::RunPlan;
use pagetide_lab::world::Simulator;
use pagetide_linux::reference::KernelReference;
use pagetide_scenario::load::{load, Overrides};
use pagetide_testing::{accepts, root};
use pagetide_verify::ask::{compare_with_kernel, CostSource, KernelSide, ANOTHER_TEXT};
use pagetide_verify::compare::{factor, CounterComparison};
use pagetide_verify::judge::CounterGrade;
use pagetide_verify::summary::{GradeScore, BEYOND};
use pagetide_verify::{costs, fitted_costs};
use pagetide_verify::{summarise, Agreement, Comparison};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Allowed difference in the huge pages of a phase.
const HUGE_PAGES: f64 = 2.0;

/// A bound is too wide if it exceeds the reached error by more than this share plus this difference
/// (0.01 is 1 per cent).
const ROOM: (f64, f64) = (0.5, 0.03);

fn experiments() -> PathBuf {
    root().join("experiments/verify")
}

/// Cases of the unpatched kernel, in [`experiments`].
const OF_LINUX: &str = "";
/// Cases in which two or three programs compete.
const COMPETING: &str = "compete";
/// Cases with zram or zswap.
const COMPRESSED: &str = "compressed";
/// Recordings of cases in [`experiments`] with the multi-generational LRU.
const GENERATIONS: &str = "mglru";
/// Cases of the proposals.
const OF_PROPOSALS: &str = "proposals";

/// Compares all variants of a case.
fn compare(case: &str) -> Comparison {
    compare_with(OF_LINUX, case, "linux-6.1", Vec::new())
}

/// Names in a directory of experiments without `prefix` and `suffix`, in order.
fn names(dir: &str, prefix: &str, suffix: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(experiments().join(dir))
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            Some(name.to_str()?.strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned())
        })
        .collect();
    names.sort();
    names
}

/// Compares these variants of a case (all, if empty) with a kernel's references.
fn compare_with(dir: &str, case: &str, kernel: &str, variants: Vec<String>) -> Comparison {
    let (of, sets) = match dir {
        GENERATIONS => (OF_LINUX, vec![("policy.lru".to_owned(), "mglru".to_owned())]),
        _ => (dir, Vec::new()),
    };
    let file = experiments().join(of).join(format!("{case}.toml"));
    let overrides =
        Overrides { repeats: Some(3), variants, sets: sets.clone(), ..Overrides::default() };
    let scenario = load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let variants = scenario.variants.len();
    let plan = RunPlan { overrides: sets, ..RunPlan::new(scenario).unwrap() };
    // The references of competing programs are beside the others of their kernel, with its costs.
    let owner = if dir == COMPETING { OF_LINUX } else { dir };
    let references = experiments().join(owner).join(kernel);
    let cancel = Arc::new(AtomicBool::new(false));
    let jobs = NonZeroUsize::new(2).unwrap();
    let verified = compare_with_kernel(
        &plan,
        &KernelSide::Recorded { dir: &references, file: &file },
        &Simulator::default(),
        CostSource::Measured,
        jobs,
        &cancel,
        &|_| {},
    );
    assert!(verified.errors.is_empty(), "{case}: {:?}", verified.errors);
    let stale = verified.sides.notes.iter().any(|note| note.contains(ANOTHER_TEXT));
    assert!(!stale, "{case}: the scenario has changed since its references were recorded");
    assert_eq!(verified.sides.policies, kernel, "{case}: compared with another kernel's policies");
    let comparison = verified.comparison.unwrap();
    assert_eq!(comparison.variants.len(), variants, "{case}: a variant is missing");
    println!("{case}: {}", comparison.summary());
    comparison
}

/// A counter of a comparison by variant, phase and name.
type Place<'a> = (&'a str, &'a str, &'a str);

/// Every judged counter of a case.
fn judged(comparison: &Comparison) -> BTreeMap<Place<'_>, &CounterComparison> {
    let mut all = BTreeMap::new();
    for variant in &comparison.variants {
        for phase in &variant.phases {
            let judged = phase.counters.iter().filter(|it| it.verdict != Agreement::NotJudged);
            all.extend(judged.map(|counter| {
                ((variant.name.as_str(), phase.key.as_str(), counter.name.as_str()), counter)
            }));
        }
    }
    all
}

/// The larger mean divided by the smaller.
fn times(counter: &CounterComparison) -> f64 {
    factor(counter.ratio.expect("a judged counter has a ratio"))
}

/// Whether a bound on an error (or on a factor minus one) is too narrow or too wide.
fn is_outdated(bound: f64, reached: f64) -> bool {
    // Both are infinite if Pagetide has 0.
    reached > bound || (bound > reached * (1.0 + ROOM.0) + ROOM.1 && bound != reached)
}

fn median(mut errors: Vec<f64>) -> Option<f64> {
    errors.sort_by(f64::total_cmp);
    let middle = errors.len() / 2;
    match errors.len() {
        0 => None,
        nr if nr % 2 == 1 => Some(errors[middle]),
        _ => Some(f64::midpoint(errors[middle - 1], errors[middle])),
    }
}

/// The counters of a grade: number, median error, and the worst factor of those that are neither
/// within noise nor exceptions.
fn reached(
    all: &BTreeMap<Place<'_>, &CounterComparison>,
    grade: CounterGrade,
    is_exception: impl Fn(&Place<'_>) -> bool,
) -> Grade {
    let of_grade = all.iter().filter(|(_, counter)| counter.judgement == grade);
    let errors: Vec<f64> = of_grade.clone().map(|(_, counter)| times(counter) - 1.0).collect();
    let (counters, median) = (errors.len(), median(errors).unwrap_or(0.0));
    let of_itself = of_grade.filter(|(place, counter)| {
        counter.verdict != Agreement::WithinNoise && !is_exception(place)
    });
    let worst = of_itself.map(|(_, counter)| times(counter)).fold(1.0, f64::max);
    Grade { counters, median_percent: median * 100.0, worst }
}

/// The times of a case.
fn times_reached(counters: &BTreeMap<Place<'_>, &CounterComparison>) -> Time {
    let Grade { counters: judged, median_percent, .. } =
        reached(counters, CounterGrade::Timed, |_| false);
    let of_grade = counters.values().filter(|counter| counter.judgement == CounterGrade::Timed);
    Time { counters: judged, median_percent, beyond: of_grade.filter(|it| is_off(it)).count() }
}

/// Whether a counter is off by more than half, and scatter does not explain it.
fn is_off(counter: &CounterComparison) -> bool {
    counter.verdict == Agreement::Off && times(counter) > BEYOND
}

/// A line of the table, rounded up.
fn line(name: &str, repeats: Grade, varies: Grade, timed: Time) -> String {
    let grade = |it: Grade| {
        let up = |value: f64, by: f64| (value * by - 1e-9).ceil() / by + 0.0;
        format!(
            "grade({}, {:.1}, {:.2})",
            it.counters,
            up(it.median_percent, 10.0),
            up(it.worst, 100.0)
        )
    };
    let Time { counters, median_percent, beyond } = timed;
    let timed = format!("time({counters}, {:.1}, {beyond})", (median_percent * 10.0).ceil() / 10.0);
    format!("case(\"{name}\", {}, {}, {timed}, ..)", grade(repeats), grade(varies))
}

/// Errors of a case.
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
    for (place, bound) in &exceptions {
        match counters.get(place) {
            None => wrong.push(format!("{place:?}: there is no such judged counter")),
            Some(counter) if !is_off(counter) => {
                let (verdict, times) = (counter.verdict.name(), times(counter));
                wrong.push(format!("{place:?} is not needed: {verdict}, factor {times:.2}"));
            }
            Some(counter) if is_outdated(bound - 1.0, times(counter) - 1.0) => {
                let times = times(counter);
                wrong.push(format!("{place:?}: factor {times:.2}, bound {bound:.2}"));
            }
            Some(_) => {}
        }
    }
    for (place, counter) in &counters {
        let is_time = counter.judgement == CounterGrade::Timed;
        if !is_time && is_off(counter) && !exceptions.contains_key(place) {
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
    let (repeats, varies) = (grade(CounterGrade::Repeats), grade(CounterGrade::Varies));
    let timed = times_reached(&counters);
    let line = line(case.name, repeats, varies, timed);
    println!("{line}");
    let is_at = |bound: Grade, reached: Grade| {
        bound.counters == reached.counters
            && !is_outdated(bound.median_percent / 100.0, reached.median_percent / 100.0)
            && !is_outdated(bound.worst - 1.0, reached.worst - 1.0)
    };
    let is_time_at = case.timed.counters == timed.counters
        && case.timed.beyond == timed.beyond
        && !is_outdated(case.timed.median_percent / 100.0, timed.median_percent / 100.0);
    if !is_at(case.repeats, repeats) || !is_at(case.varies, varies) || !is_time_at {
        wrong.push(format!("the line should be {line}"));
    }
    wrong
}

#[test]
fn every_case_is_within_its_bounds() {
    let cases = names(OF_LINUX, "", ".toml");
    let named: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(named, cases, "a line for each shipped case, in order");
    let mut text = String::new();
    let mut comparisons = Vec::new();
    for case in CASES {
        let comparison = compare(case.name);
        for wrong in complaints(case, &comparison) {
            writeln!(text, "{}: {wrong}", case.name).unwrap();
        }
        comparisons.push(comparison);
    }
    println!("all: {}", summarise(&comparisons));
    println!("{}", times_by_kind(&comparisons));
    assert!(text.is_empty(), "\n{text}");
}

/// Kinds of timed counters: the columns of the table in docs/fidelity.md.
const KINDS: [(&str, &[&str]); 5] = [
    ("walltime", &["walltime"]),
    ("CPU time", &["cpu", "cpu_kswapd", "cpu_writeback"]),
    (
        "pressure",
        &["psi.memory.some", "psi.memory.full", "memory.pressure.some", "memory.pressure.full"],
    ),
    ("reclaim by tasks", &["allocstall", "pgscan_direct", "pgsteal_direct"]),
    ("kswapd", &["pgscan_kswapd", "pgsteal_kswapd"]),
];

/// For each case (one CPU, several CPUs) and kind: number of repeating counters, and median error.
fn times_by_kind(comparisons: &[Comparison]) -> String {
    let titles = KINDS.map(|(title, _)| title).join(" | ");
    let mut table = format!("| case | {titles} |\n|---|{}\n", "---|".repeat(KINDS.len()));
    for comparison in comparisons {
        let all = judged(comparison);
        for several in [false, true] {
            let mut cells = String::new();
            let mut nr_found = 0;
            for (_, names) in KINDS {
                let of_kind = all.iter().filter(|((variant, _, name), counter)| {
                    counter.judgement == CounterGrade::Timed
                        && variant.ends_with("2cpus") == several
                        && names.contains(name)
                });
                let errors: Vec<f64> = of_kind.map(|(_, counter)| times(counter) - 1.0).collect();
                nr_found += errors.len();
                cells += &match median(errors.clone()) {
                    Some(median) => format!(" {}: {:.1} % |", errors.len(), 100.0 * median),
                    None => "  |".to_owned(),
                };
            }
            if nr_found > 0 {
                let cpus = if several { ", 2 CPUs" } else { "" };
                writeln!(table, "| `{}`{cpus} |{cells}", comparison.scenario).unwrap();
            }
        }
    }
    table
}

/// Error if the line of a case is outdated.
fn complaint(held: &Held, comparison: &Comparison) -> Option<String> {
    assert!(held.why.contains(' '), "{}: off without a reason", held.name);
    let summary = comparison.summary();
    let of = |score: &GradeScore| (score.counters, 100.0 * score.median_error.unwrap_or(0.0));
    let (repeats, varies) = (of(&summary.repeats), of(&summary.varies));
    let beyond = summary.repeats.beyond.len() + summary.varies.beyond.len();
    let is_at = |bound: (usize, f64), reached: (usize, f64)| {
        bound.0 == reached.0 && !is_outdated(bound.1 / 100.0, reached.1 / 100.0)
    };
    let is_fewer = beyond <= held.beyond && 2 * beyond + 2 >= held.beyond;
    let is_held = is_at(held.repeats, repeats) && is_at(held.varies, varies) && is_fewer;
    (!is_held)
        .then(|| format!("reached {repeats:.2?}, {varies:.2?}, {beyond} off; held to {held:?}"))
}

/// Compares each case with its line.
#[track_caller]
fn hold(cases: &[Held], compare: impl Fn(&Held) -> Comparison) {
    let (mut text, mut comparisons) = (String::new(), Vec::new());
    for case in cases {
        let comparison = compare(case);
        if let Some(wrong) = complaint(case, &comparison) {
            writeln!(text, "{}: {wrong}", case.name).unwrap();
        }
        comparisons.push(comparison);
    }
    println!("all: {}", summarise(&comparisons));
    assert!(text.is_empty(), "\n{text}");
}

/// The same for all cases of a folder, as one kernel ran them.
#[track_caller]
fn hold_folder(folder: &str, cases: &[Held]) {
    let named: Vec<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(named, names(folder, "", ".toml"), "a line for each shipped case, in order");
    hold(cases, |case| compare_with(folder, case.name, "linux-6.1", Vec::new()));
}

#[test]
fn cases_of_the_proposals_are_as_close_to_the_patched_kernel_as_they_were() {
    hold_folder(OF_PROPOSALS, CASES_PROPOSALS);
}

#[test]
fn competing_programs_are_as_close_to_the_kernel_as_they_were() {
    hold_folder(COMPETING, CASES_COMPETE);
}

/// The same for the cases of a folder that two kernels ran, each those with a recording.
#[track_caller]
fn hold_recorded(folder: &str, of_kernels: [(&str, &[Held]); 2]) {
    for (kernel, cases) in of_kernels {
        let dir = format!("{folder}/{kernel}");
        hold(cases, |case| {
            let variants = names(&dir, &format!("{}.", case.name), ".json");
            assert!(!variants.is_empty(), "{}: no reference", case.name);
            compare_with(folder, case.name, kernel, variants)
        });
    }
}

#[test]
fn compressed_swap_is_as_close_to_the_kernels_as_it_was() {
    hold_recorded(COMPRESSED, [("linux-6.1", COMPRESSED_6_1), ("linux-6.12", COMPRESSED_6_12)]);
}

#[test]
fn generations_are_as_close_to_the_kernels_as_they_were() {
    hold_recorded(GENERATIONS, [("linux-6.1", MGLRU_6_1), ("linux-6.12", MGLRU_6_12)]);
}

/// Means of the first half of some boots, turned by `turn`, and of the others.
fn halves(boots: &[f64], turn: usize) -> (f64, f64) {
    let mut boots = boots.to_vec();
    boots.rotate_left(turn);
    let (left, right) = boots.split_at(boots.len() / 2);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    (mean(left), mean(right))
}

/// Groups that compete take different turns in each boot of the kernel. Pagetide is about as near to
/// the mean of all boots as half of them are to the other half.
#[test]
fn groups_with_generations_are_within_the_spread_of_boots() {
    let dir = format!("{GENERATIONS}/linux-6.12");
    let variants = names(&dir, "groups.", ".json");
    let comparison = compare_with(GENERATIONS, "groups", "linux-6.12", variants);
    for grade in [CounterGrade::Repeats, CounterGrade::Varies] {
        let (mut ours, mut theirs) = (Vec::new(), BTreeMap::<usize, Vec<f64>>::new());
        for variant in &comparison.variants {
            let references = experiments().join(&dir);
            let reference = KernelReference::load(&references, "groups", &variant.name).unwrap();
            let counters = variant.phases.iter().flat_map(|phase| &phase.counters);
            for counter in
                counters.filter(|it| it.judgement == grade && it.verdict != Agreement::NotJudged)
            {
                // Sums of counters are not recorded.
                let Some((_, boots)) = reference.metrics.get(&counter.key) else { continue };
                let boots: Vec<f64> = boots.iter().copied().flatten().collect();
                ours.push(times(counter) - 1.0);
                for turn in 0..boots.len() / 2 {
                    let (left, right) = halves(&boots, turn);
                    theirs.entry(turn).or_default().push(factor(left / right) - 1.0);
                }
            }
        }
        let ours = median(ours).unwrap();
        let theirs: Vec<f64> = theirs.into_values().filter_map(median).collect();
        println!("{grade:?}: Pagetide {ours:.3}, halves of the boots {theirs:.3?}");
        let middle = median(theirs).expect("several boots");
        assert!(
            ours <= 1.5 * middle,
            "{grade:?}: {ours:.3}, in the median of the halves {middle:.3}"
        );
    }
}

#[test]
fn cases_of_linux_6_12_are_as_close_to_the_kernel_as_they_were() {
    let of = |case: &Held| names("linux-6.12", &format!("{}.", case.name), ".json");
    let mut recorded: BTreeSet<_> = names("linux-6.12", "", ".json").into_iter().collect();
    for case in CASES_6_12 {
        let variants = of(case);
        assert!(!variants.is_empty(), "{}: no reference", case.name);
        recorded.retain(|name| !variants.iter().any(|it| *name == format!("{}.{it}", case.name)));
    }
    assert_eq!(recorded, BTreeSet::new(), "references without a line");
    hold(CASES_6_12, |case| compare_with(OF_LINUX, case.name, "linux-6.12", of(case)));
}

/// A fit takes seconds, so it is kept beside the recording, where `verify` finds it; here it is made again.
/// `PAGETIDE_ACCEPT=1` writes the files, which a change of what the simulator counts makes necessary.
#[test]
fn fitted_costs_are_those_of_the_recordings() {
    let dirs = [
        "linux-6.1",
        "compressed/linux-6.1",
        "mglru/linux-6.1",
        "mglru/linux-6.12",
        "proposals/linux-6.1",
        "../proposals/linux-6.1",
    ];
    let recordings = dirs.map(|dir| (dir, names(dir, "machine-costs.", ".json")));
    assert_eq!(recordings.iter().map(|(_, names)| names.len()).sum::<usize>(), 9);
    for (dir, variants) in recordings {
        for variant in variants {
            let cpus = variant.strip_suffix("cpus").or(variant.strip_suffix("cpu")).unwrap();
            let (dir, cpus) = (experiments().join(dir), cpus.parse().unwrap());
            let recording = KernelReference::load(&dir, "machine-costs", &variant).unwrap();
            let fitted = costs::of_reference(&recording, cpus, &AtomicBool::new(false)).unwrap();
            if accepts() {
                fitted_costs::save(&dir, cpus, &recording, &fitted).unwrap();
            }
            let kept = fitted_costs::load(&dir, cpus, &recording);
            let file = fitted_costs::path(&dir, cpus);
            assert_eq!(kept, Some(fitted), "{}: PAGETIDE_ACCEPT=1 writes it", file.display());
        }
    }
}

/// Too few huge pages for the verdicts above, but they are the point of the case.
#[test]
fn as_many_faults_get_huge_pages_as_on_the_kernel() {
    let mut seen = 0;
    for variant in &compare("huge").variants {
        for counter in variant.counters().filter(|counter| counter.name == "thp_fault_alloc") {
            // The reference of a phase lacks events that happened in no run.
            let linux = if counter.linux.n == 0 { 0.0 } else { counter.linux.mean };
            let ours = counter.pagetide.mean;
            let what = format!("{} {}: {ours}, Linux {linux}", variant.name, counter.key);
            assert!((linux - ours).abs() <= HUGE_PAGES, "{what}");
            seen += u32::from(linux > 0.0);
        }
    }
    assert!(seen >= 14, "two phases and the whole of five variants: {seen}");
}

/// Bounds that are too narrow or too wide, and exceptions that are missing or not needed.
#[test]
fn outdated_bounds_are_reported() {
    assert!(!is_outdated(0.05, 0.05) && !is_outdated(0.05, 0.045) && !is_outdated(0.01, 0.0));
    assert!(is_outdated(0.05, 0.051), "worse");
    assert!(is_outdated(0.05, 0.01), "better by far");
    assert!(!is_outdated(f64::INFINITY, f64::INFINITY) && is_outdated(f64::INFINITY, 9.0));
    let comparison = compare("mixed");
    let held = CASES.iter().find(|case| case.name == "mixed").unwrap();
    assert_eq!(complaints(held, &comparison), Vec::<String>::new());
    let said = |case: Case| complaints(&case, &comparison).join("\n");
    let nothing_named = said(Case { off: &[], ..*held });
    assert!(nothing_named.contains("pgsteal_file\") is off and not named"), "{nothing_named}");
    let fine = Off {
        variant: "sw150",
        phase: "wset.acc1",
        counters: &[("workingset_refault_anon", 2.0), ("pgstolen", 2.0)],
        why: "for the test",
    };
    let with_fine: Vec<Off> = held.off.iter().copied().chain([fine]).collect();
    let in_vain = said(Case { off: with_fine.leak(), ..*held });
    assert!(in_vain.contains("\"workingset_refault_anon\") is not needed"), "{in_vain}");
    assert!(in_vain.contains("\"pgstolen\"): there is no such"), "{in_vain}");
    let fewer = Grade { counters: held.varies.counters + 1, ..held.varies };
    assert!(said(Case { varies: fewer, ..*held }).contains("the line should be"), "a counter lost");
}
