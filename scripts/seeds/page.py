"""docs/seeds.md: every cell of the mails, next to our results and those of the patched kernel."""

import hashlib
import json
import math
import textwrap

from mails import (
    CONTROLS, EXPERIMENTS, FIT_COLUMNS, HERE, KINDS, MAILS, RECORDS, ROOT, STAYS_NOTHING,
    Ours, calibration, cells, published, read_fits, read_record,
)


PAGE = ROOT / "docs" / "seeds.md"


def wrapped(text):
    """A paragraph in lines of at most 100 columns."""
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def percent(value):
    """Formats a change."""
    if value is None:
        return "-"
    if value is STAYS_NOTHING:
        return "0 stays 0"
    if math.isinf(value):
        return "new"
    if value >= 10:
        return f"x {value + 1:.0f}"
    return f"{value * 100:+.1f} %"


def mark(ours):
    """Both judgements, for one column."""
    if not ours.known:
        return "-"
    return "yes, yes" if ours.near else "yes, no" if ours.right else "no, no"


def records(name):
    """The plain, the calibrated and the real kernel's record, the simulator's at that size, and
    those of the ten best fits."""
    fits = []
    while (one := read_record(RECORDS / "spread" / f"{name}-{len(fits)}.csv")) is not None:
        fits.append(one)
    return *(read_record(RECORDS / f"{kind}-{name}.csv") for kind in KINDS), fits


def render():
    out = [(HERE / "page.txt").read_text().rstrip(), ""]
    totals = {kind: [0] * 6 for kind in KINDS}
    body, summary = [], []
    for mail, experiments in MAILS:
        body += [f"## {mail}", ""]
        here = {kind: [0] * 6 for kind in totals}
        for name, pairs in experiments:
            body += table(name, pairs, here)
            if name in CONTROLS:
                body += ["The control (not counted): with room for both builds nothing should change.", ""]
                body += table(name, CONTROLS[name], None)
            body += [*wrapped(runs_of(name)), ""] + note(name)
        summary.append(f"| {mail} | {' | '.join(count(here[kind]) for kind in KINDS)} |")
        for kind, sums in here.items():
            totals[kind] = [one + two for one, two in zip(totals[kind], sums)]
    out += ["| | plain: right way, within 1.5x | calibrated | Linux | simulated small, against Linux |"]
    out += ["|---|---|---|---|---|"]
    out += [*summary, f"| **all** | {' | '.join(count(totals[kind]) for kind in KINDS)} |"]
    moved = (count(totals[kind][3:]) for kind in KINDS)
    out += [f"| of these, changed by 5 % or more in the reference | {' | '.join(moved)} |", ""]
    return "\n".join(out + body).rstrip() + "\n"


def count(sums):
    cells_, right, close = sums[:3]
    if cells_ == 0:
        return "-"
    return f"{right} and {close} of {cells_} ({right / cells_:.0%}, {close / cells_:.0%})"


def moves(change):
    """Whether a figure changes by 5 % or more."""
    return change is not STAYS_NOTHING and abs(change) >= 0.05


def table(name, pairs, sums):
    plain, calibrated, linux, there, fits = records(name)
    _, source = published(name)
    lines = [*wrapped(f"[{name}](../experiments/{name}.toml): {source}."), ""]
    lines += ["| | published | plain | | calibrated | best fits | | Linux | | simulated small | |"]
    lines += ["|---|--:|--:|---|--:|--:|---|--:|---|--:|---|"]
    last = None
    for metric, before, after, theirs in cells(name, pairs):
        if after != last:
            lines.append(f"| **{before} → {after}** | | | | | | | | | | |")
            last = after
        four = [Ours(theirs, record, metric, before, after) for record in (plain, calibrated, linux)]
        # Compared with that kernel, not with the mail. Figures that the kernel lacks are not cells.
        counts = four[2].known and any(linux[column][metric][0] for column in (before, after))
        four.append(Ours(four[2].change, there if counts else None, metric, before, after))
        if sums is not None:
            for kind, ours in zip(KINDS, four):
                if ours.known:
                    one = [1, ours.right, ours.near]
                    one += one if moves(four[2].change if kind == KINDS[3] else theirs) else [0, 0, 0]
                    sums[kind] = [sum_ + more for sum_, more in zip(sums[kind], one)]
        spread = [Ours(theirs, fit, metric, before, after).change for fit in fits]
        spread = sorted(value for value in spread if value is not None)
        ends = f"{percent(spread[0])} … {percent(spread[-1])}" if len(spread) > 1 else "-"
        one, two, real, same = four
        lines.append(
            f"| `{metric}` | {percent(theirs)} | {percent(one.change)} | {mark(one)} "
            f"| {percent(two.change)} | {ends} | {mark(two)} "
            f"| {percent(real.change)} | {mark(real)} | {percent(same.change)} | {mark(same)} |"
        )
    return [*lines, ""]


def runs_of(name):
    """The number of runs of each column."""
    parts = []
    for kind, record in zip(("plain", "calibrated", "Linux and simulated small"), records(name)):
        runs = {runs for metrics in (record or {}).values() for _, _, runs in metrics.values()}
        ends = sorted({min(runs), max(runs)}) if runs else ["none yet"]
        parts.append(f"{kind} {' to '.join(map(str, ends))}")
    return f"Runs of each column: {', '.join(parts)}.{of_other_patches(name)}"


def of_other_patches(name):
    """A sentence, if the recordings are from a kernel with other patches than those here."""
    patches = ROOT / "kernels" / "linux-6.1"
    # The same sum as in scripts/proposals.sh.
    files = [*sorted(patches.glob("[0-9]*.patch")), patches / "config"]
    now = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    others = set()
    for file in (EXPERIMENTS / "proposals" / "linux-6.1").glob(f"{name}.*.json"):
        kernel = json.loads(file.read_text())["kernel"]
        if not kernel.endswith(f"-{now}"):
            others.add(kernel)
    if not others:
        return ""
    return f" Linux is {' and '.join(sorted(others))}, with older patches; the current ones are -{now}."


def note(name):
    """The fitted parameters, and the distance of the before side from the mail."""
    if not (RECORDS / f"fits-{name}.csv").exists():
        return []
    rows = read_fits(name)
    chosen = [row for row in rows if row["rank"] == "0"]
    parts = [f"{key} {value}" for key, value in chosen[0].items() if key not in FIT_COLUMNS] if chosen else []
    spec = calibration()[name]
    text = (
        f"Calibrated on {', '.join(spec['columns'])} ({len(rows)} trials; distance of plain "
        f"{rows[0]['objective']}, of the best fit {chosen[0]['judged']}): {'; '.join(parts)}."
    ) if chosen else ""
    return [*wrapped(text), ""] if chosen else []
