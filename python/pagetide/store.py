"""A Parquet data set with a row for each finished run.

The files are ``DIR/scenario=DIGEST/*.parquet``, with the digest of the scenario that is swept. A
row has the version, the variant, the seed, the knobs, the metrics as a list of (metric, value,
unit, ended), and the rest of the run as JSON. polars, duckdb, pandas and Spark read it directly.
Requires pyarrow: ``pip install 'pagetide[store]'``.

Runs are appended in parts, every few seconds. When a sweep is complete, the parts are merged into
one file in the order of runs, a few parts at a time, which bounds the memory.

Invariant: if the process is killed, the directory stays readable and lacks only the runs of the
last seconds: a file is complete or absent. (A killed merge may leave runs in two files; the next
opening of the store finishes the merge.) The bytes of a complete sweep's file do not depend on
which executor performed the runs.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import parquet
from ._errors import StoreError
from .records import Key, Run

__all__ = ["Store"]

#: The locked stores of this process.
_locked: weakref.WeakSet[Store] = weakref.WeakSet()


def _leave_locks() -> None:
    """Releases inherited locks in a forked child, which could outlive the parent."""
    for store in list(_locked):
        if store._lock is not None:
            os.close(store._lock)
            store._lock = None
    _locked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_locks)

#: The file of a complete sweep.
WHOLE = "runs.parquet"
#: Runs, bytes or seconds after which a part is written.
PART_RUNS, PART_BYTES, PART_SECONDS = 1024, 32 << 20, 5.0
#: Number of files in one merge.
FAN_IN = 16


class Store:
    """The runs of one scenario in a directory. Use it in ``with``: leaving the block writes pending
    runs."""

    def __init__(self, directory: str | os.PathLike[str], digest: str, version: str) -> None:
        """Opens or creates the store.

        Raises ``StoreError`` if the directory is not writable, has runs of another version, or is
        in use by another process.
        """
        parquet.arrow()
        self.directory: Path = Path(directory) / f"scenario={digest}"
        self.version = version
        self.waiting: list[Run] = []
        self.waiting_bytes: int = 0
        self.since: float = time.monotonic()
        self._lock: int | None = None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            for left in self.directory.glob(".writing-*"):
                left.unlink()
        except OSError as error:
            raise StoreError(f"cannot keep runs in {self.directory}: {error}") from error
        try:
            self.keys: set[Key] = set()
            if self._read_keys():
                # A merge was killed before it removed the merged parts.
                self.finish()
        except BaseException:
            self._drop_lock()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            self._drop_lock()

    def __contains__(self, key: Key) -> bool:
        return key in self.keys

    def __len__(self) -> int:
        return len(self.keys)

    def append(self, run: Run) -> bool:
        """Adds a run; returns false if it is stored already. Raises ``StoreError`` if the write
        fails."""
        if run.version != self.version:
            raise StoreError(f"a run of version {run.version} in a store of version {self.version}")
        if run.key in self.keys:
            return False
        self.keys.add(run.key)
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append(run)
        self.waiting_bytes += 64 * len(run.metrics) + len(run.rest)
        is_old = time.monotonic() - self.since >= PART_SECONDS
        if is_old or len(self.waiting) >= PART_RUNS or self.waiting_bytes >= PART_BYTES:
            self.flush()
        return True

    def flush(self) -> None:
        """Writes pending runs as a part."""
        if not self.waiting:
            return
        runs = sorted(self.waiting, key=lambda run: run.key.order)
        try:
            parquet.write(self._new_part(), runs)
        except OSError as error:
            raise StoreError(
                f"cannot write runs to {self.directory}: {error}", "the same call continues where this one stopped"
            ) from error
        self.waiting.clear()
        self.waiting_bytes = 0

    def finish(self) -> None:
        """Merges all parts into one file, in the order of runs."""
        self.flush()
        try:
            while (files := self.files()) and [file.name for file in files] != [WHOLE]:
                for at in range(0, len(files), FAN_IN):
                    group = files[at : at + FAN_IN]
                    into = self.directory / WHOLE if len(files) <= FAN_IN else self._new_part()
                    parquet.merge(group, into)
                    for file in group:
                        if file != into:
                            file.unlink()
        except OSError as error:
            raise StoreError(f"cannot merge the parts in {self.directory}: {error}") from error

    def files(self) -> list[Path]:
        """The files of the store. Each is in the order of runs; merged files come first."""
        return sorted(self.directory.glob("*.parquet"))

    def batches(self) -> Iterator[Any]:
        """All written runs as record batches; in order, once the store is finished."""
        for file in self.files():
            yield from parquet.batches(file)

    def runs(self) -> Iterator[Run]:
        """All written runs, parsed."""
        for file in self.files():
            yield from parquet.runs(file)

    def _new_part(self) -> Path:
        return self.directory / f"part-{uuid.uuid4().hex}.parquet"

    def _read_keys(self) -> bool:
        """Reads the keys of all runs. Returns whether any run is stored twice."""
        pa = parquet.arrow()
        count = 0
        for path in self.files():
            try:
                for batch in parquet.batches(path, ["version", "variant", "seed", "knobs"]):
                    for version in set(batch.column("version").to_pylist()) - {self.version}:
                        raise StoreError(
                            f"{path} has runs of pagetide {version}, and this is {self.version}",
                            "name another directory",
                        )
                    self.keys.update(parquet.keys(batch))
                    count += batch.num_rows
            except (OSError, KeyError, pa.ArrowException) as error:
                raise StoreError(f"cannot read {path}: {error}") from error
        return count > len(self.keys)

    def _take_lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows has no locks: continue without one
            return
        lock = os.open(self.directory / ".lock", os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise StoreError(
                f"another process writes to {self.directory}",
                "wait for it, or name another directory",
            ) from None
        except OSError:
            pass  # the file system has no locks: continue without one
        self._lock = lock
        _locked.add(self)

    def _drop_lock(self) -> None:
        if self._lock is None:
            return
        import fcntl

        lock, self._lock = self._lock, None
        _locked.discard(self)
        with contextlib.suppress(OSError):
            # Unlock explicitly: a child forked in the meantime may still have the file open.
            fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
