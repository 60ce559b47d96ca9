"""Changes of loads and limits as Arrow columns of the journal, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from placement import LogDir
from streaming.record.loads import LIMITED, MEASURED, UNKNOWN, BrokerLimits, TopicLoads
from streaming.record.moves import topic_blocks

LOAD_TYPE: Final = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        *(pa.field(name, pa.int64()) for name in MEASURED),
    ]
)

LIMIT_TYPE: Final = pa.struct(
    [
        pa.field("broker_id", pa.int32()),
        *(pa.field(name, pa.int64()) for name in LIMITED),
        pa.field(
            "log_dirs",
            pa.list_(
                pa.struct([pa.field("path", pa.string()), pa.field("limit", pa.int64()), pa.field("used", pa.int64())])
            ),
        ),
    ]
)


def loads_to_arrow(changes: Sequence[TopicLoads]) -> pa.StructArray:
    """One struct a partition, in the order given; null where a value is not known."""
    counts = [block.partitions.size for block in changes]
    names = pa.array([block.topic for block in changes], pa.string())
    codes = pa.array(np.repeat(np.arange(len(changes), dtype=np.int32), counts))
    topic = pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())
    ids = np.concatenate([block.partitions for block in changes]) if changes else np.zeros(0, np.int32)
    values = np.concatenate([block.values for block in changes]) if changes else np.zeros((0, len(MEASURED)), np.int64)
    columns = [pa.array(column, pa.int64(), mask=column == UNKNOWN) for column in values.T.copy()]
    return pa.StructArray.from_arrays([topic, pa.array(ids, pa.int32()), *columns], fields=list(LOAD_TYPE))


def loads_from_arrow(array: pa.StructArray) -> list[TopicLoads]:
    """The inverse: rows of one topic that stand together, ids ascending, come back as one block."""
    if not len(array):
        return []
    columns = dict(zip([field.name for field in array.type], array.flatten(), strict=True))
    ids, topics, bounds = topic_blocks(columns["topic"], columns["partition"])
    values = np.stack([np.asarray(columns[name].fill_null(UNKNOWN)).astype(np.int64) for name in MEASURED], axis=1)
    return [
        TopicLoads(topic, ids[lo:hi], values[lo:hi]) for topic, (lo, hi) in zip(topics, pairwise(bounds), strict=True)
    ]


def limits_to_arrow(changes: Sequence[BrokerLimits]) -> pa.StructArray:
    """One struct a broker."""
    return pa.array([limit_row(broker) for broker in changes], LIMIT_TYPE)


def limit_row(broker: BrokerLimits) -> dict[str, Any]:
    """The values of a broker as a table has them."""
    dirs = [{"path": one.path, "limit": one.limit, "used": one.used} for one in broker.log_dirs]
    return {"broker_id": broker.broker_id, **{name: getattr(broker, name) for name in LIMITED}, "log_dirs": dirs}


def limits_from_rows(rows: Sequence[dict[str, Any]]) -> list[BrokerLimits]:
    """The inverse of :func:`limit_row`, for many; other columns are left out."""
    return [
        BrokerLimits(
            row["broker_id"],
            **{name: row[name] for name in LIMITED},
            log_dirs=tuple(LogDir(**one) for one in row["log_dirs"] or ()),
        )
        for row in rows
    ]
