"""What a command that waits for the job's answer says of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from streaming.record.version import PlanVersion
from tests.streaming.driving import Driver
from tests.streaming.writing import write_batches

Run = Callable[..., Result]


def test_a_rollback_that_is_waited_for_says_what_was_left_and_why(run: Run, tmp_path: Path) -> None:
    """And a rollback of that rollback is one like any other."""
    driver, root = Driver(), tmp_path / ".data/tables"
    heal = [driver.racks({"a": [1, 3], "b": [2, 4]})]
    heal += [driver.batch(driver.event("topic_created", topic=name, replica_assignment={0: [1, 2]})) for name in "tu"]
    heal += [driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))]
    moved = driver.journal[-1]
    heal += [driver.batch(driver.event("broker_joined", broker_id=1, rack="a", minute=1))]
    heal += [driver.batch(driver.event("topic_deleted", topic="t", minute=1))]
    write_batches(root, *heal)

    def rolled_back(version: PlanVersion, event_id: str, code: int = 0) -> list[str]:
        given = {"plan_version": version.plan_version, "digest": version.digest}
        line = driver.event("plan_rolled_back", event_id=event_id, minute=2, **given)
        (tmp_path / "e.jsonl").write_bytes(line)
        answer = threading.Timer(1, lambda: write_batches(root, driver.batch(line, minute=2)))
        answer.start()
        result = run("submit", "e.jsonl", "--wait")
        answer.join()
        assert result.exit_code == code, result.stderr
        return [*result.stdout.splitlines()[1:], *result.stderr.splitlines()[1:]]

    assert rolled_back(moved, "back") == [
        "1 applied",
        "c v7  version 4 rolled back by event back; not rolled back: topic t is gone; moves 1 replicas (proved least)",
        "c is at version 7",
    ]
    assert rolled_back(driver.journal[-1], "forth")[1].startswith("c v8  version 7 rolled back by event forth; moves 1")
    assert driver.layout()["u"] == [[2, 3]]
    assert rolled_back(driver.journal[-2], "again", 1) == [
        "1 stale",
        "stale: nothing of version 7 can be rolled back: u-0 has changed since: the cluster is at version 8",
    ]
