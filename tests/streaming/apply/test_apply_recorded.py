"""What is read from a journal to be carried out, and how the command says that it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from streaming.apply.journal.recorded import check_identity, read_tasks
from streaming.cli.main import cli
from streaming.errors import ApplyError
from streaming.history.tables import History
from streaming.record.schemas import PROGRESS
from tests.streaming.driving import T0, Driver
from tests.streaming.writing import rewrite, write_batches


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """v1: brokers; v2: t created; v3: broker 1 drained; v4: u created."""
    driver = Driver()
    batches = [driver.racks({"a": [1, 3], "b": [2, 4]})]
    batches.append(driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]})))
    batches.append(driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned")))
    batches.append(driver.batch(driver.event("topic_created", topic="u", replica_assignment={0: [3, 2]})))
    write_batches(tmp_path / "tables", *batches)
    (tmp_path / "conf.toml").write_text(
        f'[tables]\nroot = "{tmp_path}/tables"\n[source]\ntype = "files"\npath = "{tmp_path}/events"\n'
    )
    return tmp_path / "tables"


def report(root: Path, version: int, state: str) -> None:
    row: dict[str, Any] = {"cluster_id": "c", "plan_version": version, "state": state, "details": "{}"}
    row |= {"event_id": f"{version}{state}", "occurred_at": T0, "app_id": "a", "batch_id": 1}
    write_deltalake(root / "plan_progress", pa.Table.from_pylist([row], PROGRESS.schema), mode="append")


def numbers(root: Path) -> list[int]:
    return [task.version.plan_version for task in read_tasks(History(str(root)), "c")]


def test_what_was_reported_as_carried_out_waits_no_more(root: Path) -> None:
    assert numbers(root) == [2, 3, 4]
    report(root, 2, "completed")
    report(root, 3, "failed")
    report(root, 3, "started")
    assert numbers(root) == [3, 4]
    for version in (3, 4):
        report(root, version, "completed")
    assert numbers(root) == []
    assert [task.version.plan_version for task in read_tasks(History(str(root)), "c", 3)] == [3]


def swap_target(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows:
        for move in row["moves"] if row["plan_version"] == 3 else ():
            move["after"] = [4 if broker == 3 else broker for broker in move["after"]]
    return rows


def test_a_plan_that_was_changed_in_the_table_is_not_carried_out(root: Path) -> None:
    rewrite(root, "plans", swap_target)
    with pytest.raises(ApplyError) as error:
        read_tasks(History(str(root)), "c", 3)
    assert "the digest on record is" in str(error.value) or "breaks its rack window" in str(error.value)
    assert "replica-planner verify says where the journal was changed" in str(error.value)


def run(root: Path, *arguments: str) -> Result:
    command = ["apply", *arguments, "--conf", str(root.parent / "conf.toml")]
    return CliRunner().invoke(cli, command, catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--bootstrap-server", "nowhere", "c"), "'nowhere' is not the address of a broker"),
        (("--bootstrap-server", "localhost:9092", "d"), "no cluster 'd': there are: c"),
        (("--bootstrap-server", "localhost:9092", "c", "9"), "c has no version 9: it has versions 1 to 4"),
        (
            ("--bootstrap-server", "localhost:9092", "c", "1"),
            "version 1 of c is not carried out: it is of kind membership",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_before_a_broker_is_asked(
    root: Path, arguments: tuple[str, ...], says: str
) -> None:
    result = run(root, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"replica-planner: {says}") and result.stderr.count("\n") == 1


def test_a_cluster_that_cannot_be_reached_is_said_in_one_line(root: Path) -> None:
    result = run(root, "--bootstrap-server", "localhost:1", "c", "--dry-run")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("replica-planner: Kafka at localhost:1 cannot be reached:")
    assert result.stderr.count("\n") == 1


def test_another_kafka_than_the_one_that_collect_saw_is_refused(root: Path) -> None:
    assert check_identity(History(str(root)), "c", "localhost:9092", "K1") == (
        "no collect has told which Kafka cluster c is; the one at localhost:9092 is K1"
    )
    driver = Driver()
    told = [
        driver.event("cluster_identified", kafka_cluster_id="K0", minute=1, event_id="before"),
        driver.event("cluster_identified", kafka_cluster_id="K1", minute=2, event_id="now"),
    ]
    write_batches(root, driver.batch(told[0]), driver.batch(told[1]))
    assert History(str(root)).kafka_id("c") == "K1"
    assert check_identity(History(str(root)), "c", "localhost:9092", "K1") == ""
    with pytest.raises(ApplyError) as error:
        check_identity(History(str(root)), "c", "localhost:9092", "K2")
    assert str(error.value) == (
        "Kafka at localhost:9092 is cluster K2, and c is cluster K1 by what collect saw: "
        "name the brokers of c, or let collect watch this one if it has taken its place"
    )


def test_the_id_of_kafka_is_found_also_in_a_plan(tmp_path: Path) -> None:
    driver = Driver()
    write_batches(
        tmp_path,
        driver.batch(
            driver.event("cluster_identified", kafka_cluster_id="K1"),
            driver.event("broker_joined", broker_id=1, rack="a"),
        ),
    )
    assert [e.outcome for e in driver.journal[0].events] == ["applied", "applied"]
    assert History(str(tmp_path)).kafka_id("c") == "K1"
