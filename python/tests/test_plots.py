"""Plots show the data in the caller's axes, and reject what they cannot draw."""

import math
import re

import pytest

import pagetide as pt

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from pagetide import plots  # noqa: E402


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


def test_a_curve_has_a_line_for_each_variant(alone):
    _, ax = pyplot.subplots()
    one = pt.sweep(alone.scenario, {"vm.swappiness": [0, 60, 200]}, seeds=4)
    assert plots.curve(one, "batch.walltime", ax=ax) is ax
    assert labels(ax) == ["before", "after"]
    mean = one.means("batch.walltime")[(("vm.swappiness", "60"),), "after"]["batch.walltime"]
    assert re.fullmatch("batch.walltime, (ms|s)", ax.get_ylabel())
    scale = 1000 if "ms" in ax.get_ylabel() else 1
    line = next(line for line in ax.get_lines() if line.get_label() == "after")
    assert list(line.get_xdata()) == [0, 60, 200]
    assert math.isclose(line.get_ydata()[1], mean.mean * scale)
    assert ax.get_xlabel() == "vm.swappiness"
    assert len(labels(plots.curve(alone, "batch.walltime"))) == 4, "of two knobs each setting of the other"


def test_a_heat_map_has_a_cell_for_each_point(alone):
    ax = plots.heat_map(alone, "batch.walltime", variant="after")
    cells = [text.get_text() for text in ax.texts]
    assert len(cells) == 6 and ax.get_title() == "after"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["64MiB", "72MiB"]
    with pytest.raises(pt.InputError, match="two knobs"):
        plots.heat_map(alone, "batch.walltime", x="vm.swappiness", y="vm.swappiness")
    with pytest.raises(pt.InputError, match="no knob 'vm.swapiness'"):
        plots.heat_map(alone, "batch.walltime", x="vm.swapiness")
    with pytest.raises(pt.InputError, match="did you mean `batch.walltime`"):
        plots.heat_map(alone, "batch.waltime")
    with pytest.raises(pt.InputError, match="no variant"):
        plots.heat_map(alone, "batch.walltime", variant="while")


def test_bars_of_variants_with_confidence(tiny):
    result = tiny.run(seeds=4)
    ax = plots.compare(result, "batch.walltime")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["before", "after"]
    ax = plots.compare(result, ["batch.walltime", "service.walltime"])
    assert labels(ax) == ["before", "after"] and ax.get_ylabel() == "share of before"
    firsts = [bar.get_height() for bar in ax.patches[:2]]
    assert all(math.isclose(height, 1.0) for height in firsts)
    with pytest.raises(pt.InputError, match="no run has a metric `nothing`"):
        plots.compare(result, "nothing")
    with pytest.raises(pt.InputError, match="no metrics"):
        plots.compare(result, [])


def test_latencies_fall_from_one(tiny):
    result = tiny.run(seeds=2, latencies=True)
    ax = plots.latency(result)
    for line in ax.get_lines()[:2]:
        y = list(line.get_ydata())
        assert y[0] == 1.0 and y == sorted(y, reverse=True) and y[-1] > 0
        assert list(line.get_xdata()) == sorted(line.get_xdata())
    with pytest.raises(pt.InputError, match="no latencies of 'web'"):
        plots.latency(result, "web")
    with pytest.raises(pt.Error, match="latencies=True"):
        plots.latency(tiny.run(seeds=1))


def test_miss_ratios_of_several_traces():
    ax = plots.miss_ratio({"lru": [(1 << 20, 0.9), (64 << 20, 0.1)], "fifo": [(1 << 20, 0.95), (64 << 20, 0.2)]})
    assert labels(ax) == ["lru", "fifo"] and ax.get_xscale() == "log"


def test_a_timeline_shows_the_machine_a_group_and_a_zone(tiny):
    result = tiny.run(seeds=1)
    ax = plots.timeline(result, variant="after")
    assert labels(ax)[:4] == ["anonymous", "file", "kernel", "free"] and ax.get_title() == "machine, after"
    top = max(path.vertices[:, 1].max() for band in ax.collections for path in band.get_paths())
    assert 50 < top < 57, "all bands together are the memory of 56 MiB"
    ax = plots.timeline(result, "zone node0 DMA32")
    assert labels(ax)[:4] == ["free", "high", "low", "min"] and ax.get_yscale() == "log"
    with pytest.raises(pt.InputError, match="no group"):
        plots.timeline(result, "nobody")
    for of in ("batch", "node0", "vmstat", "meminfo"):
        with pytest.raises(pt.InputError, match=f"no plot of '{of}'"):
            plots.timeline(result, of)


def test_miss_ratios_of_a_trace(request):
    trace = request.config.rootpath / "experiments/traces/cc1-zpipe.ptt"
    ax = plots.miss_ratio(pt.mrc(trace, "2MiB..16MiB/3"))
    assert labels(ax) == ["linux", "LRU", "ARC", "S3-FIFO", "Belady"] and len(ax.get_lines()) == 5
