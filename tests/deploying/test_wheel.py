"""The wheel in an environment of its own: what needs no Spark works there, and the rest says what is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import streaming.cli

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel and what its metadata asks for, at the versions that are locked."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    locked = re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / "requirements/runtime.txt").read_text(), re.MULTILINE)
    (folder / "locked.txt").write_text("\n".join(locked))
    pip = [sys.executable, "-m", "pip", "--python", folder / "venv/bin/python", "install", "--quiet"]
    subprocess.run([*pip, "--constraint", folder / "locked.txt", wheel], check=True)
    with tarfile.open(ROOT / "tests/cases/tables-0.1.0.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    (folder / "conf.toml").write_text('[tables]\nroot = "tables"\n')
    return folder


def command(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed command, away from the checkout."""
    return subprocess.run(
        [installed / "venv/bin/replica-planner", *arguments], cwd=installed, capture_output=True, text=True, check=False
    )


def test_without_spark_tables_are_read_and_exports_replanned(installed: Path) -> None:
    packages = {path.name.split("-")[0] for path in (installed / "venv/lib").glob("python3*/site-packages/*.dist-info")}
    assert "replica_planner" in packages
    assert not packages & {"pyspark", "delta_spark", "pandas", "py4j"}
    plans = command(installed, "plans", "--conf", "conf.toml", "--json")
    assert (plans.returncode, plans.stderr) == (0, "")
    assert [plan["plan_version"] for plan in json.loads(plans.stdout)] == [1, 2, 3, 4, 5, 6]
    report = command(installed, "report", "east", "--conf", "conf.toml", "--out", "report.html")
    assert (report.returncode, report.stdout) == (0, "report.html written\n"), report.stderr
    (installed / "current.json").write_text(
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}'
    )
    (installed / "brokers.json").write_text('[{"id": 1, "state": "dead"}, {"id": 2}, {"id": 3}]')
    plan = command(installed, "replan", "--current", "current.json", "--brokers", "brokers.json", "--out", "-")
    assert plan.returncode == 0, plan.stderr
    assert json.loads(plan.stdout)["partitions"][0]["replicas"] == [2, 3]


@pytest.mark.parametrize("arguments", [("run",), ("maintain", "--conf", "conf.toml")])
def test_what_needs_spark_says_so(installed: Path, arguments: tuple[str, ...]) -> None:
    done = command(installed, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "replica-planner: this command needs Spark, and this environment has no pyspark and delta-spark: "
        "install replica-planner[spark], or run it where Spark is\n"
    )


def test_the_entry_point_returns_where_all_went_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Databricks task that ends by ``sys.exit(0)`` is shown as failed."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "argv", ["replica-planner", "--version"])
    streaming.cli.main()
    assert capsys.readouterr().out.startswith("replica-planner, version ")
    monkeypatch.setattr(sys, "argv", ["replica-planner", "no-such-command"])
    with pytest.raises(SystemExit) as ended:
        streaming.cli.main()
    assert ended.value.code == 2
