"""``verify`` on journals with loads: honest ones come out the same, changed ones are found, and old seals hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from streaming.record.loads import BrokerLimits, TopicLoads
from streaming.record.seal import seal_of
from streaming.record.version import FoldDigests, PlanVersion
from tests.streaming.audit.test_rederive import forge, only, verified
from tests.streaming.driving import RACKS, Driver, at
from tests.streaming.writing import project, write_batches

CONF = '[policy.loads]\nplan = true\non_skew = "rebalance"\n'


@pytest.fixture
def driver() -> Driver:
    """Loads (3), a rebalance by load (4) that names disks, its approval (5), loads (6), settled (7), a deletion (8)."""
    driver = Driver(CONF)
    first = [driver.racks(RACKS), driver.batch(driver.event("topic_created", topic="t", partitions=48,
             replication_factor=2))]  # fmt: skip
    sizes = [5_000 if 1 in row else 1_000 for row in driver.layout()["t"]]
    rows = [{"topic": "t", "partition": p, "size": size, "bytes_in": 7} for p, size in enumerate(sizes)]
    dirs = [{"path": f"/d{n}", "limit": 10**6, "used": 500} for n in (1, 2)]
    limits = [{"broker_id": b, "log_dirs": dirs} for b in (3, 4, 5, 6)]
    first += [driver.batch(driver.event("load_observed", partitions=rows, brokers=limits, minute=1))]
    first += [driver.batch(minute=2)]
    proposal = driver.journal[-1]
    approval = {"plan_version": proposal.plan_version, "digest": proposal.digest}
    driver.results = [  # type: ignore[attr-defined]
        *first,
        driver.batch(driver.event("plan_approved", **approval, minute=3)),
        driver.batch(driver.event("load_observed", partitions=rows[:9], bytes_out_per_byte_in=2.0, minute=70)),
        driver.batch(minute=71),
        driver.batch(driver.event("topic_deleted", topic="t", minute=72)),
    ]
    return driver


@pytest.fixture
def root(driver: Driver, tmp_path: Path) -> Path:
    write_batches(tmp_path / "tables", *driver.results)  # type: ignore[attr-defined]
    project(tmp_path / "tables", driver.journal[:7])
    return tmp_path / "tables"


def test_the_journal_as_it_was_written_comes_out_the_same(root: Path, driver: Driver) -> None:
    assert [v.kind for v in driver.journal] == [
        "membership", "topics", "loads", "rebalance", "rebalance", "loads", "loads", "topics",
    ]  # fmt: skip
    forge(root, driver, lambda version: version, sealed=True)
    assert verified(root) is None


def heavier(version: PlanVersion) -> PlanVersion:
    """One partition is recorded as twice as large."""
    (block, *others) = version.load_changes
    values = block.values.copy()
    values[0, 0] *= 2
    return replace(version, load_changes=[TopicLoads(block.topic, block.partitions, values), *others])


def elsewhere(version: PlanVersion) -> PlanVersion:
    """A new replica goes to another disk."""
    swap = {"/d1": "/d2", "/d2": "/d1", "any": "any"}
    moves = [replace(b, log_dirs=[[swap[p] for p in paths] for paths in b.log_dirs or ()]) for b in version.moves]
    return replace(version, moves=moves)


def cheaper(version: PlanVersion) -> PlanVersion:
    assert version.numbers.loads is not None
    return replace(version, numbers=replace(version.numbers, loads=replace(version.numbers.loads, moved_bytes=1)))


def at_version(number: int, change: Callable[[PlanVersion], PlanVersion]) -> Callable[[PlanVersion], PlanVersion]:
    return lambda version: change(version) if version.plan_version == number else version


CHANGES = [
    (at_version(3, heavier), 3, "the load of partition t-0 comes out differently"),
    (only(3, load_changes=()), 3, "the load of partition t-0 comes out differently"),
    (only(3, limit_changes=(BrokerLimits(3, disk=5),)), 3, "its limit changes comes out differently"),
    (only(3, load_deadline=None), 3, "its load deadline comes out differently"),
    (only(6, load_deadline=at(99)), 6, "its load deadline comes out differently"),
    (at_version(4, elsewhere), 4, "its log directories come out differently"),
    (at_version(4, cheaper), 4, "its numbers comes out differently"),
    (only(8, load_changes=()), 8, "the load of partition t-0 comes out differently"),
]


@pytest.mark.parametrize(("change", "number", "said"), CHANGES)
@pytest.mark.parametrize("sealed", [True, False])
def test_a_row_that_was_changed_is_found(
    root: Path,
    driver: Driver,
    change: Callable[[PlanVersion], PlanVersion],
    number: int,
    said: str,
    sealed: bool,
) -> None:
    """By derivation where it was sealed again, by its seal where it was not."""
    forge(root, driver, change, sealed=sealed)
    found = verified(root)
    assert found is not None
    expected = said if sealed else "its seal is broken: this row was changed, or the one before"
    assert (found.plan_version, found.what) == (number, expected)


@pytest.mark.parametrize(("table", "column", "value"), [("loads", "size", 9), ("broker_limits", "disk", 9)])
def test_a_projection_that_was_changed_is_found(root: Path, table: str, column: str, value: int) -> None:
    import pyarrow as pa

    rows = DeltaTable(root / table).to_pyarrow_table()
    changed = [row | {column: value} if i == 0 else row for i, row in enumerate(rows.to_pylist())]
    write_deltalake(root / table, pa.Table.from_pylist(changed, rows.schema), mode="overwrite")
    found = verified(root)
    assert found is not None
    assert found.what.startswith(f"the table {table} has ")


def test_rows_without_loads_keep_the_seals_of_earlier_releases() -> None:
    """The seal was computed by the last commit before there were loads."""
    driver = Driver()
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    driver.batch(driver.event("broker_left", broker_id=3, reason="decommissioned", minute=2))
    seal = ""
    for version in driver.journal:
        seal = seal_of(replace(version, policy="{}", software_version="0", fold=FoldDigests()), seal)
    assert seal == "3b1c4cd08ea1d54d2925c0543de06702d56022a1b30441918384e72cd322bc9c"


def test_a_policy_without_the_section_of_loads_means_that_nothing_goes_by_load() -> None:
    """Rows of earlier releases have none."""
    from streaming.config import LoadPolicy, Policy

    old = {name: value for name, value in json.loads(Policy().to_json()).items() if name != "loads"}
    assert Policy.from_json(json.dumps(old)).loads == LoadPolicy()
    assert not LoadPolicy().plan
    assert LoadPolicy().on_skew == "nothing"
