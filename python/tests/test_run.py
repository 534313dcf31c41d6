"""Runs: the figures match the command's and those of many processes; ^C; threads."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pagetide as pt
from pagetide._pagetide import perform

from conftest import SMALL


def command(*arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    whole = [sys.executable, "-m", "pagetide", *arguments]
    return subprocess.run(whole, capture_output=True, text=True, cwd=cwd, env={**os.environ, "COLUMNS": "100"})


def test_figures_are_those_of_the_command(small: pt.Scenario, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    result = small.run()
    ran = command("run", "small.toml", "--format", "json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == result.json()
    assert command("run", "small.toml", "--format", "csv", cwd=tmp_path).stdout == result.csv()
    table = command("run", "small.toml", "--no-why", cwd=tmp_path).stdout
    assert table == result.table() == str(result)
    assert command("run", "nothing-like-it").returncode == 2
    assert command("--version").stdout == f"pagetide {pt.__version__}\n"


def test_tables(small: pt.Scenario) -> None:
    result = small.run(seeds=3)
    assert len(result) == 6 and result.seeds == [1, 2, 3] and "2 variants, 6 runs" in repr(result)
    metrics = result.metrics
    assert metrics.columns == ["variant", "seed", "metric", "unit", "value", "ended"]
    assert metrics.shape == (len(metrics), 6)
    assert metrics[0] == next(iter(metrics)) == metrics.to_dicts()[0] and metrics[-1]["seed"] == 3
    assert metrics["seed"] == metrics.to_dict()["seed"]
    with pytest.raises(KeyError):
        metrics["sed"]
    with pytest.raises(IndexError):
        metrics[len(metrics)]
    compared = {row["metric"]: row for row in result.compare()}
    walltime = compared["service.walltime"]
    document = json.loads(result.json())
    for side, variant in (("a", document["variants"][0]), ("b", document["variants"][1])):
        assert walltime[f"mean_{side}"] == variant["metrics"]["service.walltime"]["mean"]
        assert walltime[f"sd_{side}"] == variant["metrics"]["service.walltime"]["stddev"]
    assert walltime["change_percent"] < -20 and 0 <= walltime["p"] <= 1
    assert result.compare("memory.low", "unprotected", "service.walltime")[0]["mean_a"] == walltime["mean_b"]
    assert len(result.compare(metrics="*")) > 200
    assert "<pre style" in result._repr_html_() and "<table>" in metrics._repr_html_()
    assert any("service" in sentence for sentence in result.why)


def test_over_time(small: pt.Scenario, tmp_path: Path) -> None:
    result = small.run(seeds=1)
    web = result.timeline("web")
    assert web.columns[:2] == ["time_s", "usage_pages"] and max(web["usage_pages"]) > 1000
    for of in (None, "service", "task batch", "group web", "node0", "zone node0 DMA32", "vmstat", "meminfo"):
        assert len(result.timeline(of, seed=1)) == len(web), of
    assert result.timeline("web", variant="memory.low").to_dict() != web.to_dict()
    with pytest.raises(pt.InputError, match="did you mean `web`"):
        result.timeline("wbe")
    with pytest.raises(pt.InputError, match="seed 7"):
        result.timeline(seed=7)
    events = result.events("memory.low")
    assert events.columns[:4] == ["ns", "cpu", "comm", "event"]
    assert "mm_vmscan_kswapd_wake" in events["event"]
    assert events["ns"] == sorted(events["ns"])
    page = result.html()
    assert "<html" in page and "small" in page
    assert result.html(tmp_path / "page.html") is None and (tmp_path / "page.html").read_text() == page
    latencies = small.run(seeds=1, latencies=True).latencies()
    assert set(latencies.columns) == {"of", "up_to_s", "count"} and len(latencies) > 0
    with pytest.raises(pt.InputError, match="no run has kept latencies") as caught:
        result.latencies()
    assert "latencies=True" in caught.value.hint


def test_a_page_replaces_only_a_page(small: pt.Scenario, tmp_path: Path) -> None:
    result = small.run(seeds=1)
    script = tmp_path / "script.py"
    script.write_text("print()")
    with pytest.raises(pt.InputError, match="script.py exists and is not an HTML page"):
        result.html(script)
    assert script.read_text() == "print()"
    with pytest.raises(pt.InputError, match="no directory .*absent"):
        result.html(tmp_path / "absent" / "page.html")
    for _ in range(2):
        result.html(tmp_path / "page.html", timeline=False)


def test_a_summary_has_one_number_for_each_metric(small: pt.Scenario) -> None:
    result = small.run(seeds=2)
    [row] = [row for row in result.summary("service.walltime") if row["variant"] == "memory.low"]
    values = [
        row["value"]
        for row in result.metrics
        if row["variant"] == "memory.low" and row["metric"] == "service.walltime"
    ]
    assert row["mean"] == pytest.approx(sum(values) / 2) and (row["runs"], row["ended"]) == (2, 0)
    assert row["deviation"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert set(result.summary()["metric"]) == set(result.compare()["metric"])
    with pytest.raises(pt.InputError, match="no run has a metric"):
        result.summary("service.waltime")


def test_other_libraries_read_them(small: pt.Scenario) -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    metrics = small.run(seeds=1).metrics
    frame = polars.DataFrame(metrics)
    assert frame.shape == metrics.shape and frame["value"].to_list() == metrics["value"]
    assert pyarrow.table(metrics).to_pylist() == metrics.to_dicts()
    # The capsule may be used once or never.
    metrics.__arrow_c_stream__()


def test_the_same_bytes_whoever_runs_it(small: pt.Scenario) -> None:
    result = small.run(seeds=[5, 3], jobs=1)
    assert "3, 5 (2 repeats)" in str(result)
    assert result.rows == small.run(seeds=[3, 5], jobs=4).rows
    runs = [(variant, seed) for seed in (3, 5) for variant in small.variants]
    code = (
        "import pickle, sys; from pagetide._pagetide import perform;"
        "scenario, runs = pickle.load(sys.stdin.buffer);"
        "sys.stdout.buffer.write(pickle.dumps(perform(scenario, runs)))"
    )
    sent = pickle.dumps((small, runs))
    ran = subprocess.run([sys.executable, "-c", code], input=sent, stdout=subprocess.PIPE, check=True)
    rows = pickle.loads(ran.stdout)
    gathered = pt.Result.from_rows(small, reversed(rows))
    assert gathered.rows == result.rows and gathered.json() == result.json() and str(gathered) == str(result)
    with pytest.raises(pt.VersionError, match="is of the scenario"):
        pt.Result.from_rows(small.set({"vm.swappiness": 1}), rows)
    with pytest.raises(pt.VersionError, match="pagetide 9"):
        pt.Result.from_rows(small, [rows[0].replace(b'"version":"', b'"version":"9.')])
    with pytest.raises(pt.InputError, match="not a run"):
        pt.Result.from_rows(small, [b"{}"])
    with pytest.raises(pt.InputError, match="two runs"):
        pt.Result.from_rows(small, [rows[0], rows[0]])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"seeds": 0}, pt.InputError),
        ({"seeds": []}, pt.InputError),
        ({"seeds": [1, 1]}, pt.InputError),
        ({"seeds": [-1]}, pt.InputError),
        ({"seeds": 10**30}, pt.InputError),
        ({"seeds": True}, TypeError),
        ({"seeds": 1.5}, TypeError),
        ({"jobs": 0}, ValueError),
        ({"jobs": "2"}, TypeError),
        ({"variants": ["x"]}, pt.ScenarioError),
        ({"variants": 3}, TypeError),
        ({"progress": 3}, TypeError),
        ({"seed": 3}, TypeError),
        ({"set": {"vm.swappiness": 999}}, pt.ScenarioError),
    ],
)
def test_bad_input(small: pt.Scenario, arguments: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        small.run(**arguments)  # type: ignore[arg-type]


def nr_threads() -> int:
    """Number of threads of Pagetide; other libraries have some too."""
    try:
        names = [Path(f"/proc/self/task/{task}/comm").read_text() for task in os.listdir("/proc/self/task")]
    except OSError:
        return 0
    return sum(name.strip() in ("run", "runs") for name in names)


def none_is_left() -> bool:
    """A joined thread may stay visible for a moment."""
    for _ in range(100):
        if nr_threads() == 0:
            return True
        time.sleep(0.02)
    return False


def long() -> pt.Scenario:
    return pt.load(SMALL.replace("40_000", "400_000_000").replace('"small"', '"long"'))


def test_an_interrupt_ends_it_and_keeps_what_was_done() -> None:
    scenario = long()
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt) as told:
            scenario.run(seeds=2)
    finally:
        signal.signal(signal.SIGALRM, handler)
    # The runs would take minutes.
    assert time.monotonic() - began < 30
    assert isinstance(told.value, pt.Interrupted)
    assert told.value.missing == 4 and len(told.value.result) == 0
    assert none_is_left()
    assert isinstance(pickle.loads(pickle.dumps(told.value)), pt.Interrupted)


def test_a_watcher_is_told_and_may_stop_it(small: pt.Scenario) -> None:
    told: list[tuple[int, int]] = []
    small.run(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (4, 4)

    def stop(done: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        long().run(progress=stop)
    assert none_is_left()


def test_other_threads_go_on(small: pt.Scenario) -> None:
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: small.run(seeds=2, jobs=2), range(6)))
    assert len({result.json() for result in results}) == 1
    assert results[0].rows == results[5].rows


def test_failures_are_told_with_what_did_not_fail() -> None:
    # More swap than this computer has memory for the tables of.
    failure = {"variant": "a", "seed": 1, "message": "it broke", "hint": "try"}
    error = pt.RunError([failure])
    assert "variant a, seed 1: it broke" in str(error) and "hint: try" in str(error)
    assert pickle.loads(pickle.dumps(error)).failures == [failure]


def test_importing_is_quick() -> None:
    code = "import time; t = time.process_time(); import pagetide; print(time.process_time() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(runs) < 0.1


def test_perform_refuses_what_there_is_not(small: pt.Scenario) -> None:
    assert perform(small, []) == []
    with pytest.raises(pt.InputError, match="there is no variant `x`"):
        perform(small, [("x", 1)])


def test_a_result_travels(small: pt.Scenario) -> None:
    made = small.run(seeds=2)
    there = pickle.loads(pickle.dumps(made))
    assert there.rows == made.rows and str(there) == str(made)


def test_jobs_beside_an_executor_are_refused(small: pt.Scenario) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="jobs"):
        small.run(seeds=1, jobs=2, executor=pool)
    with pytest.raises(pt.InputError):
        small.run(seeds=[True])
