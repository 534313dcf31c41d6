"""What a calibration aims at: figures that were seen, each with its deviation, and how far a simulation is from them.

Distances are on the scale of logarithms, since ten times too much and a tenth are as wrong: z = ln((x + d) / (t + d)) /
ln((t + 2 d) / (t + d)) for a target t with the deviation d. So z is 1 one deviation above the target, and 0 counts
are no trouble. The uncertainty of the simulated mean counts as well: a point of which two seeds say little is neither
good nor bad.

Invariants: a loss is -2 ln of a likelihood (but for a constant) while no target costs more than `LINEAR`: losses of one
set of targets can be subtracted. And whatever was measured costs less than what could not be.
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
#: What ``targets=`` takes: a figure, or (figure, deviation), for each metric.
Targets = Mapping[str, Union[Figure, tuple[Figure, Figure]]]
#: The deviation of a figure of which none is said, as a share of it.
DEVIATION = 0.1
#: What a target costs at most as its distance has it: ten deviations. Beyond that costs grow ever more slowly.
LINEAR = 100.0
#: What a target costs of which a run has no measurement: more than any that has one, so that no search is drawn to
#: runs that are killed.
MISSING = 2 * LINEAR


@dataclass(frozen=True)
class Target:
    """A figure that was seen."""

    metric: str
    value: float
    deviation: float
    #: Both as they were said, but for a deviation that is a share.
    said: tuple[Figure, ...] = ()

    def check(self, unit: str) -> None:
        """Raises ``InputError`` for a figure that was said in another unit than the metric's."""
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
    """The targets of ``targets=``. Raises ``InputError`` for what is no figure."""
    if not isinstance(given, Mapping) or not given:
        raise InputError("there are no targets", 'targets={"web.walltime": ("12.5s", "0.3s"), "pgmajfault": 3730}')
    return [_target(metric, figure) for metric, figure in given.items()]


def _target(metric: str, given: Any) -> Target:
    pair = given if isinstance(given, tuple) else (given, None)
    if len(pair) != 2:
        raise InputError(f"{metric}: {given!r} is no figure", "a target is a figure, or (figure, deviation)")
    value = quantities.read(pair[0])
    if value is None or value.value < 0:
        raise InputError(f"{metric}: {pair[0]!r} is no figure", 'a number in the metric\'s unit, or as "12.5s"')
    if pair[1] is None:
        return Target(metric, value.value, DEVIATION * value.value or 1.0, (pair[0],))
    deviation, said = quantities.read(pair[1]), tuple(pair)
    if deviation is not None and deviation.kind == "percent":
        deviation, said = quantities.Quantity(value.value * deviation.value / 100, value.kind), (pair[0],)
    if deviation is None or not deviation.value > 0:
        raise InputError(f"{metric}: {pair[1]!r} is no deviation", 'a number above 0, or a share as "5 %"')
    return Target(metric, value.value, deviation.value, said)


def check_unit(metric: str, figure: Figure, unit: str) -> None:
    """Raises ``InputError`` for a figure with a unit that is not the metric's. A plain number is in the metric's."""
    said = quantities.read(figure)
    if said is not None and said.kind not in ("number", unit):
        raise InputError(
            f"{metric}: {figure!r} is in {said.kind}, the unit of the metric is {unit}",
            "a plain number is in the metric's unit",
        )


def loss(wanted: list[Target], found: Mapping[str, Mean]) -> float:
    """How far a point is from the targets: 0 at best, 1 for each target that it misses by a deviation."""
    return sum(_cost(target, found.get(target.metric)) for target in wanted)


def missed(wanted: list[Target], found: Mapping[str, Mean]) -> float:
    """By how many deviations a point misses the targets, the sum of their squares: a loss without what noise adds."""
    return sum(_missed(target, found.get(target.metric)) for target in wanted)


def _missed(target: Target, mean: Mean | None) -> float:
    if mean is None or not mean.count:
        return MISSING
    return target.distance(mean.mean) ** 2 / _spread(target, mean)


def _spread(target: Target, mean: Mean) -> float:
    """The variance of a simulated mean about the figure: that of the figure, which is 1, and that of the mean."""
    return 1.0 + target.noise(mean) ** 2


def _cost(target: Target, mean: Mean | None) -> float:
    """What a target adds to the loss. Each run without a measurement adds its share of `MISSING`."""
    if mean is None or not mean.count:
        return MISSING
    cost = _missed(target, mean) + math.log(_spread(target, mean))
    if cost > LINEAR:
        cost = MISSING - LINEAR**2 / cost
    share = mean.ended / (mean.count + mean.ended)
    return (1 - share) * cost + share * MISSING
