"""Questions to the journal: why a partition is where it is, and what is different between two versions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.streaming.driving import Driver, at
from tests.streaming.writing import write_batches

Run = Callable[..., Result]
Row = tuple[object, ...]


MANUAL = {"0": [1, 2], "5": [2, 3], "6": [2, 3]}


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """A topic loses a broker to its grace, is drained, and a rebalance is proposed and approved."""
    driver = Driver('[policy]\napproval = ["rebalance"]\n')
    batches = [
        driver.racks({"a": [1, 4], "b": [2], "c": [3]}),
        driver.batch(
            driver.event("topic_created", topic="t", event_id="manual", replica_assignment=MANUAL),
            driver.event("topic_created", topic="gone", partitions=1, replication_factor=1),
            minute=1,
        ),
        driver.batch(driver.event("broker_left", broker_id=1, reason="failed", minute=2), minute=2),
        driver.batch(minute=40),
        driver.batch(driver.event("topic_deleted", topic="gone", minute=41), minute=41),
        driver.batch(driver.event("rebalance_requested", event_id="even", minute=42), minute=42),
    ]
    proposal = batches[-1].versions[-1]
    approval = {"plan_version": proposal.plan_version, "digest": proposal.digest}
    batches.append(driver.batch(driver.event("plan_approved", event_id="yes", minute=43, **approval), minute=43))
    write_batches(tmp_path / ".data/tables", *batches)
    return driver


def test_why_tells_every_change_of_a_partition_and_its_cause(run: Run, driver: Driver) -> None:
    first, healed = json.loads(run("why", "c", "t", 0, "--json").stdout)[:2]
    assert (first["before"], first["after"], first["reason"]) == ([], [1, 2], "manual assignment")
    assert first["events"][0] == {"event_id": "manual", "type": "topic_created"}
    assert (healed["before"], healed["after"], healed["reason"]) == ([1, 2], [4, 2], "lost")
    assert healed["cause"] == "grace of broker 1 over at 2026-01-01T00:32:00Z"
    assert (healed["plan_version"], healed["in_effect"], healed["events"]) == (4, True, [])


def test_why_shows_proposals_and_what_became_of_them(run: Run, driver: Driver) -> None:
    moved = next(block for block in driver.journal[-1].moves)
    changes = json.loads(run("why", "c", moved.topic, int(moved.partitions[0]), "--json").stdout)
    proposed, approved = changes[-2:]
    assert (proposed["approval"], proposed["in_effect"], proposed["events"][0]["event_id"]) == (
        "proposed",
        False,
        "even",
    )
    assert (approved["approval"], approved["in_effect"], approved["events"][0]["event_id"]) == ("approved", True, "yes")
    assert run("why", "c", moved.topic, int(moved.partitions[0])).stdout.count("\n") == 1 + len(changes)


def test_diff_shows_partitions_and_brokers_and_who_changed_them(run: Run, driver: Driver) -> None:
    found = json.loads(run("diff", "c", 2, 5, "--json").stdout)
    gone, healed = found["partitions"]
    assert (gone["topic"], gone["after"], gone["versions"]) == ("gone", [], [5])
    assert healed == {"topic": "t", "partition": 0, "before": [1, 2], "after": [4, 2], "versions": [4]}
    assert [(b["broker_id"], b["before"]["state"], b["after"]["state"]) for b in found["brokers"]] == [
        (1, "alive", "dead")
    ]
    assert (found["moved_replicas"], found["leader_changes"]) == (1, 1)
    text = run("diff", "c", 2, 5).stdout.splitlines()
    assert text[0] == (
        "c from version 2 to version 5: 1 partitions changed (1 replicas moved, 1 preferred leaders changed), "
        "0 appeared, 1 gone"
    )
    assert text[1] == "broker 1: alive, rack a, capacity 1 → dead, rack a, capacity 1"
    assert text[-1].split("\t") == ["t", "0", "1,2", "4,2", "4"]


def test_diff_goes_backwards_and_takes_times(run: Run, driver: Driver) -> None:
    there = json.loads(run("diff", "c", 2, 5, "--json").stdout)["partitions"]
    back = json.loads(run("diff", "c", at(41).isoformat(), at(1).isoformat(), "--json").stdout)
    assert (back["first"], back["second"]) == (5, 2)
    assert [(p["before"], p["after"]) for p in back["partitions"]] == [(p["after"], p["before"]) for p in there]


def test_a_proposal_makes_no_difference(run: Run, driver: Driver) -> None:
    found = json.loads(run("diff", "c", 5, 6, "--json").stdout)
    assert (found["partitions"], found["brokers"]) == ([], [])


def test_a_difference_is_the_one_between_the_two_layouts(run: Run, driver: Driver) -> None:
    """Read from the moves in between; here worked out from the two whole layouts."""

    def layout(version: int) -> dict[tuple[str, int], list[int]]:
        topics = json.loads(run("describe", "--as-of", version, "--json").stdout)
        return {(name, p["partition"]): p["planned"] or p["replicas"] for name, rows in topics.items() for p in rows}

    for first in range(2, 8):
        for second in range(2, 8):
            one, other = layout(first), layout(second)
            expected = {k: (one.get(k, []), other.get(k, [])) for k in one | other if one.get(k) != other.get(k)}
            found = json.loads(run("diff", "c", first, second, "--json").stdout)["partitions"]
            assert {(p["topic"], p["partition"]): (p["before"], p["after"]) for p in found} == expected


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("why", "x", "t", 0), "no cluster 'x': there are: c"),
        (("why", "c", "x", 0), "cluster c has no topic 'x': there are: gone, t"),
        (("why", "c", "t", 7), "topic t of c has no partition 7: there are 3, from 0 to 6"),
        (("diff", "c", 1, 99), "cluster c has nothing as of 99: it has versions 1 to 7"),
        (("diff", "c", "2020-01-01", 1), "the first of 2026-01-01T00:00:00Z"),
        (
            ("diff", "c", 1, "then"),
            "'then' is neither a plan version such as 17 nor a time such as 2026-11-19T10:00:00Z",
        ),
        (("diff", "c", 1, 10**30), f"'{10**30}' is neither a plan version"),
        (("describe", "--topic", "gone"), "cluster c has no topic 'gone' at version 7: there are: t"),
        (("describe", "--cluster", "x"), "no cluster 'x': there are: c"),
        (("describe", "--as-of", 8), "cluster c has nothing as of 8: it has versions 1 to 7"),
        (("why", "c", "t", 10**30), "topic t of c has no partition"),
        (("plans", "--cluster", "x"), "no cluster 'x': there are: c"),
        (("status", "x"), "no cluster 'x': there are: c"),
        (("status", "c", "--as-of", 0), "cluster c has nothing as of 0: it has versions 1 to 7"),
        (("status", "c", "--as-of", "2020-01-01"), "cluster c has nothing as of 2020-01-01T00:00:00Z: it has"),
        (("show", "c", 10**30), "it has versions 1 to 7"),
        (("show", "x", 1), "no cluster 'x': there are: c"),
        (("verify", "--cluster", "x"), "no cluster 'x': there are: c"),
        (("events", "--cluster", "x"), "no cluster 'x': there are: c"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(run: Run, driver: Driver, args: tuple[object, ...], said: str) -> None:
    result = run(*args)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert said in result.stderr


def test_a_folder_that_is_no_table_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".data/tables/plans").mkdir(parents=True)
    (tmp_path / ".data/tables/plans/notes.txt").write_text("no table")
    result = run("why", "c", "t", 0)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "there is no table" in result.stderr


READING = [
    ("plans",),
    ("show", "c", 1),
    ("status",),
    ("describe",),
    ("why", "c", "t", 0),
    ("diff", "c", 1, 2),
    ("verify",),
]


@pytest.mark.parametrize("args", READING)
def test_a_table_that_is_damaged_is_said_in_one_line(run: Run, driver: Driver, tmp_path: Path, args: Row) -> None:
    plans = tmp_path / ".data/tables/plans"
    for file in plans.glob("*.parquet"):
        file.write_bytes(b"no Parquet")
    said = refused(run(*args))
    assert re.search(r"/plans/part-.*parquet: the table's log names this file, and it cannot be read: ", said)
    for file in plans.glob("*.parquet"):
        file.unlink()
    assert "Failed to open local file" in refused(run(*args))
    (plans / "_delta_log/00000000000000000000.json").write_text("{")
    assert f"{plans.relative_to(tmp_path)}: the log of this table cannot be read: " in refused(run(*args))


def refused(result: Result) -> str:
    """What a command says on stderr, in one line, before it ends with exit code 2."""
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert not result.stdout
    return result.stderr


def test_an_outcome_that_does_not_exist_is_refused_with_those_that_do(run: Run, driver: Driver) -> None:
    result = run("events", "--outcome", "lost")
    assert (result.exit_code, "'applied', 'no_effect', 'duplicate'" in result.stderr) == (2, True)
