//! `workload = "kernel-objects"`: allocates the units of an object mix, one after another.

use super::prelude::*;
use super::objects::{self, Units};
use crate::model::object_mix::ObjectMix;
use std::path::PathBuf;
use std::sync::Arc;

table! {
    /// Allocates and frees kernel objects like recorded work.
    KernelObjectsKeys of "workload kernel-objects" {
        /// Object mix, relative to the file that names it.
        mix: Spanned<String> => required "\"objects/compile.toml\"",
        /// Number of units.
        units: Spanned<Int<1, { u32::MAX as i64 }>> => required "100",
        /// Time from the start of one unit to the start of the next (default 0: at once).
        interval: Spanned<Time> = Time(0),
        /// CPU time of a unit, spread over its allocations (default 0).
        compute: Spanned<Time> = Time(0),
        /// Starts with the mix's start-up part, which stays until the task ends (default false).
        start_unit: Spanned<bool> = false,
    }
}

/// Units of an object mix.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelObjects {
    /// The mix; [`Setup::caches`](crate::model::Setup::caches) contains all its caches.
    pub mix: Arc<ObjectMix>,
    /// The file of the mix.
    pub path: PathBuf,
    pub units: u32,
    /// Time from the start of one unit to the start of the next, unless the unit takes longer.
    pub interval_ns: u64,
    /// CPU time of a unit, spread evenly over its allocations.
    pub compute_ns: u64,
    /// Whether the mix's start-up part comes first.
    pub start: bool,
}

impl WorkloadSpec for KernelObjects {
    type Keys = KernelObjectsKeys;

    fn check(keys: &KernelObjectsKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let path = keys.mix(sink);
        let units = keys.units(sink);
        let path = path?;
        let mix = phases.mix(path, sink)?;
        let start = keys.start_unit.as_ref().filter(|start| start.value);
        if let (Some(start), true) = (start, mix.start_rows.is_empty()) {
            let message = format!("the mix `{}` has no start-up part", clip(&path.value));
            sink.hinted(start.span, message, "leave it out, or add a [[start_cache]] to the mix");
        }
        Some(KernelObjects {
            mix,
            path: sink.path(path),
            units: units?.value.into(),
            interval_ns: keys.interval().0,
            compute_ns: keys.compute().0,
            start: keys.start_unit(),
        })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let KernelObjects { mix, path: _, units, interval_ns, compute_ns, start } = self;
        let (units, interval_ns, compute_ns) = (*units, *interval_ns, *compute_ns);
        let start = start.then(|| Units::new(planner, &mix.start_rows, 1, 0, compute_ns));
        let all = Units::new(planner, &mix.rows, units, interval_ns, compute_ns);
        start.into_iter().chain([all]).map(objects::stage).collect()
    }
}
