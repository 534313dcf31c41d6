"""A unit of work, and what a worker does with it.

A unit is some runs: pickled scenarios, each with (variant, seed) pairs. The answer has the row of every run, as
``_pagetide.perform`` writes it. This module is all that a worker of an executor calls, so a worker needs pagetide
and nothing else.

Invariant: a worker of another version answers nothing but its version, and says so before it reads a scenario. A run
that fails costs only itself.
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

    #: Which point of a sweep it is.
    point: int
    #: The pickled scenario.
    scenario: bytes
    #: Its digest, which the worker's must equal.
    digest: str
    #: (variant, seed) of each run.
    runs: tuple[tuple[str, int], ...]
    #: The traces that the scenario replays.
    traces: tuple[Trace, ...] = ()


@dataclass(frozen=True)
class Unit:
    """Some runs, for one worker."""

    #: The version of pagetide that asks.
    version: str
    parts: tuple[Part, ...]
    #: Contents of traces that a worker has said it lacks, by their digest.
    contents: dict[str, bytes] = field(default_factory=dict)
    #: Whether rows carry distributions of latencies.
    latencies: bool = False

    @property
    def count(self) -> int:
        """How many runs it is."""
        return sum(len(part.runs) for part in self.parts)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces that the scenarios replay."""
        return tuple(dict.fromkeys(trace for part in self.parts for trace in part.traces))

    def with_contents(self, contents: dict[str, bytes]) -> Unit:
        """The same, with contents of traces."""
        return replace(self, contents=contents)


@dataclass
class Answer:
    """What a worker says of a unit."""

    #: (point, variant, seed, row) of each run that ended.
    rows: list[tuple[int, str, int, bytes]] = field(default_factory=list)
    #: (point, variant, seed, why) of each run that failed.
    failed: list[tuple[int, str, int, str]] = field(default_factory=list)
    #: Seconds that the worker took.
    seconds: float = 0.0
    #: Digests of the traces that it lacks; then nothing was run.
    lacking: tuple[str, ...] = ()
    #: Why it does not run this at all.
    refused: str | None = None
    #: What to do about that.
    hint: str = "install the same pagetide there"


def perform_unit(unit: Unit, cancel: _pagetide.Cancel | None = None) -> Answer:
    """Performs a unit in this process, on one thread, with the GIL released. `cancel` may end it."""
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
                why = f"it cannot keep the traces that it was sent: {error}"
                return Answer(refused=why, hint="PAGETIDE_TRACES names a directory for them on that machine")
            if lacking:
                return Answer(lacking=lacking)
            scenario = scenario.with_traces(local)
        if scenario.digest != part.digest:
            return Answer(refused=f"there the scenario's digest is {scenario.digest}, not {part.digest}")
        _perform_part(part, scenario, unit.latencies, cancel, answer)
    answer.seconds = time.perf_counter() - began
    return answer


def _is(scenario: _pagetide.Scenario, digest: str) -> bool:
    """Whether it is the scenario that was meant, with traces of the same contents."""
    try:
        return scenario.digest == digest
    except Error:  # a trace is not there
        return False


def _perform_part(
    part: Part, scenario: _pagetide.Scenario, latencies: bool, cancel: _pagetide.Cancel | None, answer: Answer
) -> None:
    def perform(runs: list[tuple[str, int]]) -> list[bytes]:
        return _pagetide.perform(scenario, runs, jobs=1, latencies=latencies, cancel=cancel)

    runs = list(part.runs)
    try:
        rows = perform(runs)
    except RunError as error:
        failed = {(it["variant"], it["seed"]): it["message"] for it in error.failures}
        answer.failed.extend((part.point, *run, failed[run]) for run in runs if run in failed)
        # The others once more: what is said of runs that failed has no rows.
        runs = [run for run in runs if run not in failed]
        rows = perform(runs) if runs else []
    answer.rows.extend((part.point, *run, row) for run, row in zip(runs, rows))
