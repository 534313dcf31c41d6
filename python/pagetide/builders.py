"""Tables of a scenario as typed values: the arguments of `pagetide.Scenario`, as in
`pagetide.Scenario(machine=..., tasks=[...])`.

Each attribute is a key of a scenario file (docs/scenario.md), under the same name; a dot or a dash
in it is `_`. An omitted attribute has the default of the file. The loader checks all values when
the scenario is built.

Made by scripts/python_builders.py from the schema; do not change it here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Mapping, Sequence, TypeAlias, Union

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda of: of

__all__ = [
    "Advise", "Build", "Cache", "Compute", "Content", "Costs", "CreateGroup", "Discard", "Disk", "DiskFaults",
    "Earlyoom", "Expect", "File", "FileRead", "FileWrite", "FreeArea", "Fuzz", "Group", "HighOrder",
    "Interleave", "JoinGroup", "KernelMemory", "KernelObjects", "Kubelet", "Latency", "Lmkd", "Lock",
    "Machine", "MappedRead", "Names", "Node", "OomdUnit", "Pipes", "Pod", "Policy", "ReclaimLoop", "Remove",
    "RemoveGroup", "Report", "Resident", "Service", "Sleep", "Swap", "SystemdOomd", "Task", "Touch", "Trace",
    "Variant", "Watcher", "WorkingSet", "WriteControl", "Zone", "Zswap",
]

Size: TypeAlias = Union[int, str]
"""Bytes, or text like `"64MiB"`."""
Time: TypeAlias = Union[int, str]
"""Text like `"100ms"`; 0 needs no unit."""
Rate: TypeAlias = Union[int, str]
"""Text like `"500MiB/s"`."""
Percent: TypeAlias = Union[int, str]
"""Text like `"10 %"`."""
Share: TypeAlias = Union[int, str]
"""Text like `"10 %"` or `"1 in 8"`."""
Value: TypeAlias = Union[int, float, str, bool]
"""The text or the number that a control file takes."""


def _key(name: str) -> Any:
    """An omitted attribute whose key has another name."""
    return field(default=None, metadata={"key": name})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class _Table:
    """A table of a scenario."""

    _workload: ClassVar[str | None] = None

    def __init_subclass__(cls, workload: str | None = None) -> None:
        cls._workload = workload
        dataclass(kw_only=True, repr=False)(cls)

    def _given(self) -> dict[Any, Any]:
        of: Any = fields(self)  # type: ignore[arg-type]
        return {it: getattr(self, it.name) for it in of if getattr(self, it.name) is not None}

    def to_table(self) -> dict[str, Any]:
        """The keys that are set, as a scenario file has them."""
        table = {it.metadata.get("key", it.name): value for it, value in self._given().items()}
        return table if self._workload is None else {**table, "workload": self._workload}

    def __repr__(self) -> str:
        given = (f"{it.name}={value!r}" for it, value in self._given().items())
        return f"{type(self).__name__}({', '.join(given)})"


class Machine(_Table):
    """Hardware."""
    caches: Sequence[Cache] | None = _key("cache")
    """Caches of kernel objects with other settings than the kernel's own."""
    content: Content | None = None
    """Contents of the pages of tasks, for compressed swap."""
    costs: Costs | None = None
    """Costs of operations on this machine; a cost that is left out has the simulator's value."""
    cpus: int | None = None
    """Number of CPUs (default 1)."""
    disks: Sequence[Disk] | None = _key("disk")
    """Disks; without this table the machine has one SSD called `disk`."""
    init_on_alloc: bool | None = None
    """Clears every page when it is allocated: kernel parameter init_on_alloc, which many distributions set
    (default: the build setting of a real kernel; not in the simulator)."""
    kmem_accounting: bool | None = None
    """Charges kernel objects to groups; false: boot option cgroup.memory=nokmem (default true)."""
    memory: Size | None = None
    """Memory present."""
    memory_recursiveprot: bool | None = None
    """Shares among a group's children the part of its memory.min and memory.low that they do not claim: the
    mount option memory_recursiveprot (default false)."""
    movable: Size | None = None
    """Memory at the top of the node that becomes zone Movable (default 0)."""
    nodes: Sequence[Node] | None = _key("node")
    """NUMA nodes."""
    page_size: int | str | None = None
    """Size of a page (default 4KiB)."""
    reserved: Size | None = None
    """Memory that the kernel keeps permanently, taken from the last zones first (default 0)."""
    swap: Size | Swap | Sequence[Size | Swap] | None = None
    """Swap areas: a size, a table, or a list of these."""
    zones: Sequence[Zone] | None = _key("zone")
    """Zones with exact sizes, instead of `memory`."""
    zswap: Zswap | None = None
    """Compressed memory in front of the swap areas on disks (default: none)."""


class Cache(_Table):
    """Settings of a cache of kernel objects: its name and at least one other key."""
    name: str = field(kw_only=False)
    """Name of the cache, as in /proc/slabinfo."""
    cpu_partial: int | None = None
    """Free objects that a CPU's list of partial slabs may hold (default: from the object size)."""
    min_partial: int | None = None
    """Number of empty slabs that a node keeps (default: from the object size)."""
    order: int | None = None
    """log2 of the pages in a slab (default: from the object size and the number of CPUs)."""


class Content(_Table):
    """Contents of the pages of anonymous memory. Each page has its content for good, drawn with the run's
    seed. Pages that are none of these compress to various sizes."""
    incompressible: Percent | None = None
    """Pages that no algorithm compresses (default 6%)."""
    ratio: float | None = None
    """Mean ratio at which lzo-rle compresses the other pages (default 2.7)."""
    same: Percent | None = None
    """Pages filled with another word (default 3%)."""
    zero: Percent | None = None
    """Pages of zeroes (default 14%)."""


class Costs(_Table):
    """Costs of operations on this machine; the simulator has defaults for all of them."""
    bio: Time | None = None
    """Submit a request to a disk: block layer and driver."""
    bio_page: Time | None = None
    """A page of a disk request: add it to the request, and complete it after the answer."""
    buddy_op: Time | None = None
    """Move a block between the buddy lists and a per-CPU list."""
    cache_create: Time | None = None
    """Create a slab cache for a group."""
    cache_op: Time | None = None
    """Look up, insert or remove an entry of the page cache or the swap cache."""
    compact_scan: Time | None = None
    """Scan a page in compaction."""
    context_switch: Time | None = None
    """Switch a CPU from one process to another."""
    fault: Time | None = None
    """Enter and leave a page fault: exception, lookup of the mapping, walk of the page table."""
    fs_read: Time | None = None
    """The file system's share of a read request."""
    fs_request: Time | None = None
    """The file system's work for a run of holes, or for a newly written page."""
    hit: Time | None = None
    """Access a mapped page. The accesses are independent, so their cache misses overlap."""
    idle_exit: Time | None = None
    """Time from the wake-up to the first instruction on an idle CPU."""
    io_completion: Time | None = None
    """Interrupt and completion of a disk request."""
    list_spare: Time | None = None
    """Skip an active list that reclaim may not age, once for 32 pages to scan."""
    lru_move: Time | None = None
    """Move a page between LRU lists as part of a batch."""
    lruvec_visit: Time | None = None
    """Visit the lists of a group in reclaim."""
    lz4_compress: Time | None = None
    """Compress a page of 4 KiB with LZ4."""
    lz4_decompress: Time | None = None
    """Decompress a page of 4 KiB with LZ4."""
    lzo_compress: Time | None = None
    """Compress a page of 4 KiB with LZO."""
    lzo_decompress: Time | None = None
    """Decompress a page of 4 KiB with LZO."""
    lzo_rle_compress: Time | None = None
    """Compress a page of 4 KiB with LZO-RLE."""
    lzo_rle_decompress: Time | None = None
    """Decompress a page of 4 KiB with LZO-RLE."""
    objcg_drain: Time | None = None
    """Drain a CPU's stock of charged bytes, so that another owner can use it."""
    object: Time | None = None
    """Allocate or free a kernel object on the CPU's own slab."""
    object_charge: Time | None = None
    """Charge an object to a group."""
    object_prune: Time | None = None
    """Free a cached object in a shrinker; freeing its slab has a cost of its own."""
    object_scan: Time | None = None
    """Scan a cached object in a shrinker."""
    page_alloc: Time | None = None
    """Take a page from a per-CPU list."""
    page_charge: Time | None = None
    """Charge a page to a group, and uncharge it later."""
    page_copy: Time | None = None
    """Copy 4 KiB between page cache and user memory."""
    page_free: Time | None = None
    """Free a page to a per-CPU list."""
    page_migrate: Time | None = None
    """Migrate a page in compaction; the copy and the page-table entries have costs of their own."""
    page_scan: Time | None = None
    """Scan a page in reclaim."""
    page_skip: Time | None = None
    """Skip a page in reclaim because its zone is too high."""
    page_zero: Time | None = None
    """Clear 4 KiB."""
    pte: Time | None = None
    """Write a page-table entry, and update the map count of the page."""
    pte_used: Time | None = None
    """Give the page of a used entry among these a new generation."""
    pte_walk: Time | None = None
    """Read one page-table entry among many in order."""
    refault: Time | None = None
    """Test a refaulting page against the sizes of the lists: was it evicted too early?"""
    rmap_walk: Time | None = None
    """Walk the reverse map to one page-table entry."""
    slab_refill: Time | None = None
    """Take another slab to allocate from; its pages have costs of their own."""
    syscall: Time | None = None
    """Enter, dispatch and leave a system call."""
    tlb_flush: Time | None = None
    """Flush a batch of page-table entries from the TLB of the CPU that removed them."""
    tlb_shootdown: Time | None = None
    """Additional cost of a TLB flush for other CPUs; none on a machine with one CPU."""
    user_access: Time | None = None
    """User instructions for one access."""
    wakeup: Time | None = None
    """The waker's work for a wake-up."""
    writeback: Time | None = None
    """Start writeback of a file page: its tags and blocks."""
    zstd_compress: Time | None = None
    """Compress a page of 4 KiB with Zstandard."""
    zstd_decompress: Time | None = None
    """Decompress a page of 4 KiB with Zstandard."""


class Disk(_Table):
    """A disk."""
    name: str = field(kw_only=False)
    """Name of the disk."""
    model: Literal["rotating", "ssd", "nvme", "instant"]
    """Preset that gives the defaults of the other keys."""
    faults: DiskFaults | None = None
    """Faults to inject."""
    queue_depth: int | None = None
    """Number of requests served at the same time (default: the preset's)."""
    read_bandwidth: Rate | None = None
    """Read bandwidth (default: the preset's)."""
    read_latency: Latency | Time | None = None
    """Time of a read, or a distribution of times (default: the preset's)."""
    rotational: bool | None = None
    """Whether the kernel treats the disk as rotational (default: the preset's)."""
    write_bandwidth: Rate | None = None
    """Write bandwidth (default: the preset's)."""
    write_latency: Latency | Time | None = None
    """Time of a write, or a distribution of times (default: the preset's)."""


class Node(_Table):
    """A NUMA node."""
    memory: Size | None = None
    """Memory present."""
    movable: Size | None = None
    """Memory at the top of the node that becomes zone Movable (default 0)."""
    reserved: Size | None = None
    """Memory that the kernel keeps permanently, taken from the last zones first (default 0)."""
    zones: Sequence[Zone] | None = _key("zone")
    """Zones with exact sizes, instead of `memory`."""


class Swap(_Table):
    """A swap area as a table."""
    algorithm: Literal["lzo", "lzo-rle", "lz4", "zstd"] | None = None
    """Algorithm of the zram device (default lzo-rle)."""
    backing: str | None = None
    """Disk behind the zram device, to which a task can write its pages (default: none)."""
    backing_size: Size | None = None
    """Size of the part of the disk that is behind the zram device (default: as large as the device)."""
    disk: str | None = None
    """Disk that holds it (default: the first)."""
    full_after: Size | None = None
    """Reports the area as full once this much is used (fault injection)."""
    mem_limit: Size | None = None
    """Most memory that the zram device takes; further pages stay in memory (default: no limit)."""
    priority: int | None = None
    """Areas of a higher priority are used first, and areas of equal priority take turns. Default: -2 for the
    first area without a priority, -3 for the next, and so on."""
    size: Size | None = None
    """Size of the swap area on a disk."""
    zram: Size | None = None
    """Size of the zram device that is the swap area: compressed memory instead of a disk. It is the size of
    the pages before compression."""


class Zone(_Table):
    """A zone with exact sizes."""
    name: Literal["DMA", "DMA32", "Normal", "HighMem", "Movable"] = field(kw_only=False)
    """Name of the zone."""
    present: int | str
    """Memory present."""
    cma: FreeArea | Size | None = None
    """CMA memory, which only movable pages can use: the size of an area of whole pageblocks at the end of the
    zone, or its free lists (default: none)."""
    free: Size | None = None
    """Memory free when the run starts (default: all managed)."""
    late: Size | None = None
    """Part of `managed` that boot freed only after it had computed the watermarks: initial RAM disk and init
    sections (default: none). It lowers the kernel's own watermarks slightly."""
    managed: Size | None = None
    """Memory that the allocator manages (default: all present)."""
    movable: FreeArea | None = None
    """Free lists of movable pages when the run starts."""
    reclaimable: FreeArea | None = None
    """Free lists of reclaimable pages when the run starts."""
    unmovable: FreeArea | None = None
    """Free lists of unmovable pages when the run starts, as in /proc/pagetypeinfo. If free lists of any type
    are given, `free` is the sum of the lists."""


class Zswap(_Table):
    """zswap: pages that are swapped out are compressed in memory, and go to their disk when its pool is
    full."""
    accept_threshold_percent: int | None = None
    """A full pool takes pages again below this part of its limit, in percent (default 90)."""
    compressor: Literal["lzo", "lzo-rle", "lz4", "zstd"] | None = None
    """Algorithm (default lzo)."""
    max_pool_percent: int | None = None
    """Most memory that the pool takes, in percent of the machine's (default 20)."""
    shrinker: bool | None = None
    """Whether reclaim also writes pages of the pool to their disks, as the shrinker of Linux 6.8 (default
    false)."""


class Expect(_Table):
    """A condition that holds in every run."""
    text: str
    """The condition in words."""
    that: str
    """The condition: a criterion as in `pagetide find`, METRIC OP VALUE, several joined by `and`."""
    variants: Sequence[str] | None = None
    """The variants that must meet it (default: all)."""


class File(_Table):
    """A file on a disk."""
    name: str = field(kw_only=False)
    """Name of the file."""
    disk: str | None = None
    """Disk that holds the file (default: the first)."""
    metadata: bool | None = None
    """The file stands for the file system's own blocks (inode tables, directories, bitmaps). Its pages cannot
    be moved while they are dirty or under writeback, because the journal holds them (default false)."""
    private: bool | None = None
    """Gives every task that names the file a file of its own (default false)."""
    size: Size | None = None
    """Size of the file when the run starts (default 0)."""
    sparse: bool | None = None
    """The file has only holes, so reads need no disk (default false)."""


class Fuzz(_Table):
    """Knobs for `pagetide fuzz`."""
    knobs: Sequence[str]
    """Knobs with their values, as in `pagetide find --knob`: "vm.swappiness=0..200", "machine.cpus=1,2,8"."""


class Group(_Table):
    """A memory group."""
    name: str = field(kw_only=False)
    """Name of the group."""
    at_start: bool | None = None
    """The group exists when the run begins; if false, a task makes it with workload create-group (default
    true)."""
    copies: int | None = None
    """Number of groups, called NAME.0, NAME.1 ...; copies of a task use them in turn (default 1)."""
    cpu_max: int | str | None = _key("cpu.max")
    """CPU time that the group may use in each period, and the period. Default: max 100000, us. Since: Linux
    4.15."""
    cpu_weight: int | str | None = _key("cpu.weight")
    """The group's share of CPU time, relative to its siblings. Default: 100. Since: Linux 4.15."""
    memory_global_shrink_priority: int | str | None = _key("memory.global_shrink_priority")
    """Global reclaim skips the group while the scan priority is above this value. Negative values need
    shrink_priority = posted. Default: 12, reclaim priority. Since: patch of December 2019."""
    memory_high: int | str | None = _key("memory.high")
    """Above it the group's tasks are throttled and must reclaim. Default: max, bytes. Since: Linux 4.5."""
    memory_kmem_limit_in_bytes: int | str | None = _key("memory.kmem.limit_in_bytes")
    """The limit of kernel memory (version 1; refused by later kernels). EBUSY if more is in use. Default: -1,
    bytes. Since: Linux 3.8 to 5.15."""
    memory_limit_in_bytes: int | str | None = _key("memory.limit_in_bytes")
    """The limit (version 1). Default: -1, bytes. Since: Linux 2.6.25."""
    memory_low: int | str | None = _key("memory.low")
    """Memory that is reclaimed only if nothing else can be reclaimed. Default: 0, bytes. Since: Linux 4.5."""
    memory_max: int | str | None = _key("memory.max")
    """The limit. Default: max, bytes. Since: Linux 4.5."""
    memory_min: int | str | None = _key("memory.min")
    """Memory that is never reclaimed from the group. Default: 0, bytes. Since: Linux 4.18."""
    memory_oom_group: int | str | None = _key("memory.oom.group")
    """Whether the OOM killer kills all tasks of the group and its descendants together. A task with
    `oom_score_adj = -1000` is spared. Default: 0. Since: Linux 4.19."""
    memory_soft_limit_in_bytes: int | str | None = _key("memory.soft_limit_in_bytes")
    """Groups above their soft limit are reclaimed from first (version 1). Default: -1, bytes. Since: Linux
    2.6.31."""
    memory_swap_max: int | str | None = _key("memory.swap.max")
    """The limit of swap (version 2; a scenario must not combine it with files of version 1). Default: max,
    bytes. Since: Linux 4.5."""
    memory_swappiness: int | str | None = _key("memory.swappiness")
    """Like vm.swappiness (version 1). Default: the parent's. Since: Linux 2.6.29."""
    memory_zswap_max: int | str | None = _key("memory.zswap.max")
    """The limit of compressed pages in zswap. Further pages go to the disk. Default: max, bytes. Since: Linux
    5.19."""
    memory_zswap_writeback: int | str | None = _key("memory.zswap.writeback")
    """Whether pages may leave zswap for the disk, or go there around it; 0: they stay in memory. Default: 1.
    Since: Linux 6.8."""
    parent: str | None = None
    """Parent group (default: the root)."""
    subtree_control: Literal["memory", "none"] | None = None
    """Whether child groups get a memory controller; if not, this group is charged for them."""


class Policy(_Table):
    """Which built-in behaviours to use. docs/scenario.md says what each one stands for."""
    background_compaction: Literal["kcompactd-early", "kcompactd", "kswapd", "off"] | None = None
    """Which daemon makes blocks of high order in the background. Default: kcompactd-early."""
    compaction: Literal["linux-6.1", "linux-5.8", "linux-4.5"] | None = None
    """When compaction is worthwhile, how it scans, and when an allocation uses it. Default: linux-6.1."""
    compaction_capture: Literal["on", "off"] | None = None
    """Whether a compacting task captures the block it has made before the block is free. Default: on."""
    direct_reclaim: Literal[
        "linux-6.1", "linux-5.9", "linux-3.3", "linux-2.6.37", "linux-2.6.35",
    ] | None = None
    """How an allocating task reclaims for itself. Default: linux-6.1."""
    fallback: Literal["linux-6.1", "linux-5.4", "linux-6.12"] | None = None
    """How many pages a request takes if it falls back to a pageblock of another migrate type without claiming
    the pageblock. Default: linux-6.1."""
    faults: Literal["linux-6.1", "linux-6.12", "linux-5.0"] | None = None
    """Events that count as a page fault. Default: linux-6.1."""
    group_walk: Literal["whole", "shared"] | None = None
    """How a reclaimer walks the groups. Default: whole."""
    groups: Literal["linux"] | None = None
    """A policy registered by the program: it chooses the groups to reclaim from."""
    kernel: Literal[
        "linux-2.6.37", "linux-3.3", "linux-3.16", "linux-4.5", "linux-4.6", "linux-4.8", "linux-5.4",
        "linux-5.8", "linux-5.9", "linux-6.1", "linux-6.12",
    ] | None = None
    """The kernel whose behaviour is the default of the other keys. Default: linux-6.1."""
    kswapd: Literal["linux-6.1", "linux-4.5", "linux-3.3", "linux-2.6.37"] | None = None
    """How kswapd balances a node. Default: linux-6.1."""
    lru: Literal[
        "linux-6.1", "linux-5.8", "linux-5.4", "linux-4.5", "linux-3.3", "linux-2.6.37", "linux-6.12",
        "mglru",
    ] | None = None
    """How pages age, and how page cache and anonymous memory share the pressure. Default: linux-6.1."""
    mglru: Literal["linux-6.1", "linux-6.12"] | None = None
    """The release whose multi-generational LRU it is. For policy lru = mglru. Default: linux-6.1."""
    mglru_bloom_filter: Literal["on", "off"] | None = None
    """Which page tables a walk reads (test_bloom_filter). For policy lru = mglru. Default: on."""
    mglru_look_around: Literal["on", "off"] | None = None
    """Whether eviction looks at the page-table entries around a used one (lru_gen_look_around). For policy
    lru = mglru. Default: on."""
    mglru_memcg_lru: Literal["on", "off"] | None = None
    """Whether global reclaim chooses groups by generation (shrink_many). For policy lru = mglru of Linux
    6.12. Default: on."""
    mglru_page_table_walks: Literal["on", "off"] | None = None
    """Whether ageing walks over page tables (walk_mm). For policy lru = mglru. Default: on."""
    mglru_tiers: Literal["on", "off"] | None = None
    """Whether refaults protect tiers of pages that read() and write() use often (get_tier_idx). For policy
    lru = mglru. Default: on."""
    pages: Literal["linux"] | None = None
    """A policy registered by the program: it chooses the pages to evict."""
    per_cpu_lists: Literal["linux-6.1", "linux-2.6.37", "linux-6.12"] | None = None
    """How large per-CPU lists are, and how fast they drain. Default: linux-6.1."""
    scheduler: Literal["linux-6.1", "linux-6.12"] | None = None
    """Which of its runnable tasks a CPU runs. Read when the machine starts. Default: linux-6.1."""
    shrink_priority: Literal["guarded", "posted", "hierarchical", "off"] | None = None
    """The effect of memory.global_shrink_priority. Default: guarded."""
    slab_accounting: Literal[
        "per-object", "per-group-caches", "per-group-caches-reparent", "off",
    ] | None = None
    """Which group pays for small kernel objects. Default: per-object."""
    slub: Literal["linux-6.1", "linux-5.5"] | None = None
    """Which slab of a cache is used next. Default: linux-6.1."""
    soft_limit: Literal["tree", "hierarchical", "two-pass", "off"] | None = None
    """How global reclaim respects soft limits (memory.soft_limit_in_bytes). Default: tree."""
    soft_limit_direct: Literal["full", "bounded", "ignored"] | None = None
    """How hard tasks in direct reclaim scan groups over their soft limits. Default: full."""
    soft_limit_node: Literal["global", "local"] | None = None
    """How a soft limit applies on one node. Default: global."""
    soft_limit_root: Literal["excluded", "included"] | None = None
    """Whether a group that is reclaimed because of its own hard limit counts as over its soft limit. Default:
    excluded."""
    swap_readahead: Literal["linux-6.1", "linux-4.5", "linux-3.3"] | None = None
    """Which pages are read from swap with the page of a fault. Default: linux-6.1."""
    thp: Literal["always", "madvise", "never"] | None = None
    """When anonymous memory gets huge pages (transparent_hugepage/enabled). Default: never."""
    thp_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None
    """Action of a fault if no huge page is free (transparent_hugepage/defrag). Default: madvise."""
    watermarks: Literal["derived", "scale-factor", "apart"] | None = None
    """How the low and high watermarks follow from what the user sets. Default: scale-factor."""
    zero_pages: Literal["linux-6.1", "linux-6.12"] | None = None
    """Where pages of zeroes go that are swapped out, on a machine with zram or zswap. Default: linux-6.1."""
    zsmalloc: Literal["linux-6.1", "linux-6.12"] | None = None
    """How zsmalloc, the pool of zram and zswap, places objects. Default: linux-6.1."""
    zswap: Literal["linux-6.1", "linux-6.12"] | None = None
    """How zswap, if the machine has it, writes pages back to disks. Default: linux-6.1."""


class Report(_Table):
    """Contents of the table of results."""
    measure: str | None = None
    """Task whose lifetime the machine's counters cover (default: the whole run)."""
    rows: Sequence[str] | None = None
    """Metric keys of the rows, in order (default: the program's choice)."""


class Variant(_Table):
    """A column of the table of results: the scenario with some changes."""
    name: str = field(kw_only=False)
    """Name of the variant."""
    policy: Policy | None = None
    """Policies that replace those of the scenario."""
    set: Mapping[str, Any] | None = None
    """Other values by path: { "machine.memory" = "4GiB", "task.stream.nice" = 5 }."""
    sysctl: Mapping[str, Value | Sequence[int]] | None = None
    """Control files of the machine to write in addition to those of the scenario, or instead."""


class Watcher(_Table):
    """A program in user space that watches memory."""
    name: str | None = field(default=None, kw_only=False)
    """Name of the task; its metrics are NAME.metric and NAME.PHASE.metric."""
    kind: Literal["kubelet", "systemd-oomd", "earlyoom", "lmkd", "reclaim-loop"]
    """The program."""
    after: str | None = None
    """Name of a task: when that task ends, this one starts."""
    avoid: Sequence[str] | None = None
    """Groups with ManagedOOMPreference=avoid."""
    background: bool | None = None
    """Stops the task when all others have ended: it does not keep the run alive (default false)."""
    coeff_backoff: int | None = None
    """senpai: a backoff is largest when the stall is this multiple of `pressure` (default 20)."""
    coeff_probe: int | None = None
    """senpai: a probe is largest when the stall is this part of `pressure` (default 10)."""
    compute: Time | None = None
    """CPU time of a look in addition to the time for reading (default 0)."""
    content: Content | None = None
    """Contents of its pages; a key that is left out has the machine's value (default: as machine.content)."""
    defaults: Literal["upstream", "fedora"] | None = None
    """Which defaults the next keys have (default upstream)."""
    delay: Time | None = None
    """Pause between the end of the task in `after` and the start (default 0)."""
    enabled: bool | None = None
    """Whether it starts (default true); for variants that compare watchers."""
    filecache_min: Size | None = None
    """Page cache that must be there after thrashing (default 0)."""
    footprint: Size | None = None
    """Memory of its own that it uses at each look (default 64MiB)."""
    group: str | None = None
    """Group that the task runs in (default: the root)."""
    housekeeping_interval: Time | None = None
    """Least time between two figures of a pod in cAdvisor (default 10s)."""
    ignore: Sequence[str] | None = None
    """--ignore: names of tasks that are never killed."""
    interval: Time | None = None
    """senpai: time between two probes, in whole seconds (default 6s). koordinator: time between two looks
    (default 1s). senpai-reclaim: time between two runs (default 5s)."""
    kill_heaviest_task: bool | None = None
    """Kills the heaviest of the processes with one oom_score_adj (default false: the oldest)."""
    kill_timeout: Time | None = None
    """Time that it waits for the end of a process (default 100ms)."""
    kubepods: str | None = None
    """The group of all pods. With a limit, allocatableMemory.available is a signal, too."""
    locked: bool | None = None
    """Its memory is locked (default false)."""
    low_ram: bool | None = None
    """A device with little memory: other defaults of the next keys (default false)."""
    max_backoff: float | None = None
    """senpai: largest share that a backoff returns (default 1)."""
    max_pod_grace_period: Time | None = None
    """evictionMaxPodGracePeriod, for the soft threshold (default 0)."""
    max_probe: float | None = None
    """senpai, senpai-reclaim: largest share that a probe takes (default 0.01)."""
    max_size: Size | None = None
    """senpai: largest limit (default 100GiB)."""
    mem: float | str | None = None
    """-m: percent of available memory for SIGTERM, and for SIGKILL (default "10,5")."""
    memory_available: int | str | None = None
    """evictionHard of memory.available (default "100Mi"); "0%" switches it off."""
    memory_available_soft: int | str | None = None
    """evictionSoft of memory.available (default: none)."""
    memory_pressure_duration: Time | None = None
    """DefaultMemoryPressureDurationSec= (default 30s; fedora 20s)."""
    memory_pressure_limit: str | None = None
    """DefaultMemoryPressureLimit= (default "60%"; fedora "50%")."""
    memory_reservation_policy: Literal["None", "TieredReservation"] | None = None
    """memoryReservationPolicy (default "None")."""
    memory_throttling_factor: float | None = None
    """memoryThrottlingFactor: writes memory.high of pods that are not guaranteed (default: not)."""
    min_size: Size | None = None
    """senpai, senpai-reclaim: memory that is left to the group (default 100MiB)."""
    minimum_reclaim: int | str | None = None
    """evictionMinimumReclaim (default: none)."""
    monitoring_interval: Time | None = None
    """Time between two looks (default 10s)."""
    nice: int | None = None
    """Nice value (default 0)."""
    omit: Sequence[str] | None = None
    """Groups with ManagedOOMPreference=omit."""
    oom_score_adj: int | None = None
    """Added to the badness score for the OOM killer; -1000: never killed (default 0)."""
    pod: Sequence[Pod] | None = None
    """The pods."""
    prefer: Sequence[str] | None = None
    """--prefer: names of tasks; `*` stands for any text. Adds 300 to their scores."""
    pressure: Time | None = None
    """senpai: stall per interval that it aims at (default 10ms)."""
    pressure_transition_period: Time | None = None
    """evictionPressureTransitionPeriod (default 5min)."""
    psi_complete_stall: Time | None = None
    """Stall of all tasks in a second after which it kills (default 700ms)."""
    psi_partial_stall: Time | None = None
    """Stall of some task in a second that wakes it up (default 70ms; low_ram 200ms)."""
    rule: Literal["senpai", "senpai-reclaim", "koordinator"] | None = None
    """The rule."""
    runs: int | None = None
    """senpai-reclaim: runs between two reclaims (default 6)."""
    sigterm: Literal["exit", "ignore"] | None = None
    """Effect of SIGTERM, which watchers send (default exit)."""
    soft_grace_period: Time | None = None
    """evictionSoftGracePeriod, required with the soft threshold."""
    sort_by_rss: bool | None = None
    """--sort-by-rss: kills the process with the most resident memory (default false)."""
    start: Time | None = None
    """Start time, counted from the start of the run (default 0)."""
    step: Size | None = None
    """koordinator: largest reclaim of one look (default 32MiB)."""
    swap: float | str | None = None
    """-s: percent of free swap for SIGTERM, and for SIGKILL (default "10,5"); 100 ignores swap."""
    swap_behavior: Literal["NoSwap", "LimitedSwap"] | None = None
    """memorySwap.swapBehavior: writes memory.swap.max of pods (default: not written)."""
    swap_free_low_percentage: int | None = None
    """Percent of free swap below which swap is low (default 10)."""
    swap_used_limit: str | None = None
    """SwapUsedLimit=, also of memory (default "90%")."""
    swap_util_max: int | None = None
    """Percent of anonymous memory that may be swapped out (default 100: any)."""
    target: str | None = None
    """The group, or one copy, `NAME.0`."""
    thrashing_limit: int | None = None
    """Percent of the page cache that may refault in a second (default 100; low_ram 30)."""
    thrashing_limit_critical: int | None = None
    """Thrashing at which perceptible processes die, too (default: twice the limit)."""
    thrashing_limit_decay: int | None = None
    """Percent by which the limit falls with each kill (default 10; low_ram 50)."""
    unit: Sequence[OomdUnit] | None = None
    """Units with ManagedOOMSwap or ManagedOOMMemoryPressure."""
    until: str | None = None
    """Name of a task: when that task ends, this one is stopped. The run does not wait for this one."""
    version: Literal["1.7", "1.9"] | None = None
    """Release that it follows (default 1.9)."""
    watermark: Percent | None = None
    """koordinator: share of memory.max above which it reclaims (default "95 %")."""


class Resident(_Table):
    """Memory of a task at the start of the run, by LRU list. File pages are page cache of a file that only
    this task has, on the first disk."""
    active_anon: Size | None = None
    """Anonymous memory on the active list (default 0)."""
    active_file: Size | None = None
    """Page cache on the active list (default 0)."""
    inactive_anon: Size | None = None
    """Anonymous memory on the inactive list (default 0)."""
    inactive_file: Size | None = None
    """Page cache on the inactive list (default 0)."""
    node: int | None = None
    """Number of the node (default 0)."""
    zone: Literal["DMA", "DMA32", "Normal", "HighMem", "Movable"] | None = None
    """The zone (default: the highest zones of the node that have room)."""


class DiskFaults(_Table):
    """Faults that a disk injects; the seed of the run decides which requests they hit."""
    read_error_ppm: int | None = None
    """Failed reads per million (default 0)."""
    slow_factor: int | None = None
    """How many times slower a slow request is (default 10)."""
    slow_ppm: int | None = None
    """Slow requests per million (default 0)."""
    write_error_ppm: int | None = None
    """Failed writes per million (default 0)."""


class Latency(_Table):
    """A distribution of latencies: percentiles, or a recorded histogram."""
    file: str | None = None
    """File with a recorded histogram, relative to the file that names it."""
    max: Time | None = None
    """Longest time (default: the highest percentile)."""
    mean: Time | None = None
    """Mean to which all times are scaled (default: they are not scaled)."""
    min: Time | None = None
    """Shortest time (default: the lowest percentile)."""
    p1: Time | None = None
    """Time that 1 % of the requests do not exceed."""
    p10: Time | None = None
    """Time that 10 % do not exceed."""
    p25: Time | None = None
    """Time that 25 % do not exceed."""
    p50: Time | None = None
    """Time that 50 % do not exceed."""
    p75: Time | None = None
    """Time that 75 % do not exceed."""
    p90: Time | None = None
    """Time that 90 % do not exceed."""
    p95: Time | None = None
    """Time that 95 % do not exceed."""
    p99: Time | None = None
    """Time that 99 % do not exceed."""
    p999: Time | None = None
    """Time that 99.9 % do not exceed."""
    p9999: Time | None = None
    """Time that 99.99 % do not exceed."""


class FreeArea(_Table):
    """Free blocks of one migrate type in a zone."""
    blocks: Sequence[int] | None = None
    """Numbers of free blocks of order 0, 1, 2 and so on, at most 11 (default: none)."""
    pageblocks: int | None = None
    """Number of pageblocks of this type (default: as many as its free blocks need)."""


class Pod(_Table):
    """A pod: a group, with what its manifest says about memory."""
    group: str
    """The group. If it has copies, each is a pod."""
    critical: bool | None = None
    """A static pod: never evicted (default: only with a priority of 2000000000 or more)."""
    limit: int | str | None = None
    """Limit of memory, written to memory.max (default: none)."""
    priority: int | None = None
    """spec.priority (default 0)."""
    request: int | str | None = None
    """Request of memory (default: none)."""


class OomdUnit(_Table):
    """A unit that systemd-oomd watches: a group, or the root slice."""
    duration: Time | None = None
    """ManagedOOMMemoryPressureDurationSec= (default: the watcher's)."""
    group: str | None = None
    """The group, or one copy, `NAME.0` (default: the root slice)."""
    limit: str | None = None
    """ManagedOOMMemoryPressureLimit= (default: the watcher's)."""
    pressure: bool | None = None
    """ManagedOOMMemoryPressure=kill (default false)."""
    swap: bool | None = None
    """ManagedOOMSwap=kill (default false)."""


class _Task(_Table):
    """The keys of all tasks."""
    name: str = field(kw_only=False)
    """Name of the task; its metrics are NAME.metric and NAME.PHASE.metric."""
    after: str | None = None
    """Name of a task: when that task ends, this one starts."""
    background: bool | None = None
    """Stops the task when all others have ended: it does not keep the run alive (default false)."""
    content: Content | None = None
    """Contents of its pages; a key that is left out has the machine's value (default: as machine.content)."""
    copies: int | None = None
    """Number of copies; several are called NAME.0, NAME.1 and so on (default 1)."""
    delay: Time | None = None
    """Pause between the end of the task in `after` and the start (default 0)."""
    group: str | None = None
    """Group that the task runs in (default: the root)."""
    loops: int | None = None
    """Number of times that the task runs through its phases (default 1)."""
    nice: int | None = None
    """Nice value (default 0)."""
    oom_score_adj: int | None = None
    """Added to the badness score for the OOM killer; -1000: never killed (default 0)."""
    resident: Sequence[Resident] | None = None
    """Memory that the task has when the run starts, on the LRU lists, in frames of a zone that are managed
    but not free."""
    restart: Time | None = None
    """Pause after which the task starts again from its first phase if it was killed (default: it does
    not)."""
    sigterm: Literal["exit", "ignore"] | None = None
    """Effect of SIGTERM, which watchers send (default exit)."""
    start: Time | None = None
    """Start time, counted from the start of the run (default 0)."""
    until: str | None = None
    """Name of a task: when that task ends, this one is stopped. The run does not wait for this one."""


class Task(_Task):
    """A task with several phases, one after the other. A task with one is made by the class of its
    workload."""
    phases: Sequence[_Table | Mapping[str, Any]] = field(metadata={"key": "phase"})
    """Phases, in order."""


class _Workload(_Task):
    """A task, or a phase of one, with one workload."""
    repeat: int | None = None
    """Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called NAME)."""


class FileWrite(_Workload, workload="file-write"):
    """A task, or a phase of one, with the workload `file-write`. Writes a file with write() calls: appends
    like dd, or overwrites blocks in an order."""
    file: str
    """File to write to."""
    block: Size | None = None
    """Size of a call (default 64KiB)."""
    exponent: float | None = None
    """Exponent of order zipf (default 1.0)."""
    order: Literal["sequential", "scattered", "random", "zipf"] | None = None
    """Order in which blocks are overwritten (default: appends)."""
    total: Size | None = None
    """Bytes to write (default: until the task is stopped)."""


class FileRead(_Workload, workload="file-read"):
    """A task, or a phase of one, with the workload `file-read`. Reads a file with read() calls, from start to
    end and again, or blocks in another order."""
    file: str
    """File to read."""
    block: Size | None = None
    """Size of a call (default 64KiB)."""
    exponent: float | None = None
    """Exponent of order zipf (default 1.0)."""
    log: str | None = None
    """File to which these calls append instead."""
    order: Literal["sequential", "scattered", "random", "zipf"] | None = None
    """Order of the blocks (default sequential)."""
    total: Size | None = None
    """Bytes to read (default: the whole file once)."""
    write_percent: int | None = None
    """Share of the calls that write the block (default 0)."""


class MappedRead(_Workload, workload="mapped-read"):
    """A task, or a phase of one, with the workload `mapped-read`. Maps a file and reads one byte of each
    page."""
    file: str
    """File to map."""
    advice: Literal["normal", "random", "sequential"] | None = None
    """Advice on the mapping (default normal)."""
    compute: Time | None = None
    """CPU time of the program after each access (default 0)."""
    exponent: float | None = None
    """Exponent of order zipf (default 1.0)."""
    order: Literal["sequential", "scattered", "random", "zipf"] | None = None
    """Order of the pages (default sequential)."""
    passes: int | None = None
    """Number of passes over the mapping (default 1)."""
    region: str | None = None
    """Name of the mapping, shared by phases that name the same region (default: the file)."""
    size: Size | None = None
    """Bytes to map, from its start (default: all)."""
    stride: Size | None = None
    """Distance between two pages that are read, in whole pages (default: one page)."""


class Touch(_Workload, workload="touch"):
    """A task, or a phase of one, with the workload `touch`. Writes or reads each page of an anonymous
    region."""
    size: int | str
    """Size of the region."""
    advice: Literal["normal", "huge", "no-huge"] | None = None
    """Advice on the region about huge pages (default normal)."""
    compute: Time | None = None
    """CPU time of the program after each access (default 0)."""
    exponent: float | None = None
    """Exponent of order zipf (default 1.0)."""
    load: Sequence[tuple[Time, Percent]] | None = None
    """Share of the rate over time (default: the full rate)."""
    order: Literal["sequential", "scattered", "random", "zipf"] | None = None
    """Order of the pages (default sequential)."""
    passes: int | None = None
    """Number of passes over the region (default 1)."""
    rate: Rate | None = None
    """Rate in bytes or pages per second; an access counts as a page (default: no limit)."""
    region: str | None = None
    """Name of the region; phases of a task that name the same region share it (default anon)."""
    stride: Size | None = None
    """Distance between two pages that are touched, in whole pages (default: one page)."""
    write: bool | None = None
    """Writes if true, reads if false (default true)."""


class Interleave(_Workload, workload="interleave"):
    """A task, or a phase of one, with the workload `interleave`. Touches anonymous pages and pages of a file
    in turn, so that they alternate in memory."""
    pages: int
    """Number of pages of each kind."""
    file: str
    """File to map, with at least `pages` pages; it is unmapped when the phase ends."""
    keep_mapped: bool | None = None
    """Whether the file stays mapped until the task ends (default false)."""
    region: str | None = None
    """Anonymous region; phases of a task that name the same region share it (default anon)."""


class Discard(_Workload, workload="discard"):
    """A task, or a phase of one, with the workload `discard`. Frees pages of an anonymous region with
    madvise(MADV_DONTNEED)."""
    every: int | None = None
    """Distance from one page to the next (default 1)."""
    first: int | None = None
    """First page (default 0)."""
    region: str | None = None
    """Region that an earlier phase of the task has mapped (default anon)."""


class Lock(_Workload, workload="lock"):
    """A task, or a phase of one, with the workload `lock`. Locks part of a region into memory (mlock), or
    unlocks it."""
    file: str | None = None
    """File to map, if no earlier phase has mapped the region."""
    first: int | None = None
    """First page (default 0)."""
    how: Literal["lock", "on-fault", "unlock"] | None = None
    """Operation (default lock)."""
    pages: int | None = None
    """Number of pages (default: up to the end of the region)."""
    region: str | None = None
    """Region to lock (default: anon, or the file)."""
    size: Size | None = None
    """Bytes of memory or of the file to map, if no earlier phase has mapped the region."""


class Advise(_Workload, workload="advise"):
    """A task, or a phase of one, with the workload `advise`. Gives advice on part of a region (madvise)."""
    advice: Literal[
        "normal", "random", "sequential", "huge", "no-huge", "populate-read", "populate-write", "will-need",
        "cold", "page-out", "collapse",
    ]
    """Advice to give."""
    file: str | None = None
    """File to map, if no earlier phase has mapped the region."""
    first: int | None = None
    """First page (default 0)."""
    pages: int | None = None
    """Number of pages (default: up to the end of the region)."""
    region: str | None = None
    """Region to advise on (default: anon, or the file)."""
    size: Size | None = None
    """Bytes of memory or of the file to map, if no earlier phase has mapped the region."""


class HighOrder(_Workload, workload="high-order"):
    """A task, or a phase of one, with the workload `high-order`. Tries to allocate blocks of kernel memory of
    one order."""
    attempts: int | None = None
    """Number of attempts."""
    hold: bool | None = None
    """Keeps the blocks until all attempts are made (default true)."""
    interval: Time | None = None
    """Time from the start of one attempt to the start of the next (default 0: at once)."""
    order: int | None = None
    """log2 of the pages of a block (default 9: 2 MiB)."""
    percent: int | None = None
    """Attempts as the per cent of the machine's memory that their blocks have."""
    request: Literal["direct", "nowait"] | None = None
    """Rights of an attempt (default direct)."""


class KernelMemory(_Workload, workload="kernel-memory"):
    """A task, or a phase of one, with the workload `kernel-memory`. Allocates and frees kernel memory, like
    network buffers, stacks and drivers."""
    blocks: int
    """Largest number of blocks held at the same time."""
    count: int | None = None
    """Number of allocations (default: until the task is stopped)."""
    interval: Time | None = None
    """Time from the start of one allocation to the start of the next (default 0: at once)."""
    order: int | None = None
    """log2 of the pages of a block (default 0: one page)."""
    request: Literal["kernel", "atomic", "nowait", "reclaimable"] | None = None
    """Rights of an allocation (default kernel)."""


class KernelObjects(_Workload, workload="kernel-objects"):
    """A task, or a phase of one, with the workload `kernel-objects`. Allocates and frees kernel objects like
    recorded work."""
    mix: str
    """Object mix, relative to the file that names it."""
    units: int
    """Number of units."""
    compute: Time | None = None
    """CPU time of a unit, spread over its allocations (default 0)."""
    interval: Time | None = None
    """Time from the start of one unit to the start of the next (default 0: at once)."""
    start_unit: bool | None = None
    """Starts with the mix's start-up part, which stays until the task ends (default false)."""


class Names(_Workload, workload="names"):
    """A task, or a phase of one, with the workload `names`. Makes files and removes most of them again, or
    looks up names that do not exist."""
    make: int
    """Number of names."""
    keep: Share | None = None
    """Share of the files that stays, also after the end of the task (default "0 %")."""
    kind: Literal["file", "missing"] | None = None
    """Files, or names that do not exist (default file)."""
    pick: Literal["evenly", "random"] | None = None
    """Which files stay: every Nth, or random ones (default evenly)."""


class Pipes(_Workload, workload="pipes"):
    """A task, or a phase of one, with the workload `pipes`. Opens pipes and closes most of them again."""
    make: int
    """Number of pipes."""
    keep: Share | None = None
    """Share that stays open until the task ends (default "0 %")."""
    pick: Literal["evenly", "random"] | None = None
    """Which pipes stay: every Nth, or random ones (default evenly)."""


class Remove(_Workload, workload="remove"):
    """A task, or a phase of one, with the workload `remove`. Removes files, or closes pipes, that an earlier
    phase kept."""
    of: str
    """Earlier phase with workload names or pipes."""
    keep: Share | None = None
    """Share of the remaining ones that stays (default "0 %")."""
    pick: Literal["evenly", "random"] | None = None
    """Which ones stay: every Nth, or random ones (default evenly)."""


class WorkingSet(_Workload, workload="working-set"):
    """A task, or a phase of one, with the workload `working-set`. Makes hot and cold accesses to anonymous
    memory, file memory or both."""
    accesses: int | None = None
    """Number of accesses (default 0)."""
    advice: Literal["normal", "random", "sequential"] | None = None
    """Advice on the file's mapping (default normal)."""
    anon: Size | None = None
    """Size of the anonymous region (default: none)."""
    anon_percent: int | None = None
    """Per cent of the accesses that go to the anonymous region if there are both (default 50)."""
    anon_region: str | None = None
    """Name of the anonymous region, shared by phases that name the same one (default anon)."""
    compute: Time | None = None
    """CPU time of the program after each access, except while it populates (default 0)."""
    file: str | None = None
    """File to map (default: none)."""
    file_region: str | None = None
    """Name of the file's mapping (default: the file)."""
    file_size: Size | None = None
    """Bytes of the file to map, from its start (default: all)."""
    generator_seed: int | None = None
    """Start value of the generator (default: from the run's seed)."""
    hot_access_percent: int | None = None
    """Share of the accesses that are hot, in per cent (default 80)."""
    hot_page_percent: int | None = None
    """Share of the pages that are hot, in per cent (default 20)."""
    load: Sequence[tuple[Time, Percent]] | None = None
    """Share of the rate over time (default: the full rate)."""
    populate: bool | None = None
    """Touches every page in order first, anonymous before file (default false)."""
    rate: Rate | None = None
    """Rate in bytes or pages per second; an access counts as a page (default: no limit)."""
    write_percent: int | None = None
    """Share of the anonymous accesses that write, in per cent (default 100)."""


class Service(_Workload, workload="service"):
    """A task, or a phase of one, with the workload `service`. Serves requests that arrive independently of
    whether a thread is free."""
    rate: float
    """Requests per second."""
    allocate: Size | None = None
    """Memory that a request allocates, writes, and frees at its end (default: none)."""
    arrivals: Literal["poisson", "even"] | None = None
    """Distribution of the arrivals of requests (default poisson)."""
    cpu: Time | None = None
    """CPU time of a request (default 0)."""
    cpu_distribution: Literal["fixed", "exponential"] | None = None
    """Distribution of the CPU times of requests (default fixed)."""
    deadline: Time | None = None
    """A request that takes longer is late (default: no limit)."""
    duration: Time | None = None
    """Time during which requests arrive (default: until the task is stopped, or until all `requests` have
    arrived)."""
    exponent: float | None = None
    """Exponent of order zipf (default 1.0)."""
    file: str | None = None
    """File that requests read and write (default: none)."""
    grow: Rate | None = None
    """Rate at which the service allocates memory that it never frees (default: none)."""
    heap: Size | None = None
    """Size of the anonymous memory that requests touch (default: none)."""
    load: Sequence[tuple[Time, Percent]] | None = None
    """Share of the rate over time (default: the full rate)."""
    order: Literal["sequential", "scattered", "random", "zipf"] | None = None
    """Distribution of the touched pages: random or zipf (default zipf)."""
    populate: bool | None = None
    """Writes every page of `heap` first (default true)."""
    queue: int | None = None
    """Requests that may wait for a thread; more are dropped (default 1048576, the maximum)."""
    read: Size | None = None
    """Bytes of the file that a request reads, at a random position (default: none)."""
    region: str | None = None
    """Region of `heap`; phases of a task that name the same region share it (default anon)."""
    requests: int | None = None
    """Number of requests that arrive (default: as many as arrive in `duration`)."""
    threads: int | None = None
    """Number of threads that serve them (default 1)."""
    touches: int | None = None
    """Number of pages of `heap` that a request touches."""
    write: Size | None = None
    """Bytes of the file that a request writes, at a random position (default: none)."""
    write_percent: int | None = None
    """Share of the touches that write, in per cent (default 50)."""


class Trace(_Workload, workload="trace"):
    """A task, or a phase of one, with the workload `trace`. Replays a page trace."""
    path: str
    """Trace file, relative to the file that names it."""
    advice: Literal["normal", "random", "sequential"] | None = None
    """Advice on its regions of files (default: normal; for a trace of objects, random)."""
    passes: int | None = None
    """Number of passes through the trace (default 1)."""


class Build(_Workload, workload="build"):
    """A task, or a phase of one, with the workload `build`. Compiles files, one after another, like make."""
    path: str
    """Page trace of one compiler, relative to the file that names it."""
    units: int
    """Number of files to compile."""
    header: Size | None = None
    """Bytes of `headers` that a unit reads (default 442572, as in the recorded compile)."""
    headers: str | None = None
    """File that stands for all headers (default: none)."""
    kernel_pages: int | None = None
    """Number of other unmovable pages that a unit holds while it runs (default 0)."""
    link: Size | None = None
    """Bytes that a link appends to `objects` after it has read everything appended since the previous link
    (default: no link)."""
    link_units: int | None = None
    """Units between two links; the last link follows the last unit (default: all units)."""
    metadata: str | None = None
    """File of the file system's own blocks, with `metadata = true` (default: none)."""
    metadata_size: Size | None = None
    """Bytes of `metadata` that a unit changes, in blocks of 4 KiB (default 20KiB: the object's inode, its
    name, the bitmaps of inodes and of blocks, and their group descriptor)."""
    mix: str | None = None
    """Object mix: the kernel objects that a unit holds while it runs (default: none)."""
    object: Size | None = None
    """Bytes that a unit appends to `objects` (default 6592, as in the recorded compile)."""
    objects: str | None = None
    """File that objects are appended to (default: none)."""
    source: Size | None = None
    """Bytes of `sources` that a unit reads (default 6323, as in the recorded compile)."""
    sources: str | None = None
    """File that stands for the source tree, read from front to back (default: none)."""
    stack_order: int | None = None
    """log2 of the pages of a unit's kernel stack (default 0: no stack)."""


class WriteControl(_Workload, workload="write-control"):
    """A task, or a phase of one, with the workload `write-control`. Writes a text to a control file, like
    echo."""
    control: Literal[
        "vm.min_free_kbytes", "vm.watermark_scale_factor", "vm.watermark_boost_factor", "vm.wmark_min_kbytes",
        "vm.wmark_low_kbytes", "vm.wmark_high_kbytes", "vm.extra_free_kbytes", "vm.lowmem_reserve_ratio",
        "vm.drop_caches", "vm.compact_memory", "vm.stat_refresh", "transparent_hugepage.enabled",
        "transparent_hugepage.defrag", "vm.swappiness", "vm.page-cluster", "vm.fault_around_bytes",
        "block.read_ahead_kb", "vm.dirty_ratio", "vm.dirty_background_ratio", "vm.dirty_bytes",
        "vm.dirty_background_bytes", "vm.dirty_writeback_centisecs", "vm.dirty_expire_centisecs",
        "vm.laptop_mode", "vm.vfs_cache_pressure", "lru_gen.enabled", "lru_gen.min_ttl_ms",
        "vm.extfrag_threshold", "vm.compact_unevictable_allowed", "vm.compaction_proactiveness",
        "vm.defrag_mode", "transparent_hugepage.khugepaged.defrag",
        "transparent_hugepage.khugepaged.pages_to_scan",
        "transparent_hugepage.khugepaged.scan_sleep_millisecs",
        "transparent_hugepage.khugepaged.alloc_sleep_millisecs",
        "transparent_hugepage.khugepaged.max_ptes_none", "transparent_hugepage.khugepaged.max_ptes_swap",
        "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.zswap.max",
        "memory.zswap.writeback", "memory.oom.group", "memory.limit_in_bytes", "memory.kmem.limit_in_bytes",
        "memory.soft_limit_in_bytes", "memory.swappiness", "memory.global_shrink_priority", "cpu.weight",
        "cpu.max", "memory.reclaim", "memory.force_empty", "zram.idle", "zram.writeback",
        "zram.writeback_limit", "zram.writeback_limit_enable", "lru_gen",
    ] | Value
    """Name of the file, as the kernel spells it."""
    text: Sequence[int | str] | int | str
    """Text to write."""
    target: str | None = None
    """Group of the file, or one copy, `NAME.0` (default: none, for a file of the machine)."""


class CreateGroup(_Workload, workload="create-group"):
    """A task, or a phase of one, with the workload `create-group`. Creates a group that does not exist, like
    mkdir."""
    target: str
    """Group to create; for a group with copies, one copy: `NAME.0`."""


class RemoveGroup(_Workload, workload="remove-group"):
    """A task, or a phase of one, with the workload `remove-group`. Removes a group, like rmdir."""
    target: str
    """Group to remove; for a group with copies, one copy: `NAME.0`."""


class JoinGroup(_Workload, workload="join-group"):
    """A task, or a phase of one, with the workload `join-group`. Moves the task into a group."""
    target: str | None = None
    """Group to join; for a group with copies, one copy: `NAME.0` (default: the root)."""


class Compute(_Workload, workload="compute"):
    """A task, or a phase of one, with the workload `compute`. Uses the CPU."""
    duration: int | str
    """CPU time to use."""


class Sleep(_Workload, workload="sleep"):
    """A task, or a phase of one, with the workload `sleep`. Sleeps."""
    duration: int | str
    """Time to sleep."""


class Kubelet(_Workload, workload="kubelet"):
    """A task, or a phase of one, with the workload `kubelet`. The eviction manager of kubelet; see
    [[watcher]]."""
    compute: Time | None = None
    """CPU time of a look in addition to the time for reading (default 0)."""
    footprint: Size | None = None
    """Memory of its own that it uses at each look (default 64MiB)."""
    housekeeping_interval: Time | None = None
    """Least time between two figures of a pod in cAdvisor (default 10s)."""
    kubepods: str | None = None
    """The group of all pods. With a limit, allocatableMemory.available is a signal, too."""
    locked: bool | None = None
    """Its memory is locked (default false)."""
    max_pod_grace_period: Time | None = None
    """evictionMaxPodGracePeriod, for the soft threshold (default 0)."""
    memory_available: int | str | None = None
    """evictionHard of memory.available (default "100Mi"); "0%" switches it off."""
    memory_available_soft: int | str | None = None
    """evictionSoft of memory.available (default: none)."""
    memory_reservation_policy: Literal["None", "TieredReservation"] | None = None
    """memoryReservationPolicy (default "None")."""
    memory_throttling_factor: float | None = None
    """memoryThrottlingFactor: writes memory.high of pods that are not guaranteed (default: not)."""
    minimum_reclaim: int | str | None = None
    """evictionMinimumReclaim (default: none)."""
    monitoring_interval: Time | None = None
    """Time between two looks (default 10s)."""
    pod: Sequence[Pod] | None = None
    """The pods."""
    pressure_transition_period: Time | None = None
    """evictionPressureTransitionPeriod (default 5min)."""
    soft_grace_period: Time | None = None
    """evictionSoftGracePeriod, required with the soft threshold."""
    swap_behavior: Literal["NoSwap", "LimitedSwap"] | None = None
    """memorySwap.swapBehavior: writes memory.swap.max of pods (default: not written)."""


class SystemdOomd(_Workload, workload="systemd-oomd"):
    """A task, or a phase of one, with the workload `systemd-oomd`. systemd-oomd; see [[watcher]]."""
    avoid: Sequence[str] | None = None
    """Groups with ManagedOOMPreference=avoid."""
    compute: Time | None = None
    """CPU time of a look in addition to the time for reading (default 0)."""
    defaults: Literal["upstream", "fedora"] | None = None
    """Which defaults the next keys have (default upstream)."""
    footprint: Size | None = None
    """Memory of its own that it uses at each look (default 2MiB)."""
    locked: bool | None = None
    """Its memory is locked (default false)."""
    memory_pressure_duration: Time | None = None
    """DefaultMemoryPressureDurationSec= (default 30s; fedora 20s)."""
    memory_pressure_limit: str | None = None
    """DefaultMemoryPressureLimit= (default "60%"; fedora "50%")."""
    omit: Sequence[str] | None = None
    """Groups with ManagedOOMPreference=omit."""
    swap_used_limit: str | None = None
    """SwapUsedLimit=, also of memory (default "90%")."""
    unit: Sequence[OomdUnit] | None = None
    """Units with ManagedOOMSwap or ManagedOOMMemoryPressure."""


class Earlyoom(_Workload, workload="earlyoom"):
    """A task, or a phase of one, with the workload `earlyoom`. earlyoom; see [[watcher]]."""
    avoid: Sequence[str] | None = None
    """--avoid: names of tasks. Subtracts 300 from their scores."""
    compute: Time | None = None
    """CPU time of a look in addition to the time for reading (default 0)."""
    footprint: Size | None = None
    """Memory of its own that it uses at each look (default 2MiB)."""
    ignore: Sequence[str] | None = None
    """--ignore: names of tasks that are never killed."""
    locked: bool | None = None
    """Its memory is locked, as by mlockall (default true)."""
    mem: float | str | None = None
    """-m: percent of available memory for SIGTERM, and for SIGKILL (default "10,5")."""
    prefer: Sequence[str] | None = None
    """--prefer: names of tasks; `*` stands for any text. Adds 300 to their scores."""
    sort_by_rss: bool | None = None
    """--sort-by-rss: kills the process with the most resident memory (default false)."""
    swap: float | str | None = None
    """-s: percent of free swap for SIGTERM, and for SIGKILL (default "10,5"); 100 ignores swap."""
    version: Literal["1.7", "1.9"] | None = None
    """Release that it follows (default 1.9)."""


class Lmkd(_Workload, workload="lmkd"):
    """A task, or a phase of one, with the workload `lmkd`. Android's lmkd; see [[watcher]]."""
    compute: Time | None = None
    """CPU time of a look in addition to the time for reading (default 0)."""
    filecache_min: Size | None = None
    """Page cache that must be there after thrashing (default 0)."""
    footprint: Size | None = None
    """Memory of its own that it uses at each look (default 4MiB)."""
    kill_heaviest_task: bool | None = None
    """Kills the heaviest of the processes with one oom_score_adj (default false: the oldest)."""
    kill_timeout: Time | None = None
    """Time that it waits for the end of a process (default 100ms)."""
    locked: bool | None = None
    """Its memory is locked, as by mlockall (default true)."""
    low_ram: bool | None = None
    """A device with little memory: other defaults of the next keys (default false)."""
    psi_complete_stall: Time | None = None
    """Stall of all tasks in a second after which it kills (default 700ms)."""
    psi_partial_stall: Time | None = None
    """Stall of some task in a second that wakes it up (default 70ms; low_ram 200ms)."""
    swap_free_low_percentage: int | None = None
    """Percent of free swap below which swap is low (default 10)."""
    swap_util_max: int | None = None
    """Percent of anonymous memory that may be swapped out (default 100: any)."""
    thrashing_limit: int | None = None
    """Percent of the page cache that may refault in a second (default 100; low_ram 30)."""
    thrashing_limit_critical: int | None = None
    """Thrashing at which perceptible processes die, too (default: twice the limit)."""
    thrashing_limit_decay: int | None = None
    """Percent by which the limit falls with each kill (default 10; low_ram 50)."""


class ReclaimLoop(_Workload, workload="reclaim-loop"):
    """A task, or a phase of one, with the workload `reclaim-loop`. A loop that takes memory from a group,
    such as senpai; see [[watcher]]."""
    rule: Literal["senpai", "senpai-reclaim", "koordinator"]
    """The rule."""
    target: str
    """The group, or one copy, `NAME.0`."""
    coeff_backoff: int | None = None
    """senpai: a backoff is largest when the stall is this multiple of `pressure` (default 20)."""
    coeff_probe: int | None = None
    """senpai: a probe is largest when the stall is this part of `pressure` (default 10)."""
    compute: Time | None = None
    """CPU time of a look in addition to the time for reading (default 0)."""
    footprint: Size | None = None
    """Memory of its own that it uses at each look (default 8MiB)."""
    interval: Time | None = None
    """senpai: time between two probes, in whole seconds (default 6s). koordinator: time between two looks
    (default 1s). senpai-reclaim: time between two runs (default 5s)."""
    locked: bool | None = None
    """Its memory is locked (default false)."""
    max_backoff: float | None = None
    """senpai: largest share that a backoff returns (default 1)."""
    max_probe: float | None = None
    """senpai, senpai-reclaim: largest share that a probe takes (default 0.01)."""
    max_size: Size | None = None
    """senpai: largest limit (default 100GiB)."""
    min_size: Size | None = None
    """senpai, senpai-reclaim: memory that is left to the group (default 100MiB)."""
    pressure: Time | None = None
    """senpai: stall per interval that it aims at (default 10ms)."""
    runs: int | None = None
    """senpai-reclaim: runs between two reclaims (default 6)."""
    step: Size | None = None
    """koordinator: largest reclaim of one look (default 32MiB)."""
    watermark: Percent | None = None
    """koordinator: share of memory.max above which it reclaims (default "95 %")."""
