"""What docs/python.md says of speed: `python python/tests/measure.py [PATH OF THE COMMAND]`, with the release wheel."""

from __future__ import annotations

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

# A run takes about 50 ms.
TEXT = """
name = "measure"
[machine]
memory = "256MiB"
swap = "512MiB"
[[task]]
name = "service"
workload = "working-set"
anon = "150MiB"
accesses = 200_000
[[task]]
name = "batch"
workload = "touch"
size = "200MiB"
passes = 2
"""
RUNS = 40


def best(of: Callable[[], object], times: int = 5) -> float:
    def once() -> float:
        began = time.perf_counter()
        of()
        return time.perf_counter() - began

    return min(once() for _ in range(times))


def importing() -> float:
    code = "import time; t = time.perf_counter(); import pagetide; print(time.perf_counter() - t)"
    runs = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout) for _ in range(9)]
    return statistics.median(runs)


def main() -> None:
    print(f"| `import pagetide` | {importing() * 1e3:.0f} ms |")
    scenario = pt.load(TEXT)
    one = best(lambda: scenario.run(seeds=1, jobs=1))
    print(f"| a run of the measurement | {one * 1e3:.0f} ms |")
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "measure.toml"
            file.write_text(TEXT)

            def command(runs: int) -> Callable[[], object]:
                arguments = [sys.argv[1], "run", str(file), "--repeats", str(runs), "--jobs", "1", "--format", "json"]
                return lambda: subprocess.run(arguments, capture_output=True, check=True)

            def package(runs: int) -> Callable[[], object]:
                return lambda: pt.load(file).run(seeds=runs, jobs=1).json()

            # Alternately, and what every start costs left out on both sides: what RUNS more runs take.
            pairs = []
            for _ in range(5):
                theirs = best(command(RUNS + 1), 1) - best(command(1), 1)
                ours = best(package(RUNS + 1), 1) - best(package(1), 1)
                pairs.append(ours / theirs - 1)
            print(f"| {RUNS} such runs from Python, over the command | {statistics.median(pairs):+.1%} |")
    machine = core.Machine.boot("256MiB")
    heap = machine.create_task().map("64MiB")
    pages = array("Q", [page * 7919 % len(heap) for page in range(4_000_000)])
    heap.touch(pages)
    print(f"| touches of pages that are there, in batches | {len(pages) / best(lambda: heap.touch(pages)) / 1e6:.0f} million a second |")

    def faults() -> None:
        fresh = core.Machine.boot("256MiB").create_task().map("192MiB")
        fresh.touch(array("Q", range(len(fresh))), write=True)

    print(f"| touches that fault | {(192 << 20 >> 12) / best(faults) / 1e6:.1f} million a second |")
    result = scenario.run(seeds=20)
    count = len(result.metrics)
    print(f"| `Result.metrics` of {len(result)} runs ({count} rows) | {best(lambda: result.metrics) * 1e3:.1f} ms |")


if __name__ == "__main__":
    main()
