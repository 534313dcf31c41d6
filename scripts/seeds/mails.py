"""The figures of the five mails, and the records of Pagetide: data for seeds.py, and the definition
of cells.

A record has a line for each column and metric that a mail published: its mean, its sample standard deviation and the
number of runs. Times are in seconds.
"""

import csv
import io
import math
import pathlib
import re
import sys

try:
    import tomllib
except ImportError:
    sys.exit("seeds.py: needs Python 3.11 or newer (tomllib)")

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RECORDS = HERE / "records"
EXPERIMENTS = ROOT / "experiments"

# The comparisons of each mail: (mail, experiment, before, after columns). The pair in `CONTROLS`
# should not change, because there is enough memory; it is shown, but not counted.
MAILS = [
    (
        "2012: soft limits in the one walk over the groups",
        [("soft-limit", [("600M-280M-vanilla", "600M-280M-patched")])],
    ),
    (
        "2016: kcompactd instead of kswapd",
        [("kcompactd", [("nodirect-kswapd", "nodirect-kcompactd"), ("direct-kswapd", "direct-kcompactd")])],
    ),
    (
        "2020: slab accounting by object",
        [
            ("slab-boot", [("per-group-caches-reparent", "per-object")]),
            ("slab-sysbench", [("per-group-caches-reparent", "per-object")]),
            ("slab-build", [("per-group-caches-reparent", "per-object")]),
        ],
    ),
    (
        "2011: watermarks apart",
        [
            ("tunable-watermarks", [("default", "case1"), ("default", "case2")]),
            ("tunable-watermarks-4g", [("default", "extra-free")]),
        ],
    ),
    (
        "2019: shrink priority",
        [("shrink-priority", [("12-12", "12-8"), ("12-12", "12-6")])],
    ),
]
# Columns with other names in experiments/proposals, where sizes differ.
ON_LINUX = {
    "600M-280M-vanilla": "pressure-vanilla",
    "600M-280M-patched": "pressure-patched",
    "600M-0M-vanilla": "control-vanilla",
    "600M-0M-patched": "control-patched",
}
# Metrics that a kernel counts under other names: the sum of these, each times that many bytes.
SUMS_ON_LINUX = {
    "slab-boot": {"peak.slab": (["watch.look.nr_slab_reclaimable", "watch.look.nr_slab_unreclaimable"], 4096)},
}
# Kinds of records: as shipped; fitted; the patched kernel's at a smaller size; and the simulator's
# at that size.
KINDS = ("plain", "calibrated", "linux", "there")
CONTROLS = {"soft-limit": [("600M-0M-vanilla", "600M-0M-patched")]}
NAMES = [name for _, experiments in MAILS for name, _ in experiments]

# A smaller change counts as "no change": repetitions of a column differ by this much in the mails
# that repeat.
STILL = 0.05
# "Within 1.5x".
NEAR = 1.5
# The change of a figure that is 0 in both columns. Compared by identity, because the page treats it
# specially.
STAYS_NOTHING = float()


class Trouble(Exception):
    """An error for the user that needs no traceback."""


def seconds(value):
    """Converts a figure of a [reference] table; times become seconds."""
    if not isinstance(value, str):
        return float(value)
    number, unit = re.fullmatch(r"([0-9.]+)(ns|us|ms|s)", value).groups()
    return float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def scenario(name):
    with open(EXPERIMENTS / f"{name}.toml", "rb") as file:
        return tomllib.load(file)


def published(name):
    """{column: {metric: figure}}, and the source."""
    table = scenario(name)["reference"]
    columns = {
        column: {metric: seconds(value) for metric, value in figures.items()}
        for column, figures in table.items()
        if column != "source"
    }
    return columns, table["source"]


def read_record(path):
    """{column: {metric: (mean, deviation, runs)}} of a record, or None if there is none."""
    if not path.exists():
        return None
    columns = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            mean, deviation = (float(row[key]) if row[key] else math.nan for key in ("mean", "stddev"))
            columns.setdefault(row["column"], {})[row["metric"]] = (mean, deviation, int(row["runs"]))
    return columns


def write_record(path, comment, columns):
    text = io.StringIO()
    text.writelines(f"# {line}\n" for line in comment)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["column", "metric", "mean", "stddev", "runs"])
    for column, metrics in columns.items():
        for metric, (mean, deviation, runs) in metrics.items():
            writer.writerow([column, metric, number(mean), number(deviation), runs])
    path.parent.mkdir(exist_ok=True)
    path.write_text(text.getvalue())


def number(value):
    return "" if value is None or math.isnan(value) else f"{value:.6g}"


def change(before, after):
    """(after - before) / before, or None if it is unknown or 0 stays 0."""
    if before is None or after is None or math.isnan(before) or math.isnan(after):
        return None
    if before == 0:
        return None if after == 0 else math.inf
    return after / before - 1


class Ours:
    """A change of the simulator or of a real kernel, compared with the published one."""

    def __init__(self, theirs, record, metric, before, after):
        one, two = (None if record is None else record.get(column, {}).get(metric) for column in (before, after))
        self.known = one is not None and two is not None and not math.isnan(one[0] + two[0])
        if not self.known:
            self.change, self.right, self.near = None, False, False
            return
        # 0 that stays 0 is no change.
        moved = change(one[0], two[0])
        self.change = STAYS_NOTHING if moved is None else moved
        error = math.sqrt(sum(deviation**2 / runs for _, deviation, runs in (one, two) if not math.isnan(deviation)))
        told = abs(two[0] - one[0]) > 2 * error
        still = abs(theirs) < STILL and abs(self.change) < STILL
        self.right = still or (told and theirs * self.change > 0)
        sizes = sorted((abs(theirs), abs(self.change)))
        self.near = still or (self.right and sizes[1] <= NEAR * sizes[0])


def cells(name, pairs):
    """(metric, before, after, published change) of each cell that counts."""
    columns, _ = published(name)
    for before, after in pairs:
        for metric, value in columns[before].items():
            if metric in columns[after]:
                moved = change(value, columns[after][metric])
                if moved is not None:
                    yield metric, before, after, moved


# Columns of records/fits-NAME.csv about the trial; the others are free parameters.
FIT_COLUMNS = ("trial", "objective", "judged", "rank")


def calibration():
    with open(HERE / "calibration.toml", "rb") as file:
        return tomllib.load(file)


def read_fits(name):
    """The trials of a search."""
    path = RECORDS / f"fits-{name}.csv"
    if not path.exists():
        raise Trouble(f"{name} has not been searched yet: seeds.py calibrate {name}")
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
