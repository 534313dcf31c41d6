"""What a sweep goes over: points, variants and seeds, as its caller says them.

Invariant: a point has texts, as ``pagetide run --set`` takes them; points, variants and seeds are there once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _pagetide
from ._errors import InputError, ScenarioError
from .records import Key

__all__ = ["Grid", "Value", "check", "column_kind", "points_of", "seeds_of", "texts_of", "typed", "variants_of"]

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
    """The seeds that ``seeds=`` means: so many from the scenario's first, or these."""
    known = list(scenario.seeds)
    if seeds is None:
        return known
    if isinstance(seeds, bool) or isinstance(seeds, (str, float)):
        raise TypeError("seeds= takes a number or a list of numbers")
    if isinstance(seeds, int):
        if seeds < 1:
            raise InputError(f"{seeds} seeds", "one at least")
        return list(range(known[0], known[0] + seeds))
    chosen = list(dict.fromkeys(int(seed) for seed in seeds))
    if not chosen:
        raise InputError("no seeds", "give one at least")
    return chosen


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
    """What a column of knobs is: ``whole``, ``number`` or ``text``."""
    kinds = set()
    for text in texts:
        try:
            kinds.add("whole" if text is None or str(int(text)) == text else "text")
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
