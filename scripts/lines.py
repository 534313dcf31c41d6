#!/usr/bin/env python3
"""Prints the lines of Rust in each crate: code, doc comments, other comments, blank lines, tests.

Tests are files under `tests` and `benches`, files named `tests.rs`, and modules with
`#[cfg(test)]`; their lines count as tests whatever they contain.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("code", "doc", "comment", "blank", "test")


def kinds(path: Path, text: str) -> Counter[str]:
    lines = text.splitlines()
    if {"tests", "benches"} & set(path.parts) or path.name == "tests.rs":
        return Counter(test=len(lines))
    found: Counter[str] = Counter()
    is_test = False
    for at, line in enumerate(lines):
        # A module of tests ends with a brace in the first column.
        following = "".join(lines[at + 1 : at + 2])
        is_test |= line == "#[cfg(test)]" and bool(re.match(r"mod \w+ \{", following))
        code = line.strip()
        doc, comment = code.startswith(("///", "//!")), code.startswith("//")
        kind = "doc" if doc else "comment" if comment else "code" if code else "blank"
        found["test" if is_test else kind] += 1
        is_test &= line != "}"
    return found


def main() -> None:
    names = subprocess.check_output(["git", "ls-files", "*.rs"], cwd=ROOT, text=True).split()
    crates: dict[str, Counter[str]] = {}
    for name in names:
        path = Path(name)
        crate = path.parts[1] if path.parts[0] == "crates" else path.parts[0]
        crates.setdefault(crate, Counter()).update(kinds(path, (ROOT / path).read_text()))
    crates["all"] = sum(crates.values(), Counter())
    print(f"{'crate':20}" + "".join(f"{kind:>9}" for kind in (*KINDS, "lines")))
    for crate, found in crates.items():
        print(f"{crate:20}" + "".join(f"{found[kind]:>9}" for kind in KINDS) + f"{found.total():>9}")


if __name__ == "__main__":
    main()
