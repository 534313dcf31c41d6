//! The records of Linux and Pagetide, paired counter by counter, each pair with a verdict.
//!
//! Invariant: every key of a record is in a comparison exactly once, in its phase or among the
//! others. A key that one side does not have has no samples there and is never judged.

use crate::expected::ComparedExpectation;
use crate::judge::{
    is_in_bytes, is_of_compaction, judge, judge_of_group, least_judged, least_timed, place,
    place_of_group, CounterGrade, STEADY,
};
use pagetide_core::config::Thp;
use pagetide_lab::stats;
use pagetide_scenario::metric::{KeyNames, Owner, Scope};
use pagetide_scenario::model::{MachineSetup, Setup};
use pagetide_scenario::record::{RunRecord, Unit};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: f64 = 4096.0;

/// Description of the two sides, from the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparedSides {
    /// The kernel, as it names itself.
    pub kernel: String,
    /// Emulator and accelerator.
    pub how: String,
    /// Kernel version of the simulator's policies.
    pub policies: String,
    /// The simulator's cost model; empty: the sourced table.
    pub costs: String,
    /// Measured or stated costs of the first variant, in nanoseconds.
    pub prices: BTreeMap<&'static str, u64>,
    /// Parts of the scenario that Linux and Pagetide cannot do alike.
    pub not_comparable: Vec<String>,
    pub notes: Vec<String>,
}

/// A scenario on Linux and in Pagetide.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub scenario: String,
    /// In the scenario's order.
    pub variants: Vec<VariantComparison>,
}

/// A variant on Linux and in Pagetide.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantComparison {
    pub name: String,
    pub machine: MachineSetup,
    /// The kernel behaves as the variant asks. If not, its counters are in no summary.
    pub is_alike: bool,
    /// Number of runs on Linux.
    pub linux_runs: usize,
    /// Number of runs in Pagetide.
    pub pagetide_runs: usize,
    /// The phases of the tasks in the order of the scenario, each followed by its groups.
    pub phases: Vec<PhaseComparison>,
    /// Counters without a phase, by key; never judged.
    pub others: Vec<CounterComparison>,
    /// Notes of the runs, each once, after `Linux: ` or `Pagetide: `.
    pub notes: Vec<String>,
    /// Expectations of the scenario for this variant.
    pub expected: Vec<ComparedExpectation>,
}

/// The counters of a phase, of the machine or of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseComparison {
    /// `TASK.PHASE`, or `TASK.PHASE.GROUP` for a group. Copies of a task are one phase,
    /// `NAME.PHASE`, if both sides sum them up.
    pub key: String,
    /// The phase, or the group during the phase.
    pub scope: Scope,
    /// The known counters in a fixed order, then all others by name.
    pub counters: Vec<CounterComparison>,
}

/// A counter on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct CounterComparison {
    pub key: String,
    /// The key without the phase.
    pub name: String,
    pub unit: Unit,
    pub judgement: CounterGrade,
    /// On Linux; without samples if Linux does not have it.
    pub linux: stats::Statistics,
    /// In Pagetide; without samples if Pagetide does not have it.
    pub pagetide: stats::Statistics,
    /// Pagetide's mean over Linux's; `None` where Linux's is zero or there are not two means.
    pub ratio: Option<f64>,
    pub verdict: Agreement,
}

/// Level of the test that calls a difference noise: Student's t of the two means, with the degrees
/// of freedom of the kernel's runs. Pagetide's variance counts as at most the kernel's, so that a
/// simulation with more scatter does not pass more easily. At this level one in ten counters that
/// truly agree is reported as different; more if Pagetide scatters more than the kernel.
///
/// With three runs on each side, a difference of up to 1.69 standard deviations of the kernel is
/// noise if Pagetide does not scatter, and up to 2.38 if it scatters as much or more. More repeats
/// narrow both.
pub const NOISE: f64 = 0.1;

/// With fewer runs the kernel's scatter is unknown, and only equal means are within noise.
pub const LEAST_RUNS: usize = 3;

/// How well a counter agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// The kernel's own scatter explains the difference of the means: see [`NOISE`].
    WithinNoise,
    /// The means differ by a factor of at most [`CounterGrade::close`].
    Close,
    /// They differ by more.
    Off,
    /// The counter is not compared, or Linux counts fewer than [`least_judged`].
    NotJudged,
}

impl Agreement {
    /// The name that JSON and CSV use.
    pub fn name(self) -> &'static str {
        match self {
            Agreement::WithinNoise => "within-noise",
            Agreement::Close => "close",
            Agreement::Off => "off",
            Agreement::NotJudged => "not-judged",
        }
    }
}

/// The larger of two means divided by the smaller, from their `ratio`: at least 1, infinite if one
/// is 0.
pub fn factor(ratio: f64) -> f64 {
    if ratio > 0.0 {
        ratio.max(1.0 / ratio)
    } else {
        f64::INFINITY
    }
}

impl PhaseComparison {
    /// The group of these counters; `None`: the machine.
    pub fn group(&self) -> Option<&Owner> {
        match &self.scope {
            Scope::PhaseGroup { group, .. } => Some(group),
            _ => None,
        }
    }
}

impl CounterComparison {
    fn new(
        key: String,
        name: String,
        judgement: CounterGrade,
        sides: (Option<&Series>, Option<&Series>),
    ) -> CounterComparison {
        let summary = |series: Option<&Series>| {
            stats::Statistics::of(series.map_or(&[][..], |series| &series.samples))
        };
        let (linux, pagetide) = (summary(sides.0), summary(sides.1));
        let unit = sides.1.or(sides.0).map_or(Unit::Count, |series| series.unit);
        let ratio = ratio(&linux, &pagetide);
        let verdict = verdict(judgement, unit, &linux, &pagetide);
        CounterComparison { key, name, unit, judgement, linux, pagetide, ratio, verdict }
    }

    /// Whether Linux has it and Pagetide does not.
    pub fn only_linux(&self) -> bool {
        self.pagetide.n == 0
    }

    /// Whether Pagetide has it and Linux does not.
    pub fn only_pagetide(&self) -> bool {
        self.linux.n == 0
    }

    /// Ratio error: `factor - 1`.
    pub fn error(&self) -> Option<f64> {
        self.ratio.map(|ratio| factor(ratio) - 1.0)
    }
}

fn ratio(linux: &stats::Statistics, pagetide: &stats::Statistics) -> Option<f64> {
    // Over an infinite mean the ratio would be 0.
    let ratio = Some(pagetide.mean / linux.mean).filter(|_| linux.mean.is_finite());
    ratio.filter(|ratio| ratio.is_finite())
}

fn verdict(
    judgement: CounterGrade,
    unit: Unit,
    linux: &stats::Statistics,
    pagetide: &stats::Statistics,
) -> Agreement {
    let (Some(close), Some(ratio)) = (judgement.close(), ratio(linux, pagetide)) else {
        return Agreement::NotJudged;
    };
    let least = match judgement {
        CounterGrade::Timed => least_timed(unit),
        CounterGrade::Repeats | CounterGrade::Varies | CounterGrade::Shown => least_judged(unit),
    };
    let is_steady = linux.n >= LEAST_RUNS && linux.stddev <= STEADY * linux.mean;
    if linux.mean < least || (judgement == CounterGrade::Timed && !is_steady) {
        return Agreement::NotJudged;
    }
    // 0 where Linux has a thousand is never noise.
    if ratio > 0.0 && is_noise(linux, pagetide) {
        Agreement::WithinNoise
    } else if factor(ratio) <= close {
        Agreement::Close
    } else {
        Agreement::Off
    }
}

/// Whether the kernel's scatter explains the difference of the means ([`NOISE`]).
fn is_noise(linux: &stats::Statistics, pagetide: &stats::Statistics) -> bool {
    let difference = linux.mean - pagetide.mean;
    if difference == 0.0 || linux.n < LEAST_RUNS {
        return difference == 0.0;
    }
    let (theirs, ours) = (linux.stddev, pagetide.stddev.min(linux.stddev));
    let variance = theirs.powi(2) / linux.n as f64 + ours.powi(2) / pagetide.n as f64;
    stats::two_sided(difference / variance.sqrt(), (linux.n - 1) as f64) >= NOISE
}

impl Comparison {
    pub fn new(scenario: impl Into<String>, variants: Vec<VariantComparison>) -> Comparison {
        Comparison { scenario: scenario.into(), variants }
    }
}

impl VariantComparison {
    /// Pairs the records of a variant with the phases of `setup`. Times are judged if the costs
    /// were measured on the kernel.
    pub fn new(
        name: impl Into<String>,
        setup: &Setup,
        is_measured: bool,
        linux: &[RunRecord],
        pagetide: &[RunRecord],
    ) -> VariantComparison {
        let names = KeyNames::of(setup);
        let (ours, theirs) = (gather(&names, pagetide), gather(&names, linux));
        let keys: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        let scopes = phase_scopes(setup, [&theirs, &ours].map(|world| scopes(&names, world)));
        let index: BTreeMap<&Scope, usize> = scopes.iter().zip(0..).collect();
        let phase = |scope: &Scope| {
            let (key, scope) = (scope.short(), scope.clone());
            PhaseComparison { key, scope, counters: Vec::new() }
        };
        let mut phases: Vec<PhaseComparison> = scopes.iter().map(phase).collect();
        let mut others = Vec::new();
        let compacts = setup.policies.of().is_some_and(Thp::is_on);
        let judge = |name: &str| match judge(name) {
            _ if is_of_compaction(name) && !compacts => CounterGrade::Shown,
            // Times depend on costs, which are another machine's.
            CounterGrade::Timed if !is_measured => CounterGrade::Shown,
            judgement => judgement,
        };
        for key in keys {
            let sides = (theirs.get(key), ours.get(key));
            let counter = |name: &str, judgement| {
                CounterComparison::new(key.clone(), name.to_owned(), judgement, sides)
            };
            let read = names.read(key);
            let found = read.as_ref().and_then(|of| Some((*index.get(&of.scope)?, &*of.name)));
            match found {
                Some((at, name)) if phases[at].group().is_some() && !is_in_bytes(name) => {
                    let pages = (sides.0.map(Series::in_pages), sides.1.map(Series::in_pages));
                    let sides = (pages.0.as_ref(), pages.1.as_ref());
                    let judgement = judge_of_group(name);
                    let counter =
                        CounterComparison::new(key.clone(), name.to_owned(), judgement, sides);
                    phases[at].counters.push(counter);
                }
                Some((at, name)) if phases[at].group().is_some() => {
                    phases[at].counters.push(counter(name, judge_of_group(name)));
                }
                Some((at, name)) => phases[at].counters.push(counter(name, judge(name))),
                None => others.push(counter(key, CounterGrade::Shown)),
            }
        }
        for phase in &mut phases {
            let place = if phase.group().is_some() { place_of_group } else { place };
            phase.counters.sort_by_key(|counter| place(&counter.name)); // stable: then by name
        }
        VariantComparison {
            name: name.into(),
            machine: setup.machine.clone(),
            is_alike: true,
            linux_runs: linux.len(),
            pagetide_runs: pagetide.len(),
            phases,
            others,
            notes: notes(linux, pagetide),
            expected: Vec::new(),
        }
    }

    /// All counters: first the counters of the phases, then the others.
    pub fn counters(&self) -> impl Iterator<Item = &CounterComparison> {
        self.phases.iter().flat_map(|phase| &phase.counters).chain(&self.others)
    }
}

struct Series {
    unit: Unit,
    samples: Vec<f64>,
}

impl Series {
    /// Bytes as pages, so that the least judged value is that of counts.
    fn in_pages(&self) -> Series {
        match self.unit {
            Unit::Bytes => Series {
                unit: Unit::Pages,
                samples: self.samples.iter().map(|bytes| bytes / PAGE).collect(),
            },
            unit => Series { unit, samples: self.samples.clone() },
        }
    }
}

/// Whether kswapd or tasks reclaim is chance, the total is not: two counters and their sum.
const TOTALS: [[&str; 3]; 2] = [
    ["pgscan_kswapd", "pgscan_direct", "pgscan_total"],
    ["pgsteal_kswapd", "pgsteal_direct", "pgsteal_total"],
];

/// The samples of each key in the order of the records, with the computed totals.
fn gather(names: &KeyNames, records: &[RunRecord]) -> BTreeMap<String, Series> {
    let mut all: BTreeMap<String, Series> = BTreeMap::new();
    let mut add = |key: String, unit: Unit, value: f64| {
        all.entry(key).or_insert_with(|| Series { unit, samples: vec![] }).samples.push(value);
    };
    for record in records {
        for (key, metric) in &record.metrics {
            add(key.clone(), metric.unit, metric.value);
            for [kswapd, direct, total] in TOTALS {
                let Some(of) = names.read(key).filter(|of| of.name == kswapd) else { continue };
                let beside = |name| names.text(&of.scope.named(name));
                let (direct, total) = (record.metrics.get(&beside(direct)), beside(total));
                if let (Some(direct), false) = (direct, record.metrics.contains_key(&total)) {
                    add(total, metric.unit, metric.value + direct.value);
                }
            }
        }
    }
    all
}

fn scopes(names: &KeyNames, world: &BTreeMap<String, Series>) -> BTreeSet<Scope> {
    world.keys().filter_map(|key| Some(names.read(key)?.scope)).collect()
}

/// All phases with metrics in the order of the scenario, each followed by its groups with metrics.
/// Copies are one phase if both sides sum them up.
fn phase_scopes(setup: &Setup, worlds: [BTreeSet<Scope>; 2]) -> Vec<Scope> {
    let has = |scope: &Scope| worlds.iter().any(|world| world.contains(scope));
    let both_have = |scope: &Scope| worlds.iter().all(|world| world.contains(scope));
    let groups: Vec<Owner> = setup.groups.iter().map(|group| Owner::new(&group.name)).collect();
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for task in &setup.tasks {
        for phase in &task.phases {
            let scope = Scope::Phase { task: Owner::new(&task.name), phase: phase.name.clone() };
            let scope = scope.family().filter(both_have).unwrap_or(scope);
            let of_groups = groups.iter().map(|group| scope.with_group(group.clone()));
            let of_groups: Vec<Scope> = of_groups.filter(has).collect();
            if (has(&scope) || !of_groups.is_empty()) && seen.insert(scope.clone()) {
                found.push(scope);
                found.extend(of_groups);
            }
        }
    }
    found
}

fn notes(linux: &[RunRecord], pagetide: &[RunRecord]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut seen = BTreeSet::new();
    for (world, records) in [("Linux", linux), ("Pagetide", pagetide)] {
        for text in records.iter().flat_map(|record| &record.notes) {
            let note = format!("{world}: {text}");
            if seen.insert(note.clone()) {
                notes.push(note);
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compared, setup};
    use pagetide_lab::testing::record;
    use pagetide_scenario::model::Group;

    fn summary(mean: f64, stddev: f64) -> stats::Statistics {
        stats::Statistics { n: 3, mean, stddev, median: mean, min: mean, max: mean }
    }

    fn of(judgement: CounterGrade, linux: (f64, f64), pagetide: (f64, f64)) -> Agreement {
        let (linux, pagetide) = (summary(linux.0, linux.1), summary(pagetide.0, pagetide.1));
        verdict(judgement, Unit::Count, &linux, &pagetide)
    }

    #[test]
    fn verdicts_at_their_bounds() {
        use CounterGrade::*;
        assert_eq!(of(Repeats, (1000.0, 0.0), (1000.0, 0.0)), Agreement::WithinNoise);
        assert_eq!(of(Repeats, (1000.0, 0.0), (1050.0, 0.0)), Agreement::Close);
        assert_eq!(of(Repeats, (1050.0, 0.0), (1000.0, 0.0)), Agreement::Close);
        assert_eq!(of(Repeats, (1000.0, 0.0), (1051.0, 0.0)), Agreement::Off);
        assert_eq!(of(Varies, (1000.0, 0.0), (1150.0, 0.0)), Agreement::Close);
        assert_eq!(of(Varies, (1000.0, 0.0), (1151.0, 0.0)), Agreement::Off);
        // t is 2.92 at 10 % and two degrees of freedom: 1.686 deviations, or 2.384 of two equal
        // ones
        assert_eq!(of(Repeats, (1000.0, 50.0), (1084.2, 0.0)), Agreement::WithinNoise);
        assert_eq!(of(Repeats, (1000.0, 50.0), (1084.4, 0.0)), Agreement::Off);
        assert_eq!(of(Repeats, (1000.0, 50.0), (1119.2, 50.0)), Agreement::WithinNoise);
        assert_eq!(of(Repeats, (1000.0, 50.0), (1119.3, 50.0)), Agreement::Off);
        assert_eq!(of(Repeats, (999.0, 0.0), (999.0, 0.0)), Agreement::NotJudged);
        assert_eq!(of(Shown, (5000.0, 0.0), (5000.0, 0.0)), Agreement::NotJudged);
    }

    #[test]
    fn time_is_judged_where_it_was_measured_and_the_kernel_repeats_it() {
        use CounterGrade::Timed;
        assert_eq!(of(Timed, (50.0, 0.1), (54.9, 0.0)), Agreement::Close);
        assert_eq!(of(Timed, (50.0, 0.1), (55.1, 0.0)), Agreement::Off);
        assert_eq!(of(Timed, (50.0, 5.1), (50.0, 0.0)), Agreement::NotJudged, "it does not repeat");
        assert_eq!(of(Timed, (49.9, 0.0), (49.9, 0.0)), Agreement::NotJudged, "too few");
        let run = |seed, wall| record("v", seed, &[("t.p.walltime", wall)]);
        let runs: Vec<RunRecord> = (1..4).map(|seed| run(seed, 100.0)).collect();
        let mut setup = setup(&["t.p"]);
        let judged = |setup: &Setup, is_measured| {
            let found = VariantComparison::new("v", setup, is_measured, &runs, &runs);
            (found.phases[0].counters[0].judgement, found.phases[0].counters[0].verdict)
        };
        let shown = (CounterGrade::Shown, Agreement::NotJudged);
        assert_eq!(judged(&setup, false), shown);
        assert_eq!(judged(&setup, true), (Timed, Agreement::WithinNoise));
        setup.machine.costs.set(pagetide_scenario::model::costs::Price::Fault, 1);
        assert_eq!(judged(&setup, false), shown, "stated costs are not measured");
    }

    #[test]
    fn noise_is_the_kernels_scatter_and_not_ours() {
        for ours in [50.0, 100.0, 5000.0] {
            assert_eq!(of(CounterGrade::Repeats, (1000.0, 50.0), (1119.3, ours)), Agreement::Off);
            assert_eq!(of(CounterGrade::Repeats, (1000.0, 0.0), (1051.0, ours)), Agreement::Off);
        }
        let runs = |n, mean, stddev| stats::Statistics { n, ..summary(mean, stddev) };
        let (wide, ours) = (summary(1000.0, 500.0), summary(1300.0, 0.0));
        assert!(is_noise(&wide, &ours));
        for n in 1..LEAST_RUNS {
            assert!(!is_noise(&runs(n, 1000.0, 500.0), &ours), "{n} runs: the scatter is unknown");
            assert!(is_noise(&runs(n, 1300.0, 0.0), &ours));
        }
        assert!(!is_noise(&runs(30, 1000.0, 500.0), &ours), "many runs narrow it");
    }

    #[test]
    fn further_from_one_is_never_better() {
        for judgement in [CounterGrade::Repeats, CounterGrade::Varies] {
            for spread in [0.0, 3.0, 40.0, 200.0, 5000.0] {
                for away in [-1.0, 1.0] {
                    let at = |i: i32| (2000.0 + away * f64::from(i) * 8.0).max(0.0);
                    let grade = |i| of(judgement, (2000.0, spread), (at(i), 1.0));
                    assert!((0..250).all(|i| grade(i) <= grade(i + 1)), "{judgement:?} {spread}");
                    assert_eq!(grade(0), Agreement::WithinNoise);
                    let end = if away < 0.0 || spread < 1000.0 { Agreement::Off } else { grade(0) };
                    assert_eq!(grade(250), end, "{judgement:?} {spread} {away}");
                }
            }
        }
    }

    #[test]
    fn zeros_and_nan() {
        use CounterGrade::Repeats;
        assert_eq!(of(Repeats, (0.0, 0.0), (0.0, 0.0)), Agreement::NotJudged);
        assert_eq!(of(Repeats, (0.0, 0.0), (9000.0, 0.0)), Agreement::NotJudged);
        assert_eq!(of(Repeats, (1000.0, 9000.0), (0.0, 9000.0)), Agreement::Off);
        assert_eq!(of(Repeats, (1000.0, 9000.0), (-5.0, 0.0)), Agreement::Off);
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(of(Repeats, (1000.0, 0.0), (wrong, 0.0)), Agreement::NotJudged);
            assert_eq!(of(Repeats, (wrong, 0.0), (1000.0, 0.0)), Agreement::NotJudged);
        }
        assert_eq!((factor(0.0), factor(0.5), factor(4.0)), (f64::INFINITY, 2.0, 4.0));
        let found = compared(&[("t.p.pswpin", 1000.0, 0.0), ("t.p.pswpout", 0.0, 7.0)]);
        let ratios: Vec<Option<f64>> = found.counters().map(|counter| counter.ratio).collect();
        assert_eq!(ratios, [Some(0.0), None]);
        assert_eq!(found.phases[0].counters[0].error(), Some(f64::INFINITY));
    }

    #[test]
    fn the_scenario_orders_phases_and_the_list_orders_counters() {
        let found = compared(&[
            ("pgmajfault", 1.0, 1.0),
            ("a.late.pgmajfault", 1.0, 1.0),
            ("t.p.zzz", 1.0, 1.0),
            ("t.p.aaa", 1.0, 1.0),
            ("t.p.nr_active_file", 1.0, 1.0),
            ("t.p.pgmajfault", 1.0, 1.0),
            ("t.p.walltime", 1.0, 1.0),
            ("t.walltime", 1.0, 1.0),
        ]);
        let keys: Vec<&str> = found.counters().map(|counter| counter.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "t.p.walltime",
                "t.p.pgmajfault",
                "t.p.nr_active_file",
                "t.p.aaa",
                "t.p.zzz",
                "a.late.pgmajfault",
                "pgmajfault",
                "t.walltime"
            ]
        );
        assert!(found.others.iter().all(|counter| counter.judgement == CounterGrade::Shown));
    }

    #[test]
    fn totals_are_of_each_run() {
        let run = |seed, kswapd, direct| {
            record("v", seed, &[("t.p.pgscan_kswapd", kswapd), ("t.p.pgscan_direct", direct)])
        };
        let linux = [run(1, 900.0, 100.0), run(2, 100.0, 900.0)];
        let half = record("v", 1, &[("t.p.pgscan_kswapd", 1000.0)]);
        let found = VariantComparison::new("v", &setup(&["t.p"]), false, &linux, &[half]);
        let total = &found.phases[0].counters[0];
        assert_eq!(
            (total.name.as_str(), total.linux.mean, total.linux.stddev),
            ("pgscan_total", 1000.0, 0.0)
        );
        assert!(total.only_linux() && !total.only_pagetide(), "one half is no total");
        assert_eq!((total.ratio, total.verdict), (None, Agreement::NotJudged));
    }

    #[test]
    fn copies_are_one_phase_if_both_worlds_sum_them_up() {
        let both = [("c.0.p.pswpin", 1.0), ("c.1.p.pswpin", 2.0), ("c.p.pswpin", 3.0)];
        let phases = |linux, pagetide| -> Vec<String> {
            let setup = setup(&["c.0.p", "c.1.p"]);
            let (linux, pagetide) = (record("v", 1, linux), record("v", 1, pagetide));
            let found = VariantComparison::new("v", &setup, false, &[linux], &[pagetide]);
            assert_eq!(found.counters().count(), 3);
            found.phases.into_iter().map(|phase| phase.key).collect()
        };
        assert_eq!(phases(&both, &both), ["c.p"]);
        assert_eq!(phases(&both[..2], &both), ["c.0.p", "c.1.p"]);
    }

    #[test]
    fn groups_follow_their_phase_and_levels_are_judged_as_pages() {
        let mut setup = setup(&["t.p", "a.late"]);
        setup.groups = ["g", "h"].map(Group::new).into();
        let run = |factor: f64| {
            let mut run = record(
                "v",
                1,
                &[
                    ("t.p.pgfault", 5.0),
                    ("t.p.g.memory.events.low", 7.0),
                    ("t.p.g.pgscan_kswapd", 1000.0),
                    ("t.p.g.pgscan_direct", 500.0),
                    ("t.p.g.memory.current", 4096.0 * 2000.0 * factor),
                    ("t.p.h.anon", 4096.0 * 999.0),
                    ("a.late.h.anon", 4096.0 * 1000.0),
                    ("g.memory.current", 4096.0),
                ],
            );
            for (key, metric) in &mut run.metrics {
                if key.ends_with("current") || key.ends_with("anon") {
                    metric.unit = Unit::Bytes;
                }
            }
            run
        };
        let found = VariantComparison::new("v", &setup, false, &[run(1.0)], &[run(2.0)]);
        let group = |of: &PhaseComparison| of.group().map(|group| group.name.clone());
        let phases: Vec<(&str, Option<String>)> =
            found.phases.iter().map(|of| (of.key.as_str(), group(of))).collect();
        assert_eq!(
            phases,
            [
                ("t.p", None),
                ("t.p.g", Some("g".to_owned())),
                ("t.p.h", Some("h".to_owned())),
                ("a.late", None),
                ("a.late.h", Some("h".to_owned())),
            ]
        );
        let names: Vec<&str> =
            found.phases[1].counters.iter().map(|counter| counter.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "memory.current",
                "pgscan_total",
                "pgscan_kswapd",
                "pgscan_direct",
                "memory.events.low"
            ]
        );
        let level = &found.phases[1].counters[0];
        assert_eq!((level.unit, level.linux.mean, level.ratio), (Unit::Pages, 2000.0, Some(2.0)));
        assert_eq!(level.verdict, Agreement::Off);
        assert_eq!(found.phases[2].counters[0].verdict, Agreement::NotJudged, "too small");
        assert_eq!(found.phases[4].counters[0].verdict, Agreement::WithinNoise);
        let others: Vec<&str> = found.others.iter().map(|counter| counter.key.as_str()).collect();
        assert_eq!(others, ["g.memory.current"], "of the whole run");
        assert_eq!(found.counters().count(), 9, "the eight keys and a total");
    }

    #[test]
    fn caches_belong_to_their_phase_and_shares_are_judged() {
        let mut setup = setup(&["t.p"]);
        let (name, controls) = ("g".to_owned(), vec![]);
        setup.groups.push(Group { name, parent: None, controls, at_start: true, has_memory: true });
        let run = |share: f64| {
            let mut run = record(
                "v",
                1,
                &[
                    ("t.p.slab_utilisation", share),
                    ("t.p.slabinfo.kmalloc-cg-1k.num_objs", 1000.0),
                    ("t.p.slabinfo.dentry.active_objs", 999.0),
                    ("t.p.g.slab", 64_000.0),
                    ("t.p.g.slab_reclaimable", 63_999.0),
                    ("shrunk.slabinfo.dentry.active_objs", 5000.0),
                ],
            );
            for (key, metric) in &mut run.metrics {
                metric.unit = match key {
                    key if key.ends_with("utilisation") => Unit::Ratio,
                    key if key.contains("g.slab") => Unit::Bytes,
                    _ => Unit::Count,
                };
            }
            run
        };
        let found = VariantComparison::new("v", &setup, false, &[run(0.5)], &[run(0.9)]);
        let verdicts: Vec<(&str, Agreement)> =
            found.counters().map(|counter| (counter.key.as_str(), counter.verdict)).collect();
        assert_eq!(
            verdicts,
            [
                ("t.p.slab_utilisation", Agreement::Off),
                ("t.p.slabinfo.dentry.active_objs", Agreement::NotJudged),
                ("t.p.slabinfo.kmalloc-cg-1k.num_objs", Agreement::WithinNoise),
                ("t.p.g.slab", Agreement::WithinNoise),
                ("t.p.g.slab_reclaimable", Agreement::NotJudged),
                ("shrunk.slabinfo.dentry.active_objs", Agreement::NotJudged),
            ]
        );
        assert_eq!(found.phases[1].counters[0].unit, Unit::Bytes, "charged to the byte");
    }

    #[test]
    fn an_empty_comparison_is_valid() {
        let found = VariantComparison::new("v", &setup(&["t.p"]), false, &[], &[]);
        assert_eq!((found.phases.len(), found.others.len()), (0, 0));
        let mut run = record("v", 1, &[("t.p.pswpin", 5.0)]);
        run.notes = vec!["cut".to_owned(); 2];
        let found = VariantComparison::new("v", &setup(&["t.p"]), false, &[], &[run]);
        assert!(found.counters().all(|counter| counter.only_pagetide()));
        assert_eq!(found.notes, ["Pagetide: cut"]);
    }
}
