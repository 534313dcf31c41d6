//! From decoded tables to the model: resolves every name and checks every size. After a mistake the
//! checks go on with a stand-in value, so that one run reports all mistakes.

mod asked;
mod caches;
mod expect;
mod files;
mod free_lists;
mod groups;
mod knobs;
mod latency;
mod latency_file;
mod machine;
mod names;
mod object_mix;
mod objects;
pub(crate) mod phases;
mod report;
mod resident;
mod tasks;
mod waiting;
mod watchers;

use super::raw;
use super::span::{clip, ProblemSink, SourceSpan, Spanned};
use crate::model::{Expectation, Reference, Setup};
use crate::workload::WorkloadKeys;
use pagetide_core::config::CgroupVersion;
use pagetide_core::control::GroupControl;
use std::cell::RefCell;

pub use asked::{criterion, may_have_metric, metric_key};
pub use object_mix::parse as object_mix;

/// Pages of the largest machine: 2 TiB.
pub(super) const MACHINE_PAGES_MAX: u64 = 1 << 29;
const TASKS_MAX: usize = 4096;
const PHASES_MAX: usize = 16_384;
/// Default time limit: 1 h.
const DEFAULT_TIME_LIMIT_NS: u64 = 3600 * 1_000_000_000;

/// The setup that the tables describe. Valid only if no mistake was reported.
pub(super) fn setup(raw: &raw::ScenarioTable, at: SourceSpan, sink: &mut ProblemSink) -> Setup {
    let (mut machine, disks) = machine::check(raw, at, sink);
    let list = raw.file.as_deref().unwrap_or_default();
    let mut files = files::check(list, raw.bad.contains(&"file"), &disks, sink);
    let policies = knobs::policies(raw.policy.as_ref(), raw.bad.contains(&"policy"), sink);
    let sysctls = knobs::sysctls(raw.sysctl.as_ref(), &policies, sink);
    let memory = machine.nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(node.memory));
    let removed = raw.workloads().filter_map(|keys| match keys {
        WorkloadKeys::RemoveGroup(keys) => Some(&keys.target.as_ref()?.value),
        _ => None,
    });
    let list = raw.group.as_deref().unwrap_or_default();
    let groups = groups::check(list, raw.bad.contains(&"group"), removed, memory, sink);
    let mixes = RefCell::default();
    let scene = phases::TaskChecks {
        content: machine.content,
        groups: &groups,
        policies: &policies,
        memory,
        managed: machine.managed_memory(),
        mixes: &mixes,
    };
    let tasks = tasks::check(raw, scene, &mut files, at, sink);
    let mixes = mixes.into_inner();
    machine.caches = caches::check(raw, &mixes, sink);
    let without_memory = groups.without_memory;
    let measure = report::measure(raw, &tasks, sink);
    let limit = raw.time_limit.as_ref();
    if let Some(limit) = limit.filter(|limit| limit.value.0 == 0) {
        sink.hinted(limit.span, "the time limit is 0", "leave it out for a limit of 1 h");
    }
    let plugins = knobs::plugins(raw.policy.as_ref(), &policies, sink);
    let mut setup = Setup {
        machine,
        sysctls,
        policies,
        plugins,
        groups: groups.list,
        files: files.list,
        caches: mixes.into_caches(),
        tasks,
        measure,
        requested_group_metrics: report::requested_group_metrics(raw),
        measures_pathologies: report::measures_pathologies(raw),
        time_limit_ns: limit.map_or(DEFAULT_TIME_LIMIT_NS, |limit| limit.value.0),
    };
    watchers::finish(raw, &mut setup, sink);
    resident::check_room(raw, &setup, sink);
    if setup.cgroup_version() == CgroupVersion::V1 {
        let hint =
            "the scenario uses a control file of version 1: leave out that file, or this key";
        if let Some(at) = without_memory {
            sink.hinted(at, "cgroup version 1 has no `cgroup.subtree_control`", hint);
        }
        // Pagetide accepts and obeys the other files of version 2. A limit of swap alone has no
        // effect.
        let at_start = list.iter().flat_map(|group| &group.controls.writes);
        let at_start = at_start.map(|write| (&write.name.value, write.name.span));
        let by_tasks = raw.workloads().filter_map(|workload| match workload {
            WorkloadKeys::WriteControl(keys) => keys.control.as_ref(),
            _ => None,
        });
        let by_tasks = by_tasks.map(|control| (&control.value.0, control.span));
        let swap_max = GroupControl::SwapMax.name();
        for (_, at) in at_start.chain(by_tasks).filter(|(name, _)| *name == swap_max) {
            sink.hinted(at, "cgroup version 1 has no `memory.swap.max`", hint);
        }
    }
    setup
}

/// The knobs of `[fuzz]`. Their paths and values are checked by the search that turns them.
pub(super) fn fuzz_knobs(raw: &raw::ScenarioTable, sink: &mut ProblemSink) -> Vec<String> {
    let knobs = raw.fuzz.iter().flat_map(|fuzz| fuzz.knobs.iter().flatten());
    let mut all = Vec::new();
    for Spanned { value, span } in knobs {
        if value.contains('=') {
            all.push(value.clone());
        } else {
            let message = format!("the knob `{}` has no values", clip(value));
            sink.hinted(*span, message, "write \"vm.swappiness=0..200\" or \"machine.cpus=1,2,8\"");
        }
    }
    all
}

/// The parts that belong to the scenario, not to a variant. `setups`: the setups of the variants
/// that could be read, at least one, with the variants' names; `variants`: all names.
pub(super) fn check_report(
    raw: &raw::ScenarioTable,
    setups: &[(&str, &Setup)],
    variants: &[&str],
    sink: &mut ProblemSink,
) -> (Vec<String>, Option<Reference>, Vec<Expectation>) {
    let (_, setup) = setups[0];
    let rows = report::rows(raw, setup, sink);
    let reference = report::reference(raw, setup, variants, sink);
    let expectations = expect::expectations(raw, setups, variants, sink);
    (rows, reference, expectations)
}
