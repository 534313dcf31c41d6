"""Measures the speeds in docs/python.md: `python python/tests/measure.py [PATH OF THE COMMAND]`,
with the release wheel.

Measures CPU time, which does not include other work of the computer.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path
from typing import Callable

import pagetide as pt
from pagetide import core

# A run takes 50 to 100 ms, depending on its seed.
TEXT = """
name = "measure"
[machine]
memory = "256MiB"
swap = "512MiB"
[[task]]
name = "service"
workload = "working-set"
anon = "150MiB"
accesses = 400_000
[[task]]
name = "batch"
workload = "touch"
size = "200MiB"
passes = 2
"""
RUNS = 20


def best(of: Callable[[], object], times: int = 5) -> float:
    def once() -> float:
        began = time.process_time()
        of()
        return time.process_time() - began

    return min(once() for _ in range(times))


def cpu(arguments: list[str]) -> float:
    """CPU seconds of a command."""

    def children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = children()
    subprocess.run(arguments, capture_output=True, check=True)
    return children() - before


def importing(name: str) -> float:
    code = f"import time; t = time.process_time(); import pagetide; {name}; print(time.process_time() - t)"
    command = [sys.executable, "-c", code]
    runs = (subprocess.run(command, capture_output=True, text=True) for _ in range(9))
    return statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    alone, classes = importing("pagetide") * 1e3, importing("pagetide.Task") * 1e3
    print(f"| `import pagetide`, and with the classes of tables | {alone:.0f} ms, {classes:.0f} ms |")
    scenario = pt.load(TEXT)
    one = best(lambda: scenario.run(seeds=1, jobs=1))
    print(f"| a run of the measurement | {one * 1e3:.0f} ms |")
    command = sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).parent / "pagetide")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "measure.toml"
        file.write_text(TEXT)
        code = "import sys, pagetide as pt; pt.load(sys.argv[1]).run(seeds=int(sys.argv[2]), jobs=1).json()"

        def theirs(runs: int) -> float:
            return cpu([command, "run", str(file), "--repeats", str(runs), "--jobs", "1", "--format", "json"])

        def ours(runs: int) -> float:
            return cpu([sys.executable, "-c", code, str(file), str(runs)])

        # Alternate, and subtract the start-up on both sides, so that RUNS runs remain.
        pairs = []
        for _ in range(5):
            command_s = theirs(RUNS + 1) - theirs(1)
            pairs.append((ours(RUNS + 1) - ours(1)) / command_s - 1)
        print(f"| {RUNS} such runs from Python, over the command (CPU time) | {statistics.median(pairs):+.1%} |")
    machine = core.Machine.boot("256MiB")
    heap = machine.create_task().map("64MiB")
    pages = array("Q", [page * 7919 % len(heap) for page in range(4_000_000)])
    heap.touch(pages)
    rate = len(pages) / best(lambda: heap.touch(pages)) / 1e6
    print(f"| touches of resident pages, in batches | {rate:.0f} million a second |")

    def faults() -> None:
        fresh = core.Machine.boot("256MiB").create_task().map("192MiB")
        fresh.touch(array("Q", range(len(fresh))), write=True)

    print(f"| touches that fault | {(192 << 20 >> 12) / best(faults) / 1e6:.1f} million a second |")
    result = scenario.run(seeds=20)
    count = len(result.metrics)
    print(f"| `Result.metrics` of {len(result)} runs ({count} rows) | {best(lambda: result.metrics) * 1e3:.1f} ms |")


if __name__ == "__main__":
    main()
