#!/usr/bin/env python3
"""Runs the commands whose outputs documents show, and says which are stale.

In a document a line `<!-- output: COMMAND -->` stands before a fenced block: what the command prints. A
command may read `mine.toml`: the last `toml` block of the document before it.

    scripts/doc_outputs.py PAGETIDE [--write] [--only WORD] FILE...

A command begins with `pagetide`, or with `pagetide-examples`, which is looked for beside it.

Exits with 1 if an output is stale, or, with --write, puts the new one in its place. --only takes the
commands that have this word, for example the name of an experiment: some take minutes.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

OUTPUT = re.compile(r"(<!-- output: (?P<command>[^\n]*?) -->\n```\n)(?P<shown>.*?)(?=^```$)", re.M | re.S)
SCENARIO = re.compile(r"^```toml\n(.*?)^```$", re.M | re.S)


def printed(command, pagetide, scenario):
    """What a command prints, run in a directory that has the document's scenario only."""
    words = shlex.split(command)
    programs = {"pagetide": pagetide, "pagetide-examples": str(pathlib.Path(pagetide).with_name("pagetide-examples"))}
    if words[0] not in programs:
        raise SystemExit(f"`{command}` begins with none of {', '.join(programs)}")
    program = programs[words[0]]
    if not pathlib.Path(program).exists():
        raise SystemExit(f"there is no {program}: `cargo build --release -p pagetide-examples` makes it")
    with tempfile.TemporaryDirectory() as place:
        pathlib.Path(place, "mine.toml").write_text(scenario)
        done = subprocess.run([program] + words[1:], cwd=place, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"`{command}` ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def refresh(path, arguments):
    """The document with new outputs, and how many were stale."""
    text = path.read_text()
    stale = 0

    def replace(match):
        nonlocal stale
        command = match["command"]
        if arguments.only and arguments.only not in shlex.split(command):
            return match[0]
        before = SCENARIO.findall(text[: match.start()])
        output = printed(command, arguments.pagetide, before[-1] if before else "")
        if output != match["shown"]:
            stale += 1
            print(f"{path}: `{command}` prints something else")
            sys.stdout.writelines(
                difflib.unified_diff(match["shown"].splitlines(True), output.splitlines(True), "shown", "printed", n=0)
            )
        return match[1] + output

    return OUTPUT.sub(replace, text), stale


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pagetide", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", metavar="WORD")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    stale = 0
    for path in arguments.files:
        text, of_file = refresh(path, arguments)
        stale += of_file
        if arguments.write and of_file:
            path.write_text(text)
    print(f"{stale} outputs were stale")
    return 0 if arguments.write or stale == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
