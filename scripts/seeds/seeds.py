#!/usr/bin/env python3
"""Compares every figure that the five mails published with Pagetide's figures: makes docs/seeds.md
and its inputs.

    seeds.py page                  writes docs/seeds.md from the records
    seeds.py scenarios             writes experiments/calibrated/NAME.toml: the plain scenarios
                                   with the best fits
    seeds.py check                 checks docs/seeds.md and the calibrated scenarios
    seeds.py run [NAME...]         runs the shipped experiments; writes records/plain-NAME.csv
    seeds.py linux                 writes records/linux-NAME.csv from the counters of the patched
                                   kernel in the same experiment at a smaller size
                                   (experiments/proposals/linux-6.1), and records/there-NAME.csv,
                                   the simulator's results at that size
    seeds.py compare [NAME...]     runs the experiments; checks the records against the results
    seeds.py calibrate NAME...     searches as calibration.toml says; writes records/fits-NAME.csv
    seeds.py predict NAME...       judges the ten best fits with fresh seeds and computes all
                                   columns once; then `final` and `scenarios`
    seeds.py final NAME...         repeats the best fit with as many runs as the plain experiment,
                                   and other seeds

The command is `pagetide`, or the value of --pagetide. The script needs only Python 3.11.

A record has a line for each column and metric that a mail published: its mean, its sample standard deviation and the
number of runs. Times are in seconds.
"""

import argparse
import csv
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import tomllib

from mails import (
    EXPERIMENTS, FIT_COLUMNS, NAMES, ON_LINUX, RECORDS, ROOT, SUMS_ON_LINUX,
    Trouble, calibration, number, published, read_fits, read_record, scenario, write_record,
)
from page import PAGE, render


def simulate(arguments, name, settings=(), variants=(), seed=None, repeats=None, limit=None, file=None):
    """Runs an experiment; {column: {metric: (mean, deviation, runs)}} of the metrics that the mail published."""
    wanted, _ = published(name)
    metrics = sorted({metric for figures in wanted.values() for metric in figures})
    file = file or EXPERIMENTS / f"{name}.toml"
    command = [arguments.pagetide, "run", str(file), "--jobs", arguments.jobs, "--no-why", "--format", "json"]
    for key, value in settings:
        command += ["--set", f"{key}={value}"]
    for variant in variants or [column for column in wanted]:
        command += ["--variant", variant]
    for metric in metrics:
        command += ["--metrics", metric]
    if seed is not None:
        command += ["--seed", str(seed)]
    if repeats is not None:
        command += ["--repeats", str(repeats)]
    printed = called(command, limit)
    if printed is None:
        return None
    columns = {}
    for variant in json.loads(printed)["variants"]:
        figures = columns.setdefault(variant["name"], {})
        for metric in metrics:
            found = variant["metrics"].get(metric)
            if found is not None and metric in wanted.get(variant["name"], {}):
                mean, deviation = (math.nan if found[key] is None else found[key] for key in ("mean", "stddev"))
                figures[metric] = (mean, deviation, len(found["samples"]))
    return columns


# --- commands ---


def page(_):
    PAGE.write_text(render())


def check(_):
    wrong = []
    if not PAGE.exists() or PAGE.read_text() != render():
        wrong.append(f"{PAGE.relative_to(ROOT)} does not match the records; run scripts/seeds/seeds.py page")
    for name in NAMES:
        found = EXPERIMENTS / "calibrated" / f"{name}.toml"
        if found.exists() and found.read_text() != calibrated_scenario(name):
            path = found.relative_to(ROOT)
            wrong.append(f"{path} is not the plain scenario with the best fit; run seeds.py scenarios")
    if wrong:
        raise Trouble("\n".join(wrong))


def run(arguments):
    for name in arguments.name or NAMES:
        begun = time.monotonic()
        columns = simulate(arguments, name, repeats=arguments.repeats)
        repeats = "" if arguments.repeats is None else f" --repeats {arguments.repeats}"
        write_record(RECORDS / f"plain-{name}.csv", [f"scripts/seeds/seeds.py run {name}{repeats}"], columns)
        print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr)


def linux(arguments):
    folder = EXPERIMENTS / "proposals" / "linux-6.1"
    for name in NAMES:
        columns = {ON_LINUX.get(column, column): column for column in published(name)[0]}
        recorded = [variant for variant in columns if (folder / f"{name}.{variant}.json").exists()]
        if not recorded:
            continue
        file = EXPERIMENTS / "proposals" / f"{name}.toml"
        command = [arguments.pagetide, "verify", str(file), "--reference", str(folder), "--format", "json"]
        for variant in recorded:
            command += ["--variant", variant]
        sides = {"linux": {}, "there": {}}
        for variant in json.loads(called(command))["variants"]:
            column = columns[variant["name"]]
            for kind, side in zip(sides, ("linux", "pagetide")):
                sides[kind][column] = of_published(name, column, variant["metrics"], side)
        for kind, figures in sides.items():
            write_record(RECORDS / f"{kind}-{name}.csv", ["scripts/seeds/seeds.py linux"], figures)


def called(command, limit=None):
    """The output of a command; None if it takes longer than `limit` seconds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except OSError as error:
        raise Trouble(f"{command[0]}: {error.strerror}; give the path of the command with --pagetide PATH") from error
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        raise Trouble(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def of_published(name, column, metrics, side):
    """{metric: (mean, deviation, runs)} of one side of a comparison, for the metrics of the
    mail."""
    found = {}
    for metric in sorted(published(name)[0][column]):
        parts, unit = SUMS_ON_LINUX.get(name, {}).get(metric, (parts_of(metrics, metric), 1))
        figures = [metrics[part][side] for part in parts if metrics[part][side]]
        if not figures:
            continue
        # For copies of a task: the mean of times, else the sum, as in `pagetide run`.
        if len(parts) > 1 and all(metrics[part]["unit"] == "seconds" for part in parts):
            unit /= len(figures)
        deviations = [it["stddev"] for it in figures]
        deviation = math.nan if None in deviations else unit * math.sqrt(sum(one**2 for one in deviations))
        found[metric] = (unit * sum(it["mean"] for it in figures), deviation, min(it["n"] for it in figures))
    return found


def parts_of(metrics, metric):
    """The metric, or those of the task's copies if the kernel counts them separately."""
    if metric in metrics and metrics[metric]["linux"] and metrics[metric]["pagetide"]:
        return [metric]
    who, _, what = metric.rpartition(".")
    copy = re.compile(rf"{re.escape(who)}\.[0-9]+\.{re.escape(what)}")
    return [key for key in metrics if copy.fullmatch(key)]


def compare(arguments):
    wrong = []
    for name in arguments.name or NAMES:
        kept = read_record(RECORDS / f"plain-{name}.csv") or {}
        repeats = max((runs for metrics in kept.values() for _, _, runs in metrics.values()), default=None)
        for column, metrics in simulate(arguments, name, repeats=repeats).items():
            for metric, (mean, _, _) in metrics.items():
                there = kept.get(column, {}).get(metric, (math.nan,))[0]
                if number(mean) != number(there):
                    wrong.append(f"{name} {column} {metric}: recorded {number(there)}, now {number(mean)}")
    if wrong:
        raise Trouble("\n".join([*wrong, "scripts/seeds/seeds.py run records them again"]))


# --- calibration ---

# Time limit of a trial in seconds. Only a world in which a machine stops making progress takes so
# long, so the result does not depend on how busy this computer is.
LIMIT = 3600


def calibrated_scenario(name):
    """The plain scenario with the additions of the calibration and the values of the best fit."""
    (best,) = (row for row in read_fits(name) if row["rank"] == "0")
    tree = tomllib.loads(calibration()[name].get("extra", ""))
    for key, value in settings_of(name, {key: value for key, value in best.items() if key not in FIT_COLUMNS}):
        put(tree, key.split("."), int(value) if value.isdecimal() else value)
    head = [
        f"# Made by scripts/seeds/seeds.py: experiments/{name}.toml with values fitted to the column before",
        "# the patch (scripts/seeds/calibration.toml). See docs/seeds.md.",
        "",
        f'base = "../{name}.toml"',
        f'name = "{name}-calibrated"',
        f"title = {json.dumps(scenario(name)['title'] + ' (calibrated)')}",
    ]
    return "\n".join([*head, *lines_of(tree, ""), ""])


# Arrays of tables with names.
LISTS = ("disk", "file", "group", "phase", "task")


def put(table, path, value):
    """Sets the value at a path as in `--set`."""
    key, *rest = path
    if not rest:
        table[key] = value
    elif key in LISTS:
        tables = table.setdefault(key, [])
        if all(it["name"] != rest[0] for it in tables):
            tables.append({"name": rest[0]})
        put(next(it for it in tables if it["name"] == rest[0]), rest[1:], value)
    else:
        put(table.setdefault(key, {}), rest, value)


def lines_of(table, path):
    """The lines of a TOML table: its own values, then the tables in it. Phases follow their task directly."""
    inner = {key: value for key, value in table.items() if isinstance(value, (dict, list))}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if key not in inner]
    for key, value in inner.items():
        head, tables = (f"[{path}{key}]", [value]) if isinstance(value, dict) else (f"[[{path}{key}]]", value)
        for one in tables:
            lines += [*([] if key == "phase" else [""]), head, *lines_of(one, f"{path}{key}.")]
    return lines


def text_of(parameter, value):
    """A value as the scenario has it."""
    if "choices" in parameter:
        return str(value)
    if parameter.get("integer"):
        value = round(value)
    return f"{round(value)}{parameter.get('unit', '')}"


def settings_of(name, texts):
    """[(key, value)] of parameters given as texts."""
    free = calibration()[name]["free"]
    return [(key, texts[it]) for it, parameter in free.items() for key in parameter["keys"] if texts[it] != "plain"]


def draw(parameter, dice):
    if "choices" in parameter:
        return dice.choice(parameter["choices"])
    low, high = parameter["range"]
    if parameter.get("log"):
        return math.exp(dice.uniform(math.log(low), math.log(high)))
    return dice.uniform(low, high)


def moved(parameter, value, dice, share):
    """A value near `value`: a normal step of `share` of the range, kept inside."""
    if "choices" in parameter:
        return dice.choice([it for it in parameter["choices"] if it != value])
    low, high = parameter["range"]
    if value == "plain":
        return draw(parameter, dice)
    if parameter.get("log"):
        step = dice.gauss(0, share) * math.log(high / low)
        return min(max(value * math.exp(step), low), high)
    return min(max(value + dice.gauss(0, share) * (high - low), low), high)


def distance(name, found):
    """The objective, in logarithms."""
    spec = calibration()[name]
    columns, _ = published(name)
    factor = 1.0
    if "scale" in spec:
        column, metric = spec["scale"]
        factor = found[column][metric][0] / columns[column][metric] if found else math.nan
    total = weights = 0.0
    for column in spec["columns"]:
        only = spec.get("only", {}).get(column)
        for metric in only or spec["targets"]:
            weight = spec["only_weight"] if only else spec["targets"][metric]
            theirs = columns[column][metric]
            if metric not in spec.get("unscaled", ()):
                theirs *= factor
            ours = found[column][metric][0] if found and metric in found.get(column, {}) else math.nan
            small = small_of(metric)
            far = math.log(20)
            off = far if math.isnan(ours + theirs) else min(abs(math.log((ours + small) / (theirs + small))), far)
            total += weight * off**2
            weights += weight
    return math.sqrt(total / weights)


def small_of(metric):
    """The value added to a figure so that 0 has a logarithm."""
    if "latency" in metric:
        return 1e-6
    return 1e-3 if metric.rpartition(".")[2] in ("walltime", "system", "user", "elapsed") else 1.0


def trial(arguments, name, texts, variants, seeds, limit=None):
    """One set of parameters: its figures over consecutive seeds. None if it takes longer than
    `limit` seconds."""
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / f"{name}.toml"
        extra = calibration()[name].get("extra", "")
        file.write_text(f'base = "{EXPERIMENTS}/{name}.toml"\n{extra}')
        return simulate(
            arguments,
            name,
            settings_of(name, texts),
            variants,
            seed=seeds[0],
            repeats=len(seeds),
            limit=limit,
            file=file,
        )


def calibrate(arguments):
    for name in arguments.name:
        spec = calibration()[name]
        free, dice = spec["free"], random.Random(1)
        trials = []  # (objective, values, texts)
        begun = time.monotonic()
        for at in range(1 + spec["random"] + spec["steps"]):
            if at == 0:
                values = dict.fromkeys(free, "plain")
            elif at <= spec["random"]:
                values = {it: draw(parameter, dice) for it, parameter in free.items()}
            else:
                step = at - spec["random"] - 1
                values = dict(min(trials, key=lambda one: one[0])[1])
                it = list(free)[step % len(free)]
                share = 0.25 - 0.2 * step / max(spec["steps"] - 1, 1)
                values[it] = moved(free[it], values[it], dice, share)
            texts = {it: "plain" if v == "plain" else text_of(free[it], v) for it, v in values.items()}
            try:
                found = trial(arguments, name, texts, spec["columns"], spec["seeds"], LIMIT)
                if found is None:
                    print(f"{name} {at}: not finished after {LIMIT} s, so it gets the worst score", file=sys.stderr)
            except Trouble as trouble:
                print(trouble, file=sys.stderr)
                found = None
            trials.append((distance(name, found), values, texts))
            print(f"{name} {at} {math.exp(trials[-1][0]):.3f} {texts}", file=sys.stderr, flush=True)
        write_fits(name, trials, {}, begun)


def write_fits(name, trials, judged, begun=None):
    """Writes the log of a search: each trial and its objective; for the best trials, the judged
    objective and the rank."""
    spec = calibration()[name]
    ranks = {at: rank for rank, at in enumerate(sorted(judged, key=lambda at: judged[at]))}
    with open(RECORDS / f"fits-{name}.csv", "w", newline="") as file:
        seeds = f"seeds {spec['seeds']}, judges {spec['judges']}"
        file.write(f"# scripts/seeds/seeds.py calibrate {name}, then predict: {seeds}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*FIT_COLUMNS, *spec["free"]])
        for at, (objective, _, texts) in enumerate(trials):
            fresh = f"{math.exp(judged[at]):.3f}" if at in judged else ""
            writer.writerow([at, f"{math.exp(objective):.3f}", fresh, ranks.get(at, ""), *texts.values()])
    if begun is not None:
        print(f"{name}: {len(trials)} trials in {time.monotonic() - begun:.0f} s", file=sys.stderr)


def predict(arguments):
    for name in arguments.name:
        spec = calibration()[name]
        rows = read_fits(name)
        trials = [
            (math.log(float(row["objective"])), None, {it: row[it] for it in spec["free"]}) for row in rows
        ]
        distinct = {}  # steps without an effect repeat a trial
        for at in sorted(range(len(trials)), key=lambda at: trials[at][0]):
            distinct.setdefault(tuple(trials[at][2].values()), at)
        best = list(distinct.values())[: spec.get("best", 10)]
        judged, whole = {}, {}
        columns, _ = published(name)
        for at in best:
            whole[at] = trial(arguments, name, trials[at][2], list(columns), spec["judges"])
            judged[at] = distance(name, whole[at])
            print(f"{name} {at} {math.exp(judged[at]):.3f}", file=sys.stderr, flush=True)
        write_fits(name, trials, judged)
        (RECORDS / "spread").mkdir(exist_ok=True)
        for rank, at in enumerate(sorted(judged, key=lambda at: judged[at])):
            write_record(RECORDS / "spread" / f"{name}-{rank}.csv", [f"trial {at}"], whole[at])
    final(arguments)


def final(arguments):
    """The best fit's columns, with as many runs as the plain experiment, and seeds that had no
    influence on the fit."""
    for name in arguments.name:
        rows = read_fits(name)
        (best,) = (row for row in rows if row["rank"] == "0")
        runs = arguments.repeats or scenario(name)["repeats"]
        seeds = range(201, 201 + runs)
        columns, _ = published(name)
        texts = {it: best[it] for it in calibration()[name]["free"]}
        comment = [f"scripts/seeds/seeds.py final {name}: trial {best['trial']}, seeds 201 to {200 + runs}"]
        write_record(RECORDS / f"calibrated-{name}.csv", comment, trial(arguments, name, texts, list(columns), seeds))
    scenarios(arguments)


def scenarios(_):
    for name in NAMES:
        if (RECORDS / f"calibrated-{name}.csv").exists():
            (EXPERIMENTS / "calibrated").mkdir(exist_ok=True)
            (EXPERIMENTS / "calibrated" / f"{name}.toml").write_text(calibrated_scenario(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pagetide", default="pagetide", help="the command")
    parser.add_argument("--jobs", default="1", help="number of parallel runs; does not change the result")
    commands = parser.add_subparsers(dest="command", required=True)
    for command, many in (
        (page, None), (scenarios, None), (check, None), (linux, None), (run, "*"), (compare, "*"),
        (calibrate, "+"), (predict, "+"), (final, "+"),
    ):
        one = commands.add_parser(command.__name__)
        if many:
            one.add_argument("name", nargs=many, help=f"one of {', '.join(NAMES)}")
        if command in (run, predict, final):
            one.add_argument("--repeats", type=int, help="runs of each column instead of the experiment's own number")
        one.set_defaults(command=command)
    arguments = parser.parse_args()
    for name in getattr(arguments, "name", []):
        if name not in NAMES:
            parser.error(f"there is no experiment {name}; choose from {', '.join(NAMES)}")
    try:
        arguments.command(arguments)
    except Trouble as trouble:
        sys.exit(f"seeds.py: {trouble}")


if __name__ == "__main__":
    main()
