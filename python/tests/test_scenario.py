"""Scenarios: their sources, their behaviour as values, and mistakes in them."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pagetide as pt

from conftest import SMALL


def test_text_file_and_name_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "k8s-node-swap.toml"
    file.write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    assert pt.load(SMALL).name == "small"
    assert pt.load(str(file)).name == pt.load(file).name == "small"
    assert pt.load("k8s-node-swap").name == "k8s-node-swap"
    # A file has precedence over an experiment of the same name, and a path is always a file.
    file.rename(tmp_path / "k8s-node-swap")
    assert pt.load("k8s-node-swap").name == "small"
    with pytest.raises(pt.ScenarioError):
        pt.load(Path("batch-beside-service"))
    assert "tunable-watermarks" in pt.experiments()


def test_every_experiment_loads() -> None:
    for name in pt.experiments():
        assert pt.load(name).variants


def test_scenarios_are_values(small: pt.Scenario) -> None:
    changed = small.set({"vm.swappiness": 10, "machine.cpus": 2})
    assert small.overrides == {} and changed.overrides == {"vm.swappiness": "10", "machine.cpus": "2"}
    assert changed.set({"vm.swappiness": 20}).overrides["vm.swappiness"] == "20"
    assert small == pt.load(SMALL) and small != changed and hash(small) == hash(pt.load(SMALL))
    assert small.digest == pt.load("# a comment\n" + SMALL).digest != changed.digest
    more = small.with_variant("max", {"group.web.memory.max": "30M"})
    assert more.variants == ["unprotected", "memory.low", "max"]
    assert more.only("max", "unprotected").variants == ["max", "unprotected"]
    for scenario in (small, changed, more, more.only("max"), pt.load("compiler-trace")):
        again = pickle.loads(pickle.dumps(scenario))
        assert again == scenario and again.digest == scenario.digest
    assert small.groups == ["web"] and small.tasks == ["service", "batch"] and small.seeds == [1, 2]


def test_digests_do_not_depend_on_the_process() -> None:
    code = "import pagetide as pt; print(*(pt.load(n).digest for n in ('slab-build', 'compiler-trace')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [pt.load(name).digest for name in ("slab-build", "compiler-trace")]


def test_all_mistakes_at_once() -> None:
    with pytest.raises(pt.ScenarioError) as told:
        pt.load("[machine]\nmemry = 1\n[[task]]\nname = 'a'\nworkload = 'tuch'\n")
    mistakes = told.value.diagnostics
    assert [(it["line"], it["key"]) for it in mistakes] == [
        (2, "machine.memry"),
        (5, "task.a.workload"),
    ]
    assert mistakes[0]["hint"] == "did you mean `memory`?" and mistakes[0]["column"] == 1
    assert "did you mean" in str(told.value) and "2 errors" in str(told.value)
    assert isinstance(told.value, ValueError)
    again = pickle.loads(pickle.dumps(told.value))
    assert again.diagnostics == mistakes and str(again) == str(told.value)
    with pytest.raises(pt.ScenarioError) as told:
        pt.load(SMALL).set({"vm.swapiness": 1})
    assert told.value.diagnostics[0]["key"] == "vm.swapiness"
    assert told.value.diagnostics[0]["file"] == "set()" and "--" not in str(told.value).replace("-->", "")
    with pytest.raises(pt.ScenarioError, match="did you mean `vm.swappiness`"):
        pt.load(SMALL).set(swappiness=10)


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        (lambda s: pt.load("k8s-node-swop"), pt.InputError, "did you mean `k8s-node-swap`?"),
        (lambda s: pt.load(""), pt.InputError, "no file"),
        (lambda s: pt.load(3), TypeError, "str"),
        (lambda s: pt.load("x = \x00"), pt.ScenarioError, "scenario"),
        (lambda s: pt.load("[machine]\n" * 100_000), pt.ScenarioError, "larger"),
        (lambda s: s.only(), pt.InputError, "the list of variants is empty"),
        (lambda s: s.only("unprotectd"), pt.ScenarioError, "did you mean"),
        (lambda s: s.set({"vm.swappiness": None}), pt.InputError, "the value None"),
        (lambda s: s.set({"vm.swappiness": object()}), TypeError, "vm.swappiness"),
        (lambda s: s.set({1: 2}), TypeError, "keys"),
        (lambda s: s.set({"vm.swappiness": 2**70}), pt.InputError, "too large"),
        (lambda s: s.set({"vm.swappiness": float("nan")}), pt.ScenarioError, ""),
        (lambda s: s.with_variant("unprotected", {}), pt.ScenarioError, ""),
        (lambda s: pt.load("x", base="."), pt.InputError, "base"),
    ],
)
def test_bad_input(small: pt.Scenario, what, error, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error) as told:
        what(small)
    assert said in str(told.value)


def test_a_text_extends_a_file_and_a_worker_is_given_it(tmp_path: Path) -> None:
    base = '[machine]\nmemory = "64MiB"\n[[task]]\nname = "t"\nworkload = "touch"\nsize = "1MiB"\n'
    (tmp_path / "base.toml").write_text(base)
    scenario = pt.load('base = "base.toml"\nmachine.cpus = 2\n', base=tmp_path)
    assert scenario.name == "scenario"
    assert list(scenario.traces) == [tmp_path / "base.toml"]
    (digest,) = scenario.traces.values()
    sent = pickle.dumps(scenario)
    (tmp_path / "base.toml").rename(tmp_path / "elsewhere.toml")
    given = pickle.loads(sent).with_traces({digest: tmp_path / "elsewhere.toml"})
    assert given.digest == scenario.digest
    (tmp_path / "base.toml").write_text(base.replace("1MiB", "1 MB"))
    with pytest.raises(pt.ScenarioError) as told:
        pt.load('base = "base.toml"\n', base=tmp_path)
    (mistake,) = told.value.diagnostics
    assert (mistake["file"], mistake["line"], mistake["key"]) == ("base.toml", 6, "task.t.size")


def test_a_worker_that_lacks_a_trace_is_given_it(tmp_path: Path, tree: Path) -> None:
    text = '[machine]\nmemory = "64MiB"\n[[task]]\nname = "t"\nworkload = "trace"\npath = "a.ptt"\n'
    shutil.copy(tree / "experiments/traces/cc1-zpipe.ptt", tmp_path / "a.ptt")
    scenario = pt.load(text, base=tmp_path)
    assert list(scenario.traces) == [tmp_path / "a.ptt"]
    digest = scenario.traces[tmp_path / "a.ptt"]
    rows = pt._pagetide.perform(scenario, [("default", 1)])
    sent = pickle.dumps(scenario)
    (tmp_path / "a.ptt").rename(tmp_path / "elsewhere.ptt")
    worker = pickle.loads(sent)
    assert list(worker.traces.values()) == [digest]
    with pytest.raises(pt.ScenarioError):
        worker.digest
    given = worker.with_traces({digest: tmp_path / "elsewhere.ptt"})
    assert given.digest == scenario.digest
    assert pt._pagetide.perform(given, [("default", 1)]) == rows
    (tmp_path / "broken.ptt").write_bytes(b"no trace")
    with pytest.raises(pt.InputError, match="digest"):
        worker.with_traces({digest: tmp_path / "broken.ptt"})


def test_another_version_is_refused(small: pt.Scenario) -> None:
    restore, (state,) = small.__reduce__()
    other = restore(state.replace(b'"version":"', b'"version":"9.'))
    with pytest.raises(pt.VersionError, match="9."):
        other.digest
    with pytest.raises(ValueError):
        restore(b"no scenario")


def test_a_directory_must_have_a_name_of_text(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff"
    try:
        os.mkdir(odd)
    except OSError:
        pytest.skip("no such names on this file system")
    with pytest.raises(pt.Error, match="UTF-8"):
        pt.load("name = 'x'\n", base=os.fsdecode(odd))
