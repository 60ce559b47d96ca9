"""The notebook of the documentation runs from top to bottom and shows what it says."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.spark

NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebooks" / "incident.ipynb"


def test_the_incident_is_explained() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = [
        "".join(output.get("text", "") for output in cell.outputs if output.get("name") == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    plans, why, leaders, period, verdict = printed[2:7]
    assert "broker 3 failed; to be healed at 2026-01-12T10:30:00Z unless it returns" in plans
    assert "grace of broker 3 over at 2026-01-12T10:30:00Z" in plans
    assert "|2           |[]    " in why
    assert "created" in why
    before, after = leaders.strip().split("\n\n")
    assert ("dead" in before, "dead" in after, "|        5|" in before, "|        5|" in after) == (
        False,
        True,
        False,
        True,
    )
    assert "|orders|" in period
    assert "open or superseded" in period
    assert verdict == "None\n"
