"""What a sweep goes over: points, variants and seeds, as its caller says them.

Invariant: a point has texts, as ``pagetide run --set`` takes them; points, variants and seeds are there once.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _pagetide
from ._errors import InputError, ScenarioError
from .records import Key

__all__ = ["Grid", "Value", "check", "column_kind", "points_of", "seeds_of", "texts_of", "typed", "variants_of"]

#: The most seeds of a call, as the command has it.
MAX_SEEDS = 10_000

Value = Union[str, int, float, bool]
#: What ``grid=`` takes: the values of each knob (a list, ``"LOW..HIGH/N"``, ``(LOW, HIGH, N)``), or the points themselves.
Grid = Union[Mapping[str, Union[str, Sequence[Value]]], Sequence[Mapping[str, Value]]]


def points_of(scenario: _pagetide.Scenario, grid: Grid) -> list[dict[str, str]]:
    """The points of a grid, each once, with values as text."""
    if isinstance(grid, Mapping):
        lists = {knob: _values_of(scenario, knob, values) for knob, values in grid.items()}
        made = [dict(zip(lists, values)) for values in itertools.product(*lists.values())]
    elif isinstance(grid, Iterable) and not isinstance(grid, (str, bytes)):
        made = [dict(point) for point in grid]
        if not made:
            raise InputError("there is no point", "give one at least")
    else:
        raise TypeError(f"a grid is a dict of lists, or a list of dicts, not {grid!r}")
    points = [texts_of(point) for point in made]
    return list({Key.of("", point, 0): point for point in points}.values())


def _values_of(scenario: _pagetide.Scenario, knob: str, values: str | Sequence[Value]) -> Sequence[Value]:
    """The values of a knob: a list as it is, or those of a range."""
    if isinstance(values, (str, tuple)):
        ((_, texts),) = _pagetide.knob_values(scenario, {knob: values})
        return texts
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{knob}: a grid has a list of values for each knob, or a range, not {values!r}")
    listed = list(values)
    if not listed:
        raise InputError(f"{knob} has no values", "give one at least")
    return listed


def check(scenario: _pagetide.Scenario, points: list[dict[str, str]]) -> None:
    """Every value of every knob, before anything runs.

    :raises ScenarioError: with the mistakes of all values that the scenario does not take.
    """
    firsts: dict[tuple[str, str], dict[str, str]] = {}
    for point in points:
        for pair in point.items():
            firsts.setdefault(pair, point)
    mistakes: dict[str, ScenarioError] = {}
    for (knob, value), point in firsts.items():
        try:
            scenario.set({knob: value})
        except ScenarioError as alone:
            # What is none alone may be one together with the others of its point.
            try:
                scenario.set(point)
            except ScenarioError:
                mistakes.setdefault(str(alone), alone)
    if mistakes:
        diagnostics = [diagnostic for error in mistakes.values() for diagnostic in error.diagnostics]
        raise ScenarioError("\n\n".join(mistakes), diagnostics)


def texts_of(point: Mapping[str, Value]) -> dict[str, str]:
    """Values of knobs as text."""
    texts = {}
    for knob, value in point.items():
        if isinstance(value, bool):
            texts[knob] = "true" if value else "false"
        elif isinstance(value, float) and value.is_integer():
            texts[knob] = str(int(value))
        else:
            texts[knob] = str(value)
    return texts


def seeds_of(seeds: int | Iterable[int] | None, scenario: _pagetide.Scenario) -> list[int]:
    """The seeds that ``seeds=`` means: so many from the scenario's first, or these. As ``Scenario.run`` takes them.

    :raises InputError: there are none or too many, one is none, or is given twice.
    """
    known = list(scenario.seeds)
    if seeds is None:
        return known
    if isinstance(seeds, bool):
        raise TypeError("seeds is a number or a list of numbers")
    try:
        count = operator.index(seeds)  # type: ignore[arg-type]
    except TypeError:
        return _listed_seeds(seeds)  # type: ignore[arg-type]
    if not 1 <= count <= MAX_SEEDS:
        raise InputError(
            f"cannot run with {count} seeds", f"give a number from 1 to {MAX_SEEDS}, or a list of seeds"
        )
    if known[0] + count > 2**64:
        raise InputError("the seeds end beyond 2^64 - 1", "choose a smaller first seed")
    return list(range(known[0], known[0] + count))


def _listed_seeds(seeds: Iterable[int]) -> list[int]:
    if not isinstance(seeds, Iterable):
        raise TypeError("seeds is a number, or a list or range of numbers")
    chosen: dict[int, None] = {}
    for given in seeds:
        try:
            seed = -1 if isinstance(given, bool) else operator.index(given)
        except TypeError:
            seed = -1
        if not 0 <= seed < 2**64:
            raise InputError(f"{given!r} is no seed", "a seed is a whole number from 0 to 2^64 - 1")
        if seed in chosen:
            raise InputError(f"the seed {seed} is given twice", "a run with the same seed is the same run")
        chosen[seed] = None
        if len(chosen) > MAX_SEEDS:
            raise InputError(f"more than {MAX_SEEDS} seeds", "share them among several calls")
    if not chosen:
        raise InputError("no seeds at all", "give one or more")
    return list(chosen)


def variants_of(variants: Sequence[str] | None, scenario: _pagetide.Scenario) -> list[str]:
    """The variants that ``variants=`` means: all of them, or these."""
    known = list(scenario.variants)
    if variants is None:
        return known
    chosen = [variants] if isinstance(variants, str) else list(variants)
    for name in chosen:
        if name not in known:
            raise InputError(f"there is no variant {name!r}", f"there is {', '.join(map(repr, known))}")
    return list(dict.fromkeys(chosen))


def column_kind(texts: list[str | None]) -> str:
    """What a column of knobs is: ``whole``, ``number`` or ``text``. Whole numbers beyond 64 bits stay text."""
    kinds = set()
    for text in texts:
        try:
            is_whole = text is None or (str(int(text)) == text and -(2**63) <= int(text) < 2**63)
            kinds.add("whole" if is_whole else "text")
        except ValueError:
            try:
                kinds.add("number" if math.isfinite(float(text)) else "text")  # type: ignore[arg-type]
            except ValueError:
                return "text"
    return "text" if "text" in kinds else "number" if "number" in kinds else "whole"


def typed(text: str | None, kind: str) -> Any:
    """A value of a column of this kind."""
    if text is None or kind == "text":
        return text
    return int(text) if kind == "whole" else float(text)
