"""Gives runs to a crew in units of suitable size, and yields the answers as they come.

Short runs are combined, so that a unit takes about half a second: the overhead of an executor is
a few milliseconds for each unit. At most two units for each worker are pending, so that an interrupt
has little to cancel, and 100 000 runs need no memory on a scheduler.

The runs of a lost unit are retried one at a time, with nothing else pending: a broken pool or Dask
worker loses all its units, and only a run that was alone is known to be the cause.

Invariant: each run is answered exactly once, as a row or as a failure. A run counts as failed only
after it was lost alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any

from . import _pagetide, traces
from ._errors import ExecutorError
from .crews import Crew, Lost
from .work import Answer, Part, Unit

__all__ = ["dispatch"]

#: Target duration of a unit, in seconds.
UNIT_SECONDS = 0.5
#: Maximum number of runs in a unit.
UNIT_RUNS = 64
#: Number of times that a run may be lost alone before it counts as failed.
ATTEMPTS = 3


class _Queue:
    """Runs that are not given to the crew yet."""

    def __init__(self, parts: Iterable[Part], left: int) -> None:
        self.parts = iter(parts)
        self.head: Part | None = None
        self.left = left

    def take(self, count: int) -> tuple[Part, ...]:
        """The next `count` runs, or all remaining ones."""
        taken: list[Part] = []
        while count > 0:
            part = self.head or next(self.parts, None)
            self.head = None
            if part is None:
                break
            if len(part.runs) > count:
                self.head = replace(part, runs=part.runs[count:])
                part = replace(part, runs=part.runs[:count])
            taken.append(part)
            count -= len(part.runs)
            self.left -= len(part.runs)
        return tuple(taken)


def dispatch(crew: Crew, parts: Iterable[Part], total: int, latencies: bool = False) -> Generator[Answer, None, None]:
    """Yields answers for `total` runs as they come. Cancels pending units when the caller stops.

    Raises ``ExecutorError`` if the crew cannot work, or has another version of pagetide.
    """
    queue = _Queue(parts, total)
    out: dict[Any, Unit] = {}
    suspects: deque[Unit] = deque()
    #: How many times each suspect was lost alone.
    losses: dict[Any, int] = {}
    is_alone = False
    seconds: float | None = None
    try:
        while True:
            if suspects and not out:
                is_alone = True
                suspect = suspects.popleft()
                out[crew.give(suspect)] = suspect
            slots = max(1, crew.slots)
            while not suspects and not is_alone and len(out) < 2 * slots:
                fair = -(-queue.left // (2 * slots))
                wanted = 1 if seconds is None else int(UNIT_SECONDS / max(seconds, 1e-6))
                some = queue.take(max(1, min(wanted, fair, UNIT_RUNS)))
                if not some:
                    break
                made = Unit(_pagetide.__version__, some, latencies=latencies)
                out[crew.give(made)] = made
            if not out:
                return
            for handle in crew.wait(list(out)):
                unit = out.pop(handle)
                try:
                    answer = _answer(crew, handle, unit)
                except Lost as lost:
                    if is_alone:
                        is_alone = False
                        (part,) = unit.parts
                        key = (part.point, part.runs)
                        losses[key] = losses.get(key, 0) + 1
                        if losses[key] == ATTEMPTS:
                            yield _given_up(part, lost)
                            continue
                    suspects.extend(_single(unit))
                    continue
                if isinstance(answer, Unit):
                    # A request for contents is no loss: a run that was alone is still alone.
                    out[crew.give(answer)] = answer
                    continue
                is_alone = False
                measured = answer.seconds / unit.count
                seconds = measured if seconds is None else 0.8 * seconds + 0.2 * measured
                yield answer
    finally:
        if out:
            crew.cancel(list(out))


def _single(unit: Unit) -> Iterator[Unit]:
    """The runs of a unit, each as a unit."""
    for part in unit.parts:
        for run in part.runs:
            yield replace(unit, parts=(replace(part, runs=(run,)),), contents={})


def _given_up(part: Part, lost: Lost) -> Answer:
    why = f"lost {ATTEMPTS} times with its worker ({lost}); the run may need more memory than a worker has"
    return Answer(failed=[(part.point, *run, why) for run in part.runs])


def _answer(crew: Crew, handle: Any, unit: Unit) -> Answer | Unit:
    """The answer, or the unit with the traces that its worker lacks. Raises `Lost` if the worker
    was lost."""
    answer = crew.answer(handle)
    if answer.refused is not None:
        raise ExecutorError(f"a worker rejects the run: {answer.refused}", answer.hint)
    if answer.lacking:
        if unit.contents:
            raise ExecutorError(
                "a worker cannot store the traces sent to it", "set PAGETIDE_TRACES to a writable directory there"
            )
        return unit.with_contents(traces.contents(unit.traces, answer.lacking))
    return answer
