"""Searches, miss ratio curves, and explanations of names."""

import json
from pathlib import Path

import pytest

import pagetide as pt


def test_a_search_finds_a_threshold(small: pt.Scenario) -> None:
    found = pt.find(
        small, "group.web.memory.low", "service.pgmajfault < 500",
        range="0..44MiB/6", seeds=2, price="batch.walltime",
    )  # fmt: skip
    assert found.found and list(found.set) == ["group.web.memory.low"]
    assert found.to_dict() == json.loads(found.json()) and found.to_dict()["verdict"] == "threshold"
    assert "MemoryLow=" in found.emit("systemd") and found.result in str(found)
    with pytest.raises(pt.InputError):
        found.emit("sysctl.d")
    nothing = pt.find(small, "vm.swappiness", "service.pgmajfault < 0", range=[0, 100], seeds=1)
    assert not nothing.found and nothing.set == {}
    for knob, want in (("vm.swapiness", "allocstall == 0"), ("vm.swappiness", "alocstall == 0"),
                       ("vm.swappiness", "allocstall")):  # fmt: skip
        with pytest.raises(pt.InputError):
            pt.find(small, knob, want, seeds=1)
    with pytest.raises(ValueError):
        pt.find(small, "vm.swappiness", "allocstall == 0", share=1.5)
    with pytest.raises(pt.InputError, match="one knob"):
        pt.find(small, {"vm.swappiness": [0, 100], "machine.cpus": [1, 2]}, "allocstall == 0")


def test_a_miss_ratio_curve(tree: Path) -> None:
    curve = pt.mrc(tree / "experiments/traces/cc1-zpipe.ptt", ["16MiB", "64MiB"])
    assert curve["size"] == [16 << 20, 64 << 20]
    assert curve["miss_ratio"] == [m / r for m, r in zip(curve["misses"], curve["references"])]
    assert all(b <= lru for b, lru in zip(curve["belady_miss_ratio"], curve["lru_miss_ratio"]))
    assert curve["lru_object_miss_ratio"] == [None, None], "a program has no objects"
    both = pt.mrc(
        tree / "experiments/traces/cc1-zpipe.ptt", ["16MiB"], variants={"old": {"policy.lru": "linux-3.3"}}
    )
    assert both["variant"] == ["linux", "old"]
    with pytest.raises(pt.InputError):
        pt.mrc(tree / "README.md", "16MiB")
    with pytest.raises(pt.InputError):
        pt.mrc(tree / "experiments/traces/cc1-zpipe.ptt", "64MiB..16MiB/3")


def test_names_are_explained() -> None:
    assert pt.metrics("pgmajfault")[0]["unit"] == "count" and len(pt.metrics()) > 200
    assert "60" in pt.explain("vm.swappiness")
    with pytest.raises(pt.InputError, match="pgmajfault"):
        pt.metrics("pgmajfalt")
    with pytest.raises(pt.InputError):
        pt.explain("no such thing")
