"""What can be wrong, as exceptions. Each can be pickled, as workers of other processes must."""

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
    """One mistake of a scenario."""

    file: str
    """Where: the file as it was named, `scenario` for a text, or the option that changed it."""
    line: int
    """From 1; 0: the whole file."""
    column: int
    """In characters, from 1; 0: the whole file."""
    key: str | None
    """The key of the scenario that it is at, as `set` names it: `task.web.size`."""
    text: str
    """The offending text."""
    message: str
    """What is wrong."""
    hint: str | None
    """What to do about it."""


class Failure(TypedDict):
    """A run that failed."""

    variant: str
    seed: int
    message: str
    hint: str | None


class Error(Exception):
    """Whatever Pagetide has to say against something."""


class ScenarioError(Error, ValueError):
    """A scenario has mistakes: all of them, as the command prints them."""

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
        """What is wrong."""
        self.hint: str | None = hint
        """What to do about it."""

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class InputError(_Hinted, ValueError):
    """An argument is not one that can be taken: an unknown name, a range upside down, no seeds."""


class VersionError(_Hinted):
    """Something is of another version of Pagetide, or of another scenario."""


class RunError(Error, RuntimeError):
    """Runs failed."""

    def __init__(self, failures: Sequence[Failure], result: Result | None = None) -> None:
        super().__init__(failures, result)
        self.failures: list[Failure] = list(failures)
        """Each run that failed."""
        self.result: Result | None = result
        """The runs that did not fail; `None` where they are not kept together."""

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
        # A result stays where it is.
        return (type(self), (self.failures, None))


class ExecutorError(_Hinted):
    """The executor cannot be used: it is closed, or has workers without pagetide or of another version."""


class StoreError(_Hinted):
    """A store of runs cannot be read or written, or has runs of another version."""


class Interrupted(KeyboardInterrupt):
    """^C: a `KeyboardInterrupt` that keeps what was finished."""

    def __init__(self, missing: int = 0, result: Result | Sweep | None = None) -> None:
        super().__init__(missing, result)
        self.missing: int = missing
        """How many runs were not made."""
        self.result: Result | Sweep | None = result
        """The finished runs: a `Result`, or the `Sweep` of what was to be one."""

    def __str__(self) -> str:
        return f"interrupted: {self.missing} runs are missing"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.missing, None))
