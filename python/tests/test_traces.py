"""Workers have the traces of a scenario, or receive them."""

import os
import pathlib
import pickle
import subprocess
import sys
from concurrent import futures

import pytest

import pagetide as pt
from pagetide import traces

REPLAY = """
name = "replayed"
[machine]
memory = "128MiB"
[[task]]
name = "cc1"
workload = "trace"
path = "program.ptt"
"""


class _Elsewhere(futures.Executor):
    """A machine without the files of this one."""

    def __init__(self, *hidden):
        self.hidden = hidden
        self.units = []

    def submit(self, perform, unit):
        self.units.append(unit)
        made = futures.Future()
        away = [path.rename(path.with_suffix(".away")) for path in self.hidden]
        try:
            # A separate process, because this one has cached the files.
            child = "import pickle, sys; f, u = pickle.load(sys.stdin.buffer); pickle.dump(f(u), sys.stdout.buffer)"
            done = subprocess.run(
                [sys.executable, "-c", child], input=pickle.dumps((perform, unit)), capture_output=True, check=True
            )
            made.set_result(pickle.loads(done.stdout))
        finally:
            for path, there in zip(self.hidden, away):
                there.rename(path)
        return made


def test_a_worker_that_lacks_a_trace_gets_it_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PAGETIDE_TRACES", str(tmp_path / "kept"))
    experiments = pathlib.Path(__file__).parents[2] / "experiments"
    trace = tmp_path / "program.ptt"
    trace.write_bytes((experiments / "traces/cc1-zpipe.ptt").read_bytes())
    (tmp_path / "replay.toml").write_text(REPLAY)
    scenario = pt.load(tmp_path / "replay.toml")
    alone = scenario.run(seeds=1)

    there = _Elsewhere()
    assert scenario.run(seeds=1, executor=there).rows == alone.rows
    assert [bool(unit.contents) for unit in there.units] == [False], "what is at its path is not sent"
    elsewhere = _Elsewhere(trace)
    assert scenario.run(seeds=1, executor=elsewhere).rows == alone.rows
    assert [bool(unit.contents) for unit in elsewhere.units] == [False, True]
    assert scenario.run(seeds=1, executor=elsewhere).rows == alone.rows
    assert [bool(unit.contents) for unit in elsewhere.units] == [False, True, False]


def test_a_worker_that_cannot_keep_a_trace_says_so(tmp_path, monkeypatch):
    experiments = pathlib.Path(__file__).parents[2] / "experiments"
    trace = tmp_path / "program.ptt"
    trace.write_bytes((experiments / "traces/cc1-zpipe.ptt").read_bytes())
    (tmp_path / "replay.toml").write_text(REPLAY)
    scenario = pt.load(tmp_path / "replay.toml")
    # A directory cannot be created below a file.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PAGETIDE_TRACES", str(tmp_path / "file" / "kept"))
    with pytest.raises(pt.ExecutorError, match="(?s)cannot store the traces sent to it.*PAGETIDE_TRACES"):
        scenario.run(seeds=1, executor=_Elsewhere(trace))


def test_a_directory_of_traces_that_is_not_ours_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("PAGETIDE_TRACES", raising=False)
    monkeypatch.setattr(traces.tempfile, "tempdir", str(tmp_path))
    lacked = [traces.Trace("/there/is/none.ptt", "digest", "00")]
    assert traces.find(lacked, {}) == ({}, ("00",))
    traces.directory().mkdir()
    assert traces.find(lacked, {}) == ({}, ("00",))
    ours = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: ours + 1)
    (tmp_path / f"pagetide-export-{ours}").rename(traces.directory())
    with pytest.raises(PermissionError, match="not owned by this user"):
        traces.find(lacked, {})
    monkeypatch.setattr(os, "getuid", lambda: ours)
    traces.directory().symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="not owned by this user"):
        traces.find(lacked, {})
