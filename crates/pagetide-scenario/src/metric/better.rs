//! Which way a metric is better: what verdicts, and `find` when it says what got worse, go by.
//!
//! Three things are told apart: what somebody waits for or loses (less is better), what somebody gets done (more is
//! better), and the work that the machine has with it (scans, wakes, swapping, CPU time): less of that is cheaper,
//! but nobody's aim. Linux has no such list. Everything else, levels of memory above all, is neither.
//!
//! Invariant: every event of the core has a direction; a metric that nobody declared has none.

use super::catalogue;
use super::declared;
use super::key::{Key, Kind};
use pagetide_core::vmstat::Event;

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less of it: times, waiting, pages that had to come back, kills.
    Less,
    /// More of it: work done, hot pages kept.
    More,
    /// Less of it is cheaper, but it is no aim: scans, wakes, reads and writes, CPU time.
    Work,
    /// Neither: how much there is of one kind of memory.
    Neither,
}

impl Better {
    /// The word of docs/metrics.md; empty for neither.
    pub const fn word(self) -> &'static str {
        match self {
            Better::Less => "less",
            Better::More => "more",
            Better::Work => "work",
            Better::Neither => "",
        }
    }
}

/// Which way the metric of a key is better.
pub fn of(key: &Key) -> Better {
    of_name(key.scope.kind(), &key.name)
}

/// Which way the metric of this name is better, of something of this kind.
pub fn of_name(kind: Kind, name: &str) -> Better {
    if let Some(declared) = declared::find(kind, name) {
        return declared.better;
    }
    let event = Event::ALL.iter().find(|event| event.name() == name);
    match event {
        Some(event) => of_event(*event),
        None if catalogue::SUMS.contains(&name) => Better::Work,
        None => Better::Neither,
    }
}

/// Which way an event of /proc/vmstat is better.
pub fn of_event(event: Event) -> Better {
    match event {
        // Somebody waits, loses a page that is needed, or is killed.
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
        | Event::MmVmscanThrottled => Better::Less,
        // Effort: CPU time, and the time of disks.
        Event::Pgpgin
        | Event::Pgpgout
        | Event::Pswpin
        | Event::Pswpout
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
        | Event::MmPageAllocExtfrag => Better::Work,
        // What programs do, or what is good or bad only beside something else: a huge page costs memory.
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
        | Event::UnevictablePgsStranded => Better::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_worse_scans_are_work_and_levels_are_neither() {
        for (key, better) in [
            ("machine:pgmajfault", Better::Less),
            ("phase:t:p:workingset_refault_file", Better::Less),
            ("machine:allocstall", Better::Less),
            ("task:t:stall_refault", Better::Less),
            ("task:t:request_rate", Better::More),
            ("machine:pgscan_kswapd", Better::Work),
            ("group:g:pgsteal", Better::Work),
            ("machine:cpu_kswapd", Better::Work),
            ("machine:nr_free_pages", Better::Neither),
            ("machine:pgfree", Better::Neither),
            ("group:g:memory.current", Better::Neither),
            ("machine:slabinfo.pid.num_objs", Better::Neither),
            ("machine:buddyinfo.node0.DMA.nr_free_blocks_9", Better::Neither),
            ("machine:of_a_kernel_to_come", Better::Neither),
        ] {
            assert_eq!(of(&key.parse().unwrap()), better, "{key}");
        }
    }
}
