#!/usr/bin/env python3
"""Finds figures of a document that do not match the results of the benches.

After a table of figures a document has a comment that names the bench of each figure:

    <!-- bench
    resident_touch/1_GiB: 2.8 ns
    bulk_random/{pagetide|bitmap-allocator}: 276 54 ns each
    compaction/worst_case: 26 M/s each
    -->

A line has the name of a bench, or several names with their last part in braces, a figure for each,
and a unit: ns, us, ms, s, or M/s. `each` divides the time by the number of elements of the bench. A
`-` is a bench that the document does not show.

    scripts/stale_figures.py [--results DIR] [--share PERCENT] FILE...

compares them with the medians that the last `cargo bench` left in DIR (target/criterion) and prints
those that differ by more than PERCENT (25) of the figure. Benches without a result are counted, but
not compared. Exits with 1 if a figure differs, and with 2 if a comment is malformed or its figure
is not in the lines above it.
"""

import argparse
import json
import pathlib
import re
import sys

COMMENT = re.compile(r"^<!-- bench\n(?P<lines>.*?)^-->$", re.M | re.S)
LINE = re.compile(r"(?P<names>.+): (?P<figures>[0-9. -]+) (?P<unit>ns|us|ms|s|M/s)(?P<each> each)?")
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


class Unreadable(Exception):
    """A comment that is malformed or does not match its table."""


def expanded(names):
    """`a/{b|c}` -> `a/b`, `a/c`."""
    braces = re.fullmatch(r"(.*)\{(.+)\}(.*)", names)
    if not braces:
        return [names]
    return [braces[1] + name + braces[3] for name in braces[2].split("|")]


def figures(text):
    """(bench, figure as shown, unit, each) of all comments of a document."""
    end = 0
    for comment in COMMENT.finditer(text):
        above = text[end : comment.start()]
        end = comment.end()
        for line in comment["lines"].splitlines():
            match = LINE.fullmatch(line)
            if not match:
                raise Unreadable(f"`{line}` is not `BENCH: FIGURE UNIT`")
            names, shown = expanded(match["names"]), match["figures"].split()
            if len(names) != len(shown):
                raise Unreadable(f"`{line}` has {len(names)} benches and {len(shown)} figures")
            for name, figure in zip(names, shown):
                if figure == "-":
                    continue
                if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", above):
                    raise Unreadable(f"`{line}`: {figure} is not in the text above the comment")
                yield name, figure, match["unit"], bool(match["each"])


def results(directory):
    """Bench -> (median in nanoseconds, elements)."""
    found = {}
    for path in sorted(directory.glob("**/new/benchmark.json")):
        bench = json.loads(path.read_text())
        median = json.loads(path.with_name("estimates.json").read_text())["median"]["point_estimate"]
        found[bench["full_id"]] = (median, (bench["throughput"] or {}).get("Elements"))
    return found


def measured(result, unit, each):
    """A result in the unit of a figure."""
    nanoseconds, elements = result
    if each:
        if not elements:
            raise Unreadable("`each` needs the number of elements, which the bench does not report")
        nanoseconds /= elements
    return 1e3 / nanoseconds if unit == "M/s" else nanoseconds / NANOSECONDS[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default="target/criterion", metavar="DIR")
    parser.add_argument("--share", type=float, default=25.0, metavar="PERCENT")
    parser.add_argument("file", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    found = results(arguments.results)
    checked = stale = without = 0
    for path in arguments.file:
        try:
            for bench, figure, unit, each in figures(path.read_text()):
                if bench not in found:
                    without += 1
                    continue
                checked += 1
                now = measured(found[bench], unit, each)
                off = (now / float(figure) - 1) * 100
                if abs(off) > arguments.share:
                    stale += 1
                    print(f"{path}: {bench}: {figure} {unit}, now {now:.3g} {unit} ({off:+.0f} %)")
        except Unreadable as why:
            print(f"{path}: {why}", file=sys.stderr)
            return 2
    differ = f"{stale} differ by more than {arguments.share:g} %"
    print(f"{checked} figures compared, {differ}; {without} without a result")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
