"""A store of runs: it is that of the command, it is continued, and has the same bytes in all
cases."""

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from concurrent import futures

import pytest
from conftest import TINY

import pagetide as pt

pl = pytest.importorskip("polars")


def bytes_of(directory):
    assert [file.name for file in directory.iterdir()] == ["runs.jsonl"]
    return (directory / "runs.jsonl").read_bytes()


def test_a_store_has_what_memory_has(tiny, grid, alone, tmp_path):
    made = pt.sweep(tiny, grid, seeds=4, store=tmp_path)
    assert made.rows == alone.rows and bytes_of(tmp_path) == b"".join(row + b"\n" for row in alone.rows)
    assert made.metrics.to_dicts() == alone.metrics.to_dicts() == pt.read_rows(tmp_path).to_dicts()
    assert made.summary("pgmajfault").to_dicts() == alone.summary("pgmajfault").to_dicts()
    for point in alone.points:
        assert str(made.result(point)) == str(alone.result(point))


def test_what_is_there_is_not_run_again_and_the_file_is_the_same(tiny, grid, alone, tmp_path, processes):
    # In pieces, in another order, by other executors.
    pt.sweep(tiny, grid, seeds=[3], store=tmp_path, executor=processes)
    pt.sweep(tiny, {**grid, "vm.swappiness": [200]}, seeds=[4, 1], variants="after", store=tmp_path)
    told = []
    pt.sweep(tiny, grid, seeds=4, store=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert told[0][0] >= 16 and told[-1] == (48, 48)
    assert bytes_of(tmp_path) == b"".join(row + b"\n" for row in alone.rows)
    again = []
    pt.sweep(tiny, grid, seeds=4, store=tmp_path, progress=lambda *it: again.append(it))
    assert not again, "nothing is left to run"


def test_the_command_and_python_continue_the_same_store(tmp_path):
    file, store = tmp_path / "tiny.toml", tmp_path / "rows"
    file.write_text(TINY)

    def command(*values):
        grid = ["--grid", f"vm.swappiness={','.join(values)}", "--repeats", "2"]
        swept = [sys.executable, "-m", "pagetide", "sweep", str(file), *grid, "--store", str(store)]
        subprocess.run(swept, check=True, capture_output=True)

    def python(*values):
        told = []
        grid = {"sysctl.vm.swappiness": values}
        pt.sweep(pt.load(file), grid, seeds=2, store=store, progress=lambda done, _: told.append(done))
        return told[0] if told else None

    command("0", "60")
    assert python(0, 60.0, "100") >= 8, "two values are there"
    before = bytes_of(store)
    command("0", "60", "100")
    assert bytes_of(store) == before
    command("7")
    assert python(0, 7, 60, 100) is None, "all are there"
    made = pt.sweep(pt.load(file), {"vm.swappiness": [0, 7, 60, 100]}, seeds=2)
    assert bytes_of(store) == b"".join(row + b"\n" for row in made.rows)


def test_a_sweep_of_a_store_sees_its_own_runs_only(tiny, tmp_path):
    pt.sweep(tiny, {"vm.swappiness": [0, 60, 100]}, seeds=3, store=tmp_path)
    few = pt.sweep(tiny, {"vm.swappiness": [60]}, seeds=[2], variants=["after"], store=tmp_path)
    assert len(few) == 1
    rows = few.select("batch.walltime").to_dicts()
    assert [(row["vm.swappiness"], row["seed"], row["variant"]) for row in rows] == [(60, 2, "after")]


@pytest.mark.parametrize("lines", [1, 12])
def test_a_driver_that_is_killed_keeps_its_rows(tiny, tmp_path, lines):
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from conftest import TINY
        import pagetide as pt
        pt.sweep(pt.load(TINY), {"vm.swappiness": range(30)}, seeds=2, store=sys.argv[2])
        """
    )
    store, file = tmp_path / "rows", tmp_path / "rows" / "runs.jsonl"
    child = subprocess.Popen([sys.executable, "-c", script, os.path.dirname(__file__), str(store)])
    while not file.exists() or file.read_bytes().count(b"\n") < lines:
        assert child.poll() is None
        time.sleep(0.005)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    there = file.read_bytes().count(b"\n")
    with file.open("ab") as half:
        half.write(b'{"half')
    told = []
    grid = {"vm.swappiness": range(30)}
    made = pt.sweep(tiny, grid, seeds=2, store=store, progress=lambda done, _: told.append(done))
    assert len(made) == 120 and told[0] >= there and told[-1] == 120
    assert bytes_of(store) == b"".join(row + b"\n" for row in pt.sweep(tiny, grid, seeds=2).rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_workers_that_were_forked_do_not_keep_the_lock(tiny, tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    with futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        with pytest.raises(pt.Interrupted):
            pt.sweep(tiny, {"vm.swappiness": [60]}, seeds=2, store=tmp_path, executor=pool, progress=stop)
        made = pt.sweep(tiny, {"vm.swappiness": [60, 70]}, seeds=2, store=tmp_path, executor=pool)
    assert len(made) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_outlives_a_driver_that_is_killed_and_its_lock(tiny, tmp_path):
    script = textwrap.dedent(
        """
        import os, sys, time
        sys.path.insert(0, sys.argv[1])
        from conftest import TINY
        import pagetide as pt

        swept = pt.Sweep(pt.load(TINY), [{}], seeds=1, store=sys.argv[2])
        child = os.fork()
        os.write(1, f"{child}\\n".encode())
        time.sleep(60)
        """
    )
    command = [sys.executable, "-c", script, os.path.dirname(__file__), str(tmp_path)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    told = {driver.stdout.readline().strip() for _ in range(2)}
    with pytest.raises(pt.StoreError, match="another process writes to"):
        pt.sweep(tiny, [{}], store=tmp_path)
    driver.kill()
    driver.wait()
    try:
        assert len(pt.sweep(tiny, [{}], seeds=1, store=tmp_path)) == 2
    finally:
        os.kill(int((told - {"0"}).pop()), signal.SIGKILL)
        driver.stdout.close()


def test_a_run_in_two_files_counts_once_and_must_be_equal(tiny, tmp_path):
    pt.sweep(tiny, {"vm.swappiness": [60]}, seeds=4, store=tmp_path)
    rows = (tmp_path / "runs.jsonl").read_bytes()
    (tmp_path / "shard-1-of-2.jsonl").write_bytes(rows)
    made = pt.sweep(tiny, {"vm.swappiness": [60, 70]}, seeds=4, store=tmp_path)
    counted = made.summary("batch.walltime").to_dicts()
    assert {row["runs"] for row in counted} == {4} and len(made.rows) == len(made) == 16
    assert len(made.result({"vm.swappiness": 60})) == 8
    first = json.loads(rows.splitlines()[0])
    first["metrics"]["pswpout"]["value"] += 1
    (tmp_path / "shard-1-of-2.jsonl").write_text(json.dumps(first) + "\n")
    for read in (lambda: pt.sweep(tiny, [{}], store=tmp_path), lambda: pt.read_rows(tmp_path)):
        with pytest.raises((pt.StoreError, pt.InputError), match="two rows of the same run differ"):
            read()


@pytest.mark.parametrize("executor", [None, futures.ThreadPoolExecutor(2)])
def test_a_full_disk_is_said_and_the_same_call_goes_on(tiny, grid, tmp_path, executor):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ, so a write beyond the limit fails.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(pt.StoreError, match="(?s)cannot write rows to.*the same call continues"):
            pt.sweep(tiny, grid, seeds=4, store=tmp_path, executor=executor)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = []
    made = pt.sweep(tiny, grid, seeds=4, store=tmp_path, progress=lambda done, _: told.append(done))
    assert len(made) == 48 and told[0] >= 2


def test_a_store_that_cannot_be_used_is_refused(tiny, grid, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(pt.StoreError, match="cannot keep rows in"):
        pt.sweep(tiny, grid, store=file)
    store = tmp_path / "rows"
    pt.sweep(tiny, [{}], seeds=1, store=store)
    with pytest.raises(pt.StoreError, match="of tiny before it was changed"):
        pt.sweep(tiny.set({"machine.memory": "60MiB"}), [{}], seeds=1, store=store)
    rows = (store / "runs.jsonl").read_bytes()
    for text, message in ((rows.replace(b'"0.1.0"', b'"0.0.9"'), "of version 0.0.9"), (b"{}\n", "not a row")):
        (store / "runs.jsonl").write_bytes(text)
        with pytest.raises(pt.StoreError, match=message):
            pt.sweep(tiny, [{}], seeds=1, store=store)
        assert (store / "runs.jsonl").read_bytes() == text


def test_columns_of_knobs_have_the_type_of_their_values(tiny, tmp_path):
    [row] = pt.sweep(tiny, {"vm.swappiness": [1]}, seeds=[2**64 - 1], variants="before").rows

    def column(*values, name="knob"):
        for at, value in enumerate(values):
            changed = {**json.loads(row), "knobs": {"knob": value}}
            (tmp_path / f"{at}.jsonl").write_text(json.dumps(changed, separators=(",", ":")) + "\n")
        frame = pl.DataFrame(pt.read_rows(tmp_path)).filter(metric="batch.walltime")
        assert frame["seed"].to_list() == [2**64 - 1] * len(values)
        for file in tmp_path.iterdir():
            file.unlink()
        return frame[name].to_list() if name in frame.columns else None

    large = 2**63
    assert column(str(large)) == [str(large)], "an integer of more than 64 bits stays text"
    assert column(str(large), "1") == ["1", str(large)]
    assert column(str(large - 1), "1", str(-large)) == [-large, 1, large - 1]
    assert column("1.5", "2") == [1.5, 2.0] and column("1.5", "x") == ["1.5", "x"]
    assert column("007") == ["007"]
    assert column("2GiB", "512MiB", "max", "10", "64KiB") == ["10", "64KiB", "512MiB", "2GiB", "max"]
    sizes = column("2GiB", "max", "10", name="knob.bytes")
    assert sizes == [10, 2 << 30, None]
    for others in (("1s", "2GiB"), ("max", "1"), ("1", "2")):
        assert column(*others, name="knob.bytes") is None


def test_other_libraries_read_it(tiny, grid, alone, tmp_path):
    pa = pytest.importorskip("pyarrow")
    made = pt.sweep(tiny, grid, seeds=4, store=tmp_path)
    frame = pl.DataFrame(made.select("batch.walltime"))
    assert frame.shape == (48, 9) and frame["vm.swappiness"].dtype == pl.Int64
    assert frame.equals(pl.DataFrame(alone.select("batch.walltime")))
    assert pa.table(made.metrics).num_rows == len(made.metrics)
    frame.write_parquet(tmp_path / "runs.parquet")
    assert pl.read_parquet(tmp_path / "runs.parquet").equals(frame)
    lines = pl.read_ndjson(tmp_path / "runs.jsonl")
    assert lines.height == 48 and set(lines["variant"]) == {"before", "after"}
