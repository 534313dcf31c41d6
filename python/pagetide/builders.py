"""Tables of a scenario as typed values: what `pagetide.Scenario(machine=..., tasks=[...])` is built of.

Each argument is a key of a scenario file (docs/scenario.md), under the same name; a dot or a dash in it is `_`. What is
left out has the default of the file. The values are checked by the loader when the scenario is built, all at once.

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
        swap: Size | Swap | None = None,
        zones: Sequence[Zone] | None = None,
    ) -> None:
        """
        caches: Caches of kernel objects that are not as the kernel makes them.
        costs: What operations cost on this machine; the simulator's own prices for those that are left out.
        cpus: Number of CPUs (default 1).
        disks: Disks; one SSD called `disk` if there is none.
        init_on_alloc: Every page is cleared when it is allocated, as many distributions have it: the kernel
            parameter init_on_alloc (default: a real kernel does as it was built, the simulator does not).
        kmem_accounting: Kernel objects are charged to groups; false: as if booted with cgroup.memory=nokmem
            (default true).
        memory: Memory present.
        memory_recursiveprot: What a group's children do not claim of its memory.min and memory.low is shared
            among them: the mount option memory_recursiveprot (default false).
        movable: Memory at the top given to zone Movable (default 0).
        nodes: NUMA nodes.
        page_size: Size of a page (default 4KiB).
        reserved: Memory that the kernel keeps for good, off the last zones first (default 0).
        swap: Swap area: a size, or a table.
        zones: Zones to the page, instead of `memory`.
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
        self.swap: Size | Swap | None = swap
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
        read_latency: Time | None = None,
        rotational: bool | None = None,
        write_bandwidth: Rate | None = None,
        write_latency: Time | None = None,
    ) -> None:
        """
        name: Its name.
        model: The preset.
        faults: Faults to inject.
        queue_depth: Requests served at a time (default: the preset's).
        read_bandwidth: Reading rate (default: the preset's).
        read_latency: Time of a read (default: the preset's).
        rotational: Whether the kernel takes it for a rotating disk (default: as the model is).
        write_bandwidth: Writing rate (default: the preset's).
        write_latency: Time of a write (default: the preset's).
        """
        self.name: str = name
        self.model: Literal["rotating", "ssd", "nvme", "instant"] = model
        self.faults: DiskFaults | None = faults
        self.queue_depth: int | None = queue_depth
        self.read_bandwidth: Rate | None = read_bandwidth
        self.read_latency: Time | None = read_latency
        self.rotational: bool | None = rotational
        self.write_bandwidth: Rate | None = write_bandwidth
        self.write_latency: Time | None = write_latency


class DiskFaults(_Table):
    """Faults that a disk injects, decided by the run's seed."""

    def __init__(
        self,
        *,
        read_error_ppm: int | None = None,
        slow_factor: int | None = None,
        slow_ppm: int | None = None,
        write_error_ppm: int | None = None,
    ) -> None:
        """
        read_error_ppm: Failed reads in a million (default 0).
        slow_factor: How many times slower a slow request is (default 10).
        slow_ppm: Slow requests in a million (default 0).
        write_error_ppm: Failed writes in a million (default 0).
        """
        self.read_error_ppm: int | None = read_error_ppm
        self.slow_factor: int | None = slow_factor
        self.slow_ppm: int | None = slow_ppm
        self.write_error_ppm: int | None = write_error_ppm


class Swap(_Table):
    """The swap area as a table."""

    def __init__(
        self,
        *,
        size: int | str,
        disk: str | None = None,
        full_after: Size | None = None,
    ) -> None:
        """
        size: Its size.
        disk: The disk it is on (default: the first).
        full_after: Pretend it is full once so much is used (fault injection).
        """
        self.size: int | str = size
        self.disk: str | None = disk
        self.full_after: Size | None = full_after


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
        movable: Memory at the top given to zone Movable (default 0).
        reserved: Memory that the kernel keeps for good, off the last zones first (default 0).
        zones: Zones to the page, instead of `memory`.
        """
        self.memory: Size | None = memory
        self.movable: Size | None = movable
        self.reserved: Size | None = reserved
        self.zones: Sequence[Zone] | None = zones


class Zone(_Table):
    """A zone described to the page."""

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
        name: Which zone.
        present: Memory present.
        free: Memory free when the run starts (default: all managed).
        late: Memory of `managed` that boot freed only after it had computed the watermarks: initial RAM disk
            and init sections (default: none). The kernel's own marks are a little smaller with it.
        managed: Memory that the allocator manages (default: all present).
        movable: Free lists of movable pages.
        reclaimable: Free lists of reclaimable pages.
        unmovable: Free lists of unmovable pages when the run starts, as /proc/pagetypeinfo shows them. With
            it, or with those of the other two types, `free` is what the lists hold.
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
        blocks: Free blocks of order 0, 1, 2 and so on, 11 numbers at most (default: none).
        pageblocks: Pageblocks of this type (default: as many as its free blocks need).
        """
        self.blocks: Sequence[int] | None = blocks
        self.pageblocks: int | None = pageblocks


class Cache(_Table):
    """How a cache of kernel objects is tuned: at least one of the keys besides its name."""

    def __init__(
        self,
        name: str,
        *,
        cpu_partial: int | None = None,
        min_partial: int | None = None,
        order: int | None = None,
    ) -> None:
        """
        name: The cache, as /proc/slabinfo spells it.
        cpu_partial: Free objects that may wait on a CPU's chain of slabs (default: by the size of an object).
        min_partial: Slabs that a node keeps though they are empty (default: by the size of an object).
        order: log2 of the pages of a slab (default: by the size of an object and the number of CPUs).
        """
        self.name: str = name
        self.cpu_partial: int | None = cpu_partial
        self.min_partial: int | None = min_partial
        self.order: int | None = order


class Costs(_Table):
    """What operations cost on this machine; those that are left out have the simulator's own prices."""

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
        bio: A request put to a disk: block layer and driver.
        bio_page: A page of such a request: its place in it, and what is done for it when the disk has
            answered.
        buddy_op: A block moved between the buddy lists and a per-CPU list.
        cache_create: A cache made for a group.
        cache_op: A look-up in, an insertion into or a removal from the page cache or the swap cache.
        compact_scan: A page looked at by a scanner of compaction.
        context_switch: Switching a CPU from one process to another.
        fault: A page fault entered and left: exception, look-up of the mapping, walk of the page table.
        fs_read: The file system's share of a read request.
        fs_request: The file system's share of a run of holes, or of a page newly written.
        hit: Touching a page that is mapped, as one of many independent touches.
        idle_exit: From the wake-up to the first instruction on an idle CPU.
        io_completion: Interrupt and completion of a request.
        lru_move: A page moved between LRU lists, as a part of a batch.
        lruvec_visit: The lists of a group visited by reclaim.
        objcg_drain: A stock of bytes given up for another owner.
        object: An object of the kernel allocated or freed on the CPU's own slab.
        object_charge: Charging an object to a group.
        object_prune: A kept object freed by a shrinker, besides its slab.
        object_scan: A kept object looked at by a shrinker.
        page_alloc: A page taken from a per-CPU list.
        page_charge: A page charged to a group, and later taken off its bill.
        page_copy: Copying 4 KiB between page cache and user memory.
        page_free: A page given back to a per-CPU list.
        page_migrate: A page moved by compaction, besides its entries and its bytes.
        page_scan: A page looked at by reclaim.
        page_skip: A page passed over by reclaim, as its zone is too high.
        page_zero: Clearing 4 KiB.
        pte: A page-table entry written, with the page's map count.
        refault: A page that comes back weighed against the lists: was it evicted too early?
        rmap_walk: A walk of the reverse map to one page-table entry.
        slab_refill: A slab taken to allocate from, besides its pages.
        syscall: A system call entered, dispatched and left.
        tlb_flush: A batch of page-table entries flushed on the CPU that took them away.
        tlb_shootdown: What other CPUs add to such a flush; nothing on a machine with one CPU.
        user_access: The user's instructions around one access.
        wakeup: The waker's share of a wake-up.
        writeback: A page of a file put under writeback: its tags, its blocks.
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
        name: Its name.
        at_start: It is there when the run begins; otherwise a task makes it with workload create-group
            (default true).
        copies: Several groups NAME.0, NAME.1 ...; copies of a task go to them in turn (default 1).
        cpu_max: CPU time that the group may use in each period, and the period. Default: max 100000, us.
            Since: Linux 4.15.
        cpu_weight: The group's share of CPU time beside its siblings. Default: 100. Since: Linux 4.15.
        memory_global_shrink_priority: Global reclaim leaves the group alone at priorities above it. Below 0
            with policy shrink_priority = posted only. Default: 12, reclaim priority. Since: patch of December
            2019.
        memory_high: Above it the group's tasks are throttled and reclaimed from. Default: max, bytes. Since:
            Linux 4.5.
        memory_kmem_limit_in_bytes: The limit of kernel memory (version 1; later kernels refuse the write).
            EBUSY if there is more already. Default: -1, bytes. Since: Linux 3.8 to 5.15.
        memory_limit_in_bytes: The limit (version 1). Default: -1, bytes. Since: Linux 2.6.25.
        memory_low: Memory that is reclaimed only if nothing else is left. Default: 0, bytes. Since: Linux
            4.5.
        memory_max: The limit. Default: max, bytes. Since: Linux 4.5.
        memory_min: Memory that is never reclaimed from the group. Default: 0, bytes. Since: Linux 4.18.
        memory_oom_group: Whether the OOM killer kills the tasks of the group, and of those in it, all
            together. A task with `oom_score_adj = -1000` is spared. Default: 0. Since: Linux 4.19.
        memory_soft_limit_in_bytes: Groups above their soft limit are reclaimed from first (version 1).
            Default: -1, bytes. Since: Linux 2.6.31.
        memory_swap_max: The limit of swap (version 2; it does not go with a file of version 1). Default: max,
            bytes. Since: Linux 4.5.
        memory_swappiness: As vm.swappiness (version 1). Default: the parent's. Since: Linux 2.6.29.
        parent: The group it is in (default: the root).
        subtree_control: Whether groups in it have a memory controller; without one this group pays for them.
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
        name: Its name.
        disk: The disk it is on (default: the first).
        metadata: It stands for the file system's own blocks (inode tables, directories, bitmaps): pages of it
            that are dirty or being written cannot be moved, because the journal holds them (default false).
        private: Every task that names it gets a file of its own (default false).
        size: Its size when the run starts (default 0).
        sparse: Nothing but holes: reading it needs no disk (default false).
        """
        self.name: str = name
        self.disk: str | None = disk
        self.metadata: bool | None = metadata
        self.private: bool | None = private
        self.size: Size | None = size
        self.sparse: bool | None = sparse


class Policy(_Table):
    """Which of the built behaviours to use. docs/scenario.md says what each stands for."""

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
        objcg_stock: Literal["1", "4", "8", "16", "64"] | None = None,
        pages: Literal["linux"] | None = None,
        per_cpu_lists: Literal["linux-6.1", "linux-2.6.37", "pageblocks"] | None = None,
        shrink_priority: Literal["guarded", "posted", "hierarchical", "off"] | None = None,
        slab_accounting: Literal["per-object", "per-group-caches", "per-group-caches-reparent", "off"] | None = None,
        slab_owners: Literal["pointers", "ids"] | None = None,
        slub: Literal["linux-6.1", "linux-5.5", "fullest", "lowest"] | None = None,
        soft_limit: Literal["tree", "hierarchical", "two-pass", "graded", "off"] | None = None,
        soft_limit_direct: Literal["full", "bounded", "ignored"] | None = None,
        soft_limit_node: Literal["global", "local"] | None = None,
        soft_limit_root: Literal["excluded", "included"] | None = None,
        thp: Literal["always", "madvise", "never"] | None = None,
        thp_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None,
        watermarks: Literal["derived", "scale-factor", "apart"] | None = None,
    ) -> None:
        """
        background_compaction: Who makes blocks of high order in the background. Default: kcompactd-early.
        compaction: How compaction is judged worth while, how it scans, and when an allocation resorts to it.
            Default: linux-6.1.
        compaction_capture: Whether a task that compacts for itself takes the block it has made before it is
            free. Default: on.
        direct_reclaim: How an allocating task reclaims for itself. Default: linux-6.1.
        fallback: What a request takes of a pageblock of another migrate type that it does not claim. Default:
            linux-6.1.
        faults: What counts as a page fault. Default: linux-6.1.
        group_walk: How a reclaimer walks the groups. Default: whole.
        groups: Which groups are reclaimed from: a policy that the program registers.
        kernel: The kernel whose variants take the place of the defaults. Default: linux-6.1.
        kswapd: How kswapd balances a node. Default: linux-6.1.
        lru: How pages age, and how page cache and anonymous memory share the pressure. Default: linux-6.1.
        objcg_stock: Owners for which a CPU has bytes in advance. Default: 1.
        pages: How pages age: a policy that the program registers.
        per_cpu_lists: Where a CPU has single free pages from; how large its lists are, and how fast they
            drain. Default: linux-6.1.
        shrink_priority: What memory.global_shrink_priority does. Default: guarded.
        slab_accounting: Who pays for small objects of the kernel. Default: per-object.
        slab_owners: How an object remembers its owner. Default: pointers.
        slub: Which slab of a cache is used next. Default: linux-6.1.
        soft_limit: How global reclaim heeds soft limits (memory.soft_limit_in_bytes). Default: tree.
        soft_limit_direct: How tasks that reclaim for themselves press groups over their soft limits. Default:
            full.
        soft_limit_node: What a soft limit is on one node. Default: global.
        soft_limit_root: Whether the group whose limit raised the pressure counts as over its soft limit.
            Default: excluded.
        thp: When anonymous memory gets huge pages (transparent_hugepage/enabled). Default: never.
        thp_defrag: What a fault does for a huge page that is not there (transparent_hugepage/defrag).
            Default: madvise.
        watermarks: How the low and high watermarks follow from what the user sets. Default: scale-factor.
        """
        self.background_compaction: Literal["kcompactd-early", "kcompactd", "kswapd", "off"] | None = background_compaction
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
        self.objcg_stock: Literal["1", "4", "8", "16", "64"] | None = objcg_stock
        self.pages: Literal["linux"] | None = pages
        self.per_cpu_lists: Literal["linux-6.1", "linux-2.6.37", "pageblocks"] | None = per_cpu_lists
        self.shrink_priority: Literal["guarded", "posted", "hierarchical", "off"] | None = shrink_priority
        self.slab_accounting: Literal["per-object", "per-group-caches", "per-group-caches-reparent", "off"] | None = slab_accounting
        self.slab_owners: Literal["pointers", "ids"] | None = slab_owners
        self.slub: Literal["linux-6.1", "linux-5.5", "fullest", "lowest"] | None = slub
        self.soft_limit: Literal["tree", "hierarchical", "two-pass", "graded", "off"] | None = soft_limit
        self.soft_limit_direct: Literal["full", "bounded", "ignored"] | None = soft_limit_direct
        self.soft_limit_node: Literal["global", "local"] | None = soft_limit_node
        self.soft_limit_root: Literal["excluded", "included"] | None = soft_limit_root
        self.thp: Literal["always", "madvise", "never"] | None = thp
        self.thp_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = thp_defrag
        self.watermarks: Literal["derived", "scale-factor", "apart"] | None = watermarks


class Variant(_Table):
    """One column of the table: the scenario with some of it changed."""

    def __init__(
        self,
        name: str,
        *,
        policy: Policy | None = None,
        set: Mapping[str, Any] | None = None,
        sysctl: Mapping[str, Value | Sequence[int]] | None = None,
    ) -> None:
        """
        name: Its name.
        policy: Policies instead of those of the scenario.
        set: Any other values: { "machine.memory" = "4GiB", "task.stream.nice" = 5 }.
        sysctl: Knobs to write besides, or instead of, those of the scenario.
        """
        self.name: str = name
        self.policy: Policy | None = policy
        self.set: Mapping[str, Any] | None = set
        self.sysctl: Mapping[str, Value | Sequence[int]] | None = sysctl


class Report(_Table):
    """What the table shows."""

    def __init__(
        self,
        *,
        measure: str | None = None,
        rows: Sequence[str] | None = None,
    ) -> None:
        """
        measure: The task over whose life the machine's counters are counted (default: the whole run).
        rows: Metric keys of the rows, in order (default: a choice of the program's).
        """
        self.measure: str | None = measure
        self.rows: Sequence[str] | None = rows


class Expect(_Table):
    """Something that holds in every run."""

    def __init__(
        self,
        *,
        text: str,
        that: str,
        variants: Sequence[str] | None = None,
    ) -> None:
        """
        text: What it is, in words.
        that: The criterion, as `pagetide find` takes one: METRIC OP VALUE, several joined by `and`.
        variants: The variants of which it is expected (default: all).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        phases: What it does, in order.
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
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
    """A task, or a phase of one, with the workload `file-write`. Appends to a file with write() calls, as dd
    does."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        file: The file.
        block: Bytes a call (default 64KiB).
        total: How much (default: until it is stopped).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    start, round its end."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        file: The file.
        block: Bytes a call (default 64KiB).
        total: How much (default: the file once).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        file: The file.
        advice: Advice on the mapping (default normal).
        compute: CPU time of the program with each page, after the access (default 0).
        exponent: Exponent of order zipf (default 1.0).
        order: Which page comes next (default sequential).
        passes: Passes over it (default 1).
        region: Phases of a task that name the same region share one mapping (default: the file).
        size: How much of it, from its start (default: all).
        stride: From one page that is read to the next, whole pages (default: one page).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        size: How much.
        advice: Advice on the region: about huge pages (default normal).
        compute: CPU time of the program with each page, after the access (default 0).
        exponent: Exponent of order zipf (default 1.0).
        load: The share of the rate over time (default: all of it).
        order: Which page comes next (default sequential).
        passes: Passes over it (default 1).
        rate: Bytes a second, or pages a second, a page being an access (default: as fast as it can).
        region: Phases of a task that name the same region share it (default anon).
        stride: From one page that is touched to the next, whole pages (default: one page).
        write: Write, not read (default true).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `interleave`. Anonymous pages and pages of a file by
    turns, so that they alternate in memory."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        pages: Pages of each kind.
        file: The file, at least as long; its mapping goes when the phase ends.
        region: The anonymous region: phases of a task that name the same share it (default anon).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `discard`. Gives back pages of an anonymous region with
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        every: Distance from one page to the next (default 1).
        first: The first page (default 0).
        region: The region, one that an earlier phase of the task has mapped (default anon).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `lock`. Locks a part of a region into memory (mlock), or
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        file: Maps this file, if no earlier phase has mapped the region.
        first: The first page (default 0).
        how: What is done (default lock).
        pages: How many pages (default: up to the region's end).
        region: The region (default anon, or the file).
        size: Maps so much anonymous memory, or so much of the file, if no earlier phase has mapped the
            region.
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `advise`. Gives advice on a part of a region (madvise)."""

    _workload: ClassVar[str | None] = "advise"

    def __init__(
        self,
        name: str,
        *,
        advice: Literal["normal", "random", "sequential", "huge", "no-huge", "populate-read", "populate-write", "will-need", "cold", "page-out", "collapse"],
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        advice: The advice.
        file: Maps this file, if no earlier phase has mapped the region.
        first: The first page (default 0).
        pages: How many pages (default: up to the region's end).
        region: The region (default anon, or the file).
        size: Maps so much anonymous memory, or so much of the file, if no earlier phase has mapped the
            region.
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
        """
        self.name: str = name
        self.advice: Literal["normal", "random", "sequential", "huge", "no-huge", "populate-read", "populate-write", "will-need", "cold", "page-out", "collapse"] = advice
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        attempts: How many attempts.
        hold: Keep the blocks until all attempts are made (default true).
        interval: From the start of one attempt to that of the next (default 0: at once).
        order: log2 of a block's pages (default 9: 2 MiB).
        percent: As many as have so much of the machine's memory, in per cent.
        request: What an attempt may do (default direct).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `kernel-memory`. Allocates and frees kernel memory, as
    network buffers, stacks and drivers do."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        blocks: Blocks that are held at most.
        count: Allocations in all (default: until it is stopped).
        interval: From the start of one allocation to that of the next (default 0: at once).
        order: log2 of a block's pages (default 0: a page).
        request: What an allocation may do (default kernel).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `kernel-objects`. Allocates and frees kernel objects as
    recorded work did."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        mix: The object mix, relative to the scenario file.
        units: How many units of it.
        compute: CPU time of a unit, between its allocations (default 0).
        interval: From the start of one unit to that of the next (default 0: at once).
        start_unit: First the mix's beginning, which stays until the task ends (default false).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    looks for names that do not exist."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        make: How many.
        keep: The share of files that stays, beyond the end of the task (default "0 %").
        kind: Files, or names that do not exist (default file).
        pick: Which of them stay: those that lie evenly, or any (default evenly).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        make: How many.
        keep: The share that stays open until the task ends (default "0 %").
        pick: Which of them stay: those that lie evenly, or any (default evenly).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    phase has kept."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        of: The phase, one before this, with workload names or pipes.
        keep: The share of what is left of them that stays (default "0 %").
        pick: Which of them stay: those that lie evenly, or any (default evenly).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `working-set`. Hot and cold accesses over anonymous and/or
    file memory."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        accesses: Number of accesses (default 0).
        advice: Advice on the mapping (default normal).
        anon: Size of the anonymous region (default: none).
        anon_percent: Per cent of accesses that go to the anonymous region if there are both (default 50).
        anon_region: Its name: phases of a task that name the same region share it (default anon).
        compute: CPU time of the program with each page, after the access; not while it populates (default 0).
        file: The file that is mapped (default: none).
        file_region: Name of its mapping (default: the file).
        file_size: How much of it, from its start (default: all).
        generator_seed: Start value of the generator (default: from the run's seed).
        hot_access_percent: Per cent of accesses that are hot (default 80).
        hot_page_percent: Per cent of pages that are hot (default 20).
        load: The share of the rate over time (default: all of it).
        populate: First touch every page in order, anonymous before file (default false).
        rate: Bytes a second, or pages a second, a page being an access (default: as fast as it can).
        write_percent: Per cent of anonymous accesses that write (default 100).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `service`. Serves requests, which arrive whether or not
    anybody is free."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        rate: Requests a second.
        allocate: Memory that a request allocates, writes, and frees at its end (default: none).
        arrivals: When requests arrive (default poisson).
        cpu: CPU time of a request (default 0).
        cpu_distribution: How it differs between requests (default fixed).
        deadline: A request that takes longer is late (default: none is).
        duration: How long requests arrive (default: until it is stopped, or as `requests` says).
        exponent: Exponent of order zipf (default 1.0).
        file: The file that requests read and write (default: none).
        grow: Memory by which the service grows and that it never frees (default: none).
        heap: Anonymous memory that requests touch (default: none).
        load: The share of the rate over time (default: all of it).
        order: Which: random or zipf (default zipf).
        populate: First write every page of it (default true).
        queue: Requests that may wait for a thread; more are dropped (default 1048576, the most).
        read: Bytes that a request reads of it, at a random place (default: none).
        region: Its name: phases of a task that name the same region share it (default anon).
        requests: How many arrive (default: as long as `duration` says).
        threads: Threads that serve them (default 1).
        touches: Pages of the heap that a request touches.
        write: Bytes that a request writes to it, at a random place (default: none).
        write_percent: Per cent of the touches that write (default 50).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        path: The trace, relative to the scenario file.
        advice: Advice on its regions of files (default: normal; of a trace of objects, random).
        passes: Times through it (default 1).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `build`. Compiles files, one after another, as make
    does."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        path: The trace of one compiler, relative to the scenario file.
        units: Files to compile.
        header: Bytes of it that a unit reads (default 442572, those of the recorded compile).
        headers: The file that stands for all headers (default: none).
        kernel_pages: Other unmovable pages that a unit has while it lives (default 0).
        link: Bytes that a link appends to `objects`, after it has read what was appended there since the link
            before it (default: no link).
        link_units: Units from one link to the next; the last link comes after the last unit (default: all
            units).
        metadata: The file that stands for the file system's own blocks, one with `metadata = true` (default:
            none).
        metadata_size: Bytes of it that a unit changes, block by block of 4 KiB (default 20KiB: the blocks
            with the object's inode, its name, the bitmaps of inodes and of blocks, and the descriptor of
            their group).
        mix: The kernel objects that a unit has while it lives, an object mix (default: none).
        object: Bytes that a unit appends (default 6592, those of the recorded compile).
        objects: The file that objects are appended to (default: none).
        source: Bytes of it that a unit reads (default 6323, those of the recorded compile).
        sources: The file that stands for the source tree, read from front to back (default: none).
        stack_order: log2 of the pages of a unit's kernel stack (default 0: no stack).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `write-control`. Writes a text to a control file, as echo
    does."""

    _workload: ClassVar[str | None] = "write-control"

    def __init__(
        self,
        name: str,
        *,
        control: Literal["vm.min_free_kbytes", "vm.watermark_scale_factor", "vm.watermark_boost_factor", "vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes", "vm.extra_free_kbytes", "vm.lowmem_reserve_ratio", "vm.drop_caches", "vm.compact_memory", "vm.stat_refresh", "transparent_hugepage.enabled", "transparent_hugepage.defrag", "vm.swappiness", "vm.page-cluster", "vm.fault_around_bytes", "block.read_ahead_kb", "vm.dirty_ratio", "vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_background_bytes", "vm.dirty_writeback_centisecs", "vm.dirty_expire_centisecs", "vm.laptop_mode", "vm.vfs_cache_pressure", "vm.extfrag_threshold", "vm.compact_unevictable_allowed", "vm.compaction_proactiveness", "vm.defrag_mode", "transparent_hugepage.khugepaged.defrag", "transparent_hugepage.khugepaged.pages_to_scan", "transparent_hugepage.khugepaged.scan_sleep_millisecs", "transparent_hugepage.khugepaged.alloc_sleep_millisecs", "transparent_hugepage.khugepaged.max_ptes_none", "transparent_hugepage.khugepaged.max_ptes_swap", "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group", "memory.limit_in_bytes", "memory.kmem.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.swappiness", "memory.global_shrink_priority", "cpu.weight", "cpu.max", "memory.reclaim", "memory.force_empty"] | Value,
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        control: Name of the file, as the kernel spells it.
        text: What to write.
        target: The group whose file it is; of several copies one, `NAME.0` (default: none, the file is the
            machine's).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
        """
        self.name: str = name
        self.control: Literal["vm.min_free_kbytes", "vm.watermark_scale_factor", "vm.watermark_boost_factor", "vm.wmark_min_kbytes", "vm.wmark_low_kbytes", "vm.wmark_high_kbytes", "vm.extra_free_kbytes", "vm.lowmem_reserve_ratio", "vm.drop_caches", "vm.compact_memory", "vm.stat_refresh", "transparent_hugepage.enabled", "transparent_hugepage.defrag", "vm.swappiness", "vm.page-cluster", "vm.fault_around_bytes", "block.read_ahead_kb", "vm.dirty_ratio", "vm.dirty_background_ratio", "vm.dirty_bytes", "vm.dirty_background_bytes", "vm.dirty_writeback_centisecs", "vm.dirty_expire_centisecs", "vm.laptop_mode", "vm.vfs_cache_pressure", "vm.extfrag_threshold", "vm.compact_unevictable_allowed", "vm.compaction_proactiveness", "vm.defrag_mode", "transparent_hugepage.khugepaged.defrag", "transparent_hugepage.khugepaged.pages_to_scan", "transparent_hugepage.khugepaged.scan_sleep_millisecs", "transparent_hugepage.khugepaged.alloc_sleep_millisecs", "transparent_hugepage.khugepaged.max_ptes_none", "transparent_hugepage.khugepaged.max_ptes_swap", "memory.min", "memory.low", "memory.high", "memory.max", "memory.swap.max", "memory.oom.group", "memory.limit_in_bytes", "memory.kmem.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.swappiness", "memory.global_shrink_priority", "cpu.weight", "cpu.max", "memory.reclaim", "memory.force_empty"] | Value = control
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
    """A task, or a phase of one, with the workload `create-group`. Makes a group that is not there, as mkdir
    does."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        target: The group; of several copies one, `NAME.0`.
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
    """A task, or a phase of one, with the workload `remove-group`. Removes a group, as rmdir does."""

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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        target: The group; of several copies one, `NAME.0`.
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        target: The group; of several copies one, `NAME.0` (default: the root).
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        duration: For so long.
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
        name: Its name; metrics are called NAME.metric and NAME.PHASE.metric.
        duration: For so long.
        after: The task whose end it waits for.
        background: It does not keep the run alive: it is stopped when all others ended (default false).
        copies: Number of copies, called NAME.0, NAME.1 and so on if there are several (default 1).
        delay: How long it waits from then (default 0).
        group: The group it runs in (default: the root).
        loops: How often it goes through its phases (default 1).
        nice: Nice value (default 0).
        oom_score_adj: Added to its badness when memory runs out; -1000: it is never killed for that (default
            0).
        start: When it starts, counted from the start of the run (default 0).
        until: The task whose end stops this one; it does not keep the run alive then.
        repeat: Of a phase: Number of times, called NAME0, NAME1 and so on (default: once, called NAME).
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
