"""Libraries that only some of the package needs: imported when they are used, with a word on how to get them.

They are extras of the package: ``pip install 'pagetide[store]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._errors import Error

__all__ = ["need"]


def need(extra: str, what: str, *modules: str) -> Any:
    """Imports these modules and returns the first.

    :raises Error: one is not installed; `what` says what needs it.
    """
    try:
        return [import_module(module) for module in modules][0]
    except ImportError as error:
        raise Error(f"{what} needs {modules[0]}: pip install 'pagetide[{extra}]'") from error
