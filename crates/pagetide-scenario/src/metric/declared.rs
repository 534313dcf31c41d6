//! The metrics that no event counter of the kernel gives: each with its unit, the scopes that have
//! it, the file in which a kernel reports it, and its meaning.
//!
//! To add a metric, add an entry here and a call of [`super::MetricWriter::put`] in each world with
//! it.
//!
//! Invariant: within a kind of scope, a name stands for one metric; a metric has one unit.

use super::better::MetricDirection;
use super::key::ScopeKind;
use crate::names::near::matches;
use crate::record::Unit;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::LazyLock;

/// The declaration of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDecl {
    /// Last part of its key.
    pub name: &'static str,
    pub unit: Unit,
    /// Kinds of scope that can have it.
    pub scopes: &'static [ScopeKind],
    /// Where Linux reports it: a file, and its field if called otherwise. "Pagetide": nowhere.
    pub source: &'static str,
    /// Name in cgroup version 1; empty if version 1 does not report it or is not read.
    pub v1_name: &'static str,
    pub about: &'static str,
    pub better: MetricDirection,
}

/// The metric of this kind and name.
pub fn find(kind: ScopeKind, name: &str) -> Option<&'static MetricDecl> {
    static BY_NAME: LazyLock<HashMap<&str, Vec<&MetricDecl>>> = LazyLock::new(|| {
        let mut by_name = HashMap::<_, Vec<_>>::new();
        for &metric in ALL {
            by_name.entry(metric.name).or_default().push(metric);
        }
        by_name
    });
    BY_NAME.get(name)?.iter().copied().find(|metric| metric.scopes.contains(&kind))
}

/// The levels of a group, in the order of display.
pub fn levels_of_groups() -> impl Iterator<Item = &'static MetricDecl> {
    let of_groups = |metric: &&MetricDecl| metric.scopes.contains(&ScopeKind::PhaseGroup);
    let is_level = |metric: &&MetricDecl| metric.unit == Unit::Bytes || is_of_cgroup(metric);
    ALL.iter().copied().filter(of_groups).filter(is_level)
}

/// Prefix of the metrics of the cgroup itself. Their unit is a count, but they are levels, not
/// events.
const CGROUP: &str = "cgroup.";

fn is_of_cgroup(metric: &MetricDecl) -> bool {
    metric.name.starts_with(CGROUP)
}

/// Whether a metric of a phase is a level of the machine or of a group at the end of the phase, and
/// not an event or the task's own.
pub fn is_level_of_phase(kind: ScopeKind, name: &str, unit: Unit) -> bool {
    match kind {
        ScopeKind::PhaseGroup => unit == Unit::Bytes || name.starts_with(CGROUP),
        ScopeKind::Phase => match find(kind, name) {
            Some(declared) => {
                let is_size = matches!(unit, Unit::Bytes | Unit::Pages);
                is_size && declared.scopes.contains(&ScopeKind::Machine)
            }
            None => unit == Unit::Pages || LEVELS.iter().any(|prefix| name.starts_with(prefix)),
        },
        ScopeKind::Machine
        | ScopeKind::Idle
        | ScopeKind::Done
        | ScopeKind::Shrunk
        | ScopeKind::Disk
        | ScopeKind::Task
        | ScopeKind::Group
        | ScopeKind::Unread => false,
    }
}

/// Metrics of groups that are recorded only if a row, an expectation or the command line names
/// them: each needs one more file to be read. The source names the file.
pub const ON_REQUEST: [&MetricDecl; 7] = [
    CONTROLLERS_MEMORY,
    DYING_DESCENDANTS,
    MEMORY_MIN,
    MEMORY_LOW,
    MEMORY_HIGH,
    MEMORY_MAX,
    MEMORY_SWAP_MAX,
];

/// Metrics of the machine that are recorded only if a row, an expectation or the command line names
/// them, because measuring them takes time.
pub const PATHOLOGIES: [&MetricDecl; 3] = [OOM_EVICTABLE, FROZEN_LONGEST, REFAULT_SHARE];

/// Whether a key, a part of keys or a pattern asks for one of [`PATHOLOGIES`].
pub fn asks_for_pathology(text: &str) -> bool {
    let name = text.strip_prefix("machine:").unwrap_or(text);
    let fits = |it: &&MetricDecl| it.name == name || name != "*" && matches(name, it.name);
    PATHOLOGIES.iter().any(fits)
}

/// Metrics that are a state, not an amount: an error number, a limit. They have no sum and no mean.
/// All copies together have the value only if every copy has the same.
const STATES: [&MetricDecl; 7] =
    [ERRNO, CONTROLLERS_MEMORY, MEMORY_MIN, MEMORY_LOW, MEMORY_HIGH, MEMORY_MAX, MEMORY_SWAP_MAX];

/// Whether the metric of this name is a state, neither added up nor averaged.
pub fn is_state(name: &str) -> bool {
    STATES.iter().any(|metric| metric.name == name)
}

/// Whether a key asks for kills by watchers.
pub fn counts_kills_by_watchers(key: &str) -> bool {
    [KILLS, EVICTIONS, TIMES_KILLED].iter().any(|metric| ends_with(key, metric.name))
}

/// Whether a key or a pattern ends in this metric name.
fn ends_with(key: &str, name: &str) -> bool {
    let owner = key.strip_suffix(name);
    owner.is_some_and(|owner| owner.is_empty() || owner.ends_with(['.', ':']))
}

/// The metrics of [`ON_REQUEST`] that a key or a pattern asks for: it ends in the name, or it has a
/// `*` and matches no other metric of groups.
pub fn requested_by(text: &str) -> impl Iterator<Item = &'static str> + '_ {
    let tails = move || {
        let part = text.char_indices().filter(|(_, c)| ['.', ':'].contains(c));
        let part = part.map(|(at, _)| &text[at + 1..]);
        // A star may stand for an owner and the first part of a name.
        let star = text.match_indices('*').map(|(at, _)| &text[at..]).filter(|tail| *tail != "*");
        std::iter::once(text).chain(part).chain(star)
    };
    let fits = move |name: &str| tails().any(|tail| matches(tail, name));
    let is_other = |metric: &&&MetricDecl| !ON_REQUEST.iter().any(|it| it.name == metric.name);
    let of_groups = || ALL.iter().filter(|metric| metric.scopes.contains(&ScopeKind::PhaseGroup));
    let is_own = text.contains('*') && !of_groups().filter(is_other).any(|it| fits(it.name));
    let names = ON_REQUEST.iter().map(|metric| metric.name);
    names.filter(move |name| ends_with(text, name) || is_own && fits(name))
}

/// Events of a group that are not in memory.stat, in the order of display.
pub fn events_of_groups() -> impl Iterator<Item = &'static MetricDecl> {
    let of_groups = |metric: &&MetricDecl| metric.scopes.contains(&ScopeKind::PhaseGroup);
    let is_event = |metric: &&MetricDecl| metric.unit == Unit::Count && !is_of_cgroup(metric);
    ALL.iter().copied().filter(of_groups).filter(is_event)
}

/// Prefix of the metrics of caches: `slabinfo.CACHE.COLUMN`, with a column of [`OF_CACHES`].
pub const SLABINFO: &str = "slabinfo.";

/// The recorded columns of /proc/slabinfo.
pub const OF_CACHES: [&str; 3] = ["active_objs", "num_objs", "num_slabs"];

/// The metric names of a cache, in the order of [`OF_CACHES`].
pub fn slabinfo_names(cache: &str) -> [String; 3] {
    OF_CACHES.map(|what| format!("{SLABINFO}{cache}.{what}"))
}

/// The value of `max` in a control file: the kernel's largest limit, as cgroup version 1 shows it
/// (Linux `PAGE_COUNTER_MAX` with pages of 4 KiB).
pub const NO_LIMIT: u64 = (1 << 63) - 4096;

/// Prefix of the metrics of zones: `buddyinfo.nodeN.ZONE.nr_free_blocks_ORDER`.
pub const BUDDYINFO: &str = "buddyinfo.";

/// Prefix of the metrics of free blocks: `nr_free_blocks_ORDER`. They count blocks, not pages.
pub const FREE_BLOCKS: &str = "nr_free_blocks_";

/// Prefixes of the counts that are levels of the machine.
const LEVELS: [&str; 3] = [SLABINFO, BUDDYINFO, FREE_BLOCKS];

/// The metric name of the free blocks of one order in a zone.
pub fn buddyinfo_name(node: impl Display, zone: &str, order: usize) -> String {
    format!("{BUDDYINFO}node{node}.{zone}.nr_free_blocks_{order}")
}

/// [`SLABINFO`] or [`BUDDYINFO`], if a name or a pattern contains it.
pub fn file_prefix(text: &str) -> Option<&'static str> {
    [SLABINFO, BUDDYINFO].into_iter().find(|file| text.contains(file))
}

macro_rules! better {
    () => {
        MetricDirection::Less
    };
    ($better:ident) => {
        MetricDirection::$better
    };
}

macro_rules! metrics {
    ($($id:ident = $name:literal, $unit:ident, [$($of:ident)*] $($better:ident)?, $source:literal
        $(v1 $first:literal)?: $about:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $about, ".")]
            pub const $id: &MetricDecl = &MetricDecl {
                name: $name,
                unit: Unit::$unit,
                scopes: &[$(ScopeKind::$of),*],
                source: $source,
                v1_name: concat!($($first)?),
                about: $about,
                better: better!($($better)?),
            };
        )*

        /// All declared metrics.
        pub const ALL: &[&MetricDecl] = &[$($id),*];
    };
}

metrics! {
    ELAPSED = "elapsed", Seconds, [Machine], "Pagetide": "time from the start of the run to its end";
    USER = "user", Seconds, [Machine Task Phase] Work, "getrusage":
        "CPU time in user mode; for the machine: of all tasks";
    SYSTEM = "system", Seconds, [Machine Task Phase] Work, "getrusage":
        "CPU time in the kernel; for the machine: of tasks, daemons, context switches and interrupts";
    CPU = "cpu", Seconds, [Task Phase] Work, "CLOCK_PROCESS_CPUTIME_ID":
        "CPU time in user mode and in the kernel, including switches to the task and interrupts";
    PROGRAM_TIME = "program_time", Seconds, [Phase] Work, "Pagetide":
        "CPU time of the test program to generate the operations, without performing them; on a real kernel only";
    OPERATIONS = "operations", Count, [Phase] More, "Pagetide":
        "operations that the test program generated; on a real kernel only";
    FROZEN = "node.frozen", Seconds, [Machine], "Pagetide":
        "time in which tasks wanted to run and none made progress in user mode, in steps of 100 ms; \
         only with a watcher";
    FROZEN_LONGEST = "node.frozen_longest", Seconds, [Machine], "Pagetide":
        "longest time on end in which tasks wanted to run and none made progress in user mode, in \
         steps of 100 ms; recorded on request: by a row, an expectation or the command line";
    OOM_EVICTABLE = "node.oom_evictable", Percent, [Machine], "Pagetide":
        "largest share of a limit that was clean page cache on the lists when the OOM killer acted \
         for that limit, or for the machine; recorded on request: by a row, an expectation or the \
         command line";
    REFAULT_SHARE = "node.refault_share", Percent, [Machine], "Pagetide":
        "most refaults for each evicted page in a second with 1000 or more evictions; recorded on \
         request: by a row, an expectation or the command line";
    LOOKS = "looks", Count, [Task] Neither, "Pagetide": "times that the watcher read its files";
    KILLS = "kills", Count, [Task], "Pagetide": "tasks or groups that the watcher killed";
    EVICTIONS = "evictions", Count, [Task], "Pagetide": "pods that the watcher evicted";
    FIRST_KILL = "first_kill", Seconds, [Task] Work, "Pagetide":
        "time of the watcher's first kill or eviction; absent without one";
    WATCHER_WRITES = "control_writes", Count, [Task] Work, "Pagetide":
        "writes of the watcher to control files";
    TIMES_KILLED = "times_killed", Count, [Task], "Pagetide":
        "times that a watcher killed the task; only with a watcher";
    RESTARTS = "restarts", Count, [Task], "Pagetide":
        "times that the task started again after it was killed; only with `restart`";
    PSI_SOME = "psi.memory.some", Seconds, [Machine Done Phase], "/proc/pressure/memory":
        "time in which at least one task of a CPU waited for memory: mean over the CPUs, \
         weighted by their non-idle time";
    PSI_FULL = "psi.memory.full", Seconds, [Machine Done Phase], "/proc/pressure/memory":
        "time in which a task of a CPU waited for memory and no other task did productive work \
         there: mean over the CPUs, weighted by their non-idle time";
    TIME_KSWAPD = "time_kswapd_awake", Seconds, [Machine] Work, "tracepoints":
        "time from kswapd's wake-up to its full sleep, with the nap of 0.1 s before that sleep, in \
         which it waits for more work; sum over the nodes";
    TIME_KSWAPD_THROTTLED = "time_kswapd_throttled", Seconds, [Machine] Work, "Pagetide":
        "part of time_kswapd_awake: throttled sleep, until pages under writeback were written or \
         because reclaim made no progress";
    TIME_KSWAPD_DISK = "time_kswapd_disk", Seconds, [Machine] Work, "Pagetide":
        "part of time_kswapd_awake: sleep until a disk accepted more writes";
    TIME_KCOMPACTD = "time_kcompactd_awake", Seconds, [Machine] Work, "tracepoints":
        "time from kcompactd's wake-up to its sleep; sum over the nodes";
    TIME_DIRECT_COMPACTING = "time_direct_compacting", Seconds, [Machine], "tracepoints":
        "time that tasks and khugepaged spend compacting a zone, sum over them; time waiting for a CPU counts";
    TIME_KSWAPD_COMPACTING = "time_kswapd_compacting", Seconds, [Machine] Work, "tracepoints":
        "time that kswapd spends compacting a zone (policy `background_compaction = \"kswapd\"`)";
    TIME_KCOMPACTD_COMPACTING = "time_kcompactd_compacting", Seconds, [Machine] Work, "tracepoints":
        "time that kcompactd spends compacting a zone";
    CPU_KSWAPD = "cpu_kswapd", Seconds, [Machine Phase] Work, "/proc/PID/schedstat":
        "CPU time of kswapd, interrupts included; sum over the nodes";
    CPU_WRITEBACK = "cpu_writeback", Seconds, [Machine Phase] Work, "/proc/PID/schedstat of kworker/u*":
        "CPU time of the writeback thread, interrupts included; on a real kernel: of all workers \
         that are not bound to a CPU";
    CPU_KCOMPACTD = "cpu_kcompactd", Seconds, [Machine] Work, "/proc/PID/stat":
        "CPU time of kcompactd; sum over the nodes";
    CPU_DIRECT_COMPACTING = "cpu_direct_compacting", Seconds, [Machine] Work, "tracepoints":
        "CPU time of compaction by tasks and khugepaged";
    CPU_KSWAPD_COMPACTING = "cpu_kswapd_compacting", Seconds, [Machine] Work, "tracepoints":
        "CPU time of compaction by kswapd";
    CPU_KCOMPACTD_COMPACTING = "cpu_kcompactd_compacting", Seconds, [Machine] Work, "tracepoints":
        "CPU time of compaction by kcompactd";
    ALLOCSTALL = "allocstall", Count, [Machine Done Phase], "/proc/vmstat, sum of `allocstall_*`":
        "number of direct reclaims; sum over the zones";
    PEAK_SLAB = "peak.slab", Bytes, [Machine], "/proc/meminfo, Slab":
        "largest memory of all slabs, sampled every 5 s and at the end, as in the measurements \
         of the 2020 patch; changes between samples are missed";
    ZRAM_ORIG = "zram.orig_data_size", Bytes, [Machine Done Phase] Neither, "/sys/block/zram*/mm_stat":
        "memory of the pages in all zram devices, before compression";
    ZRAM_COMPR = "zram.compr_data_size", Bytes, [Machine Done Phase] Neither, "/sys/block/zram*/mm_stat":
        "their size after compression; pages filled with one word count 0";
    ZRAM_USED = "zram.mem_used_total", Bytes, [Machine Done Phase], "/sys/block/zram*/mm_stat":
        "memory that the pools of the zram devices take";
    ZRAM_SAME = "zram.same_pages", Pages, [Machine Done Phase] Neither, "/sys/block/zram*/mm_stat":
        "pages in zram filled with one word";
    ZRAM_HUGE = "zram.huge_pages", Pages, [Machine Done Phase] Neither, "/sys/block/zram*/mm_stat":
        "pages in zram that are stored without compression, because it hardly makes them smaller";
    ZRAM_USED_MAX = "zram.mem_used_max", Bytes, [Machine], "/sys/block/zram*/mm_stat":
        "largest memory of the pools so far; for several devices, the sum";
    ZRAM_BD_COUNT = "zram.bd_count", Pages, [Machine Done Phase] Neither, "/sys/block/zram*/bd_stat":
        "pages of zram devices on the disks behind them";
    ZRAM_BD_READS = "zram.bd_reads", Pages, [Machine] Work, "/sys/block/zram*/bd_stat":
        "pages read from the disks behind zram devices";
    ZRAM_BD_WRITES = "zram.bd_writes", Pages, [Machine] Work, "/sys/block/zram*/bd_stat":
        "pages written to the disks behind zram devices";
    ZRAM_COMPACTED = "zram.pages_compacted", Count, [Machine] Neither, "/sys/block/zram*/mm_stat":
        "pages of the pools that compaction has freed";
    ZRAM_FAILED = "zram.failed_writes", Count, [Machine], "/sys/block/zram*/io_stat":
        "writes to zram that failed, because no page was free or the limit was met; the page stays \
         in memory";
    ZSWAP_POOL = "zswap.pool_total_size", Bytes, [Machine Done Phase], "/sys/kernel/debug/zswap":
        "memory that the pool of zswap takes";
    ZSWAP_STORED = "zswap.stored_pages", Pages, [Machine Done Phase] Neither, "/sys/kernel/debug/zswap":
        "pages stored in zswap";
    ZSWAP_SAME = "zswap.same_filled_pages", Pages, [Machine Done Phase] Neither, "/sys/kernel/debug/zswap":
        "pages in zswap filled with one word, which take no memory";
    ZSWAP_WRITTEN = "zswap.written_back_pages", Count, [Machine] Neither, "/sys/kernel/debug/zswap":
        "pages of zswap written to the disks of their slots";
    ZSWAP_LIMIT = "zswap.pool_limit_hit", Count, [Machine], "/sys/kernel/debug/zswap":
        "pages that zswap did not take because its pool was at its limit";
    ZSWAP_POOR = "zswap.reject_compress_poor", Count, [Machine] Neither, "/sys/kernel/debug/zswap":
        "pages that zswap did not take because compression does not make them smaller";
    ZSWAP_NO_MEMORY = "zswap.reject_alloc_fail", Count, [Machine], "/sys/kernel/debug/zswap":
        "pages that zswap did not take because no memory was free for its pool";
    ZSWAP_UNRECLAIMED = "zswap.reject_reclaim_fail", Count, [Machine], "/sys/kernel/debug/zswap":
        "pages of zswap that could not be written to their disks";
    WALLTIME = "walltime", Seconds, [Task Phase], "clock_gettime":
        "time from its start to its end; for copies, the mean";
    BYTES = "bytes", Bytes, [Task Phase] More, "Pagetide": "bytes that its workloads touched, read or wrote";
    THROUGHPUT = "throughput", BytesPerSecond, [Task Phase] More, "Pagetide": "`bytes` over `walltime`";
    TASK_PGFAULT = "pgfault", Count, [Task] Work, "getrusage, minor and major faults": "its page faults";
    TASK_PGMAJFAULT = "pgmajfault", Count, [Task], "getrusage, major faults":
        "its page faults that had to read from a disk";
    STALL_REFAULT = "stall_refault", Seconds, [Task], "Pagetide; delayacct, swapin and thrashing":
        "time it waited for pages that had been swapped out, or evicted while in use; for a \
         service, the sum over its threads; for copies, the mean";
    STALL_REREAD = "stall_reread", Seconds, [Task], "Pagetide":
        "time it waited for reads of file pages that had been evicted while not in use, which \
         psi.memory does not count; for a service, the sum over its threads; for copies, the mean";
    STALL_RECLAIM = "stall_reclaim", Seconds, [Task], "Pagetide; delayacct, direct reclaim":
        "time it spent in direct reclaim, on a CPU or waiting for a page; for a service, the sum \
         over its threads; for copies, the mean";
    STALL_THROTTLED = "stall_throttled", Seconds, [Task], "Pagetide":
        "time it slept in reclaim: for writeback, for a disk, or for kswapd; for a service, the \
         sum over its threads; for copies, the mean";
    STALL_HIGH = "stall_high", Seconds, [Task], "Pagetide":
        "time it slept because its group was above `memory.high`; for a service, the sum over its \
         threads; for copies, the mean";
    STALL_DIRTY = "stall_dirty", Seconds, [Task], "Pagetide":
        "time it slept because too many pages of the machine were dirty; for a service, the sum \
         over its threads; for copies, the mean";
    STALL_DIRTY_GROUP = "stall_dirty_group", Seconds, [Task], "Pagetide":
        "time it slept because too many pages of its group were dirty: the group's dirty limits \
         were stricter than the machine's; for a service, the sum over its threads; for copies, \
         the mean";
    DISK_WAIT = "disk_wait", Seconds, [Task], "Pagetide":
        "time it waited for disks, without the times of the metrics stall_*; for a service, the \
         sum over its threads; for copies, the mean";
    ALLOCATED = "allocated", Bytes, [Task] Work, "Pagetide":
        "memory allocated while it ran in the kernel: its pages, page cache, page tables, kernel memory";
    ALLOC_LATENCY_P50 = "alloc_latency_p50", Seconds, [Task], "Pagetide":
        "median time of its page allocations";
    ALLOC_LATENCY_P99 = "alloc_latency_p99", Seconds, [Task], "Pagetide":
        "99th percentile of the time of its page allocations";
    ALLOC_LATENCY_P999 = "alloc_latency_p999", Seconds, [Task], "Pagetide":
        "99.9th percentile of the time of its page allocations";
    ALLOC_LATENCY_MAX = "alloc_latency_max", Seconds, [Task], "Pagetide":
        "time of its slowest page allocation";
    REQUESTS = "requests", Count, [Task Phase] More, "Pagetide": "requests that the service completed";
    REQUEST_RATE = "request_rate", PerSecond, [Task Phase] More, "Pagetide":
        "`requests` divided by the time of the phases that served them";
    LATE = "late", Count, [Task Phase], "Pagetide":
        "requests that took longer than `deadline`, or had already waited longer when the task \
         was stopped; only with a `deadline`";
    DROPPED = "dropped", Count, [Task Phase], "Pagetide": "requests that found the queue full";
    UNFINISHED = "unfinished", Count, [Task Phase], "Pagetide":
        "requests that were waiting or in service when the task was stopped";
    LATENCY_MEAN = "latency_mean", Seconds, [Task Phase], "Pagetide":
        "mean time of a request from arrival to end, including the wait for a thread";
    LATENCY_P50 = "latency_p50", Seconds, [Task Phase], "Pagetide":
        "median time of a request from arrival to end, with a precision of 0.1 %";
    LATENCY_P90 = "latency_p90", Seconds, [Task Phase], "Pagetide":
        "90th percentile of the time of a request from arrival to end, with a precision of 0.1 %";
    LATENCY_P99 = "latency_p99", Seconds, [Task Phase], "Pagetide":
        "99th percentile of the time of a request from arrival to end, with a precision of 0.1 %";
    LATENCY_P999 = "latency_p999", Seconds, [Task Phase], "Pagetide":
        "99.9th percentile of the time of a request from arrival to end, with a precision of 0.1 %";
    LATENCY_MAX = "latency_max", Seconds, [Task Phase], "Pagetide": "time of the slowest request";
    SUCCESS = "success", Percent, [Task Phase] More, "Pagetide, rounded down as in mmtests":
        "share of its block allocations that succeeded";
    ATTEMPTS = "attempts", Count, [Task] More, "Pagetide": "blocks that it tried to allocate";
    RESIDENT = "resident", Pages, [Phase] Neither, "mincore":
        "pages in memory at the end of the phase, of the region that the phase locks or advises";
    ERRNO = "errno", Count, [Phase] Neither, "madvise":
        "error number that the call of an `advise` returned, 0 for success; for copies, only if \
         all returned an equal number";
    ANON_HOT = "anon_hot_resident", Pages, [Phase] More, "mincore":
        "pages of the hot part of anonymous memory that are in memory at the end of the phase";
    ANON_COLD = "anon_cold_resident", Pages, [Phase] Neither, "mincore":
        "pages of the cold part of anonymous memory that are in memory at the end of the phase";
    FILE_HOT = "file_hot_resident", Pages, [Phase] More, "mincore":
        "pages of the hot part of the file that are in memory at the end of the phase";
    FILE_COLD = "file_cold_resident", Pages, [Phase] Neither, "mincore":
        "pages of the cold part of the file that are in memory at the end of the phase";
    SLAB_UTILISATION = "slab_utilisation", Ratio, [Machine Idle Shrunk Phase] More, "/proc/slabinfo":
        "bytes of live objects / bytes of slabs; for the machine, the mean of samples every 5 s and at the end";
    MEMORY_CURRENT = "memory.current", Bytes, [Group PhaseGroup] Neither, "memory.current" v1 "memory.usage_in_bytes":
        "memory charged to the group and its descendants at the end, or when the group was removed";
    MEMORY_SWAP_CURRENT = "memory.swap.current", Bytes, [Group PhaseGroup] Neither,
        "memory.swap.current" v1 "total_swap":
        "its slots in the swap area; in cgroup version 2 also slots kept by pages that are back in memory";
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
        "kernel memory charged to it; cgroup version 1 has only this sum";
    PAGETABLES = "pagetables", Bytes, [Group PhaseGroup] Neither, "memory.stat": "its page tables";
    PERCPU = "percpu", Bytes, [Group PhaseGroup] Neither, "memory.stat":
        "per-CPU counters of the groups created in it, as charged";
    SLAB = "slab", Bytes, [Machine Idle Shrunk Phase Group PhaseGroup] Neither,
        "memory.stat; /proc/vmstat, nr_slab_*":
        "slabs; for a group, its kernel objects: the size of each and eight bytes for the pointer to its owner";
    SLAB_RECLAIMABLE = "slab_reclaimable", Bytes, [Machine Idle Shrunk Phase Group PhaseGroup] Neither,
        "memory.stat; /proc/vmstat, nr_slab_reclaimable": "slabs whose objects a shrinker can free";
    SLAB_UNRECLAIMABLE = "slab_unreclaimable", Bytes, [Machine Idle Shrunk Phase Group PhaseGroup] Neither,
        "memory.stat; /proc/vmstat, nr_slab_unreclaimable": "slabs whose objects no shrinker can free";
    EVENTS_LOW = "memory.events.low", Count, [Group PhaseGroup], "memory.events":
        "times that it was reclaimed from although it was below `memory.low`";
    EVENTS_HIGH = "memory.events.high", Count, [Group PhaseGroup] Work, "memory.events":
        "times that it was above `memory.high` and reclaimed from";
    EVENTS_MAX = "memory.events.max", Count, [Group PhaseGroup] Work, "memory.events":
        "times that it reached its limit";
    EVENTS_OOM = "memory.events.oom", Count, [Group PhaseGroup], "memory.events":
        "times that it was at its limit and reclaim could free nothing";
    EVENTS_OOM_KILL = "memory.events.oom_kill", Count, [Group PhaseGroup], "memory.events":
        "its tasks that the OOM killer killed";
    CPU_USAGE = "cpu.stat.usage_usec", Count, [Group PhaseGroup] Neither, "cpu.stat, usage_usec":
        "CPU time of its tasks in microseconds; only if some group has `cpu.weight` or `cpu.max`";
    CPU_PERIODS = "cpu.stat.nr_periods", Count, [Group PhaseGroup] Neither, "cpu.stat, nr_periods":
        "periods of `cpu.max` in which it had a runnable task";
    CPU_THROTTLED = "cpu.stat.nr_throttled", Count, [Group PhaseGroup] Work, "cpu.stat, nr_throttled":
        "periods of `cpu.max` in which it used up its quota";
    CPU_THROTTLED_TIME = "cpu.stat.throttled_usec", Count, [Group PhaseGroup] Work, "cpu.stat, throttled_usec":
        "microseconds for which it was throttled by `cpu.max`, sum over the CPUs";
    EVENTS_OOM_GROUP_KILL = "memory.events.oom_group_kill", Count, [Group PhaseGroup], "memory.events":
        "times that the OOM killer killed all its tasks together";
    LOCAL_EVENTS_LOW = "memory.events.local.low", Count, [Group PhaseGroup], "memory.events.local":
        "like memory.events.low, without descendants";
    LOCAL_EVENTS_HIGH = "memory.events.local.high", Count, [Group PhaseGroup] Work, "memory.events.local":
        "like memory.events.high, without descendants";
    LOCAL_EVENTS_MAX = "memory.events.local.max", Count, [Group PhaseGroup] Work, "memory.events.local":
        "like memory.events.max, without descendants";
    LOCAL_EVENTS_OOM = "memory.events.local.oom", Count, [Group PhaseGroup], "memory.events.local":
        "like memory.events.oom, without descendants";
    LOCAL_EVENTS_OOM_KILL = "memory.events.local.oom_kill", Count, [Group PhaseGroup], "memory.events.local":
        "like memory.events.oom_kill, without descendants";
    LOCAL_EVENTS_OOM_GROUP_KILL = "memory.events.local.oom_group_kill", Count, [Group PhaseGroup],
        "memory.events.local": "like memory.events.oom_group_kill, without descendants";
    MEMORY_PEAK = "memory.peak", Bytes, [Group] Work, "memory.peak":
        "largest memory it ever had, also for a removed group; for copies, the sum";
    KMEM_PEAK = "memory.kmem.peak", Bytes, [Group], "memory.kmem.max_usage_in_bytes":
        "largest kernel memory it ever had, also for a removed group";
    CONTROLLERS_MEMORY = "cgroup.controllers.memory", Count, [Group PhaseGroup] Neither, "cgroup.controllers":
        "1: it has a memory controller, 0: an ancestor is charged; for copies, only if all \
         agree; recorded on request: by a row, an expectation or the command line";
    DYING_DESCENDANTS = "cgroup.stat.nr_dying_descendants", Count, [Group PhaseGroup] Neither, "cgroup.stat":
        "removed descendants that are still referenced; recorded on request: by a row, an \
         expectation or the command line";
    MEMORY_MIN = "memory.min", Bytes, [Group PhaseGroup] Neither, "memory.min":
        "value of its control file; for copies, only if all agree; recorded on request: by a \
         row, an expectation or the command line";
    MEMORY_LOW = "memory.low", Bytes, [Group PhaseGroup] Neither, "memory.low":
        "value of its control file; for copies, only if all agree; recorded on request: by a \
         row, an expectation or the command line";
    MEMORY_HIGH = "memory.high", Bytes, [Group PhaseGroup] Neither, "memory.high":
        "value of its control file, with `max` as 2^63 - 4096; for copies, only if all agree; \
         recorded on request: by a row, an expectation or the command line";
    MEMORY_MAX = "memory.max", Bytes, [Group PhaseGroup] Neither, "memory.max":
        "value of its control file, with `max` as 2^63 - 4096; for copies, only if all agree; \
         recorded on request: by a row, an expectation or the command line";
    MEMORY_SWAP_MAX = "memory.swap.max", Bytes, [Group PhaseGroup] Neither, "memory.swap.max":
        "value of its control file, with `max` as 2^63 - 4096; for copies, only if all agree; \
         recorded on request: by a row, an expectation or the command line";
    PRESSURE_SOME = "memory.pressure.some", Seconds, [Group PhaseGroup], "memory.pressure":
        "time in which at least one of its tasks waited for memory; mean over the CPUs like psi.memory.some";
    PRESSURE_FULL = "memory.pressure.full", Seconds, [Group PhaseGroup], "memory.pressure":
        "time in which one of its tasks waited for memory and no other of its tasks did \
         productive work; mean over the CPUs like psi.memory.full";
    PEAK_USAGE = "peak.usage", Bytes, [Group] Work, "Pagetide":
        "largest memory it had, sampled every 5 s, at the end, and before its removal";
    PEAK_KMEM = "peak.kmem_usage", Bytes, [Group], "Pagetide":
        "largest kernel memory it had, sampled every 5 s, at the end, and before its removal";
    READS = "reads", Count, [Disk] Work, "/proc/diskstats": "its reads";
    READ_TIME = "read_time", Seconds, [Disk] Work, "/proc/diskstats": "sum of the times of its reads";
    WRITES = "writes", Count, [Disk] Work, "/proc/diskstats": "its writes";
    WRITE_TIME = "write_time", Seconds, [Disk] Work, "/proc/diskstats": "sum of the times of its writes";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_one_metric_of_a_name_and_a_name_one_unit() {
        for (at, metric) in ALL.iter().enumerate() {
            for other in ALL[..at].iter().filter(|other| other.name == metric.name) {
                assert_eq!(other.unit, metric.unit, "{}", metric.name);
                assert!(
                    metric.scopes.iter().all(|kind| !other.scopes.contains(kind)),
                    "{}",
                    metric.name
                );
            }
            let is_plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
            assert!(
                metric.name.chars().all(is_plain) && !metric.scopes.is_empty(),
                "{}",
                metric.name
            );
        }
        for &metric in ALL {
            // `explain` and HTML pages show the text alone.
            let leans = ["the same", "the part of it", "the other part", "the time they"];
            assert!(!leans.iter().any(|it| metric.about.contains(it)), "{}", metric.name);
            // A rate is completed work.
            let is_rate = matches!(metric.unit, Unit::PerSecond | Unit::BytesPerSecond);
            assert!(!is_rate || metric.better == MetricDirection::More, "{}", metric.name);
            let is_time = metric.unit == Unit::Seconds;
            assert!(
                !is_time || matches!(metric.better, MetricDirection::Less | MetricDirection::Work)
            );
        }
        assert_eq!(
            (SUCCESS.better, ATTEMPTS.better),
            (MetricDirection::More, MetricDirection::More)
        );
        assert_eq!(
            (SLAB_UTILISATION.better, FILE.better),
            (MetricDirection::More, MetricDirection::Neither)
        );
        assert_eq!((LATE.better, PEAK_KMEM.better), (MetricDirection::Less, MetricDirection::Less));
        assert_eq!(
            (PEAK_USAGE.better, USER.better),
            (MetricDirection::Work, MetricDirection::Work)
        );
        assert_eq!(find(ScopeKind::Task, "pgfault"), Some(TASK_PGFAULT));
        assert_eq!(find(ScopeKind::Group, "pgfault"), None, "memory.stat's own");
        assert!(is_state("errno") && is_state("memory.max"));
        assert!(!is_state("memory.events.max") && !is_state("memory.swap.current"));
        assert_eq!(levels_of_groups().count(), 21);
        assert_eq!(events_of_groups().count(), 16);
    }

    #[test]
    fn a_pattern_requests_only_metrics_that_are_recorded_on_request() {
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
            assert_eq!(requested_by(text).collect::<Vec<_>>(), asked, "{text}");
        }
    }
}
