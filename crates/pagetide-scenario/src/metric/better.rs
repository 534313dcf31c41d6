//! Direction of a metric: whether less or more is better. Used by verdicts and by `find`.
//!
//! Three kinds have a direction. Less waiting and less loss is better; more completed work is
//! better; less work of the machine (scans, wakes, swapping, CPU time) is cheaper but not a goal.
//! Everything else, above all levels of memory, has none. Linux has no such list.
//!
//! Invariant: every event of the core has a direction; an undeclared metric has none.

use super::catalogue;
use super::declared;
use super::key::{MetricKey, ScopeKind};
use pagetide_core::stats::vmstat::Event;
pub use pagetide_core::stats::vmstat::MetricDirection;

pub fn of(key: &MetricKey) -> MetricDirection {
    of_name(key.scope.kind(), &key.name)
}

/// The direction of a metric by kind and name.
pub fn of_name(kind: ScopeKind, name: &str) -> MetricDirection {
    if let Some(declared) = declared::find(kind, name) {
        return declared.better;
    }
    let event = Event::ALL.iter().find(|event| event.name() == name);
    match event {
        Some(event) => event.better(),
        None if catalogue::SUMS.contains(&name) => MetricDirection::Work,
        None => MetricDirection::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_worse_scans_are_work_and_levels_are_neither() {
        for (key, better) in [
            ("machine:pgmajfault", MetricDirection::Less),
            ("phase:t:p:workingset_refault_file", MetricDirection::Less),
            ("machine:allocstall", MetricDirection::Less),
            ("task:t:stall_refault", MetricDirection::Less),
            ("task:t:request_rate", MetricDirection::More),
            ("machine:pgscan_kswapd", MetricDirection::Work),
            ("group:g:pgsteal", MetricDirection::Work),
            ("machine:cpu_kswapd", MetricDirection::Work),
            ("machine:nr_free_pages", MetricDirection::Neither),
            ("machine:pgfree", MetricDirection::Neither),
            ("group:g:memory.current", MetricDirection::Neither),
            ("machine:slabinfo.pid.num_objs", MetricDirection::Neither),
            ("machine:buddyinfo.node0.DMA.nr_free_blocks_9", MetricDirection::Neither),
            ("machine:of_a_kernel_to_come", MetricDirection::Neither),
        ] {
            assert_eq!(of(&key.parse().unwrap()), better, "{key}");
        }
    }
}
