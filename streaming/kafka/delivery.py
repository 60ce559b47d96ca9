"""Handing lines to the source that the job reads."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Final, assert_never

from streaming.config import DeltaSource, FilesSource, KafkaSource, Source
from streaming.errors import InputError

_PATIENCE: Final = 30
"""Seconds that Kafka has to acknowledge what it was sent."""


def deliver(source: Source, data: bytes) -> None:
    """Hand lines over, whole or not at all for files and Delta.

    Raises:
        InputError: the source cannot be written to.
        ClusterError: Kafka did not take them, or not all of them; sent again, those that it took are duplicates.
        ConfigError: what is needed to talk to Kafka cannot be used.
    """
    match source:
        case FilesSource():
            _to_folder(source, data)
        case DeltaSource():
            _to_delta(source, data)
        case KafkaSource():
            _to_kafka(source, data)
        case _:
            assert_never(source)


def place_of(source: Source) -> str:
    """What people call the source: its folder, table or topic."""
    return f"topic {source.topic} at {source.bootstrap_servers}" if isinstance(source, KafkaSource) else source.path


def _to_folder(source: FilesSource, data: bytes) -> None:
    """A new file, complete when its name appears; names sort by time."""
    if "://" in source.path:
        raise InputError(
            f"{source.path}: events can be sent to a local folder only: put the file there with the storage's "
            "own tools, or name a folder in [source] path",
            path=source.path,
        )
    folder = Path(source.path)
    name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        hidden = folder / f".{name}"
        hidden.write_bytes(data)
        hidden.replace(folder / name)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}", path=str(folder)) from error


def _to_delta(source: DeltaSource, data: bytes) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake
    from deltalake.exceptions import DeltaError

    lines = data.removesuffix(b"\n").split(b"\n")
    values = pa.array([line.decode("utf-8", errors="backslashreplace") for line in lines], pa.string())
    try:
        write_deltalake(source.path, pa.table({"value": values}), mode="append")
    except (DeltaError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{source.path}: events cannot be appended to this table: {reason}", path=source.path
        ) from error


def _to_kafka(source: KafkaSource, data: bytes) -> None:
    from kafka.errors import KafkaError

    from streaming.kafka.connection import Connection

    connection = Connection.to_source(source)
    producer = connection.producer()
    try:
        sent = [producer.send(source.topic, line, key=_key(line)) for line in data.removesuffix(b"\n").split(b"\n")]
        for future in sent:
            future.get(timeout=_PATIENCE)
    except KafkaError as error:
        advice = "; see that the topic is there, and that it may be written to"
        raise connection.failed(f"did not take the events for topic {source.topic}", error, advice) from error
    finally:
        producer.close(timeout=_PATIENCE)


def _key(line: bytes) -> bytes | None:
    """The cluster, so that its events keep their order."""
    try:
        cluster = json.loads(line).get("cluster_id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return cluster.encode() if isinstance(cluster, str) else None
