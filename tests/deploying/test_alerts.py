"""The alerts ask for metrics that the job has, and the documentation says what to do about each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.monitoring.exporter import Exporter

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "conf/prometheus/rules.yml").read_text())["groups"][0]["rules"]
LABELS = {"job", "outcome", "cluster", "kind", "instance"}


def exported() -> set[str]:
    """Every name that a scrape brings, with the suffixes of its kind."""
    suffixes = {"counter": ("_total",), "histogram": ("_sum", "_count", "_bucket"), "gauge": ("",)}
    return {metric.name + suffix for metric in Exporter().registry.collect() for suffix in suffixes[metric.type]}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_there_is_and_is_explained(rule: dict[str, Any]) -> None:
    asked = set(re.findall(r"replica_planner_\w+", rule["expr"]))
    assert asked <= exported()
    assert set(re.findall(r"[{,](\w+)=", rule["expr"])) <= LABELS
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert f"| `{rule['alert']}` |" in (ROOT / "docs/operations.md").read_text()


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    named = set(re.findall(r"`(replica_planner_\w+?)(?:\{\w+\})?`", page))
    kinds = {metric.name + ("_total" if metric.type == "counter" else "") for metric in Exporter().registry.collect()}
    assert kinds - named == set()
    assert named - kinds == set()
