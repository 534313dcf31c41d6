"""What should a knob be set to? `find`, as the command has it."""

from __future__ import annotations

from typing import Callable, Mapping, Sequence, TypeAlias, Union

from ._pagetide import Answer, Scenario
from ._pagetide import find as _find

__all__ = ["find"]

Value: TypeAlias = Union[int, float, str, bool]
"""A value of a knob."""
Range: TypeAlias = Union[str, Sequence[Value]]
"""Values: a list, `(LOW, HIGH)` or `(LOW, HIGH, N)` as a tuple, or a range as the command has it."""
Progress: TypeAlias = Union[bool, Callable[[int, int], object], None]
"""`True` for a bar, or a function that is called with (done, total)."""


def find(
    scenario: Scenario,
    knob: str | Mapping[str, Range | None],
    want: str,
    *,
    range: Range | None = None,
    largest: bool = False,
    price: str | Sequence[str] = (),
    share: float = 0.95,
    seeds: int | None = None,
    variant: str | None = None,
    jobs: int | None = None,
    progress: Progress = None,
) -> Answer:
    """The smallest value of a knob with which a criterion holds (or the largest), as `pagetide find`.

    `knob`: a knob, with its `range`; or one or two knobs -> their ranges (`None`: the kernel's own). `want`: the
    criterion, like `"allocstall == 0"`. `share`: of the seeds in which it must hold. `price`: metrics whose change is
    asked for. `seeds`: how many all values share; as many fresh ones confirm the answer.

    Raises `InputError` for a knob, a range or a criterion that is none, `ScenarioError` for a value that the scenario
    does not take, `RunError` if the scenario as it stands cannot be run, `Interrupted` upon ^C.
    """
    knobs = {knob: range} if isinstance(knob, str) else dict(knob)
    price = [price] if isinstance(price, str) else list(price)
    return _find(
        scenario,
        knobs,
        want,
        largest=largest,
        price=price,
        share=share,
        seeds=seeds,
        variant=variant,
        jobs=jobs,
        progress=progress,
    )
