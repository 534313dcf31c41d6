"""The blocks of docs/python.md run, in order, in an empty directory."""

import re
from pathlib import Path

import pytest


def test_blocks_of_the_page(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for needed in ["polars", "pyarrow", "optuna", "matplotlib"]:
        pytest.importorskip(needed)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = (tree / "docs/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 4
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/python.md, block {number + 1}", "exec"), names)


def test_the_table_of_results_has_every_attribute(tree: Path) -> None:
    import pagetide as pt

    text = (tree / "docs/python.md").read_text()
    public = [name for name in dir(pt.Result) if not name.startswith("_")]
    missing = [name for name in public if f"`{name}" not in text and f"{name}`" not in text]
    assert sorted(missing) == ["notes", "scenario", "variants"]
