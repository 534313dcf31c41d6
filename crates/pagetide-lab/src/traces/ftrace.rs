//! Events in the text format of ftrace, for scripts that read a kernel's trace.
//!
//! Linux 6.1: /sys/kernel/tracing/trace with the tracer `nop`: columns from
//! kernel/trace/trace_output.c, formats from include/trace/events/vmscan.h and oom.h. Extra fields
//! of Pagetide's events (such as the group) are left out, so that a line is the kernel's. Missing
//! fields are printed as empty values: the flags of `mm_vmscan_wakeup_kswapd`, pages that could not
//! be unmapped, the address of a shrinker. docs/outputs.md has the list.
//!
//! Invariant: lines ascend in time. `mm_vmscan_throttled` is written after the sleep, as in Linux,
//! because it has the length of the sleep.

use pagetide_core::stats::event::TraceEvent;
use pagetide_core::units::Cpu;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::{
    ActivitySlice, EventValue, NamedEvent, Observation, ObservationKind, Observer, RunCast,
    WaitReason,
};
use std::io::{self, Write};

/// Bytes of a name, without the zero at its end (`TASK_COMM_LEN`).
const COMM_LEN: usize = 15;

const HEADER: &str = "\
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// Writes events as lines of ftrace.
#[derive(Debug)]
pub struct Ftrace<W> {
    out: W,
    threads: Vec<FtraceThread>,
    /// Current sleeps in reclaim, by thread: start, and CPU at the start.
    throttled: Vec<Option<(u64, Cpu, TraceEvent)>>,
}

#[derive(Debug)]
struct FtraceThread {
    /// The full name.
    name: String,
    comm: String,
    pid: u32,
}

impl<W: Write> Ftrace<W> {
    /// Writes to `out` in many small writes, so it should be buffered.
    pub fn new(out: W) -> Ftrace<W> {
        Ftrace { out, threads: Vec::new(), throttled: Vec::new() }
    }

    fn line(&mut self, at: u64, cpu: Cpu, thread: usize, name: &str, text: &str) -> io::Result<()> {
        let FtraceThread { comm, pid, .. } = &self.threads[thread];
        // Rounded to microseconds, as the kernel's ns2usecs.
        let us = at.saturating_add(500) / 1000;
        let (seconds, us, cpu) = (us / 1_000_000, us % 1_000_000, cpu.0);
        writeln!(
            self.out,
            "{comm:>16}-{pid:<7} [{cpu:03}] ..... {seconds:>5}.{us:06}: {name}: {text}"
        )
    }

    fn throttle_ends(&mut self, now: u64, thread: usize) -> io::Result<()> {
        let Some((since, cpu, event)) = self.throttled[thread].take() else { return Ok(()) };
        let delayed = now.saturating_sub(since) / 1000;
        self.line(now, cpu, thread, event.name(), &printk(&event, delayed, 0))
    }

    fn event(&mut self, at: u64, cpu: Cpu, thread: usize, event: &NamedEvent) -> io::Result<()> {
        if let TraceEvent::MmVmscanThrottled { .. } = event.raw() {
            self.throttled[thread] = Some((at, cpu, *event.raw()));
            return Ok(());
        }
        let mut victim = 0;
        event.each_field(|field, value| {
            if let ("victim", EventValue::Name(Some(name))) = (field, value) {
                let thread = self.threads.iter().find(|thread| thread.name == name);
                victim = thread.map_or(0, |thread| thread.pid);
            }
        });
        let text = printk(event.raw(), 0, victim);
        self.line(at, cpu, thread, event.name(), &text)
    }
}

impl<W: Write> Observer for Ftrace<W> {
    fn what(&self) -> &'static str {
        "the events"
    }

    fn begin(&mut self, cast: &RunCast) -> io::Result<()> {
        let threads = cast.threads.iter().map(|thread| FtraceThread {
            name: thread.comm.clone(),
            comm: comm_of(&thread.comm),
            pid: thread.pid,
        });
        self.threads = threads.collect();
        self.throttled = vec![None; self.threads.len()];
        write!(self.out, "# tracer: nop\n#\n# entries-in-buffer/entries-written: ")?;
        // The number of entries is not known yet; scripts need the number of CPUs.
        write!(self.out, "0/0   #P:{}\n#\n{HEADER}", cast.cpus)
    }

    fn observe(&mut self, observation: &Observation) -> io::Result<()> {
        let Observation { at, thread, what } = observation;
        match what {
            ObservationKind::Event(cpu, event) => self.event(*at, *cpu, *thread, event),
            ObservationKind::Ended(ActivitySlice::Wait(WaitReason::Throttled(_)))
            | ObservationKind::Exited(_) => self.throttle_ends(*at, *thread),
            ObservationKind::Ended(_)
            | ObservationKind::SwitchIn(_)
            | ObservationKind::SwitchOut(..)
            | ObservationKind::Began { .. } => Ok(()),
        }
    }

    fn end(&mut self, at: u64, _is_cut: bool) -> io::Result<()> {
        (0..self.threads.len()).try_for_each(|thread| self.throttle_ends(at, thread))
    }

    fn close(&mut self, _record: Option<&RunRecord>) -> io::Result<()> {
        self.out.flush()
    }
}

/// A name as in the kernel: cut, and without blanks, so that scripts can split lines at blanks.
fn comm_of(name: &str) -> String {
    let mut comm = String::new();
    for c in name.chars() {
        let c = if c.is_whitespace() || c.is_control() { '_' } else { c };
        if comm.len() + c.len_utf8() > COMM_LEN {
            break;
        }
        comm.push(c);
    }
    if comm.is_empty() {
        // The kernel's text for an unknown name.
        comm.push_str("<...>");
    }
    comm
}

/// Positions of the scanners of a compaction.
fn scanners(zone_start: u64, migrate_pfn: u64, free_pfn: u64, zone_end: u64, sync: bool) -> String {
    let mode = if sync { "sync" } else { "async" };
    format!(
        "zone_start=0x{zone_start:x} migrate_pfn=0x{migrate_pfn:x} free_pfn=0x{free_pfn:x} \
         zone_end=0x{zone_end:x}, mode={mode}"
    )
}

/// The fields of an event as the kernel prints them. `delayed`: microseconds of a sleep; `victim`:
/// pid of the OOM killer's victim.
fn printk(event: &TraceEvent, delayed: u64, victim: u32) -> String {
    use TraceEvent as E;
    match *event {
        E::MmVmscanWakeupKswapd { nid, order, .. } => {
            format!("nid={} order={order} gfp_flags=none", nid.0)
        }
        E::MmVmscanKswapdWake { nid, order, .. } => format!("nid={} order={order}", nid.0),
        E::MmVmscanKswapdSleep { nid } => format!("nid={}", nid.0),
        E::MmPageAllocExtfrag {
            pfn,
            alloc_order,
            fallback_order,
            pageblock_order,
            alloc_migratetype,
            fallback_migratetype,
            fragmenting,
            change_ownership,
        } => format!(
            "page=(____ptrval____) pfn=0x{pfn:x} alloc_order={alloc_order} \
             fallback_order={fallback_order} pageblock_order={pageblock_order} \
             alloc_migratetype={} fallback_migratetype={} fragmenting={} change_ownership={}",
            alloc_migratetype as u8,
            fallback_migratetype as u8,
            u8::from(fragmenting),
            u8::from(change_ownership)
        ),
        E::BoostWatermark { nid, zid, watermark_boost } => {
            format!("nid={} zid={zid} watermark_boost={watermark_boost}", nid.0)
        }
        E::MmCompactionBegin { zone_start, migrate_pfn, free_pfn, zone_end, sync } => {
            scanners(zone_start, migrate_pfn, free_pfn, zone_end, sync)
        }
        E::MmCompactionEnd { zone_start, migrate_pfn, free_pfn, zone_end, sync, status } => {
            scanners(zone_start, migrate_pfn, free_pfn, zone_end, sync) + " status=" + status
        }
        E::BalanceDirtyPages {
            limit,
            setpoint,
            dirty,
            dirty_ratelimit,
            task_ratelimit,
            dirtied,
            pause,
        } => format!(
            "bdi 0:0: limit={limit} setpoint={setpoint} dirty={dirty} bdi_setpoint=0 bdi_dirty=0 \
             dirty_ratelimit={dirty_ratelimit} task_ratelimit={task_ratelimit} dirtied={dirtied} \
             dirtied_pause=0 paused=0 pause={pause} period={pause} think=0 cgroup_ino=1"
        ),
        E::MmVmscanDirectReclaimBegin { order, gfp_flags }
        | E::MmVmscanMemcgReclaimBegin { order, gfp_flags, .. }
        | E::MmVmscanMemcgSoftlimitReclaimBegin { order, gfp_flags, .. } => {
            format!("order={order} gfp_flags={gfp_flags}")
        }
        E::MmVmscanDirectReclaimEnd { nr_reclaimed }
        | E::MmVmscanMemcgReclaimEnd { nr_reclaimed, .. }
        | E::MmVmscanMemcgSoftlimitReclaimEnd { nr_reclaimed, .. } => {
            format!("nr_reclaimed={nr_reclaimed}")
        }
        E::MmVmscanLruShrinkInactive {
            nid,
            memcg: _,
            nr_scanned,
            nr_taken: _,
            nr_reclaimed,
            nr_dirty,
            nr_writeback,
            nr_congested,
            nr_immediate,
            nr_activate,
            nr_ref_keep,
            priority,
            file,
        } => {
            let [anon, cache] = if file { [0, nr_activate] } else { [nr_activate, 0] };
            let (nid, flags) = (nid.0, reclaim_flags(file));
            format!(
                "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} \
                 nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} \
                 nr_activate_anon={anon} nr_activate_file={cache} nr_ref_keep={nr_ref_keep} \
                 nr_unmap_fail=0 priority={priority} flags={flags}"
            )
        }
        E::MmVmscanLruShrinkActive {
            nid,
            memcg: _,
            nr_taken,
            nr_active,
            nr_deactivated,
            nr_referenced,
            priority,
            file,
        } => {
            let (nid, flags) = (nid.0, reclaim_flags(file));
            format!(
                "nid={nid} nr_taken={nr_taken} nr_active={nr_active} nr_deactivated={nr_deactivated} \
                 nr_referenced={nr_referenced} priority={priority} flags={flags}"
            )
        }
        E::MmShrinkSlabStart {
            shrink,
            nid,
            memcg: _,
            nr_objects_to_shrink,
            cache_items,
            delta,
            total_scan,
            priority,
        } => format!(
            "{shrink}{ADDRESS}: nid: {} objects to shrink {nr_objects_to_shrink} gfp_flags none cache items \
             {cache_items} delta {delta} total_scan {total_scan} priority {priority}",
            nid.0
        ),
        E::MmShrinkSlabEnd {
            shrink,
            nid,
            memcg: _,
            unused_scan,
            new_scan,
            retval,
            total_scan,
        } => format!(
            "{shrink}{ADDRESS}: nid: {} unused scan count {unused_scan} new scan count {new_scan} total_scan \
             {total_scan} last shrinker return val {retval}",
            nid.0
        ),
        E::MmVmscanThrottled { nid, usec_timeout, reason: _ } => {
            let mut why = "";
            event.each_field(|_, value| {
                if let pagetide_core::stats::event::TraceField::Name(name) = value {
                    why = name;
                }
            });
            // "usect": the kernel's own spelling, which scripts rely on.
            format!(
                "nid={} usec_timeout={usec_timeout} usect_delayed={delayed} reason={why}",
                nid.0
            )
        }
        E::MarkVictim { .. } => format!("pid={victim}"),
    }
}

/// Offset in the function of a shrinker, and the shrinker's address, which the kernel hides.
const ADDRESS: &str = "+0x0/0x0 0000000000000000";

const fn reclaim_flags(file: bool) -> &'static str {
    if file {
        "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC"
    } else {
        "RECLAIM_WB_ANON|RECLAIM_WB_ASYNC"
    }
}
