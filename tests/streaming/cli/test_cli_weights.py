"""Commands that tell of loads: brokers beside their shares, the bytes of moves, and disks by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streaming.cli import cli
from streaming.history.tables import History
from streaming.record.moves import moved_replicas
from streaming.report.data import report_data
from streaming.report.story import told
from tests.streaming.driving import RACKS, Driver
from tests.streaming.writing import project, write_batches

Run = Callable[..., Result]

CONF = '[policy.loads]\nplan = true\non_skew = "rebalance"\nweight = 1.0\n'
GB = 1 << 30


@pytest.fixture
def driver() -> Driver:
    """Partitions of broker 1 weigh five times as much; a rebalance waits; then broker 2 gets a limit it is above."""
    driver = Driver(CONF)
    joined = driver.racks(RACKS)
    created = driver.batch(driver.event("topic_created", topic="t", partitions=48, replication_factor=2))
    weighed = [
        {"topic": "t", "partition": p, "size": (5 if 1 in row else 1) * GB, "bytes_in": 1024, "bytes_out": 2048}
        for p, row in enumerate(driver.layout()["t"])
    ]
    dirs = [{"path": f"/d{n}", "limit": 100 * GB, "used": 0} for n in (1, 2)]
    limits = [{"broker_id": b, "log_dirs": dirs} for b in (5, 6)]
    late = [{"broker_id": 2, "bytes_in": 100}]
    driver.results = [  # type: ignore[attr-defined]
        joined,
        created,
        driver.batch(driver.event("load_observed", partitions=weighed, brokers=limits, minute=1)),
        driver.batch(minute=2),
        driver.batch(driver.event("load_observed", brokers=late, minute=70)),
    ]
    return driver


@pytest.fixture
def run(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    root = tmp_path / "tables"
    write_batches(root, *driver.results)  # type: ignore[attr-defined]
    project(root, driver.journal)
    (tmp_path / "conf.toml").write_text(f'{CONF}[tables]\nroot = "{root}"\n')
    monkeypatch.setenv("REPLICA_PLANNER_CONF", str(tmp_path / "conf.toml"))
    return lambda *args: CliRunner().invoke(cli, [str(arg) for arg in args], catch_exceptions=False)


def test_status_shows_brokers_beside_their_shares(run: Run) -> None:
    lines = run("status").stdout.splitlines()
    start = lines.index("broker\tdisk\tbytes_in\tbytes_out\tcpu")
    # 16 of 48 partitions weigh 5 GiB, the others 1 GiB, twice each, on six brokers: 37.3 GiB are a share.
    assert lines[start + 1].split("\t")[:2] == ["1", "80.0 GiB, 214 %"]
    assert lines[start + 2].split("\t")[2].endswith(" %, above its limit")
    (first, *_) = json.loads(run("status", "--json").stdout)["loads"]
    assert first["broker"] == 1
    assert first["disk"] == {"load": 80 * GB, "share": first["disk"]["share"], "limit": None}
    assert json.loads(run("status", "--json", "--as-of", 2).stdout)["loads"] == []


def test_show_and_why_tell_bytes(run: Run, driver: Driver) -> None:
    plan = driver.journal[3]
    assert plan.kind == "rebalance"
    document = json.loads(run("show", "c", plan.plan_version, "--json").stdout)
    assert sum(move["bytes"] for move in document["moves"]) == document["moved_bytes"] > 0
    assert document["lower_bound_bytes"] <= document["moved_bytes"]
    header, *rows = run("show", "c", plan.plan_version).stdout.splitlines()[-len(document["moves"]) - 1 :]
    assert header.split("\t")[-1] == "bytes"
    moved = next(move for move in document["moves"] if move["bytes"])
    assert [row for row in rows if row.startswith(f"t\t{moved['partition']}\t") and row.endswith(str(moved["bytes"]))]
    changes = json.loads(run("why", "c", "t", moved["partition"], "--json").stdout)
    assert [change["bytes"] for change in changes] == [None, moved["bytes"]]
    assert run("why", "c", "t", moved["partition"]).stdout.splitlines()[-1].endswith(f"\t{moved['bytes']}")


def test_a_plan_without_loads_says_nothing_of_bytes(run: Run) -> None:
    assert "bytes" not in run("show", "c", 2).stdout
    assert "bytes" not in json.loads(run("show", "c", 2, "--json").stdout)["moves"][0]


def test_new_replicas_go_to_disks_by_name(run: Run, driver: Driver) -> None:
    plan = driver.journal[3]
    entries = json.loads(
        run("show", "c", plan.plan_version, "--format", "kafka-json", "--even-if-not-approved").stdout
    )["partitions"]
    assert all(len(entry["log_dirs"]) == len(entry["replicas"]) for entry in entries)
    placed = {
        (entry["partition"], broker): path
        for entry in entries
        for broker, path in zip(entry["replicas"], entry["log_dirs"], strict=True)
        if path != "any"
    }
    assert placed
    assert {broker for _, broker in placed} <= {5, 6}
    assert len(placed) <= moved_replicas(plan.moves)
    back = json.loads(run("show", "c", plan.plan_version, "--format", "rollback-json").stdout)["partitions"]
    assert {path for entry in back for path in entry["log_dirs"]} == {"any"}


def test_the_report_tells_of_loads_and_of_what_each_move_buys(run: Run, driver: Driver, tmp_path: Path) -> None:
    history = History(str(tmp_path / "tables"))
    data = report_data(history, "c", 4)
    loads, numbers = data["loads"], driver.journal[3].numbers.loads
    assert numbers is not None
    assert loads["bytes"] == numbers.moved_bytes
    assert loads["hottest"] == {"broker": 1, "resource": "disk", "load": 80 * GB}
    # What all moves together take off the hottest broker is what it carries less after them.
    assert sum(relief for _, relief in loads["moves"]) == loads["loads"][0][0][0] - loads["loads"][1][0][0]
    assert f"It would copy {numbers.moved_bytes:,} bytes; at least {numbers.lower_bound_bytes:,} by" in told(data)[2]
    assert told(data)[3].startswith("Hot brokers: broker 1 from 214 to ")
    assert "no plan with this balance" not in told(data)[1]
    assert report_data(history, "c", 2)["loads"] is None
