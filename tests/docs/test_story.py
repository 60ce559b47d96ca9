"""README shows what its first command prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WIDTH = "120"
"""Columns of the terminal that README was copied from."""


@pytest.mark.spark
def test_the_story_prints_what_readme_shows(tmp_path: Path) -> None:
    shown = re.search(r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert shown
    path = os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    told = subprocess.run(
        [sys.executable, "-m", "examples.story"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": WIDTH, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    told_lines = iter(_lines(told.stdout))
    missing = [line for line in _lines(shown[1]) if line not in told_lines]
    assert missing == [], f"not printed, or not in this order:\n{told.stdout}"


def _lines(text: str) -> list[str]:
    """The lines that say something, without the moment at which it was said."""
    dated = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "MOMENT", text)
    return [line.rstrip() for line in dated.splitlines() if line.strip()]
