"""The points of sweeps, and the errors for invalid grids."""

import importlib.util
import math
from concurrent import futures

import pytest

import pagetide as pt
from pagetide import _pagetide, frames, quantities
from pagetide.grid import column_kind
from pagetide.records import Measured, Run
from pagetide.statistics import Mean


def test_a_grid_is_all_combinations_and_a_list_is_its_points(tiny):
    grid = pt.sweep(tiny, {"vm.swappiness": [0, 60.0], "machine.memory": ["64MiB"]}, seeds=1, variants="before")
    assert grid.points == [
        {"vm.swappiness": "0", "machine.memory": "64MiB"},
        {"vm.swappiness": "60", "machine.memory": "64MiB"},
    ]
    points = pt.sweep(tiny, list(reversed(grid.points)), seeds=1, variants="before")
    assert points.metrics.to_dicts() == grid.metrics.to_dicts()
    columns = grid.metrics.columns
    assert columns == [
        *("variant", "vm.swappiness", "machine.memory", "machine.memory.bytes"),
        *("seed", "metric", "unit", "value", "ended"),
    ]
    first = grid.metrics.to_dicts()[0]
    assert (first["vm.swappiness"], first["machine.memory"]) == (0, "64MiB")
    assert first["machine.memory.bytes"] == 64 << 20
    assert grid.summary("pswpout").to_dict()["machine.memory.bytes"][0] == 64 << 20
    with pytest.raises(pt.InputError, match="no run has the metric 'batch.waltime'") as caught:
        grid.select("batch.walltime", "batch.waltime")
    assert "batch.walltime" in caught.value.hint
    assert "batch.walltime" in str(grid) and "<table>" in grid._repr_html_()
    twice = pt.sweep(
        tiny, [{"vm.swappiness": 0}, {"vm.swappiness": "0"}], seeds=[2], variants=["before", "before"]
    )
    assert len(twice) == 1
    ranges = pt.sweep(tiny, {"vm.swappiness": "0..100/3"}, seeds=1, variants="before")
    assert [point["vm.swappiness"] for point in ranges.points] == ["0", "50", "100"]
    values = pt.sweep(tiny, {"vm.swappiness": (0, 100)}, seeds=1, variants="before")
    assert [point["vm.swappiness"] for point in values.points] == ["0", "100"], "a tuple is values"
    alone = pt.sweep(tiny, [{}], seeds=2)
    assert alone.result().rows == tiny.run(seeds=2).rows


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ({"vm.swapiness": [1]}, pt.ScenarioError, "did you mean `vm.swappiness`"),
        ({"vm.swappiness": [60, 999]}, pt.ScenarioError, "it takes 0 to 200"),
        ({"vm.swappiness": []}, pt.InputError, "has no values"),
        ({"vm.swappiness": "5..1"}, pt.InputError, "vm.swappiness"),
        ({"vm.swappiness": 3}, TypeError, "a list of values or a range"),
        ([], pt.InputError, "no points"),
        ("vm.swappiness", TypeError, "a grid must be"),
        ({"vm.swappiness": [None]}, pt.ScenarioError, "None"),
    ],
)
def test_invalid_grids(tiny, grid, error, message):
    with pytest.raises(error, match=message):
        pt.sweep(tiny, grid, executor="not used before the grid is checked")


def test_all_mistakes_are_said_at_once(tiny):
    with pytest.raises(pt.ScenarioError) as caught:
        pt.sweep(tiny, {"vm.swapiness": [1], "vm.swappiness": [10, 999], "task.btach.size": ["1MiB"]})
    assert len(caught.value.diagnostics) == 3
    assert {it["key"] for it in caught.value.diagnostics} >= {"vm.swapiness"}


@pytest.mark.parametrize(
    ("seeds", "error"),
    [
        *((wrong, pt.InputError) for wrong in (0, -1, 10**9, [], "a", range(20_000))),
        *((wrong, pt.InputError) for wrong in ([-1], [2**64], [1.7], [True], [2, 2])),
        *((wrong, TypeError) for wrong in (True, 1.5)),
    ],
)
def test_seeds_that_are_none(tiny, seeds, error):
    with pytest.raises(error):
        pt.sweep(tiny, {"vm.swappiness": [1]}, seeds=seeds)
    # `Scenario.run` has the same rule.
    if seeds != [True]:
        with pytest.raises(error):
            tiny.run(seeds=seeds)


def test_seeds_of_other_kinds_of_whole_numbers(tiny):
    class Whole:
        def __index__(self):
            return 2

    def seeds(given):
        return pt.sweep(tiny, [{}], seeds=given, variants="before").seeds

    assert seeds(Whole()) == [1, 2] and seeds([Whole(), 5]) == [2, 5]


def test_numbers_of_64_bits_come_through(tiny, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    large = 2**63
    options = {"seeds": [large, 2**64 - 1], "variants": "before"}
    for made in (pt.sweep(tiny, [{}], **options), pt.sweep(tiny, [{}], store=tmp_path, **options)):
        table = pa.table(made.select("batch.walltime"))
        assert table["seed"].to_pylist() == [large, 2**64 - 1] and table["seed"].type == pa.uint64()
        assert pl.DataFrame(made.select("batch.walltime"))["seed"].to_list() == [large, 2**64 - 1]
    # A value that does not fit into a column of integers stays text.
    assert column_kind([str(large)]) == column_kind([str(large), "1"]) == "text"
    assert column_kind([str(large - 1), "1", str(-large)]) == "whole"


def test_an_arrow_stream_by_polars_alone(tiny, monkeypatch):
    pl = pytest.importorskip("polars")
    made = pt.sweep(tiny, [{}], seeds=[2**63, 1], variants="before").select("batch.walltime")
    by_arrow = pl.DataFrame(made)
    real = importlib.util.find_spec
    monkeypatch.setattr(frames, "find_spec", lambda name: None if name == "pyarrow" else real(name))
    assert pl.DataFrame(made).equals(by_arrow) and pl.DataFrame(made).schema == by_arrow.schema


def test_variants_that_are_none(tiny):
    with pytest.raises(pt.InputError, match="no variant 'while'"):
        pt.sweep(tiny, {"vm.swappiness": [1]}, variants=["while"])


def test_a_metric_that_is_none_is_said_with_the_nearest(alone):
    with pytest.raises(pt.InputError, match="did you mean 'batch.walltime'"):
        alone.summary("batch.waltime").to_dicts()
    with pytest.raises(pt.InputError, match="no point"):
        alone.result({"vm.swappiness": 3})


def test_runs_that_fail_are_said_and_the_others_are_there(tiny, tmp_path, monkeypatch):
    real = _pagetide.perform

    def perform(scenario, runs, **options):
        bad = [
            {"variant": variant, "seed": seed, "message": "cursed", "hint": None}
            for variant, seed in runs
            if seed == 2
        ]
        if bad:
            raise pt.RunError(bad)
        return real(scenario, runs, **options)

    monkeypatch.setattr(_pagetide, "perform", perform)
    grid = {"vm.swappiness": [0, 60]}
    with pytest.warns(RuntimeWarning, match="4 of 12 runs failed; the first: after, vm.swappiness=0, seed 2: cursed"):
        made = pt.sweep(tiny, grid, seeds=3, store=tmp_path)
    assert len(made) == 8 and {it.seed for it in made.failed} == {2}
    with pytest.raises(pt.RunError) as caught:
        tiny.run(seeds=3, executor=futures.ThreadPoolExecutor(1))
    assert len(caught.value.failures) == 2 and len(caught.value.result) == 4
    monkeypatch.undo()
    again = pt.sweep(tiny, grid, seeds=3, store=tmp_path)
    assert len(again) == 12 and not again.failed


def test_a_row_comes_through_to_the_last_bit(alone, tiny):
    for row in alone.rows:
        run = Run.of_row(row, {})
        assert Run.of_row(run.row(), {}) == run
        assert (
            pt.Result.from_rows(tiny.set(alone.points[0]), [run.row()]).rows == [row]
            if (run.digest == tiny.set(alone.points[0]).digest)
            else True
        )


def test_means_leave_out_what_is_no_measurement():
    mean = Mean("seconds")
    for value, ended in ((1.0, None), (3.0, None), (100.0, "cut"), (math.nan, None)):
        mean.add(Measured(value, "seconds", ended))
    assert (mean.mean, mean.count, mean.ended) == (2.0, 2, 2)
    assert mean.deviation == pytest.approx(math.sqrt(2)) and str(mean) == "2.0 ± 1.4 s†"
    assert str(Mean("count")) == "-"


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("64KiB", 65536, "bytes"),
        ("1.5GiB", 1.5 * (1 << 30), "bytes"),
        ("200us", 2e-4, "seconds"),
        ("100MiB/s", 100 << 20, "bytes-per-second"),
        ("5 %", 5, "percent"),
        ("20_000", 20000, "number"),
        (7, 7, "number"),
    ],
)
def test_quantities_are_read_and_written(text, value, kind):
    assert quantities.read(text) == (value, kind)
    assert quantities.read(quantities.write(value, kind)) == (value, kind)


@pytest.mark.parametrize("text", ["", "max", "1x", "GiB", None, True, math.inf, "1 s/s"])
def test_what_is_no_quantity(text):
    assert quantities.read(text) is None


def test_polars_alone_reads_a_frame(alone, monkeypatch):
    pl = pytest.importorskip("polars")
    there = frames.find_spec
    monkeypatch.setattr(frames, "find_spec", lambda name: None if name == "pyarrow" else there(name))
    monkeypatch.setattr(frames.Frame, "reader", None)
    made = pl.DataFrame(alone.select("batch.walltime"))
    assert made.height == 48 and made["vm.swappiness"].sum() == sum(
        row["vm.swappiness"] for row in alone.select("batch.walltime")
    )
