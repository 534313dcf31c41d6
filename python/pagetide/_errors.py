"""The exceptions of Pagetide. Each can be pickled, so that workers can raise them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, TypedDict

if TYPE_CHECKING:
    from ._pagetide import Result
    from .sweeps import Sweep

__all__ = [
    "Diagnostic",
    "Error",
    "ExecutorError",
    "Failure",
    "InputError",
    "Interrupted",
    "RunError",
    "ScenarioError",
    "StoreError",
    "VersionError",
]


class Diagnostic(TypedDict):
    """A mistake in a scenario."""

    file: str
    """The file as the user named it, `scenario` for a text, or the option that made the change."""
    line: int
    """Line, from 1; 0 for the whole file."""
    column: int
    """Column in characters, from 1; 0 for the whole file."""
    key: str | None
    """The key of the scenario, as `set` names it: `task.web.size`."""
    text: str
    """The offending text."""
    message: str
    """Description of the error."""
    hint: str | None
    """How to mend it."""


class Failure(TypedDict):
    """A run that failed."""

    variant: str
    seed: int
    message: str
    hint: str | None


class Error(Exception):
    """Base class of the errors of Pagetide."""


class ScenarioError(Error, ValueError):
    """A scenario has mistakes. The text lists all of them, as the command prints them."""

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(text, diagnostics)
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        """Each mistake."""

    def __str__(self) -> str:
        return str(self.args[0]).rstrip("\n")


class _Hinted(Error):
    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message: str = message
        """Description of the error."""
        self.hint: str | None = hint
        """How to mend it."""

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class InputError(_Hinted, ValueError):
    """An argument is invalid: an unknown name, a reversed range, an empty list of seeds."""


class VersionError(_Hinted):
    """Data belongs to another version of Pagetide, or to another scenario."""


class RunError(Error, RuntimeError):
    """Some runs failed."""

    def __init__(self, failures: Sequence[Failure], result: Result | None = None) -> None:
        super().__init__(failures, result)
        self.failures: list[Failure] = list(failures)
        """Each run that failed."""
        self.result: Result | None = result
        """The successful runs; `None` if the function has no common result for them."""

    def __str__(self) -> str:
        lines = []
        for failure in self.failures[:10]:
            lines.append(f"variant {failure['variant']}, seed {failure['seed']}: {failure['message']}")
            if failure["hint"] is not None:
                lines.append(f"hint: {failure['hint']}")
        if len(self.failures) > 10:
            lines.append(f"and {len(self.failures) - 10} more")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Results are not sent to other processes.
        return (type(self), (self.failures, None))


class ExecutorError(_Hinted):
    """The executor is unusable: it is closed, or its workers lack pagetide or have another
    version."""


class StoreError(_Hinted):
    """A store of runs is unreadable or unwritable, or has runs of another version."""


class Interrupted(KeyboardInterrupt):
    """^C was pressed: a `KeyboardInterrupt` that has the finished runs."""

    def __init__(self, missing: int = 0, result: Result | Sweep | None = None) -> None:
        super().__init__(missing, result)
        self.missing: int = missing
        """Number of runs that were not performed."""
        self.result: Result | Sweep | None = result
        """The finished runs: a `Result`, or a `Sweep` that is incomplete."""

    def __str__(self) -> str:
        return f"interrupted: {self.missing} runs are missing"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.missing, None))
