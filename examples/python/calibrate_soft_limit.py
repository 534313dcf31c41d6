"""Fit a load to one column of a mail, predict the next column, and compare it with the mail.

Johannes Weiner's "mm: memcg: hierarchical soft limits" (10 January 2012) has two kernel builds in
separate groups on a machine of 320 MB; slave should get 20 MB of it. The column *vanilla* is before
the patch, *patched* after it. Properties that the mail does not state (sizes of objects and
headers, the speed of the disk) are fitted to *vanilla*; the rest of the experiment, and all of the
kernel, is unchanged. Then *patched* is predicted.

The builds here are shorter than those of the mail. So the mail's figures are scaled by the time of
a build with enough memory for both, which is 552.65 s in the mail.

    python calibrate_soft_limit.py [--trials N] [--units N] [--store DIR]
"""

import argparse

import pagetide as pt

# The mail's columns with 20 MB for slave: seconds, and counts.
BEFORE = {
    "master.walltime": 595.13,
    "slave.walltime": 631.18,
    "master.pgmajfault": 3729.75,
    "slave.pgmajfault": 28401.75,
    "slave.pgsteal_direct": 65400.62,
    "slave.pgsteal_kswapd": 327894.5,
}
AFTER = {
    "master.walltime": 553.19,
    "slave.walltime": 577.68,
    "master.pgmajfault": 783.25,
    "slave.pgmajfault": 14656.75,
    "slave.pgsteal_direct": 1479.62,
    "slave.pgsteal_kswapd": 227099.88,
}
UNDISTURBED = 552.65


def both(key: str) -> tuple[str, str]:
    """The keys of both builds, which differ only in their groups."""
    kind, _, rest = key.partition(".")
    dot = "-" if kind == "file" else "."
    return f"{kind}.master{dot}{rest}", f"{kind}.slave{dot}{rest}"


def main(trials: int, units: int, store: str | None) -> pt.Calibration:
    scenario = pt.load("soft-limit").set(dict.fromkeys(both("task.units"), units))
    room = scenario.run(variants="600M-0M-vanilla", seeds=2)
    times = [row["value"] for row in room.metrics.to_dicts() if row["metric"] == "master.walltime"]
    scale = sum(times) / len(times) / UNDISTURBED
    print(f"a build takes {scale:.4f} of the mail's time; the mail's figures are scaled by this factor")

    wide = {"walltime": "5 %"}
    found = pt.calibrate(
        scenario,
        free={
            both("task.object"): ("100KiB", "4MiB"),
            both("file.headers.size"): ("6MiB", "96MiB"),
            ("machine.disk.disk.read_latency", "machine.disk.disk.write_latency"): ("1ms", "12ms"),
        },
        targets={
            metric: (figure * scale, wide.get(metric.rpartition(".")[2], "30 %")) for metric, figure in BEFORE.items()
        },
        variant="600M-280M-vanilla",
        trials=trials,
        store=store,
    )
    print(found)
    print("\ncompared with the mail's figures after the patch, scaled too:")
    print(found.against({"600M-280M-patched": {metric: figure * scale for metric, figure in AFTER.items()}}))
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--units", type=int, default=20)
    parser.add_argument("--store")
    arguments = parser.parse_args()
    main(arguments.trials, arguments.units, arguments.store)
