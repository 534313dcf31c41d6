//! Runs a scenario on both sides: a real kernel (or a recording of one), and the simulator with the
//! same memory.
//!
//! Invariant: all finished runs are in the result, whatever fails later.

use crate::compare::{ComparedSides, Comparison, VariantComparison};
use crate::costs::{self, FittedCosts, KnownCosts};
use crate::used_costs::{self, UsedCosts};
use crate::{expected, fitted_costs, plug_times};
use pagetide_lab::execute::{execute, JobOutcome};
use pagetide_lab::plan::RunPlan;
use pagetide_lab::world::{Failure, FailureCause, Simulator};
use pagetide_linux::comparable::{impossible, not_comparable, DISK_SPEED_FIXED, DISK_SPEED_SPREAD};
use pagetide_linux::error::LinuxError;
use pagetide_linux::machine_costs;
use pagetide_linux::reference::{scenario_hash, scenario_text, KernelReference, ReferenceOrigin};
use pagetide_linux::session::{KernelSession, SessionJob, SessionOptions};
use pagetide_linux::start::StartMemory;
use pagetide_scenario::metric::KeyNames;
use pagetide_scenario::model::{Scenario, Variant};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::SimError;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Noted if a reference was recorded from another scenario text.
pub const ANOTHER_TEXT: &str =
    "the reference was recorded from another version of this scenario, or with other --set values";

/// Source of the kernel's runs.
#[derive(Clone, Debug)]
pub enum KernelSide<'a> {
    /// A kernel in QEMU.
    Boot {
        /// The scenario's file, which the guest reads.
        file: &'a Path,
        options: &'a SessionOptions,
        /// Directory for the recording.
        record: Option<&'a Path>,
        /// How often each variant's kernel boots; its seeds are dealt out to the boots in turn.
        boots: NonZeroU32,
    },
    /// Recorded references.
    Recorded {
        dir: &'a Path,
        /// The scenario's file, compared with the one that was recorded.
        file: &'a Path,
    },
}

/// The simulator's cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostSource {
    /// Costs measured on the kernel: from a recording beside the references, or measured while
    /// recording. Without either, the sourced table.
    Measured,
    /// The sourced table, and costs that the scenario states.
    Sourced,
}

#[derive(Clone, Debug)]
pub enum VerifyProgress<'a> {
    /// Costs are measured on the kernel with this number of CPUs.
    Measuring(u16),
    /// The kernel boots for this variant.
    Booting(&'a str),
    /// The kernel runs this variant: runs done, and all runs.
    Running(&'a str, usize, usize),
    /// The simulator runs this variant.
    Simulating(&'a str),
}

/// A failure on one side.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// On Linux.
    #[error("{place}{error}")]
    Linux {
        /// Variant and seed.
        place: String,
        error: LinuxError,
    },
    /// In the simulator.
    #[error("{place}{failure}")]
    Pagetide {
        /// Variant and seed.
        place: String,
        failure: Failure,
    },
}

/// Result of a verification.
#[derive(Debug, Default)]
pub struct Verification {
    /// The variants that both sides have run.
    pub comparison: Option<Comparison>,
    pub sides: ComparedSides,
    pub errors: Vec<VerifyError>,
    pub cancelled: bool,
}

/// Runs every variant of `plan` on both sides.
pub fn compare_with_kernel(
    plan: &RunPlan,
    side: &KernelSide<'_>,
    simulator: &Simulator,
    source: CostSource,
    jobs: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
    tell: &(dyn Fn(VerifyProgress<'_>) + Sync),
) -> Verification {
    let scenario = &plan.scenario;
    let mut verified = Verification::default();
    if let KernelSide::Boot { record: Some(dir), .. } = side {
        // Fail now, not after all runs.
        if let Err(error) = std::fs::create_dir_all(dir) {
            let place = "cannot record: ".to_owned();
            let error = LinuxError::file(dir, error);
            verified.errors.push(VerifyError::Linux { place, error });
            return verified;
        }
    }
    // Check all variants before anything boots. The kernel of a recording could run them.
    let gives_memory = match side {
        KernelSide::Boot { options, .. } => options.kernel.has_test_allocation(),
        KernelSide::Recorded { .. } => true,
    };
    for variant in &scenario.variants {
        if let Some(why) = impossible(&variant.setup, gives_memory) {
            let place = format!("variant {}: ", variant.name);
            let error = LinuxError::Scenario(why);
            verified.errors.push(VerifyError::Linux { place, error });
            return verified;
        }
    }
    let mut variants = Vec::new();
    let mut known = KnownCosts::new();
    let mut used: Vec<UsedCosts> = Vec::new();
    for variant in &scenario.variants {
        if cancel.load(Ordering::Relaxed) {
            verified.cancelled = true;
            break;
        }
        let before = verified.errors.len();
        let Some(reference) = kernel_side(plan, variant, side, jobs, tell, &mut verified) else {
            // The next variant would fail for the same missing program or bad file.
            let hopeless = verified.errors[before..].iter().any(
                |error| matches!(error, VerifyError::Linux { error, .. } if error.is_bad_input()),
            );
            if hopeless {
                break;
            }
            continue;
        };
        let mut setup = variant.setup.clone();
        reference.apply(&mut setup);
        let cpus = setup.machine.cpus;
        let mut fitted = None;
        if source == CostSource::Measured {
            // References may be of several kernels and emulators.
            let found = known.entry((cpus, machine_costs::recording_key(&reference.origin)));
            let measure = || measured(cpus, side, &reference, cancel, tell, &mut verified);
            fitted = found.or_insert_with(measure).as_ref();
        }
        let costs = UsedCosts::new(cpus, fitted, &variant.setup.machine.costs);
        if let Some(fitted) = fitted {
            // Stated costs that are in no equation remain.
            fitted.costs.iter().for_each(|(price, ns)| setup.machine.costs.set(price, ns));
        }
        if used.is_empty() {
            let prices = setup.machine.costs.iter();
            verified.sides.prices = prices.map(|(price, ns)| (price.name(), ns)).collect();
        }
        if !used.contains(&costs) {
            used.push(costs);
        }
        tell(VerifyProgress::Simulating(&variant.name));
        // After ^C while the kernel ran, the finished runs are still simulated, which is short. A
        // second ^C ends everything.
        let cancel = if verified.cancelled { &Arc::default() } else { cancel };
        let seed = reference.seeds.first().copied().unwrap_or(1);
        // The runs below meet a setup that cannot be simulated again, and report it.
        let _ = plug_times::subtract(&mut setup, seed, cancel);
        let simulated = Variant { setup, ..variant.clone() };
        let records = simulate(
            scenario,
            &simulated,
            &reference.seeds,
            simulator,
            jobs,
            cancel,
            &mut verified,
        );
        add_to(&mut verified.sides, &reference, variant, scenario.variants.len() > 1);
        if let Some(note) = differing_watermarks(&reference.origin.start, &simulated) {
            verified.sides.notes.push(note);
        }
        if !records.is_empty() {
            let theirs = reference.records();
            let mut comparison = VariantComparison::new(
                &variant.name,
                &simulated.setup,
                fitted.is_some(),
                &theirs,
                &records,
            );
            comparison.is_alike = reference.origin.is_alike(&variant.setup);
            let names = KeyNames::of(&variant.setup);
            comparison.expected =
                expected::judge(&scenario.expectations, &variant.name, &names, &theirs, &records);
            variants.push(comparison);
        }
    }
    verified.sides.costs = used_costs::describe_costs(&used);
    if !variants.is_empty() {
        verified.comparison = Some(Comparison::new(&scenario.name, variants));
    }
    verified
}

/// Costs on the kernel that made `reference`; `None` if they were not measured.
fn measured(
    cpus: u16,
    side: &KernelSide<'_>,
    reference: &KernelReference,
    cancel: &Arc<AtomicBool>,
    tell: &(dyn Fn(VerifyProgress<'_>) + Sync),
    verified: &mut Verification,
) -> Option<FittedCosts> {
    let origin = &reference.origin;
    let place = || format!("costs with {cpus} CPUs: ");
    let mut failed = |error: LinuxError| match error {
        LinuxError::Cancelled => verified.cancelled = true,
        error => verified.errors.push(VerifyError::Linux { place: place(), error }),
    };
    let found = match side {
        KernelSide::Recorded { dir, .. } => machine_costs::recorded(dir, cpus, origin),
        KernelSide::Boot { record: None, .. } => Ok(None),
        KernelSide::Boot { record: Some(dir), options, .. } => {
            match machine_costs::recorded(dir, cpus, origin) {
                Ok(None) => {
                    tell(VerifyProgress::Measuring(cpus));
                    let made = machine_costs::measure(cpus, options);
                    made.and_then(|made| made.save(dir).map(|_| Some(made)))
                }
                found => found,
            }
        }
    };
    let recording = found.map_err(&mut failed).ok()??;
    let (KernelSide::Recorded { dir, .. } | KernelSide::Boot { record: Some(dir), .. }) = side
    else {
        return None;
    };
    let fit = || {
        let fitted = costs::of_reference(&recording, cpus, cancel);
        if let (Ok(fitted), KernelSide::Boot { .. }) = (&fitted, side) {
            if let Err(error) = fitted_costs::save(dir, cpus, &recording, fitted) {
                failed(error);
            }
        }
        fitted
    };
    // A file of an older build may lie beside the recording; beside a boot a fit takes no time.
    let kept = match side {
        KernelSide::Recorded { .. } => fitted_costs::load(dir, cpus, &recording),
        KernelSide::Boot { .. } => None,
    };
    match kept.map_or_else(fit, Ok) {
        Ok(fitted) if fitted.costs.is_default() => {
            let note = "the cost recording has no CPU times: the sourced costs are used";
            verified.sides.notes.push(note.to_owned());
            None
        }
        Ok(fitted) => Some(fitted),
        Err(SimError::Cancelled) => {
            verified.cancelled = true;
            None
        }
        Err(error) => {
            let failure = Failure {
                message: error.to_string(),
                hint: error.hint(),
                cause: FailureCause::Run,
            };
            verified.errors.push(VerifyError::Pagetide { place: place(), failure });
            None
        }
    }
}

/// The kernel's runs of a variant; `None` without any.
fn kernel_side(
    plan: &RunPlan,
    variant: &Variant,
    side: &KernelSide<'_>,
    jobs: NonZeroUsize,
    tell: &(dyn Fn(VerifyProgress<'_>) + Sync),
    verified: &mut Verification,
) -> Option<KernelReference> {
    let scenario = &plan.scenario;
    let mut fail = |place: String, error: LinuxError| match error {
        LinuxError::Cancelled => verified.cancelled = true,
        error => verified.errors.push(VerifyError::Linux { place, error }),
    };
    let of_variant = format!("variant {}: ", variant.name);
    let added = plan.added.iter().find(|added| added.name == variant.name);
    let (file, options, record, boots) = match side {
        KernelSide::Recorded { dir, file } => {
            let mut reference = KernelReference::load(dir, &scenario.name, &variant.name)
                .map_err(|error| fail(String::new(), error))
                .ok()?;
            let text = scenario_text(file, &scenario.bases).unwrap_or_default();
            let known = !reference.origin.scenario_hash.is_empty();
            if known
                && reference.origin.scenario_hash != scenario_hash(&text, &plan.overrides, added)
            {
                reference.origin.notes.push(ANOTHER_TEXT.to_owned());
            }
            return Some(reference);
        }
        KernelSide::Boot { file, options, record, boots } => (*file, *options, *record, *boots),
    };
    let job = SessionJob {
        file,
        bases: &scenario.bases,
        scenario: &scenario.name,
        variant,
        sets: &plan.overrides,
        added,
    };
    let seeds: Vec<u64> =
        (0..u64::from(scenario.repeats)).map(|n| scenario.seed.wrapping_add(n)).collect();
    let boots = (boots.get() as usize).min(seeds.len());
    let host = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = machines_at_a_time(jobs, variant.setup.machine.cpus, host);
    let is_cancelled =
        || options.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
    let mut records = Vec::new();
    let mut first_origin: Option<ReferenceOrigin> = None;
    let mut booted = 0;
    while booted < boots && !(booted > 0 && is_cancelled()) {
        tell(VerifyProgress::Booting(&variant.name));
        let session = match KernelSession::boot(job, options) {
            Ok(session) => session,
            Err(error) => {
                fail(of_variant, error);
                break;
            }
        };
        let origin = first_origin.get_or_insert_with(|| {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let mut origin = session.origin.clone();
            origin.notes.extend(busy_host(&load, variant.setup.machine.cpus, host));
            origin
        });
        for note in &session.origin.notes {
            if !origin.notes.contains(note) {
                origin.notes.push(note.clone());
            }
        }
        let seeds: Vec<u64> = seeds.iter().copied().skip(booted).step_by(boots).collect();
        for (seed, result) in run_all(&session, &seeds, jobs, tell) {
            match result {
                Ok(record) => records.push(record),
                Err(error) => fail(format!("variant {}, seed {seed}: ", variant.name), error),
            }
        }
        booted += 1;
    }
    records.sort_by_key(|record: &RunRecord| seeds.iter().position(|seed| *seed == record.seed));
    let mut origin = first_origin?;
    if booted > 1 {
        origin.notes.push(format!("runs of {booted} boots; the initial memory is the first one's"));
    }
    if records.is_empty() {
        return None;
    }
    let names = KeyNames::of(&variant.setup);
    let reference = KernelReference::new(&scenario.name, &variant.name, origin, &names, &records);
    // A partial recording must not replace a complete one.
    if let Some(dir) = record.filter(|_| booted == boots && !is_cancelled()) {
        if let Err(error) = reference.save(dir) {
            fail(String::new(), error);
        }
    }
    Some(reference)
}

/// A note if the host has no free CPUs for a guest whose clock is the host's. `load`:
/// /proc/loadavg. The load of the last minute has the guest's boot, which is one thread.
fn busy_host(load: &str, guest_cpus: u16, host: NonZeroUsize) -> Option<String> {
    let load: f64 = load.split(' ').next()?.parse().ok()?;
    let free = host.get() as f64 + 1.0 - load;
    (guest_cpus > 1 && free < f64::from(guest_cpus)).then(|| {
        format!(
            "times say nothing: the clock of a guest with {guest_cpus} CPUs is the host's, and the \
             host was busy (load {load} on {host} CPUs)"
        )
    })
}

/// How many guests run at a time. A guest with several CPUs follows the host's clock: if all guests
/// together had more CPUs than the host, each would stop at times while its clock goes on.
fn machines_at_a_time(jobs: NonZeroUsize, guest_cpus: u16, host: NonZeroUsize) -> NonZeroUsize {
    match guest_cpus {
        0 | 1 => jobs,
        cpus => {
            jobs.min(NonZeroUsize::new(host.get() / usize::from(cpus)).unwrap_or(NonZeroUsize::MIN))
        }
    }
}

/// Runs all seeds, `jobs` at a time; results are in the order of the seeds.
fn run_all(
    session: &KernelSession<'_>,
    seeds: &[u64],
    jobs: NonZeroUsize,
    tell: &(dyn Fn(VerifyProgress<'_>) + Sync),
) -> Vec<(u64, Result<RunRecord, LinuxError>)> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let variant = session.variant();
    tell(VerifyProgress::Running(variant, 0, seeds.len()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.get().min(seeds.len()) {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(&seed) = seeds.get(index) else { break };
                let result = session.run(seed);
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push((index, seed, result));
                tell(VerifyProgress::Running(variant, results.len(), seeds.len()));
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, ..)| *index);
    results.into_iter().map(|(_, seed, result)| (seed, result)).collect()
}

fn simulate(
    scenario: &Scenario,
    variant: &Variant,
    seeds: &[u64],
    simulator: &Simulator,
    jobs: NonZeroUsize,
    cancel: &Arc<AtomicBool>,
    verified: &mut Verification,
) -> Vec<RunRecord> {
    let mut records = Vec::new();
    // A reference may lack seeds of failed runs, so each range of seeds is one plan.
    for chunk in seeds.chunk_by(|a, b| a.wrapping_add(1) == *b) {
        let mut scenario = scenario.clone();
        scenario.variants = vec![variant.clone()];
        scenario.seed = chunk[0];
        scenario.repeats = chunk.len() as u32;
        let Ok(plan) = RunPlan::new(scenario) else { continue };
        for run in execute(&plan, simulator, jobs, cancel, &|_| {}) {
            match run.outcome {
                JobOutcome::Finished(record) => records.push(*record),
                JobOutcome::Failed(failure) => {
                    let place =
                        format!("simulating variant {}, seed {}: ", variant.name, run.job.seed);
                    verified.errors.push(VerifyError::Pagetide { place, failure });
                }
                JobOutcome::Cancelled => verified.cancelled = true,
            }
        }
    }
    records
}

fn add_to(
    sides: &mut ComparedSides,
    reference: &KernelReference,
    variant: &Variant,
    of_several: bool,
) {
    // References in one directory may be of several kernels.
    add_name(&mut sides.kernel, "; ", &reference.origin.kernel);
    let policies = variant.setup.policies.kernel().unwrap_or(reference.policy_set()).name();
    add_name(&mut sides.policies, ", ", policies);
    // Variants may differ in CPUs or memory.
    add_name(&mut sides.how, "; ", &reference.origin.how);
    // The recording may be of the variant without the settings of today.
    let here = not_comparable(&variant.setup, &reference.origin.switches);
    for mut text in reference.origin.not_comparable.iter().cloned().chain(here) {
        if text == DISK_SPEED_FIXED && !reference.disk_latencies.is_empty() {
            DISK_SPEED_SPREAD.clone_into(&mut text);
        }
        if !sides.not_comparable.contains(&text) {
            sides.not_comparable.push(text);
        }
    }
    for note in &reference.origin.notes {
        let note = match of_several {
            true => format!("{}: {note}", reference.variant),
            false => note.clone(),
        };
        if !sides.notes.contains(&note) {
            sides.notes.push(note);
        }
    }
}

/// Adds a name to a text that lists names, unless it has the name.
fn add_name(names: &mut String, between: &str, name: &str) {
    if names.split(between).any(|known| known == name) {
        return;
    }
    if !names.is_empty() {
        *names += between;
    }
    *names += name;
}

/// A note if the simulator's watermarks differ from the kernel's on the same memory.
fn differing_watermarks(start: &StartMemory, variant: &Variant) -> Option<String> {
    let ours = pagetide_sim::watermarks(&variant.setup).ok()?;
    let differ: Vec<String> = start
        .zones
        .iter()
        .zip(ours)
        .filter_map(|(zone, ours)| {
            let linux = [zone.min, zone.low, zone.high];
            (linux != ours).then(|| format!("zone {} Linux {linux:?} Pagetide {ours:?}", zone.name))
        })
        .collect();
    let variant = &variant.name;
    (!differ.is_empty()).then(|| format!("{variant}: watermarks differ: {}", differ.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_host_is_noted_for_guests_on_its_clock() {
        let busy = |load, cpus| busy_host(load, cpus, NonZeroUsize::new(2).unwrap()).is_some();
        assert!(busy("2.50 1.00 1.00 1/99 7", 2) && busy("9.00", 2));
        assert!(!busy("0.90 9.00 9.00 1/99 7", 2), "the boot alone");
        assert!(!busy("9.00 9.00 9.00 1/99 7", 1), "it counts instructions");
        assert!(!busy("", 2));
    }

    #[test]
    fn guests_with_several_cpus_share_no_cpu_of_the_host() {
        let nr = |n| NonZeroUsize::new(n).unwrap();
        let at_a_time = |jobs, cpus, host| machines_at_a_time(nr(jobs), cpus, nr(host)).get();
        assert_eq!(at_a_time(4, 1, 2), 4, "one CPU counts its instructions");
        assert_eq!((at_a_time(4, 2, 8), at_a_time(4, 2, 2), at_a_time(4, 8, 2)), (4, 1, 1));
        assert_eq!((at_a_time(8, 2, 8), at_a_time(1, 2, 8)), (4, 1));
    }
}
