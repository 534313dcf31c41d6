"""Sweeps: run a scenario at every point of a grid, with every variant and every seed.

Any executor can perform the runs (:mod:`pagetide.executors`). Finished runs are kept in memory or
in a store (:mod:`pagetide.store`). Runs with a row in the store are not repeated.

Invariant: the runs of a complete sweep have the same bytes in the same order, whatever the executor
and the number of interruptions.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from html import escape
from typing import Any

from . import _pagetide, parquet, traces
from ._errors import InputError, Interrupted
from .crews import crew
from .dispatch import dispatch
from .frames import Frame
from .grid import Grid, Value, are_sizes, check, column_kind, points_of, texts_of, typed, variants_of
from .progress import Progress, bar
from .records import Key, Measured, Run
from .statistics import Mean
from .store import Store
from .work import Part

__all__ = ["Failure", "Sweep", "sweep"]


@dataclass(frozen=True)
class Failure:
    """A run that failed."""

    variant: str
    knobs: Mapping[str, str]
    seed: int
    why: str


class Sweep:
    """The results of a sweep.

    ``len()`` is the number of runs. `failed` has the failed runs; the same call with the same store
    retries them.
    """

    def __init__(
        self,
        scenario: _pagetide.Scenario,
        points: list[dict[str, str]],
        variants: list[str],
        seeds: list[int],
        runs: dict[Key, bytes] | Store,
        failed: list[Failure],
    ) -> None:
        self.scenario = scenario
        #: The values set at each point, as text, in the order of the grid.
        self.points = points
        self.variants = variants
        self.seeds = seeds
        self.failed = failed
        self._runs = runs
        names = dict.fromkeys(name for point in points for name in point)
        #: Names of the knobs.
        self.knobs: list[str] = list(names)
        self._wanted = {Key.of(variant, point, seed) for point in points for variant in variants for seed in seeds}

    def __len__(self) -> int:
        there = self._runs.keys if isinstance(self._runs, Store) else self._runs
        return sum(key in there for key in self._wanted)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return (
            f"<pagetide.Sweep of {len(self.points)} points, {len(self.variants)} variants, "
            f"{len(self.seeds)} seeds: {len(self)} runs{failed}>"
        )

    def runs(self) -> Iterator[Run]:
        """The runs, in order. Runs of a store are read in small batches."""
        if isinstance(self._runs, Store):
            yield from (run for run in self._runs.runs() if run.key in self._wanted)
        else:
            for key in sorted(self._runs, key=lambda key: key.order):
                yield Run.of_row(self._runs[key], dict(key.knobs))

    @property
    def rows(self) -> Iterator[bytes]:
        """The row of each run as JSON, in order.

        Rows in memory have the original bytes. A store keeps the metrics in a separate column, so
        its rows have the same content with keys in another order.
        """
        if isinstance(self._runs, Store):
            yield from (run.row() for run in self.runs())
        else:
            for key in sorted(self._runs, key=lambda key: key.order):
                yield self._runs[key]

    @property
    def metrics(self) -> Frame:
        """A row for each metric of each run: variant, a column for each knob, seed, metric, unit,
        value, ended.

        `value` is NaN if there is none; `ended` says why the run is incomplete, else it is null.
        Columns of knobs are numeric if all values are plain numbers, else text. A knob of sizes has a
        second column, KNOB.bytes, with numbers; null for a word such as ``max``. Through the Arrow
        PyCapsule interface a store is read as a stream.
        """
        return self.select()

    def select(self, *names: str) -> Frame:
        """`metrics` restricted to these metrics; all metrics if no name is given.

        :raises InputError: no run has a metric of this name.
        """
        missing = set(names)
        for run in self.runs() if missing else ():
            missing -= run.metrics.keys()
            if not missing:
                break
        for name in names:
            if name in missing:
                raise InputError(f"no run has the metric {name!r}", self._nearest(name))
        kinds = self._kinds()
        columns = {"variant": "text", **_frame_kinds(kinds), "seed": "seed", "metric": "text", "unit": "text"}
        columns |= {"value": "number", "ended": "text"}
        wanted = set(names)
        if isinstance(self._runs, Store):
            return Frame(columns, batches=lambda schema: self._stored(schema, kinds, wanted))

        def rows() -> Iterator[tuple[Any, ...]]:
            for run in self.runs():
                knobs = dict(run.key.knobs)
                at = tuple(typed(knobs.get(knob), kind) for knob, kind in kinds.values())
                for name, (value, unit, ended) in run.metrics.items():
                    if not wanted or name in wanted:
                        yield (run.key.variant, *at, run.key.seed, name, unit, value, ended)

        return Frame(columns, rows)

    def _stored(self, schema: Any, kinds: dict[str, tuple[str, str]], names: set[str]) -> Iterator[Any]:
        """The rows of the store's metrics, without a Python step for each row."""
        pa = parquet.arrow()
        pc = pa.compute
        for batch in self._runs.batches():  # type: ignore[union-attr]
            keys = parquet.keys(batch)
            are_wanted = [key in self._wanted for key in keys]
            lists = batch.column("metrics")
            parents, items = pc.list_parent_indices(lists), pc.list_flatten(lists)
            metric, value, unit, ended = items.flatten()
            mask = pa.array(are_wanted).take(parents)
            if names:
                mask = pc.and_(mask, pc.is_in(metric, value_set=pa.array(sorted(names))))
            parents = parents.filter(mask)
            of = {"metric": metric.filter(mask), "value": value.filter(mask), "unit": unit.filter(mask)}
            of["ended"] = ended.filter(mask)
            of["variant"] = batch.column("variant").take(parents)
            of["seed"] = pa.array([key.seed for key in keys], pa.uint64()).take(parents)
            texts = [dict(key.knobs) for key in keys]
            for name, (knob, kind) in kinds.items():
                column = [typed(text.get(knob), kind) for text in texts]
                of[name] = pa.array(column, schema.field(name).type).take(parents)
            yield pa.record_batch([of[name] for name in schema.names], schema=schema)

    def _kinds(self) -> dict[str, tuple[str, str]]:
        """The columns of knobs: the knob and the kind of each."""
        kinds: dict[str, tuple[str, str]] = {}
        for knob in self.knobs:
            texts = [point.get(knob) for point in self.points]
            kind = column_kind(texts)
            kinds[knob] = (knob, kind)
            if kind == "text" and are_sizes(texts):
                kinds[f"{knob}.bytes"] = (knob, "bytes")
        return kinds

    def result(self, point: Mapping[str, Value] | None = None) -> _pagetide.Result:
        """The runs of a point as a result of ``scenario.run``, with statistics, table and HTML."""
        wanted = texts_of(point or {})
        if wanted not in self.points:
            raise InputError(f"no point has {wanted}", "`points` lists all points")
        pairs = Key.of("", wanted, 0).knobs
        if isinstance(self._runs, Store):
            rows = [run.row() for run in self.runs() if run.key.knobs == pairs]
        else:
            rows = [row for key, row in self._runs.items() if key.knobs == pairs]
        return _pagetide.Result.from_rows(self.scenario.set(wanted) if wanted else self.scenario, rows)

    def means(self, *names: str) -> dict[tuple[tuple[tuple[str, str], ...], str], dict[str, Mean]]:
        """Mean and deviation of these metrics over the seeds, by (knobs, variant), in the order of
        the grid."""
        kinds = self._kinds()
        sums: dict[tuple[Any, ...], dict[str, Mean]] = {
            (Key.of("", point, 0).knobs, variant): {} for point in self.points for variant in self.variants
        }
        of_values = {
            tuple(typed(point.get(knob), kind) for knob, kind in kinds.values()): Key.of("", point, 0).knobs
            for point in self.points
        }
        width = len(kinds)
        for variant, *row in self.select(*names).rows():
            at, (_, name, unit, value, ended) = of_values[tuple(row[:width])], row[width:]
            sums[at, variant].setdefault(name, Mean(unit)).add(Measured(value, unit, ended))
        return sums

    def _nearest(self, name: str) -> str:
        import difflib

        known = next((list(run.metrics) for run in self.runs()), [])
        near = difflib.get_close_matches(name, known, 3)
        return f"did you mean {' or '.join(map(repr, near))}?" if near else "`pagetide.metrics()` lists all metrics"

    def summary(self, *names: str) -> Frame:
        """A row for each metric at each point: variant, a column for each knob, metric, unit, mean,
        deviation (of the sample), runs, ended (number of runs without a measurement)."""
        kinds = self._kinds()
        columns = {"variant": "text", **_frame_kinds(kinds), "metric": "text", "unit": "text", "mean": "number"}
        columns |= {"deviation": "number", "runs": "whole", "ended": "whole"}

        def rows() -> Iterator[tuple[Any, ...]]:
            for (pairs, variant), of in self.means(*names).items():
                knobs = dict(pairs)
                at = tuple(typed(knobs.get(knob), kind) for knob, kind in kinds.values())
                for name, mean in of.items():
                    yield (variant, *at, name, mean.unit, mean.mean, mean.deviation, mean.count, mean.ended)

        return Frame(columns, rows)

    def table(self, *names: str) -> str:
        """A line for each point and variant: mean ± sample standard deviation of these metrics.

        Default metrics are the task times and the reclaim of the first run. † marks values that
        include incomplete runs.
        """
        cells = self._cells(names)
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
        return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]]) + "\n"

    def __str__(self) -> str:
        return self.table()

    def _cells(self, names: tuple[str, ...]) -> list[list[str]]:
        """The cells of the table, starting with the header row."""
        names = names or self._names()
        found = self.means(*names)
        has_variants = len(self.variants) > 1
        rows = [[*self.knobs, *(["variant"] if has_variants else []), *names]]
        for (pairs, variant), of in found.items():
            knobs = dict(pairs)
            row = [knobs.get(knob, "") for knob in self.knobs] + ([variant] if has_variants else [])
            rows.append([*row, *(str(of[name]) if name in of else "" for name in names)])
        return rows

    def _names(self) -> tuple[str, ...]:
        """The default metrics of a table."""
        first = next(self.runs(), None)
        if first is None:
            return ()
        times = [name for name in first.metrics if name.endswith(".walltime") and name.count(".") == 1]
        return (
            *times,
            *(name for name in ("pgmajfault", "allocstall", "pswpin", "pswpout") if name in first.metrics),
        )

    def _repr_html_(self) -> str:
        head, *rows = self._cells(())
        heads = "".join(f"<th>{escape(name)}</th>" for name in head)
        lines = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[:60]]
        more = f"<p>and {len(rows) - 60} more</p>" if len(rows) > 60 else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"


def sweep(
    scenario: _pagetide.Scenario,
    grid: Grid,
    *,
    seeds: int | Iterable[int] | None = None,
    variants: Sequence[str] | None = None,
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress = None,
) -> Sweep:
    """Runs a scenario at every point of a grid.

    :param grid: the values of each knob (``{"vm.swappiness": [0, 60]}``: all combinations), or a
        list of points (``[{"vm.swappiness": 0}, ...]``). A knob is a key as in ``pagetide run
        --set``.
    :param seeds: a number, counted from the scenario's first seed, or a list; default is the
        scenario's own number.
    :param variants: names of variants; default is all.
    :param executor: None (a thread for each CPU), a ``concurrent.futures.Executor``, a
        ``dask.distributed.Client`` or the module ``ray``.
    :param store: a directory for the runs, as Parquet. Stored runs are not repeated.
    :param progress: True, False, or a function of (done, total); by default a bar on a terminal or
        in a notebook.
    :raises ScenarioError: the scenario rejects some values; all of them are listed, before any run.
    :raises ExecutorError: the executor is closed, or its workers have another version of pagetide.
    :raises Interrupted: ^C was pressed; its ``result`` has the finished runs.
    :raises StoreError: the store is not writable; finished runs are kept.
    """
    points = points_of(scenario, grid)
    seeds = _pagetide.seeds_of(scenario, seeds)
    chosen = variants_of(variants, scenario)
    check(scenario, points)
    version = _pagetide.__version__
    found: dict[Key, bytes] = {}
    failed: list[Failure] = []
    done = Sweep(scenario, points, chosen, seeds, found, failed)
    with ExitStack() as open_things:
        kept = open_things.enter_context(Store(store, scenario.digest, version)) if store is not None else None
        there: Any = kept if kept is not None else found
        if kept is not None:
            done = Sweep(scenario, points, chosen, seeds, kept, failed)
        missing = []
        for at, point in enumerate(points):
            runs = [(variant, seed) for variant in chosen for seed in seeds]
            runs = [run for run in runs if Key.of(run[0], point, run[1]) not in there]
            if runs:
                missing.append((at, tuple(runs)))
        left = sum(len(runs) for _, runs in missing)
        total = len(points) * len(chosen) * len(seeds)
        if left:
            workers = crew(executor)
            open_things.callback(workers.close)
            shown = bar(progress, total, total - left)
            open_things.callback(shown.close)
            parts = _parts(scenario, points, missing)
            answers = dispatch(workers, parts, left)
            open_things.callback(answers.close)
            try:
                for answer in answers:
                    for at, variant, seed, row in answer.rows:
                        if kept is not None:
                            kept.append(Run.of_row(row, points[at]))
                        else:
                            # Measurements are parsed on demand.
                            found[Key.of(variant, points[at], seed)] = row
                    for at, variant, seed, why in answer.failed:
                        failed.append(Failure(variant, points[at], seed, why))
                    shown.add(len(answer.rows) + len(answer.failed))
            except KeyboardInterrupt:
                answers.close()
                if kept is not None:
                    kept.flush()
                raise Interrupted(total - len(done) - len(failed), done) from None
        if kept is not None:
            kept.finish()
    failed.sort(key=lambda it: Key.of(it.variant, it.knobs, it.seed).order)
    if failed:
        first = failed[0]
        where = ", ".join(f"{knob}={value}" for knob, value in first.knobs.items())
        warnings.warn(
            f"{len(failed)} of {total} runs failed; the first: "
            f"{first.variant}, {where}, seed {first.seed}: {first.why}",
            RuntimeWarning,
            stacklevel=2,
        )
    return done


def _frame_kinds(kinds: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """The kinds of the columns of knobs in a frame."""
    return {name: "whole" if kind == "bytes" else kind for name, (_, kind) in kinds.items()}


def _parts(
    scenario: _pagetide.Scenario,
    points: list[dict[str, str]],
    missing: list[tuple[int, tuple[tuple[str, int], ...]]],
) -> Iterator[Part]:
    """The missing runs. Each point is created when its turn comes."""
    for at, runs in missing:
        made = scenario.set(points[at]) if points[at] else scenario
        yield Part(at, pickle.dumps(made), made.digest, runs, traces.of(made))
