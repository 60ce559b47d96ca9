"""What the projections must hold, folded from the raw rows of the journal by code that the job does not use."""

from __future__ import annotations

from typing import Any

from chispa import assert_df_equality
from pyspark.sql import SparkSession

from streaming.record.loads import listed
from tests.job_folder import JobFolder

Row = dict[str, Any]


def effective_versions(job: JobFolder) -> list[Row]:
    rows = sorted(job.delta("plans").to_pyarrow_table().to_pylist(), key=lambda row: row["plan_version"])
    return [row for row in rows if row["approval"] in ("not_required", "approved")]


def folded_brokers(job: JobFolder) -> list[Row]:
    found: dict[tuple[str, int], Row] = {}
    for row in effective_versions(job):
        written = {"cluster_id": row["cluster_id"], "plan_version": row["plan_version"]}
        found |= {(row["cluster_id"], b["broker_id"]): b | written for b in row["broker_changes"]}
    return list(found.values())


def folded_assignments(job: JobFolder) -> list[Row]:
    found: dict[tuple[str, str, int], Row] = {}
    for row in effective_versions(job):
        written = {"cluster_id": row["cluster_id"], "plan_version": row["plan_version"]}
        for move in row["moves"]:
            key = (row["cluster_id"], move["topic"], move["partition"])
            seen = {name: move[name] for name in ("topic", "partition", "leader", "isr", "end_offsets")}
            found[key] = seen | {"replicas": move["after"]} | written
    return [row for row in found.values() if row["replicas"]]


def folded_loads(job: JobFolder) -> list[Row]:
    found: dict[tuple[str, str, int], Row] = {}
    for row in effective_versions(job):
        written = {"cluster_id": row["cluster_id"], "plan_version": row["plan_version"]}
        found |= {(row["cluster_id"], c["topic"], c["partition"]): c | written for c in row["load_changes"] or ()}
    return [row for row in found.values() if any(row[name] is not None for name in ("size", "bytes_in", "bytes_out"))]


def folded_limits(job: JobFolder) -> list[Row]:
    found: dict[tuple[str, int], Row] = {}
    for row in effective_versions(job):
        written = {"cluster_id": row["cluster_id"], "plan_version": row["plan_version"]}
        found |= {(row["cluster_id"], c["broker_id"]): c | written for c in row["limit_changes"] or ()}
    limited = ("disk", "bytes_in", "bytes_out", "cpu")
    return [row for row in found.values() if row["log_dirs"] or any(row[name] is not None for name in limited)]


def assert_projected(spark: SparkSession, job: JobFolder) -> None:
    """The journal, its fold by the job's own code, and the projections say the same."""
    for name, folded in (
        ("brokers", folded_brokers(job)),
        ("assignments", folded_assignments(job)),
        ("loads", folded_loads(job)),
        ("broker_limits", folded_limits(job)),
    ):
        rows = job.delta(name).to_pyarrow_table()
        assert bool(rows.num_rows) == bool(folded)
        if not folded:
            continue
        table = spark.createDataFrame(rows)
        expected = spark.createDataFrame([[row[c] for c in table.columns] for row in folded], table.schema)
        assert_df_equality(table, expected, ignore_row_order=True)
    for cluster in job.history.clusters():
        replicas = {
            f"{row['topic']}-{row['partition']}": row["replicas"]
            for row in folded_assignments(job)
            if row["cluster_id"] == cluster
        }
        states = {row["broker_id"]: row["state"] for row in folded_brokers(job) if row["cluster_id"] == cluster}
        assert job.layout(cluster) == replicas
        assert job.brokers(cluster) == states
        known = job.history.loads(cluster)
        sizes = {
            (row["topic"], row["partition"]): row["size"] for row in folded_loads(job) if row["cluster_id"] == cluster
        }
        assert {(t, p): size for t, p, size, _, _ in listed(known.topics.values())} == sizes
        limited = {row["broker_id"] for row in folded_limits(job) if row["cluster_id"] == cluster}
        assert set(known.limits) == limited
