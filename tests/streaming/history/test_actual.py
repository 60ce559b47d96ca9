"""What is there and what is planned are told apart: by reports of executors, and by what was seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from streaming.events import PlanProgress
from streaming.history.health import counts
from streaming.history.tables import History
from streaming.record.rows import progress_to_arrow
from tests.streaming.driving import Driver, at
from tests.streaming.writing import write_batches


class Journal:
    """Four brokers, and topic t on [1, 2], [2, 1] and [1]: version 2."""

    def __init__(self, root: Path, conf: str = "") -> None:
        self.root = root
        self.driver = Driver(conf)
        self._reports = 0
        self._minute = 0
        write_batches(root, self.driver.racks({"a": [1, 3], "b": [2, 4]}))
        self.plan("topic_created", topic="t", replica_assignment={0: [1, 2], 1: [2, 1]})
        self.plan("topic_created", topic="u", replica_assignment={0: [1]})

    def plan(self, kind: str, **fields: Any) -> int:
        self._minute += 1
        result = self.driver.batch(self.driver.event(kind, minute=self._minute, **fields))
        write_batches(self.root, result)
        return self.driver.journal[-1].plan_version

    def seen(self, partition: int, replicas: list[int], leader: int | None = None, isr: list[int] | None = None) -> int:
        row = {"topic": "t", "partition": partition, "replicas": replicas, "leader": leader, "isr": isr}
        return self.plan("assignment_observed", partitions=[row])

    def report(self, version: int, state: Any, details: object = None) -> None:
        self._reports += 1
        self._minute += 1
        event_id = f"r{self._reports}"
        report = PlanProgress(event_id, "c", at(self._minute), plan_version=version, state=state, details=details)
        write_deltalake(self.root / "plan_progress", progress_to_arrow([report], "app", self._reports), mode="append")

    def table(self, as_of: int | None = None) -> list[str]:
        """``t-0 1,2`` is there and planned; ``t-0 1,2 → 3,2 (4)`` waits for version 4."""
        actual = History(str(self.root)).actual("c", as_of)
        lines = []
        for name, layout in sorted(actual.state.topics.items()):
            for p, row in zip(layout.partitions.tolist(), layout.replicas.tolist(), strict=True):
                waits = actual.waiting.get((name, p))
                there = ",".join(str(b) for b in row if b >= 0)
                planned = f" → {','.join(map(str, waits.replicas))} ({waits.plan_version})" if waits else ""
                lines.append(f"{name}-{p} {there}{planned}")
        return lines

    def wrong(self) -> dict[str, int]:
        return {k: n for k, n in counts(History(str(self.root)).actual("c").state, 1).items() if n}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def test_what_is_planned_is_there_once_it_is_reported_and_not_before(journal: Journal) -> None:
    assert journal.table() == ["t-0 1,2", "t-1 2,1", "u-0 1"]
    heal = journal.plan("broker_left", broker_id=1, reason="decommissioned")
    assert journal.table() == [f"t-0 1,2 → 3,2 ({heal})", f"t-1 2,1 → 2,3 ({heal})", f"u-0 1 → 4 ({heal})"]
    journal.report(heal, "started")
    journal.report(heal, "partition_done", {"topic": "t", "partition": 1, "replicas": [2, 3]})
    journal.report(heal, "partition_done", "no object")
    assert journal.table() == [f"t-0 1,2 → 3,2 ({heal})", "t-1 2,3", f"u-0 1 → 4 ({heal})"]
    journal.report(heal, "completed")
    assert journal.table() == ["t-0 3,2", "t-1 2,3", "u-0 4"]


def test_what_lost_all_it_had_is_offline_although_a_plan_puts_it_elsewhere(journal: Journal) -> None:
    heal = journal.plan("broker_left", broker_id=1, reason="unregistered")
    assert journal.table() == [f"t-0 1,2 → 3,2 ({heal})", f"t-1 2,1 → 2,3 ({heal})", f"u-0 1 → 4 ({heal})"]
    assert journal.wrong() == {"under_replicated": 3, "at_minimum": 2, "offline": 1, "not_preferred": 1}


def test_what_is_seen_in_its_place_is_there_and_on_its_way_it_is_not(journal: Journal) -> None:
    heal = journal.plan("broker_left", broker_id=1, reason="decommissioned")
    journal.seen(0, [3, 2], None, [2])
    assert journal.table()[0] == f"t-0 1,2 → 3,2 ({heal})"
    journal.seen(0, [3, 2], 2, [2, 3])
    assert journal.table() == ["t-0 3,2", f"t-1 2,1 → 2,3 ({heal})", f"u-0 1 → 4 ({heal})"]


def test_several_plans_wait_one_upon_the_other_and_going_back_waits_for_nothing(journal: Journal) -> None:
    first = journal.plan("replication_factor_changed", topic="u", replication_factor=2)
    assert journal.table()[2] == f"u-0 1 → 4,1 ({first})"
    second = journal.plan("replication_factor_changed", topic="u", replication_factor=3)
    assert journal.table()[2] == f"u-0 1 → 4,1,3 ({second})"
    journal.report(first, "completed")
    assert journal.table()[2] == f"u-0 4,1 → 4,1,3 ({second})"
    back = journal.plan("plan_rolled_back", plan_version=second, digest=journal.driver.journal[-1].digest)
    assert journal.table()[2] == "u-0 4,1"
    assert back == second + 1


def test_an_earlier_time_knows_nothing_of_later_reports(journal: Journal) -> None:
    heal = journal.plan("broker_left", broker_id=1, reason="decommissioned")
    journal.plan("topic_created", topic="v", replica_assignment={0: [2]})
    journal.report(heal, "completed")
    assert journal.table()[:2] == ["t-0 3,2", "t-1 2,3"]
    assert journal.table(heal)[:2] == [f"t-0 1,2 → 3,2 ({heal})", f"t-1 2,1 → 2,3 ({heal})"]


@pytest.mark.parametrize("answer", ["report", "restore"])
def test_what_has_drifted_is_where_it_was_seen(tmp_path: Path, answer: str) -> None:
    journal = Journal(tmp_path, f'[policy]\non_drift = "{answer}"\n')
    journal.seen(0, [1, 2], 1, [1, 2])
    drift = journal.seen(0, [4, 2], 4, [4, 2])
    assert journal.driver.layout()["t"][0] == [1, 2]
    assert journal.table()[0] == f"t-0 4,2 → 1,2 ({drift})"
    if answer == "restore":
        journal.report(drift, "completed")
        assert journal.table()[0] == "t-0 1,2"


def test_an_election_moves_nothing_and_makes_nobody_forget_who_leads(journal: Journal) -> None:
    journal.seen(0, [1, 2], 2, [1, 2])
    journal.plan("preferred_election_requested")
    assert journal.table()[0] == "t-0 1,2"
    assert journal.wrong() == {"not_preferred": 1}
