"""Each field of the record, changed: ``verify`` notices, or docs/audit.md names it among what it cannot see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from streaming.audit.journal import verify_clusters
from streaming.history.tables import History
from streaming.planning.batch import BatchResult
from streaming.record.moves import digest
from streaming.record.rows import progress_to_arrow, versions_from_arrow
from streaming.record.schemas import PLANS, PROGRESS, QUARANTINE, Table
from streaming.record.seal import seal_of
from tests.events_for import T0
from tests.model.faults import Faults, faulty
from tests.streaming.audit.random_histories import BY_LOAD, CONF
from tests.streaming.driving import Driver
from tests.streaming.writing import write_batches

PAGE: Final = Path(__file__).parents[3] / "docs/audit.md"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with every column in use: brokers, topics, roles, loads and limits, a heal, a proposal, an approval."""
    driver = Driver(CONF + BY_LOAD.replace("plan = true\n", "plan = false\n"))
    placed = {"topic": "t", "partition": 0, "replicas": [1, 2], "leader": 1, "isr": [1, 2]}
    limits = {"broker_id": 4, "disk": 10**9, "bytes_in": 9, "bytes_out": 9, "cpu": 9}
    batches = [
        driver.racks({"a": [1, 4], "b": [2], "c": [3]}),
        driver.batch(
            driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2], "5": [2, 3]}),
            driver.event("topic_created", topic="u", replica_assignment={"0": [2, 3], "1": [3, 2], "2": [2, 3]}),
            driver.event("topic_created", topic="huge", replication_factor=9),
            driver.event("topic_deleted", topic="unheard of"),
            b"broken",
            minute=1,
        ),
        driver.batch(driver.event("assignment_observed", minute=2, partitions=[placed | {"end_offsets": [5, 5]}])),
        driver.batch(
            driver.event(
                "load_observed",
                minute=3,
                partitions=[{"topic": "t", "partition": 0, "size": 700, "bytes_in": 10, "bytes_out": 20}],
                brokers=[limits | {"log_dirs": [{"path": "/d", "limit": 10**9, "used": 5}]}],
            ),
            minute=3,
        ),
        driver.batch(driver.event("broker_left", broker_id=1, reason="failed", minute=4), minute=4),
        driver.batch(minute=40),
        driver.batch(driver.event("rebalance_requested", minute=41), b"alone", minute=41),
        driver.batch(driver.event("topic_created", topic="v", partitions=1, minute=42), minute=42),
        driver.batch(driver.event("rebalance_requested", minute=42), minute=42),
    ]
    last = driver.journal[-1]
    decided = {"plan_version": last.plan_version, "digest": last.digest}
    batches.append(driver.batch(driver.event("plan_approved", minute=43, **decided), minute=43))
    reported = driver.event("plan_progress", plan_version=last.plan_version + 1, state="completed", minute=44)
    batches.append(driver.batch(reported, b"refused alone", minute=44))
    folder = tmp_path_factory.mktemp("mutations")
    write_batches(folder, *batches)
    reports = [progress_to_arrow(batch.progress, "app", batch.batch_id) for batch in batches]
    write_deltalake(folder / "plan_progress", pa.concat_tables(reports))
    return folder


FieldPath = tuple[str, ...]


def leaves(kind: pa.DataType, path: FieldPath = ()) -> Iterator[tuple[FieldPath, pa.DataType]]:
    """The fields of a column that are not made of others, with their types."""
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_struct(inner):
        for field in inner:
            yield from leaves(field.type, (*path, field.name))
    else:
        yield path, kind


def fields(table: Table) -> list[tuple[FieldPath, pa.DataType]]:
    return [((field.name, *path), kind) for field in table.schema for path, kind in leaves(field.type)]


def other(value: Any, kind: pa.DataType) -> Any:
    """Another value of the same type."""
    if pa.types.is_list(kind):
        return [*(value or [])[:-1], other(value[-1] if value else None, kind.value_type)]
    if pa.types.is_string(kind):
        return f"{value or ''}x"
    if pa.types.is_timestamp(kind):
        return (value or T0) + timedelta(seconds=1)
    return int(value or 0) ^ 1 if pa.types.is_integer(kind) else (value or 0) + 1


def changed(value: Any, path: FieldPath, kind: pa.DataType, *, null: bool) -> Any:
    """The value with the first thing at the path changed, if that is null or is not; ``None`` without such a thing."""
    if not path:
        return other(value, kind) if (value is None) == null else None
    if isinstance(value, list):
        for i, item in enumerate(value):
            new = changed(item, path, kind, null=null)
            if new is not None:
                return [*value[:i], new, *value[i + 1 :]]
    if not isinstance(value, dict):
        return None
    new = changed(value[path[0]], path[1:], kind, null=null)
    return None if new is None else value | {path[0]: new}


def mutated(rows: list[Row], path: FieldPath, kind: pa.DataType) -> list[list[Row]]:
    """The rows with the field changed in the first two that have it, and in the last; else put in where it is not."""
    for null in (False, True):
        new = [(i, changed(row, path, kind, null=null)) for i, row in enumerate(rows)]
        found = [[*rows[:i], row, *rows[i + 1 :]] for i, row in new if row is not None]
        if found:
            return [*found[:2], *found[2:][-1:]]
    return []


def resealed(rows: list[Row]) -> list[Row]:
    """By somebody who knows how: digests and seals fit what the rows say."""
    previous, found = "", []
    for row, version in zip(rows, versions_from_arrow(pa.Table.from_pylist(rows, PLANS.schema)), strict=True):
        own = digest(version.moves) if version.approval != "rejected" else version.digest
        previous = seal_of(replace(version, digest=own), previous)
        found.append(row | {"digest": own, "seal": previous})
    return found


def noticed(root: Path, table: Table, rows: list[Row], scratch: Path) -> bool:
    """Whether ``verify`` finds anything in the tables with these rows in one of them."""
    scratch.mkdir()
    for name in (PLANS.name, QUARANTINE.name, PROGRESS.name):
        if name == table.name:
            write_deltalake(scratch / name, pa.Table.from_pylist(rows, table.schema))
        else:
            (scratch / name).symlink_to(root / name)
    history = History(str(scratch))
    return any(found.difference for found in verify_clusters(history, history.clusters()))


def rows_of(root: Path, table: Table) -> list[Row]:
    order = [(name, "ascending") for name in ("batch_id", "plan_version", "sequence") if name in table.schema.names]
    return DeltaTable(root / table.name).to_pyarrow_table().sort_by(order).to_pylist()  # type: ignore[no-any-return]


def unseen(root: Path, table: Table, scratch: Path, *, sealed: bool) -> set[str]:
    """The fields of which some change is not noticed."""
    rows, found = rows_of(root, table), set()
    for path, kind in fields(table):
        versions = mutated(rows, path, kind)
        assert versions, f"the history has no {'.'.join(path)}"
        for number, changes in enumerate(versions):
            new = resealed(changes) if sealed else changes
            if new != rows and not noticed(root, table, new, scratch / f"{'.'.join(path)} {number}"):
                found.add(".".join(path))
                break
    return found


def listed(heading: str, table: Table) -> set[str]:
    """What the page says that cannot be seen, from the row of the table under the heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"### {heading}\n")[2].partition("\n#")[0]
    row = re.search(rf"^\| `{table.name}` \| (.*?) \|", section, re.MULTILINE)
    assert row is not None, f"{PAGE} has no row of {table.name} under {heading!r}"
    names = set(re.findall(r"`([^`]+)`", row[1]))
    every = {".".join(path) for path, _ in fields(table)}
    if row[1].startswith("every field"):
        return every
    return {field for field in every if any(field == name or field.startswith(f"{name}.") for name in names)}


def test_the_history_is_honest(root: Path, tmp_path: Path) -> None:
    assert not noticed(root, PLANS, rows_of(root, PLANS), tmp_path / "same")
    assert not noticed(root, PLANS, resealed(rows_of(root, PLANS)), tmp_path / "sealed")


@pytest.mark.parametrize("table", [PLANS, QUARANTINE, PROGRESS], ids=lambda table: table.name)
def test_a_change_of_any_field_is_noticed_or_named(root: Path, tmp_path: Path, table: Table) -> None:
    assert unseen(root, table, tmp_path, sealed=False) == listed("A change by hand", table)


def test_a_change_by_somebody_who_seals_anew_is_noticed_or_named(root: Path, tmp_path: Path) -> None:
    assert unseen(root, PLANS, tmp_path, sealed=True) == (
        listed("A change by hand", PLANS) | listed("A change with new seals", PLANS)
    )


@pytest.mark.parametrize("sealed", [False, True])
def test_rows_that_are_dropped_or_swapped(root: Path, tmp_path: Path, sealed: bool) -> None:
    """In the middle any is noticed; of the last ones only the projections, or a seal kept elsewhere, can tell."""
    rows = rows_of(root, PLANS)
    seal = resealed if sealed else list
    for i in range(len(rows) - 1):
        assert noticed(root, PLANS, seal([*rows[:i], *rows[i + 1 :]]), tmp_path / f"dropped {i}")
        swapped = [rows[i + 1] | {"plan_version": i + 1}, rows[i] | {"plan_version": i + 2}]
        assert noticed(root, PLANS, seal([*rows[:i], *swapped, *rows[i + 2 :]]), tmp_path / f"swapped {i}")
    assert not noticed(root, PLANS, rows[:-1], tmp_path / "cut short")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kinds of versions that the other history does not have, those that record a fault among them."""
    driver = Driver('[policy]\non_drift = "restore"\napproval = ["rebalance"]\n')

    def seen(minute: float, *replicas: int) -> bytes:
        row = {"topic": "t", "partition": 0, "replicas": replicas, "leader": replicas[0], "isr": replicas}
        return driver.event("assignment_observed", partitions=[row], minute=minute)

    def one(kind: str, minute: float, **fields: Any) -> BatchResult:
        return driver.batch(driver.event(kind, minute=minute, **fields), minute=minute)

    batches = [
        driver.racks({"a": [1, 3], "b": [2, 4]}),
        one("topic_created", 1, topic="t", replica_assignment={0: [1, 2], 1: [2, 1]}),
        *(driver.batch(seen(minute, *row), minute=minute) for minute, row in ((2, (1, 2)), (3, (4, 2)), (4, (1, 2)))),
        one("plan_claimed", 5, plan_version=4, claimant="a", lease_seconds=60),
        one("broker_left", 6, broker_id=1, reason="decommissioned"),
        one("broker_joined", 7, broker_id=1, rack="a"),
        one("rebalance_requested", 8),
    ]
    last = driver.journal[-1]
    batches.append(one("plan_rejected", 9, plan_version=last.plan_version, digest=last.digest))
    lines = [driver.event("topic_created", event_id=name, topic=name, minute=10) for name in ("poison", "after")]
    with faulty(Faults(events={"poison"})):
        batches.append(driver.batch(*lines, minute=10))
        batches.append(driver.batch(driver.event("cluster_resumed", minute=11), *lines, minute=11))
    with faulty(Faults(time=True)):
        batches += [one("broker_left", 12, broker_id=4, reason="failed"), driver.batch(minute=60)]
    batches.append(one("cluster_resumed", 61))
    folder = tmp_path_factory.mktemp("stopped")
    write_batches(folder, *batches)
    write_deltalake(folder / "plan_progress", pa.table([[] for _ in PROGRESS.schema], PROGRESS.schema))
    return folder


def test_in_versions_of_other_kinds_a_change_with_new_seals_is_noticed_or_named(stopped: Path, tmp_path: Path) -> None:
    """A sample of all fields of all versions; of what stopped a cluster the page says in words what is a fact."""
    rows, facts = rows_of(stopped, PLANS), {("stop", "cause"), ("stop", "load_deadline")}
    assert {row["kind"] for row in rows} >= {"restore", "drift", "claim", "heal", "rejection", "stop", "resume"}
    named = listed("A change by hand", PLANS) | listed("A change with new seals", PLANS)
    changes = [
        (at, ".".join(path), new)
        for path, kind in fields(PLANS)
        if ".".join(path) not in named
        for at, row in enumerate(rows)
        if (new := changed(row, path, kind, null=False)) is not None
    ]
    missed = set()
    for number, (at, name, row) in enumerate(Random(1).sample(changes, 60)):
        new = resealed([*rows[:at], row, *rows[at + 1 :]])
        if new != rows and not noticed(stopped, PLANS, new, tmp_path / str(number)):
            missed.add((rows[at]["kind"], name))
    assert missed <= facts
