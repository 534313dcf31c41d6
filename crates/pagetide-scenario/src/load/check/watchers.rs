//! Watchers and the rest of the setup: the control files that kubelet writes for its pods, and the
//! cgroup version that the watchers need.

use crate::load::raw;
use crate::load::span::{clip, ProblemSink, SourceSpan};
use crate::load::units::show_size;
use crate::model::{KubeletWatcher, ReclaimLoopRule, Setup, TargetWrite, Workload, WriteControl};
use crate::names::near;
use crate::workload::WorkloadKeys;
use pagetide_core::config::CgroupVersion;
use pagetide_core::control::{GroupControl, GroupControlWrite};
use pagetide_watcher::memory_qos::PodFiles;
use std::collections::BTreeMap;

/// Adds the writes of each kubelet to the groups of its pods, and reports watchers that need
/// cgroup version 2.
pub(super) fn finish(raw: &raw::ScenarioTable, setup: &mut Setup, sink: &mut ProblemSink) {
    let places: Vec<SourceSpan> = raw
        .workloads()
        .filter_map(|keys| match keys {
            WorkloadKeys::Kubelet(keys) => Some(keys.at),
            _ => None,
        })
        .collect();
    let tasks = setup.tasks.iter();
    let kubelets = tasks.filter_map(|task| match task.phases.first().map(|it| &it.workload) {
        Some(Workload::Kubelet(kubelet)) => Some((kubelet.clone(), task.never_starts())),
        _ => None,
    });
    let kubelets: Vec<(KubeletWatcher, bool)> = kubelets.collect();
    for ((kubelet, is_off), at) in kubelets.iter().zip(places) {
        if !is_off {
            write_pod_files(kubelet, at, setup, sink);
        }
    }
    report_patterns(raw, setup, sink);
    report_unlimited(raw, setup, sink);
    if setup.cgroup_version() == CgroupVersion::V1 {
        for keys in raw.workloads() {
            let (at, file) = match keys {
                WorkloadKeys::SystemdOomd(keys) => (keys.at, "memory.pressure"),
                WorkloadKeys::ReclaimLoop(keys) => (keys.at, "memory.reclaim"),
                WorkloadKeys::Kubelet(keys) if keys.memory_throttling_factor.is_some() => {
                    (keys.at, "memory.high")
                }
                _ => continue,
            };
            let message = format!("cgroup version 1 has no `{file}`, which this watcher needs");
            let hint = "the scenario uses a control file of version 1: leave out that file";
            sink.hinted(at, message, hint);
        }
    }
}

/// Reports names of earlyoom's options that no task has.
fn report_patterns(raw: &raw::ScenarioTable, setup: &Setup, sink: &mut ProblemSink) {
    let names = || setup.tasks.iter().map(|task| task.name.as_str());
    for keys in raw.workloads() {
        let WorkloadKeys::Earlyoom(keys) = keys else { continue };
        let lists = [&keys.prefer, &keys.avoid, &keys.ignore];
        for pattern in lists.into_iter().flatten().flatten() {
            if names().any(|name| near::matches(&pattern.value, name)) {
                continue;
            }
            let message = format!("no task is called `{}`", clip(&pattern.value));
            let hint = match near::nearest(&pattern.value, names()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => {
                    "a task with copies has the names `NAME.0`, `NAME.1`, ...: write \"NAME.*\""
                        .into()
                }
            };
            sink.hinted(pattern.span, message, hint);
        }
    }
}

/// Reports loops of koordinator for groups that never have a limit.
fn report_unlimited(raw: &raw::ScenarioTable, setup: &Setup, sink: &mut ProblemSink) {
    let is_limit = |control| matches!(control, GroupControl::Max | GroupControl::LimitInBytes);
    let phases = || setup.tasks.iter().flat_map(|task| &task.phases).map(|phase| &phase.workload);
    let keys = raw.workloads().filter_map(|keys| match keys {
        WorkloadKeys::ReclaimLoop(keys) => Some(keys),
        _ => None,
    });
    let loops = phases().filter_map(|workload| match workload {
        Workload::ReclaimLoop(of) => Some(of),
        _ => None,
    });
    for (of, keys) in loops.zip(keys) {
        let (ReclaimLoopRule::Koordinator(_), Some(at)) = (of.rule, &keys.target) else { continue };
        let group = &setup.groups[of.target];
        let is_written = phases().any(|workload| {
            matches!(workload, Workload::WriteControl(WriteControl {
                write: TargetWrite::Group(to, write),
            }) if *to == of.target && is_limit(write.control))
        });
        if !is_written && !group.controls.iter().any(|write| is_limit(write.control)) {
            let message = format!("koordinator does nothing: `{}` has no memory.max", group.name);
            sink.hinted(at.span, message, "add memory.max to the group");
        }
    }
}

fn write_pod_files(
    kubelet: &KubeletWatcher,
    at: SourceSpan,
    setup: &mut Setup,
    sink: &mut ProblemSink,
) {
    let mut qos = kubelet.qos;
    let swap = setup.machine.swap.iter().map(|area| area.size);
    qos.swap_total = swap.fold(0, u64::saturating_add);
    let limit = kubelet.kubepods.and_then(|group| {
        let of = &setup.groups[group].controls;
        let max = of.iter().find(|write| write.control == GroupControl::Max)?;
        max.to_string().trim().parse().ok()
    });
    qos.allocatable = limit.unwrap_or(qos.allocatable);
    // Protection of a pod needs that of the groups above it.
    let mut above: BTreeMap<(usize, GroupControl), u64> = BTreeMap::new();
    for pod in &kubelet.options.pods {
        let group = pod.group as usize;
        let PodFiles { min, low, high, max, swap_max } = qos.files(pod);
        for (control, value) in [
            (GroupControl::Min, min),
            (GroupControl::Low, low),
            (GroupControl::High, high),
            (GroupControl::Max, max),
            (GroupControl::SwapMax, swap_max),
        ] {
            let Some(bytes) = value else { continue };
            write(setup, group, control, bytes, at, sink);
            if matches!(control, GroupControl::Min | GroupControl::Low) {
                let parents = std::iter::successors(setup.groups[group].parent, |&parent| {
                    setup.groups[parent].parent
                });
                for parent in parents {
                    let sum = above.entry((parent, control)).or_default();
                    *sum = sum.saturating_add(bytes);
                }
            }
        }
    }
    for ((group, control), bytes) in above {
        write(setup, group, control, bytes, at, sink);
    }
}

/// Adds a write to a group; the scenario must not write the same file.
fn write(
    setup: &mut Setup,
    group: usize,
    control: GroupControl,
    bytes: u64,
    at: SourceSpan,
    sink: &mut ProblemSink,
) {
    let of = &mut setup.groups[group];
    let file = control.name();
    if let Some(there) = of.controls.iter().find(|write| write.control == control) {
        let message = format!(
            "kubelet writes {} to {file} of `{}`, which has `{there}` already",
            show_size(bytes),
            of.name
        );
        sink.hinted(at, message, format!("leave out {file} of the group, or the key of kubelet"));
        return;
    }
    if let Ok(write) = GroupControlWrite::read(file, &bytes.to_string()) {
        of.controls.push(write);
    }
}
