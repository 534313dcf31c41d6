#!/usr/bin/env python3
"""Draws the picture of README.md: docs/pictures/memory-low-light.png and memory-low-dark.png.

`scripts/readme_picture.py [PAGETIDE]` runs PAGETIDE (target/release/pagetide). It needs matplotlib.
"""

import csv
import pathlib
import re
import subprocess
import sys

import matplotlib.pyplot as plt
import PIL.Image

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGETIDE = (sys.argv[1:] or [ROOT / "target/release/pagetide"])[0]
SCENARIO = re.search(r"^```toml\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1]
AREAS = ["service in memory", "batch in memory", "service in swap", "batch in swap"]
# Background, text, grid; then a colour for each area.
THEMES = {
    "light": ["#ffffff", "#1f2328", "#d8dee4", "#0072b2", "#e69f00", "#9ccbe8", "#f7dfa8"],
    "dark": ["#0d1117", "#e6edf3", "#30363d", "#3d9ad1", "#d99a1c", "#1f4e70", "#66501e"],
}


def timeline(variant):
    """Runs a variant. Returns a function that gives a column of the samples of an owner."""
    command = [PAGETIDE, "inspect", "-", "--timeline", "--format", "csv"]
    command += ["--variant", variant]
    text = subprocess.check_output(command, input='name = "readme"\n' + SCENARIO, text=True)
    rows = list(csv.DictReader(text.splitlines()))
    return lambda owner, column: [float(row[column]) for row in rows if row["group"] == owner]


def draw(ax, case, run, colours):
    time = [ns / 1e9 for ns in run("", "ns")]
    areas = []
    for name in ["anon_pages", "swap_pages"]:
        pairs = list(zip(run("/web", name), run("", name)))
        areas += [[web / 256 for web, _ in pairs], [(both - web) / 256 for web, both in pairs]]
    ax.grid()
    ax.stackplot(time, *areas, colors=colours, labels=AREAS, linewidth=0)
    end = max(at for at, mib in zip(time, areas[0]) if mib)
    wait = sum(sum(run("task service", f"stall_{why}_ns")) for why in ["refault", "reclaim", "throttled"]) / 1e9
    ax.set_title(f"{case}: the service takes {end:.1f} s, {wait:.1f} s of it waiting for memory", loc="left", size=10)


runs = {variant: timeline(variant) for variant in ["unprotected", "memory.low"]}
for theme, (paper, ink, grid, *colours) in THEMES.items():
    plt.rcParams.update(dict.fromkeys(["text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"], ink))
    plt.rcParams.update(dict.fromkeys(["axes.edgecolor", "grid.color", "xtick.color", "ytick.color"], grid))
    plt.rcParams.update({"figure.facecolor": paper, "axes.facecolor": paper, "axes.axisbelow": True})
    figure, axes = plt.subplots(2, 1, sharex=True, sharey=True, figsize=(8, 4), layout="constrained")
    for ax, variant in zip(axes, runs):
        draw(ax, variant, runs[variant], colours)
    ax.legend(loc="right", reverse=True, framealpha=1, edgecolor=paper)
    ax.set(xlabel="time, s", xlim=(0, 16.5), ylim=(0, 1536), yticks=range(0, 1537, 512))
    figure.supylabel("anonymous memory, MiB", size=10)
    figure.savefig(file := ROOT / f"docs/pictures/memory-low-{theme}.png", dpi=200)
    PIL.Image.open(file).convert("RGB").quantize(64).save(file, optimize=True)
