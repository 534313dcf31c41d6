"""The bar of `progress=True`: tqdm's if it is there, else a line on stderr."""

from __future__ import annotations

import sys
from typing import Any, Callable

__all__ = ["bar"]


def bar() -> Callable[[int, int], None]:
    """A function that is called with (done, total) and shows how many runs are left."""
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return _Line()
    return _Tqdm(tqdm)


class _Tqdm:
    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._tqdm(total=total, unit="run")
        self._bar.update(done - self._bar.n)
        if done == total:
            self._bar.close()


class _Line:
    def __call__(self, done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} runs, {total - done} left", end=end, file=sys.stderr, flush=True)
