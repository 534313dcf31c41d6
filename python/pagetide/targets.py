"""The targets of a calibration: measured figures with deviations, and the distance of a simulation
from them.

Distances are logarithmic, because ten times too much is as wrong as a tenth: z = ln((x + d) / (t +
d)) / ln((t + 2 d) / (t + d)) for a target t with the deviation d. So z is 1 at one deviation above
the target, and counts of 0 cause no trouble. The uncertainty of the simulated mean counts as well:
a point with a large spread over two seeds is neither good nor bad.

Invariants: as long as no target costs more than `LINEAR`, a loss is -2 ln of a likelihood plus a
constant, so losses for the same targets can be subtracted. A measured value costs less than a
missing one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from . import quantities
from ._errors import InputError
from .statistics import Mean

__all__ = ["Target", "Targets", "check_unit", "loss", "missed", "targets"]

Figure = Union[str, int, float]
#: ``targets=``: a figure, or (figure, deviation), for each metric.
Targets = Mapping[str, Union[Figure, tuple[Figure, Figure]]]
#: Default deviation, as a share of the figure.
DEVIATION = 0.1
#: Cost of a target up to which it equals the squared distance: ten deviations. Beyond that it grows
#: more and more slowly.
LINEAR = 100.0
#: Cost of a target that a run did not measure: more than any measured one, so that the search
#: avoids runs with killed tasks.
MISSING = 2 * LINEAR


@dataclass(frozen=True)
class Target:
    """A measured figure."""

    metric: str
    value: float
    deviation: float
    #: Figure and deviation as given, except a deviation that is a share.
    said: tuple[Figure, ...] = ()

    def check(self, unit: str) -> None:
        """Raises ``InputError`` if the figure was given in another unit than the metric's."""
        for figure in self.said:
            check_unit(self.metric, figure, unit)

    def distance(self, value: float) -> float:
        """How many deviations a value is above the figure."""
        floor = self.deviation
        one = math.log((self.value + 2 * floor) / (self.value + floor))
        return math.log((max(value, 0.0) + floor) / (self.value + floor)) / one

    def noise(self, mean: Mean) -> float:
        """The standard error of a simulated mean, in deviations."""
        error = mean.error
        if not math.isfinite(error):
            return 0.0
        floor = self.deviation
        one = math.log((self.value + 2 * floor) / (self.value + floor))
        return error / (max(mean.mean, 0.0) + floor) / one


def targets(given: Targets) -> list[Target]:
    """The targets of ``targets=``. Raises ``InputError`` for an invalid figure."""
    if not isinstance(given, Mapping) or not given:
        raise InputError("there are no targets", 'targets={"web.walltime": ("12.5s", "0.3s"), "pgmajfault": 3730}')
    return [_target(metric, figure) for metric, figure in given.items()]


def _target(metric: str, given: Any) -> Target:
    pair = given if isinstance(given, tuple) else (given, None)
    if len(pair) != 2:
        raise InputError(f"{metric}: {given!r} is not a figure", "a target is a figure, or (figure, deviation)")
    value = quantities.read(pair[0])
    if value is None or value.value < 0:
        raise InputError(
            f"{metric}: {pair[0]!r} is not a figure",
            'give a number in the metric\'s unit, or text like "12.5s"',
        )
    if pair[1] is None:
        return Target(metric, value.value, DEVIATION * value.value or 1.0, (pair[0],))
    deviation, said = quantities.read(pair[1]), tuple(pair)
    if deviation is not None and deviation.kind == "percent":
        deviation, said = quantities.Quantity(value.value * deviation.value / 100, value.kind), (pair[0],)
    if deviation is None or not deviation.value > 0:
        raise InputError(f"{metric}: {pair[1]!r} is not a deviation", 'give a number above 0, or a share like "5 %"')
    return Target(metric, value.value, deviation.value, said)


def check_unit(metric: str, figure: Figure, unit: str) -> None:
    """Raises ``InputError`` if the figure's unit is not the metric's. A plain number is in the
    metric's unit."""
    said = quantities.read(figure)
    if said is not None and said.kind not in ("number", unit):
        raise InputError(
            f"{metric}: {figure!r} is in {said.kind}, but the unit of the metric is {unit}",
            "a plain number is in the metric's unit",
        )


def loss(wanted: list[Target], found: Mapping[str, Mean]) -> float:
    """The distance of a point from the targets: 0 at best, plus 1 for each target that is one
    deviation off."""
    return sum(_cost(target, found.get(target.metric)) for target in wanted)


def missed(wanted: list[Target], found: Mapping[str, Mean]) -> float:
    """The sum of the squared distances from the targets, in deviations, without the effect of
    noise."""
    return sum(_missed(target, found.get(target.metric)) for target in wanted)


def _missed(target: Target, mean: Mean | None) -> float:
    if mean is None or not mean.runs:
        return MISSING
    return target.distance(mean.mean) ** 2 / _spread(target, mean)


def _spread(target: Target, mean: Mean) -> float:
    """The variance of a simulated mean around the figure: 1 for the figure, plus the variance of
    the mean."""
    return 1.0 + target.noise(mean) ** 2


def _cost(target: Target, mean: Mean | None) -> float:
    """The cost of a target. Each run without a measurement adds its share of `MISSING`."""
    if mean is None or not mean.runs:
        return MISSING
    cost = _missed(target, mean) + math.log(_spread(target, mean))
    if cost > LINEAR:
        cost = MISSING - LINEAR**2 / cost
    share = mean.ended / (mean.runs + mean.ended)
    return (1 - share) * cost + share * MISSING
