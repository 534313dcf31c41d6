"""A run as Python has it: what tells it apart, and what it measured.

A row is the JSON of one run, as ``_pagetide.perform`` writes it. This module takes it apart and puts it together
again; the numbers come through to the last bit, since Python writes a float in the shortest form that reads as the
same.

Invariant: runs of a sweep are in one order, whoever made them: by variant, knobs (numbers by their size) and seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import quantities

__all__ = ["Key", "Measured", "Run"]


class Measured(NamedTuple):
    """A value of a metric."""

    value: float
    unit: str
    #: Why it is of work that was not done to its end: ``oom-killed``, ``io-error`` or ``cut``.
    ended: str | None


class Key(NamedTuple):
    """What tells runs of a sweep apart."""

    variant: str
    #: Knobs and what they were set to, by name.
    knobs: tuple[tuple[str, str], ...]
    seed: int

    @staticmethod
    def of(variant: str, knobs: Mapping[str, str] | Iterable[tuple[str, str]], seed: int) -> Key:
        """With the knobs in order."""
        pairs = knobs.items() if isinstance(knobs, Mapping) else knobs
        return Key(variant, tuple(sorted(pairs)), seed)

    @property
    def order(self) -> tuple[Any, ...]:
        """What to sort by."""
        names = tuple(name for name, _ in self.knobs)
        return (self.variant, names, tuple(quantities.order(value) for _, value in self.knobs), self.seed)


@dataclass(frozen=True)
class Run:
    """A run that was made."""

    key: Key
    #: Of the scenario that was run, with the knobs set.
    digest: str
    version: str
    metrics: dict[str, Measured]
    #: The row without its metrics, as JSON.
    rest: str

    @staticmethod
    def of_row(row: bytes, knobs: Mapping[str, str]) -> Run:
        """A row of a point at which these knobs were set."""
        tree = json.loads(row)
        record = _record(tree)
        metrics = {
            name: Measured(float(metric["value"]), metric["unit"], metric.get("ended"))
            for name, metric in record.pop("metrics").items()
        }
        digest = str(tree.get("scenario_digest", ""))
        key = Key.of(record["variant"], knobs, int(record["seed"]))
        return Run(key, digest, record["version"], metrics, json.dumps(tree, separators=(",", ":")))

    def row(self) -> bytes:
        """The row, as ``_pagetide.Result.from_rows`` takes it."""
        tree = json.loads(self.rest)
        metrics: dict[str, dict[str, Any]] = {}
        for name, (value, unit, ended) in self.metrics.items():
            metrics[name] = {"value": value, "unit": unit}
            if ended is not None:
                metrics[name]["ended"] = ended
        _record(tree)["metrics"] = metrics
        return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()


def _record(tree: dict[str, Any]) -> dict[str, Any]:
    """Where a row has what the run measured: at the top, or under its own name."""
    return tree["record"] if "record" in tree else tree
