"""Turns the trace of guest.sh into an object mix.

    analyse.py WORK DIRECTORY KERNEL OUTPUT

A unit's allocations are those between its two marks by its tasks: the tasks that the unit started
and their parent, or, with a server, the whole group. A lifetime ends at the free of the same
pointer, wherever it happens. Objects allocated in bulk have no pointer in the trace; the latest one
is assumed to be freed first. Statistics go to standard output.

Invariant: the shares of a row's lifetimes add up to 1, in ten-thousandths.
"""

import datetime
import re
import sys
from collections import Counter, defaultdict

WITHIN = (16, 256, 4096)
CLASSES = [str(within) for within in WITHIN] + ["unit", "cached", "kept"]
# Objects that a unit leaves. If a later unit frees them, this counts as freed at the end: it does
# not accumulate.
LEFT = (None, "cached")
# Rarer allocations are not typical of a unit.
ALLOCS_MIN = 0.01
# Larger kmalloc() requests take pages instead of objects.
KMALLOC_MAX = 8192
# Caches of objects that are freed too late to show their name, by the allocating function.
NAMES = {"alloc_vmap_area": "vmap_area", "jbd2_journal_add_journal_head": "jbd2_journal_head"}
HOW = {
    "compile": "gcc 12 -O2 -c of a C file of 84 lines with 16 headers of the C library, on ext4",
    "database": "MariaDB 10.11 with sysbench's oltp_read_write by TCP over loopback, 4 tables of 5000 rows",
    "database-server": "MariaDB 10.11 with a pool of 64 MiB, sysbench's 4 tables of 5000 rows, "
    "data not in memory before",
    "service": "redis-server 7.0 without a database, with a port of its own",
}
UNITS = {
    ("compile", "unit"): "one file compiled: gcc, cc1 and as, from the shell's fork to the exit of the last",
    ("database", "unit"): "one transaction of 20 statements: what client and server allocate for it",
    ("database", "start"): "one connection that stays: both its ends and the server's thread",
    ("database-server", "unit"): "one server started on data that exist, all 4 tables open after 20 transactions of a"
    " connection that went again; the server stays",
    ("service", "unit"): "one service started, with its threads and its listening socket, that stays and sleeps",
}
LINE = re.compile(r"^.*?-(\d+)\s+(?:\(.{7}\) )?\[\d+\] (\S+)\s+[\d.]+: (\w+): (.*)$")


class Object:
    """An object that is or was allocated."""

    __slots__ = ("name", "site", "unit", "birth", "account", "interrupt", "end")

    def __init__(self, name, site, unit, birth, account, interrupt):
        self.name, self.site, self.unit, self.birth = name, site, unit, birth
        self.account, self.interrupt = account, interrupt
        # Class of its lifetime. None: kept to the end. "late": freed during a later unit.
        self.end = None


class Unit:
    """The events between two marks."""

    def __init__(self, kind):
        self.kind, self.allocs, self.is_open = kind, 0, True


def size_name(size):
    return f"{size // 1024}k" if size >= 1024 else str(size)


def kmalloc_name(fields):
    flags = fields["gfp_flags"].split("|")
    kind = ""
    if "GFP_DMA" in flags or "__GFP_DMA" in flags:
        return f"dma-kmalloc-{size_name(int(fields['bytes_alloc']))}"
    if "__GFP_RECLAIMABLE" in flags:
        kind = "rcl-"
    elif fields["accounted"] == "true":
        kind = "cg-"
    return f"kmalloc-{kind}{size_name(int(fields['bytes_alloc']))}"


class Trace:
    def __init__(self, own):
        """`own`: only tasks that a unit starts belong to it."""
        self.own, self.driver, self.workers = own, None, set()
        self.live, self.pools = {}, defaultdict(list)
        self.units, self.unit, self.last = [], None, None
        self.objects, self.net, self.notes = [], Counter(), Counter()
        self.group, self.counting, self.over, self.shrinking = set(), False, False, False
        self.sites = defaultdict(Counter)
        self.net_objects = []

    def read(self, path):
        with open(path, errors="replace") as lines:
            for line in lines:
                match = LINE.match(line)
                if match:
                    self.event(int(match[1]), match[2], match[3], match[4])

    def event(self, pid, flags, event, text):
        if event == "tracing_mark_write":
            self.mark(text.strip())
        elif event == "sched_process_fork":
            parent, child = (int(n) for n in re.findall(r"pid=(\d+)", text))
            if parent in self.group:
                self.group.add(child)
                if parent in self.workers:
                    self.workers.add(child)
        elif event.startswith("bulk"):
            number = int(re.search(r"nr=(0x[0-9a-f]+|\d+)", text)[1], 0)
            name = re.search(r'name="([^"]*)"', text)
            name = name and name[1]
            if event == "bulk_alloc":
                self.notes[f"objects from bulks of {name}"] += number
                for _ in range(number):
                    self.pools[name].append(self.allocated(pid, flags, name, "bulk", True))
            else:
                found = re.findall(r"0x[0-9a-f]{12,16}", re.sub(r"^\(.*?\)", "", text))
                pointers = [pointer[2:] for pointer in found[:number]]
                if len(pointers) < number:
                    self.notes["objects freed in bulks that are too large for the trace"] += number - len(pointers)
                for pointer in pointers:
                    self.free(pointer, name)
        else:
            fields = dict(part.split("=", 1) for part in text.split() if "=" in part)
            pointer = fields["ptr"]
            if event == "kmem_cache_free":
                self.free(pointer, fields["name"])
            elif event == "kfree":
                self.free(pointer, None)
            else:
                if event == "kmalloc" and int(fields["bytes_alloc"]) > KMALLOC_MAX:
                    if self.unit and pid in self.group:
                        self.notes["kmalloc of more than 8 KiB in units: pages, left out"] += 1
                    return
                name = kmalloc_name(fields) if event == "kmalloc" else None
                site = (fields["call_site"], fields["bytes_alloc"])
                if pointer in self.live:
                    self.notes["frees that are not in the trace"] += 1
                    self.freed(self.live.pop(pointer))
                account = fields["accounted"] == "true"
                self.live[pointer] = self.allocated(pid, flags, name, site, account)

    def mark(self, text):
        words = text.split()
        if words[0] == "member":
            self.group.add(int(words[1]))
        elif words[0] == "driver":
            self.driver = int(words[1])
        elif text == "counted before":
            self.counting = True
        elif text == "counted after":
            self.counting, self.over, self.last = False, True, None
        elif words[0] in ("shrink", "shrunk"):
            self.shrinking = words[0] == "shrink"
        elif words[0] == "begin":
            self.unit = self.last = Unit(words[1])
            self.units.append(self.unit)
            # Services of earlier units continue to work; a server works for all units.
            self.workers = {self.driver} if self.own else self.group
        elif words[0] == "end":
            self.unit.is_open, self.unit = False, None

    def allocated(self, pid, flags, name, site, account):
        interrupt = any(mark in flags for mark in "hHsSzZ")
        unit = self.unit if pid in self.workers else None
        if unit:
            unit.allocs += 1
        elif pid in self.group and self.counting:
            self.notes["allocations of the group outside units"] += 1
        elif self.unit:
            self.notes["allocations of other tasks within units"] += 1
        new = Object(name, site, unit, unit and unit.allocs, account and not interrupt, interrupt)
        if unit:
            self.objects.append(new)
        if self.counting:
            self.net_objects.append((new, 1))
        return new

    def free(self, pointer, name):
        known = self.live.pop(pointer, None)
        if known is None and self.pools.get(name):
            # One of a bulk with unknown pointers: take the latest.
            known = self.pools[name].pop()
        if known is None:
            if name and self.counting:
                self.net[name] -= 1
            return
        if name and known.name != name:
            known.name = name
            self.sites[known.site][name] += 1
        self.freed(known)

    def freed(self, known):
        if self.counting:
            self.net_objects.append((known, -1))
        unit = known.unit
        if unit is None or known.end is not None:
            return
        if unit is self.unit:
            age = unit.allocs - known.birth
            known.end = next((str(within) for within in WITHIN if age <= within), "unit")
        elif unit is self.last:
            known.end = "unit"
        elif not self.over:
            known.end = "late"
        elif self.shrinking:
            known.end = "cached"

    def name_all(self):
        for known in self.objects + [one for one, _ in self.net_objects]:
            if known.name is None:
                names = self.sites.get(known.site)
                function = known.site[0].split("+")[0]
                name = NAMES.get(function, f"? {known.site[0]} {known.site[1]}")
                known.name = names.most_common(1)[0][0] if names else name
        for known, change in self.net_objects:
            self.net[known.name] += change


def slabinfo(path):
    """Cache -> (active objects, size of an object)."""
    with open(path) as lines:
        rows = [line.split() for line in lines if not line.startswith(("#", "slabinfo"))]
    return {row[0]: (int(row[1]), int(row[3])) for row in rows}


def ten_thousandths(counts, total):
    """Shares by the largest remainder, so that they add up to 1."""
    shares = {key: counts[key] * 10000 // total for key in CLASSES}
    by_rest = sorted(CLASSES, key=lambda key: counts[key] * 10000 % total, reverse=True)
    for key in by_rest[: 10000 - sum(shares.values())]:
        shares[key] += 1
    return {key: share for key, share in shares.items() if share}


def rows(kind, trace, sizes, reclaimable):
    """The tables of one kind of unit, the most frequent cache first."""
    number = sum(unit.kind == kind for unit in trace.units)
    ends = defaultdict(Counter)
    for known in trace.objects:
        if known.unit.kind == kind and known.name in sizes:
            end = {None: "kept", "late": "unit"}.get(known.end, known.end)
            ends[known.name, known.account][end] += 1
    table = "start_cache" if kind == "start" else "cache"
    text = []
    for (name, account), counts in sorted(ends.items(), key=lambda row: (-row[1].total(), row[0])):
        total = counts.total()
        if total / number < ALLOCS_MIN:
            continue
        shares = ten_thousandths(counts, total)
        shown = ", ".join(
            f"{key if key.isalpha() else chr(34) + key + chr(34)} = {share / 10000:.4f}"
            for key, share in shares.items()
        )
        text.append(
            f"\n[[{table}]]\n"
            f'name = "{name}"\n'
            f"object_size = {sizes[name][1]}\n"
            f"account = {str(account).lower()}\n"
            f"reclaimable = {str(reclaimable[name]).lower()}\n"
            f"allocs = {total / number:.3f}\n"
            f"lifetimes = {{ {shown} }}\n"
        )
    return "".join(text)


def head(kind, trace):
    mine = [known for known in trace.objects if known.unit.kind == kind]
    number = sum(unit.kind == kind for unit in trace.units)
    charged = sum(known.account for known in mine)
    interrupt = sum(known.interrupt for known in mine)
    kept = sum(known.end in LEFT for known in mine)
    return (
        f"# {kind}: {len(mine) / number:.1f} allocations, mean of {number}; {100 * charged / len(mine):.1f} % of them"
        f" charged, {100 * interrupt / len(mine):.1f} % in interrupts; {kept / number:.1f} kept.\n"
    )


def check(trace, before, after, kind):
    """Compares kept objects with the difference in slabinfo."""
    number = sum(unit.kind == kind for unit in trace.units)
    alive = Counter(known.name for known in trace.objects if known.end in LEFT)
    kept = Counter(known.name for known in trace.objects if known.end in LEFT + ("late",))
    names = set(alive) | set(kept) | {name for name in after if after[name][0] != before.get(name, (0,))[0]}
    print(f"{'cache':32} {'kept':>7} {'alive':>7} {'traced':>7} {'slabinfo':>8}   (over {number} units)")
    sums = Counter()
    for name in sorted(names, key=lambda name: (-kept[name], name)):
        change = after.get(name, (0,))[0] - before.get(name, (0,))[0]
        row = {"kept": kept[name], "alive": alive[name], "traced": trace.net[name], "slabinfo": change}
        size = after.get(name, (0, 0))[1]
        for key, value in row.items():
            sums[key] += value
            sums[key + " KiB"] += value * size / 1024
        print(f"{name:32} {row['kept']:7} {row['alive']:7} {row['traced']:7} {row['slabinfo']:8}")
    columns = ("kept", "alive", "traced", "slabinfo")
    print(f"{'sum':32} " + " ".join(f"{sums[key]:7}" for key in columns))
    print(f"{'KiB':32} " + " ".join(f"{sums[key + ' KiB']:7.0f}" for key in columns))


def main():
    work, directory, kernel, output = sys.argv[1:]
    trace = Trace(work != "database")
    trace.read(f"{directory}/trace")
    trace.name_all()
    before, after = (slabinfo(f"{directory}/slabinfo.{when}") for when in ("before", "after"))
    sizes = {**before, **after, **slabinfo(f"{directory}/slabinfo.end")}
    with open(f"{directory}/reclaimable") as lines:
        reclaimable = {name: flag == "1" for name, flag in (line.split() for line in lines)}
    kinds = [kind for kind in ("start", "unit") if any(unit.kind == kind for unit in trace.units)]
    today = datetime.date.today().isoformat()
    text = (
        "# An object mix, recorded by scripts/record_objects; "
        'docs/scenario.md ("kernel-objects") describes the format.\n'
        + "".join(head(kind, trace) for kind in kinds)
        + f'recorded = "{HOW[work]}; {kernel}, 1 CPU by emulation, slab_nomerge; {today}"\n'
        + "".join(f'{kind} = "{UNITS[work, kind]}"\n' for kind in reversed(kinds))
        + "".join(rows(kind, trace, sizes, reclaimable) for kind in kinds)
    )
    with open(output, "w") as file:
        file.write(text)
    for kind in kinds:
        print(head(kind, trace), end="")
        print("  allocations of each:", [unit.allocs for unit in trace.units if unit.kind == kind][:60])
    for note, count in sorted(trace.notes.items()):
        print(f"{note}: {count}")
    unnamed = Counter(known.name for known in trace.objects if known.name not in sizes)
    print(f"without a name, left out: {unnamed.total()}", dict(unnamed.most_common(20)))
    late = Counter(known.name for known in trace.objects if known.end == "late")
    print("kept by a unit, freed during a later one:", dict(late.most_common(12)))
    check(trace, before, after, "unit")


main()
