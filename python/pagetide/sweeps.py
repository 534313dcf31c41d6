"""Sweeps: run a scenario at every point of a grid, with every variant and every seed.

The extension has the grid, the runs and their store, which is the store of ``pagetide sweep``. It
performs the runs on threads, or an executor does (:mod:`pagetide.crews`). Runs with a row in the
store are not repeated.

Invariant: the runs of a complete sweep have the same bytes in the same order, whatever the executor
and the number of interruptions.
"""

from __future__ import annotations

import os
import pickle
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, Union

from . import _pagetide, traces
from ._errors import Interrupted, RunError
from .crews import crew
from .dispatch import dispatch
from .progress import Bar, Progress, bar
from .statistics import Mean
from .work import Part

__all__ = ["Failure", "Grid", "Sweep", "Value", "run", "sweep"]

Value = Union[str, int, float, bool]
#: ``grid=``: the values of each knob (a list, or a range ``"LOW..HIGH/N"``), or a list of points.
Grid = Union[Mapping[str, Union[str, Sequence[Value]]], Sequence[Mapping[str, Value]]]


class Failure(NamedTuple):
    """A run that failed."""

    variant: str
    knobs: Mapping[str, str]
    seed: int
    why: str


class Sweep(_pagetide.SweepRuns):
    """The results of a sweep. ``len()`` is the number of runs."""

    def __init__(self, *_: Any, **__: Any) -> None:
        #: The failed runs. The same call with the same store retries them.
        self.failed: list[Failure] = []
        _open.add(self)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return (
            f"<pagetide.Sweep of {len(self.points)} points, {len(self.variants)} variants, "
            f"{len(self.seeds)} seeds: {len(self)} runs{failed}>"
        )

    def means(self, *names: str) -> dict[tuple[tuple[tuple[str, str], ...], str], dict[str, Mean]]:
        """The rows of `summary` by (knobs, variant), in the order of the grid."""
        rows = self.summary(*names).to_dicts()
        kinds = {knob: type(row[knob]) for row in rows for knob in self.knobs if row[knob] is not None}

        def value(knob: str, text: str | None) -> Any:
            try:
                return text and kinds.get(knob, str)(text)
            except ValueError:  # of a point without runs
                return text

        points = {
            tuple(value(knob, point.get(knob)) for knob in self.knobs): tuple(sorted(point.items()))
            for point in self.points
        }
        means: dict[Any, dict[str, Mean]] = {(it, of): {} for it in points.values() for of in self.variants}
        for row in rows:
            at = points[tuple(row[knob] for knob in self.knobs)]
            means[at, row["variant"]][row["metric"]] = Mean.of(row)
        return means


_open: weakref.WeakSet[Sweep] = weakref.WeakSet()


def _leave_stores() -> None:
    """Closes inherited stores in a forked child, which could outlive the parent and its locks."""
    for swept in list(_open):
        swept._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_stores)


def sweep(
    scenario: _pagetide.Scenario,
    grid: Grid,
    *,
    seeds: int | Iterable[int] | None = None,
    variants: str | Sequence[str] | None = None,
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Sweep:
    """Runs a scenario at every point of a grid.

    :param grid: the values of each knob (``{"vm.swappiness": [0, 60]}``: all combinations), or a
        list of points (``[{"vm.swappiness": 0}, ...]``). A knob is a key as in ``pagetide run
        --set``.
    :param seeds: a number, counted from the scenario's first seed, or a list; default is the
        scenario's own number.
    :param variants: names of variants; default is all.
    :param executor: None (a thread for each CPU), a ``concurrent.futures.Executor``, a
        ``dask.distributed.Client`` or the module ``ray``.
    :param store: a directory for the runs, as of ``pagetide sweep --store``. Stored runs are not
        repeated.
    :param progress: True, False, or a function of (done, total); by default a bar on a terminal or
        in a notebook.
    :raises ScenarioError: the scenario rejects some values; all of them are listed, before any run.
    :raises ExecutorError: the executor is closed, or its workers have another version of pagetide.
    :raises Interrupted: ^C was pressed; its ``result`` has the finished runs.
    :raises StoreError: the store is not writable, or has runs of another scenario or version;
        finished runs are kept.
    """
    variants = [variants] if isinstance(variants, str) else variants
    swept = Sweep(scenario, grid, seeds=seeds, variants=variants, store=store)
    try:
        total = _perform(swept, executor, None, progress)
    except KeyboardInterrupt:
        raise Interrupted(_missing(swept), swept) from None
    if swept.failed:
        swept.failed.sort(key=lambda it: (it.variant, sorted(it.knobs.items()), it.seed))
        first = swept.failed[0]
        where = ", ".join(f"{knob}={value}" for knob, value in first.knobs.items())
        warnings.warn(
            f"{len(swept.failed)} of {total} runs failed; the first: "
            f"{first.variant}, {where}, seed {first.seed}: {first.why}",
            RuntimeWarning,
            stacklevel=2,
        )
    return swept


def run(
    scenario: _pagetide.Scenario,
    seeds: Sequence[int],
    *,
    executor: Any,
    jobs: int | None = None,
    progress: Progress = None,
    latencies: bool = False,
) -> _pagetide.Result:
    """``Scenario.run`` with an executor: the sweep of one point.

    :raises TypeError: both an executor and `jobs` are given.
    :raises ExecutorError: the executor is closed, or its workers have another version of pagetide.
    :raises RunError: runs failed; its ``result`` has the others.
    :raises Interrupted: ^C was pressed; its ``result`` has the finished runs.
    """
    swept = Sweep(scenario, [{}], seeds=seeds)
    try:
        _perform(swept, executor, jobs, progress, latencies)
    except KeyboardInterrupt:
        raise Interrupted(_missing(swept), swept.result()) from None
    if swept.failed:
        order = scenario.variants
        swept.failed.sort(key=lambda it: (order.index(it.variant), it.seed))
        failed: list[Any] = [
            {"variant": it.variant, "seed": it.seed, "message": it.why, "hint": None} for it in swept.failed
        ]
        raise RunError(failed, swept.result() if len(swept) else None)
    return swept.result()


def _missing(swept: Sweep) -> int:
    """Number of runs that were not performed."""
    return sum(len(runs) for _, runs in swept.missing()) - len(swept.failed)


def _perform(
    swept: Sweep, executor: Any, jobs: int | None, progress: Progress, latencies: bool = False
) -> int:
    """Performs the missing runs, and closes the store. Returns the number of all runs."""
    with ExitStack() as open_things:
        open_things.callback(swept.close)
        there, missing = len(swept), swept.missing()
        left = sum(len(runs) for _, runs in missing)
        if not left:
            return there
        shown = bar(progress, there + left, there)
        open_things.callback(shown.close)
        if executor is None:
            found = swept.perform(lambda done, _: shown.add(there + done - shown.done))
            swept.failed = [Failure(*failed) for failed in found]
            return there + left
        workers = crew(executor, jobs)
        open_things.callback(workers.close)
        answers = dispatch(workers, _parts(swept, missing), left, latencies)
        open_things.callback(answers.close)
        for answer in answers:
            for *_, row in answer.rows:
                swept.append(row)
            for at, variant, seed, why in answer.failed:
                swept.failed.append(Failure(variant, swept.points[at], seed, why))
            shown.add(len(answer.rows) + len(answer.failed))
    return there + left


def _parts(swept: Sweep, missing: list[tuple[int, list[tuple[str, int]]]]) -> Iterator[Part]:
    """The missing runs. Each point is created when its turn comes."""
    points, of = swept.points, swept.scenario.digest
    for at, runs in missing:
        made = swept.scenario.set(points[at]) if points[at] else swept.scenario
        yield Part(at, pickle.dumps(made), made.digest, tuple(runs), traces.of(made), (of, points[at]))
