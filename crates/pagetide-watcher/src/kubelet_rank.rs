//! Which pod kubelet evicts first, and the quality-of-service class of a pod.
//!
//! Kubernetes 1.32 to 1.37: `rankMemoryPressure` (pkg/kubelet/eviction/helpers.go), `ComputePodQOS`
//! (pkg/apis/core/v1/helper/qos). A pod here has the requests and limits of memory only; its CPU is
//! taken to be given in the same way.

use std::cmp::Reverse;

/// `status.qosClass`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QosClass {
    Guaranteed,
    Burstable,
    BestEffort,
}

/// A pod: a group with what its manifest says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KubeletPod {
    pub group: u32,
    /// `spec.priority`.
    pub priority: i32,
    /// Sum of the containers' requests of memory in bytes; 0: none.
    pub request: u64,
    /// Sum of the containers' limits; `None`: a container has none.
    pub limit: Option<u64>,
    /// A static pod, or one with a priority of at least 2 000 000 000: never evicted.
    pub is_critical: bool,
}

impl KubeletPod {
    pub fn qos(&self) -> QosClass {
        match self.limit {
            Some(limit) if limit == self.request => QosClass::Guaranteed,
            None if self.request == 0 => QosClass::BestEffort,
            Some(_) | None => QosClass::Burstable,
        }
    }
}

/// A pod with its working set in bytes; `None`: kubelet has no figures of it.
pub type RankedPod = (KubeletPod, Option<u64>);

/// Sorts pods, the first to be evicted first: pods without figures, pods above their request, then
/// the lower priority, then the larger use above the request. kubelet's sort leaves pods that are
/// equal in any order; here they go by group.
pub fn rank(pods: &mut [RankedPod]) {
    pods.sort_by_key(|(pod, used)| {
        let above = used.map(|used| i128::from(used) - i128::from(pod.request));
        let exceeds = above.is_none_or(|above| above > 0);
        (used.is_some(), !exceeds, pod.priority, Reverse(above), pod.group)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn pod(group: u32, priority: i32, request: u64, used: u64) -> RankedPod {
        let pod = KubeletPod { group, priority, request: request * MIB, ..KubeletPod::default() };
        (pod, Some(used * MIB))
    }

    fn ranked(mut pods: Vec<RankedPod>) -> Vec<u32> {
        rank(&mut pods);
        pods.iter().map(|(pod, _)| pod.group).collect()
    }

    /// Values of the tests of pkg/kubelet/eviction/helpers_test.go.
    #[test]
    fn pods_are_ranked_as_in_kubelets_own_tests() {
        // TestOrderedByPriorityMemory; low is -1, high 1.
        let by_priority = vec![
            pod(8, 1, 1024, 200),
            pod(7, 1, 1024, 800),
            pod(6, -1, 1024, 200),
            pod(5, -1, 1024, 800),
            pod(4, 1, 100, 150),
            pod(3, 1, 100, 600),
            pod(2, -1, 0, 50),
            pod(1, -1, 0, 500),
        ];
        assert_eq!(ranked(by_priority), [1, 2, 3, 4, 5, 6, 7, 8]);
        // TestOrderedByExceedsRequestMemory.
        assert_eq!(ranked(vec![pod(1, -1, 200, 199), pod(2, 1, 100, 101)]), [2, 1]);
        // TestOrderedByMemory: equal priorities, and all above their requests or all below.
        let by_memory = vec![
            pod(1, 0, 0, 500),
            pod(2, 0, 0, 300),
            pod(3, 0, 100, 800),
            pod(4, 0, 100, 300),
            pod(5, 0, 1024, 800),
            pod(6, 0, 1024, 200),
        ];
        assert_eq!(ranked(by_memory), [3, 1, 2, 4, 5, 6]);
    }

    #[test]
    fn a_pod_without_figures_is_first() {
        let mut pods = vec![pod(1, -5, 0, 500), pod(2, 9, 100, 1)];
        pods[1].1 = None;
        assert_eq!(ranked(pods), [2, 1]);
    }

    #[test]
    fn the_class_follows_from_request_and_limit() {
        let class = |request, limit| KubeletPod { request, limit, ..KubeletPod::default() }.qos();
        assert_eq!(class(5, Some(5)), QosClass::Guaranteed);
        assert_eq!(class(0, None), QosClass::BestEffort);
        assert_eq!(class(5, None), QosClass::Burstable);
        assert_eq!(class(0, Some(5)), QosClass::Burstable);
    }
}
