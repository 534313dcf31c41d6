"""Plots of results with matplotlib: ``pip install 'pagetide[plots]'``.

Each function draws one plot into axes and returns the axes: the value of ``ax=``, or new ones. So the
caller composes, labels and saves the figure.

=================  =============================================================
:func:`curve`      a metric of a sweep over a knob, with the spread over seeds
:func:`heat_map`   a metric of a sweep over two knobs
:func:`compare`    the variants of a result, with confidence intervals
:func:`latency`    the share of requests that took longer than a given time
:func:`miss_ratio` the miss ratio of a trace for each size of the cache
:func:`timeline`   memory of the machine or a group over time, with watermarks
=================  =============================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import quantities
from ._errors import Error, InputError
from .optional import need
from .statistics import Mean

if TYPE_CHECKING:
    from ._pagetide import Result
    from .sweeps import Sweep

__all__ = ["compare", "curve", "heat_map", "latency", "miss_ratio", "timeline"]

#: The colours of reports, distinguishable with colour blindness (Okabe and Ito).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b97a00", "#3d9ad1", "#4a4a4a"]
_HEAT = ["#fff7e6", "#fde3b0", "#f9c97a", "#f0a95a", "#d98550", "#b5604f", "#84434e", "#502c44"]
_SOFT = "#57606a"
#: Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom.
_T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]


def curve(sweep: Sweep, metric: str, *, knob: str | None = None, ax: Any = None) -> Any:
    """A metric over a knob: the mean of each variant, and of each setting of the other knobs of the
    sweep.

    The band is the sample standard deviation over the seeds. A hollow point includes incomplete
    runs.
    """
    knob = _knob(sweep, knob, 0)
    others = [other for other in sweep.knobs if other != knob]
    lines: dict[tuple[str, ...], list[tuple[str, Mean]]] = {}
    unit = ""
    for (pairs, variant), of in sweep.means(metric).items():
        if metric not in of:
            continue
        setting = dict(pairs)
        unit = of[metric].unit
        name = (variant if len(sweep.variants) > 1 else "", *(f"{other}={setting.get(other)}" for other in others))
        lines.setdefault(name, []).append((setting.get(knob, ""), of[metric]))
    ax = _axes(ax)
    texts = sorted({text for line in lines.values() for text, _ in line}, key=quantities.order)
    place, is_log = _places(texts)
    scale, word = _scale([mean.mean for line in lines.values() for _, mean in line], unit)
    for at, (name, line) in enumerate(lines.items()):
        line = sorted((it for it in line if it[1].runs), key=lambda it: place[it[0]])
        x = [place[text] for text, _ in line]
        y = [mean.mean / scale for _, mean in line]
        spread = [0.0 if math.isnan(mean.deviation) else mean.deviation / scale for _, mean in line]
        colour = COLOURS[at % len(COLOURS)]
        style = ["-", "--", ":", "-."][at // len(COLOURS) % 4]
        label = ", ".join(word for word in name if word) or None
        ax.plot(x, y, style, color=colour, label=label, linewidth=1.6)
        low, high = [a - b for a, b in zip(y, spread)], [a + b for a, b in zip(y, spread)]
        ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        for (_, mean), px, py in zip(line, x, y):
            face = "white" if mean.ended else colour
            ax.plot([px], [py], "o", color=colour, markerfacecolor=face, markersize=4.5)
    if is_log:
        ax.set_xscale("log")
    ax.set_xticks([place[text] for text in texts], texts)
    ax.minorticks_off()
    if len(texts) > 8:
        ax.tick_params(axis="x", rotation=45)
    ax.set_xlabel(knob)
    ax.set_ylabel(_label(metric, word))
    _from_zero(ax)
    if len(lines) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax


def heat_map(
    sweep: Sweep,
    metric: str,
    *,
    x: str | None = None,
    y: str | None = None,
    variant: str | None = None,
    ax: Any = None,
) -> Any:
    """A metric over two knobs: the mean over the seeds in each cell. A cell without a measurement
    is hatched."""
    x, y = _knob(sweep, x, 0), _knob(sweep, y, 1)
    if x == y:
        raise InputError("a heat map has two knobs", "give different knobs for x= and y=")
    variant = sweep.variants[0] if variant is None else variant
    if variant not in sweep.variants:
        raise InputError(f"there is no variant {variant!r}", f"choose from {', '.join(map(repr, sweep.variants))}")
    others = [knob for knob in sweep.knobs if knob not in (x, y)]
    cells: dict[tuple[str, str], Mean] = {}
    unit = ""
    for (pairs, of_variant), of in sweep.means(metric).items():
        setting = dict(pairs)
        if of_variant != variant or metric not in of:
            continue
        at = (setting.get(x, ""), setting.get(y, ""))
        if at in cells:
            raise InputError(f"there are several points with {x}={at[0]}, {y}={at[1]}", f"they differ in {others}")
        cells[at] = of[metric]
        unit = of[metric].unit
    columns = sorted({at[0] for at in cells}, key=quantities.order)
    rows = sorted({at[1] for at in cells}, key=quantities.order)
    scale, word = _scale([mean.mean for mean in cells.values()], unit)
    table = [[math.nan] * len(columns) for _ in rows]
    for (column, row), mean in cells.items():
        table[rows.index(row)][columns.index(column)] = mean.mean / scale
    ax = _axes(ax)
    colours: Any = need("plots", "a plot", "matplotlib.colors").LinearSegmentedColormap
    ax.patch.set(hatch="////", edgecolor="#d0d7de")
    image = ax.imshow(table, aspect="auto", origin="lower", cmap=colours.from_list("heat", _HEAT))
    numbers = [value for line in table for value in line if not math.isnan(value)]
    middle = (min(numbers) + max(numbers)) / 2 if numbers else 0.0
    for at_y, line in enumerate(table):
        for at_x, value in enumerate(line):
            if not math.isnan(value) and len(numbers) <= 120:
                ink = "white" if value > middle and max(numbers) > min(numbers) else "#1b1f24"
                ax.text(at_x, at_y, f"{value:.3g}", ha="center", va="center", color=ink, fontsize="small")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.figure.colorbar(image, ax=ax, label=_label(metric, word))
    if len(sweep.variants) > 1:
        ax.set_title(variant, fontsize="medium")
    return ax


def compare(result: Result, metrics: str | Sequence[str], *, ax: Any = None) -> Any:
    """The variants of a result: the mean over the seeds, with its 95 % confidence interval
    (Student's t).

    Several metrics are shown relative to the first variant, since their units differ.
    """
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not names:
        raise InputError("there are no metrics to compare", "give at least one; `result.metrics` lists all metrics")
    found: dict[tuple[str, str], Mean] = {}
    for row in result.summary(*names):
        found[row["metric"], row["variant"]] = Mean.of(row)
    ax = _axes(ax)
    variants = list(result.variants)
    single = len(names) == 1
    scale, word = _scale([mean.mean for mean in found.values()], found[next(iter(found))].unit)
    width = 0.8 / (1 if single else len(variants))
    for at, variant in enumerate(variants):
        for place, name in enumerate(names):
            mean = found.get((name, variant)) or Mean("")
            if not mean.runs:
                continue
            if single:
                by, where = scale, float(at)
            else:
                first = found.get((name, variants[0]))
                if first is None or not first.runs or not first.mean:
                    continue
                by, where = first.mean, place + (at - (len(variants) - 1) / 2) * width
            half = _confidence(mean)
            colour = COLOURS[at % len(COLOURS)]
            label = variant if place == 0 and not single else None
            ax.bar(where, mean.mean / by, width * 0.9, color=colour, label=label)
            if not math.isnan(half):
                ax.errorbar(where, mean.mean / by, half / by, color="#1b1f24", capsize=3, linewidth=1)
    if single:
        ax.set_xticks(range(len(variants)), variants)
        ax.set_ylabel(_label(names[0], word))
    else:
        ax.set_xticks(range(len(names)), names)
        ax.axhline(1.0, color=_SOFT, linewidth=0.8)
        ax.set_ylabel(f"share of {variants[0]}")
        ax.legend(frameon=False, fontsize="small")
    if max(len(text) for text in (variants if single else names)) * (len(variants) if single else len(names)) > 70:
        ax.tick_params(axis="x", rotation=20)
    return ax


def latency(result: Result, of: str | None = None, *, ax: Any = None) -> Any:
    """The share of requests that took longer than a given time, over all seeds of each variant, on
    logarithmic axes.

    The result must come from ``run(latencies=True)``. `of` is the common part of the metrics'
    names: ``web.latency``.
    """
    sums: dict[str, dict[str, dict[int, int]]] = {}
    for row in result.rows:
        record = json.loads(row)
        for latencies in record.get("latencies", []):
            buckets = sums.setdefault(latencies["of"], {}).setdefault(record["variant"], {})
            for bound, count in latencies["buckets"]:
                buckets[bound] = buckets.get(bound, 0) + count
    if not sums:
        raise Error("the result has no latencies: use run(latencies=True)")
    if of is None:
        of = next((name for name in sums if name.endswith(".latency")), next(iter(sums)))
    if of not in sums:
        raise InputError(f"there are no latencies of {of!r}", f"there are latencies of {', '.join(map(repr, sums))}")
    ax = _axes(ax)
    least = 1.0
    for at, variant in enumerate(variant for variant in result.variants if variant in sums[of]):
        steps = sorted(sums[of][variant].items())
        total = left = sum(count for _, count in steps)
        x, y = [], []
        for bound, count in steps:
            x.append(bound / 1e6)
            y.append(left / total)
            left -= count
        least = min(least, y[-1])
        ax.plot(x, y, color=COLOURS[at % len(COLOURS)], label=variant, linewidth=1.6, drawstyle="steps-post")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(least / 2, 1.3)
    ax.set_xlabel(f"{of}, ms")
    ax.set_ylabel("share that took at least as long")
    for share, word in ((0.5, "p50"), (0.01, "p99"), (0.001, "p99.9")):
        if share > least:
            ax.axhline(share, color="#d0d7de", linewidth=0.8, zorder=0)
            ax.annotate(
                word, (1, share), xycoords=("axes fraction", "data"), fontsize="x-small", color=_SOFT, va="center"
            )
    ax.legend(frameon=False, fontsize="small")
    return ax


def miss_ratio(curves: Any, *, ax: Any = None) -> Any:
    """Miss ratios over the size of the cache.

    `curves` is the table of ``pagetide.mrc()``, which includes caches of pages by reference
    algorithms, or a dict of names and lists of (bytes, miss ratio).
    """
    ax = _axes(ax)
    if not isinstance(curves, Mapping):
        curves = _curves_of(curves)
    for at, (name, points) in enumerate(curves.items()):
        points = sorted(points)
        x = [size / (1 << 20) for size, _ in points]
        ax.plot(
            x,
            [100 * ratio for _, ratio in points],
            color=COLOURS[at % len(COLOURS)],
            label=name or None,
            linewidth=1.6,
            drawstyle="steps-post",
        )
    sizes = [size for points in curves.values() for size, _ in points if size > 0]
    if sizes and max(sizes) > 30 * min(sizes):
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(need("plots", "a plot", "matplotlib.ticker").ScalarFormatter())
    ax.set_xlabel("size of the cache, MiB")
    ax.set_ylabel("misses, %")
    ax.set_ylim(0, None)
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax


def timeline(
    result: Result, of: str | None = None, *, variant: str | None = None, seed: int | None = None, ax: Any = None
) -> Any:
    """One run over time.

    For the machine or a group: anonymous memory, file pages and swapped pages, and for the machine
    also the kernel's own and free memory. For a zone (``"zone node0 Normal"``): free memory with
    its range in each sample, and the watermarks. Ticks at the bottom mark direct reclaim.

    `of`, `variant` and `seed` are as for ``Result.timeline``.
    """
    columns = result.timeline(of, variant=variant, seed=seed).to_dict()
    if not ({"free_min_pages", "anon_pages"} & set(columns)):
        has = ", ".join(list(columns)[1:4])
        hint = f"only the machine, groups and zones can be plotted; `result.timeline({of!r})` has {has} ..."
        raise InputError(f"there is no plot of {of!r}", hint)
    mib = _page_size(result) / (1 << 20)
    ax = _axes(ax)
    time = columns["time_s"]

    def pages(name: str) -> list[float]:
        return [math.nan if value is None else value * mib for value in columns[name]]

    if "free_pages" in columns:
        ax.fill_between(
            time, pages("free_min_pages"), pages("free_max_pages"), color=COLOURS[0], alpha=0.2, linewidth=0
        )
        ax.plot(time, pages("free_pages"), color=COLOURS[0], linewidth=1.4, label="free")
        for name, colour in (("high", COLOURS[2]), ("low", COLOURS[4]), ("min", COLOURS[1])):
            ax.plot(time, pages(f"{name}_pages"), "--", color=colour, linewidth=1.0, label=name)
        # Watermarks are about 1 % of the memory, so use a logarithmic scale.
        ax.set_yscale("log")
    else:
        bands = {"anonymous": pages("anon_pages"), "file": pages("file_pages")}
        colours = [COLOURS[0], COLOURS[2]]
        if of is None:
            used, total = pages("usage_pages"), _memory_pages(result, variant, seed) * mib
            bands["kernel"] = [max(0.0, a - b - c) for a, b, c in zip(used, *bands.values())]
            bands["free"] = [max(0.0, total - value) for value in used]
            colours += [COLOURS[6], "#e6e9ed"]
        ax.stackplot(time, *bands.values(), labels=list(bands), colors=colours, alpha=0.85, linewidth=0)
        swapped = pages("swap_pages")
        if any(value > 0 for value in swapped):
            ax.plot(time, swapped, color=COLOURS[1], linewidth=1.4, label="in swap")
    direct = [at for at, count in zip(time, columns.get("pgscan_direct", [])) if count]
    if direct:
        ax.plot(
            direct, [0.0] * len(direct), "|", color=COLOURS[1], markersize=7, clip_on=False, label="direct reclaim"
        )
    ax.set_xlim(0, max(time, default=1.0))
    if "free_pages" not in columns:
        ax.set_ylim(0, None, auto=True)
    ax.set_xlabel("time, s")
    ax.set_ylabel("MiB")
    ax.set_title(f"{of or 'machine'}, {variant or result.variants[0]}", fontsize="medium")
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _page_size(result: Result) -> int:
    rows = result.rows
    return int(json.loads(rows[0]).get("page_size", 4096)) if rows else 4096


def _memory_pages(result: Result, variant: str | None, seed: int | None) -> float:
    """MemTotal of the machine, in pages."""
    meminfo = result.timeline("meminfo", variant=variant, seed=seed).to_dict()
    total = next((column[0] for name, column in meminfo.items() if name.startswith("MemTotal") and column), 0)
    return float(total) * 1024 / _page_size(result)


def _axes(ax: Any) -> Any:
    if ax is None:
        pyplot = need("plots", "a plot", "matplotlib.pyplot")
        _, ax = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    return ax


def _knob(sweep: Sweep, knob: str | None, at: int) -> str:
    if knob is None:
        if len(sweep.knobs) <= at:
            raise InputError(f"the sweep has {len(sweep.knobs)} knobs", f"this needs {at + 1}")
        return sweep.knobs[at]
    if knob not in sweep.knobs:
        raise InputError(f"the sweep has no knob {knob!r}", f"it has {', '.join(sweep.knobs)}")
    return knob


def _places(texts: Sequence[str]) -> tuple[dict[str, float], bool]:
    """Positions of the values of a knob on an axis, and whether it is logarithmic. Words are
    equidistant."""
    read = [quantities.read(text) for text in texts]
    numbers = [quantity.value for quantity in read if quantity is not None]
    if len(numbers) < len(texts) or len({quantity.kind for quantity in read if quantity}) > 1:
        return {text: float(at) for at, text in enumerate(texts)}, False
    is_log = len(numbers) > 2 and min(numbers) > 0 and max(numbers) >= 30 * min(numbers)
    return dict(zip(texts, numbers)), is_log


def _scale(values: Sequence[float], unit: str) -> tuple[float, str]:
    """A common unit for all values: the divisor and the name."""
    from .statistics import scale

    numbers = [abs(value) for value in values if math.isfinite(value)]
    return scale(max(numbers, default=0.0), unit)


def _label(metric: str, unit: str) -> str:
    return f"{metric}, {unit}" if unit else metric


def _from_zero(ax: Any) -> None:
    """Starts a metric's axis at 0, unless the values are far from 0."""
    low, high = ax.get_ylim()
    if low < 0.5 * high:
        ax.set_ylim(0, high)


def _confidence(mean: Mean) -> float:
    freedom = mean.runs - 1
    if freedom < 1:
        return math.nan
    t = _T95[freedom - 1] if freedom <= len(_T95) else 1.96 + 2.5 / freedom
    return t * mean.error


def _curves_of(table: Any) -> dict[str, list[tuple[float, float]]]:
    """The curves of a table of ``pagetide.mrc()``."""
    columns = table.to_dict()
    curves: dict[str, list[tuple[float, float]]] = {}
    for variant, size, ratio in zip(columns["variant"], columns["size"], columns["miss_ratio"]):
        curves.setdefault(variant, []).append((size, ratio))
    for name, key in (("LRU", "lru"), ("ARC", "arc"), ("S3-FIFO", "s3fifo"), ("Belady", "belady")):
        curves[name] = sorted(set(zip(columns["size"], columns[f"{key}_miss_ratio"])))
    return curves
