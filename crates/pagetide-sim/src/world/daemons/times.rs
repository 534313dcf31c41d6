//! Times for which kswapd, kcompactd and allocating tasks are awake or compacting.
//!
//! mmtests measures these from tracepoints (`mm_vmscan_kswapd_wake` to `_sleep`,
//! `mm_compaction_kcompactd_wake` to `_sleep`, `mm_compaction_begin` to `_end`). These are wall
//! times, so they include waits for a CPU. CPU times are recorded too.
//!
//! Invariant: an open span started now or earlier.

use pagetide_core::process::Machine;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::{IdVec, Nanos, NodeId};
use pagetide_scenario::metric::declared::{self, MetricDecl};

/// Wall and CPU time of an activity that starts and stops.
#[derive(Clone, Debug, Default)]
pub struct ActivityTime {
    since: Option<Nanos>,
    wall: Nanos,
    cpu: Nanos,
}

impl ActivityTime {
    pub fn set(&mut self, on: bool, now: Nanos) {
        match (self.since, on) {
            (None, true) => self.since = Some(now),
            (Some(since), false) => {
                self.wall += now.saturating_sub(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// A step from `now` on that took `ns`. `goes_on`: the activity does not end with it.
    fn step(&mut self, goes_on: bool, now: Nanos, ns: Nanos) {
        if goes_on || self.since.is_some() {
            self.set(true, now);
            self.ran(ns);
        }
        self.set(goes_on, now + ns);
    }

    pub fn ran(&mut self, ns: Nanos) {
        self.cpu += ns;
    }

    pub fn wall(&self, now: Nanos) -> Nanos {
        self.wall + self.since.map_or(0, |since| now.saturating_sub(since))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KswapdWait {
    /// Throttled until writes complete.
    Throttled,
    Disk,
}

/// Times of all daemons, and of direct compaction.
#[derive(Clone, Debug, Default)]
pub struct DaemonTimes {
    kswapd_awake: IdVec<NodeId, ActivityTime>,
    kswapd_compacting: IdVec<NodeId, ActivityTime>,
    kcompactd_awake: IdVec<NodeId, ActivityTime>,
    kcompactd_compacting: IdVec<NodeId, ActivityTime>,
    /// Reason and start of each kswapd's current sleep during its work.
    kswapd_sleeps: IdVec<NodeId, Option<(KswapdWait, Nanos)>>,
    kswapd_throttled: Nanos,
    kswapd_disk: Nanos,
    flusher_cpu: Nanos,
    /// khugepaged's direct compaction, as in a task.
    khugepaged_compacting: ActivityTime,
    /// Sum over tasks.
    direct_compacting_wall: Nanos,
    direct_compacting_cpu: Nanos,
    /// Counts of `mm_vmscan_kswapd_wake` and `_sleep` after the last step of a kswapd.
    kswapd_events: (u64, u64),
}

impl DaemonTimes {
    pub fn new(nr_nodes: usize) -> DaemonTimes {
        let spans = || vec![ActivityTime::default(); nr_nodes].into();
        DaemonTimes {
            kswapd_awake: spans(),
            kswapd_compacting: spans(),
            kcompactd_awake: spans(),
            kcompactd_compacting: spans(),
            kswapd_sleeps: vec![None; nr_nodes].into(),
            ..DaemonTimes::default()
        }
    }

    /// A kswapd starts to sleep until its next step.
    pub fn kswapd_sleeps(&mut self, node: NodeId, wait: KswapdWait, now: Nanos) {
        self.kswapd_sleeps[node] = Some((wait, now));
    }

    /// Adds CPU time of a kswapd outside its steps: context switch and interrupts.
    pub fn kswapd_charged(&mut self, node: NodeId, ns: Nanos) {
        self.kswapd_awake[node].ran(ns);
    }

    pub fn kswapd_cpu(&self) -> Nanos {
        self.kswapd_awake.iter().map(|span| span.cpu).sum()
    }

    /// Adds CPU time of the flusher, including context switch and interrupts.
    pub fn flusher_ran(&mut self, ns: Nanos) {
        self.flusher_cpu += ns;
    }

    pub fn flusher_cpu(&self) -> Nanos {
        self.flusher_cpu
    }

    /// Records a step of a kswapd that started at `now` and took `ns`.
    pub fn kswapd_ran(&mut self, machine: &Machine, node: NodeId, now: Nanos, ns: Nanos) {
        if let Some((wait, since)) = self.kswapd_sleeps[node].take() {
            let slept = now.saturating_sub(since);
            match wait {
                KswapdWait::Throttled => self.kswapd_throttled += slept,
                KswapdWait::Disk => self.kswapd_disk += slept,
            }
        }
        let vmstat = &machine.mem.vmstat;
        let wakes = vmstat.get(Event::MmVmscanKswapdWake);
        let sleeps = vmstat.get(Event::MmVmscanKswapdSleep);
        let (wakes_before, sleeps_before) =
            std::mem::replace(&mut self.kswapd_events, (wakes, sleeps));
        let awake = &mut self.kswapd_awake[node];
        if wakes > wakes_before {
            awake.set(true, now);
        }
        if sleeps > sleeps_before {
            awake.set(false, now + ns);
        }
        awake.ran(ns);
        let compacting = &mut self.kswapd_compacting[node];
        if machine.kswapd_is_compacting(node) || compacting.since.is_some() {
            compacting.ran(ns);
        }
        compacting.set(machine.kswapd_is_compacting(node), now + ns);
    }

    /// Records a step of a kcompactd that started at `now` and took `ns`.
    pub fn kcompactd_ran(&mut self, machine: &Machine, node: NodeId, now: Nanos, ns: Nanos) {
        let awake = &mut self.kcompactd_awake[node];
        awake.set(true, now);
        awake.ran(ns);
        awake.set(!machine.kcompactd_is_sleeping(node), now + ns);
        let goes_on = machine.kcompactd_is_compacting(node);
        self.kcompactd_compacting[node].step(goes_on, now, ns);
    }

    /// Records a step of khugepaged that started at `now` and took `ns`.
    pub fn khugepaged_ran(&mut self, machine: &Machine, now: Nanos, ns: Nanos) {
        self.khugepaged_compacting.step(machine.khugepaged_is_compacting(), now, ns);
    }

    pub fn direct_ran(&mut self, wall: Nanos, cpu: Nanos) {
        self.direct_compacting_wall += wall;
        self.direct_compacting_cpu += cpu;
    }

    /// Metrics in nanoseconds: wall times, then CPU times.
    pub fn metrics(&self, now: Nanos) -> [(&'static MetricDecl, Nanos); 13] {
        let wall = |spans: &[ActivityTime]| spans.iter().map(|span| span.wall(now)).sum();
        let cpu = |spans: &[ActivityTime]| spans.iter().map(|span| span.cpu).sum();
        [
            (declared::TIME_KSWAPD, wall(&self.kswapd_awake)),
            (declared::TIME_KSWAPD_THROTTLED, self.kswapd_throttled),
            (declared::TIME_KSWAPD_DISK, self.kswapd_disk),
            (declared::TIME_KCOMPACTD, wall(&self.kcompactd_awake)),
            (
                declared::TIME_DIRECT_COMPACTING,
                self.direct_compacting_wall + self.khugepaged_compacting.wall(now),
            ),
            (declared::TIME_KSWAPD_COMPACTING, wall(&self.kswapd_compacting)),
            (declared::TIME_KCOMPACTD_COMPACTING, wall(&self.kcompactd_compacting)),
            (declared::CPU_KSWAPD, cpu(&self.kswapd_awake)),
            (declared::CPU_WRITEBACK, self.flusher_cpu),
            (declared::CPU_KCOMPACTD, cpu(&self.kcompactd_awake)),
            (
                declared::CPU_DIRECT_COMPACTING,
                self.direct_compacting_cpu + self.khugepaged_compacting.cpu,
            ),
            (declared::CPU_KSWAPD_COMPACTING, cpu(&self.kswapd_compacting)),
            (declared::CPU_KCOMPACTD_COMPACTING, cpu(&self.kcompactd_compacting)),
        ]
    }
}
