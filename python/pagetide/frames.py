"""Rows with named columns that other libraries read.

A frame is built on demand, from memory or as a stream from a store. polars, pandas 3, duckdb and
pyarrow read it directly (Arrow PyCapsule interface, provided by pyarrow or else by polars).
``to_dicts()`` needs no library.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .optional import need

__all__ = ["Frame"]

#: Rows in one batch.
BATCH_ROWS = 1 << 16


class Frame:
    """Rows, with the kind of each column: ``text``, ``whole`` (integer), ``number``, or ``seed``
    (unsigned, 64 bits)."""

    def __init__(
        self,
        columns: Mapping[str, str],
        rows: Callable[[], Iterator[tuple[Any, ...]]] | None = None,
        batches: Callable[[Any], Iterator[Any]] | None = None,
    ) -> None:
        """`rows` creates the rows; or `batches` creates record batches of a schema."""
        self._columns = dict(columns)
        self._rows = rows or self._rows_of_batches
        self._batches = batches or self._batches_of_rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Each row as a tuple, in the order of the columns."""
        return self._rows()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self._columns, row)) for row in self._rows())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each row as a dict."""
        return list(self)

    def to_dict(self) -> dict[str, list[Any]]:
        """Each column as a list."""
        columns = list(zip(*self._rows())) or [()] * len(self._columns)
        return {name: list(column) for name, column in zip(self._columns, columns)}

    def __arrow_c_schema__(self) -> Any:
        return self._schema().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if find_spec("pyarrow") is None and find_spec("polars") is not None:
            pl = import_module("polars")
            types = {"text": pl.String, "whole": pl.Int64, "seed": pl.UInt64, "number": pl.Float64}
            columns = pl.DataFrame(self.to_dict(), {name: types[kind] for name, kind in self._columns.items()})
            return columns.__arrow_c_stream__(requested_schema)
        return self.reader().__arrow_c_stream__(requested_schema)

    def reader(self) -> Any:
        """A ``pyarrow.RecordBatchReader``, which can be read once."""
        pa = _arrow()
        schema = self._schema()
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches_of_rows(self, schema: Any) -> Iterator[Any]:
        pa = _arrow()
        rows = self._rows()
        while some := list(itertools.islice(rows, BATCH_ROWS)):
            arrays = [pa.array(column, field.type) for column, field in zip(zip(*some), schema)]
            yield pa.record_batch(arrays, schema=schema)

    def _rows_of_batches(self) -> Iterator[tuple[Any, ...]]:
        for batch in self._batches(self._schema()):
            yield from zip(*(column.to_pylist() for column in batch.columns))

    def _schema(self) -> Any:
        pa = _arrow()
        types = {"text": pa.string(), "whole": pa.int64(), "seed": pa.uint64(), "number": pa.float64()}
        return pa.schema([(name, types[kind]) for name, kind in self._columns.items()])

    def __repr__(self) -> str:
        return f"<pagetide.Frame: {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        some = list(itertools.islice(self._rows(), 21))
        head = "".join(f"<th>{escape(name)}</th>" for name in self._columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in row) + "</tr>"
            for row in some[:20]
        )
        more = "<p>and more</p>" if len(some) > 20 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _arrow() -> Any:
    return need("store", "an Arrow stream (to_dicts() needs nothing)", "pyarrow")
