"""A unit of work, and its execution by a worker.

A unit has several runs: pickled scenarios, each with (variant, seed) pairs. The answer has the row
of every run, as ``_pagetide.perform`` writes it. A worker of an executor calls only this module, so
it needs nothing but pagetide.

Invariants: a worker of another version refuses the unit before it reads a scenario, and reports its
version. A failed run does not affect other runs.
"""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass, field, replace

from . import _pagetide
from ._errors import Error, RunError
from .traces import Trace, find

__all__ = ["Answer", "Part", "Unit", "perform_unit"]


@dataclass(frozen=True)
class Part:
    """Runs of one scenario."""

    #: Index of the point in the sweep.
    point: int
    #: The pickled scenario.
    scenario: bytes
    #: Its digest, which must be the same on the worker.
    digest: str
    #: (variant, seed) of each run.
    runs: tuple[tuple[str, int], ...]
    #: The traces that the scenario replays.
    traces: tuple[Trace, ...] = ()
    #: Of runs of a sweep: the digest of its scenario, and the settings of the point.
    swept: tuple[str, dict[str, str]] | None = None


@dataclass(frozen=True)
class Unit:
    """Several runs for one worker."""

    #: The version of pagetide of the requester.
    version: str
    parts: tuple[Part, ...]
    #: Contents of traces that the worker lacks, by SHA-256.
    contents: dict[str, bytes] = field(default_factory=dict)
    #: Whether rows include distributions of latencies.
    latencies: bool = False

    @property
    def count(self) -> int:
        """Number of runs."""
        return sum(len(part.runs) for part in self.parts)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces that the scenarios replay."""
        return tuple(dict.fromkeys(trace for part in self.parts for trace in part.traces))

    def with_contents(self, contents: dict[str, bytes]) -> Unit:
        """A copy with the contents of traces."""
        return replace(self, contents=contents)


@dataclass
class Answer:
    """A worker's answer to a unit."""

    #: (point, variant, seed, row) of each finished run.
    rows: list[tuple[int, str, int, bytes]] = field(default_factory=list)
    #: (point, variant, seed, reason) of each failed run.
    failed: list[tuple[int, str, int, str]] = field(default_factory=list)
    #: Duration on the worker, in seconds.
    seconds: float = 0.0
    #: SHA-256 of missing traces; if not empty, nothing was run.
    lacking: tuple[str, ...] = ()
    #: Why the worker refuses the unit.
    refused: str | None = None
    #: A hint for this refusal.
    hint: str = "install the same pagetide there"


def perform_unit(unit: Unit, cancel: _pagetide.Cancel | None = None) -> Answer:
    """Performs a unit in this process, on one thread, with the GIL released. `cancel` ends it
    early."""
    if unit.version != _pagetide.__version__:
        return Answer(refused=f"it has pagetide {_pagetide.__version__}, not {unit.version}")
    began = time.perf_counter()
    answer = Answer()
    for part in unit.parts:
        scenario = pickle.loads(part.scenario)
        if not _is(scenario, part.digest) and part.traces:
            try:
                local, lacking = find(part.traces, unit.contents)
            except OSError as error:
                why = f"it cannot store the traces sent to it: {error}"
                return Answer(refused=why, hint="set PAGETIDE_TRACES to a writable directory on that machine")
            if lacking:
                return Answer(lacking=lacking)
            scenario = scenario.with_traces(local)
        if scenario.digest != part.digest:
            return Answer(refused=f"the scenario's digest on the worker is {scenario.digest}, not {part.digest}")
        _perform_part(part, scenario, unit.latencies, cancel, answer)
    answer.seconds = time.perf_counter() - began
    return answer


def _is(scenario: _pagetide.Scenario, digest: str) -> bool:
    """Whether the scenario and the contents of its traces are those of the unit."""
    try:
        return scenario.digest == digest
    except Error:  # a trace is missing
        return False


def _perform_part(
    part: Part, scenario: _pagetide.Scenario, latencies: bool, cancel: _pagetide.Cancel | None, answer: Answer
) -> None:
    def perform(runs: list[tuple[str, int]]) -> list[bytes]:
        return _pagetide.perform(scenario, runs, jobs=1, latencies=latencies, cancel=cancel, swept=part.swept)

    runs = list(part.runs)
    try:
        rows = perform(runs)
    except RunError as error:
        failed = {(it["variant"], it["seed"]): it["message"] for it in error.failures}
        answer.failed.extend((part.point, *run, failed[run]) for run in runs if run in failed)
        # Repeat the others: the error for failed runs has no rows.
        runs = [run for run in runs if run not in failed]
        rows = perform(runs) if runs else []
    answer.rows.extend((part.point, *run, row) for run, row in zip(runs, rows))
