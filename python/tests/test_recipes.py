"""The recipes of examples/python, each run briefly."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import pagetide as pt

ROOT = pathlib.Path(__file__).parents[2]
RECIPES = ROOT / "examples/python"
RESERVE = ROOT / "examples/find/reserve.toml"


def recipe(name):
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_optuna_finds_a_front(capsys):
    pytest.importorskip("optuna")
    study = recipe("optuna_pareto").main(str(RESERVE), trials=8)
    assert len(study.trials) == 8
    front = sorted(trial.values for trial in study.best_trials)
    assert front and all(a[0] < b[0] and a[1] > b[1] for a, b in zip(front, front[1:]))
    assert "allocstall  reader.walltime" in capsys.readouterr().out


def test_ask_and_tell_finds_something_better():
    setting, score = recipe("ask_tell").main(str(RESERVE), "allocstall", trials=5)
    first = pt.load(RESERVE).run(seeds=3)
    scores = [row["value"] for row in first.metrics.to_dicts() if row["metric"] == "allocstall"]
    assert score < sum(scores) / 3 and set(setting) == set(recipe("ask_tell").TUNABLES)


def test_the_environment_is_one_of_gymnasium():
    pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    module = recipe("gym_env")
    check_env(module.MemoryEnv(), skip_render_check=True)
    env = module.MemoryEnv()
    one, other = (module.episode(env, lambda: (0.3, 0.5), seed=3) for _ in range(2))
    assert one == other, "the same seed and actions give the same episode"
    free = module.episode(env, lambda: (0.3, 1.0), seed=3)
    assert free != one


def as_command(tmp_path):
    """An environment with `pagetide` as the command of this package."""
    directory = tmp_path / "bin"
    directory.mkdir()
    script = directory / "pagetide"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pagetide "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}


def rows_of(directory):
    return (directory / "runs.jsonl").read_bytes()


SHORT = """
[machine]
memory = "64MiB"
swap = "128MiB"
[[task]]
name = "batch"
workload = "touch"
size = "70MiB"
"""
GRID = ["--grid", "vm.swappiness=0,60,100,200", "--grid", "vm.watermark_scale_factor=10,100,1000", "--repeats", "8"]


def test_shards_of_slurm_and_kubernetes_are_the_whole(tmp_path):
    yaml = pytest.importorskip("yaml")
    environment = as_command(tmp_path)
    scenario = tmp_path / "node.toml"
    scenario.write_text(SHORT)

    def run(arguments, **more):
        subprocess.run(arguments, env={**environment, **more}, check=True, capture_output=True)

    run(["pagetide", "sweep", str(scenario), *GRID, "--store", str(tmp_path / "alone")])
    whole = rows_of(tmp_path / "alone")
    for shard in range(1, 4):
        run(
            ["sh", str(RECIPES / "slurm_array.sh"), str(scenario), str(tmp_path / "slurm")],
            SLURM_ARRAY_TASK_ID=str(shard),
            SLURM_ARRAY_TASK_COUNT="3",
        )
    run(["pagetide", "sweep", "--merge", str(tmp_path / "slurm"), "--store", str(tmp_path / "slurm-all")])
    assert rows_of(tmp_path / "slurm-all") == whole

    job = yaml.safe_load((RECIPES / "kubernetes_job.yaml").read_text())
    assert job["apiVersion"] == "batch/v1" and job["spec"]["completionMode"] == "Indexed"
    container = job["spec"]["template"]["spec"]["containers"][0]
    mounted = {"SCENARIO": str(scenario), "ROWS": str(tmp_path / "pods")}
    assert {it["name"] for it in container["env"]} == set(mounted)
    for index in range(job["spec"]["completions"]):
        run([*container["command"], *container["args"]], JOB_COMPLETION_INDEX=str(index), **mounted)
    run(["pagetide", "sweep", "--merge", str(tmp_path / "pods"), "--store", str(tmp_path / "pods-all")])
    assert rows_of(tmp_path / "pods-all") == whole

    # Compare the rows read in Python with the same sweep in Python.
    read = pt.read_rows(tmp_path / "slurm").to_dicts()
    grid = {"vm.swappiness": [0, 60, 100, 200], "vm.watermark_scale_factor": [10, 100, 1000]}
    here = pt.sweep(pt.load(scenario), grid, seeds=8)
    assert read == here.metrics.to_dicts()
    (tmp_path / "slurm" / "shard-1-of-3.jsonl").open("ab").write(b'{"half')
    assert pt.read_rows(tmp_path / "slurm").to_dicts() == read
    with pytest.raises(pt.InputError, match="cannot read"):
        pt.read_rows(tmp_path / "nothing")


@pytest.mark.slow
def test_the_soft_limit_is_calibrated(tmp_path, capsys):
    pytest.importorskip("optuna")
    pytest.importorskip("pyarrow")
    found = recipe("calibrate_soft_limit").main(trials=2, units=1, store=str(tmp_path))
    assert len(found.trials) == 2
    assert set(found.best.point) == {
        "task.master.object", "task.slave.object", "file.master-headers.size", "file.slave-headers.size",
        "machine.disk.disk.read_latency", "machine.disk.disk.write_latency",
    }  # fmt: skip
    assert "600M-280M-patched" in capsys.readouterr().out
