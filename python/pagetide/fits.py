"""The result of a calibration: the fit, its accuracy, undetermined parameters, and predictions.

The good fits are those that the targets cannot distinguish from the best one
(:mod:`pagetide.likelihood`). A parameter is determined as far as the good fits agree on it. A
prediction is the value of the best fit, with the spread of the good ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Union

from . import _pagetide, quantities
from .parameters import Choice, Parameter, Range
from .statistics import Mean, show
from .targets import Target, check_unit

__all__ = ["Calibration", "Determined", "Prediction", "Trial"]

#: A parameter is undetermined if its good values span more than this share of its range.
SHARE_MAX = 0.5
#: A good value this close to an end of its range shows that the range may be too narrow.
END = 0.03


@dataclass(frozen=True)
class Trial:
    """A point that was tried."""

    point: dict[str, str]
    #: Distance from the targets; about their number for a fit within the deviations.
    loss: float


@dataclass(frozen=True)
class Determined:
    """Result of the good fits for one parameter."""

    #: The key, or the keys that share one value.
    key: str
    #: The value of the best fit.
    value: str
    #: The smallest and the largest value of the good fits.
    low: str
    high: str
    #: The share of the range that they span: 1 is all of it.
    share: float
    #: Whether the best value is at an end of the range.
    at_end: bool

    @property
    def is_determined(self) -> bool:
        """Whether the data determine the value."""
        return self.share <= SHARE_MAX


@dataclass(frozen=True)
class Prediction:
    """The predicted values of a metric in a variant."""

    variant: str
    metric: str
    unit: str
    #: The best fit's mean over the seeds.
    value: float
    #: The smallest and the largest mean of the good fits.
    low: float
    high: float
    #: Sample deviation of the best fit over the seeds.
    deviation: float
    #: Number of runs of the best fit without a measurement (a killed task, a cut run).
    ended: int


@dataclass
class Calibration:
    """A fitted scenario, with predictions. `fitted` is the scenario itself."""

    scenario: _pagetide.Scenario
    #: The variant of the targets.
    variant: str
    parameters: list[Parameter]
    targets: list[Target]
    #: All trials, sorted by their loss in the search.
    trials: list[Trial]
    #: The good fits, with their losses over the judging seeds. The best fit comes first. Another
    #: fit with a smaller loss is the best fit with one parameter moved, to show how well it is
    #: determined.
    good: list[Trial]
    #: The predicted metrics.
    metrics: list[str]
    #: For each good fit: variant -> metric -> mean.
    means: list[dict[str, dict[str, Mean]]]
    #: The seeds of these means. They had no influence on the choice of the fit.
    seeds: Sequence[int]

    @property
    def best(self) -> Trial:
        """The best fit."""
        return self.good[0]

    @property
    def fitted(self) -> _pagetide.Scenario:
        """The scenario with the values of the best fit."""
        return self.scenario.set(self.best.point)

    @property
    def determined(self) -> list[Determined]:
        """Result of the good fits for each parameter."""
        return [self._determined(parameter) for parameter in self.parameters]

    def _determined(self, parameter: Parameter) -> Determined:
        key = ", ".join(parameter.keys)
        values = [trial.point[parameter.key] for trial in self.good]
        if isinstance(parameter, Choice):
            unique = sorted(set(values), key=quantities.order)
            share = (len(unique) - 1) / (len(parameter.values) - 1)
            return Determined(key, values[0], unique[0], unique[-1], share, False)
        low = min(values, key=parameter.share)
        high = max(values, key=parameter.share)
        best = parameter.share(values[0])
        share = parameter.share(high) - parameter.share(low)
        return Determined(key, values[0], low, high, share, best < END or best > 1 - END)

    @property
    def together(self) -> list[tuple[str, str, float]]:
        """Pairs of parameters that the data determine only together, with their correlation over
        the good fits: a change of one can compensate a change of the other."""
        ranges = [it for it in self.parameters if isinstance(it, Range)]
        pairs = []
        for at, one in enumerate(ranges):
            for other in ranges[at + 1 :]:
                x = [one.share(trial.point[one.key]) for trial in self.good]
                y = [other.share(trial.point[other.key]) for trial in self.good]
                r = _correlation(x, y)
                if len(x) >= 5 and abs(r) > 0.85:
                    pairs.append((one.key, other.key, r))
        return pairs

    @property
    def predictions(self) -> list[Prediction]:
        """Every metric in every variant, including the fitted one: a list that polars and pandas
        take as rows."""
        made = []
        for variant in self.scenario.variants:
            for metric in self.metrics:
                of = [means[variant][metric] for means in self.means if metric in means[variant]]
                if not of:
                    continue
                values = [mean.mean for mean in of if math.isfinite(mean.mean)] or [math.nan]
                best = of[0]
                made.append(
                    Prediction(
                        variant, metric, best.unit, best.mean, min(values), max(values), best.deviation, best.ended
                    )
                )
        return made

    def against(self, seen: Mapping[str, Mapping[str, Union[str, float]]]) -> str:
        """A table of the predictions next to measured figures: variant -> metric -> figure.

        Raises ``InputError`` for a figure in another unit than the metric's.
        """
        return "\n".join(self._predicted(seen))

    def __str__(self) -> str:
        counts = f"{len(self.trials)} trials, good fits: {len(self.good)}"
        lines = [f"calibrated {self.scenario.name} to {self.variant}: {counts}"]
        lines += ["", *self._found(), "", *self._near(), "", *self._predicted({})]
        return "\n".join(lines)

    def _found(self) -> list[str]:
        rows = [["parameter", "best", "good fits", ""]]
        for it in self.determined:
            said = "" if it.is_determined else f"not determined: {it.share:.0%} of the range"
            if it.at_end:
                said += ("; " if said else "") + "at the end of its range"
            rows.append([it.key, it.value, f"{it.low} to {it.high}", said])
        lines = _aligned(rows)
        for one, other, r in self.together:
            how = "if the other grows" if r > 0 else "if the other shrinks"
            lines.append(f"{one} and {other} are determined only together: one grows {how}")
        return lines

    def _near(self) -> list[str]:
        rows = [["target", "seen", "fitted", "deviations off"]]
        best = self.means[0][self.variant]
        for target in self.targets:
            mean = best.get(target.metric)
            if mean is None or not mean.runs:
                rows.append([target.metric, f"{target.value:.4g} ± {target.deviation:.3g}", "none", ""])
                continue
            seen = show(target.value, target.deviation, mean.unit)
            rows.append([target.metric, seen, str(mean), f"{target.distance(mean.mean):+.1f}"])
        return _aligned(rows)

    def _predicted(self, seen: Mapping[str, Mapping[str, Union[str, float]]]) -> list[str]:
        rows = [["predicted", "metric", "best fit", "good fits", *(["seen", "ratio"] if seen else [])]]
        for it in self.predictions:
            if it.variant == self.variant:
                continue
            best, mark = show(it.value, it.deviation, it.unit), "†" if it.ended else ""
            spread = f"{show(it.low, math.nan, it.unit)} to {show(it.high, math.nan, it.unit)}"
            row = [it.variant, it.metric, best + mark, spread]
            if seen:
                said = seen.get(it.variant, {}).get(it.metric)
                figure = quantities.read(said)
                if said is None or figure is None:
                    continue
                check_unit(it.metric, said, it.unit)
                ratio = f"{it.value / figure.value:.2f}" if figure.value else ""
                row += [show(figure.value, math.nan, it.unit), ratio]
            rows.append(row)
        return _aligned(rows)

    def _repr_html_(self) -> str:
        return f"<pre style=\"font-family: monospace\">{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        best = ", ".join(f"{key}={value}" for key, value in self.best.point.items())
        return f"<pagetide.Calibration of {self.scenario.name}: {best}>"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _correlation(x: list[float], y: list[float]) -> float:
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    over = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y))
    under = math.sqrt(sum((a - mean_x) ** 2 for a in x) * sum((b - mean_y) ** 2 for b in y))
    return over / under if under else 0.0
