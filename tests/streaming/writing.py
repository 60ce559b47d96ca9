"""Histories as the job writes them, without Spark: for commands and audits."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from streaming.job.microbatch import BatchResult
from streaming.job.projections import assignment_rows, broker_rows, brought, limit_rows, load_rows
from streaming.record.load_columns import limits_from_rows
from streaming.record.loads import MEASURED
from streaming.record.rows import quarantine_to_arrow, versions_to_arrow
from streaming.record.schemas import ASSIGNMENTS, BROKER_LIMITS, BROKERS, LOADS
from streaming.record.version import PlanVersion


def write_batches(root: Path, *batches: BatchResult, app: str = "app") -> None:
    """Append each batch to ``plans`` and ``quarantine``."""
    for batch in batches:
        named = CommitProperties(custom_metadata={"userMetadata": json.dumps({"plans": brought(batch.versions)})})
        if batch.versions:
            plans = versions_to_arrow(batch.versions, app, batch.batch_id)
            write_deltalake(root / "plans", plans, mode="append", commit_properties=named)
        refused = quarantine_to_arrow(batch.unplanned, app, batch.batch_id, batch.batch_time)
        write_deltalake(root / "quarantine", refused, mode="append")


def project(root: Path, versions: list[PlanVersion]) -> None:
    """Write the projections as they are after these versions."""
    assignments = assignment_rows(versions)
    held = [bool(replicas) for replicas in assignments["replicas"].to_pylist()]
    assignments = assignments.filter(pa.array(held, pa.bool_()))
    write_deltalake(root / BROKERS.name, broker_rows(versions), mode="overwrite")
    write_deltalake(root / ASSIGNMENTS.name, assignments, mode="overwrite")
    loads = load_rows(versions).to_pylist()
    there = [row for row in loads if any(row[name] is not None for name in MEASURED)]
    write_deltalake(root / LOADS.name, pa.Table.from_pylist(there, LOADS.schema), mode="overwrite")
    limits = [row for row in limit_rows(versions).to_pylist() if limits_from_rows([row])[0].is_known]
    write_deltalake(root / BROKER_LIMITS.name, pa.Table.from_pylist(limits, BROKER_LIMITS.schema), mode="overwrite")


def rewrite(root: Path, table: str, change: object) -> None:
    """Replace the rows of a table by what ``change`` makes of them, as somebody with write access could."""
    rows = DeltaTable(root / table).to_pyarrow_table().to_pylist()
    schema = DeltaTable(root / table).to_pyarrow_table().schema
    assert callable(change)
    write_deltalake(root / table, pa.Table.from_pylist(change(rows), schema), mode="overwrite")
