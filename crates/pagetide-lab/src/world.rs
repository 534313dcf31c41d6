//! The door to whatever performs a run: the simulator today, other worlds later.

use crate::execute::room;
use pagetide_scenario::model::Variant;
use pagetide_scenario::record::RunRecord;
pub use pagetide_sim::observe::Sink;
use pagetide_sim::policy::Plugins;
use pagetide_sim::{RunOptions, SimError};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::Arc;

/// Performs runs. A run is a pure function of its arguments; `watch` may only end it early.
pub trait World: Sync {
    /// Runs `variant` of the scenario called `scenario` with `seed`.
    fn run(
        &self,
        scenario: &str,
        variant: &Variant,
        seed: u64,
        watch: &Watch,
    ) -> Result<RunRecord, Failure>;

    /// Bytes of this computer's memory that a run of `variant` takes at most, as far as that is known.
    fn room(&self, variant: &Variant) -> u64 {
        let _ = variant;
        0
    }
}

impl<F> World for F
where
    F: Fn(&str, &Variant, u64, &Watch) -> Result<RunRecord, Failure> + Sync,
{
    fn run(
        &self,
        scenario: &str,
        variant: &Variant,
        seed: u64,
        watch: &Watch,
    ) -> Result<RunRecord, Failure> {
        self(scenario, variant, seed, watch)
    }
}

/// Strings attached to a run in progress.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Set when the user wants no more; the run should end soon, with any error.
    pub cancel: Arc<AtomicBool>,
    /// Virtual nanoseconds done so far, stored by the world now and then.
    pub clock: Arc<AtomicU64>,
}

/// Why a run has no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// One sentence.
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
    /// What is to blame.
    pub cause: Cause,
}

/// What is to blame for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The scenario asks for something that cannot be.
    Scenario,
    /// The run itself went wrong.
    Run,
}

/// The simulated machine.
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    /// Whether records carry the final /proc-like files.
    pub want_files: bool,
    /// Records of runs with this seed carry samples of who has how much memory over time.
    pub timeline_seed: Option<u64>,
    /// Whether records carry the distributions of latencies.
    pub want_latencies: bool,
    /// Policies that a scenario may choose besides the built-in ones.
    pub plugins: Plugins,
    /// The run that is observed, if one is.
    pub observed: Option<Observed>,
}

/// One run that is written down step by step ([`crate::traces`]).
#[derive(Clone, Debug)]
pub struct Observed {
    /// Name of its variant.
    pub variant: String,
    pub seed: u64,
    /// Who is told.
    pub sinks: Vec<Sink>,
}

impl World for Simulator {
    fn room(&self, variant: &Variant) -> u64 {
        room::needed(variant)
    }

    fn run(
        &self,
        scenario: &str,
        variant: &Variant,
        seed: u64,
        watch: &Watch,
    ) -> Result<RunRecord, Failure> {
        let is_wanted = |of: &&Observed| of.variant == variant.name && of.seed == seed;
        let options = RunOptions {
            want_files: self.want_files,
            want_timeline: self.timeline_seed == Some(seed),
            want_latencies: self.want_latencies,
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
        pagetide_sim::run(scenario, variant, seed, &options).map_err(|error| Failure {
            cause: match &error {
                SimError::Setup(_)
                | SimError::Room { .. }
                | SimError::Control(_)
                | SimError::Group { .. }
                | SimError::Cache { .. }
                | SimError::Tuning { .. }
                | SimError::Plugin(_)
                | SimError::Plugins(_)
                | SimError::Program(_) => Cause::Scenario,
                SimError::World(_) | SimError::Unwritten(_) | SimError::Cancelled => Cause::Run,
            },
            hint: error.hint(),
            message: error.to_string(),
        })
    }
}
