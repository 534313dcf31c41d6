"""The type stubs match the extension: mypy's stubtest, mypy and pyright."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")


def run(*arguments: str, cwd: Path) -> None:
    # pyright uses the packages of the first Python in PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "VIRTUAL_ENV": sys.prefix}
    ran = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=cwd, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_stubtest(tmp_path: Path) -> None:
    run("mypy.stubtest", "pagetide._pagetide", cwd=tmp_path)


def test_mypy(tmp_path: Path) -> None:
    run("mypy", "--strict", "-p", "pagetide", cwd=tmp_path)


@pytest.mark.slow
def test_pyright_knows_every_type(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    run("pyright", "--ignoreexternal", "--verifytypes", "pagetide", cwd=tmp_path)
