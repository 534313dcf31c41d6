"""Reads the rows of ``pagetide sweep --store``: a directory of ``*.jsonl`` files, for example from
shards on many machines.

Invariant: a last line without a line end is incomplete and ignored, as in the command.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._errors import InputError
from .frames import Frame
from .grid import column_kind, typed
from .records import Key, Run

__all__ = ["read_rows"]


def read_rows(directory: str | os.PathLike[str]) -> Frame:
    """The metrics of a store of the command, each once: variant, a column for each knob, seed,
    metric, unit, value, ended.

    Numbers are in the metric's unit.

    :raises InputError: there are no rows, a line is invalid, or rows are of different scenarios or
        versions.
    """
    runs: dict[Key, Run] = {}
    origin: tuple[str, str] | None = None
    for path in sorted(Path(directory).glob("*.jsonl")):
        for number, line in enumerate(_lines(path), 1):
            try:
                knobs = json.loads(line)["knobs"]
                run = Run.of_row(line, knobs)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{path}, line {number} is not a row: {error}", "`pagetide sweep --store` writes rows"
                )
            of = (run.digest, run.version)
            if origin is not None and of != origin:
                raise InputError(
                    f"{path}, line {number} is of another scenario or version",
                    "use the rows of one sweep only",
                )
            origin = of
            if run.key in runs and runs[run.key] != run:
                raise InputError(
                    f"{path}, line {number}: two rows of the same run differ", "remove one of the stores"
                )
            runs[run.key] = run
    if not runs:
        raise InputError(f"{directory} has no rows", "give the directory that `pagetide sweep --store` filled")
    ordered = [runs[key] for key in sorted(runs, key=lambda key: key.order)]
    names = dict.fromkeys(name for run in ordered for name, _ in run.key.knobs)
    kinds = {name: column_kind([dict(run.key.knobs).get(name) for run in ordered]) for name in names}
    columns = {"variant": "text", **kinds, "seed": "seed", "metric": "text", "unit": "text"}
    columns |= {"value": "number", "ended": "text"}

    def rows() -> Iterator[tuple[Any, ...]]:
        for run in ordered:
            knobs = dict(run.key.knobs)
            at = tuple(typed(knobs.get(name), kind) for name, kind in kinds.items())
            for name, (value, unit, ended) in run.metrics.items():
                yield (run.key.variant, *at, run.key.seed, name, unit, value, ended)

    return Frame(columns, rows)


def _lines(path: Path) -> list[bytes]:
    text = path.read_bytes()
    return [line for line in text[: text.rfind(b"\n") + 1].split(b"\n") if line]
