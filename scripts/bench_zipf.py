#!/usr/bin/env python3
"""Requests a second on a Zipf(1.0) stream over a million pages: Pagetide against libcachesim's LRU.

Both sides get the same stream (an oracleGeneral trace that our generator writes once), alternate,
and count CPU time of one thread. Ours is the memory manager with kswapd on a machine in which 1 or
10 per cent of the pages fit (`core`), and the whole simulation with its draws (`world`); theirs is
one LRU list over as many objects.

Needs: cargo, and `pip install libcachesim`. Usage: scripts/bench_zipf.py [REQUESTS] [ROUNDS]
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import libcachesim

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = 1_000_000


def ours(program, trace, requests, percent):
    command = [program, "run", trace, str(requests), str(percent)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {record["form"]: record for record in map(json.loads, lines)}


def theirs(trace, percent):
    reader = libcachesim.TraceReader(
        trace,
        libcachesim.TraceType.ORACLE_GENERAL_TRACE,
        libcachesim.ReaderInitParam(ignore_obj_size=True),
    )
    cache = libcachesim.LRU(PAGES * percent // 100)
    began = time.process_time()
    result = cache.process_trace(reader)
    return time.process_time() - began, result[0] if isinstance(result, tuple) else result


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    build = ["cargo", "build", "--release", "--locked", "-p", "pagetide-bench", "--bin", "zipf_peer"]
    subprocess.run(build, cwd=ROOT, check=True)
    metadata = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    target = json.loads(subprocess.run(metadata, cwd=ROOT, capture_output=True, check=True).stdout)
    program = str(pathlib.Path(target["target_directory"]) / "release" / "zipf_peer")
    with tempfile.TemporaryDirectory() as directory:
        trace = str(pathlib.Path(directory) / "zipf.oracleGeneral")
        subprocess.run([program, "generate", trace, str(requests)], check=True)
        for percent in (1, 10):
            rates = {"libcachesim": [], "core": [], "world": []}
            misses = {}
            for _ in range(rounds):
                seconds, misses["libcachesim"] = theirs(trace, percent)
                rates["libcachesim"].append(requests / seconds)
                result = ours(program, trace, requests, percent)
                for form in ("core", "world"):
                    record = result[form]
                    seconds = record["seconds"]
                    if form == "world":
                        seconds -= result["draw"]["seconds"]
                    rates[form].append(record["requests"] / seconds)
                    misses[form] = record["miss_ratio"]
            peer = statistics.median(rates["libcachesim"])
            for form, values in rates.items():
                print(
                    f"{percent:>3} % resident  {form:<12} median {statistics.median(values) / 1e6:7.2f} M/s"
                    f"  min {min(values) / 1e6:7.2f}  max {max(values) / 1e6:7.2f}"
                    f"  x{statistics.median(values) / peer:.2f}  miss ratio {misses[form]:.4f}"
                )


if __name__ == "__main__":
    main()
