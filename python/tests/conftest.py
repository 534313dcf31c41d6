"""What the tests share: a scenario of which a run takes a tenth of a second, and the tree."""

from pathlib import Path

import pytest

import pagetide as pt

TREE = Path(__file__).parents[2]
SMALL = """
name = "small"
repeats = 2
[machine]
memory = "64MiB"
swap = "128MiB"
[[group]]
name = "web"
[[task]]
name = "service"
group = "web"
workload = "working-set"
anon = "40MiB"
accesses = 40_000
[[task]]
name = "batch"
workload = "touch"
size = "48MiB"
passes = 2
[[variant]]
name = "unprotected"
[[variant]]
name = "memory.low"
set = { "group.web.memory.low" = "42M" }
"""


@pytest.fixture
def small() -> pt.Scenario:
    return pt.load(SMALL)


@pytest.fixture
def tree() -> Path:
    return TREE
