"""A calibration finds hidden parameters, reports undetermined ones, and does not depend on the
executor."""

import json
import math
import statistics

import pytest

import pagetide as pt
from pagetide.fits import Trial
from pagetide.likelihood import limit, moved, outermost
from pagetide.parameters import parameters
from pagetide.statistics import Mean
from pagetide.targets import loss, missed, targets

pytest.importorskip("optuna")

HIDDEN = {"task.reader.size": "32MiB", "machine.disk.disk.read_bandwidth": "100MiB/s"}
FREE = {"task.reader.size": ("24MiB", "64MiB"), "machine.disk.disk.read_bandwidth": ("30MiB/s", "500MiB/s")}
LOAD = """
name = "two-passes"
[machine]
memory = "24MiB"
swap = "128MiB"
[[machine.disk]]
name = "disk"
model = "ssd"
[[task]]
name = "reader"
workload = "touch"
size = "32MiB"
passes = 2
[[task]]
name = "idler"
workload = "touch"
size = "1MiB"
[[variant]]
name = "before"
[[variant]]
name = "after"
set = { "machine.memory" = "20MiB" }
"""


@pytest.fixture(scope="module")
def load():
    return pt.load(LOAD)


@pytest.fixture(scope="module")
def seen(load):
    """The figures of a machine with hidden parameters, by variant and metric."""
    found = {}
    for row in load.set(HIDDEN).run(seeds=6).metrics.to_dicts():
        found.setdefault(row["variant"], {}).setdefault(row["metric"], []).append(row["value"])
    return {variant: {name: sum(of) / len(of) for name, of in metrics.items()} for variant, metrics in found.items()}


TARGETS = ["reader.walltime", "pswpin", "reader.pgmajfault"]


@pytest.fixture(scope="module")
def fitted(load, seen):
    wanted = {name: (seen["before"][name], "10 %") for name in TARGETS}
    return pt.calibrate(load, FREE, wanted, variant="before", trials=32, seeds=4)


def test_what_was_hidden_is_found_and_the_other_variant_predicted(fitted, seen):
    for parameter in fitted.parameters:
        off = parameter.share(fitted.best.point[parameter.key]) - parameter.share(HIDDEN[parameter.key])
        assert abs(off) < 0.15, str(fitted)
    predicted = {(it.variant, it.metric): it for it in fitted.predictions}
    for name in TARGETS:
        it = predicted["after", name]
        assert it.low <= it.value <= it.high
        assert abs(it.value / seen["after"][name] - 1) < 0.2, str(fitted)
    assert fitted.fitted.overrides == fitted.best.point
    assert "reader.walltime" in fitted.against({"after": seen["after"]})
    with pytest.raises(pt.InputError, match="'30MiB' is in bytes"):
        fitted.against({"after": {"reader.walltime": "30MiB"}})
    assert "two-passes" in str(fitted) and "<pre style" in fitted._repr_html_()
    assert fitted.predictions[0].variant == "before"


def test_what_the_data_do_not_determine_is_said(load, seen):
    """Parameters without influence are reported, although the best trials of the search agree on
    them."""
    free = {**FREE, "task.idler.size": ("128KiB", "1MiB")}
    wanted = {name: (seen["before"][name], "20 %") for name in TARGETS}
    for seed in (1, 1000):
        found = pt.calibrate(load, free, wanted, variant="before", trials=16, seeds=1, seed=seed)
        by_key = {it.key: it for it in found.determined}
        assert not by_key["task.idler.size"].is_determined, str(found)
        assert by_key["task.reader.size"].share < by_key["task.idler.size"].share
        assert "not determined" in str(found)


def test_one_trial_determines_nothing(load, seen):
    wanted = {name: (seen["before"][name], "20 %") for name in TARGETS}
    free = {"task.idler.size": ("128KiB", "1MiB")}
    [found] = pt.calibrate(load.set(HIDDEN), free, wanted, variant="before", trials=1, seeds=1).determined
    assert found.share > 0.8 and (found.low, found.high) == ("128KiB", "1MiB")


def test_places_are_all_over_the_range():
    size, kind = parameters({("task.a.size", "task.b.size"): ("10MiB", "20MiB"), "task.a.kind": ["x", "y", "z"]})
    best = {"task.a.size": "11MiB", "task.b.size": "11MiB", "task.a.kind": "y"}
    points = moved(best, size)
    assert all(point["task.a.size"] == point["task.b.size"] and point["task.a.kind"] == "y" for point in points)
    sizes = [point["task.a.size"] for point in points]
    assert {size.at(share) for share in (0, 0.5, 1)} <= set(sizes)
    assert "11MiB" not in sizes and len(sizes) == len(set(sizes))
    fits = [Trial(point, 1.0) for point in points]
    assert [fit.point["task.a.size"] for fit in outermost(size, fits)] == [size.at(0), size.at(1)]
    assert [point["task.a.kind"] for point in moved(best, kind)] == ["x", "z"]


def test_noise_is_no_misfit():
    """If targets are met within the noise of few seeds, worse fits are not accepted as good."""
    wanted = targets({name: (100, 10) for name in "abc"})
    noisy = dict.fromkeys("abc", mean(80, 120))
    assert loss(wanted, noisy) > 3 and missed(wanted, noisy) == 0
    assert limit(4.83, 0.0, 2, 3) - 4.83 == pytest.approx(5.99, abs=0.1)
    assert limit(20, 20, 2, 3) - 20 == pytest.approx(20 * 5.99, rel=0.02), "all fits miss: the limit is wider"


def test_what_is_reported_is_of_seeds_that_chose_nothing(load, seen, tmp_path):
    wanted = {name: (seen["before"][name], "10 %") for name in TARGETS}
    found = pt.calibrate(load, FREE, wanted, variant="before", trials=16, seeds=1, store=tmp_path)
    rows = map(json.loads, (tmp_path / "runs.jsonl").read_bytes().splitlines())
    runs = [(row["variant"], row["seed"], row["knobs"]) for row in rows]
    good = [fit.point for fit in found.good]
    assert len(found.seeds) == 3 and len(good) < 16
    assert all(point in good for _, seed, point in runs if seed in found.seeds), "no other was looked at with these"
    assert {seed for variant, seed, _ in runs if variant == "after"} == set(found.seeds)
    best = found.fitted.run(seeds=found.seeds, variants=["before"]).metrics.to_dicts()
    values = [row["value"] for row in best if row["metric"] == "reader.walltime"]
    assert found.means[0]["before"]["reader.walltime"].mean == pytest.approx(sum(values) / 3)


def test_anybody_makes_the_same_calibration_and_it_is_resumed(load, seen, tmp_path, processes):
    wanted = {name: seen["before"][name] for name in TARGETS}
    options = {"variant": "before", "seeds": 1}
    alone = pt.calibrate(load, FREE, wanted, trials=12, **options)
    elsewhere = pt.calibrate(load, FREE, wanted, trials=12, executor=processes, **options)
    pt.calibrate(load, FREE, wanted, trials=8, store=tmp_path, **options)
    told: list[tuple[int, int]] = []
    resumed = pt.calibrate(
        load, FREE, wanted, trials=12, store=tmp_path, progress=lambda *it: told.append(it), **options
    )
    assert (12, 12) in told
    for other in (elsewhere, resumed):
        assert other.trials == alone.trials and other.good == alone.good and str(other) == str(alone)
    before = (tmp_path / "runs.jsonl").stat().st_mtime_ns
    again = pt.calibrate(load, FREE, wanted, trials=12, store=tmp_path, **options)
    assert str(again) == str(alone)
    assert before == (tmp_path / "runs.jsonl").stat().st_mtime_ns, "nothing was run"


def test_only_workload_and_hardware_are_free(load):
    for key in ("vm.swappiness", "policy.lru", "group.web.memory.high", "cost.fault", "sysctl.vm.swappiness"):
        with pytest.raises(pt.InputError, match="may not be free"):
            pt.calibrate(load, {key: (1, 2)}, {"pswpin": 3})
    with pytest.raises(pt.ScenarioError):
        pt.calibrate(load, {"task.redaer.size": ("1MiB", "2MiB")}, {"pswpin": 3})


@pytest.mark.parametrize(
    ("free", "wanted", "message"),
    [
        ({}, {"pswpin": 1}, "nothing is free"),
        ({"task.reader.size": ("2MiB", "1MiB")}, {"pswpin": 1}, "is reversed or empty"),
        ({"task.reader.size": ("2MiB", "1s")}, {"pswpin": 1}, "is not a range"),
        ({"task.reader.size": "2MiB"}, {"pswpin": 1}, "is not a range"),
        ({"task.reader.size": ["2MiB"]}, {"pswpin": 1}, "is not a choice"),
        ({(): (1, 2)}, {"pswpin": 1}, "without a key"),
        ({"task.reader.size": ["32MiB", "32MiB"]}, {"pswpin": 1}, "32MiB occurs twice"),
        ({"task.reader.size": ["32MiB", "32768KiB"]}, {"pswpin": 1}, "occurs twice"),
        (FREE, {}, "no targets"),
        (FREE, {"pswpin": "many"}, "is not a figure"),
        (FREE, {"pswpin": (3, 0)}, "is not a deviation"),
        (FREE, {"pswpinn": 3}, "did you mean `pswpin`"),
        (
            FREE,
            {"reader.walltime": "30MiB"},
            "reader.walltime: '30MiB' is in bytes, but the unit of the metric is seconds",
        ),
        (FREE, {"reader.walltime": ("30ms", "1MiB")}, "'1MiB' is in bytes"),
        (FREE, {"reader.walltime": "3 %"}, "is in percent"),
        (FREE, {"pswpin": ("64KiB", "5 %")}, "'64KiB' is in bytes, but the unit of the metric is count"),
    ],
)
def test_what_cannot_be_fitted_is_refused(load, free, wanted, message):
    with pytest.raises(pt.InputError, match=message):
        pt.calibrate(load, free, wanted, trials=2, seeds=1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"seed": -5}, pt.InputError),
        ({"seed": 2**40}, pt.InputError),
        ({"trials": 0}, pt.InputError),
        ({"trials": 2.5}, TypeError),
        ({"seeds": True}, TypeError),
    ],
)
def test_numbers_that_are_none_are_refused(load, options, error):
    with pytest.raises(error):
        pt.calibrate(load, FREE, {"pswpin": 1}, **{"trials": 2, "seeds": 1, **options})


def mean(*values, killed=0):
    middle = statistics.mean(values) if values else math.nan
    return Mean("count", middle, statistics.stdev(values) if len(values) > 1 else math.nan, len(values), killed)


def test_a_deviation_off_is_one_and_ratios_count():
    [target] = targets({"m": (100, 10)})
    assert target.distance(100) == 0 and abs(target.distance(110) - 1) < 1e-9
    assert abs(target.distance(1000) + target.distance(10)) < 8
    assert loss([target], {"m": mean(110)}) == pytest.approx(1)
    # A mean with a large spread over two seeds counts less.
    assert loss([target], {"m": mean(100, 200)}) < loss([target], {"m": mean(150, 150)})
    [zero] = targets({"m": (0, 5)})
    assert zero.distance(5) == pytest.approx(1)


def test_what_was_not_measured_costs_more_than_what_was():
    [target] = targets({"m": ("12.5s", "0.3s")})
    measured = [loss([target], {"m": mean(12.5 * times, 12.5 * times)}) for times in (1, 1.1, 1.5, 2, 10, 1e6)]
    measured.append(loss([target], {"m": mean(0, 1e9)}))
    killed = loss([target], {"m": mean(killed=2)})
    assert measured[:6] == sorted(measured[:6]) and max(measured) < killed == loss([target], {})
    # Each killed run adds its share.
    losses = [loss([target], {"m": mean(*[13.0] * (4 - nr), killed=nr)}) for nr in range(5)]
    assert losses == sorted(set(losses)) and losses[2] - losses[1] == pytest.approx(losses[1] - losses[0], rel=0.1)


def test_values_are_ones_that_can_be_typed():
    size, time, number, choice = parameters(
        {
            "task.a.size": ("64KiB", "2MiB"),
            "machine.x": ("20us", "2ms"),
            "task.b.accesses": (10, 5000),
            "task.c": ["a", "b"],
        }
    )
    assert size.at(0) == "64KiB" and size.at(1) == "2MiB" and size.is_log
    assert size.at(0.37).endswith("KiB")
    assert time.at(0.5) == "200us" and time.share("200us") == pytest.approx(0.5)
    assert number.at(0.5).isdigit()
    assert json.dumps(choice.values) == '["a", "b"]'
    [switch] = parameters({"task.a.random": [True, False]})
    assert switch.values == ("true", "false"), "as TOML has them"
    with pytest.raises(TypeError, match="a key, or a tuple of keys"):
        parameters({5: (1, 2)})
