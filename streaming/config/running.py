"""Where the tables are, how the job runs, and how it is watched."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from streaming.amounts import ByteAmount, Duration
from streaming.config.kinds import Count, Text


class Tables(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the Delta tables are, a folder or a storage URL, and for how long they must answer questions of the past.

    The audit window is set when a table is created; the journal itself is never shortened.
    """

    root: Text = ".data/tables"
    audit_window: Duration = Duration("90d")


class Job(Struct, frozen=True, forbid_unknown_fields=True):
    """How the streaming query runs.

    ``memory`` bounds the cluster states that the driver keeps; others are read again when they are needed. A batch of
    several clusters is planned on Spark's executors where that takes at least as long as looking at ``executors_from``
    partitions: a line counts for 20, and news that may move everything for all partitions of its cluster besides.
    """

    checkpoint: Text = ".data/checkpoint"
    trigger: Literal["processing-time", "available-now"] = "processing-time"
    interval: Duration = Duration("1s")
    projection_interval: Duration = Duration("5s")
    maintenance_interval: Duration = Duration("1d")
    memory: ByteAmount = ByteAmount("1GiB")
    executors_from: Count = 200_000


class Monitoring(Struct, frozen=True, forbid_unknown_fields=True):
    """How the job is watched: what its log looks like, who may read its numbers, and where its heartbeat is.

    Prometheus is served where a port is named. The heartbeat is a file; without a name it is ``.heartbeat`` beside the
    tables, if those are in a folder.
    """

    log: Literal["text", "json"] = "text"
    metrics_port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    metrics_address: Text = "127.0.0.1"
    metrics_interval: Duration = Duration("30s")
    heartbeat: Text | None = None
