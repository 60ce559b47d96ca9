"""Plan versions as rows of the ``plans`` table and back, in Arrow; no Spark here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import accumulate, chain, groupby, islice, repeat
from typing import Any, Final, get_args

import pyarrow as pa
import pyarrow.compute as pc

from streaming.errors import JobError
from streaming.events import PlanProgress
from streaming.record.kinds import MEANINGS, kinds_where
from streaming.record.load_columns import limits_from_rows, limits_to_arrow, loads_from_arrow, loads_to_arrow
from streaming.record.loads import count
from streaming.record.moves import from_arrow, to_arrow
from streaming.record.schemas import (
    BROKER_CHANGE_TYPE,
    EVENT_TYPE,
    FOLD_TYPE,
    METRICS_TYPE,
    OUTCOMES,
    PLANS,
    PROGRESS,
    QUARANTINE,
    TOPIC_CHANGE_TYPE,
)
from streaming.record.version import (
    EFFECTIVE,
    SUSPECT,
    Approval,
    Balance,
    BrokerRecord,
    EventRecord,
    FoldDigests,
    LoadNumbers,
    Numbers,
    PlanVersion,
    TopicChange,
)


def batch_to_arrow(
    versions: Sequence[PlanVersion], encoded: Mapping[str, pa.Table], app_id: str, batch_id: int
) -> pa.Table:
    """What a batch appends to ``plans``; clusters whose versions are rows already are taken as they are."""
    tables = [
        encoded[cluster] if cluster else versions_to_arrow(list(some), app_id, batch_id)
        for cluster, some in groupby(versions, lambda v: v.cluster_id if v.cluster_id in encoded else "")
    ]
    return pa.concat_tables(tables) if tables else PLANS.schema.empty_table()


def versions_to_arrow(versions: Sequence[PlanVersion], app_id: str, batch_id: int) -> pa.Table:
    """One row a version, ready to append to ``plans``."""
    n = len(versions)
    scalar = {name: [getattr(v, name) for v in versions] for name in _SCALARS}
    columns = {
        **scalar,
        "app_id": [app_id] * n,
        "batch_id": [batch_id] * n,
        "events": _lists(event_structs([e for v in versions for e in v.events]), [len(v.events) for v in versions]),
        "broker_changes": _lists(
            _records([b for v in versions for b in v.broker_changes], BROKER_CHANGE_TYPE),
            [len(v.broker_changes) for v in versions],
        ),
        "topic_changes": _lists(
            _records([t for v in versions for t in v.topic_changes], TOPIC_CHANGE_TYPE),
            [len(v.topic_changes) for v in versions],
        ),
        "moves": _lists(
            to_arrow([block for v in versions for block in v.moves]),
            [sum(block.partitions.size for block in v.moves) for v in versions],
        ),
        "load_changes": _lists(
            loads_to_arrow([block for v in versions for block in v.load_changes]),
            [count(v.load_changes) for v in versions],
        ),
        "limit_changes": _lists(
            limits_to_arrow([broker for v in versions for broker in v.limit_changes]),
            [len(v.limit_changes) for v in versions],
        ),
        "metrics": pa.array([numbers_to_dict(v.numbers) for v in versions], METRICS_TYPE),
        "fold": pa.array([v.fold._asdict() if v.fold.brokers else None for v in versions], FOLD_TYPE),
    }
    return pa.table([_column(columns[f.name], f.type) for f in PLANS.schema], schema=PLANS.schema)


_SCALARS = (
    "cluster_id",
    "plan_version",
    "base_version",
    "supersedes",
    "created_at",
    "kind",
    "cause",
    "approval",
    "load_deadline",
    "policy",
    "software_version",
    "digest",
    "seal",
)


_NUMBERS = tuple(f.name for f in fields(Numbers) if f.name not in ("before", "after", "loads"))
_LOAD_NUMBERS = tuple(f.name for f in fields(LoadNumbers))
_BALANCE = tuple(f.name for f in fields(Balance))


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _lists(values: pa.StructArray, lengths: Sequence[int]) -> pa.ListArray:
    """The values of all rows, divided among them: one array for many rows costs as much as one for one row."""
    return pa.ListArray.from_arrays(pa.array([0, *accumulate(lengths)], pa.int32()), values)


def _records(rows: Sequence[BrokerRecord] | Sequence[TopicChange], kind: pa.StructType) -> pa.StructArray:
    columns = [pa.array([getattr(row, f.name) for row in rows], f.type) for f in kind]
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def event_structs(events: Sequence[EventRecord]) -> pa.StructArray:
    """Events as they stand inside a plan."""
    columns = [pa.array([getattr(event, f.name) for event in events], f.type) for f in EVENT_TYPE]
    return pa.StructArray.from_arrays(columns, fields=list(EVENT_TYPE))


def quarantine_to_arrow(events: Sequence[EventRecord], app_id: str, batch_id: int, received_at: Any) -> pa.Table:
    """Events that no plan records, ready to append to ``quarantine``."""
    n = len(events)
    columns = [
        pa.array([event.cluster_id for event in events], pa.string()),
        *event_structs(events).flatten(),
        pa.array([app_id] * n, pa.string()),
        pa.array([batch_id] * n, pa.int64()),
        pa.array([received_at] * n, QUARANTINE.schema.field("received_at").type),
    ]
    return pa.table(columns, schema=QUARANTINE.schema)


def progress_to_arrow(reports: Sequence[PlanProgress], app_id: str, batch_id: int) -> pa.Table:
    """Progress events, ready to append to ``plan_progress``."""
    rows = [
        {
            "cluster_id": report.cluster_id,
            "plan_version": report.plan_version,
            "state": report.state,
            "details": None if report.details is None else json.dumps(report.details),
            "event_id": report.event_id,
            "occurred_at": report.occurred_at,
            "app_id": app_id,
            "batch_id": batch_id,
        }
        for report in reports
    ]
    return pa.Table.from_pylist(rows, PROGRESS.schema)


def numbers_to_dict(numbers: Numbers) -> dict[str, int]:
    """The plan's numbers as the ``metrics`` struct has them."""
    flat = {name: int(getattr(numbers, name)) for name in _NUMBERS}
    for when in ("before", "after"):
        balance: Balance = getattr(numbers, when)
        flat |= {f"{name}_{when}": getattr(balance, name) for name in _BALANCE}
    if numbers.loads is not None:
        flat |= asdict(numbers.loads)
    return flat


def numbers_from_dict(metrics: dict[str, int]) -> Numbers:
    """The inverse of :func:`numbers_to_dict`."""
    return Numbers(
        **{name: metrics[name] for name in _NUMBERS if name != "optimal"},
        optimal=bool(metrics["optimal"]),
        before=Balance(*(metrics[f"{f.name}_before"] for f in fields(Balance))),
        after=Balance(*(metrics[f"{f.name}_after"] for f in fields(Balance))),
        loads=_load_numbers(metrics),
    )


def _load_numbers(metrics: dict[str, int]) -> LoadNumbers | None:
    """None where the plan was made by count, or by a release that knew nothing else."""
    if metrics.get("moved_bytes") is None:
        return None
    return LoadNumbers(*(metrics[name] for name in _LOAD_NUMBERS))


def refuse_newer(table: pa.Table) -> None:
    """See that rows of ``plans`` or ``quarantine`` say nothing that this release does not know.

    Raises:
        JobError: a newer release has written them; what it meant cannot be planned on.
    """
    for column, known in _WORDS.items():
        if column not in table.schema.names:
            continue
        unknown = sorted({str(word) for word in table[column].unique().to_pylist() if word is not None} - known)
        if unknown:
            raise JobError(
                f"the tables have rows of {column} {unknown[0]!r}, which this release does not know: a newer one has "
                "written them; run that one"
            )


_WORDS = {
    "kind": frozenset(MEANINGS),
    "approval": frozenset(get_args(Approval)),
    "outcome": frozenset(OUTCOMES),
}


def in_effect(plans: pa.Table) -> pa.ChunkedArray:
    """Which rows of ``plans`` have moves that are part of the state."""
    return is_in(plans["approval"], EFFECTIVE)


def event_of(row: Mapping[str, Any]) -> EventRecord:
    """The event of a row of ``quarantine``."""
    event = EventRecord(**{name: row[name] for name in ("cluster_id", *(field.name for field in EVENT_TYPE))})
    if event.reason and event.reason.startswith(_HELD):
        return replace(event, outcome="held", reason=event.reason.removeprefix(_HELD))
    return event


_HELD: Final = "held: "
"""Began the reason of held events, whose outcome was ``rejected``, up to release 0.1."""


def are_held(quarantine: pa.Table) -> pa.ChunkedArray:
    """Which events are held: :attr:`EventRecord.is_held`."""
    return pc.or_(pc.equal(quarantine["outcome"], "held"), pc.starts_with(quarantine["reason"], _HELD))


def are_suspect(quarantine: pa.Table) -> pa.ChunkedArray:
    """Which events stopped their cluster: :attr:`EventRecord.is_suspect`."""
    return pc.and_(are_held(quarantine), pc.match_substring_regex(quarantine["reason"], f"^({_HELD})?{SUSPECT}"))


def still_stopped(plans: pa.Table) -> pa.Table:
    """The rows of ``plans`` that stopped a cluster and that no row follows which resumes it."""
    marks = plans.filter(is_in(plans["kind"], kinds_where(lambda kind: kind.stopped is not None)))
    marks = marks.sort_by("plan_version")
    last = {cluster: row for row, cluster in enumerate(marks["cluster_id"].to_pylist())}
    marks = marks.take(pa.array(last.values(), pa.int64()))
    return marks.filter(is_in(marks["kind"], kinds_where(lambda kind: bool(kind.stopped))))


def is_in(column: pa.ChunkedArray, words: Iterable[str]) -> pa.ChunkedArray:
    """Which values of a column are among some words."""
    return pc.is_in(column, pa.array(words, pa.string()))


def versions_from_arrow(table: pa.Table) -> Iterator[PlanVersion]:
    """Rows of ``plans`` in the order given. Columns of details that were not read come back empty."""
    for batch in table.to_batches():
        names = set(batch.schema.names)
        light = [name for name in batch.schema.names if name not in _MANY]
        rows = batch.select(light).to_pylist()
        events = _divided(batch, "events", partial(_events, [row["cluster_id"] for row in rows]))
        changes = _divided(batch, "topic_changes", _topic_changes)
        for i, row in enumerate(rows):
            moves = from_arrow(_flat(batch.column("moves"), i)) if "moves" in names else []
            loads = loads_from_arrow(_flat(batch.column("load_changes"), i)) if "load_changes" in names else []
            scalars: dict[str, Any] = {name: row.get(name) for name in _SCALARS}
            yield PlanVersion(
                **scalars,
                events=events[i],
                broker_changes=[BrokerRecord(**b) for b in row.get("broker_changes") or []],
                topic_changes=changes[i],
                moves=moves,
                load_changes=loads,
                limit_changes=limits_from_rows(row.get("limit_changes") or []),
                numbers=numbers_from_dict(row["metrics"]),
                fold=FoldDigests(**row.get("fold") or {}),
            )


_MANY = ("events", "topic_changes", "moves", "load_changes")
"""Columns that may hold very much in a row, and are read column by column for that."""

_Structs = Callable[[dict[str, pa.Array], list[int]], Iterable[Any]]
"""Records of the fields of all structs in a column, given how many belong to each row."""


def _divided(batch: pa.RecordBatch, name: str, made_of: _Structs) -> list[list[Any]]:
    """The records of each row; none where the column was not read."""
    if name not in batch.schema.names:
        return [[] for _ in range(batch.num_rows)]
    structs, lengths = batch.column(name).flatten(), batch.column(name).value_lengths().fill_null(0).to_pylist()
    records = iter(made_of(dict(zip(structs.type.names, structs.flatten(), strict=True)), lengths))
    return [list(islice(records, n)) for n in lengths]


def _events(clusters: Sequence[str], columns: dict[str, pa.Array], lengths: list[int]) -> Iterable[EventRecord]:
    of_cluster = chain.from_iterable(map(repeat, clusters, lengths))
    values = {name: column.to_pylist() for name, column in columns.items()}
    left_out = {"cluster_id": of_cluster, "payload": repeat(""), "sequence": repeat(None)}
    return map(EventRecord, *({**left_out, **values}[f.name] for f in fields(EventRecord)))


def _topic_changes(columns: dict[str, pa.Array], _: list[int]) -> Iterable[TopicChange]:
    return map(TopicChange, *(columns[f.name].to_pylist() for f in fields(TopicChange)))


def _flat(column: pa.ListArray, row: int) -> pa.StructArray:
    """The structs in one row."""
    return column.slice(row, 1).flatten()
