"""Gives runs to a crew, in units of a fitting size, and hands out its answers as they come.

Short runs are put together, so that a unit takes about half a second: an executor's own cost for each unit is some
milliseconds. At most two units for each worker are out, so that an interrupt has little to take back, and a hundred
thousand runs need no memory on a scheduler.

What is lost with a worker is split into single runs, and each of these is asked for again while nothing else is out:
a pool that broke, or a worker of Dask, takes with it whatever it was given, and only a run that was alone has shown
that it was to blame.

Invariant: each run is answered once, as a row or as a failure, whoever was lost meanwhile. A run is given up only
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

#: Seconds that a unit is to take.
UNIT_SECONDS = 0.5
#: The most runs in a unit.
UNIT_RUNS = 64
#: How often a run is lost alone before it counts as failed.
ATTEMPTS = 3


class _Queue:
    """Runs that were not given away."""

    def __init__(self, parts: Iterable[Part], left: int) -> None:
        self.parts = iter(parts)
        self.head: Part | None = None
        self.left = left

    def take(self, count: int) -> tuple[Part, ...]:
        """The next `count` runs, or what there is."""
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
    """Answers for `total` runs, as they come. What is out is cancelled when the caller stops asking for more.

    Raises ``ExecutorError`` if the crew cannot work, or has another version of pagetide.
    """
    queue = _Queue(parts, total)
    out: dict[Any, Unit] = {}
    suspects: deque[Unit] = deque()
    #: How often each suspect was lost alone.
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
                    # Contents are sent for the asking; whoever was alone still is.
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
    """Its runs, each as a unit."""
    for part in unit.parts:
        for run in part.runs:
            yield replace(unit, parts=(replace(part, runs=(run,)),), contents={})


def _given_up(part: Part, lost: Lost) -> Answer:
    why = f"lost {ATTEMPTS} times with its worker ({lost}); perhaps it needs more memory than a worker has"
    return Answer(failed=[(part.point, *run, why) for run in part.runs])


def _answer(crew: Crew, handle: Any, unit: Unit) -> Answer | Unit:
    """What came of a unit, or the unit with what its worker lacks. Raises `Lost` if the worker was lost."""
    answer = crew.answer(handle)
    if answer.refused is not None:
        raise ExecutorError(f"a worker does not run this: {answer.refused}", answer.hint)
    if answer.lacking:
        if unit.contents:
            raise ExecutorError(
                "a worker cannot keep the traces that it was sent", "PAGETIDE_TRACES names a directory"
            )
        return unit.with_contents(traces.contents(unit.traces, answer.lacking))
    return answer
