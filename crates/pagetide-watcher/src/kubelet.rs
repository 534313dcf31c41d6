//! The eviction manager of kubelet, for memory.
//!
//! Kubernetes 1.32 to 1.37: `synchronize`, `waitForPodsCleanup`
//! (pkg/kubelet/eviction/eviction_manager.go), `thresholdsMet`, `thresholdsMetGracePeriod`
//! (helpers.go), `cadvisorInfoToCPUandMemoryStats` (pkg/kubelet/stats/helper.go), housekeeping of
//! cAdvisor (manager/container.go).
//!
//! * `memory.available` is the capacity minus the working set of the root group. On cgroup version
//!   2, the use of the root is MemTotal - MemFree, and the working set is the use without
//!   `inactive_file`. kubelet asks cAdvisor for new figures of the node in each synchronisation.
//! * The figures of pods are those of cAdvisor's last housekeeping: 10 to 20 s apart, because
//!   cAdvisor adds a random time of up to the interval.
//! * At most one pod is evicted in a synchronisation. kubelet then waits until the pod is gone, for
//!   at most 30 s, and synchronises again at once.
//!
//! Kernel memcg notification does nothing on cgroup version 2 (`NewCgroupNotifier`). A percentage is
//! in hundredths of a percent; kubelet's is a 32-bit float, so its threshold is up to 10^-7 larger
//! or smaller. A pod that ignores SIGTERM is killed when its grace period is over, at least 1 s
//! (`calculateEffectiveGracePeriod`).

use crate::act::{SentSignal, WatcherAct, WatcherDeed, WatcherStep};
use crate::kubelet_rank::{rank, KubeletPod, RankedPod};
use crate::{MS, SECOND};
use std::collections::BTreeMap;

/// Grace period of a pod at a hard threshold (`immediateEvictionGracePeriodSeconds`, since 1.30).
const HARD_GRACE: u64 = SECOND;
const CLEANUP_TIMEOUT: u64 = 30 * SECOND;
const CLEANUP_POLL: u64 = SECOND;
/// Interval at which the end of the pod's processes is noticed; the container runtime waits for
/// them.
const TERMINATION_POLL: u64 = 100 * MS;

/// A threshold or a minimum of reclaim (`ThresholdValue`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryThreshold {
    Bytes(u64),
    /// Hundredths of a percent of the capacity.
    Share(u64),
}

impl MemoryThreshold {
    pub fn bytes(self, capacity: u64) -> u64 {
        match self {
            MemoryThreshold::Bytes(bytes) => bytes,
            MemoryThreshold::Share(share) => {
                (u128::from(capacity) * u128::from(share) / 10_000) as u64
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletOptions {
    /// `evictionHard`, signal memory.available.
    pub hard: Option<MemoryThreshold>,
    /// `evictionSoft` with `evictionSoftGracePeriod`.
    pub soft: Option<(MemoryThreshold, u64)>,
    /// `evictionMinimumReclaim`.
    pub minimum_reclaim: Option<MemoryThreshold>,
    /// `evictionPressureTransitionPeriod`.
    pub transition_period_ns: u64,
    /// `evictionMaxPodGracePeriod`, for soft thresholds.
    pub max_pod_grace_ns: u64,
    /// Time between two synchronisations.
    pub monitoring_interval_ns: u64,
    /// Shortest time between two figures of a pod; 0: each synchronisation has new ones.
    pub housekeeping_interval_ns: u64,
    pub pods: Vec<KubeletPod>,
}

impl Default for KubeletOptions {
    fn default() -> KubeletOptions {
        KubeletOptions {
            hard: Some(MemoryThreshold::Bytes(100 << 20)),
            soft: None,
            minimum_reclaim: None,
            transition_period_ns: 300 * SECOND,
            max_pod_grace_ns: 0,
            monitoring_interval_ns: 10 * SECOND,
            housekeeping_interval_ns: 10 * SECOND,
            pods: Vec::new(),
        }
    }
}

/// Use of a group in bytes, as cAdvisor reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUse {
    pub usage: u64,
    pub inactive_file: u64,
}

impl GroupUse {
    pub fn working_set(self) -> u64 {
        self.usage.saturating_sub(self.inactive_file)
    }
}

/// A pod at a wake-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodReading {
    pub used: GroupUse,
    pub nr_processes: u64,
    /// Processes that have had a signal. A process that starts later is of the next pod.
    pub nr_ending: u64,
}

/// The readings of kubelet at a wake-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletReading {
    /// MemTotal in bytes.
    pub capacity: u64,
    pub node: GroupUse,
    /// The kubepods group, if it has a limit: the limit, and its use.
    pub kubepods: Option<(u64, GroupUse)>,
    /// By the order of [`KubeletOptions::pods`].
    pub pods: Vec<PodReading>,
    /// A random number, for the time of the next housekeeping.
    pub draw: u64,
}

/// `memory.available`, or `allocatableMemory.available` of the kubepods group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EvictionSignal {
    Memory,
    Allocatable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Threshold {
    signal: EvictionSignal,
    value: MemoryThreshold,
    /// `None`: a hard threshold.
    grace_ns: Option<u64>,
}

impl Threshold {
    /// Place in the list of thresholds: kubelet keeps the order of its configuration.
    fn place(&self) -> (bool, EvictionSignal) {
        (self.grace_ns.is_some(), self.signal)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KubeletStage {
    Synchronize,
    /// The pod has got SIGTERM; SIGKILL follows at the time, if it has not been sent.
    Stops {
        pod: usize,
        kill_at: Option<u64>,
    },
    /// All processes of the pod have ended.
    Cleans {
        pod: usize,
        until: u64,
    },
}

#[derive(Clone, Debug)]
pub struct Kubelet {
    options: KubeletOptions,
    stage: KubeletStage,
    next_sync: u64,
    next_housekeeping: u64,
    /// Figures of the pods at the last housekeeping.
    figures: Vec<Option<GroupUse>>,
    first_met: BTreeMap<(bool, EvictionSignal), u64>,
    /// Thresholds that were met with their grace period at the last synchronisation.
    met: Vec<Threshold>,
    pressure_seen: Option<u64>,
    has_pressure: bool,
    nr_looks: u64,
}

impl Kubelet {
    pub fn new(options: KubeletOptions) -> Kubelet {
        Kubelet {
            stage: KubeletStage::Synchronize,
            next_sync: 0,
            next_housekeeping: 0,
            figures: vec![None; options.pods.len()],
            first_met: BTreeMap::new(),
            met: Vec::new(),
            pressure_seen: None,
            has_pressure: false,
            nr_looks: 0,
            options,
        }
    }

    /// The node condition MemoryPressure.
    pub fn has_pressure(&self) -> bool {
        self.has_pressure
    }

    /// Times that the eviction manager or cAdvisor has read the files of memory. The wait for the end
    /// of a pod reads none.
    pub fn nr_looks(&self) -> u64 {
        self.nr_looks
    }

    pub fn pods(&self) -> &[KubeletPod] {
        &self.options.pods
    }

    pub fn wake(&mut self, now_ns: u64, read: &KubeletReading) -> WatcherStep {
        if self.next_housekeeping <= now_ns {
            self.nr_looks += 1;
            self.figures = read.pods.iter().map(|pod| Some(pod.used)).collect();
            let interval = self.options.housekeeping_interval_ns;
            let jitter = if interval > 0 { read.draw % interval } else { 0 };
            self.next_housekeeping = now_ns + interval + jitter;
        }
        let is_gone = |pod: usize| read.pods.get(pod).is_none_or(|pod| pod.nr_ending == 0);
        let mut deeds = Vec::new();
        match self.stage {
            KubeletStage::Synchronize => {}
            KubeletStage::Stops { pod, .. } if is_gone(pod) => {
                self.stage = KubeletStage::Cleans { pod, until: now_ns + CLEANUP_TIMEOUT };
                self.next_sync = now_ns + CLEANUP_POLL;
            }
            KubeletStage::Stops { pod, kill_at } => {
                self.next_sync = now_ns + TERMINATION_POLL;
                if kill_at.is_some_and(|at| at <= now_ns) {
                    let group = self.options.pods[pod].group;
                    let act = WatcherAct::SignalGroup { group, signal: SentSignal::Kill };
                    deeds.push(WatcherDeed { act, why: "its grace period is over".into() });
                    self.stage = KubeletStage::Stops { pod, kill_at: None };
                }
            }
            KubeletStage::Cleans { pod, until } => {
                self.next_sync = now_ns + CLEANUP_POLL;
                if is_gone(pod) || until <= now_ns {
                    self.stage = KubeletStage::Synchronize;
                    self.next_sync = now_ns;
                }
            }
        }
        if self.stage == KubeletStage::Synchronize && self.next_sync <= now_ns {
            self.next_sync = now_ns + self.options.monitoring_interval_ns;
            self.nr_looks += 1;
            deeds.extend(self.synchronize(now_ns, read));
        }
        let housekeeping = match self.options.housekeeping_interval_ns {
            0 => u64::MAX,
            _ => self.next_housekeeping,
        };
        let kill_at = match self.stage {
            KubeletStage::Stops { kill_at: Some(at), .. } => at,
            _ => u64::MAX,
        };
        WatcherStep {
            deeds,
            wake_ns: self.next_sync.min(housekeeping).min(kill_at.max(now_ns + 1)),
        }
    }

    fn thresholds(&self, read: &KubeletReading) -> Vec<Threshold> {
        let hard =
            |signal| self.options.hard.map(|value| Threshold { signal, value, grace_ns: None });
        let soft = self.options.soft.map(|(value, grace)| Threshold {
            signal: EvictionSignal::Memory,
            value,
            grace_ns: Some(grace),
        });
        let allocatable = read.kubepods.and_then(|_| hard(EvictionSignal::Allocatable));
        hard(EvictionSignal::Memory).into_iter().chain(soft).chain(allocatable).collect()
    }

    /// Available bytes and the capacity of a signal.
    fn observe(signal: EvictionSignal, read: &KubeletReading) -> Option<(u64, u64)> {
        let (capacity, used) = match signal {
            EvictionSignal::Memory => (read.capacity, read.node),
            EvictionSignal::Allocatable => read.kubepods?,
        };
        Some((capacity.saturating_sub(used.working_set()), capacity))
    }

    fn is_met(&self, threshold: &Threshold, with_minimum: bool, read: &KubeletReading) -> bool {
        let Some((available, capacity)) = Self::observe(threshold.signal, read) else {
            return false;
        };
        let minimum = self.options.minimum_reclaim.filter(|_| with_minimum);
        let minimum = minimum.map_or(0, |minimum| minimum.bytes(capacity));
        threshold.value.bytes(capacity).saturating_add(minimum) > available
    }

    fn synchronize(&mut self, now_ns: u64, read: &KubeletReading) -> Option<WatcherDeed> {
        let mut met = self.thresholds(read);
        met.retain(|threshold| self.is_met(threshold, false, read));
        for before in &self.met {
            if !met.contains(before) && self.is_met(before, true, read) {
                met.push(*before);
            }
        }
        let before = std::mem::take(&mut self.first_met);
        self.first_met = met
            .iter()
            .map(|it| (it.place(), before.get(&it.place()).copied().unwrap_or(now_ns)))
            .collect();
        if !met.is_empty() {
            self.pressure_seen = Some(now_ns);
        }
        let period = self.options.transition_period_ns;
        self.has_pressure = self.pressure_seen.is_some_and(|seen| now_ns - seen <= period);
        met.retain(|it| now_ns - self.first_met[&it.place()] >= it.grace_ns.unwrap_or(0));
        self.met.clone_from(&met);
        let threshold = *met.first()?;
        let stage = self.evict(now_ns, &threshold, read)?;
        let KubeletStage::Stops { pod, .. } = stage else { return None };
        self.stage = stage;
        self.next_sync = now_ns + TERMINATION_POLL;
        let group = self.options.pods[pod].group;
        let act = WatcherAct::SignalGroup { group, signal: SentSignal::Term };
        Some(WatcherDeed { act, why: self.message(&threshold, pod, read) })
    }

    /// Chooses the pod: the first in the ranking that has processes and is not critical.
    fn evict(&self, now_ns: u64, of: &Threshold, read: &KubeletReading) -> Option<KubeletStage> {
        let pods = self.options.pods.iter().zip(&self.figures);
        let mut ranked: Vec<RankedPod> =
            pods.map(|(pod, used)| (*pod, used.map(GroupUse::working_set))).collect();
        rank(&mut ranked);
        let place = |pod: &KubeletPod| self.options.pods.iter().position(|it| it == pod);
        let is_active = |pod: usize| read.pods.get(pod).is_some_and(|pod| pod.nr_processes > 0);
        let mut may_go = ranked.iter().filter(|(pod, _)| !pod.is_critical);
        let pod = may_go.find_map(|(pod, _)| place(pod).filter(|at| is_active(*at)))?;
        let grace = match of.grace_ns {
            None => HARD_GRACE,
            Some(_) => self.options.max_pod_grace_ns.max(SECOND),
        };
        Some(KubeletStage::Stops { pod, kill_at: Some(now_ns + grace) })
    }

    /// The text of the pod's status (`evictionMessage`).
    fn message(&self, of: &Threshold, pod: usize, read: &KubeletReading) -> String {
        let (available, capacity) = Self::observe(of.signal, read).unwrap_or_default();
        let signal = match of.signal {
            EvictionSignal::Memory => "memory.available",
            EvictionSignal::Allocatable => "allocatableMemory.available",
        };
        let kind = if of.grace_ns.is_some() { "soft" } else { "hard" };
        let used = self.figures[pod].map_or(0, GroupUse::working_set);
        format!(
            "low on memory: {signal} {} MiB is below the {kind} threshold {} MiB; it used {} MiB, \
             request {} MiB",
            available >> 20,
            of.value.bytes(capacity) >> 20,
            used >> 20,
            self.options.pods[pod].request >> 20
        )
    }
}
