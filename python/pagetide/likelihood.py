"""The fits that the data cannot distinguish from the best one: those with a loss within a limit of
its loss.

A search concentrates on points with a small loss, so its best trials agree even on parameters that
do not matter. Therefore each parameter is also moved alone, away from the best fit, to places all
over its range and to some nearby. If the loss stays within the limit, the data do not determine the
parameter.

Invariant: the search chooses none of these places except the best fit itself.
"""

from __future__ import annotations

import math

from .fits import Trial
from .parameters import Choice, Parameter

__all__ = ["limit", "moved", "outermost"]

#: Places in the range of a parameter.
FAR = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Places near the best fit, as shares of the range.
NEAR = (-0.2, -0.06, 0.06, 0.2)


def limit(best: float, missed: float, free: int, nr_targets: int) -> float:
    """The loss up to which the data cannot distinguish a fit from the best one, by the likelihood
    ratio (95 %).

    The limit is wider if even the best fit misses the targets by more than their deviations.
    `missed` is the sum of the squares of these misses.
    """
    return best + _chi_squared_95(free) * max(1.0, missed / max(1, nr_targets - free))


def moved(best: dict[str, str], parameter: Parameter) -> list[dict[str, str]]:
    """The best fit with other values of one parameter, all over its range."""
    if isinstance(parameter, Choice):
        values = list(parameter.values)
    else:
        at = parameter.share(best[parameter.key])
        near = (at + step for step in NEAR)
        values = [parameter.at(share) for share in (*FAR, *(share for share in near if 0 < share < 1))]
    values = [value for value in dict.fromkeys(values) if value != best[parameter.key]]
    return [best | dict.fromkeys(parameter.keys, value) for value in values]


def outermost(parameter: Parameter, fits: list[Trial]) -> list[Trial]:
    """Of fits that differ in one parameter, those with the smallest and the largest value."""
    if isinstance(parameter, Choice) or len(fits) < 2:
        return fits
    ordered = sorted(fits, key=lambda fit: parameter.share(fit.point[parameter.key]))
    return [ordered[0], ordered[-1]]


def _chi_squared_95(freedom: int) -> float:
    """The 95 % quantile (Wilson and Hilferty)."""
    return freedom * (1 - 2 / (9 * freedom) + 1.6449 * math.sqrt(2 / (9 * freedom))) ** 3
