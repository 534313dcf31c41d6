"""Page traces on workers: identified by their contents, sent to workers that lack them.

A scenario names its traces by path. A worker on another machine may lack the path, or have another
file there. So a unit of work has the SHA-256 of each trace. If the scenario's digest differs on the
worker, the worker looks for the traces at their paths and in its trace directory. It reports
missing traces, and the unit is sent again with their contents.

Invariant: a file in the trace directory is named after its contents, and is complete or absent.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._pagetide import Scenario

__all__ = ["Trace", "contents", "find", "of"]


@dataclass(frozen=True)
class Trace:
    """A trace that a scenario replays."""

    #: Its path in the scenario.
    path: str
    #: Its digest, as in ``Scenario.traces``.
    digest: str
    #: SHA-256 of the file, in hexadecimal digits.
    sha256: str


def of(scenario: Scenario) -> tuple[Trace, ...]:
    """The traces of a scenario, with their SHA-256."""
    return tuple(Trace(str(path), digest, _sha256_of(str(path))) for path, digest in scenario.traces.items())


def contents(traces: Iterable[Trace], wanted: Iterable[str]) -> dict[str, bytes]:
    """The bytes of the traces with a wanted SHA-256."""
    paths = {trace.sha256: trace.path for trace in traces}
    return {sha256: Path(paths[sha256]).read_bytes() for sha256 in wanted}


def directory() -> Path:
    """The trace directory of this machine: ``$PAGETIDE_TRACES``, or one in the temporary
    directory."""
    named = os.environ.get("PAGETIDE_TRACES")
    return Path(named) if named else Path(tempfile.gettempdir()) / f"pagetide-export-{os.getuid()}"


def _ours() -> Path:
    """The trace directory in the temporary directory, if only this user can write to it."""
    kept = directory()
    if not os.environ.get("PAGETIDE_TRACES"):
        with contextlib.suppress(FileNotFoundError):
            status = kept.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
                raise PermissionError(errno.EPERM, "is not owned by this user", str(kept))
    return kept


def find(traces: Iterable[Trace], sent: Mapping[str, bytes]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The paths of the traces on this machine, by digest, and the SHA-256 of missing ones. Received
    traces are stored in the trace directory.

    Raises ``OSError`` if storing fails, or if the directory belongs to another user.
    """
    here: dict[str, str] = {}
    lacking: list[str] = []
    for trace in traces:
        if _is(trace.path, trace.sha256):
            here[trace.digest] = trace.path
            continue
        kept = _ours() / (trace.sha256 + Path(trace.path).suffix)
        if not _is(str(kept), trace.sha256):
            if trace.sha256 not in sent:
                lacking.append(trace.sha256)
                continue
            _keep(kept, sent[trace.sha256])
        here[trace.digest] = str(kept)
    return here, tuple(lacking)


def _is(path: str, sha256: str) -> bool:
    try:
        return _sha256_of(path) == sha256
    except OSError:
        return False


def _sha256_of(path: str) -> str:
    status = os.stat(path)
    return _sha256(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=256)
def _sha256(path: str, _size: int, _mtime_ns: int) -> str:
    """Cached as long as size and time of the file do not change."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _keep(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _ours()
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
