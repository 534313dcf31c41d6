//! Costs of operations from the CPU times of phases: least squares with costs >= 0.
//!
//! Each phase gives one equation for the task, one for kswapd and one for the flusher: the sum of
//! count times cost is the CPU time. The counts are the simulator's, of the same scenario on the
//! same memory; the times are those of a real kernel. Errors are relative, so a short phase weighs
//! as much as a long one.
//!
//! No measurement separates operations that always occur together. So the sourced table is first
//! scaled as a whole to fit best, and the costs then depart from it only as far as the equations
//! need ([`PULL`]). No cost is set by hand, and no phase is tied to a cost.
//!
//! Invariant: a cost that is in no equation is not stated. Equal rows give equal costs on every
//! machine.

use pagetide_linux::machine_costs;
use pagetide_linux::reference::KernelReference;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::{KeyNames, Owner, Scope};
use pagetide_scenario::model::costs::{MachineCosts, Price};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::Unit;
use pagetide_sim::cost::CostModel;
use pagetide_sim::{count_work, PhaseWork, SimError};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const N: usize = Price::COUNT;
/// Weight of the departure from the table. A cost off by 100 % weighs as much as an equation off by
/// 10 %: enough to decide what the equations leave open, too little to outweigh one of them.
const PULL: f64 = 0.01;
/// Shorter times (seconds) are left out: they include timer interrupts and the end of a report.
const SHORTEST: f64 = 1e-3;
/// A phase is left out if the simulator explains less than this share of what it explains of other
/// phases: it mostly did uncounted work, such as dropping caches left by boot.
const LEAST_EXPLAINED: f64 = 0.1;
/// Rounds of counting and fitting: the split of reclaim between tasks and kswapd depends on the
/// costs.
const ROUNDS: usize = 3;
/// Most rounds of the descent; a hundredth of them is usually enough.
const SWEEPS: usize = 20_000;
/// The descent ends when no cost changes by more than this share.
const STILL: f64 = 1e-9;

/// An equation: counts of operations, and the CPU time that they took.
#[derive(Clone, Debug, PartialEq)]
pub struct CostEquation {
    pub phase: Scope,
    /// The thread, if it is not the task.
    pub daemon: Option<&'static str>,
    /// In the order of [`Price::ALL`].
    pub counts: [f64; N],
    pub seconds: f64,
}

impl CostEquation {
    /// Phase and thread: `TASK.PHASE`, `TASK.PHASE, kswapd`.
    fn what(&self) -> String {
        let phase = self.phase.short();
        self.daemon.map_or(phase.clone(), |daemon| format!("{phase}, {daemon}"))
    }
}

/// Fitted costs, and how well they explain the CPU times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FittedCosts {
    pub costs: MachineCosts,
    /// Each equation with the ratio of explained to measured time.
    pub rows: Vec<(String, f64)>,
}

impl FittedCosts {
    /// Median relative error of the equations.
    pub fn median_error(&self) -> f64 {
        let mut errors: Vec<f64> = self.rows.iter().map(|(_, ratio)| (ratio - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied().unwrap_or(0.0)
    }

    pub fn describe(&self) -> String {
        format!(
            "{} of {N} costs measured on this kernel; they reproduce {} measured CPU times with a median \
             error of {:.0} %",
            self.costs.iter().count(),
            self.rows.len(),
            100.0 * self.median_error()
        )
    }
}

/// The costs of the machine on which `reference`, a recording of [`machine_costs`], was made.
pub fn of_reference(
    reference: &KernelReference,
    cpus: u16,
    cancel: &AtomicBool,
) -> Result<FittedCosts, SimError> {
    let mut setup = machine_costs::setup(cpus);
    reference.apply(&mut setup);
    let seed = reference.seeds.first().copied().unwrap_or(1);
    Ok(solve(reference, &mut setup, seed, cancel)?.0)
}

/// The costs that explain the CPU times of `reference`, and the counts of the phases of `setup`.
/// Sets the costs in `setup`.
pub fn solve(
    reference: &KernelReference,
    setup: &mut Setup,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<(FittedCosts, Vec<PhaseWork>), SimError> {
    let names = KeyNames::of(setup);
    let mut fitted = FittedCosts::default();
    let mut counted = Vec::new();
    for _ in 0..ROUNDS {
        counted = count_work(setup, seed, cancel)?;
        let new = fit(&rows(reference, &names, &counted), setup.machine.cpus);
        let is_same = new.costs == fitted.costs;
        setup.machine.costs = new.costs.clone();
        fitted = new;
        if is_same {
            break;
        }
    }
    Ok((fitted, counted))
}

/// The equations of the phases of a recording, with median times over the runs.
pub fn rows(
    reference: &KernelReference,
    names: &KeyNames,
    work: &[PhaseWork],
) -> Vec<CostEquation> {
    let median = |scope: &Scope, metric: &MetricDecl| -> Option<f64> {
        let key = names.text(&scope.metric(metric));
        let (_, values): &(Unit, Vec<Option<f64>>) = reference.metrics.get(&key)?;
        let mut there: Vec<f64> = values.iter().flatten().copied().collect();
        there.sort_by(f64::total_cmp);
        let (low, high) = (there.len().saturating_sub(1) / 2, there.len() / 2);
        Some((there.get(low)? + there.get(high)?) / 2.0)
    };
    let mut rows = Vec::new();
    // Calls on names and pipes have no cost per operation: their whole length is known.
    for of in work.iter().filter(|of| !of.uses_files_or_pipes) {
        let phase = Scope::Phase { task: Owner::new(&of.task), phase: of.phase.clone() };
        let own = median(&phase, declared::PROGRAM_TIME).unwrap_or(0.0);
        for (daemon, metric, counts, own) in [
            (None, declared::CPU, of.own, own),
            (Some("kswapd"), declared::CPU_KSWAPD, of.kswapd, 0.0),
            (Some("writeback"), declared::CPU_WRITEBACK, of.flusher, 0.0),
        ] {
            let seconds = median(&phase, metric).map(|seconds| seconds - own);
            let phase = phase.clone();
            rows.extend(seconds.map(|seconds| CostEquation { phase, daemon, counts, seconds }));
        }
    }
    rows.retain(|row| row.seconds >= SHORTEST && row.counts.iter().any(|count| *count > 0.0));
    rows
}

/// The costs that explain `rows` best, on a machine with `cpus` CPUs.
pub fn fit(rows: &[CostEquation], cpus: u16) -> FittedCosts {
    let table = CostModel::for_cpus(cpus);
    let prior = Price::ALL.map(|price| table[price] as f64 / 1e9);
    let explained = |row: &CostEquation, prices: &[f64; N]| -> f64 {
        row.counts.iter().zip(prices).map(|(count, price)| count * price).sum::<f64>() / row.seconds
    };
    let mut ratios: Vec<f64> = rows.iter().map(|row| explained(row, &prior)).collect();
    ratios.sort_by(f64::total_cmp);
    let least = ratios.get(ratios.len() / 2).map_or(0.0, |middle| LEAST_EXPLAINED * middle);
    let rows: Vec<&CostEquation> =
        rows.iter().filter(|row| explained(row, &prior) >= least).collect();
    // The factor of the whole table that makes the relative errors least.
    let ratios: Vec<f64> = rows.iter().map(|row| explained(row, &prior)).collect();
    let (sum, squares) = ratios
        .iter()
        .fold((0.0, 0.0), |(sum, squares), ratio| (sum + ratio, squares + ratio * ratio));
    let scale = if squares > 0.0 { sum / squares } else { 1.0 };
    let prior = prior.map(|price| price * scale);
    // In units of the prior, so that the pull is the same for cheap and expensive operations.
    let scaled: Vec<[f64; N]> = rows
        .iter()
        .map(|row| std::array::from_fn(|at| row.counts[at] * prior[at] / row.seconds))
        .collect();
    let factors = descend(&scaled);
    let prices: [f64; N] = std::array::from_fn(|at| factors[at] * prior[at]);
    let mut costs = MachineCosts::default();
    for (at, price) in Price::ALL.into_iter().enumerate() {
        if rows.iter().any(|row| row.counts[at] > 0.0) && prior[at] > 0.0 {
            costs.set(price, (prices[at] * 1e9).round() as u64);
        }
    }
    let rows = rows.iter().map(|row| (row.what(), explained(row, &prices))).collect();
    FittedCosts { costs, rows }
}

/// The factors x >= 0 that minimise the sum over `rows` of (row * x - 1)^2 plus [`PULL`] times the
/// sum of (x - 1)^2. Coordinate descent; converges because the function is strictly convex.
fn descend(rows: &[[f64; N]]) -> [f64; N] {
    let mut normal = [[0.0; N]; N];
    let mut right = [PULL; N];
    for row in rows {
        for i in 0..N {
            right[i] += row[i];
            for j in 0..N {
                normal[i][j] += row[i] * row[j];
            }
        }
    }
    for (i, row) in normal.iter_mut().enumerate() {
        row[i] += PULL;
    }
    let mut x = [1.0; N];
    for _ in 0..SWEEPS {
        let mut moved = 0.0f64;
        for i in 0..N {
            let others: f64 = (0..N).filter(|j| *j != i).map(|j| normal[i][j] * x[j]).sum();
            let best = ((right[i] - others) / normal[i][i]).max(0.0);
            moved = moved.max((best - x[i]).abs());
            x[i] = best;
        }
        if moved < STILL {
            break;
        }
    }
    x
}

/// Measured costs by number of CPUs, kernel and way to run it.
pub(super) type KnownCosts = BTreeMap<(u16, (String, String)), Option<FittedCosts>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a machine with these costs, with different amounts of all operations.
    fn rows_of(prices: &[f64; N], rows: usize, kinds: &[Price]) -> Vec<CostEquation> {
        let mut state = 7u64;
        let mut draw = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64
        };
        let row = |n: usize| {
            let mut counts = [0.0; N];
            for (at, kind) in kinds.iter().enumerate() {
                // Each kind, also a cheap one, is the main one of some row.
                let share = if n % kinds.len() == at { 1.0 } else { 20.0 };
                counts[*kind as usize] = draw() / CostModel::SERVER[*kind] as f64 / share;
            }
            let seconds = counts.iter().zip(prices).map(|(count, price)| count * price).sum();
            CostEquation { phase: Scope::Machine, daemon: None, counts, seconds }
        };
        (0..rows).map(row).collect()
    }

    #[test]
    fn prices_are_found_again() {
        let kinds: Vec<Price> =
            Price::ALL.into_iter().filter(|price| *price != Price::TlbShootdown).collect();
        let table = CostModel::for_cpus(1);
        // Everything three times as fast; every second operation four times as expensive as that.
        let prices: [f64; N] = std::array::from_fn(|at| {
            let factor = if at % 2 == 0 { 4.0 } else { 1.0 };
            table[Price::ALL[at]] as f64 * factor / 3e9
        });
        let fitted = fit(&rows_of(&prices, 12 * kinds.len(), &kinds), 1);
        for price in &kinds {
            let (found, wanted) = (fitted.costs.get(*price), prices[*price as usize] * 1e9);
            let off = found.map_or(f64::NAN, |found| (found as f64 - wanted).abs());
            assert!(off <= 0.04 * wanted + 1.0, "{}: {found:?}, not {wanted}", price.name());
        }
        assert!(fitted.median_error() < 0.01);
        assert_eq!(fitted.costs.get(Price::TlbShootdown), None, "no row has it");
    }

    #[test]
    fn what_always_comes_together_is_divided_as_in_the_table() {
        let mut counts = [0.0; N];
        counts[Price::Fault as usize] = 1000.0;
        counts[Price::PageZero as usize] = 1000.0;
        let (phase, daemon) = (Scope::Machine, None);
        let rows = [CostEquation { phase, daemon, counts, seconds: 1.6e-3 }];
        let costs = fit(&rows, 1).costs;
        assert_eq!((costs.get(Price::Fault), costs.get(Price::PageZero)), (Some(1000), Some(600)));
        assert_eq!(costs.iter().count(), 2);
    }

    #[test]
    fn no_price_is_below_nothing() {
        let row = |fault: f64, pte: f64, seconds: f64| {
            let mut counts = [0.0; N];
            counts[Price::Fault as usize] = fault;
            counts[Price::Pte as usize] = pte;
            CostEquation { phase: Scope::Machine, daemon: None, counts, seconds }
        };
        // With more entries it was faster: no cost >= 0 explains that.
        let fitted = fit(&[row(1e6, 0.0, 1.0), row(1e6, 1e6, 0.5)], 1);
        assert_eq!(fitted.costs.get(Price::Pte), Some(0));
        assert!(fit(&[], 2).costs.is_default());
    }
}
