//! Control files that kubelet writes for a pod: MemoryQoS and swap.
//!
//! Kubernetes 1.36 and 1.37: `setSwapLimit` and `calcSwapForBurstablePods`
//! (pkg/kubelet/kuberuntime/kuberuntime_container_linux.go), KEP-2570 (`memoryThrottlingFactor`,
//! `memoryReservationPolicy`). A pod is one group here; kubelet writes `memory.high` and
//! `memory.swap.max` to the groups of its containers, which have the same sum for one container.

use crate::kubelet_rank::{KubeletPod, QosClass};

/// `memoryReservationPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReservationPolicy {
    #[default]
    None,
    /// `memory.min` of guaranteed pods and `memory.low` of burstable pods are their requests.
    TieredReservation,
}

/// `memorySwap.swapBehavior`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SwapBehavior {
    #[default]
    NoSwap,
    LimitedSwap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryQos {
    /// `memoryThrottlingFactor` in hundredths of a percent; `None`: no `memory.high`.
    pub throttling_factor: Option<u64>,
    pub reservation: ReservationPolicy,
    /// `None`: kubelet writes no `memory.swap.max`.
    pub swap: Option<SwapBehavior>,
    /// Bytes of the node's memory, of what pods may have of it, and of its swap.
    pub capacity: u64,
    pub allocatable: u64,
    pub swap_total: u64,
    pub page_size: u64,
}

/// Values of a pod's control files; `None`: not written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodFiles {
    pub min: Option<u64>,
    pub low: Option<u64>,
    pub high: Option<u64>,
    pub max: Option<u64>,
    pub swap_max: Option<u64>,
}

impl MemoryQos {
    pub fn files(&self, pod: &KubeletPod) -> PodFiles {
        let qos = pod.qos();
        let reserves = self.reservation == ReservationPolicy::TieredReservation;
        let request = Some(pod.request).filter(|_| reserves);
        let high = self.throttling_factor.filter(|_| qos != QosClass::Guaranteed).map(|factor| {
            let most = pod.limit.unwrap_or(self.allocatable);
            let above = u128::from(most.saturating_sub(pod.request)) * u128::from(factor) / 10_000;
            (pod.request + above as u64) / self.page_size * self.page_size
        });
        let swap_max = self.swap.map(|behavior| match (behavior, qos) {
            (SwapBehavior::LimitedSwap, QosClass::Burstable) => {
                let share = u128::from(pod.request) * u128::from(self.swap_total);
                share.checked_div(self.capacity.into()).unwrap_or(0) as u64
            }
            _ => 0,
        });
        PodFiles {
            min: request.filter(|_| qos == QosClass::Guaranteed),
            low: request.filter(|_| qos == QosClass::Burstable),
            high,
            max: pod.limit,
            swap_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const QOS: MemoryQos = MemoryQos {
        throttling_factor: Some(9000),
        reservation: ReservationPolicy::TieredReservation,
        swap: Some(SwapBehavior::LimitedSwap),
        capacity: 8 * GIB,
        allocatable: 7 * GIB,
        swap_total: 4 * GIB,
        page_size: 4096,
    };

    fn files(request: u64, limit: Option<u64>) -> PodFiles {
        QOS.files(&KubeletPod { request, limit, ..KubeletPod::default() })
    }

    #[test]
    fn each_class_has_its_files() {
        let guaranteed = files(GIB, Some(GIB));
        assert_eq!((guaranteed.min, guaranteed.low, guaranteed.high), (Some(GIB), None, None));
        assert_eq!((guaranteed.max, guaranteed.swap_max), (Some(GIB), Some(0)));
        let burstable = files(GIB, Some(2 * GIB));
        assert_eq!((burstable.min, burstable.low), (None, Some(GIB)));
        // KEP-2570: floor[(request + factor * (limit - request)) / page] * page.
        assert_eq!(burstable.high, Some((GIB + GIB * 9 / 10) / 4096 * 4096));
        assert_eq!(burstable.swap_max, Some(GIB / 2), "its share of the node's memory");
        let best_effort = files(0, None);
        assert_eq!(best_effort.high, Some(7 * GIB * 9 / 10 / 4096 * 4096));
        assert_eq!((best_effort.low, best_effort.swap_max), (None, Some(0)));
    }
}
