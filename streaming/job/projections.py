"""``brokers``, ``assignments``, ``loads`` and ``broker_limits``: the state as tables, merged behind the journal.

They can be thrown away: what is missing is folded from the journal at the next start, and what is wrong is replaced.
Merging takes seconds, so it happens on a thread of its own, and never holds up a batch.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streaming.job.maintenance import maintain
from streaming.job.tables import Tables
from streaming.job.write_behind import Behind
from streaming.record.load_columns import limit_row, loads_to_arrow
from streaming.record.loads import LIMITED, MEASURED
from streaming.record.moves import to_arrow
from streaming.record.schemas import ASSIGNMENTS, BROKER_LIMITS, BROKERS, LOADS, Table
from streaming.record.version import PlanVersion
from streaming.spark.session import beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log: Final = logging.getLogger(__name__)

_KEYS: Final = {
    BROKERS.name: ("cluster_id", "broker_id"),
    ASSIGNMENTS.name: ("cluster_id", "topic", "partition"),
    LOADS.name: ("cluster_id", "topic", "partition"),
    BROKER_LIMITS.name: ("cluster_id", "broker_id"),
}

_GONE: Final = {
    BROKERS.name: "false",
    ASSIGNMENTS.name: "size(s.replicas) = 0",
    LOADS.name: " AND ".join(f"s.{name} IS NULL" for name in MEASURED),
    BROKER_LIMITS.name: " AND ".join([*(f"s.{name} IS NULL" for name in LIMITED), "size(s.log_dirs) = 0"]),
}
"""Rows that say that there is nothing any more."""


def broker_rows(versions: Sequence[PlanVersion]) -> pa.Table:
    """The last state of every broker that these versions changed."""
    rows = [
        {"cluster_id": v.cluster_id, "plan_version": v.plan_version}
        | {f.name: getattr(b, f.name) for f in BROKERS.schema if hasattr(b, f.name)}
        for v in versions
        if v.effective
        for b in v.broker_changes
    ]
    return _last(pa.Table.from_pylist(rows, BROKERS.schema), BROKERS)


def assignment_rows(versions: Sequence[PlanVersion]) -> pa.Table:
    """The last replicas of every partition that these versions changed; none where it is gone."""
    moved = ("topic", "partition", "after", "leader", "isr", "end_offsets")
    return _by_partition(ASSIGNMENTS, moved, [(v, to_arrow(v.moves)) for v in versions if v.effective and v.moves])


def load_rows(versions: Sequence[PlanVersion]) -> pa.Table:
    """The last loads of every partition that these versions changed; null where they are not known."""
    weighed = ("topic", "partition", *MEASURED)
    changed = [(v, loads_to_arrow(v.load_changes)) for v in versions if v.effective and v.load_changes]
    return _by_partition(LOADS, weighed, changed)


def _by_partition(
    table: Table, fields: Sequence[str], changed: Sequence[tuple[PlanVersion, pa.StructArray]]
) -> pa.Table:
    """The last row of every partition: the cluster, the fields of what changed, and the version."""
    parts = [table.schema.empty_table()]
    for version, changes in changed:
        n = len(changes)
        columns = [
            pa.array([version.cluster_id] * n, pa.string()),
            *(changes.field(name) for name in fields),
            pa.array([version.plan_version] * n, pa.int64()),
        ]
        parts.append(pa.table(columns, schema=table.schema))
    return _last(pa.concat_tables(parts), table)


def limit_rows(versions: Sequence[PlanVersion]) -> pa.Table:
    """The last limits of every broker that these versions changed; null where there are none."""
    rows = [
        {"cluster_id": v.cluster_id, "plan_version": v.plan_version} | limit_row(broker)
        for v in versions
        if v.effective
        for broker in v.limit_changes
    ]
    return _last(pa.Table.from_pylist(rows, BROKER_LIMITS.schema), BROKER_LIMITS)


def _last(rows: pa.Table, table: Table) -> pa.Table:
    """The last row of every key."""
    numbered = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    kept = numbered.select([*_KEYS[table.name], "row"]).group_by(list(_KEYS[table.name])).aggregate([("row", "max")])
    return rows.take(kept["row_max"].combine_chunks().sort())


_ROWS: Final = {
    BROKERS.name: broker_rows,
    ASSIGNMENTS.name: assignment_rows,
    LOADS.name: load_rows,
    BROKER_LIMITS.name: limit_rows,
}

PROJECTIONS: Final = (BROKERS, ASSIGNMENTS, LOADS, BROKER_LIMITS)
"""In the order of the digests that a version has of them."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A cluster of which a projection is to have nothing but the fold of these versions, which are all there are."""

    cluster_id: str
    table: Table
    versions: Sequence[PlanVersion]


def merge_statement(tables: Tables, table: Table, source: str) -> str:
    """The MERGE that brings a projection up to date; doing it again, or late, changes nothing."""
    keys = " AND ".join(f"t.{key} = s.{key}" for key in _KEYS[table.name])
    gone = f"({_GONE[table.name]})"
    return (
        f"MERGE INTO {tables.identifier(table)} t USING {source} s ON {keys} "
        f"WHEN MATCHED AND s.plan_version > t.plan_version AND {gone} THEN DELETE "
        "WHEN MATCHED AND s.plan_version > t.plan_version THEN UPDATE SET * "
        f"WHEN NOT MATCHED AND NOT {gone} THEN INSERT *"
    )


def merge(spark: SparkSession, tables: Tables, versions: Sequence[PlanVersion]) -> None:
    """Bring the projections up to these versions.

    ``spark`` must be a session that nothing else writes with: the commit's ``userMetadata`` is a setting of it.
    """
    _name_commit(spark, versions)
    for table in PROJECTIONS:
        rows = _ROWS[table.name](versions)
        if rows.num_rows:
            view = f"changed_{table.name}"
            spark.createDataFrame(rows).createOrReplaceTempView(view)
            spark.sql(merge_statement(tables, table, view))


def rebuild(spark: SparkSession, tables: Tables, rebuilt: Rebuilt) -> None:
    """Replace what a projection has of a cluster, whatever it says there, in one commit; for sessions as ``merge``."""
    _name_commit(spark, rebuilt.versions)
    rows = spark.createDataFrame(_ROWS[rebuilt.table.name](rebuilt.versions)).alias("s")
    mine = f"cluster_id = CAST(X'{rebuilt.cluster_id.encode().hex()}' AS STRING)"  # any name, without quotes
    kept = rows.where(f"NOT ({_GONE[rebuilt.table.name]})")
    kept.write.format("delta").mode("overwrite").option("replaceWhere", mine).save(tables.path(rebuilt.table))


def _name_commit(spark: SparkSession, versions: Sequence[PlanVersion]) -> None:
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", json.dumps({"plans": brought(versions)}))


def brought(versions: Sequence[PlanVersion]) -> dict[str, list[int]]:
    """Which plan versions a commit brings, by cluster the first and the last, for its ``userMetadata``."""
    spans: dict[str, list[int]] = {}
    for version in versions:
        span = spans.setdefault(version.cluster_id, [version.plan_version] * 2)
        span[:] = min(span[0], version.plan_version), max(span[1], version.plan_version)
    return dict(sorted(spans.items()))


class Projector:
    """Merges committed versions in the background, and keeps house.

    Args:
        spark: the job's session; a new one is made of it.
        tables: the tables.
        interval: seconds between two merges, at least.
        maintenance: seconds between two rounds of housekeeping.
    """

    def __init__(self, spark: SparkSession, tables: Tables, interval: float, maintenance: float) -> None:
        self._spark = beside(spark)
        for key in ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"):
            self._spark.conf.set(key, str(spark.conf.get(key)))
        self._tables = tables
        self._maintenance = maintenance
        self._kept_house = time.monotonic()
        # The journal has them: what fails is tried again with the next ones, and at the latest at the next start.
        self._behind: Behind[PlanVersion | Rebuilt] = Behind("projections", interval, self._write)

    @property
    def failures(self) -> int:
        """Merges that failed."""
        return self._behind.failures

    def add(self, versions: Sequence[PlanVersion | Rebuilt]) -> None:
        """Hand over versions that are in the journal, and what is to be written again."""
        self._behind.add(versions)

    def stop(self) -> None:
        """Merge what waits, once, and end the thread."""
        self._behind.stop()

    def _write(self, items: Sequence[PlanVersion | Rebuilt]) -> None:
        for item in items:
            if isinstance(item, Rebuilt):
                rebuild(self._spark, self._tables, item)
        # Versions that were handed over before what is rebuilt are in it, and merging them once more changes nothing.
        merge(self._spark, self._tables, [item for item in items if isinstance(item, PlanVersion)])
        if not self._behind.stopping and time.monotonic() - self._kept_house > self._maintenance:
            self._keep_house()

    def _keep_house(self) -> None:
        self._kept_house = time.monotonic()
        try:
            for sentence in maintain(self._spark, self._tables):
                _log.info(sentence)
        except Exception:
            _log.exception("maintenance failed; it is retried after %s seconds", self._maintenance)
