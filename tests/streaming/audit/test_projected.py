"""Projections against a journal in which one version writes the same row several times."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.streaming.audit.test_rederive import verified
from tests.streaming.driving import Driver
from tests.streaming.writing import project, write_batches


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Version 1: brokers join, and one of them again in a rack. Version 3: two looks at the loads, taken together."""
    driver = Driver("[policy.loads]\nevery = '1s'\nweight = 1")
    join = [driver.event("broker_joined", broker_id=1), driver.event("broker_joined", broker_id=2, rack="b")]
    results = [driver.batch(*join, driver.event("broker_changed", broker_id=1, rack="a", minute=1))]
    results += [driver.batch(driver.event("topic_created", topic="t", partitions=2, replication_factor=1, minute=1))]
    sizes = {"topic": "t", "partition": 0, "size": 200}
    looks = [
        driver.event("load_observed", minute=minute, partitions=[sizes | more])
        for minute, more in ((2, {}), (3, {"bytes_in": 7}))
    ]
    results += [driver.batch(*looks)]
    assert [v.kind for v in driver.journal] == ["membership", "topics", "loads"]
    write_batches(tmp_path / "tables", *results)
    project(tmp_path / "tables", driver.journal)
    return tmp_path / "tables"


def test_what_a_version_wrote_last_is_right(root: Path) -> None:
    (row,) = DeltaTable(root / "loads").to_pyarrow_table().to_pylist()
    assert (row["plan_version"], row["size"], row["bytes_in"], row["bytes_out"]) == (3, 200, 7, None)
    assert verified(root) is None


def test_what_it_wrote_before_that_is_not(root: Path) -> None:
    rows = DeltaTable(root / "loads").to_pyarrow_table()
    rows = pa.Table.from_pylist([row | {"bytes_in": None} for row in rows.to_pylist()], rows.schema)
    write_deltalake(root / "loads", rows, mode="overwrite")
    found = verified(root)
    assert found is not None
    assert "the table loads has t-0 otherwise than the journal" in str(found)
