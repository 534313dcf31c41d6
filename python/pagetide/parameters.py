"""The parameters that a calibration may change, each with a range.

Only the workload and the hardware may be free: ``task.*``, ``file.*``, ``machine.*``, and the
kernel objects that tasks create (``cache.*``, ``call.*``). The kernel's behaviour and costs,
policies, sysctls and limits of groups are what the fitted scenario must predict.

Invariant: a value of a parameter is a text that the scenario accepts, with three significant
digits, so that a trial can be repeated by hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import quantities
from ._errors import InputError

__all__ = ["Choice", "Free", "Parameter", "Range", "parameters"]

Number = Union[str, int, float]
#: ``free=``: (low, high) or a list of choices, for each key, or for several keys with one value.
Free = Mapping[Union[str, tuple[str, ...]], Union[tuple[Number, Number], Sequence[Union[Number, bool]]]]
_ALLOWED = ("task.", "file.", "machine.", "cache.", "call.")
_PAGE = 4096


@dataclass(frozen=True)
class Range:
    """A number between two others. A range that spans a factor of ten or more is searched on a
    logarithmic scale."""

    #: The keys that get this value.
    keys: tuple[str, ...]
    low: float
    high: float
    kind: str
    whole: bool

    @property
    def key(self) -> str:
        """The first key."""
        return self.keys[0]

    @property
    def is_log(self) -> bool:
        """Whether the scale is logarithmic."""
        return self.low > 0 and self.high >= 10 * self.low

    def share(self, text: str) -> float:
        """The position of a value in the range, from 0 to 1."""
        found = quantities.read(text)
        value = self.low if found is None else found.value
        low, high = self.low, self.high
        if self.is_log:
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        return (value - low) / (high - low)

    def at(self, share: float) -> str:
        """The value at a position of the range, as text."""
        share = min(1.0, max(0.0, share))
        if self.is_log:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        value = min(self.high, max(self.low, _rounded(value)))
        if self.kind == "bytes" and self.low >= _PAGE:
            value = max(_PAGE, _PAGE * round(value / _PAGE))
        if self.whole:
            value = round(value)
        return quantities.write(value, self.kind)


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    keys: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def key(self) -> str:
        """The first key."""
        return self.keys[0]


Parameter = Union[Range, Choice]


def parameters(free: Free) -> list[Parameter]:
    """The parameters of ``free=``. Raises ``InputError`` for keys that cannot be free, and for
    invalid ranges."""
    if not isinstance(free, Mapping) or not free:
        raise InputError("nothing is free", 'free={"task.web.accesses": (1000, 100_000)}')
    made = [_parameter(_keys(key), given) for key, given in free.items()]
    keys = [key for parameter in made for key in parameter.keys]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"{key} is free twice", "give it one range")
    return made


def _keys(given: Any) -> tuple[str, ...]:
    keys = (given,) if isinstance(given, str) else given
    if not isinstance(keys, tuple) or not all(isinstance(key, str) for key in keys):
        raise TypeError(f"free= needs a key, or a tuple of keys, for each parameter, not {given!r}")
    if not keys:
        raise InputError(
            "a parameter without a key",
            'give a tuple of at least one key: ("task.a.size", "task.b.size")',
        )
    return keys


def _parameter(keys: tuple[str, ...], given: Any) -> Parameter:
    for key in keys:
        if not key.startswith(_ALLOWED):
            raise InputError(
                f"{key} may not be free: only the workload and the hardware may be fitted, not what the kernel does",
                f"use keys that begin with {', '.join(_ALLOWED)}",
            )
    key = ", ".join(keys)
    if isinstance(given, list):
        if len(given) < 2:
            raise InputError(
                f"{key}: {given!r} is not a choice", "a list needs at least two values; a range is a tuple"
            )
        values = tuple(map(_text, given))
        for at, value in enumerate(values):
            if any(_is_same(value, other) for other in values[:at]):
                raise InputError(f"{key}: the choice {value} occurs twice", "give each value once")
        return Choice(keys, values)
    if not isinstance(given, tuple) or len(given) != 2:
        raise InputError(f"{key}: {given!r} is not a range", "a range is (low, high), choices are a list")
    low, high = (quantities.read(end) for end in given)
    if low is None or high is None or low.kind != high.kind:
        raise InputError(
            f"{key}: {given!r} is not a range",
            'both ends must be numbers of one kind, as ("64KiB", "2MiB")',
        )
    if not low.value < high.value:
        raise InputError(f"{key}: the range {given!r} is reversed or empty", "give the lower end first")
    whole = all(isinstance(end, int) for end in given)
    return Range(keys, low.value, high.value, low.kind, whole)


def _is_same(one: str, other: str) -> bool:
    quantity = quantities.read(one)
    return one == other or (quantity is not None and quantity == quantities.read(other))


def _rounded(value: float) -> float:
    """Rounds to three significant digits."""
    return float(f"{value:.3g}")


def _text(value: object) -> str:
    """A value as scenarios accept it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
