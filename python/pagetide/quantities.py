"""Sizes, times and rates as text in the syntax of scenarios: ``64KiB``, ``100us``, ``500MiB/s``,
``5 %``.

The loader reads scenarios. This module is for ranges and results in Python, where a number is
needed: of bytes, seconds or bytes per second.

Invariant: the loader accepts the output of :func:`write` for a knob of the same kind.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

__all__ = ["Quantity", "order", "read", "write"]

_BYTES = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_BYTES |= {f"{unit}iB": size for unit, size in list(_BYTES.items()) if unit != "B"}
_BYTES |= {"kB": 1000, "KB": 1000, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_TEXT = re.compile(r"\s*([-+]?[0-9][0-9_]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ%]*)(/s)?\s*")


class Quantity(NamedTuple):
    """A number and its kind: ``bytes``, ``seconds``, ``bytes-per-second``, ``percent`` or
    ``number``."""

    value: float
    kind: str


def read(text: object) -> Quantity | None:
    """Parses a text or a number; None if it is not a quantity."""
    if isinstance(text, bool) or text is None:
        return None
    if isinstance(text, (int, float)):
        return Quantity(float(text), "number") if math.isfinite(text) else None
    matched = _TEXT.fullmatch(str(text))
    if matched is None:
        return None
    number, unit, rate = matched.groups()
    value = float(number.replace("_", ""))
    if rate:
        return Quantity(value * _BYTES[unit], "bytes-per-second") if unit in _BYTES else None
    if unit == "":
        return Quantity(value, "number")
    if unit == "%":
        return Quantity(value, "percent")
    if unit in _BYTES:
        return Quantity(value * _BYTES[unit], "bytes")
    if unit in _NANOSECONDS:
        return Quantity(value * _NANOSECONDS[unit] / 1e9, "seconds")
    return None


def write(value: float, kind: str) -> str:
    """Formats a quantity as scenarios accept it. Times are integer nanoseconds, sizes integer
    bytes."""
    if kind in ("bytes", "bytes-per-second"):
        size = max(0, round(value))
        rate = "/s" if kind == "bytes-per-second" else ""
        for unit in ("GiB", "MiB", "KiB"):
            if size and size % _BYTES[unit] == 0:
                return f"{size // _BYTES[unit]}{unit}{rate}"
        return f"{size}B{rate}"
    if kind == "seconds":
        whole = max(0, round(value * 1e9))
        for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
            if whole and whole % size == 0:
                return f"{whole // size}{unit}"
        return f"{whole}ns"
    text = repr(value)
    text = text.removesuffix(".0")
    return f"{text} %" if kind == "percent" else text


def order(text: str) -> tuple[int, float, str]:
    """Sort key for texts: numbers by value, before words."""
    quantity = read(text)
    return (1, 0.0, text) if quantity is None else (0, quantity.value, text)
