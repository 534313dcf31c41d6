"""Mean and deviation of a metric over seeds, and how they are shown."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

__all__ = ["Mean", "scale", "show"]


class Mean(NamedTuple):
    """Mean and sample standard deviation of a metric.

    Values of incomplete runs (a killed task, a cut run) are not measurements: they are counted
    separately, and the mean excludes them.
    """

    unit: str
    #: NaN without a measurement.
    mean: float = math.nan
    #: NaN with fewer than two measurements.
    deviation: float = math.nan
    #: Runs with a measurement.
    runs: int = 0
    #: Runs without a measurement.
    ended: int = 0

    @staticmethod
    def of(row: dict[str, Any]) -> Mean:
        """The mean in a row of ``summary``."""
        mean, deviation = (math.nan if row[it] is None else row[it] for it in ("mean", "deviation"))
        return Mean(row["unit"], mean, deviation, row["runs"], row["ended"])

    @property
    def error(self) -> float:
        """Standard error of the mean; NaN with fewer than two measurements."""
        return self.deviation / math.sqrt(self.runs) if self.runs else math.nan

    def __str__(self) -> str:
        mark = "†" if self.ended else ""
        return show(self.mean, self.deviation, self.unit) + mark if self.runs else mark or "-"


def show(value: float, deviation: float, unit: str) -> str:
    """Formats a value and its deviation (NaN for none) in a suitable unit."""
    by, name = scale(value, unit)
    word = f" {name}" if name else ""
    if not math.isfinite(deviation):
        return _digits(value / by) + word
    if not deviation:
        return f"{_digits(value / by)} ± 0{word}"
    # Show two digits of the deviation, but not more than the value needs.
    places = max(0, 1 - math.floor(math.log10(deviation / by)))
    if value:
        places = max(0, min(places, 5 - math.floor(math.log10(abs(value) / by))))
    return f"{value / by:.{places}f} ± {deviation / by:.{places}f}{word}"


def _digits(value: float) -> str:
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e15 else text


def scale(value: float, unit: str) -> tuple[float, str]:
    """The divisor and the name of a suitable unit."""
    size = abs(value)
    if unit == "seconds":
        for by, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
            if size >= by:
                return by, name
        return (1e-9, "ns") if size else (1.0, "s")
    if unit in ("bytes", "bytes-per-second"):
        rate = "/s" if unit.endswith("second") else ""
        for power, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
            if size >= 1 << power:
                return float(1 << power), name + rate
        return 1.0, "B" + rate
    return 1.0, {"percent": "%", "kilobytes": "kB", "per-second": "/s"}.get(unit, "")
