"""Pagetide: what does a Linux machine do when memory runs short?

>>> import pagetide as pt
>>> s = pt.load("batch-beside-service")       # a shipped experiment, a file, or TOML text
>>> r = s.run(seeds=4)                        # on all CPUs; ^C works
>>> r.metrics                                 # tidy, for polars, pandas, pyarrow, duckdb
>>> print(r)                                  # the table of the command

A run is a pure function of the scenario, the seed and the version. docs/python.md has more.
"""

from ._errors import (
    Diagnostic,
    Error,
    Failure,
    InputError,
    Interrupted,
    RunError,
    ScenarioError,
    VersionError,
)
from ._pagetide import (
    Answer,
    Result,
    Scenario,
    SweepResult,
    Table,
    __version__,
    experiments,
    explain,
    load,
    metrics,
    mrc,
)
from . import core
from .study import find, sweep

__all__ = [
    "Answer",
    "Diagnostic",
    "Error",
    "Failure",
    "InputError",
    "Interrupted",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "SweepResult",
    "Table",
    "VersionError",
    "__version__",
    "core",
    "experiments",
    "explain",
    "find",
    "load",
    "metrics",
    "mrc",
    "sweep",
]
