"""The typed tables of scenarios match the schema, and the loader checks them."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

import pagetide as pt
from pagetide import builders


def test_they_are_those_of_the_schema(tree: Path) -> None:
    sys.path.insert(0, str(tree / "scripts"))
    try:
        import python_builders  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    schema = subprocess.run([sys.executable, "-m", "pagetide", "schema"], capture_output=True, check=True).stdout
    made = python_builders.render(json.loads(schema))
    there = (tree / "python/pagetide/builders.py").read_text()
    assert made == there, "run: pagetide schema | scripts/python_builders.py"
    assert set(builders.__all__) <= set(pt.__all__)


def test_what_is_built_is_what_a_file_says() -> None:
    built = pt.Scenario(
        machine=pt.Machine(
            cpus=2,
            memory="256MiB",
            swap=[pt.Swap(size="1GiB", priority=5), "4GiB"],
            disks=[pt.Disk("sda", model="ssd")],
        ),
        groups=[pt.Group("web", memory_high="100M")],
        sysctl={"vm.swappiness": 10},
        files=[pt.File("data", size="64MiB", disk="sda")],
        tasks=[
            pt.Service(
                "front", rate=100, group="web", heap="16MiB", requests=50, touches=2,
                load=[("0s", "10 %"), ("1s", "100 %")],
            ),
            pt.Task("other", phases=[pt.Sleep("nap", duration="1ms"), pt.Touch("work", size="1MiB")], nice=5),
        ],
        variants=[pt.Variant("a"), pt.Variant("b", set={"machine.memory": "512MiB"})],
        repeats=1,
    )  # fmt: skip
    text = """
    repeats = 1
    machine.cpus = 2
    machine.memory = "256MiB"
    machine.swap = [{ size = "1GiB", priority = 5 }, "4GiB"]
    machine.disk = [{ name = "sda", model = "ssd" }]
    sysctl = { "vm.swappiness" = 10 }
    [[group]]
    name = "web"
    "memory.high" = "100M"
    [[file]]
    name = "data"
    size = "64MiB"
    disk = "sda"
    [[task]]
    name = "front"
    workload = "service"
    rate = 100
    group = "web"
    heap = "16MiB"
    requests = 50
    touches = 2
    load = [["0s", "10 %"], ["1s", "100 %"]]
    [[task]]
    name = "other"
    nice = 5
    phase = [
        { name = "nap", workload = "sleep", duration = "1ms" },
        { name = "work", workload = "touch", size = "1MiB" },
    ]
    [[variant]]
    name = "a"
    [[variant]]
    name = "b"
    set = { "machine.memory" = "512MiB" }
    """
    assert built.digest == pt.load(text).digest
    assert built.run().rows == pt.load(text).run().rows
    assert pt.load(built.text).digest == built.digest


def test_mistakes_are_told_with_their_keys() -> None:
    with pytest.raises(pt.ScenarioError) as told:
        pt.Scenario(
            machine=pt.Machine(cpus=0, memory="1GiB"),
            tasks=[pt.Touch("a", size="1GB"), {"name": "b", "workload": "tuch"}],
        )
    keys = [mistake["key"] for mistake in told.value.diagnostics]
    assert keys == ["machine.cpus", "task.a.size", "task.b.workload"], str(told.value)
    for arguments, error in (
        ({}, pt.ScenarioError),
        ({"machine": 3}, pt.ScenarioError),
        ({"machine": object()}, TypeError),
        ({"tasks": [], "task": []}, pt.InputError),
        ({"nonsense": 1}, pt.ScenarioError),
    ):
        with pytest.raises(error):
            pt.Scenario(**arguments)
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(pt.InputError, match="nested too deeply"):
        pt.Scenario(tasks=endless)


def test_tables_are_values() -> None:
    assert pt.Group("a", copies=2) == pt.Group("a", copies=2) != pt.Group("a")
    assert repr(pt.Group("a", copies=2)) == "Group(name='a', copies=2)"
    assert pt.Group("a", memory_low="1M").to_table() == {"name": "a", "memory.low": "1M"}
    assert dataclasses.replace(pt.Group("a"), copies=2) == pt.Group("a", copies=2)
    assert pt.Task("a", phases=[]).to_table() == {"name": "a", "phase": []}
    assert pt.Sleep("a", duration="1s").to_table() == {"name": "a", "duration": "1s", "workload": "sleep"}
    for call in (lambda: pt.Disk("sda"), lambda: pt.Group("a", copied=2), lambda: pt.Swap("1GiB")):  # type: ignore
        with pytest.raises(TypeError, match="argument"):
            call()
