#!/usr/bin/env python3
"""Measures the costs of a simulated machine as it grows: start, each access, each second of virtual
time.

Writes scenarios of machines of 1 to 1024 GiB and runs each with the command. Three tables:

* start: a machine of which 4 MiB are touched, and one of which 8 GiB are touched (or all of a
  smaller one);
* growth: the same load on machines of different sizes: CPU time for each access (256 MiB of memory,
  at random), and for each second of virtual time in which 100 tasks make 100 accesses a second
  each;
* hour: a machine of 1 TiB with 1000 groups and 100 tasks, each with 256 MiB and 100 accesses a
  second; two of them read files of 64 GiB. One hour of virtual time, or `--minutes`.

CPU time is user and system time of the process, memory its largest resident size (getrusage). Each figure of the
first two tables is the median of `--rounds`; the machines alternate.

Needs: cargo. Usage: scripts/bench_large.py [--rounds N] [--minutes N] [--binary FILE] [start|growth|hour ...]
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = [1, 8, 64, 512, 1024]
ACCESSES = 8_000_000
SECONDS = 60


def machine(name, gib, cpus=2):
    return f'name = "{name}"\nrepeats = 1\ntime_limit = "3h"\n[machine]\nmemory = "{gib}GiB"\ncpus = {cpus}\n'


def touch(gib, size):
    task = f'[[task]]\nname = "t"\n[[task.phase]]\nname = "p"\nworkload = "touch"\nsize = "{size}"\n'
    return machine("start", gib) + task


def random_accesses(gib, accesses):
    return machine("accesses", gib) + (
        '[[task]]\nname = "t"\n[[task.phase]]\nname = "p"\nworkload = "working-set"\nanon = "256MiB"\n'
        f"populate = true\naccesses = {accesses}\nhot_page_percent = 100\nhot_access_percent = 100\n"
    )


def paced(gib, seconds):
    return machine("seconds", gib) + (
        '[[task]]\nname = "t"\ncopies = 100\n[[task.phase]]\nname = "p"\nworkload = "working-set"\n'
        f'anon = "4MiB"\naccesses = {100 * seconds}\nrate = "100 pages/s"\n'
    )


def hour(minutes):
    accesses = 100 * 60 * minutes
    return machine("hour", 1024, cpus=8) + (
        '[[file]]\nname = "data"\nsize = "64GiB"\n'
        '[[group]]\nname = "g"\ncopies = 1000\n"memory.max" = "4G"\n'
        '[[task]]\nname = "t"\ngroup = "g"\ncopies = 98\n[[task.phase]]\nname = "p"\nworkload = "working-set"\n'
        f'anon = "256MiB"\naccesses = {accesses}\nrate = "100 pages/s"\n'
        '[[task]]\nname = "reader"\ncopies = 2\n[[task.phase]]\nname = "p"\nworkload = "file-read"\n'
        'file = "data"\n'
    )


class Runs:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory

    def run(self, text):
        """CPU seconds, seconds on the clock, MiB, seconds of virtual time."""
        file = pathlib.Path(self.directory) / "scenario.toml"
        file.write_text(text)
        command = [self.program, "run", str(file), "--format", "json"]
        began = time.monotonic()
        with open(pathlib.Path(self.directory) / "out.json", "w+") as out:
            child = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
            errors = child.stderr.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - began
            if child.returncode != 0:
                raise SystemExit(errors.decode())
            out.seek(0)
            record = json.load(out)
        return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, record


def start(runs, rounds):
    print("| machine | 4 MiB in use: CPU time, memory | 8 GiB in use: CPU time, memory |\n|---|---|---|")
    seen = {size: ([], []) for size in SIZES}
    for _ in range(rounds):
        for size in SIZES:
            for column, used in enumerate(("4MiB", "8GiB" if size > 8 else f"{size * 3 // 4 or 1}GiB")):
                if size > 1 or column == 0:
                    seen[size][column].append(runs.run(touch(size, used))[::2][:2])
    for size, columns in seen.items():
        cells = [f"{size} GiB"]
        for column in columns:
            if not column:
                cells.append("")
                continue
            cpu, memory = (statistics.median(values) for values in zip(*column))
            cells.append(f"{cpu:.2f} s, {memory:.0f} MiB")
        print("| " + " | ".join(cells) + " |", flush=True)


def growth(runs, rounds):
    print("| machine | an access | a second of virtual time |\n|---|---|---|")
    seen = {size: ([], []) for size in SIZES}
    for _ in range(rounds):
        for size in SIZES:
            long, short = (runs.run(random_accesses(size, n))[0] for n in (ACCESSES, ACCESSES // 8))
            seen[size][0].append((long - short) / (ACCESSES - ACCESSES // 8) * 1e9)
            long, short = (runs.run(paced(size, n))[0] for n in (SECONDS, SECONDS // 6))
            seen[size][1].append((long - short) / (SECONDS - SECONDS // 6) * 1e3)
    first = None
    for size, columns in seen.items():
        medians = [statistics.median(column) for column in columns]
        first = first or medians
        ns, ms = (f"{value:.3g} {unit} ({value / at:.2f} x)" for value, at, unit in zip(medians, first, ("ns", "ms")))
        print(f"| {size} GiB | {ns} | {ms} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=["start", "growth", "hour", []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--binary")
    arguments = parser.parse_args()
    program = arguments.binary
    if program is None:
        subprocess.run(["cargo", "build", "--release", "--locked", "-p", "pagetide"], cwd=ROOT, check=True)
        metadata = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
        target = json.loads(subprocess.run(metadata, cwd=ROOT, capture_output=True, check=True).stdout)
        program = str(pathlib.Path(target["target_directory"]) / "release" / "pagetide")
    with tempfile.TemporaryDirectory() as directory:
        runs = Runs(program, directory)
        tables = arguments.tables or ["start", "growth", "hour"]
        if "start" in tables:
            start(runs, arguments.rounds)
        if "growth" in tables:
            growth(runs, arguments.rounds)
        if "hour" in tables:
            cpu, wall, memory, _ = runs.run(hour(arguments.minutes))
            print(f"{arguments.minutes} min on 1 TiB: {cpu:.1f} s of CPU time, {wall:.1f} s, {memory:.0f} MiB")


if __name__ == "__main__":
    main()
