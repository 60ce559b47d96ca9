"""The documentation as a site: it builds without a warning, loads nothing from elsewhere, and is up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tools.reference import pages

ROOT = Path(__file__).parents[2]


class Loads(HTMLParser):
    """What a browser fetches by itself when it opens a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video"):
            self.found.append(values.get("src") or "")
        elif tag == "link" and values.get("rel") not in ("canonical", "prev", "next", "edit"):
            self.found.append(values.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", target]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return target


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    found = []
    for page in site.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text())
        found += [f"{page.name}: {url}" for url in loads.found if re.match(r"(https?:)?//", url)]
    for sheet in site.rglob("*.css"):
        found += [f"{sheet.name}: {url}" for url in re.findall(r"url\(['\"]?((?:https?:)?//[^)]+)", sheet.read_text())]
    assert found == []
    assert len(list(site.rglob("*.html"))) > 20


@pytest.mark.parametrize("path", pages())
def test_generated_pages_are_what_the_code_says(path: str) -> None:
    assert (ROOT / "docs" / path).read_text() == pages()[path], "run `make reference`"


def test_every_test_that_the_guarantees_name_is_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs/guarantees.md").read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert len(named) > 10
