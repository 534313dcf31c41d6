"""The progress bar for runs in the extension: a function that is called with (done, total)."""

from __future__ import annotations

from collections.abc import Callable

from . import progress

__all__ = ["bar"]


def bar() -> Callable[[int, int], None]:
    """Returns a function that is called with (done, total) and shows the progress."""
    shown: list[progress.Bar] = []

    def tell(done: int, total: int) -> None:
        if not shown:
            shown.append(progress.bar(True, total))
        shown[0].add(done - shown[0].done)
        if done == total:
            shown[0].close()

    return tell
