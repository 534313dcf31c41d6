//! The interface to what performs a run: today the simulator.

use crate::execute::room;
use pagetide_scenario::model::Variant;
use pagetide_scenario::record::RunRecord;
pub use pagetide_sim::observe::ObserverHandle;
use pagetide_sim::policy::Plugins;
use pagetide_sim::{RunOptions, SimError};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::Arc;

/// Performs runs. A run is a pure function of its arguments, except that `watch` may end it early.
pub trait RunBackend: Sync {
    /// Runs `variant` of the scenario called `scenario` with `seed`.
    fn run(
        &self,
        scenario: &str,
        variant: &Variant,
        seed: u64,
        watch: &RunControl,
    ) -> Result<RunRecord, Failure>;

    /// Upper bound of the bytes of this computer that a run of `variant` needs; 0 if unknown.
    fn room(&self, variant: &Variant) -> u64 {
        let _ = variant;
        0
    }
}

impl<F> RunBackend for F
where
    F: Fn(&str, &Variant, u64, &RunControl) -> Result<RunRecord, Failure> + Sync,
{
    fn run(
        &self,
        scenario: &str,
        variant: &Variant,
        seed: u64,
        watch: &RunControl,
    ) -> Result<RunRecord, Failure> {
        self(scenario, variant, seed, watch)
    }
}

/// Control of an active run.
#[derive(Clone, Debug, Default)]
pub struct RunControl {
    /// Set when the user cancels; the run should end soon with any error.
    pub cancel: Arc<AtomicBool>,
    /// Virtual nanoseconds done so far, updated now and then.
    pub clock: Arc<AtomicU64>,
}

/// Why a run has no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// One sentence.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
    pub cause: FailureCause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The scenario is impossible.
    Scenario,
    /// The run itself went wrong.
    Run,
}

/// The simulated machine.
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    /// Whether records have the final /proc-like files.
    pub want_files: bool,
    /// Records of runs with this seed have a timeline.
    pub timeline_seed: Option<u64>,
    /// Whether records have latency distributions.
    pub want_latencies: bool,
    /// Audit all state after so many events and at the end; 0: never.
    pub audit_every: u64,
    /// Plug-in policies.
    pub plugins: Plugins,
    pub observed: Option<TracedRun>,
}

/// A run that is traced (crate `pagetide-export`).
#[derive(Clone, Debug)]
pub struct TracedRun {
    pub variant: String,
    pub seed: u64,
    pub sinks: Vec<ObserverHandle>,
}

impl RunBackend for Simulator {
    fn room(&self, variant: &Variant) -> u64 {
        room::needed(variant)
    }

    fn run(
        &self,
        scenario: &str,
        variant: &Variant,
        seed: u64,
        watch: &RunControl,
    ) -> Result<RunRecord, Failure> {
        let is_wanted = |of: &&TracedRun| of.variant == variant.name && of.seed == seed;
        let options = RunOptions {
            want_files: self.want_files,
            want_timeline: self.timeline_seed == Some(seed),
            want_latencies: self.want_latencies,
            audit_every: self.audit_every,
            plugins: self.plugins.clone(),
            observers: self
                .observed
                .as_ref()
                .filter(is_wanted)
                .map_or_else(Vec::new, |of| of.sinks.clone()),
            cancel: Some(Arc::clone(&watch.cancel)),
            progress: Some(Arc::clone(&watch.clock)),
            ..RunOptions::default()
        };
        pagetide_sim::run(scenario, variant, seed, &options).map_err(Failure::from)
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        Failure {
            cause: match &error {
                SimError::Setup(_)
                | SimError::Room { .. }
                | SimError::Control(_)
                | SimError::Group { .. }
                | SimError::Cache { .. }
                | SimError::Tuning { .. }
                | SimError::Plugin(_)
                | SimError::Plugins(_)
                | SimError::Program(_) => FailureCause::Scenario,
                SimError::World(_) | SimError::Unwritten(_) | SimError::Cancelled => {
                    FailureCause::Run
                }
            },
            hint: error.hint(),
            message: error.to_string(),
        }
    }
}
