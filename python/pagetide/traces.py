"""Page traces on workers: known by their contents, sent to those that lack them.

A scenario names the traces that it replays by path. A worker on another machine may not have such a path, or another
file there. So a unit of work says the SHA-256 of each trace. A worker where the scenario is not the same as it stands
looks for the traces at their paths and in its directory of traces; if it lacks one it says so, and the unit is sent
again with the contents.

Invariant: a file of the directory of traces is named after its contents, and is there whole or not at all.
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

    #: Where the scenario says it is.
    path: str
    #: Its digest, as ``Scenario.traces`` says it.
    digest: str
    #: SHA-256 of the file, in hexadecimal digits.
    sha256: str


def of(scenario: Scenario) -> tuple[Trace, ...]:
    """The traces of a scenario, with their SHA-256."""
    return tuple(Trace(str(path), digest, _sha256_of(str(path))) for path, digest in scenario.traces.items())


def contents(traces: Iterable[Trace], wanted: Iterable[str]) -> dict[str, bytes]:
    """The bytes of those traces whose SHA-256 is wanted."""
    paths = {trace.sha256: trace.path for trace in traces}
    return {sha256: Path(paths[sha256]).read_bytes() for sha256 in wanted}


def directory() -> Path:
    """Where this machine keeps traces that it was sent: ``$PAGETIDE_TRACES``, or one in the temporary directory."""
    named = os.environ.get("PAGETIDE_TRACES")
    return Path(named) if named else Path(tempfile.gettempdir()) / f"pagetide-traces-{os.getuid()}"


def _ours() -> Path:
    """The directory of traces, if nobody else can put there what this user runs."""
    kept = directory()
    if not os.environ.get("PAGETIDE_TRACES"):
        with contextlib.suppress(FileNotFoundError):
            status = kept.lstat()
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
                raise PermissionError(errno.EPERM, "is not a directory of this user", str(kept))
    return kept


def find(traces: Iterable[Trace], sent: Mapping[str, bytes]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Where the traces are on this machine, by digest, and the SHA-256 of those that are nowhere. What was sent is
    kept in the directory of traces.

    Raises ``OSError`` if it cannot be kept, or the directory in the temporary one is another user's.
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
    """Read once, as long as size and time of the file stay."""
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
