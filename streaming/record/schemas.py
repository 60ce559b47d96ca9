"""The tables' columns, as Arrow schemas: the one place that names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, get_args

import pyarrow as pa

from placement.loads.model import WEIGHTS
from streaming.events import Outcome
from streaming.record.comments import COLUMN_COMMENTS
from streaming.record.load_columns import LIMIT_TYPE, LOAD_TYPE
from streaming.record.moves import MOVE_TYPE
from streaming.record.version import FoldDigests

OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

EVENT_TYPE: Final = pa.struct(
    [
        pa.field("event_id", pa.string()),
        pa.field("type", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("payload", pa.string()),
        pa.field("occurred_at", TIMESTAMP),
        pa.field("entity", pa.string()),
        pa.field("place", pa.string()),
        pa.field("sequence", pa.int64()),
    ]
)

BROKER_CHANGE_TYPE: Final = pa.struct(
    [
        pa.field("broker_id", pa.int32()),
        pa.field("rack", pa.string()),
        pa.field("capacity", pa.float64()),
        pa.field("state", pa.string()),
        pa.field("since", TIMESTAMP),
        pa.field("deadline", TIMESTAMP),
    ]
)

TOPIC_CHANGE_TYPE: Final = pa.struct([pa.field("topic", pa.string()), pa.field("strategy", pa.string())])

METRICS_TYPE: Final = pa.struct(
    [
        pa.field(name, pa.int64())
        for name in (
            "partitions_changed",
            "moved_replicas",
            "lower_bound",
            "gap",
            "optimal",
            "leader_changes",
            "replicas_min_before",
            "replicas_max_before",
            "leaders_min_before",
            "leaders_max_before",
            "replicas_min_after",
            "replicas_max_after",
            "leaders_min_after",
            "leaders_max_after",
            "moved_bytes",
            "lower_bound_bytes",
            *(f"residual_{weight}" for weight in WEIGHTS),
        )
    ]
)

FOLD_TYPE: Final = pa.struct([pa.field(name, pa.string()) for name in FoldDigests._fields])

_TRANSACTION: Final = [pa.field("app_id", pa.string()), pa.field("batch_id", pa.int64())]


@dataclass(frozen=True, slots=True)
class Table:
    """A Delta table: its name, its columns, and whether rows are only ever added."""

    name: str
    schema: pa.Schema
    append_only: bool


PLANS: Final = Table(
    "plans",
    pa.schema(
        [
            pa.field("cluster_id", pa.string()),
            pa.field("plan_version", pa.int64()),
            pa.field("base_version", pa.int64()),
            pa.field("supersedes", pa.int64()),
            *_TRANSACTION,
            pa.field("created_at", TIMESTAMP),
            pa.field("kind", pa.string()),
            pa.field("cause", pa.string()),
            pa.field("approval", pa.string()),
            pa.field("events", pa.list_(EVENT_TYPE)),
            pa.field("broker_changes", pa.list_(BROKER_CHANGE_TYPE)),
            pa.field("topic_changes", pa.list_(TOPIC_CHANGE_TYPE)),
            pa.field("moves", pa.list_(MOVE_TYPE)),
            pa.field("load_changes", pa.list_(LOAD_TYPE)),
            pa.field("limit_changes", pa.list_(LIMIT_TYPE)),
            pa.field("load_deadline", TIMESTAMP),
            pa.field("metrics", METRICS_TYPE),
            pa.field("policy", pa.string()),
            pa.field("software_version", pa.string()),
            pa.field("digest", pa.string()),
            pa.field("fold", FOLD_TYPE),
            pa.field("seal", pa.string()),
        ]
    ),
    append_only=True,
)

QUARANTINE: Final = Table(
    "quarantine",
    pa.schema(
        [
            pa.field("cluster_id", pa.string()),
            *EVENT_TYPE,
            *_TRANSACTION,
            pa.field("received_at", TIMESTAMP),
        ]
    ),
    append_only=True,
)

PROGRESS: Final = Table(
    "plan_progress",
    pa.schema(
        [
            pa.field("cluster_id", pa.string()),
            pa.field("plan_version", pa.int64()),
            pa.field("state", pa.string()),
            pa.field("details", pa.string()),
            pa.field("event_id", pa.string()),
            pa.field("occurred_at", TIMESTAMP),
            *_TRANSACTION,
        ]
    ),
    append_only=True,
)

BROKERS: Final = Table(
    "brokers",
    pa.schema(
        [pa.field("cluster_id", pa.string()), *BROKER_CHANGE_TYPE, pa.field("plan_version", pa.int64())],
    ),
    append_only=False,
)

ASSIGNMENTS: Final = Table(
    "assignments",
    pa.schema(
        [
            pa.field("cluster_id", pa.string()),
            pa.field("topic", pa.string()),
            pa.field("partition", pa.int32()),
            pa.field("replicas", pa.list_(pa.int32())),
            pa.field("leader", pa.int32()),
            pa.field("isr", pa.list_(pa.int32())),
            pa.field("end_offsets", pa.list_(pa.int64())),
            pa.field("plan_version", pa.int64()),
        ]
    ),
    append_only=False,
)

LOADS: Final = Table(
    "loads",
    pa.schema([pa.field("cluster_id", pa.string()), *LOAD_TYPE, pa.field("plan_version", pa.int64())]),
    append_only=False,
)

BROKER_LIMITS: Final = Table(
    "broker_limits",
    pa.schema([pa.field("cluster_id", pa.string()), *LIMIT_TYPE, pa.field("plan_version", pa.int64())]),
    append_only=False,
)

METRICS: Final = Table(
    "metrics",
    pa.schema(
        [
            *_TRANSACTION,
            pa.field("batch_time", TIMESTAMP),
            pa.field("finished_at", TIMESTAMP),
            pa.field("seconds", pa.float64()),
            pa.field("lag_seconds", pa.float64()),
            pa.field("events", pa.struct([pa.field(outcome, pa.int64()) for outcome in OUTCOMES])),
            pa.field("plans", pa.int64()),
            pa.field("moved_replicas", pa.int64()),
            pa.field("stopped_clusters", pa.list_(pa.string())),
            pa.field("clusters_in_memory", pa.int64()),
            pa.field("state_bytes", pa.int64()),
            pa.field("write_failures", pa.int64()),
        ]
    ),
    append_only=True,
)

TABLES: Final = (PLANS, QUARANTINE, PROGRESS, BROKERS, ASSIGNMENTS, LOADS, BROKER_LIMITS, METRICS)


def sql_type(kind: pa.DataType, path: str | None = None) -> str:
    """The Spark SQL name of an Arrow type that the tables use; with its ``path``, fields of structs have comments."""
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{f.name}: {_column(f, path)}' for f in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{sql_type(kind.value_type, path)}>"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.float64(): "double"}[kind]


def _column(field: pa.Field, path: str | None) -> str:
    if path is None:
        return sql_type(field.type)
    return f"{sql_type(field.type, f'{path}{field.name}.')} COMMENT {sql_text(comment_of(f'{path}{field.name}'))}"


def columns_ddl(table: Table) -> str:
    """The column list of a CREATE TABLE statement, with a comment on each column and each field of a struct."""
    return ", ".join(f"`{f.name}` {_column(f, '')}" for f in table.schema)


def column_paths(fields: Iterable[pa.Field], path: str = "") -> Iterator[tuple[str, pa.Field]]:
    """Each column and each field of a struct, named as in ALTER TABLE: ``events.element.reason``."""
    for field in fields:
        name = f"{path}{field.name}"
        yield name, field
        if pa.types.is_struct(field.type):
            yield from column_paths(field.type, f"{name}.")
        elif pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            yield from column_paths(field.type.value_type, f"{name}.element.")


def comment_of(path: str) -> str:
    """The comment of a column, or of a field such as ``limit_changes.log_dirs.path``, in plain text."""
    return COLUMN_COMMENTS[path.replace("element.", "")].replace("`", "")


def sql_text(text: str) -> str:
    """A text as a literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
