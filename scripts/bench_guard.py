#!/usr/bin/env python3
"""Counts the instructions of a few fixed loads, and fails if one needs over 5 % more than recorded.

    scripts/bench_guard.py            compares with scripts/bench_guard.csv
    scripts/bench_guard.py --lower    records loads that need fewer now, to notice later losses
    scripts/bench_guard.py --accept   records all current counts

Times are noisy on a shared machine; valgrind's callgrind counts the same instructions each time.
Counts are compared as instructions per request, and only with the same compiler, because others
generate other code. `core` (the memory manager) and `world` (the whole simulation) are the loads of
scripts/bench_zipf.py: a Zipf(1.0) stream over a million pages, 1 or 10 per cent of which fit into
memory. Three more loads exist only here: `swap` is the manager with anonymous memory at 1 per cent,
`touch` maps anonymous memory, touches each page once and unmaps it, and `world-touch` is a first
touch in the whole simulation.

Needs: cargo and valgrind. Without valgrind, or with another compiler than the record's, prints a
message and passes.
"""

import argparse
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "scripts" / "bench_guard.csv"
REQUESTS = 1_000_000
LOADS = [(form, percent) for percent in ("1", "10") for form in ("core", "world")]
LOADS += [("swap", "1"), ("touch", "100"), ("world-touch", "100")]
# A larger increase needs attention.
TOLERANCE = 0.05


def built():
    """Builds the program with the loads."""
    build = ["cargo", "build", "--release", "--locked", "-p", "pagetide-bench", "--bin", "zipf_peer"]
    subprocess.run(build, cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    target = json.loads(subprocess.run(metadata, cwd=ROOT, capture_output=True, check=True).stdout)
    return pathlib.Path(target["target_directory"]) / "release" / "zipf_peer"


def compiler():
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def instructions(command, out):
    """The number of instructions that a command executes."""
    counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command]
    text = subprocess.run(counted, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"refs:\s+([0-9,]+)", text).group(1).replace(",", ""))


def count():
    """{(form, percent): instructions per request}."""
    program = built()
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        trace = str(pathlib.Path(directory) / "zipf.oracleGeneral")
        subprocess.run([program, "generate", trace, str(REQUESTS)], check=True)
        for form, percent in LOADS:
            command = [str(program), "run", trace, str(REQUESTS), percent, form]
            found[form, percent] = instructions(command, f"{directory}/callgrind.out") / REQUESTS
    return found


def recorded_before():
    """{(form, percent): line} of the record."""
    if not RECORD.exists():
        sys.exit(f"bench_guard.py: {RECORD.relative_to(ROOT)} is missing; --accept creates it")
    with open(RECORD, newline="") as file:
        recorded = {(row["form"], row["percent"]): row for row in csv.DictReader(file)}
    missing = [f"{form} {percent} %" for form, percent in LOADS if (form, percent) not in recorded]
    if missing:
        sys.exit(f"bench_guard.py: {RECORD.relative_to(ROOT)} lacks {', '.join(missing)}; --accept records it again")
    return recorded


def record(found, recorded):
    """Writes the new counts; keeps the recorded ones of other loads."""
    with open(RECORD, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["form", "percent", "instructions", "compiler"])
        for load in LOADS:
            row = recorded.get(load)
            if load in found:
                writer.writerow([*load, f"{found[load]:.0f}", compiler()])
            elif row is not None:
                writer.writerow([*load, row["instructions"], row["compiler"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    recording = parser.add_mutually_exclusive_group()
    recording.add_argument("--lower", action="store_true", help="record loads that need fewer instructions now")
    recording.add_argument("--accept", action="store_true", help="record all current counts")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("bench_guard.py: valgrind is not installed, so nothing is counted", file=sys.stderr)
        return
    recorded = {} if options.accept else recorded_before()
    found = count()
    failed = False
    if options.accept:
        record(found, recorded)
        recorded = recorded_before()
    for load, nr in found.items():
        row = recorded[load]
        before = float(row["instructions"])
        change = nr / before - 1
        print(f"{load[0]:11} {load[1]:>3} %  {nr:7.0f} instructions per request, {change:+.1%} against {before:.0f}")
        if row["compiler"] != compiler():
            print(f"              recorded with {row['compiler']}: not compared")
        else:
            failed |= change > TOLERANCE
    if failed:
        sys.exit("bench_guard.py: over 5 % more instructions; --accept records them if this is intended")
    if options.lower:
        # Counts of another compiler are not comparable.
        lower = {
            load: nr
            for load, nr in found.items()
            if recorded[load]["compiler"] == compiler() and nr < float(recorded[load]["instructions"])
        }
        record(lower, recorded)


if __name__ == "__main__":
    main()
