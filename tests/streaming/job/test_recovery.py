"""What is read from the tables when a cluster is needed that is not in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import write_deltalake

from streaming.job.recovery import load_memory
from streaming.job.tables import Tables
from streaming.record.schemas import PROGRESS
from tests.streaming.driving import Driver
from tests.streaming.writing import project, write_batches

NO_SPARK = None
"""A folder is read without it."""


@pytest.mark.parametrize(("in_hand", "known"), [(2, False), (3, True), (9, True)])
def test_an_event_rejected_since_the_start_is_known_when_the_cluster_is_read_again(
    tmp_path: Path, in_hand: int, known: bool
) -> None:
    """Only what an interrupted attempt at the batch in hand has left is not; the job began before batch 2."""
    driver = Driver()
    batches = [
        driver.batch(driver.event("broker_joined", broker_id=1)),
        driver.batch(driver.event("topic_deleted", topic="t", event_id="refused")),
    ]
    write_batches(tmp_path, *batches)
    project(tmp_path, driver.journal)
    write_deltalake(tmp_path / PROGRESS.name, PROGRESS.schema.empty_table())
    memory = load_memory(NO_SPARK, Tables(str(tmp_path)), "app", 2, rebuild=pytest.fail)  # type: ignore[arg-type]
    memory.in_hand = in_hand
    assert ("refused" in memory.cluster("c").seen) is known
