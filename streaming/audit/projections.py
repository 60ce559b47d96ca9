"""The projections against the journal that they are the fold of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.audit.rederive import Difference
from streaming.errors import HistoryError
from streaming.history.tables import History
from streaming.record.load_columns import limits_from_rows
from streaming.record.loads import MEASURED, UNKNOWN, listed
from streaming.record.schemas import ASSIGNMENTS, BROKER_LIMITS, BROKERS, LOADS
from streaming.record.version import PlanVersion


def check_projections(history: History, cluster: str, known: Mapping[int, PlanVersion]) -> Difference | None:
    """Every row of a projection is the last that the journal wrote, as far as it reaches."""
    for table, key, writes in (
        (BROKERS, ("broker_id",), _broker_writes),
        (ASSIGNMENTS, ("topic", "partition"), _assignment_writes),
        (LOADS, ("topic", "partition"), _load_writes),
        (BROKER_LIMITS, ("broker_id",), _limit_writes),
    ):
        try:
            rows = history.projection(table, cluster)
        except HistoryError:
            continue  # It can be thrown away: the next start of the job writes it again.
        found = _compare_projection(cluster, table.name, key, rows, writes(known))
        if found is not None:
            return found
    return None


Writes = dict[tuple[Any, ...], dict[int, Any]]
"""By key, the versions that wrote it and what they wrote last; ``None`` where it is gone."""


def _broker_writes(known: Mapping[int, PlanVersion]) -> Writes:
    writes: Writes = defaultdict(dict)
    for number, version in known.items():
        if version.effective:
            for broker in version.broker_changes:
                written = (broker.rack, broker.capacity, broker.state, broker.since, broker.deadline)
                writes[broker.broker_id,][number] = written
    return writes


def _assignment_writes(known: Mapping[int, PlanVersion]) -> Writes:
    writes: Writes = defaultdict(dict)
    for number, version in known.items():
        if version.effective:
            for block in version.moves:
                for partition, _, after, _ in block.rows():
                    writes[block.topic, partition][number] = after or None
    return writes


def _load_writes(known: Mapping[int, PlanVersion]) -> Writes:
    writes: Writes = defaultdict(dict)
    for number, version in known.items():
        for topic, partition, *values in listed(version.load_changes if version.effective else ()):
            written = tuple(None if value == UNKNOWN else value for value in values)
            writes[topic, partition][number] = written if any(v is not None for v in written) else None
    return writes


def _limit_writes(known: Mapping[int, PlanVersion]) -> Writes:
    writes: Writes = defaultdict(dict)
    for number, version in known.items():
        for broker in version.limit_changes if version.effective else ():
            writes[broker.broker_id,][number] = broker if broker.is_known else None
    return writes


def _compare_projection(
    cluster: str, name: str, key: tuple[str, ...], rows: pa.Table, written: Writes
) -> Difference | None:
    if not rows.num_rows:
        return None
    reach = pc.max(rows["plan_version"]).as_py()
    present = {tuple(row[part] for part in key): (row["plan_version"], _value(name, row)) for row in rows.to_pylist()}
    for what, (version, value) in present.items():
        history = written.get(what, {})
        if version not in history or history[version] != value:
            return _projected(cluster, version, name, what, value, history.get(version))
    for what, history in written.items():
        version = max((number for number in history if number <= reach), default=0)
        value = history.get(version)
        later = any(number > reach and now is None for number, now in history.items())
        there = present.get(what)
        if there is None and value is not None and not later:
            return _projected(cluster, version, name, what, None, value)
        if there is not None and there[0] < version:
            return _projected(cluster, version, name, what, there[1], value)
    return None


def _value(name: str, row: dict[str, Any]) -> Any:
    if name == ASSIGNMENTS.name:
        return row["replicas"]
    if name == LOADS.name:
        return tuple(row[measured] for measured in MEASURED)
    if name == BROKER_LIMITS.name:
        return limits_from_rows([row])[0]
    return tuple(row[field] for field in ("rack", "capacity", "state", "since", "deadline"))


def _projected(cluster: str, version: int, name: str, key: tuple[Any, ...], found: Any, expected: Any) -> Difference:
    shown = "-".join(map(str, key))
    return Difference(cluster, version, f"the table {name} has {shown} otherwise than the journal", found, expected)
