"""The tables without Spark: what commands, reassignment executors and people read. Needs no JVM."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from streaming.errors import HistoryError
from streaming.events import ClusterIdentified, decode
from streaming.history.actual import COLUMNS, Actual, actual_state
from streaming.history.pruning import EVERYTHING, Span, newest_version, read, values
from streaming.history.scanning import kept
from streaming.planning.decisions.decision import moment_text, named
from streaming.planning.known_loads import KnownLoads
from streaming.planning.state import ClusterState
from streaming.record.folding import last_loads, layout_after
from streaming.record.kinds import kinds_where
from streaming.record.load_columns import limits_from_rows
from streaming.record.rows import in_effect, is_in, versions_from_arrow
from streaming.record.schemas import PLANS, PROGRESS, QUARANTINE, Table
from streaming.record.version import BrokerRecord, PlanVersion, TopicChange

MAX_NAMED = 10

_IDENTIFIED = str(ClusterIdentified.__struct_config__.tag)

_GREATEST = 2**63 - 1
"""No plan version is greater: the column is of 64 bits."""

_LOADS = ("load_changes", "limit_changes")
_AT_ONCE = 64
"""Versions whose loads are held at a time: each may have one of every partition."""

_HEADLINE = tuple(
    name
    for name in PLANS.schema.names
    if name not in ("moves", "events", "broker_changes", "topic_changes", *_LOADS, "app_id", "batch_id")
)
_WHOLE = tuple(name for name in PLANS.schema.names if name not in (*_LOADS, "app_id", "batch_id"))
_STATE = (
    *("kind", "approval", "supersedes", "broker_changes", "topic_changes"),
    *(f"moves.{part}" for part in ("topic", "partition", "after", "leader", "isr", "end_offsets")),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a plan is carried out, by the newest report of whoever does it."""

    state: str
    since: datetime
    partitions_done: int
    details: str | None

    def __str__(self) -> str:
        """In a few words, such as ``started, 12 partitions done``."""
        if self.state in ("started", "partition_done"):
            return f"started, {self.partitions_done} partition{'s' if self.partitions_done != 1 else ''} done"
        return self.state


@dataclass(frozen=True)
class History:
    """The tables under a root, as they are when first asked for."""

    root: str

    @cached_property
    def _plans(self) -> DeltaTable:
        return self._open(PLANS)

    @cached_property
    def _weighed(self) -> dict[tuple[str, int | datetime | None], tuple[int, int]]:
        """First and last version that may have changed loads, as far as it was looked at: kinds are in every file."""
        return {}

    def _path(self, table: Table) -> str:
        return f"{self.root.rstrip('/')}/{table.name}"

    def _open(self, table: Table) -> DeltaTable:
        path = self._path(table)
        try:
            return DeltaTable(path)
        except TableNotFoundError as error:
            raise HistoryError(
                f"{path}: there is no table yet: run the job first (replica-planner run), or name its conf with --conf",
                path=path,
            ) from error
        except OSError as error:
            raise _unreadable(path, error) from error
        except DeltaError as error:
            reason = str(error).partition("\n")[0]
            raise HistoryError(
                f"{path}: the log of this table cannot be read: {reason}: restore {path}/_delta_log from a copy",
                path=path,
            ) from error

    def plans(self, columns: Sequence[str], span: Span = EVERYTHING) -> pa.Table:
        """Columns of the journal by cluster and version; ``moves.topic`` is one field of the moves."""
        keys = ("cluster_id", "plan_version")
        table = read(self._plans, self._path(PLANS), PLANS.schema, list(dict.fromkeys([*keys, *columns])), span)
        if isinstance(span.cluster, str) and _ascending(table["plan_version"]):
            return table  # sorting copies all moves
        return table.sort_by([(key, "ascending") for key in keys])

    def projection(self, table: Table, cluster: str) -> pa.Table:
        """The rows of a cluster in ``brokers`` or ``assignments``."""
        return read(self._open(table), self._path(table), table.schema, table.schema.names, Span(cluster))

    def has(self, table: Table) -> bool:
        """Whether there is such a table."""
        path = self._path(table)
        try:
            return DeltaTable.is_deltatable(path)
        except OSError as error:
            raise _unreadable(path, error) from error

    def commits(self, table: Table) -> list[dict[str, Any]]:
        """The commits to a table, as far back as its log reaches."""
        return self._open(table).history()

    def clusters(self) -> list[str]:
        """The names of the clusters that have plans."""
        return values(self._plans, self._path(PLANS), PLANS.schema, "cluster_id")

    def cluster(self, name: str | None) -> str:
        """The named cluster, or the only one there is.

        Raises:
            HistoryError: it has no plans, or none was named and there are several.
        """
        known = self.clusters()
        if name is None and len(known) == 1:
            return known[0]
        if name in known:
            return str(name)
        listed = f"there are: {some(known)}" if known else "no cluster has plans yet"
        problem = f"no cluster {name!r}" if name is not None else "name a cluster with --cluster"
        raise HistoryError(f"{problem}: {listed}", path=self.root)

    def headlines(self, cluster: str | None = None) -> list[PlanVersion]:
        """All plan versions without their events, changes and moves, by cluster and version."""
        return list(versions_from_arrow(self.plans(_HEADLINE, Span(cluster))))

    def versions(self, cluster: str | None = None) -> list[PlanVersion]:
        """All plan versions without their moves, by cluster and version."""
        return list(versions_from_arrow(self.plans([name for name in _WHOLE if name != "moves"], Span(cluster))))

    def since(self, cluster: str, plan_version: int) -> list[PlanVersion]:
        """The plan versions from the given one on, with their moves."""
        return list(versions_from_arrow(self.plans(_WHOLE, Span(cluster, plan_version))))

    def loads(self, cluster: str, as_of: int | datetime | None = None) -> KnownLoads:
        """The loads and limits of a cluster, folded from its journal, now, after a version, or at a moment."""
        found = KnownLoads()
        for table in self.load_changes(cluster, as_of):
            limits = [row for rows in table["limit_changes"].to_pylist() for row in rows or ()]
            found.take(last_loads(table), limits_from_rows(limits))
        return found

    def load_changes(
        self, cluster: str, as_of: int | datetime | None = None, columns: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """What versions changed of loads and limits, some versions at a time, oldest first.

        ``columns`` are the fields of ``load_changes`` that are wanted, without the limits; all of both where none is
        named.
        """
        wanted = [f"load_changes.{name}" for name in columns] or _LOADS
        if (cluster, as_of) not in self._weighed:
            self._note_weighed(cluster, as_of, self.plans(["kind"], _as_of(cluster, as_of)))
        first, last = self._weighed[cluster, as_of]
        for start in range(first, last + 1, _AT_ONCE):
            table = self.plans(["approval", *wanted], Span(cluster, start, min(start + _AT_ONCE - 1, last)))
            yield kept(table, in_effect(table))

    def _note_weighed(self, cluster: str, as_of: int | datetime | None, heads: pa.Table) -> None:
        """Remember from which version on loads are known, and up to which one was asked; none where they never were."""
        observed = heads.filter(is_in(heads["kind"], kinds_where(lambda kind: kind.observes_loads)))["plan_version"]
        both = (observed[0].as_py(), heads["plan_version"][-1].as_py()) if len(observed) else (1, 0)
        self._weighed[cluster, as_of] = both

    def completed(self, cluster: str) -> set[int]:
        """The plan versions that were reported as carried out."""
        reports = self._reports(cluster)
        done = pc.equal(reports["state"], "completed")
        return set(reports.filter(done)["plan_version"].to_pylist())

    def standings(self, cluster: str | None = None) -> dict[tuple[str, int], Standing]:
        """Progress by cluster and plan version; plans without a progress event are left out."""
        found: dict[tuple[str, int], Standing] = {}
        for row in self._reports(cluster).sort_by("occurred_at").to_pylist():
            key = row["cluster_id"], row["plan_version"]
            done = found[key].partitions_done if key in found and row["state"] != "started" else 0
            done += row["state"] == "partition_done"
            found[key] = Standing(row["state"], row["occurred_at"], done, row["details"])
        return found

    def actual(self, cluster: str, as_of: int | datetime | None = None) -> Actual:
        """The cluster as it was then, by progress events and observations, and what waited to be carried out.

        Raises:
            HistoryError: as :meth:`state`.
        """
        planned = self.state(cluster, as_of)
        reports = self._reports(cluster)
        if until := self._end_of(cluster, as_of):
            reports = reports.filter(pc.less(reports["occurred_at"], pa.scalar(until, reports["occurred_at"].type)))
        return actual_state(planned, self.plans(COLUMNS, _as_of(cluster, as_of)), reports)

    def _end_of(self, cluster: str, as_of: int | datetime | None) -> datetime | None:
        """When a version was no longer the newest; ``None`` where it still is."""
        if not isinstance(as_of, int):
            return as_of
        following = self.plans(["created_at"], Span(cluster, as_of + 1, as_of + 1))["created_at"].to_pylist()
        return following[0] if following else None

    def kafka_id(self, cluster: str) -> str | None:
        """The id of the Kafka cluster that ``collect`` saw under this name last; ``None`` where none told it."""
        about = ["type", "outcome", "payload"]
        types = self.plans(["events.type"], Span(cluster))
        told = [
            version
            for version, events in zip(types["plan_version"].to_pylist(), types["events"].to_pylist(), strict=True)
            if any(event["type"] == _IDENTIFIED for event in events)
        ]
        planned = self.plans([f"events.{name}" for name in about], Span(cluster, among=told)) if told else None
        rows = [event for events in planned["events"].to_pylist() for event in events] if planned is not None else []
        rows += self.quarantine(cluster).select(about).to_pylist()
        found = [
            event
            for row in rows
            if row["type"] == _IDENTIFIED and row["outcome"] == "applied"
            if isinstance(event := decode(row["payload"].encode()).event, ClusterIdentified)
        ]
        return max(found, key=lambda event: event.occurred_at).kafka_cluster_id if found else None

    def _reports(self, cluster: str | None) -> pa.Table:
        """The progress events."""
        if not self.has(PROGRESS):
            return PROGRESS.schema.empty_table()
        columns = ["cluster_id", "plan_version", "state", "occurred_at", "details"]
        return read(self._open(PROGRESS), self._path(PROGRESS), PROGRESS.schema, columns, Span(cluster))

    def version(self, cluster: str, plan_version: int) -> PlanVersion:
        """One plan version with its moves.

        Raises:
            HistoryError: the cluster has no such version.
        """
        found = None
        if plan_version <= _GREATEST:
            table = self.plans(_WHOLE, Span(cluster, plan_version, plan_version))
            found = next(versions_from_arrow(table), None)
        if found is None:
            raise self._nothing(cluster, f"no version {plan_version}")
        return found

    def version_at(self, cluster: str, as_of: int | datetime | None = None) -> int:
        """The plan version that was the newest then, or is now.

        Raises:
            HistoryError: the version does not exist, or the moment is before the first one.
        """
        span = Span(cluster, as_of, as_of) if isinstance(as_of, int) else _as_of(cluster, as_of)
        found = newest_version(self._plans, self._path(PLANS), PLANS.schema, span)
        if found is None:
            raise self._nothing(cluster, f"nothing as of {_shown(as_of)}")
        return found

    def state(self, cluster: str, as_of: int | datetime | None = None) -> ClusterState:
        """The cluster folded from its journal, now, after a version, or at a moment; for reading, not for planning.

        Which events were seen, and when, is left out.

        Raises:
            HistoryError: the version does not exist, or the moment is before the first one.
        """
        table = self.plans(_STATE, _as_of(cluster, as_of))
        reached = table["plan_version"][-1].as_py() if table.num_rows else 0
        if not reached or (isinstance(as_of, int) and reached != as_of):
            raise self._nothing(cluster, f"nothing as of {_shown(as_of)}")
        self._note_weighed(cluster, as_of, table)
        noted = Span(cluster, _proposed_last(table) or reached, reached)
        return _folded(cluster, table, versions_from_arrow(self.plans(_HEADLINE, noted)))

    def _nothing(self, cluster: str, problem: str) -> HistoryError:
        known = self.plans(["created_at"], Span(cluster))
        if not known.num_rows:
            return HistoryError(f"no cluster {cluster!r}: there are: {some(self.clusters())}", path=self.root)
        first = known["created_at"][0].as_py()
        return HistoryError(
            f"cluster {cluster} has {problem}: it has versions 1 to {known['plan_version'][-1].as_py()}, "
            f"the first of {_shown(first)}",
            path=self.root,
        )

    def quarantine(self, cluster: str | None = None) -> pa.Table:
        """The events that no plan records, in the order in which they were received."""
        table = read(
            self._open(QUARANTINE), self._path(QUARANTINE), QUARANTINE.schema, QUARANTINE.schema.names, Span(cluster)
        )
        return table.sort_by([("received_at", "ascending"), ("batch_id", "ascending"), ("sequence", "ascending")])


def _unreadable(path: str, error: OSError) -> HistoryError:
    """The storage's client lists causes, a line each; the last one says most."""
    cause = re.sub(r"\x1b\[\d*m|↳", "", str(error).strip().rpartition("\n")[2]).strip().rstrip(".")
    remedy = "see that you may read this folder"
    if "://" in path:
        remedy = (
            "see that the address is right, and that the environment of this command has the storage's credentials, "
            "such as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION for s3"
        )
    return HistoryError(f"{path}: this table cannot be read: {cause}; {remedy}", path=path)


def _ascending(numbers: pa.ChunkedArray) -> bool:
    found = numbers.to_numpy()
    return bool((found[1:] > found[:-1]).all())


def some(names: Sequence[str]) -> str:
    """The first names, and how many more there are; ``none`` where there are none."""
    return named(names, MAX_NAMED) or "none"


def _shown(as_of: int | datetime | None) -> str:
    return moment_text(as_of) if isinstance(as_of, datetime) else str(as_of)


def _as_of(cluster: str, as_of: int | datetime | None) -> Span:
    """The plan versions up to one, or up to a moment."""
    if isinstance(as_of, datetime):
        return Span(cluster, until=as_of.astimezone(UTC))
    return Span(cluster, last=as_of)


def _proposed_last(table: pa.Table) -> int | None:
    """The newest proposal, if nobody has decided on it; what came after it may have superseded it."""
    decided = table.filter(pc.is_in(table["approval"], pa.array(["proposed", "approved", "rejected"])))[-1:]
    (found,) = decided["plan_version"].to_pylist() if decided["approval"].to_pylist() == ["proposed"] else (None,)
    return found


def _folded(cluster: str, table: pa.Table, noted: Iterable[PlanVersion]) -> ClusterState:
    """The state after versions that stand in their order; ``noted`` are the newest headlines, what is proposed too."""
    state = ClusterState(cluster)
    table = kept(table, in_effect(table))
    details = table.select(["broker_changes", "topic_changes"])
    brokers = [BrokerRecord(**broker) for row in details["broker_changes"].to_pylist() for broker in row]
    topics = {t["topic"]: TopicChange(**t) for row in details["topic_changes"].to_pylist() for t in row}
    state.apply(brokers, topics.values(), layout_after(table))
    for version in noted:
        state.record(version)
    return state


def parse_as_of(text: str) -> int | datetime:
    """A plan version, or a moment in RFC 3339; UTC where it names no zone.

    Raises:
        HistoryError: it is neither.
    """
    if text.isdecimal() and int(text) <= _GREATEST:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise HistoryError(
            f"{text!r} is neither a plan version such as 17 nor a time such as 2026-11-19T10:00:00Z", path=text
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def event_rows(versions: Sequence[PlanVersion], quarantine: pa.Table) -> list[dict[str, object]]:
    """Every event received and what became of it: those in plans, then those in quarantine."""
    names = ("event_id", "cluster_id", "type", "outcome", "reason", "occurred_at", "place", "payload")
    planned = [
        {name: getattr(event, name) for name in names} | {"plan_version": version.plan_version}
        for version in versions
        for event in version.events
    ]
    return planned + [row | {"plan_version": None} for row in quarantine.select(list(names)).to_pylist()]
