"""Calibration: fit unknown parameters of workload and hardware to figures measured in one variant,
then predict the other variants.

Optuna proposes points (ask and tell). Their runs are performed like those of a sweep, by any
executor. Proposals come in batches of a fixed size, and each batch has its own seed, so the trials
depend only on the arguments, not on the order of the runs. This also makes a calibration resumable:
the same call with the same store proposes the same trials, and finds their runs in the store.

There are three sets of seeds: for the search, for judging its best trials, and for the reported
figures. Invariant: reported figures come from seeds that had no influence on the choice of the fit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from . import _pagetide
from ._errors import Error, InputError, ScenarioError
from .fits import Calibration, Trial
from .likelihood import limit, moved, outermost
from .optional import need
from .parameters import Choice, Free, Parameter, parameters
from .progress import Progress, bar
from .sweeps import Sweep, sweep
from .targets import Target, Targets, loss, missed, targets

__all__ = ["Calibration", "calibrate"]

#: Number of trials in a batch of proposals.
BATCH = 8
#: Number of the best trials that are judged with fresh seeds.
KEPT = 12
#: Largest seed that the sampler accepts.
SEED_MAX = 2**32 - 1


def calibrate(
    scenario: _pagetide.Scenario,
    free: Free,
    targets: Targets,
    *,
    variant: str | None = None,
    trials: int = 200,
    seeds: int = 2,
    predict: Sequence[str] = (),
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: Progress = None,
    seed: int = 1,
) -> Calibration:
    """Fits a scenario to figures of one variant, and predicts the others.

    :param free: keys of the workload or the hardware, each with a range ``(low, high)`` or a list
        of choices. A tuple of keys is one parameter: all its keys get the same value.
    :param targets: metrics, each with the measured figure, in the metric's unit (seconds, bytes, a
        count) or as text (``"12.5s"``), alone or with its deviation: ``("12.5s", "0.3s")``,
        ``(3730, "20 %")``. The default deviation is 10 %.
    :param variant: the variant of the measured figures; default is the first.
    :param trials: number of points to try.
    :param seeds: runs of each point. The best points are judged with the same number of fresh
        seeds, at least three. The reported figures of the good fits use the same number of fresh
        seeds again.
    :param predict: further metrics to predict.
    :param store: a directory for the runs. The same call continues there, also with more trials.
    :param seed: seed of the proposals.
    :raises InputError: a key cannot be free, or a range or a figure is invalid.
    :raises ScenarioError: the scenario does not accept a key.
    """
    optuna = need("calibrate", "calibrate()", "optuna")
    wanted = _targets(targets)
    space = parameters(free)
    variants = list(scenario.variants)
    fitted = variants[0] if variant is None else variant
    if fitted not in variants:
        raise InputError(f"there is no variant {fitted!r}", f"choose from {', '.join(map(repr, variants))}")
    for name, number in (("trials", trials), ("seeds", seeds), ("seed", seed)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name}= takes an integer, not {number!r}")
    if trials < 1 or seeds < 1:
        raise InputError(f"{trials} trials with {seeds} seeds", "give at least 1 of each")
    if not 0 <= seed <= SEED_MAX - trials:
        raise InputError(f"the seed {seed} of the proposals", f"give a number from 0 to {SEED_MAX - trials}")
    _check_range(scenario, space)
    options: dict[str, Any] = {"executor": executor, "store": store, "progress": progress}
    first = scenario.seeds[0]
    chosen = list(range(first, first + seeds))
    more = max(3, seeds)
    judging = list(range(first + seeds, first + seeds + more))
    reported = list(range(first + seeds + more, first + seeds + 2 * more))

    tried: dict[tuple[tuple[str, str], ...], Trial] = {}
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    shown = bar(progress, trials * seeds)
    try:
        study = optuna.create_study(direction="minimize")
        number = 0
        while number < trials:
            study.sampler = _sampler(optuna, seed + number, trials)
            asked = [study.ask() for _ in range(min(BATCH, trials - number))]
            points = [_point(trial, space) for trial in asked]
            before = shown.done
            made = sweep(
                scenario,
                points,
                seeds=chosen,
                variants=[fitted],
                executor=executor,
                store=store,
                progress=lambda done, _: shown.add(before + done - shown.done),
            )
            # Include stored runs and points that were proposed before.
            shown.add(before + len(asked) * seeds - shown.done)
            losses = _losses(made, wanted, fitted)
            for trial, point in zip(asked, points):
                value = losses[_key(point)]
                study.tell(trial, value)
                tried.setdefault(_key(point), Trial(point, value))
            number += len(asked)
    finally:
        shown.close()
        optuna.logging.set_verbosity(verbosity)

    best = sorted(tried.values(), key=_rank)[:KEPT]
    if not math.isfinite(best[0].loss):
        raise Error("no trial completed; examine one with scenario.set(...).run()")
    kept = _good(scenario, [trial.point for trial in best], space, wanted, fitted, judging, options)
    metrics = list(dict.fromkeys([*(target.metric for target in wanted), *predict]))
    points = [trial.point for trial in kept]
    all_runs = sweep(scenario, points, seeds=reported, variants=variants, **options)
    means = all_runs.means(*metrics)
    return Calibration(
        scenario=scenario,
        variant=fitted,
        parameters=space,
        targets=wanted,
        trials=sorted(tried.values(), key=lambda trial: trial.loss),
        good=kept,
        metrics=metrics,
        means=[{name: means[_key(trial.point), name] for name in variants} for trial in kept],
        seeds=reported,
    )


_targets = targets


def _sampler(optuna: Any, seed: int, trials: int) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        startup = min(max(10, trials // 8), 40)
        return optuna.samplers.TPESampler(n_startup_trials=startup, multivariate=True, constant_liar=True, seed=seed)


def _point(trial: Any, space: list[Parameter]) -> dict[str, str]:
    """Converts a proposal of Optuna to values of the scenario."""
    point: dict[str, str] = {}
    for parameter in space:
        if isinstance(parameter, Choice):
            value = trial.suggest_categorical(parameter.key, parameter.values)
        else:
            value = parameter.at(trial.suggest_float(parameter.key, 0.0, 1.0))
        point |= dict.fromkeys(parameter.keys, value)
    return point


def _key(point: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(point.items()))


def _check_range(scenario: _pagetide.Scenario, space: list[Parameter]) -> None:
    """Checks the ends of each range before any run."""
    for parameter in space:
        if isinstance(parameter, Choice):
            ends = list(parameter.values)
        else:
            ends = [parameter.at(0.0), parameter.at(1.0)]
        for end in ends:
            scenario.set(dict.fromkeys(parameter.keys, end))


def _losses(made: Sweep, wanted: list[Target], variant: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The loss of each point; infinite if a run failed.

    Raises ``InputError`` for a target that the runs lack, or that has another unit.
    """
    failed = {_key(dict(failure.knobs)) for failure in made.failed}
    means = made.means(*(target.metric for target in wanted)) if len(made) else {}
    units = {name: mean.unit for of in means.values() for name, mean in of.items()}
    for target in wanted:
        if target.metric in units:
            target.check(units[target.metric])
    return {
        _key(point): math.inf if _key(point) in failed else loss(wanted, means[_key(point), variant])
        for point in made.points
    }


def _good(
    scenario: _pagetide.Scenario,
    points: list[dict[str, str]],
    space: list[Parameter],
    wanted: list[Target],
    variant: str,
    seeds: list[int],
    options: dict[str, Any],
) -> list[Trial]:
    """The best point, then the fits that the data cannot distinguish from it: other points, and the
    best point with one parameter moved as far as possible."""
    measured = sweep(scenario, points, seeds=seeds, variants=[variant], **options)
    judged = _judged(measured, points, wanted, variant)
    best = judged[0]
    if not math.isfinite(best.loss):
        return [best]
    found = measured.means(*(target.metric for target in wanted))[_key(best.point), variant]
    highest = limit(best.loss, missed(wanted, found), len(space), len(wanted))
    places = [[point for point in moved(best.point, it) if _is_taken(scenario, point)] for it in space]
    # The best point is always included, and has a run with all metrics.
    points = [best.point, *(point for of in places for point in of)]
    measured = sweep(scenario, points, seeds=seeds, variants=[variant], **options)
    good = {_key(trial.point): trial for trial in judged if trial.loss <= highest}
    for parameter, of in zip(space, places):
        fits = [trial for trial in _judged(measured, of, wanted, variant) if trial.loss <= highest]
        for trial in outermost(parameter, fits):
            good.setdefault(_key(trial.point), trial)
    return [best, *sorted((it for it in good.values() if it.point != best.point), key=_rank)]


def _judged(measured: Sweep, points: list[dict[str, str]], wanted: list[Target], variant: str) -> list[Trial]:
    """Points with their losses, sorted by loss."""
    losses = _losses(measured, wanted, variant)
    return sorted((Trial(point, losses[_key(point)]) for point in points), key=_rank)


def _rank(trial: Trial) -> tuple[float, tuple[tuple[str, str], ...]]:
    return trial.loss, _key(trial.point)


def _is_taken(scenario: _pagetide.Scenario, point: dict[str, str]) -> bool:
    """Whether the scenario accepts the values of a point together."""
    try:
        scenario.set(point)
    except ScenarioError:
        return False
    return True
