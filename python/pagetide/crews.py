"""Crews perform runs: on threads of this process, or with an executor of the caller.

``executor=`` accepts None (a thread for each CPU), any ``concurrent.futures.Executor``, a
``dask.distributed.Client``, or the module ``ray``. This module starts only threads: the caller
starts, sizes and stops clusters.

Each kind of executor has a *crew*, which takes units of work (:mod:`pagetide.work`) and returns
answers in any order.

Invariant: each unit is answered or reported as lost. A lost unit may be given again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent import futures
from importlib import import_module
from typing import Any

from ._errors import ExecutorError
from ._pagetide import Cancel
from .work import Answer, Unit, perform_unit

__all__ = ["Crew", "Lost", "crew"]


_INSTALL = "install the same version of pagetide there"


#: A pool that breaks this many times without an answer is unusable.
BREAKS = 16


class Lost(Exception):
    """A worker was lost with its unit."""


def crew(executor: Any = None, jobs: int | None = None) -> Crew:
    """The crew of an executor; without one, a crew of `jobs` threads (default: one for each CPU).

    Raises ``ExecutorError`` if the executor is closed, and ``TypeError`` for another type of
    object, or if `jobs` is given as well.
    """
    if executor is None:
        return _Threads(jobs)
    if jobs is not None:
        raise TypeError(
            "jobs= is the number of threads of this process, and executor= has its own workers: "
            "give only one"
        )
    if isinstance(executor, futures.Executor):
        return Crew(executor)
    module = type(executor).__module__.partition(".")[0]
    if module == "distributed" and hasattr(executor, "scheduler_info"):
        return _Dask(executor)
    if getattr(executor, "__name__", None) == "ray" and hasattr(executor, "remote"):
        return _Ray(executor)
    raise TypeError(
        f"executor= accepts None, a concurrent.futures.Executor, a dask.distributed.Client or the module ray, "
        f"not {type(executor).__module__}.{type(executor).__qualname__}"
    )


def cpus() -> int:
    """The number of CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Crew:
    """Takes units and returns answers; here with any ``concurrent.futures.Executor``. A handle
    identifies a unit that was given."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        #: The pool that replaces a broken one.
        self.replacement: futures.Executor | None = None
        #: Number of breaks since the last answer.
        self.broken: int = 0

    @property
    def slots(self) -> int:
        """The number of units it performs in parallel, as far as known; may change."""
        return getattr(self.executor, "_max_workers", None) or cpus()

    def give(self, unit: Unit) -> Any:
        """Gives a unit to the crew; returns the handle."""
        try:
            return (self.replacement or self.executor).submit(perform_unit, unit)
        except futures.BrokenExecutor:
            self._replace()
            return (self.replacement or self.executor).submit(perform_unit, unit)
        except RuntimeError as error:
            raise ExecutorError(f"the executor accepts no work: {error}") from error

    def wait(self, handles: Iterable[Any]) -> set[Any]:
        """Waits until some of these units are answered."""
        return futures.wait(handles, return_when=futures.FIRST_COMPLETED).done

    def answer(self, handle: Any) -> Answer:
        """The answer. Raises `Lost` if the worker was lost."""
        try:
            answer: Answer = self.result(handle)
        except (AttributeError, ModuleNotFoundError, TypeError) as error:
            raise ExecutorError(f"a worker cannot run this: {error}", _INSTALL) from error
        self.broken = 0
        return answer

    def result(self, handle: Any) -> Any:
        """The result of a unit. Raises `Lost`, or what the unit raised."""
        try:
            return handle.result()
        except (futures.BrokenExecutor, futures.CancelledError) as error:
            raise Lost(str(error) or "its worker was lost") from error

    def cancel(self, handles: Iterable[Any]) -> None:
        """Cancels units whose answers are not needed."""
        for handle in handles:
            handle.cancel()

    def close(self) -> None:
        """No more units will be given."""
        if self.replacement is not None:
            self.replacement.shutdown()

    def _replace(self) -> None:
        """Replaces a pool that lost a process, and therefore accepts no work, with a new one of the
        same kind."""
        self.broken += 1
        if type(self.executor) is not futures.ProcessPoolExecutor or self.broken > BREAKS:
            raise ExecutorError(
                "the executor has lost a worker and accepts no more work",
                "create another executor; a store keeps finished runs",
            )
        if self.replacement is not None:
            self.replacement.shutdown(wait=False)
        pool: Any = self.executor
        self.replacement = futures.ProcessPoolExecutor(
            pool._max_workers, pool._mp_context, pool._initializer, pool._initargs
        )


class _Threads(Crew):
    """Threads of this process. Runs release the GIL, and a cancelled run ends soon."""

    def __init__(self, jobs: int | None) -> None:
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int)):
            raise TypeError(f"jobs must be a number of threads, not {jobs!r}")
        if jobs is not None and jobs < 1:
            raise ValueError(f"jobs must be at least 1, not {jobs}")
        super().__init__(futures.ThreadPoolExecutor(jobs or cpus(), thread_name_prefix="pagetide"))
        self.stop = Cancel()

    def give(self, unit: Unit) -> Any:
        return self.executor.submit(perform_unit, unit, self.stop)

    def cancel(self, handles: Iterable[Any]) -> None:
        super().cancel(handles)
        self.stop.set()

    def close(self) -> None:
        self.executor.shutdown(wait=True, cancel_futures=True)


class _Dask(Crew):
    """A ``dask.distributed.Client``. Its scheduler moves the runs of a lost worker to another
    worker."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.client = client
        self.module: Any = import_module("distributed")
        if client.asynchronous:
            raise ExecutorError("the Dask client is asynchronous", "create it with Client(..., asynchronous=False)")
        self._check()

    def _check(self) -> None:
        if self.client.status != "running":
            raise ExecutorError(f"the Dask client is {self.client.status}")

    @property
    def slots(self) -> int:
        self._check()
        return sum(self.client.nthreads().values())

    def give(self, unit: Unit) -> Any:
        self._check()
        return self.client.submit(perform_unit, unit, pure=False)

    def wait(self, handles: Iterable[Any]) -> set[Any]:
        while True:
            self._check()
            try:
                done = self.module.wait(list(handles), timeout=2, return_when="FIRST_COMPLETED").done
            except (TimeoutError, self.module.TimeoutError):
                continue
            except futures.CancelledError:
                self._check()
                done = {handle for handle in handles if handle.status != "pending"}
            if done:
                return set(done)

    def result(self, handle: Any) -> Any:
        try:
            return handle.result()
        except self.module.KilledWorker as error:
            raise Lost(str(error)) from error
        except futures.CancelledError as error:
            self._check()
            raise Lost("it was cancelled in the cluster") from error

    def cancel(self, handles: Iterable[Any]) -> None:
        if self.client.status == "running":
            self.client.cancel(list(handles))


class _Ray(Crew):
    """Ray: a task for each unit, which Ray retries if its worker is lost."""

    def __init__(self, ray: Any) -> None:
        super().__init__(ray)
        self.ray = ray
        if not ray.is_initialized():
            raise ExecutorError("Ray is not initialised", "call ray.init() first")
        self.perform = ray.remote(perform_unit).options(max_retries=3)

    @property
    def slots(self) -> int:
        return int(self.ray.cluster_resources().get("CPU", 1))

    def give(self, unit: Unit) -> Any:
        return self.perform.remote(unit)

    def wait(self, handles: Iterable[Any]) -> set[Any]:
        handles = list(handles)
        done, _ = self.ray.wait(handles, num_returns=1)
        more, _ = self.ray.wait(handles, num_returns=len(handles), timeout=0)
        return set(done) | set(more)

    def result(self, handle: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(handle)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            raise Lost(str(error)) from error
        except errors.RayError as error:
            raise ExecutorError(f"a worker cannot run this: {error}", _INSTALL) from error

    def cancel(self, handles: Iterable[Any]) -> None:
        for handle in handles:
            self.ray.cancel(handle, force=False)
