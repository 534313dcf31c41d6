"""Progress of runs.

``progress=None`` shows a bar on a terminal or in a notebook, if tqdm or rich is installed. ``True``
always shows progress, as plain lines if neither is installed. ``False`` shows nothing. A function
is called with (done, total) after every answer.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, Union

__all__ = ["Bar", "Progress", "bar", "told"]

#: Type of ``progress=``.
Progress = Union[bool, None, Callable[[int, int], object]]


class Bar:
    """Shows nothing; base class of the visible bars."""

    def __init__(self, total: int, done: int = 0) -> None:
        self.total: int = total
        self.done: int = done

    def add(self, count: int) -> None:
        """Adds `count` finished runs."""
        self.done += count
        self.show()

    def grow(self, count: int) -> None:
        """Adds `count` runs to the total."""
        self.total += count
        self.show()

    def show(self) -> None:
        """Draws it."""

    def close(self) -> None:
        """Ends the display."""


class _Told(Bar):
    def __init__(self, total: int, done: int, tell: Callable[[int, int], object]) -> None:
        super().__init__(total, done)
        self.tell = tell

    def show(self) -> None:
        self.tell(self.done, self.total)


class _Tqdm(Bar):
    def __init__(self, total: int, done: int, tqdm: Any) -> None:
        super().__init__(total, done)
        self.inner = tqdm(total=total, initial=done, unit="run", leave=False)

    def show(self) -> None:
        self.inner.total = self.total
        self.inner.update(self.done - self.inner.n)

    def close(self) -> None:
        self.inner.close()


class _Rich(Bar):
    def __init__(self, total: int, done: int, progress: Any) -> None:
        super().__init__(total, done)
        self.inner = progress
        self.task = progress.add_task("runs", total=total, completed=done)
        progress.start()

    def show(self) -> None:
        self.inner.update(self.task, total=self.total, completed=self.done)

    def close(self) -> None:
        self.inner.stop()


class _Lines(Bar):
    """Prints a line every ten seconds, and one at the end."""

    def __init__(self, total: int, done: int) -> None:
        super().__init__(total, done)
        self.began = self.last = time.monotonic()

    def show(self) -> None:
        now = time.monotonic()
        if now - self.last >= 10:
            self.last = now
            print(f"{self.done} of {self.total} runs, {now - self.began:.0f} s", file=sys.stderr)

    def close(self) -> None:
        self.last = float("-inf")
        self.show()


def _is_looked_at() -> bool:
    try:
        shell = sys.modules["IPython"].get_ipython()
    except (KeyError, AttributeError):
        shell = None
    is_notebook = shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
    return is_notebook or (sys.stderr is not None and sys.stderr.isatty())


def bar(progress: Progress, total: int, done: int = 0) -> Bar:
    """The bar for ``progress=``; `done` of `total` runs are finished already."""
    if callable(progress):
        return _Told(total, done, progress)
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"progress must be True, False, None or a function of (done, total), not {progress!r}")
    if progress is False or total == done or (progress is None and not _is_looked_at()):
        return Bar(total, done)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without widgets
            return _Tqdm(total, done, import_module("tqdm.auto").tqdm)
    except ImportError:
        pass
    try:
        return _Rich(total, done, import_module("rich.progress").Progress())
    except ImportError:
        return _Lines(total, done) if progress else Bar(total, done)


def told() -> Callable[[int, int], None]:
    """A function of (done, total) that shows the progress of runs in the extension."""
    shown: list[Bar] = []

    def tell(done: int, total: int) -> None:
        if not shown:
            shown.append(bar(True, total))
        shown[0].add(done - shown[0].done)
        if done == total:
            shown[0].close()

    return tell
