"""The Databricks bundle is what its schema allows, and names what the wheel has."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml
from databricks.bundles.jobs import Job

from streaming.config import load_config

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "conf/databricks/databricks.yml"


@pytest.fixture(scope="module")
def bundle() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(BUNDLE.read_text())
    return found


def test_jobs_are_what_the_schema_allows(bundle: dict[str, Any]) -> None:
    jobs = {name: Job.from_dict(job) for name, job in bundle["resources"]["jobs"].items()}
    assert {name: job.max_concurrent_runs for name, job in jobs.items()} == {
        "replica_planner": 1,
        "replica_planner_serverless": 1,
    }
    with pytest.raises(ValueError, match="Unexpected field 'maximum_runs'"):
        Job.from_dict({**bundle["resources"]["jobs"]["replica_planner"], "maximum_runs": 1})


def test_tasks_call_the_entry_point_of_the_wheel(bundle: dict[str, Any]) -> None:
    scripts = {script.name for script in entry_points(group="console_scripts")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    for job in bundle["resources"]["jobs"].values():
        for task in job["tasks"]:
            called = task["python_wheel_task"]
            assert called["package_name"] == project
            assert called["entry_point"] in scripts
            assert called["parameters"][0] == "run"


def test_every_variable_that_is_used_is_declared(bundle: dict[str, Any]) -> None:
    text = BUNDLE.read_text()
    used = {part.split("}")[0] for part in text.split("${var.")[1:]}
    assert used == set(bundle["variables"])


@pytest.mark.parametrize("name", ["job", "serverless"])
def test_its_confs_are_read(name: str) -> None:
    config = load_config(BUNDLE.with_name(f"{name}.toml"))
    assert "://" in config.tables.root
    assert config.job.trigger == ("available-now" if name == "serverless" else "processing-time")
