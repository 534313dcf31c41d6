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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricDirection {
    /// Less is better: times, waiting, pages that had to be read again, kills.
    Less,
    /// More is better: work done, hot pages kept in memory.
    More,
    /// Less is cheaper, but not a goal: scans, wakes, reads and writes, CPU time.
    Work,
    /// Neither: levels of memory.
    Neither,
}

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
        Some(event) => of_event(*event),
        None if catalogue::SUMS.contains(&name) => MetricDirection::Work,
        None => MetricDirection::Neither,
    }
}

/// The direction of an event of /proc/vmstat.
pub fn of_event(event: Event) -> MetricDirection {
    match event {
        // A task waits, loses a page that it needs, or is killed.
        Event::AllocstallDma
        | Event::AllocstallDma32
        | Event::AllocstallNormal
        | Event::AllocstallMovable
        | Event::Pgmajfault
        | Event::PgscanDirectThrottle
        | Event::OomKill
        | Event::CompactStall
        | Event::WorkingsetRefaultAnon
        | Event::WorkingsetRefaultFile
        | Event::WorkingsetRestoreAnon
        | Event::WorkingsetRestoreFile
        | Event::MmVmscanDirectReclaimBegin
        | Event::MmVmscanThrottled => MetricDirection::Less,
        // Work: CPU time and disk time.
        Event::Pgpgin
        | Event::Pgpgout
        | Event::Pswpin
        | Event::Pswpout
        | Event::ThpSwpout
        | Event::Pgrefill
        | Event::PgstealKswapd
        | Event::PgstealDirect
        | Event::PgscanKswapd
        | Event::PgscanDirect
        | Event::PgscanAnon
        | Event::PgscanFile
        | Event::PgstealAnon
        | Event::PgstealFile
        | Event::SlabsScanned
        | Event::WorkingsetNodereclaim
        | Event::KswapdLowWmarkHitQuickly
        | Event::KswapdHighWmarkHitQuickly
        | Event::Pageoutrun
        | Event::PgmigrateSuccess
        | Event::PgmigrateFail
        | Event::ThpMigrationSuccess
        | Event::CompactMigrateScanned
        | Event::CompactFreeScanned
        | Event::CompactIsolated
        | Event::CompactFail
        | Event::CompactDaemonWake
        | Event::CompactDaemonMigrateScanned
        | Event::CompactDaemonFreeScanned
        | Event::CompactKswapd
        | Event::NrVmscanImmediateReclaim
        | Event::NrVmscanWrite
        | Event::NrWritten
        | Event::Pgfault
        | Event::MmVmscanKswapdWake
        | Event::MmVmscanKswapdSleep
        | Event::MmVmscanWakeupKswapd
        | Event::MmPageAllocExtfrag => MetricDirection::Work,
        // Activity of programs, or good and bad only in comparison: a huge page costs memory.
        Event::PgallocDma
        | Event::PgallocDma32
        | Event::PgallocNormal
        | Event::PgallocMovable
        | Event::PgskipDma
        | Event::PgskipDma32
        | Event::PgskipNormal
        | Event::PgskipMovable
        | Event::Pgfree
        | Event::Pgactivate
        | Event::Pgdeactivate
        | Event::Pgrotated
        | Event::DropPagecache
        | Event::DropSlab
        | Event::CompactSuccess
        | Event::ThpFaultAlloc
        | Event::ThpFaultFallback
        | Event::ThpFaultFallbackCharge
        | Event::ThpCollapseAlloc
        | Event::ThpCollapseAllocFailed
        | Event::ThpScanExceedNonePte
        | Event::ThpScanExceedSwapPte
        | Event::ThpSplitPage
        | Event::ThpSplitPmd
        | Event::ThpSwpoutFallback
        | Event::SwapRaHit
        | Event::SwapRa
        | Event::NrDirtied
        | Event::WorkingsetActivateAnon
        | Event::WorkingsetActivateFile
        | Event::NrFollPinAcquired
        | Event::NrFollPinReleased
        | Event::UnevictablePgsCulled
        | Event::UnevictablePgsRescued
        | Event::UnevictablePgsMlocked
        | Event::UnevictablePgsMunlocked
        | Event::UnevictablePgsCleared
        | Event::UnevictablePgsStranded => MetricDirection::Neither,
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
