"""Tables of a scenario as typed values: the arguments of `pagetide.Scenario`, as in
`pagetide.Scenario(machine=..., tasks=[...])`.

Each argument is a key of a scenario file (docs/scenario.md), under the same name; a dot or a dash
in it is `_`. An omitted argument has the default of the file. The loader checks all values when the
scenario is built.

Made by scripts/python_builders.py from the schema; do not change it here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Mapping, Sequence, TypeAlias, Union

__all__ = [
    "Advise",
    "Build",
    "Cache",
    "Compute",
    "Costs",
    "CreateGroup",
    "Discard",
    "Disk",
    "DiskFaults",
    "Expect",
    "File",
    "FileRead",
    "FileWrite",
    "FreeArea",
    "Group",
    "HighOrder",
    "Interleave",
    "JoinGroup",
    "KernelMemory",
    "KernelObjects",
    "Latency",
    "Lock",
    "Machine",
    "MappedRead",
    "Names",
    "Node",
    "Pipes",
    "Policy",
    "Remove",
    "RemoveGroup",
    "Report",
    "Service",
    "Sleep",
    "Swap",
    "Task",
    "Touch",
    "Trace",
    "Variant",
    "WorkingSet",
    "WriteControl",
    "Zone",
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


class _Table:
    """A table of a scenario."""

    _workload: ClassVar[str | None] = None
    _keys: ClassVar[Mapping[str, str]] = {}
    """Keys that are not called as their arguments."""

    def to_table(self) -> dict[str, Any]:
        """The keys that are set, as a scenario file has them."""
        table = {self._keys.get(name, name): value for name, value in vars(self).items() if value is not None}
        if self._workload is not None:
            table["workload"] = self._workload
        return table

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"{type(self).__name__}({', '.join(given)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


class Machine(_Table):
    """Hardware."""

    _keys: ClassVar[Mapping[str, str]] = {
        "caches": "cache",
        "disks": "disk",
        "nodes": "node",
        "zones": "zone",
    }

    def __init__(
        self,
        *,
        caches: Sequence[Cache] | None = None,
        costs: Costs | None = None,
        cpus: int | None = None,
        disks: Sequence[Disk] | None = None,
        init_on_alloc: bool | None = None,
        kmem_accounting: bool | None = None,
        memory: Size | None = None,
        memory_recursiveprot: bool | None = None,
        movable: Size | None = None,
        nodes: Sequence[Node] | None = None,
        page_size: int | str | None = None,
        reserved: Size | None = None,
        swap: Size | Swap | Sequence[Size | Swap] | None = None,
        zones: Sequence[Zone] | None = None,
    ) -> None:
        """
        caches: Caches of kernel objects with other settings than the kernel's own.
        costs: Costs of operations on this machine; a cost that is left out has the simulator's value.
        cpus: Number of CPUs (default 1).
        disks: Disks; without this table the machine has one SSD called `disk`.
        init_on_alloc: Clears every page when it is allocated: kernel parameter init_on_alloc, which many
            distributions set (default: the build setting of a real kernel; not in the simulator).
        kmem_accounting: Charges kernel objects to groups; false: boot option cgroup.memory=nokmem (default
            true).
        memory: Memory present.
        memory_recursiveprot: Shares among a group's children the part of its memory.min and memory.low that
            they do not claim: the mount option memory_recursiveprot (default false).
        movable: Memory at the top of the node that becomes zone Movable (default 0).
        nodes: NUMA nodes.
        page_size: Size of a page (default 4KiB).
        reserved: Memory that the kernel keeps permanently, taken from the last zones first (default 0).
        swap: Swap areas: a size, a table, or a list of these.
        zones: Zones with exact sizes, instead of `memory`.
        """
        self.caches: Sequence[Cache] | None = caches
        self.costs: Costs | None = costs
        self.cpus: int | None = cpus
        self.disks: Sequence[Disk] | None = disks
        self.init_on_alloc: bool | None = init_on_alloc
        self.kmem_accounting: bool | None = kmem_accounting
        self.memory: Size | None = memory
        self.memory_recursiveprot: bool | None = memory_recursiveprot
        self.movable: Size | None = movable
        self.nodes: Sequence[Node] | None = nodes
        self.page_size: int | str | None = page_size
        self.reserved: Size | None = reserved
        self.swap: Size | Swap | Sequence[Size | Swap] | None = swap
        self.zones: Sequence[Zone] | None = zones


class Disk(_Table):
    """A disk."""

    def __init__(
        self,
        name: str,
        *,
        model: Literal["rotating", "ssd", "nvme", "instant"],
        faults: DiskFaults | None = None,
        queue_depth: int | None = None,
        read_bandwidth: Rate | None = None,
        read_latency: Latency | Time | None = None,
        rotational: bool | None = None,
        write_bandwidth: Rate | None = None,
        write_latency: Latency | Time | None = None,
    ) -> None:
        """
        name: Name of the disk.
        model: Preset that gives the defaults of the other keys.
        faults: Faults to inject.
        queue_depth: Number of requests served at the same time (default: the preset's).
        read_bandwidth: Read bandwidth (default: the preset's).
        read_latency: Time of a read, or a distribution of times (default: the preset's).
        rotational: Whether the kernel treats the disk as rotational (default: the preset's).
        write_bandwidth: Write bandwidth (default: the preset's).
        write_latency: Time of a write, or a distribution of times (default: the preset's).
        """
        self.name: str = name
        self.model: Literal["rotating", "ssd", "nvme", "instant"] = model
        self.faults: DiskFaults | None = faults
        self.queue_depth: int | None = queue_depth
        self.read_bandwidth: Rate | None = read_bandwidth
        self.read_latency: Latency | Time | None = read_latency
        self.rotational: bool | None = rotational
        self.write_bandwidth: Rate | None = write_bandwidth
        self.write_latency: Latency | Time | None = write_latency


class Latency(_Table):
    """A distribution of latencies: percentiles, or a recorded histogram."""

    def __init__(
        self,
        *,
        file: str | None = None,
        max: Time | None = None,
        mean: Time | None = None,
        min: Time | None = None,
        p1: Time | None = None,
        p10: Time | None = None,
        p25: Time | None = None,
        p50: Time | None = None,
        p75: Time | None = None,
        p90: Time | None = None,
        p95: Time | None = None,
        p99: Time | None = None,
        p999: Time | None = None,
        p9999: Time | None = None,
    ) -> None:
        """
        file: File with a recorded histogram, relative to the scenario file.
        max: Longest time (default: the highest percentile).
        mean: Mean to which all times are scaled (default: they are not scaled).
        min: Shortest time (default: the lowest percentile).
        p1: Time that 1 % of the requests do not exceed.
        p10: Time that 10 % do not exceed.
        p25: Time that 25 % do not exceed.
        p50: Time that 50 % do not exceed.
        p75: Time that 75 % do not exceed.
        p90: Time that 90 % do not exceed.
        p95: Time that 95 % do not exceed.
        p99: Time that 99 % do not exceed.
        p999: Time that 99.9 % do not exceed.
        p9999: Time that 99.99 % do not exceed.
        """
        self.file: str | None = file
        self.max: Time | None = max
        self.mean: Time | None = mean
        self.min: Time | None = min
        self.p1: Time | None = p1
        self.p10: Time | None = p10
        self.p25: Time | None = p25
        self.p50: Time | None = p50
        self.p75: Time | None = p75
        self.p90: Time | None = p90
        self.p95: Time | None = p95
        self.p99: Time | None = p99
        self.p999: Time | None = p999
        self.p9999: Time | None = p9999


class DiskFaults(_Table):
    """Faults that a disk injects; the seed of the run decides which requests they hit."""

    def __init__(
        self,
        *,
        read_error_ppm: int | None = None,
        slow_factor: int | None = None,
        slow_ppm: int | None = None,
        write_error_ppm: int | None = None,
    ) -> None:
        """
        read_error_ppm: Failed reads per million (default 0).
        slow_factor: How many times slower a slow request is (default 10).
        slow_ppm: Slow requests per million (default 0).
        write_error_ppm: Failed writes per million (default 0).
        """
        self.read_error_ppm: int | None = read_error_ppm
        self.slow_factor: int | None = slow_factor
        self.slow_ppm: int | None = slow_ppm
        self.write_error_ppm: int | None = write_error_ppm


class Swap(_Table):
    """A swap area as a table."""

    def __init__(
        self,
        *,
        size: int | str,
        disk: str | None = None,
        full_after: Size | None = None,
        priority: int | None = None,
    ) -> None:
        """
        size: Size of the swap area.
        disk: Disk that holds it (default: the first).
        full_after: Reports the area as full once this much is used (fault injection).
        priority: Areas of a higher priority are used first, and areas of equal priority take turns. Default:
            -2 for the first area without a priority, -3 for the next, and so on.
        """
        self.size: int | str = size
        self.disk: str | None = disk
        self.full_after: Size | None = full_after
        self.priority: int | None = priority


class Node(_Table):
    """A NUMA node."""

    _keys: ClassVar[Mapping[str, str]] = {
        "zones": "zone",
    }

    def __init__(
        self,
        *,
        memory: Size | None = None,
        movable: Size | None = None,
        reserved: Size | None = None,
        zones: Sequence[Zone] | None = None,
    ) -> None:
        """
        memory: Memory present.
        movable: Memory at the top of the node that becomes zone Movable (default 0).
        reserved: Memory that the kernel keeps permanently, taken from the last zones first (default 0).
        zones: Zones with exact sizes, instead of `memory`.
        """
        self.memory: Size | None = memory
        self.movable: Size | None = movable
        self.reserved: Size | None = reserved
        self.zones: Sequence[Zone] | None = zones


class Zone(_Table):
    """A zone with exact sizes."""

    def __init__(
        self,
        name: str,
        *,
        present: int | str,
        free: Size | None = None,
        late: Size | None = None,
        managed: Size | None = None,
        movable: FreeArea | None = None,
        reclaimable: FreeArea | None = None,
        unmovable: FreeArea | None = None,
    ) -> None:
        """
        name: Name of the zone.
        present: Memory present.
        free: Memory free when the run starts (default: all managed).
        late: Part of `managed` that boot freed only after it had computed the watermarks: initial RAM disk
            and init sections (default: none). It lowers the kernel's own watermarks slightly.
        managed: Memory that the allocator manages (default: all present).
        movable: Free lists of movable pages when the run starts.
        reclaimable: Free lists of reclaimable pages when the run starts.
        unmovable: Free lists of unmovable pages when the run starts, as in /proc/pagetypeinfo. If free lists
            of any of the three types are given, `free` is the sum of the lists.
        """
        self.name: str = name
        self.present: int | str = present
        self.free: Size | None = free
        self.late: Size | None = late
        self.managed: Size | None = managed
        self.movable: FreeArea | None = movable
        self.reclaimable: FreeArea | None = reclaimable
        self.unmovable: FreeArea | None = unmovable


class FreeArea(_Table):
    """Free blocks of one migrate type in a zone."""

    def __init__(
        self,
        *,
        blocks: Sequence[int] | None = None,
        pageblocks: int | None = None,
    ) -> None:
        """
        blocks: Numbers of free blocks of order 0, 1, 2 and so on, at most 11 (default: none).
        pageblocks: Number of pageblocks of this type (default: as many as its free blocks need).
        """
        self.blocks: Sequence[int] | None = blocks
        self.pageblocks: int | None = pageblocks


class Cache(_Table):
    """Settings of a cache of kernel objects: its name and at least one other key."""

    def __init__(
        self,
        name: str,
        *,
        cpu_partial: int | None = None,
        min_partial: int | None = None,
        order: int | None = None,
    ) -> None:
        """
        name: Name of the cache, as in /proc/slabinfo.
        cpu_partial: Free objects that a CPU's list of partial slabs may hold (default: from the object size).
        min_partial: Number of empty slabs that a node keeps (default: from the object size).
        order: log2 of the pages in a slab (default: from the object size and the number of CPUs).
        """
        self.name: str = name
        self.cpu_partial: int | None = cpu_partial
        self.min_partial: int | None = min_partial
        self.order: int | None = order


class Costs(_Table):
    """Costs of operations on this machine; the simulator has defaults for all of them."""

    def __init__(
        self,
        *,
        bio: Time | None = None,
        bio_page: Time | None = None,
        buddy_op: Time | None = None,
        cache_create: Time | None = None,
        cache_op: Time | None = None,
        compact_scan: Time | None = None,
        context_switch: Time | None = None,
        fault: Time | None = None,
        fs_read: Time | None = None,
        fs_request: Time | None = None,
        hit: Time | None = None,
        idle_exit: Time | None = None,
        io_completion: Time | None = None,
        list_spare: Time | None = None,
        lru_move: Time | None = None,
        lruvec_visit: Time | None = None,
        objcg_drain: Time | None = None,
        object: Time | None = None,
        object_charge: Time | None = None,
        object_prune: Time | None = None,
        object_scan: Time | None = None,
        page_alloc: Time | None = None,
        page_charge: Time | None = None,
        page_copy: Time | None = None,
        page_free: Time | None = None,
        page_migrate: Time | None = None,
        page_scan: Time | None = None,
        page_skip: Time | None = None,
        page_zero: Time | None = None,
        pte: Time | None = None,
        refault: Time | None = None,
        rmap_walk: Time | None = None,
        slab_refill: Time | None = None,
        syscall: Time | None = None,
        tlb_flush: Time | None = None,
        tlb_shootdown: Time | None = None,
        user_access: Time | None = None,
        wakeup: Time | None = None,
        writeback: Time | None = None,
    ) -> None:
        """
        bio: Submit a request to a disk: block layer and driver.
        bio_page: A page of a disk request: add it to the request, and complete it after the answer.
        buddy_op: Move a block between the buddy lists and a per-CPU list.
        cache_create: Create a slab cache for a group.
        cache_op: Look up, insert or remove an entry of the page cache or the swap cache.
        compact_scan: Scan a page in compaction.
        context_switch: Switch a CPU from one process to another.
        fault: Enter and leave a page fault: exception, lookup of the mapping, walk of the page table.
        fs_read: The file system's share of a read request.
        fs_request: The file system's work for a run of holes, or for a newly written page.
        hit: Access a mapped page. The accesses are independent, so their cache misses overlap.
        idle_exit: Time from the wake-up to the first instruction on an idle CPU.
        io_completion: Interrupt and completion of a disk request.
        list_spare: Skip an active list that reclaim may not age, once for 32 pages to scan.
        lru_move: Move a page between LRU lists as part of a batch.
        lruvec_visit: Visit the lists of a group in reclaim.
        objcg_drain: Drain a CPU's stock of charged bytes, so that another owner can use it.
        object: Allocate or free a kernel object on the CPU's own slab.
        object_charge: Charge an object to a group.
        object_prune: Free a cached object in a shrinker; freeing its slab has a cost of its own.
        object_scan: Scan a cached object in a shrinker.
        page_alloc: Take a page from a per-CPU list.
        page_charge: Charge a page to a group, and uncharge it later.
        page_copy: Copy 4 KiB between page cache and user memory.
        page_free: Free a page to a per-CPU list.
        page_migrate: Migrate a page in compaction; the copy and the page-table entries have costs of their
            own.
        page_scan: Scan a page in reclaim.
        page_skip: Skip a page in reclaim because its zone is too high.
        page_zero: Clear 4 KiB.
        pte: Write a page-table entry, and update the map count of the page.
        refault: Test a refaulting page against the sizes of the lists: was it evicted too early?
        rmap_walk: Walk the reverse map to one page-table entry.
        slab_refill: Take another slab to allocate from; its pages have costs of their own.
        syscall: Enter, dispatch and leave a system call.
        tlb_flush: Flush a batch of page-table entries from the TLB of the CPU that removed them.
        tlb_shootdown: Additional cost of a TLB flush for other CPUs; none on a machine with one CPU.
        user_access: User instructions for one access.
        wakeup: The waker's work for a wake-up.
        writeback: Start writeback of a file page: its tags and blocks.
        """
        self.bio: Time | None = bio
        self.bio_page: Time | None = bio_page
        self.buddy_op: Time | None = buddy_op
        self.cache_create: Time | None = cache_create
        self.cache_op: Time | None = cache_op
        self.compact_scan: Time | None = compact_scan
        self.context_switch: Time | None = context_switch
        self.fault: Time | None = fault
        self.fs_read: Time | None = fs_read
        self.fs_request: Time | None = fs_request
        self.hit: Time | None = hit
        self.idle_exit: Time | None = idle_exit
        self.io_completion: Time | None = io_completion
        self.list_spare: Time | None = list_spare
        self.lru_move: Time | None = lru_move
        self.lruvec_visit: Time | None = lruvec_visit
        self.objcg_drain: Time | None = objcg_drain
        self.object: Time | None = object
        self.object_charge: Time | None = object_charge
        self.object_prune: Time | None = object_prune
        self.object_scan: Time | None = object_scan
        self.page_alloc: Time | None = page_alloc
        self.page_charge: Time | None = page_charge
        self.page_copy: Time | None = page_copy
        self.page_free: Time | None = page_free
        self.page_migrate: Time | None = page_migrate
        self.page_scan: Time | None = page_scan
        self.page_skip: Time | None = page_skip
        self.page_zero: Time | None = page_zero
        self.pte: Time | None = pte
        self.refault: Time | None = refault
        self.rmap_walk: Time | None = rmap_walk
        self.slab_refill: Time | None = slab_refill
        self.syscall: Time | None = syscall
        self.tlb_flush: Time | None = tlb_flush
        self.tlb_shootdown: Time | None = tlb_shootdown
        self.user_access: Time | None = user_access
        self.wakeup: Time | None = wakeup
        self.writeback: Time | None = writeback


class Group(_Table):
    """A memory group."""

    _keys: ClassVar[Mapping[str, str]] = {
        "cpu_max": "cpu.max",
        "cpu_weight": "cpu.weight",
        "memory_global_shrink_priority": "memory.global_shrink_priority",
        "memory_high": "memory.high",
        "memory_kmem_limit_in_bytes": "memory.kmem.limit_in_bytes",
        "memory_limit_in_bytes": "memory.limit_in_bytes",
        "memory_low": "memory.low",
        "memory_max": "memory.max",
        "memory_min": "memory.min",
        "memory_oom_group": "memory.oom.group",
        "memory_soft_limit_in_bytes": "memory.soft_limit_in_bytes",
        "memory_swap_max": "memory.swap.max",
        "memory_swappiness": "memory.swappiness",
    }

    def __init__(
        self,
        name: str,
        *,
        at_start: bool | None = None,
        copies: int | None = None,
        cpu_max: int | str | None = None,
        cpu_weight: int | str | None = None,
        memory_global_shrink_priority: int | str | None = None,
        memory_high: int | str | None = None,
        memory_kmem_limit_in_bytes: int | str | None = None,
        memory_limit_in_bytes: int | str | None = None,
        memory_low: int | str | None = None,
        memory_max: int | str | None = None,
        memory_min: int | str | None = None,
        memory_oom_group: int | str | None = None,
        memory_soft_limit_in_bytes: int | str | None = None,
        memory_swap_max: int | str | None = None,
        memory_swappiness: int | str | None = None,
        parent: str | None = None,
        subtree_control: Literal["memory", "none"] | None = None,
    ) -> None:
        """
        name: Name of the group.
        at_start: The group exists when the run begins; if false, a task makes it with workload create-group
            (default true).
        copies: Number of groups, called NAME.0, NAME.1 ...; copies of a task use them in turn (default 1).
        cpu_max: CPU time that the group may use in each period, and the period. Default: max 100000, us.
            Since: Linux 4.15.
        cpu_weight: The group's share of CPU time, relative to its siblings. Default: 100. Since: Linux 4.15.
        memory_global_shrink_priority: Global reclaim skips the group while the scan priority is above this
            value. Negative values need shrink_priority = posted. Default: 12, reclaim priority. Since: patch
            of December 2019.
        memory_high: Above it the group's tasks are throttled and must reclaim. Default: max, bytes. Since:
            Linux 4.5.
        memory_kmem_limit_in_bytes: The limit of kernel memory (version 1; refused by later kernels). EBUSY if
            more is in use. Default: -1, bytes. Since: Linux 3.8 to 5.15.
        memory_limit_in_bytes: The limit (version 1). Default: -1, bytes. Since: Linux 2.6.25.
        memory_low: Memory that is reclaimed only if nothing else can be reclaimed. Default: 0, bytes. Since:
            Linux 4.5.
        memory_max: The limit. Default: max, bytes. Since: Linux 4.5.
        memory_min: Memory that is never reclaimed from the group. Default: 0, bytes. Since: Linux 4.18.
        memory_oom_group: Whether the OOM killer kills all tasks of the group and its descendants together. A
            task with `oom_score_adj = -1000` is spared. Default: 0. Since: Linux 4.19.
        memory_soft_limit_in_bytes: Groups above their soft limit are reclaimed from first (version 1).
            Default: -1, bytes. Since: Linux 2.6.31.
        memory_swap_max: The limit of swap (version 2; a scenario must not combine it with files of version
            1). Default: max, bytes. Since: Linux 4.5.
        memory_swappiness: Like vm.swappiness (version 1). Default: the parent's. Since: Linux 2.6.29.
        parent: Parent group (default: the root).
        subtree_control: Whether child groups get a memory controller; if not, this group is charged for them.
        """
        self.name: str = name
        self.at_start: bool | None = at_start
        self.copies: int | None = copies
        self.cpu_max: int | str | None = cpu_max
        self.cpu_weight: int | str | None = cpu_weight
        self.memory_global_shrink_priority: int | str | None = memory_global_shrink_priority
        self.memory_high: int | str | None = memory_high
        self.memory_kmem_limit_in_bytes: int | str | None = memory_kmem_limit_in_bytes
        self.memory_limit_in_bytes: int | str | None = memory_limit_in_bytes
        self.memory_low: int | str | None = memory_low
        self.memory_max: int | str | None = memory_max
        self.memory_min: int | str | None = memory_min
        self.memory_oom_group: int | str | None = memory_oom_group
        self.memory_soft_limit_in_bytes: int | str | None = memory_soft_limit_in_bytes
        self.memory_swap_max: int | str | None = memory_swap_max
        self.memory_swappiness: int | str | None = memory_swappiness
        self.parent: str | None = parent
        self.subtree_control: Literal["memory", "none"] | None = subtree_control


class File(_Table):
    """A file on a disk."""

    def __init__(
        self,
        name: str,
        *,
        disk: str | None = None,
        metadata: bool | None = None,
        private: bool | None = None,
        size: Size | None = None,
        sparse: bool | None = None,
    ) -> None:
        """
        name: Name of the file.
        disk: Disk that holds the file (default: the first).
        metadata: The file stands for the file system's own blocks (inode tables, directories, bitmaps). Its
            pages cannot be moved while they are dirty or under writeback, because the journal holds them
            (default false).
        private: Gives every task that names the file a file of its own (default false).
        size: Size of the file when the run starts (default 0).
        sparse: The file has only holes, so reads need no disk (default false).
        """
        self.name: str = name
        self.disk: str | None = disk
        self.metadata: bool | None = metadata
        self.private: bool | None = private
        self.size: Size | None = size
        self.sparse: bool | None = sparse


class Policy(_Table):
    """Which built-in behaviours to use. docs/scenario.md says what each one stands for."""

    def __init__(
        self,
        *,
        background_compaction: Literal["kcompactd-early", "kcompactd", "kswapd", "off"] | None = None,
        compaction: Literal["linux-6.1", "linux-4.5"] | None = None,
        compaction_capture: Literal["on", "off"] | None = None,
        direct_reclaim: Literal["linux-6.1", "linux-2.6.37", "linux-2.6.35"] | None = None,
        fallback: Literal["linux-6.1", "linux-6.12"] | None = None,
        faults: Literal["linux-6.1", "linux-6.12"] | None = None,
        group_walk: Literal["whole", "shared"] | None = None,
        groups: Literal["linux"] | None = None,
        kernel: Literal["linux-6.1", "linux-6.12"] | None = None,
        kswapd: Literal["linux-6.1", "linux-4.5", "linux-2.6.37"] | None = None,
        lru: Literal["linux-6.1", "linux-5.4", "linux-3.3", "linux-6.12"] | None = None,
        per_cpu_lists: Literal["linux-6.1", "linux-2.6.37"] | None = None,
        shrink_priority: Literal["guarded", "posted", "hierarchical", "off"] | None = None,
        slab_accounting: Literal[
            "per-object", "per-group-caches", "per-group-caches-reparent", "off",
        ] | None = None,
        slub: Literal["linux-6.1", "linux-5.5"] | None = None,
        soft_limit: Literal["tree", "hierarchical", "two-pass", "off"] | None = None,
        soft_limit_direct: Literal["full", "bounded", "ignored"] | None = None,
        soft_limit_node: Literal["global", "local"] | None = None,
        soft_limit_root: Literal["excluded", "included"] | None = None,
        thp: Literal["always", "madvise", "never"] | None = None,
        thp_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None,
        watermarks: Literal["derived", "scale-factor", "apart"] | None = None,
    ) -> None:
        """
        background_compaction: Which daemon makes blocks of high order in the background. Default: kcompactd-
            early.
        compaction: When compaction is worthwhile, how it scans, and when an allocation uses it. Default:
            linux-6.1.
        compaction_capture: Whether a compacting task captures the block it has made before the block is free.
            Default: on.
        direct_reclaim: How an allocating task reclaims for itself. Default: linux-6.1.
        fallback: How many pages a request takes if it falls back to a pageblock of another migrate type
            without claiming the pageblock. Default: linux-6.1.
        faults: Events that count as a page fault. Default: linux-6.1.
        group_walk: How a reclaimer walks the groups. Default: whole.
        groups: A policy registered by the program: it chooses the groups to reclaim from.
        kernel: The kernel whose behaviour is the default of the other keys. Default: linux-6.1.
        kswapd: How kswapd balances a node. Default: linux-6.1.
        lru: How pages age, and how page cache and anonymous memory share the pressure. Default: linux-6.1.
        per_cpu_lists: How large per-CPU lists are, and how fast they drain. Default: linux-6.1.
        shrink_priority: The effect of memory.global_shrink_priority. Default: guarded.
        slab_accounting: Which group pays for small kernel objects. Default: per-object.
        slub: Which slab of a cache is used next. Default: linux-6.1.
        soft_limit: How global reclaim respects soft limits (memory.soft_limit_in_bytes). Default: tree.
        soft_limit_direct: How hard tasks in direct reclaim scan groups over their soft limits. Default: full.
        soft_limit_node: How a soft limit applies on one node. Default: global.
        soft_limit_root: Whether a group that is reclaimed because of its own hard limit counts as over its
            soft limit. Default: excluded.
        thp: When anonymous memory gets huge pages (transparent_hugepage/enabled). Default: never.
        thp_defrag: Action of a fault if no huge page is free (transparent_hugepage/defrag). Default: madvise.
        watermarks: How the low and high watermarks follow from what the user sets. Default: scale-factor.
        """
        self.background_compaction: Literal[
            "kcompactd-early", "kcompactd", "kswapd", "off",
        ] | None = background_compaction
        self.compaction: Literal["linux-6.1", "linux-4.5"] | None = compaction
        self.compaction_capture: Literal["on", "off"] | None = compaction_capture
        self.direct_reclaim: Literal["linux-6.1", "linux-2.6.37", "linux-2.6.35"] | None = direct_reclaim
        self.fallback: Literal["linux-6.1", "linux-6.12"] | None = fallback
        self.faults: Literal["linux-6.1", "linux-6.12"] | None = faults
        self.group_walk: Literal["whole", "shared"] | None = group_walk
        self.groups: Literal["linux"] | None = groups
        self.kernel: Literal["linux-6.1", "linux-6.12"] | None = kernel
        self.kswapd: Literal["linux-6.1", "linux-4.5", "linux-2.6.37"] | None = kswapd
        self.lru: Literal["linux-6.1", "linux-5.4", "linux-3.3", "linux-6.12"] | None = lru
        self.per_cpu_lists: Literal["linux-6.1", "linux-2.6.37"] | None = per_cpu_lists
        self.shrink_priority: Literal["guarded", "posted", "hierarchical", "off"] | None = shrink_priority
        self.slab_accounting: Literal[
            "per-object", "per-group-caches", "per-group-caches-reparent", "off",
        ] | None = slab_accounting
        self.slub: Literal["linux-6.1", "linux-5.5"] | None = slub
        self.soft_limit: Literal["tree", "hierarchical", "two-pass", "off"] | None = soft_limit
        self.soft_limit_direct: Literal["full", "bounded", "ignored"] | None = soft_limit_direct
        self.soft_limit_node: Literal["global", "local"] | None = soft_limit_node
        self.soft_limit_root: Literal["excluded", "included"] | None = soft_limit_root
        self.thp: Literal["always", "madvise", "never"] | None = thp
        self.thp_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = thp_defrag
        self.watermarks: Literal["derived", "scale-factor", "apart"] | None = watermarks


class Variant(_Table):
    """A column of the table of results: the scenario with some changes."""

    def __init__(
        self,
        name: str,
        *,
        policy: Policy | None = None,
        set: Mapping[str, Any] | None = None,
        sysctl: Mapping[str, Value | Sequence[int]] | None = None,
    ) -> None:
        """
        name: Name of the variant.
        policy: Policies that replace those of the scenario.
        set: Other values by path: { "machine.memory" = "4GiB", "task.stream.nice" = 5 }.
        sysctl: Control files of the machine to write in addition to those of the scenario, or instead.
        """
        self.name: str = name
        self.policy: Policy | None = policy
        self.set: Mapping[str, Any] | None = set
        self.sysctl: Mapping[str, Value | Sequence[int]] | None = sysctl


class Report(_Table):
    """Contents of the table of results."""

    def __init__(
        self,
        *,
        measure: str | None = None,
        rows: Sequence[str] | None = None,
    ) -> None:
        """
        measure: Task whose lifetime the machine's counters cover (default: the whole run).
        rows: Metric keys of the rows, in order (default: the program's choice).
        """
        self.measure: str | None = measure
        self.rows: Sequence[str] | None = rows


class Expect(_Table):
    """A condition that holds in every run."""

    def __init__(
        self,
        *,
        text: str,
        that: str,
        variants: Sequence[str] | None = None,
    ) -> None:
        """
        text: The condition in words.
        that: The condition: a criterion as in `pagetide find`, METRIC OP VALUE, several joined by `and`.
        variants: The variants that must meet it (default: all).
        """
        self.text: str = text
        self.that: str = that
        self.variants: Sequence[str] | None = variants


class Task(_Table):
    """A task with several phases, one after the other. A task with one is made by the class of its
    workload."""

    _keys: ClassVar[Mapping[str, str]] = {
        "phases": "phase",
    }

    def __init__(
        self,
        name: str,
        *,
        phases: Sequence[_Table | Mapping[str, Any]],
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        phases: Phases, in order.
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        """
        self.name: str = name
        self.phases: Sequence[_Table | Mapping[str, Any]] = phases
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until


class FileWrite(_Table):
    """A task, or a phase of one, with the workload `file-write`. Appends to a file with write() calls, like
    dd."""

    _workload: ClassVar[str | None] = "file-write"

    def __init__(
        self,
        name: str,
        *,
        file: str,
        block: Size | None = None,
        total: Size | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        file: File to append to.
        block: Size of a call (default 64KiB).
        total: Bytes to write (default: until the task is stopped).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.file: str = file
        self.block: Size | None = block
        self.total: Size | None = total
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class FileRead(_Table):
    """A task, or a phase of one, with the workload `file-read`. Reads a file with read() calls from its
    start, and wraps around at its end."""

    _workload: ClassVar[str | None] = "file-read"

    def __init__(
        self,
        name: str,
        *,
        file: str,
        block: Size | None = None,
        total: Size | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        file: File to read.
        block: Size of a call (default 64KiB).
        total: Bytes to read (default: the whole file once).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.file: str = file
        self.block: Size | None = block
        self.total: Size | None = total
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class MappedRead(_Table):
    """A task, or a phase of one, with the workload `mapped-read`. Maps a file and reads one byte of each
    page."""

    _workload: ClassVar[str | None] = "mapped-read"

    def __init__(
        self,
        name: str,
        *,
        file: str,
        advice: Literal["normal", "random", "sequential"] | None = None,
        compute: Time | None = None,
        exponent: float | None = None,
        order: Literal["sequential", "scattered", "random", "zipf"] | None = None,
        passes: int | None = None,
        region: str | None = None,
        size: Size | None = None,
        stride: Size | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        file: File to map.
        advice: Advice on the mapping (default normal).
        compute: CPU time of the program after each access (default 0).
        exponent: Exponent of order zipf (default 1.0).
        order: Order of the pages (default sequential).
        passes: Number of passes over the mapping (default 1).
        region: Name of the mapping, shared by phases that name the same region (default: the file).
        size: Bytes to map, from its start (default: all).
        stride: Distance between two pages that are read, in whole pages (default: one page).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.file: str = file
        self.advice: Literal["normal", "random", "sequential"] | None = advice
        self.compute: Time | None = compute
        self.exponent: float | None = exponent
        self.order: Literal["sequential", "scattered", "random", "zipf"] | None = order
        self.passes: int | None = passes
        self.region: str | None = region
        self.size: Size | None = size
        self.stride: Size | None = stride
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Touch(_Table):
    """A task, or a phase of one, with the workload `touch`. Writes or reads each page of an anonymous
    region."""

    _workload: ClassVar[str | None] = "touch"

    def __init__(
        self,
        name: str,
        *,
        size: int | str,
        advice: Literal["normal", "huge", "no-huge"] | None = None,
        compute: Time | None = None,
        exponent: float | None = None,
        load: Sequence[tuple[Time, Percent]] | None = None,
        order: Literal["sequential", "scattered", "random", "zipf"] | None = None,
        passes: int | None = None,
        rate: Rate | None = None,
        region: str | None = None,
        stride: Size | None = None,
        write: bool | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        size: Size of the region.
        advice: Advice on the region about huge pages (default normal).
        compute: CPU time of the program after each access (default 0).
        exponent: Exponent of order zipf (default 1.0).
        load: Share of the rate over time (default: the full rate).
        order: Order of the pages (default sequential).
        passes: Number of passes over the region (default 1).
        rate: Rate in bytes or pages per second; an access counts as a page (default: no limit).
        region: Name of the region; phases of a task that name the same region share it (default anon).
        stride: Distance between two pages that are touched, in whole pages (default: one page).
        write: Writes if true, reads if false (default true).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.size: int | str = size
        self.advice: Literal["normal", "huge", "no-huge"] | None = advice
        self.compute: Time | None = compute
        self.exponent: float | None = exponent
        self.load: Sequence[tuple[Time, Percent]] | None = load
        self.order: Literal["sequential", "scattered", "random", "zipf"] | None = order
        self.passes: int | None = passes
        self.rate: Rate | None = rate
        self.region: str | None = region
        self.stride: Size | None = stride
        self.write: bool | None = write
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Interleave(_Table):
    """A task, or a phase of one, with the workload `interleave`. Touches anonymous pages and pages of a file
    in turn, so that they alternate in memory."""

    _workload: ClassVar[str | None] = "interleave"

    def __init__(
        self,
        name: str,
        *,
        pages: int,
        file: str,
        region: str | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        pages: Number of pages of each kind.
        file: File to map, with at least `pages` pages; it is unmapped when the phase ends.
        region: Anonymous region; phases of a task that name the same region share it (default anon).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.pages: int = pages
        self.file: str = file
        self.region: str | None = region
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Discard(_Table):
    """A task, or a phase of one, with the workload `discard`. Frees pages of an anonymous region with
    madvise(MADV_DONTNEED)."""

    _workload: ClassVar[str | None] = "discard"

    def __init__(
        self,
        name: str,
        *,
        every: int | None = None,
        first: int | None = None,
        region: str | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        every: Distance from one page to the next (default 1).
        first: First page (default 0).
        region: Region that an earlier phase of the task has mapped (default anon).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.every: int | None = every
        self.first: int | None = first
        self.region: str | None = region
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Lock(_Table):
    """A task, or a phase of one, with the workload `lock`. Locks part of a region into memory (mlock), or
    unlocks it."""

    _workload: ClassVar[str | None] = "lock"

    def __init__(
        self,
        name: str,
        *,
        file: str | None = None,
        first: int | None = None,
        how: Literal["lock", "on-fault", "unlock"] | None = None,
        pages: int | None = None,
        region: str | None = None,
        size: Size | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        file: File to map, if no earlier phase has mapped the region.
        first: First page (default 0).
        how: Operation (default lock).
        pages: Number of pages (default: up to the end of the region).
        region: Region to lock (default: anon, or the file).
        size: Bytes of memory or of the file to map, if no earlier phase has mapped the region.
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.file: str | None = file
        self.first: int | None = first
        self.how: Literal["lock", "on-fault", "unlock"] | None = how
        self.pages: int | None = pages
        self.region: str | None = region
        self.size: Size | None = size
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Advise(_Table):
    """A task, or a phase of one, with the workload `advise`. Gives advice on part of a region (madvise)."""

    _workload: ClassVar[str | None] = "advise"

    def __init__(
        self,
        name: str,
        *,
        advice: Literal[
            "normal", "random", "sequential", "huge", "no-huge", "populate-read", "populate-write",
            "will-need", "cold", "page-out", "collapse",
        ],
        file: str | None = None,
        first: int | None = None,
        pages: int | None = None,
        region: str | None = None,
        size: Size | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        advice: Advice to give.
        file: File to map, if no earlier phase has mapped the region.
        first: First page (default 0).
        pages: Number of pages (default: up to the end of the region).
        region: Region to advise on (default: anon, or the file).
        size: Bytes of memory or of the file to map, if no earlier phase has mapped the region.
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.advice: Literal[
            "normal", "random", "sequential", "huge", "no-huge", "populate-read", "populate-write",
            "will-need", "cold", "page-out", "collapse",
        ] = advice
        self.file: str | None = file
        self.first: int | None = first
        self.pages: int | None = pages
        self.region: str | None = region
        self.size: Size | None = size
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class HighOrder(_Table):
    """A task, or a phase of one, with the workload `high-order`. Tries to allocate blocks of kernel memory of
    one order."""

    _workload: ClassVar[str | None] = "high-order"

    def __init__(
        self,
        name: str,
        *,
        attempts: int | None = None,
        hold: bool | None = None,
        interval: Time | None = None,
        order: int | None = None,
        percent: int | None = None,
        request: Literal["direct", "nowait"] | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        attempts: Number of attempts.
        hold: Keeps the blocks until all attempts are made (default true).
        interval: Time from the start of one attempt to the start of the next (default 0: at once).
        order: log2 of the pages of a block (default 9: 2 MiB).
        percent: Attempts as the per cent of the machine's memory that their blocks have.
        request: Rights of an attempt (default direct).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.attempts: int | None = attempts
        self.hold: bool | None = hold
        self.interval: Time | None = interval
        self.order: int | None = order
        self.percent: int | None = percent
        self.request: Literal["direct", "nowait"] | None = request
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class KernelMemory(_Table):
    """A task, or a phase of one, with the workload `kernel-memory`. Allocates and frees kernel memory, like
    network buffers, stacks and drivers."""

    _workload: ClassVar[str | None] = "kernel-memory"

    def __init__(
        self,
        name: str,
        *,
        blocks: int,
        count: int | None = None,
        interval: Time | None = None,
        order: int | None = None,
        request: Literal["kernel", "atomic", "nowait", "reclaimable"] | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        blocks: Largest number of blocks held at the same time.
        count: Number of allocations (default: until the task is stopped).
        interval: Time from the start of one allocation to the start of the next (default 0: at once).
        order: log2 of the pages of a block (default 0: one page).
        request: Rights of an allocation (default kernel).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.blocks: int = blocks
        self.count: int | None = count
        self.interval: Time | None = interval
        self.order: int | None = order
        self.request: Literal["kernel", "atomic", "nowait", "reclaimable"] | None = request
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class KernelObjects(_Table):
    """A task, or a phase of one, with the workload `kernel-objects`. Allocates and frees kernel objects like
    recorded work."""

    _workload: ClassVar[str | None] = "kernel-objects"

    def __init__(
        self,
        name: str,
        *,
        mix: str,
        units: int,
        compute: Time | None = None,
        interval: Time | None = None,
        start_unit: bool | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        mix: Object mix, relative to the scenario file.
        units: Number of units.
        compute: CPU time of a unit, spread over its allocations (default 0).
        interval: Time from the start of one unit to the start of the next (default 0: at once).
        start_unit: Starts with the mix's start-up part, which stays until the task ends (default false).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.mix: str = mix
        self.units: int = units
        self.compute: Time | None = compute
        self.interval: Time | None = interval
        self.start_unit: bool | None = start_unit
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Names(_Table):
    """A task, or a phase of one, with the workload `names`. Makes files and removes most of them again, or
    looks up names that do not exist."""

    _workload: ClassVar[str | None] = "names"

    def __init__(
        self,
        name: str,
        *,
        make: int,
        keep: Share | None = None,
        kind: Literal["file", "missing"] | None = None,
        pick: Literal["evenly", "random"] | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        make: Number of names.
        keep: Share of the files that stays, also after the end of the task (default "0 %").
        kind: Files, or names that do not exist (default file).
        pick: Which files stay: every Nth, or random ones (default evenly).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.make: int = make
        self.keep: Share | None = keep
        self.kind: Literal["file", "missing"] | None = kind
        self.pick: Literal["evenly", "random"] | None = pick
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Pipes(_Table):
    """A task, or a phase of one, with the workload `pipes`. Opens pipes and closes most of them again."""

    _workload: ClassVar[str | None] = "pipes"

    def __init__(
        self,
        name: str,
        *,
        make: int,
        keep: Share | None = None,
        pick: Literal["evenly", "random"] | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        make: Number of pipes.
        keep: Share that stays open until the task ends (default "0 %").
        pick: Which pipes stay: every Nth, or random ones (default evenly).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.make: int = make
        self.keep: Share | None = keep
        self.pick: Literal["evenly", "random"] | None = pick
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Remove(_Table):
    """A task, or a phase of one, with the workload `remove`. Removes files, or closes pipes, that an earlier
    phase kept."""

    _workload: ClassVar[str | None] = "remove"

    def __init__(
        self,
        name: str,
        *,
        of: str,
        keep: Share | None = None,
        pick: Literal["evenly", "random"] | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        of: Earlier phase with workload names or pipes.
        keep: Share of the remaining ones that stays (default "0 %").
        pick: Which ones stay: every Nth, or random ones (default evenly).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.of: str = of
        self.keep: Share | None = keep
        self.pick: Literal["evenly", "random"] | None = pick
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class WorkingSet(_Table):
    """A task, or a phase of one, with the workload `working-set`. Makes hot and cold accesses to anonymous
    memory, file memory or both."""

    _workload: ClassVar[str | None] = "working-set"

    def __init__(
        self,
        name: str,
        *,
        accesses: int | None = None,
        advice: Literal["normal", "random", "sequential"] | None = None,
        anon: Size | None = None,
        anon_percent: int | None = None,
        anon_region: str | None = None,
        compute: Time | None = None,
        file: str | None = None,
        file_region: str | None = None,
        file_size: Size | None = None,
        generator_seed: int | None = None,
        hot_access_percent: int | None = None,
        hot_page_percent: int | None = None,
        load: Sequence[tuple[Time, Percent]] | None = None,
        populate: bool | None = None,
        rate: Rate | None = None,
        write_percent: int | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        accesses: Number of accesses (default 0).
        advice: Advice on the file's mapping (default normal).
        anon: Size of the anonymous region (default: none).
        anon_percent: Per cent of the accesses that go to the anonymous region if there are both (default 50).
        anon_region: Name of the anonymous region, shared by phases that name the same one (default anon).
        compute: CPU time of the program after each access, except while it populates (default 0).
        file: File to map (default: none).
        file_region: Name of the file's mapping (default: the file).
        file_size: Bytes of the file to map, from its start (default: all).
        generator_seed: Start value of the generator (default: from the run's seed).
        hot_access_percent: Share of the accesses that are hot, in per cent (default 80).
        hot_page_percent: Share of the pages that are hot, in per cent (default 20).
        load: Share of the rate over time (default: the full rate).
        populate: Touches every page in order first, anonymous before file (default false).
        rate: Rate in bytes or pages per second; an access counts as a page (default: no limit).
        write_percent: Share of the anonymous accesses that write, in per cent (default 100).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.accesses: int | None = accesses
        self.advice: Literal["normal", "random", "sequential"] | None = advice
        self.anon: Size | None = anon
        self.anon_percent: int | None = anon_percent
        self.anon_region: str | None = anon_region
        self.compute: Time | None = compute
        self.file: str | None = file
        self.file_region: str | None = file_region
        self.file_size: Size | None = file_size
        self.generator_seed: int | None = generator_seed
        self.hot_access_percent: int | None = hot_access_percent
        self.hot_page_percent: int | None = hot_page_percent
        self.load: Sequence[tuple[Time, Percent]] | None = load
        self.populate: bool | None = populate
        self.rate: Rate | None = rate
        self.write_percent: int | None = write_percent
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Service(_Table):
    """A task, or a phase of one, with the workload `service`. Serves requests that arrive independently of
    whether a thread is free."""

    _workload: ClassVar[str | None] = "service"

    def __init__(
        self,
        name: str,
        *,
        rate: float,
        allocate: Size | None = None,
        arrivals: Literal["poisson", "even"] | None = None,
        cpu: Time | None = None,
        cpu_distribution: Literal["fixed", "exponential"] | None = None,
        deadline: Time | None = None,
        duration: Time | None = None,
        exponent: float | None = None,
        file: str | None = None,
        grow: Rate | None = None,
        heap: Size | None = None,
        load: Sequence[tuple[Time, Percent]] | None = None,
        order: Literal["sequential", "scattered", "random", "zipf"] | None = None,
        populate: bool | None = None,
        queue: int | None = None,
        read: Size | None = None,
        region: str | None = None,
        requests: int | None = None,
        threads: int | None = None,
        touches: int | None = None,
        write: Size | None = None,
        write_percent: int | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        rate: Requests per second.
        allocate: Memory that a request allocates, writes, and frees at its end (default: none).
        arrivals: Distribution of the arrivals of requests (default poisson).
        cpu: CPU time of a request (default 0).
        cpu_distribution: Distribution of the CPU times of requests (default fixed).
        deadline: A request that takes longer is late (default: no limit).
        duration: Time during which requests arrive (default: until the task is stopped, or until all
            `requests` have arrived).
        exponent: Exponent of order zipf (default 1.0).
        file: File that requests read and write (default: none).
        grow: Rate at which the service allocates memory that it never frees (default: none).
        heap: Size of the anonymous memory that requests touch (default: none).
        load: Share of the rate over time (default: the full rate).
        order: Distribution of the touched pages: random or zipf (default zipf).
        populate: Writes every page of `heap` first (default true).
        queue: Requests that may wait for a thread; more are dropped (default 1048576, the maximum).
        read: Bytes of the file that a request reads, at a random position (default: none).
        region: Region of `heap`; phases of a task that name the same region share it (default anon).
        requests: Number of requests that arrive (default: as many as arrive in `duration`).
        threads: Number of threads that serve them (default 1).
        touches: Number of pages of `heap` that a request touches.
        write: Bytes of the file that a request writes, at a random position (default: none).
        write_percent: Share of the touches that write, in per cent (default 50).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.rate: float = rate
        self.allocate: Size | None = allocate
        self.arrivals: Literal["poisson", "even"] | None = arrivals
        self.cpu: Time | None = cpu
        self.cpu_distribution: Literal["fixed", "exponential"] | None = cpu_distribution
        self.deadline: Time | None = deadline
        self.duration: Time | None = duration
        self.exponent: float | None = exponent
        self.file: str | None = file
        self.grow: Rate | None = grow
        self.heap: Size | None = heap
        self.load: Sequence[tuple[Time, Percent]] | None = load
        self.order: Literal["sequential", "scattered", "random", "zipf"] | None = order
        self.populate: bool | None = populate
        self.queue: int | None = queue
        self.read: Size | None = read
        self.region: str | None = region
        self.requests: int | None = requests
        self.threads: int | None = threads
        self.touches: int | None = touches
        self.write: Size | None = write
        self.write_percent: int | None = write_percent
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Trace(_Table):
    """A task, or a phase of one, with the workload `trace`. Replays a page trace."""

    _workload: ClassVar[str | None] = "trace"

    def __init__(
        self,
        name: str,
        *,
        path: str,
        advice: Literal["normal", "random", "sequential"] | None = None,
        passes: int | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        path: Trace file, relative to the scenario file.
        advice: Advice on its regions of files (default: normal; for a trace of objects, random).
        passes: Number of passes through the trace (default 1).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.path: str = path
        self.advice: Literal["normal", "random", "sequential"] | None = advice
        self.passes: int | None = passes
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Build(_Table):
    """A task, or a phase of one, with the workload `build`. Compiles files, one after another, like make."""

    _workload: ClassVar[str | None] = "build"

    def __init__(
        self,
        name: str,
        *,
        path: str,
        units: int,
        header: Size | None = None,
        headers: str | None = None,
        kernel_pages: int | None = None,
        link: Size | None = None,
        link_units: int | None = None,
        metadata: str | None = None,
        metadata_size: Size | None = None,
        mix: str | None = None,
        object: Size | None = None,
        objects: str | None = None,
        source: Size | None = None,
        sources: str | None = None,
        stack_order: int | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        path: Page trace of one compiler, relative to the scenario file.
        units: Number of files to compile.
        header: Bytes of `headers` that a unit reads (default 442572, as in the recorded compile).
        headers: File that stands for all headers (default: none).
        kernel_pages: Number of other unmovable pages that a unit holds while it runs (default 0).
        link: Bytes that a link appends to `objects` after it has read everything appended since the previous
            link (default: no link).
        link_units: Units between two links; the last link follows the last unit (default: all units).
        metadata: File of the file system's own blocks, with `metadata = true` (default: none).
        metadata_size: Bytes of `metadata` that a unit changes, in blocks of 4 KiB (default 20KiB: the
            object's inode, its name, the bitmaps of inodes and of blocks, and their group descriptor).
        mix: Object mix: the kernel objects that a unit holds while it runs (default: none).
        object: Bytes that a unit appends to `objects` (default 6592, as in the recorded compile).
        objects: File that objects are appended to (default: none).
        source: Bytes of `sources` that a unit reads (default 6323, as in the recorded compile).
        sources: File that stands for the source tree, read from front to back (default: none).
        stack_order: log2 of the pages of a unit's kernel stack (default 0: no stack).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.path: str = path
        self.units: int = units
        self.header: Size | None = header
        self.headers: str | None = headers
        self.kernel_pages: int | None = kernel_pages
        self.link: Size | None = link
        self.link_units: int | None = link_units
        self.metadata: str | None = metadata
        self.metadata_size: Size | None = metadata_size
        self.mix: str | None = mix
        self.object: Size | None = object
        self.objects: str | None = objects
        self.source: Size | None = source
        self.sources: str | None = sources
        self.stack_order: int | None = stack_order
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class WriteControl(_Table):
    """A task, or a phase of one, with the workload `write-control`. Writes a text to a control file, like
    echo."""

    _workload: ClassVar[str | None] = "write-control"

    def __init__(
        self,
        name: str,
        *,
        control: Literal[
            "vm.min_free_kbytes", "vm.watermark_scale_factor", "vm.watermark_boost_factor",
            "vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes", "vm.extra_free_kbytes",
            "vm.lowmem_reserve_ratio", "vm.drop_caches", "vm.compact_memory", "vm.stat_refresh",
            "transparent_hugepage.enabled", "transparent_hugepage.defrag", "vm.swappiness", "vm.page-cluster",
            "vm.fault_around_bytes", "block.read_ahead_kb", "vm.dirty_ratio", "vm.dirty_background_ratio",
            "vm.dirty_bytes", "vm.dirty_background_bytes", "vm.dirty_writeback_centisecs",
            "vm.dirty_expire_centisecs", "vm.laptop_mode", "vm.vfs_cache_pressure", "vm.extfrag_threshold",
            "vm.compact_unevictable_allowed", "vm.compaction_proactiveness", "vm.defrag_mode",
            "transparent_hugepage.khugepaged.defrag", "transparent_hugepage.khugepaged.pages_to_scan",
            "transparent_hugepage.khugepaged.scan_sleep_millisecs",
            "transparent_hugepage.khugepaged.alloc_sleep_millisecs",
            "transparent_hugepage.khugepaged.max_ptes_none", "transparent_hugepage.khugepaged.max_ptes_swap",
            "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group",
            "memory.limit_in_bytes", "memory.kmem.limit_in_bytes", "memory.soft_limit_in_bytes",
            "memory.swappiness", "memory.global_shrink_priority", "cpu.weight", "cpu.max", "memory.reclaim",
            "memory.force_empty",
        ] | Value,
        text: Sequence[int] | int | str,
        target: str | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        control: Name of the file, as the kernel spells it.
        text: Text to write.
        target: Group of the file, or one copy, `NAME.0` (default: none, for a file of the machine).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.control: Literal[
            "vm.min_free_kbytes", "vm.watermark_scale_factor", "vm.watermark_boost_factor",
            "vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes", "vm.extra_free_kbytes",
            "vm.lowmem_reserve_ratio", "vm.drop_caches", "vm.compact_memory", "vm.stat_refresh",
            "transparent_hugepage.enabled", "transparent_hugepage.defrag", "vm.swappiness", "vm.page-cluster",
            "vm.fault_around_bytes", "block.read_ahead_kb", "vm.dirty_ratio", "vm.dirty_background_ratio",
            "vm.dirty_bytes", "vm.dirty_background_bytes", "vm.dirty_writeback_centisecs",
            "vm.dirty_expire_centisecs", "vm.laptop_mode", "vm.vfs_cache_pressure", "vm.extfrag_threshold",
            "vm.compact_unevictable_allowed", "vm.compaction_proactiveness", "vm.defrag_mode",
            "transparent_hugepage.khugepaged.defrag", "transparent_hugepage.khugepaged.pages_to_scan",
            "transparent_hugepage.khugepaged.scan_sleep_millisecs",
            "transparent_hugepage.khugepaged.alloc_sleep_millisecs",
            "transparent_hugepage.khugepaged.max_ptes_none", "transparent_hugepage.khugepaged.max_ptes_swap",
            "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group",
            "memory.limit_in_bytes", "memory.kmem.limit_in_bytes", "memory.soft_limit_in_bytes",
            "memory.swappiness", "memory.global_shrink_priority", "cpu.weight", "cpu.max", "memory.reclaim",
            "memory.force_empty",
        ] | Value = control
        self.text: Sequence[int] | int | str = text
        self.target: str | None = target
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class CreateGroup(_Table):
    """A task, or a phase of one, with the workload `create-group`. Creates a group that does not exist, like
    mkdir."""

    _workload: ClassVar[str | None] = "create-group"

    def __init__(
        self,
        name: str,
        *,
        target: str,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        target: Group to create; for a group with copies, one copy: `NAME.0`.
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.target: str = target
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class RemoveGroup(_Table):
    """A task, or a phase of one, with the workload `remove-group`. Removes a group, like rmdir."""

    _workload: ClassVar[str | None] = "remove-group"

    def __init__(
        self,
        name: str,
        *,
        target: str,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        target: Group to remove; for a group with copies, one copy: `NAME.0`.
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.target: str = target
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class JoinGroup(_Table):
    """A task, or a phase of one, with the workload `join-group`. Moves the task into a group."""

    _workload: ClassVar[str | None] = "join-group"

    def __init__(
        self,
        name: str,
        *,
        target: str | None = None,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        target: Group to join; for a group with copies, one copy: `NAME.0` (default: the root).
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.target: str | None = target
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Compute(_Table):
    """A task, or a phase of one, with the workload `compute`. Uses the CPU."""

    _workload: ClassVar[str | None] = "compute"

    def __init__(
        self,
        name: str,
        *,
        duration: int | str,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        duration: CPU time to use.
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.duration: int | str = duration
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat


class Sleep(_Table):
    """A task, or a phase of one, with the workload `sleep`. Sleeps."""

    _workload: ClassVar[str | None] = "sleep"

    def __init__(
        self,
        name: str,
        *,
        duration: int | str,
        after: str | None = None,
        background: bool | None = None,
        copies: int | None = None,
        delay: Time | None = None,
        group: str | None = None,
        loops: int | None = None,
        nice: int | None = None,
        oom_score_adj: int | None = None,
        start: Time | None = None,
        until: str | None = None,
        repeat: int | None = None,
    ) -> None:
        """
        name: Name of the task; its metrics are NAME.metric and NAME.PHASE.metric.
        duration: Time to sleep.
        after: Name of a task: when that task ends, this one starts.
        background: Stops the task when all others have ended: it does not keep the run alive (default false).
        copies: Number of copies; several are called NAME.0, NAME.1 and so on (default 1).
        delay: Pause between the end of the task in `after` and the start (default 0).
        group: Group that the task runs in (default: the root).
        loops: Number of times that the task runs through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to the badness score for the OOM killer; -1000: never killed (default 0).
        start: Start time, counted from the start of the run (default 0).
        until: Name of a task: when that task ends, this one is stopped. The run does not wait for this one.
        repeat: Of a phase: Number of repeats; they are called NAME0, NAME1 and so on (default: once, called
            NAME).
        """
        self.name: str = name
        self.duration: int | str = duration
        self.after: str | None = after
        self.background: bool | None = background
        self.copies: int | None = copies
        self.delay: Time | None = delay
        self.group: str | None = group
        self.loops: int | None = loops
        self.nice: int | None = nice
        self.oom_score_adj: int | None = oom_score_adj
        self.start: Time | None = start
        self.until: str | None = until
        self.repeat: int | None = repeat
