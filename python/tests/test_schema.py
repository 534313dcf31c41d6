"""The JSON output of commands is valid by `pagetide schema --of`, says the package jsonschema."""

import json
import subprocess
import sys

import pytest
from conftest import SMALL

jsonschema = pytest.importorskip("jsonschema")


def printed(*arguments, cwd):
    command = [sys.executable, "-m", "pagetide", *map(str, arguments)]
    made = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert made.stdout, made.stderr
    return json.loads(made.stdout)


def undescribed(schema):
    """Properties without a description; a reference is described where it leads."""
    if isinstance(schema, list):
        return [name for part in schema for name in undescribed(part)]
    if not isinstance(schema, dict):
        return []
    properties = schema.get("properties", {}).items()
    here = [name for name, it in properties if not {"description", "$ref", "anyOf"} & it.keys()]
    return here + undescribed(list(schema.values()))


def valid(of, *arguments, cwd):
    """The output of a command, if it is valid by the schema of `of`."""
    schema = printed("schema", "--of", of, cwd=cwd)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    assert not validator.is_valid({"nonsense": 1})
    assert undescribed(schema) == []
    output = printed(*arguments, "--emit" if of == "find" else "--format", "json", cwd=cwd)
    assert [error.message for error in validator.iter_errors(output)] == []
    return output


@pytest.fixture
def place(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


def test_runs(place):
    valid("run", "run", "small.toml", cwd=place)
    cut = valid("run", "run", "small.toml", "--set", "time_limit=5ms", cwd=place)
    assert cut["variants"][0]["metrics"]["batch.walltime"]["ended"] == ["cut", "cut"]
    swept = valid("run", "sweep", "small.toml", "--grid", "vm.swappiness=0,60", cwd=place)
    assert {it["knobs"]["vm.swappiness"] for it in swept["variants"]} == {"0", "60"}


def test_searches(place):
    question = ["--knob", "machine.memory=64MiB..128MiB/3", "--want", "batch.walltime < 1h", "--seeds", 2]
    assert valid("find", "find", "small.toml", *question, cwd=place)["verdict"] == "everything"


def test_comparisons(place, tree):
    cases = tree / "experiments" / "verify"
    valid("verify", "verify", cases / "anon.toml", "--reference", cases / "linux-6.1", cwd=place)


def test_files_and_timelines(place):
    meminfo = valid("inspect", "inspect", "small.toml", "meminfo", cwd=place)["files"]
    assert meminfo["/proc/meminfo"].startswith("MemTotal:")
    drawn = valid("inspect", "inspect", "small.toml", "--timeline", cwd=place)
    assert drawn["files"] == {} and drawn["timeline"]["samples"][-1]["end_ns"] == drawn["elapsed_ns"]


def test_names(place):
    valid("metrics", "metrics", cwd=place)
    valid("explain", "explain", "*", cwd=place)


def test_miss_ratio_curves(place):
    (place / "in.csv").write_text("1\n2\n3\n1\n")
    imported = [sys.executable, "-m", "pagetide", "trace", "import", "csv", "in.csv", "-o", "t.ptt"]
    subprocess.run(imported, cwd=place, check=True, capture_output=True)
    valid("mrc", "mrc", "t.ptt", "--sizes", "1MiB,2MiB", cwd=place)
