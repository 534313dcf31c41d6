"""The points, variants and seeds of a sweep, from the caller's arguments.

Invariant: values of a point are texts, as ``pagetide run --set`` accepts them. Points, variants and
seeds are unique.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _pagetide
from ._errors import InputError, ScenarioError
from .quantities import read
from .records import Key

__all__ = [
    "Grid",
    "Value",
    "are_sizes",
    "check",
    "column_kind",
    "points_of",
    "texts_of",
    "typed",
    "variants_of",
]

Value = Union[str, int, float, bool]
#: ``grid=``: the values of each knob (a list, or a range ``"LOW..HIGH/N"``), or a list of points.
Grid = Union[Mapping[str, Union[str, Sequence[Value]]], Sequence[Mapping[str, Value]]]


def points_of(scenario: _pagetide.Scenario, grid: Grid) -> list[dict[str, str]]:
    """The points of a grid, without duplicates, with values as text."""
    if isinstance(grid, Mapping):
        lists = {knob: _values_of(scenario, knob, values) for knob, values in grid.items()}
        made = [dict(zip(lists, values)) for values in itertools.product(*lists.values())]
    elif isinstance(grid, Iterable) and not isinstance(grid, (str, bytes)):
        made = [dict(point) for point in grid]
        if not made:
            raise InputError("the grid has no points", "give at least one")
    else:
        raise TypeError(f"a grid must be a dict of lists, or a list of dicts, not {grid!r}")
    points = [texts_of(point) for point in made]
    return list({Key.of("", point, 0): point for point in points}.values())


def _values_of(scenario: _pagetide.Scenario, knob: str, values: str | Sequence[Value]) -> Sequence[Value]:
    """The values of a knob: a list unchanged, or the values of a range."""
    if isinstance(values, str):
        return _pagetide.knob_values(scenario, knob, values)
    if isinstance(values, bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{knob}: a grid needs a list of values or a range for each knob, not {values!r}")
    listed = list(values)
    if not listed:
        raise InputError(f"{knob} has no values", "give at least one")
    return listed


def check(scenario: _pagetide.Scenario, points: list[dict[str, str]]) -> None:
    """Checks every value of every knob before any run.

    :raises ScenarioError: with the mistakes of all values that the scenario rejects.
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
            # A value that is invalid alone may be valid with the others of its point.
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


def variants_of(variants: Sequence[str] | None, scenario: _pagetide.Scenario) -> list[str]:
    """The variants that ``variants=`` selects; default is all."""
    known = list(scenario.variants)
    if variants is None:
        return known
    chosen = [variants] if isinstance(variants, str) else list(variants)
    for name in chosen:
        if name not in known:
            raise InputError(f"there is no variant {name!r}", f"choose from {', '.join(map(repr, known))}")
    return list(dict.fromkeys(chosen))


def column_kind(texts: list[str | None]) -> str:
    """The type of a column of knob values: ``whole``, ``number`` or ``text``. Integers beyond 64
    bits stay text."""
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


def are_sizes(texts: list[str | None]) -> bool:
    """Whether the values are sizes in bytes, of which one or more have a unit, and words."""
    quantities = [quantity for quantity in map(read, texts) if quantity is not None]
    kinds = {quantity.kind for quantity in quantities}
    return "bytes" in kinds and kinds <= {"bytes", "number"}


def typed(text: str | None, kind: str) -> Any:
    """Converts a value to the type of its column."""
    if text is None or kind == "text":
        return text
    if kind == "bytes":
        quantity = read(text)
        return None if quantity is None else round(quantity.value)
    return int(text) if kind == "whole" else float(text)
