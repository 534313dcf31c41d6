"""Pagetide simulates what a Linux machine does when it runs short of memory.

>>> import pagetide as pt
>>> s = pt.load("batch-beside-service")       # a shipped experiment, a file, or TOML text
>>> r = s.run(seeds=4)                        # on all CPUs; ^C works
>>> r.metrics                                 # a tidy table for polars, pandas, pyarrow, duckdb
>>> print(r)                                  # the table of the command

A run is a pure function of the scenario, the seed and the version. See docs/python.md.
"""

from typing import TYPE_CHECKING

from ._errors import (
    Diagnostic,
    Error,
    ExecutorError,
    Failure,
    InputError,
    Interrupted,
    RunError,
    ScenarioError,
    StoreError,
    VersionError,
)
from ._pagetide import (
    Answer,
    Result,
    Scenario,
    Table,
    __version__,
    experiments,
    explain,
    load,
    metrics,
    mrc,
    read_rows,
)
from . import core

# fmt: off
__all__ = [
    "Answer", "Calibration", "Diagnostic", "Error", "ExecutorError", "Failure", "InputError", "Interrupted",
    "Result", "RunError", "Scenario", "ScenarioError", "StoreError", "Sweep", "Table", "VersionError",
    "__version__", "builders", "calibrate", "core", "experiments", "explain", "find", "load", "metrics",
    "mrc", "plots", "read_rows", "sweep",
]
# Made by scripts/python_builders.py.
__all__ += [
    "Advise", "Build", "Cache", "Compute", "Content", "Costs", "CreateGroup", "Discard", "Disk", "DiskFaults",
    "Earlyoom", "Expect", "File", "FileRead", "FileWrite", "FreeArea", "Fuzz", "Group", "HighOrder",
    "Interleave", "JoinGroup", "KernelMemory", "KernelObjects", "Kubelet", "Latency", "Lmkd", "Lock",
    "Machine", "MappedRead", "Names", "Node", "OomdUnit", "Pipes", "Pod", "Policy", "ReclaimLoop", "Remove",
    "RemoveGroup", "Report", "Resident", "Service", "Sleep", "Swap", "SystemdOomd", "Task", "Touch", "Trace",
    "Variant", "Watcher", "WorkingSet", "WriteControl", "Zone", "Zswap",
]
# fmt: on

if TYPE_CHECKING:
    from . import builders, plots
    from .builders import *
    from .calibration import calibrate
    from .fits import Calibration
    from .study import find
    from .sweeps import Sweep, sweep

# Imported on first use, to keep `import pagetide` fast.
_LATER = {
    "Calibration": "fits",
    "Sweep": "sweeps",
    "builders": "builders",
    "calibrate": "calibration",
    "find": "study",
    "plots": "plots",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'pagetide' has no attribute {name!r}")
    # The other names are the classes of tables.
    place = _LATER.get(name, "builders")
    module = import_module(f".{place}", __name__)
    return module if place == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
