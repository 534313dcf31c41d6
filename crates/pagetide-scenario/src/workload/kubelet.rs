//! Watcher `kubelet`: the eviction manager, and the control files that kubelet writes for pods.

use super::prelude::*;
use super::watching::WatcherBase;
use crate::load::decode::named;
use crate::load::units::show_size;
use crate::load::watcher_values::{Fraction, KubeQuantity};
use crate::names::names;
use pagetide_watcher::kubelet::{KubeletOptions, MemoryThreshold};
use pagetide_watcher::kubelet_rank::KubeletPod;
use pagetide_watcher::memory_qos::{MemoryQos, ReservationPolicy, SwapBehavior};

const SECOND: u64 = 1_000_000_000;
/// Pods of at least this priority are critical (`SystemCriticalPriority`).
const CRITICAL_PRIORITY: i64 = 2_000_000_000;

names! {
    /// memoryReservationPolicy of kubelet.
    "reservation policy" ReservationKind {
        /// No protection.
        None = "None",
        /// memory.min of guaranteed pods and memory.low of burstable pods are their requests.
        TieredReservation = "TieredReservation",
    }
}

names! {
    /// memorySwap.swapBehavior of kubelet.
    "swap behavior" SwapKind {
        /// Pods have no swap.
        NoSwap = "NoSwap",
        /// Burstable pods have the share of the swap that their request has of the memory.
        LimitedSwap = "LimitedSwap",
    }
}
named!(ReservationKind, SwapKind);

table! {
    /// A pod: a group, with what its manifest says about memory.
    PodTable as "Pod" of "the pod" {
        /// The group. If it has copies, each is a pod.
        group: Spanned<GroupTarget> => required "\"web\"",
        /// spec.priority (default 0).
        priority: Spanned<Int<{ -2_147_483_648 }, 2_147_483_647>> = Int(0),
        /// Request of memory (default: none).
        request: Spanned<KubeQuantity> = KubeQuantity::bytes(0),
        /// Limit of memory, written to memory.max (default: none).
        limit: Spanned<KubeQuantity>,
        /// A static pod: never evicted (default: only with a priority of 2000000000 or more).
        critical: Spanned<bool> = false,
    }
}

table! {
    /// The eviction manager of kubelet.
    KubeletKeys of "the watcher kubelet" {
        /// evictionHard of memory.available (default "100Mi"); "0%" switches it off.
        memory_available: Spanned<KubeQuantity> = KubeQuantity::bytes(100 << 20),
        /// evictionSoft of memory.available (default: none).
        memory_available_soft: Spanned<KubeQuantity>,
        /// evictionSoftGracePeriod, required with the soft threshold.
        soft_grace_period: Spanned<Time>,
        /// evictionMinimumReclaim (default: none).
        minimum_reclaim: Spanned<KubeQuantity>,
        /// evictionPressureTransitionPeriod (default 5min).
        pressure_transition_period: Spanned<Time> = Time(300 * SECOND),
        /// evictionMaxPodGracePeriod, for the soft threshold (default 0).
        max_pod_grace_period: Spanned<Time> = Time(0),
        /// Time between two looks (default 10s).
        monitoring_interval: Spanned<Time> = Time(10 * SECOND),
        /// Least time between two figures of a pod in cAdvisor (default 10s).
        housekeeping_interval: Spanned<Time> = Time(10 * SECOND),
        /// The group of all pods. With a limit, allocatableMemory.available is a signal, too.
        kubepods: Spanned<GroupTarget>,
        /// The pods.
        pod: Vec<PodTable>,
        /// memoryThrottlingFactor: writes memory.high of pods that are not guaranteed (default: not).
        memory_throttling_factor: Spanned<Fraction>,
        /// memoryReservationPolicy (default "None").
        memory_reservation_policy: Spanned<ReservationKind> = ReservationKind::None,
        /// memorySwap.swapBehavior: writes memory.swap.max of pods (default: not written).
        swap_behavior: Spanned<SwapKind>,
        /// Memory of its own that it uses at each look (default 64MiB).
        footprint: Spanned<Size> = Size(64 << 20),
        /// Its memory is locked (default false).
        locked: Spanned<bool> = false,
        /// CPU time of a look in addition to the time for reading (default 0).
        compute: Spanned<Time> = Time(0),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletWatcher {
    pub base: WatcherBase,
    /// Groups are indices into [`Setup::groups`](crate::model::Setup::groups).
    pub options: KubeletOptions,
    pub kubepods: Option<usize>,
    /// Values of the control files that kubelet writes for pods, without the sizes of the machine.
    pub qos: MemoryQos,
}

impl WorkloadSpec for KubeletWatcher {
    type Keys = KubeletKeys;

    fn check(keys: &KubeletKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let footprint = (keys.footprint(), keys.footprint.as_ref());
        let base = WatcherBase::check(footprint, keys.locked(), keys.compute(), phases, sink);
        let memory = phases.scene.managed;
        let hard = keys.memory_available.as_ref();
        let soft = keys.memory_available_soft.as_ref();
        for at in [hard, soft].into_iter().flatten() {
            report_threshold(at, memory, sink);
        }
        let soft = match (soft, &keys.soft_grace_period) {
            (Some(soft), Some(grace)) => Some((soft.value.0, grace.value.0)),
            (Some(soft), None) => {
                let hint = "add soft_grace_period = \"90s\", for example";
                let message = "grace period must be specified for the soft eviction threshold";
                sink.hinted(soft.span, message, hint);
                None
            }
            (None, Some(grace)) => {
                let hint = "add memory_available_soft = \"500Mi\", or leave it out";
                sink.hinted(grace.span, "`soft_grace_period` needs a soft threshold", hint);
                None
            }
            (None, None) => None,
        };
        if let Some(at) = keys.monitoring_interval.as_ref().filter(|at| at.value.0 == 0) {
            sink.hinted(at.span, "the interval is 0", "write monitoring_interval = \"10s\"");
            return None;
        }
        let kubepods = match &keys.kubepods {
            Some(group) => Some(phases.scene.groups.with_memory(group, "memory.max", sink)?),
            None => None,
        };
        let is_off = |threshold: &MemoryThreshold| {
            matches!(threshold, MemoryThreshold::Share(0 | 10_000))
        };
        let options = KubeletOptions {
            hard: Some(keys.memory_available().0).filter(|threshold| !is_off(threshold)),
            soft: soft.filter(|(threshold, _)| !is_off(threshold)),
            minimum_reclaim: keys.minimum_reclaim.as_ref().map(|at| at.value.0),
            transition_period_ns: keys.pressure_transition_period().0,
            max_pod_grace_ns: keys.max_pod_grace_period().0,
            monitoring_interval_ns: keys.monitoring_interval().0,
            housekeeping_interval_ns: keys.housekeeping_interval().0,
            pods: pods(keys, phases, sink)?,
        };
        let qos = MemoryQos {
            throttling_factor: keys.memory_throttling_factor.as_ref().map(|at| at.value.0 / 100),
            reservation: match keys.memory_reservation_policy() {
                ReservationKind::None => ReservationPolicy::None,
                ReservationKind::TieredReservation => ReservationPolicy::TieredReservation,
            },
            swap: keys.swap_behavior.as_ref().map(|at| match at.value {
                SwapKind::NoSwap => SwapBehavior::NoSwap,
                SwapKind::LimitedSwap => SwapBehavior::LimitedSwap,
            }),
            capacity: memory,
            allocatable: memory,
            swap_total: 0,
            page_size: sink.page_size.bytes(),
        };
        Some(KubeletWatcher { base: base?, options, kubepods, qos })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        self.base.stages(phase, planner)
    }

    fn missing_end(&self) -> Option<&'static str> {
        Some("until")
    }
}

/// Reports a threshold that is always or never met. `memory`: bytes of the machine.
fn report_threshold(at: &Spanned<KubeQuantity>, memory: u64, sink: &mut ProblemSink) {
    let KubeQuantity(MemoryThreshold::Bytes(bytes)) = at.value else { return };
    if bytes == 0 {
        let hint = "write \"100Mi\", for example, or \"0%\" for no threshold";
        sink.hinted(at.span, "eviction threshold memory.available must be positive", hint);
    } else if memory > 0 && bytes >= memory {
        let message = format!(
            "the threshold {} is not below the memory of the machine, {}: every look would evict",
            show_size(bytes),
            show_size(memory)
        );
        sink.hinted(at.span, message, "write a smaller threshold, or a percentage like \"10%\"");
    }
}

fn pods(
    keys: &KubeletKeys,
    phases: &Phases<'_, '_>,
    sink: &mut ProblemSink,
) -> Option<Vec<KubeletPod>> {
    let mut pods: Vec<KubeletPod> = Vec::new();
    let mut is_whole = true;
    for pod in keys.pod.iter().flatten() {
        let bytes = |at: Option<&Spanned<KubeQuantity>>, sink: &mut ProblemSink| match at {
            Some(Spanned { value: KubeQuantity(MemoryThreshold::Share(_)), span }) => {
                sink.hinted(*span, "a request or limit is no percentage", "write \"500Mi\"");
                None
            }
            // 0 counts as not set.
            Some(Spanned { value: KubeQuantity(MemoryThreshold::Bytes(bytes)), .. }) => {
                Some(*bytes).filter(|bytes| *bytes > 0)
            }
            None => None,
        };
        let given = bytes(pod.request.as_ref(), sink);
        let limit = bytes(pod.limit.as_ref(), sink);
        if let (Some(request), Some(limit), Some(at)) = (given, limit, &pod.limit) {
            if limit < request {
                sink.push(SpannedProblem {
                    span: at.span,
                    message: "the limit of the pod is below its request".into(),
                    hint: Some("write request <= limit: Kubernetes refuses such a pod".into()),
                    also: pod.request.as_ref().map(|at| (at.span, "the request".into())),
                });
            }
        }
        // Without a request, it is the limit.
        let request = given.or(limit).unwrap_or(0);
        let Some(target) = pod.group(sink) else {
            is_whole = false;
            continue;
        };
        let groups = phases.scene.groups.every_copy(target, "memory.current", sink);
        is_whole &= !groups.is_empty();
        for group in groups {
            if pods.iter().any(|other| other.group == group as u32) {
                let message = format!("`{}` is a pod twice", clip(&target.value.0));
                sink.hinted(target.span, message, "leave out one of them");
                continue;
            }
            let priority = pod.priority().0;
            pods.push(KubeletPod {
                group: group as u32,
                priority: i32::try_from(priority).unwrap_or(0),
                request,
                limit,
                is_critical: pod.critical() || priority >= CRITICAL_PRIORITY,
            });
        }
    }
    if pods.is_empty() && is_whole && !keys.bad.contains(&"pod") {
        let hint = "add [[watcher.pod]] with group = \"NAME\"";
        sink.hinted(keys.at, "kubelet has no pod to evict", hint);
    }
    is_whole.then_some(pods)
}
