"""Optional libraries: imported on first use, with an error that says how to install them.

They are extras of the package: ``pip install 'pagetide[plots]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._errors import Error

__all__ = ["need"]


def need(extra: str, what: str, *modules: str) -> Any:
    """Imports these modules and returns the first.

    :raises Error: a module is not installed; `what` names the feature that needs it.
    """
    try:
        return [import_module(module) for module in modules][0]
    except ImportError as error:
        raise Error(f"{what} needs {modules[0]}: pip install 'pagetide[{extra}]'") from error
