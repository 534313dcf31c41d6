"""The command `pagetide`: `python -m pagetide` and the script that pip installs."""

from __future__ import annotations

import sys

from ._pagetide import main as _main


def main() -> int:
    """Runs the command with the arguments of the process. Returns its exit code."""
    return _main(["pagetide", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
