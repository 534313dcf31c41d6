"""Studies of several runs: `sweep` and `find`, in this process or on an executor."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Mapping, Sequence, TypeAlias, Union

from ._pagetide import Answer, Scenario, SweepResult
from ._pagetide import find as _find
from ._pagetide import sweep as _sweep

__all__ = ["find", "sweep"]

Value: TypeAlias = Union[int, float, str, bool]
"""A value of a knob."""
Range: TypeAlias = Union[str, Sequence[Value]]
"""Values: a list, `(LOW, HIGH)` or `(LOW, HIGH, N)` as a tuple, or a range as the command has it."""
Progress: TypeAlias = Union[bool, Callable[[int, int], object], None]
"""`True` for a bar, or a function that is called with (done, total)."""


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Range],
    *,
    seeds: int | Iterable[int] | None = None,
    variants: Sequence[str] | None = None,
    jobs: int | None = None,
    progress: Progress = None,
    store: str | os.PathLike[str] | None = None,
    executor: Any = None,
    **options: Any,
) -> SweepResult:
    """Runs all combinations of the values of some knobs, times variants, times seeds.

    `grid`: knob -> a list of values, `"LOW..HIGH/N"`, or `(LOW, HIGH, N)`. `store`: a directory that keeps every run;
    what has a row is not run again, whether the command or Python made it. `executor`: who runs instead of threads of
    this process (`pagetide.executors`); it takes `options`.

    Raises `InputError` for knobs and values that there are not, `ScenarioError` for values that the scenario does not
    take, `RunError` if runs failed, `Interrupted` upon ^C.
    """
    if executor is not None:
        from . import executors  # type: ignore[attr-defined,unused-ignore]

        return executors.sweep(  # type: ignore[no-any-return,unused-ignore]
            scenario,
            grid,
            seeds=seeds,
            variants=variants,
            progress=progress,
            store=store,
            executor=executor,
            **options,
        )
    if options:
        raise TypeError(f"sweep() has no argument {next(iter(options))}")
    return _sweep(
        scenario,
        dict(grid),
        seeds=seeds,
        variants=None if variants is None else list(variants),
        jobs=jobs,
        progress=progress,
        store=store,
    )


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
    executor: Any = None,
    **options: Any,
) -> Answer:
    """The smallest value of a knob with which a criterion holds (or the largest), as `pagetide find`.

    `knob`: a knob, with its `range`; or one or two knobs -> their ranges (`None`: the kernel's own). `want`: the
    criterion, like `"allocstall == 0"`. `share`: of the seeds in which it must hold. `price`: metrics whose change is
    asked for. `seeds`: how many all values share; as many fresh ones confirm the answer. `executor` as in `sweep`.

    Raises `InputError` for a knob, a range or a criterion that is none, `ScenarioError` for a value that the scenario
    does not take, `RunError` if the scenario as it stands cannot be run, `Interrupted` upon ^C.
    """
    knobs = {knob: range} if isinstance(knob, str) else dict(knob)
    price = [price] if isinstance(price, str) else list(price)
    if executor is not None:
        from . import executors  # type: ignore[attr-defined,unused-ignore]

        return executors.find(  # type: ignore[no-any-return,unused-ignore]
            scenario,
            knobs,
            want,
            largest=largest,
            price=price,
            share=share,
            seeds=seeds,
            variant=variant,
            progress=progress,
            executor=executor,
            **options,
        )
    if options:
        raise TypeError(f"find() has no argument {next(iter(options))}")
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
