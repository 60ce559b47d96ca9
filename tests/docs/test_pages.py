"""Every command of README and documentation is run, and prints what the page says.

With ``UPDATE_DOCS=1`` in the environment pages get what was really printed.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

import streaming.job.query
from streaming.config import Config, FilesSource, load_config
from streaming.job.query import run_job
from tests.docs.console import COMMAND, Step, Terminal, beginning, play, steps

ROOT = Path(__file__).parents[2]

ELSEWHERE = {
    "docs/collect.md": "tests/live_kafka/test_live_pages.py plays it on a real cluster",
    "docs/apply.md": "tests/live_kafka/test_live_pages.py plays it on a real cluster",
    "CONTRIBUTING.md": "the commands are those that run these tests",
}
"""Pages whose commands other tests run."""

FILES = {
    "README.md": {
        "CURRENT.json": {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]},
        "B.json": [{"id": 1, "rack": "a", "state": "dead"}, {"id": 2, "rack": "b"}, {"id": 3, "rack": "c"}],
    },
}
"""Files of the reader's own that a page names."""

NOT_RUN = {
    "make ": "continuous integration runs it",
    "export ": "the tests have the command already",
    "git ": "needs a repository of one's own",
    "databricks ": "needs a workspace",
    "cp ": "needs the wheel that make builds",
    "curl ": "needs the job that is running",
}
"""Beginnings of commands that no test can run here, and why."""


def pages() -> list[Path]:
    """The pages with commands that are to be run."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        page
        for page in found
        if str(page.relative_to(ROOT)) not in ELSEWHERE and any(isinstance(s, Step) for s in steps(page.read_text()))
    ]


def left_out(command: str) -> bool:
    return command.startswith(tuple(NOT_RUN))


def below(folder: Path, config: Config) -> Config:
    """The same conf with whole paths: Spark was started in another folder."""
    replace = msgspec.structs.replace
    assert isinstance(config.source, FilesSource)
    return replace(
        config,
        source=replace(config.source, path=str(folder / config.source.path)),
        tables=replace(config.tables, root=str(folder / config.tables.root)),
        job=replace(config.job, checkpoint=str(folder / config.job.checkpoint)),
    )


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder that every page is played in, and one for what pages leave behind for others.

    Always the same one, because checkpoints know whole paths.
    """
    return tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("kept")


@pytest.mark.spark
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_says(
    page: Path, spark: SparkSession, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, kept = places

    def job(config: Config, **options: Any) -> None:
        """The job in the session that is there already: a JVM takes seconds to start."""
        run_job(below(work, config), spark=spark, **options)

    monkeypatch.chdir(work)
    monkeypatch.delenv("REPLICA_PLANNER_CONF", raising=False)
    monkeypatch.setattr(streaming.job.query, "run_job", job)
    terminal = Terminal(work, lambda: job(load_config(), once=True))
    before = beginning(page.read_text())
    if before is not None:
        if not (kept / Path(before).name).exists():
            empty(work)
            play((page.parent / before).read_text(), terminal, left_out)
            shutil.copytree(work, kept / Path(before).name)
        empty(work)
        shutil.copytree(kept / Path(before).name, work, dirs_exist_ok=True)
    else:
        empty(work)
    for name, content in FILES.get(str(page.relative_to(ROOT)), {}).items():
        (work / name).write_text(json.dumps(content))
    differences, printed = play(page.read_text(), terminal, left_out)
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(printed)
    assert differences == []


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_every_page_with_commands_is_run() -> None:
    unknown = [name for name in ELSEWHERE if not (ROOT / name).exists()]
    assert unknown == [], "named here, but there is no such page"
    assert COMMAND in (ROOT / "README.md").read_text()
