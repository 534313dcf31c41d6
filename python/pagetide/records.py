"""A run in Python: its key and its measurements.

A row is the JSON of one run, as ``_pagetide.perform`` writes it. This module parses and rebuilds
rows. Numbers keep every bit, because Python writes a float in the shortest form that reads back as
the same float.

Invariant: the order of a sweep's runs is fixed: by variant, knobs (numbers by value) and seed.
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
    #: Why the value is no measurement: ``oom-killed``, ``refused``, ``io-error``, ``cut``,
    #: ``stopped``, ``incomplete-run``; else None.
    ended: str | None


class Key(NamedTuple):
    """Identifies a run of a sweep."""

    variant: str
    #: Knobs and their values, sorted by name.
    knobs: tuple[tuple[str, str], ...]
    seed: int

    @staticmethod
    def of(variant: str, knobs: Mapping[str, str] | Iterable[tuple[str, str]], seed: int) -> Key:
        """Creates a key with sorted knobs."""
        pairs = knobs.items() if isinstance(knobs, Mapping) else knobs
        return Key(variant, tuple(sorted(pairs)), seed)

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key."""
        names = tuple(name for name, _ in self.knobs)
        return (self.variant, names, tuple(quantities.order(value) for _, value in self.knobs), self.seed)


@dataclass(frozen=True)
class Run:
    """A finished run."""

    key: Key
    #: Digest of the scenario that was run, with the knobs set.
    digest: str
    version: str
    metrics: dict[str, Measured]
    #: The row without its metrics, as JSON.
    rest: str

    @staticmethod
    def of_row(row: bytes, knobs: Mapping[str, str]) -> Run:
        """Parses the row of a point with these knobs."""
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
        """The row, as ``_pagetide.Result.from_rows`` accepts it."""
        tree = json.loads(self.rest)
        metrics: dict[str, dict[str, Any]] = {}
        for name, (value, unit, ended) in self.metrics.items():
            metrics[name] = {"value": value, "unit": unit}
            if ended is not None:
                metrics[name]["ended"] = ended
        _record(tree)["metrics"] = metrics
        return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode()


def _record(tree: dict[str, Any]) -> dict[str, Any]:
    """The part of a row with the measurements: the top level, or the value of their own key."""
    return tree["record"] if "record" in tree else tree
