"""``scenario.run(executor=...)``: performs the runs of one scenario with an executor.

``executor=`` accepts any ``concurrent.futures.Executor``, a ``dask.distributed.Client``, or the
module ``ray`` (:mod:`pagetide.crews`). The result has the same bytes as without an executor.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from . import _pagetide, traces
from ._errors import Failure, Interrupted, RunError
from .crews import crew
from .dispatch import dispatch
from .progress import Progress, bar
from .work import Part

__all__ = ["run"]


def run(
    scenario: _pagetide.Scenario,
    seeds: Sequence[int],
    *,
    executor: Any = None,
    jobs: int | None = None,
    progress: Progress = None,
    latencies: bool = False,
) -> _pagetide.Result:
    """Runs all variants of a scenario with these seeds.

    :raises TypeError: both an executor and `jobs` are given.
    :raises ExecutorError: the executor is closed, or its workers have another version of pagetide.
    :raises RunError: runs failed; its ``result`` has the others.
    :raises Interrupted: ^C was pressed; its ``result`` has the finished runs.
    """
    pairs = tuple((variant, seed) for variant in scenario.variants for seed in seeds)
    part = Part(0, pickle.dumps(scenario), scenario.digest, pairs, traces.of(scenario))
    rows: list[bytes] = []
    failed: list[Failure] = []
    with ExitStack() as open_things:
        workers = crew(executor, jobs)
        open_things.callback(workers.close)
        shown = bar(progress, len(pairs))
        open_things.callback(shown.close)
        answers = dispatch(workers, [part], len(pairs), latencies)
        open_things.callback(answers.close)
        try:
            for answer in answers:
                rows += [row for *_, row in answer.rows]
                for _, variant, seed, why in answer.failed:
                    failed.append({"variant": variant, "seed": seed, "message": why, "hint": None})
                shown.add(len(answer.rows) + len(answer.failed))
        except KeyboardInterrupt:
            answers.close()
            made = _pagetide.Result.from_rows(scenario, rows)
            raise Interrupted(len(pairs) - len(rows) - len(failed), made) from None
    if failed:
        failed.sort(key=lambda it: pairs.index((it["variant"], it["seed"])))
        raise RunError(failed, _pagetide.Result.from_rows(scenario, rows) if rows else None)
    return _pagetide.Result.from_rows(scenario, rows)
