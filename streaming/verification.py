"""Everything that ``verify`` checks of a cluster: its journal, the projections, and the log of the journal's table."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from multiprocessing import get_context
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.errors import HistoryError
from streaming.history import History
from streaming.journal import versions_from_arrow
from streaming.pruning import Span
from streaming.rederive import Batch, ClusterAudit, Difference
from streaming.schemas import ASSIGNMENTS, BROKERS, EVENT_TYPE, PLANS
from streaming.version import EventRecord, PlanVersion

_APPENDS: Final = ("WRITE", "STREAMING UPDATE", "CREATE TABLE", "OPTIMIZE", "ADD COLUMNS", "SET TBLPROPERTIES",
                   "VACUUM START", "VACUUM END", "CHANGE COLUMN", "UPGRADE PROTOCOL", "COMPUTE STATS")  # fmt: skip
"""Operations that leave the rows of a table as they are, or add some."""

_BROUGHT: Final = re.compile(r"(?P<cluster>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?(?: |$)")

_LONG: Final = 200
"""Versions from which on it pays to start more processes."""

_ROWS_AT_ONCE: Final = 64
"""Versions that are held as objects at a time."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What ``verify`` found of a cluster; all is well when there is no difference."""

    cluster_id: str
    versions: int
    moves: int
    difference: Difference | None


def verify_clusters(history: History, clusters: Sequence[str], processes: int = 1) -> Iterator[Verified]:
    """Verify clusters one after the other; a long journal in as many parts as there are processes."""
    for cluster in clusters:
        versions = history.plans([], Span(cluster)).num_rows
        if processes == 1 or versions < _LONG:
            yield verify_part(history.root, cluster, 0, None)
            continue
        step = -(-versions // processes)
        bounds = [(start, min(start + step, versions)) for start in range(0, versions, step)]
        # Forked children would inherit Arrow's locks, but not the threads that hold them.
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            ends = [end if end < versions else None for _, end in bounds]
            futures = [
                pool.submit(verify_part, history.root, cluster, start, end)
                for (start, _), end in zip(bounds, ends, strict=True)
            ]
            parts = [future.result() for future in futures]
        first = next((part.difference for part in parts if part.difference), None)
        good = list(takewhile(lambda part: part.difference is None, parts))
        counted = parts[: len(good) + 1]
        yield Verified(cluster, sum(part.versions for part in counted), sum(part.moves for part in counted), first)


def verify_part(root: str, cluster: str, start: int, end: int | None) -> Verified:
    """Derive the versions after ``start`` up to ``end`` again, on the fold of those before.

    The last part, without an end, also checks the table's log and the projections.
    """
    history = History(root)
    refused, newest = _received(history)
    audit = ClusterAudit(cluster, refused.get(cluster, {}), newest)
    rows = list(_rows(history.plans(PLANS.schema.names, Span(cluster))))
    first, last = _edge(rows, start), _edge(rows, len(rows) if end is None else end)
    audit.take([version for _, version in rows[:first]])
    difference = audit.run(rows[first:last])
    if end is None:
        difference = difference or _check_log(cluster, audit.state.version, _table_log(history))
        difference = difference or _check_projections(history, cluster, audit.known)
    return Verified(cluster, len(audit.known) - first, audit.moves, difference)


def _edge(rows: Sequence[tuple[Batch, PlanVersion]], place: int) -> int:
    """The end of the batch that this place is in: batches are derived whole."""
    while 0 < place < len(rows) and rows[place][0] == rows[place - 1][0]:
        place += 1
    return place


def _rows(table: pa.Table) -> Iterator[tuple[Batch, PlanVersion]]:
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        part = table.slice(start, _ROWS_AT_ONCE).combine_chunks()
        ids = zip(part["app_id"].to_pylist(), part["batch_id"].to_pylist(), strict=True)
        for batch, version in zip(ids, versions_from_arrow(part), strict=True):
            yield Batch(*batch), version


def _received(history: History) -> tuple[dict[str, dict[Batch, list[EventRecord]]], dict[Batch, datetime]]:
    """Refused events by cluster and batch, and when the newest event of each batch occurred."""
    newest: dict[Batch, datetime] = {}
    plans = history.plans(["app_id", "batch_id", "events.occurred_at"])
    for row in plans.to_pylist():
        _note(newest, Batch(row["app_id"], row["batch_id"]), [event["occurred_at"] for event in row["events"]])
    refused: dict[str, dict[Batch, list[EventRecord]]] = defaultdict(lambda: defaultdict(list))
    for row in history.quarantine().to_pylist():
        batch = Batch(row["app_id"], row["batch_id"])
        _note(newest, batch, [row["occurred_at"]])
        if row["outcome"] != "malformed":
            fields = {name: row[name] for name in ("cluster_id", *(field.name for field in EVENT_TYPE))}
            refused[row["cluster_id"]][batch].append(EventRecord(**fields))
    return refused, newest


def _note(newest: dict[Batch, datetime], batch: Batch, moments: Sequence[datetime | None]) -> None:
    for moment in moments:
        if moment is not None and (batch not in newest or moment > newest[batch]):
            newest[batch] = moment


def _table_log(history: History) -> list[dict[str, Any]]:
    """The commits to the journal as far back as its log reaches, oldest first."""
    return sorted(history.commits(PLANS), key=lambda commit: int(commit["version"]))


def _check_log(cluster: str, last: int, log: Sequence[dict[str, Any]]) -> Difference | None:
    """Nobody took rows away, and every version that a commit named is there."""
    for commit in log:
        operation = str(commit.get("operation", ""))
        mode = str((commit.get("operationParameters") or {}).get("mode", "Append"))
        if not operation.startswith(_APPENDS) or mode not in ("Append", "ErrorIfExists"):
            what = f"table version {commit['version']} of plans is no append: {operation} {mode}".rstrip()
            return Difference(cluster, last, what, context={"commit": commit})
        for name, reached in _named(str(commit.get("userMetadata") or "")):
            if name == cluster and reached > last:
                what = f"is missing: table version {commit['version']} of plans brought it"
                return Difference(cluster, last + 1, what, context={"commit": commit})
    return None


def _named(metadata: str) -> Iterator[tuple[str, int]]:
    """Clusters and last versions in a commit's ``userMetadata``: JSON with ``plans``, such as ``east:3-5 west:1``."""
    try:
        document = json.loads(metadata)
    except ValueError:
        return
    for found in _BROUGHT.finditer(str(document.get("plans", ""))):
        yield found["cluster"], int(found["last"] or found["first"])


def _check_projections(history: History, cluster: str, known: dict[int, PlanVersion]) -> Difference | None:
    """Every row of ``brokers`` and ``assignments`` is the last that the journal wrote, as far as they reach."""
    for table, key, writes in (
        (BROKERS, ("broker_id",), _broker_writes),
        (ASSIGNMENTS, ("topic", "partition"), _assignment_writes),
    ):
        try:
            rows = history.projection(table, cluster)
        except HistoryError:
            continue  # It can be thrown away: the next start of the job writes it again.
        found = _compare_projection(cluster, table.name, key, rows, writes(known))
        if found is not None:
            return found
    return None


Writes = dict[tuple[Any, ...], list[tuple[int, Any]]]
"""By key, the versions that wrote it and what they wrote, oldest first; ``None`` where it is gone."""


def _broker_writes(known: dict[int, PlanVersion]) -> Writes:
    writes: Writes = defaultdict(list)
    for number, version in known.items():
        if version.effective:
            for broker in version.broker_changes:
                written = (broker.rack, broker.capacity, broker.state, broker.since, broker.deadline)
                writes[broker.broker_id,].append((number, written))
    return writes


def _assignment_writes(known: dict[int, PlanVersion]) -> Writes:
    writes: Writes = defaultdict(list)
    for number, version in known.items():
        if version.effective:
            for block in version.moves:
                for partition, _, after, _ in block.rows():
                    writes[block.topic, partition].append((number, after or None))
    return writes


def _compare_projection(
    cluster: str, name: str, key: tuple[str, ...], rows: pa.Table, written: Writes
) -> Difference | None:
    if not rows.num_rows:
        return None
    reach = pc.max(rows["plan_version"]).as_py()
    present = {tuple(row[part] for part in key): (row["plan_version"], _value(name, row)) for row in rows.to_pylist()}
    for what, (version, value) in present.items():
        if (version, value) not in written.get(what, ()):
            return _projected(cluster, version, name, what, value, dict(written.get(what, ())).get(version))
    for what, history in written.items():
        version, value = max((w for w in history if w[0] <= reach), default=(0, None))
        later = any(number > reach and now is None for number, now in history)
        there = present.get(what)
        if there is None and value is not None and not later:
            return _projected(cluster, version, name, what, None, value)
        if there is not None and there[0] < version:
            return _projected(cluster, version, name, what, there[1], value)
    return None


def _value(name: str, row: dict[str, Any]) -> Any:
    if name == ASSIGNMENTS.name:
        return row["replicas"]
    return tuple(row[field] for field in ("rack", "capacity", "state", "since", "deadline"))


def _projected(cluster: str, version: int, name: str, key: tuple[Any, ...], found: Any, expected: Any) -> Difference:
    shown = "-".join(map(str, key))
    return Difference(cluster, version, f"the table {name} has {shown} otherwise than the journal", found, expected)
