"""The tables without Spark: what commands, executors and people read. Needs no JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
from deltalake.exceptions import TableNotFoundError

from streaming.errors import HistoryError
from streaming.journal import versions_from_arrow
from streaming.scanning import dataset, scan
from streaming.schemas import PLANS, QUARANTINE, Table
from streaming.state import ClusterState
from streaming.version import PlanVersion

_LIGHT = tuple(name for name in PLANS.schema.names if name not in ("moves", "app_id", "batch_id"))
MAX_NAMED = 10


@dataclass(frozen=True)
class History:
    """The tables under a root, as they are when first asked for."""

    root: str

    @cached_property
    def _plans(self) -> pa.dataset.Dataset:
        return self._open(PLANS)

    def _open(self, table: Table) -> pa.dataset.Dataset:
        path = f"{self.root.rstrip('/')}/{table.name}"
        try:
            return dataset(path)
        except TableNotFoundError as error:
            raise HistoryError(
                f"{path}: there is no table yet: run the job first (replica-planner run), or name its conf with --conf",
                path=path,
            ) from error

    def clusters(self) -> list[str]:
        """The names of the clusters that have plans."""
        return sorted(self._plans.to_table(columns=["cluster_id"])["cluster_id"].unique().to_pylist())

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
        listed = f"there are: {', '.join(known[:MAX_NAMED])}" if known else "no cluster has plans yet"
        problem = f"no cluster {name!r}" if name is not None else "name a cluster with --cluster"
        raise HistoryError(f"{problem}: {listed}", path=self.root)

    def versions(self, cluster: str | None = None) -> list[PlanVersion]:
        """All plan versions without their moves, by cluster and version."""
        wanted = None if cluster is None else pc.field("cluster_id") == cluster
        table = scan(self._plans, PLANS.schema, _LIGHT, wanted)
        return list(versions_from_arrow(_ordered(table)))

    def version(self, cluster: str, plan_version: int) -> PlanVersion:
        """One plan version with its moves.

        Raises:
            HistoryError: the cluster has no such version.
        """
        wanted = (pc.field("cluster_id") == cluster) & (pc.field("plan_version") == plan_version)
        table = scan(self._plans, PLANS.schema, [*_LIGHT, "moves"], wanted)
        found = next(versions_from_arrow(table), None)
        if found is None:
            last = len(self.versions(cluster))
            raise HistoryError(
                f"cluster {cluster} has no version {plan_version}: it has versions 1 to {last}", path=self.root
            )
        return found

    def state(self, cluster: str, as_of: int | datetime | None = None) -> ClusterState:
        """The cluster folded from its journal, now, after a version, or at a moment.

        Raises:
            HistoryError: the version does not exist, or the moment is before the first one.
        """
        wanted = pc.field("cluster_id") == cluster
        if isinstance(as_of, datetime):
            wanted &= pc.field("created_at") <= pa.scalar(as_of.astimezone(UTC), PLANS.schema.field("created_at").type)
        elif as_of is not None:
            wanted &= pc.field("plan_version") <= as_of
        state = ClusterState(cluster)
        for version in versions_from_arrow(_ordered(scan(self._plans, PLANS.schema, [*_LIGHT, "moves"], wanted))):
            state.fold(version)
        if state.version == 0 or (isinstance(as_of, int) and state.version != as_of):
            versions = self.versions(cluster)
            raise HistoryError(
                f"cluster {cluster} has nothing as of {as_of}: it has versions 1 to {len(versions)}, "
                f"the first of {versions[0].created_at:%Y-%m-%dT%H:%M:%SZ}",
                path=self.root,
            )
        return state

    def quarantine(self, cluster: str | None = None) -> pa.Table:
        """The events that no plan records, in the order in which they were received."""
        wanted = None if cluster is None else pc.field("cluster_id") == cluster
        table = scan(self._open(QUARANTINE), QUARANTINE.schema, QUARANTINE.schema.names, wanted)
        return table.sort_by([("batch_id", "ascending")])


def _ordered(table: pa.Table) -> pa.Table:
    return table.sort_by([("cluster_id", "ascending"), ("plan_version", "ascending")])


def parse_as_of(text: str) -> int | datetime:
    """A plan version, or a moment in RFC 3339; UTC where it names no zone.

    Raises:
        HistoryError: it is neither.
    """
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise HistoryError(
            f"--as-of {text}: give a plan version such as 17, or a time such as 2026-11-19T10:00:00Z", path=text
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
