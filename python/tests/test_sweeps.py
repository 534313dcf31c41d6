"""The points of sweeps, and the errors for invalid grids."""

import json
import math
import statistics
from concurrent import futures
from pathlib import Path

import pytest

import pagetide as pt
from pagetide import _pagetide, quantities
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
    with pytest.raises(pt.InputError, match="no run has a metric `batch.waltime`") as caught:
        grid.select("batch.walltime", "batch.waltime")
    assert "batch.walltime" in caught.value.hint
    assert "batch.walltime" in str(grid) and "<pre" in grid._repr_html_()
    twice = pt.sweep(
        tiny, [{"vm.swappiness": 0}, {"vm.swappiness": "0"}], seeds=[2], variants=["before", "before"]
    )
    assert len(twice) == 1
    ranges = pt.sweep(tiny, {"vm.swappiness": "0..100/3"}, seeds=1, variants="before")
    assert [point["vm.swappiness"] for point in ranges.points] == ["0", "50", "100"]
    values = pt.sweep(tiny, {"vm.swappiness": (0, 100)}, seeds=1, variants="before")
    assert [point["vm.swappiness"] for point in values.points] == ["0", "100"], "a tuple is values"
    mixed = pt.sweep(tiny, [{"vm.swappiness": Path("60")}, {}], seeds=1, variants="before")
    assert mixed.select("pswpout")["vm.swappiness"] == [None, 60] and mixed.knobs == ["vm.swappiness"]
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
        ({"vm.swappiness": [None]}, pt.InputError, "None"),
        ({"vm.swappiness": range(30_000)}, pt.InputError, "too many points"),
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


def test_variants_that_are_none(tiny):
    with pytest.raises(pt.InputError, match="no variant `while`"):
        pt.sweep(tiny, {"vm.swappiness": [1]}, variants=["while"])


def test_a_metric_that_is_none_is_said_with_the_nearest(alone):
    with pytest.raises(pt.InputError, match="did you mean `batch.walltime`"):
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
    with futures.ThreadPoolExecutor(2) as pool:
        said = "4 of 12 runs failed; the first: after, vm.swappiness=0, seed 2: cursed"
        with pytest.warns(RuntimeWarning, match=said):
            made = pt.sweep(tiny, grid, seeds=3, store=tmp_path, executor=pool)
    assert len(made) == 8 and {it.seed for it in made.failed} == {2}
    with pytest.raises(pt.RunError) as caught:
        tiny.run(seeds=3, executor=futures.ThreadPoolExecutor(1))
    assert len(caught.value.failures) == 2 and len(caught.value.result) == 4
    monkeypatch.undo()
    again = pt.sweep(tiny, grid, seeds=3, store=tmp_path)
    assert len(again) == 12 and not again.failed


def test_means_leave_out_what_is_no_measurement(tiny, tmp_path):
    made = pt.sweep(tiny, [{}], seeds=4, variants="before", store=tmp_path)
    values = made.select("batch.walltime")["value"]
    file = tmp_path / "runs.jsonl"
    rows = [json.loads(row) for row in made.rows]
    rows[3]["metrics"]["batch.walltime"] |= {"value": 100.0, "ended": "cut"}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = pt.sweep(tiny, [{}], seeds=4, variants="before", store=tmp_path)
    [row] = made.summary("batch.walltime")
    assert row["mean"] == pytest.approx(statistics.mean(values[:3])) and (row["runs"], row["ended"]) == (3, 1)
    assert row["deviation"] == pytest.approx(statistics.stdev(values[:3]))
    mean = made.means("batch.walltime")[(), "before"]["batch.walltime"]
    assert mean == Mean("seconds", row["mean"], row["deviation"], 3, 1)
    assert "†" in made.table("batch.walltime") and "†" in str(mean)
    assert str(Mean("seconds", 2.0, math.sqrt(2), 2)) == "2.0 ± 1.4 s" and str(Mean("count")) == "-"


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
