"""What the tables tell of clusters beside their plans: refused events, the times of batches, and the journal's log."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from streaming.audit.rederive import Batch, Difference
from streaming.history.tables import History
from streaming.record.rows import event_of
from streaming.record.schemas import PLANS
from streaming.record.version import EventRecord

_APPENDS: Final = ("WRITE", "STREAMING UPDATE", "CREATE TABLE", "OPTIMIZE", "ADD COLUMNS", "SET TBLPROPERTIES",
                   "VACUUM START", "VACUUM END", "CHANGE COLUMN", "UPGRADE PROTOCOL", "COMPUTE STATS")  # fmt: skip
"""Operations that leave the rows of a table as they are, or add some."""

_BROUGHT: Final = re.compile(r"(?P<cluster>[^ :]+):(?P<first>\d+)(?:-(?P<last>\d+))?")

Place = tuple[str, int, Batch]
"""Cluster, plan version and batch of a row of the journal."""


def places(plans: pa.Table) -> Iterator[Place]:
    """The place of each row, in their order."""
    columns = (plans[name].to_pylist() for name in ("cluster_id", "plan_version", "app_id", "batch_id"))
    for cluster, version, app_id, batch_id in zip(*columns, strict=True):
        yield cluster, version, Batch(app_id, batch_id)


@dataclass(slots=True)
class Record:
    """What is on record of a cluster outside of its own plans.

    Attributes:
        refused: events that no version records, by their batch.
        newest: when the newest event of a batch occurred, whatever cluster it is about.
        commits: versions that commits to ``plans`` say they brought, each with its commit, oldest first.
        changed: the first commit that is no append.
    """

    refused: dict[Batch, list[EventRecord]] = field(default_factory=lambda: defaultdict(list))
    newest: dict[Batch, datetime] = field(default_factory=dict)
    commits: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    changed: dict[str, Any] | None = None


def records_of(history: History, plans: pa.Table, clusters: Sequence[str]) -> dict[str, Record]:
    """The records of some clusters, each table read once.

    ``plans`` has the rows of all clusters with ``app_id``, ``batch_id`` and ``events.occurred_at``.
    """
    newest: dict[Batch, datetime] = {}
    batches: dict[str, set[Batch]] = defaultdict(set)
    for (cluster, _, batch), events in zip(places(plans), plans["events"].to_pylist(), strict=True):
        batches[cluster].add(batch)
        _note(newest, batch, [event["occurred_at"] for event in events])
    records = {name: Record() for name in clusters}
    for row in history.quarantine().to_pylist():
        batch = Batch(row["app_id"], row["batch_id"])
        _note(newest, batch, [row["occurred_at"]])
        if row["outcome"] != "malformed" and row["cluster_id"] in records:
            records[row["cluster_id"]].refused[batch].append(event_of(row))
    for name, record in records.items():
        record.newest = {batch: newest[batch] for batch in batches[name] if batch in newest}
    log = sorted(history.commits(PLANS), key=lambda commit: int(commit["version"]))
    _note_commits(records, log, known=batches)
    return records


def _note(newest: dict[Batch, datetime], batch: Batch, moments: Sequence[datetime | None]) -> None:
    for moment in moments:
        if moment is not None and (batch not in newest or moment > newest[batch]):
            newest[batch] = moment


def _note_commits(records: dict[str, Record], log: Sequence[dict[str, Any]], known: Collection[str]) -> None:
    """The commits to the journal as far back as its log reaches, oldest first."""
    for commit in log:
        if not _is_append(commit):
            for record in records.values():
                record.changed = commit
            return
        for name, spans in spans_of(str(commit.get("userMetadata") or ""), known).items():
            if name in records:
                records[name].commits += [(last, commit) for _, last in spans]


def _is_append(commit: dict[str, Any]) -> bool:
    mode = str((commit.get("operationParameters") or {}).get("mode", "Append"))
    return str(commit.get("operation", "")).startswith(_APPENDS) and mode in ("Append", "ErrorIfExists")


def check_log(cluster: str, last: int, record: Record) -> Difference | None:
    """Nobody took rows away, and every version that a commit named is there."""
    if record.changed is not None:
        operation = record.changed.get("operation")
        mode = (record.changed.get("operationParameters") or {}).get("mode")
        done = " ".join(str(part) for part in (operation, mode) if part)
        what = f"table version {record.changed['version']} of plans is not an append: {done}"
        return Difference(cluster, last, what, context={"commit": record.changed})
    for reached, commit in record.commits:
        if reached > last:
            what = f"is missing: table version {commit['version']} of plans brought it"
            return Difference(cluster, last + 1, what, context={"commit": commit})
    return None


def spans_of(metadata: str, known: Collection[str] | None = None) -> dict[str, list[tuple[int, int]]]:
    """The first and last versions that a commit brought, by cluster, from its ``userMetadata``.

    ``{"plans": {"east": [3, 5]}}`` says it; earlier releases wrote text, ``east:3-5 west:1``, alone or as ``plans``. In
    that a cluster called ``c:9 z`` cannot be told from two others, so where clusters are ``known``, a text that names
    another one says nothing.
    """
    try:
        document = json.loads(metadata)
    except ValueError:
        document = metadata
    plans = document.get("plans") if isinstance(document, dict) else document
    if isinstance(plans, dict):
        return {cluster: [(int(first), int(last))] for cluster, (first, last) in plans.items()}
    spans: dict[str, list[tuple[int, int]]] = {}
    for part in str(plans or "").split(" "):
        found = _BROUGHT.fullmatch(part)
        if found is None:
            return {}
        spans.setdefault(found["cluster"], []).append((int(found["first"]), int(found["last"] or found["first"])))
    return spans if known is None or spans.keys() <= set(known) else {}
