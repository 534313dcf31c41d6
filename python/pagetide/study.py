"""`find`: the value of a knob at which a criterion holds, as in the command.

The search requests runs and receives their rows (`_pagetide.Search`), so any executor can perform
them (:mod:`pagetide.crews`). Invariant: the answer does not depend on the executor.
"""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from typing import Any, Sequence, TypeAlias, Union

from . import _pagetide, traces
from ._errors import Failure, InputError, Interrupted, RunError, ScenarioError
from ._pagetide import Answer, Scenario
from .crews import Crew, crew
from .dispatch import dispatch
from .progress import Bar, Progress, bar
from .sweeps import Value
from .work import Part

__all__ = ["find"]

Range: TypeAlias = Union[str, Sequence[Value]]
"""Values: a list, or a range in the syntax of the command, `"LOW..HIGH"` or `"LOW..HIGH/N"`."""


def find(
    scenario: Scenario,
    knob: str,
    want: str,
    *,
    range: Range | None = None,
    largest: bool = False,
    price: str | Sequence[str] = (),
    share: float = 0.95,
    seeds: int = 20,
    variant: str | None = None,
    jobs: int | None = None,
    executor: Any = None,
    progress: Progress = None,
) -> Answer:
    """Finds the smallest (or largest) value of a knob at which a criterion holds, as `pagetide
    find`.

    `range`: the values of `knob` (`None`: the kernel's own range). `want`: the criterion, like
    `"allocstall == 0"`. `share`: the share of the seeds in which it must hold. `price`: metrics for
    which the change is reported. `seeds`: the number of seeds for all values; the same number of
    fresh seeds confirms the answer. `variant`: the variant to search in, default is the first;
    values of the search override what the variant sets. `executor`: performs the runs, default is
    `jobs` threads of this process.

    Raises `InputError` for an invalid knob, range or criterion, `ScenarioError` for a value that
    the scenario rejects, `RunError` if the unchanged scenario cannot be run, `ExecutorError` if the
    executor is unusable, `Interrupted` on ^C.
    """
    if not isinstance(knob, str):
        raise InputError("a search has one knob, given by its name", "pagetide.sweep runs a grid of several")
    search = _pagetide.Search(
        scenario,
        knob,
        range,
        want,
        largest=largest,
        price=[price] if isinstance(price, str) else list(price),
        share=share,
        seeds=seeds,
        variant=variant,
    )
    with ExitStack() as open_things:
        workers = crew(executor, jobs)
        open_things.callback(workers.close)
        asked = search.ask()
        shown = bar(progress, len(asked))
        open_things.callback(shown.close)
        try:
            while asked:
                _perform(search, asked, workers, shown)
                asked = search.ask()
                shown.grow(len(asked))
        except KeyboardInterrupt:
            raise Interrupted(shown.total - shown.done) from None
    return search.answer()


def _perform(
    search: _pagetide.Search, asked: list[tuple[list[tuple[str, str]], int]], workers: Crew, shown: Bar
) -> None:
    """Performs the runs that the search requests, and reports each outcome to the search."""
    scenario = search.scenario
    (variant,) = scenario.variants
    points: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for index, (sets, _) in enumerate(asked):
        points.setdefault(tuple(sets), []).append(index)
    parts, index_of = [], {}
    for point, (pairs, indices) in enumerate(points.items()):
        try:
            at = scenario.set(dict(pairs)) if pairs else scenario
        except ScenarioError as refused:
            for index in indices:
                search.fail(index, str(refused))
            shown.add(len(indices))
            continue
        runs = tuple((variant, asked[index][1]) for index in indices)
        parts.append(Part(point, pickle.dumps(at), at.digest, runs, traces.of(at)))
        index_of.update({(point, asked[index][1]): index for index in indices})
    answers = dispatch(workers, parts, len(index_of))
    try:
        for answer in answers:
            for point, _, seed, row in answer.rows:
                search.tell(index_of[point, seed], row)
            for point, _, seed, why in answer.failed:
                if not asked[index_of[point, seed]][0] and len(asked) == 1:
                    failure: Failure = {"variant": variant, "seed": seed, "message": why, "hint": None}
                    raise RunError([failure])
                search.fail(index_of[point, seed], why)
            shown.add(len(answer.rows) + len(answer.failed))
    finally:
        answers.close()
