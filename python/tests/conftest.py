"""Shared fixtures: scenarios with runs of milliseconds, the tree, and executors with processes."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
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


TINY = """
name = "tiny"
[machine]
memory = "64MiB"
swap = "128MiB"
[[machine.disk]]
name = "disk"
model = "ssd"
[[task]]
name = "service"
workload = "working-set"
anon = "40MiB"
accesses = 20_000
[[task]]
name = "batch"
workload = "touch"
size = "50MiB"
passes = 2
[[variant]]
name = "before"
[[variant]]
name = "after"
set = { "machine.memory" = "56MiB" }
"""

GRID = {"vm.swappiness": [0, 60, 200], "machine.memory": ["64MiB", "72MiB"]}


@pytest.fixture(scope="session")
def tiny():
    return pt.load(TINY)


@pytest.fixture(scope="session")
def grid():
    return dict(GRID)


@pytest.fixture(scope="session")
def alone(tiny, grid):
    """The sweep without an executor, which others are compared with."""
    return pt.sweep(tiny, grid, seeds=4, progress=False)


@pytest.fixture
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


def pytest_collection_modifyitems(items):
    for item in items:
        if "cluster" in item.fixturenames:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two worker processes, on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    import distributed

    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client
