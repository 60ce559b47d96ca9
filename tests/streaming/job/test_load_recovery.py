"""A new start knows the loads that the journal has, and when they will have settled. Without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import write_deltalake

from streaming.job.microbatch import NO_BATCH
from streaming.job.recovery import load_memory
from streaming.job.tables import Tables
from streaming.record.schemas import PROGRESS
from tests.streaming.audit.random_histories import BY_LOAD, CONF, random_history
from tests.streaming.driving import Driver, at
from tests.streaming.writing import project, write_batches

NO_SPARK = cast("Any", None)
"""Tables in a folder are read without it."""


def nothing_is_rebuilt(rebuilt: Any) -> None:
    raise AssertionError(rebuilt)


def recovered(root: Path, driver: Driver, results: list[Any], projected: int) -> Any:
    """What a job would know at its start, with projections that reach up to a version."""
    write_batches(root, *results)
    write_deltalake(root / PROGRESS.name, PROGRESS.schema.empty_table())
    project(root, driver.journal[:projected])
    return load_memory(NO_SPARK, Tables(str(root)), "app", NO_BATCH, nothing_is_rebuilt)


@pytest.mark.parametrize("projected", [0, 4, 8, 100])
@pytest.mark.parametrize("seed", [3, 7])
def test_memory_after_a_restart_is_that_of_the_job_before(tmp_path: Path, seed: int, projected: int) -> None:
    driver, results = random_history(seed, 25, BY_LOAD)
    memory, before = recovered(tmp_path, driver, results, projected), driver.memory
    assert memory.deadlines == before.deadlines
    loads, known = memory.cluster("c").loads, before.cluster("c").loads
    assert loads.limits == known.limits
    assert {name: block.values.tolist() for name, block in loads.topics.items()} == {
        name: block.values.tolist() for name, block in known.topics.items()
    }
    assert memory.cluster("c").load_deadline == before.cluster("c").load_deadline
    assert memory.cluster("c").clocks == before.cluster("c").clocks
    behind = [v.plan_version for v in driver.journal[projected:] if v.load_changes and v.effective]
    assert set(behind) <= {v.plan_version for v in memory.behind}


def test_loads_that_had_not_settled_wake_the_job_after_a_restart(tmp_path: Path) -> None:
    driver = Driver(CONF.replace('settle = "0s"', 'settle = "30s"') + BY_LOAD)
    results = [
        driver.racks({"a": [1], "b": [2]}),
        driver.batch(driver.event("topic_created", topic="t", partitions=2, replication_factor=1)),
        driver.batch(driver.event("load_observed", partitions=[{"topic": "t", "partition": 0, "size": 9}], minute=1)),
    ]
    assert driver.memory.deadlines == {"c": at(1.5)}
    assert recovered(tmp_path, driver, results, 3).deadlines == {"c": at(1.5)}
