"""Runs as rows of Parquet files, with pyarrow.

A row has the version, the variant, the seed, the knobs, the digest of the scenario, the metrics as
a list of (metric, value, unit, ended), and the rest of the run as JSON.

Invariant: each file has its runs in order (:class:`pagetide.records.Key`), and is complete or
absent. A merge holds one row group of each file in memory, and no more.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ._errors import StoreError
from .optional import need
from .records import Key, Measured, Run

__all__ = ["arrow", "batches", "keys", "merge", "runs", "write"]

#: Runs in a row group, the unit of reading.
GROUP_RUNS = 64
_KEY = ["variant", "seed", "knobs"]


def arrow() -> Any:
    """The module pyarrow."""
    return need("store", "a store", "pyarrow", "pyarrow.compute", "pyarrow.parquet")


def schema() -> Any:
    """Columns of the files."""
    pa = arrow()
    word = pa.string()
    metric = pa.struct([("metric", word), ("value", pa.float64()), ("unit", word), ("ended", word)])
    fields = [("version", word), ("variant", word), ("seed", pa.uint64()), ("knobs", pa.map_(word, word))]
    fields += [("digest", word), ("metrics", pa.list_(pa.field("item", metric))), ("rest", word)]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])


def write(path: Path, made: Sequence[Run]) -> None:
    """Writes runs, which must be in order."""
    groups = (made[at : at + GROUP_RUNS] for at in range(0, len(made), GROUP_RUNS))
    _write_whole(path, (_batch(group) for group in groups))


def runs(path: Path) -> Iterator[Run]:
    """The runs of a file, one row group at a time."""
    for batch in batches(path):
        for row in batch.to_pylist():
            metrics = {it["metric"]: Measured(it["value"], it["unit"], it["ended"]) for it in row["metrics"]}
            key = Key.of(row["variant"], row["knobs"], row["seed"])
            yield Run(key, row["digest"], row["version"], metrics, row["rest"])


def batches(path: Path, columns: list[str] | None = None) -> Iterator[Any]:
    """A record batch for each row group of a file."""
    pa = arrow()
    with pa.parquet.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group, columns=columns).combine_chunks().to_batches()


def keys(batch: Any) -> list[Key]:
    """The keys of the runs in a batch."""
    columns = [batch.column(name).to_pylist() for name in ("variant", "knobs", "seed")]
    return [Key.of(*row) for row in zip(*columns)]


class _Cursor:
    """A file that is read sequentially."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys = [key for batch in batches(path, _KEY) for key in keys(batch)]
        self.rest = batches(path)
        self.buffer: list[Any] = []

    def take(self, count: int) -> list[Any]:
        """The next rows, as batches."""
        taken = []
        while count:
            batch = self.buffer.pop() if self.buffer else next(self.rest)
            taken.append(batch.slice(0, count))
            if batch.num_rows > count:
                self.buffer.append(batch.slice(count))
            count -= taken[-1].num_rows
        return taken


def merge(files: Sequence[Path], into: Path) -> None:
    """Merges the runs of several files in order into one file, without duplicates.

    Raises ``StoreError`` if two files have a run with different results.
    """
    pa = arrow()
    cursors = [_Cursor(path) for path in files]
    # The source of each run of the new file. Files are read sequentially, so the sequence of
    # sources suffices.
    order = sorted(
        (key.order, at, place, key) for at, cursor in enumerate(cursors) for place, key in enumerate(cursor.keys)
    )

    def groups() -> Iterator[Any]:
        last: tuple[Key, Any] | None = None
        for begin in range(0, len(order), GROUP_RUNS):
            some = order[begin : begin + GROUP_RUNS]
            counts = [0] * len(cursors)
            for _, at, _, _ in some:
                counts[at] += 1
            taken = [batch for cursor, count in zip(cursors, counts) for batch in cursor.take(count)]
            table = pa.Table.from_batches(taken, schema())
            places, starts = [], [sum(counts[:at]) for at in range(len(cursors))]
            for _, at, _, key in some:
                here = table.slice(starts[at], 1)
                if last is not None and last[0] == key:
                    _check_equal(key, last[1], here)
                else:
                    places.append(starts[at])
                last = (key, here)
                starts[at] += 1
            yield from table.take(pa.array(places, pa.int64())).combine_chunks().to_batches()

    _write_whole(into, groups())


def _check_equal(key: Key, one: Any, other: Any) -> None:
    a, b = one.to_pylist()[0], other.to_pylist()[0]
    if a["metrics"] != b["metrics"] or json.loads(a["rest"]) != json.loads(b["rest"]):
        raise StoreError(f"two runs of {key} differ")


def _write_whole(path: Path, made: Iterable[Any]) -> None:
    """Writes batches as a complete file or not at all. All row groups have the same size,
    independent of the batches."""
    pa = arrow()
    temporary = path.with_name(f".writing-{uuid.uuid4().hex}")
    try:
        with pa.parquet.ParquetWriter(temporary, schema(), compression="zstd") as file:
            waiting: list[Any] = []
            rows = 0
            for batch in made:
                waiting.append(batch)
                rows += batch.num_rows
                if rows >= GROUP_RUNS:
                    table = pa.Table.from_batches(waiting)
                    file.write_table(table.slice(0, GROUP_RUNS).combine_chunks())
                    waiting = table.slice(GROUP_RUNS).to_batches()
                    rows -= GROUP_RUNS
            if rows:
                file.write_table(pa.Table.from_batches(waiting).combine_chunks())
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _batch(some: Sequence[Run]) -> Any:
    """Runs as a record batch."""
    pa = arrow()
    columns = schema()
    kind = columns.field("metrics").type
    offsets, flat = [0], []
    for run in some:
        flat += [(name, *measured) for name, measured in run.metrics.items()]
        offsets.append(len(flat))
    names, values, units, ends = zip(*flat) if flat else ((), (), (), ())
    word = pa.string()
    arrays = [pa.array(names, word), pa.array(values, pa.float64()), pa.array(units, word), pa.array(ends, word)]
    items = pa.StructArray.from_arrays(arrays, fields=list(kind.value_type))
    return pa.record_batch(
        [
            pa.array([run.version for run in some], word),
            pa.array([run.key.variant for run in some], word),
            pa.array([run.key.seed for run in some], pa.uint64()),
            pa.array([list(run.key.knobs) for run in some], columns.field("knobs").type),
            pa.array([run.digest for run in some], word),
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=kind),
            pa.array([run.rest for run in some], word),
        ],
        schema=columns,
    )
