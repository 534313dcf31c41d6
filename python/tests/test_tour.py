"""The tour notebook runs from its first to its last cell, and is stored without output."""

import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
TOUR = pathlib.Path(__file__).parents[2] / "examples/tour.ipynb"


@pytest.mark.slow
def test_every_cell_runs(tmp_path):
    for needed in ("ipykernel", "polars", "matplotlib", "optuna", "pyarrow"):
        pytest.importorskip(needed)
    book = nbformat.read(TOUR, 4)
    assert not any(cell.get("outputs") for cell in book.cells), "committed without output"
    nbclient.NotebookClient(book, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    tables = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert any("service.walltime" in table for table in tables)
