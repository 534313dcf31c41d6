//! Costs of operations on a live machine, fitted to the scenario that it performed
//! ([`pagetide_linux::live`]).
//!
//! The least squares are those for a guest ([`crate::costs`]): CPU times of phases against
//! the simulator's counts of the same phases. The kernel also counts faults, scanned and reclaimed
//! pages per group. A phase in which these counts differ from the simulator's is left out, because
//! its times would be divided by wrong counts.
//!
//! Invariant: a cost is stated only if the time of some phase depends on it.

use crate::costs::{fit, rows, solve, CostEquation, FittedCosts};
use pagetide_linux::host::scenario::MeasuredCosts;
use pagetide_linux::live::scenario::NAME;
use pagetide_linux::live::LiveMeasurement;
use pagetide_linux::reference::KernelReference;
use pagetide_scenario::metric::declared;
use pagetide_scenario::metric::{KeyNames, Owner, Scope};
use pagetide_scenario::model::costs::Price;
use pagetide_scenario::model::{Setup, Variant};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::cost::CostModel;
use pagetide_sim::{run, RunOptions, SimError};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// The seed of both sides.
const SEED: u64 = 1;
/// Counters of a group: the sum in memory.stat, and its parts in the simulator.
const COUNTED: [(&str, &[&str]); 3] = [
    ("pgfault", &["pgfault"]),
    ("pgscan", &["pgscan_kswapd", "pgscan_direct"]),
    ("pgsteal", &["pgsteal_kswapd", "pgsteal_direct"]),
];
/// Smaller counts are not compared: they include the work of reporting.
const FEW: f64 = 128.0;
/// Counts that differ by more than this factor are of different work.
const APART: f64 = 1.5;
/// A phase is left out unless half of its runs are within this share of the median: other work
/// disturbed it.
const STEADY: f64 = 0.25;
/// A cost is measured if it is at least this share of some phase, by the sourced table.
const PART: f64 = 0.02;

/// A count of the kernel and of the simulator.
#[derive(Clone, Debug, PartialEq)]
pub struct CountRatio {
    /// Such as `pgscan`.
    pub name: &'static str,
    pub phase: Scope,
    /// Kernel / simulator.
    pub ratio: f64,
}

impl CountRatio {
    fn is_apart(&self) -> bool {
        !(1.0 / APART..=APART).contains(&self.ratio)
    }
}

/// A cost, with the range of single runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredCost {
    pub price: Price,
    /// Nanoseconds, from the medians of all runs.
    pub ns: u64,
    /// Lowest of a single run.
    pub low: u64,
    /// Highest of a single run.
    pub high: u64,
}

/// Result of the measurement.
#[derive(Clone, Debug)]
pub struct MeasuredMachine {
    pub prices: Vec<MeasuredCost>,
    /// How well they explain the CPU times.
    pub fitted: FittedCosts,
    /// Counts of both sides.
    pub counted: Vec<CountRatio>,
    pub runs: usize,
    /// Scatter of phases: half of the runs are within this share of the median.
    pub spread: Vec<(Scope, f64)>,
    /// Phases left out because their times were not steady.
    pub unsteady: Vec<Scope>,
    /// Parts that were not performed, and why.
    pub left_out: Vec<String>,
}

/// The costs of the machine that performed the scenario.
pub fn prices_of(
    measured: &LiveMeasurement,
    cancel: &Arc<AtomicBool>,
) -> Result<MeasuredMachine, SimError> {
    let mut setup = measured.setup.clone();
    let mut reference = measured.reference.clone();
    pagetide_linux::program_times::apply(&reference.metrics, &mut setup);
    let (mut fitted, mut work) = solve(&reference, &mut setup, SEED, cancel)?;
    let counted = compare(&reference, &setup, cancel)?;
    let names = KeyNames::of(&setup);
    let times = spread(&reference, &names, &rows(&reference, &names, &work));
    let unsteady: Vec<Scope> =
        times.into_iter().filter(|(_, part)| *part > STEADY).map(|(phase, _)| phase).collect();
    let apart = counted.iter().filter(|it| it.is_apart()).map(|it| &it.phase);
    let left_out: BTreeSet<&Scope> = apart.chain(&unsteady).collect();
    if !left_out.is_empty() {
        for phase in left_out {
            reference.metrics.remove(&names.text(&phase.metric(declared::CPU)));
        }
        (fitted, work) = solve(&reference, &mut setup, SEED, cancel)?;
    }
    let cpus = setup.machine.cpus;
    let single = reference.records().into_iter().map(|record| {
        let origin = reference.origin.clone();
        let (scenario, variant) = (&reference.scenario, &reference.variant);
        let one = KernelReference::new(scenario, variant, origin, &names, &[record]);
        fit(&rows(&one, &names, &work), cpus).costs
    });
    let single: Vec<_> = single.collect();
    let equations = rows(&reference, &names, &work);
    let is_measured = |price: &Price| is_measured(&equations, *price, cpus);
    let prices = fitted.costs.iter().filter(|(price, _)| is_measured(price));
    let prices = prices.map(|(price, ns)| {
        let of_runs = || single.iter().filter_map(|costs| costs.get(price));
        let (low, high) = (of_runs().min().unwrap_or(ns), of_runs().max().unwrap_or(ns));
        MeasuredCost { price, ns, low: low.min(ns), high: high.max(ns) }
    });
    let prices = prices.collect();
    Ok(MeasuredMachine {
        prices,
        counted,
        runs: reference.seeds.len(),
        spread: spread(&reference, &names, &equations),
        unsteady,
        left_out: measured.left_out.clone(),
        fitted,
    })
}

/// Whether the time of some phase depends on this cost, by the sourced table.
fn is_measured(equations: &[CostEquation], price: Price, cpus: u16) -> bool {
    let table = CostModel::for_cpus(cpus);
    let cost = |row: &CostEquation, price: Price| row.counts[price as usize] * table[price] as f64;
    equations.iter().any(|row| {
        let all: f64 = Price::ALL.into_iter().map(|price| cost(row, price)).sum();
        cost(row, price) > 0.0 && cost(row, price) >= PART * all
    })
}

/// Counts of groups per phase on both sides; without groups, faults of tasks.
fn compare(
    reference: &KernelReference,
    setup: &Setup,
    cancel: &Arc<AtomicBool>,
) -> Result<Vec<CountRatio>, SimError> {
    let variant =
        Variant { name: reference.variant.clone(), sets: Vec::new(), setup: setup.clone() };
    let options = RunOptions { cancel: Some(Arc::clone(cancel)), ..RunOptions::default() };
    let record = run(NAME, &variant, SEED, &options)?;
    let names = KeyNames::of(setup);
    let mut counted = Vec::new();
    for task in &setup.tasks {
        for phase in &task.phases {
            let phase = Scope::Phase { task: Owner::new(&task.name), phase: phase.name.clone() };
            let (scope, events) = match task.group {
                Some(group) => {
                    (phase.with_group(Owner::new(&setup.groups[group].name)), &COUNTED[..])
                }
                None => (phase.clone(), &COUNTED[..1]),
            };
            let key = |name: &'static str| names.text(&scope.named(name));
            for &(name, parts) in events {
                let kernel = median(reference, &key(name)).unwrap_or(0.0);
                let ours: f64 = parts.iter().filter_map(|part| value(&record, &key(part))).sum();
                if kernel.max(ours) >= FEW {
                    let phase = phase.clone();
                    counted.push(CountRatio { name, phase, ratio: kernel / ours.max(1.0) });
                }
            }
        }
    }
    Ok(counted)
}

fn value(record: &RunRecord, key: &str) -> Option<f64> {
    record.metrics.get(key).map(|metric| metric.value)
}

fn median(reference: &KernelReference, key: &str) -> Option<f64> {
    let values = sorted(reference, key);
    values.get(values.len() / 2).copied()
}

/// The values of a metric, ascending.
fn sorted(reference: &KernelReference, key: &str) -> Vec<f64> {
    let values = reference.metrics.get(key).map(|(_, values)| values);
    let mut values: Vec<f64> = values.into_iter().flatten().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Per equation of a task: half of the runs are within this share of the median.
fn spread(
    reference: &KernelReference,
    names: &KeyNames,
    equations: &[CostEquation],
) -> Vec<(Scope, f64)> {
    let of = |row: &CostEquation| {
        let values = sorted(reference, &names.text(&row.phase.metric(declared::CPU)));
        let middle = *values.get(values.len() / 2)?;
        let mut off: Vec<f64> = values.iter().map(|value| (value / middle - 1.0).abs()).collect();
        off.sort_by(f64::total_cmp);
        Some((row.phase.clone(), off[off.len() / 2]))
    };
    equations.iter().filter(|row| row.daemon.is_none()).filter_map(of).collect()
}

/// Median and worst share, with the worst.
fn median_and_worst<T>(of: &[(T, f64)]) -> Option<(f64, &T, f64)> {
    let mut sorted: Vec<&(T, f64)> = of.iter().collect();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (worst, part) = sorted.last()?;
    Some((sorted[sorted.len() / 2].1, worst, *part))
}

impl MeasuredMachine {
    /// Sentences on the quality of the costs: how well they explain the CPU times, how steady these
    /// are, and whether kernel and simulator did the same work.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = vec![format!(
            "{} of {} costs measured on this machine; they reproduce {} measured CPU times with a median error of \
             {:.0} %",
            self.prices.len(),
            Price::COUNT,
            self.fitted.rows.len(),
            100.0 * self.fitted.median_error()
        )];
        if let Some((middle, phase, worst)) = median_and_worst(&self.spread) {
            let what = phase.short();
            said.push(format!(
                "CPU times are medians of {} runs; half of the runs are within {:.1} % of the median in the \
                 median phase, within {:.1} % in the worst phase ({what})",
                self.runs,
                100.0 * middle,
                100.0 * worst
            ));
        }
        if !self.unsteady.is_empty() {
            let what: Vec<String> = self.unsteady.iter().map(Scope::short).collect();
            let what = what.join(", ");
            said.push(format!("phases left out because their times were not steady: {what}"));
        }
        let what = |it: &CountRatio| format!("{} {}", it.phase.short(), it.name);
        let off = |it: &CountRatio| (what(it), (it.ratio - 1.0).abs());
        let off: Vec<(String, f64)> = self.counted.iter().map(off).collect();
        if let Some((middle, _, _)) = median_and_worst(&off) {
            let apart = self.counted.iter().filter(|it| it.is_apart());
            let apart: Vec<String> =
                apart.map(|it| format!("{} {:.2} times", what(it), it.ratio)).collect();
            let rest = match apart.as_slice() {
                [] => format!("none is off by more than {APART} times"),
                apart => format!("phases left out because the kernel counted {}", apart.join(", ")),
            };
            said.push(format!(
                "{} counts of the kernel (faults, scanned and reclaimed pages) agree with the simulator to \
                 {:.1} % (median); {rest}",
                off.len(),
                100.0 * middle
            ));
        }
        said.extend(self.left_out.iter().map(|what| format!("not performed: {what}")));
        said
    }

    /// The costs for a scenario file.
    pub fn stated(&self) -> MeasuredCosts {
        let is_stated = |price: &Price| self.prices.iter().any(|it| it.price == *price);
        let rest: Vec<&str> =
            Price::ALL.into_iter().filter(|price| !is_stated(price)).map(Price::name).collect();
        let mut comments = vec![
            "Costs of operations on this machine, from `pagetide import host --measure`. The comment after a \
             cost is the range of single runs. Operations that always occur together keep the proportions \
             of the sourced table."
                .to_owned(),
        ];
        comments.extend(self.sentences().into_iter().map(|sentence| sentence + "."));
        comments.push(format!(
            "Not measured, so the sourced costs apply (docs/scenario.md): {}. A live machine is not put under \
             memory pressure: no kswapd, swap, compaction or shrinkers.",
            rest.join(", ")
        ));
        let prices = self.prices.iter();
        let prices = prices.map(|it| (it.price, it.ns, format!("{} to {}", it.low, it.high)));
        MeasuredCosts { comments, prices: prices.collect() }
    }
}

#[cfg(test)]
mod tests;
