"""A store of runs: resumption, merging, and identical bytes in all cases."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent import futures

import pytest

import pagetide as pt
from pagetide import parquet, store
from pagetide.records import Key, Measured, Run

pa = pytest.importorskip("pyarrow")


def bytes_of(directory):
    files = sorted(directory.glob("scenario=*/*.parquet"))
    assert [file.name for file in files] == ["runs.parquet"]
    return files[0].read_bytes()


def values(rows):
    return [json.loads(row) for row in rows]


def test_a_store_has_what_memory_has(tiny, grid, alone, tmp_path):
    made = pt.sweep(tiny, grid, seeds=4, store=tmp_path)
    assert values(made.rows) == values(alone.rows)
    assert made.metrics.to_dicts() == alone.metrics.to_dicts()
    assert made.select("batch.walltime").to_dicts() == alone.select("batch.walltime").to_dicts()
    assert made.summary("pgmajfault").to_dicts() == alone.summary("pgmajfault").to_dicts()
    for point in alone.points:
        assert str(made.result(point)) == str(alone.result(point))


def test_what_is_there_is_not_run_again_and_the_file_is_the_same(tiny, grid, tmp_path, processes, monkeypatch):
    pt.sweep(tiny, grid, seeds=4, store=tmp_path / "whole")
    # In pieces, in another order, by other executors, in many parts.
    monkeypatch.setattr(store, "PART_RUNS", 3)
    monkeypatch.setattr(store, "FAN_IN", 2)
    pieces = tmp_path / "pieces"
    pt.sweep(tiny, grid, seeds=[3], store=pieces, executor=processes)
    pt.sweep(tiny, {**grid, "vm.swappiness": [200]}, seeds=[4, 1], variants="after", store=pieces)
    told = []
    pt.sweep(tiny, grid, seeds=4, store=pieces, progress=lambda done, total: told.append((done, total)))
    assert told[0][0] > 12 and told[-1] == (48, 48)
    assert bytes_of(pieces) == bytes_of(tmp_path / "whole")
    again = []
    pt.sweep(tiny, grid, seeds=4, store=pieces, progress=lambda *it: again.append(it))
    assert not again, "nothing is left to run"


def test_a_sweep_of_a_store_sees_its_own_runs_only(tiny, tmp_path):
    pt.sweep(tiny, {"vm.swappiness": [0, 60, 100]}, seeds=3, store=tmp_path)
    few = pt.sweep(tiny, {"vm.swappiness": [60]}, seeds=[2], variants=["after"], store=tmp_path)
    assert len(few) == 1
    rows = few.select("batch.walltime").to_dicts()
    assert [(row["vm.swappiness"], row["seed"], row["variant"]) for row in rows] == [(60, 2, "after")]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_driver_that_is_killed_loses_seconds_at_most(tiny, tmp_path, parts):
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from conftest import TINY
        import pagetide as pt
        from pagetide import store
        store.PART_SECONDS = 0.05
        pt.sweep(pt.load(TINY), {"vm.swappiness": range(30)}, seeds=2, store=sys.argv[2])
        """
    )
    command = [sys.executable, "-c", script, os.path.dirname(__file__), str(tmp_path)]
    child = subprocess.Popen(command)
    while len(list(tmp_path.glob("*/part-*.parquet"))) < parts:
        assert child.poll() is None
        time.sleep(0.005)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    there = sum(len(list(parquet.runs(path))) for path in tmp_path.glob("*/part-*.parquet"))
    assert there >= parts
    told = []
    made = pt.sweep(
        tiny, {"vm.swappiness": range(30)}, seeds=2, store=tmp_path, progress=lambda done, _: told.append(done)
    )
    assert len(made) == 120 and told[0] > there and told[-1] == 120
    pt.sweep(tiny, {"vm.swappiness": range(30)}, seeds=2, store=tmp_path / "whole")
    whole = bytes_of(tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole")
    assert bytes_of(tmp_path) == whole
    assert not list(tmp_path.glob("*/.writing-*"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_workers_that_were_forked_do_not_keep_the_lock(tiny, tmp_path):
    with futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        pt.sweep(tiny, {"vm.swappiness": [60]}, seeds=2, store=tmp_path, executor=pool)
        made = pt.sweep(tiny, {"vm.swappiness": [60, 70]}, seeds=2, store=tmp_path, executor=pool)
    assert len(made) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_outlives_a_driver_that_is_killed_and_its_lock(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys, time
        from pagetide import store

        with store.Store(sys.argv[1], "0", "1"):
            child = os.fork()
            if child == 0:
                os.write(1, b"there\\n")
                time.sleep(60)
                os._exit(0)
            os.write(1, f"{child}\\n".encode())
            time.sleep(60)
        """
    )
    driver = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    told = {driver.stdout.readline().strip() for _ in range(2)}
    driver.kill()
    driver.wait()
    try:
        with store.Store(tmp_path, "0", "1"):
            pass
    finally:
        os.kill(int((told - {"there"}).pop()), signal.SIGKILL)
        driver.stdout.close()


def test_a_merge_that_was_killed_counts_no_run_twice(tiny, tmp_path):
    pt.sweep(tiny, {"vm.swappiness": [60]}, seeds=4, store=tmp_path)
    (whole,) = tmp_path.glob("*/runs.parquet")
    # Killed after the merged file was complete, and before the parts were removed.
    shutil.copy(whole, whole.with_name("part-aa.parquet"))

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(pt.Interrupted) as told:
        pt.sweep(tiny, {"vm.swappiness": [60, 70]}, seeds=4, store=tmp_path, progress=stop)
    made = told.value.result
    counted = made.summary("batch.walltime").to_dicts()
    assert {row["runs"] for row in counted if row["vm.swappiness"] == 60} == {4}
    assert len(made.result({"vm.swappiness": 60})) == 8
    assert len(list(made.runs())) == len(made)


def test_a_full_disk_is_said_and_the_same_call_goes_on(tiny, grid, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PART_RUNS", 10)
    real = parquet.write
    calls = []

    def write(path, runs):
        calls.append(path)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        real(path, runs)

    monkeypatch.setattr(parquet, "write", write)
    with pytest.raises(pt.StoreError, match="(?s)No space left on device.*the same call continues"):
        pt.sweep(tiny, grid, seeds=4, store=tmp_path)
    monkeypatch.setattr(parquet, "write", real)
    told = []
    made = pt.sweep(tiny, grid, seeds=4, store=tmp_path, progress=lambda done, _: told.append(done))
    assert len(made) == 48 and told[0] > 20


def test_a_store_that_cannot_be_used_is_refused(tiny, grid, tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(pt.StoreError, match="cannot keep runs in"):
        pt.sweep(tiny, grid, store=file)
    digest = tiny.digest
    with store.Store(tmp_path, digest, "0.1.0"):
        with pytest.raises(pt.StoreError, match="another process writes"):
            store.Store(tmp_path, digest, "0.1.0")
    pt.sweep(tiny, {"vm.swappiness": [1]}, seeds=1, store=tmp_path)
    with pytest.raises(pt.StoreError, match="has runs of pagetide"):
        store.Store(tmp_path, digest, "9.9.9")
    (tmp_path / f"scenario={digest}" / "runs.parquet").write_bytes(b"no parquet")
    with pytest.raises(pt.StoreError, match="cannot read"):
        pt.sweep(tiny, grid, store=tmp_path)


def made_up(seed, value=1.0, metrics=3):
    found = {f"m{at}": Measured(value + at + seed, "count", None) for at in range(metrics)}
    return Run(Key.of("v", {"knob": str(seed % 7)}, seed), "0" * 16, "1", found, '{"notes":[]}')


def test_runs_that_differ_are_not_merged(tmp_path):
    parquet.write(tmp_path / "a.parquet", [made_up(1), made_up(8)])
    parquet.write(tmp_path / "b.parquet", [made_up(1)])
    parquet.merge([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "c.parquet")
    assert list(parquet.runs(tmp_path / "c.parquet")) == [made_up(1), made_up(8)]
    parquet.write(tmp_path / "b.parquet", [made_up(1, value=2.0)])
    with pytest.raises(pt.StoreError, match="differ"):
        parquet.merge([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "d.parquet")
    assert not (tmp_path / "d.parquet").exists()


def test_order_is_by_variant_then_numbers_by_their_size(tmp_path):
    made = [Key.of("v", {"k": text}, 1) for text in ("2GiB", "512MiB", "max", "10", "9", "1e3", "64KiB")]
    made.append(Key.of("a", {"k": "max"}, 2))
    ordered = [dict(key.knobs)["k"] for key in sorted(made, key=lambda key: key.order)]
    assert ordered == ["max", "9", "10", "1e3", "64KiB", "512MiB", "2GiB", "max"]


def test_other_libraries_read_it(tiny, grid, alone, tmp_path):
    pl = pytest.importorskip("polars")
    made = pt.sweep(tiny, grid, seeds=4, store=tmp_path)
    frame = pl.DataFrame(made.select("batch.walltime"))
    assert frame.shape == (48, 9) and frame["vm.swappiness"].dtype == pl.Int64
    assert frame.equals(pl.DataFrame(alone.select("batch.walltime")))
    files = pl.read_parquet(f"{tmp_path}/**/*.parquet").explode("metrics").unnest("metrics")
    assert files.filter(pl.col("metric") == "batch.walltime").height == 48
    assert pa.table(made.metrics).num_rows == len(made.metrics)
