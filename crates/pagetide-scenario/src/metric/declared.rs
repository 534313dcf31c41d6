//! The metrics that no event counter of the kernel gives: each with its unit, the scopes that have it, the
//! file in which a kernel reports it, and its meaning. docs/metrics.md is made of this list and of the core's
//! counters.
//!
//! A new metric is an entry here, and a call of [`super::Writer::put`] with it in each world that has it.
//!
//! Invariant: in each kind of scope a name stands for one metric; a metric has one unit.

use super::better::Better;
use super::key::Kind;
use crate::near::matches;
use crate::record::Unit;
use std::fmt::Display;

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name: the last part of its key.
    pub name: &'static str,
    pub unit: Unit,
    /// What it can be of.
    pub of: &'static [Kind],
    /// Where Linux says it: a file, with the field if that is called otherwise. "Pagetide": nowhere.
    pub source: &'static str,
    /// What version 1 of cgroups calls it; empty if it does not say it, or is not asked.
    pub version_1: &'static str,
    pub about: &'static str,
    /// Which way it is better.
    pub better: Better,
}

/// The metric of this name.
pub fn find(kind: Kind, name: &str) -> Option<&'static Declared> {
    ALL.iter().copied().find(|metric| metric.name == name && metric.of.contains(&kind))
}

/// What a group has, in the order in which it is shown.
pub fn levels_of_groups() -> impl Iterator<Item = &'static Declared> {
    let of_groups = |metric: &&Declared| metric.of.contains(&Kind::PhaseGroup);
    let is_level = |metric: &&Declared| metric.unit == Unit::Bytes || is_of_cgroup(metric);
    ALL.iter().copied().filter(of_groups).filter(is_level)
}

/// Of the group as such: a count, but what is there, not what has happened.
fn is_of_cgroup(metric: &Declared) -> bool {
    metric.name.starts_with("cgroup.")
}

/// What is reported of groups only if a row, an expectation or the command line asks for it: each needs another file to be read. The
/// file is what the source names.
pub const ON_REQUEST: [&Declared; 7] = [
    CONTROLLERS_MEMORY,
    DYING_DESCENDANTS,
    MEMORY_MIN,
    MEMORY_LOW,
    MEMORY_HIGH,
    MEMORY_MAX,
    MEMORY_SWAP_MAX,
];

/// What says how something is, not how much of it there is: a number of an error, a limit. Copies have it in common
/// only if it is the same of all, and it has no mean.
const STATES: [&Declared; 7] =
    [ERRNO, CONTROLLERS_MEMORY, MEMORY_MIN, MEMORY_LOW, MEMORY_HIGH, MEMORY_MAX, MEMORY_SWAP_MAX];

/// Whether the metric of a name, or of a key that ends in one, is a state: neither added up nor averaged.
pub fn is_state(key: &str) -> bool {
    STATES.iter().any(|metric| ends_with(key, metric.name))
}

/// Whether a key or a pattern ends in this name of a metric.
fn ends_with(key: &str, name: &str) -> bool {
    let owner = key.strip_suffix(name);
    owner.is_some_and(|owner| owner.is_empty() || owner.ends_with(['.', ':']))
}

/// Those of [`ON_REQUEST`] that a key or a pattern asks for: it ends in the name, or has a `*` and fits no other
/// metric of groups.
pub fn asked_by(text: &str) -> impl Iterator<Item = &'static str> + '_ {
    let tails = move || {
        let part = text.char_indices().filter(|(_, c)| ['.', ':'].contains(c));
        let part = part.map(|(at, _)| &text[at + 1..]);
        // A star may stand for an owner and the beginning of a name.
        let star = text.match_indices('*').map(|(at, _)| &text[at..]).filter(|tail| *tail != "*");
        std::iter::once(text).chain(part).chain(star)
    };
    let fits = move |name: &str| tails().any(|tail| matches(tail, name));
    let is_other = |metric: &&&Declared| !ON_REQUEST.iter().any(|it| it.name == metric.name);
    let of_groups = || ALL.iter().filter(|metric| metric.of.contains(&Kind::PhaseGroup));
    let is_own = text.contains('*') && !of_groups().filter(is_other).any(|it| fits(it.name));
    let names = ON_REQUEST.iter().map(|metric| metric.name);
    names.filter(move |name| ends_with(text, name) || is_own && fits(name))
}

/// What happened to a group besides the events of memory.stat, the same way.
pub fn events_of_groups() -> impl Iterator<Item = &'static Declared> {
    let of_groups = |metric: &&Declared| metric.of.contains(&Kind::PhaseGroup);
    let is_event = |metric: &&Declared| metric.unit == Unit::Count && !is_of_cgroup(metric);
    ALL.iter().copied().filter(of_groups).filter(is_event)
}

/// What names of caches begin with: `slabinfo.CACHE.WHAT`, and WHAT is one of [`OF_CACHES`].
pub const SLABINFO: &str = "slabinfo.";

/// What is said of a cache, as the columns of /proc/slabinfo are called.
pub const OF_CACHES: [&str; 3] = ["active_objs", "num_objs", "num_slabs"];

/// The names of what is said of a cache, in the order of [`OF_CACHES`].
pub fn slabinfo_names(cache: &str) -> [String; 3] {
    OF_CACHES.map(|what| format!("{SLABINFO}{cache}.{what}"))
}

/// What `max` in a control file stands for: the kernel's largest limit, as version 1 of cgroups writes it (Linux
/// `PAGE_COUNTER_MAX`, with pages of 4 KiB).
pub const NO_LIMIT: u64 = (1 << 63) - 4096;

/// What names of zones begin with: `buddyinfo.nodeN.ZONE.nr_free_blocks_ORDER`.
pub const BUDDYINFO: &str = "buddyinfo.";

/// What names of free blocks begin with: `nr_free_blocks_ORDER`. They are counted, not their pages.
pub const FREE_BLOCKS: &str = "nr_free_blocks_";

/// The name of the free blocks of an order that a zone has.
pub fn buddyinfo_name(node: impl Display, zone: &str, order: usize) -> String {
    format!("{BUDDYINFO}node{node}.{zone}.nr_free_blocks_{order}")
}

/// The beginning, of those for whatever has a line in a file of the kernel, that a name or a pattern has.
pub fn file_in(text: &str) -> Option<&'static str> {
    [SLABINFO, BUDDYINFO].into_iter().find(|file| text.contains(file))
}

macro_rules! better {
    () => {
        Better::Less
    };
    ($better:ident) => {
        Better::$better
    };
}

macro_rules! metrics {
    ($($id:ident = $name:literal, $unit:ident, [$($of:ident)*] $($better:ident)?, $source:literal
        $(v1 $first:literal)?: $about:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $about, ".")]
            pub const $id: &Declared = &Declared {
                name: $name,
                unit: Unit::$unit,
                of: &[$(Kind::$of),*],
                source: $source,
                version_1: concat!($($first)?),
                about: $about,
                better: better!($($better)?),
            };
        )*

        /// All of them.
        pub const ALL: &[&Declared] = &[$($id),*];
    };
}

metrics! {
    ELAPSED = "elapsed", Seconds, [Machine], "Pagetide": "time from the start of the run to its end";
    USER = "user", Seconds, [Machine Task Phase] Work, "getrusage":
        "CPU time in user mode; of the machine, of all tasks";
    SYSTEM = "system", Seconds, [Machine Task Phase] Work, "getrusage":
        "CPU time in the kernel; of the machine, everything but user mode: tasks, daemons, switches, interrupts";
    CPU = "cpu", Seconds, [Task Phase] Work, "CLOCK_PROCESS_CPUTIME_ID":
        "CPU time, in user mode and in the kernel, switches to it and interrupts included";
    PROGRAM_TIME = "program_time", Seconds, [Phase] Work, "Pagetide":
        "CPU time that making its operations takes, without performing them; of a real kernel only, where the program that performs them runs";
    OPERATIONS = "operations", Count, [Phase] More, "Pagetide":
        "operations that its program makes; of a real kernel only";
    PSI_SOME = "psi.memory.some", Seconds, [Machine Done Phase], "/proc/pressure/memory":
        "time in which at least one task of a CPU waited for memory: the mean over the CPUs, each weighted by how long it was not idle";
    PSI_FULL = "psi.memory.full", Seconds, [Machine Done Phase], "/proc/pressure/memory":
        "time in which a task of a CPU waited for memory and none ran there that did not: the mean over the CPUs, each weighted by how long it was not idle";
    TIME_KSWAPD = "time_kswapd_awake", Seconds, [Machine] Work, "tracepoints":
        "from the start of kswapd's work to its full sleep, naps included, all nodes together";
    TIME_KSWAPD_THROTTLED = "time_kswapd_throttled", Seconds, [Machine] Work, "Pagetide":
        "the part of kswapd's time awake in which it slept until pages under writeback were written, or for want of progress";
    TIME_KSWAPD_DISK = "time_kswapd_disk", Seconds, [Machine] Work, "Pagetide":
        "the part of kswapd's time awake in which it slept until a disk took more of its writes";
    TIME_KCOMPACTD = "time_kcompactd_awake", Seconds, [Machine] Work, "tracepoints":
        "from kcompactd's waking to its sleep, all nodes together";
    TIME_DIRECT_COMPACTING = "time_direct_compacting", Seconds, [Machine], "tracepoints":
        "in the middle of a zone, sum over tasks and khugepaged; who waits for a CPU meanwhile counts as busy";
    TIME_KSWAPD_COMPACTING = "time_kswapd_compacting", Seconds, [Machine] Work, "tracepoints":
        "kswapd in the middle of a zone (policy `background_compaction = \"kswapd\"`)";
    TIME_KCOMPACTD_COMPACTING = "time_kcompactd_compacting", Seconds, [Machine] Work, "tracepoints":
        "kcompactd in the middle of a zone";
    CPU_KSWAPD = "cpu_kswapd", Seconds, [Machine Phase] Work, "/proc/PID/schedstat":
        "CPU time of kswapd, interrupts included, all nodes together";
    CPU_WRITEBACK = "cpu_writeback", Seconds, [Machine Phase] Work, "/proc/PID/schedstat of kworker/u*":
        "CPU time of the thread that writes dirty pages back, interrupts included; in the kernel, of all workers that are bound to no CPU";
    CPU_KCOMPACTD = "cpu_kcompactd", Seconds, [Machine] Work, "/proc/PID/stat":
        "CPU time of kcompactd, all nodes together";
    CPU_DIRECT_COMPACTING = "cpu_direct_compacting", Seconds, [Machine] Work, "tracepoints":
        "CPU time of compaction by tasks and khugepaged";
    CPU_KSWAPD_COMPACTING = "cpu_kswapd_compacting", Seconds, [Machine] Work, "tracepoints":
        "CPU time of compaction by kswapd";
    CPU_KCOMPACTD_COMPACTING = "cpu_kcompactd_compacting", Seconds, [Machine] Work, "tracepoints":
        "CPU time of compaction by kcompactd";
    ALLOCSTALL = "allocstall", Count, [Machine Done Phase], "/proc/vmstat, sum of `allocstall_*`":
        "direct reclaims, all zones together";
    PEAK_SLAB = "peak.slab", Bytes, [Machine], "/proc/meminfo, Slab":
        "the most that all slabs were seen to have, looked at every 5 s and at the end, as the people did who measured the patch of 2020: what comes and goes in between is not seen";
    WALLTIME = "walltime", Seconds, [Task Phase], "clock_gettime":
        "time from its begin to its end; of copies, their mean";
    BYTES = "bytes", Bytes, [Task Phase] More, "Pagetide": "bytes that its workloads touched, read or wrote";
    THROUGHPUT = "throughput", BytesPerSecond, [Task Phase] More, "Pagetide": "`bytes` over `walltime`";
    TASK_PGFAULT = "pgfault", Count, [Task] Work, "getrusage, minor and major faults": "its page faults";
    TASK_PGMAJFAULT = "pgmajfault", Count, [Task], "getrusage, major faults": "its faults that had to read";
    STALL_REFAULT = "stall_refault", Seconds, [Task], "Pagetide; delayacct, swapin and thrashing":
        "time that it waited for pages that had been swapped out, or evicted while they were in use; of a service the sum of its threads; of copies, their mean";
    STALL_RECLAIM = "stall_reclaim", Seconds, [Task], "Pagetide; delayacct, direct reclaim":
        "time that it reclaimed for itself: on a CPU, or waiting for a page meanwhile; of a service the sum of its threads; of copies, their mean";
    STALL_THROTTLED = "stall_throttled", Seconds, [Task], "Pagetide":
        "time that it was asleep in reclaim: for writes, for a disk, for kswapd, or above `memory.high`; of a service the sum of its threads; of copies, their mean";
    STALL_DIRTY = "stall_dirty", Seconds, [Task], "Pagetide":
        "time that it was asleep because too many pages were dirty; of a service the sum of its threads; of copies, their mean";
    ALLOCATED = "allocated", Bytes, [Task] Work, "Pagetide":
        "memory that was allocated while it ran in the kernel: its pages, page cache, page tables, kernel memory";
    ALLOC_LATENCY_P50 = "alloc_latency_p50", Seconds, [Task], "Pagetide":
        "time that half of its page allocations took at most";
    ALLOC_LATENCY_P99 = "alloc_latency_p99", Seconds, [Task], "Pagetide":
        "time that 99 % of its page allocations took at most";
    ALLOC_LATENCY_P999 = "alloc_latency_p999", Seconds, [Task], "Pagetide":
        "time that 99.9 % of its page allocations took at most";
    ALLOC_LATENCY_MAX = "alloc_latency_max", Seconds, [Task], "Pagetide":
        "time of its slowest page allocation";
    REQUESTS = "requests", Count, [Task Phase] More, "Pagetide": "requests that a service has served";
    REQUEST_RATE = "request_rate", PerSecond, [Task Phase] More, "Pagetide":
        "`requests` over the time of the phases in which they were served";
    LATE = "late", Count, [Task Phase], "Pagetide": "requests that took longer than `deadline`, or had waited for longer when the task was stopped";
    DROPPED = "dropped", Count, [Task Phase], "Pagetide": "requests that found the queue full";
    UNFINISHED = "unfinished", Count, [Task Phase], "Pagetide":
        "requests that waited or were served when the task was stopped";
    LATENCY_MEAN = "latency_mean", Seconds, [Task Phase], "Pagetide":
        "time of a request, from its arrival to its end, the wait for a thread included; the mean";
    LATENCY_P50 = "latency_p50", Seconds, [Task Phase], "Pagetide":
        "time that half of the requests took at most, from arrival to end, to 0.1 %";
    LATENCY_P90 = "latency_p90", Seconds, [Task Phase], "Pagetide":
        "time that 90 % of the requests took at most, from arrival to end, to 0.1 %";
    LATENCY_P99 = "latency_p99", Seconds, [Task Phase], "Pagetide":
        "time that 99 % of the requests took at most, from arrival to end, to 0.1 %";
    LATENCY_P999 = "latency_p999", Seconds, [Task Phase], "Pagetide":
        "time that 99.9 % of the requests took at most, from arrival to end, to 0.1 %";
    LATENCY_MAX = "latency_max", Seconds, [Task Phase], "Pagetide": "time of the slowest request";
    SUCCESS = "success", Percent, [Task Phase] More, "Pagetide, rounded down as in mmtests":
        "blocks that it got, of those that it asked for";
    ATTEMPTS = "attempts", Count, [Task] More, "Pagetide": "blocks that it asked for";
    RESIDENT = "resident", Pages, [Phase] Neither, "mincore":
        "pages of the region that the phase locks or advises which are in memory when the phase ends";
    ERRNO = "errno", Count, [Phase] Neither, "madvise":
        "number of the error that the call of an `advise` returned, 0: it succeeded; of copies, if none returned another one";
    ANON_HOT = "anon_hot_resident", Pages, [Phase] More, "mincore":
        "pages of the hot part of anonymous memory that are in memory when the phase ends";
    ANON_COLD = "anon_cold_resident", Pages, [Phase] Neither, "mincore":
        "pages of the cold part of anonymous memory that are in memory when the phase ends";
    FILE_HOT = "file_hot_resident", Pages, [Phase] More, "mincore":
        "pages of the hot part of the file that are in memory when the phase ends";
    FILE_COLD = "file_cold_resident", Pages, [Phase] Neither, "mincore":
        "pages of the cold part of the file that are in memory when the phase ends";
    SLAB_UTILISATION = "slab_utilisation", Ratio, [Machine Idle Shrunk Phase] More, "/proc/slabinfo":
        "bytes of live objects / bytes of slabs; of the machine, the mean over looks every 5 s and at the end";
    MEMORY_CURRENT = "memory.current", Bytes, [Group PhaseGroup] Neither, "memory.current" v1 "memory.usage_in_bytes":
        "memory charged to the group, with the groups in it, at the end, or when it was removed";
    MEMORY_SWAP_CURRENT = "memory.swap.current", Bytes, [Group PhaseGroup] Neither, "memory.swap.current" v1 "total_swap":
        "its slots in the swap area; in version 2 those of pages that are back in memory, too, as long as they keep them";
    ANON = "anon", Bytes, [Group PhaseGroup] Neither, "memory.stat" v1 "total_rss": "its anonymous memory";
    FILE = "file", Bytes, [Group PhaseGroup] Neither, "memory.stat" v1 "total_cache": "its page cache";
    ACTIVE_ANON = "active_anon", Bytes, [Group PhaseGroup] Neither, "memory.stat" v1 "total_active_anon":
        "its active list of anonymous pages";
    INACTIVE_ANON = "inactive_anon", Bytes, [Group PhaseGroup] Neither, "memory.stat" v1 "total_inactive_anon":
        "its inactive list of anonymous pages";
    ACTIVE_FILE = "active_file", Bytes, [Group PhaseGroup] Neither, "memory.stat" v1 "total_active_file":
        "its active list of file pages";
    INACTIVE_FILE = "inactive_file", Bytes, [Group PhaseGroup] Neither, "memory.stat" v1 "total_inactive_file":
        "its inactive list of file pages";
    KERNEL = "kernel", Bytes, [Group PhaseGroup] Neither, "memory.stat" v1 "memory.kmem.usage_in_bytes":
        "memory of the kernel that it pays for, of which version 1 has only the sum";
    PAGETABLES = "pagetables", Bytes, [Group PhaseGroup] Neither, "memory.stat": "its page tables";
    PERCPU = "percpu", Bytes, [Group PhaseGroup] Neither, "memory.stat":
        "counters on each CPU of the groups made in it, as they are charged";
    SLAB = "slab", Bytes, [Machine Idle Shrunk Phase Group PhaseGroup] Neither, "memory.stat; /proc/vmstat, nr_slab_*":
        "slabs; of a group its kernel objects, each with its size and the eight bytes that say whose it is";
    SLAB_RECLAIMABLE = "slab_reclaimable", Bytes, [Machine Idle Shrunk Phase Group PhaseGroup] Neither,
        "memory.stat; /proc/vmstat, nr_slab_reclaimable": "slabs whose objects a shrinker can free";
    SLAB_UNRECLAIMABLE = "slab_unreclaimable", Bytes, [Machine Idle Shrunk Phase Group PhaseGroup] Neither,
        "memory.stat; /proc/vmstat, nr_slab_unreclaimable": "slabs whose objects no shrinker can free";
    EVENTS_LOW = "memory.events.low", Count, [Group PhaseGroup], "memory.events":
        "times that it was reclaimed from although below `memory.low`";
    EVENTS_HIGH = "memory.events.high", Count, [Group PhaseGroup] Work, "memory.events":
        "times that it was above `memory.high` and reclaimed from";
    EVENTS_MAX = "memory.events.max", Count, [Group PhaseGroup] Work, "memory.events": "times that it met its limit";
    EVENTS_OOM = "memory.events.oom", Count, [Group PhaseGroup], "memory.events":
        "times that reclaim found nothing more in it";
    EVENTS_OOM_KILL = "memory.events.oom_kill", Count, [Group PhaseGroup], "memory.events":
        "its tasks that were killed for want of memory";
    CPU_USAGE = "cpu.stat.usage_usec", Count, [Group PhaseGroup] Neither, "cpu.stat, usage_usec":
        "CPU time of its tasks in microseconds, if some group has `cpu.weight` or `cpu.max`";
    CPU_PERIODS = "cpu.stat.nr_periods", Count, [Group PhaseGroup] Neither, "cpu.stat, nr_periods":
        "periods of `cpu.max` in which it had something to run";
    CPU_THROTTLED = "cpu.stat.nr_throttled", Count, [Group PhaseGroup] Work, "cpu.stat, nr_throttled":
        "those in which it had used its quota";
    CPU_THROTTLED_TIME = "cpu.stat.throttled_usec", Count, [Group PhaseGroup] Work, "cpu.stat, throttled_usec":
        "microseconds for which CPUs did not run it for that reason, summed over the CPUs";
    EVENTS_OOM_GROUP_KILL = "memory.events.oom_group_kill", Count, [Group PhaseGroup], "memory.events":
        "times that all its tasks were killed together";
    LOCAL_EVENTS_LOW = "memory.events.local.low", Count, [Group PhaseGroup], "memory.events.local":
        "as memory.events.low, without the groups in it";
    LOCAL_EVENTS_HIGH = "memory.events.local.high", Count, [Group PhaseGroup] Work, "memory.events.local":
        "as memory.events.high, without the groups in it";
    LOCAL_EVENTS_MAX = "memory.events.local.max", Count, [Group PhaseGroup] Work, "memory.events.local":
        "as memory.events.max, without the groups in it";
    LOCAL_EVENTS_OOM = "memory.events.local.oom", Count, [Group PhaseGroup], "memory.events.local":
        "as memory.events.oom, without the groups in it";
    LOCAL_EVENTS_OOM_KILL = "memory.events.local.oom_kill", Count, [Group PhaseGroup], "memory.events.local":
        "as memory.events.oom_kill, without the groups in it";
    LOCAL_EVENTS_OOM_GROUP_KILL = "memory.events.local.oom_group_kill", Count, [Group PhaseGroup],
        "memory.events.local": "as memory.events.oom_group_kill, without the groups in it";
    MEMORY_PEAK = "memory.peak", Bytes, [Group] Work, "memory.peak": "the most memory that it ever had, also of a group that was removed; of copies, the sum";
    KMEM_PEAK = "memory.kmem.peak", Bytes, [Group], "memory.kmem.max_usage_in_bytes":
        "the most kernel memory that it ever had, also of a group that was removed";
    CONTROLLERS_MEMORY = "cgroup.controllers.memory", Count, [Group PhaseGroup] Neither, "cgroup.controllers":
        "1: it has a memory controller, 0: the group around it pays; of copies, what all have; if a row, an expectation or the command line asks for it";
    DYING_DESCENDANTS = "cgroup.stat.nr_dying_descendants", Count, [Group PhaseGroup] Neither, "cgroup.stat":
        "groups removed below it that something still holds; if a row, an expectation or the command line asks for it";
    MEMORY_MIN = "memory.min", Bytes, [Group PhaseGroup] Neither, "memory.min":
        "what its control file says, of copies if none says otherwise; if a row, an expectation or the command line asks for it";
    MEMORY_LOW = "memory.low", Bytes, [Group PhaseGroup] Neither, "memory.low":
        "what its control file says, of copies if none says otherwise; if a row, an expectation or the command line asks for it";
    MEMORY_HIGH = "memory.high", Bytes, [Group PhaseGroup] Neither, "memory.high":
        "what its control file says, `max` as 2^63 - 4096, of copies if none says otherwise; if a row, an expectation or the command line asks for it";
    MEMORY_MAX = "memory.max", Bytes, [Group PhaseGroup] Neither, "memory.max":
        "what its control file says, `max` as 2^63 - 4096, of copies if none says otherwise; if a row, an expectation or the command line asks for it";
    MEMORY_SWAP_MAX = "memory.swap.max", Bytes, [Group PhaseGroup] Neither, "memory.swap.max":
        "what its control file says, `max` as 2^63 - 4096, of copies if none says otherwise; if a row, an expectation or the command line asks for it";
    PRESSURE_SOME = "memory.pressure.some", Seconds, [Group PhaseGroup], "memory.pressure":
        "time in which at least one of its tasks waited for memory, by CPU as psi.memory.some";
    PRESSURE_FULL = "memory.pressure.full", Seconds, [Group PhaseGroup], "memory.pressure":
        "time in which one of its tasks waited for memory and none of them ran that did not, by CPU as psi.memory.full";
    PEAK_USAGE = "peak.usage", Bytes, [Group] Work, "Pagetide":
        "the most memory that it was seen to have, looked at every 5 s, at the end, and before it is removed";
    PEAK_KMEM = "peak.kmem_usage", Bytes, [Group], "Pagetide":
        "the most kernel memory that it was seen to have, looked at every 5 s, at the end, and before it is removed";
    READS = "reads", Count, [Disk] Work, "/proc/diskstats": "its reads";
    READ_TIME = "read_time", Seconds, [Disk] Work, "/proc/diskstats": "the time that its reads took together";
    WRITES = "writes", Count, [Disk] Work, "/proc/diskstats": "its writes";
    WRITE_TIME = "write_time", Seconds, [Disk] Work, "/proc/diskstats": "the time that its writes took together";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_one_metric_of_a_name_and_a_name_one_unit() {
        for (at, metric) in ALL.iter().enumerate() {
            for other in ALL[..at].iter().filter(|other| other.name == metric.name) {
                assert_eq!(other.unit, metric.unit, "{}", metric.name);
                assert!(metric.of.iter().all(|kind| !other.of.contains(kind)), "{}", metric.name);
            }
            let is_plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
            assert!(metric.name.chars().all(is_plain) && !metric.of.is_empty(), "{}", metric.name);
        }
        for metric in ALL {
            // It is shown alone, by `explain` and on pages.
            let leans = ["the same", "the part of it", "the other part", "the time they"];
            assert!(!leans.iter().any(|it| metric.about.contains(it)), "{}", metric.name);
            // What comes a second, or in bytes a second, is work that was done.
            let is_rate = matches!(metric.unit, Unit::PerSecond | Unit::BytesPerSecond);
            assert!(!is_rate || metric.better == Better::More, "{}", metric.name);
            let is_time = metric.unit == Unit::Seconds;
            assert!(!is_time || matches!(metric.better, Better::Less | Better::Work));
        }
        assert_eq!((SUCCESS.better, ATTEMPTS.better), (Better::More, Better::More));
        assert_eq!((SLAB_UTILISATION.better, FILE.better), (Better::More, Better::Neither));
        assert_eq!((LATE.better, PEAK_KMEM.better), (Better::Less, Better::Less));
        assert_eq!((PEAK_USAGE.better, USER.better), (Better::Work, Better::Work));
        assert_eq!(find(Kind::Task, "pgfault"), Some(TASK_PGFAULT));
        assert_eq!(find(Kind::Group, "pgfault"), None, "memory.stat's own");
        assert!(
            is_state("w.0.coll.errno") && is_state("memory.max") && is_state("group:g:memory.low")
        );
        assert!(!is_state("g.memory.events.max") && !is_state("g.memory.swap.current"));
        assert_eq!(levels_of_groups().count(), 21);
        assert_eq!(events_of_groups().count(), 16);
    }

    #[test]
    fn a_pattern_asks_for_what_nothing_else_fits() {
        for (text, asked) in [
            ("g.memory.high", &["memory.high"][..]),
            ("group:g:memory.high", &["memory.high"]),
            ("memory.high", &["memory.high"]),
            ("*.memory.high", &["memory.high"]),
            ("*.nr_dying*", &["cgroup.stat.nr_dying_descendants"]),
            ("pod.*.memory.ma*", &["memory.max"]),
            ("pod.*", &[]),
            ("*", &[]),
            ("pod.memory.*", &[]),
            ("pod.memory.events.max", &[]),
            ("memory.events.high", &[]),
            ("memory", &[]),
        ] {
            assert_eq!(asked_by(text).collect::<Vec<_>>(), asked, "{text}");
        }
    }
}
