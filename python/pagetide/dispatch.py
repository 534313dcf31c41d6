"""Gives runs to a crew, in units of a fitting size, and hands out its answers as they come.

Short runs are put together, so that a unit takes about half a second: an executor's own cost for each unit is some
milliseconds. At most two units for each worker are out, so that an interrupt has little to take back, and a hundred
thousand runs need no memory on a scheduler.

Invariant: each run is answered once, as a row or as a failure, whoever was lost meanwhile.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
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
#: How often a unit is asked for before its runs count as failed.
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
    out: dict[Any, tuple[Unit, int]] = {}
    seconds: float | None = None
    try:
        while True:
            slots = max(1, crew.slots)
            while len(out) < 2 * slots:
                fair = -(-queue.left // (2 * slots))
                wanted = 1 if seconds is None else int(UNIT_SECONDS / max(seconds, 1e-6))
                some = queue.take(max(1, min(wanted, fair, UNIT_RUNS)))
                if not some:
                    break
                made = Unit(_pagetide.__version__, some, latencies=latencies)
                out[crew.give(made)] = (made, 1)
            if not out:
                return
            for handle in crew.wait(list(out)):
                unit, attempts = out.pop(handle)
                answer = _answer(crew, handle, unit, attempts)
                if isinstance(answer, Unit):
                    # Contents are sent for the asking, and are no attempt.
                    again = attempts if answer.contents else attempts + 1
                    out[crew.give(answer)] = (answer, again)
                    continue
                ran = unit.count
                measured = answer.seconds / ran
                seconds = measured if seconds is None else 0.8 * seconds + 0.2 * measured
                yield answer
    finally:
        if out:
            crew.cancel(list(out))


def _answer(crew: Crew, handle: Any, unit: Unit, attempts: int) -> Answer | Unit:
    """What came of a unit, or the unit to ask for now."""
    try:
        answer = crew.answer(handle)
    except Lost as lost:
        if attempts < ATTEMPTS:
            return replace(unit, contents={})
        why = f"lost {attempts} times with its worker ({lost}); perhaps it needs more memory than a worker has"
        failed = [(part.point, *run, why) for part in unit.parts for run in part.runs]
        return Answer(failed=failed)
    if answer.refused is not None:
        raise ExecutorError(f"a worker does not run this: {answer.refused}", "install the same pagetide there")
    if answer.lacking:
        if unit.contents:
            raise ExecutorError(
                "a worker cannot keep the traces that it was sent", "PAGETIDE_TRACES names a directory"
            )
        return unit.with_contents(traces.contents(unit.traces, answer.lacking))
    return answer
