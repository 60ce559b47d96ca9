"""Partitions that cannot have their brokers hold up no others, are named wherever people look, and are healed later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming.audit.rederive import Batch, ClusterAudit
from streaming.cli import cli
from streaming.planning.batch import BatchResult
from tests.streaming.driving import Driver, line, outcomes, reasons
from tests.streaming.writing import write_batches

UNHEALED = {
    "topic": "wide",
    "partition": 0,
    "replicas": [5, 1, 2, 3, 4],
    "lost": [5],
    "reason": "needs 5 brokers, 4 can take replicas",
}
NOT_HEALED = "not healed: 1 partition of wide (needs 5 brokers, 4 can take replicas)"


class _Recorded(Driver):
    """A driver that keeps what its batches made."""

    def __init__(self, conf: str = "") -> None:
        self.results: list[BatchResult] = []
        super().__init__(conf)

    def batch(self, *lines: bytes, **options: object) -> BatchResult:  # type: ignore[override]
        self.results.append(super().batch(*lines, **options))  # type: ignore[arg-type]
        return self.results[-1]


@pytest.fixture
def five() -> _Recorded:
    """Five brokers, a topic on all of them, and one on two."""
    driver = _Recorded()
    driver.racks({"a": [1, 2, 3, 4, 5]})
    driver.batch(
        driver.event("topic_created", topic="wide", replica_assignment={"0": [5, 1, 2, 3, 4]}),
        driver.event("topic_created", topic="t", replica_assignment={"0": [1, 5], "1": [2, 3], "2": [5, 4]}),
        minute=1,
    )
    return driver


@pytest.mark.parametrize("reason", ["decommissioned", "unregistered", "failed"])
def test_one_topic_that_needs_all_brokers_holds_up_no_other(five: _Recorded, reason: str) -> None:
    five.batch(five.event("broker_left", broker_id=5, reason=reason, minute=2), minute=2)
    five.batch(minute=60)
    healed = five.journal[-1]
    assert healed.kind == "heal"
    assert healed.cause.endswith(NOT_HEALED)
    assert healed.numbers.moved_replicas == 2
    assert five.layout()["wide"] == [[5, 1, 2, 3, 4]]
    assert all(5 not in replicas for replicas in five.layout()["t"])
    five.batch(five.event("broker_joined", broker_id=6, rack="a", minute=61))
    assert line(five.journal[-1]) == f"v{len(five.journal)} heal not_required: broker 6 joined"
    assert sorted(five.layout()["wide"][0]) == [1, 2, 3, 4, 6]


def test_a_broker_that_returns_heals_as_well(five: _Recorded) -> None:
    five.batch(five.event("broker_left", broker_id=5, reason="failed", minute=2), minute=2)
    five.batch(five.event("broker_left", broker_id=4, reason="unregistered", minute=3), minute=3)
    five.batch(minute=60)
    assert five.layout()["wide"] == [[5, 1, 2, 3, 4]]
    five.batch(five.event("broker_joined", broker_id=7, rack="a", minute=61), minute=61)
    five.batch(five.event("broker_joined", broker_id=5, rack="a", minute=62), minute=62)
    assert sorted(five.layout()["wide"][0]) == [1, 2, 3, 5, 7]


def test_three_brokers_with_internal_topics_on_all_of_them_heal_the_rest() -> None:
    driver = Driver()
    driver.racks({"a": [1], "b": [2], "c": [3]})
    driver.batch(
        driver.event("topic_created", topic="__consumer_offsets", partitions=50, replication_factor=3),
        driver.event("topic_created", topic="t", partitions=6, replication_factor=2),
    )
    (healed,) = driver.batch(driver.event("broker_left", broker_id=3, reason="unregistered", minute=1)).versions
    assert (healed.kind, healed.numbers.moved_replicas) == ("heal", 4)
    assert all(3 not in replicas for replicas in driver.layout()["t"])


def test_a_rebalance_is_not_held_up(five: _Recorded) -> None:
    five.batch(five.event("broker_left", broker_id=5, reason="decommissioned", minute=2), minute=2)
    skewed = {str(p): [1] for p in range(8)}
    five.batch(five.event("topic_created", topic="skewed", replica_assignment=skewed, minute=3), minute=3)
    (proposal,) = five.batch(five.event("rebalance_requested", event_id="r", minute=4), minute=4).versions
    assert (proposal.kind, proposal.approval) == ("rebalance", "proposed")
    assert proposal.cause == f"rebalance requested by event r; {NOT_HEALED}"
    terms = {"plan_version": proposal.plan_version, "digest": proposal.digest}
    five.batch(five.event("plan_approved", minute=5, **terms), minute=5)
    again = five.batch(five.event("rebalance_requested", event_id="again", minute=6), minute=6)
    assert outcomes(again) == {"again": "no_effect"}
    assert reasons(again) == {"again": f"the cluster is in balance; {NOT_HEALED}"}


def test_what_is_not_healed_is_derived_again(five: _Recorded) -> None:
    five.batch(five.event("broker_left", broker_id=5, reason="decommissioned", minute=2), minute=2)
    five.batch(five.event("broker_left", broker_id=4, reason="failed", minute=3), minute=3)
    five.batch(minute=60)
    five.batch(five.event("broker_joined", broker_id=6, rack="a", minute=61), minute=61)
    rows = [(Batch("app", n), version) for n, result in enumerate(five.results) for version in result.versions]
    audit = ClusterAudit("c", {}, {batch: version.created_at for batch, version in rows})
    assert audit.run(rows) is None


def test_people_see_it_in_status_show_and_report(
    five: _Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    five.batch(five.event("broker_left", broker_id=5, reason="decommissioned", minute=2), minute=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPLICA_PLANNER_CONF", raising=False)
    write_batches(tmp_path / ".data" / "tables", *five.results)

    def run(*args: str) -> str:
        result = CliRunner().invoke(cli, args, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    assert json.loads(run("status", "--json"))["unhealed"] == [UNHEALED]
    assert json.loads(run("show", "c", "3", "--json"))["unhealed"] == [UNHEALED]
    listed = (
        "not healed: 1 partition\n"
        "topic\tpartition\treplicas\tlost\treason\n"
        "wide\t0\t5,1,2,3,4\t5\tneeds 5 brokers, 4 can take replicas\n"
    )
    assert run("status").endswith(listed)
    assert run("show", "c", "3").endswith(listed)
    assert NOT_HEALED in run("show", "c", "3")
    run("report", "c", "--out", "r.html")
    told = "1 partition is not healed after it: wide-0 (needs 5 brokers, 4 can take replicas)."
    assert told in (tmp_path / "r.html").read_text()


def test_the_summary_and_the_line_of_an_offline_plan_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [("wide", [1, 2, 3]), ("t", [3, 1])]
    current = {"version": 1, "partitions": [{"topic": t, "partition": 0, "replicas": r} for t, r in rows]}
    Path("C.json").write_text(json.dumps(current))
    Path("B.json").write_text(json.dumps([{"id": 1}, {"id": 2}, {"id": 3, "state": "dead"}]))
    files = ["--current", "C.json", "--brokers", "B.json"]
    result = CliRunner().invoke(cli, ["replan", *files, "--out", "P.json", "--summary", "S.json"])
    assert result.exit_code == 0
    assert "1 partition of wide (needs 3 brokers, 2 can take replicas)" in result.output
    unhealed = json.loads(Path("S.json").read_text())["unhealed"]
    assert unhealed == [{"topic": "wide", "partition": 0, "needed": 3, "brokers": 2}]
    assert [p["topic"] for p in json.loads(Path("P.json").read_text())["partitions"]] == ["t"]
    assert CliRunner().invoke(cli, ["verify", "--plan", "P.json", *files]).exit_code == 0
